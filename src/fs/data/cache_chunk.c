/*
 * cache_chunk.c - what the disk holds of files, verified, in chunks of 64 KiB.
 *
 *   fetch:  wanted -> [txn: extents, sums] -> [reads] -> verified -> valid
 *                          ^                                    |
 *                          +--- sum wrong: looked up again -----+
 *
 * 1. A chunk is pinned by needs and by fetches; all others are in the LRU list
 *    and may go at any time.
 * 2. A transaction that changes blocks tells chunks_changed: valid bits go, and
 *    what is being read of them is not believed (stale).
 * 3. A need gets all its chunks or none, first come first served, so needs
 *    never wait for each other.
 * 4. A sum that is wrong is damage only when the mapping was looked up again
 *    and the place was read once more.
 * 5. The first time the queue may take a copy instead, where one holds all of a
 *    segment; then the original is read, twice; then each of the copies.
 */
#include "fs/data/file_data.h"
#include "fs/op/errors.h"
#include "fs/data/read_events.h"
#include "fs/table/replica.h"

#include <errno.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/msg.h"

/* Reads of what the map says, before copies are read one by one. */
#define FETCH_TRIES 3
#define SUM_LEAVES_AHEAD 8u	/* checksums of 120 MB, one access */
#define AHEAD_PART 4u	/* reading ahead leaves a quarter of the chunks alone */

struct fetch_segment {
	uint64_t addr, off, n;	/* sectors */
	uint64_t first, end;	/* of the extent that it is of, on the disk */
	uint64_t copies[QUEUE_COPIES];
	unsigned copies_n;
	struct replica_run_want want;
	uint64_t number;	/* of the read, see read_events.h */
	uint64_t begun_ns;
	struct queue_request req;
};

struct fetch_chunk {
	struct chunk *chunk;
	uint16_t want;		/* blocks to be read */
	bool claimed;		/* they are busy for this fetch */
	uint16_t mapped;	/* of these, with data on disk */
	uint16_t mask;		/* that have a sum */
	uint16_t copied;	/* that have a copy */
	uint32_t sum[CHUNK_BLOCKS];
};

struct fetch {
	struct list link;	/* files->broken */
	struct list in_file;	/* file->fetches */
	struct file *file;
	enum queue_class class;
	uint64_t first;		/* index of chunk 0 */
	unsigned chunks;
	struct fetch_chunk piece[READ_WAIT_CHUNKS];
	unsigned segments, outstanding, tries;
	unsigned failures;	/* reads that ended with an error, in a row */
	enum fault_class error;	/* of the last of them */
	unsigned copies_n;	/* of any segment, at most */
	bool background;	/* no user's read */
	bool guess;		/* nobody may ever want it */
	/* The copies that were read the first time. */
	struct copy_read {
		uint64_t off, n, sector;
	} has_replicas[FETCH_SEGMENTS];
	unsigned copied;
	int rc;
	struct fetch_segment segment[FETCH_SEGMENTS];
	struct iovec iov[FETCH_SEGMENTS + READ_WAIT_CHUNKS];
};

/* ---- Pieces ---- */

static struct chunk *chunk_find(const struct file *file, uint64_t index)
{
	return file->chunks ? hashmap_get(file->chunks, index) : NULL;
}

const void *chunk_block(const struct file *file, uint64_t index)
{
	struct chunk *chunk = chunk_find(file, index / CHUNK_BLOCKS);
	unsigned i = index % CHUNK_BLOCKS;

	if (!chunk || !(chunk->valid & 1u << i))
		return NULL;
	return chunk->data + (size_t)i * BLOCK_BYTES;
}

/* Only what nobody pins and nothing reads into. */
static void chunk_drop(struct chunk *chunk)
{
	struct file *file = chunk->file;
	struct files *files = file->files;

	hashmap_del(file->chunks, chunk->index);
	list_del(&chunk->lru);
	chunk->file = NULL;
	list_add(&files->chunk_free, &chunk->lru);
	file_unused(file);
}

static void chunk_rest(struct chunk *chunk)
{
	if (chunk->pins)
		return;
	list_del(&chunk->lru);
	if (chunk->valid)
		list_add(&chunk->file->files->lru, &chunk->lru);
	else
		chunk_drop(chunk);
}

static struct chunk *chunk_get(struct file *file, uint64_t index)
{
	struct files *files = file->files;
	struct chunk *chunk = chunk_find(file, index);
	uint8_t *data;

	if (chunk)
		return chunk;
	if (!file->chunks)
		file->chunks = hashmap_new();
	if (!file->chunks)
		return NULL;
	if (list_empty(&files->chunk_free) && !list_empty(&files->lru)) {
		chunk = list_first(&files->lru, struct chunk, lru);
		chunk_drop(chunk);
	}
	chunk = list_first(&files->chunk_free, struct chunk, lru);
	if (!chunk || hashmap_put(file->chunks, index, chunk))
		return NULL;
	list_del(&chunk->lru);
	data = chunk->data;
	*chunk = (struct chunk){ .file = file, .index = index, .data = data };
	list_init(&chunk->lru);
	return chunk;
}

static void chunk_changed(struct chunk *chunk, uint64_t first, uint64_t end)
{
	uint64_t base = chunk->index * CHUNK_BLOCKS;
	uint16_t bits = 0;
	unsigned i;

	for (i = 0; i < CHUNK_BLOCKS; i++)
		if (base + i >= first && base + i < end)
			bits |= 1u << i;
	chunk->valid &= ~bits;
	chunk->readahead &= ~bits;
	chunk->stale |= bits & chunk->reading;
}

