/*
 * names.c - lookup, making and removing names.  Renaming is in rename.c.
 *
 * Each operation is one txn: it probes the directory, the name, and all
 * items that it will change, decides, and then applies.  A new inode's number
 * is drawn in the first run that knows the directory, and kept in op->attr.ino
 * over re-runs.
 */
#include "fs/name/names.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>

/* The default ACL of the parent, and what a new inode gets of it. */
struct inherit {
	struct acl acl;
	bool found;		/* the parent has a default ACL */
	struct xattr_slot access, dflt;
	uint8_t value[ACL_MAX_BYTES];	/* the parent's default ACL as it is
					 * stored */
	size_t bytes;
};

static struct key orphan_key(uint64_t ino)
{
	return key_make(0, ITEM_ORPHAN, ino);
}

/* ---- Lookup ---- */

static int names_return(struct fs_txn *txn, uint64_t ino,
			const struct inode_item *item)
{
	struct vnode *vnode = vnode_get(txn->fs, ino);

	if (!vnode)
		return -ENOMEM;
	vnode->refs++;
	inode_attr(txn->fs, ino, item, &txn->op->attr);
	return 0;
}

/* Looks up "." and "..", for which only an exported (NFS) file system is
 * asked. */
static int names_lookup_dots(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	uint64_t ino = op->ino;
	int rc = inode_of_op(txn, ino, &item);

	if (rc)
		return rc;
	if (op->name[1]) {
		if (!S_ISDIR(inode_mode(&item)))
			return -ENOTDIR;
		ino = le64_get(item.parent);
		rc = inode_of_op(txn, ino, &item);
		if (rc)
			return rc;
	}
	return names_return(txn, ino, &item);
}

static int names_lookup_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item dir, item;
	struct probe probe = { 0 };
	struct dir_slot slot;
	int rc;

	if (dir_is_dots(op->name))
		return names_lookup_dots(txn);
	probe_ok(&probe, inode_of_dir(txn, op->ino, &dir));
	if (probe_ok(&probe, dir_find(txn, op->ino, op->name, &slot)) &&
	    slot.found)
		probe_ok(&probe, inode_of_entry(txn, op->ino, slot.ino,
						&item));
	rc = probe_result(&probe);
	if (rc)
		return rc;
	if (!slot.found)
		return -ENOENT;
	return names_return(txn, slot.ino, &item);
}

static const struct fs_txn_type names_lookup_type = {
	.name = "lookup",
	.paths = 3,
	.stages = 2,
	.run = names_lookup_run,
};

void names_op_lookup(struct fs *fs, struct fs_op *op)
{
	int rc = dir_check_name(op->name);

	if (rc)
		fs_answer(fs, op, rc);
	else
		fs_txn_start(fs, &names_lookup_type, op, NULL);
}

static int names_readlink_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	struct tree_item target;
	int rc = inode_of_op(txn, op->ino, &item);
	int rc2 = tree_get(txn->tree_txn, key_make(op->ino, ITEM_INLINE, 0),
			   &target);

	if (rc)
		return rc;
	if (!S_ISLNK(inode_mode(&item)))
		return -EINVAL;
	if (rc2)
		return rc2 == -ENOENT ? -EUCLEAN : rc2;
	memcpy(op->buffer, target.value, target.bytes);
	op->result = target.bytes;
	return 0;
}

static const struct fs_txn_type names_readlink_type = {
	.name = "readlink",
	.paths = 2,
	.run = names_readlink_run,
};

void names_op_readlink(struct fs *fs, struct fs_op *op)
{
	inode_touch(fs, op->ino);
	fs_txn_start(fs, &names_readlink_type, op, NULL);
}

/* ---- Making ---- */

