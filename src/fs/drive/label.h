/*
 * label.h - the file system's label is changed while it is mounted.
 */
#ifndef TRAX_DRIVE_LABEL_H
#define TRAX_DRIVE_LABEL_H

#include "fs/op/fs_internal.h"

/* FS_SET_LABEL: waits until nobody else writes the superblocks.  -EINVAL: too
 * long; -EBUSY: another change is under way. */
void label_op(struct fs *fs, struct fs_op *op);
uint64_t label_run(struct fs *fs, uint64_t now_ns);

#endif
