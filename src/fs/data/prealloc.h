/*
 * prealloc.h - room behind what a growing file has, kept for it while it is
 * open (preallocation, as XFS and ext4 have it).
 *
 * Write-back comes in pieces, and with little memory in small ones, of many
 * files by turns.  A file that is larger than a small one gets whole tracks for
 * what it is expected to need: up to its size, if that is known to be more than
 * it has (a download in random order), else as much again as it has.  A block
 * has its place there by its offset, so it does not matter in which order and
 * in which pieces they come.  The sectors are taken in memory only
 * (space_take): a crash leaves nothing of them.
 *
 * What is left goes back when the last handle is closed and all is written,
 * when the disk has no other room, and when too many files have some.
 */
#ifndef TRAX_DATA_PREALLOC_H
#define TRAX_DATA_PREALLOC_H

#include "fs/data/file_data.h"
#include "fs/data/writeback.h"

/* Takes the places kept for the write-back's blocks, from its first one on, as
 * its segments, and sets `want`.  False: there are none. */
bool prealloc_use(struct writeback *wb);

/*
 * Keeps room for the write-back's first block and what follows, behind the
 * sector `after` if that is not 0.  0; -EAGAIN with *group, whose free set is
 * wanted; -ENOSPC: none, or the file is not expected to need it; -ENOMEM.
 */
int prealloc_make(struct writeback *wb, uint64_t after, uint32_t *group);

/* What a file has left goes back.  NULL-safe as to its preallocation. */
void prealloc_release(struct file *file);
/* The same if nobody writes to the file any more. */
void prealloc_settle(struct file *file);
/* Goes on with giving back. */
void preallocs_run(struct files *files);
/* The disk has no other room: gives all back.  FS_TXN_WAIT until it is there;
 * -ENOSPC: there is none to give back. */
int prealloc_wait_room(struct fs_txn *txn);
/* Forgets all, with the file system; nothing goes back. */
void preallocs_free(struct files *files);
/* Gives all back when room has become scarce. */
void preallocs_check(struct files *files);

#endif
