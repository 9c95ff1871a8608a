/*
 * gap_fill.h - freeblock from inside: freeblock.c (tasks and the data that they
 * get), gap_fill.c (when and where is read and written).
 */
#ifndef TRAX_FREEBLOCK_GAP_FILL_H
#define TRAX_FREEBLOCK_GAP_FILL_H

#include "base/rangeset.h"
#include "sched/freeblock/freeblock.h"
#include "sched/freeblock/gap_search.h"
#include "sched/freeblock/gap_write.h"
#include "sched/queue/queue_internal.h"
#include "sched/freeblock/freeblock_set.h"

/* Names of tasks whose delays are counted apart; those of others are counted
 * for all tasks only. */
#define GAP_FILL_TASKS 8u
/* Bins of the delays, GAP_FILL_DELAY_NS each; the last takes all that is
 * longer. */
#define GAP_FILL_DELAYS 256u
#define GAP_FILL_DELAY_NS 50000u
/* Foreground requests that are watched for delays at the same time. */
#define GAP_FILL_DELAY_CHECKS 4u

/* Why something is read. */
enum free_read_kind {
	FREE_READ_GAP,
	FREE_READ_IDLE,
	FREE_READ_PROMOTED,
	FREE_READ_PASSED
};

struct free_read {
	struct queue_request req;
	struct iovec iov;
	struct freeblock *fb;
	enum free_read_kind kind;
	struct freeblock_task *task;	/* the task of a promoted read, which it
					 * keeps; NULL: the read is not
					 * promoted */
	bool suspect;			/* a part read by itself after an error
					 */
	struct list link;
};

/* A foreground request with a gap before it, and when it should complete. */
struct delay_check {
	bool used;		/* a free read goes before it */
	const char *task;	/* name of the task that it is for */
	bool first_late;	/* the first of its free reads came late */
	bool streams;		/* that went on where the access before ended */
	uint64_t lbn;
	uint64_t made_ns, over_ns;	/* when it was expected to be over, and
					 * when that was computed */
	uint64_t turn_ns;		/* 0: nothing is watched */
};

/* What is added to a guard so that missed turns cost no more than their part of
 * the time. */
struct extra_guard {
	uint64_t ns;
	uint32_t cost;	/* it fades so fast that misses cost 1/cost of the time
			 * in equilibrium; 0: it has not begun */
};

struct freeblock {
	struct queue *queue;
	const struct geom *geom;
	struct geom *own_geom;		/* pseudo-tracks; NULL: the head's */
	struct list tasks;
	struct list closed;		/* tasks with requests under way */
	struct list reads;		/* reads submitted to the queue */
	uint64_t quiet_ns;
	uint64_t sleep_ns;		/* idle work ends after this much idle
					 * time; 0: never */

	/* The gap at hand. */
	struct service_request target;
	bool planned;			/* `plan` is for this gap */
	bool joins;			/* a read that touches the target is one
					   access with it */
	struct gap_plan plan;
	const char *plan_task;		/* name of the task that it is for */
	unsigned extent;			/* the next one of the plan */
	bool wrote;			/* a write was sent in this gap */

	/* Idle time. */
	uint64_t recent_gap_ns;		/* longest recent gap of the foreground,
					   fading */
	uint64_t last_over_ns;		/* last completion of the foreground */
	uint64_t idle_begin_ns, idle_end_ns; /* times of the last idle step */
	const char *idle_task;		/* name of its task */
	uint64_t idle_lbn;		/* where the next idle step begins */

	/* Added to the guards: for the first read of a gap, for the rest, and
	 * to the host's lateness for one that goes on where the last access
	 * ends: that has no guard, but must be there before the head goes on
	 * turning. */
	struct extra_guard extra, extra_next, extra_stream;
	uint64_t narrowed_ns;		/* when the guards were last reduced */

	struct delay_check delay_check[GAP_FILL_DELAY_CHECKS];
	unsigned delay_checks;
	uint64_t late_ns;		/* when a request was over last that was
					 * late */
	struct freeblock_stats stats;
	struct { const char *task; struct freeblock_delay is; }
		delay[GAP_FILL_TASKS];	/* by names of tasks */
	uint64_t followed;		/* requests that followed a free read */
	uint32_t delay_bins[GAP_FILL_DELAYS];
};

struct freeblock_task {
	struct freeblock *fb;
	struct freeblock_options options;
	const struct freeblock_ops *ops;
	void *arg;
	struct list link;
	struct freeblock_set *set;	/* its unit: the disk's logical block */
	struct freeblock_set *next;	/* while the geometry changes */
	struct rangeset flying, suspect;
	struct list writes;	/* writes with open places */
	struct gap_write_set fixed;	/* writes with fixed places */
	unsigned promoted;	/* promoted reads at a time; 0: none */
	unsigned reading;	/* promoted reads in the queue */
	bool suspecting;	/* a part of the suspects is being read */
	struct range failed;	/* the part of the suspects that failed last */
	bool paused;
	bool closed;
	unsigned holds;		/* references by callbacks and requests */
	uint64_t promoted_lbn;	/* where the next promoted read begins */
	uint64_t idle_sectors;	/* sectors read in idle time, divided by its
				 * share */
	struct freeblock_stats stats;
};

/* ---- freeblock.c ---- */

void task_get(struct freeblock_task *task);

/* Makes a read, which holds `task` if that is not NULL.  NULL: no memory. */
struct free_read *read_new(struct freeblock *fb, enum free_read_kind kind,
		      struct freeblock_task *task, uint64_t sector,
		      uint32_t sectors);

/* Writes that have not begun. */
bool task_writes(const struct freeblock_task *task);
struct queue_request *task_first_write(struct freeblock_task *task);
/* Takes a write out of the task's sets: it begins, or is given up. */
void task_leave_write(struct freeblock_task *task, struct queue_request *req);

/* Most sectors of a failed read that are given up together: those that the
 * drive stores as one, in whole units. */
uint32_t suspect_least(const struct freeblock_task *task);
/* Sectors of a failed read that are read together first. */
uint32_t suspect_most(const struct freeblock_task *task);

/* A read begins: its wanted sectors count as on their way. */
void freeblock_take(struct freeblock *fb, uint64_t sector, uint32_t sectors);

/* Passes data that was read for others to the tasks that want it. */
void freeblock_pass(struct freeblock *fb, uint64_t sector, uint32_t sectors,
		    const void *bytes);

void freeblock_write_done(struct disk_request *disk);
void freeblock_read_done(struct disk_request *disk);

/* ---- gap_fill.c: the filler of the queue ---- */

struct queue_request *gap_fill_begin(void *arg,
				     const struct head_state *head_state,
				     const struct service_request *next,
				     bool joins);
struct queue_request *gap_fill_idle(void *arg,
				    const struct head_state *head_state,
				    uint64_t quiet_ns, uint64_t *again_ns);
bool gap_fill_wants(void *arg);
/* How long the foreground has to be quiet for idle time to begin. */
uint64_t gap_fill_quiet_ns(const struct freeblock *fb);
void gap_fill_passed(void *arg, const struct queue_request *req);

/* A read in a gap is over. */
void gap_fill_read_over(struct freeblock *fb, const struct disk_request *disk);

/* Submits the promoted reads of a task, and its suspects. */
void gap_fill_promoted(struct freeblock_task *task);

#endif
