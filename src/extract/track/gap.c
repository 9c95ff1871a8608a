/*
 * gap.c - straight stretches between two tracks, and which of them are tracks.
 *
 * Tracks like those around a gap that fill it just so are tried first.  Else a
 * gap is followed from leap to leap of the angle (segment.h).  Slips too
 * small to be told end a stretch, too (segment->soft); where there is no leap,
 * the time that a head takes to the next track tells (span.h).
 *
 * A stretch that goes round once is a track, so that one begins and one ends
 * there.  Whether shorter ones are tracks, or parts of tracks in which sectors
 * slipped, stays open: to enumerate the ways in which they may join brought
 * 0.01 % of the space on drives of 9 to 80 GB, and most of the wrong tracks
 * that gaps ever had.
 */
#include "extract/track/gap.h"

#include <math.h>

#include "extract/track/segment.h"
#include "extract/track/span.h"

#define PARTS_MOST (GAP_TRACKS / 2 - 1)
#define CUTS_MOST 8u
/* Rounds of looking for ends that no leap shows. */
#define ROUNDS 3u
/* Revolutions: a stretch is a turn; it is more than one. */
#define TURN_OFF 0.006
#define TURN_MORE 0.01
/* So few may be the first or last of a track, and lie among the spares. */
#define FEW_UNITS 4u
/* Pitches that hardly differ, as a share. */
#define PITCH_SAME 0.008
/* What a pitch may be off by if it is known, and if it is not, as a share. */
#define PITCH_NEAR 0.012
#define PITCH_OFF 0.12
/* How many units that lie elsewhere are gone past. */
#define LONE_MOST 3u
#define SPARES_MOST 3
/* Pitches of tracks of one size, as measured. */
#define LIKE_PITCH 0.001
#define LIKE_SIGMAS 2.0
/* Tolerances that units of a track are off its line at most. */
#define OFF 1.2
/* Tracks like those around it that a gap may have. */
#define USUAL_MOST 8u
/* Units that slips take from one of them. */
#define SLIPS_MOST 2u

struct part {
	struct segment s;
	double turns;
	bool whole;		/* it goes round once */
};

struct parts {
	struct reader *r;
	struct gap gap;
	struct part part[PARTS_MOST];
	unsigned n;
	bool all;		/* up to the end of the gap */
	uint64_t cut[CUTS_MOST];	/* ends without a leap */
	unsigned cuts;
	double spared;		/* units of a turn that are spares */
};

/* Are the tracks on both sides alike, as in the middle of a zone? */
static bool between_alike(const struct gap *gap)
{
	return gap->before.size && gap->before.size == gap->behind.size &&
	       fabs(gap->before.pitch / gap->behind.pitch - 1) < PITCH_SAME;
}

static bool is_turn(const struct parts *g, double turns, double pitch)
{
	return fabs(turns - 1) <= TURN_OFF ||
	       fabs(turns + g->spared * pitch - 1) <= TURN_OFF;
}

/* Do the units of a stretch pass as those of a track? */
static bool passes_as(const struct segment *s, const struct store_track *t)
{
	return fabs(t->pitch / s->pitch - 1) <
	       LIKE_PITCH + LIKE_SIGMAS * s->pitch_sigma / s->pitch;
}

/* By a unit too long or too short for a turn, where all others are alike: a
 * unit that lies elsewhere may be between them. */
static bool is_unlike(const struct parts *g, const struct segment *s)
{
	const struct store_track *t = &g->gap.before;

	return between_alike(&g->gap) && s->units != t->size && passes_as(s, t);
}

/* It is not certain either where that begins which is behind a soft end. */
static void judge(const struct parts *g, struct part *p)
{
	p->whole = !p->s.soft && !(p > g->part && p[-1].s.soft) &&
		   is_turn(g, p->turns, p->s.pitch) && !is_unlike(g, &p->s);
}

/* ---- stretches ---- */

/* Where a stretch does not go on although there is no leap. */
static int find_break(struct parts *g, const struct segment *s,
		      struct span_end *end)
{
	struct span span = { s->first, s->units, s->start, s->pitch };
	int err = 0;

	for (unsigned i = 0; !err && i < LONE_MOST; i++) {
		uint64_t gone;

		err = span_find_end(g->r, &span, end);
		if (err || !end->at || !end->lone || !end->clear)
			return err;
		/* One that lies elsewhere, and those behind it do not. */
		gone = end->at + 1 - span.first;
		span.units -= gone;
		span.start += (double)gone * span.pitch;
		span.first += gone;
	}
	end->clear = false;
	return err;
}

