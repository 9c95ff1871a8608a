/*
 * look.c - see look.h.
 *
 * The angles of a boundary are absolute: that a unit lies where it is foretold
 * excludes that others add up to the same.  A boundary at which the angle
 * hardly jumps can't be seen.
 */
#include <math.h>
#include <string.h>

#include "extract/track/look.h"
#include "extract/track/walk_internal.h"

/* Of the boundaries asked, how many are weighed against one another. */
#define CHOICE 24u
/* Leaps of so many tracks are looked into; and over a size that is new. */
#define INSIDE_LEAST 16u
#define FRESH_LEAST 4u
#define INSIDE_LOOKS 3u
/* Boundaries just before its end: surfaces differ by less than 4 and 5. */
#define BEFORE_MOST 4u
/* Tracks of a run after which its size is not new any more. */
#define FRESH 32u
/* Boundaries of rounds among which the next to look at is chosen. */
#define WINDOW 12u
/* Runs that came as they were foretold, behind which their ends are certain. */
#define CALM_ROWS 4u

/* By how much the angle jumps at the start of track j ahead. */
static double jump(const struct walk *w, unsigned j)
{
	const struct ahead *a = &w->ahead[j - 1];

	return fabs(phase_wrap(w->ahead[j].start - a->start - a->span));
}

/* Can it be seen? */
static bool is_visible(const struct walk *w, unsigned j)
{
	return j && jump(w, j) >= LOOK_VISIBLE * w->reader->tolerance;
}

static uint64_t unit_of(const struct walk *w, enum look_side side, unsigned j)
{
	return side == LOOK_LOW ? w->ahead[j].first - 1 : w->ahead[j].first;
}

static double angle_of(const struct walk *w, enum look_side side, unsigned j)
{
	const struct ahead *a = &w->ahead[side == LOOK_LOW ? j - 1 : j];

	return side == LOOK_LOW ? a->start + a->span :
			     a->start + a->span / a->size;
}

unsigned look_pick(const struct walk *w, enum look_side side, unsigned lo,
		   unsigned hi)
{
	unsigned best = 0, stride = (hi - lo) / CHOICE + 1;
	double best_ns = INFINITY, ns;

	for (unsigned j = lo; j <= hi; j += stride) {
		if (!is_visible(w, j) ||
		    w->ahead[j].first >= w->reader->units)
			continue;
		ns = reader_cost(w->reader, unit_of(w, side, j),
				 angle_of(w, side, j));
		if (ns < best_ns) {
			best_ns = ns;
			best = j;
		}
	}
	return best;
}

static int ask(struct walk *w, enum look_side side, unsigned j, bool *ok,
	       double *off)
{
	double expected = angle_of(w, side, j), turn;
	int err = reader_expect(w->reader, unit_of(w, side, j), expected,
				&turn);

	*off = phase_wrap(turn - expected);
	*ok = fabs(*off) <= w->reader->tolerance;
	return err;
}

int look_ask(struct walk *w, enum look_side side, unsigned j, bool *ok,
	     double *off)
{
	int err = reader_part(w->reader, unit_of(w, side, j),
			      angle_of(w, side, j));

	return err ? err : ask(w, side, j, ok, off);
}

int look_recall(struct walk *w, unsigned j, bool *ok, double off[2])
{
	double turn;
	int err = 0;

	off[LOOK_LOW] = off[LOOK_HIGH] = 0;
	*ok = j == 0;
	if (!is_visible(w, j))
		return 0;
	*ok = true;
	for (int side = LOOK_LOW; side <= LOOK_HIGH && !err && *ok; side++) {
		err = reader_recall(w->reader,
				    unit_of(w, (enum look_side)side, j), &turn);
		off[side] = phase_wrap(turn -
				       angle_of(w, (enum look_side)side, j));
		*ok = fabs(off[side]) <= w->reader->tolerance;
	}
	return err;
}

/* Was a side of a boundary elsewhere when it was read last? */
static bool was_off(const struct walk *w, enum look_side side, unsigned j)
{
	double turn;

	return reader_knows(w->reader, unit_of(w, side, j), &turn) &&
	       !(fabs(phase_wrap(turn - angle_of(w, side, j))) <=
		 w->reader->tolerance);
}

/* The first unit of a track may be late by just the leap before it when it is
 * none: once it was elsewhere, it has to be seen twice.  So it has in rounds,
 * where slips make up for each other, if a turn has gone by: one that passes
 * behind the last unit, on the same track, comes again after that. */
int look_ask_both(struct walk *w, unsigned j, enum look_side *side, bool *ok,
		  double *low, double *high)
{
	int err = ask(w, LOOK_LOW, j, ok, low);
	double turn_ns = w->reader->phase.period_ns;
	bool doubt;

	*side = LOOK_LOW;
	if (err || !*ok)
		return err;
	*side = LOOK_HIGH;
	doubt = was_off(w, LOOK_HIGH, j);
	err = ask(w, LOOK_HIGH, j, ok, high);
	doubt = doubt || (w->rounds.tracks &&
			  (double)w->reader->took_ns > turn_ns);
	return err || !*ok || !doubt ? err : ask(w, LOOK_HIGH, j, ok, high);
}

