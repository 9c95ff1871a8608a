/*
 * tree.h - the store: atomic transactions on one copy-on-write B-tree.
 *
 * A transaction runs in three phases (doc/design/operations.md):
 *   probe   tree_get / tree_seek_* look things up.  A node that is not in
 *           memory is noted, and -EAGAIN returned; the caller goes on probing,
 *           then tree_txn_fetch reads all noted nodes together, and the caller
 *           runs again from the start.  Nodes met stay pinned until the end.
 *   run     pure code over resident nodes.
 *   apply   tree_put / tree_del / tree_del_range / tree_log_data.  Cannot fail:
 *           every key changed has been looked up in this run without -EAGAIN.
 *           After the first change there is no way back.
 * tree_txn_end makes the changes one whole entry group of the log; they are
 * durable when tree_commit says so, all or none.
 *
 * A changed node moves to another slot the first time it is changed in a
 * generation.  tree_checkpoint cuts a generation, writes its dirty nodes bottom
 * up and then its root; the next generation runs meanwhile, at most two live.
 * Checkpoints start by themselves when the log is 40 % full.
 *
 * The tree owns the space (space/space.h) and the log (log/log.h) and drives
 * both.  One thread; no call blocks but tree_open and those that say so.
 * Errors: -EAGAIN (miss), -ENOENT, -EIO (device, or a node whose both copies
 * are bad: reported with place and reason), -ENOSPC (node slots), -EROFS
 * (read-only or failed).
 */
#ifndef TRAX_TREE_TREE_H
#define TRAX_TREE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "format/format.h"
#include "log/log.h"
#include "sched/queue/queue.h"
#include "space/space.h"

struct tree;
struct tree_txn;

struct tree_options {
	bool read_only;
	bool accept_loss;	/* allow writing although acknowledged log
				   records are lost; goes on without them */
	bool no_replay;		/* with read_only: the state of the last root,
				   whatever the log has */
	size_t node_pool_bytes;	/* 0: 32 MiB; at least 4 MiB */
	size_t recover_bytes;	/* memory for records of the log, until
				 * tree_recovered_end; 0: as little as
				 * possible */
	uint64_t commit_ns;	/* age of a change that makes a commit begin;
				   0: 5 s */
	uint64_t checkpoint_ns;	/* age of a change that makes a checkpoint
				   begin; 0: 60 s */
};

/* What recovery found at open, for messages and tests. */
struct tree_recovery {
	bool was_clean;
	uint64_t records;	/* records applied from the log */
	uint64_t data_blocks;	/* logged blocks of data that are still to be
				 * destaged */
	bool damaged;		/* acknowledged records, or a root that they
				   follow, are lost: read-only, unless
				   accept_loss */
};

/*
 * Opens the store on a device: superblock (best of its places), newest valid
 * root, slot map, group table, log replay.  Waits for its I/O (queue_poll).
 * Nothing is written: that begins with tree_start.  -EBADMSG/-EUCLEAN/-EINVAL
 * with place and reason through msg; -EFBIG: device smaller than file system.
 */
int tree_open(struct env *env, struct queue *queue,
	      const struct tree_options *options, struct tree **tree);

const struct tree_recovery *tree_recovered(const struct tree *tree);

/*
 * Logged data that may not have been destaged, oldest first: the last content
 * of each (ino, block).  The caller looks up the block's checksum in the tree.
 * If that is `sum`, the content is the file's; otherwise it has been
 * superseded.
 */
struct tree_data {
	uint64_t ino, block;
	uint64_t sum;
	uint64_t seq;		/* log record that has it */
	uint32_t record, offset; /* where the tree finds the content */
};
size_t tree_recovered_data(const struct tree *tree,
			   const struct tree_data **data);
/* Gives the content, TRAX_BLOCK_BYTES each, of n of them in their order, until
 * block() returns nonzero.  Waits for reads of the log. */
int tree_recovered_read(struct tree *tree, size_t first, size_t n,
			int (*block)(void *arg, const struct tree_data *data,
				     const void *bytes),
			void *arg);
