/*
 * item_set.h - all items of a file system, to be repaired and written again.
 *
 * Items are kept sorted by key.  Changes are gathered (item_set_put,
 * item_set_remove) and take effect together in item_set_merge; until then
 * item_set_find and item_set_at show what was there before.  A later put of the
 * same key wins.
 */
#ifndef TRAX_REPAIR_ITEM_SET_H
#define TRAX_REPAIR_ITEM_SET_H

#include <stdbool.h>

#include "check/scan/tmp_array.h"
#include "format/format.h"

struct item_set_item {
	struct key key;
	uint64_t value;		/* offset of the value in `values` */
	uint32_t bytes;
	uint32_t order;		/* number of the put: of one key, the later one
				 * wins */
	bool dead;
};

struct item_set {
	struct tmp_array items;	/* struct item_set_item, sorted */
	struct tmp_array added;	/* struct item_set_item, not yet sorted */
	struct tmp_array values;	/* bytes */
	uint32_t order;
};

int item_set_init(struct item_set *set, const char *scratch);
void item_set_fini(struct item_set *set);

static inline size_t item_set_count(const struct item_set *set)
{
	return set->items.n;
}

static inline struct item_set_item *item_set_at(const struct item_set *set,
						size_t i)
{
	return tmp_array_at(&set->items, i);
}

/* Valid until the next item_set_put. */
static inline const void *item_set_value(const struct item_set *set,
				    const struct item_set_item *item)
{
	return set->values.base + item->value;
}

/* Index of the first item with a key not below this one. */
size_t item_set_seek(const struct item_set *set, struct key key);
/* NULL: not there. */
struct item_set_item *item_set_find(const struct item_set *set, struct key key);

/* Adds an item, or replaces it. -ENOMEM. */
int item_set_put(struct item_set *set, struct key key, const void *value,
		 size_t bytes);
/* Removes the item of a key, in order with puts: a later put brings it back. */
int item_set_delete(struct item_set *set, struct key key);
/* The item is removed by item_set_merge, unless its key is put until then. */
static inline void item_set_remove(struct item_set_item *item)
{
	item->dead = true;
}

int item_set_merge(struct item_set *set);

#endif
