/*
 * abandon_alloc.c - see abandon_alloc.h.
 */
#include "fs/op/abandon_alloc.h"

#include <stdlib.h>

struct allocation {
	struct list link;	/* fs->allocated */
	max_align_t memory[];
};

void *abandon_alloc(struct fs *fs, size_t bytes)
{
	struct allocation *allocation = calloc(1, sizeof(*allocation) + bytes);

	if (!allocation)
		return NULL;
	list_add(&fs->allocated, &allocation->link);
	return allocation->memory;
}

void abandon_free(void *memory)
{
	struct allocation *allocation;

	if (!memory)
		return;
	allocation = container_of(memory, struct allocation, memory);
	list_del(&allocation->link);
	free(allocation);
}

void abandon_free_all(struct fs *fs)
{
	struct allocation *allocation;

	while ((allocation = list_first(&fs->allocated, struct allocation,
					link)))
		abandon_free(allocation->memory);
}
