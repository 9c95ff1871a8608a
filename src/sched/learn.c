/*
 * learn.c - nobody sees when a head arrives: a completion only tells whether
 * the target was met the first time it came by.  So:
 *
 *  - a target met that should have been missed, or missed that should have been
 *    met, moves the correction of that distance towards it (an estimate that is
 *    contradicted as often from both sides is the median);
 *  - around the corrected arrival the share of misses is counted by how far
 *    ahead the target was.  The guard is the shortest distance from which on no
 *    more than 2 % are missed.  Old counts fade, and where nothing has been
 *    counted a target is taken to be met: so the guard is tried out downwards;
 *    step by step at first, and doubled by misses one after another, which say
 *    that it is the arrival that is wrong.
 *
 * A move of a write teaches its settling; no move at all, the overhead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/learn.h"

#define STEPS_A_TURN 128u
/* The guard before anything is known: 5 % of a revolution. */
#define GUARD_START 6u
/* So many steps are looked at together. */
#define GUARD_WINDOW 6u
#define FADE_AT 400u
/* The most by misses one after another: what 15 % of a turn allow. */
#define CAUTION_MOST 19u
/* A step less after so many that were met. */
#define CAUTION_MET 4u

int learn_init(struct learn *learn, const struct service_mech *mech,
	       uint64_t read_overhead_ns, uint64_t write_overhead_ns)
{
	*learn = (struct learn){
		.seek_n = mech->seek_n,
		.switch_ns = mech->head_switch_ns,
		.settle_ns = mech->write_settle_ns,
		.overhead_given_ns = { read_overhead_ns, write_overhead_ns },
	};
	learn->seek = malloc(mech->seek_n * sizeof(*learn->seek));
	if (!learn->seek)
		return -ENOMEM;
	memcpy(learn->seek, mech->seek, mech->seek_n * sizeof(*learn->seek));
	learn_forget(learn);
	return 0;
}

void learn_forget(struct learn *learn)
{
	int kind;

	memset(learn->bin_ns, 0, sizeof(learn->bin_ns));
	learn->settle_off_ns = 0;
	for (kind = 0; kind < LEARN_KINDS; kind++) {
		learn->overhead_off_ns[kind] = 0;
		learn->steps[kind] = (struct learn_steps){
			.guard_steps = GUARD_START,
			.caution_steps = GUARD_START,
		};
	}
}

void learn_fini(struct learn *learn)
{
	free(learn->seek);
	learn->seek = NULL;
}

static unsigned bin_of(uint32_t cylinders, bool switched)
{
	unsigned log = 0;

	if (!cylinders)
		return switched;
	while (cylinders >> (log + 1))
		log++;
	return 2 + 2 * log + (log && cylinders >> (log - 1) & 1);
}

static void steps_fade(struct learn_steps *steps)
{
	unsigned i, seen = 0;

	for (i = 0; i < LEARN_STEPS; i++)
		seen += steps->seen[i];
	if (seen < FADE_AT)
		return;
	for (i = 0; i < LEARN_STEPS; i++) {
		steps->seen[i] /= 2;
		steps->missed[i] /= 2;
	}
}

/* Are more than 2 % missed in the steps from `first` on?  One may be. */
static bool steps_miss(const struct learn_steps *steps, unsigned first)
{
	unsigned i, seen = 0, missed = 0;

	for (i = first; i < LEARN_STEPS && i < first + GUARD_WINDOW; i++) {
		seen += steps->seen[i];
		missed += steps->missed[i];
	}
	return steps->missed[first] && missed * 50 > seen + 25;
}

static void steps_heed(struct learn_steps *steps, bool met)
{
	unsigned caution = 2 * steps->guard_steps;

	if (met) {
		steps->missed_run = 0;
		if (steps->caution_steps && ++steps->met >= CAUTION_MET) {
			steps->met = 0;
			steps->caution_steps--;
		}
	} else if (++steps->missed_run > 1) {
		if (caution < 2 * steps->caution_steps)
			caution = 2 * steps->caution_steps;
		steps->caution_steps = caution < CAUTION_MOST ? caution :
								CAUTION_MOST;
		steps->met = 0;
	}
}

static void steps_count(struct learn_steps *steps, int64_t offset_ns, bool met,
			uint64_t period_ns)
{
	uint64_t step = (uint64_t)offset_ns * STEPS_A_TURN / period_ns;
	unsigned guard = LEARN_STEPS;

	if (step >= LEARN_STEPS)
		return;
	steps_fade(steps);
	steps->seen[step]++;
	steps->missed[step] += !met;
	while (guard && !steps_miss(steps, guard - 1))
		guard--;
	/* Never all: a reading is as fine as a step. */
	steps->guard_steps = guard ? guard : 1;
	steps_heed(steps, met);
}

static void move_by(int64_t *what_ns, int64_t by_ns, uint64_t period_ns)
{
	int64_t most = (int64_t)period_ns / 4;

	*what_ns += by_ns;
	if (*what_ns > most)
		*what_ns = most;
	if (*what_ns < -most)
		*what_ns = -most;
}

/* It came later (or earlier) than expected by something like this. */
static void correct(struct learn *learn, enum learn_kind kind, unsigned bin,
		    int64_t late_ns, uint64_t period_ns)
{
	int64_t by_ns = late_ns / 4;

	if (!bin)
		move_by(&learn->overhead_off_ns[kind], by_ns, period_ns);
	else if (kind == LEARN_WRITE)
		move_by(&learn->settle_off_ns, by_ns, period_ns);
	else
		move_by(&learn->bin_ns[bin], by_ns, period_ns);
}

void learn_see(struct learn *learn, enum learn_kind kind, uint32_t cylinders,
	       bool switched, int64_t offset_ns, bool met, uint64_t period_ns)
{
	int64_t least = (int64_t)period_ns / 2048;

	if (offset_ns < 0 && met)
		correct(learn, kind, bin_of(cylinders, switched),
			offset_ns - least, period_ns);
	if (offset_ns >= 0 && !met)
		correct(learn, kind, bin_of(cylinders, switched),
			offset_ns + least, period_ns);
	if (offset_ns >= 0)
		steps_count(&learn->steps[kind], offset_ns, met, period_ns);
}

static uint64_t moved(uint64_t ns, int64_t by_ns)
{
	return by_ns < 0 && ns < (uint64_t)-by_ns ? 0 : ns + (uint64_t)by_ns;
}

void learn_apply(const struct learn *learn, struct service_mech *mech)
{
	uint32_t i;

	for (i = 0; i < learn->seek_n; i++)
		mech->seek[i].ns = moved(learn->seek[i].ns,
			learn->bin_ns[bin_of(learn->seek[i].cylinders, false)]);
	mech->head_switch_ns = moved(learn->switch_ns, learn->bin_ns[1]);
	mech->write_settle_ns = moved(learn->settle_ns, learn->settle_off_ns);
}

uint64_t learn_overhead_ns(const struct learn *learn, enum learn_kind kind)
{
	return moved(learn->overhead_given_ns[kind],
		     learn->overhead_off_ns[kind]);
}

uint64_t learn_guard_ns(const struct learn *learn, enum learn_kind kind,
			uint64_t period_ns)
{
	const struct learn_steps *steps = &learn->steps[kind];
	unsigned n = steps->guard_steps > steps->caution_steps ?
		steps->guard_steps : steps->caution_steps;

	return n * period_ns / STEPS_A_TURN;
}
