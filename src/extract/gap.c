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
 * the one before by a known step, up to the track behind the gap (scratches
 * over many tracks): whatever slipped moves no track's beginning.  Slips too
 * small to be told end a stretch, too (segment->soft), but no track.
 * Where there is no leap, the time that a head takes to the next track tells
 * (span.h).
 */
#include "extract/gap.h"

#include <math.h>

#include "extract/segment.h"
#include "extract/span.h"

#define PARTS (GAP_TRACKS / 2 - 1)
/* Revolutions: a stretch is a turn, a few are. */
#define TURN_OFF 0.006
#define TURNS_OFF 0.01
/* So few may be the first or last of a track, and lie among the spares. */
#define FEW_UNITS 4u
/* Less than a turn by so few, a track may lack one. */
#define NEARLY_UNITS 1.5
/* More than this is more than a turn, whatever slipped unseen. */
#define MORE 1.03
/* What a pitch may be off by if it is known, and if it is not, as a share. */
#define PITCH_NEAR 0.012
#define PITCH_OFF 0.12
/* Pitches that hardly differ. */
#define PITCH_SAME 0.008
/* Of slipped sectors in a row. */
#define SLIPPED_MOST 0.3
#define STEP_OFF 0.004
/* A track with the whole of a turn, whatever slipped. */
#define WHOLE_LEAST (1 - SLIPPED_MOST)
#define PIECES_MOST 10u
/* Of a row: steps are off by so much of the noise; a turn, what was measured of
 * it included; how many beginnings are tried. */
#define STEP_NOISE 1.2
#define ROUND_MOST 1.02
#define ROWS_MOST 20000u
#define BENT 0.01
/* Standard deviations: rather too many ways than that one is missing. */
#define SURE_SIGMAS 8.0
#define ALIKE_SIGMAS 5.0
/* Slips of one scratch: of a turn, and units where those are more. */
#define SLIP_TURN 0.05
#define SLIP_UNITS 10.0
#define ZONE_SIGMAS 1.0
#define ROW_NO_ZONE UINT32_MAX
#define LEAP_LEAST 0.015
/* Larger ones are those of zones and groups. */
#define STEP_MOST 0.4
#define CUTS 8u
#define ROUNDS 3u
#define SPARES_MOST 3
#define NEARLY 0.93
/* How many units that lie elsewhere are gone past. */
#define LONE_MOST 3u

enum part_kind { PART_SHORT, PART_WHOLE, PART_STRANGE };

struct part {
	struct segment s;
	double turns;
	double jump;		/* from its end to the next one's start */
	bool broken;		/* the head moves behind it */
	bool few;		/* units that may lie elsewhere */
	enum part_kind kind;
};

struct parts {
	struct reader *r;
	const struct gap *gap;
	struct part part[PARTS];
	unsigned n;
	bool all;		/* up to the end of the gap */
	uint64_t cut[CUTS];	/* ends without a leap */
	unsigned cuts;
	double spared;		/* units of a turn that are spares: */
	bool learned;		/* that was looked at */
};

/* What is between two parts. */
enum joint { JOINT_SLIP, JOINT_END, JOINT_EITHER };

static double end_of(const struct part *p)
{
	return p->s.start + p->turns;
}

/* Slightly less than nothing is nothing. */
static double jump(const struct part *a, const struct part *b)
{
	double by = phase_part(b->s.start - end_of(a));

	return by > 1 - TURNS_OFF ? by - 1 : by;
}

static bool is_turn(const struct parts *g, double turns, double pitch)
{
	return fabs(turns - 1) <= TURN_OFF ||
	       fabs(turns + g->spared * pitch - 1) <= TURN_OFF;
}

