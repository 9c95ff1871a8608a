/*
 * test_rounds.c - rounds of unequal tracks: which may end a cylinder, what has
 * to be looked at, and what is said when that is not known.
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
	struct ahead ahead[PLAN_AHEAD + 1];
	enum rounds_look all[PLAN_AHEAD];

	ck_assert_uint_gt(plan_ahead(&w->plan, ahead, 4 * n), 3 * n);
	rounds_wanted(&w->rounds, ahead, 3 * n, all);
	memcpy(look, all + n, n * sizeof(*look));
}

static const uint32_t outer[] = { 300, 280, 310, 288, 295 };
static const uint32_t inner[] = { 270, 252, 279, 259, 266 };

START_TEST(least)
{
	static const uint32_t twice[] = { 3, 4, 5, 3, 4, 5 };
	static const uint32_t once[] = { 3, 4, 5, 3, 4, 4 };

	ck_assert_uint_eq(ends_least(twice, 6), 3);
	ck_assert_uint_eq(ends_least(once, 6), 6);
	ck_assert_uint_eq(ends_least(twice, 1), 1);
}
END_TEST

/* Two zones that begin with the same head say which is the last. */
START_TEST(last)
{
	struct ends e = { 0 };

	ends_see(&e, outer, 5, 0);
	ck_assert(!e.known);
	ck_assert(ends_may_be_last(&e, 280));
	ends_see(&e, inner, 5, 0);
	ck_assert(e.known);
	ck_assert(e.last[4] && !e.last[0] && !e.last[1] && !e.last[3]);
	ck_assert(ends_may_be_last(&e, 266));
	ck_assert(!ends_may_be_last(&e, 270));
}
END_TEST

/* One of which the beginning was not seen is laid upon them. */
START_TEST(turned)
{
	static const uint32_t later[] = { 230, 213, 219, 222, 207 };
	struct ends e = { 0 };

	ends_see(&e, outer, 5, 0);
	ends_see(&e, inner, 5, 0);
	ends_see(&e, later, 5, ENDS_NONE);
	ck_assert(e.known);
	ck_assert(e.last[2] && !e.last[0] && !e.last[1] && !e.last[4]);
}
END_TEST

START_TEST(up_and_down)
{
	static const uint32_t a[] = { 300, 280, 310, 310, 280, 299 };
	static const uint32_t b[] = { 270, 252, 279, 278, 252, 269 };
	struct ends e = { 0 };

	ends_see(&e, a, 6, 0);
	ends_see(&e, b, 6, 0);
	ck_assert(e.known);
	ck_assert(e.last[2] && e.last[5]);
	ck_assert(!e.last[0] && !e.last[1] && !e.last[3] && !e.last[4]);
}
END_TEST

/* Zones that begin with different heads say nothing, nor do heads that can't
 * be told from one another. */
START_TEST(unclear)
{
	static const uint32_t a[] = { 300, 300, 301, 300 };
	static const uint32_t b[] = { 270, 271, 270, 270 };
	struct ends e = { 0 };

	ends_see(&e, outer, 5, 0);
	ends_see(&e, inner, 5, 1);
	ck_assert(!e.known);
	e = (struct ends){ 0 };
	ends_see(&e, a, 4, 0);
	ends_see(&e, b, 4, 0);
	ck_assert(!e.known);
}
END_TEST

/* In the first zone all boundaries are looked at, in the next only those before
 * the last track of each cylinder, until a slip has shown behind it. */
START_TEST(looks)
{
	enum rounds_look look[5];
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	rounds_pass(&w.rounds, 400);
	ck_assert(rounds_needed(&w.rounds));
	wanted(&w, 5, look);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(look[i], ROUNDS_LOW);
	/* The end of the zone is cut. */
	walk_track(&w, 100, 295);
	walk_rounds(&w, inner, 5, 15);
	ck_assert(w.rounds.seen && w.rounds.ends.known);
	rounds_pass(&w.rounds, 400);
	wanted(&w, 5, look);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(look[i], i == 4 ? ROUNDS_LOW : ROUNDS_NONE);
	for (unsigned i = 0; i < 5; i++) {
		rounds_slip(&w.rounds, 266);
		rounds_pass(&w.rounds, 40);
	}
	/* Its last track may have slipped by as many as it has spares. */
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(rounds_needed(&w.rounds));
		rounds_slip(&w.rounds, 252);
		rounds_pass(&w.rounds, 40);
	}
	ck_assert(!rounds_needed(&w.rounds));
	store_fini(&w.store);
}
END_TEST

/* Where it is not known which is the last, it may be that one that slipped. */
START_TEST(any_last)
{
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	rounds_pass(&w.rounds, 400);
	for (unsigned i = 0; i < 5; i++) {
		rounds_slip(&w.rounds, 300);
		rounds_pass(&w.rounds, 40);
	}
	for (unsigned i = 0; i < 2; i++) {
		ck_assert(rounds_needed(&w.rounds));
		rounds_slip(&w.rounds, i ? 280 : 310);
		rounds_pass(&w.rounds, 40);
	}
	ck_assert(!rounds_needed(&w.rounds));
	/* In another zone all begins anew. */
	walk_track(&w, 100, 295);
	walk_rounds(&w, inner, 5, 15);
	rounds_pass(&w.rounds, 400);
	ck_assert(rounds_needed(&w.rounds));
	store_fini(&w.store);
}
END_TEST

