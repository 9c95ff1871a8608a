/*
 * internal.h - the scrub from inside: scrub.c (passes, windows, what is
 * stored), load.c (a window: owners and checksums), judge.c (what was read),
 * suspect.c (what may be damaged), copies.c (copies of file blocks), fixed.c
 * (superblocks, roots, geometry).
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
	uint64_t ino, off;	/* data, copies: sectors in the file */
	uint32_t piece;		/* likewise: first of its pieces */
};

/* Where a piece of the file would begin if all of it were in a row. */
static inline uint64_t run_place(const struct run *run, uint64_t piece)
{
	return run->sector - run->off + piece * PIECE_SECTORS;
}

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

/* A piece of a file, as it lies in the file's own place or in a copy. */
struct spot {
	uint64_t ino, piece;
	bool copy;
	uint64_t place;		/* a copy's: run_place() */
};

/* A piece of which some sectors have come. */
struct part {
	struct spot at;		/* ino 0: free */
	const struct sums *sums;
	uint64_t have[2];	/* bits of its sectors */
	uint64_t used;
	uint8_t *data;
};

/* Of a file, or (ino 0) a node. */
struct suspect {
	uint64_t ino, piece;
	uint64_t sector;	/* of a node; of a copy, run_place() */
	uint16_t blocks;
	uint8_t tries;
	bool copy, unreadable;
	bool fixed;
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
	uint64_t region_from, region_end; /* of copies, half loaded; end 0 */
	bool owners_loaded;
	uint32_t loaded;	/* runs whose checksums are there ... */
	uint32_t loaded_pieces;	/* ... and of the next one */

	struct part part[SCRUB_PARTS];
	uint64_t part_clock;

	struct suspect suspect[SCRUB_SUSPECTS];
	unsigned suspects;
	bool suspecting;	/* the first of them */
	uint16_t bad_copies;	/* blocks of it */
	struct file *file;	/* its */
	struct gated gated;
	struct need need;
	struct waiter waiter;	/* for a checkpoint: nodes */
	struct queue_request node_req;
	struct iovec node_iov;
	uint8_t *node;
	uint8_t *fixed;		/* while the first suspect is such */
	size_t fixed_bytes;
	uint64_t fixed_version;
	bool overflow;		/* more than could be looked at */
	bool closing;
};

/* ---- load.c ---- */

/* Fills the window from the cursor on; then scrub_loaded(). */
void load_start(struct scrub *scrub);
void scrub_loaded(struct scrub *scrub, int rc);

/* How many pieces of a file a run meets. */
uint32_t load_pieces(const struct run *run);

/* ---- judge.c ---- */

extern const struct freeblock_ops judge_ops;

/* Does a node say of itself that it is the one that should be there? */
bool judge_node(const struct scrub *scrub, uint64_t sector, const void *data);

/* What came in part only, when the window is over. */
void judge_rest(struct scrub *scrub);

/* ---- copies.c ---- */

/* Adds what was copied to a region, from the window's end on.  -ENOSPC: the
 * window is full; -EINPROGRESS: in another transaction. */
int copies_load(struct ticket *ticket, struct scrub *scrub, uint64_t sector,
		uint64_t end);

/* Does the original of a run of copies still name all of it? */
int copies_are_named(struct ticket *ticket, const struct run *run,
		     bool *named);

/* The first of the suspects is a copy. */
void copies_look(struct scrub *scrub);

/* ---- fixed.c ---- */

/* These sectors, which never move, have been read. */
void fixed_passed(struct scrub *scrub, uint64_t sector, uint64_t n);

/* The first of the suspects is such. */
void fixed_look(struct scrub *scrub);

/* ---- suspect.c ---- */

void suspect_fixed(struct scrub *scrub, uint64_t sector);
void suspect_file(struct scrub *scrub, uint64_t ino, uint64_t piece,
		  uint16_t blocks);
void suspect_copy(struct scrub *scrub, uint64_t ino, uint64_t piece,
		  uint64_t place, uint16_t blocks, bool unreadable);
/* The first of them is none any more. */
void suspect_over(struct scrub *scrub);
void suspect_node(struct scrub *scrub, uint64_t sector);
/* Looks at the next; true: it was over at once, there may be another. */
bool suspect_next(struct scrub *scrub);
/* scrub->gated.again. */
void suspect_again(struct gated *gated);

#endif
