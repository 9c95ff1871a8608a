/*
 * repair_shared.c - no two extents on one sector, and none where no data may
 * be.
 *
 * What two extents have in common goes, block by block, to the one whose
 * checksum fits there.  Blocks that this does not decide go to the one that has
 * got more of the overlap, and if that does not decide either, to the one with
 * the smaller address, then inode number.  The other one is cut: it keeps what
 * it alone has.  A structure of the file system keeps all it has.
 *
 * The set stays as it was until all is decided, so that every block is judged
 * by what its file had.
 */
#include <errno.h>
#include <string.h>

#include "base/csum.h"
#include "base/sort.h"
#include "check/repair/repair.h"

/* Blocks of one overlap whose content is judged: 16 MiB. Those behind go to the
 * side that has got most. */
#define LOOK_BLOCKS 4096u

struct taken {
	uint64_t sector, n;
	uint64_t ino, off;	/* inode number and offset; ino 0: a structure
				 * of the file system */
	uint32_t flags;		/* flags of the extent */
	bool dead;
	bool rest;		/* it is what was left of an extent that was
				 * cut */
};

/* Sectors of an overlap that go to one side. */
struct share {
	uint64_t sector, n;
	int side;		/* 1: the first, -1: the second, 0: undecided */
};

/* Whether the content of a block of a file fits its checksum. */
struct fit {
	uint64_t ino, block;	/* ino 0: none */
	int fits;		/* 1: it does, -1: not, 0: cannot be said */
};

struct shared {
	struct check *check;
	struct item_set *set;
	struct tmp_array all;	/* struct taken */
	struct vec shares;	/* struct share, of the present overlap */
	struct fit last[2];	/* the last result of either side */
	uint8_t *buf;		/* memory for a block */
	int rc;
};

static int taken_cmp(const void *a, const void *b)
{
	const struct taken *x = a, *y = b;

	return sort_order(x->sector, y->sector) ?:
	       sort_order(x->ino, y->ino) ?:
	       sort_order(x->off, y->off);
}

/* item: the extent; NULL: a structure of the file system. */
static int taken_add(struct tmp_array *all, uint64_t sector, uint64_t n,
		     const struct item_set *set,
		     const struct item_set_item *item)
{
	struct taken *taken = tmp_array_add(all, 1);
	const struct extent_item *e;

	if (!taken)
		return -ENOMEM;
	*taken = (struct taken){ .sector = sector, .n = n };
	if (!item)
		return 0;
	e = item_set_value(set, item);
	taken->ino = item->key.ino;
	taken->off = item->key.off;
	taken->flags = le32_get(e->flags);
	return 0;
}

static int taken_fixed(struct check *check, struct tmp_array *all)
{
	const struct super *super = &check->super;
	const struct super_run geom = super_geom_run(super);
	uint64_t place[3];
	unsigned i;
	int rc;

	super_places(super, place);
	rc = taken_add(all, 0, place[0] + TRAX_BLOCK_SECTORS, NULL, NULL);
	for (i = 1; i < 3 && !rc; i++)
		rc = taken_add(all, place[i], TRAX_BLOCK_SECTORS, NULL, NULL);
	for (i = 0; i < 4 && !rc; i++)
		rc = taken_add(all, super->area_sector[i / 2][i % 2],
			       super->area_sectors, NULL, NULL);
	if (geom.sectors && !rc)
		rc = taken_add(all, geom.sector, geom.sectors, NULL, NULL);
	for (i = 0; i < super->log_tracks && !rc; i++)
		rc = taken_add(all, super->log[i].sector,
			       super->log[i].sectors, NULL, NULL);
	return rc;
}

/* All extents; those outside the device go at once. */
static int taken_extents(struct check *check, struct item_set *set,
			 struct tmp_array *all)
{
	size_t i = item_set_seek(set, key_make(1, ITEM_INODE, 0));
	bool keep = repair_refused(check, PROBLEM_EXTENT_OUTSIDE);
	int rc = 0;

	for (; i < item_set_count(set) && !rc; i++) {
		struct item_set_item *item = item_set_at(set, i);
		const struct extent_item *e = item_set_value(set, item);
		uint64_t addr, n;

		if (item->key.type != ITEM_EXTENT)
			continue;
		addr = le64_get(e->addr);
		n = le64_get(e->sectors);
		if (!addr_device(addr) && addr < check->super.sectors &&
		    n <= check->super.sectors - addr)
			rc = taken_add(all, addr, n, set, item);
		else if (!keep)
			item_set_remove(item);
	}
	return rc;
}

