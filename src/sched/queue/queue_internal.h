/*
 * queue_internal.h - the disk queue from inside: queue.c (life of a request),
 * access.c (what is given to the disk), select.c (which, where), dispatch.c
 * (when).
 */
#ifndef TRAX_QUEUE_QUEUE_INTERNAL_H
#define TRAX_QUEUE_QUEUE_INTERNAL_H

#include "sched/queue/class_share.h"
#include "sched/queue/commit_burst.h"
#include "sched/queue/past_hour.h"
#include "sched/queue/policy.h"
#include "sched/queue/queue.h"
#include "sched/queue/read_order.h"
#include "sched/queue/read_stream.h"

/* Small reads that a drive is given at once which orders them itself: most
 * drives can have 32, and some of these are left for other requests. */
#define READ_ORDER_DEPTH 24u

/* Sectors at the end of a track, less than two blocks, that are left out when a
 * run of requests goes on behind them. */
#define LEFT_OUT 15u

/* One request to the disk: a request, several neighbours, a part of one too
 * large, or a flush for all that asked for one. */
struct access {
	struct disk_request disk;
	struct queue *queue;
	struct list requests;	/* sorted by sector; flushes in order of
				 * arrival */
	struct list link;	/* among the free ones or those at the disk */
	enum queue_class class;	/* class of the (first) request */
	bool is_part;		/* it is a part of one request */
	bool followed;		/* the head knows of it */
	struct head_access at_head;
	uint64_t writes;	/* flush: those it covers */
	struct iovec iov[DISK_MAX_IOV];
};

/* A read that is made for its completion time only (head_wants_reference). */
struct reference {
	struct queue_request req;
	struct iovec iov;
	bool busy;
};

/* A run of requests one behind the other that had to end because others of its
 * class wait: these go first. */
struct run_cut {
	int class;
	uint64_t first, end;	/* sectors: what is left of the run */
	uint64_t due_ns;	/* deadline of the last request that goes before
				 * the run; 0: no run was cut */
};

struct queue {
	struct env *env;
	struct disk *disk;
	const struct policy *policy;	/* NULL: the best of what is known */
	struct {
		bool fixed;		/* the policy's name gives its n */
		unsigned percent, budget_ppm;
		/* Recent positioning beyond the shortest, and time of the
		 * head in which it was spent. */
		double spent_ns, of_ns;
	} window;			/* the state of SPTF-SWn% */
	unsigned depth;
	struct head *head;		/* predicts the head; NULL: it is not
					 * known */
	const struct queue_filler *filler;	/* NULL: there is none */
	void *filler_arg;
	bool own;			/* see queue_set_own */
	uint64_t quiet_ns;		/* last completion of the foreground */
	uint64_t idle_again_ns;		/* time at which the filler is asked
					 * again */
	struct reference *reference;

	struct interval *live;
	struct interval *waiting[QUEUE_CLASSES];
	struct interval *sites[QUEUE_CLASSES];	/* sites of those that wait, by
						 * cylinder */
	struct list unplaced[QUEUE_CLASSES];	/* writes without an address */
	struct list held;	/* requests that wait for an overlap, in order
				 * of submission */
	struct list repeats;	/* failed, and are to wait again later */
	struct list flushes;	/* flushes that the disk has not been given */
	struct list finished;	/* done() not yet called */
	struct list free_accesses;
	struct list given;	/* accesses at the disk, in that order */
	struct queue_request *partial;
	struct access *parked;	/* goes next, behind what fills the gap */
	unsigned gaps;		/* requests that went before `parked` */
	uint64_t access_ns;	/* recent mean time of an access */
	uint64_t access_end_ns;	/* when the last access ended */
	uint64_t order;		/* number of the last request */
	uint64_t head_sector;	/* where the last access ends */
	struct access *last;	/* that access, while it is outstanding */
	struct read_streams streams;
	struct commit_burst burst;
	struct class_share share;
	struct read_order read_order;
	struct run_cut cut;
	uint64_t arrived_ns;	/* since when the head reads on where it is */
	uint64_t completed_writes, flushed_writes;
	int flush_rc;		/* result of the first flush that failed; 0:
				 * none has */
	unsigned outstanding;
	bool was_placed;	/* the last choice was a range write */
	int gone;		/* the error of disk_poll; 0: none */
	struct queue_stats stats;
	struct past_hour past_hour;	/* service_ns of the classes */
	uint64_t opened_ns;
	struct access *accesses;
};