/* Frees the memory for recovered data, which nobody needs any more. */
void tree_recovered_end(struct tree *tree);

/*
 * Writes the root of a new epoch and allows changes.  The log record of each
 * recovered block is pinned once.  The caller unpins it (tree_log_unpin) when
 * the block has been destaged, or turned out to be superseded.  Not called on
 * read-only mounts.  tree_start waits for the root; after tree_start_begin it
 * is on its way: reads go on, changes and commits wait for it, and when it
 * cannot be written the tree has failed.
 */
int tree_start(struct tree *tree);
int tree_start_begin(struct tree *tree);

/* An item as it is to be; value NULL: it is to be deleted. */
struct tree_change {
	struct key key;
	const void *value;
	size_t bytes;
};

/*
 * Makes the tree that of a larger file system, which `next` describes: with
 * root areas of its own beyond the old end, and a last superblock there.  The
 * tree was left clean, has just been opened and is not started.  The changes
 * say so in OWNER items.  Waits, and leaves it started.  After a power cut the
 * disk holds the old file system or the new one (doc/format.md, 10.1).
 * -EUCLEAN: it was not clean; -EIO, -ENOMEM, -ENOSPC: only tree_abandon is
 * allowed then.
 */
int tree_grow(struct tree *tree, const struct super *next,
	      const struct tree_change *change, size_t n);

/* Writes a last checkpoint with the clean flag if the tree was started and has
 * not failed; waits.  Always frees the tree.  No transaction may be open. */
int tree_close(struct tree *tree);

/* Frees without writing anything: a crash, in tests. */
void tree_abandon(struct tree *tree);

const struct super *tree_super(const struct tree *tree);
/* Takes over a superblock that the caller has written to at least one place.
 * All that it names has owners. */
void tree_set_super(struct tree *tree, const struct super *super);
struct space *tree_space(struct tree *tree);
struct log *tree_log(struct tree *tree);
/* Fails the file system: no more changes until it is mounted again.  The reason
 * is reported once. */
void tree_fail(struct tree *tree, const char *why);
bool tree_failed(const struct tree *tree);

/* ---- Transactions ---- */

/* Most leaves that one transaction may meet: the smallest pool has buffers for
 * three such transactions.  Longer work is divided into several. */
#define TREE_MAX_NODES 64u
/* A walk over items looks the next one up while its transaction may meet this
 * many more leaves: a lookup that comes to the end of a leaf goes on in the
 * next one, and further if deletions have emptied that. */
#define TREE_SEEK_NODES 3u

/* The most that an operation of one type may need. */
struct tree_bounds {
	uint16_t nodes;		/* most nodes that it meets, at most
				 * TREE_MAX_NODES */
	uint16_t new_nodes;	/* node slots taken: nodes changed + splits */
	uint32_t log_bytes;	/* bytes of its entries, tree_log_data
				 * included */
	bool urgent;		/* it frees space, and may use the last
				 * reserves */
	bool promised;		/* it writes data that was accepted, and may use
				 * slots that are kept from transactions that
				 * are neither */
};

struct tree_txn_ops {
	/* Called when the transaction was admitted, or its nodes were fetched;
	 * from tree_run or queue_poll, never from inside tree_begin or
	 * tree_txn_fetch. rc: 0, or why it can't run: -EIO, -EROFS, -ENOSPC. */
	void (*run)(struct tree_txn *txn, void *arg, int rc);
};

/*
 * Asks for admission, first in first out, when pins, slots and log room can
 * all be reserved.  run() is called when it is.  Read-only bounds (new_nodes 0,
 * log_bytes 0) never wait for log or slots.  -ENOMEM.
 */
int tree_begin(struct tree *tree, const struct tree_bounds *bounds,
	       const struct tree_txn_ops *ops, void *arg,
	       struct tree_txn **txn);

/* Fetches what the probes missed; run() is called again, from the next
 * tree_run when nothing was missed. */
void tree_txn_fetch(struct tree_txn *txn);

/* Releases pins and reservations.  Returns the sequence number of the log
 * record that holds the changes, 0 when nothing was changed. */
