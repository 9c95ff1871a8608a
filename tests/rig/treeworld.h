/*
 * treeworld.h - a small store on a simulated disk beside a model of it, for
 * tests of the tree.
 *
 * Items are numbered; each has a version (0: it is not there) from which its
 * length and bytes follow.  Every change is remembered in order, so that after
 * a crash what is on the disk can be compared with each state that the model
 * went through.
 */
#ifndef TRAX_RIG_TREEWORLD_H
#define TRAX_RIG_TREEWORLD_H

#include "base/list.h"
#include "sim/sim.h"
#include "tests/rig/doubt.h"
#include "tree/tree.h"
#include "tree/tree_format.h"

#define WORLD_ITEMS 8000	/* most items of a world */
#define WORLD_SECTORS 131072u	/* 64 MiB */
#define WORLD_TRACK 2048u	/* 1 MiB, as without a geometry */

struct change {
	unsigned item, before, after;
	uint64_t txn;		/* number of the transaction, from 1 */
};

struct world {
	const struct doubt *doubt;	/* NULL: the drive is not known */
	struct head *head;
	struct sim *sim;
	struct queue *queue;
	struct tree *tree;
	struct super super;
	uint64_t rng;
	uint64_t trace;		/* hash of all requests */
	unsigned items;		/* used, of WORLD_ITEMS */
	size_t value_bytes;	/* values are up to this long */
	size_t pool_bytes;
	unsigned ranges;	/* range deletes in 200 operations */
	bool no_growth;		/* there is no room for more node tracks */
	bool may_fail;		/* the power may go: errors are expected */

	unsigned version[WORLD_ITEMS];
	unsigned next_version;
	struct change *change;
	size_t changes, room;
	uint64_t txns;		/* transactions that changed something */
	uint64_t acked;		/* first of these known to be durable */
	struct list ops;	/* transactions under way */
	unsigned open;		/* their number */
	uint64_t refused;
};

void world_init(struct world *w, uint64_t seed, unsigned items,
		size_t value_bytes, bool volatile_cache);
/* On a drive, of which every mount knows what `doubt` believes. */
void world_init_drive(struct world *w, const struct doubt *doubt,
		      uint64_t seed, unsigned items, size_t value_bytes);
/* The same file system on a disk with this content. */
void world_init_on(struct world *w, const struct world *base,
		   const struct media *content, uint64_t seed);
void world_fini(struct world *w);

/* Mounts; returns 0 or the error of tree_open or tree_start. */
int world_mount(struct world *w);
/* Calls tree_open, and not tree_start. */
int world_open(struct world *w, bool read_only);
int world_unmount(struct world *w);
/* Forgets the tree and its queue, as a crash does. */
void world_crash(struct world *w);

/* Begins a transaction of random changes, or a random read. */
void world_begin_change(struct world *w);
void world_begin_range_delete(struct world *w);
void world_begin_read(struct world *w);
/* Runs until all transactions have ended; false: the disk is off. */
bool world_settle(struct world *w);
/* One turn of the loop; false: the disk is off. */
bool world_turn(struct world *w);
/* Waits for a commit, or a checkpoint, of everything; 0 or -EIO. */
int world_commit(struct world *w);
int world_checkpoint(struct world *w);

/*
 * One transaction, waited for: fn probes and applies, called again after
 * -EAGAIN.  Returns what fn does in the end, or why it was refused; *seq (or
 * NULL): the record.
 */
typedef int (*world_fn)(struct tree_txn *txn, void *arg);
int world_do(struct world *w, const struct tree_bounds *bounds, world_fn fn,
	     void *arg, uint64_t *seq);

/* Unmounted: flips a bit in the first copy of each interior node,

 * or in every eighth leaf, as they stand in the node tracks. */
void world_spoil(struct world *w, bool interior);

/* Fails unless the tree holds exactly the model. */
void world_compare(struct world *w);
/* After a crash: the tree holds a state the model was in, no older than what
 * was acknowledged; the model becomes that state. */
void world_compare_crashed(struct world *w);
/* Checks the tree, and that no slot is lost. */
void world_check(struct world *w);

struct key world_key(unsigned item);

#endif
