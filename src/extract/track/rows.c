/*
 * rows.c - see rows.h.
 *
 * Tracks in a row, of which each begins later than the one before by as much as
 * others do, whatever slipped, its first sectors perhaps, too; and so does the
 * track behind the gap.  If there is none, then one in which a whole track is
 * left out, once, for it is spoilt; or one in which a zone ends and another
 * begins, anywhere: its first track may lack its beginning and the last one
 * before it its end.  Bit i of `ends`: a track ends behind part i.
 */
#include "extract/track/rows.h"

#include <math.h>

/* Steps are off by so much, and by so much of the noise; a turn, what was
 * measured of it included. */
#define STEP_OFF 0.004
#define STEP_NOISE 1.2
#define ROUND_MOST 1.02
/* Beginnings that are tried; nearer ones are the same. */
#define SEEN_MOST 2000u
#define SAME_START 0.0005
/* Slips that are not seen: revolutions, tolerances. */
#define BENT 0.01
#define UNSEEN 3.0
#define BACK 2.0
#define HOLDS_OFF 2.0
/* Standard deviations: rather too many ways than that one is missing. */
#define SURE_SIGMAS 8.0
#define ALIKE_SIGMAS 5.0
#define ZONE_SIGMAS 1.0
/* Slips of one scratch: of a turn, and units where those are more. */
#define SLIP_TURN 0.05
#define SLIP_UNITS 10.0
#define ROW_NO_ZONE UINT32_MAX
#define LEAP_LEAST 0.015
/* Larger ones are those of zones and groups. */
#define STEP_MOST 0.4

enum row_odd { ROW_PLAIN, ROW_GONE, ROW_ZONE, ROW_ODDS };

/* Where a track begins, and how much of it is missing there. */
struct row_at {
	unsigned part;
	double start;		/* of the whole track; NAN: in a new zone */
	double late;
	enum row_odd odd;	/* may still come, once */
};

/* All ways on from there were tried. */
struct row_seen {
	struct row_at at;
	unsigned zone;
	uint64_t ends;		/* before it */
	bool good;		/* some go on to the end */
};

struct row {
	const struct parts *g;
	double off;		/* of a step */
	uint64_t ends, found;
	unsigned zone, found_zone; /* the part that begins one, or n */
	unsigned ways, ended;	/* different ones, and all */
	unsigned is_short;	/* tracks of parts that are no turn together */
	bool found_short;
	struct row_seen seen[SEEN_MOST];
	unsigned n;
};

/* By how much may slips in a part that are not seen bend its line?  Those of
 * large units are. */
static double bent(const struct parts *g, const struct part *p)
{
	double unseen = UNSEEN * segment_tolerance(g->r);

	return p->s.soft || p->s.pitch < unseen ?
		       fmin(BENT, unseen) / p->turns : 0;
}

/* Have they surely other pitches? */
static bool surely_differ(const struct parts *g, const struct part *a,
			  const struct part *b)
{
	double sigma = hypot(a->s.pitch_sigma, b->s.pitch_sigma);

	return fabs(a->s.pitch / b->s.pitch - 1) >
	       PARTS_PITCH_SAME + SURE_SIGMAS * sigma / b->s.pitch +
		       bent(g, a) + bent(g, b);
}

/* May they have the same pitch?  That of one with slips in it is bent. */
static bool look_alike(const struct part *a, const struct part *b)
{
	double bent = (a->s.soft ? BENT / a->turns : 0) +
		      (b->s.soft ? BENT / b->turns : 0);

	return fabs(a->s.pitch / b->s.pitch - 1) < bent ||
	       !parts_differ(a, b, ALIKE_SIGMAS);
}

/* By how much a track may seem to go back behind a part. */
static double back(const struct parts *g, const struct part *p)
{
	return fmin(PARTS_TURNS_OFF, BACK * segment_tolerance(g->r) +
				     (double)p->s.units * p->s.pitch_sigma);
}

/* May a track that begins with one part and goes on to another go on to the
 * next? */
static bool may_join(const struct parts *g, unsigned from, unsigned to)
{
	const struct part *p = g->part;

	if (p[to].broken || p[to].jump <= -back(g, &p[to]) ||
	    p[to].jump > PARTS_SLIPPED_MOST)
		return false;
	for (unsigned i = from; i <= to; i++) {
		if (surely_differ(g, &p[i], &p[to + 1]))
			return false;
	}
	return true;
}

