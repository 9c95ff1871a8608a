/*
 * hashmap.c - entries in an array in order of insertion, found through a table
 * of slots with linear probing.
 *
 * A removed entry stays as a gap (value NULL) and its slot goes on leading to
 * it, so probing needs no marks and a walk may remove what it was given.  When
 * the array is full it is written anew without the gaps, twice as large if more
 * than half of it lives.  There are twice as many slots as entries.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/hashmap.h"

#define FIRST_CAPACITY 16u
#define MAX_CAPACITY (1u << 30)

struct hashmap_entry {
	uint64_t key;
	void *value;		/* NULL: the entry was removed */
};

struct hashmap {
	struct hashmap_entry *entries;
	uint32_t *slots;	/* index of an entry + 1; 0: empty */
	uint32_t capacity;	/* number of entries there is room for: a power
				 * of two */
	uint32_t used;		/* entries in use, the removed ones counted */
	uint32_t live;
};

/* The finalizer of splitmix64. */
static uint64_t hash(uint64_t key)
{
	key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
	key = (key ^ key >> 27) * 0x94d049bb133111eb;
	return key ^ key >> 31;
}

static struct hashmap_entry *hashmap_find(const struct hashmap *map,
					  uint64_t key)
{
	uint32_t mask = 2 * map->capacity - 1;
	uint32_t at = (uint32_t)hash(key) & mask;
	struct hashmap_entry *entry;

	for (; map->slots[at]; at = (at + 1) & mask) {
		entry = &map->entries[map->slots[at] - 1];
		if (entry->key == key && entry->value)
			return entry;
	}
	return NULL;
}

/* Adds an entry; there is room for it, and its key is new. */
static void hashmap_append(struct hashmap *map, uint64_t key, void *value)
{
	uint32_t mask = 2 * map->capacity - 1;
	uint32_t at = (uint32_t)hash(key) & mask;

	while (map->slots[at])
		at = (at + 1) & mask;
	map->entries[map->used] = (struct hashmap_entry){ key, value };
	map->slots[at] = ++map->used;
	map->live++;
}

static int hashmap_alloc(struct hashmap *map, uint32_t capacity)
{
	*map = (struct hashmap){ .capacity = capacity };
	map->entries = malloc(capacity * sizeof(*map->entries));
	map->slots = calloc(2 * (size_t)capacity, sizeof(*map->slots));
	if (map->entries && map->slots)
		return 0;
	free(map->entries);
	free(map->slots);
	return -ENOMEM;
}

static int hashmap_rewrite(struct hashmap *map)
{
	uint32_t capacity = map->capacity;
	struct hashmap next;
	uint32_t i;

	if (map->live > capacity / 2)
		capacity *= 2;
	if (capacity > MAX_CAPACITY || hashmap_alloc(&next, capacity))
		return -ENOMEM;
	for (i = 0; i < map->used; i++)
		if (map->entries[i].value)
			hashmap_append(&next, map->entries[i].key,
				   map->entries[i].value);
	free(map->entries);
	free(map->slots);
	*map = next;
	return 0;
}

struct hashmap *hashmap_new(void)
{
	struct hashmap *map = malloc(sizeof(*map));

	if (map && hashmap_alloc(map, FIRST_CAPACITY)) {
		free(map);
		return NULL;
	}
	return map;
}

void hashmap_free(struct hashmap *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->slots);
	free(map);
}

size_t hashmap_count(const struct hashmap *map)
{
	return map->live;
}

void *hashmap_get(const struct hashmap *map, uint64_t key)
{
	struct hashmap_entry *entry = hashmap_find(map, key);

	return entry ? entry->value : NULL;
}

int hashmap_put(struct hashmap *map, uint64_t key, void *value)
{
	struct hashmap_entry *entry = hashmap_find(map, key);
	int err;

	if (!value)
		return -EINVAL;
	if (entry) {
		entry->value = value;
		return 0;
	}
	if (map->used == map->capacity) {
		err = hashmap_rewrite(map);
		if (err)
			return err;
	}
	hashmap_append(map, key, value);
	return 0;
}

void *hashmap_del(struct hashmap *map, uint64_t key)
{
	struct hashmap_entry *entry = hashmap_find(map, key);
	void *value;

	if (!entry)
		return NULL;
	value = entry->value;
	entry->value = NULL;
	map->live--;
	return value;
}

void *hashmap_next(const struct hashmap *map, size_t *pos, uint64_t *key)
{
	const struct hashmap_entry *entry;

	while (*pos < map->used) {
		entry = &map->entries[(*pos)++];
		if (!entry->value)
			continue;
		if (key)
			*key = entry->key;
		return entry->value;
	}
	return NULL;
}
