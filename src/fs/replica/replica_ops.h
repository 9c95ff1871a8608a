/*
 * replica_ops.h - the operations (fs/fs.h) by which somebody asks for replicas
 * or about them, beside those that access_trace.c has made by itself.
 *
 * They begin in fs_submit (fs/fs.c) and end with fs_answer; each may wait for
 * the tree or the disk.  Texts are JSON in op->buffer, which the caller frees;
 * a long one is a page, from op->offset2 on.
 */
#ifndef TRAX_REPLICA_REPLICA_OPS_H
#define TRAX_REPLICA_REPLICA_OPS_H

#include <jansson.h>

#include "fs/op/fs_internal.h"

/* FS_COPIES_MAKE: replicas of the files in op->data, near the sector
 * op->offset; op->result: how many were made.  -EBUSY: others are being
 * made. */
void copies_op_make(struct fs *fs, struct fs_op *op);
/* FS_COPIES_DROP: gives up the replicas of op->ino, or all (root directory). */
void copies_op_drop(struct fs *fs, struct fs_op *op);
/* FS_COPIES_SET: op->size replicas of a block may be made from now on. */
void copies_op_set(struct fs *fs, struct fs_op *op);
/* FS_COPIES: where the replicas of op->ino lie; of the root directory the
 * summary below. */
void copies_op_list(struct fs *fs, struct fs_op *op);
/* FS_HEAT: requests by region, and the last accesses (access_trace.h). */
void copies_op_heat(struct fs *fs, struct fs_op *op);

/* Counters and accounts, for trax.stats and trax.replicas of the root. */
json_t *copies_summary(struct fs *fs);

#endif
