/*
 * xattr.c - extended attributes.
 *
 * An attribute lies at one of TRAX_XATTR_PROBES places:
 * (hash of its name + i) << 8.
 * Piece 0 holds a head, the name and the first bytes of the value; pieces 1,
 * 2, ... follow at the next keys.  All places are looked at, so one of them
 * may become free between others.  Flags in the inode say whether there is a
 * capability or an ACL, and the count whether there is anything at all: the
 * kernel asks for security.capability at each write, and the answer "none"
 * costs nothing beyond the inode.
 */
#include "fs/name/names.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/xattr.h>

#include "base/csum.h"
#include "base/msg.h"

/* Most pieces of an attribute: a value of 64 KiB (XATTR_SIZE_MAX) in items of
 * TRAX_MAX_ITEM_BYTES, each less its head, and the name. */
#define MAX_PIECES 18u
#define LIST_MAX_BYTES 65536u	/* the limit of listxattr(2) */
/* Attributes listed in one transaction: each may lie in a leaf of its own. */
#define LIST_AT_ONCE 8u

static const char caps_name[] = "security.capability";

static uint64_t xattr_base(const struct fs *fs, const char *name,
			   size_t bytes, unsigned probe)
{
	uint64_t seed = tree_super(fs->tree)->hash_seed;
	uint64_t hash = csum_seeded(name, bytes, seed) & fs->name_mask;

	return ((hash >> 8) + probe) << 8;
}

static struct key piece_key(uint64_t ino, uint64_t base, unsigned piece)
{
	return key_make(ino, ITEM_XATTR, base | piece);
}

static size_t piece0_room(size_t name_bytes)
{
	return TRAX_XATTR_PIECE_BYTES - sizeof(struct xattr_head) - name_bytes;
}

/* Number of pieces for a value of this size under a name of this length. */
static unsigned xattr_pieces(size_t name_bytes, size_t value_bytes)
{
	size_t room = piece0_room(name_bytes);

	if (value_bytes <= room)
		return 1;
	return 1 + (unsigned)((value_bytes - room + TRAX_XATTR_PIECE_BYTES - 1)
			      / TRAX_XATTR_PIECE_BYTES);
}

static int xattr_bad(struct fs_txn *txn, uint64_t ino, const char *reason)
{
	msg_error("%s: attributes of inode %llu: %s", txn->fs->disk->name,
		  (unsigned long long)ino, reason);
	return -EUCLEAN;
}

/* Decodes piece 0; false: it contradicts itself. */
static bool head_read(const struct tree_item *item, struct xattr_head *head,
		      const char **name)
{
	if (item->bytes < sizeof(*head))
		return false;
	memcpy(head, item->value, sizeof(*head));
	*name = (const char *)item->value + sizeof(*head);
	return item->bytes >= sizeof(*head) + head->name_bytes &&
	       le32_get(head->value_bytes) <= TRAX_MAX_XATTR_BYTES &&
	       head->pieces == xattr_pieces(head->name_bytes,
					    le32_get(head->value_bytes));
}

/* ---- Probes ---- */

static int xattr_find_at(struct fs_txn *txn, struct xattr_slot *slot,
			 uint64_t base)
{
	struct xattr_head head;
	struct tree_item item;
	const char *name;
	int rc = tree_get(txn->tree_txn, piece_key(slot->ino, base, 0), &item);

	if (rc == -ENOENT) {
		if (!slot->found && slot->base == UINT64_MAX)
			slot->base = base;
		return 0;
	}
	if (rc)
		return rc;
	if (!head_read(&item, &head, &name))
		return xattr_bad(txn, slot->ino, "a head is damaged");
	if (head.name_bytes != slot->name_bytes ||
	    memcmp(name, slot->name, slot->name_bytes) != 0)
		return 0;
	slot->found = true;
	slot->base = base;
	slot->pieces = head.pieces;
	slot->value_bytes = le32_get(head.value_bytes);
	return 0;
}

int xattr_find(struct fs_txn *txn, uint64_t ino,
	       const struct inode_item *item, const char *name,
	       struct xattr_slot *slot)
{
	struct probe probe = { 0 };
	unsigned i;

