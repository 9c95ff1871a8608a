/*
 * plan.c - runs that come again.
 *
 * Run n is thought to be like run n - period.  A period is believed when the
 * run that has just begun has the size of that one, and some runs before it
 * were like those before that one.  How many tracks a run has is what most at
 * its place had: some are cut by defects, those of the last group of a zone all
 * alike.
 *
 * In a new zone the heads come in the same order: their sizes are known once
 * each of the old sizes has been seen as a new one, and about known before.
 * Serpentines may go back over the heads with each group: that is foreseen from
 * the first turn on.
 */
#include <math.h>
#include <string.h>

#include "extract/probe/phase.h"
#include "extract/track/plan.h"

#define PERIOD_MAX 96u
#define GUESS_RUNS 8u
/* Of a period of long runs, those that must come again. */
#define FEW 3u
/* Runs of which each has a vote on the count; of those at the same place of a
 * pattern. */
#define VOTERS 16u
#define PLACE_VOTERS 7u
/* Revolutions: steps that differ by more are different. */
#define SAME_STEP 0.012
#define SAME_CROSS 0.02
/* Short tracks in a long run: so many runs of so many, so long at least. */
#define SHORT_RUNS 3u
#define SHORT_TRACKS 2u
#define SHORT_LEAST 0.9
#define LONG_RUN 8u
/* Of the last runs, so many lack as many units in sum, if spares are why. */
#define SPARED_RUNS 3u
#define ROW_LEAST 2u
#define ROW_MOST 64u
/* Periods in which a track lacked as many units, before that is its size. */
#define LACKS_PERIODS 2u
/* Runs one after another that were longer than foretold, so that no count is
 * believed any more. */
#define OVERRAN_MAX 2u
/* From zone to zone all sizes change by the same part, and a unit or two. */
#define SAME_RATIO 0.003
#define RATIO_UNITS 2.0

static const struct run *past(const struct plan *p, size_t back)
{
	return &p->past[p->n - back];
}

/* Is it of another zone? */
static bool is_stale(const struct plan *p, size_t back)
{
	return p->n - back < p->stale;
}

static bool near(double a, double b, double tolerance)
{
	return fabs(phase_wrap(a - b)) <= tolerance;
}

static bool is_long(const struct run *run)
{
	return run->count >= LONG_RUN;
}

/* The count most of some past runs had that lie `apart`; *votes: so many. */
static uint32_t vote(const struct plan *p, size_t back, size_t apart,
		     unsigned voters, unsigned *votes)
{
	/* Other zones may have begun otherwise. */
	size_t old = apart > 1 && !is_stale(p, back) &&
		     p->stale > p->uncounted ? p->stale : p->uncounted;
	size_t n = p->n - old;
	size_t end = back + voters * apart < n + 1 ? back + voters * apart :
						     n + 1;
	uint32_t count = 0;

	*votes = 0;
	for (size_t a = back; a < end; a += apart) {
		unsigned same = 0;

		for (size_t b = a; b < end; b += apart)
			same += !past(p, b)->cut &&
				past(p, b)->count == past(p, a)->count;
		if (same > *votes) {
			*votes = same;
			count = past(p, a)->count;
		}
	}
	return count;
}

/* The count that the last runs had most often. */
static uint32_t usual_count(const struct plan *p)
{
	unsigned votes;
	uint32_t count = vote(p, 1, 1, VOTERS, &votes);

	return votes > 1 ? count : 0;
}

/* Of the run before the present one that the run `i` from now is like. */
static size_t back_of(const struct plan *p, size_t i)
{
	return p->period - i % p->period;
}

/* How many tracks has the run `i` from now, if no zone ends? */
static uint32_t whole_count(const struct plan *p, size_t i)
{
	size_t back = back_of(p, i);
	uint32_t last = past(p, back)->count, count, usual;
	unsigned votes;

	count = vote(p, back, p->period, PLACE_VOTERS, &votes);
	if (last < LONG_RUN && usual_count(p) < LONG_RUN)
		return votes > 1 ? count : last;
	usual = votes > 1 ? count : usual_count(p);
	if (votes < 2)
		count = usual >= LONG_RUN && last < usual + usual / 8 ? usual :
									last;
	return count;
}

