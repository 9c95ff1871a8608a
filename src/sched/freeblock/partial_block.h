/*
 * partial_block.h - units of which a part has been read: a unit that goes over
 * a track's end, or has a remapped sector, is read in several gaps, and the
 * first part waits here for the rest.
 *
 * Units: sectors.
 */
#ifndef TRAX_FREEBLOCK_PARTIAL_BLOCK_H
#define TRAX_FREEBLOCK_PARTIAL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/queue/interval_tree.h"

struct partial_blocks {
	struct interval *root;
	uint32_t unit_sectors;
	uint64_t most, held;	/* sectors */
};

struct partial_block;

/* most_bytes 0: nothing is held. */
void partial_blocks_init(struct partial_blocks *parts, uint32_t unit_sectors,
		uint64_t most_bytes);
void partial_blocks_fini(struct partial_blocks *parts);

/* Is there room to hold a part of another unit? */
bool partial_blocks_have_room(const struct partial_blocks *parts);

/*
 * Holds the bytes of [sector, sector + n), a part of one unit.  When that
 * completes the unit *whole is set, and the caller owns and frees it.  -ENOMEM:
 * there is no room, or the part does not adjoin what is held; it is not held.
 */
int partial_blocks_add(struct partial_blocks *parts, uint64_t sector,
		       uint32_t n, const void *bytes,
		       struct partial_block **whole);
const void *partial_block_bytes(const struct partial_block *partial_block);
void partial_block_free(struct partial_block *partial_block);

/* Forgets the units that meet [first, end). */
void partial_blocks_drop(struct partial_blocks *parts, uint64_t first,
			 uint64_t end);

#endif
