/*
 * fs_txn.c - operations on the tree, run to completion.
 *
 *   start -> tree_begin -> [ run() -> -EAGAIN -> tree_txn_fetch ]* -> end()
 *                            run() -> TICKET_WAIT -> (txn ended) -> again
 *
 * 1. A ticket that waits holds no transaction, so no pins and no room in the
 *    log: nothing that it waits for can wait for it.
 * 2. The nodes met stay pinned from run to run, so each run comes at least one
 *    level deeper in one of the lookups that depend on one another: the number
 *    of runs is bounded by stages x levels.  Runs beyond that are counted
 *    (when memory is short, one may find no frame and run again for nothing);
 *    tests of operations one at a time assert that there are none.
 * 3. run() either changes nothing and says why, or changes and returns 0.
 */
#include "fs/op/fs_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* A range that is searched may go on in the next leaf. */
#define MORE_LEAVES 1u
/* One large item may cut a leaf in three. */
#define MORE_SPLITS 2u
#define MAX_LEAVES 64u

static unsigned ticket_levels(struct fs *fs)
{
	struct tree_stats stats;

	tree_get_stats(fs->tree, &stats);
	return stats.levels ? (unsigned)stats.levels : 1;
}

/*
 * The tree counts the leaves met; nodes changed with their ancestors, whose
 * second copies it adds by itself.  Paths share the root; each leaf changed
 * may be split, each level above once, and the root may get a new one.
 */
void ticket_bounds(struct fs *fs, unsigned paths, unsigned changes,
		   uint32_t log_bytes, struct tree_bounds *bounds)
{
	unsigned levels = ticket_levels(fs);
	unsigned leaves = paths + MORE_LEAVES;
	unsigned above = 0, below = 0;

	if (changes) {
		below = 2 * changes + MORE_SPLITS;
		above = levels + (levels > 2 ? changes * (levels - 2) : 0) + 1;
	}
	bounds->nodes = (uint16_t)(leaves < MAX_LEAVES ? leaves : MAX_LEAVES);
	bounds->new_nodes = (uint16_t)(below + above);
	bounds->log_bytes = log_bytes;
	bounds->urgent = false;
}

static unsigned ticket_max_runs(struct ticket *ticket)
{
	unsigned stages = ticket->type->stages;

	return (stages ? stages : 1) * (ticket_levels(ticket->fs) + 1) + 2;
}

static void ticket_over(struct ticket *ticket, int rc, uint64_t seq)
{
	if (rc == 0 && ticket->unlinked)
		vnode_unlinked(ticket->fs, ticket->unlinked);
	if (ticket->type->end)
		ticket->type->end(ticket, rc, seq);
	else
		ticket_finish(ticket, rc);
}

static void ticket_run(struct tree_txn *txn, void *arg, int rc);

static int ticket_begin(struct ticket *ticket)
{
	static const struct tree_txn_ops ops = { .run = ticket_run };

	ticket->runs = 0;
	ticket->again = false;
	return tree_begin(ticket->fs->tree, &ticket->bounds, &ops, ticket,
			  &ticket->txn);
}

static void ticket_rebegin(struct ticket *ticket)
{
	int rc = ticket_begin(ticket);

	if (rc)
		ticket_over(ticket, rc, 0);
}

static void ticket_run(struct tree_txn *txn, void *arg, int rc)
{
	struct ticket *ticket = arg;
	uint64_t seq;

	if (rc == 0) {
		ticket->runs++;
		if (ticket->runs > ticket->fs->reruns_max)
			ticket->fs->reruns_max = ticket->runs;
		if (ticket->runs > ticket_max_runs(ticket))
			ticket->fs->overruns++;
		rc = ticket->type->run(ticket);
		assert(rc == 0 || !tree_txn_changed(txn));
	}
	if (rc == -EAGAIN) {
		tree_txn_fetch(txn);
		return;
	}
	seq = tree_txn_end(txn);
	ticket->txn = NULL;
	if (rc != TICKET_WAIT)
		ticket_over(ticket, rc, seq);
	else if (ticket->again)
		ticket_rebegin(ticket);
}

int ticket_start_bounded(struct fs *fs, const struct ticket_type *type,
			 const struct tree_bounds *bounds, struct fs_op *op,
			 void *state)
{
	struct ticket *ticket = calloc(1, sizeof(*ticket));
	int rc;

	if (!ticket) {
		if (op)
			fs_answer(fs, op, -ENOMEM);
		return -ENOMEM;
	}
	ticket->fs = fs;
	ticket->type = type;
	ticket->op = op;
	ticket->state = state;
	ticket->bounds = *bounds;
	list_init(&ticket->link);
	list_add(&fs->all_tickets, &ticket->all);
	if (op)
		op->ticket = ticket;
	fs->tickets++;
	rc = ticket_begin(ticket);
	if (rc)
		ticket_finish(ticket, rc);
	return rc;
}

int ticket_start(struct fs *fs, const struct ticket_type *type,
		 struct fs_op *op, void *state)
{
	struct tree_bounds bounds = type->bounds;
	struct tree_bounds derived;

	if (type->paths) {
		ticket_bounds(fs, type->paths, type->changes,
			      bounds.log_bytes, &derived);
		if (!bounds.nodes)
			bounds.nodes = derived.nodes;
		if (!bounds.new_nodes)
			bounds.new_nodes = derived.new_nodes;
	}
	return ticket_start_bounded(fs, type, &bounds, op, state);
}

void ticket_again(struct ticket *ticket)
{
	if (ticket->txn)
		ticket->again = true;
	else
		ticket_rebegin(ticket);
}

void ticket_fail(struct ticket *ticket, int rc)
{
	assert(!ticket->txn);
	ticket_over(ticket, rc, 0);
}

void ticket_finish(struct ticket *ticket, int rc)
{
	struct fs *fs = ticket->fs;
	struct fs_op *op = ticket->op;

	list_del(&ticket->link);
	list_del(&ticket->all);
	free(ticket);
	fs->tickets--;
	if (op)
		fs_answer(fs, op, rc);
}

void ticket_free_state(struct ticket *ticket)
{
	free(ticket->state);
}

void ticket_forget_all(struct fs *fs)
{
	struct ticket *ticket;

	while ((ticket = list_first(&fs->all_tickets, struct ticket, all))) {
		list_del(&ticket->all);
		if (ticket->type->forget)
			ticket->type->forget(ticket);
		free(ticket);
	}
}

static void ticket_waited(struct waiter *waiter, int rc)
{
	struct ticket *ticket = waiter->owner;

	if (rc)
		ticket_fail(ticket, rc);
	else
		ticket_again(ticket);
}

static void ticket_waiter(struct ticket *ticket)
{
	ticket->waiter.done = ticket_waited;
	ticket->waiter.owner = ticket;
	list_init(&ticket->waiter.link);
}

int ticket_wait_group(struct ticket *ticket, uint32_t group)
{
	ticket_waiter(ticket);
	tree_load_group(ticket->fs->tree, group, &ticket->waiter);
	return TICKET_WAIT;
}

int ticket_wait_checkpoint(struct ticket *ticket)
{
	ticket_waiter(ticket);
	tree_checkpoint(ticket->fs->tree, &ticket->waiter);
	return TICKET_WAIT;
}
