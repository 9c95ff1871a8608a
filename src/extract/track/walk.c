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

#include "extract/track/again.h"
#include "extract/track/look.h"
#include "extract/track/track.h"
#include "extract/track/walk.h"

/* Of the tolerance, what the angle at the end of a leap may be unsure by. */
#define UNSURE 0.28
/* An angle is seen from two sides. */
#define BOTH_SIDES 0.8
/* A run of so many tracks has told its step, and to how much of the noise. */
#define LONG_RUN 8u
#define STEP_KNOWN 0.16
/* Revolutions: what another run of the pattern may be off by, each by itself;
 * and what all are when they have come again some times. */
#define RUN_ANGLE 0.0015
#define RUN_STEP 2e-5
#define RUN_APART 0.0025
#define STEADY_CYCLES 2u
#define STEADY_STEP 5e-6
#define STEADY_CROSS 0.0005
/* Leaps that may fail before one of some length does not. */
#define STREAK_MAX 10u
#define STREAK_TRACKS 30u
#define LEAP_START 4u
/* The first leap in a run of which the step is known; and behind something that
 * is understood in one that was foretold. */
#define LEAP_RUN 32u
#define LEAP_ON 80u
/* Of a track, what slips leave of it at least; so many one after another lose
 * as much. */
#define SLIPPED_LEAST 0.97
#define FEW_SLIPPED 2u
/* Units that slips take from one of the first tracks of a run. */
#define ABOUT_UNITS 3u
/* No completion is later than that, but for one in thousands. */
#define LATE_MOST_NS 4e6
/* Tracks from event to event: of how many it is the mean, and what counts. */
#define APART_EVENTS 8.0
#define APART_MOST 1000.0
#define APART 3u
#define SIZES 40u
#define SKIPS 24u
#define GUESS_OFF 4.0
/* How near the angle of what comes next is to that behind missing tracks: the
 * step to another group may be nearly as long. */
#define MISSING_NOISE 3.0

/* Past a track ahead, which is as `t`. */
static int pass_as(struct walk *w, const struct ahead *a,
		   const struct store_track *t)
{
	int err = store_add(w->store, t, a->whole,
			    a->span * a->whole / a->size);

	plan_pass(&w->plan, a);
	if (t->size != a->size)
		plan_slip(&w->plan, (int32_t)a->size - (int32_t)t->size);
	w->last_start = t->start;
	w->last_end = t->start + a->span * t->size / a->size;
	return err;
}

/* Past the first n of the tracks ahead. */
static int walk_pass(struct walk *w, unsigned n)
{
	int err = 0;

	for (unsigned j = 0; j < n && !err; j++) {
		const struct ahead *a = &w->ahead[j];
		struct store_track t = { a->first, a->size, a->start, 0 };

		err = pass_as(w, a, &t);
	}
	w->steady += n;
	w->plan.first = w->ahead[n].first;
	w->plan.start = w->ahead[n].start;
	return err;
}

/* Few tracks that come again? */
static void learn_round(struct walk *w)
{
	double noise = w->reader->noise;

	if (!again_learn(w->store, &w->plan))
		return;
	line_begin(&w->line, noise, noise, noise);
	rounds_see(&w->rounds, &w->plan, w->store);
}

/* A run begins at the frontier with a track that has been measured. */
static int run_begin(struct walk *w, const struct track *t, double cross)
{
	double span = t->pitch * t->size;
	struct run run = {
		.first = t->first,
		.count = 1,
		.size = t->size,
		.start = t->start,
		.step = phase_part(t->next - t->start),
		.cross = phase_part(cross),
		.span = fabs(span - 1) < 0.012 ? 1 : span,
	};
	struct store_track s = { t->first, t->size, t->start, 0 };
	bool known;

	plan_begin(&w->plan, &run);
	w->steady = 0;
	rounds_event(&w->rounds);
	known = run.step != w->plan.now.step && w->plan.expected > LONG_RUN;
	line_begin(&w->line, w->reader->noise,
		   w->reader->noise * (known ? STEP_KNOWN : 1),
		   w->reader->noise);
	w->leap = known ? LEAP_RUN : LEAP_START;
	w->plan.first = t->first + t->size;
	w->plan.start = t->next;
	w->last_start = t->start;
	w->last_end = t->start + span;
	return store_add(w->store, &s, t->size, run.span);
}