static int inherit_probe(struct fs_txn *txn, const struct inode_item *dir,
			 uint32_t mode, struct inherit *inherit)
{
	static const struct inode_item none;
	struct fs_op *op = txn->op;
	struct xattr_slot slot;
	struct probe probe = { 0 };
	int rc;

	inherit->found = false;
	if (S_ISLNK(mode))
		return 0;
	rc = acl_get(txn, op->ino, dir, ACL_DEFAULT_NAME, &inherit->acl,
		     &slot);
	if (rc == -ENODATA)
		return 0;
	if (rc)
		return rc;
	inherit->found = true;
	inherit->bytes = acl_format(&inherit->acl, inherit->value);
	rc = xattr_find(txn, op->attr.ino, &none, ACL_ACCESS_NAME,
			&inherit->access);
	assert(rc == 0);
	rc = xattr_find(txn, op->attr.ino, &none, ACL_DEFAULT_NAME,
			&inherit->dflt);
	assert(rc == 0);
	probe_ok(&probe, xattr_probe_write(txn, &inherit->access,
					   inherit->bytes));
	probe_ok(&probe, xattr_probe_write(txn, &inherit->dflt,
					   inherit->bytes));
	return probe_result(&probe);
}

static void inherit_apply(struct fs_txn *txn, struct inherit *inherit,
			  uint32_t *mode, struct inode_item *item)
{
	uint8_t value[ACL_MAX_BYTES];

	if (!inherit->found) {
		if (!S_ISLNK(*mode))
			*mode &= ~(txn->op->umask & 0777);
		return;
	}
	if (S_ISDIR(*mode))
		xattr_write(txn, &inherit->dflt, item, inherit->value,
			    inherit->bytes);
	if (!acl_create(&inherit->acl, mode))
		xattr_write(txn, &inherit->access, item, value,
			    acl_format(&inherit->acl, value));
}

/* Fills the item of a new inode, but for its ACL and the mode that follows from
 * it. */
void names_fill(struct fs_txn *txn, const struct inode_item *dir,
		uint32_t mode, struct inode_item *item)
{
	const struct fs_op *op = txn->op;
	struct fs *fs = txn->fs;
	bool sgid = inode_mode(dir) & S_ISGID;
	uint64_t goal = le64_get(dir->goal);

	memset(item, 0, sizeof(*item));
	item->uid = le32_put(op->uid);
	item->gid = sgid ? dir->gid : le32_put(op->gid);
	item->nlink = le32_put(op->type == FS_TMPFILE ? 0 :
			       S_ISDIR(mode) ? 2 : 1);
	if (S_ISCHR(mode) || S_ISBLK(mode))
		item->rdev = le32_put(op->rdev);
	item->parent = le64_put(op->ino);
	item->generation = le32_put(1);
	if (S_ISDIR(mode)) {
		goal = alloc_dir_goal(fs->alloc, goal);
		item->next_seq = le64_put(TRAX_FIRST_SEQ);
		item->dirgroup = le64_put(tree_new_dirgroup(fs->tree) %
					  TRAX_DIRGROUPS);
	}
	item->goal = le64_put(goal);
	inode_changed(fs, item);
	item->atime = item->btime = item->mtime;
	if (S_ISLNK(mode))
		item->size = le64_put(strlen(op->name2));
}

static uint32_t names_mode(const struct fs_op *op, const struct inode_item *dir)
{
	uint32_t mode = op->mode & 07777;

	if (op->type == FS_MKDIR) {
		mode |= S_IFDIR;
		if (inode_mode(dir) & S_ISGID)
			mode |= S_ISGID;
	} else if (op->type == FS_SYMLINK) {
		mode = S_IFLNK | 0777;
	} else if (op->mode & S_IFMT) {
		mode |= op->mode & S_IFMT;
	} else {
		mode |= S_IFREG;
	}
	return mode;
}

/* Probes that the items of a new inode do not exist; draws its number if it has
 * none. */
