/*
 * test_hostile.c - trees that somebody has made wrong on purpose: nodes are
 * changed and all checksums above them made right again.  Whatever they say,
 * mounting, reading, changing and unmounting ends, with errors perhaps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/msg.h"
#include "tests/rig/test.h"
#include "tests/rig/treeworld.h"
#include "tree/node.h"

static struct world w;

static uint64_t dice(uint64_t n)
{
	return test_random(&w.rng) % n;
}

static void flip_bytes(uint8_t *node, size_t from, size_t upto)
{
	for (uint64_t n = 1 + dice(4); n; n--)
		node[from + dice(upto - from)] = (uint8_t)dice(256);
}

static void spoil_interior(uint8_t *node)
{
	const unsigned n = node_count(node);
	const unsigned i = (unsigned)dice(n), k = (unsigned)dice(n);
	struct node_ptr ptr = node_child(node, i);

	switch (dice(5)) {
	case 0:			/* a node that has two places */
		node_child_set(node, k, &ptr);
		break;
	case 1:			/* a node that is its own child */
		ptr.addr = le64_get(((struct node_header *)node)->addr);
		node_child_set(node, k, &ptr);
		break;
	case 2:			/* a place that is none */
		ptr.addr += TRAX_NODE_SECTORS * (1 + dice(100));
		node_child_set(node, i, &ptr);
		break;
	case 3:			/* a hole in the range */
		if (n > 1)
			node_child_remove(node, k);
		break;
	default:
		flip_bytes(node, sizeof(struct node_header),
			   sizeof(struct node_header) +
			   n * sizeof(struct child_slot));
	}
}

static void spoil_leaf(uint8_t *node)
{
	const size_t slots = node_count(node) * sizeof(struct leaf_slot);

	switch (dice(4)) {
	case 0:			/* keys, lengths */
		if (slots)
			flip_bytes(node, sizeof(struct node_header),
				   sizeof(struct node_header) + slots);
		break;
	case 1:			/* values: owners too */
		flip_bytes(node, sizeof(struct node_header) + slots,
			   TRAX_NODE_BYTES);
		break;
	case 2:
		if (node_count(node))
			node_remove(node, (unsigned)dice(node_count(node)));
		break;
	default:
		flip_bytes(node, 0, sizeof(struct node_header));
	}
}

static void write_both(const struct node_ptr *ptr, const void *node)
{
	struct disk *disk = sim_disk(w.sim);

	ck_assert_int_eq(disk_write(disk, ptr->addr, TRAX_NODE_SECTORS, node),
			 0);
	if (ptr->addr2)
		ck_assert_int_eq(disk_write(disk, ptr->addr2,
					    TRAX_NODE_SECTORS, node), 0);
}

/* Spoils about one node in `odds` of a subtree; sets the checksum of ptr. */
static void spoil(struct node_ptr *ptr, unsigned level, uint64_t odds)
{
	uint8_t *node = aligned_alloc(4096, TRAX_NODE_BYTES);

	ck_assert_int_eq(disk_read(sim_disk(w.sim), ptr->addr,
				   TRAX_NODE_SECTORS, node), 0);
	for (unsigned i = 0; level && i < node_count(node); i++) {
		struct node_ptr child = node_child(node, i);

		spoil(&child, level - 1, odds);
		node_child_set(node, i, &child);
	}
	if (dice(odds) == 0) {
		if (level)
			spoil_interior(node);
		else
			spoil_leaf(node);
	}
	write_both(ptr, node);
	ptr->csum = csum(node, TRAX_NODE_BYTES);
	free(node);
}

static void spoil_tree(uint64_t odds)
{
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	struct root best = { .gen = 0 };

	for (unsigned i = 0; i < 2; i++) {
		struct root root;

		ck_assert_int_eq(disk_read(sim_disk(w.sim),
					   w.super.area_sector[i][0],
					   TRAX_BLOCK_SECTORS, buf), 0);
		if (!root_decode(buf, w.super.uuid,
				 w.super.area_sector[i][0], &root) &&
		    root.gen > best.gen)
			best = root;
	}
	spoil(&best.tree, best.level, odds);
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t sector = w.super.area_sector[best.gen & 1][i];

		root_encode(&best, w.super.uuid, sector, buf);
		ck_assert_int_eq(disk_write(sim_disk(w.sim), sector,
					    TRAX_BLOCK_SECTORS, buf), 0);
	}
	free(buf);
}

/* ---- Using it ---- */

struct use {
	unsigned item;
	unsigned how;
};

static int use_item(struct tree_txn *txn, void *arg)
{
	static const uint8_t value[3000];
	const struct use *use = arg;
	const struct key key = world_key(use->item);
	const struct key last = world_key(use->item + 200);
	struct tree_item item;
	int rc = tree_get(txn, key, &item);

	if (rc && rc != -ENOENT)
		return rc;
	if (use->how == 0)
		tree_put(txn, key, value, 1 + use->item % sizeof(value));
	else if (use->how == 1 && !rc)
		tree_del(txn, key);
	else if (use->how == 2)
		return tree_seek_ge(txn, key, last, &item);
	else if (use->how == 3)
		return tree_seek_le(txn, key, world_key(0), &item);
	else if (use->how == 4)
		tree_del_range(txn, key, last, 20);
	return 0;
}

static void use_tree(void)
{
	static const struct tree_bounds bounds = {
		.nodes = 32, .new_nodes = 24, .log_bytes = 4096,
	};

	for (unsigned i = 0; i < 150; i++) {
		struct use use = { (unsigned)dice(w.items),
				   (unsigned)dice(5) };

		world_do(&w, &bounds, use_item, &use, NULL);
		if (dice(40) == 0)
			world_checkpoint(&w);
	}
}

START_TEST(a_hostile_tree_never_crashes_its_reader)
{
	struct media *content;
	static struct world base;

	world_init(&w, 7, 1500, 2500, false);
	ck_assert_int_eq(world_mount(&w), 0);
	for (unsigned i = 0; i < 400; i++)
		world_begin_change(&w);
	ck_assert(world_settle(&w));
	ck_assert_int_eq(world_unmount(&w), 0);
	content = sim_content(w.sim);
	base = w;
	for (uint64_t seed = 0; seed < 60; seed++) {
		world_init_on(&w, &base, content,
			      seed + 1000 * (uint64_t)_i);
		w.may_fail = true;
		spoil_tree(seed % 2 ? 100 : 15);
		if (!world_mount(&w)) {
			use_tree();
			world_unmount(&w);
		}
		world_fini(&w);
	}
	media_free(content);
	world_fini(&base);
}
END_TEST

static void drop(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

int main(void)
{
	Suite *suite = suite_create("hostile");
	TCase *tc = tcase_create("hostile");

	msg_set_sink(drop, NULL);
	tcase_add_loop_test(tc, a_hostile_tree_never_crashes_its_reader, 0, 4);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