/* A size that is not too far off; none that is only a short track's. */
static uint32_t about(const struct walk *w)
{
	uint32_t size = w->plan.now.size ? plan_guess(&w->plan) : 0;

	return size < w->guess / 2 ? w->guess : size;
}

/* `blind`: nothing that is known of others is any help. */
static int measure_as(struct walk *w, struct track *t, uint64_t first,
		      bool blind)
{
	uint32_t sizes[SIZES];
	unsigned n = w->plan.now.size ? plan_sizes(&w->plan, sizes, SIZES) : 0;
	uint32_t guess = blind ? 0 : about(w);
	double around;
	int err;

	*t = (struct track){ .first = first };
	err = track_measure(w->reader, t, guess, sizes, blind ? 0 : n);
	/* What was thought of as a size may have been a short track's. */
	around = t->pitch > 0 ? 1 / t->pitch : 0;
	if (err != TRACK_UNDECIDED || around < guess * 1.25 ||
	    around > guess * GUESS_OFF)
		return err;
	*t = (struct track){ .first = first };
	return track_measure(w->reader, t, (uint32_t)around, NULL, 0);
}

static int measure(struct walk *w, struct track *t, uint64_t first)
{
	return measure_as(w, t, first, false);
}

/* From a unit to the first track that can be measured behind it. */
static int find_track(struct walk *w, uint64_t unit, struct track *t)
{
	uint64_t at = unit, size = w->plan.now.size ? w->plan.now.size :
				   w->guess ? w->guess : 64;
	uint32_t guess = w->guess;
	bool blind;
	int err = TRACK_UNDECIDED;

	for (unsigned i = 0; err == TRACK_UNDECIDED && i < SKIPS; i++) {
		if (at + size / 8 >= w->limit)
			return TRACK_UNDECIDED;
		blind = i % 3 == 2;
		err = measure_as(w, t, at, blind);
		if (!err && t->first + t->size < w->reader->units)
			err = measure_as(w, t, t->first + t->size, blind);
		/* Other zones have other sizes. */
		if (err && w->guess > 64)
			w->guess = i % 6 == 5 ? guess : w->guess * 7 / 8;
		at += size * 7 / 10 + i / 4 * size;
	}
	return err;
}

/* Over what can't be decided, beginning at the frontier. */
static int skip(struct walk *w, uint64_t from)
{
	uint64_t at = w->plan.first;
	uint32_t before = 0;
	struct track t;
	int err;

	w->events++;
	w->leap = LEAP_START;
	rounds_event(&w->rounds);
	err = find_track(w, from, &t);
	if (err == TRACK_UNDECIDED) {
		/* The rest of the disk, or a stretch of it. */
		uint64_t to = from + 64 * (uint64_t)(w->plan.now.size + 64);

		w->there = false;
		if (to > w->limit)
			to = w->limit;
		return store_unknown(w->store, at, to - at);
	}
	if (err)
		return err;
	if (t.first + t.size > w->limit) {
		w->there = false;
		return store_unknown(w->store, at, w->limit - at);
	}
	err = store_unknown(w->store, at, t.first - at);
	if (err)
		return err;
	/* What can't be told apart is of one run at least. */
	if (t.size == w->plan.now.size && (t.first - at) % t.size == 0)
		before = (uint32_t)((t.first - at) / t.size);
	w->plan.trusted = false;
	err = run_begin(w, &t, NAN);
	w->plan.now.count += before;
	return err;
}

int walk_begin(struct walk *walk, uint64_t unit, bool on_track)
{
	struct track t;
	int err;

	walk->guess = about(walk);
	walk->event_at = unit;
	if (!(walk->apart > 0))
		walk->apart = APART_MOST;
	walk->plan = (struct plan){ .first = unit };
	walk->leap = LEAP_START;
	walk->there = true;
	reader_set_purpose(walk->reader, READER_EVENT);
	if (!on_track)
		return skip(walk, unit);
	err = measure(walk, &t, unit);
	if (err == TRACK_UNDECIDED)
		return skip(walk, unit + 64);
	return err ? err : run_begin(walk, &t, 0);
}

