/*
 * repair_files.c - repairs the items of one inode after the other.
 *
 * A file whose deletion or truncation was under way keeps what it has: the next
 * mount goes on with it.
 */
#include <errno.h>
#include <string.h>

#include "base/csum.h"
#include "check/repair/repair.h"

struct repair_file {
	struct check *check;
	struct item_set *set;
	uint64_t ino;
	size_t first, end;	/* its items in the set */
	struct inode_item item;
	uint32_t mode;
	bool made;		/* there was no INODE item for it */
	bool orphan;
	bool unsure;		/* data without a checksum was trusted */
	uint64_t sectors;
	uint64_t noted;		/* sectors that its INODE item should count */
	uint64_t mapped_end;	/* first block behind its last extent */
	struct written written;
	uint8_t *buf;		/* one chunk of a checksum window */
	int rc;
};

static void file_put(struct repair_file *file, struct key key,
		     const void *value, size_t bytes)
{
	int rc = item_set_put(file->set, key, value, bytes);

	if (rc && !file->rc)
		file->rc = rc;
}

static bool file_has(const struct repair_file *file, enum item_type type)
{
	size_t i;

	for (i = file->first; i < file->end; i++) {
		const struct item_set_item *item = item_set_at(file->set, i);

		if (item->key.type == type && !item->dead)
			return true;
	}
	return false;
}

static struct item_set_item *file_inline(const struct repair_file *file)
{
	return item_set_find(file->set, key_make(file->ino, ITEM_INLINE, 0));
}

/* ---- The inode, and items that do not go with it ---- */

/* Finds the INODE item or makes one; false: nothing is known of the inode. */
static bool file_inode(struct repair_file *file)
{
	struct check *check = file->check;
	bool dir = file_has(file, ITEM_NAME) || file_has(file, ITEM_ENTRY);

	file->made = !repair_get_inode(file->set, file->ino, &file->item);
	if (file->made) {
		if (repair_refused(check, PROBLEM_INODE_MISSING))
			return false;
		repair_new_inode(check, dir ? S_IFDIR | 0700 : S_IFREG | 0600,
			       &file->item);
	}
	file->mode = le32_get(file->item.mode);
	if (file->ino == TRAX_ROOT_INO && !S_ISDIR(file->mode) &&
	    !repair_refused(check, PROBLEM_ROOT_DIR))
		repair_new_inode(check, S_IFDIR | 0755, &file->item);
	file->mode = le32_get(file->item.mode);
	return true;
}

/* A symlink without a target becomes a regular file with the data it has. */
static void file_symlink(struct repair_file *file)
{
	const struct item_set_item *target = file_inline(file);

	if (!S_ISLNK(file->mode) ||
	    repair_refused(file->check, PROBLEM_SYMLINK_TARGET))
		return;
	if (target &&
	    !memchr(item_set_value(file->set, target), 0, target->bytes))
		return;
	file->mode = S_IFREG | 0600;
	file->item.mode = le32_put(file->mode);
	if (!target)
		file->item.size = le64_put(0);
}

static uint32_t types_allowed(uint32_t mode)
{
	uint32_t any = 1u << ITEM_INODE | 1u << ITEM_XATTR;

	switch (mode & S_IFMT) {
	case S_IFDIR:
		return any | 1u << ITEM_NAME | 1u << ITEM_ENTRY;
	case S_IFREG:
		return any | 1u << ITEM_INLINE | 1u << ITEM_EXTENT |
		       1u << ITEM_CSUM;
	case S_IFLNK:
		return any | 1u << ITEM_INLINE;
	default:
		return any;
	}
}

