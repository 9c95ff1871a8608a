/*
 * apply.c - changes of resident nodes.
 *
 * The first change of a node in a generation makes it dirty: it moves to a
 * slot near its old one, and so do all nodes above it, whose pointers change.
 * A node that is frozen (its generation is being written) is copied in memory
 * first: its frame goes on with the copy, what was goes to a shadow.
 *
 * Splits: at the middle of the bytes, but where something is added at the end
 * of a node the new node begins with it.  Small nodes are joined with a
 * neighbour below the same parent when that is resident; else they stay.
 *
 * Every node covers exactly the range that its parent gives it: the ranges of
 * siblings touch.
 *
 * Nothing here fails: slots and frames were reserved at admission.
 */
#include <assert.h>
#include <string.h>

#include "base/msg.h"
#include "tree/tree_internal.h"

/* ---- Slots and frames ---- */

/* No device has this number: a slot there is none. */
#define NOWHERE 255u

static bool use_reserved(struct tree *tree, unsigned slots)
{
	struct tree_txn *txn = tree->txn;

	/* Beyond its bounds a transaction lives from what is kept free. */
	if (!txn || txn->slots < slots)
		return space_slots_reserve(tree->space, slots);
	txn->slots -= slots;
	return true;
}

static void free_slot(struct tree *tree, traxaddr addr, uint64_t gen)
{
	if (!addr || addr_device(addr) == NOWHERE)
		return;
	if (gen != tree->gen)
		tree->pending++;
	space_slot_free(tree->space, addr, gen);
}

void apply_free_slots(struct tree *tree, const struct node_ptr *ptr)
{
	free_slot(tree, ptr->addr, ptr->gen);
	free_slot(tree, ptr->addr2, ptr->gen);
}

static struct node_ptr new_place(struct tree *tree, traxaddr near)
{
	struct node_ptr ptr = { .gen = tree->gen };

	/* Nothing is written any more: the node needs no more than an address
	 * of its own. */
	if (!use_reserved(tree, 2)) {
		tree_fail(tree, "no node slots beyond what was reserved");
		ptr.addr = addr_make(NOWHERE, ++tree->nowhere);
		ptr.addr2 = addr_make(NOWHERE, ++tree->nowhere);
		return ptr;
	}
	ptr.addr = space_slot_take(tree->space, near, false);
	ptr.addr2 = space_slot_take_mirror(tree->space, ptr.addr);
	return ptr;
}

static void place(struct tree *tree, struct frame *frame, traxaddr near)
{
	const struct node_ptr ptr = new_place(tree, near);

	frame_set_ptr(tree->frames, frame, &ptr);
	node_set_place(frame->node, ptr.addr, ptr.addr2, ptr.gen);
	frame->sealed = frame->written = frame->mirrored = false;
	frame_set_state(tree->frames, frame, FRAME_DIRTY);
}

struct frame *apply_new_node(struct tree *tree, unsigned level, struct key low,
			     struct key high, traxaddr near)
{
	struct frame *frame = frame_get(tree->frames);

	assert(frame);
	frame->level = (uint8_t)level;
	frame->live = true;
	node_init(frame->node, tree->fsid, level, low, high);
	place(tree, frame, near);
	return frame;
}

/* What a frozen frame holds goes to a shadow; it holds a copy from now on. */
static void make_shadow(struct tree *tree, struct frame *frame)
{
	struct frame *shadow = frame_get(tree->frames);
	void *node;
	const struct node_ptr ptr = frame->ptr;

	assert(shadow);
	node = shadow->node;
	shadow->node = frame->node;
	frame->node = node;
	memcpy(frame->node, shadow->node, TRAX_NODE_BYTES);
	shadow->level = frame->level;
	shadow->live = false;
	shadow->sealed = frame->sealed;
	shadow->written = frame->written;
	shadow->mirrored = frame->mirrored;
	shadow->writes = frame->writes;
	shadow->tries = frame->tries;
	shadow->bad = frame->bad;
	shadow->bad_twin = frame->bad_twin;
	frame->writes = frame->tries = 0;
	frame->bad = frame->bad_twin = false;
	frame_set_ptr(tree->frames, shadow, &ptr);
	frame_set_state(tree->frames, shadow, FRAME_FROZEN);
	ckpt_replace(tree, frame, shadow);
}

