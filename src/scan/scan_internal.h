/*
 * scan_internal.h - a file scan from inside: file_scan.c (scans, files, what
 * changes), scan_load.c (extents and checksums of the files), scan_arrive.c
 * (what has been read), scan_give.c (records of files), scan_queue.c (records
 * that were not taken yet), scan_slow.c (what a user's read has to find),
 * scan_free.c (free space instead of files).
 *
 * A file's way: added -> begun (its size is known, a change makes it void) ->
 * its strands are loaded, run by run -> all blocks of all runs have been given
 * -> SCAN_WHOLE.
 */
#ifndef TRAX_SCAN_SCAN_INTERNAL_H
#define TRAX_SCAN_SCAN_INTERNAL_H

#include "fs/data/file_data.h"
#include "fs/data/file_sync.h"
#include "fs/op/content_watch.h"
#include "scan/file_scan.h"
#include "sched/freeblock/freeblock.h"
#include "sched/queue/interval_tree.h"

/* Times that a file is begun anew that changes before a record of it was given;
 * then it counts as changed. */
#define SCAN_TRIES 3u

/* Blocks that one transaction loads at most: 4 MiB, 16 leaves of checksums. */
#define SCAN_LOAD_BLOCKS 1024u
/* The same for a scan in file order, which keeps the blocks in memory until
 * they are given. */
#define SCAN_LOAD_ORDER_BLOCKS 256u

/* Consecutive sectors of a file on disk, within one window of checksums.  All
 * blocks that it meets have a checksum.  A block may lie in several runs: the
 * first of them owns it. */
struct scan_run {
	struct interval at;	/* sectors on disk */
	struct list link;	/* in file->runs, in file order by offset; then
				   in file->over */
	struct scan_file *file;
	uint64_t off;		/* sectors: where it begins in the file */
	uint64_t first;		/* its first block */
	unsigned blocks;	/* blocks that it overlaps,
				 * TRAX_CSUM_WINDOW_BLOCKS at most */
	unsigned next;		/* file order: the first block that is not given
				 * yet */
	uint64_t own;		/* a bit for each block that it has to give */
	uint64_t done;		/* a bit for each block that was given */
	uint64_t slow;		/* a bit for each block that is read like a
				 * user's read */
	uint64_t held;		/* file order: verified and not given yet */
	uint8_t *data;		/* file order: of all its blocks */
	size_t bytes;		/* memory of it */
	uint32_t sum[];
};

/* A block of which only some sectors have been read. */
struct scan_part {
	struct list link;	/* in scan->parts, oldest first */
	struct scan_file *file;
	uint64_t block;
	uint8_t have;		/* a bit for each sector */
	struct scan_run *run[BLOCK_SECTORS];	/* for each sector the run that
						 * it belongs to */
	uint8_t data[BLOCK_BYTES];
};

/* Blocks [at, end) of a file whose extents are not loaded yet. */
struct scan_strand {
	struct list link;	/* in scan->strands */
	struct scan_file *file;
	uint64_t at, end;
};

struct scan_file {
	struct file_scan *scan;
	struct list link;	/* in scan->files */
	uint64_t ino;
	uint64_t size;		/* bytes, when it was begun */
	unsigned strands;	/* strands that are not loaded */
	unsigned slow;		/* blocks that wait for a user's read */
	unsigned tries;		/* times that it was begun anew */
	bool begun, sent;	/* a record of it was made */
	int failed;		/* why it cannot be read */
	struct list runs;
	struct list over;	/* runs of which all has been given */
	struct list touched;	/* in scan->touched */
};

/* A block, or (run NULL) an inline file, that is read like a user would. */
struct scan_slow {
	struct list link;
	struct scan_file *file;
	struct scan_run *run;
	unsigned block;		/* of the run */
};

/* Extents and checksums on their way into memory. */
struct scan_load {
	bool busy;
	bool synced;		/* its data has been written back for it */
	struct shared_lock lock;
	struct sync sync;
	struct file *file;
	struct scan_strand *strand;	/* NULL: it is void meanwhile */
	uint64_t at, end;	/* blocks */
	uint64_t sector;	/* of the file: looked up so far */
	bool over;
	struct list runs;	/* found */
	uint64_t window;	/* window that `csums` belongs to; UINT64_MAX:
				 * none */
	struct csum_window csums;
	uint64_t begun_ns;
};