void chunks_changed(struct file *file, uint64_t first, uint64_t n)
{
	uint64_t index = first / CHUNK_BLOCKS, end = first + n;
	struct chunk *chunk;
	size_t pos = 0;

	blocks_forget(file, first, end);
	if (!file->chunks || !hashmap_count(file->chunks))
		return;
	if (n / CHUNK_BLOCKS > hashmap_count(file->chunks)) {
		while ((chunk = hashmap_next(file->chunks, &pos, &index)))
			chunk_changed(chunk, first, end);
		return;
	}
	for (; index * CHUNK_BLOCKS < end; index++) {
		chunk = chunk_find(file, index);
		if (chunk)
			chunk_changed(chunk, first, end);
	}
}

void chunks_passed(struct file *file, uint64_t first, uint64_t end)
{
	uint64_t index = (first + CHUNK_BLOCKS - 1) / CHUNK_BLOCKS;
	struct chunk *chunk;

	for (; (index + 1) * CHUNK_BLOCKS <= end; index++) {
		chunk = chunk_find(file, index);
		if (!chunk || chunk->pins || chunk->reading)
			continue;
		list_del(&chunk->lru);
		list_add_front(&file->files->lru, &chunk->lru);
	}
}

/* ---- Needs ---- */

/* Blocks of need->chunks[p] that it wants. */
static uint16_t read_wait_bits(const struct read_wait *rwait, unsigned p)
{
	uint64_t base = (rwait->first / CHUNK_BLOCKS + p) * CHUNK_BLOCKS;
	uint16_t bits = 0;
	unsigned i;

	for (i = 0; i < CHUNK_BLOCKS; i++)
		if (base + i >= rwait->first &&
		    base + i < rwait->first + rwait->n)
			bits |= 1u << i;
	return bits;
}

static unsigned read_wait_pieces(const struct read_wait *rwait)
{
	uint64_t last = rwait->first + rwait->n - 1;

	return (unsigned)(last / CHUNK_BLOCKS - rwait->first / CHUNK_BLOCKS) +
	       1;
}

/* Of the chunk that begins with block `base`, what is in memory as blocks; or,
 * of these, those whose content the tree has in the log only. */
static uint16_t blocks_present(const struct file *file, uint64_t base,
			       bool logged)
{
	const struct block *block;
	uint16_t bits = 0;

	if (!file->blocks)
		return 0;
	block = block_at_or_after(file, base);
	for (; block && block->index < base + CHUNK_BLOCKS; block = block->next)
		if (!logged || block->pin)
			bits |= 1u << (block->index - base);
	return bits;
}

/* Of the blocks wanted in chunk p, those that are neither blocks nor valid. */
static uint16_t read_wait_missing(const struct read_wait *rwait, unsigned p)
{
	uint64_t base = (rwait->first / CHUNK_BLOCKS + p) * CHUNK_BLOCKS;
	uint16_t bits = read_wait_bits(rwait, p);

	if (rwait->chunks[p])
		bits &= ~rwait->chunks[p]->valid;
	return bits ? bits & ~blocks_present(rwait->file, base, rwait->tree) :
		      0;
}

bool read_wait_ok(const struct read_wait *rwait)
{
	unsigned p;

	for (p = 0; p < read_wait_pieces(rwait); p++)
		if (read_wait_missing(rwait, p))
			return false;
	return true;
}

const void *read_wait_block(const struct read_wait *rwait, uint64_t index)
{
	const struct block *block = block_find(rwait->file, index);
	const struct chunk *chunk;
	unsigned i = index % CHUNK_BLOCKS;

	if (block)
		return block->data;
	chunk = rwait->chunks[index / CHUNK_BLOCKS -
			      rwait->first / CHUNK_BLOCKS];
	if (!chunk || !(chunk->valid & 1u << i))
		return NULL;
	return chunk->data + (size_t)i * BLOCK_BYTES;
}

static void read_wait_unpin(struct read_wait *rwait)
{
	struct chunk *chunk;
	unsigned p;

	for (p = 0; p < READ_WAIT_CHUNKS; p++) {
		chunk = rwait->chunks[p];
		rwait->chunks[p] = NULL;
		if (chunk && --chunk->pins == 0)
			chunk_rest(chunk);
	}
}

/* All the chunks that hold something not in blocks, or none. */
static bool read_wait_pin(struct read_wait *rwait)
{
	struct chunk *chunk;
	unsigned p;

	for (p = 0; p < read_wait_pieces(rwait); p++) {
		if (rwait->chunks[p] || !read_wait_missing(rwait, p))
			continue;
		chunk = chunk_get(rwait->file,
				  rwait->first / CHUNK_BLOCKS + p);
		if (!chunk) {
			read_wait_unpin(rwait);
			return false;
		}
		list_del(&chunk->lru);
		chunk->pins++;
		rwait->chunks[p] = chunk;
	}
	return true;
}

static void fetch_raise(struct fetch *fetch);
static void fetch_start(struct file *file, uint64_t first_piece,
			unsigned pieces, const uint16_t *want, bool background);

/* Starts reading what is missing and not on its way.  0: nothing missing. */
/* What is being read ahead is waited for from now on. */
static void read_wait_raise(const struct read_wait *rwait,
			    const uint16_t *missing)
{
	const uint64_t first = rwait->first / CHUNK_BLOCKS;
	struct fetch *fetch;
	struct list *pos;
	unsigned p;

	list_for_each(pos, &rwait->file->fetches) {
		fetch = list_entry(pos, struct fetch, in_file);
		if (fetch->class != QUEUE_READ_AHEAD)
			continue;
		for (p = 0; p < read_wait_pieces(rwait); p++)
			if (first + p - fetch->first < fetch->chunks &&
			    missing[p] & fetch->piece[first + p -
						      fetch->first].want)
				break;
		if (p < read_wait_pieces(rwait))
			fetch_raise(fetch);
	}
}

