/*
 * seek_learn.c - the arrival of a head cannot be seen: a completion only tells
 * whether the target was met the first time that it passed.  So:
 *
 *  - a target that was met and should have been missed, or missed and should
 *    have been met, moves the correction of that distance towards it (an
 *    estimate that is contradicted as often from both sides is the median);
 *    A late host makes accesses to an idle drive late; so where those to a busy
 *    one have told enough of a distance, the overhead is moved instead;
 *  - around the corrected arrival the share of misses is counted by how far
 *    ahead the target was.  The guard is the shortest distance from which on no
 *    more than 2 % are missed.  Old counts fade, and where nothing has been
 *    counted a target counts as met: so the guard is tried out downwards, step
 *    by step at first, and doubled by misses one after another, which show that
 *    the arrival is wrong.
 *
 * A place that is chosen for a write to an idle drive lies where its margin
 * ends, and so do all that are seen, which says by itself whether that is far
 * enough: a miss moves it away by PLACE_MISSED, a place that is met nearer by
 * PLACE_MET, so PLACE_MET of PLACE_MISSED are missed in the end.  A turn is
 * lost then, and the way there in each other case; where the lateness of hosts
 * has its long tail the sum hardly depends on the share between 1 and 2 %.
 *
 * A write after a move teaches its settling; an access without a move the
 * overhead.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/head/seek_learn.h"

/* Steps of the time between arrival and target, in a turn: see
 * SEEK_LEARN_STEPS. */
#define STEPS_A_TURN 128u
/* The guard before anything is known: 5 % of a revolution. */
#define GUARD_START 6u
/* Steps of a guard that are looked at together. */
#define GUARD_WINDOW 6u
/* A guard may miss one target in RARELY (2 %), a likely time one in OFTEN. */
#define RARELY 50u
#define OFTEN 4u
/* A seek is known by this many accesses to a busy drive; then what an access
 * to an idle one is late by is the host's lateness, and learned as overhead. */
#define BIN_KNOWN 8u
/* Counts of all steps are halved when there are this many, so that old ones
 * fade. */
#define FADE_AT 400u
/* A correction begins with this part of a turn, and is doubled each time. */
#define CORRECT_PART 1024u
#define RUN_MOST 6	/* observations in a row that count, so doublings of a
			 * correction */
/* The longest guard in steps that misses one after another may make: 15 % of a
 * turn. */
#define CAUTION_MOST 19u
/* Met targets in a row after which a guard gets shorter by a step. */
#define CAUTION_MET 4u
/* What a miss and a met place change of the margin of places (1/256 of a turn,
 * and a 64th of that), in PLACE_TURN parts of a turn; until the first miss it
 * gets shorter by 1/PLACE_FIRST of itself.  It is doubled up to PLACE_RUN_MOST
 * times by misses one after another. */
#define PLACE_TURN 65536u
#define PLACE_MISSED (PLACE_TURN / 256)
#define PLACE_MET (PLACE_MISSED / 64)
#define PLACE_FIRST 32u
#define PLACE_RUN_MOST 5u
/* The margin is between these, as it is a guard; what goes beyond is
 * overhead. */
#define PLACE_LEAST (PLACE_TURN / STEPS_A_TURN)
#define PLACE_MOST (CAUTION_MOST * PLACE_TURN / STEPS_A_TURN)

int seek_learn_init(struct seek_learn *learn, const struct service_mech *mech,
	       uint64_t read_overhead_ns, uint64_t write_overhead_ns)
{
	*learn = (struct seek_learn){
		.seek_n = mech->seek_n,
		.switch_ns = mech->head_switch_ns,
		.settle_ns = mech->write_settle_ns,
		.overhead_given_ns = { read_overhead_ns, write_overhead_ns },
	};
	learn->seek = malloc(mech->seek_n * sizeof(*learn->seek));
	if (!learn->seek)
		return -ENOMEM;
	memcpy(learn->seek, mech->seek, mech->seek_n * sizeof(*learn->seek));
	seek_learn_forget(learn);
	return 0;
}

void seek_learn_forget(struct seek_learn *learn)
{
	int kind, when;

	memset(learn->bin_ns, 0, sizeof(learn->bin_ns));
	memset(learn->bin_seen, 0, sizeof(learn->bin_seen));
	memset(learn->run, 0, sizeof(learn->run));
	learn->settle_off_ns = 0;
	learn->place_margin = GUARD_START * PLACE_TURN / STEPS_A_TURN;
	learn->place_run = 0;
	learn->place_missed = false;
	for (kind = 0; kind < SEEK_LEARN_KINDS; kind++) {
		learn->overhead_off_ns[kind] = 0;
		for (when = 0; when < SEEK_LEARN_WHENS; when++)
			learn->steps[kind][when] = (struct seek_learn_steps){
				.guard_steps = GUARD_START,
				.likely_steps = GUARD_START,
				.caution_steps = GUARD_START,
			};
		learn->early[kind] = (struct seek_learn_early){
			.early_steps = 1,
		};
	}
}

