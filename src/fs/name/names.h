/*
 * names.h - the name space as items of the tree: what the files of fs/name
 * offer each other, and what fs/data and fs/op need of them.
 *
 *   dir.c     one name in one directory: a NAME item, found by hash, and an
 *             ENTRY item, by sequence number, which readdir goes through
 *   names.c   lookup, making, linking and removing: names and inodes together
 *   rename.c  RENAME, with its two names and up to four inodes
 *   xattr.c   extended attributes, each an item or several (pieces)
 *   acl.c     POSIX ACLs, which are attributes that new inodes inherit
 *
 * An operation has two halves inside one transaction.  The first half probes:
 * it looks up every key that the second half will change.  The second half
 * applies, and cannot fail.  So an operation that has to wait for a node of the
 * tree, or meets an error, has changed nothing.
 *
 * All functions that take a transaction look things up in its transaction and
 * return what the tree does: 0, -EAGAIN (noted; go on probing, so that all
 * misses are fetched together), -EIO.  Those that return void apply: all their
 * keys have been probed in this run.
 */
#ifndef TRAX_NAME_NAMES_H
#define TRAX_NAME_NAMES_H

#include "fs/name/inode.h"
#include "fs/op/fs_internal.h"

/* The most links of an inode: a signed 32-bit number for programs. */
#define NAMES_MAX_LINKS 0x7fffffffu

/* Room in the log for one item: key, lengths and value. */
#define NAMES_LOG_BYTES(value_bytes) ((uint32_t)(value_bytes) + 32u)
#define NAMES_LOG_INODE NAMES_LOG_BYTES(sizeof(struct inode_item))
#define NAMES_LOG_NAME NAMES_LOG_BYTES(TRAX_MAX_ITEM_BYTES)
#define NAMES_LOG_ENTRY \
	NAMES_LOG_BYTES(sizeof(struct name_record) + TRAX_MAX_NAME_BYTES)

/* Gathers the results of probes: the first error that is not a miss, and
 * whether there was any miss. */
struct probe {
	int rc;
	bool miss;
};

/* Takes rc in; true when it was 0. */
bool probe_ok(struct probe *probe, int rc);
/* The same where `want` (0 or -ENOENT) is expected of a key; any other result
 * is a contradiction, which is reported. */
void probe_expect(struct probe *probe, struct fs_txn *txn, struct key key,
		  int want);
/* The result of all probes: -EAGAIN, an error or 0. */
int probe_result(const struct probe *probe);

/* ---- dir.c: one name in one directory ---- */

/* Where a name is in its directory, or where it would go: filled in by
 * dir_find, passed on to the functions that change it. */
struct dir_slot {
	uint64_t dir;
	const char *name;
	size_t bytes;
	struct key key;		/* key of the NAME item */
	bool item;		/* that item exists */
	bool found;		/* the item has the name, with the following
				 * inode and sequence number */
	uint64_t ino, seq;
	uint8_t type;		/* DT_* */
	size_t at;		/* where the record of the name lies in the
				 * item's value */
	size_t value_bytes;
	uint8_t value[TRAX_MAX_ITEM_BYTES];
};

/* Checks a name: 0, -ENAMETOOLONG, -ENOENT (empty), -EINVAL (with a slash). */
int dir_check_name(const char *name);
bool dir_is_dots(const char *name);

/* Looks a name up; slot->found says whether it is there. */
int dir_find(struct fs_txn *txn, uint64_t dir, const char *name,
	     struct dir_slot *slot);
/* Probes for dir_add: the name is not there, and will get sequence `seq`.
 * -ENOSPC: too many names with this hash. */
int dir_probe_add(struct fs_txn *txn, const struct dir_slot *slot,
		  uint64_t seq);
/* Probes for dir_remove, dir_point and dir_retitle: the name is there. */
int dir_probe_entry(struct fs_txn *txn, const struct dir_slot *slot);

/* The directory's counts are changed in `item`, which the caller puts. */
void dir_add(struct fs_txn *txn, struct dir_slot *slot,
	     struct inode_item *item, uint64_t ino, uint8_t type);
void dir_remove(struct fs_txn *txn, struct dir_slot *slot,
		struct inode_item *item);
/* Has the name lead to another inode, with the same sequence number. */
void dir_point(struct fs_txn *txn, struct dir_slot *slot, uint64_t ino,
	       uint8_t type);
/*
 * Moves an entry inside its directory, keeping its sequence, so that a readdir
 * that runs meanwhile does not meet it twice.  `to` is a free name, or one
 * whose entry goes.
 */
int dir_probe_retitle(struct fs_txn *txn, const struct dir_slot *from,
		      const struct dir_slot *to);
