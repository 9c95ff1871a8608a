/*
 * replica.h - replicas of file blocks: the table in the tree, and the calls for
 * code that changes blocks, reads them, or needs room.
 *
 * 1. A replica counts while the REPLICA item of its original names a region
 *    that exists (format.h).  All regions are in memory.
 * 2. A transaction that changes blocks of a file drops their replicas as well
 *    (replica_probe, replica_apply), or they were dropped in a transaction
 *    before it, since which none could be attached (replica_clear).
 * 3. A replica is verified with its original's checksum, so that a violation of
 *    rule 2 returns no wrong data.
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

/* Calls to the code above the table, which makes and reads replicas. */
struct replica_table_ops {
	/* A region is dropped. */
	void (*dropped)(struct fs *fs, uint64_t sector, uint64_t sectors);
	/* Asks a replica maker to end soon, as far as it holds room, and then
	 * to call room_pump(); false: it holds none. */
	bool (*stop)(struct replica_maker *maker);
};

struct replica_stats {
	uint64_t made, made_bytes;	/* replicas attached */
	uint64_t skipped;	/* replicas not attached, because the original
				 * had changed */
	uint64_t dropped;	/* replicas dropped because the original
				 * changed */
	uint64_t reclaimed;	/* regions dropped to make room */
	uint64_t used, used_bytes;	/* reads that a replica has served */
	uint64_t offered;	/* reads that a replica could have served */
	uint64_t bad;		/* replicas that failed their checksum */
};

struct replicas {
	struct fs *fs;
	struct replica_regions *regions;
	unsigned most;		/* most replicas of a block; 0: none are made */
	unsigned paused_most;	/* what `most` is to be again when the making of
				   replicas goes on; 0: it is not paused */
	struct list waits;	/* transactions that wait for room */
	uint64_t wanted;	/* sectors still to be dropped ... */
	uint64_t from, to;	/* ... from regions that begin in this range */
	bool dropping, committing;
	struct waiter commit;
	const struct replica_table_ops *ops;
	struct replica_maker *maker;	/* belongs to replicate.c; NULL: none
					 * are being made */
	uint64_t next_ns;	/* when another step bears on users little
				 * enough */
	struct replica_stats stats;
	/* copy_limit.h */
	uint64_t day_ns, day_bytes;	/* begin of the present period of a day,
					 * and the bytes of replicas made before
					 * it */
	bool gainless;		/* the last reads that were judged gain nothing
				 * by replicas */
};

/* At mount: finds the regions (waits).  After tree_start, if any. */
int replicas_open(struct fs *fs, const struct replica_table_ops *ops);
void replicas_free(struct fs *fs);
bool replicas_idle(const struct replicas *replicas);

/* ---- For code that changes blocks ---- */

/* Most REPLICA items that one transaction drops. */
#define REPLICA_DROPS 80u
#define REPLICA_LOG_BYTES 2048u	/* bytes of log that a transaction needs which
				 * drops replicas */
#define REPLICA_PATHS 4u	/* leaves that it meets and changes for that */

struct replica_drop {
	unsigned n;
	struct {
		uint64_t off;
		uint64_t region, number;
	} drop[REPLICA_DROPS];
};

/*
 * Looks up the replicas of blocks [first, first + *n) of a file, so that
 * replica_apply can drop them; may shorten *n.  `item` is the file's inode.
 */
int replica_probe(struct fs_txn *txn, uint64_t ino,
		  const struct inode_item *item, uint64_t first, unsigned *n,
		  struct replica_drop *drop);
void replica_apply(struct fs_txn *txn, uint64_t ino,
		   const struct replica_drop *drop);

/* Drops all replicas of blocks from `first` to `end`, a step at a time; *more:
 * call again in another transaction. Needs 4 leaves, of which DROP_NODES
 * change. Nothing else is changed. */
int replica_clear(struct fs_txn *txn, uint64_t ino, uint64_t first,
		  uint64_t end, bool *more);

/* ---- For code that reads ---- */

struct replica_copy {
	uint64_t block;
	unsigned blocks;
	uint64_t sector;
	uint64_t region, number;
};

/* Most replicas that one lookup returns: four of each block of a chunk. */
#define REPLICA_FOUND 64u

/* The replicas of blocks [first, end) that count, in order; at most
 * REPLICA_FOUND. */
int replica_find(struct fs_txn *txn, uint64_t ino, uint64_t first,
		 uint64_t end, struct replica_copy *found, unsigned *n);
/*
 * Lists where `blocks` blocks from `block` on lie in one run of replicas,
 * according to replica_find; at most TRAX_MAX_REPLICAS places.  Returns their
 * number.
 */
unsigned replica_places(const struct replica_copy *found, unsigned n,
			uint64_t block, uint64_t blocks, uint64_t *sectors);
/*
 * End of the longest row of replicas that begins with block `first` or, if that
 * has none, of the blocks without a replica; at most `end`.
 */
uint64_t replica_row(const struct replica_copy *found, unsigned n,
		     uint64_t first, uint64_t end);
/* A read was served by the replica at this sector. */
void replica_used(struct fs *fs, uint64_t sector, uint64_t bytes);

/* The replicas of these blocks of one chunk at this sector have a wrong
 * checksum or cannot be read: drops them in the background. */
void replica_bad(struct fs *fs, uint64_t ino, uint64_t first, uint64_t blocks,
		 uint64_t sector);

/* ---- For code that needs room ---- */

/*
 * An allocation of `sectors` has found no room: can regions be dropped for it?
 * 0: no; FS_TXN_WAIT: yes, fs_txn_restart() follows when their room is free:
 * return it.
 */
int replica_room(struct fs_txn *txn, uint64_t sectors);
/* The same for code outside of transactions, which asks again later; true:
 * there will be room. */
bool replica_more_room(struct fs *fs, uint64_t sectors);
/* A maker that was asked to stop has ended. */
void room_pump(struct replicas *replicas);
/* Drops regions with at least this many sectors, those of least worth first. */
void replica_reclaim(struct fs *fs, uint64_t sectors);
/* The same for regions in [from, to), unless something waits for room
 * anywhere. */
void replica_reclaim_in(struct fs *fs, uint64_t from, uint64_t to,
			uint64_t sectors);
/* The same for a small part of all replicas. */
void replica_reclaim_least(struct fs *fs);

struct replica_want {		/* a range of blocks of one file */
	uint64_t ino, block;
	uint64_t blocks;
};

#endif
