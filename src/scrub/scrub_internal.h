/*
 * scrub_internal.h - the scrub from inside: scrub.c (passes, what is stored),
 * scrub_bands.c (the disk in bands, windows of each), scrub_load.c (a window:
 * owners and checksums), scrub_verify.c (what was read), scrub_suspect.c (what
 * may be damaged), scrub_replicas.c (copies of file blocks), scrub_fixed.c
 * (superblocks, roots, geometry), scrub_recheck.c (noted damage, once more).
 */
#ifndef TRAX_SCRUB_SCRUB_INTERNAL_H
#define TRAX_SCRUB_SCRUB_INTERNAL_H

#include "fs/data/file_data.h"
#include "fs/data/heal.h"
#include "sched/freeblock/freeblock.h"
#include "scrub/scrub.h"

/* Most runs, chunks and checksums of a window: 32 MiB of data, 150 KiB of
 * memory. */
#define SCRUB_RUNS 512u
#define SCRUB_CHUNKS 512u
#define SCRUB_SUMS (SCRUB_CHUNKS * CHUNK_BLOCKS)
#define SCRUB_BANDS 512u	/* at most, a power of two; they fit an item */
#define SCRUB_PARTS 64u		/* chunks that may be held in part */
/* Suspects that are remembered; of more, the readers find the damage. */
#define SCRUB_SUSPECTS 4096u
#define CHUNK_SECTORS (CHUNK_BLOCKS * BLOCK_SECTORS)

/* A run of sectors with one owner. */
struct scrub_extent {
	uint64_t sector, n;
	uint64_t ino, off;	/* of data and replicas; off in sectors */
	uint32_t chunk;		/* of data and replicas: index of the first of
				   its chunks in the window */
	uint8_t kind;		/* OWNER_* */
};

/* Where a chunk of the file would begin if all of it were in a row. */
static inline uint64_t run_place(const struct scrub_extent *run, uint64_t chunk)
{
	return run->sector - run->off + chunk * CHUNK_SECTORS;
}

/* The checksums of 64 KiB of a file. */
struct scrub_sums {
	uint16_t mask;		/* blocks that have one */
	const uint32_t *sum;	/* in its window: one for each bit of mask */
};

/* A part of a band that is being loaded or read: the owners that begin in
 * [from, end). */
struct scrub_window {
	uint64_t from, end;	/* sectors */
	uint64_t limit;		/* first sector of the next band */
	bool last;		/* it is the last window of its band */
	struct scrub_extent *run;	/* by sector */
	uint32_t runs;
	struct scrub_sums *chunk;
	uint32_t chunks;
	uint32_t *sum;
	uint32_t sums;
	uint64_t sectors;	/* sum of its runs */
	uint64_t left;		/* about how many of these are still wanted */
	bool arrived;		/* sectors were read since `left` was counted */
	struct scrub_window *next;	/* the next window of its band */
	size_t bytes;		/* memory of it and of what it points to */
};

/*
 * A band is a part of the disk with a pass of its own, so that there is
 * something to read near wherever the head goes.  Cursors are sectors;
 * UINT64_MAX: all of it.
 */
struct scrub_band {
	uint64_t cursor;	/* all owners before it have been read */
	uint64_t loaded;	/* owners from the cursor to here are in
				   windows */
	struct scrub_window *first;	/* windows of the band, in order */
	unsigned windows;
};

/* A chunk of a file, as it lies in the file's own place or in a copy. */
struct scrub_spot {
	uint64_t ino, chunk;
	bool copy;		/* it is a replica */
	uint64_t place;		/* of a replica: run_place() */
	struct scrub_window *window;	/* the window with which it was
					 * loaded */
};

/* A chunk of which only some sectors have been read. */
struct scrub_part {
	struct scrub_spot at;		/* ino 0: free */
	const struct scrub_sums *sums;
	uint64_t have[2];	/* a bit for each sector that has been read */
	uint64_t used;		/* value of part_clock at its last use */
	uint8_t *data;
};

/* A place that may be damaged: blocks of a file, or (ino 0) a node or a fixed
 * structure. */
struct scrub_suspect {
	uint64_t ino, chunk;
	uint64_t sector;	/* of a node; of a replica: run_place() */
	uint16_t blocks;
	uint8_t tries;
	bool copy, unreadable;
	bool fixed;
	uint32_t sectors;	/* fixed: read if no structure begins there;
				 * 0: then nothing is read */
};

/* Damage that was noted is looked at again: see scrub_recheck.c. */
struct scrub_recheck {
	bool active;
	bool busy;		/* a transaction is under way */
	bool looking;		/* the place of `item` is a suspect */
	bool found;		/* `item` was found by the transaction */
	bool gone;		/* its file does not exist any more */
	uint64_t next, end;	/* number of the next note; of the first that
				 * is not looked at, 0: not known */
	uint64_t number;
	struct error_item item;
};

struct scrub {
	struct fs *fs;
	/* The next step once the window is loaded, and once a suspect place
	 * is settled. */
	void (*window_loaded)(struct scrub *scrub, int rc);
	void (*suspect_over)(struct scrub *scrub);
	int64_t period_seconds;	/* 0: only when it is started */
	struct freeblock_task *task;

	enum scrub_state state;
	bool known;		/* the stored state has been read */
	bool start_wanted;
	struct scrub_band *band;
	unsigned bands;
	uint64_t band_sectors;
	uint64_t done_sectors;	/* sectors read by windows that have ended */
	uint64_t passes, errors_before, looked_again;
	int64_t begun_seconds, ended_seconds;
	uint64_t run_ns, run_since_ns, run_sectors;
	uint64_t retry_ns;	/* no try before this time, after a lack of
				 * memory */

