/*
 * file_data.h - file data in memory and on its way: shared by the data half of
 * src/fs (dirty_block.c, cache_chunk.c, small_readahead.c, file.c, bmap.c,
 * read.c, write.c, writeback.c, destage.c, trunc.c, copy.c).
 *
 * Two kinds of memory.  A *block* (4 KiB, dirty pool) is content that the disk
 * does not hold at its place: dirty (newer than the tree), in a write-back
 * (being written), or pinned (the tree's content, durable or about to be in the
 * log, not destaged).  A *chunk* (64 KiB, track pool) caches what the tree says
 * is on disk, verified, block by block; it is never newer.  Readers take blocks
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

#include "base/units.h"
#include "fs/data/bad_stretch.h"
#include "fs/data/pace.h"
#include "fs/op/block_units.h"
#include "fs/op/fs_internal.h"

#include "disk/fault.h"
#include "sched/queue/queue.h"

#define WB_BLOCKS 1024u	/* blocks of one write-back, at most */
#define WB_SEGMENTS 16		/* places of one write-back, at most */
#define SMALL_WB_SEGMENTS 4	/* ... and of one of a small file */
#define SMALL_WB_BLOCKS (SMALL_FILE_BYTES / BLOCK_BYTES)
#define SMALL_WBS 1024u	/* most write-backs of small files under way; together
			 * they fill some tracks */
#define SMALL_WB_SHARE 4u	/* least number of buffers of the dirty pool for
				 * each of these write-backs */
#define WBS_PER_FILE 4u		/* write-backs of one file at once, at most */
#define DESTAGE_WBS 12u		/* write-backs kept for destaging */
#define LARGE_DATA_WBS 12u /* write-backs of large files; few, so that their
			    * stretches stay long */
#define LARGE_WBS (LARGE_DATA_WBS + DESTAGE_WBS)	/* write-backs of up to
							 * WB_BLOCKS */
/* bytes; a larger file counts as large (LARGE_WBS) */
#define SMALL_FILE_BYTES (256u << 10)
#define LOG_BLOCKS 16u		/* blocks logged by one transaction, at most */
#define SYNC_LOG_BLOCKS 16u	/* an fsync of at most this many blocks logs
				 * them */
#define TXN_BLOCKS 512u		/* blocks mapped by one transaction, at most */
#define READ_WAIT_BLOCKS 256u	/* blocks wanted at once by one reader, at
				 * most */
#define READ_WAIT_CHUNKS (READ_WAIT_BLOCKS / CHUNK_BLOCKS + 1)
#define FETCH_SEGMENTS 32u	/* extents read by one fetch, at most */
#define STREAMS_PER_FILE 4	/* places at which a file is read in order at
				 * the same time, at most */

/* Age at which dirty data is written back, counted from the write into the
 * kernel's cache: as in ext4, 30 s until it is written and 5 s until that is
 * committed. */
#define WRITE_BACK_AGE_NS (35 * NS_PER_SECOND)
#define SWEEP_PART 8u	/* an idle disk begins to write when one part in eight
			 * of the pool's blocks is dirty */

struct file;
struct files;
struct writeback;
struct loss;
struct prealloc;
struct writeback_policy;	/* writeback_policy.h */

/* ---- Blocks ---- */

/* Pins log record `seq`, which has data that is not destaged. One for each
 * transaction with logged data. */
struct log_pin {
	struct list link;
	uint64_t seq;
	unsigned refs;		/* number of blocks that need it */
	unsigned dropped;	/* number of these that will not need it once
				 * record drop_seq is durable; 0: it is not in
				 * files->log_unpins */
	struct list drop_link;	/* files->log_unpins */
	uint64_t drop_seq;	/* record to wait for; 0: all records that there
				 * are */
	uint64_t drop_commit;	/* first commit (log_pin_cover) that covers all
				 * changes by which the pin became
				 * superfluous */
};

struct block {
	struct block *left, *right;	/* treap, by index */
	struct block *prev, *next;	/* neighbours, by index */
	uint32_t priority;	/* of the treap: random */
	bool dirty;		/* newer than the tree and any write-back */
	bool reserved;		/* space is reserved for it (space_reserve) */
	bool bad_place;		/* it could not be written at its place */
	uint8_t failures;	/* failed writes of its newest content, in a
				 * row */
	uint8_t destage_failures; /* failed destages of the pinned content, in a
				   * row */
	bool foreign;		/* its data is not of the pool (read-only
				 * mounts) */
	struct file *file;
	uint64_t index;
	void *data;		/* the newest content */
	struct writeback *wb;	/* write-back that has the block, maybe with
				 * an older content; NULL: none */
	struct log_pin *pin;	/* pin of the record that has the content of
				 * the tree, if only the log has it */
	void *pinned_data;	/* the content in that record; NULL: the block
				 * is not pinned */
	struct list link;	/* file->dirty, oldest first */
	uint64_t stamp;		/* value of files->stamp when it became dirty */
	uint64_t dirty_ns;	/* when its content may have been written first,
				 * before the kernel passed it on */
};

