/*
 * range_write.h - range writes: chooses among the many places to which a write
 * may go the one that costs least with the predicted head (Anand et al., FAST
 * 2008).
 *
 * A query says where to look (`within`), which places there are acceptable
 * (`set`), and how much a place costs that is far from where the data belongs.
 * Pure functions; nothing is taken.  The caller marks the answer as taken
 * before the next query.
 *
 * Cost of a place, in ns from now: command overhead, move and settling, the
 * guard, rotation to the place, and lambda times the difference between a seek
 * to it from where the data belongs and a seek to a neighbouring cylinder.
 */
#ifndef TRAX_QUEUE_RANGE_WRITE_H
#define TRAX_QUEUE_RANGE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rangeset.h"
#include "sched/head/head_state.h"

/* ---- Acceptable places ---- */

struct range_set {
	/*
	 * The first place at or after `from` of which all sectors are
	 * acceptable and which ends at or before `end`; false: none.
	 */
	bool (*next)(const struct range_set *set, uint64_t from, uint64_t end,
		     uint32_t sectors, uint64_t *place);
};

/* ---- Queries ---- */

struct range_query {
	const struct range_set *set;
	const struct range *within;
	size_t within_n;
	uint32_t sectors;
	uint32_t ideal;		/* cylinder where the data belongs */
	unsigned lambda;	/* 0: it belongs anywhere */
};

struct range_answer {
	uint64_t sector;
	uint64_t cost_ns;
};

/*
 * Finds the cheapest place, hierarchically: over the tracks in the order of the
 * time that it takes to get there, and on each the first place that passes
 * under the head.  A track that takes longer to reach than the best place so
 * far costs is not looked at.  A place lies inside one track.  The head state
 * must be known for writes. -ENOSPC: there is no place.
 */
int range_find(const struct head_state *head_state,
	       const struct range_query *query, struct range_answer *answer);

/* The cost of one place, by the whole estimate of the request. */
uint64_t range_cost_ns(const struct head_state *head_state,
		       const struct range_query *query, uint64_t sector);

#endif
