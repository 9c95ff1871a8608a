/*
 * file_data.h - file data in memory and on its way: shared by the data half of
 * src/fs (dirty_block.c, cache_chunk.c, small_readahead.c, file.c, bmap.c,
 * read.c, write.c, writeback.c, destage.c, trunc.c, copy.c).
 *
 * Two kinds of memory.  A *block* (4 KiB, dirty pool) is content that the disk
 * does not hold at its place: dirty (newer than the tree), in a job (being
 * written), or held (the tree's content, durable or about to be in the log, not
 * home).  A *piece* (64 KiB, track pool) caches what the tree says is on disk,
 * verified, block by block; it is never newer.  Readers take blocks first.
 *
 * `data` and `held_data` of a block and the `data` of a job own a reference to
 * their buffer each (cache/pool.h), and give it back whatever the others do.
 *
 * Units: `first`, `n` of blocks unless the name says sectors; offsets in a
 * file are bytes, `off` of an extent sectors.
 */
#ifndef TRAX_DATA_FILE_DATA_H
#define TRAX_DATA_FILE_DATA_H

#include "fs/op/fs_internal.h"

#include "disk/fault.h"
#include "sched/queue/queue.h"

#define BLOCK_BYTES TRAX_BLOCK_BYTES
#define BLOCK_SECTORS TRAX_BLOCK_SECTORS
#define PIECE_BLOCKS TRAX_CSUM_PIECE_BLOCKS
#define PIECE_BYTES (PIECE_BLOCKS * BLOCK_BYTES)

#define JOB_BLOCKS 1024u	/* of one piece of write-back */
#define JOB_PIECES 16		/* places of one piece of write-back */
#define SMALL_JOB_BLOCKS (SMALL_BYTES / BLOCK_BYTES)
#define SMALL_JOBS 1024u	/* of small files: some tracks of them */
#define SMALL_JOB_PART 8u	/* but only so many to the dirty blocks */
#define JOBS_PER_FILE 4u
#define HOME_JOBS 12u		/* kept for bringing data home */
#define LARGE_BACKS 12u		/* jobs of others, so that they keep apart */
#define LARGE_JOBS (LARGE_BACKS + HOME_JOBS)	/* of up to JOB_BLOCKS */
#define SMALL_BYTES (256u << 10) /* a file up to this is none of them */
#define LOG_BLOCKS 16u		/* logged by one transaction */
#define SYNC_LOG_BLOCKS 16u	/* fsync of so little goes through the log */
#define TXN_BLOCKS 512u		/* mapped by one transaction */
#define NEED_BLOCKS 256u	/* wanted at once by one reader */
#define NEED_PIECES (NEED_BLOCKS / PIECE_BLOCKS + 1)
#define FETCH_SEGMENTS 32u	/* extents read by one fetch */
#define STREAMS_PER_FILE 4

struct file;
struct files;
struct job;
struct loss;

/* ---- Blocks ---- */

/* Data in log record seq that is not home.  One for each transaction. */
struct hold {
	struct list link;
	uint64_t seq;
	unsigned refs;
};

struct block {
	struct block *left, *right;	/* by index */
	struct block *prev, *next;	/* in order */
	uint32_t priority;
	bool dirty;		/* newer than the tree and any job */
	bool reserved;		/* space_reserve was called for it */
	bool bad_home;		/* could not be written where it belongs */
	uint8_t failures;	/* to write its newest content, in a row */
	uint8_t home_failures;	/* to bring the held content home, in a row */
	bool foreign;		/* data is not of the pool (read-only mounts) */
	uint64_t index;
	void *data;		/* the newest content */
	struct job *job;	/* being written, maybe an older version */
	struct hold *hold;	/* the tree's content is in the log only */
	void *held_data;	/* that content; NULL: no hold */
	struct list link;	/* file->dirty, oldest first */
	uint64_t stamp;		/* when it became dirty: files->stamp */
	uint64_t dirty_ns;
};

/* ---- Pieces ---- */

