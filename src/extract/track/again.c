/*
 * again.c - see again.h.
 *
 * Tracks are taken for a round when the last ones have the sizes of those one
 * round before, and follow each other at the same angles.  A few are enough
 * where sizes change a lot; else it must be all of a round.
 */
#include "extract/track/again.h"

#include <math.h>

#include "extract/probe/phase.h"
#include "extract/track/rounds.h"

#define ROUND_MOST ROUNDS_MOST
/* Tracks that must come again. */
#define AGAIN_TRACKS 3u
/* Revolutions: what skews may seem to differ by. */
#define SAME_CROSS 0.02
/* One track in a round may be that of a scratch. */
#define FEW_CHANGES 2u
#define LEARN_MOST (4 * ROUND_MOST + 2)
/* Of tracks that are taken for those of a round, how few may be a little
 * shorter than that, as a divisor; and how little. */
#define SLIPS_AMONG 16u
#define SLIP_LEAST 0.95
/* Of a size, and units, that those of other zones may be off by; tracks that
 * are laid upon others. */
#define GUESS_OFF 0.004
#define GUESS_UNITS 1.5
#define GUESS_MOST 8u

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
		for (uint32_t k = p->tracks; k-- && past->n < LEARN_MOST;) {
			struct store_track *t = &past->track[past->n++];

			/* Slips are no sizes. */
			store_track(store, p, k, t);
			t->size = p->size;
		}
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

bool again_learn(const struct store *store, struct plan *plan)
{
	struct past_tracks past;
	unsigned round = 2;

	collect(store, plan->first, &past);
	while (round <= ROUND_MOST && round + 2 <= past.n &&
	       !comes_again(&past, round))
		round++;
	if (round > ROUND_MOST || round + 2 > past.n)
		return false;
	plan_forget(plan);
	for (unsigned i = 1; i <= round; i++)
		plan->past[round - i] = run_of(&past, i, round);
	plan->n = plan->period = round;
	plan->now = run_of(&past, 0, round);
	plan->expected = 1;
	plan->trusted = true;
	return true;
}

unsigned again_cycle(const struct plan *plan, uint32_t *size, unsigned most)
{
	unsigned n = 0;

	for (size_t i = plan->n - plan->period; i < plan->n; i++) {
		for (uint32_t k = plan->past[i].count; k; k--) {
			if (n == most)
				return 0;
			size[n++] = plan->past[i].size;
		}
	}
	return n;
}

/* How many tracks, backwards, are those of a round, the last of them being
 * number `at`, but for some that slipped among them. */
static unsigned backwards(const struct past_tracks *past, const uint32_t *size,
			  unsigned n, unsigned at)
{
	unsigned slips = 0, until = 0;

	for (unsigned k = 0; k < past->n; k++) {
		uint32_t is = past->track[k].size;
		uint32_t full = size[(at + n - k % n) % n];

		if (is == full) {
			until = k + 1;
			continue;
		}
		slips++;
		if (is > full || is < SLIP_LEAST * full ||
		    slips > (k + n) / SLIPS_AMONG)
			break;
	}
	return until;
}

bool again_holds(const struct store *store, uint64_t unit,
		 const uint32_t *size, unsigned n, unsigned *begin)
{
	struct past_tracks past;
	unsigned most = 0, k;

	collect(store, unit, &past);
	for (unsigned i = 0; i < n; i++) {
		k = backwards(&past, size, n, i);
		if (k <= most)
			continue;
		most = k;
		*begin = (i + n - (most - 1) % n) % n;
	}
	return most >= 2 * n;
}

/* How many of the last tracks, backwards, are to those of a round that end with
 * one as the last is to that? */
static unsigned lies_upon(const struct past_tracks *past, const uint32_t *size,
			  unsigned n, unsigned at)
{
	double ratio = (double)past->track[0].size / size[at], was;
	unsigned k = 1;

	for (; k < past->n && k < GUESS_MOST && k < n; k++) {
		was = size[(at + n - k) % n] * ratio;
		if (fabs(past->track[k].size - was) >
		    GUESS_UNITS + GUESS_OFF * was)
			break;
	}
	return k;
}

uint32_t again_guess(const struct store *store, uint64_t unit,
		     const uint32_t *size, unsigned n)
{
	unsigned best = 0, at = 0, k;
	struct past_tracks past;

	collect(store, unit, &past);
	for (unsigned i = 0; past.n && i < n; i++) {
		k = lies_upon(&past, size, n, i);
		if (k > best) {
			best = k;
			at = i;
		}
	}
	return best ? (uint32_t)((double)past.track[0].size *
				 size[(at + 1) % n] / size[at] + 0.5) : 0;
}