/* ---- Whose content it is ---- */

/* The checksum of a block. false: it has none. */
static bool block_sum(const struct item_set *set, uint64_t ino, uint64_t block,
		      uint32_t *sum)
{
	uint64_t first = block / TRAX_CSUM_WINDOW_BLOCKS *
			 TRAX_CSUM_WINDOW_BLOCKS;
	unsigned chunk = (unsigned)(block - first) / TRAX_CSUM_CHUNK_BLOCKS;
	unsigned bit = (unsigned)block % TRAX_CSUM_CHUNK_BLOCKS;
	const struct item_set_item *item =
		item_set_find(set, key_make(ino, ITEM_CSUM, first));
	struct csum_window w;

	if (!item ||
	    csum_window_decode(item_set_value(set, item), item->bytes, &w) ||
	    !(w.mask[chunk] >> bit & 1))
		return false;
	*sum = w.sum[chunk][bit];
	return true;
}

static struct fit block_fit(struct shared *shared, uint64_t ino, uint64_t block)
{
	struct fit fit = { .ino = ino, .block = block };
	uint32_t sum;
	int rc;

	if (!block_sum(shared->set, ino, block, &sum))
		return fit;
	/* The content is in the log and not yet destaged: what is on the disk
	 * now decides nothing. */
	if (log_scan_has(shared->check, ino, block, sum))
		return fit;
	rc = repair_read_block(shared->check, shared->set, ino, block,
			       shared->buf);
	if (rc != -ENODATA)
		fit.fits = !rc && csum_block(shared->buf) == sum ? 1 : -1;
	return fit;
}

/* Does the content of the block at this sector fit the file that has taken
 * it? */
static int taken_fits(struct shared *shared, unsigned side,
		      const struct taken *taken, uint64_t sector)
{
	struct fit *last = &shared->last[side];
	uint64_t block = (taken->off + sector - taken->sector) /
			 TRAX_BLOCK_SECTORS;

	if (last->ino != taken->ino || last->block != block)
		*last = block_fit(shared, taken->ino, block);
	return last->fits;
}

/* End of the file's block that lies at a sector. */
static uint64_t block_end(const struct taken *taken, uint64_t sector)
{
	return sector + TRAX_BLOCK_SECTORS -
	       (taken->off + sector - taken->sector) % TRAX_BLOCK_SECTORS;
}

/* ---- Which side gets what of an overlap ---- */

static void share_add(struct shared *shared, uint64_t sector, uint64_t n,
		      int side)
{
	struct vec *shares = &shared->shares;
	struct share *last = shares->n ? vec_at(shares, shares->n - 1) : NULL;

	if (!n)
		return;
	if (last && last->side == side) {
		last->n += n;
		return;
	}
	last = check_add(shared->check, shares);
	if (last)
		*last = (struct share){ sector, n, side };
}

static void shares_judge(struct shared *shared, const struct taken *a,
			 const struct taken *b, uint64_t from, uint64_t end)
{
	unsigned blocks;

	for (blocks = 0; from < end && blocks < LOOK_BLOCKS; blocks++) {
		uint64_t to = block_end(a, from);
		int side = taken_fits(shared, 0, a, from) -
			   taken_fits(shared, 1, b, from);

		if (to > block_end(b, from))
			to = block_end(b, from);
		if (to > end)
			to = end;
		share_add(shared, from, to - from, (side > 0) - (side < 0));
		from = to;
	}
	share_add(shared, from, end - from, 0);
}

/* The side that gets the undecided sectors. */
static int shares_most(const struct shared *shared)
{
	int64_t sum = 0;
	size_t i;

	for (i = 0; i < shared->shares.n; i++) {
		const struct share *share = vec_at(&shared->shares, i);

		sum += share->side * (int64_t)share->n;
	}
	return sum < 0 ? -1 : 1;
}

static void shares_make(struct shared *shared, const struct taken *a,
			const struct taken *b, uint64_t from, uint64_t end)
{
	shared->shares.n = 0;
	if (!a->ino)
		share_add(shared, from, end - from, 1);
	else if (!b->ino)
		share_add(shared, from, end - from, -1);
	else
		shares_judge(shared, a, b, from, end);
}

/* ---- Cutting ---- */