	bool storing, store_again;
	bool moved;		/* a cursor has moved since the last store */
	uint64_t stored_ns;

	bool loading;
	unsigned turn;		/* the band that is or was loaded last */
	uint64_t load_begun_ns;
	uint64_t load_ns;	/* when the next window is loaded */
	struct scrub_window
		*window;	/* the window that is being loaded, with room
				 * for the most */
	size_t windows_bytes;	/* memory of the windows that are read */
	/* A region of replicas that is loaded in part; end 0: none. */
	uint64_t region_from, region_end;
	bool owners_loaded;
	uint32_t loaded;	/* runs whose checksums are loaded */
	uint32_t loaded_chunks;	/* chunks of the next run that are loaded */

	struct scrub_part part[SCRUB_PARTS];
	uint64_t part_clock;

	struct scrub_suspect suspect[SCRUB_SUSPECTS];
	unsigned suspects;
	bool suspecting;	/* the first suspect is being looked at */
	uint16_t bad_copies;	/* its blocks whose replicas are bad */
	struct file *file;	/* its file */
	struct shared_lock lock;
	struct read_wait rwait;
	struct waiter waiter;	/* for a checkpoint: nodes */
	struct queue_request node_req;
	struct iovec node_iov;
	uint8_t *node;
	struct key node_from;	/* where a bad node is looked for next */
	uint8_t *fixed;		/* buffer, while the first suspect is fixed */
	size_t fixed_bytes;
	uint64_t fixed_version;
	struct scrub_recheck recheck;
	bool overflow;		/* more suspects than there is room for */
	bool closing;
};

/* ---- scrub_bands.c ---- */

/* -ENOMEM. */
int scrub_bands_open(struct scrub *scrub);
void scrub_bands_close(struct scrub *scrub);

/* Sets all cursors to the beginning. */
void scrub_bands_rewind(struct scrub *scrub);

/* Sets the cursors from a stored item, which had `bands` bands. */
void scrub_bands_recall(struct scrub *scrub, const le32 *cursor,
			unsigned bands);
void scrub_bands_put(const struct scrub *scrub, le32 *cursor);

/* Has all that is wanted of a pass been read? */
bool scrub_bands_done(const struct scrub *scrub);
/* Frees windows that have ended and loads others.  Returns when it must be
 * called again. */
uint64_t scrub_bands_run(struct scrub *scrub);
/* Sectors read so far in the windows that have not ended. */
uint64_t scrub_bands_read_sectors(const struct scrub *scrub);

/* ---- scrub_load.c ---- */

/* Fills scrub->window from `from` to `limit`; then scrub_bands_loaded(). */
void scrub_load_start(struct scrub *scrub);
void scrub_bands_loaded(struct scrub *scrub, int rc);

/* Number of chunks of the file that a run overlaps. */
uint32_t scrub_load_chunks(const struct scrub_extent *run);

/* ---- scrub_verify.c ---- */

extern const struct freeblock_ops scrub_verify_ops;

/* Does a node say of itself that it is the one that should be there, and its
 * parent, if that is in memory, agree? */
bool scrub_verify_node(const struct scrub *scrub, uint64_t sector,
		       const void *data);

/* A window ends: makes suspects of the chunks that are held in part. */
void scrub_verify_rest(struct scrub *scrub, const struct scrub_window *window);

/* ---- scrub_replicas.c ---- */

/* Adds the replicas in a region to the window, from its end on.  -ENOSPC: the
 * window is full; -EINPROGRESS: the rest needs another transaction. */
int scrub_replicas_load(struct fs_txn *txn, struct scrub *scrub,
			uint64_t sector, uint64_t end);

/* Does the original of a run of replicas still name all of them? */
int scrub_replicas_are_named(struct fs_txn *txn, const struct scrub_extent *run,
		     bool *named);

/* Looks at the first suspect, which is a replica. */
void scrub_replicas_look(struct scrub *scrub);

/* ---- scrub_fixed.c ---- */

/* These sectors, which never move, have been read. */
void scrub_fixed_passed(struct scrub *scrub, uint64_t sector, uint64_t n);

/* Looks at the first suspect, which is a fixed structure. */
void scrub_fixed_look(struct scrub *scrub);

/* ---- scrub_node.c ---- */

/* Looks at the first suspect, which is a copy of a node. */
void scrub_node_look(struct scrub *scrub);

/* ---- scrub_recheck.c ---- */

/* Is there a step to take, and none under way? */
bool scrub_recheck_is_due(const struct scrub *scrub);
/* Takes it. */
void scrub_recheck_run(struct scrub *scrub);

/* ---- scrub_suspect.c ---- */

/* False: there is no room for one more. */
bool scrub_suspect_put(struct scrub *scrub,
		       const struct scrub_suspect *suspect);
void scrub_suspect_fixed(struct scrub *scrub, uint64_t sector);
void scrub_suspect_file(struct scrub *scrub, uint64_t ino, uint64_t chunk,
		  uint16_t blocks);
void scrub_suspect_copy(struct scrub *scrub, uint64_t ino, uint64_t chunk,
		  uint64_t place, uint16_t blocks, bool unreadable);
/* Takes the first suspect from the list. */
void scrub_suspect_over(struct scrub *scrub);
void scrub_suspect_node(struct scrub *scrub, uint64_t sector);
/* Looks at the next suspect; true: that was done at once, there may be another.
 */
bool scrub_suspect_next(struct scrub *scrub);
/* Called when the shared lock of the suspect's file was granted. */
void scrub_suspect_again(struct shared_lock *lock);

#endif
