/*
 * replica.h - copies of file blocks: the table in the tree, who uses it, and
 * who makes room.
 *
 * 1. A copy counts while the REPLICA item of its original names a region that
 *    is there (format.h).  The regions are in memory, all of them.
 * 2. Whoever changes blocks of a file drops their copies in the same
 *    transaction (replica_probe, replica_apply) or in one before it during
 *    which nothing can be attached (replica_clear).
 * 3. A copy is verified with its original's checksum, so that even what breaks
 *    rule 2 is never returned.
 * 4. The room of a region is written when the record that drops it is durable:
 *    what a recovery finds in the table is what is on the disk.
 *
 * Units: blocks of files, sectors of the disk.
 */
#ifndef TRAX_TABLE_REPLICA_H
#define TRAX_TABLE_REPLICA_H

#include "fs/op/block_units.h"
#include "fs/op/fs_txn.h"
#include "replicate/regions.h"

struct replica_maker;
struct replicas;

/* What makes and reads replicas stands above the table. */
struct replica_table_ops {
	/* A region is dropped. */
	void (*dropped)(struct fs *fs, uint64_t sector, uint64_t sectors);
	/* What makes replicas is to end soon, as far as it holds room, and
	 * then calls room_pump(); false: none is being made. */
	bool (*stop)(struct replica_maker *maker);
};

struct replica_stats {
	uint64_t made, made_bytes;	/* copies attached */
	uint64_t skipped;	/* the original had changed */
	uint64_t dropped;	/* because the original changed */
	uint64_t reclaimed;	/* regions, for room */
	uint64_t used, used_bytes;	/* reads served by a copy */
	uint64_t offered;	/* reads that a copy could have served */
	uint64_t bad;		/* copies that failed their checksum */
};

struct replicas {
	struct fs *fs;
	struct replica_regions *regions;
	unsigned most;		/* copies of a block; 0: none are made */
	struct list waits;	/* transactions that wait for room */
	uint64_t wanted;	/* sectors still to be dropped */
	uint64_t from, to;	/* of regions that begin there */
	bool dropping, committing;
	struct waiter commit;
	const struct replica_table_ops *ops;
	struct replica_maker *maker;	/* replicate.c's; NULL: none */
	struct idle_write *idle_write;
	uint64_t next_ns;	/* when users at work bear another step */
	struct replica_stats stats;
};

/* At mount: finds the regions (waits).  After tree_start, if any. */
int replicas_open(struct fs *fs, const struct replica_table_ops *ops);
void replicas_free(struct fs *fs);
bool replicas_idle(const struct replicas *replicas);

/* ---- Who changes blocks ---- */

#define REPLICA_DROPS 80u
#define REPLICA_LOG_BYTES 2048u	/* of a transaction that drops so many */
#define REPLICA_PATHS 4u	/* leaves it meets, and changes, for that */

struct replica_drop {
	unsigned n;
	struct {
		uint64_t off;
		uint64_t region, number;
	} drop[REPLICA_DROPS];
};

/*
 * Looks up the copies of blocks [first, first + *n) of a file, so that apply
 * can drop them; may shorten *n.  `item` is the file's inode.
 */
int replica_probe(struct fs_txn *txn, uint64_t ino,
		  const struct inode_item *item, uint64_t first, unsigned *n,
		  struct replica_drop *drop);
void replica_apply(struct fs_txn *txn, uint64_t ino,
		   const struct replica_drop *drop);

/* All copies of blocks from `first` to `end` go, a step at a time; *more: call
 * again in another transaction.  Needs 4 leaves, of which DROP_NODES change.
 * Nothing else is changed. */
int replica_clear(struct fs_txn *txn, uint64_t ino, uint64_t first,
		  uint64_t end, bool *more);

/* ---- Who reads ---- */

struct replica_copy {
	uint64_t block;
	unsigned blocks;
	uint64_t sector;
	uint64_t region, number;
};

#define REPLICA_FOUND 64u

/* The copies that count of blocks [first, end), in order; at most
 * REPLICA_FOUND. */
int replica_find(struct fs_txn *txn, uint64_t ino, uint64_t first,
		 uint64_t end, struct replica_copy *found, unsigned *n);
/*
 * Where `blocks` blocks from `block` on lie in one run of copies, according to
 * what replica_find gave; at most TRAX_MAX_REPLICAS places.  Returns how many.
 */
unsigned replica_places(const struct replica_copy *found, unsigned n,
			uint64_t block, uint64_t blocks, uint64_t *sectors);
/*
 * Where the longest row of copies ends that begins with block `first`, or, if
 * that has none, the blocks without one; at most `end`.
 */
uint64_t replica_row(const struct replica_copy *found, unsigned n,
		     uint64_t first, uint64_t end);
/* A read was served by the copy at this sector. */
void replica_used(struct fs *fs, uint64_t sector, uint64_t bytes);

/* The copies of these blocks, of one piece, at this sector have a wrong
 * checksum, or cannot be read: they go, in the background. */
void replica_bad(struct fs *fs, uint64_t ino, uint64_t first, uint64_t blocks,
		 uint64_t sector);

/* ---- Who needs room ---- */

/*
 * An allocation of so many sectors has found no room: are there regions that
 * can be dropped for it?  0: no; FS_TXN_WAIT: yes, fs_txn_restart() follows
 * when their room is free: return it.
 */
int replica_room(struct fs_txn *txn, uint64_t sectors);
/* The same for who is no transaction and asks again; true: room comes. */
bool replica_more_room(struct fs *fs, uint64_t sectors);
/* What stop() asked to end has ended. */
void room_pump(struct replicas *replicas);
/* Drops this many sectors' worth of regions, those of least worth first. */
void replica_reclaim(struct fs *fs, uint64_t sectors);
/* The same in [from, to), unless somebody waits for room anywhere. */
void replica_reclaim_in(struct fs *fs, uint64_t from, uint64_t to,
			uint64_t sectors);

struct replica_want {		/* blocks of one file, any number */
	uint64_t ino, block;
	uint64_t blocks;
};

#endif
