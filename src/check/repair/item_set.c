/*
 * item_set.c - a sorted array and the changes to be merged into it.
 */
#include "check/repair/item_set.h"
#include "base/sort.h"

#include <errno.h>
#include <string.h>

int item_set_init(struct item_set *set, const char *scratch)
{
	int rc;

	memset(set, 0, sizeof(*set));
	rc = tmp_array_init(&set->items, sizeof(struct item_set_item), scratch);
	set->added.fd = set->values.fd = -1;
	if (!rc)
		rc = tmp_array_init(&set->added, sizeof(struct item_set_item),
				    scratch);
	if (!rc)
		rc = tmp_array_init(&set->values, 1, scratch);
	if (rc)
		item_set_fini(set);
	return rc;
}

void item_set_fini(struct item_set *set)
{
	tmp_array_fini(&set->items);
	tmp_array_fini(&set->added);
	tmp_array_fini(&set->values);
}

size_t item_set_seek(const struct item_set *set, struct key key)
{
	size_t low = 0, high = set->items.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (key_cmp(item_set_at(set, mid)->key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct item_set_item *item_set_find(const struct item_set *set, struct key key)
{
	size_t i = item_set_seek(set, key);

	if (i < set->items.n && key_cmp(item_set_at(set, i)->key, key) == 0)
		return item_set_at(set, i);
	return NULL;
}

int item_set_put(struct item_set *set, struct key key, const void *value,
		 size_t bytes)
{
	uint8_t copy[TRAX_MAX_ITEM_BYTES];
	uint64_t at = set->values.n;
	struct item_set_item *item;
	uint8_t *to;

	if (bytes > sizeof(copy))
		return -EINVAL;
	/* The value may lie in the memory that moves now. */
	memcpy(copy, value, bytes);
	to = tmp_array_add(&set->values, bytes);
	if (!to)
		return -ENOMEM;
	memcpy(to, copy, bytes);
	item = tmp_array_add(&set->added, 1);
	if (!item)
		return -ENOMEM;
	*item = (struct item_set_item){
		.key = key,
		.value = at,
		.bytes = (uint32_t)bytes,
		.order = ++set->order,
	};
	return 0;
}

int item_set_delete(struct item_set *set, struct key key)
{
	struct item_set_item *item = tmp_array_add(&set->added, 1);

	if (!item)
		return -ENOMEM;
	*item = (struct item_set_item){
		.key = key,
		.order = ++set->order,
		.dead = true,
	};
	return 0;
}

static int item_cmp(const void *a, const void *b)
{
	const struct item_set_item *x = a, *y = b;

	return key_cmp(x->key, y->key) ?: sort_order(x->order, y->order);
}

/* Of several items with one key the last one counts; when it is a removal, none
 * is left. */
static void keep_last(struct tmp_array *items)
{
	size_t i, n = 0;

	for (i = 0; i < items->n; i++) {
		struct item_set_item *item = tmp_array_at(items, i);
		struct item_set_item *next = i + 1 < items->n ?
					tmp_array_at(items, i + 1) : NULL;

		if ((next && key_cmp(item->key, next->key) == 0) || item->dead)
			continue;
		*(struct item_set_item *)tmp_array_at(items, n++) = *item;
	}
	items->n = n;
}

/* Merges from the back, into the room made at the end of the items. */
static int merge_sorted(struct tmp_array *items, const struct tmp_array *added)
{
	size_t a = items->n, b = added->n, to;

	if (!b)
		return 0;
	if (!tmp_array_add(items, b))
		return -ENOMEM;
	for (to = a + b; b; to--) {
		const struct item_set_item *y = tmp_array_at(added, b - 1);
		const struct item_set_item *x =
			a ? tmp_array_at(items, a - 1) : NULL;

		/* Of items with one key, the added one comes last. */
		if (x && key_cmp(x->key, y->key) > 0)
			*(struct item_set_item *)tmp_array_at(items, to - 1) =
				*(struct item_set_item *)tmp_array_at(items,
								      --a);
		else
			*(struct item_set_item *)tmp_array_at(items, to - 1) =
				*(struct item_set_item *)tmp_array_at(added,
								      --b);
	}
	return 0;
}

int item_set_merge(struct item_set *set)
{
	int rc;

	tmp_array_sort(&set->added, item_cmp);
	rc = merge_sorted(&set->items, &set->added);
	set->added.n = 0;
	if (!rc)
		keep_last(&set->items);
	return rc;
}