	slot->ino = ino;
	slot->name = name;
	slot->name_bytes = strlen(name);
	slot->found = false;
	slot->pieces = 0;
	slot->value_bytes = 0;
	slot->base = UINT64_MAX;
	if (le32_get(item->xattrs) == 0) {
		slot->base = xattr_base(txn->fs, name, slot->name_bytes, 0);
		return 0;
	}
	for (i = 0; i < TRAX_XATTR_PROBES && !slot->found; i++)
		probe_ok(&probe, xattr_find_at(txn, slot,
					       xattr_base(txn->fs, name,
							  slot->name_bytes,
							  i)));
	return probe_result(&probe);
}

/* Probes pieces from `first` on; `want`: 0 if they exist, -ENOENT if not. */
static void pieces_probe(struct fs_txn *txn, const struct xattr_slot *slot,
			 unsigned first, unsigned n, int want,
			 struct probe *probe)
{
	unsigned i;

	for (i = first; i < n; i++)
		probe_expect(probe, txn,
			     piece_key(slot->ino, slot->base, i), want);
}

int xattr_probe_write(struct fs_txn *txn, const struct xattr_slot *slot,
		      size_t bytes)
{
	unsigned pieces = xattr_pieces(slot->name_bytes, bytes);
	struct probe probe = { 0 };

	if (slot->base == UINT64_MAX)
		return -ENOSPC;
	pieces_probe(txn, slot, 0, slot->pieces, 0, &probe);
	pieces_probe(txn, slot, slot->pieces, pieces, -ENOENT, &probe);
	return probe_result(&probe);
}

int xattr_probe_remove(struct fs_txn *txn, const struct xattr_slot *slot)
{
	struct probe probe = { 0 };

	pieces_probe(txn, slot, 0, slot->pieces, 0, &probe);
	return probe_result(&probe);
}

int xattr_read(struct fs_txn *txn, const struct xattr_slot *slot,
	       void *value)
{
	struct probe probe = { 0 };
	struct tree_item item;
	size_t at = 0, skip, n, left;
	unsigned i;

	for (i = 0; i < slot->pieces; i++) {
		left = slot->value_bytes - at;
		skip = i ? 0 : sizeof(struct xattr_head) + slot->name_bytes;
		n = i ? TRAX_XATTR_PIECE_BYTES : piece0_room(slot->name_bytes);
		if (n > left)
			n = left;
		at += n;
		if (!probe_ok(&probe, tree_get(txn->tree_txn,
					       piece_key(slot->ino, slot->base,
							 i), &item)))
			continue;
		if (item.bytes != skip + n)
			return xattr_bad(txn, slot->ino,
					 "a piece has the wrong length");
		memcpy((uint8_t *)value + at - n,
		       (const uint8_t *)item.value + skip, n);
	}
	if (probe.rc == -ENOENT)
		return xattr_bad(txn, slot->ino, "a piece is missing");
	return probe_result(&probe);
}

/* ---- Changes ---- */

static uint32_t xattr_flag(const char *name)
{
	if (strcmp(name, caps_name) == 0)
		return INODE_HAS_CAPS;
	return strcmp(name, ACL_ACCESS_NAME) == 0 ||
	       strcmp(name, ACL_DEFAULT_NAME) == 0 ? INODE_HAS_ACL : 0;
}

void xattr_write(struct fs_txn *txn, const struct xattr_slot *slot,
		 struct inode_item *item, const void *value, size_t bytes)
{
	unsigned pieces = xattr_pieces(slot->name_bytes, bytes);
	struct xattr_head head = {
		.value_bytes = le32_put((uint32_t)bytes),
		.name_bytes = (uint8_t)slot->name_bytes,
		.pieces = (uint8_t)pieces,
	};
	uint8_t piece[TRAX_XATTR_PIECE_BYTES];
	size_t at = 0, skip, n;
	unsigned i;

