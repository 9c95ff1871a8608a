/*
 * gap_search_internal.h - the search of a gap from inside: gap_pass.c (one
 * passing over a track), gap_search.c (plans, bounds, the order of search).
 */
#ifndef TRAX_FREEBLOCK_GAP_SEARCH_INTERNAL_H
#define TRAX_FREEBLOCK_GAP_SEARCH_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/freeblock/gap_search.h"

/* Nodes in the heap, at most, and seek points with a lower bound of their
 * own. */
#define HEAP_MAX 1024u
#define LOW_MAX 512u
/* Rounding of times: a sector missed by less than ROUND_IN_NS counts as met, as
 * in service_wait_ns; ROUND_OUT_NS of it may be spent at the end. */
#define ROUND_IN_NS 200u

struct heap_entry {
	int64_t bound;
	uint64_t spent_ns;	/* least time that moves take */
	uint32_t level;
	uint64_t index;
};

/* A passing of the head over one track. */
struct gap_pass {
	unsigned n;
	struct gap_extent extent[2];
	int64_t worth_ns;
};

struct gap_search_state {
	const struct gap_query *query;
	const struct head_state *head_state;
	const struct freeblock_set *wanted;
	struct gap_plan *plan;
	struct geom_track source, target;
	uint64_t free_ns;	/* when the head may move for a read that is
				 * handed over now */
	uint64_t lead_ns;	/* least time between commands on one track */
	uint64_t leave_ns;	/* when the head must be on the target's
				 * track */
	uint64_t turn_ns;
	uint64_t low_ns[LOW_MAX]; /* least seek at and beyond a seek point */
	uint32_t low_n;
	int64_t ends_ns;	/* bound of source and target track, with the
				 * whole gap for each */
	unsigned heap_n;
	struct heap_entry heap[HEAP_MAX];
};

/* ---- gap_pass.c ---- */

uint64_t gap_move_ns(const struct gap_search_state *s,
		     const struct geom_track *from,
		     const struct geom_track *to, bool write);

uint64_t gap_settle_ns(const struct gap_search_state *s);

/* Whole units that can pass in a time, with a margin for rounding. */
int64_t gap_units_in(const struct gap_search_state *s, uint64_t ns,
		     const struct geom_track *track);

/* Value of a wanted unit of a track. */
int64_t gap_unit_ns(const struct gap_search_state *s,
		    const struct geom_track *track);

/*
 * Finds the wanted sectors that pass on a track from in_ns, when the head is
 * there, to out_ns, when it must be through.
 */
void pass_over(const struct gap_search_state *s,
	       const struct geom_track *track, uint64_t in_ns,
	       uint64_t out_ns, struct gap_pass *pass);

#endif
