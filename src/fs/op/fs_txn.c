/*
 * fs_txn.c - operations on the tree, run to completion.
 *
 *   start -> tree_begin -> [ run() -> -EAGAIN -> tree_txn_fetch ]* -> end()
 *                            run() -> FS_TXN_WAIT -> (txn ended) -> again
 *
 * 1. A transaction that waits for something else than nodes (FS_TXN_WAIT) has
 *    ended its transaction of the tree, so it holds no pins and no room in the
 *    log: nothing that it waits for can wait for it.
 * 2. The nodes met stay pinned from run to run, so each run comes at least one
 *    level deeper in one of the lookups that depend on one another: the number
 *    of runs is bounded by stages x levels.  Runs beyond that are counted
 *    (when memory is short, one may find no buffer and run again for nothing);
 *    tests of operations one at a time assert that there are none.
 * 3. run() either changes nothing and returns the reason, or changes the tree
 *    and returns 0.
 */
#include "fs/op/fs_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Leaves beyond one for each path: a range that is searched may go on in the
 * next leaf. */
#define MORE_LEAVES 1u
/* One large item may cut a leaf in three, which is two splits more than an
 * ordinary change. */
#define MORE_SPLITS 2u

static unsigned fs_txn_levels(struct fs *fs)
{
	struct tree_stats stats;

	tree_get_stats(fs->tree, &stats);
	return stats.levels ? (unsigned)stats.levels : 1;
}

/*
 * Bounds of a transaction.  `nodes` counts leaves met; `new_nodes` counts nodes
 * changed with their ancestors (the tree adds their mirrors by itself): each
 * leaf changed may be split; paths share the root; each level above is split
 * once at most, and the root may get a parent.
 */
void fs_txn_bounds(struct fs *fs, unsigned paths, unsigned changes,
		   uint32_t log_bytes, struct tree_bounds *bounds)
{
	unsigned levels = fs_txn_levels(fs);
	unsigned leaves = paths + MORE_LEAVES;
	unsigned above = 0, below = 0;

	if (changes) {
		below = 2 * changes + MORE_SPLITS;
		above = levels + (levels > 2 ? changes * (levels - 2) : 0) + 1;
	}
	bounds->nodes = (uint16_t)(leaves < TREE_MAX_NODES ? leaves :
							   TREE_MAX_NODES);
	bounds->new_nodes = (uint16_t)(below + above);
	bounds->log_bytes = log_bytes;
	bounds->urgent = bounds->promised = false;
}

static unsigned fs_txn_max_runs(struct fs_txn *txn)
{
	unsigned stages = txn->type->stages;

	return (stages ? stages : 1) * (fs_txn_levels(txn->fs) + 1) + 2;
}

static void fs_txn_over(struct fs_txn *txn, int rc, uint64_t seq)
{
	if (rc == 0 && txn->unlinked)
		vnode_unlinked(txn->fs, txn->unlinked);
	if (txn->type->end)
		txn->type->end(txn, rc, seq);
	else
		fs_txn_finish(txn, rc);
}

static void fs_txn_run(struct tree_txn *tree_txn, void *arg, int rc);

static int fs_txn_begin(struct fs_txn *txn)
{
	static const struct tree_txn_ops ops = { .run = fs_txn_run };

	txn->runs = 0;
	txn->restart = false;
	return tree_begin(txn->fs->tree, &txn->bounds, &ops, txn,
			  &txn->tree_txn);
}

static void fs_txn_rebegin(struct fs_txn *txn)
{
	int rc = fs_txn_begin(txn);

	if (rc)
		fs_txn_over(txn, rc, 0);
}