	for (i = 0; i < pieces; i++) {
		skip = 0;
		if (i == 0) {
			memcpy(piece, &head, sizeof(head));
			memcpy(piece + sizeof(head), slot->name,
			       slot->name_bytes);
			skip = sizeof(head) + slot->name_bytes;
		}
		n = sizeof(piece) - skip;
		if (n > bytes - at)
			n = bytes - at;
		memcpy(piece + skip, (const uint8_t *)value + at, n);
		tree_put(txn->tree_txn, piece_key(slot->ino, slot->base, i),
			 piece, skip + n);
		at += n;
	}
	for (; i < slot->pieces; i++)
		tree_del(txn->tree_txn, piece_key(slot->ino, slot->base, i));
	if (!slot->found)
		item->xattrs = le32_put(le32_get(item->xattrs) + 1);
	item->flags = le32_put(le32_get(item->flags) | xattr_flag(slot->name));
}

/* The flag for ACLs stays set while the inode may have the other ACL: a hint
 * that costs no more than a lookup. */
void xattr_remove(struct fs_txn *txn, const struct xattr_slot *slot,
		  struct inode_item *item)
{
	uint32_t xattrs = le32_get(item->xattrs);
	uint32_t flags = le32_get(item->flags);
	unsigned i;

	for (i = 0; i < slot->pieces; i++)
		tree_del(txn->tree_txn, piece_key(slot->ino, slot->base, i));
	item->xattrs = le32_put(xattrs ? xattrs - 1 : 0);
	if (strcmp(slot->name, caps_name) == 0)
		flags &= ~INODE_HAS_CAPS;
	if (xattrs <= 1)
		flags &= ~INODE_HAS_ACL;
	item->flags = le32_put(flags);
}

/* ---- Names ---- */

#define TRUSTED_PREFIX "trusted."

/* The namespaces whose attributes may be stored. */
static const struct xattr_space {
	const char *prefix;
	bool whole;		/* the whole name is the prefix */
} xattr_spaces[] = {
	{ "user.", false },
	{ TRUSTED_PREFIX, false },
	{ "security.", false },
	{ ACL_ACCESS_NAME, true },
	{ ACL_DEFAULT_NAME, true },
};

static bool xattr_is_acl(const char *name)
{
	return xattr_flag(name) == INODE_HAS_ACL;
}

static int xattr_check_name(const char *name)
{
	size_t bytes = strnlen(name, TRAX_MAX_NAME_BYTES + 1);
	size_t i, n;

	if (bytes == 0 || bytes > TRAX_MAX_NAME_BYTES)
		return -ERANGE;
	for (i = 0; i < sizeof(xattr_spaces) / sizeof(xattr_spaces[0]); i++) {
		n = strlen(xattr_spaces[i].prefix);
		if (strncmp(name, xattr_spaces[i].prefix, n) != 0)
			continue;
		if (xattr_spaces[i].whole)
			return bytes == n ? 0 : -EOPNOTSUPP;
		return bytes > n ? 0 : -EINVAL;
	}
	return -EOPNOTSUPP;
}

/* ---- Get ---- */

static int xattr_get_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	uint32_t flag = xattr_flag(op->name2);
	struct xattr_slot slot;
	struct inode_item item;
	int rc = inode_of_op(txn, op->ino, &item);

	if (rc)
		return rc;
	if (flag && !(le32_get(item.flags) & flag))
		return -ENODATA;
	rc = xattr_find(txn, op->ino, &item, op->name2, &slot);
	if (rc)
		return rc;
	if (!slot.found)
		return -ENODATA;
	if (op->size == 0) {
		op->result = slot.value_bytes;
		return 0;
	}
	if (op->size < slot.value_bytes)
		return -ERANGE;
	rc = xattr_read(txn, &slot, op->buffer);
	if (!rc)
		op->result = slot.value_bytes;
	return rc;
}

static const struct fs_txn_type xattr_get_type = {
	.name = "getxattr",
	.bounds = { .nodes = 1 + TRAX_XATTR_PROBES + MAX_PIECES },
	.stages = 3,
	.run = xattr_get_run,
};

static const struct fs_txn_type xattr_get_caps_type = {
	.name = "getxattr of a capability",
	.paths = 1 + TRAX_XATTR_PROBES,
	.stages = 2,
	.run = xattr_get_run,
};

