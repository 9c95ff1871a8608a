/*
 * file_data.h - file data in memory and on its way: shared by the data half of
 * src/fs (dirty_block.c, cache_chunk.c, small_readahead.c, file.c, bmap.c,
 * read.c, write.c, writeback.c, destage.c, trunc.c, copy.c).
 *
 * Two kinds of memory.  A *block* (4 KiB, dirty pool) is content that the disk
 * does not hold at its place: dirty (newer than the tree), in a write-back
 * (being written), or pinned (the tree's content, durable or about to be in the
 * log, not destaged).  Blocks of small files are kept after they were written
 * (what the tree says), until their buffers are needed.  A *chunk* (64 KiB,
 * track pool) caches what the tree says is on disk, verified, block by block;
 * it is never newer.  Readers take blocks
 * first.
 *
 * `data` and `pinned_data` of a block and the `data` of a write-back own a
 * reference to their buffer each (cache/pool.h), and give it back whatever the
 * others do.
 *
 * Units: `first`, `n` of blocks unless the name says sectors; offsets in a
 * file are bytes, `off` of an extent sectors.
 */
#ifndef TRAX_DATA_FILE_DATA_H
#define TRAX_DATA_FILE_DATA_H

#include "fs/op/block_units.h"
#include "fs/op/fs_internal.h"

#include "disk/fault.h"
#include "sched/queue/queue.h"

#define WB_BLOCKS 1024u	/* of one piece of write-back */
#define WB_SEGMENTS 16		/* places of one piece of write-back */
#define SMALL_WB_BLOCKS (SMALL_FILE_BYTES / BLOCK_BYTES)
#define SMALL_WBS 1024u	/* of small files: some tracks of them */
#define SMALL_WB_SHARE 8u	/* but only so many to the dirty blocks */
#define WBS_PER_FILE 4u
#define DESTAGE_WBS 12u		/* kept for destaging data */
#define LARGE_DATA_WBS 12u /* write-backs of others, so that they keep apart   \
			    */
#define LARGE_WBS (LARGE_DATA_WBS + DESTAGE_WBS)	/* of up to WB_BLOCKS */
#define SMALL_FILE_BYTES (256u << 10) /* a file up to this is none of them */
#define LOG_BLOCKS 16u		/* logged by one transaction */
#define SYNC_LOG_BLOCKS 16u	/* fsync of so little goes through the log */
#define TXN_BLOCKS 512u		/* mapped by one transaction */
#define READ_WAIT_BLOCKS 256u	/* wanted at once by one reader */
#define READ_WAIT_CHUNKS (READ_WAIT_BLOCKS / CHUNK_BLOCKS + 1)
#define FETCH_SEGMENTS 32u	/* extents read by one fetch */
#define STREAMS_PER_FILE 4

#define SWEEP_PART 4u	/* of the pool is dirty: an idle disk begins to write */

struct file;
struct files;
struct writeback;
struct loss;
struct prealloc;
struct writeback_policy;	/* writeback_policy.h */

/* ---- Blocks ---- */

/* Data in log record seq that is not destaged.  One for each transaction. */
struct log_pin {
	struct list link;
	uint64_t seq;
	unsigned refs;
};

struct block {
	struct block *left, *right;	/* by index */
	struct block *prev, *next;	/* in order */
	uint32_t priority;
	bool dirty;		/* newer than the tree and any write-back */
	bool reserved;		/* space_reserve was called for it */
	bool bad_place;		/* could not be written where it belongs */
	uint8_t failures;	/* to write its newest content, in a row */
	uint8_t destage_failures; /* of the pinned content, in a row */
	bool foreign;		/* data is not of the pool (read-only mounts) */
	bool kept;		/* nothing else needs it: see block_keep */
	struct file *file;
	uint64_t index;
	void *data;		/* the newest content */
	struct writeback *wb;	/* being written, maybe an older version */
	struct log_pin *pin;	/* the tree's content is in the log only */
	void *pinned_data;	/* that content; NULL: no hold */
	struct list link;	/* file->dirty, oldest first; files->kept if
				 * the block is kept */
	uint64_t stamp;		/* when it became dirty: files->stamp */
	uint64_t dirty_ns;	/* when its content may have been written first,
				 * before the kernel passed it on */
};

