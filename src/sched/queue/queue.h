/*
 * queue.h - the disk queue: every request to a disk goes through one.
 *
 * The caller owns a request and what its iov points to, and leaves both alone
 * from queue_submit until disk.done() is called: exactly once, from queue_poll,
 * never from queue_submit. done() may submit, and may poll.
 *
 * Requests reach the disk from queue_poll only, so that those submitted in one
 * turn of a loop are ordered and merged together: poll after submitting, before
 * sleeping.
 *
 * Order: of two requests that overlap, at least one of them a write, the later
 * one waits until the earlier one has completed.  Otherwise there is none.  A
 * request may be of any size; it goes out in parts if the disk does not take
 * it at once, and neighbours that wait together go out as one.  A failed access
 * of several requests is repeated one by one, so no request fails for its
 * neighbour.  Then a request is repeated as often as the fault table says,
 * after a pause; meanwhile requests that overlap it wait.
 *
 * Not thread safe.  No allocation after queue_open.
 */
#ifndef TRAX_QUEUE_QUEUE_H
#define TRAX_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/list.h"
#include "disk/disk.h"
#include "disk/fault.h"
#include "sched/head/head_state.h"
#include "sched/head/head.h"
#include "sched/queue/policy.h"
#include "sched/queue/interval_tree.h"

/* Highest first. */
enum queue_class {
	QUEUE_COMMIT,		/* a commit: somebody waits until it is
				 * durable */
	QUEUE_READ,		/* somebody waits for the data */
	QUEUE_READ_AHEAD,
	QUEUE_WRITE_BACK,
	QUEUE_IDLE,
	QUEUE_CLASSES
};

struct queue_request;

/*
 * A place that is chosen when the write is dispatched (a range write).  All
 * calls come from queue_poll.
 */
struct queue_place {
	/*
	 * Finds the cheapest acceptable place now: its first sector and its
	 * cost (positioning in ns, with what the owner adds for distance from
	 * where the data belongs).  Nothing is taken yet. head_state NULL: the
	 * head is not known, any place will do. -ENOSPC: there is none; the
	 * request fails.
	 */
	int (*find)(struct queue_place *place,
		    const struct head_state *head_state, uint32_t sectors,
		    uint64_t *sector, uint64_t *cost_ns);
	/* The request goes to `sector`, as just found: takes it, and encodes
	 * what depends on the address.  Cannot fail. */
	void (*take)(struct queue_place *place, struct queue_request *req,
		     uint64_t sector);
	bool leads;	/* take() submits requests that go on behind this one,
			 * to be one access with it */
};

/* The most other places of a read that are looked at. */
#define QUEUE_COPIES 2u

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
	/* The row of the fault table by which it is retried; FAULT_CALLER: it
	 * is not. */
	enum fault_origin origin;
	/* Number of failures in a row, for done(); the caller sets it to the
	 * number of failures elsewhere before. */
	unsigned failures;
	/* Time by which it should be at the disk; 0: its class decides. */
	uint64_t deadline_ns;
	/*
	 * A read: first sectors of other places with the same bytes; at most
	 * QUEUE_COPIES are looked at.  The queue takes the place that it
	 * reaches first and sets disk.sector to it.  Valid until done().
	 */
	const uint64_t *copies;
	unsigned copies_n;
	/* A write that may go to several places, which sets disk.sector; NULL:
	 * to disk.sector.  Not larger than the disk takes at once. */
	struct queue_place *place;

	/* Members of the queue, which the caller leaves alone. */
	struct interval live;	/* among requests that are submitted and not
				 * completed */
	struct interval waiting;	/* among requests that may be chosen */
	/* Places where it can be served, among those of all requests that wait;
	 * sites_n is 0 if the head is not known. */
	struct policy_site site[1 + QUEUE_COPIES];
	unsigned sites_n;
	uint64_t waits_ns;	/* the time from which its waiting counts */
	bool placed;		/* its place was chosen */
	bool ready;		/* it is among those of its class that wait */
	struct list link;	/* member of the held requests, of an access, or
				 * of the finished requests */
	/* A request that goes out in parts: number of sectors that the disk
	 * was given; and the sector of the request with which it begins, while
	 * those before it go last. */
	uint32_t issued_sectors, split_sectors;
	bool gap_inside;	/* the filler may use the gap between parts */
	bool suspended;		/* it waits again and has parts left */
	bool gap_waits;		/* the filler keeps it; it is not submitted */
	bool gap_last;		/* the filler must not keep it again */
	unsigned parts;	/* outstanding parts */
	bool uncached_hint;	/* it is not to be merged, because a merged
				 * access failed */
	bool own;		/* no user had asked for it (queue_set_own) */
	uint64_t repeat_ns;	/* time at which it waits again after a failure;
				 * 0: it has not failed */
};

