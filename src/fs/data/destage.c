/*
 * destage.c - writes logged data to its own place.
 *
 * A pinned block has content that the tree has the checksum of, but that is on
 * disk only in the log.  Pinned blocks are written to their extents, neighbours
 * together, when the log needs room, the pool is short, the block is old, or at
 * unmount.  Then their log pins are given up.
 *
 * 1. A block is not destaged before its log record is durable: after a crash
 * its
 *    place would not match the old checksum.  From then on the content depends
 *    on that record (log_depend_on).
 * 2. It needs neither log nor new space: the log can always be emptied.
 * 3. Reads are served from memory until the write is over.
 */
#include "fs/data/destage.h"
#include "fs/data/dirty_block.h"
#include "fs/data/failure.h"
#include "fs/data/bmap.h"
#include "fs/data/file.h"
#include "fs/data/file_sync.h"
#include "fs/data/writeback.h"
#include "fs/data/writeback_policy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/msg.h"

#define DESTAGE_BLOCKS 512u
#define DESTAGE_BATCH 128u		/* at least */
#define DESTAGE_PART 8u		/* of the pool */
#define DESTAGE_EARLY_PERCENT 40u
#define DESTAGE_PERCENT 60u
#define DESTAGE_URGENT_PERCENT 80u

/* ---- One write-back ---- */

static bool destage_may(const struct block *block, uint64_t durable)
{
	return block->pin && !block->wb && !block->bad_place &&
	       block->pin->seq <= durable;
}

/* Blocks it looks at. */
static unsigned destage_most(const struct writeback *wb)
{
	return wb->for_gap ? wb->files->policy->gap_blocks(wb->file) :
			     DESTAGE_BLOCKS;
}

static int destage_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	struct log *log = tree_log(txn->fs->tree);
	uint64_t durable = log_durable_seq(log), newest = 0;
	struct block *block = block_find(wb->file, wb->first);
	uint64_t sector = wb->first * BLOCK_SECTORS, end, stop;
	unsigned n = 0, most = destage_most(wb);
	struct extent extent;
	int rc;

	while (block && block->index == wb->first + n && n < most &&
	       destage_may(block, durable)) {
		newest = block->pin->seq > newest ? block->pin->seq : newest;
		n++;
		block = block->next;
	}
	wb->segments = 0;
	end = sector + (uint64_t)n * BLOCK_SECTORS;
	while (sector < end) {
		rc = bmap_extent(txn, wb->file->ino, sector, &extent);
		if (rc == -ENOENT || (rc == 0 && extent.off > sector))
			return -EUCLEAN;
		if (rc)
			return rc;
		stop = extent.off + extent.n;
		stop = stop < end ? stop : end;
		if (writeback_add_segment(wb, addr_sector(extent.addr) +
			    (sector - extent.off), stop - sector, true))
			break;
		sector = stop;
		if (tree_txn_room(txn->tree_txn) < 2 * TRAX_MAX_LEVEL)
			break;
	}
	n = (unsigned)(sector / BLOCK_SECTORS - wb->first);
	stop = (uint64_t)n * BLOCK_SECTORS;
	for (wb->n = 0; wb->n < wb->segments && stop; wb->n++) {
		if (wb->segment[wb->n].n > stop)
			wb->segment[wb->n].n = stop;
		stop -= wb->segment[wb->n].n;
	}
	wb->segments = wb->n;
	wb->n = n;
	if (n) {
		log_depend_on(log, newest);
		writeback_claim(wb);
	}
	return 0;
}

static void destage_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc) {
		destage_failed(wb, rc);
		return;
	}
	if (!wb->n) {
		writeback_end(wb);
		return;
	}
	if (!wb->for_gap ||
	    !wb->files->policy->gap_may(wb->file, WB_DESTAGE) ||
	    !wb->files->policy->gap_queue(wb, destage_written))
		writeback_write(wb, QUEUE_WRITE_BACK, destage_written);
	writeback_pump(wb->files);
}

static const struct fs_txn_type destage_type = {
	.name = "destage",
	.bounds = { .nodes = 48 },
	.stages = 60,
	.run = destage_run,
	.end = destage_end,
};

/* ---- Which ---- */

/* A write-back of this file is looking at this block already. */
static bool destage_is_started(const struct file *file, uint64_t index)
{
	const struct list *destages = &file->files->destages, *pos;
	const struct writeback *wb;

	list_for_each(pos, destages) {
		wb = list_entry(pos, struct writeback, link);
		if (wb->file == file && !wb->claimed &&
		    index >= wb->first && index < wb->first + destage_most(wb))
			return true;
	}
	return false;
}

