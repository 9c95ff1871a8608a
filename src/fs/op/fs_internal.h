/*
 * fs_internal.h - what the parts of src/fs share: transactions, vnodes, and who
 * does what.
 *
 *   fs.c       open, close, the loop, the table of operations
 *   fs_txn.c   txns: admission, probe and re-run, waits
 *   vnode.c    inodes in memory: references, open handles, last close
 *   inode.c    attributes, flags            names.c  directories, rename
 *   xattr.c    extended attributes, ACLs    mkfs.c   a new file system
 *   file.c     data in memory: dirty blocks, sizes, back-pressure
 *   bmap.c     extents and checksums of a file in the tree
 *   read.c     reads, verification, track buffers
 *   write.c    write-back: new extents, logged blocks, destages
 *   trunc.c    truncate, punch, fallocate, collapse, delete: in steps
 */
#ifndef TRAX_OP_FS_INTERNAL_H
#define TRAX_OP_FS_INTERNAL_H

#include "alloc/alloc.h"
#include "base/list.h"
#include "base/hashmap.h"
#include "cache/pool.h"
#include "diskmodel/profile.h"
#include "fs/fs.h"
#include "tree/tree.h"

struct files;			/* file.c's state of the whole file system */
struct file;			/* its state of one inode, NULL when clean */
struct replicas;		/* replica.c: the copies */
struct errors;			/* errors.c: NULL until there is one */
struct replica_ra;		/* replica_readahead.c: copies read together */
struct access_trace;			/* access_trace.c: what is learned */
struct node_replicas; /* node_replicas.c: copies of tree nodes */
struct profile_save;  /* profile_save.c: what is known of the drive */
struct relocate;      /* relocate.c: log and node tracks that move */

struct fs {
	struct env *env;
	struct disk *disk;
	struct queue *queue;
	struct tree *tree;
	struct alloc *alloc;
	struct profile *profile;
	const struct geom *geom;	/* the profile's */
	struct head *head;	/* NULL: nothing is known of it */
	struct head *own_head;	/* made from the profile */
	struct fs_options options;
	struct pool_budget budget;
	struct hashmap *vnodes;		/* by inode number */
	struct files *files;
	struct replicas *replicas;	/* NULL until they are known */
	struct errors *errors;
	struct replica_ra *replica_ra;		/* there while replicas is */
	struct access_trace *access_trace;	/* NULL: nothing is learned */
	struct node_replicas
		*node_replicas;		   /* NULL: none are learned nor read */
	struct profile_save *profile_save; /* NULL: nothing is written back */
	struct relocate *relocate;		/* NULL: no track moves */
	bool closing;
	struct list ops;		/* outstanding, in order of arrival */
	uint64_t op_count;
	uint64_t stat_ops[FS_OP_TYPES];
	uint64_t orphans_pending;	/* deletes under way */
	struct list all_txns;	/* not yet finished */
	uint64_t txn_count;		/* how many these are */
	uint64_t answers;		/* ops answered so far */
	uint64_t handles;		/* open file descriptions so far */
	bool disk_gone;			/* the disk does not answer any more */
	uint64_t reruns_max;		/* of any transaction */
	uint64_t overruns;		/* runs beyond a transaction's bound */
	struct fs_txn *rename_locker;	/* has the right to move a directory */
	struct list rename_lock_waits;		/* transactions that want it */
	struct list resume;		/* vnode.c: orphans found at mount */
	struct waiter node_waiter;	/* a group load for a node track */
	bool node_waiting;
	uint64_t node_near;		/* where the last node track was made */
	uint64_t name_mask;		/* of name hashes: all ones but in
					   tests of collisions */
};

/*
 * Another belief of the disk's tracks, for new data and the head, from now on;
 * takes it over, frees the old one, and writes it back by and by.  Old data
 * stays where it is.  -EBUSY: the queue is not idle; -ENOMEM: nothing has
 * changed.
 */
