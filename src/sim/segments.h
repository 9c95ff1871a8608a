/*
 * segments.h - the read cache of a drive: which LBNs it has in memory.
 *
 * It has a few segments. Each holds one run of LBNs, no longer than the
 * segment; a new run takes the segment that was least recently used.
 */
#ifndef TRAX_SIM_SEGMENTS_H
#define TRAX_SIM_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct cache_segment {
	uint64_t first;
	uint32_t n;
	uint64_t used;		/* value of a counter at its last use */
};

struct segments {
	struct cache_segment *v;
	uint32_t count;
	uint32_t room_lbns;	/* LBNs that a segment holds */
	uint64_t clock;
};

/* -ENOMEM. With no segments it is a cache that never holds anything. */
int segments_init(struct segments *segments, uint32_t count,
		  uint32_t room_lbns);
void segments_fini(struct segments *segments);
void segments_clear(struct segments *segments);

/* The segment that holds the LBN, which counts as a use; NULL: there is
 * none. */
struct cache_segment *segments_find(struct segments *segments, uint64_t lbn);

bool segments_has(struct segments *segments, uint64_t lbn, uint32_t n);

/*
 * Adds what was read: to the segment that it continues, else to the least
 * recently used one. A segment keeps the last room_lbns. NULL: there is no
 * cache.
 */
struct cache_segment *segments_add(struct segments *segments, uint64_t lbn,
			     uint32_t n);

/* Forgets what was overwritten. */
void segments_drop(struct segments *segments, uint64_t lbn, uint32_t n);

#endif
