/*
 * inode.c - attributes and flags.
 *
 * The access time follows relatime: a read starts a transaction of its own, at
 * most one for an inode at a time, and none as long as nothing changed since
 * the last one.
 */
#include "base/units.h"
#include "fs/name/names.h"

#include <errno.h>
#include <fcntl.h>

#include "base/msg.h"

/* relatime sets an access time anew that is a day old, as the kernel does. */
#define ATIME_MAX_AGE_NS (24ull * 3600 * NS_PER_SECOND)

/* ---- Probes ---- */

bool probe_ok(struct probe *probe, int rc)
{
	if (rc == -EAGAIN)
		probe->miss = true;
	else if (rc && !probe->rc)
		probe->rc = rc;
	return rc == 0;
}

void probe_expect(struct probe *probe, struct fs_txn *txn, struct key key,
		  int want)
{
	struct tree_item item;
	char text[64];
	int rc = tree_get(txn->tree_txn, key, &item);

	if (rc == want)
		return;
	if (rc == 0 || rc == -ENOENT) {
		msg_error("%s: item %s is %s", txn->fs->disk->name,
			  key_text(key, text, sizeof(text)),
			  rc ? "missing" : "there and should not be");
		rc = -EUCLEAN;
	}
	probe_ok(probe, rc);
}

int probe_result(const struct probe *probe)
{
	if (probe->rc)
		return probe->rc;
	return probe->miss ? -EAGAIN : 0;
}

/* ---- Items ---- */

int inode_of_op(struct fs_txn *txn, uint64_t ino, struct inode_item *item)
{
	struct vnode *vnode;
	int rc = inode_get(txn, ino, item);

	if (rc == -ENOENT)
		return -ESTALE;
	if (rc)
		return rc;
	if (le32_get(item->nlink) == 0) {
		vnode = vnode_find(txn->fs, ino);
		if (!vnode || vnode->deleting)
			return -ESTALE;
	}
	return 0;
}

int inode_of_entry(struct fs_txn *txn, uint64_t dir, uint64_t ino,
		   struct inode_item *item)
{
	int rc = inode_get(txn, ino, item);

	if (rc == -ENOENT ||
	    (rc == 0 && (le32_get(item->nlink) == 0 || ino == dir))) {
		msg_error("%s: an entry of directory %llu leads to inode %llu, "
			  "which cannot be", txn->fs->disk->name,
			  (unsigned long long)dir, (unsigned long long)ino);
		return -EUCLEAN;
	}
	return rc;
}

int inode_of_dir(struct fs_txn *txn, uint64_t ino, struct inode_item *item)
{
	int rc = inode_of_op(txn, ino, item);

	if (rc == 0 && !S_ISDIR(inode_mode(item)))
		return -ENOTDIR;
	return rc;
}

int inode_of_changed_dir(struct fs_txn *txn, uint64_t ino, bool removes,
			 struct inode_item *item)
{
	uint32_t forbids = INODE_IMMUTABLE | (removes ? INODE_APPEND : 0);
	int rc = inode_of_dir(txn, ino, item);

	if (rc)
		return rc;
	if (le32_get(item->nlink) == 0)
		return -ENOENT;
	return le32_get(item->flags) & forbids ? -EPERM : 0;
}

int inode_may_unlink(const struct inode_item *item)
{
	uint32_t forbids = INODE_IMMUTABLE | INODE_APPEND;

	return le32_get(item->flags) & forbids ? -EPERM : 0;
}

/* ---- Times ---- */

void inode_changed(struct fs *fs, struct inode_item *item)
{
	inode_set_time(&item->mtime, env_wall_ns(fs->env));
	item->ctime = item->mtime;
}

void inode_ctime(struct fs *fs, struct inode_item *item)
{
	inode_set_time(&item->ctime, env_wall_ns(fs->env));
}

/* ---- Attributes ---- */

static int inode_getattr_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	int rc = inode_of_op(txn, op->ino, &item);

	if (!rc)
		inode_attr(txn->fs, op->ino, &item, &op->attr);
	return rc;
}

static const struct fs_txn_type inode_getattr_type = {
	.name = "getattr",
	.paths = 1,
	.run = inode_getattr_run,
};

void inode_op_getattr(struct fs *fs, struct fs_op *op)
{
	fs_txn_start(fs, &inode_getattr_type, op, NULL);
}

void inode_apply_attr(struct fs *fs, const struct fs_op *op,
		      struct inode_item *item)
{
	int64_t now = env_wall_ns(fs->env);
	uint32_t flags = op->flags;

