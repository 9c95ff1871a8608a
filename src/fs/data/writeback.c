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
 *    write-back's.
 * 2. Of a file one write-back at a time looks for its place; so blocks that no
 *    write-back has claimed don't change their mapping meanwhile.
 * 3. Data of a claimed block does not change: a writer gets a new buffer.
 *
 * A write's life, with the function of each step:
 *
 *   file_write        write.c        the operation gets its struct io
 *   write_step        write.c        shared lock; waits while memory is short
 *   write_blocks      write.c        room reserved, old content read where a
 *                                    part of a block is written, data copied
 *   block_dirty       dirty_block.c  the block is dirty; the user is answered
 *   writeback_flush   writeback.c    it is to be written: age (files_scan),
 *                                    fsync (sync_start), a stretch complete
 *                                    (writeback_stream), short memory
 *   writeback_pump    writeback.c    starts the write-backs that may start
 *   prepare_run       writeback.c    transaction: kind, and a place if needed
 *   writeback_write   writeback.c    requests to the queue; place and gaps by
 *                                    the policy (writeback_policy.h)
 *   direct_written    writeback.c    the data is on the disk
 *   commit_run        writeback.c    transaction: extents and checksums
 *   logged_run        writeback.c    or: extents and data, in one log record
 *   tree_commit       tree.c         the log record is made durable: by age,
 *                                    or for fsync (fsync_commit)
 *   destage_pump      destage.c      logged data is written to its extents
 *   destage_written   failure.c      its log pin is dropped
 */
#include "fs/data/failure.h"
#include "fs/data/prealloc.h"
#include "fs/data/writeback_policy.h"
#include "fs/table/replica.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/msg.h"

#define PRESSING_PART 4u	/* of the pool is dirty: the cause */
#define YOUNG_PART 8u	/* of the pool: what became dirty last is left alone */
#define STREAM_MIN_BLOCKS 256u	/* write out at least 1 MiB of a stream */
#define LOGGED_LOG_BYTES (LOG_BLOCKS * BLOCK_BYTES + (16u << 10) + \
			  REPLICA_LOG_BYTES)

/* A segment may begin and end inside a block. */
#define IOVS(blocks) ((blocks) + 2 * WB_SEGMENTS)

int writebacks_new(struct files *files)
{
	size_t small = pool_count(files->dirty_pool) / SMALL_WB_SHARE;
	size_t most, i;
	struct writeback *wb;
	struct iovec *iov;
	void **data;

	small = small < SMALL_WBS ? small : SMALL_WBS;
	files->writebacks =
		calloc(LARGE_WBS + small, sizeof(*files->writebacks));
	data = calloc(LARGE_WBS * WB_BLOCKS + small * SMALL_WB_BLOCKS,
		      sizeof(*data));
	iov = calloc(LARGE_WBS * IOVS(WB_BLOCKS) +
		     small * IOVS(SMALL_WB_BLOCKS), sizeof(*iov));
	files->small_wbs = (unsigned)small;
	files->wb_data = data;
	files->wb_iov = iov;
	if (!files->writebacks || !data || !iov)
		return -ENOMEM;
	for (i = 0; i < LARGE_WBS + small; i++) {
		wb = &files->writebacks[i];
		wb->small = i >= LARGE_WBS;
		wb->data = data;
		wb->iov = iov;
		most = wb->small ? SMALL_WB_BLOCKS : WB_BLOCKS;
		data += most;
		iov += IOVS(most);
		list_add(&files->wb_free[wb->small], &wb->link);
	}
	return 0;
}

static unsigned writeback_most(const struct writeback *wb)
{
	return wb->small ? SMALL_WB_BLOCKS : WB_BLOCKS;
}

/* ---- Life of a write-back ---- */

static bool file_is_small(const struct file *file)
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
		block_keep(file, block);
	else	/* a destage's content is older than anything dirty */
		block_redirty(file, block,
			      wb->kind == WB_DESTAGE ? 0 : wb->stamp);
}

/* Sectors of the segments from where nothing is committed go back. */
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
	list_add(&files->wb_free[wb->small], &wb->link);
	files->wbs_busy--;
	file->data_writebacks -= wb->kind != WB_DESTAGE;
	files->destages_busy -= wb->kind == WB_DESTAGE;
	files->large_data_busy -= wb->kind != WB_DESTAGE && !wb->small;
	prealloc_settle(file);
	file->users++;
	file->writebacks--;
	file_wake_waiters(file);
	writeback_pump(files);
	file_put(file);
}