static void judge(const struct parts *g, struct part *p)
{
	p->kind = PART_STRANGE;
	if (p->s.soft)
		return;
	if (is_turn(g, p->turns, p->s.pitch))
		p->kind = PART_WHOLE;
	else if (p->turns < 1)
		p->kind = PART_SHORT;
}

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
	uint64_t limit = g->gap->end;

	for (unsigned i = 0; i < g->cuts; i++) {
		if (g->cut[i] > first && g->cut[i] < limit)
			limit = g->cut[i];
	}
	return limit;
}

/* A stretch ends there without a leap. */
static bool cut(struct parts *g, const struct span_end *end)
{
	if (!end->at || !end->clear || g->cuts == CUTS)
		return false;
	g->cut[g->cuts++] = end->at;
	return true;
}

/* By a pitch; where it is not straight or goes round more than once, a head may
 * move without a leap. */
static int measure_by(struct parts *g, struct part *p, double pitch,
		      double off, bool *found)
{
	struct segment *s = &p->s;
	struct span_end end;
	uint64_t first = s->first, limit = limit_of(g, first);
	int err;

	*s = (struct segment){ .first = first };
	err = segment_find(g->r, s, limit, pitch, off, found);
	if (err || s->units < 2 ||
	    (*found && (double)s->units * s->pitch < 1 + TURNS_OFF))
		return err;
	err = find_break(g, s, &end);
	if (err || !cut(g, &end))
		return err;
	*s = (struct segment){ .first = first };
	return segment_find(g->r, s, end.at, pitch, off, found);
}

/* The same; if no end is found, as far as it is straight: *soft is the longest
 * of such. */
static int measure_some(struct parts *g, struct part *p, double pitch,
			double off, bool *found, struct segment *soft)
{
	int err = measure_by(g, p, pitch, off, found);

	if (!*found && p->s.soft && p->s.units > soft->units)
		*soft = p->s;
	return err;
}

/* One stretch: like the one before it, that behind the gap, or neither. */
static int measure_one(struct parts *g, struct part *p, double pitch,
		       bool *found)
{
	double behind = g->gap->behind.size ? g->gap->behind.pitch : pitch;
	struct segment soft = { .units = 0 };
	int err = measure_some(g, p, pitch, PITCH_NEAR, found, &soft);

	if (!err && !*found && fabs(behind / pitch - 1) > PITCH_NEAR)
		err = measure_some(g, p, behind, PITCH_NEAR, found, &soft);
	if (!err && !*found)
		err = measure_some(g, p, pitch, PITCH_OFF, found, &soft);
	if (!*found && soft.units) {
		p->s = soft;
		*found = true;
	}
	p->broken = p->s.first + p->s.units == limit_of(g, p->s.first) &&
		    p->s.first + p->s.units < g->gap->end;
	return err;
}

/* All stretches from the beginning on, as far as they can be told. */
static int measure(struct parts *g)
{
	const struct gap *gap = g->gap;
	uint64_t at = gap->first;
	double pitch = gap->before.size ? gap->before.pitch :
					  gap->behind.pitch;
	bool found = true;
	int err = 0;

	g->n = 0;
	while (!err && found && at < gap->end && g->n < PARTS) {
		struct part *p = &g->part[g->n];

		*p = (struct part){ .s.first = at };
		err = measure_one(g, p, pitch, &found);
		if (err || !found)
			break;
		pitch = p->s.pitch;
		at += p->s.units;
		p->turns = (double)p->s.units * pitch;
		judge(g, p);
		if (g->n)
			p[-1].jump = jump(&p[-1], p);
		g->n++;
	}
	g->all = at == gap->end;
	return err;
}

/* Of what a neighbour leaves of a turn some units may be spares. */
static int learn(struct parts *g, const struct store_track *t)
{
	double pitch = t->pitch, spared;
	int err;

	if (!t->size)
		return 0;
	err = segment_pitch(g->r, t->first, t->size, &pitch);
	if (err || isnan(pitch))
		return err;
	spared = round(1 / pitch - t->size);
	if (spared > 0 && spared <= SPARES_MOST && spared > g->spared &&
	    fabs((t->size + spared) * pitch - 1) <= TURN_OFF)
		g->spared = spared;
	return 0;
}

