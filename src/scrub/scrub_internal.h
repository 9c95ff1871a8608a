/*
 * scrub_internal.h - the scrub from inside: scrub.c (passes, what is stored),
 * scrub_bands.c (the disk in bands, windows of each), scrub_load.c (a window:
 * owners and checksums), scrub_verify.c (what was read), scrub_suspect.c (what
 * may be damaged), scrub_replicas.c (copies of file blocks), scrub_fixed.c
 * (superblocks, roots, geometry).
 */
#ifndef TRAX_SCRUB_SCRUB_INTERNAL_H
#define TRAX_SCRUB_SCRUB_INTERNAL_H

#include "fs/data/file_data.h"
#include "fs/data/heal.h"
#include "sched/freeblock/freeblock.h"
#include "scrub/scrub.h"

/* What a window may have: 32 MiB, 150 KiB of memory at most. */
#define SCRUB_RUNS 512u
#define SCRUB_PIECES 512u
#define SCRUB_SUMS (SCRUB_PIECES * CHUNK_BLOCKS)
#define SCRUB_BANDS 512u	/* at most, a power of two; they fit an item */
#define SCRUB_PARTS 64u		/* pieces that came in part */
#define SCRUB_SUSPECTS 4096u
#define PIECE_SECTORS (CHUNK_BLOCKS * BLOCK_SECTORS)

/* Some allocated sectors, and what they hold. */
struct scrub_extent {
	uint64_t sector, n;
	uint64_t ino, off;	/* data, copies: sectors in the file */
	uint32_t piece;		/* likewise: first of its pieces */
	uint8_t kind;		/* OWNER_* */
};

/* Where a piece of the file would begin if all of it were in a row. */
static inline uint64_t run_place(const struct scrub_extent *run, uint64_t piece)
{
	return run->sector - run->off + piece * PIECE_SECTORS;
}

/* Checksums of 64 KiB of a file. */
struct scrub_sums {
	uint16_t mask;		/* blocks that have one */
	const uint32_t *sum;	/* in its window: one for each bit of mask */
};

/* A part of a band that is being loaded or read: what begins in
 * [from, end). */
struct scrub_window {
	uint64_t from, end;	/* sectors */
	uint64_t limit;		/* what begins here is another band's */
	bool last;		/* of its band */
	struct scrub_extent *run;	/* by sector */
	uint32_t runs;
	struct scrub_sums *piece;
	uint32_t pieces;
	uint32_t *sum;
	uint32_t sums;
	uint64_t sectors;	/* of its runs */
	uint64_t left;		/* of them, wanted, about */
	bool arrived;		/* something, since it was asked what is left */
	struct scrub_window *next;	/* of its band */
	size_t bytes;		/* of memory, with what it points to */
};

/*
 * A band is a part of the disk with a pass of its own, so that there is
 * something to read near wherever the head goes.  Cursors are sectors;
 * UINT64_MAX: all of it.
 */
struct scrub_band {
	uint64_t cursor;	/* what is before has been read */
	uint64_t loaded;	/* what is before is in windows, too */
	struct scrub_window *first;	/* in order */
	unsigned windows;
};

/* A piece of a file, as it lies in the file's own place or in a copy. */
struct scrub_spot {
	uint64_t ino, piece;
	bool copy;
	uint64_t place;		/* a copy's: run_place() */
	struct scrub_window *window;	/* it was loaded with */
};

/* A piece of which some sectors have come. */
struct scrub_part {
	struct scrub_spot at;		/* ino 0: free */
	const struct scrub_sums *sums;
	uint64_t have[2];	/* bits of its sectors */
	uint64_t used;
	uint8_t *data;
};

/* Of a file, or (ino 0) a node. */
struct scrub_suspect {
	uint64_t ino, piece;
	uint64_t sector;	/* of a node; of a copy, run_place() */
	uint16_t blocks;
	uint8_t tries;
	bool copy, unreadable;
	bool fixed;
};

struct scrub {
	struct fs *fs;
	/* The next step once the window is loaded, and once a suspect place
	 * is settled. */
	void (*window_loaded)(struct scrub *scrub, int rc);
	void (*suspect_over)(struct scrub *scrub);
	int64_t period_seconds;	/* 0: only when it is started */
	struct freeblock_task *task;
	uint32_t unit;