/* A record that was not taken yet. */
struct scan_queued {
	struct list link;
	struct scan_record head;
	uint8_t data[];
};

struct file_scan {
	struct file_scans *scans;
	struct list link;	/* in scans->all */
	struct file_scan_options options;
	struct freeblock_task *task;
	uint64_t id;
	bool sealed, paused, ended, over_said;
	bool failed;		/* memory was short for a record */
	unsigned promoted;
	struct hashmap *by_ino;	/* struct scan_file */
	struct list files, strands, parts, slow;
	struct list touched;	/* files to be looked at by scan_sweep */
	struct interval *runs;	/* by sector */
	uint64_t runs_made;
	unsigned parts_held;
	size_t bytes;		/* memory of files, strands, runs and parts */
	struct list queue;	/* struct scan_queued */
	size_t queue_bytes;
	bool blocked;		/* the queue is full */
	struct scan_load load;
	struct {
		uint64_t at;		/* sector from which free runs are
					 * wanted next */
		uint32_t passed;	/* groups before this one have been
					 * given */
		bool loading;		/* what is free in its group */
		struct waiter loaded;
	} free;			/* of a scan of the free space */
	uint64_t load_ns;	/* no load before this time while much is
				 * wanted */
	uint64_t retry_ns;	/* no load before this time, after a failure */
	struct {
		bool busy;
		struct scan_slow *at;	/* NULL: it is void meanwhile */
		struct fs_op op;
		uint8_t data[BLOCK_BYTES];
	} slow_read;
	uint64_t begun_ns, paused_ns, paused_since_ns;
	uint64_t whole_files, changed_files, given_bytes;
};

struct file_scans {
	struct fs *fs;
	struct content_watch watch;
	struct list all;
	uint64_t made;		/* scans so far */
};

/* ---- file_scan.c ---- */

/* Frees runs that are over, and removes files that are complete or have failed.
 * Called at the end of each call from outside. */
void scan_sweep(struct file_scan *scan);

/* ---- scan_load.c ---- */

/* Loads the next strand if there is room; returns when to call it again. */
uint64_t scan_load_next(struct file_scan *scan);
void scan_load_drop(struct file_scan *scan, const struct scan_file *file);

/* ---- scan_arrive.c ---- */

extern const struct freeblock_ops scan_arrive_ops;

/* Drops the parts of a file. */
void scan_arrive_drop(struct file_scan *scan, const struct scan_file *file);

/* ---- scan_queue.c ---- */

/* Makes a record.  -ENOMEM. */
int scan_give(struct file_scan *scan, const struct scan_record *head,
	      const void *data);
/* Is there room for more records? */
bool scan_give_room(const struct file_scan *scan);
/* Are there so many records that data that arrives has to be read again
 * later? */
bool scan_give_full(const struct file_scan *scan);
/* Puts whole records into a buffer; returns their bytes. */
size_t scan_queue_take(struct file_scan *scan, void *buffer, size_t room);

/* ---- scan_give.c ---- */

/* Gives verified blocks [i, i + n) of a run that it owns, or says that they are
 * unreadable (data NULL), now or when it is their turn.  -ENOMEM. */
int scan_give_blocks(struct scan_run *run, unsigned i, unsigned n,
		     const uint8_t *data);
/* These blocks of a run need nothing more. */
void scan_run_done(struct scan_run *run, unsigned i, unsigned n);
/* Something of the file may be over, or it has failed (rc). */
void scan_file_touch(struct scan_file *file, int rc);

/* ---- scan_slow.c ---- */

/* Has a block, or (run NULL) an inline file, read like a user would; without
 * memory for that the file fails. */
void scan_slow_add(struct scan_file *file, struct scan_run *run,
		   unsigned block);
/* Begins with the next. */
void scan_slow_next(struct file_scan *scan);
void scan_slow_drop(struct file_scan *scan, const struct scan_file *file);

/* ---- scan_free.c ---- */

/* A scan of the free space begins. */
void scan_free_begin(struct file_scan *scan);
/* Wants the next free runs if there is room; returns when to call it
 * again. */
uint64_t scan_free_next(struct file_scan *scan);
/* Has everything been wanted? */
bool scan_free_all(const struct file_scan *scan);
/* Free sectors have been read; data NULL: they are unreadable. */
void scan_free_arrive(struct file_scan *scan, uint64_t sector, uint32_t sectors,
		      const uint8_t *data);

#endif
