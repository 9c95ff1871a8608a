/*
 * walk_track.c - a walk's frontier goes past tracks that are known, is taken on
 * to one that is measured, or over what can't be decided.
 */
#include <math.h>

#include "extract/track/again.h"
#include "extract/track/walk_internal.h"

/* How far a long run tells its step, as part of the noise. */
#define STEP_KNOWN 0.16
/* Sizes that are tried for a track, tries to find one, and how far off a size
 * may be. */
#define SIZES 40u
#define SKIPS 24u
#define GUESS_OFF 4.0
/* Tracks of what is left unknown before another that is known, in which none is
 * looked for: gap.h measures so few at a tenth of the reads. */
#define HOLE_LEAST 3u
/* Tracks between two that are seen, of which one ends without a skew. */
#define FILL_MOST 6u
/* Of a turn, what units that go round once may seem not to. */
#define SPAN_WHOLE 0.012
/* Tracks that are left unknown where none is found, twice as many each time,
 * and so often at most. */
#define LOST_TRACKS UINT64_C(64)
#define LOST_MOST 20u
/* Revolutions: what another run of the pattern may be off by, each by itself;
 * and what all are when they have come again some times. */
#define RUN_ANGLE 0.0015
#define RUN_STEP 2e-5
#define RUN_APART 0.0025
#define STEADY_CYCLES 2u
#define STEADY_STEP 5e-6
#define STEADY_CROSS 0.0005

/* Past a track ahead, which is as `t`. */
int walk_pass_as(struct walk *w, const struct ahead *a,
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
int walk_pass(struct walk *w, unsigned n)
{
	int err = 0;

	for (unsigned j = 0; j < n && !err; j++) {
		const struct ahead *a = &w->ahead[j];
		struct store_track t = { a->first, a->size, a->start, 0 };

		err = walk_pass_as(w, a, &t);
	}
	w->steady += n;
	w->plan.first = w->ahead[n].first;
	w->plan.start = w->ahead[n].start;
	return err;
}

/* Few tracks that come again? */
void walk_learn_round(struct walk *w)
{
	double noise = w->reader->noise;

	if (!again_learn(w->store, &w->plan))
		return;
	line_begin(&w->line, noise, noise, noise);
	rounds_see(&w->rounds, &w->plan, w->store);
}

/* A run begins at the frontier with a track that has been measured. */
int walk_run_begin(struct walk *w, const struct track *t, double cross)
{
	double span = t->pitch * t->size;
	struct run run = {
		.first = t->first,
		.count = 1,
		.size = t->size,
		.start = t->start,
		.step = phase_part(t->next - t->start),
		.cross = phase_part(cross),
		.span = fabs(span - 1) < SPAN_WHOLE ? 1 : span,
	};
	struct store_track s = { t->first, t->size, t->start, 0 };
	bool known;

	w->lost = 0;
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
uint32_t walk_about(const struct walk *w)
{
	uint32_t size = w->plan.now.size ? plan_guess(&w->plan) : 0;

	return size < w->guess / 2 ? w->guess : size;
}

/* The sizes of the last runs, at most SIZES; returns how many. */
static unsigned likely_sizes(const struct plan *p, uint32_t *sizes)
{
	unsigned n = 0;

	if (!p->now.size)
		return 0;
	sizes[n++] = p->now.size;
	for (size_t i = 1; i <= p->n && n < SIZES; i++)
		sizes[n++] = p->past[p->n - i].size;
	return n;
}

/* `blind`: nothing that is known of others is any help. */
static int measure_as(struct walk *w, struct track *t, uint64_t first,
		      bool blind)
{
	uint32_t sizes[SIZES];
	unsigned n = likely_sizes(&w->plan, sizes);
	uint32_t guess = blind ? 0 : walk_about(w);
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

int walk_measure(struct walk *w, struct track *t, uint64_t first)
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

	if (unit + HOLE_LEAST * size > w->limit)
		return TRACK_UNDECIDED;
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

/* Past one that is thought to be there because others are like it. */
static int pass_like(struct walk *w, uint32_t size, double start, double span)
{
	const struct ahead a = {
		.first = w->plan.first, .size = size, .whole = size,
		.start = start, .span = span,
	};
	const struct store_track t = { a.first, size, start, 0 };

	w->plan.first += size;
	return walk_pass_as(w, &a, &t);
}

/*
 * No end of a track is seen between the frontier and track t.  Would one like
 * those of the present run, and then some like t, have as many units, and the
 * angles at which they begin leave no skew between the two kinds?  Then these
 * are taken for them; the proof is still to come.
 */
static int fill(struct walk *w, const struct track *t, bool *filled)
{
	double whole = 1 - LOOK_VISIBLE * w->reader->tolerance;
	double step = phase_part(t->next - t->start), skew;
	double span = t->size * t->pitch;
	uint64_t units = t->first - w->plan.first;
	struct track first = *t;
	struct ahead a;
	int err;

	plan_ahead(&w->plan, w->ahead, 2);
	a = w->ahead[0];
	*filled = w->plan.now.size && units > a.size &&
		  (units - a.size) % t->size == 0 &&
		  units < FILL_MOST * a.size &&
		  a.span > whole;
	if (!*filled)
		return 0;
	/* What one track says of it is not much. */
	span = span > whole ? 1 : span;
	first.first = a.first + a.size;
	first.start = phase_part(t->start - step *
				 (double)((t->first - first.first) / t->size));
	first.next = phase_part(first.start + step);
	skew = phase_wrap(first.start - a.start - a.span);
	*filled = fabs(skew) <= LOOK_VISIBLE * w->reader->tolerance;
	if (!*filled)
		return 0;
	err = pass_like(w, a.size, a.start, a.span);
	w->plan.trusted = false;
	if (!err)
		err = walk_run_begin(w, &first, first.start - w->last_start);
	while (!err && w->plan.first <= t->first)
		err = pass_like(w, t->size, w->last_start + step, span);
	w->plan.start = t->next;
	return err;
}

/* Over what can't be decided, beginning at the frontier. */
int walk_skip(struct walk *w, uint64_t from)
{
	uint64_t at = w->plan.first;
	uint32_t before = 0;
	struct track t;
	bool filled;
	int err;

	w->events++;
	w->leap = LEAP_START;
	rounds_event(&w->rounds);
	err = find_track(w, from, &t);
	if (err == TRACK_UNDECIDED) {
		/* The rest of the disk, or a stretch of it. */
		uint64_t to = from + (LOST_TRACKS << w->lost) *
				     (w->plan.now.size + 64);

		w->lost += w->lost < LOST_MOST;
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
	err = fill(w, &t, &filled);
	if (err || filled)
		return err;
	err = store_unknown(w->store, at, t.first - at);
	if (err)
		return err;
	/* What can't be told apart is of one run at least. */
	if (t.size == w->plan.now.size && (t.first - at) % t.size == 0)
		before = (uint32_t)((t.first - at) / t.size);
	w->plan.trusted = false;
	err = walk_run_begin(w, &t, NAN);
	w->plan.now.count += before;
	return err;
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
double walk_learn(struct walk *w, unsigned n, double off)
{
	struct plan *p = &w->plan;
	double noise = BOTH_SIDES * w->reader->noise, step, cross, share;
	bool of_run = !w->ahead[n].run &&
		      (!p->trusted || p->expected > LONG_RUN);

	share = line_share(&w->line, walk_place(w, n), noise, walk_place(w, n));
	line_go(&w->line, walk_place(w, n), noise, &step, &cross);
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