static void writeback_want_flush(struct file *file)
{
	struct list *flush = file->files->flush;

	if (list_empty(&file->flush_link) && file->dirty_count)
		list_add(&flush[file_is_small(file)], &file->flush_link);
}

/* The next write-back of the file may look for its place. */
static void writeback_prepared(struct file *file)
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

/* At most `most`; blocks with a bad place are a write-back
 * of their own. */
static unsigned collect(const struct writeback *wb, unsigned most)
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
	return collect(wb, writeback_most(wb));
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
	if (wb->segments == WB_SEGMENTS)
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
	}
	else
		wb->files->written_bytes += req->sectors * SECTOR_BYTES;
	if (--wb->outstanding == 0)
		wb->written(wb, wb->rc);
}

static void writeback_written_one(struct disk_request *req)
{
	writeback_segment_done(req->owner);
}

/* The buffers of sectors [off, off + n) of the write-back. */
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

/* ---- What all transactions that map data share ---- */

/* Segments as extents of the file, from sector `off` of the file on. */
static unsigned writeback_extents(const struct writeback *wb,
				  struct extent *list)
{
	uint64_t off = wb->first * BLOCK_SECTORS;
	unsigned i;

	for (i = 0; i < wb->segments; i++) {
		list[i] = (struct extent){
			.off = off,
			.n = wb->segment[i].n,
			.addr = addr_make(0, wb->segment[i].sector),
			.flags = wb->segment[i].known ? EXTENT_KNOWN : 0,
		};
		off += wb->segment[i].n;
	}
	return wb->segments;
}

static const void *writeback_data(const struct writeback *wb, unsigned i)
{
	if (wb->claimed)
		return wb->data[i];
	return block_find(wb->file, wb->first + i)->data;
}

static uint32_t writeback_sum(void *arg, unsigned i)
{
	struct writeback *wb = arg;

	return csum_block(writeback_data(wb, wb->done + i));
}

/* The INLINE item goes when block 0 is mapped. */
static int writeback_inline_probe(struct fs_txn *txn,
				  const struct writeback *wb, bool *there)
{
	struct tree_item item;
	int rc;

	*there = false;
	if (!wb->file->has_inline)
		return 0;
	rc = tree_get(txn->tree_txn, key_make(wb->file->ino, ITEM_INLINE, 0),
		      &item);
	*there = rc == 0;
	return rc == -ENOENT ? 0 : rc;
}

static void writeback_size(const struct writeback *wb, unsigned n,
			   struct inode_item *item)
{
	uint64_t end = (wb->first + wb->done + n) * BLOCK_BYTES;

	if (end > wb->file->size)
		end = wb->file->size;
	if (end > le64_get(item->size))
		item->size = le64_put(end);
}

/*
 * Maps the next n blocks of a write-back to its segments, with sums.  Returns
 * the blocks mapped, or 0 and *rc.
 */
static unsigned writeback_map(struct fs_txn *txn, struct writeback *wb,
			      unsigned n, bool remap, int *rc)
{
	struct file *file = wb->file;
	uint64_t first = wb->first + wb->done;
	struct extent list[WB_SEGMENTS];
	struct bmap_sums sums = {
		.first = first, .sum = writeback_sum, .arg = wb,
	};
	struct bmap_plan plan;
	struct replica_drop drop;
	struct inode_item item;
	bool is_inline;
	int err;

	*rc = inode_get(txn, file->ino, &item);
	err = writeback_inline_probe(txn, wb, &is_inline);
	if (!*rc)
		*rc = replica_probe(txn, file->ino, &item, first, &n, &drop);
	if (!*rc || *rc == -EAGAIN)
		*rc = err ? err : *rc;
	plan.n = (uint64_t)n * BLOCK_SECTORS;
	if (*rc && *rc != -EAGAIN)
		return 0;
	if (remap) {
		err = bmap_probe(txn, file->ino, first * BLOCK_SECTORS,
				(uint64_t)n * BLOCK_SECTORS, list,
				writeback_extents(wb, list), &plan);
		*rc = err ? err : *rc;
		if (err && err != -EAGAIN)
			return 0;
	}
	sums.n = (unsigned)(plan.n / BLOCK_SECTORS);
	err = bmap_sums_probe(txn, file->ino, &sums);
	*rc = err ? err : *rc;
	if (*rc)
		return 0;
	replica_apply(txn, file->ino, &drop);
	if (remap)
		bmap_apply(txn, file->ino, &plan, &item);
	bmap_sums_apply(txn, file, &sums);
	if (is_inline && wb->first == 0)
		tree_del(txn->tree_txn, key_make(file->ino, ITEM_INLINE, 0));
	writeback_size(wb, sums.n, &item);
	inode_put(txn, file->ino, &item);
	if (wb->first == 0) {
		file->has_inline = false;
		file->no_inline = false;
	}
	return sums.n;
}

