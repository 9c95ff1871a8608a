/*
 * walk.c - leaps over tracks that are as foretold, bisection where not.
 *
 *   leap:    some tracks ahead, choose a boundary that comes under the head
 *            soon; is its last unit (LOW) still on its track, and the unit
 *            after it (HIGH) on the next?
 *   both:    a track ends there, and the angle says how many tracks were
 *            passed: the leap is accepted (walk_pass).
 *   not:     another boundary is asked (late completions), then bisection by
 *            the same side; where both sides of a boundary are right, the
 *            frontier goes there; the track after it is measured (event).
 *
 * The angle is absolute, so that tracks of another size which happen to end at
 * the same unit (8 of 1170 sectors and 9 of 1040) are told from those foretold.
 * Boundaries at which the angle hardly jumps can't be seen and are not asked;
 * a track that ends in one is closed by what is on both sides of it, or is left
 * to gap.h.
 */
#include <math.h>

#include "extract/track/look.h"
#include "extract/track/walk_internal.h"

/* Leaps that may fail before one of so many tracks does not. */
#define STREAK_MAX 10u
#define STREAK_TRACKS 30u
/* Tracks between two boundaries of which one was late: the other is asked. */
#define APART 3u
/* Of the tolerance, what the angle at the end of a leap may be unsure by. */
#define UNSURE 0.28

int walk_begin(struct walk *walk, uint64_t unit, bool on_track)
{
	struct track t;
	int err;

	walk->guess = walk_about(walk);
	walk->event_at = unit;
	if (!(walk->apart > 0))
		walk->apart = APART_MOST;
	walk->plan = (struct plan){ .first = unit };
	walk->leap = LEAP_START;
	walk->there = true;
	reader_set_purpose(walk->reader, READER_EVENT);
	if (!on_track)
		return walk_skip(walk, unit);
	err = walk_measure(walk, &t, unit);
	if (err == TRACK_UNDECIDED)
		return walk_skip(walk, unit + 64);
	return err ? err : walk_run_begin(walk, &t, 0);
}

/* To boundary n, both sides of which were seen: all that are passed learn from
 * it. */
static int go_to(struct walk *w, unsigned n, double low, double high)
{
	double noise = BOTH_SIDES * w->reader->noise;
	double off = (low + high) / 2, late;
	int err;

	for (unsigned k = 0; k < n; k++)
		w->ahead[k].start = phase_part(w->ahead[k].start + off *
				line_share(&w->line, walk_place(w, n), noise,
					   walk_place(w, k)));
	late = walk_learn(w, n, off);
	if (!w->ahead[n].run)
		w->plan.now.span += 0.1 * phase_wrap(low - high);
	err = walk_pass(w, n);
	w->plan.start = phase_part(w->plan.start + late);
	w->measured = w->plan.first;
	return err;
}

static int bisect(struct walk *w, enum look_side side, unsigned hi);

/* Of what is before boundary *hi, which is wrong, is all up to *lo as foretold?
 * Otherwise *hi comes before that. */
static int go_back(struct walk *w, unsigned *lo, unsigned *hi)
{
	struct look_landing l = { .ok = w->rounds.tracks > 0 };
	unsigned bad = 0;
	int err = w->rounds.tracks ? look_into_rounds(w, *lo, &bad) : 0;

	if (bad) {
		*hi = bad;
		*lo = bad - 1;
	}
	while (!err && !l.ok && *lo > 1) {
		l.ok = true;
		err = look_before(w, *lo, &l);
		if (l.ok)
			break;
		*hi = l.at;
		*lo = l.at - 1;
	}
	return err;
}

/* To the last boundary up to `lo` that both sides of are right; what comes
 * behind it is looked at.  `looked`: into rounds, too. */
static int go_before(struct walk *w, unsigned lo, unsigned hi, bool looked)
{
	double offs[2] = { 0, 0 };
	bool ok = false;
	unsigned bad = 0, good;
	int err = looked ? 0 : look_at_spares(w, lo, &good, &bad);

	if (err || bad)
		return err ? err : bisect(w, LOOK_LOW, bad);
	if (!looked)
		err = go_back(w, &lo, &hi);
	while (!err && lo) {
		err = look_recall(w, lo, &ok, offs);
		if (ok)
			break;
		lo = lo > 1 && hi - lo < 4 ? lo - 1 : lo / 2;
	}
	if (err)
		return err;
	err = lo ? go_to(w, lo, offs[LOOK_LOW], offs[LOOK_HIGH]) : 0;
	if (!err)
		plan_ahead(&w->plan, w->ahead, 2);
	return err ? err : walk_event(w);
}

