/*
 * names.h - what the parts of the name space share: directories, inodes,
 * extended attributes, ACLs.  Private to src/fs.
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
/* The same where `want` (0 or -ENOENT) is expected; anything else found there
 * is a contradiction, reported. */
void probe_expect(struct probe *probe, struct fs_txn *txn, struct key key,
		  int want);
/* -EAGAIN, an error or 0. */
int probe_result(const struct probe *probe);

/* ---- dir.c: one name in one directory ---- */

struct dir_slot {
	uint64_t dir;
	const char *name;
	size_t bytes;
	struct key key;		/* key of the NAME item */
	bool item;		/* that item exists */
	bool found;		/* and it has the name: */
	uint64_t ino, seq;
	uint8_t type;		/* DT_* */
	size_t at;		/* where the record of the name lies in the
				 * item's value */
	size_t value_bytes;
	uint8_t value[TRAX_MAX_ITEM_BYTES];
};

/* 0, -ENAMETOOLONG, -ENOENT (empty), -EINVAL (with a slash). */
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
/* The name leads to another inode from now on; same sequence. */
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

/* The items of a new inode, op->attr.ino, which is drawn if it is 0, are not
 * there; what they hold, but for its mode and ACL. */
int names_probe_new(struct fs_txn *txn, const struct inode_item *dir);
void names_fill(struct fs_txn *txn, const struct inode_item *dir,
		uint32_t mode, struct inode_item *item);

/* Takes one name off an inode: nlink, ctime, and its orphan item when that was
 * the last.  Probe first. */
int names_probe_drop(struct fs_txn *txn, uint64_t ino,
		     const struct inode_item *item);
void names_drop(struct fs_txn *txn, uint64_t ino, struct inode_item *item);

/* ---- xattr.c ---- */

struct xattr_slot {
	uint64_t ino;
	const char *name;
	size_t name_bytes;
	bool found;
	uint64_t base;		/* key offset of piece 0: the attribute's, or
				   a free one (UINT64_MAX: none is) */
	unsigned pieces;
	uint32_t value_bytes;
};

int xattr_find(struct fs_txn *txn, uint64_t ino,
	       const struct inode_item *item, const char *name,
	       struct xattr_slot *slot);
/* Copies the value of a found one. */
int xattr_read(struct fs_txn *txn, const struct xattr_slot *slot,
	       void *value);
/* Probes all that a write of `bytes` (or a removal) changes. */
int xattr_probe_write(struct fs_txn *txn, const struct xattr_slot *slot,
		      size_t bytes);
int xattr_probe_remove(struct fs_txn *txn, const struct xattr_slot *slot);
/* The count and flags are changed in `item`, which the caller puts. */
void xattr_write(struct fs_txn *txn, const struct xattr_slot *slot,
		 struct inode_item *item, const void *value, size_t bytes);
void xattr_remove(struct fs_txn *txn, const struct xattr_slot *slot,
		  struct inode_item *item);
/* Pieces of a value of this size under a name of that length. */
unsigned xattr_pieces(size_t name_bytes, size_t value_bytes);

void xattr_op_set(struct fs *fs, struct fs_op *op);
void xattr_op_get(struct fs *fs, struct fs_op *op);
void xattr_op_list(struct fs *fs, struct fs_op *op);
void xattr_op_remove(struct fs *fs, struct fs_op *op);

/* ---- acl.c ---- */

#define ACL_ACCESS_NAME "system.posix_acl_access"
#define ACL_DEFAULT_NAME "system.posix_acl_default"
/* So that one fits a single piece: the parent's is copied at each creation. */
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
/* The permission bits it stands for; true when they say all of it. */
bool acl_mode(const struct acl *acl, uint32_t *mode);
/* chmod: the entries that the permission bits stand for. */
void acl_chmod(struct acl *acl, uint32_t mode);
/* A new inode under a default ACL: cuts both down to what both grant; true
 * when the mode says all of it. */
bool acl_create(struct acl *acl, uint32_t *mode);

/* Reads an inode's: -ENODATA when there is none. */
int acl_get(struct fs_txn *txn, uint64_t ino, const struct inode_item *item,
	    const char *name, struct acl *acl, struct xattr_slot *slot);

#endif