/* Data in extents wins over inline data, unless there is none. */
static void file_items(struct repair_file *file)
{
	uint32_t allowed = types_allowed(file->mode);
	size_t i;

	if (repair_refused(file->check, PROBLEM_INODE_ITEMS))
		return;
	if (S_ISREG(file->mode) && file_has(file, ITEM_EXTENT))
		allowed &= ~(1u << ITEM_INLINE);
	for (i = file->first; i < file->end; i++) {
		struct item_set_item *item = item_set_at(file->set, i);

		if (!(allowed >> item->key.type & 1))
			item_set_remove(item);
	}
}

/* ---- Extended attributes ---- */

struct attribute {
	size_t first, end;	/* its pieces, as a range of the set */
	uint64_t base;
	uint8_t name_bytes;
	const char *name;
	bool whole;
};

/* Reads the attribute whose items begin at index i. */
static void attribute_read(const struct repair_file *file, size_t i,
			   struct attribute *a)
{
	const struct item_set_item *item = item_set_at(file->set, i);
	const struct xattr_head *head = item_set_value(file->set, item);
	uint64_t left, pieces = 1;

	*a = (struct attribute){ .first = i, .end = i + 1 };
	a->base = item->key.off & ~0xffull;
	if (item->key.off & 0xff)
		return;
	a->name_bytes = head->name_bytes;
	a->name = (const char *)(head + 1);
	left = le32_get(head->value_bytes) -
	       (item->bytes - sizeof(*head) - head->name_bytes);
	for (; a->end < file->end; a->end++, pieces++) {
		item = item_set_at(file->set, a->end);
		if (item->key.type != ITEM_XATTR ||
		    item->key.off != a->base + pieces || item->bytes > left ||
		    pieces >= head->pieces)
			break;
		left -= item->bytes;
	}
	a->whole = pieces == head->pieces && !left;
}

static void attribute_kill(struct repair_file *file, const struct attribute *a)
{
	size_t i;

	for (i = a->first; i < a->end; i++)
		item_set_remove(item_set_at(file->set, i));
}

/* Moves an attribute that lies under a wrong hash to a free place where it will
 * be found. */
static bool attribute_move(struct repair_file *file, const struct attribute *a)
{
	uint64_t hash_base =
		dirs_hash(file->check, a->name, a->name_bytes) >> 8;
	unsigned probe;
	size_t i;

	for (probe = 0; probe < TRAX_XATTR_PROBES; probe++) {
		uint64_t base = (hash_base + probe) << 8;

		if (item_set_find(file->set,
				  key_make(file->ino, ITEM_XATTR, base)))
			continue;
		for (i = a->first; i < a->end; i++) {
			struct item_set_item *item = item_set_at(file->set, i);

			file_put(file, key_make(file->ino, ITEM_XATTR,
						base | (item->key.off & 0xff)),
				 item_set_value(file->set, item), item->bytes);
		}
		return true;
	}
	return false;
}

static uint32_t attribute_flag(const struct attribute *a)
{
	static const char acl[] = "system.posix_acl_";
	static const char caps[] = "security.capability";

	if (a->name_bytes == sizeof(caps) - 1 &&
	    !memcmp(a->name, caps, sizeof(caps) - 1))
		return INODE_HAS_CAPS;
	if (a->name_bytes > sizeof(acl) - 1 &&
	    !memcmp(a->name, acl, sizeof(acl) - 1))
		return INODE_HAS_ACL;
	return 0;
}

/* Repairs one attribute; true when it counts. */
static bool file_attribute(struct repair_file *file, const struct attribute *a)
{
	uint64_t hash_base;

	if (!a->whole) {
		if (!repair_refused(file->check, PROBLEM_XATTR_PIECES))
			attribute_kill(file, a);
		return a->name != NULL &&
		       repair_refused(file->check, PROBLEM_XATTR_PIECES);
	}
	hash_base = dirs_hash(file->check, a->name, a->name_bytes) >> 8;
	if ((a->base >> 8) - hash_base >= TRAX_XATTR_PROBES &&
	    !repair_refused(file->check, PROBLEM_XATTR_HASH)) {
		attribute_kill(file, a);
		return attribute_move(file, a);
	}
	return true;
}

