/*
 * gap.c - which tracks lie between two tracks that are known.
 *
 * There are three hypotheses; those that take fewer reads are tried first:
 *
 *   rows   Tracks like the one before the gap, then tracks like the one behind
 *          it, have together exactly as many units as the gap.  This is
 *          accepted if no other numbers of them would do, also with a few slips
 *          in one of them, and if each track is a straight line of angles as
 *          fast as its like.  No skew between them need be seen: no track is
 *          longer than a turn, so none of them can have units of another.
 *
 *   slips  The gap has a few units less than tracks on both sides of it, and no
 *          zone ends in it: that leaves no room for two tracks.  It is one with
 *          slips, if its units are nowhere early and at most as late as those
 *          slips make them.
 *
 *   arcs   The gap is followed from one skew to the next (segment.h).  An arc
 *          that takes a turn is a track if the table in is_track() says so, or
 *          if it can be read without losing a turn.
 *
 * Arcs shorter than a turn stay unknown: they may be short tracks, or parts of
 * one track in which sectors slipped.
 */
#include "extract/track/gap.h"

#include <math.h>

#include "extract/track/segment.h"

#define ARCS_MOST (GAP_TRACKS / 2 - 1)
/* In revolutions, how far an arc that takes a turn may seem to be from it. */
#define TURN_OFF 0.006
/* An arc of fewer units may be the end of the track beside it: units that lie
 * among the spares. */
#define FEW_UNITS 4u
/* By what share the pitch may differ from that of the arc before: on the same
 * surface, and on any. */
#define PITCH_NEAR 0.012
#define PITCH_OFF 0.12
/* The same for two tracks of one size, and how many standard deviations of the
 * measured pitch come on top. */
#define LIKE_PITCH 0.001
#define LIKE_SIGMAS 2.0
/* Units of a turn that may be spares on each track. */
#define SPARES_MOST 3
/* How many tolerances the units of a track may be off its line. */
#define OFF 1.2
/* The most tracks that the hypothesis of rows may have, and the most slips that
 * it takes into account. */
#define ROWS_MOST 8u
#define SLIPS_MOST 2u
/* The share of a track that slips leave of it at least. */
#define SLIPPED_LEAST 0.97
/* A read over an arc takes so many sectors, and part of a turn, at most.  It is
 * asked for part of a turn before its first unit comes, which must be enough
 * for a seek, and once more, a bit earlier, if it took a turn more. */
#define READ_SECTORS 256u
#define READ_TURNS 0.3
#define READ_AHEAD 0.75
#define READ_MORE 0.06
#define READ_TRIES 4u
/* Two tracks of a size are no coincidence. */
#define SIZE_LEAST 2u

struct arc {
	struct segment s;
	double turns;
	bool turn;		/* it takes one turn */
};

struct arcs {
	struct reader *r;
	struct gap gap;
	struct arc arc[ARCS_MOST];
	unsigned n;
	bool all;		/* they reach the end of the gap */
	double spared;		/* units of a turn that are spares */
};

/* ---- what is known of the neighbours ---- */

/* Measures the pitch of a neighbour.  When a few whole units are left of its
 * turn, tracks have that many spares. */
static int measure_neighbour(struct arcs *g, struct store_track *t)
{
	struct segment s = {
		.first = t->first, .units = t->size, .pitch = t->pitch,
	};
	bool good = false;
	double spared;
	int err = t->size ? segment_line(g->r, &s, &good) : 0;

	if (err || !good)
		return err;
	t->pitch = s.pitch;
	spared = round(1 / s.pitch - t->size);
	if (spared > g->spared && spared <= SPARES_MOST &&
	    fabs((t->size + spared) * s.pitch - 1) <= TURN_OFF)
		g->spared = spared;
	return 0;
}

static bool is_turn(const struct arcs *g, double turns, double pitch)
{
	return fabs(turns - 1) <= TURN_OFF ||
	       fabs(turns + g->spared * pitch - 1) <= TURN_OFF;
}

