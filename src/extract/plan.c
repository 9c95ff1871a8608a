/*
 * plan.c - runs that come again.
 *
 * Run n is thought to be like run n - period.  A period is believed when the
 * run that has just begun has the size of that one, and the runs before it
 * were like those before that one, as far back as a period goes; a period that
 * has been believed before is believed again when the size alone fits, so that
 * a new zone costs one round.  How many tracks a run has is taken over even
 * when its size has changed.
 */
#include <math.h>
#include <string.h>

#include "extract/phase.h"
#include "extract/plan.h"

#define PERIOD_MAX 96u
#define GUESS_RUNS 8u
/* Of a period, the part that must come again, so many runs at least, and how
 * few of them may not. */
#define PART 3u
#define LEAST_RUNS 4u
#define UNLIKE 6u
/* Revolutions: steps that differ by more are different. */
#define SAME_STEP 0.012
#define SAME_CROSS 0.02
/* Short tracks in a long run: so many runs of so many, so long at least. */
#define SHORT_RUNS 3u
#define SHORT_TRACKS 2u
#define SHORT_LEAST 0.9
#define LONG_RUN 8u

static const struct run *past(const struct plan *p, size_t back)
{
	return &p->past[p->n - back];
}

/* Run `i` from now; 0 is the present one, as it will be. */
static struct run run_at(const struct plan *p, size_t i)
{
	struct run run = p->now;
	size_t back;

	if (i) {
		/* Of the period that ends with the run before the present. */
		back = p->period - i % p->period;
		run = i % p->period ? *past(p, back) : *past(p, p->period);
	}
	return run;
}

unsigned plan_ahead(const struct plan *plan, struct ahead *ahead, unsigned max)
{
	struct run run = plan->now;
	uint32_t left = plan->expected ? plan->expected > run.count ?
			plan->expected - run.count : 0 : UINT32_MAX;
	struct ahead a = {
		.first = plan->first, .start = plan->start,
		.size = run.size, .span = run.span,
	};
	unsigned n = 0;

	if (!left && plan->trusted) {
		a.run = 1;
		run = run_at(plan, 1);
		left = run.count;
		a.size = run.size;
		a.span = run.span;
	}
	while (n < max && left) {
		ahead[n++] = a;
		a.first += a.size;
		if (--left || !plan->trusted) {
			a.start = phase_part(a.start + run.step + plan->rate);
			continue;
		}
		run = run_at(plan, ++a.run);
		left = run.count;
		a.start = phase_part(a.start + run.cross +
				     plan->cross_rate);
		a.size = run.size;
		a.span = run.span;
	}
	ahead[n] = a;
	return n;
}

static void push(struct plan *p)
{
	if (p->n == PLAN_RUNS) {
		memmove(p->past, p->past + PLAN_RUNS / 2,
			PLAN_RUNS / 2 * sizeof(*p->past));
		p->n = PLAN_RUNS / 2;
	}
	p->past[p->n++] = p->now;
}

void plan_pass(struct plan *plan, const struct ahead *track)
{
	struct run next;

	if (plan->expected && plan->now.count >= plan->expected &&
	    plan->trusted) {
		next = run_at(plan, 1);
		next.first = track->first;
		next.start = track->start;
		plan->expected = next.count;
		next.count = 0;
		push(plan);
		plan->now = next;
	}
	plan->now.count++;
}

static bool near(double a, double b, double tolerance)
{
	return fabs(phase_wrap(a - b)) <= tolerance;
}

static bool like(const struct run *a, const struct run *b)
{
	return a->count == b->count && a->size == b->size &&
	       near(a->cross, b->cross, SAME_CROSS) &&
	       (a->count < 3 || near(a->step, b->step, SAME_STEP));
}

/* Of a period, the runs that must come again.  Of long ones a part is enough:
 * in a zone of few cycles all would never be seen twice. */
static size_t runs_again(const struct plan *p, size_t period)
{
	size_t most = period / PART > LEAST_RUNS ? period / PART : LEAST_RUNS;

	for (size_t i = 1; i <= most && i <= p->n; i++) {
		if (past(p, i)->count < LONG_RUN)
			return period;
	}
	return most < period ? most : period;
}

/* Do the runs before the present one come again with this period?  A long one
 * in some may be cut by slips or something unknown. */
static bool comes_again(const struct plan *p, size_t period)
{
	size_t most = runs_again(p, period), unlike = 0, i = 1;
	size_t may = most < period ? most / UNLIKE : 0;

	if (past(p, period)->size != p->now.size ||
	    !near(past(p, period)->cross, p->now.cross, SAME_CROSS))
		return false;
	for (; i <= most && i + period <= p->n; i++) {
		unlike += !like(past(p, i), past(p, i + period));
		if (unlike > may)
			return false;
	}
	return i > most || i > 2 || i > period / 2;
}