/* Is there room for some units more on a track? */
static bool has_room(const struct part *p, const struct part *few)
{
	return p->turns + (double)few->s.units * p->s.pitch <=
	       1 + PARTS_TURNS_OFF;
}

/* May a few units be all of a track?  Not if they may be those that another one
 * lacks, and lie elsewhere. */
static bool may_be_all(const struct parts *g, const struct part *few)
{
	return !(few > g->part && has_room(few - 1, few)) &&
	       !(few + 1 < g->part + g->n && has_room(few + 1, few));
}

/* Only a few units up to where it is clear that they go on elsewhere? */
static bool is_few(const struct parts *g, unsigned from)
{
	uint64_t units = g->part[from].s.units;

	for (; from + 1 < g->n && !parts_leap(g, from); from++)
		units += g->part[from + 1].s.units;
	return units < PARTS_FEW_UNITS;
}

/* A few units by themselves may lie elsewhere, and belong to either side: they
 * begin a track just where it should, and end it after just a turn; or they are
 * the last of a zone. */
static bool may_end(const struct parts *g, const struct row_at *at,
		    unsigned last, double turns)
{
	const struct part *p = g->part;
	bool few = is_few(g, at->part);

	if (p[last].s.soft || !parts_leap(g, last) ||
	    (few && (at->late != 0 || isnan(at->start))))
		return false;
	return p[last].s.units >= PARTS_FEW_UNITS ||
	       (few && last == at->part &&
		(at->odd == ROW_ZONE || may_be_all(g, &p[last]))) ||
	       parts_is_turn(g, at->late + turns, p[at->part].s.pitch);
}

/* Are pitches others from a part on, surely or perhaps?  Those of a few units
 * say nothing. */
static bool is_other_zone(const struct parts *g, unsigned from, bool surely)
{
	const struct store_track *t = &g->gap->behind;
	struct part behind = { .s = { .pitch = t->pitch }, .turns = 1 };
	const struct part *other = &behind;
	unsigned a = from, b = from;

	while (a && g->part[a - 1].s.units < PARTS_FEW_UNITS)
		a--;
	while (b < g->n && g->part[b].s.units < PARTS_FEW_UNITS)
		b++;
	if (!a || (b == g->n && !t->size))
		return false;
	if (b < g->n)
		other = &g->part[b];
	return surely ? surely_differ(g, &g->part[a - 1], other) :
			parts_differ(&g->part[a - 1], other, ZONE_SIGMAS);
}

/* May a zone begin there?  Between tracks that are alike none does, unless
 * pitches say so; others may have a pitch by chance. */
static bool may_be_zone(const struct parts *g, unsigned from)
{
	if (from == g->n && !g->gap->behind.size)
		return false;
	return !parts_between_alike(g->gap) || is_other_zone(g, from, false);
}

static void row_go(struct row *row, struct row_at at);