void seek_learn_fini(struct seek_learn *learn)
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

static void steps_fade(uint16_t *seen, uint16_t *odd)
{
	unsigned i, sum = 0;

	for (i = 0; i < SEEK_LEARN_STEPS; i++)
		sum += seen[i];
	if (sum < FADE_AT)
		return;
	for (i = 0; i < SEEK_LEARN_STEPS; i++) {
		seen[i] /= 2;
		odd[i] /= 2;
	}
}

/* In the steps from `first` on, was more than one in `part` odd?  One may
 * always be. */
static bool steps_odd(const uint16_t *seen, const uint16_t *odd,
		      unsigned first, unsigned part)
{
	unsigned i, all = 0, odds = 0;

	if (!odd[first])
		return false;
	for (i = first; i < SEEK_LEARN_STEPS && i < first + GUARD_WINDOW; i++) {
		all += seen[i];
		odds += odd[i];
	}
	return odds > 1 && odds * part > all + part / 2;
}

/* Counts a step, and returns the distance from which on no more are odd than
 * allowed.  Never 0: a reading is as fine as a step. */
static unsigned steps_count(uint16_t *seen, uint16_t *odd, unsigned step,
			    bool is_odd)
{
	unsigned steps = SEEK_LEARN_STEPS;

	steps_fade(seen, odd);
	seen[step]++;
	odd[step] += is_odd;
	while (steps && !steps_odd(seen, odd, steps - 1, RARELY))
		steps--;
	return steps ? steps : 1;
}

static void steps_heed(struct seek_learn_steps *steps, bool met)
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

/* Counts a target that passed offset_ns after the arrival; negative: before
 * it. */
static void steps_see(struct seek_learn *learn,
		      const struct seek_learn_access *access, int64_t offset_ns,
		      bool met, uint64_t period_ns)
{
	struct seek_learn_steps *steps =
		&learn->steps[access->kind][access->when];
	struct seek_learn_early *early = &learn->early[access->kind];
	uint64_t step = (uint64_t)(offset_ns < 0 ? -offset_ns : offset_ns) *
			STEPS_A_TURN / period_ns;

	if (step >= SEEK_LEARN_STEPS)
		return;
	if (offset_ns < 0) {
		early->early_steps = steps_count(early->seen, early->met,
						 (unsigned)step, met);
		return;
	}
	steps->guard_steps = steps_count(steps->seen, steps->missed,
					 (unsigned)step, !met);
	steps->likely_steps = steps->guard_steps;
	while (steps->likely_steps &&
	       !steps_odd(steps->seen, steps->missed, steps->likely_steps - 1,
			  OFTEN))
		steps->likely_steps--;
	steps_heed(steps, met);
}

