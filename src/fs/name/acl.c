/*
 * acl.c - POSIX access control lists, in the format of the kernel's
 * system.posix_acl_* attributes: le32 version 2, then {le16 tag, le16 perm,
 * le32 id} in the order: owner, users, group, groups, mask, others.  They are
 * stored in the same format.  The kernel enforces them.
 */
#include "fs/name/names.h"

#include <errno.h>

/* The version, and the tags in the order of entries (linux/posix_acl_xattr.h,
 * linux/posix_acl.h). */
#define ACL_VERSION 2u
#define TAG_USER_OBJ 0x01u
#define TAG_USER 0x02u
#define TAG_GROUP_OBJ 0x04u
#define TAG_GROUP 0x08u
#define TAG_MASK 0x10u
#define TAG_OTHER 0x20u

struct acl_disk_entry {
	le16 tag, perm;
	le32 id;
};

/* Is it valid?  Tags ascend; only users and groups may repeat; if there are any
 * of these there is a mask. */
static bool acl_valid(const struct acl *acl)
{
	unsigned seen = 0, last = 0, i, tag;

	for (i = 0; i < acl->n; i++) {
		tag = acl->entry[i].tag;
		if (acl->entry[i].perm & ~7u || tag < last)
			return false;
		if (tag == 0 || tag & (tag - 1) || tag > TAG_OTHER)
			return false;
		if (tag == last && tag != TAG_USER && tag != TAG_GROUP)
			return false;
		seen |= tag;
		last = tag;
	}
	if (seen & (TAG_USER | TAG_GROUP) && !(seen & TAG_MASK))
		return false;
	return (seen & TAG_USER_OBJ) && (seen & TAG_GROUP_OBJ) &&
	       (seen & TAG_OTHER);
}

int acl_parse(const void *value, size_t bytes, struct acl *acl)
{
	const uint8_t *at = value;
	struct acl_disk_entry entry;
	le32 version;
	unsigned i;

	if (bytes < sizeof(version) ||
	    (bytes - sizeof(version)) % sizeof(entry))
		return -EINVAL;
	memcpy(&version, at, sizeof(version));
	if (le32_get(version) != ACL_VERSION)
		return -EOPNOTSUPP;
	at += sizeof(version);
	if ((bytes - sizeof(version)) / sizeof(entry) > ACL_MAX_ENTRIES)
		return -ENOSPC;
	acl->n = (unsigned)((bytes - sizeof(version)) / sizeof(entry));
	for (i = 0; i < acl->n; i++, at += sizeof(entry)) {
		memcpy(&entry, at, sizeof(entry));
		acl->entry[i].tag = le16_get(entry.tag);
		acl->entry[i].perm = le16_get(entry.perm);
		acl->entry[i].id = le32_get(entry.id);
	}
	return acl->n == 0 || acl_valid(acl) ? 0 : -EINVAL;
}

size_t acl_format(const struct acl *acl, void *value)
{
	le32 version = le32_put(ACL_VERSION);
	uint8_t *at = value;
	struct acl_disk_entry entry;
	unsigned i;

	memcpy(at, &version, sizeof(version));
	at += sizeof(version);
	for (i = 0; i < acl->n; i++, at += sizeof(entry)) {
		entry.tag = le16_put(acl->entry[i].tag);
		entry.perm = le16_put(acl->entry[i].perm);
		entry.id = le32_put(acl->entry[i].id);
		memcpy(at, &entry, sizeof(entry));
	}
	return (size_t)(at - (uint8_t *)value);
}

/* Finds the entry of a kind that occurs once; NULL: there is none. */
static const struct acl_entry *acl_find(const struct acl *acl, unsigned tag)
{
	unsigned i;

	for (i = 0; i < acl->n; i++)
		if (acl->entry[i].tag == tag)
			return &acl->entry[i];
	return NULL;
}

static unsigned acl_perm(const struct acl *acl, unsigned tag)
{
	const struct acl_entry *entry = acl_find(acl, tag);

	return entry ? entry->perm : 0;
}

/* The tag that the group bits of the mode stand for: the mask, if there is
 * one. */
static unsigned acl_group_tag(const struct acl *acl)
{
	return acl_find(acl, TAG_MASK) ? TAG_MASK : TAG_GROUP_OBJ;
}

bool acl_mode(const struct acl *acl, uint32_t *mode)
{
	*mode = acl_perm(acl, TAG_USER_OBJ) << 6 |
		acl_perm(acl, acl_group_tag(acl)) << 3 |
		acl_perm(acl, TAG_OTHER);
	return acl->n == 3;
}

/* Sets each entry for which a part of the mode stands to this part or, with
 * `cut`, removes what this part lacks. */
static void acl_apply(struct acl *acl, uint32_t mode, bool cut)
{
	unsigned group = acl_group_tag(acl), i;
	struct acl_entry *entry;
	uint16_t perm;

	for (i = 0; i < acl->n; i++) {
		entry = &acl->entry[i];
		if (entry->tag == TAG_USER_OBJ)
			perm = mode >> 6 & 7;
		else if (entry->tag == group)
			perm = mode >> 3 & 7;
		else if (entry->tag == TAG_OTHER)
			perm = mode & 7;
		else
			continue;
		entry->perm = cut ? entry->perm & perm : perm;
	}
}

void acl_chmod(struct acl *acl, uint32_t mode)
{
	acl_apply(acl, mode, false);
}

bool acl_create(struct acl *acl, uint32_t *mode)
{
	uint32_t bits;
	bool trivial;

	acl_apply(acl, *mode, true);
	trivial = acl_mode(acl, &bits);
	*mode = (*mode & ~0777u) | bits;
	return trivial;
}

int acl_get(struct fs_txn *txn, uint64_t ino, const struct inode_item *item,
	    const char *name, struct acl *acl, struct xattr_slot *slot)
{
	uint8_t value[ACL_MAX_BYTES];
	int rc;

	slot->found = false;
	if (!(le32_get(item->flags) & INODE_HAS_ACL))
		return -ENODATA;
	rc = xattr_find(txn, ino, item, name, slot);
	if (rc)
		return rc;
	if (!slot->found || slot->value_bytes > sizeof(value))
		return -ENODATA;
	rc = xattr_read(txn, slot, value);
	if (rc)
		return rc;
	return acl_parse(value, slot->value_bytes, acl) || acl->n == 0 ?
		-EUCLEAN : 0;
}
