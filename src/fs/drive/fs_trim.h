/*
 * fs_trim.h - tells the disk which sectors are free (FITRIM).
 */
#ifndef TRAX_DRIVE_FS_TRIM_H
#define TRAX_DRIVE_FS_TRIM_H

#include "fs/op/fs_internal.h"

/*
 * FS_TRIM.  Only sectors that are free in the durable root as well are
 * discarded: those freed since may be needed after a power cut. -EOPNOTSUPP:
 * the disk cannot discard.
 */
void trim_op(struct fs *fs, struct fs_op *op);
/* Has a discard ended?  The queue does not know of it. */
bool trim_due(const struct fs *fs);
uint64_t trim_run(struct fs *fs, uint64_t now_ns);

#endif
