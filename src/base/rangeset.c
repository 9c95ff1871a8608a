/*
 * rangeset.c - a treap: ordered by `first` from left to right, heap-ordered
 * by `priority` from the root down.  A priority is a hash of the range's first
 * element when it was made, so the shape is the same in every run.
 *
 * Invariants: ranges are not empty, do not wrap and do not touch.  A range that
 * is cut or grown stays where it is in the tree, for that does not change its
 * order among the others.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/rangeset.h"

struct rangeset_node {
	struct rangeset_node *left, *right;
	uint64_t first, n;
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

/* Parts a subtree into what begins before `at` and what does not. */
static void node_split(struct rangeset_node *node, uint64_t at,
		       struct rangeset_node **before,
		       struct rangeset_node **after)
{
	while (node) {
		if (node->first < at) {
			*before = node;
			before = &node->right;
			node = node->right;
		} else {
			*after = node;
			after = &node->left;
			node = node->left;
		}
	}
	*before = *after = NULL;
}

/* Joins two subtrees, all of a before all of b. */
static void node_join(struct rangeset_node **link, struct rangeset_node *a,
		      struct rangeset_node *b)
{
	while (a && b) {
		if (a->priority > b->priority) {
			*link = a;
			link = &a->right;
			a = a->right;
		} else {
			*link = b;
			link = &b->left;
			b = b->left;
		}
	}
	*link = a ? a : b;
}

static struct rangeset_node *node_new(uint64_t first, uint64_t n)
{
	struct rangeset_node *node = malloc(sizeof(*node));

	if (!node)
		return NULL;
	node->first = first;
	node->n = n;
	node->priority = priority_of(first);
	return node;
}

static void set_insert(struct rangeset *set, struct rangeset_node *node)
{
	struct rangeset_node **link = &set->root;

	while (*link && (*link)->priority > node->priority)
		link = node->first < (*link)->first ? &(*link)->left
						    : &(*link)->right;
	node_split(*link, node->first, &node->left, &node->right);
	*link = node;
	set->count++;
	set->total += node->n;
}

static void set_delete(struct rangeset *set, struct rangeset_node *node)
{
	struct rangeset_node **link = &set->root;

	while (*link != node)
		link = node->first < (*link)->first ? &(*link)->left
						    : &(*link)->right;
	node_join(link, node->left, node->right);
	set->count--;
	set->total -= node->n;
	free(node);
}

static void set_resize(struct rangeset *set, struct rangeset_node *node,
		       uint64_t first, uint64_t end)
{
	set->total -= node->n;
	node->first = first;
	node->n = end - first;
	set->total += node->n;
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

/* Turns left children up until the root has none, then drops the root. */
void rangeset_fini(struct rangeset *set)
{
	struct rangeset_node *node = set->root, *up;

	while (node) {
		up = node->left;
		if (up) {
			node->left = up->right;
			up->right = node;
		} else {
			up = node->right;
			free(node);
		}
		node = up;
	}
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
