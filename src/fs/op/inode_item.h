/*
 * inode_item.h - INODE items of the tree, and what users see of them.
 */
#ifndef TRAX_OP_INODE_ITEM_H
#define TRAX_OP_INODE_ITEM_H

#include "fs/op/fs_txn.h"

/* The flags that users see and may change. */
#define INODE_FLAGS_VISIBLE \
	(INODE_IMMUTABLE | INODE_APPEND | INODE_NOATIME | INODE_NODUMP)

/* Reads an INODE item: 0, -EAGAIN, -ENOENT (-ESTALE to the kernel), -EIO. */
int inode_get(struct fs_txn *txn, uint64_t ino, struct inode_item *item);
void inode_put(struct fs_txn *txn, uint64_t ino,
	       const struct inode_item *item);
/* Item to attributes, with what is in memory only (size, times of dirty data)
 * taken in (vnode_data_ops). */
void inode_attr(struct fs *fs, uint64_t ino, const struct inode_item *item,
		struct fs_attr *attr);
void inode_set_time(struct disk_time *time, int64_t wall_ns);
/* A time of a request; nonsense in its nanoseconds is taken as 0. */
void inode_set_time_spec(struct disk_time *time, const struct timespec *spec);

static inline uint32_t inode_mode(const struct inode_item *item)
{
	return le32_get(item->mode);
}

#endif
