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

struct hashmap;

struct hashmap *hashmap_new(void);		/* NULL: out of memory */
void hashmap_free(struct hashmap *map);

size_t hashmap_count(const struct hashmap *map);
void *hashmap_get(const struct hashmap *map, uint64_t key);

/* Adds or replaces.  -ENOMEM only when the key is new; -EINVAL: NULL. */
int hashmap_put(struct hashmap *map, uint64_t key, void *value);

/* Removes the key and returns its value, NULL when it was not there. */
void *hashmap_del(struct hashmap *map, uint64_t key);

/*
 * Walks all entries in insertion order: *pos starts at 0.  Returns NULL at the
 * end.  `key` may be NULL.  Any entry may be removed while walking; adding is
 * not allowed.
 */
void *hashmap_next(const struct hashmap *map, size_t *pos, uint64_t *key);

#endif
