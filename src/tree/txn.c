/*
 * txn.c - transactions: admission, runs, their entries for the log.
 *
 *             tree_begin           admitted            run() calls tree_txn_end
 *   (none) ---------------> waiting --------> ready --> open --------> (none)
 *                                               ^        | tree_txn_fetch
 *                                 all reads done|        v
 *                                               +---- fetching
 *
 * Admission is first in, first out.  A transaction that waits for slots, for
 * the log or for dirty nodes to be written delays later changes, but neither
 * readers nor transactions that free space; one that waits for pins delays all
 * others, or it would starve.
 *
 * Why this stays live: some buffers are for pins (tree_pins_most; TREE_OWN_PINS
 * of these for the tree's own work, checkpoints need none).  All others may be
 * dirty or frozen, but some of them are left when writing begins
 * (tree_dirty_most), so that changes go on.  So an admitted transaction always
 * finds a buffer for each node that it changes, and one for each that it reads
 * once others end.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "tree/tree_internal.h"

/* Most transactions that one turn of the loop runs. */
#define MAX_RUNS 64
/* Charged for a run, in nanoseconds: finding, verifying and changing nodes. */
#define RUN_NS 6000u
/* Free slots that only urgent transactions and the tree's own may use, and half
 * of them those that write promised data, too. */
#define KEPT_SLOTS 32

static bool is_writer(const struct tree_txn *txn)
{
	return txn->bounds.new_nodes || txn->bounds.log_bytes;
}

/* ---- Making and freeing ---- */

int tree_begin(struct tree *tree, const struct tree_bounds *bounds,
	       const struct tree_txn_ops *ops, void *arg,
	       struct tree_txn **txn)
{
	int rc = txn_new(tree, bounds, ops, arg, txn);

	if (rc)
		return rc;
	list_add(&tree->waiting, &(*txn)->link);
	tree->begun = true;
	return 0;
}

int txn_begin_own(struct tree *tree, const struct tree_bounds *bounds,
		  const struct tree_txn_ops *ops, void *arg,
		  struct tree_txn **txn)
{
	int rc = txn_new(tree, bounds, ops, arg, txn);

	if (rc)
		return rc;
	(*txn)->own = true;
	list_add_front(&tree->waiting, &(*txn)->link);
	tree->begun = true;
	return 0;
}

/* ---- Pins ---- */

/* Unpins nodes that have left the tree meanwhile. */
static void unpin_dead(struct tree_txn *txn)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < txn->pins_n; i++) {
		struct buffer *buffer = txn->pins[i];

		if (buffer->live) {
			txn->pins[kept++] = buffer;
			continue;
		}
		txn->leaves -= !buffer->level;
		buffer_unpin(txn->tree->buffers, buffer);
	}
	txn->pins_n = kept;
}

/* ---- Admission ---- */

enum verdict { ADMIT, WAIT_PINS, WAIT_ROOM, REFUSE_SPACE, REFUSE_ROFS };

static bool others_hold_slots(const struct tree *tree)
{
	return tree->new_reserved > 0;
}

static bool is_urgent(const struct tree_txn *txn)
{
	return txn->own || txn->bounds.urgent;
}

/* Slots that are kept from a transaction. */
static uint64_t slots_kept(const struct tree *tree, const struct tree_txn *txn)
{
	const uint64_t part = space_slots_total(tree->space) / 8;
	const uint64_t kept = part < KEPT_SLOTS ? part : KEPT_SLOTS;

	if (is_urgent(txn))
		return 0;
	return txn->bounds.promised ? kept / 2 : kept;
}

static enum verdict no_slots(struct tree *tree, const struct tree_txn *txn)
{
	const bool may_grow = is_urgent(txn) || txn->bounds.promised ||
			      space_may_grow(tree->space);
	const bool can_grow = !txn->own && may_grow && growth_can_help(tree);

