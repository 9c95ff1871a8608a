/*
 * trunc_room.c - the transactions that punch holes and preallocate room.
 */
#include "fs/data/trunc_internal.h"

#include <errno.h>
#include <linux/falloc.h>

#include "fs/data/bad_stretch.h"
#include "fs/data/bmap.h"
#include "fs/table/replica.h"

#define PUNCH_BLOCKS 8192u		/* most blocks punched by one
					 * transaction: 32 MiB */
#define RESERVE_BLOCKS 16384u		/* most blocks preallocated by one
					 * transaction: 64 MiB */

/* ---- Punch ---- */

/* Skips to the next extent in the range; false: there is none. */
static int punch_skip(struct fs_txn *txn, struct trunc *trunc)
{
	struct extent extent;
	uint64_t block;
	int rc = bmap_extent(txn, trunc->file->ino,
			     trunc->first * BLOCK_SECTORS, &extent);

	if (rc == -ENOENT) {
		trunc->first = trunc->end;
		return 0;
	}
	if (rc)
		return rc;
	block = extent.off / BLOCK_SECTORS;
	if (block > trunc->first)
		trunc->first = block < trunc->end ? block : trunc->end;
	return 0;
}

int trunc_punch_run(struct fs_txn *txn)
{
	struct trunc *trunc = txn->state;
	struct inode_item item;
	struct bmap_plan plan;
	uint64_t end;
	int rc, err;

	trunc->txn = txn;
	if (trunc->rc)
		return trunc->rc;
	rc = inode_get(txn, trunc->file->ino, &item);
	err = trunc->first < trunc->end ? punch_skip(txn, trunc) : 0;
	rc = err && err != -EAGAIN ? err : rc ? rc : err;
	if (rc)
		return rc;
	plan.n = 0;
	end = trunc->end < trunc->first + PUNCH_BLOCKS ?
	      trunc->end : trunc->first + PUNCH_BLOCKS;
	if (trunc->first < end) {
		rc = bmap_probe(txn, trunc->file->ino,
			       trunc->first * BLOCK_SECTORS,
			       (end - trunc->first) * BLOCK_SECTORS, NULL, 0,
			       &plan);
		if (rc)
			return rc;
		end = trunc->first + plan.n / BLOCK_SECTORS;
		rc = trunc_sums(txn, trunc, trunc->first, end, false);
		if (rc)
			return rc;
	}
	rc = trunc_attr(txn, trunc, &item);
	if (rc)
		return rc;
	/* A dirty block whose write-back would have stored the size may have
	 * been dropped. */
	if (trunc->file->size > le64_get(item.size))
		item.size = le64_put(trunc->file->size);
	trunc->more = false;
	if (plan.n) {
		bmap_apply(txn, trunc->file->ino, &plan, &item);
		trunc_sums(txn, trunc, trunc->first, end, true);
	}
	if (plan.n || !trunc->begun)
		inode_put(txn, trunc->file->ino, &item);
	trunc->first = end;
	trunc->more = trunc->first < trunc->end;
	return 0;
}

void trunc_punch_took(struct trunc *trunc)
{
	if (trunc->dropped < trunc->first)
		trunc_drop_blocks(trunc->file, trunc->dropped, trunc->first);
	trunc->dropped = trunc->first;
}

/* ---- Preallocate ---- */

/* Finds the next hole: [trunc->first, *end). trunc->first = trunc->end: there
 * is none. */
static int reserve_gap(struct fs_txn *txn, struct trunc *trunc, uint64_t *end,
		       uint64_t *after)
{
	struct extent extent = { .n = 0 };
	uint64_t sector = trunc->first * BLOCK_SECTORS, stop;
	int rc;

	*after = 0;
	while (sector < trunc->end * BLOCK_SECTORS) {
		rc = bmap_extent(txn, trunc->file->ino, sector, &extent);
		if (rc && rc != -ENOENT)
			return rc;
		if (rc == -ENOENT || extent.off > sector) {
			trunc->first = sector / BLOCK_SECTORS;
			stop = rc ? UINT64_MAX : extent.off / BLOCK_SECTORS;
			*end = stop < trunc->end ? stop : trunc->end;
			if (*end > trunc->first + RESERVE_BLOCKS)
				*end = trunc->first + RESERVE_BLOCKS;
			rc = bmap_extent_before(txn, trunc->file->ino, sector,
					       &extent);
			if (rc == 0 && extent.off + extent.n == sector)
				*after = addr_sector(extent.addr) + extent.n;
			return rc == -ENOENT ? 0 : rc;
		}
		sector = extent.off + extent.n;
		trunc->first = sector / BLOCK_SECTORS;
		if (tree_txn_room(txn->tree_txn) < 3 * TRAX_MAX_LEVEL)
			break;
	}
	if (trunc->first > trunc->end)
		trunc->first = trunc->end;
	*end = trunc->first;
	return 0;
}