int gap_is_whole(struct reader *reader, const struct store_track *track,
		 bool *whole)
{
	struct segment s = {
		.first = track->first, .units = track->size,
		.pitch = track->pitch,
	};
	int err = segment_line(reader, &s, whole);

	*whole = *whole && fabs(track->size * s.pitch - 1) <= TURN_OFF;
	return err;
}

/* ---- hypothesis: rows ---- */

/* In how many ways do tracks like the one before the gap, and then tracks like
 * the one behind it, have so many units?  The last of these ways is returned in
 * *like_before and *all. */
static unsigned ways_to_fill(const struct gap *gap, uint64_t units,
			     unsigned *like_before, unsigned *all)
{
	uint32_t a = gap->before.size, b = gap->behind.size;
	unsigned ways = 0;
	uint64_t rest;

	for (unsigned i = 0; i <= ROWS_MOST && i * (uint64_t)a <= units; i++) {
		rest = units - i * (uint64_t)a;
		if (rest % b || i + rest / b > ROWS_MOST || (a == b && rest))
			continue;
		*like_before = i;
		*all = i + (unsigned)(rest / b);
		ways++;
	}
	return ways;
}

/* Is there exactly one way, and none with slips in one of the tracks? */
static bool is_one_way(const struct gap *gap, unsigned *like_before,
		       unsigned *all)
{
	uint64_t units = gap->end - gap->first;
	unsigned i, n;

	if (!gap->before.size || !gap->behind.size)
		return false;
	for (unsigned slips = 1; slips <= SLIPS_MOST; slips++) {
		if (ways_to_fill(gap, units + slips, &i, &n))
			return false;
	}
	return ways_to_fill(gap, units, like_before, all) == 1;
}

/* Do the units of an arc pass as fast as those of a track? */
static bool passes_as(const struct segment *s, const struct store_track *t)
{
	return fabs(t->pitch / s->pitch - 1) <
	       LIKE_PITCH + LIKE_SIGMAS * s->pitch_sigma / s->pitch;
}

static int try_rows(struct arcs *g, bool *good)
{
	const struct gap *gap = &g->gap;
	uint64_t at = gap->first;
	unsigned like_before, all;
	int err = 0;

	*good = is_one_way(gap, &like_before, &all);
	for (g->n = 0; *good && !err && g->n < all; g->n++) {
		const struct store_track *t = g->n < like_before ?
					      &gap->before : &gap->behind;
		struct arc *p = &g->arc[g->n];

		*p = (struct arc){
			.s = { .first = at, .units = t->size,
			       .pitch = t->pitch },
			.turn = true,
		};
		err = segment_line(g->r, &p->s, good);
		p->turns = (double)p->s.units * p->s.pitch;
		*good = *good && is_turn(g, p->turns, p->s.pitch) &&
			passes_as(&p->s, t);
		/* Where zones may meet, the ends of both may be as long as a
		 * track together. */
		if (!err && *good && gap->before.size != gap->behind.size)
			err = segment_holds(g->r, &p->s, OFF, good);
		at += t->size;
	}
	g->all = *good;
	return err;
}

/* ---- hypothesis: slips ---- */

/* The least size of tracks on both sides of the gap that has a few units more
 * than it, where no zone ends in it; 0: there is none. */
static uint32_t size_with_slips(const struct gap *gap)
{
	uint32_t a = gap->before.size, b = gap->behind.size;
	uint64_t at = gap->first, units = gap->end - at;

	if (!a || !b || (a != b &&
			 store_before(gap->store, at, b) < SIZE_LEAST &&
			 store_behind(gap->store, at, a) < SIZE_LEAST))
		return 0;
	for (uint32_t size = (uint32_t)units + 1;
	     SLIPPED_LEAST * size <= (double)units; size++) {
		if (store_before(gap->store, at, size) >= SIZE_LEAST &&
		    store_behind(gap->store, at, size) >= SIZE_LEAST)
			return size;
	}
	return 0;
}

