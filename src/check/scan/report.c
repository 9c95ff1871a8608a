/*
 * report.c - the first error of a check, its memory, and its progress.
 */
#include "check/scan/check_internal.h"

#include <errno.h>

int check_fail(struct check *check, int rc)
{
	if (rc && !check->rc)
		check->rc = rc;
	return rc;
}

void *check_add(struct check *check, struct vec *vec)
{
	void *item = vec_add(vec);

	if (!item)
		check_fail(check, -ENOMEM);
	return item;
}

void check_progress(struct check *check, const char *step, uint64_t done,
		    uint64_t total)
{
	if (check->options.progress &&
	    !check->options.progress(check->options.arg, step, done, total))
		check_fail(check, -ECANCELED);
}
