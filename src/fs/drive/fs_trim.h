/*
 * fs_trim.h - tells the disk which sectors nobody needs (FITRIM).
 */
#ifndef TRAX_DRIVE_FS_TRIM_H
#define TRAX_DRIVE_FS_TRIM_H

#include "fs/op/fs_internal.h"

/*
 * FS_TRIM.  Only what is free in the durable root as well is discarded: sectors
 * that were freed since may be needed after a power cut.  -EOPNOTSUPP: the disk
 * has no way.
 */
void trim_op(struct fs *fs, struct fs_op *op);
/* A discard has ended, which the queue does not know of. */
bool trim_due(const struct fs *fs);
uint64_t trim_run(struct fs *fs, uint64_t now_ns);

#endif
