/*
 * sort.h - sorts in steps, so that no turn of the loop is long: a merge sort
 * from the bottom up.  Stable.  Not thread safe.
 */
#ifndef TRAX_BASE_SORT_H
#define TRAX_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sort_item {
	uint64_t key;
	uint32_t value;		/* what the key belongs to */
};

/* Charged for one item in a step, in nanoseconds, as on a slow machine. */
#define SORT_ITEM_NS 12u

struct sort {
	struct sort_item *item;	/* n items; sorted when sort_step returns
				 * true */
	struct sort_item *other; /* room for as many; the two are exchanged */
	size_t n;
	size_t width;		/* items come in sorted runs of this many */
	size_t at, left, right;	/* next item that is written, and the two that
				 * it may come from */
};

/* Gets room for `most` items.  -ENOMEM. */
int sort_init(struct sort *sort, size_t most);
void sort_fini(struct sort *sort);

/* The caller has filled in sort->item[0] to [n - 1]. */
void sort_begin(struct sort *sort, size_t n);

/* Moves `most` items.  Returns whether all are sorted. */
bool sort_step(struct sort *sort, size_t most);

/* Returns -1, 0 or 1, as the functions of qsort(3) and bsearch(3) do. */
static inline int sort_order(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

/* Compares two uint64_t; for qsort(3) and bsearch(3). */
int sort_u64_cmp(const void *a, const void *b);

/* The same of two doubles, neither of which is NAN. */
int sort_double_cmp(const void *a, const void *b);

#endif