/* Where the next stretch ends at the latest. */
static uint64_t limit_of(const struct parts *g, uint64_t first)
{
	uint64_t limit = g->gap.end;

	for (unsigned i = 0; i < g->cuts; i++) {
		if (g->cut[i] > first && g->cut[i] < limit)
			limit = g->cut[i];
	}
	return limit;
}

/* A stretch ends there without a leap: false, if that is not clear or there are
 * too many such. */
static bool add_cut(struct parts *g, const struct span_end *end)
{
	if (!end->at || !end->clear || g->cuts == CUTS_MOST)
		return false;
	g->cut[g->cuts++] = end->at;
	return true;
}

/* By a pitch; where it is not straight or goes round more than once, a head may
 * move without a leap. */
static int measure_by(struct parts *g, struct segment *s, double pitch,
		      double off, bool *found)
{
	uint64_t first = s->first;
	struct span_end end;
	int err;

	*s = (struct segment){ .first = first };
	err = segment_find(g->r, s, limit_of(g, first), pitch, off, found);
	/* A line of so few units that it goes backwards is none. */
	if (err || s->units < 2 || !(s->pitch > 0) ||
	    (*found && (double)s->units * s->pitch < 1 + TURN_MORE))
		return err;
	err = find_break(g, s, &end);
	if (err || !add_cut(g, &end))
		return err;
	*s = (struct segment){ .first = first };
	return segment_find(g->r, s, end.at, pitch, off, found);
}

/* One stretch: like the one before it, that behind the gap, or neither; if no
 * end is found, the longest that is straight. */
static int measure_one(struct parts *g, struct segment *s, double pitch,
		       bool *found)
{
	double behind = g->gap.behind.size ? g->gap.behind.pitch : pitch;
	bool other = fabs(behind / pitch - 1) > PITCH_NEAR;
	const struct { double pitch, off; } tries[] = {
		{ pitch, PITCH_NEAR },
		{ other ? behind : pitch, other ? PITCH_NEAR : PITCH_OFF },
		{ pitch, PITCH_OFF },
	};
	struct segment soft = { .units = 0 };
	int err = 0;

	*found = false;
	for (unsigned i = 0; i < 2u + other && !err && !*found; i++) {
		err = measure_by(g, s, tries[i].pitch, tries[i].off, found);
		if (!*found && s->soft && s->units > soft.units)
			soft = *s;
	}
	if (!*found && soft.units) {
		*s = soft;
		*found = true;
	}
	return err;
}

/* All stretches from the beginning on, as far as they can be told. */
static int measure_all(struct parts *g)
{
	const struct gap *gap = &g->gap;
	uint64_t at = gap->first;
	double pitch = gap->before.size ? gap->before.pitch :
					  gap->behind.pitch;
	bool found = true;
	int err = 0;

	g->n = 0;
	while (!err && found && at < gap->end && g->n < PARTS_MOST) {
		struct part *p = &g->part[g->n];

		*p = (struct part){ .s.first = at };
		err = measure_one(g, &p->s, pitch, &found);
		if (err || !found)
			break;
		pitch = p->s.pitch;
		at += p->s.units;
		p->turns = (double)p->s.units * pitch;
		g->n++;
	}
	g->all = at == gap->end;
	return err;
}

/* How fast the units of a neighbour pass; and of what it leaves of a turn some
 * may be spares. */
static int learn_from(struct parts *g, struct store_track *t)
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

/* ---- which of them are tracks ---- */

/* A track like its neighbour outside the gap? */
static bool is_usual(const struct parts *g, uint64_t units)
{
	return units == g->gap.before.size || units == g->gap.behind.size;
}

/* A few units by themselves may be the last of a track, or the first, that lie
 * among the spares: what is beside them is no track but a usual one. */
static void doubt_few(struct parts *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		struct part *p = &g->part[i];

		if (p->s.units >= FEW_UNITS)
			continue;
		p->whole = false;
		if (i && !is_usual(g, p[-1].s.units))
			p[-1].whole = false;
		if (i + 1 < g->n && !is_usual(g, p[1].s.units))
			p[1].whole = false;
	}
}

/* Must part i be looked into?  Beside parts of tracks a turn may be two such:
 * what is behind a scratch on one track, and what is before it on the next; one
 * of a size that no neighbour has, or where zones may meet, may be the ends of
 * two zones. */
