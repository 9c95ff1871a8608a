/*
 * apply.c - changes of resident nodes.
 *
 * The first change of a node in a generation makes it dirty: it moves to a
 * slot near its old one, and so do all nodes above it, whose pointers change.
 * A node that is frozen (its generation is being written) is copied in memory
 * first: its buffer goes on with the copy, what was goes to a shadow.
 *
 * Splits: a full leaf first gives items to its left neighbour.  If that is full
 * as well it is cut at the middle of the bytes, but where something is added at
 * the end of a node the new node begins with it.  Small nodes are joined with a
 * neighbour below the same parent when that is resident; else they stay.
 *
 * Every node covers exactly the range that its parent gives it: the ranges of
 * siblings touch.
 *
 * Nothing here fails: slots and buffers were reserved at admission.
 */
#include <assert.h>
#include <string.h>

#include "base/msg.h"
#include "tree/tree_internal.h"

/* Percent up to which two neighbouring leaves may be full together when they
 * share their items: in fuller ones the next insertion would split all the
 * same. */
#define GIVE_PERCENT 90u

/* ---- Slots and buffers ---- */

/* A device number that no device has: addresses on it are no slots. */
#define NOWHERE 255u

static bool use_reserved(struct tree *tree, unsigned slots)
{
	struct tree_txn *txn = tree->txn;

	/* Beyond its bounds a transaction uses the slots that are kept free. */
	if (!txn || txn->slots < slots)
		return space_slots_reserve(tree->space, slots);
	txn->slots -= slots;
	return true;
}

