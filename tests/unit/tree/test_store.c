/*
 * test_store.c - what the tree promises besides its items: logged data, owners
 * and free space, bad sectors, full node tracks, small memory, read-only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/msg.h"
#include "tests/rig/test.h"
#include "tests/rig/treeworld.h"
#include "tree/node.h"
#include "tree/tree_internal.h"

static struct world w;

static void some_changes(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		world_begin_change(&w);
	ck_assert(world_settle(&w));
}

/* ---- Logged data ---- */

struct logged {
	uint64_t ino, block;
	uint8_t fill;
};

static int log_one(struct tree_txn *txn, void *arg)
{
	static uint8_t block[2 * TRAX_BLOCK_BYTES];
	const struct logged *l = arg;
	const struct iovec iov[2] = {
		{ block, 100 }, { block + 100, sizeof(block) - 100 },
	};
	uint64_t sums[2];

	memset(block, l->fill, sizeof(block));
	sums[0] = sums[1] = csum(block, TRAX_BLOCK_BYTES);
	tree_log_data(txn, l->ino, l->block, 2, sums, iov, 2);
	return 0;
}

static uint64_t log_data_of(uint64_t ino, uint64_t block, uint8_t fill)
{
	static const struct tree_bounds bounds = {
		.nodes = 1, .new_nodes = 1, .log_bytes = 3 * TRAX_BLOCK_BYTES,
	};
	struct logged l = { ino, block, fill };
	uint64_t seq;

	ck_assert_int_eq(world_do(&w, &bounds, log_one, &l, &seq), 0);
	ck_assert_uint_gt(seq, 0);
	return seq;
}

static int same_bytes(void *arg, const struct tree_data *data,
		      const void *bytes)
{
	(void)data;
	ck_assert_mem_eq(bytes, arg, TRAX_BLOCK_BYTES);
	return 0;
}

static void check_data(unsigned i, uint64_t ino, uint64_t block, uint8_t fill)
{
	const struct tree_data *data;
	uint8_t want[TRAX_BLOCK_BYTES];

	memset(want, fill, sizeof(want));
	ck_assert_uint_gt(tree_recovered_data(w.tree, &data), i);
	ck_assert_uint_eq(data[i].ino, ino);
	ck_assert_uint_eq(data[i].block, block);
	ck_assert_uint_eq(data[i].sum, csum(want, sizeof(want)));
	ck_assert_int_eq(tree_recovered_read(w.tree, i, 1, same_bytes, want),
			 0);
}

static void crash_and_open(void)
{
	world_crash(&w);
	ck_assert_int_eq(world_open(&w, false), 0);
}

START_TEST(logged_data_is_found_again)
{
	const struct tree_data *data;
	uint64_t seq;

	world_init(&w, 5, 100, 100, true);
	ck_assert_int_eq(world_mount(&w), 0);
	log_data_of(70, 3, 'a');
	log_data_of(71, 9, 'b');
	log_data_of(70, 4, 'c');
	ck_assert_int_eq(world_commit(&w), 0);
	/* Held: a root does not make the log forget it. */
	ck_assert_int_eq(world_checkpoint(&w), 0);
	some_changes(5);
	ck_assert_int_eq(world_checkpoint(&w), 0);
	crash_and_open();
	ck_assert_uint_eq(tree_recovered_data(w.tree, &data), 5);
	check_data(0, 70, 3, 'a');
	check_data(1, 71, 9, 'b');
	check_data(3, 70, 4, 'c');
	check_data(4, 70, 5, 'c');
	ck_assert_uint_gt(tree_recovered(w.tree)->data_blocks, 0);
	ck_assert_int_eq(tree_start(w.tree), 0);
	/* Until it is unheld it stays, over epochs. */
	ck_assert_int_eq(world_checkpoint(&w), 0);
	crash_and_open();
	ck_assert_uint_eq(tree_recovered_data(w.tree, &data), 5);
	check_data(0, 70, 3, 'a');
	check_data(4, 70, 5, 'c');
	ck_assert_int_eq(tree_start(w.tree), 0);
	for (unsigned i = 0; i < 5; i++)
		tree_log_unpin(w.tree, data[i].seq);
	tree_recovered_end(w.tree);
	seq = log_data_of(72, 0, 'd');
	ck_assert_int_eq(world_commit(&w), 0);
	tree_log_unpin(w.tree, seq);
	ck_assert_int_eq(world_checkpoint(&w), 0);
	crash_and_open();
	ck_assert_uint_eq(tree_recovered_data(w.tree, &data), 0);
	world_fini(&w);
}
END_TEST