static struct line_place place_of(const struct walk *w, unsigned n)
{
	return (struct line_place){ n, w->ahead[n].run };
}

/* Have the runs come again as they are? */
static bool is_steady(const struct walk *w)
{
	return w->plan.trusted &&
	       w->steady > STEADY_CYCLES * plan_cycle(&w->plan);
}

/* The longer steady runs have come again, the less do they change. */
static double changes(const struct walk *w)
{
	return (double)STEADY_CYCLES * plan_cycle(&w->plan) /
	       (double)w->steady;
}

/* Track n ahead was seen at another angle than expected: what of that is its
 * own, while the rest is noise. */
static double learn(struct walk *w, unsigned n, double off)
{
	struct plan *p = &w->plan;
	double noise = BOTH_SIDES * w->reader->noise, step, cross, share;
	bool of_run = !w->ahead[n].run &&
		      (!p->trusted || p->expected > LONG_RUN);

	share = line_share(&w->line, place_of(w, n), noise, place_of(w, n));
	line_go(&w->line, place_of(w, n), noise, &step, &cross);
	*(of_run ? &p->now.step : &p->rate) += step * off;
	p->cross_rate += cross * off;
	if (w->ahead[n].run && p->now.count > LONG_RUN && is_steady(w))
		line_steady(&w->line, RUN_APART, (double)p->period,
			    STEADY_STEP * changes(w),
			    STEADY_CROSS * changes(w));
	else if (w->ahead[n].run && p->now.count > LONG_RUN)
		line_doubt(&w->line, RUN_ANGLE, RUN_STEP, w->reader->noise);
	return share * off;
}

/* No track grows: either its end was read wrong or the one before it, if that
 * was odd, `before` units long.  Neither is believed. */
static int too_long(struct walk *w, uint32_t before)
{
	uint64_t from = w->plan.first + w->plan.now.size * 3 / 2;

	if (before && w->plan.now.count > 1) {
		store_undo(w->store, w->plan.first, before);
		w->plan.first -= before;
		w->plan.start = w->last_start;
		w->plan.now.count--;
	}
	w->odd_at = 0;
	return skip(w, from);
}

/* The track at the frontier is like the one before it, which was taken for one
 * with slips: a run has begun with that. */
static int begin_before(struct walk *w, const struct track *t)
{
	struct store_track s = { t->first - t->size, t->size, w->last_start,
				 0 };
	int err;

	store_undo(w->store, t->first, t->size);
	plan_undo(&w->plan, w->plan.now.size > t->size ?
			    w->plan.now.size - t->size : 0);
	err = store_add(w->store, &s, t->size, 1);
	if (!err)
		err = run_begin(w, t, t->start - w->last_start);
	w->plan.now.count++;
	w->slips--;
	return err;
}

/* Have many tracks been alike? */
static bool in_row(const struct walk *w)
{
	return w->plan.now.count >= LONG_RUN;
}

/* May a track ahead be of that size because some sectors slipped? */
static bool is_slipped(const struct ahead *a, uint32_t size)
{
	return size < a->whole && size >= SLIPPED_LEAST * a->whole;
}

/* Does a new run go on with tracks of about its size, some of which slipped? */
static bool is_about(const struct walk *w, uint32_t size)
{
	uint32_t is = w->plan.now.size;

	return w->plan.now.count <= FEW_SLIPPED && plan_is_long(&w->plan) &&
	       (is > size ? is - size : size - is) <= ABOUT_UNITS;
}

/* Is a track larger than those of the present run because that was none: tracks
 * with slips in a longer one? */
static bool goes_back(const struct walk *w, const struct track *t)
{
	const struct plan *p = &w->plan;

	return p->n && p->past[p->n - 1].size == t->size &&
	       p->now.count <= FEW_SLIPPED &&
	       p->now.size >= SLIPPED_LEAST * t->size;
}