struct piece {
	struct list lru;	/* files->lru when nobody needs it */
	struct file *file;
	uint64_t index;		/* in units of PIECE_BLOCKS */
	uint8_t *data;
	uint16_t valid;		/* the tree's content of these blocks */
	uint16_t reading;	/* some fetch wants them */
	uint16_t busy;		/* of these, one has looked them up: it alone
				   writes into data */
	uint16_t stale;		/* being read, but the tree has changed */
	uint16_t failed;	/* could not be read: -EIO */
	uint16_t ahead;		/* read ahead, and no user has come yet */
	uint16_t copied;	/* of those, there is a copy */
	bool from_copy;		/* one was read */
	uint64_t addr, sector;	/* of its first block, if such: where the
				   original is, where it was read */
	unsigned pins;
};

/*
 * Somebody wants blocks of a file in memory.  When ready() is called with 0,
 * each is there: as a block (unless `tree`), or valid in a pinned piece.
 */
struct need {
	struct list link;
	struct file *file;
	uint64_t first;
	unsigned n;		/* at most NEED_BLOCKS */
	bool tree;		/* what the tree says, not what is newer */
	bool background;	/* nobody waits for it */
	bool waiting;
	struct piece *pieces[NEED_PIECES];
	void (*ready)(struct need *need, int rc);
	void *owner;
};

/* ---- Files ---- */

/* Was it truncated to nothing while open, and is it written anew? */
enum order_state { ORDER_NONE, ORDER_CUT, ORDER_FLUSH };

/* A commit that waits for files that were replaced. */
struct order_wait {
	struct list link;	/* files->order_waits, oldest first */
	uint64_t until_ns;	/* it goes on without them */
	void (*go)(struct order_wait *wait);
};

/* Waits until no exclusive operation is at work on a file. */
struct gated {
	struct list link;
	void (*again)(struct gated *gated);
};

/* An operation that wants the mapping of a file for itself. */
struct excl {
	struct list link;
	struct file *file;
	bool active;
	void (*start)(struct excl *excl, int rc);	/* rc: of loading */
};

struct stream {
	uint64_t next;		/* bytes: where it will read on */
	uint64_t ahead;		/* read ahead up to here */
	unsigned count;		/* reads in order */
	uint64_t used;
};

/*
 * Small files read one after another as they lie on the disk: where the next
 * one will be, see small_readahead.c.
 */
#define NEAR_STREAMS 8

struct near {
	uint64_t next;		/* sector: read ahead up to here */
	uint64_t window;	/* sectors of the last time; 0: none */
	uint64_t used;		/* clock of the last use; 0: never */
	bool busy;		/* a look at the owners is under way */
};

struct file {
	struct files *files;
	struct vnode *vnode;
	uint64_t ino;
	struct list link;		/* files->all, least recently used
					   first */
	bool loaded, loading;
	bool has_inline;		/* the tree has an INLINE item */
	bool lost;			/* holes cannot be read, see
					   INODE_DATA_LOST */
	bool no_inline;			/* being turned into extents */
	enum order_state order;		/* see write_order.c */
	bool sync;			/* somebody waits for the flush */
	bool final;			/* the flush may place tails */
	bool dead;			/* being deleted */
	bool copies;			/* may have REPLICA items */
	struct loss *loss;		/* failure.c; NULL: nothing was lost */
	int load_rc;
	unsigned users;			/* operations under way */
	uint64_t pause_ns;		/* no job begins before this time */
	uint64_t size;			/* bytes, as users see it */
	uint64_t parent, goal;
	struct list gate;		/* struct gated */
	struct list load_waits;		/* struct gated, until loaded */
	struct list excls;
	struct list needs;		/* struct need that wait */
	struct list fetches;		/* struct fetch under way */
	struct list syncs;		/* struct sync */

	struct block *root, *head;	/* head: lowest index */
	size_t blocks, dirty_count, held_count, reserved_count;
	struct list dirty;		/* blocks, oldest first */
	struct list dirty_link;		/* files->dirty_files */
	struct list flush_link;		/* files->flush, but while preparing */
	struct list held_link;		/* files->held_files */
	uint64_t offer_cursor;		/* where the next home is offered */
	uint64_t flush_stamp;		/* what is as old is to be written */
	uint64_t cursor;		/* where the next job is looked for */
	uint64_t batch_sectors;		/* of its directory's flush */
	uint64_t pump_round;		/* when it was last looked at */
	unsigned jobs, backs;		/* backs: those not of JOB_HOME */
	unsigned offers;		/* of these, see gap_writeback.h */
	bool preparing;			/* a job has no place yet */
	uint64_t run_first, run_end;	/* blocks written in order */
	uint64_t tail_off, tail_addr;	/* sectors: where the last job ended */

