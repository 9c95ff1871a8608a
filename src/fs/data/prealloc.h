/*
 * prealloc.h - room kept for a growing file while it is open, behind what it
 * has (preallocation, as in XFS and ext4).
 *
 * Write-back comes in extents, which are small where memory is short, of many
 * files by turns.  A file that is larger than a small one gets whole tracks for
 * the size that it is expected to reach: its size, if that is known to be more
 * than it has (a download in random order), else as much again as it has.  Each
 * block has its place there by its offset, so the order and the size of the
 * extents do not matter.  The sectors are taken in memory only (space_take): a
 * crash leaves nothing of them.
 *
 * Unused room goes back when the last handle is closed and all is written, when
 * the disk has no other room, and when too many files have some.
 */
#ifndef TRAX_DATA_PREALLOC_H
#define TRAX_DATA_PREALLOC_H

#include "fs/data/file_data.h"
#include "fs/data/writeback.h"

/* Makes the places kept for the write-back's blocks, from its first one on, its
 * segments, and sets `want`.  False: there are none. */
bool prealloc_use(struct writeback *wb);

/*
 * Keeps room for the write-back's first block and what follows, behind the
 * sector `after` if that is not 0.  `loads`: groups that were loaded for it so
 * far.  0; -EAGAIN with *group, whose free set is wanted; -ENOSPC: none, or the
 * file is not expected to need it; -ENOMEM.
 */
int prealloc_make(struct writeback *wb, uint64_t after, unsigned loads,
		  uint32_t *group);

/* Gives back what is left of a file's preallocation, if it has one. */
void prealloc_release(struct file *file);
/* The same if nobody writes to the file any more. */
void prealloc_settle(struct file *file);
/* Continues giving back. */
void preallocs_run(struct files *files);
/* Gives all preallocations back because the disk has no other room.
 * FS_TXN_WAIT: fs_txn_restart() follows when they are free; -ENOSPC: there was
 * none. */
int prealloc_wait_room(struct fs_txn *txn);
/* Frees the memory of all preallocations at close; no sectors go back. */
void preallocs_free(struct files *files);
/* Gives all back when room has become scarce. */
void preallocs_check(struct files *files);

#endif