	if (flags & FS_SET_MODE)
		item->mode = le32_put((inode_mode(item) & S_IFMT) |
				      (op->attr.mode & 07777));
	if (flags & FS_SET_UID)
		item->uid = le32_put(op->attr.uid);
	if (flags & FS_SET_GID)
		item->gid = le32_put(op->attr.gid);
	if (flags & FS_SET_ATIME_NOW)
		inode_set_time(&item->atime, now);
	else if (flags & FS_SET_ATIME)
		inode_set_time_spec(&item->atime, &op->attr.atime);
	if (flags & FS_SET_MTIME)
		inode_set_time_spec(&item->mtime, &op->attr.mtime);
	else if (flags & (FS_SET_MTIME_NOW | FS_SET_SIZE))
		inode_set_time(&item->mtime, now);
	if (flags & FS_SET_CTIME)
		inode_set_time_spec(&item->ctime, &op->attr.ctime);
	else if (flags)
		inode_set_time(&item->ctime, now);
}

#define TOUCH_SECONDS 2		/* seconds by which the kernel's time of a touch
				 * may be behind: it reads its coarse clock, and
				 * the request takes a while */

static bool inode_is_touch(struct fs *fs, const struct fs_op *op)
{
	int64_t age = env_wall_seconds(fs->env) - op->attr.mtime.tv_sec;

	return op->flags & FS_SET_ATIME_NOW && op->flags & FS_SET_MTIME &&
	       age >= 0 && age <= TOUCH_SECONDS;
}

/* Checks flags of the inode that the VFS cannot see here. */
static int inode_check_attr(struct fs *fs, const struct fs_op *op,
			    const struct inode_item *item)
{
	uint32_t flags = le32_get(item->flags);
	uint32_t mode = inode_mode(item);
	uint32_t strict = FS_SET_MODE | FS_SET_UID | FS_SET_GID | FS_SET_SIZE |
			  FS_SET_ATIME | FS_SET_MTIME;

	if (op->flags & FS_SET_SIZE) {
		if (S_ISDIR(mode))
			return -EISDIR;
		if (!S_ISREG(mode))
			return -EINVAL;
	}
	/* Passed: the kernel sends the times of writes made earlier, and both
	 * times of a touch, though it says "now" only of the access time. */
	if (!(op->flags & ~(FS_SET_MTIME | FS_SET_CTIME)))
		return 0;
	if (inode_is_touch(fs, op))
		strict &= ~FS_SET_MTIME;
	if (flags & INODE_IMMUTABLE && op->flags)
		return -EPERM;
	if (flags & INODE_APPEND && op->flags & strict)
		return -EPERM;
	return 0;
}

/*
 * Does the request drop set-uid and set-gid?  For chown(2) that changes no
 * owner the kernel allows everybody to call it, and leaves it to the file
 * system to drop them.  The same request comes before a write, and there WRITE
 * itself drops them.
 */
static bool inode_drops_mode(const struct fs_op *op,
			     const struct inode_item *item)
{
	return op->type != FS_SETATTR || op->uid == 0 ||
	       op->uid == le32_get(item->uid) ||
	       op->flags & ~(FS_SET_KILL_PRIV | FS_SET_CTIME);
}

/* Does the request drop set-gid?  It does without group execution, unless the
 * caller is in the group; of the caller's groups only the first is known
 * here. */
static bool inode_drops_sgid(const struct fs_op *op,
			     const struct inode_item *item)
{
	return inode_mode(item) & S_IXGRP ||
	       (op->uid && op->gid != le32_get(item->gid));
}

int inode_kill_priv(struct fs_txn *txn, const struct fs_op *op, uint64_t ino,
		    struct inode_item *item)
{
	uint32_t mode = inode_mode(item);
	struct xattr_slot slot;
	int rc;

	if (S_ISDIR(mode))
		return 0;
	if (le32_get(item->flags) & INODE_HAS_CAPS) {
		rc = xattr_find(txn, ino, item, "security.capability",
				&slot);
		if (!rc && slot.found)
			rc = xattr_probe_remove(txn, &slot);
		if (rc)
			return rc;
		if (slot.found)
			xattr_remove(txn, &slot, item);
	}
	if (!inode_drops_mode(op, item))
		return 0;
	mode &= ~(uint32_t)S_ISUID;
	if (inode_drops_sgid(op, item))
		mode &= ~(uint32_t)S_ISGID;
	item->mode = le32_put(mode);
	return 0;
}

