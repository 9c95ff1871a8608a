/*
 * gap.c - straight stretches between two ends of tracks, and which of them are
 * tracks.
 *
 * A stretch that goes round once is a track, so that one begins and one ends
 * there.  Several shorter ones between two such ends are tracks, too, or parts
 * of tracks in which sectors slipped:
 *   - what is between parts of one track are some sectors, their sectors are
 *     equally long, and with what is between them they are a turn at most;
 *   - a track begins later than the one before by as much as others do, even if
 *     sectors slipped; unless it is the last or the first of a zone.
 * The only way to see them is believed, or the one with the fewest odd tracks.
 * But first that row of tracks is looked for each of which begins later than
 * the one before by a known step, up to the track behind the gap (rows.h):
 * whatever slipped moves no track's beginning.  Slips too small to be told end
 * a stretch, too, but no track.
 */
#include "extract/track/gap.h"

#include <math.h>

#include "extract/track/parts.h"
#include "extract/track/rows.h"

/* Less than a turn by so few, a track may lack one. */
#define NEARLY_UNITS 1.5
/* More than this is more than a turn, whatever slipped unseen. */
#define MORE 1.03
#define STEP_OFF 0.004
#define DIFFER_SIGMAS 4.0
#define PIECES_MOST 10u
#define ROUNDS 3u
#define SLIP_MOST 0.12

/* What is between two parts. */
enum joint { JOINT_SLIP, JOINT_END, JOINT_EITHER };

/* A track like its neighbour outside the gap? */
static bool is_usual(const struct parts *g, uint64_t units)
{
	return units == g->gap->before.size || units == g->gap->behind.size;
}

static bool in_one_zone(const struct gap *gap)
{
	return gap->before.size && gap->behind.size &&
	       fabs(gap->before.pitch / gap->behind.pitch - 1) <
		       PARTS_PITCH_SAME;
}

/* Is a track that goes round with some units such a one, or without them? */
static bool lacks(const struct parts *g, const struct part *p, uint64_t units)
{
	double turns;

	units += p->s.units;
	turns = (double)units * p->s.pitch;
	if (!is_usual(g, units) || turns > 1 + PARTS_TURNS_OFF)
		return false;
	/* Where zones meet it may be short, and the first of the next one. */
	return p->kind == PART_WHOLE ||
	       (p->kind == PART_SHORT && turns >= 1 - PARTS_TURNS_OFF &&
		in_one_zone(g->gap));
}

/* Units are the last of part i, though they lie elsewhere (or the first of the
 * next). */
static void join(struct parts *g, unsigned i, bool next)
{
	struct part *p = &g->part[i], *q = p + 1;

	p->s.units += q->s.units;
	if (next) {
		q->s.start -= (double)(q->s.first - p->s.first) * q->s.pitch;
		q->s.first = p->s.first;
		q->s.units = p->s.units;
		*p = *q;
	}
	p->turns = (double)p->s.units * p->s.pitch;
	p->kind = PART_WHOLE;
	p->jump = q->jump;
	g->n--;
	for (unsigned k = i + 1; k < g->n; k++)
		g->part[k] = g->part[k + 1];
}

/* A few units by themselves may be the last of a track, or the first, that lie
 * among the spares: then without them it is shorter than others. */
static void place_few(struct parts *g)
{
	for (unsigned i = 0; i < g->n; i++) {
		struct part *p = &g->part[i];
		bool left = !i || is_usual(g, p[-1].s.units);
		bool right = i + 1 >= g->n || is_usual(g, p[1].s.units);

		if (p->s.units >= PARTS_FEW_UNITS || (left && right))
			continue;
		if (right && lacks(g, &p[-1], p->s.units)) {
			join(g, --i, false);
		} else if (left && lacks(g, &p[1], p->s.units)) {
			join(g, i, true);
		} else {
			p->few = true;
			if (!left && p[-1].kind == PART_WHOLE)
				p[-1].kind = PART_SHORT;
			if (!right && p[1].kind == PART_WHOLE)
				p[1].kind = PART_SHORT;
		}
	}
}

