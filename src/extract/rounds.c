/*
 * rounds.c - rounds in what has been walked, and what slips did in them.
 *
 * Tracks are taken for a round when the last ones have the sizes of those one
 * round before, and follow each other at the same angles.  A few are enough
 * where sizes change a lot; else it must be all of a round.
 */
#include "extract/rounds.h"

#include <math.h>

#include "extract/phase.h"

#define ROUND_MOST 64u
/* Tracks of a run in a serpentine, at least. */
#define LONG_RUNS 6u
/* Rounds that are looked at from both sides: no scratch goes over more. */
#define FRESH_ROUNDS 64u
/* Tracks that must come again. */
#define AGAIN_TRACKS 3u
/* Revolutions: what skews may seem to differ by. */
#define SAME_CROSS 0.02
/* One track in a round may be that of a scratch. */
#define FEW_CHANGES 2u
#define LEARN_MOST (3 * ROUND_MOST + 2)

/* The last tracks before a unit, with nothing unknown between. */
struct past_tracks {
	struct store_track track[LEARN_MOST];	/* the last one first */
	unsigned n;
};

static void collect(const struct store *store, uint64_t unit,
		    struct past_tracks *past)
{
	past->n = 0;
	while (unit && past->n < LEARN_MOST) {
		size_t i = store_find(store, unit - 1);
		const struct piece *p = &store->pieces[i];

		if (i == store->n || !p->tracks ||
		    p->first + p->units < unit || p->first >= unit)
			return;
		for (uint32_t k = p->tracks; k-- && past->n < LEARN_MOST;)
			store_track(store, p, k, &past->track[past->n++]);
		unit = p->first;
	}
}

/* From the track before it to track i. */
static double cross_of(const struct past_tracks *past, unsigned i)
{
	return phase_part(past->track[i].start - past->track[i + 1].start);
}

/* Are the last n tracks as those a round before them?  *changes: of size, among
 * them. */
static bool is_again(const struct past_tracks *past, unsigned round,
		     unsigned n, unsigned *changes)
{
	const struct store_track *t = past->track;

	*changes = 0;
	for (unsigned i = 0; i < n; i++) {
		if (t[i].size != t[i + round].size)
			return false;
		*changes += i + 1 < n && t[i].size != t[i + 1].size;
		if (i + round + 1 < past->n &&
		    fabs(phase_wrap(cross_of(past, i) -
				    cross_of(past, i + round))) > SAME_CROSS)
			return false;
	}
	return true;
}

static bool comes_again(const struct past_tracks *past, unsigned round)
{
	unsigned n = round < past->n - round ? round : past->n - round;
	unsigned changes;

	if (n < AGAIN_TRACKS && n < round)
		return false;
	if (!is_again(past, round, n, &changes))
		return false;
	if (changes > FEW_CHANGES)
		return true;
	return round > 2 ? past->n >= 3 * round &&
			   is_again(past, round, 2 * round, &changes) &&
			   changes : n == round && changes;
}

static struct run run_of(const struct past_tracks *past, unsigned i,
			 unsigned round)
{
	const struct store_track *t = &past->track[i];
	unsigned like = i < round ? i + round : i - round;
	double cross, span = t->pitch * t->size;

	if (i + 1 >= past->n)
		i = like;
	cross = cross_of(past, i);
	if (like + 1 < past->n)
		cross += phase_wrap(cross_of(past, like) - cross) / 2;
	return (struct run){
		.first = t->first, .count = 1, .size = t->size,
		.start = t->start, .step = phase_part(cross),
		.cross = phase_part(cross), .span = fmin(span, 1),
	};
}

bool rounds_learn(const struct store *store, struct plan *plan)
{
	struct past_tracks past;
	unsigned round = 2;

	collect(store, plan->first, &past);
	while (round <= ROUND_MOST && round + 2 <= past.n &&
	       !comes_again(&past, round))
		round++;
	if (round > ROUND_MOST || round + 2 > past.n)
		return false;
	for (unsigned i = 1; i <= round; i++)
		plan->past[round - i] = run_of(&past, i, round);
	plan->n = plan->period = round;
	plan->now = run_of(&past, 0, round);
	plan->expected = 1;
	plan->trusted = true;
	plan->rate = plan->cross_rate = 0;
	return true;
}

static uint64_t mix(uint64_t v)
{
	v ^= v >> 31;
	v *= UINT64_C(0x9e3779b97f4a7c15);
	return v ^ v >> 29;
}

void rounds_see(struct rounds *rounds, const struct plan *plan)
{
	unsigned tracks = plan_round(plan);
	bool other = tracks > 0;	/* a cycle, but of long runs */
	uint64_t print = 0;

	/* Many short runs are rounds that were taken for longer ones. */
	if (tracks > ROUND_MOST && LONG_RUNS * plan->period < tracks)
		tracks = 0;
	for (size_t i = 0; tracks && i < plan->period; i++) {
		const struct run *a = &plan->past[plan->n - 1 - i];
		const struct run *b = i ? a + 1 :
				      &plan->past[plan->n - plan->period];

		print += mix(((uint64_t)a->size << 32 | b->size) +
			     mix(a->count));
	}
	if (tracks == rounds->tracks && print == rounds->print)
		return;
	/* Forgotten for a while, or there are none. */
	if (!tracks && !other && plan->now.count <= 2 * rounds->tracks)
		return;
	*rounds = (struct rounds){ .tracks = tracks, .print = print };
}

bool rounds_needed(const struct rounds *rounds)
{
	return rounds->tracks && (!rounds->plain || rounds_fresh(rounds));
}

bool rounds_fresh(const struct rounds *rounds)
{
	return rounds->wary || rounds->both < FRESH_ROUNDS * rounds->tracks;
}

/* What was made up for at the end of a cylinder may be slipped again in the
 * next. */
void rounds_event(struct rounds *rounds)
{
	rounds->wary = 2 * rounds->tracks;
	if (rounds->pending)
		rounds->absorbs = true;
	rounds->pending = 0;
}

void rounds_doubt(struct rounds *rounds)
{
	rounds->plain = false;
	rounds->absorbs = true;
	rounds->wary = 2 * rounds->tracks;
}

void rounds_slip(struct rounds *rounds, uint32_t size)
{
	rounds_event(rounds);
	rounds->pending = size;
	rounds->since = 0;
}

void rounds_pass(struct rounds *rounds, unsigned tracks)
{
	rounds->since += tracks;
	rounds->wary -= tracks < rounds->wary ? tracks : rounds->wary;
	if (!rounds->pending || rounds->since <= rounds->tracks)
		return;
	if (rounds->shown && rounds->shown != rounds->pending)
		rounds->plain = !rounds->absorbs;
	rounds->shown = rounds->pending;
	rounds->pending = 0;
}