/* A slip that has been made up for. */
START_TEST(absorbed)
{
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	rounds_pass(&w.rounds, 400);
	for (unsigned i = 0; i < 3; i++) {
		rounds_slip(&w.rounds, outer[i]);
		rounds_event(&w.rounds);
		rounds_pass(&w.rounds, 40);
	}
	for (unsigned i = 0; i < 6; i++) {
		rounds_slip(&w.rounds, outer[i % 3]);
		rounds_pass(&w.rounds, 40);
	}
	ck_assert(rounds_needed(&w.rounds));
	store_fini(&w.store);
}
END_TEST

/* A leap that seemed to be wrong on the way: when nothing odd is found, looks
 * were late; else more slips must show than before. */
START_TEST(doubted)
{
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	rounds_pass(&w.rounds, 400);
	for (unsigned i = 0; i < 6; i++) {
		rounds_slip(&w.rounds, outer[i % 2]);
		rounds_pass(&w.rounds, 40);
	}
	ck_assert(!rounds_needed(&w.rounds));
	rounds_doubt(&w.rounds);
	ck_assert(rounds_needed(&w.rounds));
	rounds_pass(&w.rounds, 40);
	ck_assert(!rounds_needed(&w.rounds));
	rounds_doubt(&w.rounds);
	for (unsigned i = 0; i < 6; i++) {
		rounds_slip(&w.rounds, outer[i % 2]);
		rounds_pass(&w.rounds, 40);
		ck_assert(rounds_needed(&w.rounds));
	}
	store_fini(&w.store);
}
END_TEST

/* Both sides are looked at behind an event, and in the last round of leaps as
 * long as it may be a scratch that comes again. */
START_TEST(both_sides)
{
	struct ahead ahead[PLAN_AHEAD + 1];
	enum rounds_look look[PLAN_AHEAD];
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 20);
	plan_ahead(&w.plan, ahead, 50);
	rounds_wanted(&w.rounds, ahead, 40, look);
	for (unsigned i = 1; i < 40; i++)
		ck_assert_int_eq(look[i], i < 35 ? ROUNDS_LOW : ROUNDS_BOTH);
	rounds_pass(&w.rounds, 400);
	rounds_event(&w.rounds);
	rounds_wanted(&w.rounds, ahead, 40, look);
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
	ck_assert(rounds_needed(&w.rounds));
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
	ck_assert(!rounds_needed(&w.rounds));
	store_fini(&w.store);
}
END_TEST

/* Where a track is missing the round goes on with the one that was measured. */
START_TEST(resumed)
{
	struct ahead ahead[8];
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 21);
	w.plan.trusted = false;
	walk_track(&w, 310, 310);
	ck_assert(rounds_learn(&w.rounds, &w.plan, &w.store));
	ck_assert_uint_gt(plan_ahead(&w.plan, ahead, 6), 4);
	ck_assert_uint_eq(ahead[0].size, 288);
	ck_assert_uint_eq(ahead[1].size, 295);
	ck_assert_uint_eq(ahead[2].size, 300);
	store_fini(&w.store);
}
END_TEST

/* However many runs of something else have come meanwhile. */
START_TEST(resumed_later)
{
	struct run run = { .count = 1, .step = STEP, .cross = 0.3, .span = 1 };
	struct ahead ahead[8];
	struct way w = { 0 };

	walk_rounds(&w, outer, 5, 21);
	for (unsigned i = 0; i < 30; i++) {
		run.size = 400 + i;
		plan_begin(&w.plan, &run);
	}
	for (unsigned i = 0; i < 3; i++)
		plan_overrun(&w.plan);
	ck_assert_uint_gt(w.plan.uncounted, 5);
	walk_track(&w, 310, 310);
	ck_assert(rounds_learn(&w.rounds, &w.plan, &w.store));
	ck_assert_uint_le(w.plan.uncounted, w.plan.n);
	ck_assert_uint_gt(plan_ahead(&w.plan, ahead, 6), 4);
	ck_assert_uint_eq(ahead[0].size, 288);
	ck_assert_uint_eq(ahead[1].size, 295);
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

	tcase_add_test(tc, least);
	tcase_add_test(tc, last);
	tcase_add_test(tc, turned);
	tcase_add_test(tc, up_and_down);
	tcase_add_test(tc, unclear);
	tcase_add_test(tc, looks);
	tcase_add_test(tc, any_last);
	tcase_add_test(tc, absorbed);
	tcase_add_test(tc, doubted);
	tcase_add_test(tc, both_sides);
	tcase_add_test(tc, over);
	tcase_add_test(tc, resumed);
	tcase_add_test(tc, resumed_later);
	tcase_add_test(tc, guessed);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
