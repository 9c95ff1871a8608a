/*
 * super_edit.h - changes the label or the shown UUID of a mounted file system.
 */
#ifndef TRAX_DRIVE_SUPER_EDIT_H
#define TRAX_DRIVE_SUPER_EDIT_H

#include "fs/op/fs_internal.h"

/* FS_SET_LABEL, FS_SET_UUID: waits until nobody else writes the superblocks.
 * -EINVAL: too long; -EBUSY: another change is under way. */
void super_edit_op(struct fs *fs, struct fs_op *op);
uint64_t super_edit_run(struct fs *fs, uint64_t now_ns);

#endif