static uint32_t count_of(const struct plan *p, size_t i)
{
	uint32_t count = whole_count(p, i);

	return p->cut && p->cut < count ? p->cut : count;
}

/* What a size of the last zone is in this one; 0: that has not been seen. */
static uint32_t size_now(const struct plan *p, uint32_t was)
{
	if (p->now.was == was)
		return p->now.size;
	for (size_t i = 1; i <= p->n && !is_stale(p, i); i++) {
		if (past(p, i)->was == was)
			return past(p, i)->size;
	}
	return 0;
}

/* Run `i` from now; 0 is the present one, as it will be.  Size 0: it is not
 * known. */
static struct run run_at(const struct plan *p, size_t i)
{
	struct run run = p->now;
	size_t back;

	if (!i)
		return run;
	/* Of the period that ends with the run before the present. */
	back = back_of(p, i);
	if (back < p->period)
		run = *past(p, back);
	else if (p->n == p->stale)
		run.cross = past(p, back)->cross;
	run.count = count_of(p, i);
	run.lacks = 0;
	run.cut = p->cut && run.count == p->cut;
	if (back < p->period && is_stale(p, back)) {
		run.was = run.size;
		run.size = size_now(p, run.size);
	}
	return run;
}

/* Is it known what comes after the present run? */
static bool foresees(const struct plan *p)
{
	return p->period && p->period <= p->n && run_at(p, 1).size;
}

/* May a run of so many tracks end with spares? */
static bool is_row(uint32_t tracks)
{
	return tracks >= ROW_LEAST;
}

/* The units that runs lack, as a rule: spares in their last tracks, from
 * which slips in others are taken.  0: there are none. */
static uint32_t usual_spares(const struct plan *p)
{
	size_t from = p->n > VOTERS ? p->n - VOTERS : 0;
	unsigned most = 0, voters = 0;
	uint32_t lacks = 0;

	for (size_t a = from; a < p->n; a++) {
		const struct run *run = &p->past[a];
		unsigned same = 0;

		if (!is_row(run->count))
			continue;
		voters++;
		for (size_t b = from; b < p->n; b++)
			same += is_row(p->past[b].count) &&
				p->past[b].lacks == run->lacks;
		if (same > most) {
			most = same;
			lacks = run->lacks;
		}
	}
	return most >= SPARED_RUNS && 2 * most > voters ? lacks : 0;
}

/* The track of a run that has so many left with it. */
static void set_size(const struct run *run, uint32_t left, uint32_t spares,
		     struct ahead *a)
{
	a->size = a->whole = run->size;
	a->spares = spares && left == 1 && spares < run->size / 2;
	if (a->spares && spares > run->lacks)
		a->size -= spares - run->lacks;
	a->span = run->span * a->size / run->size;
}

unsigned plan_ahead(const struct plan *plan, struct ahead *ahead, unsigned max)
{
	uint32_t spares = is_row(plan->expected) ? usual_spares(plan) : 0;
	struct run run = plan->now, next;
	uint32_t left = plan->expected ? plan->expected > run.count ?
			plan->expected - run.count : 0 : UINT32_MAX;
	struct ahead a = { .first = plan->first, .start = plan->start };
	unsigned n = 0;

	if (!left && plan->trusted) {
		a.run = 1;
		run = run_at(plan, 1);
		left = run.count;
	}
	set_size(&run, left, spares, &a);
	while (n < max && left) {
		ahead[n++] = a;
		a.first += a.size;
		if (--left || !plan->trusted) {
			a.start = phase_part(a.start + run.step + plan->rate);
			set_size(&run, left, spares, &a);
			continue;
		}
		next = run_at(plan, a.run + 1);
		a.start = phase_part(a.start + plan->cross_rate +
				     (next.size ? next.cross : run.step));
		if (next.size) {
			a.run++;
			run = next;
			left = run.count;
		}
		set_size(&run, left, spares, &a);
	}
	ahead[n] = a;
	return n;
}