/* ---- Chunks ---- */

struct chunk {
	struct list lru;	/* files->lru, unless it is pinned */
	struct file *file;
	uint64_t index;		/* in units of CHUNK_BLOCKS */
	uint8_t *data;
	uint16_t valid;		/* blocks whose content is that of the tree */
	uint16_t reading;	/* blocks that a fetch wants */
	uint16_t busy;		/* blocks in `reading` that one fetch has looked
				 * up: only this fetch writes into data */
	uint16_t stale;		/* blocks being read that the tree has changed
				 * since */
	uint16_t failed;	/* blocks that could not be read: -EIO */
	uint16_t readahead;	/* blocks read ahead that no user has read
				 * yet */
	uint16_t has_replica;	/* blocks in `readahead` that have a replica */
	bool from_replica;	/* a replica was read instead of the original */
	uint64_t addr, sector;	/* of the first block, if it was read ahead:
				 * place of the original, and place that was
				 * read */
	unsigned pins;		/* number of users; 0: it is in files->lru */
};

/*
 * Waits until blocks of a file are in memory. When ready() is called with 0,
 * each is there: as a block (unless `tree`), or valid in a pinned chunk.
 */
struct read_wait {
	struct list link;
	struct file *file;
	uint64_t first;
	unsigned n;		/* at most READ_WAIT_BLOCKS */
	bool tree;		/* wants the content that the tree has, not
				 * a newer one */
	bool background;	/* no user waits for it */
	uint64_t deadline_ns;	/* deadline of its reads; 0: as soon as
				 * possible */
	bool waiting;		/* ready() has not been called yet */
	struct chunk *chunks[READ_WAIT_CHUNKS];
	void (*ready)(struct read_wait *rwait, int rc);
	void *owner;
};

/* ---- Files ---- */

/* Was the file truncated to nothing while open (ORDER_CUT), and is its new
 * content being written (ORDER_FLUSH)? */
enum order_state { ORDER_NONE, ORDER_CUT, ORDER_FLUSH };

/* A commit that waits for files that were replaced. */
struct order_wait {
	struct list link;	/* files->order_waits, oldest first */
	uint64_t until_ns;	/* when it goes on without these files */
	void (*go)(struct order_wait *wait);
};

/* A reader or writer that waits until no exclusive operation is at work on a
 * file. */
struct shared_lock {
	struct list link;
	void (*granted)(struct shared_lock *lock);
};

/* An operation that needs the mapping of a file for itself. */
struct excl_lock {
	struct list link;
	struct file *file;
	bool active;
	bool readable;		/* readers need not wait: file_let_read */
	void (*start)(struct excl_lock *excl, int rc);	/* rc: that of loading
							 * the file */
};

struct stream {
	uint64_t next;		/* byte at which the next read is expected */
	uint64_t ahead;		/* byte up to which is read ahead */
	uint64_t sums;		/* byte up to which checksums have been asked
				 * for */
	uint64_t begin;		/* byte at which its first read began */
	unsigned count;		/* number of reads in order */
	uint64_t used;		/* value of file->stream_clock at its last
				 * read */
	uint64_t window;	/* bytes read ahead the last time */
	uint64_t turns;		/* value of files->turns at that time */
	struct pace pace;
};

/*
 * Small files read one after another as they lie on the disk: where the next
 * one will be, see small_readahead.c.
 */
#define SMALL_RA_STREAMS 8
/* Lists of dirty files by directory: two or three files in each when as many
 * are dirty, each in a directory of its own, as fit into memory. */
#define DIRTY_GROUPS 4096u

struct small_ra {
	uint64_t next;		/* sector up to which is read ahead */
	uint64_t window;	/* sectors read ahead the last time; 0: none */
	uint64_t prefix;	/* bytes: prefix_expected of the file from which
				   it goes on */
	uint64_t used;		/* value of the clock at its last use; 0:
				 * never */
	bool busy;		/* owners of sectors are being looked up */
};

