/*
 * inode_item.h - INODE items of the tree, and what users see of them.
 */
#ifndef TRAX_OP_INODE_ITEM_H
#define TRAX_OP_INODE_ITEM_H

#include "fs/op/fs_txn.h"

/* The flags that users see and may change. */
#define INODE_FLAGS_VISIBLE \
	(INODE_IMMUTABLE | INODE_APPEND | INODE_NOATIME | INODE_NODUMP)

/* Reads an INODE item: 0, -EAGAIN, -ENOENT (which the kernel sees as -ESTALE),
 * -EIO. */
int inode_get(struct fs_txn *txn, uint64_t ino, struct inode_item *item);
void inode_put(struct fs_txn *txn, uint64_t ino,
	       const struct inode_item *item);
/* Turns an item into attributes; size and times of data that is dirty in memory
 * replace those of the item (vnode_data_ops). */
void inode_attr(struct fs *fs, uint64_t ino, const struct inode_item *item,
		struct fs_attr *attr);
void inode_set_time(struct disk_time *time, int64_t wall_ns);
/* Takes a time from a request; nanoseconds out of range count as 0. */
void inode_set_time_spec(struct disk_time *time, const struct timespec *spec);

static inline uint32_t inode_mode(const struct inode_item *item)
{
	return le32_get(item->mode);
}

#endif
