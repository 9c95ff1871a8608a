/*
 * internal.h - the scrub from inside: scrub.c (passes, windows, what is
 * stored), load.c (a window: owners and checksums), judge.c (what was read),
 * suspect.c (what may be damaged).
 */
#ifndef TRAX_TASKS_INTERNAL_H
#define TRAX_TASKS_INTERNAL_H

#include "fs/data.h"
#include "fs/heal.h"
#include "sched/freeblock.h"
#include "tasks/scrub.h"

#define SCRUB_RUNS 8192u
#define SCRUB_SUMS 131072u	/* 1 MiB of checksums */
#define SCRUB_PIECES 65536u
#define SCRUB_PARTS 64u		/* pieces that came in part */
#define SCRUB_SUSPECTS 4096u
#define PIECE_SECTORS (PIECE_BLOCKS * BLOCK_SECTORS)

/* Some allocated sectors, and what they hold. */
struct run {
	uint64_t sector, n;
	uint8_t kind;		/* OWNER_* */
	uint64_t ino, off;	/* data: sectors in the file */
	uint32_t piece;		/* data: first of its pieces */
};

/* Checksums of 64 KiB of a file. */
struct sums {
	uint16_t mask;		/* blocks that have one */
	bool coarse;		/* one for all */
	uint32_t first;		/* in window.sum */
};

struct window {
	uint64_t from, end;	/* addresses; end UINT64_MAX: the last */
	struct run *run;	/* by sector */
	uint32_t runs;
	struct sums *piece;
	uint32_t pieces;
	uint64_t *sum;
	uint32_t sums;
	uint64_t sectors;
};

/* A piece of which some sectors have come. */
struct part {
	uint64_t ino, piece;	/* ino 0: free */
	const struct sums *sums;
	uint64_t have[2];	/* bits of its sectors */
	uint64_t used;
	uint8_t *data;
};

/* Of a file, or (ino 0) a node. */
struct suspect {
	uint64_t ino, piece;
	uint64_t sector;
	uint16_t blocks;
	uint8_t tries;
};

struct scrub {
	struct fs *fs;
	int64_t period_seconds;	/* 0: only when it is started */
	struct freeblock_task *task;
	uint32_t unit;

	enum scrub_state state;
	bool known;		/* what is stored has been read */
	bool start_wanted;
	uint64_t cursor;	/* everything before has been read */
	uint64_t done_sectors;	/* before the window */
	uint64_t passes, errors_before, looked_again;
	int64_t begun_seconds, ended_seconds;
	uint64_t run_ns, run_since_ns, run_sectors;
	uint64_t retry_ns;	/* memory was short: not before */

	bool loading, storing, store_again;
	bool active;		/* a window is being read */
	struct window window;
	bool owners_loaded;
	uint32_t loaded;	/* runs whose checksums are there ... */
	uint32_t loaded_pieces;	/* ... and of the next one */

	struct part part[SCRUB_PARTS];
	uint64_t part_clock;

	struct suspect suspect[SCRUB_SUSPECTS];
	unsigned suspects;
	bool suspecting;	/* the first of them */
	struct file *file;	/* its */
	struct gated gated;
	struct need need;
	struct waiter waiter;	/* for a checkpoint: nodes */
	struct queue_request node_req;
	struct iovec node_iov;
	uint8_t *node;
	bool overflow;		/* more than could be looked at */
	bool closing;
};

/* ---- load.c ---- */

/* Fills the window from the cursor on; then scrub_loaded(). */
void load_start(struct scrub *scrub);
void scrub_loaded(struct scrub *scrub, int rc);

/* ---- judge.c ---- */

extern const struct freeblock_ops judge_ops;

/* Does a node say of itself that it is the one that should be there? */
bool judge_node(const struct scrub *scrub, uint64_t sector, const void *data);

/* What came in part only, when the window is over. */
void judge_rest(struct scrub *scrub);

/* ---- suspect.c ---- */

void suspect_file(struct scrub *scrub, uint64_t ino, uint64_t piece,
		  uint16_t blocks);
void suspect_node(struct scrub *scrub, uint64_t sector);
/* Looks at the next; true: it was over at once, there may be another. */
bool suspect_next(struct scrub *scrub);
/* scrub->gated.again. */
void suspect_again(struct gated *gated);

#endif