/* ---- DIRECT and IN_PLACE: the transaction ---- */

static int commit_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	unsigned n = wb->n - wb->done;
	int rc;

	wb->txn = txn;
	if (wb->rc)
		return wb->rc;
	if (n > TXN_BLOCKS)
		n = TXN_BLOCKS - (wb->first + wb->done) % CHUNK_BLOCKS;
	wb->want = writeback_map(txn, wb, n, true, &rc);
	return rc;
}

static void commit_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	struct block *block;
	unsigned end = wb->done + wb->want;

	if (rc) {
		fs_txn_finish(txn, 0);
		writeback_failed(wb, rc);
		return;
	}
	for (; wb->done < end; wb->done++) {
		block = block_find(file, wb->first + wb->done);
		block->bad_place = false;
		block->failures = block->destage_failures = 0;
		block_unreserve(file, block);
		if (block->pin)
			log_pin_drop_later(file, block, seq);
		writeback_release(wb, wb->done, true);
	}
	if (wb->done < wb->n) {
		fs_txn_restart(txn);
		return;
	}
	wb->taken = false;
	fs_txn_finish(txn, 0);
	writeback_end(wb);
}

static const struct fs_txn_type commit_type = {
	.name = "map data",
	.bounds = { .nodes = 60,
		    .log_bytes = BMAP_LOG_BYTES + REPLICA_LOG_BYTES },
	.paths = 14 + REPLICA_PATHS,
	.changes = 10 + REPLICA_PATHS,
	.stages = 60,
	.run = commit_run,
	.end = commit_end,
};

static void direct_written(struct writeback *wb, int rc)
{
	struct fs *fs = wb->files->fs;
	struct block *block;
	unsigned i;

	wb->files->policy->place_over(wb);
	if (rc && wb->kind == WB_IN_PLACE)
		for (i = 0; i < wb->n; i++) {
			block = block_find(wb->file, wb->first + i);
			block->bad_place = true;
		}
	if (!rc)
		rc = fs_txn_start(fs, &commit_type, NULL, wb);
	if (rc)
		writeback_failed(wb, rc);
}

/* ---- Where it goes: the first transaction, which changes nothing ---- */

enum mapping { UNMAPPED, WRITTEN, UNWRITTEN };

/*
 * What the write-back's first blocks are mapped to; shortens *n to those that
 * are mapped alike, and for UNWRITTEN and `places` lists where.
 */
static int writeback_mapping(struct fs_txn *txn, struct writeback *wb,
			     unsigned *n, bool places, enum mapping *mapping)
{
	uint64_t off = wb->first * BLOCK_SECTORS, sector = off;
	uint64_t end = off + (uint64_t)*n * BLOCK_SECTORS, stop;
	struct extent extent;
	enum mapping kind;
	int rc;

	if (places)
		wb->segments = 0;
	for (; sector < end; sector = stop) {
		rc = bmap_extent(txn, wb->file->ino, sector, &extent);
		if (rc && rc != -ENOENT)
			return rc;
		stop = rc || extent.off > end ? end : extent.off;
		kind = UNMAPPED;
		if (stop <= sector) {
			kind = extent.flags & EXTENT_UNWRITTEN ? UNWRITTEN :
								 WRITTEN;
			stop = extent.off + extent.n;
			stop = stop < end ? stop : end;
		}
		if (sector == off)
			*mapping = kind;
		if (kind != *mapping || (places && kind != UNMAPPED &&
		    writeback_add_segment(wb, addr_sector(extent.addr) +
			    (sector - extent.off), stop - sector,
			    extent.flags & EXTENT_KNOWN)))
			break;
		if (tree_txn_room(txn->tree_txn) < 2 * TRAX_MAX_LEVEL) {
			sector = stop;
			break;
		}
	}
	*n = (unsigned)((sector - off) / BLOCK_SECTORS);
	return *n ? 0 : -EUCLEAN;
}