	struct map *pieces;
	struct stream streams[STREAMS_PER_FILE];
	uint64_t stream_clock;
	uint64_t onward;	/* when its beginning is read, what lies from
				   this sector on is read ahead; 0: nothing */
};

/* New data that is given its places, see late_place.c. */
struct placing {
	struct job *train;	/* the newest; NULL: none */
	unsigned going;		/* jobs on their way */
	unsigned crowd;		/* their mean number, in CROWD_UNIT */
	uint64_t going_to;	/* where the newest of them ends */
};

struct files {
	struct fs *fs;
	struct list allocated;		/* files_alloc */
	struct pool *dirty_pool, *piece_pool;
	struct block *block_store, *block_free;
	struct piece *piece_store;
	struct list piece_free, lru;
	struct list starved;		/* needs that wait for pieces */
	struct list all;		/* files */
	size_t file_count;
	struct list dirty_files;	/* by age */
	struct list flush[2];		/* large files, small files */
	struct list held_files;
	struct list writers;		/* struct io that wait for room */
	struct list syncs;		/* of everything */
	struct list order_waits;
	unsigned order_cuts, order_flushes;	/* files in these states */
	uint64_t order_cut_ns;		/* the last truncation of an open
					   file to nothing */
	struct list holds;		/* by seq */
	struct list broken;		/* fetches that could not begin */
	struct near near[NEAR_STREAMS];
	uint64_t near_clock;
	struct list releases;		/* holds to be given up when durable */
	struct job *jobs;
	void **job_data;		/* their arrays */
	struct iovec *job_iov;
	struct list job_free[2];	/* of large files and home; of small */
	struct list job_backs, job_homes;	/* at work */
	unsigned jobs_busy, homes_busy, large_backs, fetches;
	unsigned small_jobs;		/* there are */
	struct prefetch *prefetch;	/* NULL: nothing was wished for */
	/* gap_writeback.c; NULL: nothing is offered. */
	struct freeblock_task *offer_task;
	struct list offered;		/* jobs, oldest first */
	unsigned offers, home_offers;	/* how many; of these, of homes */
	uint64_t offers_made, offers_recalled;
	struct placing placing[2];	/* of what is waited for; of the rest */
	bool users_read;		/* of late */
	bool offers_end;		/* nobody is told of any */
	uint64_t reads_seen, look_ns;	/* at the last look; the next one */
	uint64_t pump_round;
	unsigned heals, bads;
	struct list suspects;		/* bads that wait for another try */
	size_t fetch_pieces;		/* pinned by fetches */
	uint64_t stamp;
	uint64_t scan_ns;		/* when to look for what is old */
	size_t dirty_count, held_count;
	uint64_t home_seq;		/* bring home what was logged up to */
	uint64_t home_asked;		/* the log would like that for this */
	uint64_t home_ns;	/* when the first held block was logged */
	int loss;		/* data was given up: told by one syncfs */
	bool stopped;		/* the file system has failed: files_stop */
	uint64_t wake_ns;	/* jobs_pump is to be called */
	bool committing, pumping, pump_again;
	struct waiter commit;
};

/* ---- dirty_block.c ---- */

/* The block, or NULL. */
struct block *block_find(const struct file *file, uint64_t index);
/* The first at or behind index. */
struct block *block_at_or_after(const struct file *file, uint64_t index);
/* Adds a block that is not there; its data is not set.  NULL: pool empty. */
struct block *block_add(struct file *file, uint64_t index);
/* The same with a buffer of the dirty pool that is full already, and in the
 * log.  There is a descriptor for each buffer. */
struct block *block_add_held(struct file *file, uint64_t index, void *data,
			     struct hold *hold);
/* The same with data of files_alloc, which neither the pool nor the number of
 * its buffers bounds.  NULL: no memory. */
struct block *block_add_foreign(struct file *file, uint64_t index,
				const void *data);
/* Before data is changed: a block in a job, or held, gets a buffer of its own.
 * false: pool empty. */