	enum scrub_state state;
	bool known;		/* what is stored has been read */
	bool start_wanted;
	struct scrub_band *band;
	unsigned bands;
	uint64_t band_sectors;
	uint64_t done_sectors;	/* by the windows that are over */
	uint64_t passes, errors_before, looked_again;
	int64_t begun_seconds, ended_seconds;
	uint64_t run_ns, run_since_ns, run_sectors;
	uint64_t retry_ns;	/* memory was short: not before */

	bool storing, store_again;
	bool moved;		/* a cursor has, and it is not stored */
	uint64_t stored_ns;

	bool loading;
	unsigned turn;		/* the band that was loaded last, or is */
	uint64_t load_begun_ns;
	uint64_t load_ns;	/* the next one is loaded then */
	struct scrub_window
		*window;	/* is loaded, with room for all there may be */
	size_t windows_bytes;	/* of those that are read */
	uint64_t region_from, region_end; /* of copies, half loaded; end 0 */
	bool owners_loaded;
	uint32_t loaded;	/* runs whose checksums are there ... */
	uint32_t loaded_pieces;	/* ... and of the next one */

	struct scrub_part part[SCRUB_PARTS];
	uint64_t part_clock;

	struct scrub_suspect suspect[SCRUB_SUSPECTS];
	unsigned suspects;
	bool suspecting;	/* the first of them */
	uint16_t bad_copies;	/* blocks of it */
	struct file *file;	/* its */
	struct shared_lock lock;
	struct read_wait rwait;
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

/* ---- scrub_bands.c ---- */

/* -ENOMEM. */
int scrub_bands_open(struct scrub *scrub);
void scrub_bands_close(struct scrub *scrub);

/* All cursors to the beginning. */
void scrub_bands_rewind(struct scrub *scrub);

/* Where the cursors were when there were so many bands, by the item. */
void scrub_bands_recall(struct scrub *scrub, const le32 *cursor,
			unsigned bands);
void scrub_bands_put(const struct scrub *scrub, le32 *cursor);

/* Has all that is wanted of a pass been read? */
bool scrub_bands_done(const struct scrub *scrub);
/* The windows that are over go, others are loaded; when to be called again. */
uint64_t scrub_bands_run(struct scrub *scrub);
/* Read of the windows that are not over. */
uint64_t scrub_bands_read_sectors(const struct scrub *scrub);

/* ---- scrub_load.c ---- */

/* Fills scrub->window from `from` to `limit`; then scrub_bands_loaded(). */
void scrub_load_start(struct scrub *scrub);
void scrub_bands_loaded(struct scrub *scrub, int rc);

/* How many pieces of a file a run meets. */
uint32_t scrub_load_pieces(const struct scrub_extent *run);

/* ---- scrub_verify.c ---- */

extern const struct freeblock_ops scrub_verify_ops;

/* Does a node say of itself that it is the one that should be there? */
bool scrub_verify_node(const struct scrub *scrub, uint64_t sector,
		       const void *data);

/* What came in part only, when a window is over. */
void scrub_verify_rest(struct scrub *scrub, const struct scrub_window *window);

/* ---- scrub_replicas.c ---- */

/* Adds what was copied to a region, from the window's end on.  -ENOSPC: the
 * window is full; -EINPROGRESS: in another transaction. */
int scrub_replicas_load(struct fs_txn *txn, struct scrub *scrub,
			uint64_t sector, uint64_t end);

/* Does the original of a run of copies still name all of it? */
int scrub_replicas_are_named(struct fs_txn *txn, const struct scrub_extent *run,
		     bool *named);

/* The first of the suspects is a copy. */
void scrub_replicas_look(struct scrub *scrub);

/* ---- scrub_fixed.c ---- */

/* These sectors, which never move, have been read. */
void scrub_fixed_passed(struct scrub *scrub, uint64_t sector, uint64_t n);

/* The first of the suspects is such. */
void scrub_fixed_look(struct scrub *scrub);

/* ---- scrub_suspect.c ---- */

void scrub_suspect_fixed(struct scrub *scrub, uint64_t sector);
void scrub_suspect_file(struct scrub *scrub, uint64_t ino, uint64_t piece,
		  uint16_t blocks);
void scrub_suspect_copy(struct scrub *scrub, uint64_t ino, uint64_t piece,
		  uint64_t place, uint16_t blocks, bool unreadable);
/* The first of them is none any more. */
void scrub_suspect_over(struct scrub *scrub);
void scrub_suspect_node(struct scrub *scrub, uint64_t sector);
/* Looks at the next; true: it was over at once, there may be another. */
bool scrub_suspect_next(struct scrub *scrub);
/* scrub->gated.again. */
void scrub_suspect_again(struct shared_lock *lock);

#endif
