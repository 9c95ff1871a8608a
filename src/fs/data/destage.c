/*
 * destage.c - writes logged data to its own place.
 *
 * A pinned block has content whose checksum is in the tree, but which is on the
 * disk only in the log.  Pinned blocks are written to their extents, neighbours
 * together, when the log needs room, the pool is short, the block is old, or at
 * unmount.  Then their log pins are dropped.
 *
 * 1. A block is not destaged before its log record is durable: after a crash
 *    its place would not match the old checksum.  From then on the content
 *    depends on that record (log_depend_on).
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

/* Most blocks that one destage writes: 2 MiB, about a track. */
#define DESTAGE_BLOCKS 512u
/* Logged data is destaged when this many blocks are pinned, or the part
 * DESTAGE_PART of the pool if that is more: many at once are cheaper to
 * write. */
#define DESTAGE_BATCH 128u
#define DESTAGE_PART 8u
/* Fill of the log in percent: below 40 nothing is destaged by the way while
 * gaps take it; from 40 on DESTAGE_BATCH blocks are enough, from 60 on a
 * quarter of that, and from 80 on everything is destaged. */
#define DESTAGE_EARLY_PERCENT 40u
#define DESTAGE_PERCENT 60u
#define DESTAGE_URGENT_PERCENT 80u

/* ---- One write-back ---- */

static bool destage_may(const struct block *block, uint64_t durable)
{
	return block->pin && !block->wb && !block->bad_place &&
	       block->pin->seq <= durable;
}

/* Most blocks of a destage. */
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

/* The destage of this file that is about to claim this block; NULL: there is
 * none. */
static const struct writeback *destage_of(const struct file *file,
					  uint64_t index)
{
	const struct list *destages = &file->files->destages, *pos;
	const struct writeback *wb;

	list_for_each(pos, destages) {
		wb = list_entry(pos, struct writeback, link);
		if (wb->file == file && !wb->claimed &&
		    index >= wb->first && index < wb->first + destage_most(wb))
			return wb;
	}
	return NULL;
}

/* Blocks that one call looks at, and the time charged for each, in nanoseconds:
 * a miss of the processor's cache. */
#define LOOKS_MOST 2048u
#define LOOK_NS 40u
/* Charged for a destage that begins, in nanoseconds: it starts a
 * transaction. */
#define START_NS 3000u

/* What one call of destage_go_round may still do. */
struct destage_left {
	unsigned wbs, looks;
	bool commit;		/* it met blocks whose records must be durable
				 * first */
};

/* May blocks of the file be destaged now? */
static bool destage_may_file(const struct file *file)
{
	const struct excl_lock *excl =
		list_first(&file->excl_locks, struct excl_lock, link);

	return !(excl && excl->active) && !file_destage_pauses(file);
}

/* Begins the destage of a block and those behind it; false: not now. */
static bool destage_begin(struct file *file, uint64_t index)
{
	struct files *files = file->files;
	struct writeback *wb = writeback_new(file, WB_DESTAGE, index);

	if (!wb)
		return false;
	turn_charge(&files->fs->env->turn, TURN_DESTAGE, START_NS);
	if (!fs_txn_start(files->fs, &destage_type, NULL, wb))
		return true;
	file->users++;
	destage_failed(wb, -ENOMEM);
	file->users--;
	return false;
}

/* Starts write-backs for the due blocks of a file in order, from where the last
 * call ended; true: it has come to the file's end. */
static bool destage_pump_file(struct file *file, uint64_t durable,
			      struct destage_left *left)
{
	struct files *files = file->files;
	struct block *block = block_at_or_after(file, file->destage_cursor);
	const struct writeback *wb;

	for (; block && left->wbs && left->looks; left->looks--) {
		file->destage_cursor = block->index + 1;
		if (!block->pin || block->wb ||
		    block->pin->seq > files->destage_seq ||
		    !destage_may(block, durable)) {
			left->commit |= block->pin && !block->wb &&
					block->pin->seq > durable &&
					block->pin->seq <= files->destage_seq;
			block = block->next;
			continue;
		}
		wb = destage_of(file, block->index);
		if (wb) {
			file->destage_cursor = wb->first + destage_most(wb);
		} else if (destage_begin(file, block->index)) {
			file->destage_cursor += DESTAGE_BLOCKS - 1;
			left->wbs--;
		} else {
			left->wbs = 0;
		}
		block = block_at_or_after(file, file->destage_cursor);
	}
	if (block)
		return false;
	file->destage_cursor = 0;
	return true;
}

