/*
 * delete_range.c - deletes all items of a range of keys.
 *
 * Leaves wholly inside the range are dropped unread: only their parent need be
 * resident.  The range of a dropped leaf goes to its left neighbour below the
 * same parent, or to the right one, whichever is resident; if neither is, an
 * empty leaf takes its place and then takes over its right neighbours.
 */
#include "tree/tree_internal.h"

struct range_walk {
	struct tree *tree;
	struct key first, last;
	unsigned nodes;		/* changed or dropped so far */
};

/* The resident node of level 1 that covers key, or the root if that is a
 * leaf. */
static struct buffer *parent_of(struct tree *tree, struct key key)
{
	struct buffer *f = tree->root;

	while (f && f->level > 1) {
		f = tree_child(tree, f, node_child_find(f->node, key));
		if (!tree_resident(f))
			return NULL;
	}
	return f;
}

static struct buffer *resident_child(const struct tree *tree,
				    const struct buffer *parent, unsigned i)
{
	struct buffer *f;

	if (i >= node_count(parent->node))
		return NULL;
	f = tree_child(tree, parent, i);
	return tree_resident(f) ? f : NULL;
}

/* Deletes those items of a resident leaf that are in the range. */
static void cut_leaf(struct range_walk *walk, struct buffer *leaf)
{
	unsigned from, to;
	bool found;

	from = node_find(leaf->node, walk->first, &found);
	to = node_find(leaf->node, walk->last, &found) + found;
	if (from == to)
		return;
	apply_touch(walk->tree, leaf);
	node_remove_run(leaf->node, from, to - from);
	walk->nodes++;
	apply_shrink(walk->tree, leaf);
}

/* Removes child i from the tree; a neighbour has its range now. */
static void drop_child(struct tree *tree, struct buffer *parent, unsigned i)
{
	const struct node_ptr ptr = node_child(parent->node, i);
	struct buffer *buffer = tree_child(tree, parent, i);

	node_child_remove(parent->node, i);
	if (buffer)
		buffer_drop(tree->buffers, buffer);
	apply_free_slots(tree, &ptr);
}

/* Puts an empty leaf in the place of child i, which is not resident. */
static void blank_child(struct tree *tree, struct buffer *parent, unsigned i)
{
	const struct node_ptr old = node_child(parent->node, i);
	struct buffer *buffer = tree_child(tree, parent, i);
	struct buffer *blank;

	if (buffer)
		buffer_drop(tree->buffers, buffer);
	blank = apply_new_node(tree, 0, node_key(parent->node, i),
			       node_child_high(parent->node, i), old.addr);
	node_child_set(parent->node, i, &blank->ptr);
	buffer_set_parent(tree->buffers, blank, parent);
	apply_free_slots(tree, &old);
}

/* Drops child i of parent, all of whose range is to be deleted. */
static void drop_leaf(struct range_walk *walk, struct buffer *parent,
		      unsigned i)
{
	struct tree *tree = walk->tree;
	struct buffer *left = i ? resident_child(tree, parent, i - 1) : NULL;
	struct buffer *right = resident_child(tree, parent, i + 1);
	struct buffer *self = resident_child(tree, parent, i);

	walk->nodes++;
	if (!left && !right && self) {
		apply_touch(tree, self);
		node_remove_run(self->node, 0, node_count(self->node));
		return;
	}
	apply_touch(tree, parent);
	if (left) {
		apply_touch(tree, left);
		node_set_high(left->node, node_child_high(parent->node, i));
	} else if (right) {
		apply_touch(tree, right);
		node_set_low(right->node, node_key(parent->node, i));
	} else {
		blank_child(tree, parent, i);
		return;
	}
	if (!left)
		node_child_set_key(parent->node, i + 1,
				   node_key(parent->node, i));
	drop_child(tree, parent, i);
	apply_shrink(tree, parent);
}

/* Deletes in the leaf that covers key; *high is the leaf's highest key. False:
 * the leaf must be resident and is not. */
static bool step(struct range_walk *walk, struct key key, struct key *high)
{
	struct buffer *parent = parent_of(walk->tree, key);
	struct buffer *leaf;
	unsigned i;

	if (!parent)
		return false;
	if (!parent->level) {
		*high = KEY_MAX;
		cut_leaf(walk, parent);
		return true;
	}
	i = node_child_find(parent->node, key);
	*high = node_child_high(parent->node, i);
	if (key_cmp(node_key(parent->node, i), walk->first) >= 0 &&
	    key_cmp(*high, walk->last) <= 0) {
		drop_leaf(walk, parent, i);
		return true;
	}
	leaf = resident_child(walk->tree, parent, i);
	if (leaf)
		cut_leaf(walk, leaf);
	return leaf;
}

struct key range_delete(struct tree *tree, struct key first, struct key last,
			unsigned max_nodes)
{
	struct range_walk walk = { .tree = tree, .first = first, .last = last };
	struct key key = first, high;

	while (walk.nodes < max_nodes) {
		if (!step(&walk, key, &high))
			return key;
		if (key_cmp(high, last) >= 0)
			return KEY_MAX;
		key = key_after(high);
	}
	return key;
}
