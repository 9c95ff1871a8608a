/*
 * fetch.c - nodes from disk: all that a transaction missed at once, each
 * verified before anybody sees it.
 *
 * A loading frame hangs below its parent like a resident one, so whatever
 * happens to the parent meanwhile (copied, split, joined) is done to it too.
 * When the node leaves the tree while it is being read, what comes is thrown
 * away unseen.
 *
 * A copy is bad when the read fails, its checksum is not its pointer's, or
 * node_verify finds a reason.  Then the mirror is read.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/csum.h"
#include "base/msg.h"
#include "tree/tree_internal.h"

#define MAX_TRIES 2

/* Once for each node, or a scan of a bad disk would tell nothing else. */
static bool is_told(struct tree *tree, traxaddr addr)
{
	for (unsigned i = 0; i < TREE_TOLD; i++)
		if (tree->told[i] == addr)
			return true;
	tree->told[tree->told_n++ % TREE_TOLD] = addr;
	return false;
}

static bool has_failed(const struct tree_txn *txn, traxaddr addr)
{
	for (unsigned i = 0; i < txn->failed_n; i++)
		if (txn->failed[i] == addr)
			return true;
	return false;
}

int fetch_note(struct tree_txn *txn, struct frame *parent, unsigned i)
{
	struct node_ptr ptr = node_child(parent->node, i);

	const struct frame *known = frame_find(txn->tree->frames, ptr.addr);

	if (has_failed(txn, ptr.addr))
		return -EIO;
	if (known && known != tree_child(txn->tree, parent, i)) {
		if (!is_told(txn->tree, ptr.addr))
			msg_error("node at sector %" PRIu64 ": the tree names "
				  "it twice", addr_sector(ptr.addr));
		return -EIO;
	}
	for (unsigned k = 0; k < txn->miss_n; k++)
		if (txn->miss[k].ptr.addr == ptr.addr)
			return -EAGAIN;
	/* Beyond the bound it will be met again in the next run. */
	if (txn->miss_n == txn->bounds.nodes)
		return -EAGAIN;
	txn->miss[txn->miss_n++] = (struct txn_miss){
		.ptr = ptr,
		.level = parent->level - 1u,
		.low = node_key(parent->node, i),
		.high = node_child_high(parent->node, i),
		.parent = parent,
		.txn = txn,
	};
	list_init(&txn->miss[txn->miss_n - 1].link);
	return -EAGAIN;
}

static void submit(struct frame *frame);

/* Or it would be given to another node. */
static bool slot_is_used(const struct tree *tree, traxaddr addr)
{
	return !addr || space_slot_used(tree->space, addr);
}

/* Why the copy just read can't be used; NULL: it can. */
static const char *judge(struct frame *frame)
{
	if (frame->req.disk.result)
		return "read error";
	if (csum(frame->node, TRAX_NODE_BYTES) != frame->ptr.csum)
		return "wrong checksum";
	if (!slot_is_used(frame->tree, frame->ptr.addr) ||
	    !slot_is_used(frame->tree, frame->ptr.addr2))
		return "its slot is not in use";
	return node_verify(frame->node, frame->tree->fsid, &frame->ptr,
			   frame->level, frame->low, frame->high);
}

static void wake_waiting(struct frame *frame, int rc)
{
	while (!list_empty(&frame->waiting)) {
		struct txn_miss *miss = list_first(&frame->waiting,
						   struct txn_miss, link);

		list_del(&miss->link);
		txn_loaded(miss->txn, miss->ptr.addr, rc);
	}
}

/* The range a parent gives is the truth; a repaired one may be larger than
 * what the node says, and must hold when the node is written next. */
static void normalize(struct frame *frame)
{
	node_set_low(frame->node, frame->low);
	node_set_high(frame->node, frame->high);
	if (frame->level)
		node_child_set_key(frame->node, 0, frame->low);
}

/* Nothing more will come; why: nothing usable has. */
static void load_over(struct frame *frame, const char *why)
{
	struct tree *tree = frame->tree;

	frame_set_state(tree->frames, frame, FRAME_CLEAN);
	if (frame->live && !why)
		normalize(frame);
	wake_waiting(frame, why ? -EIO : 0);
	if (why || !frame->live)
		frame_drop(tree->frames, frame);
}

static void load_came(const struct frame *frame, uint64_t wait_ns)
{
	const struct tree_copies *copies = &frame->tree->copies;

	if (copies->came)
		copies->came(copies->arg, &(struct tree_came){
			.low = frame->low, .high = frame->high,
			.level = frame->level, .addr = frame->ptr.addr,
			.wait_ns = wait_ns,
		});
}

/* Who has a copy need not be right.  false: it must be read. */
static bool load_copy(struct frame *frame)
{
	const struct tree_copies *copies = &frame->tree->copies;
	enum tree_copy copy = TREE_COPY_NONE;

	if (copies->copy)
		copy = copies->copy(copies->arg, frame->ptr.addr, frame->node);
	if (copy == TREE_COPY_LATER) {
		list_add(&frame->tree->later, &frame->later);
		return true;
	}
	frame->req.disk.result = 0;
	if (copy == TREE_COPY_NONE || judge(frame))
		return false;
	load_came(frame, 0);
	load_over(frame, NULL);
	return true;
}