/* Is a unit where it should be? */
static int is_at(struct walk *w, uint64_t unit, double expected, bool *ok)
{
	double turn;
	int err = reader_expect(w->reader, unit, expected, &turn);

	*ok = fabs(phase_wrap(turn - expected)) <= w->reader->tolerance;
	return err;
}

/* May what is late be where the angle has leapt to from there? */
static bool may_be_late(const struct walk *w, double from, double to)
{
	return phase_part(to - from) * w->reader->phase.period_ns <=
	       LATE_MOST_NS;
}

/* Is the unit before a track with slips on the track before it?  If they were
 * in that one, it only seemed so by being late. */
static int begins_there(struct walk *w, const struct track *t, bool *ok)
{
	*ok = true;
	return t->first && may_be_late(w, t->start, w->last_end) ?
		       is_at(w, t->first - 1, w->last_end, ok) : 0;
}

/* Does the track at the frontier, behind one with slips, end where those put
 * it?  That one lost no more than it seems, as when its last unit lies among
 * spares.  And is its first unit not the last one of that before it, and was
 * late whenever it was read? */
static int goes_on_there(struct walk *w, bool *ok)
{
	const struct ahead *now = &w->ahead[0], *next = &w->ahead[1];
	int err;

	if (plan_ahead(&w->plan, w->ahead, 2) < 2 ||
	    next->first >= w->reader->units)
		return 0;
	err = is_at(w, next->first, next->start + next->span / next->size, ok);
	return !err && *ok && may_be_late(w, w->last_end, now->start) ?
		       is_at(w, now->first, now->start + now->span / now->size,
			     ok) : err;
}

/* The track at the frontier was not of the size it should be, but what comes
 * next is where it should be. */
static int odd(struct walk *w, struct track *t, double next)
{
	struct run *now = &w->plan.now;
	const struct ahead *a = &w->ahead[0];
	struct store_track s = { t->first, t->size, t->start, 0 };
	bool again = w->odd_at == t->first && w->odd_size == t->size;
	uint32_t before = w->odd_at == t->first ? w->odd_size : 0;
	bool about;
	int err;

	w->odd_times = again ? w->odd_times + 1 : 0;
	/* What so many have lost is rather another size. */
	again = w->odd_times >= (in_row(w) && is_slipped(a, t->size) ?
				 FEW_SLIPPED : 1);
	w->odd_at = t->first + t->size;
	w->odd_size = t->size;
	about = !w->plan.trusted && is_about(w, t->size);
	if (about && t->size > a->whole) {
		plan_resize(&w->plan, t->size);
		plan_ahead(&w->plan, w->ahead, 2);
	}
	if (again || t->size > a->whole ||
	    (now->count < 3 && !w->plan.trusted))
		rounds_event(&w->rounds);
	if (again)
		return begin_before(w, t);
	if (now->count < 3 && !w->plan.trusted && !about)
		return run_begin(w, t, t->start - w->last_start);
	if (t->size > a->whole && goes_back(w, t))
		return run_begin(w, t, t->start - w->last_start);
	if (t->size > a->whole)
		return too_long(w, before);
	rounds_event(&w->rounds);
	err = begins_there(w, t, &w->leapt);
	if (!err)
		err = pass_as(w, a, &s);
	w->slips++;
	w->plan.first = t->first + t->size;
	w->plan.start = next;
	if (!err && w->leapt)
		err = goes_on_there(w, &w->leapt);
	if (!err && !w->rounds.tracks && !plan_is_long(&w->plan))
		learn_round(w);
	return err;
}

/* The track at the frontier does not follow its run's line: it begins one of
 * another size, or is none that can be measured. */
static int another_size(struct walk *w)
{
	const struct ahead *a = w->ahead;
	struct track t;
	int err = measure(w, &t, a->first);

	if (err == TRACK_UNDECIDED || (!err && fabs(phase_wrap(t.start -
				a->start)) > 1.3 * w->reader->tolerance))
		return skip(w, a->first + a->size * 3 / 2);
	return err ? err : run_begin(w, &t, t.start - w->last_start);
}

