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

struct entry {
	uint64_t key;
	void *value;		/* NULL: removed */
};

struct map {
	struct entry *entries;
	uint32_t *slots;	/* index of an entry + 1; 0: empty */
	uint32_t capacity;	/* of entries: a power of two */
	uint32_t used;		/* entries, gaps counted */
	uint32_t live;
};

/* The finalizer of splitmix64. */
static uint64_t hash(uint64_t key)
{
	key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
	key = (key ^ key >> 27) * 0x94d049bb133111eb;
	return key ^ key >> 31;
}

static struct entry *map_find(const struct map *map, uint64_t key)
{
	uint32_t mask = 2 * map->capacity - 1;
	uint32_t at = (uint32_t)hash(key) & mask;
	struct entry *entry;

	for (; map->slots[at]; at = (at + 1) & mask) {
		entry = &map->entries[map->slots[at] - 1];
		if (entry->key == key && entry->value)
			return entry;
	}
	return NULL;
}

/* There is room, and the key is new. */
static void map_append(struct map *map, uint64_t key, void *value)
{
	uint32_t mask = 2 * map->capacity - 1;
	uint32_t at = (uint32_t)hash(key) & mask;

	while (map->slots[at])
		at = (at + 1) & mask;
	map->entries[map->used] = (struct entry){ key, value };
	map->slots[at] = ++map->used;
	map->live++;
}

static int map_alloc(struct map *map, uint32_t capacity)
{
	*map = (struct map){ .capacity = capacity };
	map->entries = malloc(capacity * sizeof(*map->entries));
	map->slots = calloc(2 * (size_t)capacity, sizeof(*map->slots));
	if (map->entries && map->slots)
		return 0;
	free(map->entries);
	free(map->slots);
	return -ENOMEM;
}

static int map_rewrite(struct map *map)
{
	uint32_t capacity = map->capacity;
	struct map next;
	uint32_t i;

	if (map->live > capacity / 2)
		capacity *= 2;
	if (capacity > MAX_CAPACITY || map_alloc(&next, capacity))
		return -ENOMEM;
	for (i = 0; i < map->used; i++)
		if (map->entries[i].value)
			map_append(&next, map->entries[i].key,
				   map->entries[i].value);
	free(map->entries);
	free(map->slots);
	*map = next;
	return 0;
}

struct map *map_new(void)
{
	struct map *map = malloc(sizeof(*map));

	if (map && map_alloc(map, FIRST_CAPACITY)) {
		free(map);
		return NULL;
	}
	return map;
}

void map_free(struct map *map)
{
	if (!map)
		return;
	free(map->entries);
	free(map->slots);
	free(map);
}

size_t map_count(const struct map *map)
{
	return map->live;
}

void *map_get(const struct map *map, uint64_t key)
{
	struct entry *entry = map_find(map, key);

	return entry ? entry->value : NULL;
}

int map_put(struct map *map, uint64_t key, void *value)
{
	struct entry *entry = map_find(map, key);
	int err;

	if (!value)
		return -EINVAL;
	if (entry) {
		entry->value = value;
		return 0;
	}
	if (map->used == map->capacity) {
		err = map_rewrite(map);
		if (err)
			return err;
	}
	map_append(map, key, value);
	return 0;
}

void *map_del(struct map *map, uint64_t key)
{
	struct entry *entry = map_find(map, key);
	void *value;

	if (!entry)
		return NULL;
	value = entry->value;
	entry->value = NULL;
	map->live--;
	return value;
}

void *map_next(const struct map *map, size_t *pos, uint64_t *key)
{
	const struct entry *entry;

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