/* Segments may reach beyond what a shortened write-back has. */
static void writeback_cut(struct writeback *wb, unsigned n)
{
	uint64_t left = (uint64_t)n * BLOCK_SECTORS;
	unsigned i;

	for (i = 0; i < wb->segments && left; i++) {
		if (wb->segment[i].n > left)
			wb->segment[i].n = left;
		left -= wb->segment[i].n;
	}
	wb->segments = i;
}

/* Where the file ends on disk, if the write-back goes on there; and where in
 * the file the hole begins that it fills. */
static int writeback_after(struct fs_txn *txn, struct writeback *wb,
			   uint64_t *after)
{
	const struct file *file = wb->file;
	uint64_t off = wb->first * BLOCK_SECTORS;
	struct extent extent;
	int rc;

	*after = 0;
	wb->hole = off;
	if (file->tail_addr && file->tail_off == off) {
		*after = file->tail_addr;
		return 0;
	}
	rc = bmap_extent_before(txn, file->ino, off, &extent);
	if (rc == 0 && extent.off + extent.n == off)
		*after = addr_sector(extent.addr) + extent.n;
	if (rc == 0)
		wb->hole = extent.off + extent.n;
	if (rc == -ENOENT)
		wb->hole = 0;
	return rc == -ENOENT ? 0 : rc;
}

static void writeback_taken(struct writeback *wb)
{
	const struct writeback_segment *last = &wb->segment[wb->segments - 1];

	wb->taken = true;
	wb->file->tail_off = (wb->first + wb->want) * BLOCK_SECTORS;
	wb->file->tail_addr = last->sector + last->n;
}

/* The places that were kept for the write-back, if there are any; `fresh`: its
 * blocks have had no place, and some may be kept now.  `taken` says whether
 * there were.  0, FS_TXN_WAIT or an error. */
static int writeback_take_kept(struct fs_txn *txn, struct writeback *wb,
			       uint64_t after, bool fresh)
{
	uint32_t group;
	int rc;

	if (!prealloc_use(wb)) {
		rc = fresh ? prealloc_make(wb, after, &group) : -ENOSPC;
		if (rc == -EAGAIN)
			return fs_txn_wait_group(txn, group);
		if (rc || !prealloc_use(wb))
			return 0;
	}
	wb->may_move = wb->follows = false;
	writeback_taken(wb);
	return 0;
}

/* Room for the write-back's first `want` blocks or, if there is not so much in
 * few enough pieces, fewer.  0, FS_TXN_WAIT or an error. */
static int writeback_take(struct fs_txn *txn, struct writeback *wb,
			  uint64_t after, bool fresh)
{
	struct alloc_piece pieces[WB_SEGMENTS];
	struct fs *fs = wb->files->fs;
	struct alloc_want want = {
		.goal = wb->file->goal, .after = after,
		.dir = wb->file->parent, .stream = wb->stream,
		.batch = wb->file->batch_sectors,
	};
	uint64_t sum = 0;
	uint32_t group;
	int rc, i;

	rc = writeback_take_kept(txn, wb, after, fresh);
	if (rc || wb->taken)
		return rc;
	for (;;) {
		want.sectors = (uint64_t)wb->want * BLOCK_SECTORS;
		rc = alloc_take(fs->alloc, &want, pieces, WB_SEGMENTS, &group);
		if (rc == -EAGAIN)
			return fs_txn_wait_group(txn, group);
		if (rc == -ENOSPC && preallocs_release(wb->files))
			continue;
		if (rc == -ENOSPC && replica_room(txn, want.sectors))
			return FS_TXN_WAIT;
		if (rc == -ENOSPC && !wb->waited) {
			wb->waited = true;
			return fs_txn_wait_checkpoint(txn);
		}
		if (rc > 0)
			break;
		if ((rc != -ENOSPC && rc != -E2BIG) || wb->want == 1)
			return rc;
		wb->want = (wb->want + 1) / 2;
	}
	wb->segments = 0;
	for (i = 0; i < rc; i++) {
		wb->segment[i].sector = pieces[i].sector;
		wb->segment[i].n = pieces[i].n;
		wb->segment[i].known = pieces[i].known;
		wb->segment[i].failed = false;
		sum += pieces[i].n;
	}
	wb->segments = (unsigned)rc;
	wb->may_move = rc == 1 && !pieces[0].whole_tracks &&
			pieces[0].sector != after;
	wb->follows = pieces[0].follows;
	wb->want = (unsigned)(sum / BLOCK_SECTORS);
	writeback_taken(wb);
	return 0;
}