int names_probe_new(struct fs_txn *txn, const struct inode_item *dir)
{
	struct fs_op *op = txn->op;
	struct probe probe = { 0 };
	uint64_t seq;

	if (op->attr.ino == 0) {
		seq = tree_new_ino_seq(txn->fs->tree);
		if (!seq)
			return -ENOSPC;
		op->attr.ino = ino_make(le64_get(dir->dirgroup), seq);
	}
	probe_expect(&probe, txn, key_make(op->attr.ino, ITEM_INODE, 0),
		     -ENOENT);
	if (op->type == FS_SYMLINK)
		probe_expect(&probe, txn,
			     key_make(op->attr.ino, ITEM_INLINE, 0), -ENOENT);
	if (op->type == FS_TMPFILE)
		probe_expect(&probe, txn, orphan_key(op->attr.ino),
			     -ENOENT);
	return probe_result(&probe);
}

static int names_probe_create(struct fs_txn *txn, struct inode_item *dir,
			      struct dir_slot *slot, struct inherit *inherit)
{
	struct fs_op *op = txn->op;
	struct probe probe = { 0 };
	bool named = op->type != FS_TMPFILE;

	if (named)
		probe_ok(&probe, dir_find(txn, op->ino, op->name, slot));
	if (!probe_ok(&probe, inode_of_changed_dir(txn, op->ino, false,
						   dir)))
		return probe_result(&probe);
	if (named && !probe.miss && slot->found)
		return -EEXIST;
	if (op->type == FS_MKDIR && le32_get(dir->nlink) >= NAMES_MAX_LINKS)
		return -EMLINK;
	if (named)
		probe_ok(&probe, dir_probe_add(txn, slot,
					       le64_get(dir->next_seq)));
	probe_ok(&probe, names_probe_new(txn, dir));
	probe_ok(&probe, inherit_probe(txn, dir, names_mode(op, dir),
				       inherit));
	return probe_result(&probe);
}

static void names_put_orphan(struct fs_txn *txn, uint64_t ino)
{
	struct orphan_item orphan = { .what = ORPHAN_DELETE };

	tree_put(txn->tree_txn, orphan_key(ino), &orphan, sizeof(orphan));
}

static int names_create_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item dir, item;
	struct inherit inherit;
	struct dir_slot slot;
	struct vnode *vnode;
	uint32_t mode;
	int rc = names_probe_create(txn, &dir, &slot, &inherit);

	if (rc)
		return rc;
	vnode = vnode_get(txn->fs, op->attr.ino);
	if (!vnode)
		return -ENOMEM;
	vnode->refs++;
	if (op->opens)
		vnode_opened(txn->fs, vnode);
	mode = names_mode(op, &dir);
	names_fill(txn, &dir, mode, &item);
	inherit_apply(txn, &inherit, &mode, &item);
	item.mode = le32_put(mode);
	inode_put(txn, op->attr.ino, &item);
	if (S_ISLNK(mode))
		tree_put(txn->tree_txn, key_make(op->attr.ino, ITEM_INLINE, 0),
			 op->name2, strlen(op->name2));
	if (op->type == FS_TMPFILE) {
		names_put_orphan(txn, op->attr.ino);
		vnode->unlinked = true;
		vnode->linkable = true;
	} else {
		dir_add(txn, &slot, &dir, op->attr.ino, dir_type(mode));
		if (S_ISDIR(mode))
			dir.nlink = le32_put(le32_get(dir.nlink) + 1);
		inode_changed(txn->fs, &dir);
		inode_put(txn, op->ino, &dir);
	}
	inode_attr(txn->fs, op->attr.ino, &item, &op->attr);
	return 0;
}

static const struct fs_txn_type names_create_type = {
	.name = "create",
	.bounds = { .log_bytes = 2 * NAMES_LOG_INODE + 4 * NAMES_LOG_NAME +
				 NAMES_LOG_ENTRY },
	.paths = 10,
	.changes = 5,
	.stages = 3,
	.run = names_create_run,
};

static bool names_known_type(const struct fs_op *op)
{
	uint32_t type = op->mode & S_IFMT;

	if (op->type == FS_MKDIR || op->type == FS_SYMLINK)
		return true;
	if (type == 0 || type == S_IFREG)
		return true;
	return op->type == FS_MKNOD &&
	       (type == S_IFCHR || type == S_IFBLK || type == S_IFIFO ||
		type == S_IFSOCK);
}

