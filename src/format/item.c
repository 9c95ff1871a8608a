/*
 * item.c - keys, and the verifiers of the value of each type of item.
 *
 * A verifier checks only what can be seen from the one item.  Whether
 * references and counts agree is checked by chkfs.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "format/format.h"

#define MAX_FILE_SECTORS ((uint64_t)1 << 54)	/* 2^63 bytes */
/* Most slots of a node track: slot_track has 16 bits for them. */
#define MAX_NODE_TRACK_SLOTS 65535u
/* Most pieces of an attribute: 18 suffice for the longest one. */
#define MAX_XATTR_PIECES 32u
#define INODE_FLAGS_KNOWN 0xffu

struct key key_after(struct key k)
{
	if (k.off != UINT64_MAX)
		k.off++;
	else if (k.type != UINT8_MAX)
		k = (struct key){ k.ino, k.type + 1, 0 };
	else if (k.ino != UINT64_MAX)
		k = (struct key){ k.ino + 1, 0, 0 };
	return k;
}

struct key key_before(struct key k)
{
	if (k.off--)
		return k;
	if (k.type--)
		return k;
	if (k.ino--)
		return k;
	return KEY_MIN;
}

/* ---- One function a type ------------------------------------------------ */

static const char *verify_times(const struct inode_item *inode)
{
	const struct disk_time *t[] = { &inode->atime, &inode->mtime,
					&inode->ctime, &inode->btime };

	for (unsigned i = 0; i < 4; i++)
		if (le32_get(t[i]->ns) >= 1000000000)
			return "inode time has too many nanoseconds";
	return NULL;
}

static bool mode_is_known(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return !(mode & ~(uint32_t)(S_IFMT | 07777));
	default:
		return false;
	}
}

static const char *verify_inode(struct key key, const void *value,
				size_t bytes)
{
	const struct inode_item *inode = value;

	if (bytes != sizeof(*inode))
		return "inode has the wrong length";
	if (key.off)
		return "inode item is not at offset 0";
	if (!mode_is_known(le32_get(inode->mode)))
		return "inode has no valid mode";
	if (le64_get(inode->size) > INT64_MAX)
		return "inode size is out of range";
	if (le32_get(inode->flags) & ~INODE_FLAGS_KNOWN)
		return "inode has unknown flags";
	if (le64_get(inode->dirgroup) >= TRAX_DIRGROUPS)
		return "inode's directory group is out of range";
	if (le64_get(inode->entries) > le64_get(inode->next_seq))
		return "directory has more entries than it ever had";
	if (le32_get(inode->generation) != 1)
		return "inode has an unknown generation";
	return verify_times(inode);
}

/* A symlink's target may be longer than inline file data. */
static const char *verify_inline(struct key key, const void *value,
				 size_t bytes)
{
	(void)value;
	(void)bytes;
	return key.off ? "inline data is not at offset 0" : NULL;
}

static const char *verify_xattr(struct key key, const void *value,
				size_t bytes)
{
	const struct xattr_head *head = value;
	const unsigned piece = key.off & 0xff;
	size_t first;

	if (piece >= MAX_XATTR_PIECES)
		return "attribute has too many pieces";
	if (piece)
		return NULL;
	if (bytes < sizeof(*head) || !head->name_bytes ||
	    bytes < sizeof(*head) + head->name_bytes)
		return "attribute is shorter than its name";
	if (memchr(head + 1, 0, head->name_bytes))
		return "attribute name contains a zero";
	if (le32_get(head->value_bytes) > TRAX_MAX_XATTR_BYTES)
		return "attribute value is too long";
	if (!head->pieces || head->pieces > MAX_XATTR_PIECES)
		return "attribute has no valid number of pieces";
	first = bytes - sizeof(*head) - head->name_bytes;
	if (first > le32_get(head->value_bytes) ||
	    (head->pieces == 1 && first != le32_get(head->value_bytes)))
		return "attribute's first piece has the wrong length";
	return NULL;
}

static const char *verify_name(const char *name, size_t bytes)
{
	if (!bytes)
		return "name is empty";
	if (memchr(name, 0, bytes) || memchr(name, '/', bytes))
		return "name contains a zero or a slash";
	if (name[0] == '.' && (bytes == 1 || (bytes == 2 && name[1] == '.')))
		return "name is one of the two dots";
	return NULL;
}

static bool type_is_known(uint8_t type)
{
	return type == DT_REG || type == DT_DIR || type == DT_LNK ||
	       type == DT_CHR || type == DT_BLK || type == DT_FIFO ||
	       type == DT_SOCK;
}

/* Checks the record at the start of value, and sets *used to its length. */
static const char *verify_record(const void *value, size_t bytes,
				 size_t *used)
{
	const struct name_record *r = value;

	if (bytes < sizeof(*r) || bytes - sizeof(*r) < r->bytes)
		return "name record is cut off";
	if (!le64_get(r->ino) || le64_get(r->ino) >= TRAX_MAX_INO)
		return "name of no valid inode number";
	if (!type_is_known(r->type))
		return "name has an unknown file type";
	*used = sizeof(*r) + r->bytes;
	return verify_name((const char *)(r + 1), r->bytes);
}

