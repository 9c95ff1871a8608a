/*
 * item_set.h - all items of a file system, to be mended and written again.
 *
 * Items are kept sorted by key.  Changes are gathered (set_put, set_kill) and
 * take effect together in set_settle; until then set_find and set_at show what
 * was there before.  A later put of the same key wins.
 */
#ifndef TRAX_REPAIR_ITEM_SET_H
#define TRAX_REPAIR_ITEM_SET_H

#include <stdbool.h>

#include "check/scan/tmp_array.h"
#include "format/format.h"

struct set_item {
	struct key key;
	uint64_t value;		/* offset in the values */
	uint32_t bytes;
	uint32_t order;		/* of puts: the later wins */
	bool dead;
};

struct set {
	struct spill items;	/* struct set_item, sorted */
	struct spill added;	/* struct set_item, not yet sorted */
	struct spill values;	/* bytes */
	uint32_t order;
};

int set_init(struct set *set, const char *scratch);
void set_fini(struct set *set);

static inline size_t set_count(const struct set *set)
{
	return set->items.n;
}

static inline struct set_item *set_at(const struct set *set, size_t i)
{
	return spill_at(&set->items, i);
}

/* Valid until the next set_put. */
static inline const void *set_value(const struct set *set,
				    const struct set_item *item)
{
	return set->values.base + item->value;
}

/* Index of the first item with a key not below this one. */
size_t set_seek(const struct set *set, struct key key);
/* NULL: not there. */
struct set_item *set_find(const struct set *set, struct key key);

/* Adds or replaces.  -ENOMEM. */
int set_put(struct set *set, struct key key, const void *value, size_t bytes);
/* Takes the key away, in order with puts: a later one brings it back. */
int set_delete(struct set *set, struct key key);
/* The item goes away with set_settle, unless its key is put. */
static inline void set_kill(struct set_item *item)
{
	item->dead = true;
}

int set_settle(struct set *set);

#endif
