/*
 * slab.h - memory for many objects of one size, in slabs of 64 KiB.
 *
 * Getting and putting take a constant time however many objects there are:
 * malloc(3) joins freed blocks when a larger one is asked for, which took 28 ms
 * after 100,000 of them.  A slab whose objects are all free is freed, unless it
 * is the only one with free objects.  Not thread safe.
 */
#ifndef TRAX_BASE_SLAB_H
#define TRAX_BASE_SLAB_H

#include <stddef.h>

#include "base/list.h"

struct slabs {
	size_t bytes;		/* bytes of an object, at least those of a
				 * pointer */
	struct list partial;	/* slabs that have a free object */
};

/* For a static variable. */
#define SLABS_INIT(name, object_bytes) \
	{ (object_bytes), { &(name).partial, &(name).partial } }

void *slab_get(struct slabs *slabs);	/* NULL: out of memory */
void slab_put(struct slabs *slabs, void *object);

#endif