static bool is_doubtful(const struct parts *g, unsigned i)
{
	const struct part *p = &g->part[i];

	return !between_alike(&g->gap) || !is_usual(g, p->s.units) ||
	       (i && !p[-1].whole) ||
	       (i + 1 < g->n ? !p[1].whole : !g->all);
}

/* Looks for ends that no leap shows.  *again: one was found. */
static int look_inside(struct parts *g, bool *again)
{
	struct part *p = g->part;
	struct span_end end;
	int err = 0;

	*again = false;
	for (unsigned i = 0; i < g->n && !err; i++) {
		if (!p[i].whole || !is_doubtful(g, i))
			continue;
		err = find_break(g, &p[i].s, &end);
		if (err || (!end.at && end.clear))
			continue;
		p[i].whole = false;
		*again |= add_cut(g, &end);
	}
	return err;
}

static unsigned put(struct gap_track *out, unsigned n, uint64_t first,
		    uint64_t units, const struct part *p)
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

static unsigned put_all(const struct parts *g, struct gap_track *out)
{
	uint64_t at = g->gap.first;
	unsigned n = 0;

	for (unsigned i = 0; i < g->n; i++) {
		const struct part *p = &g->part[i];

		n = put(out, n, p->s.first, p->s.units, p->whole ? p : NULL);
		at = p->s.first + p->s.units;
	}
	return put(out, n, at, g->gap.end - at, NULL);
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

/* ---- tracks like those around ---- */

/* In how many ways do tracks like the one before a gap, and then like the one
 * behind it, have so many units?  The last of them: *like_before, *all. */
static unsigned ways_to_fill(const struct gap *gap, uint64_t units,
			     unsigned *like_before, unsigned *all)
{
	uint32_t a = gap->before.size, b = gap->behind.size;
	unsigned ways = 0;
	uint64_t rest;

	for (unsigned i = 0; i <= USUAL_MOST && i * (uint64_t)a <= units; i++) {
		rest = units - i * (uint64_t)a;
		if (rest % b || i + rest / b > USUAL_MOST || (a == b && rest))
			continue;
		*like_before = i;
		*all = i + (unsigned)(rest / b);
		ways++;
	}
	return ways;
}

/* Is there one way only, also if one of the tracks had slips? */
static bool count_usual(const struct gap *gap, unsigned *like_before,
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

/*
 * No track is longer than a turn: those that fill a gap with as many units as
 * they have if they are like the ones around it lack none, and so no leap need
 * be seen between them.  They have to lie on lines, each of them, and to pass
 * as those: 426 and 408 units are as many as 423 and 411.
 */
static int try_usual(struct parts *g, bool *good)
{
	const struct gap *gap = &g->gap;
	uint64_t at = gap->first;
	unsigned like_before, all;
	int err = 0;

	*good = count_usual(gap, &like_before, &all);
	for (g->n = 0; *good && !err && g->n < all; g->n++) {
		const struct store_track *t = g->n < like_before ?
					      &gap->before : &gap->behind;
		struct part *p = &g->part[g->n];

		*p = (struct part){
			.s = { .first = at, .units = t->size,
			       .pitch = t->pitch },
			.whole = true,
		};
		err = segment_line(g->r, &p->s, good);
		p->turns = (double)p->s.units * p->s.pitch;
		*good = *good && is_turn(g, p->turns, p->s.pitch) &&
			passes_as(&p->s, t);
		/* The ends of two zones may be as long as a track together. */
		if (!err && *good && !between_alike(gap))
			err = segment_holds(g->r, &p->s, OFF, good);
		at += t->size;
	}
	return err;
}

int gap_close(struct reader *reader, const struct gap *gap,
	      struct gap_track *out, unsigned *n)
{
	struct parts g = { .r = reader, .gap = *gap };
	bool again, good = false;
	int err = learn_from(&g, &g.gap.before);

	if (!err)
		err = learn_from(&g, &g.gap.behind);
	if (!err)
		err = try_usual(&g, &good);
	again = !good;
	for (unsigned i = 0; !err && again && i < ROUNDS; i++) {
		err = measure_all(&g);
		for (unsigned k = 0; k < g.n; k++)
			judge(&g, &g.part[k]);
		doubt_few(&g);
		if (!err)
			err = look_inside(&g, &again);
	}
	*n = put_all(&g, out);
	return err;
}
