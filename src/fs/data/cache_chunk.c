/*
 * cache_chunk.c - content of files as it is on the disk, verified, in chunks of
 * 64 KiB.
 *
 *   fetch:  wanted -> [txn: extents, sums] -> [reads] -> verified -> valid
 *                          ^                                    |
 *                          +--- sum wrong: looked up again -----+
 *
 * 1. A chunk is pinned by read waits and by fetches; all others are in the LRU
 *    list and may be reused at any time.
 * 2. A transaction that changes blocks calls chunks_changed: their valid bits
 *    are cleared, and blocks that are being read are not used (stale).
 * 3. A read wait gets all its chunks or none, in order of arrival, so read
 *    waits never wait for each other.
 * 4. A wrong sum is damage only if the mapping was looked up again and the
 *    place was read once more.
 * 5. At the first try the queue may take a replica instead, if one holds all of
 *    a segment; then the original is read, twice; then each of the replicas.
 */
#include "fs/data/cache_chunk.h"
#include "base/units.h"
#include "fs/data/cache_chunk_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/table/replica.h"

/* Beginnings of files that were read ahead are counted up to this number; then
 * both counters are halved, so that they follow what happens now. */
#define AHEAD_COUNTED 64u
#define AHEAD_PART 4u	/* a quarter of the chunks is never pinned by
			 * read-ahead */

/* ---- Chunks ---- */

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

/* Counts a beginning that was read ahead, as used or as wasted. */
static void count_ahead(struct files *files, unsigned *counter)
{
	++*counter;
	if (files->ahead_used + files->ahead_wasted < AHEAD_COUNTED)
		return;
	files->ahead_used /= 2;
	files->ahead_wasted /= 2;
}

