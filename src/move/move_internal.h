/*
 * move_internal.h - moves from inside: move.c (all of them together),
 * move_steps.c (the steps of one), move_swap.c (its transactions), move_clean.c
 * (which tracks are to be emptied), move_need.c (how soon), move_order.c (what
 * is to be brought together), move_notice.c (what users read in pieces),
 * move_walk.c (what lies apart), move_store.c (what outlives a mount).
 *
 * Sectors of the data of a move are counted from its beginning: `at`.  Sources
 * and places cover the data in that order, without holes.
 */
#ifndef TRAX_MOVE_MOVE_INTERNAL_H
#define TRAX_MOVE_MOVE_INTERNAL_H

#include "fs/data/file_data.h"
#include "fs/data/read_events.h"
#include "move/move.h"
#include "sched/freeblock/freeblock.h"

#define MOVE_BLOCKS 512u	/* of a move, at most: 2 MiB */
#define MOVE_RANGE_BLOCKS 256u	/* of a file in one piece, at most */
#define MOVE_RANGES 256u
#define MOVE_SOURCES 768u	/* a range may begin and end inside a block
				 * that lies in two extents */
#define MOVE_PLACES 512u
#define MOVE_TRACKS 8u		/* emptied by a move, at most */
#define MOVE_CLAIMS 256u	/* free parts of its tracks */
#define MOVE_MOST 8u		/* that have data in memory, at a time */
#define ORDER_PIECES 64u	/* of the room of an order batch */
#define ORDER_WANTED 4096u	/* files that wait to be brought together */
#define MOVE_SLOTS 24u		/* with those that drain */

/* Blocks of a file that move together. */
struct move_range {
	uint64_t ino, first;
	uint32_t blocks;	/* 0: it stays where it is */
	uint32_t at;
	uint32_t source, sources;	/* index of the first; how many */
	uint64_t given_at;	/* sectors of the room of an order's move
				 * before that for it */
};

struct move_source {		/* a part of a range, where it lies */
	uint64_t sector;
	uint32_t n, at;
	uint32_t got;		/* sectors of it that have come */
	bool failed;		/* it could not be read */
	bool left;		/* nothing is mapped to it any more */
};

struct move_place {		/* where a part of a range goes */
	struct alloc_piece piece;
	uint32_t at;
	bool failed;		/* it could not be written, or not read back */
};

struct move_part {		/* a write: a part of a place */
	struct move *move;
	struct queue_request req;
	struct iovec iov;
	uint32_t place;
};

enum move_step {
	MOVE_FREE,		/* it has not begun */
	MOVE_LOOK,		/* looks up extents and checksums */
	MOVE_READ,
	MOVE_PLACE,
	MOVE_WRITE,
	MOVE_COMPARE,		/* reads back what was written */
	MOVE_SWAP,		/* maps the ranges to their places, in turn */
	MOVE_DRAIN,		/* until the old places are free */
};

struct move {
	struct moves *moves;
	enum move_step step;
	bool in_txn;
	uint64_t step_ns;	/* when the step began */
	struct move_range range[MOVE_RANGES];
	unsigned ranges, looked;
	struct move_source source[MOVE_SOURCES];
	unsigned sources;
	struct move_place place[MOVE_PLACES];
	unsigned places;
	uint32_t sectors;	/* of its data */
	uint32_t left;		/* of these, still to be read or compared */
	uint8_t *data;
	void *memory;		/* of data, which is aligned */
	uint32_t sum[MOVE_BLOCKS];	/* of each block of the data */
	struct move_part *part;
	unsigned parts, writing;
	/* Of the range that is being mapped. */
	unsigned swapping;
	uint32_t swapped;	/* blocks of it that are */
	uint32_t step_blocks;	/* that the transaction maps */
	struct file *file;
	struct excl_lock excl;
	/* The tracks that it empties: what was free of them. */
	struct range track[MOVE_TRACKS], claim[MOVE_CLAIMS];
	unsigned tracks, claims;
	uint32_t emptied;	/* sectors in use on them */
	unsigned filled;	/* free tracks that it takes for that */
	uint64_t reserved;	/* sectors, see move_claim */
	bool is_order;
	struct alloc_piece given[ORDER_PIECES];	/* places for all of it, until
						 * it is placed */
	unsigned given_n;
	uint64_t moved;		/* sectors */
};