bool plan_is_long(const struct plan *plan)
{
	for (size_t i = 1; i <= plan->n && i <= GUESS_RUNS; i++) {
		if (is_long(past(plan, i)))
			return true;
	}
	return is_long(&plan->now);
}

void plan_resize(struct plan *plan, uint32_t size)
{
	struct run *now = &plan->now;

	now->lacks += now->count * (size - now->size);
	now->span *= (double)size / now->size;
	now->size = size;
}

bool plan_is_over(const struct plan *plan)
{
	return plan->expected && !plan->trusted &&
	       plan->now.count >= plan->expected;
}

static void push(struct plan *p)
{
	if (p->n == PLAN_RUNS) {
		memmove(p->past, p->past + PLAN_RUNS / 2,
			PLAN_RUNS / 2 * sizeof(*p->past));
		p->n = PLAN_RUNS / 2;
		p->stale -= p->stale < p->n ? p->stale : p->n;
		p->uncounted -= p->uncounted < p->n ? p->uncounted : p->n;
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
		plan->overran = 0;
		plan->trusted = foresees(plan);
	}
	plan->now.count++;
	plan->now.lacks += track->whole - track->size;
}

/* As far as one of the last odd tracks from the next, all of which lack as many
 * units: the tracks of a cylinder, the last of which has its spares, while
 * angles don't tell where it ends.  0: they are not. */
static uint32_t odds_apart(const struct plan *p)
{
	const struct plan_odd *odd = p->odd;
	uint32_t apart = odd[1].track - odd[0].track;

	if (!odd[0].lacks || apart < ROW_LEAST || apart > ROW_MOST)
		return 0;
	for (unsigned i = 1; i < PLAN_ODDS; i++) {
		if (odd[i].lacks != odd[0].lacks ||
		    odd[i].track - odd[i - 1].track != apart)
			return 0;
	}
	return apart;
}

/* The present run is many, of so many tracks each, the last of which has just
 * ended. */
static void split(struct plan *p, uint32_t tracks, uint32_t lacks)
{
	struct run run = p->now;

	plan_forget(p);
	run.count = tracks;
	run.lacks = lacks;
	run.cross = run.step;
	run.was = 0;
	run.cut = false;
	for (p->n = 0; p->n < PLAN_ODDS; p->n++)
		p->past[p->n] = run;
	p->now = run;
	p->period = 1;
	p->expected = tracks;
	p->trusted = true;
}

/* Has a run of one track lacked as much in the last periods, too?  Then that is
 * no slip: it was measured where another one made up for its spares. */
static bool lacks_again(const struct plan *p)
{
	if (!p->trusted || p->expected != 1 || p->now.count != 1)
		return false;
	for (size_t i = 1; i <= LACKS_PERIODS; i++) {
		if (i * p->period > p->n ||
		    past(p, i * p->period)->lacks != p->now.lacks)
			return false;
	}
	return true;
}

void plan_slip(struct plan *plan, int32_t units)
{
	struct plan *p = plan;
	uint32_t apart;

	p->now.lacks += (uint32_t)units;
	if (units > 0 && lacks_again(p))
		plan_resize(p, p->now.size - p->now.lacks);
	/* It is the last of its run, which began elsewhere than it seemed. */
	if (units > 0 && p->trusted && is_row(p->expected) &&
	    p->now.count < p->expected && p->now.lacks == usual_spares(p) &&
	    (uint32_t)units == p->now.lacks && !is_long(&p->now))
		p->now.count = p->expected;
	if (p->expected || units <= 0)
		return;
	memmove(p->odd, p->odd + 1, (PLAN_ODDS - 1) * sizeof(*p->odd));
	p->odd[PLAN_ODDS - 1] =
		(struct plan_odd){ p->now.count, (uint32_t)units };
	apart = odds_apart(p);
	if (apart)
		split(p, apart, (uint32_t)units);
}