	if (can_grow && (!others_hold_slots(tree) || growth_is_cheap(tree)))
		tree->growth.wanted = true;
	/* What these transactions don't need comes back without a
	 * checkpoint. */
	if (others_hold_slots(tree))
		return WAIT_ROOM;
	if (ckpt_would_help(tree)) {
		tree->ckpt.wanted = true;
		return WAIT_ROOM;
	}
	return tree->ckpt.phase != CKPT_IDLE || can_grow ? WAIT_ROOM :
							   REFUSE_SPACE;
}

static bool pins_fit(const struct tree *tree, const struct tree_txn *txn)
{
	const size_t most = tree_pins_most(tree);

	if (txn->own)
		return tree->pins_reserved + txn->bounds.nodes <= most;
	return tree->pins_reserved + txn->bounds.nodes <=
	       most - TREE_OWN_PINS;
}

/* Are few enough buffers dirty, or reserved to become dirty? Other transactions
 * give back most of what they have reserved, so only dirty buffers call for a
 * checkpoint. */
static bool dirty_fits(struct tree *tree, const struct tree_txn *txn)
{
	const size_t dirty = tree->buffers->n_dirty + txn->bounds.new_nodes;

	if (txn->own || (!tree->buffers->n_dirty && !tree->new_reserved) ||
	    dirty + tree->new_reserved <= tree_dirty_room(tree))
		return true;
	if (dirty > tree_dirty_most(tree))
		tree->ckpt.pressed = true;
	return false;
}

static enum verdict admit_writer(struct tree *tree, struct tree_txn *txn)
{
	/* Each node has a mirror. */
	const unsigned slots = 2u * txn->bounds.new_nodes;
	const uint64_t kept = slots_kept(tree, txn);

	if (tree->read_only || tree->failed || !tree->started)
		return REFUSE_ROFS;
	if (!tree->log_started)
		return WAIT_ROOM;
	if (!dirty_fits(tree, txn))
		return WAIT_ROOM;
	if (!space_slots_have(tree->space, slots + kept) ||
	    !space_slots_reserve(tree->space, slots))
		return no_slots(tree, txn);
	if (txn->bounds.log_bytes &&
	    !log_reserve(tree->log, txn->bounds.log_bytes, is_urgent(txn))) {
		space_slots_release(tree->space, slots);
		/* Otherwise the log is only busy, and room comes without a
		 * checkpoint. */
		if (log_fill_percent(tree->log) >= CKPT_LOG_PERCENT)
			tree->ckpt.wanted = true;
		tree->log_stuck.met |= is_urgent(txn) &&
				       log_is_alone(tree->log);
		return WAIT_ROOM;
	}
	txn->slots = slots;
	tree->new_reserved += txn->bounds.new_nodes;
	return ADMIT;
}

static enum verdict admit(struct tree *tree, struct tree_txn *txn)
{
	enum verdict verdict;

	if (!pins_fit(tree, txn))
		return WAIT_PINS;
	verdict = is_writer(txn) ? admit_writer(tree, txn) : ADMIT;
	if (verdict == ADMIT)
		tree->pins_reserved += txn->bounds.nodes;
	return verdict;
}

static void refuse(struct tree_txn *txn, int rc)
{
	txn->rc = rc;
	/* It holds no reservation, so tree_txn_end gives none back. */
	txn->bounds = (struct tree_bounds){ .nodes = 0 };
	txn_add_ready(txn);
}

static void admit_all(struct tree *tree)
{
	struct list *pos, *next;
	bool writers_wait = false, urgent_wait = false;

	tree->begun = tree->log_stuck.met = false;
	list_for_each_safe(pos, next, &tree->waiting) {
		struct tree_txn *txn = list_entry(pos, struct tree_txn, link);
		const bool urgent = is_urgent(txn);
		enum verdict verdict;

		if (is_writer(txn) && (urgent ? urgent_wait : writers_wait))
			continue;
		verdict = admit(tree, txn);
		if (verdict == ADMIT) {
			txn_add_ready(txn);
			continue;
		}
		if (verdict == REFUSE_ROFS || verdict == REFUSE_SPACE) {
			refuse(txn, verdict == REFUSE_ROFS ? -EROFS : -ENOSPC);
			continue;
		}
		tree->stats.waits += !txn->waited;
		txn->waited = true;
		if (verdict == WAIT_PINS)
			break;
		writers_wait = true;
		urgent_wait = urgent_wait || urgent;
	}
}