static bool differ(const struct part *a, const struct part *b)
{
	return parts_differ(a, b, DIFFER_SIGMAS);
}

/* Can what is between two parts be sectors that slipped? */
static enum joint joint_of(const struct parts *g, const struct part *a,
			   const struct part *b)
{
	const struct gap *gap = g->gap;
	double sigma = hypot(a->s.pitch_sigma, b->s.pitch_sigma) /
		       a->s.pitch;

	if (a->broken || a->jump <= 0 || a->jump > PARTS_SLIPPED_MOST ||
	    differ(a, b))
		return JOINT_END;
	/* Wider than scratches are: what zones leave out where they meet. */
	if (a->jump > SLIP_MOST && !parts_between_alike(gap))
		return JOINT_END;
	if (sigma < PARTS_PITCH_SAME || in_one_zone(gap))
		return JOINT_SLIP;
	return JOINT_EITHER;
}

/* Does a track that begins later than another by so much follow it, as tracks
 * do that have the whole of a turn? */
static bool is_step(const struct gap *gap, double later)
{
	for (unsigned i = 0; i < gap->steps; i++) {
		if (fabs(phase_wrap(later - gap->step[i])) < STEP_OFF)
			return true;
	}
	return false;
}

/* Parts as one track. */
struct whole {
	bool can_be;
	bool odd;		/* it is not explained why it is no whole one */
	bool clear;		/* it goes round, and the next follows it */
	bool doubt;		/* units that may lie elsewhere are beside it,
				 * or missing; or it may be several */
	double turns;
};

static struct whole see_as_one(const struct parts *g, unsigned from,
			       unsigned to)
{
	const struct part *p = g->part;
	const struct gap *gap = g->gap;
	double turns = p[from].turns, next = gap->behind.start;
	struct whole w;

	for (unsigned i = from + 1; i < to; i++)
		turns += p[i - 1].jump + p[i].turns;
	if (to < g->n)
		next = p[to].s.start;
	/* What begins later by a step because it is short has no whole turn. */
	w.odd = (to == g->n && !gap->behind.size) ||
		turns < PARTS_WHOLE_LEAST ||
		!is_step(gap, next - p[from].s.start);
	w.turns = turns;
	w.can_be = turns <= (to - from > 1 ? MORE : 1 + PARTS_TURNS_OFF) &&
		   parts_fit(g, from, to);
	w.clear = !w.odd && parts_is_turn(g, turns, p[from].s.pitch);
	/* As if one of its units lay elsewhere. */
	w.doubt = w.odd && turns > 1 - NEARLY_UNITS * p[from].s.pitch -
				   PARTS_TURN_OFF;
	/* A slip explains no end of a zone, and may be what lies between two
	 * of the same pitch. */
	w.doubt |= w.odd && to - from > 1;
	for (unsigned i = from ? from - 1 : 0; i <= to && i < g->n; i++)
		w.doubt |= p[i].few;
	return w;
}

/* One way to see parts: bit i is set where a track ends behind part i. */
struct way {
	unsigned ends, odd;
	bool sure;
};

/* Two tracks that together may be just one, of which one is odd: the last of
 * them and the first of the other part of it. */
static bool is_odd_pair(const struct whole *a, const struct whole *b,
			const struct part *last, const struct part *next)
{
	double all = a->turns + last->jump + b->turns;

	if ((!a->odd && !b->odd) || all > MORE)
		return false;
	return !differ(last, next) || (!last->broken && all > 2 - MORE);
}

static bool try_way(const struct parts *g, unsigned from, unsigned n,
		    struct way *way)
{
	struct whole w, last = { .odd = false };
	bool slips = true;
	unsigned first = 0;

