/*
 * policy.h - which of the requests of a class the disk is given next: one row
 * of a table for each way to choose.
 *
 *	fcfs		in order of submission
 *	c-look		upwards from the head, then from the lowest again
 *	sstf		shortest seek
 *	sptf		shortest positioning: seek, switch and rotation
 *	sptf-swN	the shortest seek among those whose positioning is
 *			within N % of the shortest
 *
 * The last three need to know where the head is.
 */
#ifndef TRAX_QUEUE_POLICY_H
#define TRAX_QUEUE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/head/head_state.h"
#include "sched/queue/interval_tree.h"

/* A place where a request can be served. */
struct policy_site {
	struct interval interval; /* among the sites of a class, by cylinder */
	uint64_t lbn;
	uint32_t sectors;
	bool write;
	void *owner;		/* the request */
	uint32_t cylinder, surface;	/* position of the first sector */
	angle start;
};

/* What a policy may look at. */
struct policy_view {
	struct interval *waiting;	/* the class by sector, not empty */
	uint64_t head_sector;	/* where the last access that the disk got
				 * ends */
	/* Sites of these requests, by cylinder, and the predicted head; NULL:
	 * it is not known. */
	struct interval *sites;
	const struct head_state *head_state;
	unsigned window_percent;
	/* due_most_ns not 0: only those that are due until then, and none that
	 * begins in [cut_first, cut_end). */
	uint64_t due_most_ns, cut_first, cut_end;
};

struct policy_choice {
	/* The chosen request: one of these two is set, or none if none may be
	 * chosen. */
	struct interval *waiting;
	struct policy_site *site;	/* see above */
	uint64_t cost_ns;		/* positioning; with a site */
	uint64_t extra_ns;		/* the part of it that the shortest
					 * choice would not cost */
};

struct policy {
	const char *name;
	bool needs_head;
	void (*choose)(const struct policy_view *view,
		       struct policy_choice *choice);
};

/* NULL: there is none of that name.  *window_percent is set for sptf-swN. */
const struct policy *policy_find(const char *name, unsigned *window_percent);

/* Fills in a site; `order` is unlike that of any other of its set. */
void policy_site_init(struct policy_site *site, const struct geom *geom,
		      bool write, uint64_t lbn, uint32_t sectors,
		      uint64_t order);

/*
 * Predicted positioning for a site: from when the head is free for it until it
 * transfers, waits within it included; *seek_ns is the move.
 */
uint64_t policy_cost_ns(const struct head_state *head_state,
			const struct policy_site *site, uint64_t *seek_ns);

#endif