/* A new run begins behind the track at the frontier. */
static int turn_to_new(struct walk *w, const struct track *t)
{
	struct store_track s = { t->first, t->size, t->start, 0 };
	double cross = t->next - t->start;
	struct track n;
	bool good;
	int err = track_check(w->reader, t, &good);

	if (err)
		return err;
	if (!good)
		return another_size(w);
	err = pass_as(w, &w->ahead[0], &s);
	w->plan.first = t->first + t->size;
	w->plan.start = t->next;
	if (err || w->plan.first >= w->limit)
		return err;
	err = measure(w, &n, w->plan.first);
	if (err == TRACK_UNDECIDED)
		return skip(w, w->plan.first + w->plan.now.size * 3 / 2);
	return err ? err : run_begin(w, &n, cross);
}

/* The present run should have ended at the frontier: has it? */
static int next_run(struct walk *w)
{
	double near = 1.3 * w->reader->tolerance;
	struct run *now = &w->plan.now;
	struct track t;
	int err = measure(w, &t, w->plan.first);

	w->calm = 0;
	w->leap = LEAP_START;
	if (err == TRACK_UNDECIDED)
		return skip(w, w->plan.first + now->size * 3 / 2);
	if (err || t.size != now->size ||
	    fabs(phase_wrap(t.start - w->plan.start)) > near)
		return err ? err : run_begin(w, &t, t.start - w->last_start);
	plan_overrun(&w->plan);
	plan_ahead(&w->plan, w->ahead, 2);
	err = walk_pass(w, 1);
	w->plan.start = t.next;
	return err;
}

/* How many tracks without units explain the angle of what comes next? */
static unsigned missing(const struct walk *w, const struct track *t)
{
	const struct run *now = &w->plan.now;

	if (t->size != now->size || now->count < 3 ||
	    (w->plan.expected && now->count + 1 >= w->plan.expected))
		return 0;
	for (unsigned i = 1; i <= 3; i++) {
		if (fabs(phase_wrap(t->next - t->start - (1 + i) * now->step))
		    <= MISSING_NOISE * w->reader->noise)
			return i;
	}
	return 0;
}

/* Where there is much that is odd, leaps are shorter: as far as from one such
 * place to the next, about. */
static void note_event(struct walk *w)
{
	double apart = (double)(w->plan.first - w->event_at) /
		       w->plan.now.size;

	if (w->plan.first > w->event_at)
		w->apart += (fmin(apart, APART_MOST) - w->apart) / APART_EVENTS;
	w->event_at = w->plan.first;
}

/* Measures the track at the frontier and finds out what comes next. */
static int event(struct walk *w)
{
	const struct ahead *a = w->ahead;
	struct run *now = &w->plan.now;
	struct track t = { a->first, a->start, a->span / a->size, 0, 0 };
	double near = 1.3 * w->reader->tolerance, go_on;
	unsigned gone;
	int err;

	w->calm = 0;
	reader_set_purpose(w->reader, READER_EVENT);
	err = track_find(w->reader, &t, a->first + a->size);

	note_event(w);
	w->leap = w->plan.trusted || now->count > LEAP_ON ?
		  (unsigned)fmin(LEAP_ON, w->apart / 3) + LEAP_START :
		  LEAP_START;
	if (err == TRACK_UNDECIDED)
		return another_size(w);
	if (err)
		return err;
	w->lies += w->inside && t.size != a->size;
	go_on = phase_wrap(t.next - t.start - now->step);
	if (fabs(phase_wrap(t.next - a[1].start)) > near && !a->run &&
	    fabs(go_on) <= near) {
		/* A longer run than was thought. */
		plan_overrun(&w->plan);
		plan_ahead(&w->plan, w->ahead, 2);
	}
	if (fabs(phase_wrap(t.next - a[1].start)) <= near) {
		t.next = a[1].start +
			 learn(w, 1, phase_wrap(t.next - a[1].start));
		if (t.size != a->size)
			return odd(w, &t, t.next);
		/* As predicted: what was wrong is behind it, or was late. */
		err = walk_pass(w, 1);
		w->plan.start = t.next;
		w->leapt = true;
		return err;
	}
	gone = a->run ? 0 : missing(w, &t);
	if (!gone)
		return turn_to_new(w, &t);
	err = walk_pass(w, 1);
	now->count += gone;
	w->gone += gone;
	w->plan.start = t.next;
	return err;
}