/* Is it better to write these blocks to a new place than to their own?  Only
 * when that takes nothing that is promised to others. */
static bool writeback_replaces(const struct writeback *wb, unsigned n)
{
	struct fs *fs = wb->files->fs;
	struct space *space = tree_space(fs->tree);
	uint64_t sectors = (uint64_t)n * BLOCK_SECTORS;
	struct block *block = block_find(wb->file, wb->first);

	if (!block->bad_place &&
	    sectors * 2 < alloc_track_sectors(fs->alloc, wb->file->goal))
		return false;
	if (space_reserve(space, sectors))
		return false;
	space_release(space, sectors);
	return true;
}

static int prepare_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	struct inode_item item;
	enum mapping mapping = UNMAPPED;
	unsigned n = collect(wb, wb->n ? wb->n : writeback_most(wb));
	uint64_t after;
	int rc, err;

	if (!n)
		return 0;
	err = inode_get(txn, wb->file->ino, &item);
	rc = writeback_mapping(txn, wb, &n, true, &mapping);
	if (rc || err)
		return rc && rc != -EAGAIN ? rc : err ? err : rc;
	wb->file->parent = le64_get(item.parent);
	wb->file->goal = addr_sector(le64_get(item.goal));
	wb->kind = mapping == UNWRITTEN ? WB_IN_PLACE : WB_DIRECT;
	if (mapping == UNWRITTEN &&
	    block_find(wb->file, wb->first)->bad_place)
		wb->kind = WB_DIRECT;
	if (mapping == WRITTEN && !writeback_replaces(wb, n)) {
		/* It is logged already. */
		if (block_is_logged(block_find(wb->file, wb->first)))
			return -ENOSPC;
		wb->kind = WB_LOGGED;
	}
	if (wb->kind == WB_DIRECT) {
		rc = writeback_after(txn, wb, &after);
		if (rc)
			return rc;
		if (!wb->want || wb->want > n)
			wb->want = n;
		rc = writeback_take(txn, wb, after, mapping == UNMAPPED);
		if (rc == -ENOSPC && mapping == WRITTEN &&
		    !block_is_logged(block_find(wb->file, wb->first)))
			wb->kind = WB_LOGGED;
		else if (rc)
			return rc;
	}
	if (wb->kind == WB_IN_PLACE)
		writeback_cut(wb, n);
	wb->n = wb->kind == WB_DIRECT ? wb->want : n;
	if (wb->kind != WB_LOGGED)
		writeback_claim(wb);
	return 0;
}

static void logged_start(struct writeback *wb);

static void prepare_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	enum queue_class class = file->sync ? QUEUE_COMMIT : QUEUE_WRITE_BACK;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc || !(wb->claimed || wb->kind == WB_LOGGED)) {
		writeback_prepared(file);
		if (rc)
			writeback_failed(wb, rc);
		else
			writeback_end(wb);
		return;
	}
	if (wb->kind == WB_LOGGED) {
		logged_start(wb);
		return;
	}
	writeback_prepared(file);
	if (class == QUEUE_COMMIT ||
	    !wb->files->policy->gap_may(file, wb->kind) ||
	    !wb->files->policy->gap_queue(wb, direct_written))
		writeback_write(wb, class, direct_written);
	writeback_pump(wb->files);
}

static const struct fs_txn_type prepare_type = {
	.name = "place data",
	.bounds = { .nodes = 48 },
	.stages = 60,
	.run = prepare_run,
	.end = prepare_end,
};

/* ---- LOGGED ---- */

static void logged_data(struct fs_txn *txn, struct writeback *wb, unsigned n)
{
	struct block *block = block_find(wb->file, wb->first);
	struct iovec iov[LOG_BLOCKS];
	uint64_t sums[LOG_BLOCKS];
	unsigned i;

	for (i = 0; i < n; i++, block = block->next) {
		iov[i].iov_base = block->data;
		iov[i].iov_len = BLOCK_BYTES;
		sums[i] = csum(block->data, BLOCK_BYTES);
	}
	tree_log_data(txn->tree_txn, wb->file->ino, wb->first, n, sums, iov, n);
}

