/*
 * vec.h - an array that grows.
 */
#ifndef TRAX_SCAN_VEC_H
#define TRAX_SCAN_VEC_H

#include <stddef.h>
#include <stdlib.h>

struct vec {
	void *items;
	size_t n;
	size_t room;
	size_t size;		/* of an item */
};

static inline void vec_init(struct vec *vec, size_t size)
{
	*vec = (struct vec){ .size = size };
}

static inline void vec_fini(struct vec *vec)
{
	free(vec->items);
	vec_init(vec, vec->size);
}

static inline void *vec_at(const struct vec *vec, size_t i)
{
	return (char *)vec->items + i * vec->size;
}

/* A new item at the end, not initialised; NULL: out of memory. */
static inline void *vec_add(struct vec *vec)
{
	if (vec->n == vec->room) {
		size_t room = vec->room ? vec->room * 2 : 16;
		void *items = realloc(vec->items, room * vec->size);

		if (!items)
			return NULL;
		vec->items = items;
		vec->room = room;
	}
	return vec_at(vec, vec->n++);
}

static inline void vec_sort(struct vec *vec,
			    int (*cmp)(const void *a, const void *b))
{
	if (vec->n)
		qsort(vec->items, vec->n, vec->size, cmp);
}

#endif