int fs_adopt_profile(struct fs *fs, struct profile *profile);

/* The profile that was doubted fits the disk after all.  -EBUSY, -ENOMEM: as
 * above. */
int fs_trust_profile(struct fs *fs);

/*
 * Waiting inside the file system, at mount and close.  fs_wait runs the loop
 * until *over is set: 0, or -EIO when the disk is gone before.  What sets it
 * is often over within a turn, without any I/O, so it is looked at before each
 * sleep; fs_run(fs, -1) would sleep until the next timer first.
 */
int fs_wait(struct fs *fs, const bool *over);
/* The sleep by itself, for loops that wait for more than one thing: after
 * fs_run(fs, 0) returned next_ns, and nothing that was waited for is over.
 * Waits until then or for the next completion. */
void fs_sleep(struct fs *fs, uint64_t next_ns);

/* ---- Tickets: one operation on the tree ---- */

struct fs_txn;

/* Waiting for something else than tree nodes; fs_txn_restart() re-runs. */
#define FS_TXN_WAIT 1

struct fs_txn_type {
	const char *name;
	/* nodes and new_nodes, where 0, follow from `paths` and `changes`. */
	struct tree_bounds bounds;
	uint8_t paths;		/* leaves met, at most */
	uint8_t changes;	/* of these, changed */
	uint8_t stages;		/* lookups that depend on one another; 0: 1 */
	/*
	 * Probe, run and apply in one function, called again from the start
	 * after each miss: 0 = applied (or nothing to change); -EAGAIN = nodes
	 * are missing (fetched, then called again); FS_TXN_WAIT = the function
	 * has arranged for fs_txn_restart(); else the operation's error, with
	 * nothing changed.
	 */
	int (*run)(struct fs_txn *txn);
	/* The transaction is over, seq as tree_txn_end returned it.  Frees or
	 * goes on; when NULL, fs_txn_finish(). */
	void (*end)(struct fs_txn *txn, int rc, uint64_t seq);
	/* Frees the state; for fs_abandon.  NULL: there is nothing to free. */
	void (*free_state)(struct fs_txn *txn);
};

struct fs_txn {
	struct fs *fs;
	const struct fs_txn_type *type;
	struct fs_op *op;	/* NULL: the file system's own work */
	struct tree_txn *tree_txn;
	struct waiter waiter;	/* for commits, checkpoints, group loads */
	unsigned runs;		/* since the last wait */
	bool restart;		/* fs_txn_restart from inside run() */
	struct tree_bounds bounds;
	struct list all_link;	/* in fs->all_txns */
	struct list link;	/* in a list of those who wait */
	uint64_t unlinked;	/* run() took this inode's last name: told
				   to vnode_unlinked when all is over */
	void *state;		/* the type's */
};

/* Starts a transaction; op may be NULL.  -ENOMEM has been answered to op. */
int fs_txn_start(struct fs *fs, const struct fs_txn_type *type,
		 struct fs_op *op, void *state);
/* The same with bounds that depend on the request (log_bytes of a logged
 * write); `bounds` is copied. */
int fs_txn_start_bounded(struct fs *fs, const struct fs_txn_type *type,
			 const struct tree_bounds *bounds, struct fs_op *op,
			 void *state);
/* Re-runs a transaction that returned FS_TXN_WAIT, in a new transaction; never
 * recursive: from the tree's next run.  May be called inside run(). */
void fs_txn_restart(struct fs_txn *txn);
/* Ends a transaction that waits, with an error. */
void fs_txn_fail(struct fs_txn *txn, int rc);
/* Bounds of a transaction that meets `paths` leaves, of which it changes
 * `changes`, in a tree as high as it is now. */
void fs_txn_bounds(struct fs *fs, unsigned paths, unsigned changes,
		   uint32_t log_bytes, struct tree_bounds *bounds);