static int logged_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	enum mapping mapping = UNMAPPED;
	unsigned n = collect(wb, LOG_BLOCKS), mapped;
	uint64_t after;
	int rc;

	wb->txn = txn;
	wb->n = 0;
	if (wb->rc || !n)
		return wb->rc;
	rc = writeback_mapping(txn, wb, &n, !wb->taken, &mapping);
	if (rc)
		return rc;
	if (mapping == UNMAPPED && !wb->taken) {
		rc = writeback_after(txn, wb, &after);
		if (rc)
			return rc;
		wb->want = n;
		rc = writeback_take(txn, wb, after, true);
		if (rc)
			return rc;
	}
	if (mapping == UNMAPPED && n > wb->want)
		n = wb->want;
	if (mapping != UNMAPPED)
		writeback_cut(wb, n);
	mapped = writeback_map(txn, wb, n, mapping != WRITTEN, &rc);
	if (rc)
		return rc;
	logged_data(txn, wb, mapped);
	wb->n = mapped;
	return 0;
}

static void logged_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	struct files *files = wb->files;
	struct block *block;
	unsigned i;

	fs_txn_finish(txn, 0);
	writeback_prepared(file);
	if (rc) {
		writeback_failed(wb, rc);
		return;
	}
	if (wb->n) {
		wb->pin->seq = seq;
		list_add(&files->log_pins, &wb->pin->link);
	}
	for (i = 0; i < wb->n; i++) {
		block = block_find(file, wb->first + i);
		log_pin_set(file, block, wb->pin);
		block->failures = 0;
		if (!block->bad_place)
			block->destage_failures = 0;
		/* There was no other place: the old one again. */
		block->bad_place = false;
		block_clean(file, block);
		block_unreserve(file, block);
	}
	if (wb->n)
		wb->pin = NULL;
	wb->done = wb->n;
	writeback_end(wb);
}

static const struct fs_txn_type logged_type = {
	.name = "log data",
	.bounds = { .nodes = 60, .log_bytes = LOGGED_LOG_BYTES },
	.paths = 10 + REPLICA_PATHS,
	.changes = 8 + REPLICA_PATHS,
	.stages = 60,
	.run = logged_run,
	.end = logged_end,
};

static void logged_start(struct writeback *wb)
{
	wb->kind = WB_LOGGED;
	wb->n = wb->segments = 0;
	wb->pin = abandon_alloc(wb->files->fs, sizeof(*wb->pin));
	if (wb->pin &&
	    !fs_txn_start(wb->files->fs, &logged_type, NULL, wb))
		return;
	writeback_prepared(wb->file);
	writeback_failed(wb, -ENOMEM);
}

/* ---- INLINE ---- */

static int inline_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	struct block *block = block_find(file, 0);
	struct inode_item item;
	struct tree_item old;
	int rc, err;

	wb->n = 0;
	if (!block || !block->dirty || block->wb)
		return 0;
	rc = inode_get(txn, file->ino, &item);
	err = tree_get(txn->tree_txn, key_make(file->ino, ITEM_INLINE, 0),
		       &old);
	if (err && err != -ENOENT)
		rc = rc && rc != -EAGAIN ? rc : err;
	if (rc)
		return rc;
	if (file->size > TRAX_MAX_INLINE_BYTES || file->no_inline ||
	    file->size == 0 || le64_get(item.sectors)) {
		file->no_inline = true;
		return 0;
	}
	tree_put(txn->tree_txn, key_make(file->ino, ITEM_INLINE, 0),
		 block->data, file->size);
	item.size = le64_put(file->size);
	inode_put(txn, file->ino, &item);
	file->has_inline = true;
	chunks_changed(file, 0, 1);
	wb->n = 1;
	return 0;
}

static void inline_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	struct block *block;

	fs_txn_finish(txn, 0);
	writeback_prepared(file);
	if (rc) {
		writeback_failed(wb, rc);
		return;
	}
	if (wb->n) {
		block = block_find(file, 0);
		block_clean(file, block);
		block_unreserve(file, block);
		if (block->pin)
			log_pin_drop_later(file, block, seq);
		block_drop_clean(file, block);
	}
	wb->done = wb->n;
	writeback_end(wb);
}

