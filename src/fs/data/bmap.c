/*
 * bmap.c - extents and checksums of a file, in the tree.
 *
 * A change of the mapping is planned over resident items and then applied: the
 * extents that are met, and neighbours that continue the new ones, are taken
 * out (`old`), what remains of them is joined with the new ones and cut again
 * so that each lies in one track or is a run of whole tracks (`new`); what is
 * in both lists is left alone.  Each extent has exactly one OWNER item.
 *
 * 1. A file block is mapped wholly or not at all, by one extent or several.
 * 2. A plan that would meet too many nodes is shortened to fewer blocks.
 */
#include "fs/data/bmap.h"

#include <assert.h>
#include <errno.h>

#include "base/csum.h"
#include "base/msg.h"
#include "fs/data/cache_chunk.h"

/* ---- Lookups ---- */

static int extent_of(struct fs_txn *txn, const struct tree_item *item,
		     struct extent *extent)
{
	const struct extent_item *value = item->value;
	char text[64];

	extent->off = item->key.off;
	extent->addr = le64_get(value->addr);
	extent->n = le64_get(value->sectors);
	extent->flags = le32_get(value->flags);
	if (item->bytes == sizeof(*value) && extent->n &&
	    extent->off + extent->n > extent->off &&
	    addr_sector(extent->addr) + extent->n <=
	    txn->fs->disk->limits.sectors)
		return 0;
	msg_error("%s: extent %s lies outside the disk",
		  txn->fs->disk->name,
		  key_text(item->key, text, sizeof(text)));
	return -EUCLEAN;
}

int bmap_extent_before(struct fs_txn *txn, uint64_t ino, uint64_t sector,
		      struct extent *extent)
{
	struct tree_item item;
	int rc;

	if (sector == 0)
		return -ENOENT;
	rc = tree_seek_le(txn->tree_txn, key_make(ino, ITEM_EXTENT, sector - 1),
			  key_make(ino, ITEM_EXTENT, 0), &item);
	return rc ? rc : extent_of(txn, &item, extent);
}

int bmap_extent(struct fs_txn *txn, uint64_t ino, uint64_t sector,
	       struct extent *extent)
{
	struct tree_item item;
	int rc;

	rc = tree_seek_le(txn->tree_txn, key_make(ino, ITEM_EXTENT, sector),
			  key_make(ino, ITEM_EXTENT, 0), &item);
	if (rc == 0) {
		rc = extent_of(txn, &item, extent);
		if (rc || extent->off + extent->n > sector)
			return rc;
	} else if (rc != -ENOENT) {
		return rc;
	}
	rc = tree_seek_ge(txn->tree_txn, key_make(ino, ITEM_EXTENT, sector),
			  key_make(ino, ITEM_EXTENT, UINT64_MAX), &item);
	return rc ? rc : extent_of(txn, &item, extent);
}

/* ---- Plans ---- */

static uint64_t extent_end(const struct extent *extent)
{
	return extent->off + extent->n;
}

/* Does b go on where a ends, in the file and on the disk? */
static bool extent_joins(const struct extent *a, const struct extent *b)
{
	return extent_end(a) == b->off && a->addr + a->n == b->addr &&
	       a->flags == b->flags;
}

/* Adds an extent to the new list, joined to the last one where it continues it;
 * cuts at tracks come later. */
static void plan_add(struct bmap_plan *plan, struct extent extent)
{
	struct extent *last = plan->new_n ? &plan->new[plan->new_n - 1] : NULL;

	if (!extent.n)
		return;
	if (last && extent_joins(last, &extent)) {
		last->n += extent.n;
		return;
	}
	assert(plan->new_n < BMAP_NEW);
	plan->new[plan->new_n++] = extent;
}

/* Cuts the new extents at the ends of tracks. */
static void plan_cut(struct fs_txn *txn, struct bmap_plan *plan)
{
	struct extent list[BMAP_NEW], part;
	unsigned i, n = plan->new_n;
	uint64_t end;

	memcpy(list, plan->new, sizeof(list));
	plan->new_n = 0;
	for (i = 0; i < n; i++) {
		part = list[i];
		end = part.addr + part.n;
		while (part.addr < end) {
			part.n = alloc_cut(txn->fs->alloc, part.addr, end) -
				 part.addr;
			assert(plan->new_n < BMAP_NEW);
			plan->new[plan->new_n++] = part;
			part.addr += part.n;
			part.off += part.n;
		}
	}
}

static bool plan_has(const struct extent *list, unsigned n,
		     const struct extent *extent)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (list[i].off == extent->off && list[i].n == extent->n &&
		    list[i].addr == extent->addr &&
		    list[i].flags == extent->flags)
			return true;
	return false;
}

