/*
 * range_write.c - hierarchical range scheduling.
 *
 * Level one, tracks: an option is the part of a track that lies within the
 * query; its bound is the time to be ready there (overhead, move, settling,
 * guard) with the price of the distance, before any rotation.  Of a range of
 * many tracks those around the head are taken, outwards on both sides; cylinder
 * numbers grow with the sectors but for the turns of a serpentine, which a
 * few tracks more or less do not mind.  The options with the lowest bounds
 * are kept, and only such as have a place.
 *
 * Level two, sectors: for an option, in the order of the bounds, what is under
 * the head when it is ready, and the first place at or behind that, else the
 * first of the option.  That is one estimate.  A bound that is not below the
 * best cost ends the search.
 */
#include "sched/queue/range_write.h"

#include <errno.h>

#include "base/list.h"

/* Tracks whose places are estimated, at most: eight well-spaced options give
 * most of what can be had (Anand et al., 4.5). */
#define RANGE_OPTIONS 8u
/* Tracks that are searched for one place for each option, at most. */
#define TRACKS_AN_OPTION 64u

struct range_option {
	struct geom_track track;
	uint64_t first, end;	/* the part of the track that the query
				 * allows */
	uint64_t ready_ns;
	uint64_t extra_ns;
	uint64_t bound_ns;	/* time from now, with what the owner adds */
};

struct range_search {
	const struct head_state *head_state;
	const struct range_query *query;
	struct range_option option[RANGE_OPTIONS];
	unsigned n;
	struct range_answer best;	/* cost UINT64_MAX: none yet */
};

/* ---- Options ---- */

/* Finds the next place without a remapped sector, which would lie elsewhere. */
static bool place_next(const struct range_search *s, uint64_t from,
		       uint64_t end, uint64_t *place)
{
	const struct range_query *q = s->query;
	uint64_t moved;
	uint32_t n;

	while (q->set->next(q->set, from, end, q->sectors, place)) {
		if (!geom_remap_next(s->head_state->geom, *place, &moved, &n) ||
		    moved >= *place + q->sectors)
			return true;
		from = moved + n;
	}
	return false;
}

static uint64_t distance_ns(const struct head_state *head_state,
			    const struct range_query *query, uint32_t cylinder)
{
	const struct service_mech *mech = head_state->mech;
	uint64_t near_ns, ns;

	if (!query->lambda)
		return 0;
	near_ns = service_seek_ns(mech, 0, 1);
	ns = service_seek_ns(mech, query->ideal, cylinder);
	return ns > near_ns ? query->lambda * (ns - near_ns) : 0;
}

static uint64_t start_ns(const struct head_state *head_state)
{
	return head_state_start_ns(head_state, true) +
	       head_state->place_guard_ns;
}

/* Makes an option of the part [first, end) of a track. */
static struct range_option option_make(const struct range_search *s,
				 const struct geom_track *track,
				 uint64_t first, uint64_t end)
{
	const struct head_state *b = s->head_state;
	struct range_option o = { .track = *track, .first = track->first,
			    .end = track->first + track->sectors };

	if (o.first < first)
		o.first = first;
	if (o.end > end)
		o.end = end;
	o.ready_ns = start_ns(b) +
		     service_move_ns(b->mech, &b->head, track->cylinder,
				     track->surface, true);
	o.extra_ns = distance_ns(b, s->query, track->cylinder);
	o.bound_ns = o.ready_ns - b->now_ns + o.extra_ns;
	return o;
}

/* Level two: estimates an option. */
static void option_try(struct range_search *s, const struct range_option *o)
{
	const struct service_mech *mech = s->head_state->mech;
	const angle under = service_angle(mech, o->ready_ns);
	const uint64_t at = geom_lbn_at(s->head_state->geom, &o->track, under);
	struct geom_place where;
	uint64_t place, cost_ns;

	if (at < o->first || at >= o->end || !place_next(s, at, o->end, &place))
		if (!place_next(s, o->first, o->end, &place))
			return;
	geom_place_of(s->head_state->geom, place, &where);
	cost_ns = o->bound_ns +
		  service_wait_ns(mech, o->ready_ns, where.start);
	if (cost_ns >= s->best.cost_ns)
		return;
	s->best.cost_ns = cost_ns;
	s->best.sector = place;
}

/* Keeps an option if it is among the best; false: it is not, nor has it a
 * place. */
static bool option_keep(struct range_search *s, const struct range_option *o)
{
	uint64_t place;
	unsigned i;

	if (s->n == RANGE_OPTIONS &&
	    o->bound_ns >= s->option[s->n - 1].bound_ns)
		return false;
	if (!place_next(s, o->first, o->end, &place))
		return false;
	if (s->n < RANGE_OPTIONS)
		s->n++;
	for (i = s->n - 1; i && s->option[i - 1].bound_ns > o->bound_ns; i--)
		s->option[i] = s->option[i - 1];
	s->option[i] = *o;
	return true;
}