static int try_slips(struct arcs *g, bool *good)
{
	const struct gap *gap = &g->gap;
	uint64_t units = gap->end - gap->first;
	uint32_t size = size_with_slips(gap);
	struct segment s = { .first = gap->first, .units = units };
	int err;

	*good = size > 0;
	if (!*good)
		return 0;
	s.pitch = gap->before.pitch * gap->before.size / size;
	err = segment_slips(g->r, &s, size - units, good);
	g->arc[0] = (struct arc){ s, (double)units * s.pitch, true };
	g->n = 1;
	g->all = *good;
	return err;
}

/* ---- hypothesis: arcs ---- */

/* Finds the end of one arc.  Its pitch is that of the arc before it, or that of
 * the track behind the gap, or neither. */
static int measure_arc(struct arcs *g, struct segment *s, double pitch,
		       bool *found)
{
	double behind = g->gap.behind.size ? g->gap.behind.pitch : pitch;
	bool other = fabs(behind / pitch - 1) > PITCH_NEAR;
	const struct { double pitch, off; } tries[] = {
		{ pitch, PITCH_NEAR },
		{ other ? behind : pitch, other ? PITCH_NEAR : PITCH_OFF },
		{ pitch, PITCH_OFF },
	};
	uint64_t first = s->first;
	int err = 0;

	*found = false;
	for (unsigned i = 0; i < 2u + other && !err && !*found; i++) {
		*s = (struct segment){ .first = first };
		err = segment_find(g->r, s, g->gap.end, tries[i].pitch,
				   tries[i].off, found);
	}
	return err;
}

/* Follows the gap from its beginning as far as ends of arcs are found. */
static int measure_arcs(struct arcs *g)
{
	const struct gap *gap = &g->gap;
	uint64_t at = gap->first;
	double pitch = gap->before.size ? gap->before.pitch :
					  gap->behind.pitch;
	bool found = true;
	int err = 0;

	g->n = 0;
	while (!err && found && at < gap->end && g->n < ARCS_MOST) {
		struct arc *p = &g->arc[g->n];

		*p = (struct arc){ .s.first = at };
		err = measure_arc(g, &p->s, pitch, &found);
		if (err || !found)
			break;
		pitch = p->s.pitch;
		at += p->s.units;
		p->turns = (double)p->s.units * pitch;
		p->turn = p->s.units >= FEW_UNITS &&
			  is_turn(g, p->turns, pitch);
		g->n++;
	}
	g->all = at == gap->end;
	return err;
}

/* Is what is on that side of arc i something else than a track? */
static bool is_beside_rest(const struct arcs *g, unsigned i, int step)
{
	if (step < 0)
		return i && !g->arc[i - 1].turn;
	return i + 1 < g->n ? !g->arc[i + 1].turn : !g->all;
}

/* How many units has what is on that side of arc i? */
static uint64_t units_beside(const struct arcs *g, unsigned i, int step)
{
	if (step < 0)
		return i ? g->arc[i - 1].s.units : g->gap.before.size;
	return i + 1 < g->n ? g->arc[i + 1].s.units : g->gap.behind.size;
}

/* Are there tracks of a size near the gap? */
static bool is_known_size(const struct arcs *g, uint64_t units)
{
	uint64_t at = g->gap.first;
	uint32_t size = (uint32_t)units;

	return store_before(g->gap.store, at, size) +
	       store_behind(g->gap.store, at, size) >= SIZE_LEAST;
}

/* Could all but a few units of an arc be a track of a known size? */
static bool may_have_more(const struct arcs *g, uint64_t units)
{
	uint64_t few = (uint64_t)ceil((double)units * TURN_OFF);

	for (uint64_t i = 1; i <= few && i < units; i++) {
		if (is_known_size(g, units - i))
			return true;
	}
	return false;
}

/*
 * Is an arc that takes a turn one track?  Two ends of tracks may go on from one
 * another without a skew, where zones meet, and be a turn together.  The first
 * row that fits decides:
 *
 *   it is as long as the track next to it           yes
 *   no track is next to it                          no
 *   no tracks near the gap have its size            no
 *   tracks are next to it on both sides             yes
 *   it is a bit longer than tracks near the gap     no, it may be one of those
 *   otherwise                                       yes
 */