struct file {
	struct files *files;
	struct vnode *vnode;
	uint64_t ino;
	struct list link;		/* files->all, least recently used
					   first */
	bool loaded, loading;
	bool has_inline;		/* the tree has an INLINE item of the
					 * file */
	bool lost;			/* holes cannot be read, see
					   INODE_DATA_LOST */
	bool no_inline;			/* its INLINE item is being turned into
					 * extents */
	enum order_state order;		/* see write_order.c */
	bool sync;			/* a sync waits for the flush */
	bool final;			/* the write-back asked for may also
					 * write the blocks behind the last
					 * whole stretch */
	bool dead;			/* it is being deleted */
	bool copies;			/* the tree may have REPLICA items of
					 * the file */
	struct loss *loss;		/* belongs to failure.c; NULL: nothing
					 * was lost */
	int load_rc;			/* how loading ended */
	unsigned users;			/* operations under way, and other
					 * users */
	uint64_t pause_ns;		/* no write-back begins before this
					 * time, after a failure */
	uint64_t destage_pause_ns;	/* no destage begins before this time,
					 * after a failure */
	uint64_t size;			/* bytes, as users see it */
	uint64_t parent, goal;
	struct list lock_waits;		/* struct shared_lock */
	struct list load_waits;		/* struct shared_lock, until it is
					 * loaded */
	struct list excl_locks;
	struct list excl_link;		/* files->excl_files, if any */
	struct list read_waits;		/* struct read_wait that wait */
	struct list fetches;		/* struct fetch under way */
	struct list syncs;		/* struct sync */

	struct block *root, *head;	/* head: lowest index */
	size_t blocks, dirty_count, pinned_count, reserved_count;
	struct list dirty;		/* blocks, oldest first */
	struct list dirty_link;		/* files->dirty_files */
	struct list group_link;		/* files->dirty_groups */
	struct list flush_link;		/* files->flush, unless `preparing` */
	struct list pinned_link;		/* files->pinned_files */
	uint64_t gap_cursor;		/* block from which destages are queued
					 * for gaps */
	uint64_t destage_round;		/* last round of destaging that has
					 * looked at this file */
	uint64_t destage_cursor;	/* block where that round goes on; 0: it
					 * has done with this file */
	uint64_t flush_stamp;		/* dirty blocks up to this stamp are to
					 * be written */
	uint64_t cursor;		/* block from which the next write-back
					 * is looked for */
	uint64_t batch_sectors;		/* sectors of its directory's flush */
	uint64_t pump_round;		/* round in which it was last looked
					 * at */
	unsigned writebacks,
		data_writebacks;	/* write-backs under way; those that are
					 * no destages */
	unsigned gap_queued;		/* write-backs that wait for gaps */
	bool preparing;			/* a write-back has no place yet */
	uint64_t run_first, run_end;	/* blocks written in order */
	uint64_t tail_off,
		tail_addr; /* where the last write-back ended, in sectors of the
			    * file and the disk */

	struct prealloc *prealloc;	/* NULL: no room is preallocated */
	struct hashmap *chunks;
	struct stream *streams;		/* STREAMS_PER_FILE of them; NULL: it
					 * has not been read */
	uint64_t stream_clock;
	unsigned reads;			/* reads of users under way */
	uint64_t read_over_ns;		/* when a user's read was last over */
	uint64_t lone_reads;		/* reads of the disk that no stream
					 * has made */
	uint64_t readahead_next; /* sector from which is read ahead when its
				  * beginning is read; 0: none */
};

/* Write-backs whose places are chosen together, see late_place.c. */
struct place_batch {
	struct writeback *last;	/* the newest write-back; NULL: none */
	uint64_t blocks;		/* blocks of write-backs on their way */
	uint64_t in_flight_end;	/* sector where the newest of them ends */
};

/* Calls to the code above the state of files, which goes on when that
 * changes. */
struct files_ops {
	/* Write-backs or exclusive operations may have ended: lets exclusive
	 * operations, those who wait for them, and syncs go on. */
	void (*wake_waiters)(struct file *file);
	/* Starts the write-backs that may start. */
	void (*pump)(struct files *files);
	/* WRITE operations that wait for room go on. */
	void (*run_writers)(struct files *files);
};

/* Passes over all dirty files, see flush_walk.h. */
enum flush_walks { FLUSH_ALL, FLUSH_OLD, FLUSH_SWEEP, FLUSH_WALKS };