static const char *verify_names(struct key key, const void *value,
				size_t bytes)
{
	(void)key;
	for (size_t at = 0, used; at < bytes; at += used) {
		const char *why = verify_record((const char *)value + at,
						bytes - at, &used);

		if (why)
			return why;
	}
	return NULL;
}

static const char *verify_entry(struct key key, const void *value,
				size_t bytes)
{
	const struct name_record *r = value;
	size_t used = 0;
	const char *why = verify_record(value, bytes, &used);

	if (why)
		return why;
	if (used != bytes)
		return "entry has the wrong length";
	if (le64_get(r->seq) != key.off)
		return "entry is not at its sequence number";
	return NULL;
}

static bool on_device(uint64_t addr, uint64_t sectors)
{
	return !addr_device(addr) && addr && sectors &&
	       sectors <= ((uint64_t)1 << 56) - addr;
}

static bool in_file(uint64_t off, uint64_t sectors)
{
	return off < MAX_FILE_SECTORS && sectors <= MAX_FILE_SECTORS - off;
}

static const char *verify_extent(struct key key, const void *value,
				 size_t bytes)
{
	const struct extent_item *e = value;

	if (bytes != sizeof(*e))
		return "extent has the wrong length";
	if (!on_device(le64_get(e->addr), le64_get(e->sectors)))
		return "extent lies outside the device";
	if (!in_file(key.off, le64_get(e->sectors)))
		return "extent lies outside any file";
	if (le32_get(e->flags) & ~(EXTENT_UNWRITTEN | EXTENT_KNOWN))
		return "extent has unknown flags";
	return NULL;
}

static const char *verify_csum(struct key key, const void *value,
			       size_t bytes)
{
	struct csum_window w;

	if (key.off % TRAX_CSUM_WINDOW_BLOCKS ||
	    key.off >= TRAX_MAX_FILE_BLOCKS)
		return "checksums are not at a window";
	return csum_window_decode(value, bytes, &w);
}

static const char *verify_orphan(struct key key, const void *value,
				 size_t bytes)
{
	const struct orphan_item *o = value;

	if (bytes != sizeof(*o))
		return "orphan has the wrong length";
	if (!key.off || key.off >= TRAX_MAX_INO)
		return "orphan of no valid inode number";
	if (o->what != ORPHAN_DELETE && o->what != ORPHAN_TRUNCATE)
		return "orphan of an unknown kind";
	if (le64_get(o->size) > INT64_MAX)
		return "orphan's size is out of range";
	return NULL;
}

static const char *verify_owner(struct key key, const void *value,
				size_t bytes)
{
	const struct owner_item *o = value;
	uint64_t sectors;

	if (bytes != sizeof(*o))
		return "owner has the wrong length";
	sectors = le64_get(o->sectors);
	/* The boot block at sector 0 has an owner too. */
	if (addr_device(key.off) || !sectors ||
	    sectors > ((uint64_t)1 << 56) - key.off)
		return "owner lies outside the device";
	if (o->kind < OWNER_DATA || o->kind > OWNER_BAD)
		return "owner of an unknown kind";
	if (o->kind == OWNER_NODES &&
	    (sectors < TRAX_NODE_SECTORS ||
	     sectors / TRAX_NODE_SECTORS > MAX_NODE_TRACK_SLOTS))
		return "node track has no valid length";
	if (o->kind == OWNER_DATA &&
	    (!le64_get(o->ino) || le64_get(o->ino) >= TRAX_MAX_INO ||
	     !in_file(le64_get(o->off), sectors)))
		return "owner is no part of a file";
	return NULL;
}

static bool blocks_in_chunk(uint64_t block, unsigned blocks)
{
	return blocks && block < TRAX_MAX_FILE_BLOCKS &&
	       block % TRAX_CSUM_CHUNK_BLOCKS + blocks <=
	       TRAX_CSUM_CHUNK_BLOCKS;
}

static const char *verify_replica(struct key key, const void *value,
				  size_t bytes)
{
	const struct replica_item *r = value;

	if (bytes != sizeof(*r))
		return "replica has the wrong length";
	if (!blocks_in_chunk(key.off / TRAX_MAX_REPLICAS,
			     le16_get(r->blocks)))
		return "replica is not of one chunk of a file";
	if (!on_device(le64_get(r->addr),
		       le16_get(r->blocks) * TRAX_BLOCK_SECTORS) ||
	    !le64_get(r->number) ||
	    le64_get(r->addr) < le64_get(r->region) ||
	    le64_get(r->addr) - le64_get(r->region) >= TRAX_MAX_REGION_SECTORS)
		return "replica lies in no region";
	return NULL;
}

