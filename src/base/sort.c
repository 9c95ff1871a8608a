/*
 * sort.c - see sort.h.
 */
#include "base/sort.h"

#include <errno.h>
#include <stdlib.h>

int sort_init(struct sort *sort, size_t most)
{
	*sort = (struct sort){
		.item = calloc(most, sizeof(*sort->item)),
		.other = calloc(most, sizeof(*sort->other)),
	};
	return sort->item && sort->other ? 0 : -ENOMEM;
}

void sort_fini(struct sort *sort)
{
	free(sort->item);
	free(sort->other);
}

void sort_begin(struct sort *sort, size_t n)
{
	sort->n = n;
	sort->width = 1;
	sort->at = sort->left = 0;
	sort->right = 1;
}

static size_t at_most(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Writes the next item of a pair of runs. */
static void merge_one(struct sort *sort)
{
	const size_t pair = 2 * sort->width;
	const size_t first = sort->at - sort->at % pair;
	const size_t middle = at_most(first + sort->width, sort->n);
	const size_t end = at_most(first + pair, sort->n);
	const struct sort_item *item = sort->item;

	if (sort->left < middle &&
	    (sort->right == end ||
	     item[sort->left].key <= item[sort->right].key))
		sort->other[sort->at++] = item[sort->left++];
	else
		sort->other[sort->at++] = item[sort->right++];
	if (sort->at == end) {
		sort->left = end;
		sort->right = at_most(end + sort->width, sort->n);
	}
}

bool sort_step(struct sort *sort, size_t most)
{
	struct sort_item *item;

	while (sort->width < sort->n) {
		for (; sort->at < sort->n; most--) {
			if (!most)
				return false;
			merge_one(sort);
		}
		item = sort->item;
		sort->item = sort->other;
		sort->other = item;
		sort->width *= 2;
		sort->at = sort->left = 0;
		sort->right = at_most(sort->width, sort->n);
	}
	return true;
}

int sort_u64_cmp(const void *a, const void *b)
{
	return sort_order(*(const uint64_t *)a, *(const uint64_t *)b);
}

int sort_double_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}
