/*
 * interval_tree.h - sets of sector ranges that may overlap, without allocation.
 *
 * An interval is embedded in what it stands for and belongs to at most one set.
 * A set is ordered by first sector, then by order of submission.  Every subtree
 * knows where its furthest interval ends and which is due first, so the
 * questions of a disk queue are answered in O(log n).
 */
#ifndef TRAX_QUEUE_INTERVAL_TREE_H
#define TRAX_QUEUE_INTERVAL_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct interval {
	/* Set by the owner before interval_insert, then left alone. */
	uint64_t first, end;	/* sectors [first, end), not empty */
	uint64_t order;		/* different in every interval of a set */
	uint64_t due_ns;

	/* Private to the set. */
	struct interval *left, *right;
	uint64_t max_end, min_due_ns, min_order;
	uint32_t priority;
};

/* A set is a pointer to its root; NULL when empty. */
void interval_insert(struct interval **root, struct interval *interval);
void interval_remove(struct interval **root, struct interval *interval);

/* The first interval that begins at or after `sector`; NULL: none. */
struct interval *interval_at_or_after(struct interval *root, uint64_t sector);

/* The last interval that begins before `sector`; NULL: none. */
struct interval *interval_before(struct interval *root, uint64_t sector);

/* The interval that is due first; NULL in an empty set. */
struct interval *interval_first_due(struct interval *root);

/* The interval of the lowest order; NULL in an empty set. */
struct interval *interval_oldest(struct interval *root);

/* Does fn return true for any interval that overlaps [first, end)? */
bool interval_any(struct interval *root, uint64_t first, uint64_t end,
	      bool (*fn)(const struct interval *interval, const void *arg),
	      const void *arg);

#endif
