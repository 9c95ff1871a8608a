/*
 * writeback.c - write-back: a stretch of dirty blocks on its way to the disk.
 *
 *            prepare                          write        commit
 *   dirty --[txn: extents, room]--+-> DIRECT, IN_PLACE --> [txn]-> clean
 *                                    +-> LOGGED --[txn]----> pinned
 *                                    +-> INLINE --[txn]----> clean
 *
 * DIRECT    new blocks, and overwrites of at least half a track: a new place,
 *           then one transaction maps it.  A crash before leaves nothing.
 * IN_PLACE  blocks with an unwritten extent: written there, then flipped.
 * LOGGED    little data that is being fsynced, and small overwrites: mapped and
 *           logged in one transaction, destaged later.
 * INLINE    a file of at most 2 KiB.
 *
 * 1. A write-back has blocks of one kind of mapping; what follows is another
 *    write-back's.  But the last block of a small file that was appended to
 *    goes with the new ones (writeback_is_tail).
 * 2. Of a file one write-back at a time looks for its place; so blocks that no
 *    write-back has claimed don't change their mapping meanwhile.
 * 3. Data of a claimed block does not change: a writer gets a new buffer.
 *
 * A write's life, with the function of each step:
 *
 *   file_write        write.c          the operation gets its struct io
 *   write_step        write.c          shared lock; waits for memory
 *   write_blocks      write.c          room reserved, old content read where a
 *                                      part of a block is written, data copied
 *   block_dirty       dirty_block.c    dirty from now on; the user is answered
 *   writeback_flush   writeback.c      it is to be written: age (files_scan),
 *                                      fsync (sync_start), a stretch complete
 *                                      (writeback_stream), short memory
 *   writeback_pump    writeback_pump.c starts the write-backs that may start
 *   prepare_run       writeback_txn.c  transaction: kind, and a place if needed
 *   writeback_write   writeback.c      requests to the queue; place and gaps by
 *                                      the policy (writeback_policy.h)
 *   direct_written    writeback_txn.c  the data is on the disk
 *   commit_run        writeback_txn.c  transaction: extents and checksums
 *   logged_run        writeback_txn.c  or: extents and data, in one log record
 *   tree_commit       tree.c           the record is made durable: by age, or
 *                                      for fsync (fsync_commit)
 *   destage_pump      destage.c        logged data is written to its extents
 *   destage_written   failure.c        its log pin is dropped
 */
#include "fs/data/writeback.h"
#include "fs/data/writeback_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "fs/data/bad_sectors.h"
#include "fs/data/dirty_block.h"
#include "fs/data/failure.h"
#include "fs/data/file.h"
#include "fs/data/file_sync.h"
#include "fs/data/prealloc.h"

/* Buffers of a write-back's requests: one for each block, and two for each
 * segment, which may begin and end inside a block. */
#define IOVS(blocks, segments) ((blocks) + 2 * (segments))
#define LARGE_IOVS IOVS(WB_BLOCKS, WB_SEGMENTS)
#define SMALL_IOVS IOVS(SMALL_WB_BLOCKS, SMALL_WB_SEGMENTS)

unsigned writeback_most(const struct writeback *wb)
{
	return wb->small ? SMALL_WB_BLOCKS : WB_BLOCKS;
}

int writebacks_new(struct files *files)
{
	size_t small = pool_count(files->dirty_pool) / SMALL_WB_SHARE, i;
	struct writeback_segment *segment;
	struct writeback *wb;
	struct iovec *iov;
	void **data;

	small = small < SMALL_WBS ? small : SMALL_WBS;
	files->writebacks =
		calloc(LARGE_WBS + small, sizeof(*files->writebacks));
	segment = calloc(LARGE_WBS * WB_SEGMENTS + small * SMALL_WB_SEGMENTS,
			 sizeof(*segment));
	data = calloc(LARGE_WBS * WB_BLOCKS + small * SMALL_WB_BLOCKS,
		      sizeof(*data));
	iov = calloc(LARGE_WBS * LARGE_IOVS + small * SMALL_IOVS,
		     sizeof(*iov));
	files->small_wbs = (unsigned)small;
	files->wb_segment = segment;
	files->wb_data = data;
	files->wb_iov = iov;
	if (!files->writebacks || !segment || !data || !iov)
		return -ENOMEM;
	for (i = 0; i < LARGE_WBS + small; i++) {
		wb = &files->writebacks[i];
		wb->small = i >= LARGE_WBS;
		wb->segment = segment;
		wb->data = data;
		wb->iov = iov;
		segment += writeback_segments(wb);
		data += writeback_most(wb);
		iov += wb->small ? SMALL_IOVS : LARGE_IOVS;
		list_add(&files->wb_free[wb->small], &wb->link);
	}
	return 0;
}

/* ---- Life of a write-back ---- */

bool file_is_small(const struct file *file)
{
	return file->size <= SMALL_FILE_BYTES;
}

