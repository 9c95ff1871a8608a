/*
 * move_internal.h - moves from inside: move.c (all of them together),
 * move_steps.c (the steps of one), move_swap.c (its transactions), move_clean.c
 * (which tracks are to be emptied), move_order.c (what is to be brought
 * together), move_notice.c (fragmented files that users read), move_walk.c
 * (what lies apart), move_store.c (what outlives a mount).
 *
 * Sectors of the data of a move are counted from its beginning: `at`.  Sources
 * and places cover the data in that order, without holes.
 */
#ifndef TRAX_MOVE_MOVE_INTERNAL_H
#define TRAX_MOVE_MOVE_INTERNAL_H

#include "base/units.h"
#include "fs/data/file_data.h"
#include "fs/data/read_events.h"
#include "move/move.h"
#include "sched/freeblock/freeblock.h"

#define MOVE_BLOCKS 512u	/* most blocks of a move: 2 MiB */
#define MOVE_RANGE_BLOCKS 256u	/* most blocks of a file in one range */
#define MOVE_RANGES 256u	/* most ranges of a move */
#define MOVE_SOURCES 768u	/* a range may begin and end inside a block
				 * that lies in two extents */
#define MOVE_PLACES 512u	/* most places of a move */
#define MOVE_TRACKS 8u		/* most tracks emptied by a move */
#define MOVE_CLAIMS 256u	/* most free parts of these tracks */
#define MOVE_MOST 8u		/* moves that have data in memory at a time */
#define ORDER_EXTENTS 64u	/* extents of the room of a batch */
#define ORDER_WANTED 4096u	/* files that wait to be brought together */
#define MOVE_SLOTS 24u		/* moves at a time, with those that drain */

/* A month, for which reads are expected and writes are counted: 30 days. */
#define MOVE_MONTH_NS (30 * NS_PER_DAY)

/* Blocks of a file that move together. */
struct move_range {
	uint64_t ino, first;
	uint32_t blocks;	/* its blocks; 0: it stays where it is */
	uint32_t at;
	uint32_t source, sources;	/* index of its first source, and their
					 * number */
	uint64_t given_at;	/* sectors of the batch's room that are before
				 * its own */
};

struct move_source {		/* a part of a range, at its present place */
	uint64_t sector;
	uint32_t n, at;
	uint32_t got;		/* sectors of it that have been read */
	bool failed;		/* it could not be read */
	bool left;		/* no file is mapped to it any more */
};

struct move_place {		/* the new place of a part of a range */
	struct alloc_extent extent;
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
	uint32_t sectors;	/* sectors of its data */
	uint32_t left;		/* sectors that are still to be read or
				 * compared */
	uint8_t *data;
	void *memory;		/* allocated memory; `data` is aligned within
				 * it */
	uint32_t sum[MOVE_BLOCKS];	/* checksum of each block of the data */
	struct move_part *part;
	unsigned parts, writing;
	/* Of the range that is being mapped. */
	unsigned swapping;
	uint32_t swapped;	/* its blocks that are mapped already */
	uint32_t step_blocks;	/* blocks that the transaction maps */
	struct file *file;
	struct excl_lock excl;
	/* The tracks that it empties: what was free of them. */
	struct range track[MOVE_TRACKS], claim[MOVE_CLAIMS];
	unsigned tracks, claims;
	uint32_t emptied;	/* sectors in use on them */
	unsigned filled;	/* free tracks that it fills for that */
	uint64_t reserved;	/* sectors, see move_claim */
	bool is_order;
	/* places for all of it, until it is placed */
	struct alloc_extent given[ORDER_EXTENTS];
	unsigned given_n;
	uint64_t moved;		/* sectors */
};

/* ---- move_clean.c ---- */

/* Tracks that one search brings, the emptiest ones; tracks that were tried and
 * are left alone for a while. */
#define CLEAN_CANDIDATES 8u
#define CLEAN_TRIED 128u

struct clean_track {
	struct range track;
	uint32_t free, parts;	/* free sectors, and their runs */
	double gain;
};

struct clean {
	uint32_t group;		/* in which tracks are looked for */
	uint32_t barren;	/* groups in a row without any */
	bool ranked;		/* `candidate` is that of the group */
	bool picking;
	struct clean_track candidate[CLEAN_CANDIDATES];
	unsigned candidates, looked;
	uint64_t holes;		/* free sectors on used tracks of the group */
	uint64_t open;		/* sector behind what moves have put on a free
				 * track; 0: none */
	/* the best tracks so far, the best one first */
	struct clean_track best[MOVE_TRACKS];
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
	struct order_target { uint64_t ino; uint32_t reads; }
		wanted[ORDER_WANTED];	/* a ring */
	unsigned wanted_first, wanted_n;
	bool paused;
	bool looking;		/* a transaction is under way */
	bool looked;		/* it has found all of the batch */
	/* The file that is looked at (0: none), how often it will be read, and
	 * the sector to go on from. */
	struct order_target target;
	uint64_t at;
	struct order_mark file_start;
	/* The batch. */
	bool full;		/* no more goes into it */
	struct move_range range[MOVE_RANGES];
	/* number of the first ranges that moves have */
	unsigned ranges, handed;
	uint64_t sectors, handed_sectors;
	uint64_t goal, track;	/* sector; sectors of a track there */
	uint64_t end;		/* where the last extent ends */
	uint32_t reads;		/* reads of all of it that are expected in a
				 * month */
	unsigned runs, runs_then; /* fragments now, and where it goes */
	unsigned cost;		/* of going from fragment to fragment, now, in
				 * parts of a turn */
	unsigned file_break;	/* the part of `cost` for going to the file that
				 * is looked at */
	unsigned cut;		/* additional cost of going from the batch to
				 * the next file when the batch moves */
	struct alloc_extent extent[ORDER_EXTENTS]; /* where it goes */
	unsigned extents;	/* 0: there is no room yet */
	unsigned under_way;	/* moves */
	uint64_t moved;		/* sectors of the batch */
	struct order_status status;
};

