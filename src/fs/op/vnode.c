/*
 * vnode.c - inodes in memory: what keeps them, and when they are dropped.
 *
 *            FS_LOOKUP, FS_OPEN ...            last name removed
 *   (none) ------------------------> held ----------------------> unlinked
 *      ^                              |                               |
 *      |   refs, opens, file all gone |      refs and opens gone      |
 *      +------------------------------+                               v
 *      +----------------------- delete() is done <----------------- deleting
 *
 * Deletes found at mount are kept in fs->resume and started a few at a time.
 * Nothing here waits or fails: FS_FORGET and FS_RELEASE are answered at once.
 */
#include "fs/op/fs_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "base/slab.h"
#include "fs/op/item_scan.h"

/* Most deletes that run at once, of those found at mount.  A round number:
 * enough to keep the queue busy, and few enough to leave log and memory to
 * users. */
#define RESUME_AT_ONCE 8u

/* There are as many as the kernel knows inodes. */
static struct slabs vnodes = SLABS_INIT(vnodes, sizeof(struct vnode));

struct orphan_resume {
	struct list link;
	uint64_t ino;
};

struct vnode *vnode_find(struct fs *fs, uint64_t ino)
{
	return hashmap_get(fs->vnodes, ino);
}

struct vnode *vnode_get(struct fs *fs, uint64_t ino)
{
	struct vnode *vnode = hashmap_get(fs->vnodes, ino);

	if (vnode)
		return vnode;
	vnode = slab_get(&vnodes);
	if (!vnode)
		return NULL;
	*vnode = (struct vnode){ .ino = ino };
	if (hashmap_put(fs->vnodes, ino, vnode)) {
		slab_put(&vnodes, vnode);
		return NULL;
	}
	return vnode;
}

void vnodes_free(struct fs *fs)
{
	struct vnode *vnode;
	size_t pos = 0;
	uint64_t ino;

	while ((vnode = hashmap_next(fs->vnodes, &pos, &ino)))
		slab_put(&vnodes, vnode);
	hashmap_free(fs->vnodes);
}

static void vnode_deleted(struct fs *fs, uint64_t ino);

static void vnode_delete(struct fs *fs, struct vnode *vnode)
{
	vnode->deleting = true;
	fs->orphans_pending++;
	fs->data_ops->delete(fs, vnode->ino, vnode_deleted);
}

static void vnode_resume_next(struct fs *fs)
{
	struct orphan_resume *resume;
	struct vnode *vnode;

	while (fs->orphans_pending < RESUME_AT_ONCE) {
		resume = list_first(&fs->resume, struct orphan_resume, link);
		if (!resume)
			return;
		vnode = vnode_get(fs, resume->ino);
		if (!vnode)
			return;
		list_del(&resume->link);
		free(resume);
		vnode->unlinked = true;
		vnode_delete(fs, vnode);
	}
}

static void vnode_deleted(struct fs *fs, uint64_t ino)
{
	struct vnode *vnode = vnode_find(fs, ino);

	fs->orphans_pending--;
	vnode->deleting = false;
	vnode->unlinked = false;
	vnode_drop_unused(fs, vnode);
	vnode_resume_next(fs);
}

void vnode_drop_unused(struct fs *fs, struct vnode *vnode)
{
	if (vnode->refs || vnode->opens || vnode->deleting)
		return;
	if (vnode->unlinked && !tree_failed(fs->tree) &&
	    !fs->options.read_only) {
		vnode_delete(fs, vnode);
		return;
	}
	if (vnode->file || vnode->atime_busy)
		return;
	hashmap_del(fs->vnodes, vnode->ino);
	slab_put(&vnodes, vnode);
}

void vnode_opened(struct fs *fs, struct vnode *vnode)
{
	if (vnode->opens++ == 0)
		vnode->opened_ns = env_now_ns(fs->env);
}

void vnode_unlinked(struct fs *fs, uint64_t ino)
{
	struct vnode *vnode = vnode_get(fs, ino);

	if (!vnode)
		return;	/* no memory: the next mount finds its ORPHAN item */
	vnode->unlinked = true;
	vnode_drop_unused(fs, vnode);
}

void vnode_drop_all(struct fs *fs)
{
	struct vnode *vnode;
	size_t pos = 0;
	uint64_t ino;

	while ((vnode = hashmap_next(fs->vnodes, &pos, &ino))) {
		vnode->refs = 0;
		vnode->opens = 0;
		vnode_drop_unused(fs, vnode);
	}
}

/* ---- Orphans found at mount ---- */

void vnode_forget_resume(struct fs *fs)
{
	struct orphan_resume *resume;

	while ((resume = list_first(&fs->resume, struct orphan_resume, link))) {
		list_del(&resume->link);
		free(resume);
	}
}

static int resume_take(struct fs *fs, const struct tree_item *item)
{
	const struct orphan_item *orphan = item->value;
	struct orphan_resume *resume;

	if (orphan->what == ORPHAN_TRUNCATE) {
		fs->data_ops->resume_truncate(fs, item->key.off,
					      le64_get(orphan->size));
		return 0;
	}
	resume = calloc(1, sizeof(*resume));
	if (!resume)
		return -ENOMEM;
	resume->ino = item->key.off;
	list_add(&fs->resume, &resume->link);
	return 0;
}

int vnode_resume_orphans(struct fs *fs)
{
	int rc = item_scan(fs, ITEM_ORPHAN, resume_take);

	if (!rc)
		vnode_resume_next(fs);
	return rc;
}