static struct key owner_key(const struct extent *extent)
{
	return key_make(0, ITEM_OWNER, extent->addr);
}

static bool owner_is(const struct tree_item *item, uint64_t ino,
		     const struct extent *extent)
{
	const struct owner_item *owner = item->value;

	return owner->kind == OWNER_DATA && le64_get(owner->ino) == ino &&
	       le64_get(owner->off) == extent->off &&
	       le64_get(owner->sectors) == extent->n;
}

static bool plan_frees(const struct bmap_plan *plan, uint64_t addr)
{
	unsigned i;

	for (i = 0; i < plan->old_n; i++)
		if (plan->old[i].addr == addr)
			return true;
	return false;
}

static int owner_wrong(struct fs_txn *txn, const struct extent *extent)
{
	char text[64];

	msg_error("%s: an extent and owner item %s do not agree",
		  txn->fs->disk->name,
		  key_text(owner_key(extent), text, sizeof(text)));
	return -EUCLEAN;
}

/* -EEXIST: another OWNER item has some of the extent's sectors. */
static int owner_alone(struct fs_txn *txn, const struct extent *extent)
{
	const struct key key = owner_key(extent);
	const struct owner_item *owner;
	struct tree_item item;
	int rc;

	rc = tree_seek_ge(txn->tree_txn, key_make(0, ITEM_OWNER, key.off + 1),
			  key_make(0, ITEM_OWNER, key.off + extent->n - 1),
			  &item);
	if (rc != -ENOENT)
		return rc ? rc : -EEXIST;
	if (!key.off)
		return 0;
	rc = tree_seek_le(txn->tree_txn, key_make(0, ITEM_OWNER, key.off - 1),
			  key_make(0, ITEM_OWNER, 0), &item);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	owner = item.value;
	return item.key.off + le64_get(owner->sectors) > key.off ? -EEXIST : 0;
}

int bmap_verify_owner(struct fs_txn *txn, uint64_t ino,
		      const struct extent *extent)
{
	struct tree_item item;
	int rc = tree_get(txn->tree_txn, owner_key(extent), &item);

	if (!rc)
		rc = owner_is(&item, ino, extent) ? owner_alone(txn, extent) :
						    -EEXIST;
	return rc == -ENOENT || rc == -EEXIST ? owner_wrong(txn, extent) : rc;
}

/* The old extents must belong to this file, or another one would lose its room;
 * the new ones to nobody. */
static int plan_owners(struct fs_txn *txn, uint64_t ino,
		       const struct bmap_plan *plan, bool old)
{
	const struct extent *list = old ? plan->old : plan->new;
	unsigned i, n = old ? plan->old_n : plan->new_n;
	struct tree_item item;
	int rc, miss = 0;

	for (i = 0; i < n; i++) {
		rc = tree_get(txn->tree_txn, owner_key(&list[i]), &item);
		if (rc == -EAGAIN) {
			miss = rc;
			continue;
		}
		if (rc && rc != -ENOENT)
			return rc;
		if (old ? rc || !owner_is(&item, ino, &list[i]) :
			  !rc && !plan_frees(plan, list[i].addr))
			return owner_wrong(txn, &list[i]);
	}
	return miss;
}

/* Is there room for another old extent?  It needs a leaf of its own and its
 * owner's, and so do the parts that may remain of it. */
static bool plan_room(struct fs_txn *txn, const struct bmap_plan *plan)
{
	unsigned room = tree_txn_room(txn->tree_txn);

	return plan->old_n < BMAP_OLD / 2 &&
	       (plan->old_n < 3 || room > 4 * (plan->old_n + 4));
}

/*
 * Adds the extents before the range that the new ones may continue: the last
 * one, which may end inside a track, and the whole tracks before it.
 */
static int plan_before(struct fs_txn *txn, uint64_t ino,
		       struct bmap_plan *plan)
{
	struct extent last, before;
	int rc;

	rc = bmap_extent_before(txn, ino, plan->off, &last);
	if (rc || extent_end(&last) != plan->off)
		return rc == -ENOENT ? 0 : rc;
	rc = bmap_extent_before(txn, ino, last.off, &before);
	if (rc && rc != -ENOENT)
		return rc;
	if (rc == 0 && extent_joins(&before, &last))
		plan->old[plan->old_n++] = before;
	plan->old[plan->old_n++] = last;
	return 0;
}

/*
 * Collects the extents that [off, off + n) meets, and with `neighbours` those
 * before.  May shorten the plan, to whole blocks.
 */
