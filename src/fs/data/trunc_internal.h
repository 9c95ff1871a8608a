/*
 * trunc_internal.h - changes of a file's mapping from inside: trunc.c (steps,
 * operations, deletion), trunc_size.c (the size), trunc_room.c (holes and
 * preallocated room).
 */
#ifndef TRAX_DATA_TRUNC_INTERNAL_H
#define TRAX_DATA_TRUNC_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/data/file_data.h"
#include "fs/data/file_sync.h"

#define FOREVER (1ull << 60)		/* a sector, behind the end of any file:
					 * 2^60 sectors are more than 2^63
					 * bytes */
/* Most nodes that one step changes when it drops items, so that its log record
 * stays short; the rest is left to the next step. */
#define DROP_NODES 24u

enum trunc_kind { TRUNC_SIZE, TRUNC_DELETE, TRUNC_PUNCH, TRUNC_RESERVE };

/* The first and the last block of what is cut out may be cut in part. */
#define EDGES 2u

/* A block as it was before a part of it was zeroed. */
struct edge {
	uint64_t index;
	void *data;		/* a reference to its content; NULL: it was not
				 * in memory */
	bool dirty;
};

struct trunc {
	struct excl_lock excl;
	struct shared_lock lock;
	struct sync sync;
	struct read_wait rwait;	/* waits for a block that is cut */
	struct fs *fs;
	struct fs_op *op;	/* the operation; NULL: it was answered, or
				 * there is none */
	struct file *file;
	struct fs_txn *txn;
	enum trunc_kind kind;
	uint64_t size;		/* TRUNC_SIZE: new size */
	uint64_t first, end;	/* range of blocks that goes */
	uint64_t dropped;	/* TRUNC_PUNCH: end of what has been dropped in
				 * memory */
	unsigned edge;		/* number of cut blocks that have been zeroed */
	struct edge old[EDGES];
	unsigned old_n;
	bool cleared;		/* all replicas of what goes were dropped */
	bool begun;		/* the first transaction has ended */
	bool more;		/* another step is needed */
	bool then_reserve;	/* ZERO_RANGE: preallocate afterwards */
	bool keep_size;
	bool counted;		/* TRUNC_RESERVE: room is promised for all that
				 * it will take */
	uint64_t promised;	/* sectors of that room that are not taken
				 * yet */
	bool logged;		/* this transaction logged the last block */
	int rc;
	struct log_pin *pin;
	struct alloc_extent chunk[WB_SEGMENTS];
	int chunks;		/* chunks taken that have no owner yet */
	bool waited;
	bool cuts;		/* it has begun and will give back room */
	uint64_t want;		/* blocks to ask room for */
	void (*done)(struct fs *fs, uint64_t ino);	/* TRUNC_DELETE: called
							 * at the end */
};

/* ---- trunc.c ---- */

void trunc_answer(struct trunc *trunc, int rc);

/* Drops blocks [first, end) from memory. */
void trunc_drop_blocks(struct file *file, uint64_t first, uint64_t end);

/* ---- trunc_size.c ---- */

/* Drops the items with keys from..last; sets `more` when some are left. */
int trunc_items(struct fs_txn *txn, struct trunc *trunc, struct key from,
		struct key last, bool apply);
/* Drops the checksums of whole windows behind `window`; sets `more` when some
 * are left. */
int trunc_windows(struct fs_txn *txn, struct trunc *trunc,
		  uint64_t window, uint64_t end_window, bool apply);

/*
 * Drops the checksums of [first, end): of the first window, of whole ones, of
 * the last one. Called to probe, then to apply.
 */
int trunc_sums(struct fs_txn *txn, struct trunc *trunc, uint64_t first,
	     uint64_t end, bool apply);

/* Sets the attributes that the first transaction changes. */
int trunc_attr(struct fs_txn *txn, struct trunc *trunc,
	     struct inode_item *item);

int trunc_size_run(struct fs_txn *txn);

/* The transaction has ended: brings memory up to date. */
void trunc_size_took(struct trunc *trunc, uint64_t seq);

/* ---- trunc_room.c ---- */

int trunc_punch_run(struct fs_txn *txn);

/* Drops the blocks in memory, after the transaction: one that fails removes
 * nothing. */
void trunc_punch_took(struct trunc *trunc);

/* Counts what a preallocation will take, before it takes any. */
int trunc_count_run(struct fs_txn *txn);
/* All is counted: reserves the room. -ENOSPC. */
int trunc_count_took(struct trunc *trunc);

int trunc_reserve_run(struct fs_txn *txn);

void trunc_reserve_took(struct trunc *trunc);

#endif