static struct writeback *writeback_begin(struct file *file,
					 enum writeback_kind kind, bool small,
					 uint64_t first)
{
	struct files *files = file->files;
	struct writeback *wb =
		list_first(&files->wb_free[small], struct writeback, link);

	if (!wb)
		return NULL;
	list_del(&wb->link);
	list_add(kind == WB_DESTAGE ? &files->destages : &files->data_wbs,
		 &wb->link);
	wb->files = files;
	wb->file = file;
	wb->kind = kind;
	wb->claimed = wb->stream = wb->taken = wb->waited = false;
	wb->relocates = false;
	wb->for_gap = wb->gap_queued = false;
	wb->may_move = wb->follows = wb->in_flight = false;
	wb->batch_next = NULL;
	wb->first = first;
	wb->n = wb->done = wb->segments = wb->outstanding = wb->want = 0;
	wb->stamp = UINT64_MAX;
	wb->rc = 0;
	wb->failed = false;
	wb->pin = NULL;
	wb->txn = NULL;
	file->writebacks++;
	files->wbs_busy++;
	file->data_writebacks += kind != WB_DESTAGE;
	files->destages_busy += kind == WB_DESTAGE;
	files->large_data_busy += kind != WB_DESTAGE && !small;
	return wb;
}

struct writeback *writeback_new(struct file *file, enum writeback_kind kind,
				uint64_t first)
{
	return writeback_begin(
		file, kind, file_is_small(file) && kind != WB_DESTAGE, first);
}

struct writeback *writeback_new_for_gap(struct file *file, uint64_t first)
{
	struct writeback *wb = writeback_begin(file, WB_DESTAGE, true, first);

	if (wb)
		wb->for_gap = true;
	return wb;
}

void writeback_claim(struct writeback *wb)
{
	struct block *block = block_find(wb->file, wb->first);
	struct pool *pool = wb->files->dirty_pool;
	unsigned i;

	wb->claimed = true;
	wb->relocates = wb->kind == WB_DIRECT;
	for (i = 0; i < wb->n; i++, block = block->next) {
		assert(block && block->index == wb->first + i && !block->wb);
		block->wb = wb;
		wb->relocates &= block_is_logged(block);
		if (wb->kind == WB_DESTAGE) {
			wb->data[i] = pool_share(pool, block->pinned_data);
			continue;
		}
		if (block->stamp < wb->stamp)
			wb->stamp = block->stamp;
		block_clean(wb->file, block);
		wb->data[i] = pool_share(pool, block->data);
	}
}

void writeback_release(struct writeback *wb, unsigned i, bool ok)
{
	struct file *file = wb->file;
	struct block *block = block_find(file, wb->first + i);

	assert(block && block->wb == wb);
	block->wb = NULL;
	pool_put(wb->files->dirty_pool, wb->data[i]);
	if (ok)
		block_drop_clean(file, block);
	else	/* content of a destage is older than any dirty one */
		block_redirty(file, block,
			      wb->kind == WB_DESTAGE ? 0 : wb->stamp);
}

/* Gives back the sectors of the segments of which nothing is committed. */
static void writeback_give_back(struct writeback *wb)
{
	struct space *space = tree_space(wb->files->fs->tree);
	uint64_t skip = (uint64_t)wb->done * BLOCK_SECTORS;
	const struct writeback_segment *segment;
	unsigned i;

	for (i = 0; i < wb->segments; i++) {
		segment = &wb->segment[i];
		if (skip >= segment->n) {
			skip -= segment->n;
			continue;
		}
		if (segment->failed)
			bad_sectors_suspect(wb->files, segment->sector + skip,
				    segment->n - skip);
		else
			space_give_back(space, segment->sector + skip,
					segment->n - skip);
		skip = 0;
	}
	wb->taken = false;
}

void writeback_end(struct writeback *wb)
{
	struct files *files = wb->files;
	struct file *file = wb->file;
	unsigned i;

	if (wb->taken)
		writeback_give_back(wb);
	for (i = wb->done; wb->claimed && i < wb->n; i++)
		writeback_release(wb, i, false);
	if (wb->claimed && wb->done < wb->n)
		writeback_flush(file, wb->stamp, false, file->final);
	abandon_free(wb->pin);
	wb->file = NULL;
	list_del(&wb->link);
	/* The one used last is the next: others' memory stays untouched. */
	list_add_front(&files->wb_free[wb->small], &wb->link);
	files->wbs_busy--;
	file->data_writebacks -= wb->kind != WB_DESTAGE;
	files->destages_busy -= wb->kind == WB_DESTAGE;
	files->large_data_busy -= wb->kind != WB_DESTAGE && !wb->small;
	prealloc_settle(file);
	file->users++;
	file->writebacks--;
	files->ops->wake_waiters(file);
	files->ops->pump(files);
	file_put(file);
}

