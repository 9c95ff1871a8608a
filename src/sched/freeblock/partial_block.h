/*
 * partial_block.h - units of which a part has been read: a unit that goes over
 * a track's end, or has a remapped sector, is read in several gaps, and what
 * came first waits here for the rest.
 *
 * Units: sectors.
 */
#ifndef TRAX_FREEBLOCK_PARTIAL_BLOCK_H
#define TRAX_FREEBLOCK_PARTIAL_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/queue/interval_tree.h"

struct parts {
	struct span *root;
	uint32_t unit_sectors;
	uint64_t most, held;	/* sectors */
};

struct part;

/* most_bytes 0: nothing is held. */
void parts_init(struct parts *parts, uint32_t unit_sectors,
		uint64_t most_bytes);
void parts_fini(struct parts *parts);

/* May a part of any other unit be held? */
bool parts_have_room(const struct parts *parts);

/*
 * [sector, sector + n), within one unit and less than it, with its bytes.  0:
 * held; *whole is set if that completes the unit: it is the caller's, who frees
 * it.  -ENOMEM: no room, or what lies between is missing; it is not held.
 */
int parts_add(struct parts *parts, uint64_t sector, uint32_t n,
	      const void *bytes, struct part **whole);
const void *part_bytes(const struct part *part);
void part_free(struct part *part);

/* Forgets the units that meet [first, end). */
void parts_drop(struct parts *parts, uint64_t first, uint64_t end);

#endif
