/*
 * range_write.h - range writes: of many places a write may go to, the one that
 * costs least with the head where it is believed to be (Anand et al., FAST
 * 2008).
 *
 * A query names where to look (`within`), which places there are acceptable
 * (`set`), and how much a place costs that is far from where the data belongs.
 * Pure functions; nothing is taken.  The caller marks the answer as taken
 * before the next query, or keeps the places of outstanding writes in a struct
 * range_claims; then ranges may overlap and writes never collide.
 *
 * Cost of a place, in ns from now: command overhead, move and settling, the
 * guard, rotation to the place, and lambda times what seeking from where the
 * data belongs takes longer than to a neighbouring cylinder.
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

/* Ranges in ascending order; places are multiples of `align` in each, counted
 * from sector 0. */
struct range_list {
	struct range_set set;
	const struct range *range;
	size_t n;
	uint32_t align;
};

/* One range, [first, first + units * unit_sectors), and a bit for each unit
 * that says whether it is acceptable; places begin with a unit. */
struct range_map {
	struct range_set set;
	uint64_t first;
	uint32_t units, unit_sectors;
	const uint64_t *bits;
};

void range_list_init(struct range_list *list, const struct range *range,
		     size_t n, uint32_t align);
void range_map_init(struct range_map *map, uint64_t first, uint32_t units,
		    uint32_t unit_sectors, const uint64_t *bits);

/* ---- Queries ---- */

/* Eight well-spaced options give most of what can be had (Anand et al., 4.5).
 */
#define RANGE_OPTIONS 8u
#define RANGE_MAX_OPTIONS 64u

struct range_query {
	const struct range_set *set;
	const struct range *within;
	size_t within_n;
	uint32_t sectors;
	unsigned options;	/* tracks looked at, at most
				   RANGE_MAX_OPTIONS; 0: all that matter */
	uint32_t ideal;		/* cylinder where the data belongs */
	unsigned lambda;	/* 0: it belongs anywhere */
};

struct range_answer {
	uint64_t sector;
	uint64_t cost_ns;
	unsigned estimates;	/* estimates of rotation that it took */
};

/*
 * Hierarchical: by track in order of the time it takes to get there, and on
 * each the first place that passes under the head.  A track that takes longer
 * to reach than the best place so far costs is not looked at.  A place lies
 * inside one track.  The head state must know writes.  -ENOSPC: no place.
 */
int range_find(const struct head_state *head_state,
	       const struct range_query *query, struct range_answer *answer);

/*
 * Expand and cancel, the reference: every acceptable place is estimated, or
 * `ways` of them, equally spaced in each of the ranges.
 */
int range_expand(const struct head_state *head_state,
		 const struct range_query *query, unsigned ways,
		 struct range_answer *answer);

/* The cost of one place, by the whole estimate of the request. */
uint64_t range_cost_ns(const struct head_state *head_state,
		       const struct range_query *query, uint64_t sector);

/* ---- Outstanding writes with overlapping ranges ---- */

struct range_claims {
	struct rangeset taken;	/* places that are claimed */
	struct rangeset over;	/* claimed, and completed since the barrier */
	struct rangeset old;	/* claimed before the barrier, outstanding */
};

void range_claims_init(struct range_claims *claims);
void range_claims_fini(struct range_claims *claims);
/* -EBUSY: a part of it is claimed already; -ENOMEM.  Nothing is claimed then.
 */
int range_claims_add(struct range_claims *claims, uint64_t sector,
		     uint32_t sectors);
/* A write is over.  Its place stays claimed until a barrier. */
int range_claims_end(struct range_claims *claims, uint64_t sector,
		     uint32_t sectors);
/*
 * All queries from now on come from callers that know of the writes claimed so
 * far.  So places of completed writes are forgotten now, those of others when
 * they complete.  -ENOMEM: try again.
 */
int range_claims_barrier(struct range_claims *claims);

/* What another set accepts and nobody has claimed. */
struct range_unclaimed {
	struct range_set set;
	const struct range_set *below;
	const struct range_claims *claims;
};

void range_unclaimed_init(struct range_unclaimed *unclaimed,
			  const struct range_set *below,
			  const struct range_claims *claims);

#endif
