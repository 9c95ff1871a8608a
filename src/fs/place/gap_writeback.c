/*
 * gap_writeback.c - write-back in gaps.
 *
 *   write-back with its place --> queued --(a gap, idle time)--> written
 *                             `--recalled--> pinned (destages), or to the queue
 *
 * Destages of logged data gain most: each block has a destage of its own, and
 * many wait, so that one of them lies near the way of almost any request.  They
 * are queued as soon as they are durable, long before the log asks for them.
 * Of new data short segments are queued: a track of a large file needs one seek
 * for a megabyte, and twenty gaps.
 *
 * 1. Nothing depends on a queued write-back: code that would wait for it
 *    recalls it (sync, exclusive operations, short memory or log).
 * 2. A block that is being written to is not queued: gap_writeback_touched.
 */
#include "fs/place/gap_writeback.h"

#include <errno.h>

#include "base/units.h"
#include "fs/data/destage.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file_sync.h"
#include "fs/data/writeback.h"
#include "sched/freeblock/freeblock.h"
#include "sched/head/head.h"

/* Write-backs queued for gaps, at most: enough that one lies near the way of
 * almost any request. */
#define OFFERS_MOST 512u
#define PART 4u			/* a segment is at most this part of a track:
				 * half a turn is the mean gap, which leaves as
				 * much for the way there and back */
#define MOST_BLOCKS 32u	/* Most blocks of a segment: 128 KiB. */
/* It is checked ten times a second whether users read. */
#define LOOK_NS (100 * NS_PER_MS)
#define READS_A_LOOK 2u		/* reads since the last check from which on
				 * users count as reading */
/* A write-back that has waited this long for a gap is recalled. */
#define WAIT_NS (10 * NS_PER_SECOND)
/* No write-back waits for gaps while the log is fuller than this: the same fill
 * at which destages get urgent (DESTAGE_PERCENT). */
#define LOG_PERCENT 60u
#define SCAN_BLOCKS 4096u	/* blocks that one round of queuing destages
				 * looks at */
#define SCAN_FILES 512u		/* files that it looks at */

/* ---- May it? ---- */

static bool gaps_are_there(const struct fs *fs)
{
	struct head_state head_state;

	if (fs->options.gap_writeback != FS_GAP_WRITEBACK_WHILE_READ)
		return fs->options.gap_writeback == FS_GAP_WRITEBACK_ALWAYS;
	if (!fs->files->users_read)
		return false;

	if (!fs->head || head_mode(fs->head) != HEAD_ON)
		return false;
	head_get_state(fs->head, &head_state);
	return head_state.reads && head_state.writes;
}

static bool memory_is_short(const struct files *files)
{
	return buffers_short(files) || !list_empty(&files->writers);
}

bool gap_writeback_destages(const struct files *files)
{
	const struct fs *fs = files->fs;

	return !fs->closing && list_empty(&files->syncs) &&
	       !destage_is_wanted(files) && !memory_is_short(files) &&
	       log_fill_percent(tree_log(fs->tree)) < LOG_PERCENT &&
	       gaps_are_there(fs);
}

static bool files_may(const struct files *files)
{
	return files->gap_queued < OFFERS_MOST &&
	       files->gap_queued < files->small_wbs / 2 &&
	       gap_writeback_destages(files);
}

/* An fsync does not wait for destages. */
bool gap_writeback_may(const struct file *file, enum writeback_kind kind)
{
	bool synced = file->sync || !list_empty(&file->syncs);

	return list_empty(&file->excl_locks) &&
	       (kind == WB_DESTAGE || !synced) && files_may(file->files);
}

unsigned gap_writeback_most(const struct file *file)
{
	uint32_t blocks = alloc_track_sectors(file->files->fs->alloc,
					      file->goal) /
			  (BLOCK_SECTORS * PART);

	return blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}

/* ---- The queue for gaps ---- */