static int read_wait_fetch(struct read_wait *rwait)
{
	uint16_t want[READ_WAIT_CHUNKS], read[READ_WAIT_CHUNKS];
	unsigned p, n = read_wait_pieces(rwait);
	uint16_t missing, all = 0, any = 0, reading = 0;

	for (p = 0; p < n; p++) {
		missing = read_wait_missing(rwait, p);
		want[p] = read[p] = 0;
		any |= missing;
		if (!missing)
			continue;
		if (missing & rwait->chunks[p]->failed)
			return -EIO;
		want[p] = missing & ~rwait->chunks[p]->reading;
		read[p] = missing & rwait->chunks[p]->reading;
		all |= want[p];
		reading |= read[p];
	}
	if (reading && !rwait->background)
		read_wait_raise(rwait, read);
	if (all)
		fetch_start(rwait->file, rwait->first / CHUNK_BLOCKS, n, want,
			    rwait->background);
	for (p = 0; p < n; p++)
		if (want[p] && want[p] & rwait->chunks[p]->failed)
			return -EIO;	/* it could not even be started */
	return any ? -EINPROGRESS : 0;
}

/* Fails only what was tried for this need. */
static void read_wait_forgive(struct read_wait *rwait)
{
	unsigned p;

	for (p = 0; p < READ_WAIT_CHUNKS; p++)
		if (rwait->chunks[p])
			rwait->chunks[p]->failed &= rwait->chunks[p]->reading;
}

int read_wait_start(struct read_wait *rwait)
{
	struct files *files = rwait->file->files;
	int rc;

	rwait->waiting = false;
	memset(rwait->chunks, 0, sizeof(rwait->chunks));
	if (read_wait_ok(rwait))
		return 0;
	if (!list_empty(&files->chunk_waits) || !read_wait_pin(rwait)) {
		rwait->waiting = true;
		list_add(&files->chunk_waits, &rwait->link);
		return -EINPROGRESS;
	}
	read_wait_forgive(rwait);
	rc = read_wait_fetch(rwait);
	if (rc == -EINPROGRESS) {
		rwait->waiting = true;
		list_add(&rwait->file->read_waits, &rwait->link);
	} else if (rc) {
		read_wait_unpin(rwait);
	}
	return rc;
}

static void read_wait_ready(struct read_wait *rwait, int rc)
{
	list_del(&rwait->link);
	rwait->waiting = false;
	if (rc)
		read_wait_unpin(rwait);
	rwait->ready(rwait, rc);
}

/* Those that got no chunks try again, in order. */
static void read_waits_feed(struct files *files)
{
	struct read_wait *rwait;
	int rc;

	while ((rwait = list_first(&files->chunk_waits, struct read_wait,
				   link))) {
		if (!read_wait_pin(rwait))
			return;
		read_wait_forgive(rwait);
		list_del(&rwait->link);
		list_add(&rwait->file->read_waits, &rwait->link);
		rc = read_wait_fetch(rwait);
		if (rc != -EINPROGRESS)
			read_wait_ready(rwait, rc);
	}
}

void read_wait_end(struct read_wait *rwait)
{
	if (rwait->waiting) {
		list_del(&rwait->link);
		rwait->waiting = false;
	}
	read_wait_unpin(rwait);
	read_waits_feed(rwait->file->files);
}

void read_waits_wake(struct file *file)
{
	struct list ready, *pos, *tmp;
	struct read_wait *rwait;
	int rc;

	list_init(&ready);
	list_for_each_safe(pos, tmp, &file->read_waits) {
		list_del(pos);
		list_add(&ready, pos);
	}
	while ((rwait = list_first(&ready, struct read_wait, link))) {
		list_del(&rwait->link);
		list_add(&file->read_waits, &rwait->link);
		/* What was in blocks may have been written and dropped. */
		if (!read_wait_pin(rwait)) {
			list_del(&rwait->link);
			list_add(&file->files->chunk_waits, &rwait->link);
			continue;
		}
		rc = read_wait_fetch(rwait);
		if (rc != -EINPROGRESS)
			read_wait_ready(rwait, rc);
	}
}

/* ---- Fetch: what is on the disk ---- */

/* Before it is looked up where they are: they may become another fetch's. */
static void fetch_wish(struct fetch_chunk *fp)
{
	fp->chunk->reading |= fp->want;
	fp->chunk->failed &= ~fp->want;
}

static void fetch_claim(struct fetch *fetch)
{
	struct fetch_chunk *fp;

	for (fp = fetch->piece; fp < fetch->piece + fetch->chunks; fp++) {
		if (!fp->chunk)
			continue;
		fetch_wish(fp);
		fp->chunk->busy |= fp->want;
		fp->claimed = true;
	}
}

/* Blocks of a chunk are not read any more, at least not by this fetch. */
static void fetch_leave(struct fetch_chunk *fp, uint16_t bits)
{
	if (fp->claimed)
		fp->chunk->busy &= ~bits;
	fp->chunk->reading &= ~(bits & ~fp->chunk->busy);
	fp->chunk->stale &= fp->chunk->reading;
}