static void free_slot(struct tree *tree, traxaddr addr, uint64_t gen)
{
	if (!addr || addr_device(addr) == NOWHERE)
		return;
	/* A write to the slot may be under way: it is pending, so that it is
	 * not reused before. */
	if (tree->ckpt.phase == CKPT_SPILLING)
		gen = tree->gen - 1;
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

	/* The file system has failed and writes nothing any more: the node
	 * needs an address of its own, but no slot. */
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

static void place(struct tree *tree, struct buffer *buffer, traxaddr near)
{
	const struct node_ptr ptr = new_place(tree, near);

	buffer_set_ptr(tree->buffers, buffer, &ptr);
	node_set_place(buffer->node, ptr.addr, ptr.addr2, ptr.gen);
	buffer->sealed = buffer->written = buffer->mirrored = false;
	buffer_set_state(tree->buffers, buffer, BUFFER_DIRTY);
}

struct buffer *apply_new_node(struct tree *tree, unsigned level, struct key low,
			     struct key high, traxaddr near)
{
	struct buffer *buffer = buffer_get(tree->buffers);

	assert(buffer);
	buffer->level = (uint8_t)level;
	buffer->live = true;
	node_init(buffer->node, tree->fsid, level, low, high);
	place(tree, buffer, near);
	return buffer;
}

/* Moves what a frozen buffer holds to a shadow; the buffer goes on with a
 * copy. */
static void make_shadow(struct tree *tree, struct buffer *buffer)
{
	struct buffer *shadow = buffer_get(tree->buffers);
	void *node;
	const struct node_ptr ptr = buffer->ptr;

	assert(shadow);
	node = shadow->node;
	shadow->node = buffer->node;
	buffer->node = node;
	memcpy(buffer->node, shadow->node, TRAX_NODE_BYTES);
	shadow->level = buffer->level;
	shadow->live = false;
	shadow->sealed = buffer->sealed;
	shadow->written = buffer->written;
	shadow->mirrored = buffer->mirrored;
	shadow->writes = buffer->writes;
	shadow->tries = buffer->tries;
	shadow->bad = buffer->bad;
	shadow->bad_mirror = buffer->bad_mirror;
	buffer->writes = buffer->tries = 0;
	buffer->bad = buffer->bad_mirror = false;
	buffer_set_ptr(tree->buffers, shadow, &ptr);
	buffer_set_state(tree->buffers, shadow, BUFFER_FROZEN);
	ckpt_replace(tree, buffer, shadow);
}

unsigned apply_index(const struct buffer *buffer)
{
	const unsigned i = node_child_find(buffer->parent->node,
					   node_low(buffer->node));

	assert(node_child(buffer->parent->node, i).addr == buffer->ptr.addr);
	return i;
}

void apply_update_parent(struct buffer *buffer)
{
	if (buffer->parent)
		node_child_set(buffer->parent->node, apply_index(buffer),
			       &buffer->ptr);
}

void apply_touch(struct tree *tree, struct buffer *buffer)
{
	const struct node_ptr old = buffer->ptr;
	unsigned i = 0;

	/* The leaves changed last are spilled last. */
	if (buffer->state == BUFFER_DIRTY && !buffer->level)
		buffer_set_state(tree->buffers, buffer, BUFFER_DIRTY);
	if (buffer->state == BUFFER_DIRTY)
		return;
	/* The node was spilled, and no root knows its slot, so it can stay
	 * there. */
	if (old.gen == tree->gen && buffer->state != BUFFER_FROZEN) {
		buffer_set_state(tree->buffers, buffer, BUFFER_DIRTY);
		return;
	}
	if (buffer->parent) {
		apply_touch(tree, buffer->parent);
		i = apply_index(buffer);
	}
	if (buffer->state == BUFFER_FROZEN)
		make_shadow(tree, buffer);
	place(tree, buffer, old.addr);
	apply_free_slots(tree, &old);
	if (buffer->parent)
		node_child_set(buffer->parent->node, i, &buffer->ptr);
}

/* ---- Splits ---- */

static void grow_root(struct tree *tree)
{
	struct buffer *old = tree->root;
	struct buffer *root = apply_new_node(tree, old->level + 1u, KEY_MIN,
					    KEY_MAX, old->ptr.addr);

	node_child_insert(root->node, 0, KEY_MIN, &old->ptr);
	tree_set_root(tree, root);
	buffer_set_parent(tree->buffers, old, root);
}

/* Sets the parent of the resident children that were moved to this node. */
static void adopt(struct tree *tree, struct buffer *parent,
		  const struct buffer *from)
{
	const unsigned n = node_count(parent->node);

	for (unsigned i = 0; i < n; i++) {
		struct buffer *child = buffer_find(tree->buffers,
					node_child(parent->node, i).addr);

		if (child && child->parent == from)
			buffer_set_parent(tree->buffers, child, parent);
	}
}

/* Cuts a touched node in two: what is at position i and behind it, from key
 * `low` on, moves to a new node, which is returned. */
static struct buffer *cut(struct tree *tree, struct buffer *buffer, unsigned i,
			 struct key low);

/* Puts a new node into the parent of its left neighbour. */
static void insert_child(struct tree *tree, struct buffer *left,
			 struct buffer *child, struct key low)
{
	struct buffer *parent = left->parent;
	const unsigned n = node_count(parent->node);
	unsigned i = node_child_find(parent->node, low);

	if (node_child_full(parent->node)) {
		const unsigned at = i == n - 1 ? n - 1 : n / 2;
		const struct key at_key = node_key(parent->node, at);
		struct buffer *right = cut(tree, parent, at, at_key);

		if (key_cmp(low, at_key) >= 0)
			parent = right;
		i = node_child_find(parent->node, low);
	}
	node_child_insert(parent->node, i + 1, low, &child->ptr);
	buffer_set_parent(tree->buffers, child, parent);
}

static struct buffer *cut(struct tree *tree, struct buffer *buffer, unsigned i,
			 struct key low)
{
	struct buffer *right;

	if (!buffer->parent)
		grow_root(tree);
	right = apply_new_node(tree, buffer->level, low,
			       node_high(buffer->node), buffer->ptr.addr);
	node_set_high(buffer->node, key_before(low));
	node_move(buffer->node, i, right->node);
	if (right->level)
		adopt(tree, right, buffer);
	insert_child(tree, buffer, right, low);
	return right;
}

/* ---- Joins ---- */

static bool is_small(const struct buffer *buffer)
{
	return buffer->level ?
		node_count(buffer->node) < NODE_MAX_CHILDREN / 4 :
		node_used(buffer->node) < NODE_BODY_BYTES / 4;
}

static bool would_fit(const struct buffer *a, const struct buffer *b)
{
	if (a->level)
		return node_count(a->node) + node_count(b->node) <=
		       NODE_MAX_CHILDREN * 3 / 4;
	return node_used(a->node) + node_used(b->node) <=
	       NODE_BODY_BYTES * 3 / 4;
}

/* Appends the items or children of `from`, which is not changed: it may be
 * frozen. */
static void take_over(struct buffer *to, const struct buffer *from, unsigned at)
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

void apply_join(struct tree *tree, struct buffer *buffer,
		struct buffer *sibling, unsigned i)
{
	struct buffer *parent = buffer->parent;
	const unsigned mine = apply_index(buffer);
	const struct node_ptr old = sibling->ptr;

	take_over(buffer, sibling, i < mine ? 0 : node_count(buffer->node));
	if (i < mine) {
		const struct key low = node_low(sibling->node);

		node_set_low(buffer->node, low);
		node_child_set_key(parent->node, mine, low);
	} else {
		node_set_high(buffer->node, node_high(sibling->node));
	}
	node_child_remove(parent->node, i);
	if (buffer->level)
		adopt(tree, buffer, sibling);
	buffer_drop(tree->buffers, sibling);
	apply_free_slots(tree, &old);
}

static void shrink_root(struct tree *tree)
{
	while (tree->root->level && node_count(tree->root->node) == 1) {
		struct buffer *old = tree->root;
		const struct node_ptr ptr = old->ptr;
		struct buffer *child = tree_child(tree, old, 0);

		if (!tree_resident(child))
			return;
		tree_set_root(tree, child);
		buffer_drop(tree->buffers, old);
		apply_free_slots(tree, &ptr);
	}
}

static bool try_join(struct tree *tree, struct buffer *buffer, unsigned i)
{
	struct buffer *sibling;

	if (i >= node_count(buffer->parent->node))
		return false;
	sibling = tree_child(tree, buffer->parent, i);
	if (!tree_resident(sibling) || !would_fit(buffer, sibling))
		return false;
	apply_join(tree, buffer, sibling, i);
	return true;
}

void apply_shrink(struct tree *tree, struct buffer *buffer)
{
	for (; buffer->parent && is_small(buffer); buffer = buffer->parent) {
		const unsigned i = apply_index(buffer);

		/* At i = 0 the index wraps around, and try_join refuses it. */
		if (!try_join(tree, buffer, i + 1) &&
		    !try_join(tree, buffer, i - 1))
			break;
	}
	shrink_root(tree);
}

/* ---- Items ---- */

/* The leaf of a key that was looked up. NULL: a tree that contradicts itself
 * has lost the leaf since then, and has failed. */
static struct buffer *leaf_to_change(struct tree *tree, struct key key)
{
	struct buffer *leaf = tree_leaf(tree, key);

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

/* How many of its first items a full leaf gives to its left neighbour so that
 * both are equally full, an item of `bytes` at position i included; 0: the
 * neighbour has too little room for that. */
static unsigned items_to_give(const void *leaf, const void *left, unsigned i,
			      size_t bytes)
{
	const unsigned count = node_count(leaf);
	const size_t own = bytes + NODE_ITEM_BYTES;
	const size_t all = node_used(leaf) + node_used(left) + own;
	size_t sum = node_used(left), item;
	unsigned k = 0;

	if (all / 2 > NODE_BODY_BYTES * GIVE_PERCENT / 100)
		return 0;
	while (sum < all / 2 && k + 1 < count) {
		node_value(leaf, k, &item);
		sum += item + NODE_ITEM_BYTES + (k == i ? own : 0);
		k++;
	}
	return sum <= NODE_BODY_BYTES && all - sum <= NODE_BODY_BYTES ? k : 0;
}

void apply_give(struct buffer *left, struct buffer *leaf, unsigned n,
		struct key low)
{
	const unsigned mine = apply_index(leaf);
	const unsigned at = node_count(left->node);

	for (unsigned k = 0; k < n; k++) {
		size_t size;
		const void *value = node_value(leaf->node, k, &size);

		node_insert(left->node, at + k, node_key(leaf->node, k), value,
			    size);
	}
	node_remove_run(leaf->node, 0, n);
	node_set_high(left->node, key_before(low));
	node_set_low(leaf->node, low);
	node_child_set_key(leaf->parent->node, mine, low);
}

/*
 * Gives the first items of a full leaf to its left neighbour, if that is dirty
 * too (nothing more is written then) and has room; so leaves are fuller than by
 * splits alone.  Returns the leaf that has room for the item at *i, with the
 * position in it, or NULL.
 */
static struct buffer *give_left(struct tree *tree, struct buffer *leaf,
				unsigned *i, struct key key, size_t bytes)
{
	const unsigned mine = leaf->parent ? apply_index(leaf) : 0;
	struct buffer *left;
	unsigned n, at;

	if (!mine || *i == node_count(leaf->node))
		return NULL;
	left = tree_child(tree, leaf->parent, mine - 1);
	if (!tree_resident(left) || left->state != BUFFER_DIRTY)
		return NULL;
	n = items_to_give(leaf->node, left->node, *i, bytes);
	if (!n)
		return NULL;
	at = node_count(left->node);
	apply_give(left, leaf, n, *i == n ? key : node_key(leaf->node, n));
	if (*i < n) {
		*i += at;
		return left;
	}
	*i -= n;
	return leaf;
}

/* Makes room for an item at position *i of a leaf; returns the leaf that has
 * the room, with the position in it. */
static struct buffer *split_leaf(struct tree *tree, struct buffer *leaf,
				unsigned *i, struct key key, size_t bytes)
{
	bool to_right;
	const unsigned at = node_split_point(leaf->node, *i, bytes, &to_right);
	const struct key low = to_right && at == *i ? key :
			       node_key(leaf->node, at);
	struct buffer *right = cut(tree, leaf, at, low);

	if (!to_right)
		return leaf;
	*i -= at;
	return right;
}

void apply_put(struct tree *tree, struct key key, const void *value,
	       size_t bytes)
{
	struct buffer *leaf = leaf_to_change(tree, key);
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
	if (!node_fits(leaf->node, bytes)) {
		struct buffer *given = give_left(tree, leaf, &i, key, bytes);

		leaf = given ? given :
			       split_leaf(tree, leaf, &i, key, bytes);
	}
	node_insert(leaf->node, i, key, value, bytes);
}

void apply_del(struct tree *tree, struct key key)
{
	struct buffer *leaf = leaf_to_change(tree, key);
	unsigned i;
	bool found;

	if (!leaf)
		return;
	i = node_find(leaf->node, key, &found);
	assert(found);
	node_remove(leaf->node, i);
	apply_shrink(tree, leaf);
}