	way->odd = 0;
	way->sure = true;
	for (unsigned i = 0; i < n; i++) {
		const struct part *p = &g->part[from + i];

		if (i + 1 < n && !(way->ends >> i & 1)) {
			enum joint joint = joint_of(g, p, p + 1);

			if (joint == JOINT_END)
				return false;
			slips = slips && joint == JOINT_SLIP;
			continue;
		}
		if (!parts_leap(g, from + i))
			return false;
		w = see_as_one(g, from + first, from + i + 1);
		if (!w.can_be)
			return false;
		way->odd += w.odd;
		p = &g->part[from + first];
		way->sure = way->sure && ((slips && !w.doubt) || w.clear) &&
			    !(first && is_odd_pair(&last, &w, p - 1, p));
		slips = true;
		first = i + 1;
		last = w;
	}
	return true;
}

/* The only way to see parts between two ends of tracks, or the one with the
 * fewest odd tracks. */
static bool best_way(const struct parts *g, unsigned from, unsigned n,
		     struct way *best)
{
	unsigned ways = 0, as_good = 0;
	struct way way;

	if (n > PIECES_MOST)
		return false;
	for (way.ends = 0; way.ends < 1u << (n - 1); way.ends++) {
		if (!try_way(g, from, n, &way))
			continue;
		if (ways && way.odd == best->odd)
			as_good++;
		if (!ways || way.odd < best->odd) {
			*best = way;
			as_good = 0;
		}
		ways++;
	}
	return ways && best->sure && (ways == 1 || (!as_good &&
						    best->odd < 2));
}

/* Is a way known to see parts [from, to) between two ends of tracks? */
static bool find_way(const struct parts *g, unsigned from, unsigned to,
		     struct way *way)
{
	bool known = to > from;

	*way = (struct way){ 0 };
	for (unsigned i = from; i < to; i++)
		known = known && g->part[i].kind == PART_SHORT;
	return known && best_way(g, from, to - from, way);
}

/* The end of the parts from one on that are no tracks by themselves. */
static unsigned next_whole(const struct parts *g, unsigned from)
{
	while (from < g->n && g->part[from].kind != PART_WHOLE)
		from++;
	return from;
}

/* A stretch may be of two tracks without a leap between them. */
static int look_inside(struct parts *g, struct part *p, bool *again)
{
	struct span_end end;
	int err;

	if (p->s.units < 2)
		return 0;
	err = parts_break(g, &p->s, &end);
	if (err || (!end.at && end.clear))
		return err;
	p->kind = PART_STRANGE;
	*again |= parts_cut(g, &end);
	return 0;
}

/* What is not clearly one may be the ends of two zones. */
static int look_into(struct parts *g, unsigned from, unsigned to,
		     const struct way *way, bool *again)
{
	unsigned first = from;
	int err = 0;

	for (unsigned i = from; i < to; i++) {
		if (i + 1 < to && !(way->ends >> (i - from) & 1))
			continue;
		if (!see_as_one(g, first, i + 1).clear) {
			for (; first <= i && !err; first++)
				err = look_inside(g, &g->part[first], again);
		}
		first = i + 1;
	}
	return err;
}

/* Beside parts of tracks a turn may be two of them: what is behind a scratch on
 * one track, and what is before it on the next. */
static int look_into_wholes(struct parts *g, bool *again)
{
	struct part *p = g->part;
	int err = 0;

	for (unsigned i = 0; i < g->n && !err; i++) {
		if (p[i].kind == PART_WHOLE &&
		    ((i && p[i - 1].kind != PART_WHOLE) ||
		     (i + 1 < g->n ? p[i + 1].kind != PART_WHOLE : !g->all)))
			err = look_inside(g, &p[i], again);
	}
	return err;
}

static int look_into_all(struct parts *g, bool *again)
{
	struct way way;
	unsigned to;
	int err;

	*again = false;
	err = look_into_wholes(g, again);
	for (unsigned from = 0; from < g->n && !err; from = to + 1) {
		to = next_whole(g, from);
		if ((to < g->n || g->all) && find_way(g, from, to, &way))
			err = look_into(g, from, to, &way, again);
	}
	return err;
}