void xattr_op_get(struct fs *fs, struct fs_op *op)
{
	int rc = xattr_check_name(op->name2);
	bool caps = strcmp(op->name2, caps_name) == 0;

	if (rc)
		fs_answer(fs, op, rc);
	else
		fs_txn_start(fs, caps ? &xattr_get_caps_type : &xattr_get_type,
			     op, NULL);
}

/* ---- List ---- */

/*
 * The list is made by several transactions, as the values lie between the
 * names; an attribute that is added or removed meanwhile may or may not be in
 * it.
 */
struct xattr_list {
	uint64_t next;
	size_t bytes;
	unsigned n;		/* names added by this transaction */
	bool over;
	char names[LIST_MAX_BYTES];
};

/* Names whose values only the administrator may read are not shown to
 * others. */
static bool list_shows(const struct fs_op *op, const struct xattr_head *head,
		       const char *name)
{
	const size_t n = strlen(TRUSTED_PREFIX);

	return op->uid == 0 || head->name_bytes < n ||
	       memcmp(name, TRUSTED_PREFIX, n) != 0;
}

static int list_one(struct fs_txn *txn, struct xattr_list *list)
{
	struct fs_op *op = txn->op;
	struct xattr_head head;
	struct tree_item item;
	const char *name;
	int rc = tree_seek_ge(txn->tree_txn,
			      key_make(op->ino, ITEM_XATTR, list->next),
			      key_make(op->ino, ITEM_XATTR, UINT64_MAX), &item);

	if (rc == -ENOENT) {
		list->over = true;
		return 0;
	}
	if (rc)
		return rc;
	if (item.key.off & 0xff || !head_read(&item, &head, &name))
		return xattr_bad(txn, op->ino, "a head is damaged");
	if (list->bytes + head.name_bytes + 1 > sizeof(list->names))
		return -E2BIG;
	if (list_shows(op, &head, name)) {
		memcpy(list->names + list->bytes, name, head.name_bytes);
		list->bytes += head.name_bytes;
		list->names[list->bytes++] = '\0';
	}
	list->n++;
	list->next = (item.key.off | 0xff) + 1;
	list->over = list->next == 0;
	return 0;
}

static int xattr_list_run(struct fs_txn *txn)
{
	struct xattr_list *list = txn->state;
	struct fs_op *op = txn->op;
	struct inode_item item;
	int rc = inode_of_op(txn, op->ino, &item);

	if (txn->runs == 1)
		list->n = 0;
	if (!rc && le32_get(item.xattrs) == 0)
		list->over = true;
	while (list->n < LIST_AT_ONCE && !rc && !list->over)
		rc = list_one(txn, list);
	if (rc)
		return rc;
	if (!list->over) {
		fs_txn_restart(txn);
		return FS_TXN_WAIT;
	}
	op->result = list->bytes;
	if (op->size == 0)
		return 0;
	if (op->size < list->bytes)
		return -ERANGE;
	memcpy(op->buffer, list->names, list->bytes);
	return 0;
}

static void xattr_list_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	(void)seq;
	free(txn->state);
	fs_txn_finish(txn, rc);
}

static const struct fs_txn_type xattr_list_type = {
	.name = "listxattr",
	.bounds = { .nodes = 2 * LIST_AT_ONCE + 1 },
	.stages = LIST_AT_ONCE + 1,
	.run = xattr_list_run,
	.end = xattr_list_end,
	.free_state = fs_txn_free_state,
};

void xattr_op_list(struct fs *fs, struct fs_op *op)
{
	struct xattr_list *list = malloc(sizeof(*list));

	if (!list) {
		fs_answer(fs, op, -ENOMEM);
		return;
	}
	list->next = 0;
	list->bytes = 0;
	list->over = false;
	if (fs_txn_start(fs, &xattr_list_type, op, list))
		free(list);
}

/* ---- Set and remove ---- */

/* Sets an ACL: as bits of the mode, and as an attribute if they do not say all
 * of it. 0, an error, or 1: the attribute is to be removed. */
