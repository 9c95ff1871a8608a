/*
 * interval_tree.c - a treap over (first, order); the priorities are hashes of
 * the order, so the shape is the same in every run.  A node's max_end,
 * min_due_ns and min_order cover its subtree (interval_update).
 */
#include <stddef.h>

#include "sched/queue/interval_tree.h"

static bool interval_precedes(const struct interval *a,
			      const struct interval *b)
{
	return a->first != b->first ? a->first < b->first
				    : a->order < b->order;
}

static void interval_cover(struct interval *interval,
			   const struct interval *child)
{
	if (!child)
		return;
	if (child->max_end > interval->max_end)
		interval->max_end = child->max_end;
	if (child->min_due_ns < interval->min_due_ns)
		interval->min_due_ns = child->min_due_ns;
	if (child->min_order < interval->min_order)
		interval->min_order = child->min_order;
}

static void interval_update(struct interval *interval)
{
	interval->max_end = interval->end;
	interval->min_due_ns = interval->due_ns;
	interval->min_order = interval->order;
	interval_cover(interval, interval->left);
	interval_cover(interval, interval->right);
}

/* Parts a subtree into what precedes `at` and what follows it. */
static void interval_split(struct interval *root, const struct interval *at,
		       struct interval **before, struct interval **after)
{
	if (!root) {
		*before = *after = NULL;
	} else if (interval_precedes(root, at)) {
		interval_split(root->right, at, &root->right, after);
		interval_update(root);
		*before = root;
	} else {
		interval_split(root->left, at, before, &root->left);
		interval_update(root);
		*after = root;
	}
}

/* Joins two subtrees, all of a before all of b. */
static struct interval *interval_join(struct interval *a, struct interval *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = interval_join(a->right, b);
		interval_update(a);
		return a;
	}
	b->left = interval_join(a, b->left);
	interval_update(b);
	return b;
}

static struct interval *interval_put(struct interval *root,
				     struct interval *interval)
{
	if (!root || root->priority < interval->priority) {
		interval_split(root, interval, &interval->left,
			       &interval->right);
		interval_update(interval);
		return interval;
	}
	if (interval_precedes(interval, root))
		root->left = interval_put(root->left, interval);
	else
		root->right = interval_put(root->right, interval);
	interval_update(root);
	return root;
}

static struct interval *interval_take(struct interval *root,
				      const struct interval *interval)
{
	if (root == interval)
		return interval_join(root->left, root->right);
	if (interval_precedes(interval, root))
		root->left = interval_take(root->left, interval);
	else
		root->right = interval_take(root->right, interval);
	interval_update(root);
	return root;
}

void interval_insert(struct interval **root, struct interval *interval)
{
	/* Multiplicative hashing: 2^64 divided by the golden ratio. */
	interval->priority =
		(uint32_t)(interval->order * 0x9e3779b97f4a7c15 >> 32);
	*root = interval_put(*root, interval);
}

void interval_remove(struct interval **root, struct interval *interval)
{
	*root = interval_take(*root, interval);
}

struct interval *interval_at_or_after(struct interval *root, uint64_t sector)
{
	struct interval *best = NULL;

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

struct interval *interval_before(struct interval *root, uint64_t sector)
{
	struct interval *best = NULL;

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

struct interval *interval_first_due(struct interval *root)
{
	uint64_t due_ns = root ? root->min_due_ns : 0;

	while (root && root->due_ns != due_ns)
		root = root->left && root->left->min_due_ns == due_ns
			       ? root->left
			       : root->right;
	return root;
}

struct interval *interval_oldest(struct interval *root)
{
	uint64_t order = root ? root->min_order : 0;

	while (root && root->order != order)
		root = root->left && root->left->min_order == order
			       ? root->left
			       : root->right;
	return root;
}

bool interval_any(struct interval *root, uint64_t first, uint64_t end,
	      bool (*fn)(const struct interval *interval, const void *arg),
	      const void *arg)
{
	if (!root || root->max_end <= first)
		return false;
	if (interval_any(root->left, first, end, fn, arg))
		return true;
	if (root->first >= end)
		return false;
	if (root->end > first && fn(root, arg))
		return true;
	return interval_any(root->right, first, end, fn, arg);
}