static void file_xattrs(struct repair_file *file)
{
	uint32_t n = 0, flags = 0, old = le32_get(file->item.flags);
	struct attribute a;
	size_t i;

	for (i = file->first; i < file->end; i = a.end) {
		a.end = i + 1;
		if (item_set_at(file->set, i)->key.type != ITEM_XATTR)
			continue;
		attribute_read(file, i, &a);
		if (!file_attribute(file, &a))
			continue;
		n++;
		flags |= attribute_flag(&a);
	}
	if (!repair_refused(file->check, PROBLEM_INODE_XATTRS))
		file->item.xattrs = le32_put(n);
	if (repair_refused(file->check, PROBLEM_INODE_FLAGS))
		return;
	if (n)
		flags |= old & INODE_HAS_ACL;
	old &= ~(INODE_HAS_CAPS | INODE_HAS_ACL);
	file->item.flags = le32_put(old | flags);
}

/* ---- Extents ---- */

/* Shortens an extent to end at `end` (file sectors), or drops it. */
static void extent_cut(struct repair_file *file, struct item_set_item *item,
		       struct extent_item *e, uint64_t end)
{
	if (end <= item->key.off) {
		item_set_remove(item);
		e->sectors = le64_put(0);
		return;
	}
	e->sectors = le64_put(end - item->key.off);
	file_put(file, item->key, e, sizeof(*e));
}

static uint64_t file_blocks(const struct repair_file *file)
{
	uint64_t size = le64_get(file->item.size);

	return size / TRAX_BLOCK_BYTES + (size % TRAX_BLOCK_BYTES != 0);
}

static void file_extent(struct repair_file *file, struct item_set_item *item,
			uint64_t *last_end)
{
	struct extent_item e = *(const struct extent_item *)
			       item_set_value(file->set, item);
	bool written = !(le32_get(e.flags) & EXTENT_UNWRITTEN);
	uint64_t off = item->key.off, end = off + le64_get(e.sectors);
	uint64_t eof = file_blocks(file) * TRAX_BLOCK_SECTORS;

	/* Of two extents that overlap the first one stays. */
	if (off < *last_end &&
	    !repair_refused(file->check, PROBLEM_EXTENT_OVERLAP)) {
		item_set_remove(item);
		return;
	}
	if (written && end > eof && !file->made && !file->orphan &&
	    !repair_refused(file->check, PROBLEM_EXTENT_EOF))
		extent_cut(file, item, &e, eof);
	end = off + le64_get(e.sectors);
	if (end == off)
		return;
	*last_end = end;
	file->sectors += end - off;
	if (!written)
		return;
	blocks_written_add(file->check, &file->written, off, end - off);
	file->mapped_end = (end + TRAX_BLOCK_SECTORS - 1) / TRAX_BLOCK_SECTORS;
}

static void file_extents(struct repair_file *file)
{
	uint64_t end = 0;
	size_t i;

	for (i = file->first; i < file->end; i++) {
		struct item_set_item *item = item_set_at(file->set, i);

		if (item->key.type == ITEM_EXTENT && !item->dead)
			file_extent(file, item, &end);
	}
	if (!repair_refused(file->check, PROBLEM_INODE_SECTORS))
		file->item.sectors = le64_put(file->sectors);
}

/* ---- Checksums ---- */

/* The checksum for a block without one. Data that can be read is trusted; data
 * that cannot gets a checksum that fits nothing, so that readers see an
 * error. */
static uint32_t block_sum(struct repair_file *file, uint64_t block)
{
	if (repair_read_block(file->check, file->set, file->ino, block,
			    file->buf))
		return 0;
	file->unsure = true;
	return csum_block(file->buf);
}

/* Makes chunk i of a window cover exactly the written blocks; true: it was
 * changed. */