/* Data that is never destaged fills the log until not even a transaction that
 * would free some finds room: the file system fails, and the log is kept. */
START_TEST(a_log_that_nothing_frees_fails_the_tree)
{
	static const struct tree_bounds bounds = {
		.nodes = 1, .new_nodes = 1, .urgent = true,
		.log_bytes = 3 * TRAX_BLOCK_BYTES,
	};
	struct logged l = { .ino = 70, .fill = 'x' };
	const struct tree_data *data;
	size_t n = 0;
	int rc;

	world_init(&w, 6, 100, 100, _i);
	ck_assert_int_eq(world_mount(&w), 0);
	while (!(rc = world_do(&w, &bounds, log_one, &l, NULL))) {
		ck_assert_int_eq(world_commit(&w), 0);
		l.block += 2;
		n += 2;
	}
	ck_assert_int_eq(rc, -EROFS);
	ck_assert(tree_failed(w.tree));
	ck_assert_uint_gt(log_fill_percent(tree_log(w.tree)), 95);
	crash_and_open();
	ck_assert_uint_eq(tree_recovered_data(w.tree, &data), n);
	check_data(0, 70, 0, 'x');
	world_fini(&w);
}
END_TEST

static void end_at_once(struct tree_txn *txn, void *arg, int rc)
{
	*(int *)arg = rc;
	tree_txn_end(txn);
}

/* While a long checkpoint still writes nodes room is to come. */
START_TEST(a_log_waits_for_a_long_checkpoint)
{
	static const struct tree_txn_ops ops = { end_at_once };
	static const struct tree_bounds bounds = {
		.nodes = 1, .new_nodes = 1, .urgent = true,
		.log_bytes = 3 * TRAX_BLOCK_BYTES,
	};
	struct logged l = { .ino = 70, .fill = 'x' };
	struct tree_txn *txn;
	int rc = 1;

	world_init(&w, 6, 100, 100, false);
	ck_assert_int_eq(world_mount(&w), 0);
	while (log_reserve(tree_log(w.tree), bounds.log_bytes, true)) {
		log_release(tree_log(w.tree), bounds.log_bytes);
		ck_assert_int_eq(world_do(&w, &bounds, log_one, &l, NULL), 0);
		ck_assert_int_eq(world_commit(&w), 0);
		l.block += 2;
	}
	ck_assert_int_eq(tree_begin(w.tree, &bounds, &ops, &rc, &txn), 0);
	for (unsigned seconds = 0; seconds < 200; seconds++) {
		sim_advance(w.sim, NS_PER_SECOND);
		w.tree->stats.node_writes++;
		ck_assert(world_turn(&w));
	}
	ck_assert(!tree_failed(w.tree));
	for (unsigned seconds = 0; rc == 1; seconds++) {
		ck_assert_uint_lt(seconds, 200);
		sim_advance(w.sim, NS_PER_SECOND);
		ck_assert(world_turn(&w));
	}
	ck_assert_int_eq(rc, -EROFS);
	crash_and_open();
	world_fini(&w);
}
END_TEST

/* ---- Owners ---- */

struct put_owner {
	uint64_t addr, n;	/* n 0: delete */
};

struct put_owners {
	struct put_owner item[4];
	unsigned n;
};

static int put_all(struct tree_txn *txn, void *arg)
{
	const struct put_owners *p = arg;
	struct tree_item item;
	int rc = 0;

	for (unsigned i = 0; i < p->n; i++)
		if (tree_get(txn, key_make(0, ITEM_OWNER, p->item[i].addr),
			     &item) == -EAGAIN)
			rc = -EAGAIN;
	for (unsigned i = 0; i < p->n && !rc; i++) {
		const struct key key = key_make(0, ITEM_OWNER,
						p->item[i].addr);
		const struct owner_item owner = {
			.sectors = le64_put(p->item[i].n),
			.kind = OWNER_DATA,
			.ino = le64_put(100),
		};

		if (p->item[i].n)
			tree_put(txn, key, &owner, sizeof(owner));
		else
			tree_del(txn, key);
	}
	return rc;
}

