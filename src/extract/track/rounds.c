/*
 * rounds.c - see rounds.h.
 *
 * A zone is known when all of two rounds have been walked in it.  Before that,
 * and where the plan has taken something else for a round, all boundaries are
 * looked at from both sides.
 */
#include "extract/track/rounds.h"

#include "extract/track/again.h"

/* Tracks of a run in a serpentine, at least. */
#define LONG_RUNS 6u
/* No scratch goes over more rounds. */
#define FRESH_ROUNDS 64u
/* Of tracks of one size, after which there are no rounds any more. */
#define ALIKE_ROUNDS 2u

static uint64_t mix(uint64_t v)
{
	v ^= v >> 31;
	v *= UINT64_C(0x9e3779b97f4a7c15);
	return v ^ v >> 29;
}

static uint64_t print_of(const struct plan *p)
{
	uint64_t print = 0;

	for (size_t i = 0; i < p->period; i++) {
		const struct run *a = &p->past[p->n - 1 - i];
		const struct run *b = i ? a + 1 : &p->past[p->n - p->period];

		print += mix(((uint64_t)a->size << 32 | b->size) +
			     mix(a->count));
	}
	return print;
}

/* Are those the tracks of the zone that is known? */
static bool is_known(const struct rounds *r, const uint32_t *size, unsigned n)
{
	unsigned i = 0;

	for (unsigned at = 0; n == r->n && at < n && i < n; at++) {
		for (i = 0; i < n && size[(at + i) % n] == r->size[i]; i++)
			;
	}
	return i && i == n;
}

static void begin_zone(struct rounds *r, unsigned tracks)
{
	r->tracks = tracks;
	r->passed = r->wary = 0;
	r->seen = true;
}

/* The least number of tracks after which the sizes of a round come again. */
static unsigned least_round(const uint32_t *size, unsigned n)
{
	for (unsigned d = 1; d < n; d++) {
		unsigned i = 0;

		while (n % d == 0 && i < n && size[i] == size[(i + d) % n])
			i++;
		if (i == n)
			return d;
	}
	return n;
}

/* Is the plan's cycle that of a zone? */
static void see_zone(struct rounds *r, const struct plan *plan,
		     const struct store *store)
{
	uint32_t size[2 * ROUNDS_MOST];
	unsigned n = again_cycle(plan, size, 2 * ROUNDS_MOST);
	unsigned least = least_round(size, n), begin;

	if (!n || least > ROUNDS_MOST) {
		r->n = 0;
		begin_zone(r, r->cycle);
		return;
	}
	r->tracks = least;
	r->seen = is_known(r, size, least);
	if (r->seen || !again_holds(store, plan->first, size, least, &begin))
		return;
	r->n = least;
	for (unsigned i = 0; i < least; i++)
		r->size[i] = size[(begin + i) % least];
	begin_zone(r, least);
}

/* Rounds of tracks of one size are none. */
static bool are_alike(struct rounds *r, const struct plan *plan)
{
	uint64_t tracks = ALIKE_ROUNDS * (uint64_t)r->tracks;

	if (!plan_cycle(plan)) {
		r->alike = 0;
		return false;
	}
	if (!r->alike)
		r->alike = plan->first;
	return plan->first > r->alike + tracks * plan->now.size;
}

void rounds_see(struct rounds *rounds, const struct plan *plan,
		const struct store *store)
{
	unsigned tracks = plan_round(plan);
	bool other = tracks > 0;	/* a cycle, but of long runs */
	uint64_t print;

	/* Many short runs are rounds that were taken for longer ones. */
	if (tracks > ROUNDS_MOST && LONG_RUNS * plan->period < tracks)
		tracks = 0;
	print = tracks ? print_of(plan) : 0;
	if (tracks)
		rounds->alike = 0;
	if (tracks == rounds->cycle && print == rounds->print) {
		if (tracks && !rounds->seen)
			see_zone(rounds, plan, store);
		return;
	}
	/* Forgotten for a while, or there are none. */
	if (!tracks && !other && plan->now.count <= 2 * rounds->tracks &&
	    !are_alike(rounds, plan))
		return;
	rounds->cycle = tracks;
	rounds->print = print;
	if (tracks) {
		see_zone(rounds, plan, store);
		return;
	}
	rounds->n = 0;
	begin_zone(rounds, 0);
}

uint32_t rounds_guess(const struct rounds *rounds, const struct plan *plan,
		      const struct store *store)
{
	return plan->trusted || !rounds->n ? 0 :
	       again_guess(store, plan->first, rounds->size, rounds->n);
}

void rounds_wanted(const struct rounds *rounds, unsigned to,
		   enum rounds_look *look)
{
	unsigned tracks = rounds->tracks;
	unsigned last = rounds->passed < FRESH_ROUNDS * tracks ? tracks : 0;

	for (unsigned k = 0; k < to; k++)
		look[k] = !rounds->seen || k <= rounds->wary ||
			  k + last >= to ? ROUNDS_BOTH : ROUNDS_LOW;
}

/* What was made up for at the end of a cylinder may be slipped again in the
 * next. */
void rounds_event(struct rounds *rounds)
{
	rounds->wary = 2 * rounds->tracks;
}

void rounds_pass(struct rounds *rounds, unsigned tracks)
{
	rounds->passed += tracks;
	rounds->wary -= tracks < rounds->wary ? tracks : rounds->wary;
}
