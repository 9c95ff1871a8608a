/*
 * repair_internal.h - what the parts of a repair share.
 *
 *   replay_by_mount.c  the log, by opening and closing the file system
 *   collect.c  what survives becomes a set
 *   log_scan.c  the log, record by record
 *   salvage.c  leaves without parents
 *   repair.c   the order of repairing; repair_*.c
 *   repair_alloc.c  owners, node tracks and slots
 *   rebuild.c  the set becomes a tree
 *
 * Each returns 0 or a negative errno; nothing is written to the device before
 * rebuild_write.
 */
#ifndef TRAX_REPAIR_REPAIR_INTERNAL_H
#define TRAX_REPAIR_REPAIR_INTERNAL_H

#include "check/scan/check_internal.h"
#include "check/repair/item_set.h"

/* All good items of the tree, and what salvage finds of the lost ones. */
int collect_items(struct check *check, struct item_set *set);

/*
 * Applies the log to the set, up to the first record that is missing, for when
 * the file system itself refuses to.  The set must outlive it.
 */
int log_scan_items(struct check *check, struct item_set *set);
/* The first record that follows a root newer than the one that was found; 0:
 * there is none. */
uint64_t log_scan_newer(struct check *check);
/* Is there, in the log so read, this content of a block? */
bool log_scan_has(const struct check *check, uint64_t ino, uint64_t block,
		 uint32_t sum);
/* Writes the data of the log so read where extents have it; no two of them may
 * have the same sectors any more. */
int log_scan_destaged(struct check *check);
void log_scan_free(struct check *check);

/* Items of the lost key ranges from leaves that no tree has any more; the
 * newest leaf wins.  Notes their slots in check->nodes, so that they are not
 * written over. */
int salvage_items(struct check *check, struct item_set *set);

/* ---- The new tree ---- */

/* Node slots to write to: the first half of them for nodes, the second half for
 * their mirrors, so that both are as far apart as there is room. */
struct repair_alloc {
	struct vec tracks;	/* struct repair_alloc_track, by sector */
	struct vec slots;	/* uint64_t: free ones */
	size_t next[2], last[2]; /* slots [next, last) of each half are free */
};

struct repair_alloc_track {
	uint64_t sector;
	uint32_t slots;
};

/*
 * Makes all OWNER items anew: of extents, of what the superblock places, of the
 * node tracks there are (those of the slot map and of the set, as far as they
 * lie on nothing else).  Bad sectors stay.
 */
int repair_alloc_owners(struct check *check, struct item_set *set,
			struct repair_alloc *place);

/* Makes node tracks until `nodes` slots are free, and some more where whole
 * tracks are; halves them.  -ENOSPC. */
int repair_alloc_slots(struct check *check, struct item_set *set,
		       struct repair_alloc *place, uint64_t nodes);

/* 0: none is left. */
uint64_t repair_alloc_take(struct repair_alloc *place, bool mirror);
void repair_alloc_free(struct repair_alloc *place);

/* Writes the set as a tree, with a clean root of a new generation. */
int rebuild_write(struct check *check, struct item_set *set);

/*
 * Brings a file system that was not unmounted up to date by opening and
 * closing it; loads the superblock again.  When that fails it is a problem like
 * others, and the check goes on with the last root.
 */
int replay_run(struct check *check);

/* Collects, repairs, writes. */
int repair_run(struct check *check);

#endif