int trunc_count_run(struct fs_txn *txn)
{
	struct trunc *trunc = txn->state;
	uint64_t end, after;
	int rc;

	do {
		rc = reserve_gap(txn, trunc, &end, &after);
		if (rc)
			return rc;
		trunc->promised += (end - trunc->first) * BLOCK_SECTORS;
		trunc->first = end;
	} while (trunc->first < trunc->end &&
		 tree_txn_room(txn->tree_txn) >= 3 * TRAX_MAX_LEVEL);
	trunc->more = trunc->first < trunc->end;
	return 0;
}

int trunc_count_took(struct trunc *trunc)
{
	uint64_t sectors = trunc->promised;
	int rc;

	if (trunc->more)
		return 0;
	trunc->promised = 0;
	rc = space_reserve(tree_space(trunc->fs->tree), sectors);
	if (rc)
		return rc;
	trunc->promised = sectors;
	trunc->first = trunc->op->offset / BLOCK_BYTES;
	trunc->counted = true;
	return 0;
}

/* Sectors that were taken are no longer reserved. */
static void reserve_taken(struct trunc *trunc, int chunks)
{
	uint64_t sectors = 0;
	int i;

	for (i = 0; i < chunks; i++)
		sectors += trunc->chunk[i].n;
	space_release(tree_space(trunc->fs->tree), sectors);
	trunc->promised -= sectors;
	trunc->chunks = chunks;
}

static int reserve_take(struct fs_txn *txn, struct trunc *trunc, uint64_t n,
			uint64_t after)
{
	struct alloc_want want = {
		.goal = trunc->file->goal, .after = after,
		.dir = trunc->file->parent, .loads = txn->groups,
	};
	uint32_t group;
	int rc;

	if (trunc->chunks)
		return 0;
	if (!trunc->want || trunc->want > n)
		trunc->want = n;
	for (;;) {
		want.sectors = trunc->want * BLOCK_SECTORS;
		rc = alloc_take(trunc->fs->alloc, &want, trunc->chunk,
				WB_SEGMENTS, &group);
		if (rc == -EAGAIN)
			return fs_txn_wait_group(txn, group);
		if (rc == -ENOSPC &&
		    bad_stretch_give_back(trunc->fs->files))
			continue;
		if (rc == -ENOSPC && replica_room(txn, want.sectors))
			return FS_TXN_WAIT;
		if (rc == -ENOSPC && !trunc->waited) {
			trunc->waited = true;
			return fs_txn_wait_checkpoint(txn);
		}
		if (rc > 0)
			break;
		if ((rc != -ENOSPC && rc != -E2BIG) || trunc->want == 1)
			return rc;
		trunc->want = (trunc->want + 1) / 2;
	}
	reserve_taken(trunc, rc);
	return 0;
}

static unsigned reserve_extents(const struct trunc *trunc, struct extent *list,
				uint64_t *n)
{
	uint64_t off = trunc->first * BLOCK_SECTORS;
	int i;

	for (i = 0; i < trunc->chunks; i++) {
		list[i] = (struct extent){
			.off = off, .n = trunc->chunk[i].n,
			.addr = addr_make(0, trunc->chunk[i].sector),
			.flags = EXTENT_UNWRITTEN |
				 (trunc->chunk[i].known ? EXTENT_KNOWN : 0),
		};
		off += list[i].n;
	}
	*n = off - trunc->first * BLOCK_SECTORS;
	return (unsigned)trunc->chunks;
}

int trunc_reserve_run(struct fs_txn *txn)
{
	struct trunc *trunc = txn->state;
	uint64_t size = trunc->op->offset + trunc->op->size;
	struct extent list[WB_SEGMENTS];
	uint64_t end = trunc->first, after, n = 0;
	struct inode_item item;
	struct bmap_plan plan;
	int rc, err;

	rc = inode_get(txn, trunc->file->ino, &item);
	err = reserve_gap(txn, trunc, &end, &after);
	rc = err && err != -EAGAIN ? err : rc ? rc : err;
	if (rc)
		return rc;
	if (trunc->first < end) {
		rc = reserve_take(txn, trunc, end - trunc->first, after);
		if (rc)
			return rc;
		err = (int)reserve_extents(trunc, list, &n);
		rc = bmap_probe(txn, trunc->file->ino,
			       trunc->first * BLOCK_SECTORS, n, list,
			       (unsigned)err, &plan);
		if (rc)
			return rc;
		if (plan.n < n)
			return -E2BIG;
	}
	rc = trunc_attr(txn, trunc, &item);
	if (rc)
		return rc;
	if (n)
		bmap_apply(txn, trunc->file->ino, &plan, &item);
	trunc->first += n / BLOCK_SECTORS;
	trunc->more = trunc->first < trunc->end;
	if (!trunc->more && !trunc->keep_size && size > le64_get(item.size))
		item.size = le64_put(size);
	inode_put(txn, trunc->file->ino, &item);
	return 0;
}

void trunc_reserve_took(struct trunc *trunc)
{
	uint64_t size = trunc->op->offset + trunc->op->size;
	struct file *file = trunc->file;

	trunc->chunks = 0;
	trunc->waited = false;
	if (!trunc->more && !trunc->keep_size && size > file->size)
		file->size = size;
}