static void fetch_unclaim(struct fetch *fetch)
{
	struct fetch_chunk *fp;

	for (fp = fetch->piece; fp < fetch->piece + fetch->chunks; fp++) {
		if (!fp->chunk)
			continue;
		fetch_leave(fp, fp->want);
		fp->claimed = false;
	}
}

/* Everything that could be had is valid. */
static void fetch_over(struct fetch *fetch)
{
	struct file *file = fetch->file;
	struct files *files = file->files;
	unsigned p;

	file->users++;
	fetch_unclaim(fetch);
	if (fetch->rc)
		for (p = 0; p < fetch->chunks; p++)
			if (fetch->piece[p].chunk)
				fetch->piece[p].chunk->failed |=
					fetch->piece[p].want;
	files->fetches--;
	list_del(&fetch->in_file);
	read_waits_wake(file);
	for (p = 0; p < fetch->chunks; p++) {
		if (!fetch->piece[p].chunk)
			continue;
		files->fetch_chunks--;
		if (--fetch->piece[p].chunk->pins == 0)
			chunk_rest(fetch->piece[p].chunk);
	}
	abandon_free(fetch);
	read_waits_feed(files);
	file_put(file);
}

static void fetch_raise(struct fetch *fetch)
{
	struct queue *queue = fetch->file->files->fs->queue;
	unsigned i;

	fetch->class = QUEUE_READ;
	if (!fetch->outstanding)
		return;		/* it is being looked up */
	for (i = 0; i < fetch->segments; i++)
		queue_raise(queue, &fetch->segment[i].req);
}

static struct fetch_chunk *fetch_piece(struct fetch *fetch, uint64_t block,
				       unsigned *bit)
{
	uint64_t p = block / CHUNK_BLOCKS - fetch->first;

	*bit = block % CHUNK_BLOCKS;
	if (block / CHUNK_BLOCKS < fetch->first || p >= fetch->chunks ||
	    !fetch->piece[p].chunk)
		return NULL;
	return &fetch->piece[p];
}

/* Leaves with the checksums of what a stream will come to lie behind each
 * other: one access brings some. */
static void fetch_sums_ahead(struct fs_txn *txn, const struct fetch *fetch,
			     uint64_t window)
{
	uint64_t ino = fetch->file->ino;

	if (fetch->class == QUEUE_READ_AHEAD && !fetch->guess)
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
		fp = &fetch->piece[p];
		w = (fetch->first + p) / TRAX_CSUM_PIECES;
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
		i = (fetch->first + p) % TRAX_CSUM_PIECES;
		fp->mask = window.mask[i];
		memcpy(fp->sum, window.sum[i], sizeof(fp->sum));
	}
	return rc;
}

/* Blocks that are in the log only are not on the disk; they are in memory. */
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
		fp = fetch_piece(fetch, block->index, &bit);
		if (fp && (block->pin || block->foreign))
			fp->want &= ~(1u << bit);
	}
	for (p = 0; p < fetch->chunks; p++) {
		fp = &fetch->piece[p];
		if (!fp->chunk)
			continue;
		fp->want &= ~(fp->chunk->busy | fp->chunk->valid);
		fp->chunk->stale &= ~fp->want;
	}
	fetch_claim(fetch);
}

/* Cuts what is wanted out of an extent, into segments of wanted blocks.
 * -E2BIG: there are no segments left for what lies from block *cut on. */
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
		fp = fetch_piece(fetch, block, &bit);
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

/* Blocks of chunk `index` before block `end`. */
static uint16_t chunk_before(uint64_t index, uint64_t end)
{
	uint64_t base = index * CHUNK_BLOCKS;

	if (end <= base)
		return 0;
	if (end >= base + CHUNK_BLOCKS)
		return UINT16_MAX;
	return (uint16_t)((1u << (end - base)) - 1);
}

/* What a fetch that ends before block `end` still wants of a chunk. */
static uint16_t fetch_before(const struct fetch *fetch, unsigned p,
			     uint64_t end)
{
	return fetch->piece[p].want & chunk_before(fetch->first + p, end);
}

/*
 * Blocks from `end` on are left to another fetch.  -EUCLEAN: nothing would be
 * left to this one, so that reading would never end.  That takes extents of
 * parts of blocks: blocks of a chunk in two extents each fit.
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
		fetch->piece[p].want = fetch_before(fetch, p, end);
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
	struct fetch_chunk *fp = &fetch->piece[0];
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

/* The places of one segment. */
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

/* The copies of a segment do not lie in one row, as at the end of each track,
 * or some of it has none: it is cut where the first row ends, or the next one
 * begins.  false: it stays as it is. */
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

/* What users want of a file whose beginning, or what they come from, has
 * copies are these. */
static int fetch_guess(struct fs_txn *txn, struct fetch *fetch)
{
	struct replica_copy found[REPLICA_FOUND];
	uint64_t first = fetch->first * CHUNK_BLOCKS;
	unsigned p, n;
	int rc;

	if (!fetch->guess || !fetch->file->copies || !txn->fs->replicas)
		return 0;
	rc = replica_find(txn, fetch->file->ino, 0, 1, found, &n);
	if (!rc && !n && first)
		rc = replica_find(txn, fetch->file->ino, first - 1, first,
				  found, &n);
	if (rc || !n)
		return rc;
	fetch_unclaim(fetch);
	for (p = 0; p < fetch->chunks; p++)
		fetch->piece[p].want = 0;
	return 0;
}

static void fetch_mark_copied(struct fetch *fetch,
			      const struct replica_copy *copy)
{
	struct fetch_chunk *fp;
	unsigned i, bit;

	for (i = 0; i < copy->blocks; i++) {
		fp = fetch_piece(fetch, copy->block + i, &bit);
		if (fp)
			fp->copied |= 1u << bit;
	}
}

