/*
 * txn_state.c - a transaction by itself: made and freed, the nodes that it has
 * pinned, and the lists in which it waits.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "tree/tree_internal.h"

/* Buffers that may be pinned in the smallest pool: by three of the largest
 * transactions. */
#define PINS_LEAST (3 * TREE_MAX_NODES)
/* Buffers that may become dirty while the others are written: those of two of
 * the largest transactions. */
#define DIRTY_APART (2 * TREE_MAX_NODES)
/* Most dirty buffers: 256 MiB of nodes; a cut takes 1 ms then. */
#define DIRTY_MOST 16384u

int txn_new(struct tree *tree, const struct tree_bounds *bounds,
	    const struct tree_txn_ops *ops, void *arg, struct tree_txn **txn)
{
	const unsigned pins = 2u * bounds->nodes + bounds->new_nodes + 16;
	struct tree_txn *t;

	/* The transaction of recovery runs alone: it has no ops and no
	 * bound. */
	assert(bounds->nodes && (!ops || bounds->nodes <= TREE_MAX_NODES));
	t = calloc(1, sizeof(*t) + pins * sizeof(*t->pins));
	if (!t)
		return -ENOMEM;
	t->tree = tree;
	t->bounds = *bounds;
	t->ops = ops;
	t->arg = arg;
	t->pins = (struct buffer **)(t + 1);
	t->pins_room = pins;
	list_init(&t->link);
	*txn = t;
	return 0;
}

bool txn_may_log(struct tree_txn *txn)
{
	if (txn->bounds.log_bytes && !txn->log)
		txn->log = malloc(txn->bounds.log_bytes);
	return txn->log || !txn->bounds.log_bytes;
}

void txn_unpin_all(struct tree_txn *txn)
{
	for (unsigned i = 0; i < txn->pins_n; i++)
		buffer_unpin(txn->tree->buffers, txn->pins[i]);
	txn->pins_n = txn->leaves = 0;
}

void txn_free(struct tree_txn *txn)
{
	txn_unpin_all(txn);
	rmap_free(&txn->rmap);
	free(txn->miss);
	free(txn->log);
	free(txn);
}

void txn_pin(struct tree_txn *txn, struct buffer *buffer)
{
	for (unsigned i = txn->pins_n; i-- > 0;)
		if (txn->pins[i] == buffer)
			return;
	if (txn->pins_n == txn->pins_room) {
		/* An interior node stays as long as a node below it does. */
		assert(buffer->level);
		return;
	}
	if (!buffer->level) {
		/* Otherwise the bound of this transaction's type is wrong. */
		assert(txn->leaves < txn->bounds.nodes);
		txn->leaves++;
	}
	buffer_pin(txn->tree->buffers, buffer);
	txn->pins[txn->pins_n++] = buffer;
}

unsigned tree_txn_room(const struct tree_txn *txn)
{
	const unsigned taken = txn->leaves + txn->miss_n;

	return taken < txn->bounds.nodes ? txn->bounds.nodes - taken : 0;
}

void txn_add_ready(struct tree_txn *txn)
{
	list_del(&txn->link);
	txn->state = TXN_READY;
	list_add(&txn->tree->ready, &txn->link);
}

void txn_feed_starved(struct tree *tree)
{
	while (!list_empty(&tree->starved))
		txn_add_ready(list_first(&tree->starved, struct tree_txn,
					 link));
}

void txn_loaded(struct tree_txn *txn, traxaddr addr, int rc)
{
	if (rc && txn->failed_n < TREE_MAX_FAILED)
		txn->failed[txn->failed_n++] = addr;
	else if (rc)
		txn->rc = rc;
	if (--txn->loads == 0)
		txn_add_ready(txn);
}

/* An eighth of the buffers, or PINS_LEAST if that is more, but not above half
 * of them. */
size_t tree_pins_most(const struct tree *tree)
{
	const size_t count = tree->buffers->count;
	const size_t most = count / 8 > PINS_LEAST ? count / 8 : PINS_LEAST;

	return most < count / 2 ? most : count / 2;
}

/* What is not for pins may be dirty, but for an eighth, or DIRTY_APART if that
 * is more but not above half of it, which goes on being changed while the rest
 * is written.  A cut takes all that are dirty, in one turn: DIRTY_MOST. */
size_t tree_dirty_most(const struct tree *tree)
{
	const size_t most = tree->buffers->count - tree_pins_most(tree);
	size_t apart = most / 8 > DIRTY_APART ? most / 8 : DIRTY_APART;

	apart = apart < most / 2 ? apart : most / 2;
	return most - apart < DIRTY_MOST ? most - apart : DIRTY_MOST;
}

size_t tree_dirty_room(const struct tree *tree)
{
	const size_t most = tree->buffers->count - tree_pins_most(tree);
	const size_t room = most > tree->buffers->n_frozen ?
		most - tree->buffers->n_frozen : 0;

	return room < tree_dirty_most(tree) ? room : tree_dirty_most(tree);
}
