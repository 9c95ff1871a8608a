/*
 * tmp_array.h - arrays that may outgrow memory: pages of a file without a name.
 *
 * A spill is one mapping that grows and may move; items are named by their
 * index.  With a directory for scratch files the kernel writes out what does
 * not fit in memory; without, it is plain memory.
 */
#ifndef TRAX_SCAN_TMP_ARRAY_H
#define TRAX_SCAN_TMP_ARRAY_H

#include <stddef.h>
#include <stdint.h>

struct spill {
	uint8_t *base;
	size_t size;		/* of an item */
	size_t n;
	size_t room;		/* bytes */
	int fd;			/* -1: plain memory */
};

/* directory: NULL for plain memory.  -errno of open(2). */
int spill_init(struct spill *spill, size_t size, const char *directory);
void spill_fini(struct spill *spill);

static inline void *spill_at(const struct spill *spill, size_t i)
{
	return spill->base + i * spill->size;
}

/* n new items at the end; NULL: no memory, or the scratch disk is full. */
void *spill_add(struct spill *spill, size_t n);

/* Sorts all items. */
void spill_sort(struct spill *spill, int (*cmp)(const void *a, const void *b));

#endif