/* ---- move_clean.c ---- */

#define CLEAN_CANDIDATES 8u
#define CLEAN_TRIED 128u

struct clean_track {
	struct range track;
	uint32_t free, parts;	/* sectors; in so many parts */
	double gain;
};

struct clean {
	uint32_t group;		/* in which tracks are looked for */
	uint32_t barren;	/* groups in a row without any */
	bool ranked;		/* `candidate` is that of the group */
	bool needed;		/* however much is free there in whole tracks */
	bool picking;
	struct clean_track candidate[CLEAN_CANDIDATES];
	unsigned candidates, looked;
	uint64_t holes;		/* free in tracks in use, of the group */
	uint64_t open;		/* sector behind what moves have put on a free
				 * track; 0: none */
	struct clean_track best[MOVE_TRACKS]; /* so far, the best first */
	unsigned bests, taken;	/* the first `taken` have been looked at again
				 * to be emptied */
	struct { uint64_t first, until_ns; } tried[CLEAN_TRIED];
	unsigned tried_next;
};

/* ---- move_order.c ---- */

/* How far a batch was before a file. */
struct order_mark {
	unsigned ranges, runs, cost;
	uint64_t sectors, end;
};

struct ordering {
	struct order_wish { uint64_t ino; uint32_t reads; }
		wanted[ORDER_WANTED];	/* a ring */
	unsigned wanted_first, wanted_n;
	bool paused;
	bool looking;		/* a transaction is under way */
	bool looked;		/* it has found all of the batch */
	/* The file that is looked at (0: none), how often it will be read, and
	 * the sector to go on from. */
	struct order_wish wish;
	uint64_t at;
	struct order_mark file_start;
	/* The batch. */
	bool full;		/* no more goes into it */
	struct move_range range[MOVE_RANGES];
	unsigned ranges, handed; /* the first so many are in moves */
	uint64_t sectors, handed_sectors;
	uint64_t goal, track;	/* sector; sectors of a track there */
	uint64_t end;		/* where the last piece ends */
	uint32_t reads;		/* expected of all of it */
	unsigned runs, runs_then; /* pieces now, and where it goes */
	unsigned cost;		/* of reading on from piece to piece, now, in
				 * parts of a turn */
	unsigned file_break;	/* of these, to the file that is looked at */
	unsigned cut;		/* what more it costs to go from the batch to
				 * the file behind it when the batch moves */
	struct alloc_piece piece[ORDER_PIECES]; /* where it goes */
	unsigned pieces;	/* 0: there is no room yet */
	unsigned under_way;	/* moves */
	uint64_t moved;		/* sectors of the batch */
	struct order_status status;
};

/* A file of which `reads` reads are expected in a month.  -EAGAIN. */
int order_want(struct moves *moves, uint64_t ino, uint32_t reads);
/* Can order_pick go on? */
bool order_has_work(const struct moves *moves);
/* Looks for what the next batch has, or begins a move of it; false: that is all
 * for now. */
bool order_pick(struct moves *moves);
/* A move of a batch is over. */
void order_moved(struct move *move);
/* Sectors [from, from + n) of the room that pieces are, as far as it goes.
 * Returns how many pieces that is. */
unsigned room_cut(const struct alloc_piece *piece, unsigned pieces,
		    uint64_t from, uint64_t n, struct alloc_piece *cut);
/* Gives back what is not in moves; no transaction is under way. */
void order_close(struct moves *moves);

/* ---- move_notice.c ---- */

#define NOTICE_FILES 64u

/* A file that is being read in order, or was. */
struct notice_file {
	uint64_t ino;		/* 0: none */
	uint64_t next;		/* sector behind what was read last */
	uint64_t sectors;	/* read so far, in order */
	uint64_t end;		/* on the disk, of what was read last */
	unsigned breaks;	/* pieces begun meanwhile */
	uint32_t reads;		/* so often all of it */
	uint64_t begun_ns, used_ns;
};

