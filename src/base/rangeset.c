/*
 * rangeset.c - a treap: ordered by `first` from left to right, heap-ordered
 * by `priority` from the root down.  A priority is a hash of the range's first
 * element when it was made, so the shape is the same in every run.  Each node
 * knows the longest range of its subtree, so that short ones are passed over,
 * and how many elements its ranges have.
 *
 * Invariants: ranges are not empty, do not wrap and do not touch.  A range that
 * is cut or grown stays where it is in the tree, for that does not change its
 * order among the others.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/rangeset.h"
#include "base/slab.h"

struct rangeset_node {
	struct rangeset_node *left, *right;
	uint64_t first, n;
	uint64_t longest;	/* length of the longest range of the subtree */
	uint64_t sum;		/* sum of the lengths of its ranges */
	uint32_t count;		/* number of its ranges */
	uint32_t priority;
};

/* The finalizer of splitmix64. */
static uint32_t priority_of(uint64_t first)
{
	first = (first ^ first >> 30) * 0xbf58476d1ce4e5b9;
	first = (first ^ first >> 27) * 0x94d049bb133111eb;
	return (uint32_t)(first >> 32);
}

static uint64_t node_end(const struct rangeset_node *node)
{
	return node->first + node->n;
}

static bool range_is_valid(uint64_t first, uint64_t n)
{
	return n && n <= UINT64_MAX - first;
}

static uint64_t longest_of(const struct rangeset_node *node)
{
	return node ? node->longest : 0;
}

static uint64_t sum_of(const struct rangeset_node *node)
{
	return node ? node->sum : 0;
}

static size_t count_of(const struct rangeset_node *node)
{
	return node ? node->count : 0;
}

/* Computes the members of a node that describe its subtree from those of its
 * children. */
static void node_renew(struct rangeset_node *node)
{
	const uint64_t left = longest_of(node->left);
	const uint64_t right = longest_of(node->right);
	const uint64_t below = left > right ? left : right;

	node->longest = node->n > below ? node->n : below;
	node->sum = sum_of(node->left) + node->n + sum_of(node->right);
	node->count = (uint32_t)(count_of(node->left) + 1 +
				 count_of(node->right));
}

/* Parts a subtree into the ranges that begin before `at` and the others. */
static void node_split(struct rangeset_node *node, uint64_t at,
		       struct rangeset_node **before,
		       struct rangeset_node **after)
{
	if (!node) {
		*before = *after = NULL;
		return;
	}
	if (node->first < at) {
		node_split(node->right, at, &node->right, after);
		*before = node;
	} else {
		node_split(node->left, at, before, &node->left);
		*after = node;
	}
	node_renew(node);
}

/* Joins two subtrees, all of a before all of b. */
static struct rangeset_node *node_join(struct rangeset_node *a,
				       struct rangeset_node *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = node_join(a->right, b);
		node_renew(a);
		return a;
	}
	b->left = node_join(a, b->left);
	node_renew(b);
	return b;
}

static struct slabs nodes = SLABS_INIT(nodes, sizeof(struct rangeset_node));

/* Nodes kept for when there is no memory, linked by `left`. */
static struct rangeset_node *spare;
static size_t spares;

bool rangeset_reserve(size_t n)
{
	while (spares < n) {
		struct rangeset_node *node = slab_get(&nodes);

		if (!node)
			return false;
		node->left = spare;
		spare = node;
		spares++;
	}
	return true;
}

static struct rangeset_node *node_new(uint64_t first, uint64_t n)
{
	struct rangeset_node *node = slab_get(&nodes);

	if (!node && spare) {
		node = spare;
		spare = node->left;
		spares--;
	}
	if (!node)
		return NULL;
	node->left = node->right = NULL;
	node->first = first;
	node->n = n;
	node->priority = priority_of(first);
	node_renew(node);
	return node;
}

static struct rangeset_node *node_insert(struct rangeset_node *at,
					 struct rangeset_node *node)
{
	if (!at || at->priority <= node->priority) {
		node_split(at, node->first, &node->left, &node->right);
		at = node;
	} else if (node->first < at->first) {
		at->left = node_insert(at->left, node);
	} else {
		at->right = node_insert(at->right, node);
	}
	node_renew(at);
	return at;
}

/* Removes a node from the subtree that holds it. */
static struct rangeset_node *node_take_out(struct rangeset_node *at,
					   const struct rangeset_node *node)
{
	if (at == node)
		return node_join(at->left, at->right);
	if (node->first < at->first)
		at->left = node_take_out(at->left, node);
	else
		at->right = node_take_out(at->right, node);
	node_renew(at);
	return at;
}

