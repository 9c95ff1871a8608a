/*
 * inode.h - attributes, flags and the access time.
 */
#ifndef TRAX_NAME_INODE_H
#define TRAX_NAME_INODE_H

#include "fs/op/inode_item.h"

/* Reads the inode that an operation names: -ESTALE if there is none, or it is
 * being deleted. */
int inode_of_op(struct fs_txn *txn, uint64_t ino, struct inode_item *item);
/* Reads the inode that an entry leads to: if there is none this is damage,
 * -EIO. */
int inode_of_entry(struct fs_txn *txn, uint64_t dir, uint64_t ino,
		   struct inode_item *item);
/* The same as inode_of_op for a directory; -ENOTDIR. */
int inode_of_dir(struct fs_txn *txn, uint64_t ino, struct inode_item *item);
/* Reads a directory in which a name is to be made or, with `removes`, removed:
 * -ENOENT if it is removed itself, -EPERM. */
int inode_of_changed_dir(struct fs_txn *txn, uint64_t ino, bool removes,
			 struct inode_item *item);
/* May a name of the inode be removed? -EPERM for immutable and append-only
 * ones. */
int inode_may_unlink(const struct inode_item *item);
/* Sets mtime and ctime, or ctime alone, to the present time. */
void inode_changed(struct fs *fs, struct inode_item *item);
void inode_ctime(struct fs *fs, struct inode_item *item);
/* The file is read: sets the access time (relatime) in the background if it is
 * due. */
void inode_touch(struct fs *fs, uint64_t ino);

void inode_op_getattr(struct fs *fs, struct fs_op *op);
void inode_op_setattr(struct fs *fs, struct fs_op *op);
void inode_op_open(struct fs *fs, struct fs_op *op);
/* Does FALLOCATE and COPY_RANGE, unless flags of the inode forbid it. */
void inode_op_change(struct fs *fs, struct fs_op *op);
void inode_op_getflags(struct fs *fs, struct fs_op *op);
void inode_op_setflags(struct fs *fs, struct fs_op *op);
/* Applies all of op->attr but the size to a fetched item (inode.c). */
void inode_apply_attr(struct fs *fs, const struct fs_op *op,
		      struct inode_item *item);
/* Clears what a write by the op's caller has to clear: set-uid, set-gid,
 * security.capability; 0, -EAGAIN or -EIO.  On 0 the attribute is removed from
 * the tree: call it when everything else has been probed without a miss, and
 * put the item afterwards. */
int inode_kill_priv(struct fs_txn *txn, const struct fs_op *op, uint64_t ino,
		    struct inode_item *item);

#endif