/* Where, up to boundary `hi`, is the first event?  Passes what is before. */
static int bisect(struct walk *w, enum look_side side, unsigned hi)
{
	unsigned lo = 0, mid;
	double off;
	bool ok;
	int err = 0;

	w->events++;
	reader_set_purpose(w->reader, READER_EVENT);
	if (w->plan.trusted && ++w->streak > STREAK_MAX) {
		/* The runs were taken for others than they are. */
		w->streak = 0;
		plan_forget(&w->plan);
		w->leap = LEAP_START;
		return 0;
	}
	while (hi - lo > 1 && !err) {
		unsigned width = hi - lo;

		mid = look_pick(w, side, lo + 1 + (width - 2) * 2 / 5,
			   hi - 1 - (width - 2) * 2 / 5);
		if (!mid)
			mid = look_pick(w, side, lo + 1, hi - 1);
		if (!mid)
			break;
		err = look_ask(w, side, mid, &ok, &off);
		if (ok)
			lo = mid;
		else
			hi = mid;
	}
	return err ? err : go_before(w, lo, hi, false);
}

/* A leap was right: goes there. */
static int accept(struct walk *w, const struct look_landing *l)
{
	unsigned n = l->at;
	double most;
	int err = go_to(w, n, l->low, l->high);

	if (n >= STREAK_TRACKS)
		w->streak = 0;
	most = fmin(w->leap_max, LEAP_RUN + 0.5 * w->apart);
	w->leap = (unsigned)fmin(w->leap * 3.0, most);
	rounds_pass(&w->rounds, n);
	w->calm += n;
	return err;
}

/* A boundary in [lo, hi]; when it is wrong, another one up to `last`: what is
 * late is rarely late twice.  Where that is right, the first one must be, too:
 * two tracks may be as long together as foretold, but not each of them.  l->at:
 * the boundary; 0: none can be seen. */
static int look(struct walk *w, unsigned lo, unsigned hi, unsigned last,
		struct look_landing *l)
{
	enum look_side side;
	unsigned other, was;
	int err;

	l->ok = false;
	l->at = look_pick(w, LOOK_LOW, lo, hi);
	if (!l->at)
		return 0;
	err = look_ask_both(w, l->at, &l->side, &l->ok, &l->low, &l->high);
	if (err || l->ok || l->at < 6 || l->at + APART > last)
		return err;
	other = look_pick(w, LOOK_LOW, l->at + APART,
		     l->at + 9 < last ? l->at + 9 : last);
	if (!other)
		return 0;
	err = look_ask_both(w, other, &side, &l->ok, &l->low, &l->high);
	if (err || !l->ok)
		return err;
	was = l->at;
	l->at = other;
	return look_at(w, was, l);
}

/* Can't it be said any more at what angle track n ahead starts? */
static bool unsure(const struct walk *w, unsigned n)
{
	return line_sigma(&w->line, walk_place(w, n)) >
	       UNSURE * w->reader->tolerance;
}

/* The leap to l was right at its end: is it on the way? */
static int land(struct walk *w, struct look_landing *l)
{
	unsigned bad, good;
	int err;

	reader_set_purpose(w->reader, READER_INSIDE);
	err = look_at_spares(w, l->at, &good, &bad);
	if (err || bad) {
		l->ok = false;
		return err ? err : bisect(w, LOOK_LOW, bad);
	}
	if (w->rounds.tracks) {
		err = look_into_rounds(w, l->at, &bad);
		if (err || !bad)
			return err;
		w->events++;
		l->ok = false;
		reader_set_purpose(w->reader, READER_EVENT);
		return go_before(w, bad - 1, bad, true);
	}
	err = look_inside(w, l);
	return err || l->ok ? err : bisect(w, l->side, l->at);
}

int walk_step(struct walk *walk)
{
	unsigned most = 2 * walk->leap + 16, n;
	struct look_landing l;
	uint32_t guess;
	int err;

	walk->leapt = false;
	walk->measured = walk->plan.first;
	reader_set_purpose(walk->reader, READER_LEAP);
	if (!walk->plan.trusted && !plan_is_long(&walk->plan))
		walk_learn_round(walk);
	guess = rounds_guess(&walk->rounds, &walk->plan, walk->store);
	if (guess) {
		err = walk_event_in_round(walk, guess);
		if (err != TRACK_UNDECIDED)
			return err;
		reader_set_purpose(walk->reader, READER_LEAP);
	}
	rounds_see(&walk->rounds, &walk->plan, walk->store);
	n = plan_ahead(&walk->plan, walk->ahead,
		       most < PLAN_AHEAD ? most : PLAN_AHEAD);
	while (n && walk->ahead[n - 1].first + walk->ahead[n - 1].size >=
		    walk->limit)
		n--;
	if (plan_is_over(&walk->plan)) {
		reader_set_purpose(walk->reader, READER_EVENT);
		return walk_next_run(walk);
	}
	if (n < 2)
		return walk_event(walk);
	most = walk->leap < n - 1 ? walk->leap : n - 1;
	while (most > LEAP_START && unsure(walk, most))
		most -= most / 8 + 1;
	err = look(walk, most - most / 4, most, n - 1, &l);
	if (err || !l.at)
		return err ? err : walk_event(walk);
	walk->leaps++;
	if (!l.ok)
		return bisect(walk, l.side, l.at);
	err = land(walk, &l);
	if (err || !l.ok)
		return err;
	walk->leapt = true;
	return accept(walk, &l);
}
