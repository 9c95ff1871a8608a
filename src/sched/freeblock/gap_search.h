/*
 * gap_search.h - finds what can be read in a rotational gap: the search of
 * freeblock scheduling (Lumb et al., OSDI 2000, section 4).
 *
 * A request waits for its first sector to come round.  The search finds the
 * reads of wanted sectors that fit in before, on the track the head is on, on
 * the request's own, on both one after the other, or on a third, so that the
 * request begins when it would have begun without them.
 *
 * Pure arithmetic on the head state.  Its work is bounded in steps, not in
 * time, so that the same query has the same answer.
 */
#ifndef TRAX_FREEBLOCK_GAP_SEARCH_H
#define TRAX_FREEBLOCK_GAP_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/head/head_state.h"
#include "sched/freeblock/freeblock_set.h"

struct gap_query {
	const struct head_state
		*head_state; /* the first command is handed over now */
	struct service_request target;
	/* Time from the end of one command to the first move of the next; 0 if
	 * the next has been handed over by then. */
	uint64_t handover_ns;
	uint32_t max_sectors;	/* longest command */
	bool joins;		/* a read that ends where the target begins is
				 * one command with it */
	uint32_t steps;		/* tracks and nodes that may be looked at */
	/*
	 * Wanted sectors are worth the time that they take to pass.  run_ns is
	 * added when a wanted run is gone, and subtracted when one becomes two:
	 * late in a scan each run that is left takes a gap of its own, however
	 * short it is.
	 */
	uint32_t run_ns;
};

/* Extents of a plan: two on each of three tracks, as a track's end can lie in
 * the middle. */
#define GAP_EXTENTS 6

struct gap_extent {
	uint64_t sector;
	uint32_t sectors;
	uint64_t begin_ns, end_ns;	/* when the medium is read */
	uint32_t units;			/* wanted units in it */
	int64_t worth_ns;
};

struct gap_plan {
	uint64_t target_ns;	/* when the request's first sector is met */
	uint64_t over_ns;	/* when it completes */
	uint64_t gap_ns;	/* rotational delay before target_ns; 0 if the
				   request is begun in its middle, or might be
				   met a turn earlier */
	uint64_t rotation_ns;	/* all the rotational delay of the request,
				 * which is what could be used */
	unsigned extents_n;	/* extents, in order of time */
	struct gap_extent extent[GAP_EXTENTS];
	uint32_t units;		/* wanted units in them */
	int64_t worth_ns;	/* value of the plan in time, with the value of
				 * its long runs */
	uint32_t steps;		/* steps that the search took */
	bool complete;		/* the steps sufficed for the whole search */
};

/* Finds the best plan.  It finds nothing unless the tracks of the target and of
 * the head are known. */
void gap_search(const struct gap_query *query,
		const struct freeblock_set *wanted, struct gap_plan *plan);

/* Computes only the times of the target. */
void gap_measure(const struct gap_query *query, struct gap_plan *plan);

#endif
