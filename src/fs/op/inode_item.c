/*
 * inode_item.c - INODE items: looked up, put, and turned into attributes.
 *
 * Times are wall-clock nanoseconds, clamped to the range of the format: from
 * 1901 to 2446.
 */
#include "fs/op/inode_item.h"

#include <errno.h>

#include "base/units.h"
#include "fs/op/vnode.h"

/* The range of times, in seconds since 1970: 1901-12-13 20:45:52 to 2446-05-10
 * 22:38:55, as in ext4. */
#define TIME_MIN_SECONDS (-(1ll << 31))
#define TIME_MAX_SECONDS 15032385535ll

int inode_get(struct fs_txn *txn, uint64_t ino, struct inode_item *item)
{
	struct tree_item found;
	int rc;

	rc = tree_get(txn->tree_txn, key_make(ino, ITEM_INODE, 0), &found);
	if (rc)
		return rc;
	if (found.bytes != sizeof(*item))
		return -EUCLEAN;
	memcpy(item, found.value, sizeof(*item));
	return 0;
}

void inode_put(struct fs_txn *txn, uint64_t ino,
	       const struct inode_item *item)
{
	tree_put(txn->tree_txn, key_make(ino, ITEM_INODE, 0), item,
		 sizeof(*item));
}

static void time_put(struct disk_time *time, int64_t seconds, uint32_t ns)
{
	if (seconds < TIME_MIN_SECONDS) {
		seconds = TIME_MIN_SECONDS;
		ns = 0;
	}
	if (seconds > TIME_MAX_SECONDS) {
		seconds = TIME_MAX_SECONDS;
		ns = 0;
	}
	time->seconds = le64_put((uint64_t)seconds);
	time->ns = le32_put(ns);
}

void inode_set_time_spec(struct disk_time *time, const struct timespec *spec)
{
	uint32_t ns = spec->tv_nsec < 0 || spec->tv_nsec >= NS_PER_SECOND ?
		0 : (uint32_t)spec->tv_nsec;

	time_put(time, spec->tv_sec, ns);
}

void inode_set_time(struct disk_time *time, int64_t wall_ns)
{
	int64_t seconds = wall_ns / NS_PER_SECOND;
	int64_t ns = wall_ns % NS_PER_SECOND;

	if (ns < 0) {
		seconds--;
		ns += NS_PER_SECOND;
	}
	time_put(time, seconds, (uint32_t)ns);
}

static struct timespec time_get(const struct disk_time *time)
{
	uint32_t ns = le32_get(time->ns);

	return (struct timespec){
		.tv_sec = (int64_t)le64_get(time->seconds),
		.tv_nsec = ns < NS_PER_SECOND ? ns : 0,
	};
}

/* st_size of a directory counts this many bytes for each entry, about what an
 * entry takes in other file systems; here entries are items of the tree. */
#define DIR_ENTRY_BYTES 64u
/*
 * The kernel counts the links of an inode down after the answer to UNLINK, when
 * the calling process runs again.  For this long the number of links that is
 * reported may still differ from the kernel's.  One second was too short on a
 * machine with twelve runnable processes on two cores.
 */
#define NAME_GONE_NS (20 * (uint64_t)NS_PER_SECOND)

/* Was one of several names of the inode removed a short while ago? */
static bool inode_name_gone(struct fs *fs, uint64_t ino)
{
	const struct vnode *vnode = vnode_find(fs, ino);

	return vnode && vnode->name_gone_ns &&
	       env_now_ns(fs->env) - vnode->name_gone_ns < NAME_GONE_NS;
}

void inode_attr(struct fs *fs, uint64_t ino, const struct inode_item *item,
		struct fs_attr *attr)
{
	attr->ino = ino;
	attr->mode = inode_mode(item);
	attr->nlink = le32_get(item->nlink);
	attr->name_gone = inode_name_gone(fs, ino);
	attr->uid = le32_get(item->uid);
	attr->gid = le32_get(item->gid);
	attr->rdev = le32_get(item->rdev);
	attr->flags = le32_get(item->flags) & INODE_FLAGS_VISIBLE;
	attr->size = le64_get(item->size);
	attr->sectors = le64_get(item->sectors);
	attr->atime = time_get(&item->atime);
	attr->mtime = time_get(&item->mtime);
	attr->ctime = time_get(&item->ctime);
	attr->btime = time_get(&item->btime);
	if (S_ISDIR(attr->mode))
		attr->size = le64_get(item->entries) * DIR_ENTRY_BYTES;
	else if (S_ISREG(attr->mode))
		fs->data_ops->fix_attr(fs, ino, attr);
}
