/*
 * heat.h - what reaches the disk: where, and in what order.
 *
 * Two views.  By region of 64 MiB: a count of requests that is halved with
 * every HEAT_HALF of them, so it needs no clock and outlives an idle night.  In
 * order: the last HEAT_READS reads of file data, and how often one block was
 * read right behind another.
 *
 * Memory: 4 bytes for each 64 MiB of the disk, and 720 KiB.  The reads in order
 * survive an unmount (heat_save, heat_load); the rest follows from them.
 * Pure memory.  Units: sectors, blocks.
 */
#ifndef TRAX_REPLICATE_HEAT_H
#define TRAX_REPLICATE_HEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAT_REGION_SECTORS (1u << 17)
#define HEAT_READS 16384u
#define HEAT_HALF 16384u

struct heat;

struct heat_read {
	uint64_t ino, block;
	uint64_t sector;	/* where it was read */
	uint32_t blocks;
	uint32_t wait_us;	/* how long the disk took, queueing included */
	bool begin;		/* the first after a pause */
	bool copied;		/* all of it has a copy */
	bool from_copy;		/* which was read */
};

int heat_new(uint64_t sectors, struct heat **heat);
void heat_free(struct heat *heat);

/* A request of any kind. */
void heat_count(struct heat *heat, uint64_t sector, uint32_t sectors);
uint32_t heat_regions(const struct heat *heat);
double heat_region(const struct heat *heat, uint32_t region);
/* First sector of the region that is used most, with its neighbours; 0 when
 * nothing was read. */
uint64_t heat_hot(const struct heat *heat);

/*
 * Users want a block: in the order in which they do.  Returns the number of
 * the read, which goes up by one each time.  Where it was found is told later
 * (heat_found), and forgotten if the number is too old.
 */
uint64_t heat_add(struct heat *heat, const struct heat_read *read);
/* Does a read go on where the last one ended, of the file and of the disk?
 * Then both are one from now on. */
bool heat_extend(struct heat *heat, const struct heat_read *read);
void heat_found(struct heat *heat, uint64_t number, uint64_t sector,
		uint64_t wait_us, bool from_copy);
/* The numbers known are [first, end). */
uint64_t heat_first(const struct heat *heat);
uint64_t heat_end(const struct heat *heat);
const struct heat_read *heat_at(const struct heat *heat, uint64_t number);
/* How often was `b` read right behind `a`?  May be too high by chance. */
unsigned heat_pairs(const struct heat *heat, const struct heat_read *a,
		    const struct heat_read *b);

/* The i-th part of what survives, at most HEAT_PART_BYTES; 0: no more.  Reads
 * before number `judged` are marked. */
#define HEAT_PART_BYTES 3900u
size_t heat_save(const struct heat *heat, unsigned part, uint64_t judged,
		 void *buf);
/* Parts in order, before the first read; what is not valid is left out.
 * Returns how many of them were marked. */
uint64_t heat_load(struct heat *heat, const void *buf, size_t bytes);

#endif
