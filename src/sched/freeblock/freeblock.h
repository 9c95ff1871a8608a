/*
 * freeblock.h - background work in rotational gaps (Lumb et al., OSDI 2000),
 * and when the disk is idle.
 *
 * A task registers sectors that it wants to read, or blocks that it wants to
 * write, and gets a call for each when it is done, in any order.  A task is
 * served in four ways: in the rotational gaps of foreground requests, while
 * rotation can be predicted; from data that the foreground reads anyway; in
 * idle time; and, after freeblock_promote, like the foreground.  A task delays
 * a foreground request by the error of the prediction at most, and by the rest
 * of one step (a track at most) when the disk had been idle.
 *
 * Idle time begins when the foreground has been quiet for ten times its longest
 * recent gap, and 100 ms at least (freeblock_set_quiet); pauses of more than a
 * second are not counted as gaps, nor are requests that no user has asked for
 * (queue_set_own).
 *
 * Tasks are closed before their queue; all callbacks come from queue_poll.
 * Memory is used for transfers under way and for the sets of wanted sectors
 * (freeblock_set.h).
 */
#ifndef TRAX_FREEBLOCK_FREEBLOCK_H
#define TRAX_FREEBLOCK_FREEBLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "sched/queue/queue.h"

struct freeblock_task;

struct freeblock_ops {
	/*
	 * [sector, sector + sectors), whole logical blocks, all of it wanted,
	 * has been read: result 0 with its bytes (valid during the call), or
	 * -EIO.  It is not wanted any more.  May be NULL if the task never
	 * wants reads.
	 */
	void (*got)(void *arg, uint64_t sector, uint32_t sectors,
		    const void *bytes, int result);
	/* A write of freeblock_write is over.  May be NULL without writes. */
	void (*written)(void *arg, struct queue_request *req);
};

struct freeblock_options {
	const char *name;	/* name in statistics */
	unsigned share;		/* weight against other tasks; 0: 1 */
	bool no_idle;		/* it is served in gaps only */
	/* Any part of the wanted sectors will do: the largest extents are read
	 * first, without regard to the fragments that are left. */
	bool any;
};

/* The options' name outlives the task.  -ENOMEM. */
int freeblock_open(struct queue *queue, const struct freeblock_options *options,
		   const struct freeblock_ops *ops, void *arg,
		   struct freeblock_task **task);
/* Calls written() with -ECANCELED for writes that have not begun.  After it
 * returns only written() is called, for writes that have begun. */
void freeblock_close(struct freeblock_task *task);

/* Add sectors to the wanted set, or remove them.  Large runs are cheap.
 * -EINVAL: not whole logical blocks.  -ENOMEM: a part has been added. */
int freeblock_want(struct freeblock_task *task, uint64_t sector, uint64_t n);
void freeblock_unwant(struct freeblock_task *task, uint64_t sector,
		      uint64_t n);
uint64_t freeblock_wanted(const struct freeblock_task *task); /* sectors */
/* Is any of these sectors wanted, or being read? */
bool freeblock_wants(const struct freeblock_task *task, uint64_t sector,
		     uint64_t n);

/* Has all that the task wants, now and later, read like foreground requests,
 * `depth` at a time; 0: not any more. */
void freeblock_promote(struct freeblock_task *task, unsigned depth);
void freeblock_pause(struct freeblock_task *task, bool paused);

/*
 * A write that may wait long: a request as for queue_submit, but disk.done,
 * disk.owner and the class are freeblock's; in gaps, idle time, and when
 * promoted.  Its place may be left open (queue_request.place).
 */
void freeblock_write(struct freeblock_task *task, struct queue_request *req);
/* Takes a write back that has not begun: written() is not called, and the
 * request is the caller's again.  False: it has begun and will end soon, with
 * -EBUSY if another request overlapped its place. */
bool freeblock_write_cancel(struct freeblock_task *task,
			    struct queue_request *req);

/* ---- of the queue ---- */

/* Sets the least time without foreground requests after which idle time begins;
 * it is at least ten times their recent gap. */
void freeblock_set_quiet(struct queue *queue, uint64_t quiet_ns);

/* After this long without a foreground request nothing is done in idle time any
 * more, so that the drive may spin down; the next foreground request ends that.
 * 0: never. */
void freeblock_set_sleep(struct queue *queue, uint64_t sleep_ns);

/* How long the foreground has to be quiet now for idle time to begin, and
 * for it to end (UINT64_MAX: it does not end). */
uint64_t freeblock_quiet_ns(struct queue *queue);
uint64_t freeblock_sleep_ns(struct queue *queue);

/* The geometry of the head has changed, or is about to be freed. -ENOMEM:
 * nothing has changed. */
int freeblock_set_geom(struct queue *queue, const struct geom *geom);

/* For tasks that look up in the tree what they want: that takes at most this
 * part of the time, but no pause is longer than FREEBLOCK_PAUSE_NS; and nothing
 * is waited for while less is wanted than FREEBLOCK_FEW_SECTORS (64 MiB). */
#define FREEBLOCK_LOAD_PART 300u
#define FREEBLOCK_PAUSE_NS (10 * NS_PER_SECOND)
#define FREEBLOCK_FEW_SECTORS 131072u

struct freeblock_stats {
	uint64_t sectors;		/* sectors read or written for tasks */
	uint64_t gap_sectors, idle_sectors, promoted_sectors;
	uint64_t passed_sectors;	/* wanted sectors that the foreground
					 * has read */
	uint64_t gaps, gaps_used;
	uint64_t potential_ns;		/* rotation of foreground requests that
					   could have been used */
	uint64_t used_ns;		/* time of the gaps that transferred
					 * data for tasks */
	uint64_t passed_ns;		/* used_ns, with the unwanted sectors
					 * between wanted ones */
	uint64_t delays;		/* foreground requests made late */
	uint64_t delay_ns, max_delay_ns; /* their delays: sum, longest */
	uint64_t p99_delay_ns;		/* 99th percentile of the delay of
					 * requests behind a free read */
};
/* task NULL: all of the queue; for a task only the members that count sectors
 * are set. */
void freeblock_get_stats(struct queue *queue, const struct freeblock_task *task,
			 struct freeblock_stats *out);

/* The delays by all tasks of one name, also closed ones. */
struct freeblock_delay {
	uint64_t requests;	/* foreground requests that were delayed */
	uint64_t sum_ns;
};
void freeblock_get_delay(struct queue *queue, const char *name,
			 struct freeblock_delay *out);

#endif