/* Answers the op (if any) with rc and frees the transaction. */
void fs_txn_finish(struct fs_txn *txn, int rc);
/* Common waits; both make run() return FS_TXN_WAIT's value. */
int fs_txn_wait_group(struct fs_txn *txn, uint32_t group);
int fs_txn_wait_checkpoint(struct fs_txn *txn);

/* Frees all transactions without a word; for fs_abandon. */
void fs_txn_free_all(struct fs *fs);
/* For `free_state` of types whose state comes from malloc. */
void fs_txn_free_state(struct fs_txn *txn);

const char *fs_op_name(enum fs_op_type type);
/* Answers an operation: rc, statistics, done(). */
void fs_answer(struct fs *fs, struct fs_op *op, int rc);

/* ---- Vnodes ---- */

struct vnode {
	uint64_t ino;
	uint64_t refs;		/* FS_LOOKUP ... FS_FORGET */
	uint32_t opens;
	bool unlinked;		/* has an ORPHAN_DELETE item */
	bool deleting;
	bool linkable;		/* made by FS_TMPFILE: may get a name */
	bool atime_done;	/* looked at since the last change */
	bool atime_busy;	/* a transaction is on its way */
	uint64_t atime_ns;	/* when (env_now_ns) */
	uint64_t name_gone_ns;	/* the last time one of several names was taken
				 * (env_now_ns); 0: not of late */
	struct file *file;	/* data in memory; NULL: none */
};

struct vnode *vnode_find(struct fs *fs, uint64_t ino);
/* Finds or makes; NULL: no memory.  Dropped again when refs, opens and file
 * are all gone (vnode_drop_unused). */
struct vnode *vnode_get(struct fs *fs, uint64_t ino);
void vnode_drop_unused(struct fs *fs, struct vnode *vnode);
/* nlink reached 0 in a transaction that put the ORPHAN_DELETE item. */
void vnode_unlinked(struct fs *fs, uint64_t ino);
/* At mount: finds the deletes and truncates that a crash left (waits), and
 * starts them in the background, a few at a time. */
int vnode_resume_orphans(struct fs *fs);
/* Drops all references and handles; at close. */
void vnode_drop_all(struct fs *fs);
/* Frees the list of orphans not yet resumed. */
void vnode_forget_resume(struct fs *fs);

/* ---- Inode items ---- */

/* Reads an INODE item: 0, -EAGAIN, -ENOENT (-ESTALE to the kernel), -EIO. */
int inode_get(struct fs_txn *txn, uint64_t ino, struct inode_item *item);
void inode_put(struct fs_txn *txn, uint64_t ino,
	       const struct inode_item *item);
/* Item to attributes, with what is in memory only (size, times of dirty data)
 * taken in (file_fix_attr). */
void inode_attr(struct fs *fs, uint64_t ino, const struct inode_item *item,
		struct fs_attr *attr);
void inode_set_time(struct disk_time *time, int64_t wall_ns);

/* ---- Data: file.c and friends, called by the rest ---- */

int files_new(struct fs *fs);		/* fs->files */
void files_free(struct fs *fs);
/* At mount: takes tree_recovered_data into memory (waits), from where it goes
 * home, or, read-only, reads are served.  -EIO: some of it cannot be read. */
int files_recover(struct fs *fs);
/* Timers: write-back by age (30 s) and pressure.  Next time wanted. */
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
/* Applies all of op->attr but the size to a fetched item (inode.c). */
void inode_apply_attr(struct fs *fs, const struct fs_op *op,
		      struct inode_item *item);
/* Clears what a write by the op's caller clears: suid, sgid,
 * security.capability; 0, -EAGAIN or -EIO.  On 0 the attribute is gone from
 * the tree: call it when all else has been probed without a miss, and put the
 * item. */
int inode_kill_priv(struct fs_txn *txn, const struct fs_op *op, uint64_t ino,
		    struct inode_item *item);
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
