/*
 * test_rounds.c - rounds of unequal tracks: what has to be looked at, and what
 * is predicted of them.
 */
#include <string.h>

#include "extract/probe/phase.h"
#include "extract/track/again.h"
#include "extract/track/rounds.h"
#include "tests/rig/test.h"

#define STEP 0.13

/* Tracks that have been walked, the plan behind them, and what is thought of
 * them. */
struct way {
	struct store store;
	struct plan plan;
	struct rounds rounds;
};

static void walk_track(struct way *w, uint32_t size, uint32_t nominal)
{
	struct store_track t = {
		.first = w->plan.first, .size = size, .start = w->plan.start,
		.pitch = 1.0 / nominal,
	};

	ck_assert_int_eq(store_add(&w->store, &t, nominal, 1), 0);
	w->plan.first += size;
	w->plan.start = phase_part(w->plan.start + STEP);
}

static void walk_rounds(struct way *w, const uint32_t *size, unsigned n,
			unsigned tracks)
{
	for (unsigned i = 0; i < tracks; i++)
		walk_track(w, size[i % n], size[i % n]);
	ck_assert(again_learn(&w->store, &w->plan));
	rounds_see(&w->rounds, &w->plan, &w->store);
}

/* What is wanted at the boundaries of the next round, behind the first ones. */
static void wanted(struct way *w, unsigned n, enum rounds_look *look)
{
	enum rounds_look all[PLAN_AHEAD];

	rounds_wanted(&w->rounds, 3 * n, all);
	memcpy(look, all + n, n * sizeof(*look));
}

static const uint32_t outer[] = { 300, 280, 310, 288, 295 };
static const uint32_t inner[] = { 270, 252, 279, 259, 266 };

/* All boundaries are looked at in a round that is known, from one side; in what
 * is only taken for one, from both. */
START_TEST(looks)
{
	enum rounds_look look[5];
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	ck_assert(w.rounds.seen);
	rounds_pass(&w.rounds, 400);
	wanted(&w, 5, look);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(look[i], ROUNDS_LOW);
	/* The end of the zone is cut. */
	walk_track(&w, 100, 295);
	walk_rounds(&w, inner, 5, 10);
	ck_assert(w.rounds.seen);
	w.rounds.seen = false;
	wanted(&w, 5, look);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(look[i], ROUNDS_BOTH);
	store_fini(&w.store);
}
END_TEST

/* Both sides are looked at behind an event, and in the last round of leaps as
 * long as it may be a scratch that comes again. */
START_TEST(both_sides)
{
	enum rounds_look look[PLAN_AHEAD];
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	rounds_wanted(&w.rounds, 40, look);
	for (unsigned i = 1; i < 40; i++)
		ck_assert_int_eq(look[i], i < 35 ? ROUNDS_LOW : ROUNDS_BOTH);
	rounds_pass(&w.rounds, 400);
	rounds_event(&w.rounds);
	rounds_wanted(&w.rounds, 40, look);
	for (unsigned i = 1; i < 40; i++)
		ck_assert_int_eq(look[i], i > 10 ? ROUNDS_LOW : ROUNDS_BOTH);
	store_fini(&w.store);
}
END_TEST

/* Tracks of one size are no rounds, whatever was before them. */
START_TEST(over)
{
	struct run run = { .count = 1, .size = 250, .step = STEP, .span = 1 };
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	ck_assert_uint_gt(w.rounds.tracks, 0);
	for (unsigned i = 0; i < 8; i++) {
		run.first = w.plan.first;
		run.cross = 0.3;
		plan_begin(&w.plan, &run);
		w.plan.now.count = 20;
		for (unsigned k = 0; k < 20; k++)
			walk_track(&w, 250, 250);
		rounds_see(&w.rounds, &w.plan, &w.store);
	}
	ck_assert_uint_gt(plan_cycle(&w.plan), 0);
	ck_assert_uint_eq(w.rounds.tracks, 0);
	store_fini(&w.store);
}
END_TEST

/* In another zone heads are to each other as before. */
START_TEST(guessed)
{
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	plan_forget(&w.plan);
	walk_track(&w, 271, 271);
	ck_assert_uint_eq(rounds_guess(&w.rounds, &w.plan, &w.store), 253);
	walk_track(&w, 252, 252);
	ck_assert_uint_eq(rounds_guess(&w.rounds, &w.plan, &w.store), 279);
	store_fini(&w.store);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rounds");
	TCase *tc = tcase_create("rounds");

	tcase_add_test(tc, looks);
	tcase_add_test(tc, both_sides);
	tcase_add_test(tc, over);
	tcase_add_test(tc, guessed);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