/* Drops a chunk that is not pinned and that no fetch reads into. */
static void chunk_drop(struct chunk *chunk)
{
	struct file *file = chunk->file;
	struct files *files = file->files;

	if (!chunk->index && chunk->readahead & 1 && !file->vnode->unlinked)
		count_ahead(files, &files->ahead_wasted);
	hashmap_del(file->chunks, chunk->index);
	list_del(&chunk->lru);
	chunk->file = NULL;
	/* It is reused first, as its memory has been touched already. */
	list_add_front(&files->chunk_free, &chunk->lru);
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

/* ---- Read waits ---- */

/* Blocks of rwait->chunks[p] that the read wait wants. */
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

static unsigned read_wait_chunks(const struct read_wait *rwait)
{
	uint64_t last = rwait->first + rwait->n - 1;

	return (unsigned)(last / CHUNK_BLOCKS - rwait->first / CHUNK_BLOCKS) +
	       1;
}

/* The blocks of the chunk that begins with block `base` that are in memory as
 * blocks; with `logged` only those whose content the tree has in the log. */
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

/* The blocks wanted in chunk p that are neither in memory as blocks nor
 * valid. */
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

	for (p = 0; p < read_wait_chunks(rwait); p++)
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

/* A read that found no memory is tried again after 50 ms: no chunk that is
 * given back would wake it. */
#define NO_MEMORY_NS (50 * NS_PER_MS)

static void chunk_wait_memory(struct files *files)
{
	if (!list_empty(&files->chunk_free) || !list_empty(&files->lru))
		files_wake_at(files, env_now_ns(files->fs->env) + NO_MEMORY_NS);
}

/* Pins all chunks of which the read wait wants blocks that are not in memory as
 * blocks, or none. */
static bool read_wait_pin(struct read_wait *rwait)
{
	struct chunk *chunk;
	unsigned p;

	for (p = 0; p < read_wait_chunks(rwait); p++) {
		if (rwait->chunks[p] || !read_wait_missing(rwait, p))
			continue;
		chunk = chunk_get(rwait->file,
				  rwait->first / CHUNK_BLOCKS + p);
		if (!chunk) {
			chunk_wait_memory(rwait->file->files);
			read_wait_unpin(rwait);
			return false;
		}
		list_del(&chunk->lru);
		chunk->pins++;
		rwait->chunks[p] = chunk;
	}
	return true;
}

static void fetch_raise(struct fetch *fetch, uint64_t deadline_ns);

static void fetch_start(const struct read_wait *rwait, unsigned chunks,
			const uint16_t *want);

/* May the fetch come later than by the deadline? */
static bool fetch_may_wait(const struct fetch *fetch, uint64_t deadline_ns)
{
	return fetch->class == QUEUE_READ_AHEAD ||
	       (fetch->class == QUEUE_READ && fetch->deadline_ns > deadline_ns);
}

/* What brings missing blocks is as urgent as this read from now on. */
static void read_wait_raise(const struct read_wait *rwait,
			    const uint16_t *missing)
{
	const uint64_t first = rwait->first / CHUNK_BLOCKS;
	struct fetch *fetch;
	struct list *pos;
	unsigned p;

	list_for_each(pos, &rwait->file->fetches) {
		fetch = list_entry(pos, struct fetch, in_file);
		if (!fetch_may_wait(fetch, rwait->deadline_ns))
			continue;
		for (p = 0; p < read_wait_chunks(rwait); p++)
			if (first + p - fetch->first < fetch->chunks &&
			    missing[p] & fetch->chunk[first + p -
						      fetch->first].want)
				break;
		if (p < read_wait_chunks(rwait))
			fetch_raise(fetch, rwait->deadline_ns);
	}
}

/* Starts fetches of the missing blocks that no fetch brings. 0: none are
 * missing. */
static int read_wait_fetch(struct read_wait *rwait)
{
	uint16_t want[READ_WAIT_CHUNKS], read[READ_WAIT_CHUNKS];
	unsigned p, n = read_wait_chunks(rwait);
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
		fetch_start(rwait, n, want);
	for (p = 0; p < n; p++)
		if (want[p] && want[p] & rwait->chunks[p]->failed)
			return -EIO;	/* the fetch could not be started */
	return any ? -EINPROGRESS : 0;
}

/* Clears failures of earlier reads: only reads for this read wait count for
 * it. */
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

void read_waits_feed(struct files *files)
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

static void read_waits_wake(struct file *file)
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
		/* Blocks may have been written and dropped meanwhile, so chunks
		 * are needed for them. */
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

/* ---- Fetches ---- */

/* Marks the blocks as being read, before their places are looked up: until then
 * another fetch may take them over. */
static void fetch_mark_reading(struct fetch_chunk *fp)
{
	fp->chunk->reading |= fp->want;
	fp->chunk->failed &= ~fp->want;
}

void fetch_claim(struct fetch *fetch)
{
	struct fetch_chunk *fp;

	for (fp = fetch->chunk; fp < fetch->chunk + fetch->chunks; fp++) {
		if (!fp->chunk)
			continue;
		fetch_mark_reading(fp);
		fp->chunk->busy |= fp->want;
		fp->claimed = true;
	}
}

void fetch_leave(struct fetch_chunk *fp, uint16_t bits)
{
	if (fp->claimed)
		fp->chunk->busy &= ~bits;
	fp->chunk->reading &= ~(bits & ~fp->chunk->busy);
	fp->chunk->stale &= fp->chunk->reading;
}

void fetch_unclaim(struct fetch *fetch)
{
	struct fetch_chunk *fp;

	for (fp = fetch->chunk; fp < fetch->chunk + fetch->chunks; fp++) {
		if (!fp->chunk)
			continue;
		fetch_leave(fp, fp->want);
		fp->claimed = false;
	}
}

void fetch_over(struct fetch *fetch)
{
	struct file *file = fetch->file;
	struct files *files = file->files;
	unsigned p;

	file->users++;
	fetch_unclaim(fetch);
	if (fetch->rc)
		for (p = 0; p < fetch->chunks; p++)
			if (fetch->chunk[p].chunk)
				fetch->chunk[p].chunk->failed |=
					fetch->chunk[p].want;
	files->fetches--;
	list_del(&fetch->in_file);
	read_waits_wake(file);
	for (p = 0; p < fetch->chunks; p++) {
		if (!fetch->chunk[p].chunk)
			continue;
		files->fetch_chunks--;
		if (--fetch->chunk[p].chunk->pins == 0)
			chunk_rest(fetch->chunk[p].chunk);
	}
	abandon_free(fetch);
	read_waits_feed(files);
	file_put(file);
}

static void fetch_raise(struct fetch *fetch, uint64_t deadline_ns)
{
	struct queue *queue = fetch->file->files->fs->queue;
	unsigned i;

	if (fetch->ahead == AHEAD_TURNS) {
		fetch->hastened = true;
	} else {
		fetch->class = QUEUE_READ;
		if (!fetch->deadline_ns || deadline_ns < fetch->deadline_ns)
			fetch->deadline_ns = deadline_ns;
	}
	if (!fetch->outstanding)
		return;		/* its places are being looked up */
	for (i = 0; i < fetch->segments; i++) {
		if (fetch->hastened)
			queue_hasten(queue, &fetch->segment[i].req);
		else
			queue_raise(queue, &fetch->segment[i].req, deadline_ns);
	}
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

void fetch_end(struct fs_txn *txn, int rc, uint64_t seq)
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
			(*ev)->missed(fetch->file, fetch->segment[0].addr,
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
			/* A reader with a pace will wait for it. */
			.class = fetch->deadline_ns ? QUEUE_READ :
						      fetch->class,
			.deadline_ns = fetch->deadline_ns,
			.origin = FAULT_READ_DATA,
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
		if (fetch->hastened)
			queue_hasten(fetch->file->files->fs->queue,
				     &segment->req);
	}
	if (--fetch->outstanding == 0)
		fetch_verify(fetch);
}

/* Ends fetches that could not begin; by now the read waits that started them
 * are waiting. */
void chunks_run(struct files *files)
{
	struct fetch *fetch;

	while ((fetch = list_first(&files->broken, struct fetch, link))) {
		list_del(&fetch->link);
		fetch_over(fetch);
	}
}

static struct fetch *fetch_new(struct file *file, uint64_t first_chunk,
			       unsigned chunks, const uint16_t *want,
			       enum queue_class class)
{
	struct fetch *fetch = abandon_alloc(file->files->fs, sizeof(*fetch));
	unsigned p;

	if (!fetch) {
		for (p = 0; p < chunks; p++)
			if (want[p])
				chunk_find(file, first_chunk + p)->failed |=
					want[p];
		return NULL;
	}
	fetch->file = file;
	fetch->class = class;
	fetch->first = first_chunk;
	fetch->chunks = chunks;
	for (p = 0; p < chunks; p++) {
		if (!want[p])
			continue;
		fetch->chunk[p].chunk = chunk_find(file, first_chunk + p);
		fetch->chunk[p].chunk->pins++;
		file->files->fetch_chunks++;
		list_del(&fetch->chunk[p].chunk->lru);
		fetch->chunk[p].want = want[p];
		fetch_mark_reading(&fetch->chunk[p]);
	}
	file->files->fetches++;
	list_add(&file->fetches, &fetch->in_file);
	return fetch;
}

static void fetch_start(const struct read_wait *rwait, unsigned chunks,
			const uint16_t *want)
{
	struct fetch *fetch = fetch_new(rwait->file,
					rwait->first / CHUNK_BLOCKS, chunks,
					want, rwait->background ?
					QUEUE_READ_AHEAD : QUEUE_READ);

	if (!fetch)
		return;
	fetch->background = rwait->background;
	fetch->deadline_ns = rwait->deadline_ns;
	fetch_again(fetch);
}

bool chunks_read_ahead(struct file *file, uint64_t first, uint64_t end,
		       enum ahead_kind kind, uint64_t deadline_ns)
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
		return false;
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
		if (want[p])	/* the next chunk must not reuse this one */
			list_del(&chunk->lru);
	}
	if (n && any)
		fetch = fetch_new(file, index, n, want, QUEUE_READ_AHEAD);
	if (!fetch)
		return !any;
	fetch->ahead = kind;
	fetch->deadline_ns = deadline_ns;
	fetch_again(fetch);
	return true;
}

/* A user has come to blocks of a chunk that were read ahead: adjacent ones that
 * are alike are counted as one read. */
static void chunk_claim(struct chunk *chunk, uint16_t bits, uint64_t wait_ns)
{
	struct fs *fs = chunk->file->files->fs;
	struct heat_read read;
	unsigned first = 0, end;
	bool copied;

	if (!chunk->index && bits & 1)
		count_ahead(chunk->file->files,
			    &chunk->file->files->ahead_used);
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

	for (p = 0; p < read_wait_chunks(rwait); p++) {
		chunk = rwait->chunks[p];
		bits = chunk ? chunk->readahead & read_wait_bits(rwait, p) : 0;
		if (bits)
			chunk_claim(chunk, bits, wait_ns);
	}
}

/* Most unused files that are sorted in one turn. */
#define UNUSED_MOST 1024u

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

	for (i = 0; by && i < count && n < UNUSED_MOST; i++) {
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