struct queue_options {
	unsigned depth;		/* accesses outstanding at the disk; 0: 4 on a
				 * disk that rotates, 32 on others */
	/* See policy.h; used as far as the head is known.  NULL: "sptf" where
	 * it is, "c-look" where not. */
	const char *policy;
};

struct queue_class_stats {
	uint64_t requests;	/* completed, without flushes */
	uint64_t bytes;
	uint64_t wait_ns;	/* sum of the times until they began or went
				 * on */
	uint64_t max_wait_ns;
	uint64_t service_ns;	/* sum of the times from dispatch to
				 * completion */
};

struct queue_stats {
	struct queue_class_stats class[QUEUE_CLASSES];
	uint64_t accesses;	/* reads and writes the disk was given */
	uint64_t merged;	/* requests that shared an access */
	uint64_t held;		/* requests that waited for an overlap */
	uint64_t overdue;	/* chosen because of their age */
	uint64_t retried;	/* single repetitions after a merged access
				 * failed */
	uint64_t repeated;	/* repetitions of failed requests, as the fault
				 * table says */
	uint64_t copies;	/* reads that took another place */
	uint64_t split;		/* tracks begun in the middle */
	uint64_t gaps_inside;	/* requests begun in the middle, for a gap */
	uint64_t gaps, idle_steps; /* gaps and idle times the filler used */
	unsigned window_percent; /* n of SPTF-SWn%, now */
	unsigned budget_ppm;	/* what SPTF-SWn% may cost */
	/* waits for a stream; those that were in vain */
	uint64_t patient, in_vain;
	uint64_t flushes;	/* flushes the disk was given */
	uint64_t flushes_saved;	/* flushes that had nothing to do */
};

struct queue;

/* The disk and the environment outlive the queue.  -EINVAL: no such policy. */
int queue_open(struct env *env, struct disk *disk,
	       const struct queue_options *options, struct queue **queue);

/* The queue must be idle, or the disk gone.  NULL is harmless. */
void queue_close(struct queue *queue);

const struct disk_limits *queue_limits(const struct queue *queue);

/* Number of sectors on the track of this sector; 0: not known. */
uint32_t queue_track_sectors(const struct queue *queue, uint64_t sector);

/* Where the last access that the disk got ends: the head is near there. */
uint64_t queue_head_sector(const struct queue *queue);

/* Does a range write to the track of this sector gain over a write with a fixed
 * place now?  Only where the head is known, and not where so many sectors wait
 * to be written that tracks are filled, on a drive that begins anywhere. */
bool queue_places(const struct queue *queue, uint64_t sector, uint64_t waiting);

/* Sets the head to predict with; NULL: none, the policy is C-LOOK then.  The
 * queue must be idle.  The head outlives the queue, or is taken away by NULL
 * before it ends.  A head whose geometry does not cover the disk is not used.
 */
void queue_set_head(struct queue *queue, struct head *head);

/*
 * The filler of gaps: freeblock scheduling.  It is called from queue_poll only
 * and must not submit from within.  A request that it returns stays its own, as
 * with queue_submit (class QUEUE_IDLE), and ends with done(): with -EBUSY at
 * once when it overlaps one in the queue.
 */
struct queue_filler {
	/*
	 * `next` has been chosen, with its place, and is next for the disk;
	 * it includes neighbours that go with it.  Returns a request to go
	 * before it that makes it no later, as predicted from head_state
	 * (behind all that the disk was given; reads and writes are known);
	 * NULL: nothing fits.  It is asked until it returns NULL, at most
	 * QUEUE_GAP times.  If `joins`, a read that touches `next` at either
	 * end becomes one access with it.
	 */
	struct queue_request *(*gap)(void *arg,
				     const struct head_state *head_state,
				     const struct service_request *next,
				     bool joins);
	/*
	 * Nothing waits and nothing is outstanding, and the foreground has
	 * been quiet since quiet_ns (its last request completed then).
	 * Returns a request; or NULL, and in *again_ns when to be asked again
	 * (UINT64_MAX: never).  head_state->reads and ->writes say what is
	 * known of the head; head_state NULL: nothing.
	 */
	struct queue_request *(*idle)(void *arg,
				      const struct head_state *head_state,
				      uint64_t quiet_ns, uint64_t *again_ns);
	/* Does the filler want anything?  Requests are then chosen with regard
	 * to the gap (queue_set_budget), where there are gaps. */
	bool (*wants)(void *arg);
	/* A request of the foreground is over and done() is about to be called:
	 * the data that it read is in its buffers.  May be NULL. */
	void (*passed)(void *arg, const struct queue_request *req);
	/* The queue closes.  May be NULL. */
	void (*close)(void *arg);
};