/* A node on the way to `first` has changed its length. */
static void nodes_renew(struct rangeset_node *at, uint64_t first)
{
	if (at->first != first)
		nodes_renew(first < at->first ? at->left : at->right, first);
	node_renew(at);
}

static void set_renew(struct rangeset *set, struct rangeset_node *root)
{
	set->root = root;
	set->count = count_of(root);
	set->total = sum_of(root);
}

static void set_insert(struct rangeset *set, struct rangeset_node *node)
{
	set_renew(set, node_insert(set->root, node));
}

static void set_delete(struct rangeset *set, struct rangeset_node *node)
{
	set_renew(set, node_take_out(set->root, node));
	slab_put(&nodes, node);
}

/* Changes a node's range, which stays where it is among the others. */
static void set_resize(struct rangeset *set, struct rangeset_node *node,
		       uint64_t first, uint64_t end)
{
	node->first = first;
	node->n = end - first;
	nodes_renew(set->root, first);
	set_renew(set, set->root);
}

/* First range whose end is at least `end`. */
static struct rangeset_node *set_first_ending(const struct rangeset *set,
					      uint64_t end)
{
	struct rangeset_node *node = set->root, *best = NULL;

	while (node) {
		if (node_end(node) >= end) {
			best = node;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return best;
}

void rangeset_init(struct rangeset *set)
{
	*set = (struct rangeset){ 0 };
}

/* Rotates left children up until the root has none, and drops the root. */
bool rangeset_shrink(struct rangeset *set, size_t most)
{
	struct rangeset_node *node = set->root, *up;

	while (node && most) {
		up = node->left;
		if (up) {
			node->left = up->right;
			up->right = node;
		} else {
			up = node->right;
			slab_put(&nodes, node);
			most--;
		}
		node = up;
	}
	set->root = node;
	return !node;
}

void rangeset_fini(struct rangeset *set)
{
	rangeset_shrink(set, SIZE_MAX);
	rangeset_init(set);
}

int rangeset_add(struct rangeset *set, uint64_t first, uint64_t n)
{
	struct rangeset_node *node, *next;
	uint64_t end = first + n;

	if (!range_is_valid(first, n))
		return -EINVAL;
	node = set_first_ending(set, first);
	if (!node || node->first > end) {
		node = node_new(first, n);
		if (!node)
			return -ENOMEM;
		set_insert(set, node);
		return 0;
	}
	if (node->first < first)
		first = node->first;
	while ((next = set_first_ending(set, node_end(node) + 1)) &&
	       next->first <= end) {
		if (node_end(next) > end)
			end = node_end(next);
		set_delete(set, next);
	}
	if (node_end(node) > end)
		end = node_end(node);
	set_resize(set, node, first, end);
	return 0;
}

/* Cuts [first, end) out of the middle of a range. */
static int set_cut(struct rangeset *set, struct rangeset_node *node,
		   uint64_t first, uint64_t end)
{
	struct rangeset_node *rest = node_new(end, node_end(node) - end);

	if (!rest)
		return -ENOMEM;
	set_resize(set, node, node->first, first);
	set_insert(set, rest);
	return 0;
}

/* Joins two ranges that touch at `at`. */
static void set_join_at(struct rangeset *set, uint64_t at)
{
	struct rangeset_node *node = set_first_ending(set, at), *next;

	if (!node || node_end(node) != at)
		return;
	next = set_first_ending(set, at + 1);
	if (!next || next->first != at)
		return;
	at = node_end(next);
	set_delete(set, next);
	set_resize(set, node, node->first, at);
}

int rangeset_remove(struct rangeset *set, uint64_t first, uint64_t n)
{
	struct rangeset_node *node;
	uint64_t end = first + n;

	if (!range_is_valid(first, n))
		return -EINVAL;
	while ((node = set_first_ending(set, first + 1)) && node->first < end) {
		if (node->first < first && node_end(node) > end)
			return set_cut(set, node, first, end);
		if (node->first < first)
			set_resize(set, node, node->first, first);
		else if (node_end(node) > end)
			set_resize(set, node, end, node_end(node));
		else
			set_delete(set, node);
	}
	return 0;
}

bool rangeset_has(const struct rangeset *set, uint64_t first, uint64_t n)
{
	const struct rangeset_node *node;

	if (!range_is_valid(first, n))
		return false;
	node = set_first_ending(set, first + n);
	return node && node->first <= first;
}

bool rangeset_meets(const struct rangeset *set, uint64_t first, uint64_t n)
{
	const struct rangeset_node *node;

	if (!range_is_valid(first, n))
		return false;
	node = set_first_ending(set, first + 1);
	return node && node->first < first + n;
}

bool rangeset_next(const struct rangeset *set, uint64_t from,
		   struct range *out)
{
	const struct rangeset_node *node;

	if (from == UINT64_MAX)
		return false;
	node = set_first_ending(set, from + 1);
	if (!node)
		return false;
	*out = (struct range){ node->first, node->n };
	return true;
}

static const struct rangeset_node *
node_long(const struct rangeset_node *node, uint64_t from, uint64_t n)
{
	const struct rangeset_node *found;

	if (longest_of(node) < n || !node)
		return NULL;
	if (node_end(node) <= from)
		return node_long(node->right, from, n);
	found = node_long(node->left, from, n);
	if (found)
		return found;
	return node->n >= n ? node : node_long(node->right, from, n);
}

bool rangeset_next_long(const struct rangeset *set, uint64_t from, uint64_t n,
			struct range *out)
{
	const struct rangeset_node *node = node_long(set->root, from, n);

	if (node)
		*out = (struct range){ node->first, node->n };
	return node != NULL;
}

/* Does the whole subtree lie behind `first` (low), and before `end` (high)? */
static uint64_t node_longest(const struct rangeset_node *node, uint64_t first,
			     uint64_t end, bool low, bool high)
{
	uint64_t a, b, left, right;

	if (!node || (low && high))
		return longest_of(node);
	if (node_end(node) <= first)
		return node_longest(node->right, first, end, low, high);
	if (node->first >= end)
		return node_longest(node->left, first, end, low, high);
	a = node->first > first ? node->first : first;
	b = node_end(node) < end ? node_end(node) : end;
	left = node_longest(node->left, first, end, low, true);
	right = node_longest(node->right, first, end, true, high);
	if (left < right)
		left = right;
	return b - a > left ? b - a : left;
}

uint64_t rangeset_longest(const struct rangeset *set, uint64_t first,
			  uint64_t n)
{
	return node_longest(set->root, first, first + n, false, false);
}

/* Number of elements before `at`. */
static uint64_t sum_before(const struct rangeset *set, uint64_t at)
{
	const struct rangeset_node *node = set->root;
	uint64_t sum = 0;

	while (node) {
		if (node->first >= at) {
			node = node->left;
			continue;
		}
		sum += sum_of(node->left);
		if (node_end(node) >= at)
			return sum + (at - node->first);
		sum += node->n;
		node = node->right;
	}
	return sum;
}

uint64_t rangeset_sum(const struct rangeset *set, uint64_t first, uint64_t n)
{
	return sum_before(set, first + n) - sum_before(set, first);
}

/* Makes a range that crosses `at` into two that touch there. */
static int set_part(struct rangeset *set, uint64_t at)
{
	struct rangeset_node *node = set_first_ending(set, at + 1);

	if (!node || node->first >= at)
		return 0;
	return set_cut(set, node, at, at);
}

int rangeset_move_out(struct rangeset *set, uint64_t first, uint64_t n,
		      struct rangeset *out)
{
	struct rangeset_node *before, *in, *after;
	int rc;

	if (!range_is_valid(first, n) || out->root)
		return -EINVAL;
	rc = set_part(set, first);
	if (!rc)
		rc = set_part(set, first + n);
	if (rc) {
		set_join_at(set, first);
		return rc;
	}
	node_split(set->root, first, &before, &after);
	node_split(after, first + n, &in, &after);
	set_renew(set, node_join(before, after));
	set_renew(out, in);
	return 0;
}

void rangeset_move_in(struct rangeset *set, struct rangeset *from)
{
	struct rangeset_node *before, *after;
	struct range first = { 0, 0 }, last = { 0, 0 };

	if (!rangeset_next(from, 0, &first))
		return;
	rangeset_prev(from, UINT64_MAX, &last);
	node_split(set->root, first.first, &before, &after);
	set_renew(set, node_join(node_join(before, from->root), after));
	rangeset_init(from);
	set_join_at(set, first.first);
	set_join_at(set, last.first + last.n);
}

bool rangeset_prev(const struct rangeset *set, uint64_t before,
		   struct range *out)
{
	const struct rangeset_node *node = set->root, *best = NULL;

	while (node) {
		if (node->first < before) {
			best = node;
			node = node->right;
		} else {
			node = node->left;
		}
	}
	if (!best)
		return false;
	*out = (struct range){ best->first, best->n };
	return true;
}