/* The first of these tracks whose cylinder is not before the head's. */
static uint64_t track_of_head(const struct range_search *s, uint64_t low,
			      uint64_t high)
{
	struct geom_track track;

	while (low < high) {
		const uint64_t mid = low + (high - low) / 2;

		geom_track_at(s->head_state->geom, mid, &track);
		if (track.cylinder < s->head_state->head.cylinder)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Goes from a full track on to the next one with a place; false: there is
 * none. */
static bool track_after(const struct range_search *s, uint64_t from,
			uint64_t end, struct geom_track *track)
{
	uint64_t place;

	if (from >= end || !place_next(s, from, end, &place))
		return false;
	geom_track_of(s->head_state->geom, place, track);
	return true;
}

/* Takes the first tracks of [first, end) that have a place.  A place across a
 * track's end is none, so there may be many tracks without one. */
static void options_from(struct range_search *s, uint64_t first, uint64_t end)
{
	unsigned kept = 0, tracks = TRACKS_AN_OPTION * RANGE_OPTIONS;
	struct geom_track track;
	struct range_option o;
	uint64_t place;

	while (kept < RANGE_OPTIONS && tracks-- &&
	       track_after(s, first, end, &track)) {
		o = option_make(s, &track, first, end);
		option_keep(s, &o);
		kept += place_next(s, o.first, o.end, &place);
		first = track.first + track.sectors;
	}
}

/* Looks around the head: at RANGE_OPTIONS tracks behind it with a place, and as
 * many before it.  If all are full, at the first tracks with a place. */
static void options_around(struct range_search *s, const struct range *r,
			   uint64_t first, uint64_t last)
{
	const struct geom *geom = s->head_state->geom;
	const uint64_t middle = track_of_head(s, first, last);
	const uint64_t end = r->first + r->n;
	struct geom_track track;
	struct range_option o;
	unsigned i, kept = 0;

	geom_track_at(geom, middle, &track);
	options_from(s, track.first > r->first ? track.first : r->first, end);
	for (i = 1; i <= 2 * RANGE_OPTIONS && i <= middle - first &&
		    kept < RANGE_OPTIONS; i++) {
		geom_track_at(geom, middle - i, &track);
		o = option_make(s, &track, r->first, end);
		kept += option_keep(s, &o);
	}
	if (!kept && track.first > r->first)
		options_from(s, r->first, track.first);
}

/* Looks at all tracks of a range. */
static void options_all(struct range_search *s, const struct range *r)
{
	const uint64_t end = r->first + r->n;
	struct geom_track track;
	struct range_option o;

	for (uint64_t at = r->first; at < end;
	     at = track.first + track.sectors) {
		geom_track_of(s->head_state->geom, at, &track);
		o = option_make(s, &track, r->first, end);
		option_keep(s, &o);
	}
}

static void options_find(struct range_search *s)
{
	const struct range_query *q = s->query;
	struct geom_track first, last;

	for (size_t i = 0; i < q->within_n; i++) {
		const struct range *r = &q->within[i];

		geom_track_of(s->head_state->geom, r->first, &first);
		geom_track_of(s->head_state->geom, r->first + r->n - 1, &last);
		if (last.index - first.index < RANGE_OPTIONS)
			options_all(s, r);
		else
			options_around(s, r, first.index, last.index);
	}
}

int range_find(const struct head_state *head_state,
	       const struct range_query *query, struct range_answer *answer)
{
	struct range_search s = {
		.head_state = head_state, .query = query,
		.best = { .cost_ns = UINT64_MAX },
	};

	options_find(&s);
	for (unsigned i = 0; i < s.n &&
			     s.option[i].bound_ns < s.best.cost_ns; i++)
		option_try(&s, &s.option[i]);
	if (s.best.cost_ns == UINT64_MAX)
		return -ENOSPC;
	*answer = s.best;
	return 0;
}

uint64_t range_cost_ns(const struct head_state *head_state,
		       const struct range_query *query, uint64_t sector)
{
	const struct service_request req = {
		.write = true, .lbn = sector, .sectors = query->sectors,
	};
	struct head_state to_place = *head_state;
	struct geom_track track;
	struct service out;

	to_place.write_guard_ns = head_state->place_guard_ns;
	head_state_estimate(&to_place, &req, &out);
	geom_track_of(head_state->geom, sector, &track);
	return start_ns(head_state) - head_state->now_ns + out.seek_ns +
	       out.switch_ns + out.rotation_ns +
	       distance_ns(head_state, query, track.cylinder);
}