static void fs_txn_run(struct tree_txn *tree_txn, void *arg, int rc)
{
	struct fs_txn *txn = arg;
	uint64_t seq;

	if (rc == 0) {
		txn->runs++;
		if (txn->runs > txn->fs->reruns_max)
			txn->fs->reruns_max = txn->runs;
		if (txn->runs > fs_txn_max_runs(txn))
			txn->fs->overruns++;
		rc = txn->type->run(txn);
		assert(rc == 0 || !tree_txn_changed(tree_txn));
	}
	if (rc == -EAGAIN) {
		tree_txn_fetch(tree_txn);
		return;
	}
	seq = tree_txn_end(tree_txn);
	txn->tree_txn = NULL;
	if (rc != FS_TXN_WAIT)
		fs_txn_over(txn, rc, seq);
	else if (txn->restart)
		fs_txn_rebegin(txn);
}

int fs_txn_start_bounded(struct fs *fs, const struct fs_txn_type *type,
			 const struct tree_bounds *bounds, struct fs_op *op,
			 void *state)
{
	struct fs_txn *txn = calloc(1, sizeof(*txn));
	int rc;

	if (!txn) {
		if (op)
			fs_answer(fs, op, -ENOMEM);
		return -ENOMEM;
	}
	txn->fs = fs;
	txn->type = type;
	txn->op = op;
	txn->state = state;
	txn->bounds = *bounds;
	list_init(&txn->link);
	list_add(&fs->all_txns, &txn->all_link);
	if (op)
		op->txn = txn;
	fs->txn_count++;
	rc = fs_txn_begin(txn);
	if (rc)
		fs_txn_finish(txn, rc);
	return rc;
}

int fs_txn_start(struct fs *fs, const struct fs_txn_type *type,
		 struct fs_op *op, void *state)
{
	struct tree_bounds bounds = type->bounds;
	struct tree_bounds derived;

	if (type->paths) {
		fs_txn_bounds(fs, type->paths, type->changes,
			      bounds.log_bytes, &derived);
		if (!bounds.nodes)
			bounds.nodes = derived.nodes;
		if (!bounds.new_nodes)
			bounds.new_nodes = derived.new_nodes;
	}
	return fs_txn_start_bounded(fs, type, &bounds, op, state);
}

void fs_txn_restart(struct fs_txn *txn)
{
	if (txn->tree_txn)
		txn->restart = true;
	else
		fs_txn_rebegin(txn);
}

void fs_txn_fail(struct fs_txn *txn, int rc)
{
	assert(!txn->tree_txn);
	fs_txn_over(txn, rc, 0);
}

void fs_txn_finish(struct fs_txn *txn, int rc)
{
	struct fs *fs = txn->fs;
	struct fs_op *op = txn->op;

	list_del(&txn->link);
	list_del(&txn->all_link);
	free(txn);
	fs->txn_count--;
	if (op)
		fs_answer(fs, op, rc);
}

void fs_txn_free_state(struct fs_txn *txn)
{
	free(txn->state);
}

void fs_txn_free_all(struct fs *fs)
{
	struct fs_txn *txn;

	while ((txn = list_first(&fs->all_txns, struct fs_txn, all_link))) {
		list_del(&txn->all_link);
		if (txn->type->free_state)
			txn->type->free_state(txn);
		free(txn);
	}
}

static void fs_txn_waited(struct waiter *waiter, int rc)
{
	struct fs_txn *txn = waiter->owner;

	if (rc)
		fs_txn_fail(txn, rc);
	else
		fs_txn_restart(txn);
}

static void fs_txn_waiter(struct fs_txn *txn)
{
	txn->waiter.done = fs_txn_waited;
	txn->waiter.owner = txn;
	list_init(&txn->waiter.link);
}

int fs_txn_wait_group(struct fs_txn *txn, uint32_t group)
{
	fs_txn_waiter(txn);
	txn->groups++;
	tree_load_group(txn->fs->tree, group, &txn->waiter);
	return FS_TXN_WAIT;
}

int fs_txn_wait_list(struct fs_txn *txn, struct list *waits)
{
	fs_txn_waiter(txn);
	list_add(waits, &txn->waiter.link);
	return FS_TXN_WAIT;
}

int fs_txn_wait_checkpoint(struct fs_txn *txn)
{
	fs_txn_waiter(txn);
	tree_checkpoint(txn->fs->tree, &txn->waiter);
	return FS_TXN_WAIT;
}
