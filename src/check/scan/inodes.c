/*
 * inodes.c - the items of one inode pass by in the order of their types; when
 * the next inode begins, what was counted is compared with what it says.
 *
 * What is on its way to be deleted or truncated (it has an orphan item) loses
 * its items in steps, so its counts are not asked.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/csum.h"
#include "check/scan/check_internal.h"

#define HAS(now, type) ((now)->seen >> (type) & 1u)
/* Names of extended attributes that an inode has flags for. */
#define ACL_PREFIX "system.posix_acl_"
#define CAPS_NAME "security.capability"
#define FLAGS_XATTR (INODE_HAS_CAPS | INODE_HAS_ACL)

static struct problem_place at_inode(const struct inode_state *now)
{
	return (struct problem_place){ .ino = now->ino };
}

/* ---- The whole file system's items ---- */

static void system_orphan(struct check *check, struct key key,
			  const struct orphan_item *item)
{
	struct orphan *orphan = check_add(check, &check->inodes.orphans);

	if (orphan)
		*orphan = (struct orphan){
			.ino = key.off,
			.size = le64_get(item->size),
			.delete = item->what == ORPHAN_DELETE,
		};
}

static void system_item(struct check *check, struct key key, const void *value,
			size_t bytes)
{
	if (key.type == ITEM_ORPHAN)
		system_orphan(check, key, value);
	else if (key.type == ITEM_OWNER)
		owners_item(check, key, value);
	else if (key.type == ITEM_MOVE)
		owners_move(check, key, value);
	else if (key.type == ITEM_REGION || key.type == ITEM_COPIES)
		copies_system(check, key, value, bytes);
}

/* ---- Extended attributes ---- */

/* Ends the attribute whose pieces have been read. */
static void xattr_end(struct check *check, struct inode_state *now)
{
	if (now->xattr_pieces || now->xattr_left)
		problem_report(check, PROBLEM_XATTR_PIECES, at_inode(now),
			       (unsigned long long)now->ino,
			       (unsigned long long)now->xattr_next &
			       ~0xffull);
	now->xattr_pieces = 0;
	now->xattr_left = 0;
}

static void xattr_place(struct check *check, const struct inode_state *now,
			uint64_t base, const char *name, size_t bytes)
{
	uint64_t hash_base = dirs_hash(check, name, bytes) >> 8;

	if ((base >> 8) - hash_base < TRAX_XATTR_PROBES)
		return;
	problem_report(check, PROBLEM_XATTR_HASH, at_inode(now),
		       (unsigned long long)now->ino, (unsigned long long)base);
}

static void xattr_flags(struct inode_state *now, const char *name,
			size_t bytes)
{
	size_t acl = strlen(ACL_PREFIX);

	if (bytes == strlen(CAPS_NAME) && !memcmp(name, CAPS_NAME, bytes))
		now->xattr_flags |= INODE_HAS_CAPS;
	if (bytes > acl && !memcmp(name, ACL_PREFIX, acl))
		now->xattr_flags |= INODE_HAS_ACL;
}

static void xattr_head(struct check *check, struct inode_state *now,
		       uint64_t base, const struct xattr_head *head,
		       size_t bytes)
{
	const char *name = (const char *)(head + 1);

	xattr_end(check, now);
	now->xattrs++;
	xattr_place(check, now, base, name, head->name_bytes);
	xattr_flags(now, name, head->name_bytes);
	now->xattr_next = base + 1;
	now->xattr_pieces = head->pieces - 1u;
	now->xattr_left = le32_get(head->value_bytes) -
			  (bytes - sizeof(*head) - head->name_bytes);
}

static void xattr_item(struct check *check, struct inode_state *now,
		       uint64_t off, const void *value, size_t bytes)
{
	if ((off & 0xff) == 0) {
		xattr_head(check, now, off, value, bytes);
		return;
	}
	if (now->xattr_pieces && off == now->xattr_next &&
	    bytes <= now->xattr_left) {
		now->xattr_next++;
		now->xattr_pieces--;
		now->xattr_left -= bytes;
		return;
	}
	/* This piece belongs to no attribute. */
	if (!now->xattr_pieces)
		now->xattr_next = off;
	now->xattr_pieces = 1;
	xattr_end(check, now);
}

/* ---- The end of an inode ---- */

static uint32_t now_type(const struct inode_state *now)
{
	return le32_get(now->item.mode) & S_IFMT;
}

