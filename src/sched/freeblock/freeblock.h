/*
 * freeblock.h - background work in the time the platter turns for nothing
 * (Lumb et al., OSDI 2000), and when the disk is idle.
 *
 * A task registers sectors it wants to read (or blocks it wants to write) in
 * any order and is told of each as it comes.  The queue serves it in the
 * rotational gaps of foreground requests while that is predictable, from what
 * the foreground reads anyway, in idle time, and, what is promoted, like a
 * foreground request.  A task does not delay a foreground request by more than
 * the prediction error, nor, when the disk had been idle, by more than the rest
 * of one step (a track at most).
 *
 * Idle time begins when the foreground has been quiet for ten times the gaps it
 * made lately, and 100 ms at least (freeblock_set_quiet).
 *
 * Tasks are closed before their queue; all callbacks come from queue_poll.
 * Memory is held for what is being transferred, and to know what is wanted
 * (freeblock_set.h).
 */
#ifndef TRAX_FREEBLOCK_FREEBLOCK_H
#define TRAX_FREEBLOCK_FREEBLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/queue/queue.h"

struct freeblock_task;

struct freeblock_ops {
	/*
	 * [sector, sector + sectors), all of it wanted until now, has been
	 * read: result 0 with its bytes (valid during the call), or -EIO.
	 * No longer wanted.  May be NULL for who wants nothing to be read.
	 */
	void (*got)(void *arg, uint64_t sector, uint32_t sectors,
		    const void *bytes, int result);
	/* A write of freeblock_write is over.  May be NULL without writes. */
	void (*written)(void *arg, struct queue_request *req);
};

struct freeblock_options {
	const char *name;	/* for statistics */
	uint32_t unit_sectors;	/* got() comes in multiples of this, aligned;
				   at least the logical block */
	unsigned share;		/* weight against other tasks; 0: 1 */
	bool no_idle;		/* gaps only */
	/* It is enough to have most of what is wanted, whatever it is: the
	 * largest pieces first, with no thought for what is left. */
	bool any;
	/* On disks with units that go over a track's end: so much of those
	 * may be held of which one side has been read.  0: they are read in
	 * one piece, which costs the time to change tracks. */
	uint64_t parts_bytes;
};

/* The options' name outlives the task.  -ENOMEM, -EINVAL. */
int freeblock_open(struct queue *queue, const struct freeblock_options *options,
		   const struct freeblock_ops *ops, void *arg,
		   struct freeblock_task **task);
/* Nothing of it is called any more, but written() with -ECANCELED of what had
 * not begun, before it returns; a write that has begun is written() later. */
void freeblock_close(struct freeblock_task *task);

/* Wants (no longer wants) these sectors; any number, cheap for large runs.
 * Whole units: -EINVAL.  -ENOMEM: some of them are wanted now. */
int freeblock_want(struct freeblock_task *task, uint64_t sector, uint64_t n);
void freeblock_unwant(struct freeblock_task *task, uint64_t sector,
		      uint64_t n);
uint64_t freeblock_wanted(const struct freeblock_task *task); /* sectors */
/* Is any of these wanted, or on its way? */
bool freeblock_wants(const struct freeblock_task *task, uint64_t sector,
		     uint64_t n);

/* What is wanted, now and later, is read like what the foreground reads,
 * `depth` requests at a time; 0: no longer. */
void freeblock_promote(struct freeblock_task *task, unsigned depth);
void freeblock_pause(struct freeblock_task *task, bool paused);

/*
 * A write that may wait long: a request as for queue_submit, but disk.done,
 * disk.owner and the class are freeblock's; in gaps, idle time, and when
 * promoted.  Its place may be left open (queue_request.place).
 */
void freeblock_write(struct freeblock_task *task, struct queue_request *req);
/* Takes it back, if it has not begun: written() is not called, and it is the
 * caller's.  false: it has, and is over soon; with -EBUSY when somebody was at
 * its place. */
bool freeblock_write_cancel(struct freeblock_task *task,
			    struct queue_request *req);

/* ---- of the queue ---- */

/* Idle time begins after this, or ten times the foreground's recent gaps. */
void freeblock_set_quiet(struct queue *queue, uint64_t quiet_ns);

/* The geometry the head believes in has changed, or is about to go away.
 * -ENOMEM: nothing has changed. */
int freeblock_set_geom(struct queue *queue, const struct geom *geom);

struct freeblock_stats {
	uint64_t sectors;		/* read or written for tasks */
	uint64_t gap_sectors, idle_sectors, promoted_sectors;
	uint64_t passed_sectors;	/* read by the foreground */
	uint64_t gaps, gaps_used;
	uint64_t potential_ns;		/* rotation of foreground requests that
					   could have been used */
	uint64_t used_ns;		/* that was transferring for tasks */
	uint64_t passed_ns;		/* likewise, and what nobody wants that
					   lies between */
	uint64_t delays;		/* foreground requests made late */
	uint64_t delay_ns, max_delay_ns; /* by how much */
	uint64_t p99_delay_ns;		/* over all that followed a free read */
};
/* task NULL: all of the queue; of a task only what counts sectors is set. */
void freeblock_get_stats(struct queue *queue, const struct freeblock_task *task,
			 struct freeblock_stats *out);

#endif