/* Not more runs than there are are of another zone. */
static void shrink(struct plan *p)
{
	p->stale = p->stale < p->n ? p->stale : p->n;
	p->uncounted = p->uncounted < p->n ? p->uncounted : p->n;
}

void plan_undo(struct plan *plan, uint32_t less)
{
	plan->now.lacks -= less < plan->now.lacks ? less : plan->now.lacks;
	if (plan->now.count > 1 || !plan->n) {
		plan->now.count -= plan->now.count > 0;
		return;
	}
	plan->now = plan->past[--plan->n];
	plan->expected = plan->now.count;
	shrink(plan);
}

/* How a zone begins says nothing of how its runs follow each other. */
static bool crosses_like(const struct plan *p, const struct run *run,
			 size_t back)
{
	size_t i = p->n - back;

	return !i || i == p->stale || isnan(run->cross) ||
	       near(past(p, back)->cross, run->cross, SAME_CROSS);
}

/* Are runs the same part of a pattern?  Long ones may have been cut. */
static bool like(const struct plan *p, size_t a, size_t b)
{
	const struct run *x = past(p, a), *y = past(p, b);

	return x->size == y->size &&
	       (x->count == y->count || (is_long(x) && is_long(y))) &&
	       crosses_like(p, x, b) &&
	       (x->count < 3 || y->count < 3 ||
		near(x->step, y->step, SAME_STEP));
}

static bool begins_like(const struct plan *p, size_t back)
{
	return back <= p->n && past(p, back)->size == p->now.size &&
	       crosses_like(p, &p->now, back);
}

/* How many of the runs before the present one come again with this period? */
static size_t again(const struct plan *p, size_t period)
{
	size_t i = 1;

	while (i + period <= p->n && i <= PERIOD_MAX &&
	       like(p, i, i + period))
		i++;
	return i - 1;
}

/* Do so many make a period?  Of long runs a few are enough: in a zone of few
 * cycles all would never be seen twice. */
static bool is_enough(const struct plan *p, size_t period, size_t n)
{
	size_t few = period < FEW ? period : FEW;

	if (usual_count(p) >= LONG_RUN)
		return n >= few;
	return n >= period || (n + period >= p->n &&
			       (n > 1 || n + 1 > period / 2));
}

/* The shortest, or a longer one that goes further back and of which all has
 * come again: else it would only step over the one run that was unlike the
 * others.  0: there is none. */
static size_t find_period(const struct plan *p)
{
	size_t best = 0, most = 0, n;

	for (size_t i = 1; i <= PERIOD_MAX && i < p->n; i++) {
		n = begins_like(p, i) ? again(p, i) : 0;
		if (!begins_like(p, i) || !is_enough(p, i, n))
			continue;
		if (!best || (n > most && n >= i)) {
			most = n;
			best = i;
		}
	}
	return best;
}

/* ---- other zones ---- */

/* Is a run that head's in another zone? */
static bool is_scaled(const struct run *run, const struct run *old,
		      double ratio)
{
	double expected = old->size * ratio;

	return fabs(run->size - expected) <=
	       RATIO_UNITS + SAME_RATIO * expected;
}

/* Are the last runs, which are of a new zone, those so far back? */
static bool begins_as(const struct plan *p, size_t back)
{
	double ratio = (double)p->now.size / past(p, back)->size;
	bool uneven = false;

	for (size_t i = 1; !is_stale(p, i); i++) {
		if (back + i > p->n ||
		    !is_scaled(past(p, i), past(p, back + i), ratio))
			return false;
		uneven |= past(p, i)->size != p->now.size;
	}
	return uneven;
}