static bool chunk_repair(struct repair_file *file, struct csum_window *w,
		       uint64_t first, unsigned i)
{
	uint64_t block = first + i * TRAX_CSUM_CHUNK_BLOCKS;
	uint16_t want = blocks_written_mask(&file->written, block);
	uint16_t has = w->mask[i];
	uint16_t missing = want & ~has;
	unsigned b;

	if (repair_refused(file->check, PROBLEM_CSUM_STRAY))
		want |= has;
	if (repair_refused(file->check, PROBLEM_CSUM_MISSING))
		want &= has;
	if (want == has)
		return false;
	for (b = 0; b < TRAX_CSUM_CHUNK_BLOCKS; b++)
		if (missing & want & 1u << b)
			w->sum[i][b] = block_sum(file, block + b);
	w->mask[i] = want;
	return true;
}

static void window_repair(struct repair_file *file, uint64_t first)
{
	struct key key = key_make(file->ino, ITEM_CSUM, first);
	struct item_set_item *item = item_set_find(file->set, key);
	uint8_t value[TRAX_MAX_ITEM_BYTES];
	struct csum_window w = { 0 };
	bool changed = false;
	size_t bytes;
	unsigned i;

	if (item && csum_window_decode(item_set_value(file->set, item),
				       item->bytes, &w))
		memset(&w, 0, sizeof(w));
	for (i = 0; i < TRAX_CSUM_CHUNKS; i++)
		changed |= chunk_repair(file, &w, first, i);
	if (!changed)
		return;
	bytes = csum_window_encode(&w, value);
	if (bytes)
		file_put(file, key, value, bytes);
	else if (item)
		item_set_remove(item);
}

/* The window of the next CSUM item from `i` on, UINT64_MAX at the end. */
static uint64_t window_of_item(const struct repair_file *file, size_t *i)
{
	for (; *i < file->end; ++*i) {
		const struct item_set_item *item = item_set_at(file->set, *i);

		if (item->key.type == ITEM_CSUM && !item->dead)
			return item->key.off;
	}
	return UINT64_MAX;
}

/* Repairs all windows that have checksums or written blocks, in order. */
static void file_csums(struct repair_file *file)
{
	uint64_t at = 0, item_at, written_at, next;
	size_t i = file->first;

	while (!file->rc && !file->check->rc) {
		item_at = window_of_item(file, &i);
		written_at = blocks_written_next(&file->written, at,
						 UINT64_MAX);
		if (written_at != UINT64_MAX)
			written_at -= written_at % TRAX_CSUM_WINDOW_BLOCKS;
		next = item_at < written_at ? item_at : written_at;
		if (next == UINT64_MAX)
			break;
		window_repair(file, next);
		if (item_at == next)
			i++;
		at = next + TRAX_CSUM_WINDOW_BLOCKS;
	}
}

/* ---- What is lost ---- */

static bool file_was_inline(const struct repair_file *file)
{
	struct key key = key_make(file->ino, ITEM_INLINE, 0);
	const struct vec *lost = &file->check->lost;
	size_t i;

	for (i = 0; i < lost->n; i++) {
		const struct lost_range *range = vec_at(lost, i);

		if (key_cmp(range->low, key) <= 0 &&
		    key_cmp(key, range->high) <= 0)
			return true;
	}
	return false;
}

/* Problems after which extents of a file may be gone. */
static bool extents_dropped(const struct check *check)
{
	return check->lost.n || check->problem_found[PROBLEM_ITEM_BAD] ||
	       check->problem_found[PROBLEM_EXTENT_OUTSIDE] ||
	       check->problem_found[PROBLEM_EXTENT_OVERLAP] ||
	       check->problem_found[PROBLEM_EXTENT_SHARED];
}

static void file_unsure(struct repair_file *file)
{
	if (!file->unsure)
		return;
	problem_report(file->check, PROBLEM_DATA_UNSURE,
		       (struct problem_place){ .ino = file->ino },
		       (unsigned long long)file->ino);
	paths_keep(file->check, file->ino);
}

