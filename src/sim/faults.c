/*
 * faults.c - counting requests down to the one that a fault is for.
 *
 * A fault's `k` counts the matching requests that still pass, `times` those
 * that still meet it (a fault for ever begins with UINT64_MAX).
 */
#include <errno.h>
#include <stdlib.h>

#include "sim/faults.h"

void faults_fini(struct faults *faults)
{
	free(faults->list);
	*faults = (struct faults){ 0 };
}

int faults_add(struct faults *faults, const struct sim_fault *fault)
{
	struct sim_fault *list, *f;

	list = reallocarray(faults->list, faults->n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	faults->list = list;
	f = &list[faults->n++];
	*f = *fault;
	if (!f->k)
		f->k = 1;
	if (!f->times)
		f->times = UINT64_MAX;
	if (!f->error)
		f->error = -EIO;
	return 0;
}

static bool matches(const struct sim_fault *f, const struct disk_request *req)
{
	if (!(f->ops & (1u << req->op)))
		return false;
	if (!f->sectors || req->op == DISK_FLUSH)
		return true;
	return req->sector < f->first + f->sectors &&
	       f->first < req->sector + req->sectors;
}

const struct sim_fault *faults_meet(struct faults *faults,
				    const struct disk_request *req)
{
	const struct sim_fault *met = NULL;

	for (size_t i = 0; i < faults->n; i++) {
		struct sim_fault *f = &faults->list[i];

		if (!f->times || !matches(f, req))
			continue;
		if (f->k > 1) {
			f->k--;
		} else if (!met) {
			if (f->times != UINT64_MAX)
				f->times--;
			faults->hits++;
			met = f;
		}
	}
	return met;
}