/* Has the round visited the file before?  If not it begins at the file's
 * start. */
static bool round_has_met(struct file *file, uint64_t round)
{
	if (file->destage_round == round && !file->destage_cursor)
		return true;
	if (file->destage_round != round)
		file->destage_cursor = 0;
	file->destage_round = round;
	return false;
}

/* Visits the files that have pinned blocks once, as long as something may
 * begin; the rest of a long round is left for the next turn. */
static bool destage_go_round(struct files *files, struct destage_left *left)
{
	const uint64_t durable = log_durable_seq(tree_log(files->fs->tree));
	const unsigned wbs = left->wbs, looks = left->looks;
	struct file *file;
	bool over = false;

	while (left->wbs && left->looks && !over) {
		file = list_first(&files->pinned_files, struct file,
				  pinned_link);
		over = !file || round_has_met(file, files->destage_round);
		if (over)
			break;
		left->looks--;
		if (destage_may_file(file) &&
		    !destage_pump_file(file, durable, left))
			break;
		list_del(&file->pinned_link);
		list_add(&files->pinned_files, &file->pinned_link);
	}
	turn_charge(&files->fs->env->turn, TURN_DESTAGE,
		    (looks - left->looks) * LOOK_NS);
	files->destage_more = left->wbs && !over;
	return left->wbs < wbs;
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
		    destage_of(file, block->index))
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

/* Is it worth destaging now?  The log asks early and often, and writing many
 * blocks at once is cheaper. */
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

bool destage_takes_end(struct files *files)
{
	const uint64_t now_ns = env_now_ns(files->fs->env);

	if (now_ns - files->ends_since_ns >= DESTAGE_AGE_NS) {
		files->ends_since_ns = now_ns;
		files->ends = 0;
	}
	if (files->ends >= DESTAGE_BATCH)
		return false;
	files->ends++;
	return true;
}

bool destage_is_wanted(const struct files *files)
{
	return files->destage_seq &&
	       log_oldest_pinned(tree_log(files->fs->tree)) <=
		       files->destage_seq;
}

/* Records up to seq are to be destaged.  While earlier ones are being destaged
 * later ones wait, until they are many again. */
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

static bool destage_begin_some(struct files *files)
{
	struct destage_left left = { .looks = LOOKS_MOST };
	bool started;

	files->destage_more = false;
	if (tree_failed(files->fs->tree))
		return false;
	if (files->destage_wanted_seq && destage_pays(files)) {
		destage_ask(files, files->destage_wanted_seq);
		files->destage_wanted_seq = 0;
	}
	if (destage_is_wanted(files))
		files->policy->recall_destages(files);
	if (!files->destage_seq || files->destages_busy >= DESTAGE_WBS)
		return false;
	if (files->pinned_count == 0) {
		files->destage_seq = 0;
		return false;
	}
	left.wbs = DESTAGE_WBS - files->destages_busy;
	started = destage_go_round(files, &left);
	if (left.commit)
		files_commit(files);
	return started;
}

/* The caller knows of something that may begin now, so all files are looked at
 * again. */
bool destage_pump(struct files *files)
{
	if (files->destage_more)
		files->destage_again = true;
	else
		files->destage_round++;
	return destage_begin_some(files);
}

void destage_go_on(struct files *files)
{
	if (files->destage_more) {
		destage_begin_some(files);
	} else if (files->destage_again) {
		files->destage_again = false;
		files->destage_round++;
		destage_begin_some(files);
	}
}

void destage_want(void *arg, uint64_t seq)
{
	struct files *files = arg;

	files->destage_wanted_seq = seq;
	if (!list_empty(&files->log_unpins))
		files_commit(files);
	writeback_pump(files);
}
