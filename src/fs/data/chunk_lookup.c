/*
 * chunk_lookup.c - the transaction of a fetch: extents, checksums and replicas
 * of the blocks that it reads.
 */
#include "fs/data/cache_chunk_internal.h"

#include <errno.h>

#include "fs/data/bmap.h"
#include "fs/data/dirty_block.h"
#include "fs/table/replica.h"

static struct fetch_chunk *fetch_chunk(struct fetch *fetch, uint64_t block,
				       unsigned *bit)
{
	uint64_t p = block / CHUNK_BLOCKS - fetch->first;

	*bit = block % CHUNK_BLOCKS;
	if (block / CHUNK_BLOCKS < fetch->first || p >= fetch->chunks ||
	    !fetch->chunk[p].chunk)
		return NULL;
	return &fetch->chunk[p];
}

/* Reads on in the leaves of checksums: those that a stream will need lie behind
 * each other, so one access brings several. */
static void fetch_sums_ahead(struct fs_txn *txn, const struct fetch *fetch,
			     uint64_t window)
{
	uint64_t ino = fetch->file->ino;

	if (fetch->class == QUEUE_READ_AHEAD && fetch->ahead != AHEAD_GUESS)
		tree_prefetch(txn->tree_txn,
			      key_make(ino, ITEM_CSUM,
				       window * TRAX_CSUM_WINDOW_BLOCKS),
			      key_make(ino, ITEM_CSUM, UINT64_MAX),
			      SUM_LEAVES_AHEAD);
}

static int fetch_sums(struct fs_txn *txn, struct fetch *fetch)
{
	struct csum_window window;
	struct fetch_chunk *fp;
	uint64_t have = UINT64_MAX, w;
	unsigned p, i;
	int rc = 0, err;

	for (p = 0; p < fetch->chunks; p++) {
		fp = &fetch->chunk[p];
		w = (fetch->first + p) / TRAX_CSUM_CHUNKS;
		if (!fp->want || (w == have && rc))
			continue;
		if (w != have) {
			err = bmap_window(txn, fetch->file->ino, w, &window);
			have = w;
			if (err && err != -EAGAIN)
				return err;
			rc = err ? err : rc;
			if (err)
				fetch_sums_ahead(txn, fetch, w);
			if (err)
				continue;
		}
		i = (fetch->first + p) % TRAX_CSUM_CHUNKS;
		fp->mask = window.mask[i];
		memcpy(fp->sum, window.sum[i], sizeof(fp->sum));
	}
	return rc;
}

/* Gives up blocks that are in the log only: they are in memory, and the disk
 * has older content. */
static void fetch_leave_held(struct fetch *fetch)
{
	uint64_t base = fetch->first * CHUNK_BLOCKS;
	const struct block *block = block_at_or_after(fetch->file, base);
	struct fetch_chunk *fp;
	unsigned bit, p;

	fetch_unclaim(fetch);
	for (; block; block = block->next) {
		if (block->index >= base + fetch->chunks * CHUNK_BLOCKS)
			break;
		fp = fetch_chunk(fetch, block->index, &bit);
		if (fp && (block->pin || block->foreign))
			fp->want &= ~(1u << bit);
	}
	for (p = 0; p < fetch->chunks; p++) {
		fp = &fetch->chunk[p];
		if (!fp->chunk)
			continue;
		fp->want &= ~(fp->chunk->busy | fp->chunk->valid);
		fp->chunk->stale &= ~fp->want;
	}
	fetch_claim(fetch);
}

/* Makes segments of the wanted blocks that an extent holds. -E2BIG: there are
 * no segments left for blocks from *cut on. */
