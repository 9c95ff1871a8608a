/*
 * replica_ops.h - FS_COPIES_MAKE and its like; see fs.h.
 */
#ifndef TRAX_REPLICA_REPLICA_OPS_H
#define TRAX_REPLICA_REPLICA_OPS_H

#include <jansson.h>

#include "fs/op/fs_internal.h"

void copies_op_make(struct fs *fs, struct fs_op *op);
void copies_op_drop(struct fs *fs, struct fs_op *op);
void copies_op_set(struct fs *fs, struct fs_op *op);
void copies_op_list(struct fs *fs, struct fs_op *op);
void copies_op_heat(struct fs *fs, struct fs_op *op);

/* Counters and accounts, for trax.stats and trax.replicas of the root. */
json_t *copies_summary(struct fs *fs);

#endif