/* ---- Pieces ---- */

struct chunk {
	struct list lru;	/* files->lru when nobody needs it */
	struct file *file;
	uint64_t index;		/* in units of CHUNK_BLOCKS */
	uint8_t *data;
	uint16_t valid;		/* the tree's content of these blocks */
	uint16_t reading;	/* some fetch wants them */
	uint16_t busy;		/* of these, one has looked them up: it alone
				   writes into data */
	uint16_t stale;		/* being read, but the tree has changed */
	uint16_t failed;	/* could not be read: -EIO */
	uint16_t readahead;	/* read ahead, and no user has come yet */
	uint16_t has_replica;	/* of those, there is a copy */
	bool from_replica;		/* one was read */
	uint64_t addr, sector;	/* of its first block, if such: where the
				   original is, where it was read */
	unsigned pins;
};

/*
 * Somebody wants blocks of a file in memory.  When ready() is called with 0,
 * each is there: as a block (unless `tree`), or valid in a pinned piece.
 */
struct read_wait {
	struct list link;
	struct file *file;
	uint64_t first;
	unsigned n;		/* at most READ_WAIT_BLOCKS */
	bool tree;		/* what the tree says, not what is newer */
	bool background;	/* nobody waits for it */
	bool waiting;
	struct chunk *chunks[READ_WAIT_CHUNKS];
	void (*ready)(struct read_wait *rwait, int rc);
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
struct shared_lock {
	struct list link;
	void (*granted)(struct shared_lock *lock);
};

/* An operation that wants the mapping of a file for itself. */
struct excl_lock {
	struct list link;
	struct file *file;
	bool active;
	bool readable;		/* readers need not wait: file_let_read */
	void (*start)(struct excl_lock *excl, int rc);	/* rc: of loading */
};

struct stream {
	uint64_t next;		/* bytes: where it will read on */
	uint64_t ahead;		/* read ahead up to here */
	uint64_t sums;		/* the checksums up to here have been asked
				   for */
	unsigned count;		/* reads in order */
	uint64_t used;
};

/*
 * Small files read one after another as they lie on the disk: where the next
 * one will be, see small_readahead.c.
 */
#define SMALL_RA_STREAMS 8

struct small_ra {
	uint64_t next;		/* sector: read ahead up to here */
	uint64_t window;	/* sectors of the last time; 0: none */
	uint64_t prefix;	/* bytes: prefix_expected of the file from which
				   it goes on */
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
	uint64_t pause_ns; /* no write-back begins before this time ... */
	uint64_t destage_pause_ns; /* ... nor one of what the log has before
				    * this one */
	uint64_t size;			/* bytes, as users see it */
	uint64_t parent, goal;
	struct list lock_waits;		/* struct shared_lock */
	struct list load_waits;		/* struct shared_lock, until loaded */
	struct list excl_locks;
	struct list read_waits;		/* struct read_wait that wait */
	struct list fetches;		/* struct fetch under way */
	struct list syncs;		/* struct sync */

	struct block *root, *head;	/* head: lowest index */
	size_t blocks, dirty_count, pinned_count, reserved_count, kept_count;
	struct list dirty;		/* blocks, oldest first */
	struct list dirty_link;		/* files->dirty_files */
	struct list flush_link;		/* files->flush, but while preparing */
	struct list pinned_link;		/* files->pinned_files */
	uint64_t gap_cursor;		/* where the next destage is offered */
	uint64_t flush_stamp;		/* what is as old is to be written */
	uint64_t cursor; /* where the next write-back is looked for */
	uint64_t batch_sectors;		/* of its directory's flush */
	uint64_t pump_round;		/* when it was last looked at */
	unsigned writebacks,
		data_writebacks;	/* backs: those not of WB_DESTAGE */
	unsigned gap_queued;		/* of these, see gap_writeback.h */
	bool preparing;			/* a write-back has no place yet */
	uint64_t run_first, run_end;	/* blocks written in order */
	uint64_t tail_off,
		tail_addr; /* sectors: where the last write-back ended */

