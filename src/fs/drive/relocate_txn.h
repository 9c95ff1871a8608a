/*
 * relocate_txn.h - moves something that the superblock names to another place.
 *
 *   relocation_begin  finds room for to_sectors, aligned to the unit of
 *                     records, gives it an owner and puts a MOVE item, in
 *                     one transaction; done when a root has both
 *   (the caller)      writes the new place, then superblocks that name it
 *   relocation_end    removes the owner of the place that the superblocks do
 *                     not name, and the item, in one transaction
 *
 * A power cut anywhere between leaves both places with owners;
 * relocation_resume finds the item at the next mount and ends the move.  Only
 * the record of the drive moves, one move at a time; but a move of a log track
 * that an earlier version has begun is ended as well.
 */
#ifndef TRAX_DRIVE_RELOCATE_TXN_H
#define TRAX_DRIVE_RELOCATE_TXN_H

#include "fs/op/fs_internal.h"

struct relocation {
	struct fs *fs;
	enum owner_kind kind;		/* OWNER_GEOM, OWNER_LOG */
	uint64_t from, from_sectors;	/* the old place; 0: there was none */
	uint64_t to;			/* the new place; chosen at the
					 * beginning */
	uint64_t to_sectors;
	/* Called at the end of begin and of end; after an error of begin
	 * nothing has changed. */
	void (*done)(struct relocation *relocation, int rc);
	void *arg;
	/* Private to relocate_txn.c. */
	struct waiter waiter;
	uint64_t promised;	/* sectors */
	bool landed;
};

/* Begins a move; `relocation` must stay until done(), which is never called
 * from inside. */
void relocation_begin(struct relocation *relocation);
/* `landed`: the superblocks name `to` now. */
void relocation_end(struct relocation *relocation, bool landed);

/* At mount: ends moves that were begun; waits. */
int relocation_resume(struct fs *fs);

#endif