static bool find_period(struct plan *p)
{
	size_t had = p->period;

	for (size_t i = 1; i <= PERIOD_MAX && i < p->n; i++) {
		if (comes_again(p, i)) {
			p->period = i;
			return true;
		}
	}
	/* In a new zone, once round. */
	return had && had <= p->n && past(p, had)->size == p->now.size &&
	       near(past(p, had)->cross, p->now.cross, SAME_CROSS) &&
	       (had == 1 || past(p, had - 1)->size != p->now.size);
}

/* The count that the last runs had most often. */
static uint32_t usual_count(const struct plan *p)
{
	size_t k = p->n < 16 ? p->n : 16, best = 0;
	uint32_t count = 0;

	for (size_t i = 1; i <= k; i++) {
		size_t votes = 0;

		for (size_t m = 1; m <= k; m++)
			votes += past(p, m)->count == past(p, i)->count;
		if (votes > best) {
			best = votes;
			count = past(p, i)->count;
		}
	}
	return best > 1 ? count : 0;
}

/* What is foretold from one must be what is passed as the other. */
static void same_cross(struct run *a, struct run *b)
{
	a->cross = phase_part(a->cross + phase_wrap(b->cross - a->cross) / 2);
	b->cross = a->cross;
}

static bool is_short(const struct run *run, uint32_t size)
{
	return run->count <= SHORT_TRACKS && run->size < size &&
	       run->size > SHORT_LEAST * size;
}

/* Was all since the last long run, which was like this one, short? */
static bool resume(struct plan *p, const struct run *run)
{
	uint32_t count = p->now.count + run->count;
	size_t k = 1;

	if (!p->now.count || !is_short(&p->now, run->size))
		return false;
	for (; k <= SHORT_RUNS && k <= p->n &&
	     is_short(past(p, k), run->size); k++)
		count += past(p, k)->count;
	if (k > SHORT_RUNS || k > p->n || past(p, k)->size != run->size ||
	    past(p, k)->count < LONG_RUN ||
	    !near(past(p, k)->step, run->step, SAME_STEP))
		return false;
	p->n -= k;
	p->now = p->past[p->n];
	p->now.count += count;
	p->expected = p->was_expected;
	p->trusted = p->was_trusted;
	p->rate = p->cross_rate = 0;
	return true;
}

void plan_begin(struct plan *plan, const struct run *run)
{
	const struct run *old;

	if (resume(plan, run))
		return;
	if (plan->now.count >= LONG_RUN) {
		plan->was_expected = plan->expected;
		plan->was_trusted = plan->trusted;
	}
	if (plan->now.count)
		push(plan);
	plan->now = *run;
	plan->trusted = find_period(plan);
	plan->rate = plan->cross_rate = 0;
	plan->expected = 0;
	if (plan->trusted) {
		old = past(plan, plan->period);
		plan->expected = old->count;
		same_cross(&plan->past[plan->n - plan->period], &plan->now);
		if (old->count > 1 && near(old->step, run->step, SAME_STEP))
			plan->now.step = old->step;
	} else if (plan->n) {
		/* The last run of a zone may be shorter than the others; those
		 * of the next one have the usual number. */
		plan->expected = usual_count(plan);
		for (size_t i = 1; i <= plan->n && i < 48; i++) {
			old = past(plan, i);
			if (old->count > 8 &&
			    near(old->step, run->step, SAME_STEP)) {
				plan->now.step = old->step;
				break;
			}
		}
	}
	if (plan->expected == 1 && !plan->trusted)
		plan->expected = 0;
}

void plan_forget(struct plan *plan)
{
	plan->n = plan->period = 0;
	plan->expected = 0;
	plan->trusted = false;
	plan->rate = plan->cross_rate = 0;
}

unsigned plan_cycle(const struct plan *plan)
{
	unsigned tracks = 0;

	for (size_t i = 1; plan->trusted && i <= plan->period; i++)
		tracks += past(plan, i)->count;
	return tracks;
}

unsigned plan_round(const struct plan *plan)
{
	bool uneven = false;

	for (size_t i = 1; plan->trusted && i <= plan->period; i++)
		uneven |= past(plan, i)->size != plan->now.size;
	return uneven ? plan_cycle(plan) : 0;
}

unsigned plan_sizes(const struct plan *plan, uint32_t *sizes, unsigned max)
{
	unsigned n = 0;

	sizes[n++] = plan->now.size;
	for (size_t i = 1; i <= plan->n && n < max; i++)
		sizes[n++] = past(plan, i)->size;
	return n;
}

uint32_t plan_guess(const struct plan *plan)
{
	uint32_t size = plan->now.size;

	if (plan->trusted && plan->period && plan->period <= plan->n &&
	    plan->period > 1)
		return past(plan, plan->period - 1)->size;
	/* Short tracks, as zones end in, say nothing of those to come. */
	for (size_t i = 1; i <= plan->n && i <= GUESS_RUNS; i++)
		size = past(plan, i)->size > size ? past(plan, i)->size : size;
	return size;
}