/* ---- Runs ---- */

static void run_one(struct tree *tree, struct tree_txn *txn)
{
	turn_charge(&tree->env->turn, TURN_TRANSACTIONS, RUN_NS);
	list_del(&txn->link);
	txn->state = TXN_OPEN;
	list_add(&tree->open, &txn->link);
	unpin_dead(txn);
	txn->miss_n = 0;
	if (txn->runs++ == 0)
		tree->stats.txns++;
	else if (txn->runs - 1 > tree->stats.max_reruns)
		tree->stats.max_reruns = txn->runs - 1;
	/* Changes can't fail once they have begun. */
	if (!txn->rc && is_writer(txn) &&
	    (!txn_may_log(txn) || !rmap_reserve(tree)))
		txn->rc = -ENOMEM;
	txn->ops->run(txn, txn->arg, txn->rc);
}

static bool may_run(struct tree *tree, unsigned runs)
{
	return !list_empty(&tree->ready) && runs < MAX_RUNS &&
	       (!runs || !turn_is_full(&tree->env->turn));
}

bool txn_run_all(struct tree *tree)
{
	unsigned runs = 0;

	do {
		admit_all(tree);
		for (; may_run(tree, runs); runs++)
			run_one(tree, list_first(&tree->ready, struct tree_txn,
						 link));
		/* What has ended may have made room for others. */
	} while (may_run(tree, runs));
	if (runs)
		admit_all(tree);
	return !list_empty(&tree->ready);
}

void tree_txn_fetch(struct tree_txn *txn)
{
	struct tree *tree = txn->tree;
	bool missed = false;

	assert(txn->state == TXN_OPEN && !txn->changed);
	if (fetch_start(txn)) {
		list_del(&txn->link);
		txn->state = TXN_FETCHING;
		list_add(&tree->open, &txn->link);
		return;
	}
	for (unsigned i = 0; i < txn->miss_n; i++)
		missed = missed || !buffer_find(tree->buffers,
					       txn->miss[i].ptr.addr);
	txn_add_ready(txn);
	if (!missed || buffer_available(tree->buffers))
		return;
	/* There is no buffer for even one node. The first transaction in line
	 * keeps its buffers and waits until others end; these give theirs
	 * back. */
	list_del(&txn->link);
	if (!list_empty(&tree->starved)) {
		txn_unpin_all(txn);
		txn_feed_starved(tree);
	}
	list_add(&tree->starved, &txn->link);
}

/* ---- Changes ---- */

static void begin_change(struct tree_txn *txn)
{
	struct tree *tree = txn->tree;

	assert(txn->state == TXN_OPEN && is_writer(txn));
	tree->txn = txn;
	if (txn->changed)
		return;
	txn->changed = true;
	tree->changing++;
	if (!tree->gen_changed) {
		tree->gen_changed = true;
		tree->changed_ns = env_now_ns(tree->env);
	}
}

static uint8_t *log_room(struct tree_txn *txn, size_t bytes)
{
	uint8_t *at = txn->log + txn->log_used;

	/* Otherwise the bound of this transaction's type is wrong. */
	assert(bytes <= txn->bounds.log_bytes - txn->log_used);
	txn->log_used += bytes;
	return at;
}

/* Bytes of a log entry, without the value (doc/format.md, log records). */
#define PUT_BYTES (1 + sizeof(struct disk_key) + sizeof(le16))
#define DEL_BYTES (1 + sizeof(struct disk_key))
#define DEL_RANGE_BYTES (1 + 2 * sizeof(struct disk_key))
#define DATA_BYTES (1 + 2 * sizeof(le64) + sizeof(le16))

