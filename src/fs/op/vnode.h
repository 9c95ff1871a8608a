/*
 * vnode.h - inodes in memory: references, open handles, the last close.
 */
#ifndef TRAX_OP_VNODE_H
#define TRAX_OP_VNODE_H

#include "fs/op/fs_txn.h"

struct vnode {
	uint64_t ino;
	uint64_t refs;		/* FS_LOOKUP ... FS_FORGET */
	uint32_t opens;
	uint64_t opened_ns;	/* when `opens` last began to be above 0
				 * (env_now_ns) */
	bool unlinked;		/* has an ORPHAN_DELETE item */
	bool deleting;
	bool linkable;		/* made by FS_TMPFILE: may get a name */
	bool atime_done;	/* looked at since the last change */
	bool atime_busy;	/* a transaction is on its way */
	uint64_t atime_ns;	/* when that time was set (env_now_ns) */
	uint64_t name_gone_ns;	/* the last time one of several names was taken
				 * (env_now_ns); 0: not of late */
	struct file *file;	/* data in memory; NULL: none */
};

struct vnode *vnode_find(struct fs *fs, uint64_t ino);
/* Finds or makes; NULL: no memory.  Dropped again when refs, opens and file
 * are all gone (vnode_drop_unused). */
struct vnode *vnode_get(struct fs *fs, uint64_t ino);
void vnode_drop_unused(struct fs *fs, struct vnode *vnode);
/* Counts another open handle. */
void vnode_opened(struct fs *fs, struct vnode *vnode);
/* nlink reached 0 in a transaction that put the ORPHAN_DELETE item. */
void vnode_unlinked(struct fs *fs, uint64_t ino);
/* At mount: finds the deletes and truncates that a crash left (waits), and
 * starts them in the background, a few at a time. */
int vnode_resume_orphans(struct fs *fs);
/* Drops all references and handles; at close. */
void vnode_drop_all(struct fs *fs);
/* Frees the list of orphans not yet resumed. */
void vnode_forget_resume(struct fs *fs);

/* The data of an inode.  Names and inodes stand below the files, so they call
 * them by this table, which files_new() fills in. */
struct vnode_data_ops {
	/* Drops everything of an inode that has an ORPHAN_DELETE item: dirty
	 * data, extents, checksums, xattrs, INLINE, INODE, ORPHAN, in steps;
	 * then calls done. */
	void (*delete)(struct fs *fs, uint64_t ino,
		       void (*done)(struct fs *fs, uint64_t ino));
	/* Goes on with an ORPHAN_TRUNCATE found at mount. */
	void (*resume_truncate)(struct fs *fs, uint64_t ino, uint64_t size);
	/* Size and sectors as users see them: where data is dirty in memory,
	 * those of the tree are too old. */
	void (*fix_attr)(struct fs *fs, uint64_t ino, struct fs_attr *attr);
	/* Data before the name that leads to it: file_order(). */
	int (*order)(struct fs_txn *txn, uint64_t ino);
	/* These answer op themselves: SETATTR with FS_SET_SIZE, FALLOCATE,
	 * COPY_RANGE. */
	void (*set_size)(struct fs *fs, struct fs_op *op);
	void (*fallocate)(struct fs *fs, struct fs_op *op);
	void (*copy_range)(struct fs *fs, struct fs_op *op);
};

#endif
