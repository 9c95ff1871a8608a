/*
 * range_write.c - hierarchical range scheduling, and expand and cancel beside
 * it.
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

/* Tracks that are searched for one place, at most, for each option. */
#define TRACKS_AN_OPTION 64u

struct range_option {
	struct geom_track track;
	uint64_t first, end;	/* the part of it that the query allows */
	uint64_t ready_ns;
	uint64_t extra_ns;
	uint64_t bound_ns;	/* time from now, with what the owner adds */
};

struct range_search {
	const struct head_state *head_state;
	const struct range_query *query;
	struct range_option option[RANGE_MAX_OPTIONS];
	unsigned n, max;
	struct range_answer best;	/* cost UINT64_MAX: none yet */
};

/* ---- Sets ---- */

static bool list_next(const struct range_set *set, uint64_t from, uint64_t end,
		      uint32_t sectors, uint64_t *place)
{
	const struct range_list *list =
		container_of(set, const struct range_list, set);
	size_t low = 0, high = list->n;

	/* The first range that ends behind `from`. */
	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (list->range[mid].first + list->range[mid].n <= from)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < list->n && list->range[low].first < end; low++) {
		const struct range *r = &list->range[low];
		uint64_t at = r->first > from ? r->first : from;

		at = (at + list->align - 1) / list->align * list->align;
		if (at + sectors <= r->first + r->n && at + sectors <= end) {
			*place = at;
			return true;
		}
	}
	return false;
}

void range_list_init(struct range_list *list, const struct range *range,
		     size_t n, uint32_t align)
{
	*list = (struct range_list){ { list_next }, range, n, align };
}

static bool map_get(const struct range_map *map, uint32_t unit)
{
	return map->bits[unit / 64] >> unit % 64 & 1;
}

static bool map_next(const struct range_set *set, uint64_t from, uint64_t end,
		     uint32_t sectors, uint64_t *place)
{
	const struct range_map *map =
		container_of(set, const struct range_map, set);
	const uint32_t unit = map->unit_sectors;
	const uint32_t want = (sectors + unit - 1) / unit;
	uint64_t i = from > map->first ?
		(from - map->first + unit - 1) / unit : 0;
	uint32_t run = 0;

	for (; i < map->units; i++) {
		run = map_get(map, (uint32_t)i) ? run + 1 : 0;
		if (run < want)
			continue;
		*place = map->first + (i + 1 - want) * unit;
		return *place + sectors <= end;
	}
	return false;
}

void range_map_init(struct range_map *map, uint64_t first, uint32_t units,
		    uint32_t unit_sectors, const uint64_t *bits)
{
	*map = (struct range_map){
		{ map_next }, first, units, unit_sectors, bits,
	};
}

/* The next place that has no remapped sector, which lies elsewhere. */
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

/* ---- Options ---- */

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
	       head_state->write_guard_ns;
}

/* The part [first, end) of a track. */
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

/* Level two: an estimate. */
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
	s->best.estimates++;
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

	if (s->n == s->max && o->bound_ns >= s->option[s->n - 1].bound_ns)
		return false;
	if (!place_next(s, o->first, o->end, &place))
		return false;
	if (s->n < s->max)
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

/* The first tracks of [first, end) that have a place.  One that goes over the
 * end of a track is none, so there may be many tracks without. */
static void options_from(struct range_search *s, uint64_t first, uint64_t end)
{
	unsigned kept = 0, tracks = TRACKS_AN_OPTION * s->max;
	struct geom_track track;
	struct range_option o;
	uint64_t place;

	while (kept < s->max && tracks-- &&
	       track_after(s, first, end, &track)) {
		o = option_make(s, &track, first, end);
		option_keep(s, &o);
		kept += place_next(s, o.first, o.end, &place);
		first = track.first + track.sectors;
	}
}

/* Looks around the head: at so many tracks behind it with a place, and as many
 * before it. If all are full, at the first tracks with a place. */
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
	for (i = 1; i <= 2 * s->max && i <= middle - first && kept < s->max;
	     i++) {
		geom_track_at(geom, middle - i, &track);
		o = option_make(s, &track, r->first, end);
		kept += option_keep(s, &o);
	}
	if (!kept && track.first > r->first)
		options_from(s, r->first, track.first);
}

/* Calls for each track of a range in order. */
static void range_each(struct range_search *s, const struct range *r,
		       void (*each)(struct range_search *,
				    const struct range_option *))
{
	const uint64_t end = r->first + r->n;
	struct geom_track track;
	struct range_option o;

	for (uint64_t at = r->first; at < end;
	     at = track.first + track.sectors) {
		geom_track_of(s->head_state->geom, at, &track);
		o = option_make(s, &track, r->first, end);
		each(s, &o);
	}
}

static void keep(struct range_search *s, const struct range_option *o)
{
	option_keep(s, o);
}

static void try_if_better(struct range_search *s, const struct range_option *o)
{
	if (o->bound_ns < s->best.cost_ns)
		option_try(s, o);
}

static void find_few(struct range_search *s)
{
	const struct range_query *q = s->query;
	struct geom_track first, last;

	for (size_t i = 0; i < q->within_n; i++) {
		const struct range *r = &q->within[i];

		geom_track_of(s->head_state->geom, r->first, &first);
		geom_track_of(s->head_state->geom, r->first + r->n - 1, &last);
		if (last.index - first.index < s->max)
			range_each(s, r, keep);
		else
			options_around(s, r, first.index, last.index);
	}
	for (unsigned i = 0; i < s->n &&
			     s->option[i].bound_ns < s->best.cost_ns; i++)
		option_try(s, &s->option[i]);
}