static void gap_queue_over(struct writeback *wb)
{
	list_del(&wb->gap_link);
	wb->gap_queued = false;
	wb->files->gap_queued--;
	if (wb->kind == WB_DESTAGE)
		wb->files->gap_queued_destages--;
	else
		wb->file->gap_queued--;
}

static void gap_queue_written(void *arg, struct queue_request *req)
{
	struct writeback_segment *segment =
		container_of(req, struct writeback_segment, req);
	struct files *files = arg;

	if (files->gap_queue_closed)
		return;
	/* The segment was recalled when it had begun and could not be
	 * cancelled. */
	if (req->disk.result == -EBUSY) {
		writeback_submit(segment->wb, segment, QUEUE_WRITE_BACK);
		return;
	}
	if (segment->wb->gap_queued && segment->wb->outstanding == 1)
		gap_queue_over(segment->wb);
	writeback_segment_done(segment);
}

static const struct freeblock_ops gap_queue_ops = {.written =
							   gap_queue_written};

/* The write of a segment that was too long for a gap has ended. */
static void long_written(struct disk_request *req)
{
	struct writeback_segment *segment = req->owner;

	if (segment->wb->gap_queued && segment->wb->outstanding == 1)
		gap_queue_over(segment->wb);
	writeback_segment_done(segment);
}

static void long_submit(struct files *files, struct writeback_segment *segment)
{
	segment->req.class = QUEUE_WRITE_BACK;
	segment->req.disk.done = long_written;
	segment->req.disk.owner = segment;
	queue_submit(files->fs->queue, &segment->req);
}

static bool task_open(struct files *files)
{
	const struct freeblock_options options = {
		.name = "write-back",
	};

	return files->gap_task ||
	       !freeblock_open(files->fs->queue, &options, &gap_queue_ops,
			       files, &files->gap_task);
}

/* While a task exists the queue looks for gaps, so there is one only while it
 * is needed. */
static void task_close(struct files *files)
{
	struct freeblock_task *task = files->gap_task;

	files->gap_task = NULL;
	freeblock_close(task);
}

bool gap_writeback_add(struct writeback *wb,
		       void (*written)(struct writeback *wb, int rc))
{
	struct files *files = wb->files;
	uint64_t most = (uint64_t)gap_writeback_most(wb->file) * BLOCK_SECTORS;
	unsigned i, n;

	for (i = n = 0; i < wb->segments; i++)
		n += wb->segment[i].n <= most;
	if (!n || (wb->kind == WB_DESTAGE && n < wb->segments) ||
	    !task_open(files))
		return false;
	writeback_prepare_requests(wb, QUEUE_IDLE, written);
	wb->gap_queued = true;
	wb->gap_queued_ns = env_now_ns(files->fs->env);
	list_add(&files->gap_queue, &wb->gap_link);
	files->gap_queued++;
	files->gap_queued_total++;
	if (wb->kind == WB_DESTAGE)
		files->gap_queued_destages++;
	else
		wb->file->gap_queued++;
	for (i = 0; i < wb->segments; i++)
		if (wb->segment[i].n > most)
			long_submit(files, &wb->segment[i]);
		else
			freeblock_write(files->gap_task, &wb->segment[i].req);
	return true;
}

/* ---- Recalling ---- */

/* Undoes the beginning of a destage that was recalled. */
static void destage_recalled(struct writeback *wb)
{
	unsigned i;

	for (i = 0; i < wb->n; i++)
		writeback_release(wb, i, true);
	wb->done = wb->n;
	writeback_end(wb);
}