static void owners(struct put_owners p)
{
	static const struct tree_bounds bounds = {
		.nodes = 8, .new_nodes = 8, .log_bytes = 1024,
	};

	ck_assert_int_eq(world_do(&w, &bounds, put_all, &p, NULL), 0);
}

static struct space_counts counts(void)
{
	struct space_counts c;

	space_count(tree_space(w.tree), &c);
	return c;
}

static void load_done(struct waiter *waiter, int rc)
{
	int *result = waiter->owner;

	*result = rc;
}

static void load_group(void)
{
	int result = 1;
	struct waiter waiter = { .done = load_done, .owner = &result };

	tree_load_group(w.tree, 0, &waiter);
	ck_assert_int_eq(result, 1);
	while (result == 1)
		ck_assert(world_turn(&w));
	ck_assert_int_eq(result, 0);
	ck_assert(space_group_loaded(tree_space(w.tree), 0));
}

START_TEST(owners_put_are_taken_from_the_free_space)
{
	const uint64_t at = 40000;
	const struct rangeset *set;
	struct space_counts before;

	world_init(&w, 6, 100, 100, false);
	ck_assert_int_eq(world_mount(&w), 0);
	load_group();
	set = space_free_set(tree_space(w.tree));
	before = counts();
	ck_assert_int_eq(space_take(tree_space(w.tree), at, 100), 0);
	owners((struct put_owners){ { { at, 100 } }, 1 });
	ck_assert_uint_eq(counts().free, before.free - 100);
	/* A hole of 20 in the middle: only these become pending. */
	owners((struct put_owners){ { { at, 40 }, { at + 60, 40 } }, 2 });
	ck_assert_uint_eq(counts().pending, 20);
	ck_assert_uint_eq(counts().free, before.free - 80);
	ck_assert(!rangeset_meets(set, at, 100));
	/* Joined again over the hole is not possible now; moved ends are. */
	owners((struct put_owners){ { { at, 30 }, { at + 30, 10 } }, 2 });
	owners((struct put_owners){ { { at + 30, 0 }, { at, 40 } }, 2 });
	ck_assert_uint_eq(counts().pending, 20);
	ck_assert_int_eq(world_checkpoint(&w), 0);
	ck_assert_uint_eq(counts().pending, 0);
	ck_assert(rangeset_has(set, at + 40, 20));
	ck_assert(!rangeset_meets(set, at, 40));
	ck_assert(!rangeset_meets(set, at + 60, 40));
	owners((struct put_owners){ { { at, 0 }, { at + 60, 0 } }, 2 });
	ck_assert_int_eq(world_commit(&w), 0);
	world_crash(&w);
	ck_assert_int_eq(world_mount(&w), 0);
	ck_assert_uint_eq(counts().free, before.free);
	ck_assert_uint_eq(counts().pending, 0);
	load_group();
	ck_assert(rangeset_has(space_free_set(tree_space(w.tree)), at, 100));
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

/* ---- Inode numbers ---- */

static int put_inode(struct tree_txn *txn, void *arg)
{
	const struct inode_item inode = {
		.mode = le32_put(0100644), .nlink = le32_put(1),
		.generation = le32_put(1),
	};
	const struct key key = key_make(*(uint64_t *)arg, ITEM_INODE, 0);
	struct tree_item item;
	int rc = tree_get(txn, key, &item);

	if (rc == -EAGAIN)
		return rc;
	if (rc == -ENOENT)
		tree_put(txn, key, &inode, sizeof(inode));
	else
		tree_del(txn, key);
	return 0;
}

START_TEST(counters_of_inodes_survive_a_crash)
{
	static const struct tree_bounds bounds = {
		.nodes = 4, .new_nodes = 4, .log_bytes = 512,
	};
	uint64_t ino = ino_make(9, 500);

	world_init(&w, 8, 100, 100, false);
	ck_assert_int_eq(world_mount(&w), 0);
	ck_assert_int_eq(world_do(&w, &bounds, put_inode, &ino, NULL), 0);
	ck_assert_uint_eq(tree_inodes(w.tree), 1);
	ck_assert_uint_eq(tree_new_ino_seq(w.tree), 501);
	ck_assert_uint_eq(tree_new_dirgroup(w.tree), 10);
	ck_assert_int_eq(world_commit(&w), 0);
	world_crash(&w);
	ck_assert_int_eq(world_mount(&w), 0);
	ck_assert_uint_eq(tree_inodes(w.tree), 1);
	ck_assert_uint_ge(tree_new_ino_seq(w.tree), 501);
	ck_assert_uint_ge(tree_new_dirgroup(w.tree), 10);
	ck_assert_int_eq(world_do(&w, &bounds, put_inode, &ino, NULL), 0);
	ck_assert_uint_eq(tree_inodes(w.tree), 0);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

/* ---- How full leaves are ---- */

#define FILLED_ITEMS 3000u
#define FILLED_FIRST 136u	/* bytes */
#define FILLED_SECOND 300u

struct filled {
	uint64_t ino;
	size_t bytes;
};

static int put_filled(struct tree_txn *txn, void *arg)
{
	static const uint8_t value[FILLED_SECOND];
	const struct filled *f = arg;
	const struct key key = key_make(f->ino, ITEM_INLINE, 0);
	struct tree_item item;
	int rc = tree_get(txn, key, &item);

	if (rc && rc != -ENOENT)
		return rc;
	tree_put(txn, key, value, f->bytes);
	return 0;
}

static uint64_t used_slots(void)
{
	const struct space *space = tree_space(w.tree);

	return space_slots_total(space) - space_slots_free(space);
}

/* Every second item comes later, in the same order, as data does after the
 * files were made: what fills the leaves a second time goes to the left while
 * there is room. */
START_TEST(leaves_share_with_their_neighbours)
{
	static const struct tree_bounds bounds = {
		.nodes = 8, .new_nodes = 8, .log_bytes = 1024,
	};
	const uint64_t bytes = FILLED_ITEMS *
		(FILLED_FIRST + FILLED_SECOND + 2 * NODE_ITEM_BYTES);
	struct filled f;
	uint64_t before, used;

	world_init(&w, 9, 2000, 100, false);
	ck_assert_int_eq(world_mount(&w), 0);
	before = used_slots();
	for (unsigned i = 0; i < 2 * FILLED_ITEMS; i++) {
		const bool data = i >= FILLED_ITEMS;

		f.ino = 1000 + 2 * (i % FILLED_ITEMS) + data;
		f.bytes = data ? FILLED_SECOND : FILLED_FIRST;
		ck_assert_int_eq(world_do(&w, &bounds, put_filled, &f, NULL),
				 0);
	}
	ck_assert_int_eq(world_checkpoint(&w), 0);
	used = used_slots() - before;
	/* Two slots a leaf, which are full by two thirds and more. */
	ck_assert_uint_lt(used * NODE_BODY_BYTES * 2 / 3, 2 * bytes);
	world_crash(&w);
	world_fini(&w);
}
END_TEST

/* ---- Bad sectors ---- */

/* Node writes fail: they go elsewhere, and everything above them again. */
START_TEST(nodes_that_fail_go_elsewhere)
{
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES,
		.first = 12288, .sectors = 4096,
		.k = 1 + (uint64_t)_i * 2, .times = 1 + (uint64_t)_i % 3,
	};

	world_init(&w, 20 + (uint64_t)_i, 800, 1500, _i % 2);
	ck_assert_int_eq(world_mount(&w), 0);
	some_changes(60);
	ck_assert_int_eq(world_checkpoint(&w), 0);
	ck_assert_int_eq(sim_fault_add(w.sim, &fault), 0);
	for (unsigned round = 0; round < 12; round++) {
		some_changes(15);
		ck_assert_int_eq(world_checkpoint(&w), 0);
		world_check(&w);
	}
	ck_assert_uint_gt(sim_fault_hits(w.sim), 0);
	sim_fault_clear(w.sim);
	some_changes(10);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare(&w);
	world_check(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

/* Nothing can be written any more: told to everybody, no changes. */
START_TEST(without_any_write_all_changes_fail)
{
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES, .k = 1,
	};
	static const struct tree_bounds bounds = {
		.nodes = 1, .new_nodes = 1, .log_bytes = 3 * TRAX_BLOCK_BYTES,
	};
	struct logged l = { 70, 1, 'x' };

	world_init(&w, 30, 300, 500, false);
	ck_assert_int_eq(world_mount(&w), 0);
	some_changes(30);
	ck_assert_int_eq(world_commit(&w), 0);
	log_data_of(71, 1, 'y');
	ck_assert_int_eq(sim_fault_add(w.sim, &fault), 0);
	if (_i)
		ck_assert_int_eq(world_commit(&w), -EIO);
	else
		ck_assert_int_eq(world_checkpoint(&w), -EIO);
	ck_assert(world_turn(&w));
	ck_assert(tree_failed(w.tree));
	ck_assert_int_eq(world_do(&w, &bounds, log_one, &l, NULL), -EROFS);
	ck_assert_int_eq(world_commit(&w), -EIO);
	ck_assert_int_eq(world_checkpoint(&w), -EIO);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), -EIO);
	sim_fault_clear(w.sim);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare_crashed(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

static int get_item(struct tree_txn *txn, void *arg)
{
	struct tree_item item;

	return tree_get(txn, world_key(*(unsigned *)arg), &item);
}

/* First copies of nodes rot, of leaves or of others: the mirrors serve. */
START_TEST(mirrors_serve_for_rotten_nodes)
{
	static const struct tree_bounds bounds = { .nodes = 4 };
	unsigned good = 0, lost = 0;

	world_init(&w, 40, 1000, 2000, false);
	ck_assert_int_eq(world_mount(&w), 0);
	some_changes(300);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_spoil(&w, _i);
	ck_assert_int_eq(world_mount(&w), 0);
	for (unsigned i = 0; i < w.items; i++) {
		int rc = world_do(&w, &bounds, get_item, &i, NULL);

		if (rc == -EIO)
			lost++;
		else
			ck_assert_int_eq(rc, w.version[i] ? 0 : -ENOENT);
		good += !rc;
	}
	ck_assert_uint_gt(good, 0);
	ck_assert_uint_eq(lost, 0);
	ck_assert(!tree_failed(w.tree));
	world_fini(&w);
}
END_TEST

/* ---- Siblings ---- */

static void get_all_items(void)
{
	static const struct tree_bounds bounds = { .nodes = 4 };

	for (unsigned i = 0; i < w.items; i++)
		ck_assert_int_eq(world_do(&w, &bounds, get_item, &i, NULL),
				 w.version[i] ? 0 : -ENOENT);
}

/* All items, each by itself: many leaves come with one access.  A bad sector
 * costs its own leaf only, which has a mirror. */
START_TEST(a_bad_sector_costs_its_own_leaf_only)
{
	struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_READS, .sectors = 8, .k = 1,
	};
	struct tree_stats stats;
	uint64_t before, reads;

	world_init(&w, 44, 6000, 600, false);
	ck_assert_int_eq(world_mount(&w), 0);
	for (unsigned i = 0; i < 10; i++)
		some_changes(300);
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	before = sim_counts(w.sim)->reads;
	get_all_items();
	reads = sim_counts(w.sim)->reads - before;
	tree_get_stats(w.tree, &stats);
	ck_assert_uint_gt(stats.node_reads + stats.siblings_read, 30);
	ck_assert_uint_le(reads * 3, stats.node_reads + stats.siblings_read);
	ck_assert_int_eq(world_unmount(&w), 0);

	for (unsigned bad = 0; bad < 64; bad++) {
		fault.first = 12288 + bad * 5 * TRAX_NODE_SECTORS;
		ck_assert_int_eq(sim_fault_add(w.sim, &fault), 0);
		ck_assert_int_eq(world_open(&w, true), 0);
		get_all_items();
		world_crash(&w);
		sim_fault_clear(w.sim);
	}
	world_fini(&w);
}
END_TEST

/* ---- Full ---- */

static int del_item(struct tree_txn *txn, void *arg)
{
	const unsigned item = *(unsigned *)arg;
	struct tree_item got;
	int rc = tree_get(txn, world_key(item), &got);

	if (!rc)
		tree_del(txn, world_key(item));
	return rc;
}

START_TEST(a_full_tree_refuses_and_still_deletes)
{
	static const struct tree_bounds bounds = {
		.nodes = 8, .new_nodes = 12, .log_bytes = 256, .urgent = true,
	};

	world_init(&w, 60 + (uint64_t)_i, 3000, 3000, false);
	w.no_growth = true;
	ck_assert_int_eq(world_mount(&w), 0);
	while (!w.refused)
		some_changes(4);
	world_check(&w);
	ck_assert(!tree_failed(w.tree));
	for (unsigned i = 0; i < w.items; i++)
		if (w.version[i]) {
			ck_assert_int_eq(world_do(&w, &bounds, del_item, &i,
						  NULL), 0);
			w.version[i] = 0;
		}
	world_compare(&w);
	world_check(&w);
	w.refused = 0;
	some_changes(20);
	ck_assert_uint_eq(w.refused, 0);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

static int put_beyond(struct tree_txn *txn, void *arg)
{
	struct space *space = tree_space(w.tree);
	static const uint8_t value[100];
	const struct key key = world_key(*(unsigned *)arg);
	struct tree_item got;
	int rc = tree_get(txn, key, &got);

	if (rc && rc != -ENOENT)
		return rc;
	ck_assert(space_slots_reserve(space,
				      (unsigned)space_slots_free(space)));
	tree_put(txn, key, value, sizeof(value));
	return 0;
}

/* The bounds of a transaction are wrong and nothing is left: the file system
 * fails, and reads go on. */
START_TEST(a_transaction_beyond_its_bounds_fails)
{
	static const struct tree_bounds bounds = {
		.nodes = 8, .new_nodes = 1, .log_bytes = 256,
	};
	static const struct tree_bounds reading = { .nodes = 8 };
	unsigned item = 3;

	world_init(&w, 61, 1000, 1000, false);
	ck_assert_int_eq(world_mount(&w), 0);
	some_changes(300);
	ck_assert_int_eq(world_checkpoint(&w), 0);
	world_do(&w, &bounds, put_beyond, &item, NULL);
	ck_assert(tree_failed(w.tree));
	ck_assert_int_eq(world_do(&w, &reading, get_item, &item, NULL), 0);
	world_fini(&w);
}
END_TEST

/* ---- Memory ---- */

/* A crash with much memory, recovery with little. */
START_TEST(recovery_needs_little_memory)
{
	struct tree_stats stats;

	world_init(&w, 80 + (uint64_t)_i, 4000, 3700, _i % 2);
	w.pool_bytes = (size_t)64 << 20;
	ck_assert_int_eq(world_mount(&w), 0);
	for (unsigned round = 0; round < 30; round++)
		some_changes(100);
	ck_assert_int_eq(world_checkpoint(&w), 0);
	some_changes(180);
	tree_get_stats(w.tree, &stats);
	ck_assert_uint_gt(stats.nodes_dirty, 215);
	ck_assert_int_eq(world_commit(&w), 0);
	world_crash(&w);
	w.pool_bytes = (size_t)4 << 20;
	ck_assert_int_eq(world_open(&w, true), -ENOMEM);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare(&w);
	world_check(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_int_eq(world_mount(&w), 0);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

/* ---- Read-only ---- */

START_TEST(read_only_changes_nothing)
{
	static const struct tree_bounds bounds = {
		.nodes = 1, .new_nodes = 1, .log_bytes = 3 * TRAX_BLOCK_BYTES,
	};
	struct logged l = { 70, 1, 'x' };
	uint64_t writes;

	world_init(&w, 90, 500, 500, true);
	ck_assert_int_eq(world_mount(&w), 0);
	some_changes(100);
	log_data_of(77, 1, 'q');
	ck_assert_int_eq(world_commit(&w), 0);
	world_crash(&w);
	writes = sim_counts(w.sim)->writes;
	ck_assert_int_eq(world_open(&w, true), 0);
	check_data(0, 77, 1, 'q');
	ck_assert_int_eq(tree_start(w.tree), -EROFS);
	world_compare(&w);
	ck_assert_int_eq(world_do(&w, &bounds, log_one, &l, NULL), -EROFS);
	ck_assert_int_eq(world_unmount(&w), 0);
	ck_assert_uint_eq(sim_counts(w.sim)->writes, writes);
	world_fini(&w);
}
END_TEST

/* ---- Damage at the top ---- */

static void flip(uint64_t sector)
{
	ck_assert_int_eq(sim_flip(w.sim, sector, 1234), 0);
}

static void make_closed(void)
{
	world_init(&w, 95, 400, 500, false);
	ck_assert_int_eq(world_mount(&w), 0);
	some_changes(60);
	ck_assert_int_eq(world_unmount(&w), 0);
}

static void expect_good(void)
{
	ck_assert_int_eq(world_mount(&w), 0);
	ck_assert(tree_recovered(w.tree)->was_clean);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
}

START_TEST(one_good_superblock_is_enough)
{
	uint64_t place[3];

	make_closed();
	super_usual_places(WORLD_SECTORS, place);
	flip(place[0]);
	flip(place[2]);
	expect_good();
	/* All are whole again: each is enough. */
	flip(place[0]);
	flip(place[1]);
	expect_good();
	flip(place[0]);
	flip(place[1]);
	flip(place[2]);
	ck_assert_int_eq(world_mount(&w), -EINVAL);
	flip(place[0]);
	expect_good();
	world_fini(&w);
}
END_TEST

START_TEST(one_good_root_copy_is_enough)
{
	make_closed();
	for (unsigned i = 0; i < 2; i++) {
		/* One copy of each area: a root block, then a payload. */
		flip(w.super.area_sector[0][i] + TRAX_BLOCK_SECTORS * i);
		flip(w.super.area_sector[1][1 - i]);
		expect_good();
	}
	for (unsigned i = 0; i < 4; i++)
		flip(w.super.area_sector[i / 2][i % 2]);
	ck_assert_int_eq(world_mount(&w), -EBADMSG);
	world_fini(&w);
}
END_TEST

/* The newest root is lost: the one before and the log serve, or it is said. */
START_TEST(a_lost_root_is_made_up_for)
{
	struct root root;
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	unsigned newest = 0;
	uint64_t gen = 0;

	make_closed();
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t sector = w.super.area_sector[i][0];

		ck_assert_int_eq(disk_read(sim_disk(w.sim), sector,
					   TRAX_BLOCK_SECTORS, buf), 0);
		if (!root_decode(buf, w.super.uuid, sector, &root) &&
		    root.gen > gen) {
			gen = root.gen;
			newest = i;
		}
	}
	free(buf);
	flip(w.super.area_sector[newest][0]);
	flip(w.super.area_sector[newest][1]);
	ck_assert_int_eq(world_mount(&w), 0);
	ck_assert(!tree_recovered(w.tree)->was_clean);
	world_compare(&w);
	ck_assert_int_eq(world_unmount(&w), 0);
	world_fini(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store");
	TCase *tc = tcase_create("store");

	msg_set_level(MSG_ERROR);
	tcase_add_test(tc, logged_data_is_found_again);
	tcase_add_loop_test(tc, a_log_that_nothing_frees_fails_the_tree, 0, 2);
	tcase_add_test(tc, a_log_waits_for_a_long_checkpoint);
	tcase_add_test(tc, owners_put_are_taken_from_the_free_space);
	tcase_add_test(tc, counters_of_inodes_survive_a_crash);
	tcase_add_test(tc, leaves_share_with_their_neighbours);
	tcase_add_loop_test(tc, nodes_that_fail_go_elsewhere, 0, 12);
	tcase_add_loop_test(tc, without_any_write_all_changes_fail, 0, 2);
	tcase_add_loop_test(tc, mirrors_serve_for_rotten_nodes, 0, 2);
	tcase_add_test(tc, a_bad_sector_costs_its_own_leaf_only);
	tcase_add_loop_test(tc, a_full_tree_refuses_and_still_deletes, 0, 3);
	tcase_add_test(tc, a_transaction_beyond_its_bounds_fails);
	tcase_add_loop_test(tc, recovery_needs_little_memory, 0, 2);
	tcase_add_test(tc, read_only_changes_nothing);
	tcase_add_test(tc, one_good_superblock_is_enough);
	tcase_add_test(tc, one_good_root_copy_is_enough);
	tcase_add_test(tc, a_lost_root_is_made_up_for);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