bool block_own(struct files *files, struct block *block);
void block_dirty(struct file *file, struct block *block);
/* Not dirty any more; keeps it. */
void block_clean(struct file *file, struct block *block);
/* Dirty again because it could not be written: as old as it was. */
void block_redirty(struct file *file, struct block *block, uint64_t stamp);
void block_unreserve(struct file *file, struct block *block);
/* Removes it, whatever it was; not in a job. */
void block_drop(struct file *file, struct block *block);
/* Drops it unless it is dirty, held or in a job. */
void block_settle(struct file *file, struct block *block);

/* Holds. */
void hold_set(struct file *file, struct block *block, struct hold *hold);
/* Gives up a block's hold: at once (it is home), or when record seq (0: the
 * newest) is durable. */
void hold_drop(struct file *file, struct block *block);
void hold_drop_later(struct file *file, struct block *block, uint64_t seq);
/* Gives up what has become durable; `committed`: the commit that began after
 * hold_cover has succeeded. */
void hold_run(struct files *files, bool committed);
void hold_cover(struct files *files);

/* ---- cache_chunk.c ---- */

int need_start(struct need *need);	/* 0, -EIO, -EINPROGRESS */
void need_end(struct need *need);
/* Is everything there (again)? */
bool need_ok(const struct need *need);
/* Content of a block that a need holds, or NULL: block first, then piece. */
const void *need_block(const struct need *need, uint64_t index);
void needs_wake(struct file *file);
/* The tree's content of these blocks has changed. */
void pieces_changed(struct file *file, uint64_t first, uint64_t n);
/* Reads ahead what is not there, when there is room.  A guess is left when the
 * file has copies: then these are what is wanted of it. */
void pieces_ahead(struct file *file, uint64_t first, uint64_t end, bool guess);
/* A user reads what a need holds: some of it may have been read ahead. */
void pieces_claimed(const struct need *need, uint64_t wait_ns);
/* Small files that were read ahead and nobody has come for, that have no copy:
 * by address, at most `most`; each is told once. */
struct replica_want;
size_t pieces_left(struct files *files, struct replica_want *left, size_t most);
/* Ends fetches that could not begin. */
void pieces_run(struct files *files);
/* The reader is through with the pieces before this block. */
void pieces_passed(struct file *file, uint64_t first, uint64_t end);
/* The tree's content of one block, if a valid piece holds it. */
const void *piece_block(const struct file *file, uint64_t index);

/* ---- small_readahead.c: from one small file to the next on the disk ---- */

/* A small file had to be read from [sector, sector + n), from its start. */
void near_missed(struct files *files, uint64_t sector, uint64_t n);
/* Its beginning is read, by somebody who finds it in memory. */
void near_reached(struct file *file);

/* ---- file.c ---- */

/* Zeroed memory that goes with the file system if it is abandoned. */
void *files_alloc(struct files *files, size_t bytes);
void files_release(void *memory);
/* Finds or makes, and counts a user; NULL: no memory. */
struct file *file_get(struct fs *fs, uint64_t ino);
void file_put(struct file *file);
/* Frees it if nothing depends on it. */
void file_unused(struct file *file);
/* 0: go on; TICKET_WAIT: gated->again comes; else an error. */
int file_enter(struct file *file, struct gated *gated);
void file_exclusive(struct excl *excl);
void file_exclusive_end(struct excl *excl);
/* May no job of it begin?  They may while whoever wants it alone waits for what
 * it has in the log: what cannot go home goes elsewhere. */
bool file_is_closed(const struct file *file);
/* Jobs may have ended: lets exclusive operations and syncs go on. */
void file_settled(struct file *file);
/* The same for all files. */
void files_settled(struct files *files);
/* Commits what is logged, once at a time, and then pumps. */
void files_commit(struct files *files);
/* Buffers that writers may take now. */
size_t files_room(const struct files *files);
/* Writes back a file together with the small ones of its directory, except
 * those written to after `before`. */
void files_flush_group(struct file *file, uint64_t before, bool sync);
/* When it was written to last. */
uint64_t file_stamp(const struct file *file);
/* Writes back all that is dirty now; calls done when it is mapped. */
struct sync {
	struct list link;
	struct file *file;	/* NULL: all files */
	uint64_t stamp;
	bool homes;		/* and nothing is held */
	void (*done)(struct sync *sync, int rc);
	struct waiter waiter;
	void *owner;
};
void sync_start(struct files *files, struct sync *sync);
bool sync_check(struct sync *sync);
/* Is all of a file's data mapped? */
bool sync_is_over(struct file *file);