/* A file of which `reads` reads are expected in a month.  -EAGAIN. */
int order_want(struct moves *moves, uint64_t ino, uint32_t reads);
/* Can order_pick go on? */
bool order_has_work(const struct moves *moves);
/* Looks for the content of the next batch, or begins a move of it; false: there
 * is nothing more to do for now. */
bool order_pick(struct moves *moves);
/* A move of a batch has ended. */
void order_moved(struct move *move);
/* Cuts sectors [from, from + n) out of the room that the extents are, as far as
 * it goes.  Returns the number of extents of that. */
unsigned room_cut(const struct alloc_extent *extent, unsigned extents,
		    uint64_t from, uint64_t n, struct alloc_extent *cut);
/* Gives back the room that no move has; no transaction may be under way. */
void order_close(struct moves *moves);

/* ---- move_notice.c ---- */

/* Files that are watched.  With more files read at a time the oldest is
 * forgotten and noticed later. */
#define NOTICE_FILES 64u

/* A file that is being read in order, or was. */
struct notice_file {
	uint64_t ino;		/* 0: none */
	uint64_t next;		/* sector behind what was read last */
	uint64_t sectors;	/* read so far, in order */
	uint64_t end;		/* end of the last read on the disk */
	unsigned breaks;	/* fragments begun meanwhile */
	uint32_t reads;		/* times that all of it was read */
	uint64_t begun_ns, used_ns;
};

struct noticing {
	struct read_watch watch;
	struct notice_file file[NOTICE_FILES];
};

/* Begins to notice which files are read whole though they are fragmented. */
void notice_begin(struct moves *moves);
void notice_end(struct moves *moves);

/* ---- move_walk.c ---- */

struct walking {
	bool active;		/* a pass is under way */
	bool looking;		/* a transaction is */
	uint64_t ino;		/* the next one that is looked at */
	unsigned files;		/* files found since files were last given to
				 * order */
	bool full;		/* order takes no more files before these are
				 * done */
	uint64_t written;	/* by users in all, when the pass began */
	uint64_t begun_ns;	/* the pass, or the mount */
	uint32_t reads;		/* expected of what lies together, see
				 * reads_expected */
};

/* Is there anything to look for? */
bool walk_is_due(const struct moves *moves);
/* Gives the next files to order. */
void walk_pick(struct moves *moves);

/* What is worth a move, and when it goes to the queue: see move.c. */
struct move_limits {
	int64_t age_seconds;
	unsigned free_percent, whole_percent;
	uint64_t again_ns, patience_ns;
	bool beside_users;	/* tracks are emptied also while users are at
				 * work */
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
	int64_t begun_seconds;	/* first mount of the file system, in seconds
				 * since 1970 */
	uint64_t tracks_before;	/* tracks emptied before the mount */
	struct moves_month month[CLEAN_MONTHS];
	struct moves_month counted;	/* totals since the mount */
	struct fs *fs;
	struct freeblock_task *task;	/* NULL: nothing is under way */
	struct move *move[MOVE_SLOTS];
	struct clean clean;
	struct ordering order;
	struct noticing notice;
	struct walking walk;
	uint64_t unfreed;	/* sectors that were brought together since the
				 * last checkpoint */
	bool closing;
	bool promoted;
	bool checkpointing;
	struct waiter waiter;	/* for the checkpoint */
	/* Checkpoints that may still bring leaves together, since moves have
	 * changed some; when that was asked for last, and how many leaves had
	 * been brought together before. */
	unsigned gathers;
	uint64_t gathered_ns, gathered;
	uint64_t next_pick_ns;
	uint64_t order_ns;	/* cleaning has waited for order since; 0: it
				 * does not */
	uint64_t busy_since_ns;
	struct moves_status status;
};

/* Looks for tracks of the next group to be emptied, and begins to empty them;
 * then calls clean_picked() in move.c. */
void clean_pick(struct moves *moves);
void clean_picked(struct moves *moves);

/* ---- move_store.c ---- */

/* Reads the stored item; then moves->known is set. */
int moves_recall(struct moves *moves);
/* Stores the item, in the background. */
void moves_store(struct moves *moves);
/* Adds what was written since the last call to the present month. */
void moves_count(struct moves *moves);

/* ---- move_steps.c ---- */

/* Makes a move; NULL: no memory, or there are MOVE_SLOTS already. */
struct move *move_new(struct moves *moves);
/* Starts a move with its first step, MOVE_LOOK. */
void move_start(struct move *move);
/* Called in each turn of the loop. */
void move_run(struct move *move, uint64_t now_ns);
/* A transaction of the move has ended. */
void move_looked(struct move *move, int rc);
void move_placed(struct move *move, int rc);
void move_swapped(struct move *move, int rc);
/* Gives back everything that the move has and frees it, at once or when its
 * requests have ended. */
void move_end(struct move *move);

extern const struct freeblock_ops move_ops;

/* ---- move_swap.c ---- */

void move_look(struct move *move);
void move_place(struct move *move);
/* Maps the next part of move->swapping. */
void move_swap(struct move *move);

#endif