static int plan_old(struct fs_txn *txn, uint64_t ino, struct bmap_plan *plan,
		    bool neighbours)
{
	uint64_t sector = plan->off, end = plan->off + plan->n;
	struct extent extent;
	int rc;

	plan->old_n = 0;
	if (neighbours) {
		rc = plan_before(txn, ino, plan);
		if (rc)
			return rc;
	}
	while (sector < end + neighbours) {
		rc = bmap_extent(txn, ino, sector, &extent);
		if (rc == -ENOENT ||
		    (rc == 0 && extent.off >= end + neighbours))
			return 0;
		if (rc)
			return rc;
		if (!plan_room(txn, plan) && extent.off < end) {
			end = extent.off / BLOCK_SECTORS * BLOCK_SECTORS;
			if (end <= plan->off)
				return -E2BIG;
			plan->n = end - plan->off;
			return 0;
		}
		plan->old[plan->old_n++] = extent;
		sector = extent_end(&extent);
	}
	return 0;
}

/* Makes the new list: what is left of the old extents, with the added
 * between. */
static void plan_new(struct bmap_plan *plan, const struct extent *added,
		     unsigned added_n)
{
	uint64_t end = plan->off + plan->n;
	struct extent part;
	unsigned i;

	plan->new_n = 0;
	for (i = 0; i < plan->old_n; i++) {
		part = plan->old[i];
		if (part.off >= plan->off)
			break;
		if (extent_end(&part) > plan->off)
			part.n = plan->off - part.off;
		plan_add(plan, part);
	}
	for (i = 0; i < added_n && added[i].off < end; i++) {
		part = added[i];
		if (extent_end(&part) > end)
			part.n = end - part.off;
		if (extent_end(&part) <= plan->off)
			continue;
		if (part.off < plan->off) {
			part.n -= plan->off - part.off;
			part.addr += plan->off - part.off;
			part.off = plan->off;
		}
		plan_add(plan, part);
	}
	for (i = 0; i < plan->old_n; i++) {
		part = plan->old[i];
		if (extent_end(&part) <= end)
			continue;
		if (part.off < end) {
			part.n -= end - part.off;
			part.addr += end - part.off;
			part.off = end;
		}
		plan_add(plan, part);
	}
}

/* Removes extents that are in both lists. */
static void plan_trim(struct bmap_plan *plan)
{
	struct extent old[BMAP_OLD];
	unsigned i, n = 0, m = 0;

	for (i = 0; i < plan->old_n; i++)
		if (!plan_has(plan->new, plan->new_n, &plan->old[i]))
			old[n++] = plan->old[i];
	for (i = 0; i < plan->new_n; i++)
		if (!plan_has(plan->old, plan->old_n, &plan->new[i]))
			plan->new[m++] = plan->new[i];
	memcpy(plan->old, old, n * sizeof(*old));
	plan->old_n = n;
	plan->new_n = m;
}

int bmap_probe(struct fs_txn *txn, uint64_t ino, uint64_t off, uint64_t n,
	      const struct extent *added, unsigned added_n,
	      struct bmap_plan *plan)
{
	struct tree_item item;
	unsigned i;
	int rc, miss;

	plan->off = off;
	plan->n = n;
	rc = plan_old(txn, ino, plan, added_n > 0);
	if (rc)
		return rc;
	plan_new(plan, added, added_n);
	plan_cut(txn, plan);
	plan_trim(plan);
	miss = plan_owners(txn, ino, plan, true);
	if (miss && miss != -EAGAIN)
		return miss;
	rc = plan_owners(txn, ino, plan, false);
	if (rc)
		return rc;
	for (i = 0; i < plan->new_n; i++) {
		rc = tree_get(txn->tree_txn, key_make(ino, ITEM_EXTENT,
						    plan->new[i].off), &item);
		if (rc == -EAGAIN)
			miss = rc;
		else if (rc && rc != -ENOENT)
			return rc;
	}
	return miss;
}

void bmap_apply(struct fs_txn *txn, uint64_t ino,
	       const struct bmap_plan *plan, struct inode_item *item)
{
	uint64_t sectors = le64_get(item->sectors);
	const struct extent *extent;
	struct extent_item value;
	struct owner_item owner;
	unsigned i;

	for (i = 0; i < plan->old_n; i++) {
		extent = &plan->old[i];
		tree_del(txn->tree_txn,
			 key_make(ino, ITEM_EXTENT, extent->off));
		tree_del(txn->tree_txn, owner_key(extent));
		sectors -= sectors < extent->n ? sectors : extent->n;
	}
	for (i = 0; i < plan->new_n; i++) {
		extent = &plan->new[i];
		value = (struct extent_item){
			.addr = le64_put(extent->addr),
			.sectors = le64_put(extent->n),
			.flags = le32_put(extent->flags),
		};
		owner = (struct owner_item){
			.sectors = le64_put(extent->n),
			.kind = OWNER_DATA,
			.ino = le64_put(ino),
			.off = le64_put(extent->off),
		};
		tree_put(txn->tree_txn, key_make(ino, ITEM_EXTENT, extent->off),
			 &value, sizeof(value));
		tree_put(txn->tree_txn, owner_key(extent), &owner,
			 sizeof(owner));
		sectors += extent->n;
	}
	item->sectors = le64_put(sectors);
}

