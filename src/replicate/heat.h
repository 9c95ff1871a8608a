/*
 * heat.h - which sectors are read how often, and in what order.
 *
 * Two views. By region of 64 MiB: a count of requests that is halved with every
 * HEAT_HALF requests, so it needs no clock and outlives an idle night. In
 * order: the last HEAT_READS reads of file data, and how often one block was
 * read right behind another.
 *
 * Memory: 4 bytes for each 64 MiB of the disk, and 784 KiB. The reads in order
 * survive an unmount (heat_save, heat_load); the counts follow from them. Pure
 * memory. Units: sectors, blocks.
 */
#ifndef TRAX_REPLICATE_HEAT_H
#define TRAX_REPLICATE_HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAT_BLOCK_SECTORS 8u	/* sectors of a block of the file system */
#define HEAT_REGION_SECTORS (1u << 17)	/* use is counted by parts of 64 MiB */
#define HEAT_READS 16384u	/* number of the last reads that are kept */
#define HEAT_HALF 16384u	/* reads after which a use counts half */

struct heat;

struct heat_read {
	uint64_t ino, block;
	uint64_t sector;	/* where it was read */
	uint32_t blocks;
	uint32_t wait_us;	/* how long the disk took, queueing included */
	bool begin;		/* it is the first one after a pause */
	bool copied;		/* all its blocks have a replica */
	bool from_copy;		/* a replica was read */
};

int heat_new(uint64_t sectors, struct heat **heat);
void heat_free(struct heat *heat);

/* Counts a request of any kind. */
void heat_count(struct heat *heat, uint64_t sector, uint32_t sectors);
uint32_t heat_regions(const struct heat *heat);
double heat_region(const struct heat *heat, uint32_t region);
/* First sector of the region that is used most, its neighbours counted; 0 when
 * nothing was read. */
uint64_t heat_hot(const struct heat *heat);

/*
 * Records that users read a block. Returns the number of the read, which goes
 * up by one each time. Where it was found is reported later by heat_found, and
 * ignored if the number is too old.
 */
uint64_t heat_add(struct heat *heat, const struct heat_read *read);
/* Does a read go on where the last one ended, in the file and on the disk? Then
 * both become one. */
bool heat_extend(struct heat *heat, const struct heat_read *read);
void heat_found(struct heat *heat, uint64_t number, uint64_t sector,
		uint64_t wait_us, bool from_copy);
/* Reads with numbers [first, end) are known. */
uint64_t heat_first(const struct heat *heat);
uint64_t heat_end(const struct heat *heat);
const struct heat_read *heat_at(const struct heat *heat, uint64_t number);
/* How often was `b` read right behind `a`, of the reads that are known?  By
 * chance it may be too high. */
unsigned heat_pairs(const struct heat *heat, const struct heat_read *a,
		    const struct heat_read *b);

/* How many of the reads that are known began in the same 64 KiB of the file?
 * By chance it may be too high. */
unsigned heat_times(const struct heat *heat, const struct heat_read *read);

/* The i-th part of the stored form, at most HEAT_PART_BYTES; 0: there is none.
 * Reads before number `judged` are marked as judged. */
#define HEAT_PART_BYTES 3900u
size_t heat_save(const struct heat *heat, unsigned part, uint64_t judged,
		 void *buf);
/* Loads a part; parts come in order, before the first read. Invalid reads are
 * left out. Returns the number of judged ones. */
uint64_t heat_load(struct heat *heat, const void *buf, size_t bytes);

#endif
