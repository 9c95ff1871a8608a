/*
 * segments.h - the read cache of a drive: which LBNs it has in memory.
 *
 * A few segments, each one run of LBNs no longer than a segment holds, taken
 * over in turn by the least recently used.
 */
#ifndef TRAX_SIM_SEGMENTS_H
#define TRAX_SIM_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct segment {
	uint64_t first;
	uint32_t n;
	uint64_t used;		/* a counter, for the least recent */
};

struct segments {
	struct segment *v;
	uint32_t count;
	uint32_t room_lbns;	/* of one segment */
	uint64_t clock;
};

/* -ENOMEM.  No segments: a cache that never has anything. */
int segments_init(struct segments *segments, uint32_t count,
		  uint32_t room_lbns);
void segments_fini(struct segments *segments);
void segments_clear(struct segments *segments);

/* The segment that holds the LBN, used now; NULL: none. */
struct segment *segments_find(struct segments *segments, uint64_t lbn);

bool segments_has(struct segments *segments, uint64_t lbn, uint32_t n);

/*
 * What was read: goes on from a segment it continues, else takes the least
 * recently used.  The last room_lbns of it stay.  NULL: no cache.
 */
struct segment *segments_add(struct segments *segments, uint64_t lbn,
			     uint32_t n);

/* What was written is no longer right. */
void segments_drop(struct segments *segments, uint64_t lbn, uint32_t n);

#endif