static const char *verify_region(struct key key, const void *value,
				 size_t bytes)
{
	const struct region_item *r = value;
	uint32_t sectors;

	if (bytes != sizeof(*r))
		return "region has the wrong length";
	sectors = le32_get(r->sectors);
	if (!on_device(key.off, sectors) || sectors % TRAX_BLOCK_SECTORS ||
	    sectors > TRAX_MAX_REGION_SECTORS)
		return "region has no valid place";
	return le64_get(r->number) ? NULL : "region has no number";
}

static const char *verify_copies(struct key key, const void *value,
				 size_t bytes)
{
	const struct copy_entry *e = value;

	if (!on_device(key.off, 1) || bytes % sizeof(*e) ||
	    bytes / sizeof(*e) > TRAX_COPIES_PER_ITEM)
		return "list of copies has the wrong length";
	for (size_t i = 0; i < bytes / sizeof(*e); i++) {
		if (le64_get(e[i].ino) >= TRAX_MAX_INO ||
		    !blocks_in_chunk(le64_get(e[i].block),
				     le16_get(e[i].blocks)))
			return "list of copies names no chunk of a file";
	}
	return NULL;
}

static const char *verify_error(struct key key, const void *value,
				size_t bytes)
{
	const struct error_item *e = value;

	(void)key;
	if (bytes != sizeof(*e))
		return "error has the wrong length";
	if (e->what < ERROR_READ || e->what > ERROR_LOST)
		return "error of an unknown kind";
	return e->healed > 1 ? "error is neither healed nor not" : NULL;
}

static const char *verify_move(struct key key, const void *value,
			       size_t bytes)
{
	const struct move_item *m = value;

	if (bytes != sizeof(*m))
		return "move has the wrong length";
	if (key.off != OWNER_LOG && key.off != OWNER_GEOM)
		return "move of what does not move";
	if (!le64_get(m->to) || !le64_get(m->to_sectors) ||
	    addr_device(le64_get(m->to)) || addr_device(le64_get(m->from)))
		return "move to nowhere";
	return !le64_get(m->from) != !le64_get(m->from_sectors) ?
		       "move from nowhere" : NULL;
}

/* The code that writes these (scrub, fs/replica) verifies them itself. */
static const char *verify_any(struct key key, const void *value, size_t bytes)
{
	(void)key;
	(void)value;
	(void)bytes;
	return NULL;
}

/* ---- The table ---------------------------------------------------------- */

static const struct item_rule {
	const char *name;
	bool global;		/* its items have ino 0 */
	const char *(*verify)(struct key key, const void *value,
			      size_t bytes);
} item_rules[] = {
	[ITEM_INODE] = { "inode", false, verify_inode },
	[ITEM_INLINE] = { "inline", false, verify_inline },
	[ITEM_XATTR] = { "xattr", false, verify_xattr },
	[ITEM_NAME] = { "name", false, verify_names },
	[ITEM_ENTRY] = { "entry", false, verify_entry },
	[ITEM_EXTENT] = { "extent", false, verify_extent },
	[ITEM_CSUM] = { "csum", false, verify_csum },
	[ITEM_REPLICA] = { "replica", false, verify_replica },
	[ITEM_ORPHAN] = { "orphan", true, verify_orphan },
	[ITEM_OWNER] = { "owner", true, verify_owner },
	[ITEM_SCRUB] = { "scrub", true, verify_any },
	[ITEM_ERROR] = { "error", true, verify_error },
	[ITEM_REGION] = { "region", true, verify_region },
	[ITEM_COPIES] = { "copies", true, verify_copies },
	[ITEM_HEAT] = { "heat", true, verify_any },
	[ITEM_MOVE] = { "move", true, verify_move },
	[ITEM_CLEAN] = { "clean", true, verify_any },
};

static const struct item_rule *item_rule(unsigned type)
{
	if (type >= sizeof(item_rules) / sizeof(item_rules[0]) ||
	    !item_rules[type].name)
		return NULL;
	return &item_rules[type];
}

const char *item_verify(struct key key, const void *value, size_t bytes)
{
	const struct item_rule *rule = item_rule(key.type);

	if (!rule)
		return "item of an unknown type";
	if (!bytes || bytes > TRAX_MAX_ITEM_BYTES)
		return "item's length is out of range";
	if (rule->global ? key.ino != 0 : !key.ino || key.ino >= TRAX_MAX_INO)
		return "item of no valid inode number";
	return rule->verify(key, value, bytes);
}

char *key_text(struct key k, char *buf, size_t bytes)
{
	const struct item_rule *rule = item_rule(k.type);

	if (rule)
		snprintf(buf, bytes, "%llu/%s/%llu", (unsigned long long)k.ino,
			 rule->name, (unsigned long long)k.off);
	else
		snprintf(buf, bytes, "%llu/%u/%llu", (unsigned long long)k.ino,
			 k.type, (unsigned long long)k.off);
	return buf;
}
