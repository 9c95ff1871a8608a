/*
 * salvage.c - leaves whose parents are lost.
 *
 * A node that was replaced stays on the disk until its slot is needed, so of
 * each key there may be several leaves.  All leaves of this file system are
 * looked for in the node tracks (or, when these are not known, everywhere), and
 * sorted by generation.  For the lost key ranges the newest leaf has the first
 * word about all keys of its own range, present or not; older ones speak only
 * of what is left.  Between two good items of a damaged leaf, where bad ones
 * lie, nothing has been said.
 *
 * Such a leaf has no checksum of its own: its items are believed as far as each
 * one passes its verifier, and repairing makes them agree.  Nothing speaks for
 * the inline data of a leaf that is known to be damaged: these files are named.
 */
#include <errno.h>
#include <string.h>

#include "base/sort.h"
#include "check/repair/repair_internal.h"

#define SCAN_SECTORS 2048u	/* Sectors of one read of the scan: 1 MiB. */

struct leaf_found {
	struct key low, high;
	uint64_t gen;
	uint64_t sector;	/* sector at which it was found */
	uint64_t node;		/* address of its node; when it differs, this is
				 * the mirror */
};

struct salvage {
	struct check *check;
	struct item_set *set;
	struct vec leaves;	/* struct leaf_found */
	struct vec open;	/* struct lost_range, the ranges that no leaf
				 * has covered yet */
	struct vec good;	/* struct key, the good items of the leaf */
	bool damaged;		/* the leaf is damaged */
	uint64_t max_gen;
	struct key low, high;	/* key range that is being taken over */
};

/* ---- Looking for leaves ---- */

static void scan_node(struct salvage *salvage, const uint8_t *node,
		      uint64_t sector)
{
	const struct node_header *h = (const void *)node;
	struct check *check = salvage->check;
	struct leaf_found *leaf;

	if (le32_get(h->magic) != TRAX_NODE_MAGIC ||
	    le64_get(h->fsid) != check->fsid || h->level ||
	    (le64_get(h->addr) != addr_make(0, sector) &&
	     le64_get(h->addr2) != addr_make(0, sector)))
		return;
	if (check->have_root && le64_get(h->gen) > check->root.gen)
		return;
	leaf = check_add(check, &salvage->leaves);
	if (!leaf)
		return;
	*leaf = (struct leaf_found){
		.low = key_get(&h->low),
		.high = key_get(&h->high),
		.gen = le64_get(h->gen),
		.sector = sector,
		.node = addr_sector(le64_get(h->addr)),
	};
	if (leaf->gen > salvage->max_gen)
		salvage->max_gen = leaf->gen;
}

/* Collects nodes that begin in [first, first + n), every `step` sectors. */
static void scan_range(struct salvage *salvage, uint64_t first, uint64_t n,
		       unsigned step, uint8_t *buf)
{
	struct check *check = salvage->check;
	uint64_t end = first + n;

	while (first < end && !check->rc) {
		uint64_t here = end - first < SCAN_SECTORS ? end - first :
				SCAN_SECTORS;
		uint64_t at;

		memset(buf, 0, SCAN_SECTORS * SECTOR_BYTES);
		if (device_read(check, first, here, buf))
			for (at = 0; at + TRAX_BLOCK_SECTORS <= here;
			     at += TRAX_BLOCK_SECTORS)
				device_read(check, first + at,
					    TRAX_BLOCK_SECTORS,
					    buf + at * SECTOR_BYTES);
		for (at = 0; at < here; at += step)
			scan_node(salvage, buf + at * SECTOR_BYTES,
				  first + at);
		first += here;
		check_progress(check, "salvage", first, check->super.sectors);
	}
}

/* Scans the node tracks of the slot map; false: there are none. */
static bool scan_map(struct salvage *salvage, uint8_t *buf)
{
	struct check *check = salvage->check;
	const uint8_t *p = check->payload;
	size_t left = p ? check->root.slotmap_bytes : 0;
	bool any = false;

	while (left >= sizeof(struct slot_track)) {
		const struct slot_track *track = (const void *)p;
		size_t bytes = sizeof(*track) +
			       (le16_get(track->slots) + 7u) / 8;

		if (bytes > left)
			break;
		scan_range(salvage, addr_sector(le64_get(track->addr)),
			   (uint64_t)le16_get(track->slots) *
			   TRAX_NODE_SECTORS, TRAX_NODE_SECTORS, buf);
		any = true;
		p += bytes;
		left -= bytes;
	}
	return any;
}

static void salvage_scan(struct salvage *salvage)
{
	struct check *check = salvage->check;
	uint8_t *buf = device_buffer(check, SCAN_SECTORS * SECTOR_BYTES);
	uint64_t unit = check->disk->limits.logical_bytes / SECTOR_BYTES;

	if (!buf)
		return;
	if (!check->have_root || !scan_map(salvage, buf))
		scan_range(salvage, 0, check->super.sectors & ~(unit - 1),
			   (unsigned)unit, buf);
	free(buf);
}

/* ---- Taking items over ---- */

static void salvage_item(struct check *check, struct key key,
			 const void *value, size_t bytes)
{
	struct salvage *salvage = check->salvage;
	struct key *good = check_add(check, &salvage->good);

	if (good)
		*good = key;
	if (key_cmp(key, salvage->low) < 0 || key_cmp(key, salvage->high) > 0)
		return;
	check_fail(check, item_set_put(salvage->set, key, value, bytes));
	if (salvage->damaged && key.type == ITEM_INLINE) {
		problem_report(check, PROBLEM_DATA_UNSURE,
			       (struct problem_place){ .ino = key.ino },
			       (unsigned long long)key.ino);
		paths_keep(check, key.ino);
	}
}