unsigned apply_index(const struct frame *frame)
{
	const unsigned i = node_child_find(frame->parent->node,
					   node_low(frame->node));

	assert(node_child(frame->parent->node, i).addr == frame->ptr.addr);
	return i;
}

void apply_update_parent(struct frame *frame)
{
	if (frame->parent)
		node_child_set(frame->parent->node, apply_index(frame),
			       &frame->ptr);
}

void apply_touch(struct tree *tree, struct frame *frame)
{
	const struct node_ptr old = frame->ptr;
	unsigned i = 0;

	if (frame->state == FRAME_DIRTY)
		return;
	if (old.gen == tree->gen) {	/* written out early, by recovery */
		frame_set_state(tree->frames, frame, FRAME_DIRTY);
		return;
	}
	if (frame->parent) {
		apply_touch(tree, frame->parent);
		i = apply_index(frame);
	}
	if (frame->state == FRAME_FROZEN)
		make_shadow(tree, frame);
	place(tree, frame, old.addr);
	apply_free_slots(tree, &old);
	if (frame->parent)
		node_child_set(frame->parent->node, i, &frame->ptr);
}

/* ---- Splits ---- */

static void grow_root(struct tree *tree)
{
	struct frame *old = tree->root;
	struct frame *root = apply_new_node(tree, old->level + 1u, KEY_MIN,
					    KEY_MAX, old->ptr.addr);

	node_child_insert(root->node, 0, KEY_MIN, &old->ptr);
	tree_set_root(tree, root);
	frame_set_parent(tree->frames, old, root);
}

/* The resident children that were moved here know their new parent. */
static void adopt(struct tree *tree, struct frame *parent,
		  const struct frame *from)
{
	const unsigned n = node_count(parent->node);

	for (unsigned i = 0; i < n; i++) {
		struct frame *child = frame_find(tree->frames,
					node_child(parent->node, i).addr);

		if (child && child->parent == from)
			frame_set_parent(tree->frames, child, parent);
	}
}

/* Cuts a touched node; what is at and behind position i, of key low, moves to
 * the new node, which is returned. */
static struct frame *cut(struct tree *tree, struct frame *frame, unsigned i,
			 struct key low);

/* Puts a new node into the parent of its left neighbour. */
static void insert_child(struct tree *tree, struct frame *left,
			 struct frame *child, struct key low)
{
	struct frame *parent = left->parent;
	const unsigned n = node_count(parent->node);
	unsigned i = node_child_find(parent->node, low);

	if (node_child_full(parent->node)) {
		const unsigned at = i == n - 1 ? n - 1 : n / 2;
		const struct key at_key = node_key(parent->node, at);
		struct frame *right = cut(tree, parent, at, at_key);

		if (key_cmp(low, at_key) >= 0)
			parent = right;
		i = node_child_find(parent->node, low);
	}
	node_child_insert(parent->node, i + 1, low, &child->ptr);
	frame_set_parent(tree->frames, child, parent);
}

static struct frame *cut(struct tree *tree, struct frame *frame, unsigned i,
			 struct key low)
{
	struct frame *right;

	if (!frame->parent)
		grow_root(tree);
	right = apply_new_node(tree, frame->level, low,
			       node_high(frame->node), frame->ptr.addr);
	node_set_high(frame->node, node_key_before(low));
	node_move(frame->node, i, right->node);
	if (right->level)
		adopt(tree, right, frame);
	insert_child(tree, frame, right, low);
	return right;
}

/* ---- Joins ---- */

static bool is_small(const struct frame *frame)
{
	return frame->level ?
		node_count(frame->node) < NODE_MAX_CHILDREN / 4 :
		node_used(frame->node) < NODE_BODY_BYTES / 4;
}

static bool would_fit(const struct frame *a, const struct frame *b)
{
	if (a->level)
		return node_count(a->node) + node_count(b->node) <=
		       NODE_MAX_CHILDREN * 3 / 4;
	return node_used(a->node) + node_used(b->node) <=
	       NODE_BODY_BYTES * 3 / 4;
}

/* Adds what `from` holds, which is left as it is (it may be frozen). */
static void take_over(struct frame *to, const struct frame *from, unsigned at)
{
	const unsigned n = node_count(from->node);

	for (unsigned i = 0; i < n; i++) {
		const struct key key = node_key(from->node, i);
		size_t bytes;

		if (to->level) {
			const struct node_ptr ptr = node_child(from->node, i);

			node_child_insert(to->node, at + i, key, &ptr);
		} else {
			const void *value = node_value(from->node, i, &bytes);

			node_insert(to->node, at + i, key, value, bytes);
		}
	}
}

