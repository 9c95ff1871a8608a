/*
 * test_tree.c - the store on a simulated disk against a model: random
 * transactions side by side, evictions, checkpoints, clean and unclean mounts,
 * power cuts, faults, and the same run twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "tests/rig/test.h"
#include "tests/rig/treeworld.h"

static struct world w;

static void some_ops(struct world *world, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uint64_t dice = test_random(&world->rng) % 200;

		if (dice < world->ranges)
			world_begin_range_delete(world);
		else if (dice < 50)
			world_begin_read(world);
		else
			world_begin_change(world);
	}
}

static void check_reruns(const struct world *world)
{
	struct tree_stats stats;

	tree_get_stats(world->tree, &stats);
	ck_assert_uint_le(stats.max_reruns, stats.levels + 2);
}

/* ---- Against the model ---- */

START_TEST(a_small_tree_agrees_with_the_model)
{
	world_init(&w, (uint64_t)_i + 1, 300, 400, _i % 2);
	ck_assert_int_eq(world_mount(&w), 0);
	for (unsigned round = 0; round < 40; round++) {
		some_ops(&w, 12);
		ck_assert(world_settle(&w));
		world_check(&w);
		if (round % 7 == 3)
			ck_assert_int_eq(world_commit(&w), 0);
		if (round % 10 == 9)
			ck_assert_int_eq(world_checkpoint(&w), 0);
	}
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	ck_assert(tree_recovered(w.tree)->was_clean);
	world_compare(&w);
	world_check(&w);
	ck_assert_uint_eq(w.refused, 0);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

/* 6,000 operations; the tree is looked at three times meanwhile. */
static void many_ops(void)
{
	for (unsigned round = 0; round < 60; round++) {
		some_ops(&w, 100);
		ck_assert(world_settle(&w));
		if (round % 20 == 19)
			world_check(&w);
	}
}

/* More than the pool holds: evictions, growth, splits and joins. */
START_TEST(a_tree_larger_than_memory_agrees_with_the_model)
{
	struct tree_stats stats;

	world_init(&w, (uint64_t)_i + 50, 4000, 3700, _i % 2);
	w.ranges = 1;
	ck_assert_int_eq(world_mount(&w), 0);
	many_ops();
	tree_get_stats(w.tree, &stats);
	ck_assert_uint_gt(stats.checkpoints, 3);
	ck_assert_uint_gt(stats.node_reads, 100);
	ck_assert_uint_le(stats.nodes_cached, 256);
	check_reruns(&w);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare(&w);
	world_check(&w);
	ck_assert_uint_eq(w.refused, 0);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

/* Changes go on while a checkpoint is being written. */
START_TEST(changes_go_on_beside_a_checkpoint)
{
	world_init(&w, (uint64_t)_i + 70, 2000, 1500, true);
	ck_assert_int_eq(world_mount(&w), 0);
	for (unsigned round = 0; round < 30; round++) {
		some_ops(&w, 40);
		for (unsigned i = 0; i < 5; i++)
			ck_assert(world_turn(&w));
		ck_assert_int_eq(world_checkpoint(&w), 0);
	}
	ck_assert(world_settle(&w));
	world_check(&w);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

#define SPILL_POOL_BYTES (6u << 20)
#define SPILL_SEEDS 12

/* Leaves are changed all over a tree that is larger than the memory, so some
 * are written without a checkpoint, read again, and changed again.  Then the
 * power goes in the middle of that. */
START_TEST(leaves_are_spilled_and_survive)
{
	static const enum sim_cut cuts[] = { SIM_CUT_DROP, SIM_CUT_RANDOM,
					     SIM_CUT_KEEP };
	const enum sim_cut cut = cuts[_i % 3];
	struct tree_stats stats;

	world_init(&w, (uint64_t)_i + 90, WORLD_ITEMS, 700, true);
	w.pool_bytes = SPILL_POOL_BYTES;
	w.ranges = _i % 2;
	ck_assert_int_eq(world_mount(&w), 0);
	many_ops();
	tree_get_stats(w.tree, &stats);
	ck_assert_uint_gt(stats.spills, 0);
	world_compare(&w);
	w.may_fail = true;
	sim_power_cut_at(w.sim, 20 + (uint64_t)_i * 29, cut, (uint64_t)_i);
	do
		some_ops(&w, 100);
	while (world_settle(&w));
	ck_assert(sim_is_off(w.sim));
	world_crash(&w);
	sim_power_cut_at(w.sim, 0, cut, 0);
	sim_restart(w.sim);
	w.may_fail = false;
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare_crashed(&w);
	world_check(&w);
	some_ops(&w, 100);
	ck_assert(world_settle(&w));
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

#define GATHER_POOL_BYTES (24u << 20)

static uint64_t gather(unsigned ops)
{
	struct tree_stats stats;

	some_ops(&w, ops);
	ck_assert(world_settle(&w));
	tree_gather(w.tree);
	ck_assert_int_eq(world_checkpoint(&w), 0);
	tree_get_stats(w.tree, &stats);
	return stats.gathered;
}

/* Leaves that random changes have scattered get slots one behind the other;
 * after some times there is nothing left to do.  Then the power goes in the
 * middle of that. */
START_TEST(leaves_are_brought_together)
{
	static const enum sim_cut cuts[] = { SIM_CUT_DROP, SIM_CUT_RANDOM,
					     SIM_CUT_KEEP };
	const enum sim_cut cut = cuts[_i % 3];
	uint64_t gathered = 0, before = 0;

	world_init(&w, (uint64_t)_i + 130, 2000, 1500, true);
	w.pool_bytes = GATHER_POOL_BYTES;
	ck_assert_int_eq(world_mount(&w), 0);
	many_ops();
	for (unsigned round = 0; round < 8 && !gathered; round++)
		gathered = gather(40);
	ck_assert_uint_gt(gathered, 20);
	world_check(&w);
	for (unsigned round = 0; round < 8 && gathered != before; round++) {
		before = gathered;
		gathered = gather(1);
	}
	ck_assert_uint_eq(gathered, before);
	world_compare(&w);
	many_ops();
	w.may_fail = true;
	sim_power_cut_at(w.sim, 1 + (uint64_t)_i, cut, (uint64_t)_i);
	tree_gather(w.tree);
	for (unsigned i = 0; !sim_is_off(w.sim) && i < 20; i++) {
		world_checkpoint(&w);
		some_ops(&w, 5);
		world_settle(&w);
	}
	ck_assert(sim_is_off(w.sim));
	world_crash(&w);
	sim_power_cut_at(w.sim, 0, cut, 0);
	sim_restart(w.sim);
	w.may_fail = false;
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare_crashed(&w);
	world_check(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

/* Reads all from the disk; returns the number of nodes. */
static uint64_t read_all(void)
{
	struct tree_stats stats;

	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare(&w);
	tree_get_stats(w.tree, &stats);
	return stats.nodes_cached;
}

/* Leaves that random changes have left half empty are filled when they are
 * brought together. */
START_TEST(leaves_are_filled)
{
	uint64_t before;

	world_init(&w, (uint64_t)_i + 210, 4000, 3700, true);
	w.pool_bytes = GATHER_POOL_BYTES;
	ck_assert_int_eq(world_mount(&w), 0);
	many_ops();
	before = read_all();
	for (unsigned round = 0; round < 4; round++)
		gather(0);
	ck_assert_uint_lt(read_all() * 10, before * 9);
	world_check(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

static uint64_t sectors_free(void)
{
	struct space_counts counts;

	space_count(tree_space(w.tree), &counts);
	return counts.free;
}

static uint64_t sectors_of_nodes(void)
{
	return space_slots_total(tree_space(w.tree)) * TRAX_NODE_SECTORS;
}

/* As many slots as a tree should have: those that mkfs gives, or twice as many
 * as are in use and some. */
static uint64_t slots_wanted(uint64_t at_first)
{
	const struct space *space = tree_space(w.tree);
	const uint64_t used = space_slots_total(space) -
			      space_slots_free(space);
	const uint64_t some = 3 * WORLD_TRACK / TRAX_NODE_SECTORS;

	return used < at_first / 4 ? at_first : 2 * used + some;
}

/* Checkpoints, beside a few changes, until the tree has only as many as it
 * should. */
static void give_tracks_back(uint64_t at_first)
{
	struct space *space = tree_space(w.tree);

	for (unsigned i = 0; i < 200 && space_slots_total(space) >
					slots_wanted(at_first); i++)
		gather(1);
	ck_assert_uint_le(space_slots_total(space), slots_wanted(at_first));
	ck_assert_int_eq(world_checkpoint(&w), 0);
}

/* A tree that was large has few nodes on many tracks: these go back to the free
 * space.  Then the power goes in the middle of that. */
START_TEST(node_tracks_go_back)
{
	static const enum sim_cut cuts[] = { SIM_CUT_DROP, SIM_CUT_RANDOM,
					     SIM_CUT_KEEP };
	const enum sim_cut cut = cuts[_i % 3];
	uint64_t at_first, slots, most;

	world_init(&w, (uint64_t)_i + 170, 4000, 3700, true);
	w.pool_bytes = GATHER_POOL_BYTES;
	w.ranges = 0;
	ck_assert_int_eq(world_mount(&w), 0);
	at_first = sectors_free() + sectors_of_nodes();
	slots = space_slots_total(tree_space(w.tree));
	for (unsigned life = 0; life < 2; life++) {
		many_ops();
		most = space_slots_total(tree_space(w.tree));
		ck_assert_uint_gt(most, 4 * slots);
		for (unsigned i = 0; i < 400; i++)
			world_begin_range_delete(&w);
		ck_assert(world_settle(&w));
		if (life)
			break;
		give_tracks_back(slots);
		world_check(&w);
		world_compare(&w);
	}
	w.may_fail = true;
	sim_power_cut_at(w.sim, 1 + (uint64_t)_i * 11, cut, (uint64_t)_i);
	for (unsigned i = 0; !sim_is_off(w.sim) && i < 200; i++) {
		tree_gather(w.tree);
		world_checkpoint(&w);
		some_ops(&w, 1);
		world_settle(&w);
	}
	ck_assert(sim_is_off(w.sim));
	while (world_turn(&w))
		;
	world_crash(&w);
	sim_power_cut_at(w.sim, 0, cut, 0);
	sim_restart(w.sim);
	w.may_fail = false;
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare_crashed(&w);
	world_check(&w);
	give_tracks_back(slots);
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare(&w);
	world_check(&w);
	ck_assert_uint_eq(sectors_free() + sectors_of_nodes(), at_first);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

static int do_nothing(struct tree_txn *txn, void *arg)
{
	(void)txn;
	(void)arg;
	return 0;
}

/* Who may write nodes and logs nothing gives all back: else one day nobody is
 * let in any more. */
START_TEST(a_transaction_without_a_record_gives_all_back)
{
	const struct tree_bounds bounds = { .nodes = 2, .new_nodes = 2 };
	unsigned i;

	world_init(&w, 90, 50, 400, false);
	ck_assert_int_eq(world_mount(&w), 0);
	for (i = 0; i < 5000; i++)
		ck_assert_int_eq(world_do(&w, &bounds, do_nothing, NULL, NULL),
				 0);
	some_ops(&w, 12);
	ck_assert(world_settle(&w));
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

START_TEST(a_crashed_tree_agrees_with_its_last_commit)
{
	world_init(&w, (uint64_t)_i + 90, 1500, 900, _i % 2);
	for (unsigned life = 0; life < 6; life++) {
		ck_assert_int_eq(world_mount(&w), 0);
		ck_assert_int_eq(tree_recovered(w.tree)->was_clean, life == 0);
		world_compare_crashed(&w);
		world_check(&w);
		for (unsigned round = 0; round < 15; round++) {
			some_ops(&w, 20);
			for (unsigned i = 0; i < 8; i++)
				ck_assert(world_turn(&w));
			if (test_random(&w.rng) % 4 == 0)
				ck_assert_int_eq(world_commit(&w), 0);
			if (test_random(&w.rng) % 10 == 0)
				ck_assert_int_eq(world_checkpoint(&w), 0);
		}
		world_crash(&w);
	}
	world_fini(&w);
}
END_TEST

/* ---- Where the head is known ---- */

/* Records go where the head comes by, or is wrongly believed to. */
START_TEST(records_go_where_the_head_is)
{
	struct doubt doubt;

	doubt_init(&doubt, "hp-c2247a", WORLD_SECTORS, (enum doubt_kind)_i);
	world_init_drive(&w, &doubt, (uint64_t)_i + 110, 3000, 2500);
	for (unsigned life = 0; life < 5; life++) {
		ck_assert_int_eq(world_mount(&w), 0);
		world_compare_crashed(&w);
		world_check(&w);
		for (unsigned round = 0; round < 24; round++) {
			some_ops(&w, 30);
			for (unsigned i = 0; i < 8; i++)
				ck_assert(world_turn(&w));
			if (test_random(&w.rng) % 2 == 0)
				ck_assert_int_eq(world_checkpoint(&w), 0);
		}
		ck_assert(world_settle(&w));
		world_check(&w);
		world_crash(&w);
	}
	world_fini(&w);
	doubt_fini(&doubt);
}
END_TEST

/* ---- Determinism ---- */

static uint64_t trace_of(uint64_t seed)
{
	uint64_t trace;

	world_init(&w, seed, 800, 2000, true);
	ck_assert_int_eq(world_mount(&w), 0);
	for (unsigned round = 0; round < 20; round++) {
		some_ops(&w, 30);
		ck_assert(world_settle(&w));
	}
	ck_assert_int_eq(world_unmount(&w), 0);
	trace = w.trace;
	world_fini(&w);
	return trace;
}

START_TEST(the_same_seed_is_the_same_run)
{
	const uint64_t first = trace_of(7);

	ck_assert_uint_eq(first, trace_of(7));
	ck_assert_uint_ne(first, trace_of(8));
}
END_TEST

/* ---- Power cuts ---- */

/* A little of everything; false: the power went. */
static bool workload(struct world *world)
{
	world->may_fail = true;
	for (unsigned round = 0; round < 8; round++) {
		some_ops(world, 6);
		if (!world_settle(world))
			return false;
		if (round % 2 && world_commit(world))
			return false;
		if (round % 4 == 3 && world_checkpoint(world))
			return false;
	}
	return true;
}

/* Mounts what a cut left, with another cut in the middle of that. */
static void cut_recovery(const struct world *world,
			 const struct media *content, uint64_t k)
{
	static struct world v;

	world_init_on(&v, world, content, k);
	sim_power_cut_at(v.sim, 1 + k % 12, SIM_CUT_RANDOM, k);
	if (world_mount(&v) || sim_is_off(v.sim)) {
		ck_assert(sim_is_off(v.sim));
		/* The mount was over, its first root was not. */
		if (v.tree)
			world_crash(&v);
		sim_restart(v.sim);
		ck_assert_int_eq(world_mount(&v), 0);
	}
	sim_power_cut_at(v.sim, 0, SIM_CUT_KEEP, 0);
	world_compare_crashed(&v);
	world_check(&v);
	world_fini(&v);
}

static void cut_at(uint64_t k, enum sim_cut cut, const struct world *base,
		   const struct media *content, bool *over)
{
	struct media *left;

	world_init_on(&w, base, content, 11);
	sim_power_cut_at(w.sim, k, cut, k);
	*over = !world_mount(&w) && workload(&w);
	if (w.tree)
		world_crash(&w);
	if (!sim_is_off(w.sim))
		sim_power_cut(w.sim, cut, k);
	sim_power_cut_at(w.sim, 0, cut, 0);
	sim_restart(w.sim);
	left = sim_content(w.sim);
	cut_recovery(&w, left, k);
	media_free(left);
	w.may_fail = false;
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare_crashed(&w);
	world_check(&w);
	some_ops(&w, 10);
	ck_assert(world_settle(&w));
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	ck_assert(tree_recovered(w.tree)->was_clean);
	world_compare(&w);
	world_check(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}

START_TEST(power_cuts_lose_no_commit)
{
	static struct world base;
	struct media *content;
	bool over = false;

	world_init(&base, 3, 250, 700, true);
	ck_assert_int_eq(world_mount(&base), 0);
	some_ops(&base, 60);
	ck_assert(world_settle(&base));
	ck_assert_int_eq(world_unmount(&base), 0);
	content = sim_content(base.sim);
	for (uint64_t k = 1; !over; k++)
		cut_at(k, (enum sim_cut)_i, &base, content, &over);
	media_free(content);
	world_fini(&base);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tree");
	TCase *tc = tcase_create("tree");
	TCase *cuts = tcase_create("cuts");

	msg_set_level(MSG_ERROR);
	tcase_add_loop_test(tc, a_small_tree_agrees_with_the_model, 0, 6);
	tcase_add_loop_test(tc, a_tree_larger_than_memory_agrees_with_the_model,
			    0, 2);
	tcase_add_loop_test(tc, changes_go_on_beside_a_checkpoint, 0, 3);
	tcase_add_loop_test(tc, leaves_are_spilled_and_survive, 0, SPILL_SEEDS);
	tcase_add_loop_test(tc, leaves_are_brought_together, 0, 12);
	tcase_add_loop_test(tc, leaves_are_filled, 0, 4);
	tcase_add_loop_test(tc, node_tracks_go_back, 0, 36);
	tcase_add_test(tc, a_transaction_without_a_record_gives_all_back);
	tcase_add_loop_test(tc, a_crashed_tree_agrees_with_its_last_commit,
			    0, 4);
	tcase_add_loop_test(tc, records_go_where_the_head_is, 0, DOUBT_KINDS);
	tcase_add_test(tc, the_same_seed_is_the_same_run);
	tcase_add_loop_test(cuts, power_cuts_lose_no_commit, 0,
			    SIM_CUT_RANDOM + 1);
	tcase_set_timeout(tc, 120);
	suite_add_tcase(suite, tc);
	suite_add_tcase(suite, cuts);
	return test_run(suite);
}
