/*
 * policy.c - the table of ways to choose.
 */
#include <stddef.h>
#include <string.h>

#include "sched/policy.h"

/* Upwards from the head; from the lowest again when there is none above. */
static struct span *choose_c_look(const struct policy_view *view)
{
	struct span *span = span_at_or_after(view->waiting, view->head_sector);

	return span ? span : span_at_or_after(view->waiting, 0);
}

static struct span *choose_fcfs(const struct policy_view *view)
{
	return span_oldest(view->waiting);
}

static const struct policy policies[] = {
	{ "c-look", choose_c_look },
	{ "fcfs", choose_fcfs },
};

const struct policy *policy_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
		if (!strcmp(policies[i].name, name))
			return &policies[i];
	return NULL;
}