/* One more than a plan has parts (gap_search.h), so that the end is asked for.
 */
#define QUEUE_GAP 7u

/* Sets the filler; NULL: there is none.  The queue must be idle. */
void queue_set_filler(struct queue *queue, const struct queue_filler *filler,
		      void *arg);

/* Number of waiting requests of class QUEUE_READ. */
unsigned queue_reads_wait(const struct queue *queue);

/* The filler wants something new: idle() is asked again. */
void queue_ask_filler(struct queue *queue);

/*
 * Sets what SPTF-SWn% may cost: positioning beyond the shortest, in millionths
 * of the head's time.  While the filler wants something, requests are chosen by
 * SPTF-SWn%, and n follows the cost so that it stays below this.  A policy
 * whose name gives an n keeps that n until this is called.
 */
#define QUEUE_BUDGET_PPM 5000u	/* the default, 0.5 % */
void queue_set_budget(struct queue *queue, unsigned ppm);

void queue_submit(struct queue *queue, struct queue_request *req);

/* Somebody waits for a request that was submitted as read-ahead: it becomes a
 * read, as if submitted now, with this deadline or its own, whichever is
 * nearer.  So does a read with a later deadline (0 is the nearest).  Any other
 * request, or one already at the disk, goes on as it is. */
void queue_raise(struct queue *queue, struct queue_request *req,
		 uint64_t deadline_ns);

/* The same, but it stays read-ahead, and is served as such until it has waited
 * for a time that a read waits for beside others. */
void queue_hasten(struct queue *queue, struct queue_request *req);

/*
 * Submits req as a flush: when it is done without error, every write that had
 * completed before the call is on the medium.  Of req only done and owner are
 * the caller's.  Costs no access when queue_unflushed() is false.  After one
 * has failed every later one fails: what the first may have lost is not known.
 */
void queue_flush(struct queue *queue, struct queue_request *req);

/*
 * May a completed write still be lost?  Never on a disk without a volatile
 * cache; true from queue_open on until the first flush on others.
 */
bool queue_unflushed(const struct queue *queue);

/* Says whether what is submitted from now on is the owner's own work, for which
 * no user has asked: idle time does not end with it, and goes on behind it.  At
 * first everything is taken for users' work. */
void queue_set_own(struct queue *queue, bool own);

/* Since when no user has wanted anything: the last request that was not the
 * owner's own work, nor of idle time, was submitted or over then. */
uint64_t queue_users_ns(const struct queue *queue);

/* Time at which queue_poll has something to do though nothing completes;
 * UINT64_MAX: never. */
uint64_t queue_next_ns(const struct queue *queue);

/*
 * Gives the disk the requests that it has room for and calls done() of those
 * that have completed.  If there are none it waits up to timeout_ms (-1: for
 * ever) for the first completion, timeouts as in disk_poll.  Returns the number
 * completed, or the error of disk_poll: then the disk is gone (a simulated
 * power cut), no done() is called any more, the requests belong to their owners
 * again, and only queue_close is allowed.
 */
int queue_poll(struct queue *queue, int timeout_ms);
int queue_poll_ns(struct queue *queue, int64_t timeout_ns);

/* Polls until the queue is idle, what done() submits included.  0, or what
 * disk_poll fails with. */
int queue_drain(struct queue *queue);

/* No request waits, is at the disk, or has a done() that is still to be
 * called. */
bool queue_idle(const struct queue *queue);

/* A descriptor that polls readable when queue_poll has work; -1: none. */
int queue_event_fd(struct queue *queue);

const struct queue_stats *queue_stats(const struct queue *queue);
/* service_ns of each class within the last hour, or as long as the queue is
 * open if that is less; returns how long it is, in ns. */
uint64_t queue_past_hour(const struct queue *queue,
			 uint64_t service_ns[QUEUE_CLASSES]);

/*
 * Synchronous helpers for mount and tests: one request, waited for (others
 * complete meanwhile).  buf is aligned to 4096.
 */
int queue_read(struct queue *queue, uint64_t sector, uint32_t sectors,
	       void *buf);
int queue_write(struct queue *queue, uint64_t sector, uint32_t sectors,
		const void *buf);
/* Read with the retries of the fault table. */
int queue_read_as(struct queue *queue, enum fault_origin origin,
		  uint64_t sector, uint32_t sectors, void *buf);
int queue_write_as(struct queue *queue, enum fault_origin origin,
		   uint64_t sector, uint32_t sectors, const void *buf);
int queue_flush_wait(struct queue *queue);

#endif
