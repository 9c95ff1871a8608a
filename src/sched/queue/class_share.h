/*
 * class_share.h - how the classes of requests share the head: arithmetic only.
 *
 * Units: nanoseconds.
 */
#ifndef TRAX_QUEUE_CLASS_SHARE_H
#define TRAX_QUEUE_CLASS_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/queue/queue.h"

struct class_share {
	unsigned count[QUEUE_CLASSES];	/* requests that wait */
	/* The head's time that each class has used, divided by its weight. */
	uint64_t used_ns[QUEUE_CLASSES];
	int holder;		/* the class that was served last */
	uint64_t since_ns;	/* time of the holder that was not counted yet
				 * begins here */
};

/* Another request of a class waits. busy: the disk has something to do. */
void class_share_add(struct class_share *share, int class, bool busy,
		     uint64_t now_ns);
void class_share_remove(struct class_share *share, int class);

/* The class that is next of those that wait; -1: none waits. */
int class_share_next(const struct class_share *share, uint64_t now_ns);

/* May the holder go on though others wait? It need not have a request that
 * waits. */
bool class_share_keeps(const struct class_share *share, uint64_t now_ns);

/* A class is served next. */
void class_share_take(struct class_share *share, int class, uint64_t now_ns);

#endif