/* ---- What was found out ---- */

struct list {
	struct gap_track *v;
	unsigned n;
};

static void put(struct list *l, uint64_t first, uint64_t units, double start,
		double turns, bool known)
{
	struct gap_track *last = l->n ? &l->v[l->n - 1] : NULL;

	if (!units)
		return;
	if (last && !known && !last->known) {
		last->track.size += (uint32_t)units;
		return;
	}
	l->v[l->n++] = (struct gap_track){
		{ first, (uint32_t)units, phase_part(start),
		  turns / (double)units }, known,
	};
}

static void put_part(struct list *l, const struct part *p)
{
	put(l, p->s.first, p->s.units, p->s.start, p->turns, true);
}

/* Parts [from, to) between two ends of tracks, none of which is one by
 * itself. */
static void put_between(const struct parts *g, unsigned from, unsigned to,
			struct list *l)
{
	const struct part *p = &g->part[from];
	unsigned n = to - from;
	struct way way;
	uint64_t units = 0;
	double turns = 0;
	bool known = find_way(g, from, to, &way);

	for (unsigned i = 0; i < n; i++) {
		units += p[i].s.units;
		turns += p[i].turns;
		if (i + 1 < n && !(way.ends >> i & 1) && known) {
			turns += p[i].jump;
			continue;
		}
		put(l, p[i].s.first + p[i].s.units - units, units,
		    g->part[from].s.start, turns, known);
		from = (unsigned)(&p[i] - g->part) + 1;
		units = 0;
		turns = 0;
	}
}

static void put_row(const struct parts *g, uint64_t ends, struct list *l)
{
	const struct part *first = g->part;
	double turns = 0;

	for (unsigned i = 0; i < g->n; i++) {
		const struct part *p = &g->part[i];

		turns += p->turns;
		if (!(ends >> i & 1)) {
			turns += p->jump;
			continue;
		}
		put(l, first->s.first, p->s.first + p->s.units -
		    first->s.first, first->s.start, turns, true);
		first = p + 1;
		turns = 0;
	}
}

static void put_all(const struct parts *g, struct list *l)
{
	unsigned from = 0, to;
	uint64_t at;

	for (; from < g->n; from = to) {
		to = next_whole(g, from);
		if (to == g->n && !g->all)
			break;
		put_between(g, from, to, l);
		if (to < g->n)
			put_part(l, &g->part[to++]);
	}
	at = from < g->n ? g->part[from].s.first :
	     g->n ? g->part[g->n - 1].s.first + g->part[g->n - 1].s.units :
		    g->gap->first;
	put(l, at, g->gap->end - at, 0, 0, false);
}

int gap_is_whole(struct reader *reader, const struct store_track *track,
		 bool *whole)
{
	struct segment s = {
		.first = track->first, .units = track->size,
		.pitch = track->pitch,
	};
	int err = segment_line(reader, &s, whole);

	*whole = *whole && fabs(track->size * s.pitch - 1) <= PARTS_TURN_OFF;
	return err;
}

int gap_close(struct reader *reader, const struct gap *gap,
	      struct gap_track *out, unsigned *n)
{
	struct gap sharp = *gap;
	struct parts g = { .r = reader, .gap = &sharp };
	struct list l = { .v = out };
	bool again = true, row = false;
	uint64_t ends;
	int err = 0;

	for (unsigned i = 0; !err && again && i < ROUNDS; i++) {
		again = false;
		err = parts_measure(&g);
		if (!err)
			err = rows_find(&g, &ends, &row);
		if (!err && !row && !i) {
			err = parts_sharpen(&g, &sharp);
			if (!err)
				err = rows_find(&g, &ends, &row);
		}
		if (!err && row) {
			put_row(&g, ends, &l);
			*n = l.n;
			return 0;
		}
		place_few(&g);
		if (!err)
			err = look_into_all(&g, &again);
	}
	if (!err)
		put_all(&g, &l);
	*n = l.n;
	return err;
}
