/*
 * rig_scrub.c - see rig_scrub.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/rig/rig_scrub.h"
#include "tests/rig/test.h"

#define FLIPPED_BIT 99u	/* Of a sector. */
#define WRITE_BYTES (256u << 10)	/* Bytes of one write, at most. */

uint8_t rig_scrub_byte(unsigned file, uint64_t at, unsigned version)
{
	return (uint8_t)(at * 7 + at / 4096 * 13 + file * 31 + version * 101);
}

void rig_scrub_write(struct rig_scrub *b, unsigned file, uint64_t offset,
		     size_t bytes, unsigned version)
{
	uint8_t *data = malloc(bytes);
	struct fs_op op = { .type = FS_WRITE, .ino = b->ino[file],
			    .offset = offset, .size = bytes, .data = data };

	for (size_t i = 0; i < bytes; i++)
		data[i] = rig_scrub_byte(file, offset + i, version);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	free(data);
}

uint64_t rig_scrub_sector(struct rig_scrub *b, unsigned file, uint64_t offset)
{
	return rig_sector_of(&b->rig, b->ino[file], offset);
}

void rig_scrub_flip(struct rig_scrub *b, unsigned file, uint64_t offset)
{
	ck_assert_int_eq(sim_flip(b->rig.sim, rig_scrub_sector(b, file, offset),
				  FLIPPED_BIT), 0);
}

void rig_scrub_begin(struct rig_scrub *b)
{
	ck_assert_int_eq(scrub_open(b->rig.fs, 0, &b->scrub), 0);
}

static void make_file(struct rig_scrub *b, unsigned file, size_t bytes)
{
	char name[16];
	size_t at, n;

	snprintf(name, sizeof(name), "file%u", file);
	ck_assert_int_eq(rig_mknod(&b->rig, 1, name, S_IFREG | 0644,
				   &b->ino[file]), 0);
	for (at = 0; at < bytes; at += n) {
		n = bytes - at < WRITE_BYTES ? bytes - at : WRITE_BYTES;
		rig_scrub_write(b, file, at, n, 0);
	}
}

void rig_scrub_files(struct rig_scrub *b, const size_t *bytes, unsigned files)
{
	unsigned i;

	ck_assert_uint_le(files, RIG_SCRUB_FILES);
	for (i = 0; i < files; i++)
		make_file(b, i, bytes[i]);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
}

void rig_scrub_open(struct rig_scrub *b, const size_t *bytes, unsigned files)
{
	rig_open(&b->rig, RIG_SCRUB_MIB, RIG_SCRUB_SEED);
	rig_scrub_files(b, bytes, files);
	/* Nothing of it in memory. */
	rig_remount(&b->rig);
	rig_scrub_begin(b);
}

void rig_scrub_turn(struct rig_scrub *b)
{
	fs_run(b->rig.fs, 0);
	scrub_run(b->scrub);
	fs_run(b->rig.fs, 0);
	sim_advance(b->rig.sim, RIG_SCRUB_TURN_NS);
}