/* ---- write_order.c: data before names and sizes ---- */

/* The file has been truncated to nothing; its last handle is gone. */
void order_cut(struct file *file);
void order_closed(struct file *file);
/* Has a commit that somebody asked for to wait?  Then go() follows. */
bool order_waits(struct files *files, struct order_wait *wait);
/* Ends waits that have been long enough; when that is next. */
uint64_t order_run(struct files *files, uint64_t now_ns);
/* Until when the commit by age is to wait (see tree_set_order). */
uint64_t order_commit(void *files);

/* ---- read.c, write.c ---- */

/* An operation on file data, step by step; re-entered after each wait. */
struct io {
	struct gated gated;
	struct list link;	/* files->writers */
	struct need need;
	struct fs_op *op;
	struct file *file;
	uint64_t pos, end;	/* bytes */
	uint64_t begun_ns;
	bool prepared;		/* what comes first has been done */
	bool mapped;		/* all of it has a place on disk */
	void (*step)(struct io *io);
};

/* NULL: no memory, answered. */
struct io *io_new(struct fs *fs, struct fs_op *op, void (*step)(struct io *io));
void io_end(struct io *io, int rc);

/* Zeroes bytes of a block that is in memory or needed; dirties it. */
int write_zero(struct file *file, const struct need *need, uint64_t index,
	       unsigned from, unsigned to);
/* WRITE operations that wait for room go on. */
void writers_run(struct files *files);

/* ---- writeback.c: write-back ---- */

/* Starts whatever may be started. */
void jobs_pump(struct files *files);
/* This file's dirty blocks up to `stamp` are to be written. */
void job_flush(struct file *file, uint64_t stamp, bool sync, bool final);
int jobs_new(struct files *files);
/* A stretch of a growing file is complete enough to be written. */
void job_stream(struct file *file);

enum job_kind { JOB_DIRECT, JOB_IN_PLACE, JOB_LOGGED, JOB_INLINE, JOB_HOME };

struct job_segment {		/* of the disk, in file order */
	struct job *job;
	uint64_t sector, n;
	bool known, failed;
	struct queue_request req;
};

struct job {
	struct list link;
	struct files *files;
	struct file *file;
	enum job_kind kind;
	bool small;		/* SMALL_JOB_BLOCKS at most, else JOB_BLOCKS */
	bool claimed, stream;
	bool offer;		/* of a home: it may wait for a gap */
	bool offered;		/* it does, since offered_ns */
	uint64_t offered_ns;
	struct list offer_link;	/* files->offered */
	uint64_t first;
	unsigned n, done;	/* blocks; committed so far */
	uint64_t stamp;		/* oldest block in it */
	unsigned segments, outstanding;
	bool taken;		/* the segments are not owned yet */
	/* Of data somebody waits for, see late_place.c. */
	bool may_move;		/* it begins anew, and lies on one track; of the
				   first of a train: so do all */
	bool follows;		/* on what its directory has open */
	bool going;		/* it is not over */
	struct queue_place place;
	struct range window;
	struct job *behind, *last; /* in a train; of the first: its last */
	bool waited;		/* for a checkpoint that may free space */
	unsigned want;		/* blocks to ask space for */
	int rc;
	bool failed;		/* some segment */
	enum fault_class class;	/* of that error */
	void (*written)(struct job *job, int rc);
	struct hold *hold;
	struct need need;
	struct ticket *ticket;
	struct job_segment segment[JOB_PIECES];
	void **data;		/* of each block */
	struct iovec *iov;
};

struct job *job_new(struct file *file, enum job_kind kind, uint64_t first);
/* A home that may wait for a gap: not one of those kept for bringing home. */
struct job *job_new_offer(struct file *file, uint64_t first);
/* Marks its blocks as being written, and keeps their data. */
void job_claim(struct job *job);
/* How many dirty blocks that no job has there are from job->first on, as many
 * as the job can have. */