static int fetch_add(struct fetch *fetch, const struct extent *extent,
		     uint64_t *cut)
{
	uint64_t block = extent->off / BLOCK_SECTORS;
	uint64_t end = extent->off + extent->n, lo, hi;
	struct fetch_segment *segment = NULL;
	struct fetch_chunk *fp;
	unsigned bit;

	if (block < fetch->first * CHUNK_BLOCKS)
		block = fetch->first * CHUNK_BLOCKS;
	for (; block * BLOCK_SECTORS < end; block++) {
		if (block / CHUNK_BLOCKS >= fetch->first + fetch->chunks)
			return 0;
		fp = fetch_chunk(fetch, block, &bit);
		if (!fp || !(fp->want & 1u << bit)) {
			segment = NULL;
			continue;
		}
		lo = block * BLOCK_SECTORS;
		hi = lo + BLOCK_SECTORS;
		lo = lo < extent->off ? extent->off : lo;
		hi = hi > end ? end : hi;
		fp->mapped |= 1u << bit;
		if (segment) {
			segment->n = hi - segment->off;
			continue;
		}
		if (fetch->segments == FETCH_SEGMENTS) {
			*cut = block;
			return -E2BIG;
		}
		segment = &fetch->segment[fetch->segments++];
		segment->copies_n = 0;
		segment->off = lo;
		segment->n = hi - lo;
		segment->addr = extent->addr + (lo - extent->off);
		segment->first = addr_sector(extent->addr);
		segment->end = segment->first + extent->n;
	}
	return 0;
}

uint16_t chunk_before(uint64_t index, uint64_t end)
{
	uint64_t base = index * CHUNK_BLOCKS;

	if (end <= base)
		return 0;
	if (end >= base + CHUNK_BLOCKS)
		return UINT16_MAX;
	return (uint16_t)((1u << (end - base)) - 1);
}

/* The blocks of a chunk that the fetch still reads when it ends before block
 * `end`. */
static uint16_t fetch_before(const struct fetch *fetch, unsigned p,
			     uint64_t end)
{
	return fetch->chunk[p].want & chunk_before(fetch->first + p, end);
}

/*
 * Leaves the blocks from `end` on to another fetch. -EUCLEAN: nothing would be
 * left to this one, so reading would never end.  That happens only with extents
 * of parts of blocks: the segments suffice for a chunk whose blocks have two
 * extents each.
 */
static int fetch_cut(struct fetch *fetch, uint64_t end)
{
	uint16_t any = 0;
	unsigned p;

	for (p = 0; p < fetch->chunks; p++)
		any |= fetch_before(fetch, p, end);
	if (!any)
		return -EUCLEAN;
	fetch_unclaim(fetch);
	for (p = 0; p < fetch->chunks; p++)
		fetch->chunk[p].want = fetch_before(fetch, p, end);
	fetch_claim(fetch);
	return 0;
}

static int fetch_extents(struct fs_txn *txn, struct fetch *fetch)
{
	uint64_t sector = fetch->first * CHUNK_BLOCKS * BLOCK_SECTORS;
	uint64_t end = sector + (uint64_t)fetch->chunks * CHUNK_BLOCKS *
			       BLOCK_SECTORS;
	struct extent extent;
	uint64_t cut;
	int rc;

	fetch->segments = 0;
	while (sector < end) {
		rc = bmap_extent(txn, fetch->file->ino, sector, &extent);
		if (rc == -ENOENT || (rc == 0 && extent.off >= end))
			return 0;
		if (rc)
			return rc;
		if (!(extent.flags & EXTENT_UNWRITTEN) &&
		    fetch_add(fetch, &extent, &cut)) {
			rc = fetch_cut(fetch, cut);
			return rc ? rc : fetch_extents(txn, fetch);
		}
		sector = extent.off + extent.n;
	}
	return 0;
}

static int fetch_inline(struct fs_txn *txn, struct fetch *fetch)
{
	struct fetch_chunk *fp = &fetch->chunk[0];
	struct tree_item item;
	int rc;

	if (!fetch->file->has_inline || fetch->first || !(fp->want & 1))
		return 0;
	rc = tree_get(txn->tree_txn, key_make(fetch->file->ino, ITEM_INLINE, 0),
		      &item);
	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	memset(fp->chunk->data, 0, BLOCK_BYTES);
	memcpy(fp->chunk->data, item.value, item.bytes);
	fp->chunk->valid |= 1;
	return 0;
}

/* Sets the places of the replicas of one segment. */
static void segment_copies(struct fetch_segment *segment,
			   const struct replica_copy *found, unsigned n)
{
	uint64_t block = segment->off / BLOCK_SECTORS;
	uint64_t places[TRAX_MAX_REPLICAS];
	uint64_t skip = segment->off % BLOCK_SECTORS;
	uint64_t end = (segment->off + segment->n + BLOCK_SECTORS - 1) /
		       BLOCK_SECTORS;
	unsigned k;

	segment->copies_n = replica_places(found, n, block, end - block,
					   places);
	if (segment->copies_n > QUEUE_COPIES)
		segment->copies_n = QUEUE_COPIES;
	for (k = 0; k < segment->copies_n; k++)
		segment->copies[k] = places[k] + skip;
}