/* ---- Checksums ---- */

static struct key window_key(uint64_t ino, uint64_t window)
{
	return key_make(ino, ITEM_CSUM, window * TRAX_CSUM_WINDOW_BLOCKS);
}

int bmap_window(struct fs_txn *txn, uint64_t ino, uint64_t window,
	       struct csum_window *out)
{
	struct tree_item item;
	char text[64];
	const char *why;
	int rc = tree_get(txn->tree_txn, window_key(ino, window), &item);

	memset(out, 0, sizeof(*out));
	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	why = csum_window_decode(item.value, item.bytes, out);
	if (!why)
		return 0;
	msg_error("%s: item %s: %s", txn->fs->disk->name,
		  key_text(item.key, text, sizeof(text)), why);
	return -EUCLEAN;
}

/* The blocks of the p-th chunk of a window that a change of checksums
 * covers. */
static uint16_t sums_bits(const struct bmap_sums *sums, uint64_t window,
			  unsigned p)
{
	uint64_t base = window * TRAX_CSUM_WINDOW_BLOCKS + p * CHUNK_BLOCKS;
	uint64_t end = sums->first + sums->n;
	unsigned lo, hi;

	if (base + CHUNK_BLOCKS <= sums->first || base >= end)
		return 0;
	lo = sums->first > base ? (unsigned)(sums->first - base) : 0;
	hi = end < base + CHUNK_BLOCKS ? (unsigned)(end - base) : CHUNK_BLOCKS;
	return (uint16_t)((1u << hi) - (1u << lo));
}

int bmap_sums_probe(struct fs_txn *txn, uint64_t ino,
		   const struct bmap_sums *sums)
{
	uint64_t w = sums->first / TRAX_CSUM_WINDOW_BLOCKS;
	uint64_t last = (sums->first + sums->n - 1) / TRAX_CSUM_WINDOW_BLOCKS;
	struct csum_window window;
	int rc, miss = 0;

	for (; w <= last; w++) {
		rc = bmap_window(txn, ino, w, &window);
		if (rc == -EAGAIN)
			miss = rc;
		else if (rc)
			return rc;
	}
	return miss;
}

static void sums_chunk(const struct bmap_sums *sums, struct csum_window *window,
		       uint64_t w, unsigned p)
{
	uint64_t block = w * TRAX_CSUM_WINDOW_BLOCKS + p * CHUNK_BLOCKS;
	uint16_t bits = sums_bits(sums, w, p);
	unsigned i;

	window->mask[p] &= ~bits;
	if (!sums->sum)
		return;
	window->mask[p] |= bits;
	for (i = 0; i < CHUNK_BLOCKS; i++)
		if (bits & 1u << i)
			window->sum[p][i] = sums->sum(sums->arg,
				(unsigned)(block + i - sums->first));
}

void bmap_sums_apply(struct fs_txn *txn, struct file *file,
		    const struct bmap_sums *sums)
{
	uint64_t w = sums->first / TRAX_CSUM_WINDOW_BLOCKS;
	uint64_t last = (sums->first + sums->n - 1) / TRAX_CSUM_WINDOW_BLOCKS;
	uint8_t buf[TRAX_MAX_ITEM_BYTES];
	struct csum_window window;
	struct tree_item item;
	size_t bytes;
	unsigned p;

	for (; w <= last; w++) {
		int rc = bmap_window(txn, file->ino, w, &window);
		bool there = tree_get(txn->tree_txn, window_key(file->ino, w),
				      &item) == 0;

		assert(rc == 0);
		for (p = 0; p < TRAX_CSUM_CHUNKS; p++)
			sums_chunk(sums, &window, w, p);
		bytes = csum_window_encode(&window, buf);
		if (bytes)
			tree_put(txn->tree_txn, window_key(file->ino, w), buf,
				 bytes);
		else if (there)
			tree_del(txn->tree_txn, window_key(file->ino, w));
	}
	chunks_changed(file, sums->first, sums->n);
}
