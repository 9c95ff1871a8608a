/*
 * relocate_txn.h - what the superblock names moves to another place.
 *
 *   relocation_begin  finds room, gives it an owner and puts a MOVE item, in
 *                     one transaction; done when a root holds both
 *   (the caller)      writes what belongs there, then superblocks that name it
 *   relocation_end    takes the owner of the place that the superblocks do not
 *                     name, and the item, in one transaction
 *
 * A cut anywhere between leaves both places with owners; relocation_resume
 * finds the item at the next mount and ends what was begun.  One move of a kind
 * at a time.
 */
#ifndef TRAX_DRIVE_RELOCATE_TXN_H
#define TRAX_DRIVE_RELOCATE_TXN_H

#include "fs/op/fs_internal.h"

struct relocation {
	struct fs *fs;
	enum owner_kind kind;		/* OWNER_GEOM, OWNER_LOG */
	uint64_t from, from_sectors;	/* 0: there was none */
	uint64_t to, to_sectors;	/* `to` 0: find() is asked */
	/*
	 * Finds room of to_sectors (which it may set) and takes it
	 * (space_take) into `to`.  -EAGAIN: wants *group loaded; -ENOSPC.
	 */
	int (*find)(struct relocation *relocation, uint32_t *group);
	/* Of begin and of end; after an error of begin nothing has changed. */
	void (*done)(struct relocation *relocation, int rc);
	void *arg;
	/* Its own. */
	struct waiter waiter;
	uint64_t promised;	/* sectors */
	bool landed;
};

/* The caller's until done(); never called from inside. */
void relocation_begin(struct relocation *relocation);
/* `landed`: the superblocks name `to` now. */
void relocation_end(struct relocation *relocation, bool landed);

/* A find() for `to_sectors` anywhere, aligned to records, from the outer edge
 * on. */
int relocation_find_any(struct relocation *relocation, uint32_t *group);

/* At mount: ends what was begun; waits. */
int relocation_resume(struct fs *fs);

#endif