unsigned job_collect(const struct job *job);
/* Block i is over; `ok`: it is where it belongs, else it is dirty again. */
void job_release(struct job *job, unsigned i, bool ok);
/* Ends it; blocks claimed and not released are dirty again. */
void job_end(struct job *job);
/* Submits the segments; written() follows. */
void job_write(struct job *job, enum queue_class class,
	       void (*written)(struct job *job, int rc));
/* The same in parts: what the segments ask of the disk; one of them submitted;
 * one of them is over, with its result. */
void job_requests(struct job *job, enum queue_class class,
		  void (*written)(struct job *job, int rc));
void job_submit(struct job *job, struct job_segment *segment,
		enum queue_class class);
void job_segment_over(struct job_segment *segment);
/* Adds a segment, from the map: -E2BIG. */
int job_add(struct job *job, uint64_t sector, uint64_t n, bool known);

/* ---- bad_sectors.c ---- */

/* A write to these sectors has failed.  They were taken and belong to nobody:
 * what is good of them is given back, what is bad is owned by that. */
void bad_suspect(struct files *files, uint64_t sector, uint64_t n);
/* Goes on with those that wait. */
void bads_run(struct files *files, uint64_t now_ns);

/* ---- destage.c ---- */

/* Starts home writes that are due; true: some was started. */
bool homes_pump(struct files *files);
/* Offers held blocks of a file (gap_writeback.h), looking at *left at most. */
void homes_offer(struct file *file, unsigned *left);
/* Is something of what is held to be brought home now? */
bool homes_asked(const struct files *files);
/* What is logged so far is to be brought home. */
void homes_now(struct files *files);
void homes_want(void *arg, uint64_t seq);

/* ---- bmap.c ---- */

struct extent {
	uint64_t off, n;	/* sectors of the file */
	uint64_t addr;
	uint32_t flags;
};

#define MAP_OLD 24
#define MAP_NEW 32

/* A change of what [off, off + n) is mapped to, planned in run(). */
struct map_plan {
	uint64_t off, n;	/* may be shortened by map_probe, to blocks */
	struct extent old[MAP_OLD];
	unsigned old_n;
	struct extent new[MAP_NEW];
	unsigned new_n;
};

/* The extent that holds a sector, or the first behind it.  -ENOENT. */
int map_extent(struct ticket *ticket, uint64_t ino, uint64_t sector,
	       struct extent *extent);
/* The extent before a sector. */
int map_extent_before(struct ticket *ticket, uint64_t ino, uint64_t sector,
		      struct extent *extent);
/*
 * Plans to map [off, off + n) to `pieces` (in order, their sum at least n;
 * pieces_n = 0: to nothing).  Looks up every key that map_apply will change.
 */
int map_probe(struct ticket *ticket, uint64_t ino, uint64_t off, uint64_t n,
	      const struct extent *pieces, unsigned pieces_n,
	      struct map_plan *plan);
void map_apply(struct ticket *ticket, uint64_t ino,
	       const struct map_plan *plan, struct inode_item *item);

/* Sums of blocks: set where sum_of gives one, else cleared. */
struct map_sums {
	uint64_t first;
	unsigned n;
	/* Fine sum of block first + i; coarse sum of 16 blocks from there. */
	uint64_t (*fine)(void *arg, unsigned i);
	uint64_t (*coarse)(void *arg, unsigned i);	/* NULL: fine only */
	void *arg;		/* fine NULL: clear all */
};
/*
 * Looks up the windows.  TICKET_WAIT: the rest of a piece with one sum is being
 * read through `need`, whose ready() is ticket_again's; else as tree_get.
 */
int map_sums_probe(struct ticket *ticket, struct file *file,
		   const struct map_sums *sums, struct need *need);
void map_sums_apply(struct ticket *ticket, struct file *file,
		    const struct map_sums *sums);
int map_window(struct ticket *ticket, uint64_t ino, uint64_t window,
	       struct csum_window *out);
/* Piece `p` of a window that was looked up has these sums, one a block, instead
 * of one for all; what it holds does not change. */
#define MAP_REFINE_LOG_BYTES 2200u
void map_refine(struct ticket *ticket, uint64_t ino, uint64_t window,
		unsigned p, const uint64_t *sum);

/* Bytes of log for a transaction that maps TXN_BLOCKS. */
#define MAP_LOG_BYTES (24u << 10)

#endif