/* Where else the segments lie. */
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

static int fetch_run(struct fs_txn *txn)
{
	struct fetch *fetch = txn->state;
	unsigned p;
	int rc, sums;

	for (p = 0; p < fetch->chunks; p++)
		fetch->piece[p].mapped = fetch->piece[p].copied = 0;
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

static void fetch_done(struct disk_request *req);

/* Buffers of a segment; returns the number of iov used. */
static unsigned fetch_iov(struct fetch *fetch,
			  const struct fetch_segment *segment,
			  struct iovec *iov)
{
	uint64_t off = segment->off, end = off + segment->n, stop;
	uint64_t piece_sectors = CHUNK_BLOCKS * BLOCK_SECTORS;
	struct fetch_chunk *fp;
	unsigned n = 0;

	while (off < end) {
		stop = (off / piece_sectors + 1) * piece_sectors;
		stop = stop < end ? stop : end;
		fp = &fetch->piece[off / piece_sectors - fetch->first];
		iov[n].iov_base = fp->chunk->data +
				  off % piece_sectors * SECTOR_BYTES;
		iov[n++].iov_len = (stop - off) * SECTOR_BYTES;
		off = stop;
	}
	return n;
}

static void fetch_verify(struct fetch *fetch);

/* Which place is read at this try. */
static void fetch_choose(const struct fetch *fetch,
			 struct fetch_segment *segment)
{
	unsigned copy = fetch->tries - FETCH_TRIES;

	if (fetch->tries == 0) {
		segment->req.copies = segment->copies;
		segment->req.copies_n = segment->copies_n;
	} else if (fetch->tries >= FETCH_TRIES && copy < segment->copies_n) {
		segment->req.disk.sector = segment->copies[copy];
	}
}

static void fetch_watch(struct fetch *fetch, struct fetch_segment *segment)
{
	uint64_t block = segment->off / BLOCK_SECTORS;
	uint64_t end = (segment->off + segment->n + BLOCK_SECTORS - 1) /
		       BLOCK_SECTORS;

	segment->number = READ_NO_NUMBER;
	segment->begun_ns = env_now_ns(fetch->file->files->fs->env);
	if (fetch->background || fetch->class != QUEUE_READ || fetch->tries)
		return;
	for_each_read_event(ev, fetch->file->files->fs, begun)
		segment->number = (*ev)->begun(fetch->file->files->fs,
					       &(struct heat_read){
			.ino = fetch->file->ino,
			.block = block,
			.blocks = (uint32_t)(end - block),
			.sector = segment->addr,
			.copied = segment->copies_n > 0,
		});
}

/* Data in two parts to where the segment's buffers are; or a copy by itself, so
 * that it answers for nothing but its own sectors. */
static void fetch_run_done(struct replica_run_want *want, const uint8_t *data,
			   size_t bytes, const uint8_t *rest)
{
	struct fetch_segment *segment = container_of(want, struct fetch_segment,
						     want);
	struct disk_request *req = &segment->req.disk;
	struct fetch *fetch = req->owner;
	size_t n, done;
	unsigned i;

	if (!data) {
		segment->req.copies_n = 0;
		req->sector = want->gone ? segment->addr : want->sector;
		queue_submit(fetch->file->files->fs->queue, &segment->req);
		return;
	}
	req->sector = want->sector;
	req->result = 0;
	for (i = 0; i < req->iov_n; i++) {
		for (done = 0; done < req->iov[i].iov_len; done += n) {
			if (!bytes) {
				data = rest;
				bytes = SIZE_MAX;
			}
			n = req->iov[i].iov_len - done;
			n = n < bytes ? n : bytes;
			memcpy((uint8_t *)req->iov[i].iov_base + done, data, n);
			data += n;
			bytes -= n;
		}
	}
	fetch_done(req);
}

/* Copies are read together with those that will be wanted next. */
static bool fetch_from_run(struct fetch *fetch, struct fetch_segment *segment)
{
	struct fs *fs = fetch->file->files->fs;

	if (fetch->tries || fetch->background || !segment->copies_n)
		return false;
	segment->want = (struct replica_run_want){
		.sectors = (uint32_t)segment->n, .done = fetch_run_done,
	};
	for_each_read_event(ev, fs, take_replica)
		if ((*ev)->take_replica(fs, &segment->want, segment->copies,
					segment->copies_n, segment->addr))
			return true;
	return false;
}

static struct read_segment fetch_part(const struct fetch *fetch,
				      const struct fetch_segment *segment)
{
	return (struct read_segment){
		.file = fetch->file,
		.addr = segment->addr, .n = segment->n, .off = segment->off,
		.first = segment->first, .end = segment->end,
		.iov = segment->req.disk.iov, .iov_n = segment->req.disk.iov_n,
	};
}

/* It has passed by under the head, and was read. */
static bool fetch_from_gap(const struct fetch *fetch,
			   const struct fetch_segment *segment)
{
	struct read_segment part = fetch_part(fetch, segment);

	if (fetch->class != QUEUE_READ_AHEAD || fetch->tries ||
	    fetch->background)
		return false;
	for_each_read_event(ev, fetch->file->files->fs, take)
		if ((*ev)->take(&part))
			return true;
	return false;
}

static void fetch_submit(struct fetch *fetch, struct fetch_segment *segment)
{
	struct read_segment part = fetch_part(fetch, segment);
	struct fs *fs = fetch->file->files->fs;

	if (fetch->class == QUEUE_READ && !fetch->tries)
		for_each_read_event(ev, fs, submitted)
			(*ev)->submitted(&part);
	queue_submit(fs->queue, &segment->req);
}

/* Is it a user's first read of a small file from its start, which has no
 * replica? */
static bool fetch_is_small_miss(const struct fetch *fetch)
{
	return fetch->class == QUEUE_READ && fetch->first == 0 &&
	       fetch->segments && fetch->segment[0].off == 0 &&
	       !fetch->tries && !fetch->segment[0].copies_n &&
	       fetch->file->size <= SMALL_FILE_BYTES;
}

static void fetch_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct fetch *fetch = txn->state;
	struct fetch_segment *segment;
	struct iovec *iov = fetch->iov;
	unsigned i;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc) {
		fetch->rc = rc;
		fetch_over(fetch);
		return;
	}
	if (fetch_is_small_miss(fetch))
		for_each_read_event(ev, fetch->file->files->fs, missed)
			(*ev)->missed(fetch->file->files,
				      fetch->segment[0].addr,
				      fetch->segment[0].n);
	fetch->outstanding = 1;
	for (i = 0; i < fetch->segments; i++) {
		segment = &fetch->segment[i];
		segment->req = (struct queue_request){
			.disk = {
				.op = DISK_READ,
				.sector = segment->addr,
				.sectors = (uint32_t)segment->n,
				.iov = iov,
				.done = fetch_done,
				.owner = fetch,
			},
			.class = fetch->class,
			.who = FAULT_READ_DATA,
			.failures = fetch->failures,
		};
		fetch_choose(fetch, segment);
		segment->req.disk.iov_n = fetch_iov(fetch, segment, iov);
		iov += segment->req.disk.iov_n;
		fetch->outstanding++;
		fetch_watch(fetch, segment);
		if (fetch_from_gap(fetch, segment))
			fetch_done(&segment->req.disk);
		else if (!fetch_from_run(fetch, segment))
			fetch_submit(fetch, segment);
	}
	if (--fetch->outstanding == 0)
		fetch_verify(fetch);
}

