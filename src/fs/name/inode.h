/*
 * inode.h - attributes, flags and the access time.
 */
#ifndef TRAX_NAME_INODE_H
#define TRAX_NAME_INODE_H

#include "fs/op/inode_item.h"

/* The inode an operation names: -ESTALE when there is none, or it is being
 * deleted. */
int inode_of_op(struct fs_txn *txn, uint64_t ino, struct inode_item *item);
/* The inode that an entry leads to: its absence is damage, -EIO. */
int inode_of_entry(struct fs_txn *txn, uint64_t dir, uint64_t ino,
		   struct inode_item *item);
/* As inode_of_op; -ENOTDIR. */
int inode_of_dir(struct fs_txn *txn, uint64_t ino, struct inode_item *item);
/* A directory in which something is to be made or, with `remove`, taken out:
 * -ENOENT when it is removed itself, -EPERM. */
int inode_of_changed_dir(struct fs_txn *txn, uint64_t ino, bool removes,
			 struct inode_item *item);
/* -EPERM for immutable and append-only ones. */
int inode_may_unlink(const struct inode_item *item);
/* Now, in mtime and ctime, or ctime alone. */
void inode_changed(struct fs *fs, struct inode_item *item);
void inode_ctime(struct fs *fs, struct inode_item *item);
/* Reading updates the atime (relatime), by and by. */
void inode_touch(struct fs *fs, uint64_t ino);

void inode_op_getattr(struct fs *fs, struct fs_op *op);
void inode_op_setattr(struct fs *fs, struct fs_op *op);
void inode_op_open(struct fs *fs, struct fs_op *op);
/* FALLOCATE and COPY_RANGE, unless flags of the inode forbid it. */
void inode_op_change(struct fs *fs, struct fs_op *op);
void inode_op_getflags(struct fs *fs, struct fs_op *op);
void inode_op_setflags(struct fs *fs, struct fs_op *op);
/* Applies all of op->attr but the size to a fetched item (inode.c). */
void inode_apply_attr(struct fs *fs, const struct fs_op *op,
		      struct inode_item *item);
/* Clears what a write by the op's caller clears: suid, sgid,
 * security.capability; 0, -EAGAIN or -EIO.  On 0 the attribute is gone from
 * the tree: call it when all else has been probed without a miss, and put the
 * item. */
int inode_kill_priv(struct fs_txn *txn, const struct fs_op *op, uint64_t ino,
		    struct inode_item *item);

#endif