static int names_check_create(const struct fs_op *op)
{
	size_t bytes;
	int rc = 0;

	if (!names_known_type(op))
		return -EINVAL;

	if (op->type != FS_TMPFILE) {
		rc = dir_check_name(op->name);
		if (!rc && dir_is_dots(op->name))
			rc = -EEXIST;
	}
	if (rc || op->type != FS_SYMLINK)
		return rc;
	bytes = strnlen(op->name2, TRAX_MAX_ITEM_BYTES);
	if (bytes == 0)
		return -ENOENT;
	return bytes >= TRAX_MAX_ITEM_BYTES ? -ENAMETOOLONG : 0;
}

void names_op_create(struct fs *fs, struct fs_op *op)
{
	int rc = names_check_create(op);

	op->attr.ino = 0;
	if (rc)
		fs_answer(fs, op, rc);
	else
		fs_txn_start(fs, &names_create_type, op, NULL);
}

/* ---- Links ---- */

static int names_check_link(struct fs_txn *txn,
			    const struct inode_item *item)
{
	struct vnode *vnode = vnode_find(txn->fs, txn->op->ino2);

	if (S_ISDIR(inode_mode(item)) || inode_may_unlink(item))
		return -EPERM;
	if (le32_get(item->nlink) >= NAMES_MAX_LINKS)
		return -EMLINK;
	if (le32_get(item->nlink) == 0 && !(vnode && vnode->linkable))
		return -ENOENT;
	return 0;
}

static int names_probe_link(struct fs_txn *txn, struct inode_item *dir,
			    struct inode_item *item, struct dir_slot *slot)
{
	struct fs_op *op = txn->op;
	struct probe probe = { 0 };

	probe_ok(&probe, dir_find(txn, op->ino, op->name, slot));
	if (probe_ok(&probe, inode_of_op(txn, op->ino2, item))) {
		probe_ok(&probe, names_check_link(txn, item));
		if (le32_get(item->nlink) == 0)
			probe_expect(&probe, txn, orphan_key(op->ino2), 0);
	}
	if (probe_ok(&probe, inode_of_changed_dir(txn, op->ino, false, dir)))
		probe_ok(&probe, dir_probe_add(txn, slot,
					       le64_get(dir->next_seq)));
	if (!probe_result(&probe) && slot->found)
		return -EEXIST;
	return probe_result(&probe);
}

static int names_link_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item dir, item;
	struct dir_slot slot;
	struct vnode *vnode;
	int rc = names_probe_link(txn, &dir, &item, &slot);

	if (rc)
		return rc;
	vnode = vnode_get(txn->fs, op->ino2);
	if (!vnode)
		return -ENOMEM;
	vnode->refs++;
	if (le32_get(item.nlink) == 0) {
		tree_del(txn->tree_txn, orphan_key(op->ino2));
		vnode->unlinked = false;
		vnode->linkable = false;
		item.parent = le64_put(op->ino);
	}
	item.nlink = le32_put(le32_get(item.nlink) + 1);
	inode_ctime(txn->fs, &item);
	inode_put(txn, op->ino2, &item);
	dir_add(txn, &slot, &dir, op->ino2, dir_type(inode_mode(&item)));
	inode_changed(txn->fs, &dir);
	inode_put(txn, op->ino, &dir);
	inode_attr(txn->fs, op->ino2, &item, &op->attr);
	return 0;
}

static const struct fs_txn_type names_link_type = {
	.name = "link",
	.bounds = { .log_bytes = 2 * NAMES_LOG_INODE + NAMES_LOG_NAME +
				 NAMES_LOG_ENTRY + 64 },
	.paths = 5,
	.changes = 5,
	.stages = 2,
	.run = names_link_run,
};

void names_op_link(struct fs *fs, struct fs_op *op)
{
	int rc = dir_check_name(op->name);

	if (!rc && dir_is_dots(op->name))
		rc = -EEXIST;
	if (rc)
		fs_answer(fs, op, rc);
	else
		fs_txn_start(fs, &names_link_type, op, NULL);
}