static void recall(struct writeback *wb)
{
	struct files *files = wb->files;
	bool whole = wb->outstanding == wb->segments;
	struct writeback_segment *back[WB_SEGMENTS];
	unsigned i, n = 0;

	for (i = 0; i < wb->segments; i++)
		if (freeblock_write_cancel(files->gap_task,
					   &wb->segment[i].req))
			back[n++] = &wb->segment[i];
	gap_queue_over(wb);
	files->gap_recalled_total++;
	if (wb->kind == WB_DESTAGE && whole && n == wb->segments) {
		destage_recalled(wb);
		return;
	}
	for (i = 0; i < n; i++)
		writeback_submit(wb, back[i], QUEUE_WRITE_BACK);
}

enum gap_recalled { DESTAGES, DATA, BOTH };

/* The oldest queued write-back of a file (NULL: of any), of a kind, from before
 * a time; NULL: there is none. */
static struct writeback *gap_queue_first(const struct files *files,
				 const struct file *file,
				 enum gap_recalled which, uint64_t before_ns)
{
	const struct list *pos;
	struct writeback *wb;

	list_for_each(pos, &files->gap_queue) {
		wb = list_entry(pos, struct writeback, gap_link);
		if ((!file || wb->file == file) &&
		    (which == BOTH ||
		     (which == DESTAGES) == (wb->kind == WB_DESTAGE)) &&
		    wb->gap_queued_ns <= before_ns)
			return wb;
	}
	return NULL;
}

/* Recalls write-backs.  Each is looked up anew, as what ends with one may
 * recall others. */
static void recall_some(struct files *files, const struct file *file,
			enum gap_recalled which, uint64_t before_ns)
{
	struct writeback *wb;

	while ((wb = gap_queue_first(files, file, which, before_ns)))
		recall(wb);
}

void gap_writeback_recall_data(struct file *file)
{
	if (file->gap_queued)
		recall_some(file->files, file, DATA, UINT64_MAX);
}

void gap_writeback_recall_file(struct file *file)
{
	if (file->writebacks)
		recall_some(file->files, file, BOTH, UINT64_MAX);
}

void gap_writeback_recall_all(struct files *files)
{
	recall_some(files, NULL, BOTH, UINT64_MAX);
}

void gap_writeback_recall_destages(struct files *files)
{
	if (files->gap_queued_destages)
		recall_some(files, NULL, DESTAGES, UINT64_MAX);
}

void gap_writeback_touched(struct block *block)
{
	if (block->wb && block->wb->gap_queued && block->wb->kind == WB_DESTAGE)
		recall(block->wb);
}

/* ---- In each turn of the loop ---- */

/* Queues destages of the pinned blocks of files, which take turns. */
static void queue_destages(struct files *files)
{
	unsigned left = SCAN_BLOCKS;
	struct list *pos;
	size_t n = 0;

	list_for_each(pos, &files->pinned_files)
		if (++n == SCAN_FILES)
			break;
	while (n-- && left && !list_empty(&files->pinned_files)) {
		pos = files->pinned_files.next;
		list_del(pos);
		list_add(&files->pinned_files, pos);
		destage_queue_for_gaps(
			list_entry(pos, struct file, pinned_link), &left);
	}
}

void gap_writeback_run(struct files *files, uint64_t now_ns)
{
	uint64_t reads;

	if (now_ns < files->look_ns &&
	    files->fs->options.gap_writeback != FS_GAP_WRITEBACK_ALWAYS)
		return;
	reads = queue_stats(files->fs->queue)->class[QUEUE_READ].requests;
	files->users_read = reads >= files->reads_seen + READS_A_LOOK;
	files->reads_seen = reads;
	files->look_ns = now_ns + LOOK_NS;
	if (now_ns > WAIT_NS && !list_empty(&files->gap_queue))
		recall_some(files, NULL, BOTH, now_ns - WAIT_NS);
	if (memory_is_short(files))
		gap_writeback_recall_all(files);
	if (files_may(files) && files->pinned_count)
		queue_destages(files);
	if (files->gap_task && !files->gap_queued)
		task_close(files);
}

void gap_writeback_close(struct files *files)
{
	files->gap_queue_closed = true;
	task_close(files);
}