/* Joins a touched node with the sibling at position i of their parent. */
static void join(struct tree *tree, struct frame *frame, struct frame *sibling,
		 unsigned i)
{
	struct frame *parent = frame->parent;
	const unsigned mine = apply_index(frame);
	const struct node_ptr old = sibling->ptr;

	take_over(frame, sibling, i < mine ? 0 : node_count(frame->node));
	if (i < mine) {
		const struct key low = node_low(sibling->node);

		node_set_low(frame->node, low);
		node_child_set_key(parent->node, mine, low);
	} else {
		node_set_high(frame->node, node_high(sibling->node));
	}
	node_child_remove(parent->node, i);
	if (frame->level)
		adopt(tree, frame, sibling);
	frame_drop(tree->frames, sibling);
	apply_free_slots(tree, &old);
}

static void shrink_root(struct tree *tree)
{
	while (tree->root->level && node_count(tree->root->node) == 1) {
		struct frame *old = tree->root;
		const struct node_ptr ptr = old->ptr;
		struct frame *child = tree_child(tree, old, 0);

		if (!tree_resident(child))
			return;
		tree_set_root(tree, child);
		frame_drop(tree->frames, old);
		apply_free_slots(tree, &ptr);
	}
}

static bool try_join(struct tree *tree, struct frame *frame, unsigned i)
{
	struct frame *sibling;

	if (i >= node_count(frame->parent->node))
		return false;
	sibling = tree_child(tree, frame->parent, i);
	if (!tree_resident(sibling) || !would_fit(frame, sibling))
		return false;
	join(tree, frame, sibling, i);
	return true;
}

void apply_shrink(struct tree *tree, struct frame *frame)
{
	for (; frame->parent && is_small(frame); frame = frame->parent) {
		const unsigned i = apply_index(frame);

		/* At i = 0 there is nothing on the left: wraps, refused. */
		if (!try_join(tree, frame, i + 1) &&
		    !try_join(tree, frame, i - 1))
			break;
	}
	shrink_root(tree);
}

/* ---- Items ---- */

/* The leaf of a key that was looked up; NULL: a tree that contradicts itself
 * has lost it since, and is failed now. */
static struct frame *leaf_to_change(struct tree *tree, struct key key)
{
	struct frame *leaf = tree_leaf(tree, key);

	if (leaf)
		apply_touch(tree, leaf);
	else
		tree_fail(tree, "a node that is to be changed is not there");
	return leaf;
}

void apply_touch_leaf(struct tree *tree, struct key key)
{
	leaf_to_change(tree, key);
}

/* Makes room for an item at *i; the leaf that has it, and the place there. */
static struct frame *split_leaf(struct tree *tree, struct frame *leaf,
				unsigned *i, struct key key, size_t bytes)
{
	bool to_right;
	const unsigned at = node_split_point(leaf->node, *i, bytes, &to_right);
	const struct key low = to_right && at == *i ? key :
			       node_key(leaf->node, at);
	struct frame *right = cut(tree, leaf, at, low);

	if (!to_right)
		return leaf;
	*i -= at;
	return right;
}

void apply_put(struct tree *tree, struct key key, const void *value,
	       size_t bytes)
{
	struct frame *leaf = leaf_to_change(tree, key);
	size_t old_bytes;
	unsigned i;
	bool found;

	if (!leaf)
		return;
	i = node_find(leaf->node, key, &found);
	if (found) {
		void *old = (void *)node_value(leaf->node, i, &old_bytes);

		if (old_bytes == bytes) {
			memcpy(old, value, bytes);
			return;
		}
		node_remove(leaf->node, i);
	}
	if (!node_fits(leaf->node, bytes))
		leaf = split_leaf(tree, leaf, &i, key, bytes);
	node_insert(leaf->node, i, key, value, bytes);
}

void apply_del(struct tree *tree, struct key key)
{
	struct frame *leaf = leaf_to_change(tree, key);
	unsigned i;
	bool found;

	if (!leaf)
		return;
	i = node_find(leaf->node, key, &found);
	assert(found);
	node_remove(leaf->node, i);
	apply_shrink(tree, leaf);
}