static bool is_track(const struct arcs *g, unsigned i)
{
	uint64_t units = g->arc[i].s.units;
	bool before = !is_beside_rest(g, i, -1);
	bool behind = !is_beside_rest(g, i, 1);

	if (!g->arc[i].turn)
		return false;
	if ((before && units_beside(g, i, -1) == units) ||
	    (behind && units_beside(g, i, 1) == units))
		return true;
	if ((!before && !behind) || !is_known_size(g, units))
		return false;
	return (before && behind) || !may_have_more(g, units);
}

/* Has an arc more or less units than the tracks on both sides, which pass as
 * fast as it does?  One may be another track's, among the spares of this. */
static bool is_unlike(const struct arcs *g, const struct segment *s)
{
	const struct gap *gap = &g->gap;

	return gap->before.size == gap->behind.size &&
	       s->units != gap->before.size && passes_as(s, &gap->before);
}

/*
 * Otherwise an arc is a track if all of it is read without a turn in between:
 * to get to another track takes a head some time, in which its next units have
 * passed.  *one: that has been seen.
 */
static int try_one_track(struct arcs *g, const struct segment *s, bool *one)
{
	double ahead = (double)g->r->recent.ahead * s->pitch, turns;
	double idle = ahead > 0 ? ceil(ahead) + 1 : 0;
	uint64_t most = (uint64_t)(READ_TURNS / s->pitch);
	uint64_t at = s->first, end = s->first + s->units, units;
	int err = 0;

	most = most < READ_SECTORS / g->r->unit_sectors ?
		       most : READ_SECTORS / g->r->unit_sectors;
	*one = most > 1;
	for (; *one && !err && at + 1 < end; at += units - 1) {
		units = end - at < most ? end - at : most;
		*one = false;
		for (unsigned i = 0; i < READ_TRIES && !*one && !err; i++) {
			err = reader_span(g->r, at, (uint32_t)units,
				phase_part(s->start + s->pitch *
					   (double)(at - s->first)),
				idle + READ_AHEAD + READ_MORE * i, i % 2,
				&turns);
			*one = fabs(turns - (double)units * s->pitch) < 0.5;
		}
	}
	return err;
}

/* ---- the answer ---- */

/* Adds some units, which are a track if there is an arc. */
static unsigned put(struct gap_track *out, unsigned n, uint64_t first,
		    uint64_t units, const struct arc *p)
{
	if (!units)
		return n;
	if (!p && n && !out[n - 1].known) {
		out[n - 1].track.size += (uint32_t)units;
		return n;
	}
	out[n] = (struct gap_track){
		{ first, (uint32_t)units, p ? phase_part(p->s.start) : 0,
		  p ? p->turns / (double)units : 0 }, p != NULL,
	};
	return n + 1;
}

static int put_all(struct arcs *g, bool sure, struct gap_track *out,
		   unsigned *n)
{
	uint64_t at = g->gap.first;
	int err = 0;

	*n = 0;
	for (unsigned i = 0; i < g->n && !err; i++) {
		const struct arc *p = &g->arc[i];
		bool known = sure || is_track(g, i);

		if (!known && p->turn && !is_unlike(g, &p->s))
			err = try_one_track(g, &p->s, &known);
		*n = put(out, *n, p->s.first, p->s.units, known ? p : NULL);
		at = p->s.first + p->s.units;
	}
	*n = put(out, *n, at, g->gap.end - at, NULL);
	return err;
}

int gap_close(struct reader *reader, const struct gap *gap,
	      struct gap_track *out, unsigned *n)
{
	struct arcs g = { .r = reader, .gap = *gap };
	bool sure = false;
	int err = measure_neighbour(&g, &g.gap.before);

	if (!err)
		err = measure_neighbour(&g, &g.gap.behind);
	if (!err)
		err = try_rows(&g, &sure);
	if (!err && !sure)
		err = try_slips(&g, &sure);
	if (!err && !sure)
		err = measure_arcs(&g);
	return err ? err : put_all(&g, sure, out, n);
}