uint64_t tree_txn_end(struct tree_txn *txn);

/* Has it changed something? */
bool tree_txn_changed(const struct tree_txn *txn);

/* How many more nodes it may meet: its bound, less the nodes that it has pinned
 * or noted as missing. It is for transactions that take as many items as
 * fit. */
unsigned tree_txn_room(const struct tree_txn *txn);

/* One item; valid until the next change or fetch of any transaction. */
struct tree_item {
	struct key key;
	const void *value;
	size_t bytes;
};

/* -ENOENT, -EAGAIN, -EIO. */
int tree_get(struct tree_txn *txn, struct key key, struct tree_item *item);
/* The first item with from <= key <= last. */
int tree_seek_ge(struct tree_txn *txn, struct key from, struct key last,
		 struct tree_item *item);
/* The last item with first <= key <= from. */
int tree_seek_le(struct tree_txn *txn, struct key from, struct key first,
		 struct tree_item *item);
/* Notes the leaves of [from, last] for the next fetch without looking at them,
 * at most `nodes` of them: for readdir and scans. */
void tree_prefetch(struct tree_txn *txn, struct key from, struct key last,
		   unsigned nodes);

/* Adds or replaces an item.  OWNER items are passed on to the space. */
void tree_put(struct tree_txn *txn, struct key key, const void *value,
	      size_t bytes);
/* Deletes an item, which must exist. */
void tree_del(struct tree_txn *txn, struct key key);
/*
 * Deletes [first, last]; not for OWNER and INODE items.  Leaves wholly inside
 * the range are dropped without being read; the two at the ends must be
 * resident (looked up in this run).  At most max_nodes nodes are dropped or
 * changed; returns the first key not yet treated, or KEY_MAX when all is done.
 */
struct key tree_del_range(struct tree_txn *txn, struct key first,
			  struct key last, unsigned max_nodes);
/* Moves the nodes on the way to a key, which has been looked up, to other slots
 * with the next checkpoint; nothing else changes, and nothing is logged. */
void tree_touch(struct tree_txn *txn, struct key key);
/* Blocks of file data that become durable with this transaction's record.
 * The record is pinned (log_pin) once; the caller unpins tree_txn_end's
 * sequence number once all that it logged here was destaged. */
void tree_log_data(struct tree_txn *txn, uint64_t ino, uint64_t block,
		   unsigned n, const uint64_t *sums, const struct iovec *iov,
		   unsigned iov_n);

/* Returns a new inode sequence number, which is never used twice; 0: none is
 * left. A message warns from the last eighth of them on. */
uint64_t tree_new_ino_seq(struct tree *tree);
uint64_t tree_ino_seqs_left(const struct tree *tree);
/* Returns the number of a new directory; its group is that modulo
 * TRAX_DIRGROUPS. */
uint64_t tree_new_dirgroup(struct tree *tree);
/* The number of inodes in use, counted from INODE items that are put and
 * deleted. */
uint64_t tree_inodes(const struct tree *tree);

/* ---- Durability ---- */

/* Calls the waiter when all records up to seq (UINT64_MAX: up to the last) are
 * durable; or with -EIO. */
void tree_commit(struct tree *tree, uint64_t seq, struct waiter *waiter);

/* The newest durable root; the next checkpoint replaces it. */
const struct root *tree_durable_root(const struct tree *tree);

/* Calls the waiter when a root is durable that holds all that has been changed
 * so far; what was freed before is free then. */
void tree_checkpoint(struct tree *tree, struct waiter *waiter);
/* The next checkpoint, which is not needless then, also fills leaves that are
 * in memory and lie apart, and writes them one behind the other; after it nodes
 * may leave a track that can then be given back.  For idle time. */
void tree_gather(struct tree *tree);

/*
 * Sets order(), which is called before a commit that is due by age and returns
 * the time (env_now_ns) until which the commit should wait; 0: not at all.  The
 * tree waits 2 s at most.
 */
void tree_set_order(struct tree *tree, uint64_t (*order)(void *arg), void *arg);

