/*
 * hashmap.h - hash table from a 64-bit key to a pointer.
 *
 * Iterates in insertion order, so that a run does not depend on hashing.
 * Values belong to the caller; NULL is not a value.
 */
#ifndef TRAX_BASE_HASHMAP_H
#define TRAX_BASE_HASHMAP_H

#include <stddef.h>
#include <stdint.h>

struct map;

struct map *map_new(void);		/* NULL: out of memory */
void map_free(struct map *map);

size_t map_count(const struct map *map);
void *map_get(const struct map *map, uint64_t key);

/* Adds or replaces.  -ENOMEM only when the key is new; -EINVAL: NULL. */
int map_put(struct map *map, uint64_t key, void *value);

/* Removes the key and returns its value, NULL when it was not there. */
void *map_del(struct map *map, uint64_t key);

/*
 * Walks all entries in insertion order: *pos starts at 0.  Returns NULL at the
 * end.  `key` may be NULL.  Any entry may be removed while walking; adding is
 * not allowed.
 */
void *map_next(const struct map *map, size_t *pos, uint64_t *key);

#endif