/* Cuts a segment whose replicas do not lie in one row, as at the end of each
 * track, or of which only a part has any: where the first row ends, or the next
 * one begins. false: it stays as it is. */
static bool segment_cut(struct fetch *fetch, unsigned i,
			const struct replica_copy *found, unsigned n)
{
	struct fetch_segment *segment = &fetch->segment[i];
	uint64_t end, cut;

	if (fetch->segments == FETCH_SEGMENTS)
		return false;
	end = (segment->off + segment->n + BLOCK_SECTORS - 1) / BLOCK_SECTORS;
	cut = replica_row(found, n, segment->off / BLOCK_SECTORS, end);
	if (cut >= end)
		return false;
	cut *= BLOCK_SECTORS;
	memmove(segment + 2, segment + 1,
		(fetch->segments - i - 1) * sizeof(*segment));
	segment[1] = *segment;
	segment[1].addr += cut - segment->off;
	segment[1].n -= cut - segment->off;
	segment[1].off = cut;
	segment->n = cut - segment->off;
	fetch->segments++;
	return true;
}

/* A guess (AHEAD_GUESS) is dropped if the file's beginning, or the blocks from
 * which it goes on, have replicas: these show which blocks users want. */
static int fetch_guess(struct fs_txn *txn, struct fetch *fetch)
{
	struct replica_copy found[REPLICA_FOUND];
	uint64_t first = fetch->first * CHUNK_BLOCKS;
	unsigned p, n;
	int rc;

	if (fetch->ahead != AHEAD_GUESS || !fetch->file->copies ||
	    !txn->fs->replicas)
		return 0;
	rc = replica_find(txn, fetch->file->ino, 0, 1, found, &n);
	if (!rc && !n && first)
		rc = replica_find(txn, fetch->file->ino, first - 1, first,
				  found, &n);
	if (rc || !n)
		return rc;
	fetch_unclaim(fetch);
	for (p = 0; p < fetch->chunks; p++)
		fetch->chunk[p].want = 0;
	return 0;
}

static void fetch_mark_copied(struct fetch *fetch,
			      const struct replica_copy *copy)
{
	struct fetch_chunk *fp;
	unsigned i, bit;

	for (i = 0; i < copy->blocks; i++) {
		fp = fetch_chunk(fetch, copy->block + i, &bit);
		if (fp)
			fp->copied |= 1u << bit;
	}
}

/* Looks up the replicas of the segments. */
static int fetch_copies(struct fs_txn *txn, struct fetch *fetch)
{
	struct replica_copy found[REPLICA_FOUND];
	uint64_t first = fetch->first * CHUNK_BLOCKS;
	struct fetch_segment *segment;
	unsigned i, n;
	int rc;

	rc = replica_find(txn, fetch->file->ino, first,
			  first + fetch->chunks * CHUNK_BLOCKS, found, &n);
	for (i = 0; !rc && i < n; i++)
		fetch_mark_copied(fetch, &found[i]);
	for (i = 0; !rc && n && i < fetch->segments; i++) {
		segment = &fetch->segment[i];
		segment_copies(segment, found, n);
		if (!segment->copies_n && segment_cut(fetch, i, found, n))
			segment_copies(segment, found, n);
		if (segment->copies_n > fetch->copies_n)
			fetch->copies_n = segment->copies_n;
	}
	return rc;
}

int fetch_run(struct fs_txn *txn)
{
	struct fetch *fetch = txn->state;
	unsigned p;
	int rc, sums;

	for (p = 0; p < fetch->chunks; p++)
		fetch->chunk[p].mapped = fetch->chunk[p].copied = 0;
	rc = fetch_guess(txn, fetch);
	if (rc)
		return rc;
	sums = fetch_sums(txn, fetch);
	if (sums && sums != -EAGAIN)
		return sums;
	if (!sums)
		fetch_leave_held(fetch);
	rc = fetch_extents(txn, fetch);
	fetch->copies_n = 0;
	if (rc == 0 && fetch->file->copies && txn->fs->replicas)
		rc = fetch_copies(txn, fetch);
	if (rc == 0)
		rc = sums;
	return rc ? rc : fetch_inline(txn, fetch);
}