static void finish_items(struct check *check, struct inode_state *now)
{
	const uint32_t dir = 1u << ITEM_NAME | 1u << ITEM_ENTRY;
	const uint32_t file = 1u << ITEM_EXTENT | 1u << ITEM_CSUM |
			      1u << ITEM_REPLICA;
	uint32_t not_allowed;

	switch (now_type(now)) {
	case S_IFDIR:
		not_allowed = file | 1u << ITEM_INLINE;
		break;
	case S_IFREG:
		not_allowed = dir;
		break;
	case S_IFLNK:
		not_allowed = dir | file;
		break;
	default:
		not_allowed = dir | file | 1u << ITEM_INLINE;
	}
	if (HAS(now, ITEM_INLINE))
		not_allowed |= file;
	if (now->seen & not_allowed)
		problem_report(check, PROBLEM_INODE_ITEMS, at_inode(now),
			       (unsigned long long)now->ino);
}

static void finish_symlink(struct check *check, struct inode_state *now)
{
	const char *why = NULL;

	if (!HAS(now, ITEM_INLINE))
		why = "missing";
	else if (now->inline_zero)
		why = "not a string";
	if (why)
		problem_report(check, PROBLEM_SYMLINK_TARGET, at_inode(now),
			       (unsigned long long)now->ino, why);
}

static void finish_size(struct check *check, struct inode_state *now)
{
	uint64_t size = le64_get(now->item.size);
	bool wrong = false;

	if (!HAS(now, ITEM_INLINE))
		return;
	if (now_type(now) == S_IFLNK)
		wrong = size != now->inline_bytes;
	else if (now_type(now) == S_IFREG)
		wrong = size < now->inline_bytes;
	if (wrong)
		problem_report(check, PROBLEM_INODE_SIZE, at_inode(now),
			       (unsigned long long)now->ino,
			       (unsigned long long)size,
			       (unsigned long long)now->inline_bytes);
}

static void finish_count(struct check *check, struct inode_state *now,
			 enum problem problem, uint64_t noted, uint64_t real)
{
	if (noted != real)
		problem_report(check, problem, at_inode(now),
			       (unsigned long long)now->ino,
			       (unsigned long long)noted,
			       (unsigned long long)real);
}

/* INODE_HAS_ACL is a hint that may stay when the ACL goes. */
static void finish_flags(struct check *check, struct inode_state *now)
{
	uint32_t flags = le32_get(now->item.flags);
	uint32_t real = now->xattr_flags;

	if (now->xattrs)
		real |= flags & INODE_HAS_ACL;
	finish_count(check, now, PROBLEM_INODE_FLAGS, flags & FLAGS_XATTR,
		     real);
}

static void finish_rdev(struct check *check, struct inode_state *now)
{
	uint32_t type = now_type(now);

	if (type != S_IFCHR && type != S_IFBLK && le32_get(now->item.rdev))
		problem_report(check, PROBLEM_INODE_RDEV, at_inode(now),
			       (unsigned long long)now->ino);
}

/* An inode without links has an orphan item that deletes it, and no other inode
 * has one; an orphan item that truncates may go with any file. */
static void finish_orphan(struct check *check, struct inode_state *now)
{
	bool linked = le32_get(now->item.nlink) != 0;
	const char *why = NULL;

	if (now->orphan) {
		now->orphan->used = true;
		if (now->orphan->delete && linked)
			why = "has links";
		if (!now->orphan->delete && now_type(now) != S_IFREG)
			why = "is no file";
		if (why)
			problem_report(check, PROBLEM_ORPHAN_STRAY,
				       at_inode(now),
				       (unsigned long long)now->ino, why);
	}
	if (!linked && !(now->orphan && now->orphan->delete))
		problem_report(check, PROBLEM_ORPHAN_MISSING, at_inode(now),
			       (unsigned long long)now->ino);
}

static void finish_numbers(struct check *check, const struct inode_state *now)
{
	struct inodes *inodes = &check->inodes;
	uint64_t seq = now->ino & ((1ull << TRAX_INO_SEQ_BITS) - 1);
	uint64_t group = now->ino >> TRAX_INO_SEQ_BITS;
	uint64_t child = le64_get(now->item.dirgroup);

	if (now_type(now) == S_IFDIR && child > group)
		group = child;
	if (seq > inodes->max_seq)
		inodes->max_seq = seq;
	if (group > inodes->max_dirgroup)
		inodes->max_dirgroup = group;
}

static void finish_inode(struct check *check, struct inode_state *now)
{
	xattr_end(check, now);
	finish_items(check, now);
	finish_orphan(check, now);
	finish_rdev(check, now);
	finish_numbers(check, now);
	if (now_type(now) == S_IFDIR)
		dirs_finish(check, now);
	if (now_type(now) == S_IFLNK)
		finish_symlink(check, now);
	if (!now->orphan) {
		finish_size(check, now);
		finish_flags(check, now);
		blocks_finish(check, now);
		finish_count(check, now, PROBLEM_INODE_SECTORS,
			     le64_get(now->item.sectors), now->sectors);
		finish_count(check, now, PROBLEM_INODE_XATTRS,
			     le32_get(now->item.xattrs), now->xattrs);
	}
	links_inode(check, now);
}