static const void *find_old(struct tree *tree, struct key key)
{
	struct buffer *leaf = tree_leaf(tree, key);
	size_t bytes;
	unsigned i;
	bool found;

	if (!leaf)
		return NULL;	/* apply.c has reported it */
	i = node_find(leaf->node, key, &found);
	return found ? node_value(leaf->node, i, &bytes) : NULL;
}

void tree_put(struct tree_txn *txn, struct key key, const void *value,
	      size_t bytes)
{
	uint8_t *at = log_room(txn, PUT_BYTES + bytes);
	const uint8_t *copy = at + PUT_BYTES;

	assert(!item_verify(key, value, bytes));
	begin_change(txn);
	log_entry_put(at, key, value, bytes);
	rmap_note_put(txn->tree, &txn->rmap, key, copy,
		       find_old(txn->tree, key));
	apply_put(txn->tree, key, copy, bytes);
	txn->tree->txn = NULL;
}

void tree_touch(struct tree_txn *txn, struct key key)
{
	begin_change(txn);
	apply_touch_leaf(txn->tree, key);
	txn->tree->txn = NULL;
}

void tree_del(struct tree_txn *txn, struct key key)
{
	log_entry_del(log_room(txn, DEL_BYTES), key);
	begin_change(txn);
	rmap_note_del(txn->tree, &txn->rmap, key,
		       find_old(txn->tree, key));
	apply_del(txn->tree, key);
	txn->tree->txn = NULL;
}

struct key tree_del_range(struct tree_txn *txn, struct key first,
			  struct key last, unsigned max_nodes)
{
	struct key next;

	begin_change(txn);
	next = range_delete(txn->tree, first, last, max_nodes);
	txn->tree->txn = NULL;
	if (key_cmp(next, first) > 0) {
		if (key_cmp(next, last) <= 0)
			last = key_before(next);
		log_entry_del_range(log_room(txn, DEL_RANGE_BYTES), first,
				    last);
	}
	return next;
}

void tree_log_data(struct tree_txn *txn, uint64_t ino, uint64_t block,
		   unsigned n, const uint64_t *sums, const struct iovec *iov,
		   unsigned iov_n)
{
	uint8_t *at = log_room(txn, DATA_BYTES + n * sizeof(le64) +
				    (size_t)n * TRAX_BLOCK_BYTES);
	size_t bytes = 0;

	begin_change(txn);
	at += log_entry_data(at, ino, block, n, sums);
	for (unsigned i = 0; i < iov_n; i++) {
		memcpy(at + bytes, iov[i].iov_base, iov[i].iov_len);
		bytes += iov[i].iov_len;
	}
	assert(bytes == (size_t)n * TRAX_BLOCK_BYTES);
	txn->has_data = true;
	txn->tree->txn = NULL;
}

bool tree_txn_changed(const struct tree_txn *txn)
{
	return txn->changed;
}

static uint64_t hand_to_log(struct tree_txn *txn)
{
	struct tree *tree = txn->tree;
	const struct iovec iov = { txn->log, txn->log_used };
	uint64_t seq;

	tree->changing--;
	rmap_cancel(tree, &txn->rmap);
	if (!txn->log_used)
		return 0;
	seq = log_add(tree->log, &iov, 1);
	if (txn->has_data)
		log_pin(tree->log, seq);
	return seq;
}

uint64_t tree_txn_end(struct tree_txn *txn)
{
	struct tree *tree = txn->tree;
	const uint64_t seq = txn->changed ? hand_to_log(txn) : 0;

	assert(txn->state == TXN_OPEN);
	list_del(&txn->link);
	if (txn->slots)
		space_slots_release(tree->space, txn->slots);
	if (txn->bounds.log_bytes)
		log_release(tree->log, txn->bounds.log_bytes);
	tree->new_reserved -= txn->bounds.new_nodes;
	tree->pins_reserved -= txn->bounds.nodes;
	txn_free(txn);
	txn_feed_starved(tree);
	return seq;
}