/* ---- queue.c ---- */

/* Enters a request whose sectors are known; false: it is held. */
bool queue_enter(struct queue *queue, struct queue_request *req);
void queue_begin(struct queue *queue, struct queue_request *req);
void queue_wait(struct queue *queue, struct queue_request *req);
/* Time in which a request of a class should be over. */
uint64_t queue_promised_ns(int class);
/* Has a request that waits come to its own deadline, or to the age from which
 * on it goes first? */
bool queue_is_of_age(const struct queue *queue, const struct queue_request *req,
		     uint64_t now_ns);
void queue_leave_waiting(struct queue *queue, struct queue_request *req);
void queue_finish(struct queue *queue, struct queue_request *req, int result,
		  uint64_t now_ns);
void queue_commit_over(struct queue *queue, uint64_t now_ns);
/* A request is over: idle time begins anew when a user had asked for it. */
void queue_end_idle(struct queue *queue, const struct queue_request *req,
		    uint64_t now_ns);
void queue_release_held(struct queue *queue);
/* Lets requests wait again whose pause after a failure is over. */
void queue_release_repeats(struct queue *queue);
void queue_access_done(struct disk_request *disk);

/* ---- access.c ---- */

/* A waiting request that goes on where the last access ends, which is still
 * outstanding; NULL: none. */
struct queue_request *access_continued(const struct queue *queue);

/* The first of those that wait one behind the other up to this one, within a
 * track's length: what is left behind would cost a way of its own. */
struct queue_request *access_run_begin(struct queue *queue,
				       struct queue_request *req);

/* The request, which waits, and the neighbours that may go with it. */
struct access *access_of(struct queue *queue, struct queue_request *req,
			 bool alone);
struct access *access_of_part(struct queue *queue);
struct access *access_of_flushes(struct queue *queue);

/* Ends the run that the head is in if it has had its time and others of the
 * class wait. */
void access_cut_run(struct queue *queue, int class);

/* Most sectors of a request that may go out at once. */
uint32_t access_most(const struct queue *queue,
		     const struct queue_request *req);

/* Must the request leave the disk to a commit that is expected at any moment?
 */
bool access_gives_way(const struct queue *queue,
		      const struct queue_request *req);

/* Joins a read to an access that it touches at either end; false: it cannot be
 * joined. */
bool access_join(struct access *access, struct queue_request *req);
/* Gives the disk an access that was chosen by where the head was at
 * chosen_ns. */
void access_submit(struct access *access, uint64_t chosen_ns);
/* Removes accesses that were under way when the disk went away from the head,
 * which may outlive the queue. */
void access_drop_given(struct queue *queue);

/* ---- select.c ---- */

/* The next request for the disk, its place chosen and entered; NULL: none.
 * *alone: it goes without neighbours.  head_state NULL: the head is unknown. */
struct queue_request *queue_select(struct queue *queue,
				   const struct head_state *head_state,
				   bool *alone);

/* Does any request wait to be chosen?  Does one of this class? */
bool queue_has_waiting(const struct queue *queue);
bool queue_class_waits(const struct queue *queue, int class);
/* The most urgent request of those that are of age; NULL: none is. */
struct queue_request *queue_overdue(const struct queue *queue);
/* Should the request stay back?  It is for a reader with a pace who wants it
 * later than others want what waits, and these have no time left. */
bool queue_stays_back(const struct queue *queue,
		      const struct queue_request *req);
/* Must even a run of its class end for a request that is of age?  Not if it
 * goes on with that run. */
bool queue_is_urgent(const struct queue *queue,
		     const struct queue_request *req);
/* The class that is next by its share of the head; -1: none waits. */
int queue_next_class(const struct queue *queue);
/* Does only background work wait? */
bool queue_is_background(const struct queue *queue);

/* ---- dispatch.c ---- */

/* Are there only reads to be done, and is nothing wanted in gaps? */
bool queue_reads_only(const struct queue *queue);
/* Does the filler want something that a gap may have room for now?  Without a
 * head that is followed there are no gaps. */
bool queue_wants_gaps(const struct queue *queue);

/* Gives the disk what it may have now. */
void queue_dispatch(struct queue *queue);

/* When an access that is dispatched now would begin, as far as is known. */
uint64_t queue_begin_ns(const struct queue *queue);

#endif