static const struct fs_txn_type inline_type = {
	.name = "inline data",
	.bounds = { .log_bytes = TRAX_MAX_INLINE_BYTES + 1024 },
	.paths = 2,
	.changes = 2,
	.run = inline_run,
	.end = inline_end,
};

/* ---- Which, and when ---- */

/* The next dirty block of a file that may be written; NULL: none now. */
static struct block *writeback_next(struct file *file)
{
	struct block *block = block_at_or_after(file, file->cursor);
	struct block *start = block;
	const bool pauses = file_destage_pauses(file);
	bool wrapped = !block;

	if (!block)
		block = file->head;
	while (block) {
		if (block->dirty && !block->wb &&
		    block->stamp <= file->flush_stamp &&
		    !(pauses && block_is_logged(block)))
			return block;
		block = block->next;
		if (!block && !wrapped) {
			block = file->head;
			wrapped = true;
		}
		if (block == start && wrapped)
			return NULL;
	}
	return NULL;
}

static bool writeback_is_inline(const struct file *file,
				const struct block *block)
{
	return file->size <= TRAX_MAX_INLINE_BYTES && file->size &&
	       !file->no_inline && block->index == 0 && !block->bad_place;
}

static bool writeback_start(struct file *file, struct block *block, bool stream)
{
	struct fs *fs = file->files->fs;
	const struct fs_txn_type *type = &prepare_type;
	enum writeback_kind kind = WB_DIRECT;
	struct writeback *wb;

	if (file->has_inline && block->index != 0)
		return false;
	if (writeback_is_inline(file, block)) {
		type = &inline_type;
		kind = WB_INLINE;
	} else if (file->sync && file->dirty_count <= SYNC_LOG_BLOCKS &&
		   !block->bad_place) {
		kind = WB_LOGGED;
	}
	wb = writeback_new(file, kind, block->index);
	if (!wb)
		return false;
	wb->stream = stream;
	file->preparing = true;
	if (kind == WB_LOGGED) {
		logged_start(wb);
	} else if (fs_txn_start(fs, type, NULL, wb)) {
		writeback_prepared(file);
		writeback_failed(wb, -ENOMEM);
	}
	return true;
}

static bool writebacks_may_start(const struct files *files, bool small)
{
	return small ? !list_empty(&files->wb_free[1]) :
		       files->large_data_busy < LARGE_DATA_WBS;
}

/*
 * May a new write-back of this file begin now?  Many small files go out at
 * once, so that they make up whole tracks; a large one waits for them
 * meanwhile, and grows, so that its stretches are long.
 */
static bool writeback_may_start(const struct file *file)
{
	const struct files *files = file->files;
	unsigned backs = files->wbs_busy - files->destages_busy -
			 (files->gap_queued - files->gap_queued_destages);

	return !file->preparing && !file_pauses(file) &&
	       file->data_writebacks - file->gap_queued < WBS_PER_FILE &&
	       !file_writeback_blocked(file) && file->loaded &&
	       writebacks_may_start(files, file_is_small(file)) &&
	       (file_is_small(file) || file->sync || backs < LARGE_DATA_WBS);
}

/* Starts one write-back of a file that is to be flushed; false: nothing to
 * start. */
static bool writeback_pump_file(struct file *file)
{
	struct block *oldest, *block;
	bool started;

	if (list_empty(&file->dirty)) {
		list_del(&file->flush_link);
		file->sync = false;
		file->batch_sectors = 0;
		return false;
	}
	oldest = list_entry(file->dirty.next, struct block, link);
	if (oldest->stamp > file->flush_stamp) {
		list_del(&file->flush_link);
		return false;
	}
	if (file->preparing) {
		list_del(&file->flush_link);
		return false;
	}
	if (!writeback_may_start(file))
		return false;
	block = file->has_inline ? block_find(file, 0) : writeback_next(file);
	if (!block || !block->dirty || block->wb)
		return false;
	file->cursor = block->index + 1;
	file->users++;
	started = writeback_start(file, block, !file->final);
	file->users--;
	return started;
}

void writeback_flush(struct file *file, uint64_t stamp, bool sync, bool final)
{
	if (stamp > file->flush_stamp)
		file->flush_stamp = stamp;
	file->sync |= sync;
	file->final = final;
	writeback_want_flush(file);
}

