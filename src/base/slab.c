/*
 * slab.c - see slab.h.  A slab begins at a multiple of its size, so that the
 * slab of an object is found by its address.
 */
#include "base/slab.h"

#include <stdint.h>
#include <stdlib.h>

/* Bytes allocated at a time, whatever the size of the objects, but for those
 * that malloc(3) has of its own between two slabs: with these a slab would end
 * behind a multiple, and the next one would begin at the second from there. */
#define SLAB_BYTES 65536u
#define HEAP_BYTES 64u

struct slab {
	struct list link;	/* slabs->partial, unless it is full */
	void *free;		/* the first free object, which points to the
				 * next one */
	size_t used;		/* number of objects that are not free */
};

static struct slab *slab_new(struct slabs *slabs)
{
	struct slab *slab;
	void *memory;
	size_t at = (sizeof(*slab) + slabs->bytes - 1) / slabs->bytes *
		    slabs->bytes;

	if (posix_memalign(&memory, SLAB_BYTES, SLAB_BYTES - HEAP_BYTES))
		return NULL;
	slab = memory;
	slab->free = NULL;
	slab->used = 0;
	for (; at + slabs->bytes <= SLAB_BYTES - HEAP_BYTES;
	     at += slabs->bytes) {
		void **object = (void **)((uint8_t *)slab + at);

		*object = slab->free;
		slab->free = object;
	}
	list_add_front(&slabs->partial, &slab->link);
	return slab;
}

void *slab_get(struct slabs *slabs)
{
	struct slab *slab = list_first(&slabs->partial, struct slab, link);
	void **object;

	if (!slab)
		slab = slab_new(slabs);
	if (!slab)
		return NULL;
	object = slab->free;
	slab->free = *object;
	slab->used++;
	if (!slab->free)
		list_del(&slab->link);
	return object;
}

void slab_put(struct slabs *slabs, void *object)
{
	struct slab *slab = (struct slab *)((uintptr_t)object &
					    ~(uintptr_t)(SLAB_BYTES - 1));

	if (!slab->free)
		list_add_front(&slabs->partial, &slab->link);
	*(void **)object = slab->free;
	slab->free = object;
	/* One stays for the next object. */
	if (--slab->used || slabs->partial.next == slabs->partial.prev)
		return;
	list_del(&slab->link);
	free(slab);
}