/* Of the next boundaries that are wanted, the one that is there soonest; 0:
 * there are none. */
static unsigned next_wanted(const struct walk *w, const enum rounds_look *look,
			    unsigned *from, unsigned to)
{
	double best_ns = INFINITY, ns;
	unsigned best = 0, n = 0;

	while (*from < to && look[*from] == ROUNDS_NONE)
		++*from;
	for (unsigned k = *from; k < to && n < WINDOW; k++) {
		if (look[k] == ROUNDS_NONE)
			continue;
		n++;
		ns = reader_effort(w->reader, unit_of(w, LOOK_LOW, k),
				   angle_of(w, LOOK_LOW, k));
		if (ns < best_ns) {
			best_ns = ns;
			best = k;
		}
	}
	return best;
}

/* How often a side was where it is foretold since it was elsewhere. */
static unsigned was_right(const struct walk *w, enum look_side side,
			  unsigned j)
{
	return reader_saw(w->reader, unit_of(w, side, j), angle_of(w, side, j));
}

/* Looks at a boundary, unless another look has seen it, until it is clear
 * whether it is one.  What is late does not seem to be before its end, but may
 * seem to be behind it. */
static int look_often(struct walk *w, unsigned at, bool both_sides, bool *ok,
		      enum look_side *side)
{
	unsigned right = 0, wrong = 0, behind = 0;
	double low, high;
	enum look_side which = LOOK_LOW;
	int err = 0;

	*ok = was_right(w, LOOK_LOW, at) > 0 &&
	      (!both_sides || was_right(w, LOOK_HIGH, at) > 1);
	if (*ok)
		return 0;
	while (!err && right <= behind && wrong < INSIDE_LOOKS) {
		err = both_sides ?
			look_ask_both(w, at, &which, ok, &low, &high) :
			ask(w, LOOK_LOW, at, ok, &low);
		right += *ok;
		wrong += !*ok;
		behind += !*ok && which == LOOK_HIGH;
		*side = *ok ? *side : which;
	}
	*ok = right > behind;
	return err;
}

/* One boundary of a round.  One that can't be seen is wrong. */
static int look_at_round(struct walk *w, unsigned at, bool both, bool *ok,
			 enum look_side *side)
{
	*ok = false;
	*side = LOOK_LOW;
	return is_visible(w, at) ? look_often(w, at, both, ok, side) : 0;
}

/* Those that are wanted, which are wanted no more then.  *bad: the first that
 * is wrong, on that side, or as it was. */
static int look_at_rounds(struct walk *w, enum rounds_look *look, unsigned to,
			  unsigned *bad, enum look_side *side)
{
	unsigned k, from = 1;
	enum look_side which;
	bool ok;
	int err = 0;

	while (!err && (k = next_wanted(w, look, &from, to))) {
		err = look_at_round(w, k, look[k] == ROUNDS_BOTH, &ok, &which);
		look[k] = ROUNDS_NONE;
		if (err || ok)
			continue;
		to = *bad = k;
		*side = which;
	}
	return err;
}

/* The boundaries that one which is wrong leaves open.  If it comes too soon
 * those that were looked at before it, from that side, are right; else slips
 * have been made up for, and nothing is said by one side. */
static void want_before(const enum rounds_look *looked, enum rounds_look *look,
			unsigned bad, enum look_side side)
{
	bool open = true;

	look[0] = ROUNDS_NONE;
	for (unsigned k = bad; --k;) {
		open = open && looked[k] == ROUNDS_NONE;
		look[k] = side == LOOK_LOW ? open ? ROUNDS_LOW : ROUNDS_NONE :
			  looked[k] == ROUNDS_BOTH ? ROUNDS_NONE : ROUNDS_BOTH;
	}
}

int look_into_rounds(struct walk *w, unsigned to, unsigned *bad)
{
	enum rounds_look wanted[PLAN_AHEAD + 1], look[PLAN_AHEAD + 1];
	enum look_side side = LOOK_LOW, before;
	int err;

	*bad = 0;
	rounds_wanted(&w->rounds, to, wanted);
	memcpy(look, wanted, to * sizeof(*look));
	err = look_at_rounds(w, look, to, bad, &side);
	if (err || !*bad)
		return err;
	want_before(wanted, look, *bad, side);
	return look_at_rounds(w, look, *bad, bad, &before);
}

/* The boundary at which slips before spares show that are taken from those. */
static unsigned before_spares(const struct walk *w, unsigned k)
{
	return is_visible(w, k) || k < 2 || w->ahead[k - 1].spares ? k : k - 1;
}

int look_at_spares(struct walk *w, unsigned to, unsigned *good, unsigned *bad)
{
	enum rounds_look look[PLAN_AHEAD + 1] = { ROUNDS_NONE };
	bool spares[PLAN_AHEAD + 1] = { false };
	bool sure = w->calm >= CALM_ROWS * w->plan.expected;
	enum look_side side;
	int err;

	*bad = *good = 0;
	for (unsigned k = 1; k < to; k++) {
		unsigned at = w->ahead[k].spares ? before_spares(w, k) : 0;

		spares[at] = true;
		look[at] = at && look[at] == ROUNDS_NONE ? ROUNDS_LOW :
							   look[at];
		if (!sure && (w->ahead[k].spares || w->ahead[k - 1].spares))
			look[at ? at : k] = ROUNDS_BOTH;
	}
	err = look_at_rounds(w, look, to, bad, &side);
	for (unsigned k = 1; k < *bad; k++)
		*good = spares[k] ? k : *good;
	return err;
}

