/*
 * fs_txn.h - transactions: one operation on the tree, run again after each node
 * that it had to wait for.
 */
#ifndef TRAX_OP_FS_TXN_H
#define TRAX_OP_FS_TXN_H

#include "fs/op/fs_state.h"

struct fs_txn;

/* Waiting for something else than tree nodes; fs_txn_restart() re-runs. */
#define FS_TXN_WAIT 1

struct fs_txn_type {
	const char *name;
	/* nodes and new_nodes, where 0, follow from `paths` and `changes`. */
	struct tree_bounds bounds;
	uint8_t paths;		/* leaves met, at most */
	uint8_t changes;	/* how many of these paths are changed */
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
	struct waiter waiter;	/* for commits, checkpoints and loads of
				 * groups */
	unsigned runs;		/* runs since it last waited */
	bool restart;		/* fs_txn_restart from inside run() */
	struct tree_bounds bounds;
	struct list all_link;	/* member of fs->all_txns */
	struct list link;	/* member of a list of those that wait for
				 * something */
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
/* Common waits; all return FS_TXN_WAIT, which run() returns in turn. The last
 * one ends when somebody calls the waiters of the list. */
int fs_txn_wait_group(struct fs_txn *txn, uint32_t group);
int fs_txn_wait_checkpoint(struct fs_txn *txn);
int fs_txn_wait_list(struct fs_txn *txn, struct list *waits);

/* Frees all transactions without a word; for fs_abandon. */
void fs_txn_free_all(struct fs *fs);
/* The value of `free_state` for types whose state comes from malloc. */
void fs_txn_free_state(struct fs_txn *txn);

#endif
