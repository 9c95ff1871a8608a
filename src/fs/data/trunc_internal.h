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

#define FOREVER (1ull << 60)		/* sectors: behind any file */
#define DROP_NODES 24u

enum trunc_kind { TRUNC_SIZE, TRUNC_DELETE, TRUNC_PUNCH, TRUNC_RESERVE };

#define EDGES 2u

/* A block as it was before a part of it was zeroed. */
struct edge {
	uint64_t index;
	void *data;		/* a reference; NULL: it was not in memory */
	bool dirty;
};

struct trunc {
	struct excl_lock excl;
	struct shared_lock lock;
	struct sync sync;
	struct read_wait rwait;	/* an edge */
	struct fs *fs;
	struct fs_op *op;	/* NULL once answered, or none */
	struct file *file;
	struct fs_txn *txn;
	enum trunc_kind kind;
	uint64_t size;		/* TRUNC_SIZE: new size */
	uint64_t first, end;	/* blocks */
	uint64_t dropped;	/* TRUNC_PUNCH: up to here, in memory */
	unsigned edge;		/* edges done */
	struct edge old[EDGES];
	unsigned old_n;
	bool cleared;		/* no copies of what goes are left */
	bool begun;		/* the first transaction is over */
	bool more;		/* another step is needed */
	bool then_reserve;	/* ZERO_RANGE: preallocate afterwards */
	bool keep_size;
	bool logged;		/* this transaction logged the last block */
	int rc;
	struct log_pin *pin;
	struct alloc_piece chunk[WB_SEGMENTS];
	int chunks;		/* taken, not owned yet */
	bool waited;
	uint64_t want;		/* blocks to ask for */
	void (*done)(struct fs *fs, uint64_t ino);	/* TRUNC_DELETE */
};

/* ---- trunc.c ---- */

void trunc_answer(struct trunc *trunc, int rc);

/* Blocks [first, end) are no more. */
void trunc_drop_blocks(struct file *file, uint64_t first, uint64_t end);

/* ---- trunc_size.c ---- */

/* Drops the sums of whole windows behind `window`; sets more. */
int trunc_windows(struct fs_txn *txn, struct trunc *trunc,
		  uint64_t window, uint64_t end_window, bool apply);

/*
 * The sums of [first, end) go: of the first window, of whole ones, of the last.
 * Called to probe, then to apply.
 */
int trunc_sums(struct fs_txn *txn, struct trunc *trunc, uint64_t first,
	     uint64_t end, bool apply);

/* What the first transaction does besides: attributes. */
int trunc_attr(struct fs_txn *txn, struct trunc *trunc,
	     struct inode_item *item);

int trunc_size_run(struct fs_txn *txn);

/* The transaction is over: memory follows. */
void trunc_size_took(struct trunc *trunc, uint64_t seq);

/* ---- trunc_room.c ---- */

int trunc_punch_run(struct fs_txn *txn);

/* Not before: what fails takes nothing away. */
void trunc_punch_took(struct trunc *trunc);

int trunc_reserve_run(struct fs_txn *txn);

void trunc_reserve_took(struct trunc *trunc);

#endif