/* Some are looked at only if it matters: a part that is nearly a turn. */
static int learn_spared(struct parts *g)
{
	bool nearly = false;
	int err;

	for (unsigned i = 0; i < g->n; i++)
		nearly |= g->part[i].kind == PART_SHORT &&
			  g->part[i].turns > NEARLY;
	if (!nearly || g->learned)
		return 0;
	g->learned = true;
	err = learn(g, &g->gap->before);
	if (!err)
		err = learn(g, &g->gap->behind);
	for (unsigned i = 0; i < g->n && !err; i++)
		judge(g, &g->part[i]);
	return err;
}

/* A track like its neighbour outside the gap? */
static bool is_usual(const struct parts *g, uint64_t units)
{
	return units == g->gap->before.size || units == g->gap->behind.size;
}

static bool in_one_zone(const struct gap *gap)
{
	return gap->before.size && gap->behind.size &&
	       fabs(gap->before.pitch / gap->behind.pitch - 1) < PITCH_SAME;
}

/* Is a track that goes round with some units such a one, or without them? */
static bool lacks(const struct parts *g, const struct part *p, uint64_t units)
{
	double turns;

	units += p->s.units;
	turns = (double)units * p->s.pitch;
	if (!is_usual(g, units) || turns > 1 + TURNS_OFF)
		return false;
	/* Where zones meet it may be short, and the first of the next one. */
	return p->kind == PART_WHOLE ||
	       (p->kind == PART_SHORT && turns >= 1 - TURNS_OFF &&
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

		if (p->s.units >= FEW_UNITS || (left && right))
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

/* Have they other pitches, as in other zones or on other surfaces?  As sure as
 * so many standard deviations. */
static bool differ_by(const struct part *a, const struct part *b,
		      double sigmas)
{
	double sigma = hypot(a->s.pitch_sigma, b->s.pitch_sigma);

	return fabs(a->s.pitch - b->s.pitch) >
	       PITCH_SAME * a->s.pitch + sigmas * sigma;
}

static bool differ(const struct part *a, const struct part *b)
{
	return differ_by(a, b, 4);
}

/* Can what is between two parts be sectors that slipped? */
static enum joint joint_of(const struct parts *g, const struct part *a,
			   const struct part *b)
{
	const struct gap *gap = g->gap;
	double sigma = hypot(a->s.pitch_sigma, b->s.pitch_sigma) /
		       a->s.pitch;

	if (a->broken || a->jump <= 0 || a->jump > SLIPPED_MOST ||
	    differ(a, b))
		return JOINT_END;
	if (sigma < PITCH_SAME || in_one_zone(gap))
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
	w.odd = (to == g->n && !gap->behind.size) || turns < WHOLE_LEAST ||
		!is_step(gap, next - p[from].s.start);
	w.turns = turns;
	w.can_be = turns <= (to - from > 1 ? MORE : 1 + TURNS_OFF);
	w.clear = !w.odd && is_turn(g, turns, p[from].s.pitch);
	/* As if one of its units lay elsewhere. */
	w.doubt = w.odd && turns > 1 - NEARLY_UNITS * p[from].s.pitch -
				   TURN_OFF;
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
	err = find_break(g, &p->s, &end);
	if (err || (!end.at && end.clear))
		return err;
	p->kind = PART_STRANGE;
	*again |= cut(g, &end);
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

/* ---- Rows ---- */

/*
 * Tracks in a row, of which each begins later than the one before by as much as
 * others do, whatever slipped, its first sectors perhaps, too; and so does the
 * track behind the gap.  If there is none, then one in which a whole track is
 * left out, once, for it is spoilt; or one in which a zone ends and another
 * begins, anywhere: its first track may lack its beginning and the last one
 * before it its end.  Bit i of `ends`: a track ends behind part i.
 */
enum row_odd { ROW_PLAIN, ROW_GONE, ROW_ZONE, ROW_ODDS };

struct row {
	const struct parts *g;
	double off;		/* of a step */
	uint64_t ends, found;
	unsigned zone, found_zone; /* the part that begins one, or n */
	unsigned ways, tried;
};

/* Where a track begins, and how much of it is missing there. */
struct row_at {
	unsigned part;
	double start;		/* of the whole track; NAN: in a new zone */
	double late;
	enum row_odd odd;	/* may still come, once */
};

/* Have they surely other pitches?  Slips in them that are not seen bend
 * lines. */
static bool surely_differ(const struct part *a, const struct part *b)
{
	double sigma = hypot(a->s.pitch_sigma, b->s.pitch_sigma);

	return fabs(a->s.pitch / b->s.pitch - 1) >
	       PITCH_SAME + SURE_SIGMAS * sigma / b->s.pitch +
		       BENT * (1 / a->turns + 1 / b->turns);
}

/* May they have the same pitch?  That of one with slips in it is bent. */
static bool look_alike(const struct part *a, const struct part *b)
{
	double bent = (a->s.soft ? BENT / a->turns : 0) +
		      (b->s.soft ? BENT / b->turns : 0);

	return fabs(a->s.pitch / b->s.pitch - 1) < bent ||
	       !differ_by(a, b, ALIKE_SIGMAS);
}

static bool may_join(const struct part *a, const struct part *b)
{
	return !a->broken && a->jump > -TURNS_OFF &&
	       a->jump <= SLIPPED_MOST && !surely_differ(a, b);
}

/* Is there room for some units more on a track? */
static bool has_room(const struct part *p, const struct part *few)
{
	return p->turns + (double)few->s.units * p->s.pitch <= 1 + TURNS_OFF;
}

/* May a few units be all of a track?  Not if they may be those that another one
 * lacks, and lie elsewhere. */
static bool may_be_all(const struct parts *g, const struct part *few)
{
	return !(few > g->part && has_room(few - 1, few)) &&
	       !(few + 1 < g->part + g->n && has_room(few + 1, few));
}

/* A few units by themselves may lie elsewhere, and belong to either side: they
 * begin a track just where it should, and end it after just a turn. */
static bool may_end(const struct parts *g, const struct row_at *at,
		    unsigned last, double turns)
{
	const struct part *p = g->part;
	bool few = p[at->part].s.units < FEW_UNITS;

	if (p[last].s.soft || (few && (at->late != 0 || isnan(at->start))))
		return false;
	return p[last].s.units >= FEW_UNITS ||
	       (few && last == at->part && may_be_all(g, &p[last])) ||
	       is_turn(g, at->late + turns, p[at->part].s.pitch);
}

/* May pitches be others from a part on?  Or are they, surely?  Those of a few
 * units say nothing. */
static bool is_other_zone(const struct parts *g, unsigned from, bool surely)
{
	const struct store_track *t = &g->gap->behind;
	struct part behind = { .s = { .pitch = t->pitch }, .turns = 1 };
	const struct part *other = &behind;
	unsigned a = from, b = from;

	while (a && g->part[a - 1].s.units < FEW_UNITS)
		a--;
	while (b < g->n && g->part[b].s.units < FEW_UNITS)
		b++;
	if (!a || (b == g->n && !t->size))
		return false;
	if (b < g->n)
		other = &g->part[b];
	return surely ? surely_differ(&g->part[a - 1], other) :
			differ_by(&g->part[a - 1], other, ZONE_SIGMAS);
}

static void row_go(struct row *row, struct row_at at);

static void row_ends(struct row *row)
{
	row->ways += !row->ways || row->found != row->ends;
	row->found = row->ends;
	row->found_zone = row->zone;
}

static double start_of(const struct parts *g, unsigned part)
{
	return part < g->n ? g->part[part].s.start : g->gap->behind.start;
}

/* On to the next track, which begins a step behind `start`, a short one if
 * that is not from the track before. */
static void row_step(struct row *row, unsigned to, double start,
		     enum row_odd odd, double most)
{
	const struct parts *g = row->g;
	double is = start_of(g, to), late;
	bool there = false;

	for (unsigned i = 0; i < g->gap->steps; i++) {
		late = phase_wrap(is - start - g->gap->step[i]);
		if (g->gap->step[i] > most)
			continue;
		if (late > row->off && late < SLIPPED_MOST && to < g->n)
			row_go(row, (struct row_at){ to, is - late, late,
						     odd });
		there |= fabs(late) <= row->off;
	}
	if (there)
		row_go(row, (struct row_at){ to, is, 0, odd });
	for (unsigned i = 0; i < g->gap->steps && odd == ROW_GONE; i++) {
		if (g->gap->step[i] < STEP_MOST)
			row_step(row, to, start + g->gap->step[i], ROW_PLAIN,
				 STEP_MOST);
	}
}

/* On from the first track of a zone, or of the disk: it is a turn at most to
 * where it began, a step before the next. */
static void row_first(struct row *row, unsigned from, unsigned to,
		      double turns)
{
	const struct parts *g = row->g;
	double is = start_of(g, to), late;

	if (to == g->n && !g->gap->behind.size)
		return;
	for (unsigned i = 0; i < g->gap->steps; i++) {
		late = phase_part(g->part[from].s.start + g->gap->step[i] -
				  is + row->off) - row->off;
		if (late + turns > ROUND_MOST)
			continue;
		row_go(row, (struct row_at){ to, is, 0, ROW_PLAIN });
		return;
	}
}

/* Parts up to `to` are a track. */
static void row_take(struct row *row, const struct row_at *at, unsigned to,
		     double turns)
{
	const struct parts *g = row->g;
	bool last = to == g->n && !g->gap->behind.size;

	row->ends |= UINT64_C(1) << (to - 1);
	if (last && !isnan(at->start))
		row_ends(row);
	else if (isnan(at->start))
		row_first(row, at->part, to, turns);
	else if (turns >= WHOLE_LEAST)
		row_step(row, to, at->start, at->odd, 1);
	if (!last && at->odd == ROW_ZONE && is_other_zone(g, to, false)) {
		row->zone = to;
		row_go(row, (struct row_at){ to, NAN, 0, ROW_PLAIN });
		row->zone = ROW_NO_ZONE;
	}
	row->ends &= ~(UINT64_C(1) << (to - 1));
}

/* All ways to go on from where a track begins. */
static void row_go(struct row *row, struct row_at at)
{
	const struct part *p = row->g->part;
	unsigned n = row->g->n;
	double turns = 0;

	if (at.part == n)
		row_ends(row);
	if (row->tried++ > ROWS_MOST)
		return;
	for (unsigned i = at.part; i < n; i++) {
		turns += p[i].turns;
		if (at.late + turns > ROUND_MOST)
			return;
		if (may_end(row->g, &at, i, turns))
			row_take(row, &at, i + 1, turns);
		if (i + 1 == n || !may_join(&p[i], &p[i + 1]))
			return;
		turns += p[i].jump;
	}
}

/* The only such row. */
static bool find_row(const struct parts *g, struct row *row)
{
	bool first = !g->gap->before.size;

	*row = (struct row){
		.g = g, .off = fmax(STEP_OFF, STEP_NOISE * g->r->noise_once),
		.zone = first ? 0 : ROW_NO_ZONE,
	};
	if (!g->all || !g->n)
		return false;
	for (unsigned i = ROW_PLAIN; i < ROW_ODDS && !row->ways; i++) {
		if (first)
			row_go(row, (struct row_at){ 0, NAN, 0, ROW_PLAIN });
		else
			row_step(row, 0, g->gap->before.start,
				 (enum row_odd)i, 1);
	}
	return row->ways == 1 && row->tried <= ROWS_MOST;
}

/* Does one zone end and another begin there, and is it no slip? */
static bool is_zone_end(const struct parts *g, unsigned from)
{
	const struct part *p = &g->part[from];

	return is_other_zone(g, from, true) || from == g->n ||
	       p[-1].turns + p[-1].jump + p->turns > ROUND_MOST;
}

/* Is a part one line, and nothing else in between? */
static int try_part(struct parts *g, const struct part *p, bool *found)
{
	struct span_end end = { .clear = true };
	int err = segment_holds(g->r, &p->s, found);

	if (!err && *found && p->s.units > 1)
		err = find_break(g, &p->s, &end);
	*found = *found && !end.at && end.clear;
	return err;
}

/* The least leap that may be the end of a track. */
static double least_leap(const struct row *row)
{
	const struct gap *gap = row->g->gap;
	double least = SLIPPED_MOST;

	for (unsigned i = 0; i < gap->steps; i++) {
		if (gap->step[i] > LEAP_LEAST && gap->step[i] < least)
			least = gap->step[i];
	}
	return least - row->off;
}

/* Is a leap between two parts sure to be what a row takes it for?  Slips are
 * smaller than what tracks begin later by; and a track begins where it should,
 * or it may end elsewhere, without a leap. */
static int try_leap(struct parts *g, const struct row *row, unsigned i,
		    double start, bool *found)
{
	const struct part *p = &g->part[i];
	bool near = false;
	double late;
	int err = 0;

	if (!(row->found >> i & 1)) {
		*found = p->jump < least_leap(row) &&
			 p->jump < fmax(SLIP_TURN, SLIP_UNITS * p->s.pitch) &&
			 look_alike(p, p + 1);
		return 0;
	}
	for (unsigned k = 0; k < g->gap->steps; k++) {
		late = phase_wrap(start_of(g, i + 1) - start -
				  g->gap->step[k]);
		near |= fabs(late) <= row->off;
	}
	if (near)
		return 0;
	err = try_part(g, p, found);
	return err || !*found || i + 1 == g->n ? err :
						  try_part(g, p + 1, found);
}

static int try_row(struct parts *g, uint64_t *ends, bool *found)
{
	double start = g->part[0].s.start;
	struct row row;
	int err = 0;

	*found = find_row(g, &row) &&
		 (row.found_zone == ROW_NO_ZONE || !row.found_zone ||
		  is_zone_end(g, row.found_zone));
	*ends = row.found;
	for (unsigned i = 0; i + !g->gap->behind.size < g->n && *found && !err;
	     i++) {
		err = try_leap(g, &row, i, start, found);
		if (row.found >> i & 1)
			start = start_of(g, i + 1);
	}
	if (!err && *found && row.found_zone == 0)
		err = try_part(g, g->part, found);
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
	double pitch = track->pitch;
	int err = segment_pitch(reader, track->first, track->size, &pitch);

	*whole = !isnan(pitch) && fabs(track->size * pitch - 1) <= TURN_OFF;
	return err;
}

int gap_close(struct reader *reader, const struct gap *gap,
	      struct gap_track *out, unsigned *n)
{
	struct parts g = { .r = reader, .gap = gap };
	struct list l = { .v = out };
	bool again = true, row = false;
	uint64_t ends;
	int err = 0;

	for (unsigned i = 0; !err && again && i < ROUNDS; i++) {
		again = false;
		err = measure(&g);
		if (!err)
			err = try_row(&g, &ends, &row);
		if (!err && row) {
			put_row(&g, ends, &l);
			*n = l.n;
			return 0;
		}
		if (!err)
			err = learn_spared(&g);
		place_few(&g);
		if (!err)
			err = look_into_all(&g, &again);
	}
	if (!err)
		put_all(&g, &l);
	*n = l.n;
	return err;
}