/* chmod changes the access ACL, too. */
static int inode_acl_probe(struct fs_txn *txn, const struct inode_item *item,
			   struct acl *acl, struct xattr_slot *slot)
{
	int rc;

	slot->found = false;
	if (!(txn->op->flags & FS_SET_MODE))
		return 0;
	rc = acl_get(txn, txn->op->ino, item, ACL_ACCESS_NAME, acl,
		     slot);
	if (rc == -ENODATA)
		return 0;
	return rc ? rc : xattr_probe_write(txn, slot, slot->value_bytes);
}

static void inode_acl_apply(struct fs_txn *txn, struct inode_item *item,
			    struct acl *acl, const struct xattr_slot *slot)
{
	uint8_t value[ACL_MAX_BYTES];

	if (!slot->found)
		return;
	acl_chmod(acl, txn->op->attr.mode);
	xattr_write(txn, slot, item, value, acl_format(acl, value));
}

static int inode_setattr_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	struct xattr_slot slot;
	struct acl acl;
	struct fs_op rest = { .flags = op->flags, .attr = op->attr };
	int rc = inode_of_op(txn, op->ino, &item);

	if (!rc)
		rc = inode_check_attr(txn->fs, op, &item);
	if (rc)
		return rc;
	if (op->flags & FS_SET_SIZE)
		rest.flags &= FS_SET_MODE;	/* is done together with the
						 * rest */
	if (rest.flags) {
		rc = inode_acl_probe(txn, &item, &acl, &slot);
		if (!rc && op->flags & FS_SET_KILL_PRIV)
			rc = inode_kill_priv(txn, op, op->ino, &item);
		if (rc)
			return rc;
		inode_acl_apply(txn, &item, &acl, &slot);
		inode_apply_attr(txn->fs, &rest, &item);
		inode_put(txn, op->ino, &item);
	}
	if (!(op->flags & FS_SET_SIZE))
		inode_attr(txn->fs, op->ino, &item, &op->attr);
	return 0;
}

static void inode_setattr_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct fs_op *op = txn->op;
	struct fs *fs = txn->fs;

	(void)seq;
	if (rc || !(op->flags & FS_SET_SIZE)) {
		fs_txn_finish(txn, rc);
		return;
	}
	txn->op = NULL;
	fs_txn_finish(txn, 0);
	op->flags &= ~FS_SET_MODE;
	fs->data_ops->set_size(fs, op);
}

static const struct fs_txn_type inode_times_type = {
	.name = "setattr",
	.bounds = { .log_bytes = NAMES_LOG_INODE },
	.paths = 1,
	.changes = 1,
	.run = inode_setattr_run,
	.end = inode_setattr_end,
};

static const struct fs_txn_type inode_setattr_type = {
	.name = "setattr with ACL",
	.bounds = { .log_bytes = NAMES_LOG_INODE + 2 * NAMES_LOG_NAME },
	.paths = 9,
	.changes = 3,
	.stages = 3,
	.run = inode_setattr_run,
	.end = inode_setattr_end,
};

static int inode_last_times_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	int rc = inode_of_op(txn, op->ino, &item);

	if (rc)
		return rc;
	inode_apply_attr(txn->fs, op, &item);
	inode_attr(txn->fs, op->ino, &item, &op->attr);
	return 0;
}

static const struct fs_txn_type inode_last_times_type = {
	.name = "last times",
	.paths = 1,
	.run = inode_last_times_run,
};

/* The kernel sends the times of each file that it unlinks.  It keeps them as
 * long as the file lives, so nobody else can ask for them: they are not
 * stored. */
static bool inode_only_last_times(const struct vnode *vnode,
				  const struct fs_op *op)
{
	return vnode && vnode->unlinked && !vnode->linkable &&
	       !(op->flags & ~(FS_SET_MTIME | FS_SET_CTIME));
}

void inode_op_setattr(struct fs *fs, struct fs_op *op)
{
	bool more = op->flags & (FS_SET_MODE | FS_SET_KILL_PRIV);
	struct vnode *vnode = vnode_find(fs, op->ino);

	if (inode_only_last_times(vnode, op)) {
		fs_txn_start(fs, &inode_last_times_type, op, NULL);
		return;
	}
	if (vnode)
		vnode->atime_done = false;
	fs_txn_start(fs, more ? &inode_setattr_type : &inode_times_type, op,
		     NULL);
}

/* ---- Access time ---- */