/* Holes of a file that has lost data may not be zeros: the flag makes reads of
 * them fail. */
static void file_lost(struct repair_file *file)
{
	uint32_t flags = le32_get(file->item.flags);
	bool empty = !file->sectors && !file_inline(file);

	if (!S_ISREG(file->mode) || file->made ||
	    !le64_get(file->item.size) || flags & INODE_DATA_LOST)
		return;
	if (!(file->noted > file->sectors && extents_dropped(file->check)) &&
	    !(empty && file_was_inline(file)))
		return;
	file->item.flags = le32_put(flags | INODE_DATA_LOST);
	problem_report(file->check, PROBLEM_DATA_LOST,
		       (struct problem_place){ .ino = file->ino },
		       (unsigned long long)file->ino);
	paths_keep(file->check, file->ino);
}

/* ---- Size and the rest ---- */

static void file_size(struct repair_file *file)
{
	const struct item_set_item *data = file_inline(file);
	uint64_t size = le64_get(file->item.size);
	uint64_t bytes = data && !data->dead ? data->bytes : 0;

	if (file->made && S_ISREG(file->mode)) {
		size = file->mapped_end * TRAX_BLOCK_BYTES;
		if (size < bytes)
			size = bytes;
	} else if (repair_refused(file->check, PROBLEM_INODE_SIZE)) {
		return;
	} else if (S_ISLNK(file->mode)) {
		size = bytes;
	} else if (S_ISREG(file->mode) && size < bytes) {
		size = bytes;
	}
	file->item.size = le64_put(size);
}

static void file_rdev(struct repair_file *file)
{
	if (!S_ISCHR(file->mode) && !S_ISBLK(file->mode) &&
	    !repair_refused(file->check, PROBLEM_INODE_RDEV))
		file->item.rdev = le32_put(0);
}

static void file_repair(struct repair_file *file)
{
	struct inode_item before = { 0 };
	bool had = repair_get_inode(file->set, file->ino, &before);

	if (!file_inode(file))
		return;
	file->noted = le64_get(file->item.sectors);
	file_symlink(file);
	if (!file->orphan) {
		file_items(file);
		file_xattrs(file);
		file_extents(file);
		file_csums(file);
		file_size(file);
		file_lost(file);
		file_unsure(file);
	}
	file_rdev(file);
	if (!had || memcmp(&before, &file->item, sizeof(before)))
		file_put(file, key_make(file->ino, ITEM_INODE, 0), &file->item,
			 sizeof(file->item));
}

static int repair_file(struct check *check, struct item_set *set, size_t first,
		     size_t end)
{
	struct repair_file file = {
		.check = check,
		.set = set,
		.ino = item_set_at(set, first)->key.ino,
		.first = first,
		.end = end,
	};
	int rc;

	file.orphan =
		item_set_find(set, key_make(0, ITEM_ORPHAN, file.ino)) != NULL;
	vec_init(&file.written.ranges, sizeof(struct block_range));
	file.buf = device_buffer(check, TRAX_BLOCK_BYTES);
	if (file.buf)
		file_repair(&file);
	rc = check->rc ? check->rc : file.rc;
	vec_fini(&file.written.ranges);
	free(file.buf);
	return rc;
}

int repair_files(struct check *check, struct item_set *set)
{
	size_t first = item_set_seek(set, key_make(1, 0, 0)), end;
	int rc = 0;

	for (; first < item_set_count(set) && !rc; first = end) {
		uint64_t ino = item_set_at(set, first)->key.ino;

		for (end = first + 1; end < item_set_count(set); end++)
			if (item_set_at(set, end)->key.ino != ino)
				break;
		rc = repair_file(check, set, first, end);
		check_progress(check, "mending", first, item_set_count(set));
	}
	return rc ? rc : item_set_merge(set);
}
