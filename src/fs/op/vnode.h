/*
 * vnode.h - inodes in memory: references, open handles, the last close.
 */
#ifndef TRAX_OP_VNODE_H
#define TRAX_OP_VNODE_H

#include "fs/op/fs_txn.h"

struct vnode {
	uint64_t ino;
	uint64_t refs;		/* references: counted up by FS_LOOKUP and its
				 * like, down by FS_FORGET */
	uint32_t opens;
	uint64_t opened_ns;	/* when `opens` last began to be above 0
				 * (env_now_ns) */
	bool unlinked;		/* has an ORPHAN_DELETE item */
	bool deleting;
	bool linkable;		/* it was made by FS_TMPFILE and may get a
				 * name */
	bool atime_done;	/* the access time was checked, and nothing
				 * changed since */
	bool atime_busy;	/* a transaction that sets the access time is
				 * under way */
	uint64_t atime_ns;	/* when the access time was last set
				 * (env_now_ns) */
	uint64_t name_gone_ns;	/* when one of several names was last removed
				 * (env_now_ns); 0: not of late */
	struct file *file;	/* state of its data in memory; NULL: none */
};

struct vnode *vnode_find(struct fs *fs, uint64_t ino);
/* Finds or makes the vnode; NULL: no memory. vnode_drop_unused drops it when it
 * has no references, handles and file any more. */
struct vnode *vnode_get(struct fs *fs, uint64_t ino);
void vnode_drop_unused(struct fs *fs, struct vnode *vnode);
/* Counts another open handle. */
void vnode_opened(struct fs *fs, struct vnode *vnode);
/* A transaction has set nlink to 0 and put the ORPHAN_DELETE item. */
void vnode_unlinked(struct fs *fs, uint64_t ino);
/* At mount: finds the deletes and truncations that a crash interrupted (waits),
 * and starts them in the background, a few at a time. */
int vnode_resume_orphans(struct fs *fs);
/* Drops all references and handles; at close. */
void vnode_drop_all(struct fs *fs);
/* Frees the list of orphans not yet resumed. */
void vnode_forget_resume(struct fs *fs);
/* Frees all of them, and the map. */
void vnodes_free(struct fs *fs);

/* The data of an inode.  Names and inodes are below files in the order of
 * layers, so they call file data through this table, which files_new() sets. */
struct vnode_data_ops {
	/* Drops everything of an inode that has an ORPHAN_DELETE item: dirty
	 * data, extents, checksums, xattrs, INLINE, INODE, ORPHAN, in steps;
	 * then calls done. */
	void (*delete)(struct fs *fs, uint64_t ino,
		       void (*done)(struct fs *fs, uint64_t ino));
	/* Goes on with an ORPHAN_TRUNCATE found at mount. */
	void (*resume_truncate)(struct fs *fs, uint64_t ino, uint64_t size);
	/* Replaces size and sectors by those that users see: where data is
	 * dirty in memory, those of the tree are too old. */
	void (*fix_attr)(struct fs *fs, uint64_t ino, struct fs_attr *attr);
	/* Has data written before the name that leads to it: file_order(). */
	int (*order)(struct fs_txn *txn, uint64_t ino);
	/* These answer op themselves: SETATTR with FS_SET_SIZE, FALLOCATE,
	 * COPY_RANGE. */
	void (*set_size)(struct fs *fs, struct fs_op *op);
	void (*fallocate)(struct fs *fs, struct fs_op *op);
	void (*copy_range)(struct fs *fs, struct fs_op *op);
};

#endif