static void row_ends(struct row *row)
{
	row->ended++;
	row->ways += !row->ways || row->found != row->ends;
	row->found = row->ends;
	row->found_zone = row->zone;
	row->found_short = row->is_short > 0;
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
		if (late > row->off && late < PARTS_SLIPPED_MOST && to < g->n)
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

/* Is a track of several parts, or without its beginning, less than a turn all
 * the same? */
static bool is_short(const struct parts *g, const struct row_at *at,
		     unsigned to, double turns)
{
	double room = (g->spared + 0.5) * g->part[at->part].s.pitch;

	return (to - at->part > 1 || at->late > 0) &&
	       at->late + turns < 1 - room - PARTS_TURN_OFF;
}

/* Parts up to `to` are a track. */
static void row_take(struct row *row, const struct row_at *at, unsigned to,
		     double turns)
{
	const struct parts *g = row->g;
	bool last = to == g->n && !g->gap->behind.size;
	bool less = is_short(g, at, to, turns);

	row->is_short += less;
	row->ends |= UINT64_C(1) << (to - 1);
	if (last && !isnan(at->start))
		row_ends(row);
	else if (isnan(at->start))
		row_first(row, at->part, to, turns);
	else if (turns >= PARTS_WHOLE_LEAST)
		row_step(row, to, at->start, at->odd, 1);
	if (!last && at->odd == ROW_ZONE && may_be_zone(g, to)) {
		row->zone = to;
		row_go(row, (struct row_at){ to, NAN, 0, ROW_PLAIN });
		row->zone = ROW_NO_ZONE;
	}
	row->ends &= ~(UINT64_C(1) << (to - 1));
	row->is_short -= less;
}

static bool is_same(const struct row_at *a, const struct row_at *b)
{
	return a->part == b->part && a->odd == b->odd &&
	       isnan(a->start) == isnan(b->start) &&
	       !(fabs(phase_wrap(a->start - b->start)) > SAME_START) &&
	       (a->late != 0) == (b->late != 0);
}

/* Has it been tried to go on from there?  If it was possible, it is by another
 * way now. */
static bool row_was(struct row *row, const struct row_at *at)
{
	for (unsigned i = 0; i < row->n; i++) {
		const struct row_seen *s = &row->seen[i];

		if (!is_same(&s->at, at) || s->zone != row->zone)
			continue;
		row->ways += s->good && s->ends != row->ends;
		return true;
	}
	return false;
}

/* All ways to go on from where a track begins. */
static void row_try(struct row *row, const struct row_at *at)
{
	const struct part *p = row->g->part;
	unsigned n = row->g->n;
	double turns = 0;

	for (unsigned i = at->part; i < n; i++) {
		turns += p[i].turns;
		if (at->late + turns > ROUND_MOST)
			return;
		if (may_end(row->g, at, i, turns) &&
		    parts_fit(row->g, at->part, i + 1))
			row_take(row, at, i + 1, turns);
		if (i + 1 == n || !may_join(row->g, at->part, i))
			return;
		turns += p[i].jump;
	}
}

static void row_go(struct row *row, struct row_at at)
{
	unsigned ended = row->ended;

	if (at.part == row->g->n) {
		row_ends(row);
		return;
	}
	if (row->ways > 1 || row->n == SEEN_MOST || row_was(row, &at))
		return;
	row_try(row, &at);
	if (row->n < SEEN_MOST)
		row->seen[row->n++] = (struct row_seen){
			at, row->zone, row->ends, row->ended > ended,
		};
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
	for (unsigned i = ROW_PLAIN; i < ROW_ODDS; i++) {
		/* What is no turn may be the ends of two zones as well. */
		if (row->ways && (i != ROW_ZONE || !row->found_short ||
				  parts_between_alike(g->gap)))
			continue;
		row->n = 0;
		if (first)
			row_go(row, (struct row_at){ 0, NAN, 0, ROW_PLAIN });
		else
			row_step(row, 0, g->gap->before.start,
				 (enum row_odd)i, 1);
	}
	return row->ways == 1 && row->n < SEEN_MOST;
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
	int err = segment_holds(g->r, &p->s, HOLDS_OFF, found);

	if (!err && *found && p->s.units > 1)
		err = parts_break(g, &p->s, &end);
	*found = *found && !end.at && end.clear;
	return err;
}

/* The least leap that may be the end of a track. */
static double least_leap(const struct row *row)
{
	const struct gap *gap = row->g->gap;
	double least = PARTS_SLIPPED_MOST;

	for (unsigned i = 0; i < gap->steps; i++) {
		if (gap->step[i] > LEAP_LEAST && gap->step[i] < least)
			least = gap->step[i];
	}
	return least - row->off;
}

/* May what is behind a part be slips on the track that both are of? */
static bool may_slip(const struct part *p)
{
	return p->jump > 0 && look_alike(p, p + 1) &&
	       p->jump < fmax(SLIP_TURN, SLIP_UNITS * p->s.pitch) &&
	       p->turns + p->jump + p[1].turns <= ROUND_MOST;
}

/* Is a leap between two parts sure to be what a row takes it for?  Slips are
 * smaller than what tracks begin later by, where a zone may end; and a track
 * begins where it should, or it may end elsewhere, without a leap. */
static int try_leap(struct parts *g, const struct row *row, unsigned i,
		    double start, bool *found)
{
	const struct part *p = &g->part[i];
	bool near = false;
	double late;
	int err = 0;

	/* That was only one of the things that few units may be. */
	if ((row->found >> i & 1) && p->s.units < PARTS_FEW_UNITS &&
	    (!i || (row->found >> (i - 1) & 1)) && !may_be_all(g, p)) {
		*found = false;
		return 0;
	}
	if (!(row->found >> i & 1)) {
		*found = (p->jump < least_leap(row) ||
			  parts_between_alike(g->gap)) &&
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
	if (i + 1 < g->n && may_slip(p)) {
		*found = false;
		return 0;
	}
	err = try_part(g, p, found);
	return err || !*found || i + 1 == g->n ? err :
						  try_part(g, p + 1, found);
}

int rows_find(struct parts *g, uint64_t *ends, bool *found)
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