static int xattr_set_acl(const struct fs_op *op, struct inode_item *item)
{
	bool access = strcmp(op->name2, ACL_ACCESS_NAME) == 0;
	uint32_t mode = inode_mode(item), bits;
	bool trivial;
	struct acl acl;
	int rc;

	if (S_ISLNK(mode))
		return -EOPNOTSUPP;
	if (op->type == FS_REMOVEXATTR || op->size == 0)
		return 1;
	if (!access && !S_ISDIR(mode))
		return -EACCES;
	rc = acl_parse(op->data, op->size, &acl);
	if (rc)
		return rc;
	if (acl.n == 0)
		return 1;
	trivial = acl_mode(&acl, &bits);
	if (!access)
		return 0;
	mode = (mode & ~0777u) | bits;
	if (op->flags & FS_SET_KILL_PRIV)
		mode &= ~(uint32_t)S_ISGID;
	item->mode = le32_put(mode);
	return trivial;
}

static int xattr_check_set(const struct fs_op *op,
			   const struct xattr_slot *slot)
{
	if (op->flags & XATTR_CREATE && slot->found)
		return -EEXIST;
	if (op->flags & XATTR_REPLACE && !slot->found)
		return -ENODATA;
	return 0;
}

static int xattr_set_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	bool removes = op->type == FS_REMOVEXATTR;
	bool acl = xattr_is_acl(op->name2);
	struct xattr_slot slot;
	struct inode_item item;
	int rc = inode_of_op(txn, op->ino, &item);

	if (!rc)
		rc = inode_may_unlink(&item);
	if (!rc)
		rc = xattr_find(txn, op->ino, &item, op->name2, &slot);
	if (!rc && !removes)
		rc = xattr_check_set(op, &slot);
	if (rc)
		return rc;
	if (acl) {
		rc = xattr_set_acl(op, &item);
		if (rc < 0)
			return rc;
		removes = rc;
	}
	if (op->type == FS_REMOVEXATTR && !slot.found)
		return acl ? 0 : -ENODATA;
	rc = removes ? xattr_probe_remove(txn, &slot) :
		xattr_probe_write(txn, &slot, op->size);
	if (rc)
		return rc;
	if (!removes)
		xattr_write(txn, &slot, &item, op->data, op->size);
	else if (slot.found)
		xattr_remove(txn, &slot, &item);
	inode_ctime(txn->fs, &item);
	inode_put(txn, op->ino, &item);
	return 0;
}

static const struct fs_txn_type xattr_set_type = {
	.name = "setxattr",
	.stages = 3,
	.run = xattr_set_run,
};

/* Bounds of a change: the pieces, new and old, are neighbours; a leaf holds
 * four of them if they are full, and one at worst. */
static void xattr_start_change(struct fs *fs, struct fs_op *op, unsigned pieces,
			       unsigned old_pieces)
{
	struct tree_bounds bounds = { 0 };
	unsigned changes = pieces > old_pieces ? pieces : old_pieces;

	fs_txn_bounds(fs, 1 + TRAX_XATTR_PROBES, 2, 0, &bounds);
	bounds.nodes = (uint16_t)(bounds.nodes + changes);
	bounds.new_nodes = (uint16_t)(bounds.new_nodes + 2 * changes);
	bounds.log_bytes = pieces * NAMES_LOG_BYTES(TRAX_XATTR_PIECE_BYTES) +
			   old_pieces * 32 + NAMES_LOG_INODE;
	fs_txn_start_bounded(fs, &xattr_set_type, &bounds, op, NULL);
}

void xattr_op_set(struct fs *fs, struct fs_op *op)
{
	unsigned pieces;
	int rc = xattr_check_name(op->name2);

	if (!rc && op->size > TRAX_MAX_XATTR_BYTES)
		rc = -E2BIG;
	if (!rc && xattr_is_acl(op->name2) && op->size > ACL_MAX_BYTES)
		rc = -ENOSPC;
	if (rc) {
		fs_answer(fs, op, rc);
		return;
	}
	pieces = xattr_pieces(strlen(op->name2), op->size);
	xattr_start_change(fs, op, pieces, MAX_PIECES);
}

void xattr_op_remove(struct fs *fs, struct fs_op *op)
{
	int rc = xattr_check_name(op->name2);

	if (rc)
		fs_answer(fs, op, rc);
	else
		xattr_start_change(fs, op, 0, MAX_PIECES);
}
