/*
 * rangeset.h - an ordered set of disjoint 64-bit ranges [first, first + n).
 *
 * Ranges that touch are joined.  Adding and removing cut and join as needed;
 * every call is O(log ranges) for each range it meets.  Not thread safe.
 * The caller owns the set; rangeset_fini frees what it holds.
 */
#ifndef TRAX_BASE_RANGESET_H
#define TRAX_BASE_RANGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rangeset_node;

struct rangeset {
	struct rangeset_node *root;
	size_t count;		/* number of ranges */
	uint64_t total;		/* sum of their lengths */
};

struct range {
	uint64_t first, n;
};

/*
 * Keeps memory for `n` more ranges, of all sets together, so that this many
 * calls that add or remove one cannot fail; false: there is none.  It is used
 * only when there is no other memory.
 */
bool rangeset_reserve(size_t n);
void rangeset_init(struct rangeset *set);
void rangeset_fini(struct rangeset *set);

/*
 * Adds [first, first + n), which may overlap ranges of the set. -ENOMEM changes
 * nothing; -EINVAL: the range is empty or wraps.
 */
int rangeset_add(struct rangeset *set, uint64_t first, uint64_t n);

/* Removes whatever of [first, first + n) is in the set.  -ENOMEM (a range
 * cut in two needs a node) changes nothing. */
int rangeset_remove(struct rangeset *set, uint64_t first, uint64_t n);

/* Is every element of [first, first + n) in the set? */
bool rangeset_has(const struct rangeset *set, uint64_t first, uint64_t n);

/* Is any element of [first, first + n) in the set? */
bool rangeset_meets(const struct rangeset *set, uint64_t first, uint64_t n);

/* First range that ends after `from` (it may begin before it). */
bool rangeset_next(const struct rangeset *set, uint64_t from,
		   struct range *out);

/* The same among the ranges of n elements or more. */
bool rangeset_next_long(const struct rangeset *set, uint64_t from, uint64_t n,
			struct range *out);

/* Length of the longest run of elements in [first, first + n). */
uint64_t rangeset_longest(const struct rangeset *set, uint64_t first,
			  uint64_t n);

/* Number of elements in [first, first + n). O(log ranges). */
uint64_t rangeset_sum(const struct rangeset *set, uint64_t first, uint64_t n);

/* Moves the part of the set inside [first, first + n) to another set, `out`,
 * which must be empty. O(log ranges). -ENOMEM changes nothing. */
int rangeset_move_out(struct rangeset *set, uint64_t first, uint64_t n,
		      struct rangeset *out);

/* Adds all of `from`, which becomes empty. No element of the set may lie
 * between the first and the last one of `from`. O(log ranges). */
void rangeset_move_in(struct rangeset *set, struct rangeset *from);

/* Frees at most `most` ranges of a set that is given up, so that a large one
 * can be freed in steps; true: it is empty. */
bool rangeset_shrink(struct rangeset *set, size_t most);

/* Last range that begins before `before`. */
bool rangeset_prev(const struct rangeset *set, uint64_t before,
		   struct range *out);

#endif
