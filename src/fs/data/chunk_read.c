/*
 * chunk_read.c - reads the segments of a fetch, from the original or a replica,
 * verifies their blocks, and reads elsewhere when they are bad.
 */
#include "fs/data/cache_chunk_internal.h"

#include <errno.h>

#include "fs/op/errors.h"
#include "fs/table/replica.h"
#include "base/msg.h"

/* Tries that read where the bmap or one replica says, before the replicas are
 * read one by one. */
#define FETCH_TRIES 3

unsigned fetch_iov(struct fetch *fetch,
		   const struct fetch_segment *segment,
		   struct iovec *iov)
{
	uint64_t off = segment->off, end = off + segment->n, stop;
	uint64_t chunk_sectors = CHUNK_BLOCKS * BLOCK_SECTORS;
	struct fetch_chunk *fp;
	unsigned n = 0;

	while (off < end) {
		stop = (off / chunk_sectors + 1) * chunk_sectors;
		stop = stop < end ? stop : end;
		fp = &fetch->chunk[off / chunk_sectors - fetch->first];
		iov[n].iov_base = fp->chunk->data +
				  off % chunk_sectors * SECTOR_BYTES;
		iov[n++].iov_len = (stop - off) * SECTOR_BYTES;
		off = stop;
	}
	return n;
}

void fetch_choose(const struct fetch *fetch,
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

void fetch_watch(struct fetch *fetch, struct fetch_segment *segment)
{
	uint64_t block = segment->off / BLOCK_SECTORS;
	uint64_t end = (segment->off + segment->n + BLOCK_SECTORS - 1) /
		       BLOCK_SECTORS;
	struct read_segment part = fetch_part(fetch, segment);
	struct fs *fs = fetch->file->files->fs;

	segment->number = READ_NO_NUMBER;
	segment->begun_ns = env_now_ns(fs->env);
	if (fetch->background || fetch->tries)
		return;
	if (fs->read_watch)
		fs->read_watch->read(fs->read_watch, &part);
	if (fetch->class != QUEUE_READ)
		return;
	for_each_read_event(ev, fs, begun)
		segment->number = (*ev)->begun(fs, &(struct heat_read){
			.ino = fetch->file->ino,
			.block = block,
			.blocks = (uint32_t)(end - block),
			.sector = segment->addr,
			.copied = segment->copies_n > 0,
		});
}

/* Copies data in two parts to the segment's buffers.  Without data the replica
 * is read by itself, so that an error concerns only its own sectors. */
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

bool fetch_from_run(struct fetch *fetch, struct fetch_segment *segment)
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

bool fetch_from_gap(const struct fetch *fetch,
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

void fetch_submit(struct fetch *fetch, struct fetch_segment *segment)
{
	struct read_segment part = fetch_part(fetch, segment);
	struct fs *fs = fetch->file->files->fs;

	if (fetch->class == QUEUE_READ && !fetch->tries)
		for_each_read_event(ev, fs, submitted)
			(*ev)->submitted(&part);
	queue_submit(fs->queue, &segment->req);
}

/* Reports a segment that is read for a user; read-ahead counts as a user's read
 * only when a user comes to it. */
static void fetch_note(const struct fetch *fetch,
		       const struct fetch_segment *segment)
{
	const uint64_t chunk_sectors = CHUNK_BLOCKS * BLOCK_SECTORS;
	uint64_t off = segment->off, end = off + segment->n, base, block;
	const struct fetch_chunk *fp;
	struct chunk *chunk;

	if (fetch->background)
		return;
	for (; off < end; off = base + chunk_sectors) {
		base = off - off % chunk_sectors;
		fp = &fetch->chunk[off / chunk_sectors - fetch->first];
		chunk = fp->chunk;
		chunk->addr = segment->addr - segment->off + base;
		chunk->sector = segment->req.disk.sector - segment->off + base;
		chunk->has_replica = fp->copied;
		chunk->from_replica = segment->req.disk.sector != segment->addr;
		for (block = off / BLOCK_SECTORS;
		     block * BLOCK_SECTORS < end &&
		     block * BLOCK_SECTORS < base + chunk_sectors; block++)
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

void fetch_done(struct disk_request *req)
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

void fetch_again(struct fetch *fetch)
{
	fetch->rc = 0;
	if (fs_txn_start(fetch->file->files->fs, &fetch_type, NULL, fetch)) {
		fetch->rc = -ENOMEM;
		list_add(&fetch->file->files->broken, &fetch->link);
	}
}

/* Verifies the blocks of a chunk; returns the bad ones.  `lost`: holes are bad,
 * too. */
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

/* The first content read of these blocks of the chunk at `base` was bad: if it
 * came from replicas, exactly these are dropped. */
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
 * Blocks that had failed have been read after all: if replicas were read, the
 * originals are bad; if the originals were, after replicas, the replicas are.
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

/* Are blocks that could not be read, or have a wrong checksum, read again? */
static bool fetch_goes_on(const struct fetch *fetch)
{
	const enum fault_class class = fetch->rc ? fetch->error : FAULT_MEDIA;
	const unsigned failures = fetch->rc ? fetch->failures : fetch->tries;

	return fetch->tries < FETCH_TRIES + fetch->copies_n &&
	       fault_next(FAULT_READ_DATA, class, failures, NULL) <=
		       FAULT_RELOCATE;
}

void fetch_verify(struct fetch *fetch)
{
	struct fetch_chunk *fp;
	unsigned p, failed = 0;
	uint16_t bad;
	bool again;

	fetch->tries++;
	again = fetch_goes_on(fetch);
	for (p = 0; p < fetch->chunks; p++) {
		fp = &fetch->chunk[p];
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
