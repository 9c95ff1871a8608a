/*
 * gap_fill.h - freeblock from inside: freeblock.c (tasks and what they are
 * given), gap_fill.c (when and where is read and written).
 */
#ifndef TRAX_FREEBLOCK_GAP_FILL_H
#define TRAX_FREEBLOCK_GAP_FILL_H

#include "base/rangeset.h"
#include "sched/freeblock/freeblock.h"
#include "sched/freeblock/gap_search.h"
#include "sched/freeblock/gap_write.h"
#include "sched/queue/queue_internal.h"
#include "sched/freeblock/partial_block.h"
#include "sched/freeblock/freeblock_set.h"

/* Bins of the delays, GAP_FILL_DELAY_NS each; the last takes all that is
 * longer. */
#define GAP_FILL_DELAYS 256u
#define GAP_FILL_DELAY_NS 50000u
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
	struct freeblock_task *task;	/* promoted: whose, held; else NULL */
	bool suspect;			/* one unit of its suspects */
	struct list link;
};

/* A foreground request with a gap before it, and when it would be over. */
struct delay_check {
	bool used;		/* something is read before it ... */
	bool first_late;	/* ... and the first of that came late */
	uint64_t lbn;
	uint64_t over_ns, turn_ns;
};

struct freeblock {
	struct queue *queue;
	const struct geom *geom;
	struct geom *own_geom;		/* pseudo-tracks; NULL: the head's */
	struct list tasks;
	struct list closed;		/* of which something is under way */
	struct list reads;		/* with the queue */
	uint64_t quiet_ns;

	/* The gap at hand. */
	struct service_request target;
	bool planned;			/* for it */
	bool joins;			/* a read before it on its track does */
	struct gap_plan plan;
	unsigned piece;			/* the next of it */
	bool wrote;			/* there was a write before it */

	/* Idle time. */
	uint64_t recent_gap_ns;		/* of the foreground, lately at most */
	uint64_t last_over_ns;		/* its last completion */
	uint64_t idle_begin_ns, idle_end_ns; /* the last step */
	uint64_t idle_lbn;		/* where the next begins */

	/* Added to the guards: of what a gap begins with, and of the rest. */
	uint64_t care_ns, care_next_ns;
	uint64_t cared_ns;		/* as of then */

	struct delay_check delay_check[GAP_FILL_DELAY_CHECKS];
	unsigned delay_checks;
	struct freeblock_stats stats;
	uint64_t followed;		/* requests that followed a free read */
	uint32_t delay_bins[GAP_FILL_DELAYS];
};

struct freeblock_task {
	struct freeblock *fb;
	struct freeblock_options options;
	const struct freeblock_ops *ops;
	void *arg;
	struct list link;
	struct freeblock_set *set;	/* in sectors when parts may be held */
	struct partial_blocks parts;
	struct freeblock_set *next;	/* while the geometry changes */
	struct rangeset flying, suspect;
	struct list writes;	/* whose places are open */
	struct gap_write_set fixed;	/* the others */
	unsigned promoted;	/* reads at a time */
	unsigned reading;	/* promoted ones with the queue */
	bool suspecting;	/* one of its suspects is with the queue */
	bool paused;
	bool closed;
	unsigned holds;		/* callbacks, reads and writes with the queue */
	uint64_t promoted_lbn;	/* where the next of them begins */
	uint64_t idle_sectors;	/* had, by its share */
	struct freeblock_stats stats;
};

/* ---- freeblock.c ---- */

void task_get(struct freeblock_task *task);
void task_put(struct freeblock_task *task);

/* NULL: no memory.  With a task it is held. */
struct free_read *read_new(struct freeblock *fb, enum free_read_kind kind,
		      struct freeblock_task *task, uint64_t sector,
		      uint32_t sectors);

/* The next that is wanted in [from, end), within a track and in whole units,
 * but where a track's end cuts one and parts may be held; false: nothing. */
bool task_next(const struct freeblock_task *task, uint64_t from, uint64_t end,
	       struct range *out);

/* Writes that have not begun. */
bool task_writes(const struct freeblock_task *task);
struct queue_request *task_first_write(struct freeblock_task *task);
/* It begins, or will not. */
void task_leave_write(struct freeblock_task *task, struct queue_request *req);

/* A read begins: what is wanted of it is on its way. */
void freeblock_take(struct freeblock *fb, uint64_t sector, uint32_t sectors);

/* What was read for somebody else, if a task wants it. */
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
void gap_fill_passed(void *arg, const struct queue_request *req);

/* A read in a gap is over. */
void gap_fill_read_over(struct freeblock *fb, const struct disk_request *disk);

/* Gives the queue what a task is promoted to, and its suspects. */
void gap_fill_promoted(struct freeblock_task *task);

#endif