/* What was read ahead is no user's read until one comes for it. */
static void fetch_note(const struct fetch *fetch,
		       const struct fetch_segment *segment)
{
	const uint64_t piece_sectors = CHUNK_BLOCKS * BLOCK_SECTORS;
	uint64_t off = segment->off, end = off + segment->n, base, block;
	const struct fetch_chunk *fp;
	struct chunk *chunk;

	if (fetch->background)
		return;
	for (; off < end; off = base + piece_sectors) {
		base = off - off % piece_sectors;
		fp = &fetch->piece[off / piece_sectors - fetch->first];
		chunk = fp->chunk;
		chunk->addr = segment->addr - segment->off + base;
		chunk->sector = segment->req.disk.sector - segment->off + base;
		chunk->has_replica = fp->copied;
		chunk->from_replica = segment->req.disk.sector != segment->addr;
		for (block = off / BLOCK_SECTORS;
		     block * BLOCK_SECTORS < end &&
		     block * BLOCK_SECTORS < base + piece_sectors; block++)
			if (fetch->class == QUEUE_READ_AHEAD)
				chunk->readahead |= 1u << block % CHUNK_BLOCKS;
	}
}

static void fetch_count(struct fetch *fetch,
			const struct fetch_segment *segment)
{
	struct fs *fs = fetch->file->files->fs;
	bool from_copy = segment->req.disk.sector != segment->addr;
	struct read_done done = {
		.number = segment->number,
		.sector = segment->req.disk.sector,
		.n = segment->n,
		.wait_ns = env_now_ns(fs->env) - segment->begun_ns,
		.from_replica = from_copy,
	};

	fetch_note(fetch, segment);
	for_each_read_event(ev, fs, done)
		(*ev)->done(fs, &done);
	if (segment->copies_n)
		fs->replicas->stats.offered++;
	if (!from_copy)
		return;
	if (!fetch->tries)
		fetch->has_replicas[fetch->copied++] = (struct copy_read){
			segment->off, segment->n, segment->req.disk.sector,
		};
	replica_used(fs, segment->req.disk.sector, segment->n * SECTOR_BYTES);
}

static void fetch_done(struct disk_request *req)
{
	struct fetch *fetch = req->owner;

	const struct fetch_segment *segment =
		container_of(req, struct fetch_segment, req.disk);

	if (req->result) {
		fetch->rc = -EIO;
		fetch->error = fault_class(req->op, req->result);
		if (fetch->failures < segment->req.failures)
			fetch->failures = segment->req.failures;
	}
	fetch_count(fetch, segment);
	if (--fetch->outstanding == 0)
		fetch_verify(fetch);
}

static const struct fs_txn_type fetch_type = {
	.name = "fetch",
	.paths = 12 + SUM_LEAVES_AHEAD,
	.stages = 40,
	.run = fetch_run,
	.end = fetch_end,
};

static void fetch_again(struct fetch *fetch)
{
	fetch->rc = 0;
	if (fs_txn_start(fetch->file->files->fs, &fetch_type, NULL, fetch)) {
		fetch->rc = -ENOMEM;
		list_add(&fetch->file->files->broken, &fetch->link);
	}
}

/* Those who wait for it have begun to wait meanwhile. */
void chunks_run(struct files *files)
{
	struct fetch *fetch;

	while ((fetch = list_first(&files->broken, struct fetch, link))) {
		list_del(&fetch->link);
		fetch_over(fetch);
	}
}