/* A track at the frontier that the plan does not know but the rounds do, as one
 * of about that size.  TRACK_UNDECIDED: it is not. */
static int event_in_round(struct walk *w, uint32_t size)
{
	struct track t = {
		.first = w->plan.first, .start = w->plan.start,
		.pitch = 1.0 / size,
	};
	struct store_track s = { t.first, 0, t.start, 0 };
	struct run *now = &w->plan.now;
	double cross;
	int err;

	if (t.first + 2 * (uint64_t)size >= w->limit)
		return TRACK_UNDECIDED;
	reader_set_purpose(w->reader, READER_EVENT);
	err = track_find_about(w->reader, &t, t.first + size);
	if (err)
		return err;
	w->calm = 0;
	w->events++;
	w->leap = LEAP_START;
	cross = phase_part(t.start - w->last_start);
	if (t.size != now->size ||
	    (now->count > 1 && fabs(phase_wrap(cross - now->step)) >
				       w->reader->tolerance))
		return run_begin(w, &t, cross);
	/* Surfaces that are alike are no runs of their own. */
	s.size = t.size;
	now->count++;
	now->step = cross;
	w->plan.first = t.first + t.size;
	w->plan.start = t.next;
	w->last_start = t.start;
	rounds_event(&w->rounds);
	return store_add(w->store, &s, t.size, now->span);
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
				line_share(&w->line, place_of(w, n), noise,
					   place_of(w, k)));
	late = learn(w, n, off);
	if (!w->ahead[n].run)
		w->plan.now.span += 0.1 * phase_wrap(low - high);
	err = walk_pass(w, n);
	w->plan.start = phase_part(w->plan.start + late);
	return err;
}

static int bisect(struct walk *w, enum look_side side, unsigned hi);

/* To the last boundary up to `lo` that both sides of are right; what comes
 * behind it is looked at.  `looked`: into rounds, too. */
static int go_before(struct walk *w, unsigned lo, unsigned hi, bool looked)
{
	struct look_landing l = { .ok = true };
	double offs[2] = { 0, 0 };
	bool ok = false;
	unsigned bad = 0, good;
	int err = looked ? 0 : look_at_spares(w, lo, &good, &bad);

	if (err || bad)
		return err ? err : bisect(w, LOOK_LOW, bad);
	if (!looked && w->rounds.tracks)
		err = look_into_rounds(w, lo, &bad);
	else if (!looked && lo > 1)
		err = look_before(w, lo, &l);
	bad = l.ok ? bad : l.at;
	if (bad) {
		hi = bad;
		lo = bad - 1;
	}
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
	return err ? err : event(w);
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
 * late is rarely late twice.  *j: the boundary; 0: none can be seen. */
static int look(struct walk *w, unsigned lo, unsigned hi, unsigned last,
		struct look_landing *l)
{
	enum look_side side;
	unsigned other;
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
	if (l->ok) {
		l->at = other;
		w->reader->outliers++;
	}
	return err;
}

/* Can't it be said any more at what angle track n ahead starts? */
static bool unsure(const struct walk *w, unsigned n)
{
	return line_sigma(&w->line, place_of(w, n)) >
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

	walk->leapt = walk->inside = false;
	reader_set_purpose(walk->reader, READER_LEAP);
	if (!walk->plan.trusted && !plan_is_long(&walk->plan))
		learn_round(walk);
	guess = rounds_guess(&walk->rounds, &walk->plan, walk->store);
	if (guess) {
		err = event_in_round(walk, guess);
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
		return next_run(walk);
	}
	if (n < 2)
		return event(walk);
	most = walk->leap < n - 1 ? walk->leap : n - 1;
	while (most > LEAP_START && unsure(walk, most))
		most -= most / 8 + 1;
	err = look(walk, most - most / 4, most, n - 1, &l);
	if (err || !l.at)
		return err ? err : event(walk);
	walk->leaps++;
	if (!l.ok)
		return bisect(walk, l.side, l.at);
	err = land(walk, &l);
	if (err || !l.ok)
		return err;
	walk->leapt = true;
	return accept(walk, &l);
}