/* ---- Removing ---- */

static bool names_last(const struct inode_item *item)
{
	return S_ISDIR(inode_mode(item)) || le32_get(item->nlink) == 1;
}

int names_probe_drop(struct fs_txn *txn, uint64_t ino,
		     const struct inode_item *item)
{
	struct tree_item found;
	int rc;

	if (!names_last(item))
		return 0;
	/* A truncation may be under way: its ORPHAN item is replaced. */
	rc = tree_get(txn->tree_txn, orphan_key(ino), &found);
	return rc == -ENOENT ? 0 : rc;
}

void names_drop(struct fs_txn *txn, uint64_t ino, struct inode_item *item)
{
	bool last = names_last(item);
	struct vnode *vnode;

	item->nlink = le32_put(last ? 0 : le32_get(item->nlink) - 1);
	inode_ctime(txn->fs, item);
	inode_put(txn, ino, item);
	if (!last) {
		vnode = vnode_find(txn->fs, ino);
		if (vnode)
			vnode->name_gone_ns = env_now_ns(txn->fs->env);
		return;
	}
	names_put_orphan(txn, ino);
	txn->unlinked = ino;
	if (S_ISDIR(inode_mode(item)))
		alloc_forget_dir(txn->fs->alloc, ino);
}

static int names_check_unlink(const struct fs_op *op,
			      const struct inode_item *item)
{
	bool is_dir = S_ISDIR(inode_mode(item));

	if (op->type == FS_UNLINK && is_dir)
		return -EISDIR;
	if (op->type == FS_RMDIR && !is_dir)
		return -ENOTDIR;
	if (is_dir && le64_get(item->entries))
		return -ENOTEMPTY;
	return inode_may_unlink(item);
}

static int names_probe_unlink(struct fs_txn *txn, struct inode_item *dir,
			      struct inode_item *item, struct dir_slot *slot)
{
	struct fs_op *op = txn->op;
	struct probe probe = { 0 };
	bool found;

	found = probe_ok(&probe, dir_find(txn, op->ino, op->name, slot)) &&
		slot->found;
	probe_ok(&probe, inode_of_changed_dir(txn, op->ino, true, dir));
	if (!probe_result(&probe) && !found)
		return -ENOENT;
	if (!found)
		return probe_result(&probe);
	probe_ok(&probe, dir_probe_entry(txn, slot));
	if (probe_ok(&probe, inode_of_entry(txn, op->ino, slot->ino,
					    item))) {
		probe_ok(&probe, names_check_unlink(op, item));
		probe_ok(&probe, names_probe_drop(txn, slot->ino, item));
	}
	return probe_result(&probe);
}

static int names_unlink_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct inode_item dir, item;
	struct dir_slot slot;
	int rc = names_probe_unlink(txn, &dir, &item, &slot);

	if (rc)
		return rc;
	if (S_ISDIR(inode_mode(&item)))
		dir.nlink = le32_put(le32_get(dir.nlink) - 1);
	dir_remove(txn, &slot, &dir);
	inode_changed(txn->fs, &dir);
	inode_put(txn, op->ino, &dir);
	names_drop(txn, slot.ino, &item);
	return 0;
}

static const struct fs_txn_type names_unlink_type = {
	.name = "unlink",
	.bounds = { .log_bytes = 2 * NAMES_LOG_INODE + NAMES_LOG_NAME + 128,
		    .urgent = true },
	.paths = 5,
	.changes = 5,
	.stages = 2,
	.run = names_unlink_run,
};

void names_op_unlink(struct fs *fs, struct fs_op *op)
{
	int rc = dir_check_name(op->name);

	if (!rc && op->type == FS_RMDIR && dir_is_dots(op->name))
		rc = op->name[1] ? -ENOTEMPTY : -EINVAL;
	if (!rc && op->type == FS_UNLINK && dir_is_dots(op->name))
		rc = -EISDIR;
	if (rc)
		fs_answer(fs, op, rc);
	else
		fs_txn_start(fs, &names_unlink_type, op, NULL);
}
