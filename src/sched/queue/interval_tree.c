/*
 * interval_tree.c - a treap over (first, order); the priorities are hashes of
 * the order, so the shape is the same in every run.  A node's max_end,
 * min_due_ns and min_order cover its subtree (span_update).
 */
#include <stddef.h>

#include "sched/queue/interval_tree.h"

static bool span_precedes(const struct span *a, const struct span *b)
{
	return a->first != b->first ? a->first < b->first
				    : a->order < b->order;
}

static void span_cover(struct span *span, const struct span *child)
{
	if (!child)
		return;
	if (child->max_end > span->max_end)
		span->max_end = child->max_end;
	if (child->min_due_ns < span->min_due_ns)
		span->min_due_ns = child->min_due_ns;
	if (child->min_order < span->min_order)
		span->min_order = child->min_order;
}

static void span_update(struct span *span)
{
	span->max_end = span->end;
	span->min_due_ns = span->due_ns;
	span->min_order = span->order;
	span_cover(span, span->left);
	span_cover(span, span->right);
}

/* Parts a subtree into what precedes `at` and what follows it. */
static void span_split(struct span *root, const struct span *at,
		       struct span **before, struct span **after)
{
	if (!root) {
		*before = *after = NULL;
	} else if (span_precedes(root, at)) {
		span_split(root->right, at, &root->right, after);
		span_update(root);
		*before = root;
	} else {
		span_split(root->left, at, before, &root->left);
		span_update(root);
		*after = root;
	}
}

/* Joins two subtrees, all of a before all of b. */
static struct span *span_join(struct span *a, struct span *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = span_join(a->right, b);
		span_update(a);
		return a;
	}
	b->left = span_join(a, b->left);
	span_update(b);
	return b;
}

static struct span *span_put(struct span *root, struct span *span)
{
	if (!root || root->priority < span->priority) {
		span_split(root, span, &span->left, &span->right);
		span_update(span);
		return span;
	}
	if (span_precedes(span, root))
		root->left = span_put(root->left, span);
	else
		root->right = span_put(root->right, span);
	span_update(root);
	return root;
}

static struct span *span_take(struct span *root, const struct span *span)
{
	if (root == span)
		return span_join(root->left, root->right);
	if (span_precedes(span, root))
		root->left = span_take(root->left, span);
	else
		root->right = span_take(root->right, span);
	span_update(root);
	return root;
}

void span_insert(struct span **root, struct span *span)
{
	/* Multiplicative hashing: 2^64 divided by the golden ratio. */
	span->priority = (uint32_t)(span->order * 0x9e3779b97f4a7c15 >> 32);
	*root = span_put(*root, span);
}

void span_remove(struct span **root, struct span *span)
{
	*root = span_take(*root, span);
}

struct span *span_at_or_after(struct span *root, uint64_t sector)
{
	struct span *best = NULL;

	while (root) {
		if (root->first >= sector) {
			best = root;
			root = root->left;
		} else {
			root = root->right;
		}
	}
	return best;
}

struct span *span_before(struct span *root, uint64_t sector)
{
	struct span *best = NULL;

	while (root) {
		if (root->first < sector) {
			best = root;
			root = root->right;
		} else {
			root = root->left;
		}
	}
	return best;
}

struct span *span_first_due(struct span *root)
{
	uint64_t due_ns = root ? root->min_due_ns : 0;

	while (root && root->due_ns != due_ns)
		root = root->left && root->left->min_due_ns == due_ns
			       ? root->left
			       : root->right;
	return root;
}

struct span *span_oldest(struct span *root)
{
	uint64_t order = root ? root->min_order : 0;

	while (root && root->order != order)
		root = root->left && root->left->min_order == order
			       ? root->left
			       : root->right;
	return root;
}

bool span_any(struct span *root, uint64_t first, uint64_t end,
	      bool (*fn)(const struct span *span, const void *arg),
	      const void *arg)
{
	if (!root || root->max_end <= first)
		return false;
	if (span_any(root->left, first, end, fn, arg))
		return true;
	if (root->first >= end)
		return false;
	if (root->end > first && fn(root, arg))
		return true;
	return span_any(root->right, first, end, fn, arg);
}
