/*
 * array.h - an array that grows, whose owner keeps its length.
 */
#ifndef TRAX_BASE_ARRAY_H
#define TRAX_BASE_ARRAY_H

#include <errno.h>
#include <stdlib.h>

#define ARRAY_ROOM 256u		/* items that the first allocation holds */

/* Makes room for one more item behind the n there are.  `array` is the address
 * of the pointer to them; *room items fit.  -ENOMEM. */
static inline int array_grow(void *array, size_t *room, size_t n, size_t each)
{
	void **slot = array, *more;
	size_t want = *room ? 2 * *room : ARRAY_ROOM;

	if (n < *room)
		return 0;
	more = reallocarray(*slot, want, each);
	if (!more)
		return -ENOMEM;
	*slot = more;
	*room = want;
	return 0;
}

#endif