static unsigned steps_guard(const struct seek_learn_steps *steps)
{
	return steps->guard_steps > steps->caution_steps ?
		steps->guard_steps : steps->caution_steps;
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

/* The next correction.  It is small at first, because hosts are very late now
 * and then; it grows with each observation on the same side. */
static int64_t correction_ns(int8_t *run, int64_t late_ns, uint64_t period_ns)
{
	int64_t most_ns;

	if (late_ns < 0)
		*run = (int8_t)(*run > 0 ? 0 : *run > -RUN_MOST ? *run - 1 :
				*run);
	else
		*run = (int8_t)(*run < 0 ? 0 : *run < RUN_MOST ? *run + 1 :
				*run);
	most_ns = (int64_t)(period_ns / CORRECT_PART) << abs(*run);
	if (llabs(late_ns / 4) <= most_ns)
		return late_ns / 4;
	return late_ns < 0 ? -most_ns : most_ns;
}

/* Corrects the seek time towards a target that was met earlier or later than
 * expected. */
static void correct(struct seek_learn *learn,
		    const struct seek_learn_access *access, int64_t late_ns,
		    uint64_t period_ns)
{
	unsigned bin = bin_of(access->cylinders, access->switched);
	int64_t *overhead_ns = &learn->overhead_off_ns[access->kind];
	int64_t by_ns = correction_ns(&learn->run[access->kind], late_ns,
				      period_ns);

	/* Here no command was decoded while another one ran. */
	if (!bin && access->when == SEEK_LEARN_IDLE) {
		move_by(overhead_ns, by_ns, period_ns);
	} else if (bin && access->kind == SEEK_LEARN_WRITE) {
		move_by(&learn->settle_off_ns, by_ns, period_ns);
	} else if (access->when == SEEK_LEARN_IDLE &&
		   learn->bin_seen[bin] == BIN_KNOWN) {
		move_by(overhead_ns, by_ns, period_ns);
	} else if (bin && access->when == SEEK_LEARN_IDLE) {
		move_by(overhead_ns, by_ns / 2, period_ns);
		move_by(&learn->bin_ns[bin], by_ns / 2, period_ns);
	} else if (bin) {
		move_by(&learn->bin_ns[bin], by_ns, period_ns);
	}
}

/* Moves the margin of places, and the overhead by what that may not be; but no
 * drive takes less time than it was measured to take. */
static void place_move(struct seek_learn *learn, int64_t by, uint64_t period_ns)
{
	int64_t *overhead_ns = &learn->overhead_off_ns[SEEK_LEARN_WRITE];
	int64_t margin = (int64_t)learn->place_margin + by, beyond = 0;

	if (margin > (int64_t)PLACE_MOST)
		beyond = margin - (int64_t)PLACE_MOST;
	if (margin < (int64_t)PLACE_LEAST)
		beyond = margin - (int64_t)PLACE_LEAST;
	learn->place_margin = (uint32_t)(margin - beyond);
	beyond = beyond * (int64_t)period_ns / PLACE_TURN;
	if (beyond < 0 && *overhead_ns + beyond < 0)
		beyond = *overhead_ns > 0 ? -*overhead_ns : 0;
	move_by(overhead_ns, beyond, period_ns);
}

/* Takes in a place that was chosen on the track where the head was.  Where all
 * near ones are taken it lies further away, and tells little of the margin: it
 * is missed by chance, unless that comes again. */
static void place_see(struct seek_learn *learn, int64_t offset_ns, bool met,
		      uint64_t period_ns)
{
	uint64_t at = (uint64_t)(offset_ns < 0 ? 0 : offset_ns) * PLACE_TURN /
		      period_ns;
	bool beside = at < learn->place_margin + GUARD_WINDOW * PLACE_TURN /
						 STEPS_A_TURN;

	if (offset_ns < 0 && !met)
		return;
	if (!met) {
		if (beside || learn->place_run)
			place_move(learn, PLACE_MISSED << learn->place_run,
				   period_ns);
		learn->place_missed = true;
		learn->place_run += learn->place_run < PLACE_RUN_MOST;
		return;
	}
	learn->place_run = 0;
	if (beside)
		place_move(learn, learn->place_missed ? -(int64_t)PLACE_MET :
			   -(int64_t)(learn->place_margin / PLACE_FIRST),
			   period_ns);
}

void seek_learn_see(struct seek_learn *learn,
		    const struct seek_learn_access *access, int64_t offset_ns,
		    bool met, uint64_t period_ns)
{
	int64_t least = (int64_t)period_ns / 2048;
	uint8_t *seen = &learn->bin_seen[bin_of(access->cylinders,
						access->switched)];

	*seen += access->kind == SEEK_LEARN_READ &&
		 access->when == SEEK_LEARN_BUSY && *seen < BIN_KNOWN;
	if (access->chosen && access->when == SEEK_LEARN_IDLE &&
	    !access->cylinders && !access->switched)
		place_see(learn, offset_ns, met, period_ns);
	else if (offset_ns < 0 && met)
		correct(learn, access, offset_ns - least, period_ns);
	else if (offset_ns >= 0 && !met)
		correct(learn, access, offset_ns + least, period_ns);
	steps_see(learn, access, offset_ns, met, period_ns);
}

static uint64_t moved(uint64_t ns, int64_t by_ns)
{
	return by_ns < 0 && ns < (uint64_t)-by_ns ? 0 : ns + (uint64_t)by_ns;
}

void seek_learn_apply(const struct seek_learn *learn, struct service_mech *mech)
{
	uint32_t i;

	for (i = 0; i < learn->seek_n; i++)
		mech->seek[i].ns = moved(learn->seek[i].ns,
			learn->bin_ns[bin_of(learn->seek[i].cylinders, false)]);
	mech->head_switch_ns = moved(learn->switch_ns, learn->bin_ns[1]);
	mech->write_settle_ns = moved(learn->settle_ns, learn->settle_off_ns);
}

uint64_t seek_learn_overhead_ns(const struct seek_learn *learn,
				enum seek_learn_kind kind)
{
	return moved(learn->overhead_given_ns[kind],
		     learn->overhead_off_ns[kind]);
}

uint64_t seek_learn_guard_ns(const struct seek_learn *learn,
			     enum seek_learn_kind kind,
			     enum seek_learn_when when, uint64_t period_ns)
{
	return steps_guard(&learn->steps[kind][when]) * period_ns /
	       STEPS_A_TURN;
}

uint64_t seek_learn_place_ns(const struct seek_learn *learn, uint64_t period_ns)
{
	return learn->place_margin * period_ns / PLACE_TURN;
}

uint64_t seek_learn_likely_ns(const struct seek_learn *learn,
			      enum seek_learn_kind kind,
			      enum seek_learn_when when, uint64_t period_ns)
{
	return learn->steps[kind][when].likely_steps * period_ns /
	       STEPS_A_TURN;
}

uint64_t seek_learn_early_ns(const struct seek_learn *learn,
			     enum seek_learn_kind kind, uint64_t period_ns)
{
	return learn->early[kind].early_steps * period_ns / STEPS_A_TURN;
}