/*
 * Called when the log wants data logged up to `seq` to be destaged, so that its
 * tracks can be reused. The owner (fs) writes that data and unpins the records.
 */
void tree_set_destage(struct tree *tree,
		      void (*destage)(void *arg, uint64_t seq), void *arg);
void tree_log_unpin(struct tree *tree, uint64_t seq);

/* Loads the free space of a group (OWNER items), in the background. */
void tree_load_group(struct tree *tree, uint32_t group,
		     struct waiter *waiter);

/* Sets pick(), which chooses a place for a node track: the tree calls it when
 * fewer than a quarter of its slots are free.  It returns 0 and sectors taken
 * with space_take, -EAGAIN after asking for a group to be loaded, or
 * -ENOSPC. */
void tree_set_node_place(struct tree *tree,
			 int (*pick)(void *arg, traxaddr *addr,
				     uint32_t *sectors),
			 void *arg);

/* A node that somebody had to wait for, as node_read() gets it. */
struct tree_node_read {
	struct key low, high;	/* range of keys that it holds */
	unsigned level;		/* 0: a leaf */
	traxaddr addr;
	uint64_t wait_ns;	/* time waited for it; 0: it came from a copy */
};

enum tree_copy { TREE_COPY_NONE, TREE_COPY_HERE, TREE_COPY_LATER };

/*
 * A supplier of replicas of nodes, which also learns which nodes are read.
 * copy() fills in the node at `addr` if it has a replica, which is verified
 * like what the disk gives.  TREE_COPY_LATER: it cannot say yet; transactions
 * that want the node wait until tree_copies_ready.  node_read() is called for
 * each node that has been read.  Either may be NULL.
 */
struct tree_copies {
	enum tree_copy (*copy)(void *arg, traxaddr addr, void *node);
	void (*node_read)(void *arg, const struct tree_node_read *read);
	void *arg;
};
void tree_set_copies(struct tree *tree, const struct tree_copies *copies);
/* Asks copy() again for the nodes that had to wait. */
void tree_copies_ready(struct tree *tree);
/* The node of a level where a key is, if memory has it exactly as the disk
 * does; else NULL. Valid until the next call of the tree. */
const void *tree_clean_node(struct tree *tree, struct key key, unsigned level,
			    struct key *high);
/* Is this node, as read from the disk, what its parent says, as far as the
 * parent is in memory? */
bool tree_node_is_good(struct tree *tree, const void *node);
/*
 * The lowest key of the node that has one of its copies at this address, looked
 * for from *from on.  -ENOENT: there is none; -EINPROGRESS: not yet found, and
 * *from is where a further transaction goes on; -EAGAIN, -EIO.
 */
int tree_copy_key(struct tree_txn *txn, traxaddr addr, struct key *from,
		  struct key *low);
/* May the node of a level where a key is still be the one at this address, as
 * far as is known? */
bool tree_node_is_at(struct tree *tree, struct key key, unsigned level,
		     traxaddr addr);

/* Runs what is due: admission, commits by age, checkpoints, mirrors.  Returns
 * the time at which it wants to be run again (UINT64_MAX: never).  Call after
 * each queue_poll. */
uint64_t tree_run(struct tree *tree, uint64_t now_ns);
/* Has something come since the last tree_run that it could do at once? */
bool tree_due(const struct tree *tree);

/* Is nothing in flight and does nothing wait (checkpoints, mirrors,
 * fetches)? */
bool tree_idle(const struct tree *tree);

struct tree_stats {
	uint64_t txns, max_reruns;
	uint64_t siblings_read;	/* nodes read together with others though nobody
				 * waited for them; they are not counted in
				 * node_reads */
	uint64_t node_reads, node_writes, checkpoints, waits;
	uint64_t gathered;	/* leaves that were brought together */
	uint64_t lined;		/* leaves that were lined up because they were
				 * written anyway */
	uint64_t spills;	/* times that leaves were written without a
				 * checkpoint */
	uint64_t nodes_cached, nodes_dirty;
	uint64_t levels;
};
void tree_get_stats(const struct tree *tree, struct tree_stats *out);

#endif
