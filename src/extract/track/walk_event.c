/*
 * walk_event.c - what a walk finds where the tracks are not as foretold: a
 * track with slips, a longer run, another run, a part of a round.
 */
#include <math.h>

#include "extract/track/walk_internal.h"

/* The first leap behind something that is understood in a run that was
 * foretold. */
#define LEAP_ON 80u
/* Tracks from event to event are a mean of so many. */
#define APART_EVENTS 8.0
/* Of a track, what slips leave of it at least; so many one after another lose
 * as much. */
#define SLIPPED_LEAST 0.97
#define FEW_SLIPPED 2u
/* No completion is later than that, but for one in thousands. */
#define LATE_MOST_NS 4e6
/* How near the angle of what comes next is to that behind missing tracks: the
 * step to another group may be nearly as long. */
#define MISSING_NOISE 3.0

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
	return walk_skip(w, from);
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
		err = walk_run_begin(w, t, t->start - w->last_start);
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

/* In rounds of single tracks, the units that those before the frontier lack
 * since the one at it came last. */
static uint32_t round_lacks(const struct plan *p)
{
	uint32_t lacks = p->now.lacks;

	if (!p->trusted || p->expected != 1)
		return 0;
	for (size_t i = 1; i + 1 < p->period && i <= p->n; i++)
		lacks += p->past[p->n - i].lacks;
	return lacks;
}

/* Is the track at the frontier longer than foretold by what slips before it
 * took from its round?  It has spares, and some of them were used. */
static bool makes_up(const struct walk *w, const struct track *t)
{
	uint32_t whole = w->ahead[0].whole;

	return t->size > whole && t->size - whole == round_lacks(&w->plan);
}

/* Past a track at the frontier that is longer than foretold. */
static int pass_longer(struct walk *w, const struct track *t, double next)
{
	struct ahead a = w->ahead[0];
	struct store_track s = { t->first, t->size, t->start, 0 };
	int err;

	a.span *= (double)t->size / a.size;
	a.size = a.whole = t->size;
	err = walk_pass_as(w, &a, &s);
	plan_slip(&w->plan, (int32_t)w->ahead[0].whole - (int32_t)t->size);
	rounds_event(&w->rounds);
	w->odd_at = 0;
	w->plan.first = t->first + t->size;
	w->plan.start = next;
	w->leapt = true;
	return err ? err : goes_on_there(w, &w->leapt);
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
	bool longer = makes_up(w, t);
	int err = 0;

	/* Its first units may be the last ones of the track before it. */
	if (longer)
		err = is_at(w, t->first, a->start + a->span / a->size,
			    &longer);
	if (err || longer)
		return err ? err : pass_longer(w, t, next);
	w->odd_times = again ? w->odd_times + 1 : 0;
	/* What so many have lost is rather another size. */
	again = w->odd_times >= (in_row(w) && is_slipped(a, t->size) ?
				 FEW_SLIPPED : 1);
	w->odd_at = t->first + t->size;
	w->odd_size = t->size;
	if (again || t->size > a->whole ||
	    (now->count < 3 && !w->plan.trusted))
		rounds_event(&w->rounds);
	if (again)
		return begin_before(w, t);
	if (now->count < 3 && !w->plan.trusted)
		return walk_run_begin(w, t, t->start - w->last_start);
	if (t->size > a->whole && goes_back(w, t))
		return walk_run_begin(w, t, t->start - w->last_start);
	if (t->size > a->whole)
		return too_long(w, before);
	rounds_event(&w->rounds);
	err = begins_there(w, t, &w->leapt);
	if (!err)
		err = walk_pass_as(w, a, &s);
	w->slips++;
	w->plan.first = t->first + t->size;
	w->plan.start = next;
	if (!err && w->leapt)
		err = goes_on_there(w, &w->leapt);
	/* But for that a plan of long runs was right. */
	if (!err && w->leapt && w->streak && plan_is_long(&w->plan))
		w->streak--;
	if (!err && !w->rounds.tracks && !plan_is_long(&w->plan))
		walk_learn_round(w);
	return err;
}

/* Does a track end where the next one is foretold to begin, by its angle? */
static bool ends_there(const struct walk *w, const struct track *t)
{
	return fabs(phase_wrap(t->next - w->ahead[1].start)) <=
	       1.3 * w->reader->tolerance;
}

/* Past a track that does. */
static int end_there(struct walk *w, struct track *t)
{
	double start = w->ahead[1].start;
	int err;

	t->next = start + walk_learn(w, 1, phase_wrap(t->next - start));
	if (t->size != w->ahead[0].size)
		return odd(w, t, t->next);
	/* As predicted: what was wrong is behind it, or was late. */
	err = walk_pass(w, 1);
	w->plan.start = t->next;
	w->leapt = true;
	return err;
}

/* The track at the frontier does not follow its run's line: it begins one of
 * another size, or is none that can be measured. */
static int another_size(struct walk *w)
{
	const struct ahead *a = w->ahead;
	struct track t;
	int err = walk_measure(w, &t, a->first);

	if (err == TRACK_UNDECIDED || (!err && fabs(phase_wrap(t.start -
				a->start)) > 1.3 * w->reader->tolerance))
		return walk_skip(w, a->first + a->size * 3 / 2);
	if (!err && w->rounds.tracks && w->plan.trusted &&
	    is_slipped(a, t.size) && ends_there(w, &t))
		return end_there(w, &t);
	return err ? err : walk_run_begin(w, &t, t.start - w->last_start);
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
	err = walk_pass_as(w, &w->ahead[0], &s);
	w->plan.first = t->first + t->size;
	w->plan.start = t->next;
	if (err || w->plan.first >= w->limit)
		return err;
	err = walk_measure(w, &n, w->plan.first);
	if (err == TRACK_UNDECIDED)
		return walk_skip(w, w->plan.first + w->plan.now.size * 3 / 2);
	return err ? err : walk_run_begin(w, &n, cross);
}

/* The present run should have ended at the frontier: has it? */
int walk_next_run(struct walk *w)
{
	double near = 1.3 * w->reader->tolerance;
	struct run *now = &w->plan.now;
	struct track t;
	int err = walk_measure(w, &t, w->plan.first);

	w->calm = 0;
	w->leap = LEAP_START;
	if (err == TRACK_UNDECIDED)
		return walk_skip(w, w->plan.first + now->size * 3 / 2);
	if (err || t.size != now->size ||
	    fabs(phase_wrap(t.start - w->plan.start)) > near)
		return err ? err :
			     walk_run_begin(w, &t, t.start - w->last_start);
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
int walk_event(struct walk *w)
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
	go_on = phase_wrap(t.next - t.start - now->step);
	if (!ends_there(w, &t) && !a->run && fabs(go_on) <= near) {
		/* A longer run than was thought. */
		plan_overrun(&w->plan);
		plan_ahead(&w->plan, w->ahead, 2);
	}
	if (ends_there(w, &t))
		return end_there(w, &t);
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
int walk_event_in_round(struct walk *w, uint32_t size)
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
		return walk_run_begin(w, &t, cross);
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
