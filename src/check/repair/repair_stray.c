/*
 * repair_stray.c - extents that are lost are made again from the reverse map.
 *
 * An OWNER item of file data says which inode and which part of it lie there.
 * Where the EXTENT item that says the same was in a node that is lost, it is
 * made again; the inode, when that is lost too, follows from it, and when it
 * has no name it goes to lost+found (repair_files.c, repair_names.c).  Data
 * whose checksums are lost as well is named as unsure.
 *
 * Where nothing is lost, such an owner is one of nothing.
 */
#include <string.h>

#include "check/repair/repair.h"

/* Was this key in a node that is lost? The lost ranges are in the order of
 * keys. */
static bool key_is_lost(const struct check *check, struct key key)
{
	const struct vec *lost = &check->lost;
	size_t low = 0, high = lost->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct lost_range *range = vec_at(lost, mid);

		if (key_cmp(range->high, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < lost->n &&
	       key_cmp(((struct lost_range *)vec_at(lost, low))->low, key) <= 0;
}

/* Does an extent of the file lie within [off, off + n) of it? */
static bool is_mapped(const struct item_set *set, uint64_t ino, uint64_t off,
		      uint64_t n)
{
	size_t i = item_set_seek(set, key_make(ino, ITEM_EXTENT, off));
	const struct item_set_item *item;
	const struct extent_item *e;

	item = i < item_set_count(set) ? item_set_at(set, i) : NULL;
	if (item && item->key.ino == ino && item->key.type == ITEM_EXTENT &&
	    item->key.off - off < n)
		return true;
	item = i ? item_set_at(set, i - 1) : NULL;
	if (!item || item->key.ino != ino || item->key.type != ITEM_EXTENT)
		return false;
	e = item_set_value(set, item);
	return off - item->key.off < le64_get(e->sectors);
}

/* Preallocated room that was never written has no checksums, and its content is
 * not the file's. When its checksums are lost as well, nothing tells the two
 * apart, and it counts as written. */
static bool was_written(const struct check *check, const struct item_set *set,
			uint64_t ino, uint64_t off, uint64_t n)
{
	uint64_t block = off / TRAX_BLOCK_SECTORS;
	uint64_t end = (off + n + TRAX_BLOCK_SECTORS - 1) / TRAX_BLOCK_SECTORS;

	block -= block % TRAX_CSUM_WINDOW_BLOCKS;
	for (; block < end; block += TRAX_CSUM_WINDOW_BLOCKS) {
		struct key key = key_make(ino, ITEM_CSUM, block);

		if (item_set_find(set, key) || key_is_lost(check, key))
			return true;
	}
	return false;
}

static int stray_adopt(struct check *check, struct item_set *set, uint64_t addr,
		       const struct owner_item *owner)
{
	uint64_t ino = le64_get(owner->ino), off = le64_get(owner->off);
	uint64_t n = le64_get(owner->sectors);
	struct key key = key_make(ino, ITEM_EXTENT, off);
	struct extent_item e = {
		.addr = le64_put(addr),
		.sectors = le64_put(n),
	};

	if (!key_is_lost(check, key) || is_mapped(set, ino, off, n))
		return 0;
	if (!was_written(check, set, ino, off, n))
		e.flags = le32_put(EXTENT_UNWRITTEN);
	if (item_verify(key, &e, sizeof(e)))
		return 0;
	return item_set_put(set, key, &e, sizeof(e));
}

int repair_strays(struct check *check, struct item_set *set)
{
	size_t i = item_set_seek(set, key_make(0, ITEM_OWNER, 0));
	int rc = 0;

	if (!check->lost.n)
		return 0;
	for (; i < item_set_count(set) && !rc; i++) {
		const struct item_set_item *item = item_set_at(set, i);
		const struct owner_item owner = *(const struct owner_item *)
						item_set_value(set, item);

		if (item->key.ino || item->key.type != ITEM_OWNER)
			break;
		if (owner.kind == OWNER_DATA)
			rc = stray_adopt(check, set, item->key.off, &owner);
	}
	return rc ? rc : item_set_merge(set);
}
