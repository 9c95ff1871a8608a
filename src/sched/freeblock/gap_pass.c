/*
 * gap_pass.c - the wanted sectors that pass under the head on a track within a
 * gap, and the times of moves and transfers.
 */
#include "sched/freeblock/gap_search_internal.h"

#include "sched/freeblock/gap_search.h"

/* Times are rounded several times on the way: an exact one may seem this much
 * too long. */
#define ROUND_OUT_NS 100u

/* ---- times ---- */

uint64_t gap_move_ns(const struct gap_search_state *s,
		     const struct geom_track *from,
		     const struct geom_track *to, bool write)
{
	struct service_head head = { 0, from->cylinder, from->surface };

	if (from->index == to->index)
		return 0;
	return service_move_ns(s->head_state->mech, &head, to->cylinder,
			       to->surface, write);
}

uint64_t gap_settle_ns(const struct gap_search_state *s)
{
	return s->query->target.write ? s->head_state->mech->write_settle_ns
				      : 0;
}

/* Time at which an LBN of a track next passes under the head, not before
 * from_ns. */
static uint64_t gap_begin_ns(const struct gap_search_state *s, uint64_t lbn,
			     uint64_t from_ns)
{
	struct geom_place place;

	geom_place_of(s->head_state->geom, lbn, &place);
	return from_ns +
	       service_wait_ns(s->head_state->mech, from_ns, place.start);
}

/* Time that [first, first + n) of one track takes to pass. */
static uint64_t gap_length_ns(const struct gap_search_state *s,
			      const struct geom_track *track, uint64_t first,
			      uint32_t n)
{
	struct geom_place a, b;

	geom_place_of(s->head_state->geom, first, &a);
	geom_place_of(s->head_state->geom, first + n - 1, &b);
	return service_turn_ns(s->head_state->mech,
			       (uint64_t)(angle)(b.start - a.start) +
				       track->per_sector);
}

int64_t gap_units_in(const struct gap_search_state *s, uint64_t ns,
		     const struct geom_track *track)
{
	return (int64_t)((ns + 500) * track->sectors / s->turn_ns /
			 freeblock_set_unit(s->wanted));
}

int64_t gap_unit_ns(const struct gap_search_state *s,
		    const struct geom_track *track)
{
	return (int64_t)service_turn_ns(s->head_state->mech,
					(uint64_t)track->per_sector *
						freeblock_set_unit(s->wanted));
}

/* ---- one passing ---- */

static void extent_place(const struct gap_search_state *s,
			const struct geom_track *track, uint64_t from_ns,
			struct gap_extent *extent)
{
	extent->begin_ns = gap_begin_ns(s, extent->sector, from_ns);
	extent->end_ns = extent->begin_ns +
			 gap_length_ns(s, track, extent->sector,
				       extent->sectors);
}

/* Is the unit before a wanted unit on the same track wanted as well? */
static bool gap_goes_back(const struct gap_search_state *s,
			  const struct geom_track *track, uint64_t sector)
{
	uint32_t unit = freeblock_set_unit(s->wanted);
	struct range r;

	return sector >= track->first + unit &&
	       freeblock_set_next_on(s->wanted, track, sector - unit, &r) &&
	       r.first < sector;
}

/* Cuts a wanted run to the units that end by `end`, which lies behind its
 * first sector; false: none does. */
static bool run_cut(const struct gap_search_state *s, uint64_t end,
		    struct range *r)
{
	if (r->first + r->n > end)
		r->n = end - r->first -
		       (end - r->first) % freeblock_set_unit(s->wanted);
	return r->n;
}

/* Makes one command of the wanted units within [first, end) of a track, from
 * the first of them to the last.  Returns their number. */
static uint32_t extent_find(const struct gap_search_state *s,
			   const struct geom_track *track, uint64_t first,
			   uint64_t end, struct gap_extent *extent)
{
	uint32_t unit = freeblock_set_unit(s->wanted), units = 0, n;
	uint64_t moved, all;
	int64_t runs = 0;
	struct range r;

	/* Only up to a remapped sector or, if nothing is wanted before it, from
	 * there on. */
	while (geom_remap_next(s->head_state->geom, first, &moved, &n) &&
	       moved < end) {
		if (freeblock_set_next_on(s->wanted, track, first, &r) &&
		    r.first + unit <= moved) {
			end = moved;
			break;
		}
		first = moved + n;
		first += unit - 1;
		first -= first % unit;
	}
	extent->sectors = 0;
	while (first < end &&
	       freeblock_set_next_on(s->wanted, track, first, &r) &&
	       r.first < end) {
		if (!units && end - r.first > s->query->max_sectors)
			end = r.first + s->query->max_sectors;
		first = all = r.first + r.n;
		if (!run_cut(s, end, &r))
			continue;
		if (!units) {
			extent->sector = r.first;
			runs -= s->query->run_ns &&
				gap_goes_back(s, track, r.first);
		}
		runs += r.first + r.n == all;
		units += (uint32_t)(r.n / unit);
		extent->sectors = (uint32_t)(r.first + r.n - extent->sector);
	}
	extent->units = units;
	extent->worth_ns =
		units * gap_unit_ns(s, track) + runs * s->query->run_ns;
	return units;
}

/* Does all of a track pass between two times, beginning with a sector?  A track
 * with defects may have its sectors on a part of its turn. */
static bool gap_track_passes(const struct gap_search_state *s,
			     const struct geom_track *track, uint64_t sector,
			     uint64_t in_ns, uint64_t out_ns)
{
	return sector == track->first &&
	       gap_begin_ns(s, sector, in_ns) + gap_length_ns(s, track, sector,
							      track->sectors) <=
		       out_ns + ROUND_OUT_NS;
}

void pass_over(const struct gap_search_state *s,
	       const struct geom_track *track, uint64_t in_ns,
	       uint64_t out_ns, struct gap_pass *pass)
{
	const struct geom *geom = s->head_state->geom;
	uint64_t end = track->first + track->sectors, a, b;
	struct gap_extent *extent = pass->extent;
	angle out;

	*pass = (struct gap_pass){ 0 };
	if (out_ns <= in_ns || !track->per_sector)
		return;
	a = geom_lbn_at(
		geom, track,
		service_angle(s->head_state->mech, in_ns - ROUND_IN_NS));
	out = service_angle(s->head_state->mech, out_ns + ROUND_OUT_NS);
	b = geom_lbn_at(geom, track, out - track->per_sector + 1);
	if (out_ns - in_ns >= s->turn_ns)
		b = a;
	else if ((b + track->sectors - a) % track->sectors >
		 1 + (out_ns - in_ns) / service_turn_ns(s->head_state->mech,
							track->per_sector) ||
		 (a == b && !gap_track_passes(s, track, a, in_ns, out_ns)))
		return;
	if (extent_find(s, track, a, b > a ? b : end, extent)) {
		extent_place(s, track, in_ns, extent);
		in_ns = extent->end_ns + s->lead_ns;
		pass->worth_ns = extent->worth_ns;
		pass->n++;
		extent++;
	}
	if (b > a || b == track->first)
		return;
	a = track->first;
	if (gap_begin_ns(s, a, in_ns) >= out_ns)
		a = geom_lbn_at(geom, track, service_angle(s->head_state->mech,
							in_ns - ROUND_IN_NS));
	if (a >= b)
		return;
	if (extent_find(s, track, a, b, extent)) {
		extent_place(s, track, in_ns, extent);
		pass->worth_ns += extent->worth_ns;
		pass->n++;
	}
}