struct flush_walk {
	struct list *next;	/* in dirty_files; NULL: none is under way */
	uint64_t stamp;		/* files written to later are left out */
	bool sync;		/* somebody waits for it */
	bool any, flushed;	/* the walk has found files; it has asked for
				 * their write-back */
};

struct files {
	struct fs *fs;
	const struct writeback_policy *policy;
	const struct files_ops *ops;
	struct pool *dirty_pool, *chunk_pool;
	struct block *block_store, *block_free;
	size_t small_born, small_died;	/* blocks of small files of late: made,
					 * and deleted while dirty; both fade */
	struct chunk *chunk_store;
	struct list chunk_free, lru;
	struct list chunk_waits;		/* struct read_wait that wait
						 * for chunks */
	struct list all;		/* files */
	size_t file_count;
	struct list dirty_files;	/* by age */
	struct flush_walk walks[FLUSH_WALKS];
	uint64_t sync_looks;		/* dirty files that syncs of all files
					 * looked at, counted */
	/* The same files, by a hash of the directory, then by age. */
	struct list dirty_groups[DIRTY_GROUPS];
	uint64_t group_looks;		/* files looked at in these, counted */
	struct list flush[2];		/* large files, small files */
	struct list pinned_files;
	struct list excl_files;		/* files with exclusive locks */
	struct list writers;		/* struct io that wait for room */
	struct list syncs;		/* struct sync of all files */
	unsigned cutting;		/* number of operations under way that
					 * give back room */
	struct list room_waits;		/* struct io that wait for that room */
	struct list order_waits;
	unsigned order_cuts, order_flushes;	/* number of files in these
						 * states */
	uint64_t order_cut_ns;		/* the last truncation of an open
					   file to nothing */
	struct list preallocs;		/* least recently used first */
	unsigned prealloc_count;
	uint64_t prealloc_sectors;	/* sectors preallocated and not used
					 * yet, of all files */
	struct list preallocs_left;	/* their sectors go back, some at a
					 * time */
	struct list prealloc_waits;	/* struct waiter, until that is over */
	struct list log_pins;		/* by seq */
	const void *turn_of;	/* stream that was read ahead last; pointer to
				 * this structure, if a large file was written
				 * back since */
	uint64_t turns;		/* number of times that turn_of has changed */
	struct pace_thread threads[PACE_THREADS];
	struct list paced;		/* struct pace */
	unsigned paced_count;
	uint64_t steady_ns;		/* when a stream last read */
	struct list promises;		/* admission.h */
	struct list broken;		/* fetches that could not begin */
	struct prefixes *prefixes;	/* prefix.h */
	struct small_ra small_ra[SMALL_RA_STREAMS];
	uint64_t small_ra_clock;
	/* Beginnings of files that were read ahead: users came to them, or
	 * they were dropped before; both fade. */
	unsigned ahead_used, ahead_wasted;
	struct list log_unpins;		/* pins to be dropped when a record is
					 * durable */
	struct writeback *writebacks;
	void **wb_data;		/* data of all write-backs */
	struct iovec *wb_iov;
	struct writeback_segment *wb_segment;
	struct list wb_free[2];	/* free write-backs: of large files and
				 * destages, of small files */
	struct list data_wbs, destages;	/* write-backs under way */
	unsigned wbs_busy, destages_busy, large_data_busy, fetches;
	unsigned small_wbs;		/* number of write-backs for small
					 * files */
	struct gap_readahead *gap_readahead; /* NULL: it was not needed yet */
	/* Belongs to gap_writeback.c; NULL: nothing waits for gaps. */
	struct freeblock_task *gap_task;
	struct list gap_queue;		/* write-backs, oldest first */
	unsigned gap_queued,
		gap_queued_destages; /* number of write-backs that wait for
				      * gaps; of destages */
	uint64_t gap_queued_total, gap_recalled_total;
	struct place_batch placing;
	bool users_read;		/* users have read lately */
	bool gap_queue_closed;		/* the queue for gaps is closed: no
					 * done() is called any more */
	uint64_t reads_seen, look_ns;	/* reads at the last look; time of the
					 * next one */
	uint64_t pump_round;
	unsigned heals, bad_writes;
	struct list suspects;		/* bad sectors that wait for another
					 * try */
	struct rangeset unexamined;	/* sectors of failed writes that are not
					 * examined yet, as others are */
	struct bad_stretch stretch;
	size_t fetch_chunks;		/* chunks pinned by fetches */
	uint64_t stamp;
	uint64_t scan_ns;		/* when old dirty blocks are looked
					 * for */
	size_t dirty_count, pinned_count;
	uint64_t written_bytes;		/* bytes of data written, in all */
	uint64_t destage_seq;		/* records up to this one are to be
					 * destaged */
	uint64_t destage_round;		/* counts rounds over pinned_files */
	bool destage_more;		/* the last round is not over */
	bool destage_again;		/* another round is wanted after it */
	bool recovered;		/* data was recovered at this mount and is not
				 * yet destaged */
	uint64_t destage_wanted_seq;	/* record up to which the log has asked
					 * for destages */
	uint64_t oldest_pinned_ns; /* when the first pinned block was logged */
	unsigned ends;		/* ends of small files that were logged since
				 * ends_since_ns */
	uint64_t ends_since_ns;
	int loss;		/* error of data that was given up, for one
				 * syncfs to report */
	bool stopped;		/* the file system has failed: files_stop */
	struct {
		unsigned waiting;	/* number of waits until all is
					 * written */
		uint64_t message_ns;	/* when to log how much is left */
	} unwritten;
	uint64_t wake_ns;	/* when writeback_pump is to be called */
	bool committing, pumping, pump_again;
	struct waiter commit;
	uint64_t commit_number;	/* number of the commit under way */
	uint64_t commits;	/* commits begun so far; number of the last
				 * one */
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
	struct stream *stream;	/* a read: the stream that it belongs to; NULL:
				 * not known yet */
	bool prepared;		/* the steps before the first block are done */
	uint64_t known_end;	/* a write to a full disk: of the blocks before
				 * here it was looked up whether they have a
				 * place; bytes */
	bool mapped;		/* those that follow `pos` have one */
	bool accepted;		/* FS_WRITE_ACCEPTED */
	void (*step)(struct io *io);
};

