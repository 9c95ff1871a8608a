/*
 * rig_scrub.h - a file system on a simulated disk with some files, of which
 * nothing is in memory, and a scrub of it.  These functions fail the test when
 * they cannot go on.
 */
#ifndef TRAX_RIG_RIG_SCRUB_H
#define TRAX_RIG_RIG_SCRUB_H

#include <stddef.h>
#include <stdint.h>

#include "scrub/scrub.h"
#include "tests/rig/rig_fs.h"

#define RIG_SCRUB_MIB 128u	/* Size of the disk. */
#define RIG_SCRUB_SEED 7u
#define RIG_SCRUB_FILES 6u	/* Files, at most. */
/* Runs of the loop after which a pass should have ended long ago. */
#define RIG_SCRUB_TURNS 400000u
/* Time that passes in each: 2 ms. */
#define RIG_SCRUB_TURN_NS 2000000u

struct rig_scrub {
	struct rig rig;
	struct scrub *scrub;
	uint64_t ino[RIG_SCRUB_FILES];	/* of file0, file1 ... */
};

/* Makes a file system with file0, file1 ... of these lengths, and begins a
 * scrub of it. */
void rig_scrub_open(struct rig_scrub *b, const size_t *bytes, unsigned files);
/* Its first half, on a file system that is open. */
void rig_scrub_files(struct rig_scrub *b, const size_t *bytes, unsigned files);
/* Begins a scrub of the file system as it is mounted now. */
void rig_scrub_begin(struct rig_scrub *b);

/* The byte at an offset of a file; another one for each version. */
uint8_t rig_scrub_byte(unsigned file, uint64_t at, unsigned version);
void rig_scrub_write(struct rig_scrub *b, unsigned file, uint64_t offset,
		     size_t bytes, unsigned version);
/* The sector in which a byte of a file lies. */
uint64_t rig_scrub_sector(struct rig_scrub *b, unsigned file, uint64_t offset);
/* Flips a bit in that sector, or flips it back. */
void rig_scrub_flip(struct rig_scrub *b, unsigned file, uint64_t offset);

/* Runs file system and scrub once, and lets RIG_SCRUB_TURN_NS pass. */
void rig_scrub_turn(struct rig_scrub *b);

#endif
