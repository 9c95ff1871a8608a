/*
 * writeback_pump.c - which dirty blocks are written back, and when.
 */
#include "fs/data/writeback_internal.h"

#include <errno.h>

#include "fs/data/destage.h"
#include "fs/data/dirty_block.h"
#include "fs/data/failure.h"
#include "fs/data/file.h"
#include "fs/data/file_sync.h"
#include "fs/data/flush_walk.h"
#include "fs/data/writeback.h"

#define PRESSING_PART 4u	/* When a quarter of the pool is dirty, dirty
				 * data is why memory is short; else it is
				 * pinned or being written. */
/* When memory is short, and while the disk is idle, this part of the pool,
 * which became dirty last, is not written. */
#define YOUNG_PART 8u
#define YOUNG_EARLY_PART 16u
#define DIED_PART 4u	/* if one block in four is deleted soon after it was
			 * made, early writing waits */
/* Charged for a look at a file, and for a write-back that begins, in
 * nanoseconds: it starts a transaction. */
#define PUMP_FILE_NS 200u
#define PUMP_NS 3000u
#define PUMP_LEAST 8u	/* files that a call looks at, however full the turn
			 * is */
#define STREAM_MIN_BLOCKS 256u	/* least blocks of a stretch of a growing file
				 * that is written before it is asked for: 1
				 * MiB, or a track if that is longer */

static const struct fs_txn_type inline_type = {
	.name = "inline data",
	.bounds = { .log_bytes = TRAX_MAX_INLINE_BYTES + 1024 },
	.paths = 2,
	.changes = 2,
	.run = writeback_inline_run,
	.end = writeback_inline_end,
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
	const struct fs_txn_type *type = &writeback_prepare_type;
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
	if (!file_is_small(file))
		files_turn(file->files, file->files);
	file->preparing = true;
	if (kind == WB_LOGGED) {
		writeback_log(wb);
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
 * Half of the pool is in use: asks for write-back.  Not while the pool is full
 * of pinned blocks or blocks being written and few are dirty: a part of a
 * track would be logged, which frees nothing, and the next one would find the
 * pool fuller yet.  Any write-back that ends then calls this again.
 */
static void writeback_pressure(struct files *files, struct file *oldest)
{
	size_t count = pool_count(files->dirty_pool);

	if (buffers_short(files))
		files->policy->recall_all(files);
	/* Blocks pinned later wait for the next round: destaged one by one they
	 * would be slow. */
	if (files->pinned_count > count / 4)
		destage_now(files);
	if (!oldest || (files->dirty_count < count / PRESSING_PART &&
			files->wbs_busy))
		return;
	if (oldest->dirty_count >= count / 16)
		writeback_flush(oldest, files->stamp, false,
				!oldest->vnode->opens);
	else if (!flush_sweep(files, YOUNG_PART))
		flush_oldest(files);
}

/* Will half of the pool be in use before the dirty data is old? */
static bool pool_fills(const struct files *files)
{
	const struct file *oldest =
		list_first(&files->dirty_files, struct file, dirty_link);
	const struct block *block =
		list_first(&oldest->dirty, struct block, link);
	uint64_t age_ns = env_now_ns(files->fs->env) - block->dirty_ns;

	return files->dirty_count * (double)WRITE_BACK_AGE_NS >
	       pool_count(files->dirty_pool) / 2 * (double)age_ns;
}

/*
 * Before memory is short, data that fills many tracks is written when the disk
 * has nothing else to do, so that a sync finds most of it written.  While users
 * read it is written if there are gaps for it.  Where much is deleted soon
 * after it was made, or little is made, it waits.
 */
static void writeback_early(struct files *files)
{
	if (files->dirty_count > pool_count(files->dirty_pool) / SWEEP_PART &&
	    files->small_died * DIED_PART <= files->small_born &&
	    (files->users_read ? files->policy->gap_destages(files) :
				 queue_idle(files->fs->queue) &&
				 pool_fills(files)))
		flush_sweep(files, YOUNG_EARLY_PART);
}

/* Asks for write-back that nobody has asked for. */
static void writeback_unasked(struct files *files)
{
	size_t count = pool_count(files->dirty_pool);
	bool going = !list_empty(&files->flush[0]) ||
		     !list_empty(&files->flush[1]);

	if (pool_available(files->dirty_pool) <= count / 2)
		writeback_pressure(files, going ? NULL :
			      list_first(&files->dirty_files, struct file,
					 dirty_link));
	else if (!going)
		writeback_early(files);
}

/* Visits each file of the list once; it goes to the end of the list where it
 * belongs now. */
static void writeback_pump_list(struct files *files, bool small)
{
	struct list *pos, *flush = &files->flush[small];
	struct loop_turn *turn = &files->fs->env->turn;
	struct file *file;
	unsigned n = 0;

	files->pump_round++;
	while (writebacks_may_start(files, small) && !list_empty(flush)) {
		pos = flush->next;
		file = list_entry(pos, struct file, flush_link);
		if (file->pump_round == files->pump_round)
			break;
		file->pump_round = files->pump_round;
		list_del(pos);
		list_add(&files->flush[file_is_small(file)], pos);
		turn_charge(turn, TURN_FLUSH, PUMP_FILE_NS);
		while (writeback_pump_file(file))
			turn_charge(turn, TURN_FLUSH, PUMP_NS);
		if (++n < PUMP_LEAST || !turn_is_full(turn))
			continue;
		files_wake_at(files, 0);
		return;
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