/* Starts write-backs for what is due in a file. */
static bool destage_pump_file(struct file *file, uint64_t durable,
			      unsigned *left)
{
	struct files *files = file->files;
	struct block *block = file->head;
	bool commit = false, started = false;
	uint64_t skip = 0;
	struct excl_lock *excl;
	struct writeback *wb;

	excl = list_first(&file->excl_locks, struct excl_lock, link);
	if ((excl && excl->active) || file_destage_pauses(file))
		return false;
	for (; block && *left; block = block->next) {
		if (!block->pin || block->wb || block->index < skip ||
		    block->pin->seq > files->destage_seq)
			continue;
		commit |= block->pin->seq > durable;
		if (!destage_may(block, durable) ||
		    destage_is_started(file, block->index))
			continue;
		wb = writeback_new(file, WB_DESTAGE, block->index);
		if (!wb)
			break;
		skip = block->index + DESTAGE_BLOCKS;
		(*left)--;
		started = true;
		if (fs_txn_start(files->fs, &destage_type, NULL, wb)) {
			file->users++;
			destage_failed(wb, -ENOMEM);
			file->users--;
			return true;
		}
	}
	if (commit)
		files_commit(files);
	return started;
}

void destage_queue_for_gaps(struct file *file, unsigned *left)
{
	struct files *files = file->files;
	uint64_t durable = log_durable_seq(tree_log(files->fs->tree));
	struct block *block = block_at_or_after(file, file->gap_cursor);
	struct writeback *wb;

	for (; block && *left;
	     block = block_at_or_after(file, file->gap_cursor)) {
		(*left)--;
		file->gap_cursor = block->index + 1;
		if (!destage_may(block, durable) || block->dirty ||
		    destage_is_started(file, block->index))
			continue;
		if (!files->policy->gap_may(file, WB_DESTAGE) ||
		    files->destages_busy >= files->small_wbs / 2)
			return;
		wb = writeback_new_for_gap(file, block->index);
		if (!wb)
			return;
		file->gap_cursor = block->index +
				   files->policy->gap_blocks(file);
		if (fs_txn_start(files->fs, &destage_type, NULL, wb)) {
			file->users++;
			writeback_end(wb);
			file->users--;
			return;
		}
	}
	if (!block)
		file->gap_cursor = 0;
}

/* The log asks early and often; writing many at once is cheaper. */
static bool destage_pays(const struct files *files)
{
	unsigned fill = log_fill_percent(tree_log(files->fs->tree));
	size_t batch = pool_count(files->dirty_pool) / DESTAGE_PART;

	if (batch < DESTAGE_BATCH)
		batch = DESTAGE_BATCH;
	if (fill < DESTAGE_EARLY_PERCENT && files->policy->gap_destages(files))
		return false;
	if (fill >= DESTAGE_EARLY_PERCENT)
		batch = DESTAGE_BATCH;
	return files->pinned_count >= batch || fill >= DESTAGE_URGENT_PERCENT ||
	       (fill >= DESTAGE_PERCENT &&
		files->pinned_count >= DESTAGE_BATCH / 4);
}

bool destage_is_wanted(const struct files *files)
{
	return files->destage_seq &&
	       log_oldest_pinned(tree_log(files->fs->tree)) <=
		       files->destage_seq;
}

/* As long as what was asked for before is on its way, what comes meanwhile is
 * left for the next time, when it is many again. */
static void destage_ask(struct files *files, uint64_t seq)
{
	if (seq > files->destage_seq &&
	    (!destage_is_wanted(files) ||
	     files->destages_busy == files->gap_queued_destages))
		files->destage_seq = seq;
}

void destage_now(struct files *files)
{
	destage_ask(files, log_durable_seq(tree_log(files->fs->tree)));
}

bool destage_pump(struct files *files)
{
	uint64_t durable = log_durable_seq(tree_log(files->fs->tree));
	unsigned busy, left;
	struct list *pos;
	bool started = false;
	size_t n = 0;

	if (tree_failed(files->fs->tree))
		return false;
	if (files->destage_wanted_seq && destage_pays(files)) {
		destage_ask(files, files->destage_wanted_seq);
		files->destage_wanted_seq = 0;
	}
	if (destage_is_wanted(files))
		files->policy->recall_destages(files);
	busy = files->destages_busy;
	if (!files->destage_seq || busy >= DESTAGE_WBS)
		return false;
	if (files->pinned_count == 0) {
		files->destage_seq = 0;
		return false;
	}
	left = DESTAGE_WBS - busy;
	list_for_each(pos, &files->pinned_files)
		n++;
	while (n-- && left && !list_empty(&files->pinned_files)) {
		pos = files->pinned_files.next;
		list_del(pos);
		list_add(&files->pinned_files, pos);
		started |= destage_pump_file(list_entry(pos, struct file,
						     pinned_link),
					  durable, &left);
	}
	return started;
}

void destage_want(void *arg, uint64_t seq)
{
	struct files *files = arg;

	files->destage_wanted_seq = seq;
	if (!list_empty(&files->log_unpins))
		files_commit(files);
	writeback_pump(files);
}