static bool inode_atime_due(const struct fs *fs, const struct fs_attr *attr)
{
	const int64_t old = env_wall_seconds(fs->env) -
			    (int64_t)(ATIME_MAX_AGE_NS / NS_PER_SECOND);

	if (attr->atime.tv_sec <= old || fs->options.strictatime)
		return true;
	if (attr->atime.tv_sec != attr->mtime.tv_sec ?
	    attr->atime.tv_sec < attr->mtime.tv_sec :
	    attr->atime.tv_nsec <= attr->mtime.tv_nsec)
		return true;
	return attr->atime.tv_sec != attr->ctime.tv_sec ?
		attr->atime.tv_sec < attr->ctime.tv_sec :
		attr->atime.tv_nsec <= attr->ctime.tv_nsec;
}

/* May the access time of this inode have to be set? */
static bool inode_atime_counts(struct fs *fs, const struct vnode *vnode)
{
	uint64_t now = env_now_ns(fs->env);

	if (fs->options.noatime || fs->options.read_only ||
	    tree_failed(fs->tree) || vnode->atime_busy || vnode->unlinked)
		return false;
	return fs->options.strictatime || !vnode->atime_done ||
	       now - vnode->atime_ns >= ATIME_MAX_AGE_NS;
}

static void inode_atime_seen(struct fs *fs, struct vnode *vnode)
{
	vnode->atime_done = true;
	vnode->atime_ns = env_now_ns(fs->env);
}

/* Sets the access time if it is due; true: the item has to be put. */
static bool inode_set_atime(struct fs *fs, uint64_t ino,
			    struct inode_item *item)
{
	struct fs_attr attr;

	if (le32_get(item->flags) & INODE_NOATIME ||
	    (fs->options.nodiratime && S_ISDIR(inode_mode(item))))
		return false;
	inode_attr(fs, ino, item, &attr);
	if (!inode_atime_due(fs, &attr))
		return false;
	inode_set_time(&item->atime, env_wall_ns(fs->env));
	return true;
}

/* ---- Open ---- */

static int inode_check_open(const struct fs *fs, const struct fs_op *op,
			    const struct inode_item *item)
{
	uint32_t flags = le32_get(item->flags);
	bool writes = (op->flags & O_ACCMODE) != O_RDONLY;
	bool truncates = op->flags & O_TRUNC;

	if (S_ISDIR(inode_mode(item)) && (writes || truncates))
		return -EISDIR;
	if (!writes && !truncates)
		return 0;
	if (fs->options.read_only && S_ISREG(inode_mode(item)))
		return -EROFS;
	if (flags & INODE_IMMUTABLE)
		return -EPERM;
	if (flags & INODE_APPEND && (truncates || !(op->flags & O_APPEND)))
		return -EPERM;
	return 0;
}

static bool inode_open_reads(const struct fs_op *op)
{
	return !(op->flags & O_TRUNC) && (op->flags & O_ACCMODE) == O_RDONLY;
}

/* May an open set the access time? */
static bool inode_open_counts(struct fs *fs, const struct fs_op *op,
			      const struct vnode *vnode)
{
	return !(op->flags & O_NOATIME) && inode_open_reads(op) &&
	       inode_atime_counts(fs, vnode);
}

static int inode_open_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	struct vnode *vnode;
	int rc = inode_of_op(txn, op->ino, &item);

	if (!rc)
		rc = inode_check_open(txn->fs, op, &item);
	if (rc)
		return rc;
	vnode = vnode_get(txn->fs, op->ino);
	if (!vnode)
		return -ENOMEM;
	op->result = inode_open_counts(txn->fs, op, vnode) &&
		     inode_set_atime(txn->fs, op->ino, &item);
	if (op->result)
		inode_put(txn, op->ino, &item);
	if (inode_open_reads(op) && !(op->flags & O_NOATIME))
		inode_atime_seen(txn->fs, vnode);
	vnode_opened(txn->fs, vnode);
	return 0;
}

static const struct fs_txn_type inode_open_type = {
	.name = "open",
	.bounds = { .log_bytes = NAMES_LOG_INODE },
	.paths = 1,
	.changes = 1,
	.run = inode_open_run,
};

/*
 * Opening for reading needs nothing of the inode that the kernel has not
 * checked.  But reads from the kernel's cache are not seen here, so the access
 * time counts from the open.
 */
void inode_op_open(struct fs *fs, struct fs_op *op)
{
	struct vnode *vnode = vnode_find(fs, op->ino);

	op->result = 0;
	if (vnode && !vnode->deleting && inode_open_reads(op) &&
	    !inode_open_counts(fs, op, vnode)) {
		vnode_opened(fs, vnode);
		fs_answer(fs, op, 0);
		return;
	}
	fs_txn_start(fs, &inode_open_type, op, NULL);
}