/* Adds [from, end) of a taken range as a range of its own. */
static void rest_add(struct shared *shared, const struct taken *of,
		      uint64_t from, uint64_t end)
{
	struct taken *rest;

	if (from >= end)
		return;
	rest = tmp_array_add(&shared->all, 1);
	if (!rest) {
		shared->rc = -ENOMEM;
		return;
	}
	*rest = *of;
	rest->sector = from;
	rest->n = end - from;
	rest->off += from - of->sector;
	rest->rest = true;
}

/* Keeps what is left of one side: everything but what the other side gets. */
static void taken_cut(struct shared *shared, size_t i, int side, int most)
{
	/* A copy, because tmp_array_add moves the original. */
	const struct taken of = *(struct taken *)tmp_array_at(&shared->all, i);
	uint64_t from = of.sector;
	bool cut = false;
	size_t k;

	for (k = 0; k < shared->shares.n; k++) {
		const struct share *share = vec_at(&shared->shares, k);

		if ((share->side ? share->side : most) == side)
			continue;
		rest_add(shared, &of, from, share->sector);
		from = share->sector + share->n;
		cut = true;
	}
	if (!cut)
		return;
	rest_add(shared, &of, from, of.sector + of.n);
	((struct taken *)tmp_array_at(&shared->all, i))->dead = true;
}

static void taken_split(struct shared *shared, size_t i, size_t k)
{
	const struct taken *a = tmp_array_at(&shared->all, i);
	const struct taken *b = tmp_array_at(&shared->all, k);
	uint64_t end = a->sector + a->n;
	int most;

	if (end > b->sector + b->n)
		end = b->sector + b->n;
	shares_make(shared, a, b, b->sector, end);
	most = shares_most(shared);
	taken_cut(shared, i, 1, most);
	taken_cut(shared, k, -1, most);
}

/* Goes once over everything that is taken, in order; true: something was
 * cut. */
static bool taken_sweep(struct shared *shared)
{
	struct tmp_array *all = &shared->all;
	size_t i, n, last = SIZE_MAX;
	bool any = false;

	tmp_array_sort(all, taken_cmp);
	n = all->n;
	for (i = 0; i < n && !shared->rc && !shared->check->rc; i++) {
		const struct taken *taken = tmp_array_at(all, i);
		const struct taken *before =
			last < n ? tmp_array_at(all, last) : NULL;

		if (taken->dead)
			continue;
		if (!before || taken->sector >= before->sector + before->n) {
			last = i;
			continue;
		}
		/* Structures of the file system never overlap, or their
		 * superblock would be bad. */
		if (before->ino || taken->ino) {
			taken_split(shared, last, i);
			any = true;
			last = SIZE_MAX;
		}
	}
	return any && !shared->rc && !shared->check->rc;
}

/* Extents that were cut become what is left of them. */
static int taken_apply(struct shared *shared)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < shared->all.n && !rc; i++) {
		const struct taken *taken = tmp_array_at(&shared->all, i);
		struct key key = key_make(taken->ino, ITEM_EXTENT, taken->off);
		struct extent_item e = {
			.addr = le64_put(addr_make(0, taken->sector)),
			.sectors = le64_put(taken->n),
			.flags = le32_put(taken->flags),
		};

		if (taken->dead && !taken->rest)
			item_set_remove(item_set_find(shared->set, key));
		if (taken->rest && !taken->dead)
			rc = item_set_put(shared->set, key, &e, sizeof(e));
	}
	return rc;
}

static int shared_resolve(struct shared *shared)
{
	int rc = taken_fixed(shared->check, &shared->all);

	if (!rc)
		rc = taken_extents(shared->check, shared->set, &shared->all);
	if (rc || repair_refused(shared->check, PROBLEM_EXTENT_SHARED))
		return rc;
	while (taken_sweep(shared))
		;
	rc = shared->rc ? shared->rc : shared->check->rc;
	return rc ? rc : taken_apply(shared);
}

int repair_shared(struct check *check, struct item_set *set)
{
	struct shared shared = { .check = check, .set = set };
	int rc = tmp_array_init(&shared.all, sizeof(struct taken),
			    check->options.scratch);

	if (rc)
		return rc;
	vec_init(&shared.shares, sizeof(struct share));
	shared.buf = device_buffer(check, TRAX_BLOCK_BYTES);
	rc = shared.buf ? shared_resolve(&shared) : -ENOMEM;
	free(shared.buf);
	vec_fini(&shared.shares);
	tmp_array_fini(&shared.all);
	return rc ? rc : item_set_merge(set);
}
