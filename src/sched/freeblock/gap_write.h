/*
 * gap_write.h - writes that may wait, by where they go: which of them fits into
 * the time the platter turns before a request?
 *
 * A request stands here by its site[0], which the queue does not use before it
 * is submitted.  Units: nanoseconds on the environment's clock.
 */
#ifndef TRAX_FREEBLOCK_GAP_WRITE_H
#define TRAX_FREEBLOCK_GAP_WRITE_H

#include "sched/queue/queue.h"

struct gapwrite_set {
	struct span *sites;	/* by cylinder */
	struct list requests;	/* the same, in order, by their link */
	uint64_t order;
};

void gapwrite_init(struct gapwrite_set *set);
void gapwrite_add(struct gapwrite_set *set, const struct geom *geom,
		  struct queue_request *req);
void gapwrite_remove(struct gapwrite_set *set, struct queue_request *req);
/* All of them, by another geometry. */
void gapwrite_set_geom(struct gapwrite_set *set, const struct geom *geom);

struct gapwrite_query {
	const struct belief *belief;	/* handed over now */
	struct service_request target;
	uint64_t target_ns;		/* its first sector is to be met then */
	unsigned steps;			/* writes that may be looked at */
	/* May it go before the target?  The whole estimate. */
	bool (*fits)(void *arg, uint64_t sector, uint32_t sectors);
	void *arg;
};

/* The one that loses the least time on its way; NULL: none fits. */
struct queue_request *gapwrite_find(const struct gapwrite_set *set,
				    const struct gapwrite_query *query);

/* The one that is reached first, for idle time; NULL: none. */
struct queue_request *gapwrite_nearest(const struct gapwrite_set *set,
				       const struct belief *belief);

#endif