/* Zones may begin with the first head whichever would have come next.  False:
 * the heads do not come as in the last one. */
static bool shift(struct plan *p)
{
	size_t d = p->period;

	while (d <= p->n && d <= 2 * PERIOD_MAX && !begins_as(p, d))
		d++;
	if (d > p->n || d > 2 * PERIOD_MAX)
		return false;
	for (size_t i = 1; !is_stale(p, i); i++)
		p->past[p->n - i].was = past(p, d + i)->size;
	p->whole = p->period;
	p->period = d;
	p->ratio = (double)p->now.size / past(p, d)->size;
	return true;
}

/* The present run is none that was foretold: is it what comes at its place in
 * a new zone? */
static void enter_zone(struct plan *p)
{
	const struct run *old = past(p, p->period);

	if (!is_stale(p, p->period)) {
		p->stale = p->n;
		p->ratio = (double)p->now.size / old->size;
		p->cut = 0;
	} else if (!is_scaled(&p->now, old, p->ratio) && !shift(p)) {
		p->period = p->whole = 0;
		return;
	}
	p->now.was = past(p, p->period)->size;
}

/* What is foretold from the run a period ago must be what is passed as the
 * present one. */
static void same_cross(struct plan *p)
{
	struct run *a = &p->past[p->n - p->period], *b = &p->now;

	if (isnan(b->cross))
		b->cross = a->cross;
	else if (near(a->cross, b->cross, SAME_CROSS))
		b->cross = phase_part(a->cross +
				      phase_wrap(b->cross - a->cross) / 2);
	a->cross = b->cross;
}

static bool is_short(const struct run *run, uint32_t size)
{
	return run->count <= SHORT_TRACKS && run->size < size &&
	       run->size > SHORT_LEAST * size;
}

/* As it was foretold before what was short. */
static void recall(struct plan *p)
{
	p->expected = p->was.expected;
	p->trusted = p->was.trusted;
	p->period = p->was.period;
	p->whole = p->was.whole;
	p->stale = p->was.stale;
	p->ratio = p->was.ratio;
	p->cut = p->was.cut;
	p->rate = p->cross_rate = 0;
	shrink(p);
}

/* Was all since the last long run, which was like this one, short? */
static bool resume(struct plan *p, const struct run *run)
{
	uint32_t count = p->now.count + run->count;
	uint32_t lacks = p->now.count * (run->size - p->now.size);
	size_t k = 1;

	if (!p->now.count || !is_short(&p->now, run->size))
		return false;
	for (; k <= SHORT_RUNS && k <= p->n &&
	     is_short(past(p, k), run->size); k++) {
		count += past(p, k)->count;
		lacks += past(p, k)->count * (run->size - past(p, k)->size);
	}
	if (k > SHORT_RUNS || k > p->n || past(p, k)->size != run->size ||
	    (past(p, k)->count < LONG_RUN && usual_count(p) < LONG_RUN) ||
	    !near(past(p, k)->step, run->step, SAME_STEP))
		return false;
	p->n -= k;
	p->now = p->past[p->n];
	p->now.count += count;
	p->now.lacks += lacks;
	recall(p);
	return true;
}

/* Where all are of one size, runs that were foretold too short were passed as
 * if they had been: it takes long until that shows. */
void plan_overrun(struct plan *plan)
{
	bool even = plan->n && past(plan, 1)->size == plan->now.size;

	plan->expected = 0;
	plan->trusted = false;
	plan->cut = 0;
	if (++plan->overran > OVERRAN_MAX || even)
		plan->uncounted = plan->n;
}

/* The present run has ended.  What is shorter than it should be is so because
 * the zone ends, and so are the others of the group. */
static void see_end(struct plan *p, const struct run *next)
{
	uint32_t count = p->now.count;

	if (p->expected)
		p->overran = 0;
	if (isnan(next->cross)) {
		p->now.cut = true;
		return;
	}
	if (is_long(&p->now) && p->expected > count &&
	    p->now.size != next->size)
		p->cut = count;
	p->now.cut = p->cut && count <= p->cut;
}