	struct prealloc *prealloc;	/* NULL: no room is kept */
	struct hashmap *chunks;
	struct stream streams[STREAMS_PER_FILE];
	uint64_t stream_clock;
	uint64_t readahead_next; /* when its beginning is read, what lies from
			    this sector on is read ahead; 0: nothing */
};

/* New data that is given its places, see late_place.c. */
struct place_batch {
	struct writeback *last;	/* the newest; NULL: none */
	unsigned in_flight;		/* write-backs on their way */
	unsigned mean_in_flight;	/* their mean number, in MEAN_UNIT */
	uint64_t in_flight_end;	/* where the newest of them ends */
};

/* What stands above the state of a file and has to go on when that changes. */
struct files_ops {
	/* Write-backs or exclusive operations may have ended: lets exclusive
	 * operations, those who wait for them, and syncs go on. */
	void (*wake_waiters)(struct file *file);
	/* Starts the write-backs that may start. */
	void (*pump)(struct files *files);
	/* WRITE operations that wait for room go on. */
	void (*run_writers)(struct files *files);
};

struct files {
	struct fs *fs;
	const struct writeback_policy *policy;
	const struct files_ops *ops;
	struct pool *dirty_pool, *chunk_pool;
	struct block *block_store, *block_free;
	struct list kept;		/* blocks, the first written first */
	size_t kept_count;
	struct chunk *chunk_store;
	struct list chunk_free, lru;
	struct list chunk_waits;		/* needs that wait for pieces */
	struct list all;		/* files */
	size_t file_count;
	struct list dirty_files;	/* by age */
	struct list flush[2];		/* large files, small files */
	struct list pinned_files;
	struct list writers;		/* struct io that wait for room */
	struct list syncs;		/* of everything */
	struct list order_waits;
	unsigned order_cuts, order_flushes;	/* files in these states */
	uint64_t order_cut_ns;		/* the last truncation of an open
					   file to nothing */
	struct list preallocs;		/* least recently used first */
	unsigned prealloc_count;
	uint64_t prealloc_sectors;	/* of all, not used yet */
	struct list log_pins;		/* by seq */
	struct list broken;		/* fetches that could not begin */
	struct prefixes *prefixes;	/* prefix.h */
	struct small_ra small_ra[SMALL_RA_STREAMS];
	uint64_t small_ra_clock;
	struct list log_unpins;		/* holds to be given up when durable */
	struct writeback *writebacks;
	void **wb_data;		/* their arrays */
	struct iovec *wb_iov;
	struct list wb_free[2];	/* of large files and destages; of small */
	struct list data_wbs, destages;	/* at work */
	unsigned wbs_busy, destages_busy, large_data_busy, fetches;
	unsigned small_wbs;		/* there are */
	struct gap_readahead *gap_readahead; /* NULL: nothing was wished for */
	/* gap_writeback.c; NULL: nothing is offered. */
	struct freeblock_task *gap_task;
	struct list gap_queue;		/* write-backs, oldest first */
	unsigned gap_queued,
		gap_queued_destages; /* how many; of these, of destages */
	uint64_t gap_queued_total, gap_recalled_total;
	struct place_batch placing[2];	/* of what is waited for; of the rest */
	bool users_read;		/* of late */
	bool gap_queue_closed;		/* nobody is told of any */
	uint64_t reads_seen, look_ns;	/* at the last look; the next one */
	uint64_t pump_round;
	unsigned heals, bad_writes;
	struct list suspects;		/* bads that wait for another try */
	size_t fetch_chunks;		/* pinned by fetches */
	uint64_t stamp;
	uint64_t scan_ns;		/* when to look for what is old */
	size_t dirty_count, pinned_count;
	uint64_t written_bytes;		/* data, in all */
	uint64_t destage_seq;		/* destage what was logged up to */
	bool recovered;		/* at this mount, and not yet destaged */
	uint64_t destage_wanted_seq;	/* the log would like that for this */
	uint64_t oldest_pinned_ns; /* when the first pinned block was logged */
	int loss;		/* data was given up: told by one syncfs */
	bool stopped;		/* the file system has failed: files_stop */
	uint64_t wake_ns;	/* writeback_pump is to be called */
	bool committing, pumping, pump_again;
	struct waiter commit;
};

/* ---- read.c ---- */

/* Does somebody read a file in order past this block? */
bool file_is_streamed(const struct file *file, uint64_t block);

/* ---- read.c, write.c ---- */

/* An operation on file data, step by step; re-entered after each wait. */
struct io {
	struct shared_lock lock;
	struct list link;	/* files->writers */
	struct read_wait rwait;
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
int write_zero(struct file *file, const struct read_wait *rwait, uint64_t index,
	       unsigned from, unsigned to);
/* WRITE operations that wait for room go on. */
void writers_run(struct files *files);

/* ---- Data: file.c and friends, called by the rest ---- */

int files_new(struct fs *fs);		/* fs->files */
void files_free(struct fs *fs);
/* At mount: takes tree_recovered_data into memory (waits), from where it is
 * destaged or, read-only, served to readers.  -EIO: some cannot be read. */
int files_recover(struct fs *fs);
/* Timers: write-back by age and pressure.  Next time wanted. */
uint64_t files_run(struct fs *fs, uint64_t now_ns);
bool files_idle(const struct fs *fs);

/* Size (and sectors) as users see them: tree's or what is dirty in memory. */
void file_fix_attr(struct fs *fs, uint64_t ino, struct fs_attr *attr);

/* Operations; each answers op itself. */
void file_read(struct fs *fs, struct fs_op *op);
void file_write(struct fs *fs, struct fs_op *op);
void file_fsync(struct fs *fs, struct fs_op *op);
void file_syncfs(struct fs *fs, struct fs_op *op);
void file_fallocate(struct fs *fs, struct fs_op *op);
void file_copy_range(struct fs *fs, struct fs_op *op);
void file_extents(struct fs *fs, struct fs_op *op);
/* SETATTR (or OPEN) with FS_SET_SIZE in flags: does the size (in steps) and
 * all the rest of the attributes by calling back inode_apply_attr inside its
 * first transaction.  The caller has seen to immutable and append-only files.
 */
void file_set_size(struct fs *fs, struct fs_op *op);
/*
 * Rename over an existing name: the data of the inode moved comes before the
 * rename (trap 7.2).  Called in run() before any change: 0 = nothing of it is
 * in memory only; FS_TXN_WAIT = its write-back has been started and
 * fs_txn_restart() follows; return it.
 */
int file_order(struct fs_txn *txn, uint64_t ino);
/* The last open handle of an inode is gone (vnode->opens is 0). */
void file_closed(struct vnode *vnode);
/* Drops everything of an inode that has an ORPHAN_DELETE item: dirty data,
 * extents, checksums, xattrs, INLINE, INODE, ORPHAN, in steps; then calls
 * done (vnode.c). */
void file_delete(struct fs *fs, uint64_t ino,
		 void (*done)(struct fs *fs, uint64_t ino));
/* Goes on with an ORPHAN_TRUNCATE found at mount. */
void file_resume_truncate(struct fs *fs, uint64_t ino, uint64_t size);
/* Everything dirty of all files written and committed; for close. */
void files_sync(struct fs *fs, struct waiter *waiter);

#endif