/* Verifies the blocks of a chunk; returns those that are bad.  `lost`: a hole
 * is, too. */
static uint16_t fetch_check(struct fetch_chunk *fp, bool lost)
{
	uint16_t bad = 0, good = 0, want = fp->want & ~fp->chunk->stale;
	unsigned i;

	for (i = 0; i < CHUNK_BLOCKS; i++) {
		uint8_t *data = fp->chunk->data + (size_t)i * BLOCK_BYTES;

		if (!(want & 1u << i) || fp->chunk->valid & 1u << i)
			continue;
		if (!lost && !(fp->mapped & 1u << i) && !(fp->mask & 1u << i))
			memset(data, 0, BLOCK_BYTES);
		else if (!(fp->mapped & 1u << i) || !(fp->mask & 1u << i) ||
			 csum_block(data) != fp->sum[i])
			bad |= 1u << i;
		if (!(bad & 1u << i))
			good |= 1u << i;
	}
	fp->chunk->valid |= good;
	return bad;
}

static void fetch_report(const struct fetch *fetch, unsigned p, uint16_t bad)
{
	uint64_t block = (fetch->first + p) * CHUNK_BLOCKS;
	const struct fetch_segment *segment;
	uint64_t sector, addr = 0;
	unsigned i;

	while (!(bad & 1)) {
		bad >>= 1;
		block++;
	}
	sector = block * BLOCK_SECTORS;
	for (i = 0; i < fetch->segments; i++) {
		segment = &fetch->segment[i];
		if (sector >= segment->off &&
		    sector < segment->off + segment->n)
			addr = segment->addr + (sector - segment->off);
	}
	errors_add(fetch->file->files->fs, &(struct error){
		.ino = fetch->file->ino, .off = block * BLOCK_BYTES,
		.sector = addr, .sectors = BLOCK_SECTORS,
		.what = fetch->rc ? ERROR_READ : ERROR_CSUM,
	});
	msg_error("%s: inode %llu, offset %llu, sector %llu: %s",
		  fetch->file->files->fs->disk->name,
		  (unsigned long long)fetch->file->ino,
		  (unsigned long long)block * BLOCK_BYTES,
		  (unsigned long long)addr,
		  fetch->rc ? "cannot be read" : "data has a wrong checksum");
}

/* What was read first of these blocks of the chunk at `base` was bad: if they
 * were copies, exactly these go. */
static void fetch_drop_copies(const struct fetch *fetch, uint64_t base,
			      uint16_t blocks)
{
	uint64_t bad = base + (unsigned)__builtin_ctz(blocks);
	uint64_t bad_end = base + 32 - (unsigned)__builtin_clz(blocks);
	const struct copy_read *copy;
	uint64_t first, end;
	unsigned i;

	for (i = 0; i < fetch->copied; i++) {
		copy = &fetch->has_replicas[i];
		first = copy->off / BLOCK_SECTORS;
		end = (copy->off + copy->n + BLOCK_SECTORS - 1) / BLOCK_SECTORS;
		if (bad >= end || bad_end <= first)
			continue;
		first = first > bad ? first : bad;
		end = end < bad_end ? end : bad_end;
		replica_bad(fetch->file->files->fs, fetch->file->ino, first,
			    end - first, copy->sector + first * BLOCK_SECTORS -
			    copy->off);
	}
}

/*
 * What had failed is there: where copies were read, the originals are bad;
 * where the originals were, after copies, these are.
 */
static void fetch_found(struct fetch *fetch, unsigned p, uint16_t blocks)
{
	if (fetch->tries <= FETCH_TRIES) {
		fetch_drop_copies(fetch, (fetch->first + p) * CHUNK_BLOCKS,
				  blocks);
		return;
	}
	for_each_read_event(ev, fetch->file->files->fs, recovered)
		(*ev)->recovered(fetch->file, fetch->first + p, blocks);
}

/* Is what could not be read, or has a wrong checksum, read again? */
static bool fetch_goes_on(const struct fetch *fetch)
{
	const enum fault_class class = fetch->rc ? fetch->error : FAULT_MEDIA;
	const unsigned failures = fetch->rc ? fetch->failures : fetch->tries;

	return fetch->tries < FETCH_TRIES + fetch->copies_n &&
	       fault_next(FAULT_READ_DATA, class, failures, NULL) <=
		       FAULT_RELOCATE;
}

static void fetch_verify(struct fetch *fetch)
{
	struct fetch_chunk *fp;
	unsigned p, failed = 0;
	uint16_t bad;
	bool again;

	fetch->tries++;
	again = fetch_goes_on(fetch);
	for (p = 0; p < fetch->chunks; p++) {
		fp = &fetch->piece[p];
		if (!fp->chunk || !fp->want)
			continue;
		bad = fetch_check(fp, fetch->file->lost);
		if (fetch->tries > 1 && fp->want & ~bad & fp->chunk->valid)
			fetch_found(fetch, p,
				    fp->want & ~bad & fp->chunk->valid);
		fetch_leave(fp, fp->want & ~bad);
		fp->want = bad;
		failed += bad != 0;
		if (bad && !again) {
			fetch_report(fetch, p, bad);
			fp->chunk->failed |= bad;
		}
	}
	if (failed && again) {
		fetch_again(fetch);
		return;
	}
	fetch->rc = 0;
	fetch_over(fetch);
}

static struct fetch *fetch_new(struct file *file, uint64_t first_piece,
			       unsigned pieces, const uint16_t *want,
			       enum queue_class class)
{
	struct fetch *fetch = abandon_alloc(file->files->fs, sizeof(*fetch));
	unsigned p;