static void inode_end(struct check *check)
{
	struct inode_state *now = &check->inodes.now;
	struct vec ranges = now->written.ranges;

	if (now->ino && now->have)
		finish_inode(check, now);
	else if (now->ino)
		problem_report(check, PROBLEM_INODE_MISSING, at_inode(now),
			       (unsigned long long)now->ino);
	ranges.n = 0;
	memset(now, 0, sizeof(*now));
	now->written.ranges = ranges;
}

/* ---- Items ---- */

/* The orphan item of this inode; inodes and orphans are both read in order of
 * number. */
static struct orphan *orphan_of(struct inodes *inodes, uint64_t ino)
{
	struct orphan *orphan;

	while (inodes->orphan_at < inodes->orphans.n) {
		orphan = vec_at(&inodes->orphans, inodes->orphan_at);
		if (orphan->ino >= ino)
			return orphan->ino == ino ? orphan : NULL;
		inodes->orphan_at++;
	}
	return NULL;
}

static void inode_begin(struct check *check, struct key key)
{
	struct inode_state *now = &check->inodes.now;

	inode_end(check);
	now->ino = key.ino;
	now->orphan = orphan_of(&check->inodes, key.ino);
}

static void inode_item_is(struct check *check, struct inode_state *now,
			  const struct inode_item *item)
{
	now->have = true;
	now->item = *item;
	check->result->inodes++;
	if (now_type(now) == S_IFDIR)
		check->result->directories++;
	if (now->ino == TRAX_ROOT_INO) {
		check->inodes.have_root = now_type(now) == S_IFDIR;
		if (!check->inodes.have_root)
			problem_report(check, PROBLEM_ROOT_DIR, at_inode(now),
				       "no directory");
	}
}

void inodes_item(struct check *check, struct key key, const void *value,
		 size_t bytes)
{
	struct inode_state *now = &check->inodes.now;

	check->result->items++;
	if (!key.ino) {
		system_item(check, key, value, bytes);
		return;
	}
	if (key.ino != now->ino)
		inode_begin(check, key);
	now->seen |= 1u << key.type;
	switch (key.type) {
	case ITEM_INODE:
		inode_item_is(check, now, value);
		break;
	case ITEM_INLINE:
		now->inline_bytes = bytes;
		now->inline_zero = memchr(value, 0, bytes) != NULL;
		break;
	case ITEM_XATTR:
		xattr_item(check, now, key.off, value, bytes);
		break;
	case ITEM_NAME:
		dirs_names(check, now, key.off, value, bytes);
		break;
	case ITEM_ENTRY:
		dirs_entry(check, now, key.off, value, bytes);
		break;
	case ITEM_EXTENT:
		blocks_extent(check, now, key.off, value);
		break;
	case ITEM_CSUM:
		blocks_csum(check, now, key.off, value, bytes);
		break;
	case ITEM_REPLICA:
		copies_replica(check, now, key.off, value);
		break;
	}
}

/* ---- The end ---- */

static void finish_orphans(struct check *check)
{
	size_t i;

	for (i = 0; i < check->inodes.orphans.n; i++) {
		const struct orphan *orphan = vec_at(&check->inodes.orphans, i);

		if (!orphan->used)
			problem_report(check, PROBLEM_ORPHAN_STRAY,
				       (struct problem_place){
					       .ino = orphan->ino },
				       (unsigned long long)orphan->ino,
				       "does not exist");
	}
}

static void finish_root(struct check *check)
{
	const struct inodes *inodes = &check->inodes;
	const struct root *root = &check->root;
	struct problem_place none = { 0 };

	if (root->inodes != check->result->inodes)
		problem_report(check, PROBLEM_ROOT_INODES, none,
			       (unsigned long long)root->inodes,
			       (unsigned long long)check->result->inodes);
	if (root->next_ino_seq <= inodes->max_seq ||
	    root->next_dirgroup <= inodes->max_dirgroup)
		problem_report(check, PROBLEM_ROOT_NUMBERS, none,
			       (unsigned long long)root->next_ino_seq,
			       (unsigned long long)root->next_dirgroup);
}

void inodes_finish(struct check *check)
{
	inode_end(check);
	finish_orphans(check);
	finish_root(check);
}

void inodes_free(struct check *check)
{
	vec_fini(&check->inodes.now.written.ranges);
	vec_fini(&check->inodes.orphans);
	memset(&check->inodes, 0, sizeof(check->inodes));
}