static void open_add(struct salvage *salvage, struct key low, struct key high)
{
	struct lost_range *range;

	if (key_cmp(low, high) > 0)
		return;
	range = check_add(salvage->check, &salvage->open);
	if (range)
		*range = (struct lost_range){ .low = low, .high = high };
}

/* Keys between good items stay open where there are bad items. */
static void open_gaps(struct salvage *salvage, const struct node_header *h)
{
	const struct leaf_slot *slot = (const void *)(h + 1);
	struct key low = salvage->low, good;
	size_t i, k = 0, n = le16_get(h->n), used = 0;
	bool bad = false;

	for (i = 0; i < n; i++) {
		used += le16_get(slot[i].bytes);
		good = k < salvage->good.n ?
		       *(struct key *)vec_at(&salvage->good, k) : KEY_MAX;
		if (k == salvage->good.n ||
		    key_cmp(key_get(&slot[i].key), good)) {
			bad = true;
			continue;
		}
		k++;
		if (key_cmp(good, low) < 0 || key_cmp(good, salvage->high) > 0)
			continue;
		if (bad && key_cmp(low, good) < 0)
			open_add(salvage, low, key_before(good));
		low = key_after(good);
		bad = false;
	}
	/* There may have been more items than are left. */
	if (bad || used != le16_get(h->used))
		open_add(salvage, low, salvage->high);
}

/* Cuts what a leaf covers out of open range i and takes its items there. */
static void open_cut(struct salvage *salvage, size_t i,
		     const struct leaf_found *leaf, const uint8_t *node)
{
	struct check *check = salvage->check;
	struct lost_range *range = vec_at(&salvage->open, i);
	struct lost_range open = *range;
	const char *why;

	*range = (struct lost_range){ .low = KEY_MAX, .high = KEY_MIN };
	salvage->low = key_cmp(open.low, leaf->low) > 0 ? open.low : leaf->low;
	salvage->high = key_cmp(open.high, leaf->high) < 0 ? open.high :
			leaf->high;
	salvage->good.n = 0;
	check->salvage = salvage;
	why = walk_leaf(check, node, false, salvage_item);
	check->salvage = NULL;
	if (key_cmp(open.low, salvage->low) < 0)
		open_add(salvage, open.low, key_before(salvage->low));
	if (why)
		open_add(salvage, salvage->low, salvage->high);
	else
		open_gaps(salvage, (const void *)node);
	if (key_cmp(salvage->high, open.high) < 0)
		open_add(salvage, key_after(salvage->high), open.high);
}

static bool open_meets(const struct lost_range *open,
		       const struct leaf_found *leaf)
{
	return key_cmp(open->low, open->high) <= 0 &&
	       key_cmp(open->low, leaf->high) <= 0 &&
	       key_cmp(leaf->low, open->high) <= 0;
}

static bool leaf_is_damaged(const struct check *check, uint64_t sector)
{
	size_t i;

	for (i = 0; i < check->lost.n; i++) {
		const struct lost_range *lost = vec_at(&check->lost, i);

		if (lost->leaf == sector)
			return true;
	}
	return false;
}

static void salvage_leaf(struct salvage *salvage,
			 const struct leaf_found *leaf, uint8_t *buf)
{
	struct check *check = salvage->check;
	size_t i, n = salvage->open.n;
	uint64_t *sector;
	bool loaded = false;

	salvage->damaged = leaf_is_damaged(check, leaf->node);

	for (i = 0; i < n && !check->rc; i++) {
		if (!open_meets(vec_at(&salvage->open, i), leaf))
			continue;
		if (!loaded && device_read(check, leaf->sector,
					   TRAX_NODE_SECTORS, buf))
			return;
		loaded = true;
		open_cut(salvage, i, leaf, buf);
	}
	if (!loaded)
		return;
	sector = check_add(check, &check->nodes);
	if (sector)
		*sector = leaf->sector;
}

static int leaf_cmp(const void *a, const void *b)
{
	const struct leaf_found *x = a, *y = b;

	return sort_order(y->gen, x->gen) ?:
	       sort_order(x->sector, y->sector);
}

static void salvage_take(struct salvage *salvage)
{
	struct check *check = salvage->check;
	uint8_t *buf = device_buffer(check, TRAX_NODE_BYTES);
	size_t i;

	if (!buf)
		return;
	vec_sort(&salvage->leaves, leaf_cmp);
	for (i = 0; i < check->lost.n; i++) {
		struct lost_range *open = check_add(check, &salvage->open);

		if (open)
			*open = *(struct lost_range *)vec_at(&check->lost, i);
	}
	for (i = 0; i < salvage->leaves.n && !check->rc; i++)
		salvage_leaf(salvage, vec_at(&salvage->leaves, i), buf);
	free(buf);
}

int salvage_items(struct check *check, struct item_set *set)
{
	struct salvage salvage = { .check = check, .set = set };

	vec_init(&salvage.leaves, sizeof(struct leaf_found));
	vec_init(&salvage.open, sizeof(struct lost_range));
	vec_init(&salvage.good, sizeof(struct key));
	salvage_scan(&salvage);
	if (!check->rc)
		salvage_take(&salvage);
	if (!check->have_root) {
		check->root.gen = salvage.max_gen;
		check->root.next_ino_seq = TRAX_ROOT_INO + 1;
	}
	vec_fini(&salvage.leaves);
	vec_fini(&salvage.open);
	vec_fini(&salvage.good);
	return check->rc ? check->rc : item_set_merge(set);
}