/* ---- Changes that the kernel asks for without a look at the flags ---- */

static int inode_may_change_run(struct fs_txn *txn)
{
	const struct fs_op *op = txn->op;
	uint32_t mode = op->flags & ~FS_SET_KILL_PRIV, flags;
	struct inode_item item;
	int rc;

	rc = inode_of_op(txn, op->type == FS_COPY_RANGE ? op->ino2 : op->ino,
			 &item);
	if (rc)
		return rc;
	flags = le32_get(item.flags);
	if (flags & INODE_IMMUTABLE)
		return -EPERM;
	/* An append-only file may get preallocated room behind its end. */
	if (flags & INODE_APPEND &&
	    (op->type != FS_FALLOCATE || mode & ~(uint32_t)FALLOC_FL_KEEP_SIZE))
		return -EPERM;
	return 0;
}

static void inode_may_change_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct fs_op *op = txn->op;
	struct fs *fs = txn->fs;

	(void)seq;
	if (rc) {
		fs_txn_finish(txn, rc);
		return;
	}
	txn->op = NULL;
	fs_txn_finish(txn, 0);
	if (op->type == FS_COPY_RANGE)
		fs->data_ops->copy_range(fs, op);
	else
		fs->data_ops->fallocate(fs, op);
}

static const struct fs_txn_type inode_may_change_type = {
	.name = "may change",
	.paths = 1,
	.run = inode_may_change_run,
	.end = inode_may_change_end,
};

void inode_op_change(struct fs *fs, struct fs_op *op)
{
	op->result = 0;
	fs_txn_start(fs, &inode_may_change_type, op, NULL);
}

/* ---- Flags ---- */

static int inode_getflags_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	int rc = inode_of_op(txn, op->ino, &item);

	if (!rc)
		op->result = le32_get(item.flags) & INODE_FLAGS_VISIBLE;
	return rc;
}

static const struct fs_txn_type inode_getflags_type = {
	.name = "getflags",
	.paths = 1,
	.run = inode_getflags_run,
};

void inode_op_getflags(struct fs *fs, struct fs_op *op)
{
	fs_txn_start(fs, &inode_getflags_type, op, NULL);
}

static int inode_setflags_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	uint32_t flags;
	int rc = inode_of_op(txn, op->ino, &item);

	if (rc)
		return rc;
	flags = le32_get(item.flags) & ~INODE_FLAGS_VISIBLE;
	item.flags = le32_put(flags | op->flags);
	inode_ctime(txn->fs, &item);
	inode_put(txn, op->ino, &item);
	return 0;
}

static const struct fs_txn_type inode_setflags_type = {
	.name = "setflags",
	.bounds = { .log_bytes = NAMES_LOG_INODE },
	.paths = 1,
	.changes = 1,
	.run = inode_setflags_run,
};

void inode_op_setflags(struct fs *fs, struct fs_op *op)
{
	if (op->flags & ~INODE_FLAGS_VISIBLE)
		fs_answer(fs, op, -EOPNOTSUPP);
	else
		fs_txn_start(fs, &inode_setflags_type, op, NULL);
}

/* ---- Access time, in the background ---- */

static int inode_touch_run(struct fs_txn *txn)
{
	struct vnode *vnode = txn->state;
	struct inode_item item;
	int rc = inode_get(txn, vnode->ino, &item);

	if (!rc && inode_set_atime(txn->fs, vnode->ino, &item))
		inode_put(txn, vnode->ino, &item);
	return rc;
}

static void inode_touch_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct vnode *vnode = txn->state;
	struct fs *fs = txn->fs;

	(void)seq;
	vnode->atime_busy = false;
	fs_txn_finish(txn, rc);
	vnode_drop_unused(fs, vnode);
}

static const struct fs_txn_type inode_touch_type = {
	.name = "touch",
	.bounds = { .log_bytes = NAMES_LOG_INODE },
	.paths = 1,
	.changes = 1,
	.run = inode_touch_run,
	.end = inode_touch_end,
};

void inode_touch(struct fs *fs, uint64_t ino)
{
	struct vnode *vnode = vnode_find(fs, ino);

	if (!vnode || !inode_atime_counts(fs, vnode))
		return;
	inode_atime_seen(fs, vnode);
	vnode->atime_busy = true;
	if (fs_txn_start(fs, &inode_touch_type, NULL, vnode))
		vnode->atime_busy = false;
}
