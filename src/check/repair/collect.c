/*
 * collect.c - the items of the old tree, as far as they can be read.
 */
#include "check/repair/repair_internal.h"

static void collect_item(struct check *check, struct key key,
			 const void *value, size_t bytes)
{
	check_fail(check, item_set_put(check->set, key, value, bytes));
}

int collect_items(struct check *check, struct item_set *set)
{
	struct lost_range *all;

	check->set = set;
	if (check->have_root) {
		walk_tree(check, false, collect_item);
	} else {
		all = check_add(check, &check->lost);
		if (all)
			*all = (struct lost_range){ KEY_MIN, KEY_MAX, 0 };
	}
	check->set = NULL;
	if (!check->rc)
		check_fail(check, item_set_merge(set));
	if (!check->rc && check->lost.n)
		check_fail(check, salvage_items(check, set));
	return check->rc;
}
