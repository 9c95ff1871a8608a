/*
 * queue.h - the disk queue: everything that goes to a disk goes through one.
 *
 * The caller owns a request and what its iov points to, and leaves both alone
 * from queue_submit until disk.done() is called: exactly once, from queue_poll,
 * never from queue_submit.  done() may submit, and may poll.
 *
 * Nothing reaches the disk but from queue_poll, so that what is submitted in
 * one turn of a loop is ordered and merged together: poll after submitting,
 * before sleeping.
 *
 * Order: of two requests that meet, at least one of them a write, the later one
 * waits until the earlier one has completed.  Otherwise there is none.  A
 * request may be of any size; what the disk does not take at once goes out in
 * pieces, and neighbours that wait together go out as one.  A failed access of
 * several requests is repeated one by one, so nobody fails for a neighbour.
 *
 * Not thread safe.  No allocation after queue_open.
 */
#ifndef TRAX_SCHED_QUEUE_H
#define TRAX_SCHED_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/list.h"
#include "disk/disk.h"
#include "sched/span.h"

/* Highest first. */
enum queue_class {
	QUEUE_COMMIT,		/* somebody waits for this to be durable */
	QUEUE_READ,		/* somebody waits for this data */
	QUEUE_READ_AHEAD,
	QUEUE_WRITE_BACK,
	QUEUE_IDLE,
	QUEUE_CLASSES
};

struct queue_request {
	/*
	 * Filled in by the caller as disk.h says: op, fua, sector, sectors,
	 * iov, iov_n, done, owner.  For done(): result, submit_ns (when it was
	 * submitted to the queue), complete_ns.
	 * -EINVAL: not aligned to the logical block, or not on the disk.
	 * -EROFS: a write to a disk that is read only.
	 */
	struct disk_request disk;
	enum queue_class class;
	/* When it wants to be with the disk; 0: as its class says. */
	uint64_t deadline_ns;

	/* The queue's. */
	struct span live;	/* submitted and not completed */
	struct span waiting;	/* ready to be chosen */
	struct list link;	/* held, an access, or finished */
	uint32_t issued_sectors;
	unsigned pieces;	/* outstanding */
	bool alone;		/* not to be merged: a merged access failed */
};

struct queue_options {
	unsigned depth;		/* outstanding at the disk; 0: 4 on a disk that
				 * rotates, 32 on others */
	const char *policy;	/* NULL: "c-look"; or "fcfs" */
};

struct queue_class_stats {
	uint64_t requests;	/* completed, without flushes */
	uint64_t bytes;
	uint64_t wait_ns;	/* from submission to the disk, summed */
	uint64_t max_wait_ns;
	uint64_t service_ns;	/* from the disk to completion, summed */
};

struct queue_stats {
	struct queue_class_stats class[QUEUE_CLASSES];
	uint64_t accesses;	/* reads and writes the disk was given */
	uint64_t merged;	/* requests that rode with another */
	uint64_t held;		/* requests that waited for one they meet */
	uint64_t overdue;	/* chosen because of their age */
	uint64_t retried;	/* after a failed merged access */
	uint64_t flushes;	/* the disk was given */
	uint64_t flushes_saved;	/* that had nothing to do */
};

struct queue;

/* The disk and the environment outlive the queue.  -EINVAL: no such policy. */
int queue_open(struct env *env, struct disk *disk,
	       const struct queue_options *options, struct queue **queue);

/* The queue must be idle, or the disk gone.  NULL is harmless. */
void queue_close(struct queue *queue);

const struct disk_limits *queue_limits(const struct queue *queue);

void queue_submit(struct queue *queue, struct queue_request *req);

/*
 * Submits req as a flush: when it is done without error, every write that had
 * completed before the call is on the medium.  Of req only done and owner are
 * the caller's.  Costs no access when queue_unflushed() is false.
 */
void queue_flush(struct queue *queue, struct queue_request *req);

/*
 * May a completed write still be lost?  Never on a disk without a volatile
 * cache; true from queue_open on until the first flush on others.
 */
bool queue_unflushed(const struct queue *queue);

/*
 * Gives the disk what it has room for and calls done() of what has completed.
 * When there is nothing to tell, waits up to timeout_ms (-1: for ever) for the
 * first completion, timeouts as in disk_poll.  Returns the number completed, or
 * what disk_poll fails with: then the disk is gone (a simulated power cut), no
 * done() is called any more, the requests are their owners' again and
 * queue_close is what is left.
 */
int queue_poll(struct queue *queue, int timeout_ms);

/* Polls until the queue is idle, what done() submits included.  0, or what
 * disk_poll fails with. */
int queue_drain(struct queue *queue);

/* Nothing waiting, nothing outstanding, nothing to tell. */
bool queue_idle(const struct queue *queue);

/* A descriptor that polls readable when queue_poll has work; -1: none. */
int queue_event_fd(struct queue *queue);

const struct queue_stats *queue_stats(const struct queue *queue);

/*
 * Synchronous helpers for mount and tests: one request, waited for (others
 * complete meanwhile).  buf is aligned to 4096.
 */
int queue_read(struct queue *queue, uint64_t sector, uint32_t sectors,
	       void *buf);
int queue_write(struct queue *queue, uint64_t sector, uint32_t sectors,
		const void *buf);
int queue_flush_wait(struct queue *queue);

#endif
