/*
 * mend_shared.c - no two extents on one sector, and none where no data may be.
 *
 * Of two that overlap the one stays whose blocks have their checksums; if that
 * does not decide, the one with the smaller address, then inode number.
 */
#include <errno.h>
#include <string.h>

#include "base/csum.h"
#include "check/mend.h"

#define LOOK_BLOCKS 64u		/* of an extent, to see if it fits */

struct taken {
	uint64_t sector, n;
	uint64_t ino, off;	/* ino 0: a structure of the file system */
	bool dead;
};

static int taken_cmp(const void *a, const void *b)
{
	const struct taken *x = a, *y = b;

	if (x->sector != y->sector)
		return x->sector < y->sector ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return (x->off > y->off) - (x->off < y->off);
}

static int taken_add(struct spill *all, uint64_t sector, uint64_t n,
		     uint64_t ino, uint64_t off)
{
	struct taken *taken = spill_add(all, 1);

	if (!taken)
		return -ENOMEM;
	*taken = (struct taken){ sector, n, ino, off, false };
	return 0;
}

static int taken_fixed(struct check *check, struct spill *all)
{
	const struct super *super = &check->super;
	const struct super_run geom = super_geom_run(super);
	uint64_t place[3];
	unsigned i;
	int rc;

	super_places(super->sectors, place);
	rc = taken_add(all, 0, place[0] + TRAX_BLOCK_SECTORS, 0, 0);
	for (i = 1; i < 3 && !rc; i++)
		rc = taken_add(all, place[i], TRAX_BLOCK_SECTORS, 0, 0);
	for (i = 0; i < 4 && !rc; i++)
		rc = taken_add(all, super->area_sector[i / 2][i % 2],
			       super->area_sectors, 0, 0);
	if (geom.sectors && !rc)
		rc = taken_add(all, geom.sector, geom.sectors, 0, 0);
	for (i = 0; i < super->log_tracks && !rc; i++)
		rc = taken_add(all, super->log[i].sector,
			       super->log[i].sectors, 0, 0);
	return rc;
}

static struct set_item *taken_item(const struct set *set,
				   const struct taken *taken)
{
	return set_find(set, key_make(taken->ino, ITEM_EXTENT, taken->off));
}

/* All extents; those outside the device go at once. */
static int taken_extents(struct check *check, struct set *set,
			 struct spill *all)
{
	size_t i = set_seek(set, key_make(1, ITEM_INODE, 0));
	bool keep = mend_refused(check, PROBLEM_EXTENT_OUTSIDE);
	int rc = 0;

	for (; i < set_count(set) && !rc; i++) {
		struct set_item *item = set_at(set, i);
		const struct extent_item *e = set_value(set, item);
		uint64_t addr, n;

		if (item->key.type != ITEM_EXTENT)
			continue;
		addr = le64_get(e->addr);
		n = le64_get(e->sectors);
		if (!addr_device(addr) && addr < check->super.sectors &&
		    n <= check->super.sectors - addr)
			rc = taken_add(all, addr, n, item->key.ino,
				       item->key.off);
		else if (!keep)
			set_kill(item);
	}
	return rc;
}

/* Does a block have its own checksum, and is it right?  1: right, -1: wrong,
 * 0: cannot be said. */
static int block_fits(struct check *check, const struct set *set, uint64_t ino,
		      uint64_t block, uint8_t *buf)
{
	uint64_t first = block / TRAX_CSUM_WINDOW_BLOCKS *
			 TRAX_CSUM_WINDOW_BLOCKS;
	unsigned piece = (unsigned)(block - first) / TRAX_CSUM_PIECE_BLOCKS;
	unsigned bit = (unsigned)block % TRAX_CSUM_PIECE_BLOCKS, i, n = 1;
	struct set_item *item = set_find(set, key_make(ino, ITEM_CSUM, first));
	struct csum_window w;

	if (!item || csum_window_decode(set_value(set, item), item->bytes, &w))
		return 0;
	if (!(w.present >> piece & 1) || !(w.mask[piece] >> bit & 1))
		return 0;
	if (w.coarse >> piece & 1) {
		block -= bit;
		bit = 0;
		n = TRAX_CSUM_PIECE_BLOCKS;
	}
	for (i = 0; i < n; i++)
		if (mend_read_block(check, set, ino, block + i,
				    buf + (size_t)i * TRAX_BLOCK_BYTES))
			return -1;
	return csum(buf, (size_t)n * TRAX_BLOCK_BYTES) == w.sum[piece][bit] ?
		1 : -1;
}

/* Right blocks minus wrong ones, of the first of an extent. */
static int extent_fits(struct check *check, const struct set *set,
		       const struct taken *taken)
{
	uint64_t block = taken->off / TRAX_BLOCK_SECTORS;
	uint64_t blocks = (taken->n + TRAX_BLOCK_SECTORS - 1) /
			  TRAX_BLOCK_SECTORS;
	uint8_t *buf = device_buffer(check, (size_t)TRAX_CSUM_PIECE_BLOCKS *
				     TRAX_BLOCK_BYTES);
	uint64_t i;
	int sum = 0;

	if (!buf)
		return 0;
	if (blocks > LOOK_BLOCKS)
		blocks = LOOK_BLOCKS;
	for (i = 0; i < blocks; i++)
		sum += block_fits(check, set, taken->ino, block + i, buf);
	free(buf);
	return sum;
}

/* Which of two goes? */
static struct taken *taken_loser(struct check *check, const struct set *set,
				 struct taken *a, struct taken *b)
{
	if (!a->ino || !b->ino)
		return a->ino ? a : b;
	return extent_fits(check, set, b) > extent_fits(check, set, a) ? a : b;
}

/* One sweep over all that is taken; returns how many went. */
static size_t taken_sweep(struct check *check, struct set *set,
			  struct spill *all)
{
	struct taken *last = NULL;
	size_t i, gone = 0;

	for (i = 0; i < all->n; i++) {
		struct taken *taken = spill_at(all, i), *loser;
		struct set_item *item;

		if (taken->dead)
			continue;
		if (last && taken->sector < last->sector + last->n) {
			loser = taken_loser(check, set, last, taken);
			item = loser->ino ? taken_item(set, loser) : NULL;
			if (item)
				set_kill(item);
			loser->dead = true;
			gone++;
			if (loser == taken)
				continue;
		}
		last = taken;
	}
	return gone;
}

int mend_shared(struct check *check, struct set *set)
{
	struct spill all;
	int rc = spill_init(&all, sizeof(struct taken), check->options.scratch);

	if (rc)
		return rc;
	rc = taken_fixed(check, &all);
	if (!rc)
		rc = taken_extents(check, set, &all);
	if (!rc && !mend_refused(check, PROBLEM_EXTENT_SHARED)) {
		spill_sort(&all, taken_cmp);
		while (taken_sweep(check, set, &all))
			;
	}
	spill_fini(&all);
	return rc ? rc : set_settle(set);
}