/* NULL: no memory, answered. */
struct io *io_new(struct fs *fs, struct fs_op *op, void (*step)(struct io *io));
void io_end(struct io *io, int rc);

/* Zeroes bytes [from, to) of a block that is in memory or that rwait has; the
 * block is dirty then. */
int write_zero(struct file *file, const struct read_wait *rwait, uint64_t index,
	       unsigned from, unsigned to);
/* WRITE operations that wait for memory go on. */
void writers_run(struct files *files);
/* A truncation or deletion has given back some room, or has ended: WRITE
 * operations that found none try again. */
void writers_retry(struct files *files);

/* ---- Data: file.c and friends, called by the rest ---- */

int files_new(struct fs *fs);		/* fs->files */
void files_free(struct fs *fs);
/* At mount: takes the data of tree_recovered_data into memory (waits), from
 * where it is destaged or, read-only, served to readers. -EIO: some cannot be
 * read. */
int files_recover(struct fs *fs);
/* Does what is due by time: write-back by age and pressure.  Returns when it
 * wants to be called again. */
uint64_t files_run(struct fs *fs, uint64_t now_ns);
bool files_idle(const struct fs *fs);

/* Replaces size and sectors in attr by those that users see, where data is
 * dirty in memory. */
void file_fix_attr(struct fs *fs, uint64_t ino, struct fs_attr *attr);

/* Operations; each answers op itself. */
void file_read(struct fs *fs, struct fs_op *op);
void file_write(struct fs *fs, struct fs_op *op);
void file_fsync(struct fs *fs, struct fs_op *op);
void file_syncfs(struct fs *fs, struct fs_op *op);
void file_fallocate(struct fs *fs, struct fs_op *op);
void file_copy_range(struct fs *fs, struct fs_op *op);
void file_extents(struct fs *fs, struct fs_op *op);
/* ---- seek.c ---- */
void file_seek(struct fs *fs, struct fs_op *op);
/* SETATTR (or OPEN) with FS_SET_SIZE in flags: changes the size, in steps.  The
 * first transaction changes all other attributes, too, through
 * inode_apply_attr.  The caller has checked for immutable and append-only
 * files. */
void file_set_size(struct fs *fs, struct fs_op *op);
/*
 * Called in run() of a rename over an existing name, before any change: the
 * data of the inode that is renamed has to be written first, or a crash leaves
 * an empty file. 0: none of its data is in memory only; FS_TXN_WAIT: its
 * write-back has been started and fs_txn_restart() follows; return it.
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
/* Writes and commits all dirty data of all files; for close. */
void files_sync(struct fs *fs, struct waiter *waiter);

#endif