static int search_end(const struct range_search *s, struct range_answer *answer)
{
	if (s->best.cost_ns == UINT64_MAX)
		return -ENOSPC;
	*answer = s->best;
	return 0;
}

int range_find(const struct head_state *head_state,
	       const struct range_query *query, struct range_answer *answer)
{
	struct range_search s = {
		.head_state = head_state, .query = query,
		.max = query->options > RANGE_MAX_OPTIONS ?
			RANGE_MAX_OPTIONS : query->options,
		.best = { .cost_ns = UINT64_MAX },
	};

	if (s.max)
		find_few(&s);
	else
		for (size_t i = 0; i < query->within_n; i++)
			range_each(&s, &query->within[i], try_if_better);
	return search_end(&s, answer);
}

/* ---- Expand and cancel ---- */

uint64_t range_cost_ns(const struct head_state *head_state,
		       const struct range_query *query, uint64_t sector)
{
	const struct service_request req = {
		.write = true, .lbn = sector, .sectors = query->sectors,
	};
	struct geom_track track;
	struct service out;

	head_state_estimate(head_state, &req, &out);
	geom_track_of(head_state->geom, sector, &track);
	return start_ns(head_state) - head_state->now_ns + out.seek_ns +
	       out.switch_ns + out.rotation_ns +
	       distance_ns(head_state, query, track.cylinder);
}

static void expanded(struct range_search *s, uint64_t place)
{
	const uint64_t cost_ns = range_cost_ns(s->head_state, s->query, place);

	s->best.estimates++;
	if (cost_ns >= s->best.cost_ns)
		return;
	s->best.cost_ns = cost_ns;
	s->best.sector = place;
}

static void expand_all(struct range_search *s, const struct range_option *o)
{
	uint64_t from = o->first, place;

	while (place_next(s, from, o->end, &place)) {
		expanded(s, place);
		from = place + 1;
	}
}

/* The place at or behind a sector that does not go over the end of its track
 * or, at the end, the first of the range. */
static void expand_one(struct range_search *s, const struct range *r,
		       uint64_t from)
{
	uint64_t place, end = r->first + r->n;
	struct geom_track track;

	while (from < end) {
		geom_track_of(s->head_state->geom, from, &track);
		if (place_next(s, from, track.first + track.sectors < end ?
			       track.first + track.sectors : end, &place)) {
			expanded(s, place);
			return;
		}
		from = track.first + track.sectors;
	}
}

int range_expand(const struct head_state *head_state,
		 const struct range_query *query, unsigned ways,
		 struct range_answer *answer)
{
	struct range_search s = {
		.head_state = head_state, .query = query,
		.best = { .cost_ns = UINT64_MAX },
	};

	for (size_t i = 0; i < query->within_n; i++) {
		const struct range *r = &query->within[i];

		if (!ways)
			range_each(&s, r, expand_all);
		for (unsigned k = 0; k < ways; k++)
			expand_one(&s, r, r->first + r->n * k / ways);
	}
	return search_end(&s, answer);
}

/* ---- Claims ---- */

void range_claims_init(struct range_claims *claims)
{
	rangeset_init(&claims->taken);
	rangeset_init(&claims->over);
	rangeset_init(&claims->old);
}

void range_claims_fini(struct range_claims *claims)
{
	rangeset_fini(&claims->taken);
	rangeset_fini(&claims->over);
	rangeset_fini(&claims->old);
}

int range_claims_add(struct range_claims *claims, uint64_t sector,
		     uint32_t sectors)
{
	if (rangeset_meets(&claims->taken, sector, sectors))
		return -EBUSY;
	return rangeset_add(&claims->taken, sector, sectors);
}

int range_claims_end(struct range_claims *claims, uint64_t sector,
		     uint32_t sectors)
{
	int rc;

	if (!rangeset_meets(&claims->old, sector, sectors))
		return rangeset_add(&claims->over, sector, sectors);
	rc = rangeset_remove(&claims->old, sector, sectors);
	return rc ? rc : rangeset_remove(&claims->taken, sector, sectors);
}

int range_claims_barrier(struct range_claims *claims)
{
	struct range r;
	int rc = 0;

	while (!rc && rangeset_next(&claims->over, 0, &r)) {
		rc = rangeset_remove(&claims->taken, r.first, r.n);
		if (!rc)
			rc = rangeset_remove(&claims->over, r.first, r.n);
	}
	for (uint64_t at = 0; !rc && rangeset_next(&claims->taken, at, &r);
	     at = r.first + r.n)
		rc = rangeset_add(&claims->old, r.first, r.n);
	return rc;
}

static bool unclaimed_next(const struct range_set *set, uint64_t from,
			   uint64_t end, uint32_t sectors, uint64_t *place)
{
	const struct range_unclaimed *u =
		container_of(set, const struct range_unclaimed, set);
	struct range r;

	while (u->below->next(u->below, from, end, sectors, place)) {
		if (!rangeset_next(&u->claims->taken, *place, &r) ||
		    r.first >= *place + sectors)
			return true;
		from = r.first + r.n;
	}
	return false;
}

void range_unclaimed_init(struct range_unclaimed *unclaimed,
			  const struct range_set *below,
			  const struct range_claims *claims)
{
	*unclaimed = (struct range_unclaimed){
		{ unclaimed_next }, below, claims,
	};
}