/* Where in the pattern is the present run?  Is it known how it goes on? */
static bool find_place(struct plan *p)
{
	size_t found = find_period(p);
	const struct run *old;
	bool stale;

	if (found) {
		p->period = found;
		p->whole = 0;
		if (is_stale(p, found))
			p->stale = 0;
		return true;
	}
	if (p->whole && !is_stale(p, p->whole)) {
		p->period = p->whole;
		p->whole = 0;
	}
	if (!p->period || p->period > p->n)
		return false;
	old = past(p, p->period);
	stale = is_stale(p, p->period);
	if (old->size != p->now.size &&
	    (!stale || size_now(p, old->size) != p->now.size))
		enter_zone(p);
	else if (!crosses_like(p, &p->now, p->period))
		return false;
	else if (stale)
		p->now.was = old->size;
	return foresees(p);
}

void plan_begin(struct plan *plan, const struct run *run)
{
	double cross = run->cross;
	const struct run *old;
	uint32_t count = 0, lacks = 0;

	if (resume(plan, run))
		return;
	if (!is_short(&plan->now, run->size))
		plan->was = (struct plan_long){
			plan->expected, plan->trusted, plan->period,
			plan->whole, plan->stale, plan->ratio, plan->cut
		};
	if (plan->now.count && is_short(&plan->now, run->size) &&
	    usual_count(plan) >= LONG_RUN) {
		/* A run that began with some. */
		recall(plan);
		count = plan->now.count;
		lacks = count * (run->size - plan->now.size);
		cross = plan->now.cross;
	} else if (plan->now.count) {
		see_end(plan, run);
		push(plan);
	}
	memset(plan->odd, 0, sizeof(plan->odd));
	plan->now = *run;
	plan->now.count += count;
	plan->now.lacks = lacks;
	plan->now.cross = cross;
	plan->trusted = find_place(plan);
	plan->rate = plan->cross_rate = 0;
	plan->expected = 0;
	if (plan->trusted) {
		old = past(plan, plan->period);
		plan->expected = count_of(plan, 0);
		same_cross(plan);
		if (old->count > 1 && near(old->step, run->step, SAME_STEP))
			plan->now.step = old->step;
	} else if (plan->n) {
		/* The last run of a zone may be shorter than the others; those
		 * of the next one have the usual number. */
		plan->expected = plan->cut ? plan->cut : usual_count(plan);
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
	if (isnan(plan->now.cross))
		plan->now.cross = 0;
}

void plan_forget(struct plan *plan)
{
	plan->n = plan->period = plan->stale = plan->uncounted = 0;
	plan->whole = 0;
	plan->cut = plan->overran = 0;
	plan->expected = 0;
	plan->trusted = false;
	plan->rate = plan->cross_rate = 0;
}

unsigned plan_cycle(const struct plan *plan)
{
	unsigned tracks = 0;

	for (size_t i = 1; plan->trusted && i <= plan->period; i++)
		tracks += whole_count(plan, i);
	return tracks;
}

unsigned plan_round(const struct plan *plan)
{
	bool uneven = false;

	for (size_t i = 1; plan->trusted && i <= plan->period; i++)
		uneven |= run_at(plan, i).size != plan->now.size;
	return uneven ? plan_cycle(plan) : 0;
}

uint32_t plan_guess(const struct plan *plan)
{
	uint32_t size = plan->now.size;

	if (plan->period > 1 && plan->period <= plan->n) {
		struct run next = run_at(plan, 1);

		return next.size ? next.size :
				   (uint32_t)(next.was * plan->ratio + 0.5);
	}
	/* Short tracks, as zones end in, say nothing of those to come. */
	for (size_t i = 1; i <= plan->n && i <= GUESS_RUNS; i++)
		size = past(plan, i)->size > size ? past(plan, i)->size : size;
	return size;
}