struct noticing {
	struct read_watch watch;
	struct notice_file file[NOTICE_FILES];
};

/* Begins to notice which files are read whole though they lie in pieces. */
void notice_begin(struct moves *moves);
void notice_end(struct moves *moves);

/* ---- move_need.c ---- */

struct move_need {
	uint64_t looked_ns;
	struct alloc_large seen; /* when it was looked */
	double sectors, pieces;	/* of large files, of late */
	bool is_needed;		/* there are too many pieces, and too few free
				 * tracks */
	uint64_t next_ns;	/* a move may begin for that */
};

/* Finds out, once a second. */
void need_look(struct moves *moves, uint64_t now_ns);

/* ---- move_walk.c ---- */

struct walking {
	bool active;		/* a pass is under way */
	bool looking;		/* a transaction is */
	uint64_t ino;		/* the next one that is looked at */
	unsigned files;		/* found since files were last offered */
	bool full;		/* no more are, before these are done */
	uint64_t written;	/* by users in all, when the pass began */
	uint64_t begun_ns;	/* the pass, or the mount */
	uint32_t reads;		/* expected of what lies together, see
				 * reads_expected */
};

/* Is there anything to look for? */
bool walk_is_due(const struct moves *moves);
/* Offers the next files to order. */
void walk_pick(struct moves *moves);

/* What is worth a move, and when it goes to the queue: see move.c. */
struct move_limits {
	int64_t age_seconds;
	unsigned free_percent, whole_percent;
	uint64_t again_ns, patience_ns, busy_ns;
	bool unneeded;		/* also while users are at work and need
				 * nothing */
};

/* What was written in a month of the life of the file system, in sectors. */
struct moves_month {
	uint64_t data, read, written;
};

struct moves {
	struct move_limits limits;
	/* move_store.c: */
	bool known;		/* what is stored has been read */
	bool storing, store_again;
	uint64_t stored_ns;
	int64_t begun_seconds;	/* of the file system, since 1970 */
	uint64_t tracks_before;	/* emptied before the mount */
	struct moves_month month[CLEAN_MONTHS];
	struct moves_month counted;	/* since the mount */
	struct fs *fs;
	struct freeblock_task *task;	/* NULL: nothing is under way */
	struct move *move[MOVE_SLOTS];
	struct clean clean;
	struct ordering order;
	struct noticing notice;
	struct walking walk;
	struct move_need need;
	uint64_t unfreed;	/* sectors that were brought together since the
				 * last checkpoint */
	bool closing;
	bool promoted;
	bool checkpointing;
	struct waiter waiter;	/* for the checkpoint */
	uint64_t sleep_ns, next_pick_ns;
	uint64_t order_ns;	/* cleaning has waited for order since; 0: it
				 * does not */
	uint64_t busy_since_ns;
	struct moves_status status;
};

/* Looks for tracks of the next group to be emptied, or of that where users need
 * them, and begins that; then clean_picked(), in move.c. */
void clean_pick(struct moves *moves, bool needed);
void clean_picked(struct moves *moves);

/* ---- move_store.c ---- */

/* Reads what is stored; moves->known follows. */
int moves_recall(struct moves *moves);
/* Stores it, in the background. */
void moves_store(struct moves *moves);
/* Adds what was written since the last call to the present month. */
void moves_count(struct moves *moves);

/* ---- move_steps.c ---- */

/* NULL: no memory, or there are as many as may be. */
struct move *move_new(struct moves *moves);
/* Goes through its steps, from MOVE_LOOK on. */
void move_start(struct move *move);
/* Time has passed. */
void move_run(struct move *move, uint64_t now_ns);
/* A transaction of it is over. */
void move_looked(struct move *move, int rc);
void move_placed(struct move *move, int rc);
void move_swapped(struct move *move, int rc);
/* Gives back all it has and frees it, at once or when what is under way is
 * over. */
void move_end(struct move *move);

extern const struct freeblock_ops move_ops;

/* ---- move_swap.c ---- */

void move_look(struct move *move);
void move_place(struct move *move);
/* Maps the next part of move->swapping. */
void move_swap(struct move *move);

#endif
