/*
 * policy.h - which of the requests of a class the disk is given next: one row
 * of a table for each way to choose.
 */
#ifndef TRAX_SCHED_POLICY_H
#define TRAX_SCHED_POLICY_H

#include <stdint.h>

#include "sched/span.h"

/* What a policy may look at. */
struct policy_view {
	struct span *waiting;	/* the class, not empty */
	uint64_t head_sector;	/* where the last access given ends */
};

struct policy {
	const char *name;
	/* One of the waiting. */
	struct span *(*choose)(const struct policy_view *view);
};

/* NULL: there is none of that name. */
const struct policy *policy_find(const char *name);

#endif
