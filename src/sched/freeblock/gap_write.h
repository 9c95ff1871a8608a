/*
 * gap_write.h - writes that may wait, ordered by their places: finds one that
 * fits into the gap before a request.
 *
 * A request is represented by its site[0], which the queue does not use before
 * it is submitted.  Units: nanoseconds on the environment's clock.
 */
#ifndef TRAX_FREEBLOCK_GAP_WRITE_H
#define TRAX_FREEBLOCK_GAP_WRITE_H

#include "sched/queue/queue.h"

struct gap_write_set {
	struct interval *sites;	/* the writes as sites, by cylinder */
	struct list requests;	/* the same writes in order of arrival */
	uint64_t order;
};

void gap_write_init(struct gap_write_set *set);
void gap_write_add(struct gap_write_set *set, const struct geom *geom,
		  struct queue_request *req);
void gap_write_remove(struct gap_write_set *set, struct queue_request *req);
/* Computes all sites anew from another geometry. */
void gap_write_set_geom(struct gap_write_set *set, const struct geom *geom);

struct gap_write_query {
	const struct head_state *head_state;	/* the state if a request is
						 * handed over now */
	struct service_request target;
	uint64_t target_ns;		/* when the target's first sector
					 * passes */
	unsigned steps;			/* writes that may be looked at */
	/* May it go before the target? This is the full estimate. */
	bool (*fits)(void *arg, uint64_t sector, uint32_t sectors);
	void *arg;
};

/* Finds the write that loses the least time on its way; NULL: none fits. */
struct queue_request *gap_write_find(const struct gap_write_set *set,
				    const struct gap_write_query *query);

/* Finds the write that is reached first, for idle time; NULL: there is none. */
struct queue_request *gap_write_nearest(const struct gap_write_set *set,
				       const struct head_state *head_state);

#endif
