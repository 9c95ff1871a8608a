/*
 * tmp_array.h - arrays that may outgrow memory: pages of a file without a name.
 *
 * An array is one mapping that grows and may move; items are named by their
 * index.  With a directory for scratch files the kernel writes out what does
 * not fit in memory; without one, the array is plain memory.
 */
#ifndef TRAX_SCAN_TMP_ARRAY_H
#define TRAX_SCAN_TMP_ARRAY_H

#include <stddef.h>
#include <stdint.h>

struct tmp_array {
	uint8_t *base;
	size_t size;		/* bytes of an item */
	size_t n;
	size_t room;		/* bytes */
	int fd;			/* -1: plain memory */
};

/* Makes an array in a file below `directory`; NULL: in plain memory. Returns
 * -errno of open(2). */
int tmp_array_init(struct tmp_array *tmp_array, size_t size,
		   const char *directory);
void tmp_array_fini(struct tmp_array *tmp_array);

static inline void *tmp_array_at(const struct tmp_array *tmp_array, size_t i)
{
	return tmp_array->base + i * tmp_array->size;
}

/* Adds n items at the end; NULL: there is no memory, or the scratch disk is
 * full. */
void *tmp_array_add(struct tmp_array *tmp_array, size_t n);

/* Sorts all items. */
void tmp_array_sort(struct tmp_array *tmp_array,
		    int (*cmp)(const void *a, const void *b));

#endif
