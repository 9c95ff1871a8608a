/*
 * item_set.c - a sorted array and the changes to be merged into it.
 */
#include "check/repair/item_set.h"

#include <errno.h>
#include <string.h>

int set_init(struct set *set, const char *scratch)
{
	int rc;

	memset(set, 0, sizeof(*set));
	rc = spill_init(&set->items, sizeof(struct set_item), scratch);
	set->added.fd = set->values.fd = -1;
	if (!rc)
		rc = spill_init(&set->added, sizeof(struct set_item), scratch);
	if (!rc)
		rc = spill_init(&set->values, 1, scratch);
	if (rc)
		set_fini(set);
	return rc;
}

void set_fini(struct set *set)
{
	spill_fini(&set->items);
	spill_fini(&set->added);
	spill_fini(&set->values);
}

size_t set_seek(const struct set *set, struct key key)
{
	size_t low = 0, high = set->items.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (key_cmp(set_at(set, mid)->key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct set_item *set_find(const struct set *set, struct key key)
{
	size_t i = set_seek(set, key);

	if (i < set->items.n && key_cmp(set_at(set, i)->key, key) == 0)
		return set_at(set, i);
	return NULL;
}

int set_put(struct set *set, struct key key, const void *value, size_t bytes)
{
	uint8_t copy[TRAX_MAX_ITEM_BYTES];
	uint64_t at = set->values.n;
	struct set_item *item;
	uint8_t *to;

	if (bytes > sizeof(copy))
		return -EINVAL;
	/* The value may lie in what moves now. */
	memcpy(copy, value, bytes);
	to = spill_add(&set->values, bytes);
	if (!to)
		return -ENOMEM;
	memcpy(to, copy, bytes);
	item = spill_add(&set->added, 1);
	if (!item)
		return -ENOMEM;
	*item = (struct set_item){
		.key = key,
		.value = at,
		.bytes = (uint32_t)bytes,
		.order = ++set->order,
	};
	return 0;
}

int set_delete(struct set *set, struct key key)
{
	struct set_item *item = spill_add(&set->added, 1);

	if (!item)
		return -ENOMEM;
	*item = (struct set_item){
		.key = key,
		.order = ++set->order,
		.dead = true,
	};
	return 0;
}

static int item_cmp(const void *a, const void *b)
{
	const struct set_item *x = a, *y = b;
	int c = key_cmp(x->key, y->key);

	return c ? c : (x->order > y->order) - (x->order < y->order);
}

/* Of items with one key the last one counts; a dead one leaves nothing. */
static void keep_last(struct spill *items)
{
	size_t i, n = 0;

	for (i = 0; i < items->n; i++) {
		struct set_item *item = spill_at(items, i);
		struct set_item *next = i + 1 < items->n ?
					spill_at(items, i + 1) : NULL;

		if ((next && key_cmp(item->key, next->key) == 0) || item->dead)
			continue;
		*(struct set_item *)spill_at(items, n++) = *item;
	}
	items->n = n;
}

/* Merges from the back, into the room made at the end of the items. */
static int merge(struct spill *items, const struct spill *added)
{
	size_t a = items->n, b = added->n, to;

	if (!b)
		return 0;
	if (!spill_add(items, b))
		return -ENOMEM;
	for (to = a + b; b; to--) {
		const struct set_item *y = spill_at(added, b - 1);
		const struct set_item *x = a ? spill_at(items, a - 1) : NULL;

		/* Of the same key, what was added comes last. */
		if (x && key_cmp(x->key, y->key) > 0)
			*(struct set_item *)spill_at(items, to - 1) =
				*(struct set_item *)spill_at(items, --a);
		else
			*(struct set_item *)spill_at(items, to - 1) =
				*(struct set_item *)spill_at(added, --b);
	}
	return 0;
}

int set_settle(struct set *set)
{
	int rc;

	spill_sort(&set->added, item_cmp);
	rc = merge(&set->items, &set->added);
	set->added.n = 0;
	if (!rc)
		keep_last(&set->items);
	return rc;
}