	if (!fetch) {
		for (p = 0; p < pieces; p++)
			if (want[p])
				chunk_find(file, first_piece + p)->failed |=
					want[p];
		return NULL;
	}
	fetch->file = file;
	fetch->class = class;
	fetch->first = first_piece;
	fetch->chunks = pieces;
	for (p = 0; p < pieces; p++) {
		if (!want[p])
			continue;
		fetch->piece[p].chunk = chunk_find(file, first_piece + p);
		fetch->piece[p].chunk->pins++;
		file->files->fetch_chunks++;
		list_del(&fetch->piece[p].chunk->lru);
		fetch->piece[p].want = want[p];
		fetch_wish(&fetch->piece[p]);
	}
	file->files->fetches++;
	list_add(&file->fetches, &fetch->in_file);
	return fetch;
}

static void fetch_start(struct file *file, uint64_t first_piece,
			unsigned pieces, const uint16_t *want, bool background)
{
	struct fetch *fetch = fetch_new(file, first_piece, pieces, want,
					background ? QUEUE_READ_AHEAD :
						     QUEUE_READ);

	if (!fetch)
		return;
	fetch->background = background;
	fetch_again(fetch);
}

void chunks_read_ahead(struct file *file, uint64_t first, uint64_t end,
		       bool guess)
{
	struct files *files = file->files;
	struct fetch *fetch = NULL;
	size_t count = pool_count(files->chunk_pool);
	uint16_t want[READ_WAIT_CHUNKS], any = 0;
	struct chunk *chunk;
	unsigned p, n;
	uint64_t index = first / CHUNK_BLOCKS;

	n = (unsigned)((end - 1) / CHUNK_BLOCKS - index) + 1;
	n = n < READ_WAIT_CHUNKS ? n : READ_WAIT_CHUNKS;
	if (!list_empty(&files->chunk_waits) ||
	    (files->fetch_chunks + n) * AHEAD_PART > count * (AHEAD_PART - 1))
		return;
	for (p = 0; p < n; p++) {
		want[p] = chunk_before(index + p, end) &
			  ~blocks_present(file, (index + p) * CHUNK_BLOCKS,
					  false);
		if (!want[p])
			continue;
		chunk = chunk_get(file, index + p);
		if (!chunk) {
			n = p;
			break;
		}
		want[p] &= (uint16_t)~(chunk->valid | chunk->reading);
		any |= want[p];
		if (want[p]) /* not to be evicted for the next one */
			list_del(&chunk->lru);
	}
	if (n && any)
		fetch = fetch_new(file, index, n, want, QUEUE_READ_AHEAD);
	if (!fetch)
		return;
	fetch->guess = guess;
	fetch_again(fetch);
}

/* Blocks of a chunk that a user has come to: those that lie in a row and are
 * alike make one read. */
static void chunk_claim(struct chunk *chunk, uint16_t bits, uint64_t wait_ns)
{
	struct fs *fs = chunk->file->files->fs;
	struct heat_read read;
	unsigned first = 0, end;
	bool copied;

	chunk->readahead &= ~bits;
	for (; bits; bits &= ~((1u << end) - 1), first = end) {
		while (!(bits & 1u << first))
			first++;
		copied = chunk->has_replica & 1u << first;
		for (end = first + 1; end < CHUNK_BLOCKS; end++)
			if (!(bits & 1u << end) ||
			    copied != !!(chunk->has_replica & 1u << end))
				break;
		read = (struct heat_read){
			.ino = chunk->file->ino,
			.block = chunk->index * CHUNK_BLOCKS + first,
			.blocks = end - first,
			.sector = chunk->sector + first * BLOCK_SECTORS,
			.copied = copied, .from_copy = chunk->from_replica,
		};
		for_each_read_event(ev, fs, used)
			(*ev)->used(fs, &read,
				    chunk->addr + first * BLOCK_SECTORS,
				    wait_ns);
	}
}

void chunks_used(const struct read_wait *rwait, uint64_t wait_ns)
{
	struct chunk *chunk;
	uint16_t bits;
	unsigned p;

	for (p = 0; p < read_wait_pieces(rwait); p++) {
		chunk = rwait->chunks[p];
		bits = chunk ? chunk->readahead & read_wait_bits(rwait, p) : 0;
		if (bits)
			chunk_claim(chunk, bits, wait_ns);
	}
}

static int by_address(const void *a, const void *b)
{
	const struct chunk *const *x = a, *const *y = b;

	return (*x)->addr < (*y)->addr ? -1 : (*x)->addr > (*y)->addr;
}

size_t chunks_unused_readahead(struct files *files, struct replica_want *left,
			       size_t most)
{
	size_t count = pool_count(files->chunk_pool), i, n = 0;
	struct chunk **by = calloc(count, sizeof(struct chunk *)), *chunk;

	for (i = 0; by && i < count; i++) {
		chunk = &files->chunk_store[i];
		if (chunk->file && chunk->readahead && !chunk->index &&
		    !(chunk->has_replica & chunk->readahead) &&
		    chunk->file->size <= CHUNK_BYTES)
			by[n++] = chunk;
	}
	if (n)
		qsort(by, n, sizeof(struct chunk *), by_address);
	n = n < most ? n : most;
	for (i = 0; i < n; i++) {
		left[i] = (struct replica_want){ by[i]->file->ino, 0,
			(uint64_t)__builtin_popcount(by[i]->readahead) };
		by[i]->readahead = 0;
	}
	free(by);
	return n;
}
