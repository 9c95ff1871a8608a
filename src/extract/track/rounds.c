/*
 * rounds.c - what slips did in rounds, and what has to be looked at therefore.
 *
 * A zone is known when all of two rounds have been walked in it.  Before that,
 * and where the plan has taken something else for a round, all boundaries are
 * looked at from both sides, and slips say nothing.
 */
#include "extract/track/rounds.h"

#include <string.h>

#include "extract/track/again.h"

/* Tracks of a run in a serpentine, at least. */
#define LONG_RUNS 6u
/* No scratch goes over more rounds. */
#define FRESH_ROUNDS 64u
/* Slips that have shown behind all of their cylinder: there may have been
 * others in its last track, as many as it has spares.  Where slips are rare
 * that does not happen twice, else not three times. */
#define INNERS_ENOUGH 3u
#define RARE_TRACKS 128u
/* And more for each that was perhaps made up for, as all would be. */
#define INNERS_MORE 4u
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
static bool is_known(const struct ends *e, const uint32_t *size, unsigned n)
{
	unsigned i = 0;

	for (unsigned at = 0; n == e->n && at < n && i < n; at++) {
		for (i = 0; i < n && size[(at + i) % n] == e->size[i]; i++)
			;
	}
	return i && i == n;
}

static void begin_zone(struct rounds *r, unsigned tracks)
{
	r->tracks = tracks;
	r->passed = r->wary = r->since = r->absorbs = 0;
	r->inners = r->firsts = r->others = r->slips = r->doubts = 0;
	r->pending = r->shown = 0;
	r->plain = r->doubtful = r->lost = false;
	r->seen = true;
}

/* Is the plan's cycle that of a zone? */
static void see_zone(struct rounds *r, const struct plan *plan,
		     const struct store *store)
{
	struct run run[2 * ENDS_MOST];
	uint32_t size[2 * ENDS_MOST], begin;
	unsigned n = again_cycle(plan, run, 2 * ENDS_MOST), least;

	for (unsigned i = 0; i < n; i++)
		size[i] = run[i].size;
	least = ends_least(size, n);
	if (!n || least > ENDS_MOST) {
		ends_leave(&r->ends);
		begin_zone(r, r->cycle);
		return;
	}
	r->tracks = least;
	r->seen = is_known(&r->ends, size, least);
	r->lost = r->lost && !r->seen;
	if (r->seen || !again_holds(store, plan->first, size, least, &r->ends,
				    &begin))
		return;
	ends_see(&r->ends, size, least, begin);
	memcpy(r->round, run, least * sizeof(*run));
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
	if (tracks > ENDS_MOST && LONG_RUNS * plan->period < tracks)
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
	ends_leave(&rounds->ends);
	begin_zone(rounds, 0);
}

bool rounds_learn(struct rounds *rounds, struct plan *plan,
		  const struct store *store)
{
	if (rounds->resumed)
		rounds->lost = true;
	rounds->resumed = 0;
	if (rounds->ends.n && !rounds->lost &&
	    again_resume(store, plan, rounds->round, rounds->ends.n)) {
		rounds->resumed = rounds->ends.n;
		return true;
	}
	return again_learn(store, plan);
}

uint32_t rounds_guess(const struct rounds *rounds, const struct plan *plan,
		      const struct store *store)
{
	return plan->trusted || !rounds->ends.n ? 0 :
	       again_guess(store, plan->first, &rounds->ends);
}

static bool is_fresh(const struct rounds *rounds)
{
	return rounds->wary || rounds->passed < FRESH_ROUNDS * rounds->tracks;
}

bool rounds_needed(const struct rounds *rounds)
{
	return rounds->tracks && (!rounds->seen || !rounds->plain ||
				  is_fresh(rounds));
}

/* Are the tracks ahead those of the round?  *at: the number of the first. */
static bool are_rounds(const struct ends *e, const struct ahead *ahead,
		       unsigned n, unsigned *at)
{
	for (*at = 0; *at < e->n; ++*at) {
		unsigned k = 0;

		while (k < n && ahead[k].size == e->size[(*at + k) % e->n])
			k++;
		if (k == n && n >= e->n)
			return true;
	}
	return false;
}

void rounds_wanted(const struct rounds *rounds, const struct ahead *ahead,
		   unsigned to, enum rounds_look *look)
{
	const struct ends *e = &rounds->ends;
	unsigned at = 0, tracks = rounds->tracks;
	unsigned last = rounds->passed < FRESH_ROUNDS * tracks ? tracks : 0;
	bool known = e->known && are_rounds(e, ahead, to, &at);

	for (unsigned k = 0; k < to; k++) {
		look[k] = known && !e->last[(at + k) % e->n] ? ROUNDS_NONE :
							       ROUNDS_LOW;
		if (!rounds->seen || k <= rounds->wary || k + last >= to)
			look[k] = ROUNDS_BOTH;
	}
}

void rounds_doubt(struct rounds *rounds)
{
	rounds->doubtful = rounds->plain;
	rounds->plain = false;
	rounds->wary = 2 * rounds->tracks;
}

/* There was something indeed. */
static void confirm_doubt(struct rounds *r)
{
	if (!r->doubtful)
		return;
	r->doubtful = false;
	r->inners = r->firsts = r->others = 0;
	r->absorbs = ++r->doubts;
}

/* What was made up for at the end of a cylinder may be slipped again in the
 * next. */
void rounds_event(struct rounds *rounds)
{
	confirm_doubt(rounds);
	rounds->wary = 2 * rounds->tracks;
	rounds->absorbs += rounds->pending > 0;
	rounds->pending = 0;
}

/* Another one before it makes up for nothing: that would be a longer track.
 * But it may have used up the spares, as one in the last track may. */
void rounds_slip(struct rounds *rounds, uint32_t size)
{
	confirm_doubt(rounds);
	rounds->slips++;
	rounds->clear = !rounds->wary;
	rounds->wary = 2 * rounds->tracks;
	rounds->pending = size;
	rounds->since = 0;
}

/* Have enough been seen? */
static bool is_plain(const struct rounds *r)
{
	bool rare = r->passed > RARE_TRACKS * r->slips;
	unsigned enough = rare ? INNERS_ENOUGH - 1 : INNERS_ENOUGH;
	unsigned least = r->firsts < r->others ? r->firsts : r->others;

	enough += INNERS_MORE * r->absorbs;
	if (r->ends.known)
		return r->inners >= enough;
	return least + 1 >= enough && r->firsts + r->others > enough;
}

/* The slips that are pending have shown behind all of their cylinder. */
static void note_shown(struct rounds *r)
{
	if (!r->shown)
		r->shown = r->pending;
	r->inners += !ends_may_be_last(&r->ends, r->pending);
	r->firsts += r->pending == r->shown;
	r->others += r->pending != r->shown;
	r->plain = is_plain(r);
}

void rounds_pass(struct rounds *rounds, unsigned tracks)
{
	rounds->resumed -= tracks < rounds->resumed ? tracks : rounds->resumed;
	rounds->since += tracks;
	rounds->passed += tracks;
	rounds->wary -= tracks < rounds->wary ? tracks : rounds->wary;
	if (rounds->seen && !rounds->wary) {
		rounds->lost = false;
		rounds->plain |= rounds->doubtful;
		rounds->doubtful = false;
	}
	if (!rounds->pending || rounds->since <= rounds->tracks)
		return;
	if (rounds->seen && rounds->clear)
		note_shown(rounds);
	rounds->pending = 0;
}
