/*
 * fs_txn.h - file-system transactions: an operation on the tree, run again from
 * its beginning after each node that it had to wait for.
 */
#ifndef TRAX_OP_FS_TXN_H
#define TRAX_OP_FS_TXN_H

#include "fs/op/fs_state.h"

struct fs_txn;

/* Returned by run(): the transaction waits for something else than tree nodes,
 * and fs_txn_restart() runs it again. */
#define FS_TXN_WAIT 1

struct fs_txn_type {
	const char *name;
	/* `nodes` and `new_nodes` that are 0 are computed from `paths` and
	 * `changes`. */
	struct tree_bounds bounds;
	uint8_t paths;		/* most leaves that it meets */
	uint8_t changes;	/* how many of these paths are changed */
	uint8_t stages;		/* number of lookups of which each depends on
				 * the result of the one before; 0: 1 */
	/*
	 * Probe, run and apply in one function, called again from the start
	 * after each miss: 0 = applied (or nothing to change); -EAGAIN = nodes
	 * are missing (fetched, then called again); FS_TXN_WAIT = the function
	 * has arranged for fs_txn_restart(); else the operation's error, with
	 * nothing changed.
	 */
	int (*run)(struct fs_txn *txn);
	/* Called when the transaction has ended, with the sequence number that
	 * tree_txn_end returned.  Frees its state or goes on; NULL:
	 * fs_txn_finish() is called. */
	void (*end)(struct fs_txn *txn, int rc, uint64_t seq);
	/* Called by fs_abandon to free the state.  NULL: there is nothing to
	 * free. */
	void (*free_state)(struct fs_txn *txn);
};

struct fs_txn {
	struct fs *fs;
	const struct fs_txn_type *type;
	struct fs_op *op;	/* NULL: the file system's own work */
	struct tree_txn *tree_txn;
	struct waiter waiter;	/* for commits, checkpoints and loads of
				 * groups */
	unsigned runs;		/* number of runs since it last waited */
	unsigned groups;	/* groups that it has waited for */
	bool restart;		/* fs_txn_restart was called inside run() */
	struct tree_bounds bounds;
	struct list all_link;	/* member of fs->all_txns */
	struct list link;	/* member of a list of those that wait for
				 * something */
	uint64_t unlinked;	/* inode whose last name run() has removed;
				 * vnode_unlinked is called when the transaction
				 * has ended */
	void *state;		/* belongs to the code that started it */
};

/* Starts a transaction; op may be NULL.  On -ENOMEM op has been answered. */
int fs_txn_start(struct fs *fs, const struct fs_txn_type *type,
		 struct fs_op *op, void *state);
/* The same with bounds that depend on the request (log_bytes of a logged
 * write); `bounds` is copied. */
int fs_txn_start_bounded(struct fs *fs, const struct fs_txn_type *type,
			 const struct tree_bounds *bounds, struct fs_op *op,
			 void *state);
/* Runs a transaction again that returned FS_TXN_WAIT, in a new transaction of
 * the tree.  It begins in the tree's next run, so the call is never recursive.
 * May be called inside run(). */
void fs_txn_restart(struct fs_txn *txn);
/* Ends a transaction that waits, with an error. */
void fs_txn_fail(struct fs_txn *txn, int rc);
/* Computes the bounds of a transaction that meets `paths` leaves and changes
 * `changes` of them, for the present height of the tree. */
void fs_txn_bounds(struct fs *fs, unsigned paths, unsigned changes,
		   uint32_t log_bytes, struct tree_bounds *bounds);
/* Answers the op (if any) with rc and frees the transaction. */
void fs_txn_finish(struct fs_txn *txn, int rc);
/* Begin common waits: for the free set of a group, for a checkpoint, and until
 * the waiters of a list are called.  All return FS_TXN_WAIT, which run() has to
 * return. */
int fs_txn_wait_group(struct fs_txn *txn, uint32_t group);
int fs_txn_wait_checkpoint(struct fs_txn *txn);
int fs_txn_wait_list(struct fs_txn *txn, struct list *waits);

/* Frees all transactions without calling their operations back; for
 * fs_abandon. */
void fs_txn_free_all(struct fs *fs);
/* The value of `free_state` for types whose state comes from malloc. */
void fs_txn_free_state(struct fs_txn *txn);

#endif