int look_at(struct walk *w, unsigned at, struct look_landing *l)
{
	enum look_side side = LOOK_LOW;
	bool ok;
	int err;

	if (!is_visible(w, at))
		return 0;
	err = look_often(w, at, true, &ok, &side);
	if (err || ok)
		return err;
	l->ok = false;
	l->at = at;
	l->side = side;
	return 0;
}

/* Where a run ended elsewhere than foretold, others with it add up to what was
 * foretold, before or from there on: 137 and 141 are twice 139, and 12 tracks
 * of 174 units with one of 161 are 13 of 173.  So the tracks on both sides of
 * a change are looked at, and the change.  One at the frontier was looked at,
 * but not what comes behind. */
static int look_at_changes(struct walk *w, unsigned to, struct look_landing *l)
{
	int err = 0;

	for (unsigned k = 0; k <= to && l->ok && !err; k++) {
		uint32_t was = k ? w->ahead[k - 1].whole : w->plan.now.size;

		if (w->ahead[k].run == (k ? w->ahead[k - 1].run : 0) ||
		    w->ahead[k].whole == was)
			continue;
		if (k > 1)
			err = look_at(w, k - 1, l);
		if (!err && l->ok && k && k < to)
			err = look_at(w, k, l);
		if (!err && l->ok && k + 1 < to)
			err = look_at(w, k + 1, l);
	}
	return err;
}

/* Are tracks [from, to] of more than one size? */
static bool has_sizes(const struct walk *w, unsigned from, unsigned to)
{
	for (unsigned k = from + 1; k <= to; k++) {
		if (w->ahead[k].whole != w->ahead[from].whole)
			return true;
	}
	return false;
}

/* Runs of other lengths may add up to the same, over one at least that lies
 * between two others: 6 tracks of 334 units and 32 of 348 are as long as 26 of
 * 348 and 12 of 341.  Then that lies elsewhere. */
static int look_at_middles(struct walk *w, unsigned to, struct look_landing *l)
{
	unsigned from = 0;
	int err = 0;

	for (unsigned k = 1; k < to && l->ok && !err; k++) {
		if (w->ahead[k].run == w->ahead[k - 1].run)
			continue;
		if (from && has_sizes(w, from - 1, k))
			err = look_at(w, look_pick(w, LOOK_LOW, from, k), l);
		from = k;
	}
	return err;
}

/* Where the last run before a boundary begins; 0: there is only one. */
static unsigned run_before(const struct walk *w, unsigned at)
{
	while (at && w->ahead[at].run == w->ahead[at - 1].run)
		at--;
	return at;
}

int look_before(struct walk *w, unsigned at, struct look_landing *l)
{
	unsigned k = run_before(w, at - 1);
	int err = at >= INSIDE_LEAST ? look_at(w, at - 1, l) : 0;

	/* What a run lost at its end may be what a track more of the next one
	 * has than was foretold. */
	if (!err && l->ok && k && (k + 1 < at || at < INSIDE_LEAST))
		err = look_at(w, k, l);
	if (!err && l->ok)
		err = look_at_middles(w, at, l);
	return err || !l->ok ? err : look_at_changes(w, at + 1, l);
}

/* Of tracks of one size before the end, the boundary that is there soonest: one
 * track more or less than those few would be of quite another size. */
static unsigned pick_before(const struct walk *w, unsigned at)
{
	unsigned best;

	if (at <= BEFORE_MOST || has_sizes(w, at - BEFORE_MOST - 1, at))
		return at - 1;
	best = look_pick(w, LOOK_LOW, at - BEFORE_MOST, at - 1);
	return best ? best : at - 1;
}

/*
 * Tracks in another order, or of other sizes, may add up to the same: 23 of 704
 * sectors are 22 of 736.  So a boundary just before the end is looked at, too,
 * and one on the way where sizes change or are new.
 */
int look_inside(struct walk *w, struct look_landing *l)
{
	bool fresh = !w->plan.trusted && w->plan.now.count < FRESH;
	bool mixed = has_sizes(w, 0, l->at);
	int err = 0;

	if (l->at > 1 && fresh)
		err = look_at(w, l->at - 1, l);
	else if (l->at >= INSIDE_LEAST)
		err = look_at(w, pick_before(w, l->at), l);
	if (!err && l->ok && l->at >= (fresh ? FRESH_LEAST : INSIDE_LEAST) &&
	    (fresh || mixed))
		err = look_at(w, look_pick(w, LOOK_LOW, l->at / 8 + 1,
					   l->at - 2), l);
	if (!err && l->ok && mixed)
		err = look_at_middles(w, l->at, l);
	return err || !l->ok ? err : look_at_changes(w, l->at, l);
}