/* Has the file looked at by writeback_pump. */
static void writeback_want_flush(struct file *file)
{
	struct list *flush = file->files->flush;

	if (list_empty(&file->flush_link) && file->dirty_count)
		list_add(&flush[file_is_small(file)], &file->flush_link);
}

void writeback_flush(struct file *file, uint64_t stamp, bool sync, bool final)
{
	if (stamp > file->flush_stamp)
		file->flush_stamp = stamp;
	file->sync |= sync;
	file->final = final;
	writeback_want_flush(file);
}

void writeback_prepared(struct file *file)
{
	file->preparing = false;
	if (list_empty(&file->dirty)) {
		file->sync = false;
		file->batch_sectors = 0;
	} else if (list_entry(file->dirty.next, struct block, link)->stamp <=
		   file->flush_stamp) {
		writeback_want_flush(file);
	}
}

unsigned writeback_collect_most(const struct writeback *wb, unsigned most)
{
	struct block *block = block_find(wb->file, wb->first);
	bool bad_place = block && block->bad_place;
	unsigned n = 0;

	while (block && block->index == wb->first + n && block->dirty &&
	       !block->wb && block->bad_place == bad_place && n < most) {
		n++;
		block = block->next;
	}
	return n;
}

unsigned writeback_collect(const struct writeback *wb)
{
	return writeback_collect_most(wb, writeback_most(wb));
}

/* ---- Disk ---- */

int writeback_add_segment(struct writeback *wb, uint64_t sector, uint64_t n,
			  bool known)
{
	struct writeback_segment *last;

	if (wb->segments) {
		last = &wb->segment[wb->segments - 1];
		if (last->sector + last->n == sector && last->known == known) {
			last->n += n;
			return 0;
		}
	}
	if (wb->segments == writeback_segments(wb))
		return -E2BIG;
	last = &wb->segment[wb->segments++];
	last->sector = sector;
	last->n = n;
	last->known = known;
	last->failed = false;
	return 0;
}

void writeback_segment_done(struct writeback_segment *segment)
{
	const struct disk_request *req = &segment->req.disk;
	struct writeback *wb = segment->wb;

	wb->files->policy->written(wb->files->fs, req->sector, req->sectors);
	if (req->result) {
		wb->rc = -EIO;
		wb->failed = segment->failed = true;
		wb->class = fault_class(req->op, req->result);
		msg_error("%s: sector %llu cannot be written",
			  wb->files->fs->disk->name,
			  (unsigned long long)req->sector);
		bad_stretch_failed(wb->files, req->sector, req->sectors);
	} else {
		wb->files->written_bytes += req->sectors * SECTOR_BYTES;
	}
	if (--wb->outstanding == 0)
		wb->written(wb, wb->rc);
}

static void writeback_written_one(struct disk_request *req)
{
	writeback_segment_done(req->owner);
}

/* Lists the buffers of sectors [off, off + n) of the write-back; returns their
 * number. */
static unsigned writeback_iov(struct writeback *wb, uint64_t off, uint64_t n,
			struct iovec *iov)
{
	unsigned used = 0;
	uint64_t part;

	while (n) {
		part = BLOCK_SECTORS - off % BLOCK_SECTORS;
		part = part < n ? part : n;
		iov[used].iov_base = (uint8_t *)wb->data[off / BLOCK_SECTORS] +
				     off % BLOCK_SECTORS * SECTOR_BYTES;
		iov[used++].iov_len = part * SECTOR_BYTES;
		off += part;
		n -= part;
	}
	return used;
}

void writeback_prepare_requests(struct writeback *wb, enum queue_class class,
		  void (*written)(struct writeback *wb, int rc))
{
	struct writeback_segment *segment;
	struct iovec *iov = wb->iov;
	uint64_t off = 0;
	unsigned i, used;

	wb->written = written;
	wb->outstanding = wb->segments;
	for (i = 0; i < wb->segments; i++) {
		segment = &wb->segment[i];
		used = writeback_iov(wb, off, segment->n, iov);
		segment->wb = wb;
		segment->req = (struct queue_request){
			.disk = {
				.op = DISK_WRITE,
				.sector = segment->sector,
				.sectors = (uint32_t)segment->n,
				.iov = iov,
				.iov_n = used,
			},
			.class = class,
		};
		iov += used;
		off += segment->n;
	}
}

void writeback_submit(struct writeback *wb, struct writeback_segment *segment,
		enum queue_class class)
{
	segment->req.class = class;
	segment->req.disk.done = writeback_written_one;
	segment->req.disk.owner = segment;
	queue_submit(wb->files->fs->queue, &segment->req);
}

void writeback_write(struct writeback *wb, enum queue_class class,
	       void (*written)(struct writeback *wb, int rc))
{
	unsigned i;

	writeback_prepare_requests(wb, class, written);
	if (wb->kind == WB_DIRECT && wb->files->policy->choose_place(wb))
		return;
	for (i = 0; i < wb->segments; i++)
		writeback_submit(wb, &wb->segment[i], class);
}
