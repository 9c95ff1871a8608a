/*
 * interval_tree.h - sets of sector ranges that may overlap, without allocation.
 *
 * A span is embedded in what it stands for and belongs to at most one set.
 * Ordered by first sector, then by order of submission; every subtree knows
 * where its furthest span ends and which is due first, so the questions of a
 * disk queue are answered in O(log n).
 */
#ifndef TRAX_QUEUE_INTERVAL_TREE_H
#define TRAX_QUEUE_INTERVAL_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct span {
	/* Set by the owner before span_insert, then left alone. */
	uint64_t first, end;	/* sectors [first, end), not empty */
	uint64_t order;		/* different in every span of a set */
	uint64_t due_ns;

	/* The set's. */
	struct span *left, *right;
	uint64_t max_end, min_due_ns, min_order;
	uint32_t priority;
};

/* A set is a pointer to its root; NULL when empty. */
void span_insert(struct span **root, struct span *span);
void span_remove(struct span **root, struct span *span);

/* The first span that begins at or after `sector`; NULL: none. */
struct span *span_at_or_after(struct span *root, uint64_t sector);

/* The last span that begins before `sector`; NULL: none. */
struct span *span_before(struct span *root, uint64_t sector);

/* The span that is due first; NULL in an empty set. */
struct span *span_first_due(struct span *root);

/* The span of the lowest order; NULL in an empty set. */
struct span *span_oldest(struct span *root);

/* Does fn say true of any span that meets [first, end)? */
bool span_any(struct span *root, uint64_t first, uint64_t end,
	      bool (*fn)(const struct span *span, const void *arg),
	      const void *arg);

#endif