static void load_done(struct disk_request *req)
{
	struct frame *frame = req->owner;
	struct tree *tree = frame->tree;
	const char *why = frame->live ? judge(frame) : NULL;
	const bool again = why && ++frame->tries < MAX_TRIES;

	/* A warning and the loss are told apart by a bit that no sector has. */
	if (why && !is_told(tree, addr_make(again, req->sector)))
		msg(again ? MSG_WARN : MSG_ERROR,
		    "node at sector %" PRIu64 ", level %u: %s%s", req->sector,
		    frame->level, again ? "" : "lost: ", why);
	if (again) {
		submit(frame);
		return;
	}
	tree->stats.node_reads++;
	load_came(frame, env_now_ns(tree->env) - frame->begun_ns + 1);
	load_over(frame, why);
}

static void submit(struct frame *frame)
{
	struct tree *tree = frame->tree;
	traxaddr addr = frame->ptr.addr;

	if (frame->tries && frame->ptr.addr2)
		addr = frame->ptr.addr2;
	frame->iov = (struct iovec){ frame->node, TRAX_NODE_BYTES };
	frame->req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = addr_sector(addr),
			.sectors = TRAX_NODE_SECTORS,
			.iov = &frame->iov,
			.iov_n = 1,
			.done = load_done,
			.owner = frame,
		},
		.class = QUEUE_READ,
	};
	queue_submit(tree->queue, &frame->req);
}

/* A frame that is being loaded; NULL: no frame can be had now. */
static struct frame *load(struct tree *tree, const struct txn_miss *miss)
{
	struct frame *frame;

	/* The parent must not be evicted for its child. */
	if (miss->parent)
		frame_pin(tree->frames, miss->parent);
	frame = frame_get(tree->frames);
	if (frame) {
		frame_set_ptr(tree->frames, frame, &miss->ptr);
		frame->level = (uint8_t)miss->level;
		frame->low = miss->low;
		frame->high = miss->high;
		frame->tree = tree;
		frame->live = true;
		frame->tries = 0;
		frame_set_parent(tree->frames, frame, miss->parent);
		frame->begun_ns = env_now_ns(tree->env);
		if (!load_copy(frame))
			submit(frame);
	}
	if (miss->parent)
		frame_unpin(tree->frames, miss->parent);
	return frame;
}

bool fetch_start(struct tree_txn *txn)
{
	struct tree *tree = txn->tree;

	txn->loads = 0;
	for (unsigned i = 0; i < txn->miss_n; i++) {
		struct txn_miss *miss = &txn->miss[i];
		struct frame *frame = frame_find(tree->frames, miss->ptr.addr);

		/* Loading it may have evicted the parent of another. */
		if (!frame && miss->parent &&
		    (!miss->parent->live ||
		     miss->parent->state == FRAME_LOADING))
			continue;
		if (!frame)
			frame = load(tree, miss);
		if (!frame)
			continue;
		txn_pin(txn, frame);
		if (frame->state == FRAME_LOADING) {
			list_add(&frame->waiting, &miss->link);
			txn->loads++;
		}
	}
	return txn->loads > 0;
}

void tree_copies_ready(struct tree *tree)
{
	struct list wanted, *pos, *tmp;
	struct frame *frame;

	list_init(&wanted);
	list_for_each_safe(pos, tmp, &tree->later) {
		list_del(pos);
		list_add(&wanted, pos);
	}
	while ((frame = list_first(&wanted, struct frame, later))) {
		list_del(&frame->later);
		if (!frame->live)
			load_over(frame, NULL);
		else if (!load_copy(frame))
			submit(frame);
	}
}

/* The frame that is as near as there is to the node of a level where a key
 * is. */
static struct frame *frame_down(struct tree *tree, struct key key,
				unsigned level)
{
	struct frame *frame = tree->root, *child;

	while (frame->level > level) {
		child = tree_child(tree, frame,
				   node_child_find(frame->node, key));
		if (!child || !tree_resident(child))
			break;
		frame = child;
	}
	return frame;
}

const void *tree_clean_node(struct tree *tree, struct key key, unsigned level,
			    struct key *high)
{
	const struct frame *frame = frame_down(tree, key, level);

	if (frame->level != level || frame->state != FRAME_CLEAN ||
	    csum(frame->node, TRAX_NODE_BYTES) != frame->ptr.csum)
		return NULL;
	*high = node_high(frame->node);
	return frame->node;
}

bool tree_node_is_at(struct tree *tree, struct key key, unsigned level,
		     traxaddr addr)
{
	const struct frame *frame = frame_down(tree, key, level);
	unsigned i;

	if (frame->level == level)
		return frame->state == FRAME_CLEAN && frame->ptr.addr == addr;
	if (frame->level != level + 1u)
		return true;
	i = node_child_find(frame->node, key);
	return node_child(frame->node, i).addr == addr;
}

void tree_set_copies(struct tree *tree, const struct tree_copies *copies)
{
	tree->copies = copies ? *copies : (struct tree_copies){ .arg = NULL };
}

int fetch_root(struct tree *tree, const struct node_ptr *ptr, unsigned level,
	       struct frame **root)
{
	const struct txn_miss miss = {
		.ptr = *ptr, .level = level, .low = KEY_MIN, .high = KEY_MAX,
	};
	struct frame *frame = load(tree, &miss);

	assert(frame);
	frame_pin(tree->frames, frame);
	while (frame->state == FRAME_LOADING) {
		int rc = queue_poll(tree->queue, -1);

		if (rc < 0)
			return rc;
	}
	if (!frame->live) {
		frame_unpin(tree->frames, frame);
		return -EIO;
	}
	*root = frame;
	return 0;
}