void dir_retitle(struct fs_txn *txn, struct dir_slot *from,
		 struct dir_slot *to, struct inode_item *item);

/* DT_* of a mode. */
uint8_t dir_type(uint32_t mode);

void dir_op_readdir(struct fs *fs, struct fs_op *op);

/* ---- names.c, rename.c ---- */

void names_op_lookup(struct fs *fs, struct fs_op *op);
void names_op_readlink(struct fs *fs, struct fs_op *op);
void names_op_create(struct fs *fs, struct fs_op *op);
void names_op_link(struct fs *fs, struct fs_op *op);
void names_op_unlink(struct fs *fs, struct fs_op *op);
void rename_op(struct fs *fs, struct fs_op *op);

/* names_probe_new probes that the items of a new inode, op->attr.ino, which is
 * drawn if it is 0, do not exist; names_fill sets what they hold, but for mode
 * and ACL. */
int names_probe_new(struct fs_txn *txn, const struct inode_item *dir);
void names_fill(struct fs_txn *txn, const struct inode_item *dir,
		uint32_t mode, struct inode_item *item);

/* Removes one name of an inode: changes nlink, ctime and, if it was the last
 * one, puts the ORPHAN item.  Probe first. */
int names_probe_drop(struct fs_txn *txn, uint64_t ino,
		     const struct inode_item *item);
void names_drop(struct fs_txn *txn, uint64_t ino, struct inode_item *item);

/* ---- xattr.c ---- */

/* The same for an extended attribute of an inode: filled in by xattr_find. */
struct xattr_slot {
	uint64_t ino;
	const char *name;
	size_t name_bytes;
	bool found;
	uint64_t base;		/* offset of the key of piece 0: that of the
				 * attribute, or a free one (UINT64_MAX: none is
				 * free) */
	unsigned pieces;
	uint32_t value_bytes;
};

int xattr_find(struct fs_txn *txn, uint64_t ino,
	       const struct inode_item *item, const char *name,
	       struct xattr_slot *slot);
/* Copies the value of an attribute that was found. */
int xattr_read(struct fs_txn *txn, const struct xattr_slot *slot,
	       void *value);
/* Probes all items that writing `bytes` (or removing the attribute) changes. */
int xattr_probe_write(struct fs_txn *txn, const struct xattr_slot *slot,
		      size_t bytes);
int xattr_probe_remove(struct fs_txn *txn, const struct xattr_slot *slot);
/* Change the tree, and the count and flags in `item`, which the caller puts. */
void xattr_write(struct fs_txn *txn, const struct xattr_slot *slot,
		 struct inode_item *item, const void *value, size_t bytes);
void xattr_remove(struct fs_txn *txn, const struct xattr_slot *slot,
		  struct inode_item *item);

void xattr_op_set(struct fs *fs, struct fs_op *op);
void xattr_op_get(struct fs *fs, struct fs_op *op);
void xattr_op_list(struct fs *fs, struct fs_op *op);
void xattr_op_remove(struct fs *fs, struct fs_op *op);

/* ---- acl.c ---- */

#define ACL_ACCESS_NAME "system.posix_acl_access"
#define ACL_DEFAULT_NAME "system.posix_acl_default"
/* Most entries of an ACL: one fits into a single piece, as a directory's
 * default ACL is copied at each creation. */
#define ACL_MAX_ENTRIES 460u
#define ACL_MAX_BYTES (4u + 8u * ACL_MAX_ENTRIES)

struct acl {
	unsigned n;
	struct acl_entry {
		uint16_t tag, perm;
		uint32_t id;
	} entry[ACL_MAX_ENTRIES];
};

/* Converts from and to the kernel's format. -EINVAL, -EOPNOTSUPP (version),
 * -ENOSPC (too many). */
int acl_parse(const void *value, size_t bytes, struct acl *acl);
size_t acl_format(const struct acl *acl, void *value);
/* Sets the permission bits that the ACL stands for; true: they say all of
 * it. */
bool acl_mode(const struct acl *acl, uint32_t *mode);
/* Changes the entries that the permission bits stand for (chmod). */
void acl_chmod(struct acl *acl, uint32_t mode);
/* For a new inode under a default ACL: reduces ACL and mode to the permissions
 * that both grant; true: the mode says all of it. */
bool acl_create(struct acl *acl, uint32_t *mode);

/* Reads an ACL of an inode: -ENODATA if it has none. */
int acl_get(struct fs_txn *txn, uint64_t ino, const struct inode_item *item,
	    const char *name, struct acl *acl, struct xattr_slot *slot);

#endif