void writeback_stream(struct file *file)
{
	struct files *files = file->files;
	uint64_t track = alloc_track_sectors(files->fs->alloc, file->goal);
	uint64_t least = track / BLOCK_SECTORS + 1;
	size_t most = pool_count(files->dirty_pool) / 4;
	struct block *block;

	least = least < STREAM_MIN_BLOCKS ? STREAM_MIN_BLOCKS : least;
	least = least < most ? least : most;
	if (file->run_end - file->run_first < least ||
	    !writeback_may_start(file) || file->has_inline ||
	    tree_failed(files->fs->tree))
		return;
	block = block_at_or_after(file, file->run_first);
	while (block && (!block->dirty || block->wb))
		block = block->next;
	if (!block || block->index + least > file->run_end)
		return;
	file->run_first = block->index;
	writeback_start(file, block, true);
}

/*
 * Writes back the small files of all directories, one directory after the
 * other, except those that were written to of late: many at once, because then
 * they fill whole tracks, and in one sweep of the head.  Those that are young
 * may be deleted soon, or become large.  False: there are none.
 */
static bool writeback_sweep(struct files *files)
{
	uint64_t young = pool_count(files->dirty_pool) / YOUNG_PART;
	struct list *pos, *tmp;
	struct file *file;
	bool any = false;

	if (files->stamp < young)
		return false;
	list_for_each_safe(pos, tmp, &files->dirty_files) {
		file = list_entry(pos, struct file, dirty_link);
		if (!file_is_small(file) ||
		    file_stamp(file) + young > files->stamp)
			continue;
		any = true;
		if (file->flush_stamp < file_stamp(file))
			files_flush_group(file, files->stamp - young, false);
	}
	return any;
}

/*
 * Half of the pool is full.  Not while it is full of what is pinned or on its
 * way and little is dirty: a piece of a track would be logged, which frees
 * nothing, and the next would find it fuller yet.  Whatever write-back ends
 * then comes back here.
 */
static void writeback_pressure(struct files *files, struct file *oldest)
{
	size_t count = pool_count(files->dirty_pool);

	files->policy->recall_all(files);
	/* What comes later waits for its turn: one by one would be slow. */
	if (files->pinned_count > count / 4)
		destage_now(files);
	if (!oldest || (files->dirty_count < count / PRESSING_PART &&
			files->wbs_busy))
		return;
	if (oldest->dirty_count >= count / 16)
		writeback_flush(oldest, files->stamp, false,
				!oldest->vnode->opens);
	else if (!writeback_sweep(files))
		files_flush_group(oldest, UINT64_MAX, false);
}

/*
 * Before that, what fills many tracks goes when the disk has nothing else to
 * do: a sync then finds most of it written.  What users read comes first.
 */
static void writeback_early(struct files *files)
{
	if (files->dirty_count > pool_count(files->dirty_pool) / SWEEP_PART &&
	    !files->users_read && queue_idle(files->fs->queue))
		writeback_sweep(files);
}

/* What goes before anybody asks for it. */
static void writeback_unasked(struct files *files)
{
	size_t count = pool_count(files->dirty_pool);
	bool going = !list_empty(&files->flush[0]) ||
		     !list_empty(&files->flush[1]);

	if (buffers_free(files) <= count / 2)
		writeback_pressure(files, going ? NULL :
			      list_first(&files->dirty_files, struct file,
					 dirty_link));
	else if (!going)
		writeback_early(files);
}

/* Once around: each goes to the end, of the list where it belongs. */
static void writeback_pump_list(struct files *files, bool small)
{
	struct list *pos, *flush = &files->flush[small];
	struct file *file;

	files->pump_round++;
	while (writebacks_may_start(files, small) && !list_empty(flush)) {
		pos = flush->next;
		file = list_entry(pos, struct file, flush_link);
		if (file->pump_round == files->pump_round)
			break;
		file->pump_round = files->pump_round;
		list_del(pos);
		list_add(&files->flush[file_is_small(file)], pos);
		while (writeback_pump_file(file))
			;
	}
}

static void writeback_pump_once(struct files *files)
{
	writeback_unasked(files);
	writeback_pump_list(files, false);
	writeback_pump_list(files, true);
	destage_pump(files);
}

void writeback_pump(struct files *files)
{
	if (files->pumping) {
		files->pump_again = true;
		return;
	}
	files->pumping = true;
	do {
		files->pump_again = false;
		if (!tree_failed(files->fs->tree))
			writeback_pump_once(files);
		files->ops->run_writers(files);
	} while (files->pump_again);
	files->pumping = false;
}
