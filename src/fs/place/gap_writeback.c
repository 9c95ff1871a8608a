/*
 * gap_writeback.c - write-back in gaps.
 *
 *   job with its place --> offered --(a gap, idle time)--> written
 *                            `--recalled--> held (homes), or to the queue
 *
 * Data in the log only is what gains most: each block has a home of its own,
 * and many wait, so that one of them lies by the way of almost any request.
 * They are offered as soon as they are durable, long before the log asks for
 * them.  New data waits only when its pieces are small: a track of a large file
 * needs one seek for a megabyte, and twenty gaps.
 *
 * 1. Nothing depends on an offer: whoever would wait for its job recalls it
 *    (sync, exclusive operations, short memory or log).
 * 2. A block that is written to is not offered: prewrite_touched.
 */
#include "fs/place/gap_writeback.h"

#include <errno.h>

#include "sched/freeblock/freeblock.h"
#include "sched/head/head.h"

#define OFFERS_MOST 512u
#define PART 16u		/* of a track, in one piece */
#define MOST_BLOCKS 16u
#define LOOK_NS UINT64_C(100000000)
#define READS_A_LOOK 2u		/* then users read */
#define WAIT_NS UINT64_C(10000000000)
#define LOG_PERCENT 60u
#define SCAN_BLOCKS 4096u	/* looked at for one round of offers */

/* ---- May it? ---- */

static bool gaps_are_there(const struct fs *fs)
{
	struct belief belief;

	if (fs->options.prewrite != FS_PREWRITE_WHILE_READ)
		return fs->options.prewrite == FS_PREWRITE_ALWAYS;
	if (!fs->files->users_read)
		return false;

	if (!fs->head || head_mode(fs->head) != HEAD_ON)
		return false;
	head_get_belief(fs->head, &belief);
	return belief.reads && belief.writes;
}

static bool memory_is_short(const struct files *files)
{
	return pool_available(files->dirty_pool) <=
		       pool_count(files->dirty_pool) / 2 ||
	       !list_empty(&files->writers);
}

bool prewrite_homes(const struct files *files)
{
	const struct fs *fs = files->fs;

	return !fs->closing && list_empty(&files->syncs) &&
	       !homes_asked(files) && !memory_is_short(files) &&
	       log_fill_percent(tree_log(fs->tree)) < LOG_PERCENT &&
	       gaps_are_there(fs);
}

static bool files_may(const struct files *files)
{
	return files->offers < OFFERS_MOST &&
	       files->offers < files->small_jobs / 2 && prewrite_homes(files);
}

/* An fsync does not wait for homes. */
bool prewrite_may(const struct file *file, enum job_kind kind)
{
	bool synced = file->sync || !list_empty(&file->syncs);

	return list_empty(&file->excls) && (kind == JOB_HOME || !synced) &&
	       files_may(file->files);
}

unsigned prewrite_most(const struct file *file)
{
	uint32_t blocks = alloc_track_sectors(file->files->fs->alloc,
					      file->goal) /
			  (BLOCK_SECTORS * PART);

	return blocks < 1 ? 1 : blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}

/* ---- Offers ---- */

static void offer_over(struct job *job)
{
	list_del(&job->offer_link);
	job->offered = false;
	job->files->offers--;
	if (job->kind == JOB_HOME)
		job->files->home_offers--;
	else
		job->file->offers--;
}

static void offer_written(void *arg, struct queue_request *req)
{
	struct job_segment *segment = container_of(req, struct job_segment,
						   req);
	struct files *files = arg;

	if (files->offers_end)
		return;
	/* It has been recalled when it had begun, and could not go on. */
	if (req->disk.result == -EBUSY) {
		job_submit(segment->job, segment, QUEUE_WRITE_BACK);
		return;
	}
	if (segment->job->offered && segment->job->outstanding == 1)
		offer_over(segment->job);
	job_segment_over(segment);
}

static const struct freeblock_ops offer_ops = { .written = offer_written };

static bool task_open(struct files *files)
{
	const struct freeblock_options options = {
		.name = "write-back", .unit_sectors = BLOCK_SECTORS,
	};

	return files->offer_task ||
	       !freeblock_open(files->fs->queue, &options, &offer_ops, files,
			       &files->offer_task);
}

/* A queue that has a task looks for gaps: there is one while it is needed. */
static void task_close(struct files *files)
{
	struct freeblock_task *task = files->offer_task;

	files->offer_task = NULL;
	freeblock_close(task);
}

bool prewrite_job(struct job *job, void (*written)(struct job *job, int rc))
{
	struct files *files = job->files;
	uint64_t most = (uint64_t)prewrite_most(job->file) * BLOCK_SECTORS;
	unsigned i;

	for (i = 0; i < job->segments; i++)
		if (job->segment[i].n > most)
			return false;
	if (!task_open(files))
		return false;
	job_requests(job, QUEUE_IDLE, written);
	job->offered = true;
	job->offered_ns = env_now_ns(files->fs->env);
	list_add(&files->offered, &job->offer_link);
	files->offers++;
	files->offers_made++;
	if (job->kind == JOB_HOME)
		files->home_offers++;
	else
		job->file->offers++;
	for (i = 0; i < job->segments; i++)
		freeblock_write(files->offer_task, &job->segment[i].req);
	return true;
}

/* ---- Recalling ---- */

/* As if it had never been begun. */
static void home_recalled(struct job *job)
{
	unsigned i;

	for (i = 0; i < job->n; i++)
		job_release(job, i, true);
	job->done = job->n;
	job_end(job);
}

static void recall(struct job *job)
{
	struct files *files = job->files;
	bool whole = job->outstanding == job->segments;
	struct job_segment *back[JOB_PIECES];
	unsigned i, n = 0;

	for (i = 0; i < job->segments; i++)
		if (freeblock_write_cancel(files->offer_task,
					   &job->segment[i].req))
			back[n++] = &job->segment[i];
	offer_over(job);
	files->offers_recalled++;
	if (job->kind == JOB_HOME && whole && n == job->segments) {
		home_recalled(job);
		return;
	}
	for (i = 0; i < n; i++)
		job_submit(job, back[i], QUEUE_WRITE_BACK);
}

enum recalled { HOMES, DATA, BOTH };

/* The oldest that is offered, of a file (NULL: of any), of a kind, from before
 * a time; NULL: none. */
static struct job *offered_first(const struct files *files,
				 const struct file *file,
				 enum recalled which, uint64_t before_ns)
{
	const struct list *pos;
	struct job *job;

	list_for_each(pos, &files->offered) {
		job = list_entry(pos, struct job, offer_link);
		if ((!file || job->file == file) &&
		    (which == BOTH ||
		     (which == HOMES) == (job->kind == JOB_HOME)) &&
		    job->offered_ns <= before_ns)
			return job;
	}
	return NULL;
}

/* Looked for anew after each: what ends with one may recall others. */
static void recall_some(struct files *files, const struct file *file,
			enum recalled which, uint64_t before_ns)
{
	struct job *job;

	while ((job = offered_first(files, file, which, before_ns)))
		recall(job);
}

void prewrite_recall_data(struct file *file)
{
	if (file->offers)
		recall_some(file->files, file, DATA, UINT64_MAX);
}

void prewrite_recall_file(struct file *file)
{
	if (file->jobs)
		recall_some(file->files, file, BOTH, UINT64_MAX);
}

void prewrite_recall_all(struct files *files)
{
	recall_some(files, NULL, BOTH, UINT64_MAX);
}

void prewrite_recall_homes(struct files *files)
{
	if (files->home_offers)
		recall_some(files, NULL, HOMES, UINT64_MAX);
}

void prewrite_touched(struct block *block)
{
	if (block->job && block->job->offered && block->job->kind == JOB_HOME)
		recall(block->job);
}

/* ---- Now and then ---- */

/* Offers the held blocks of the files that have any, in turns. */
static void offer_homes(struct files *files)
{
	unsigned left = SCAN_BLOCKS;
	struct list *pos;
	size_t n = 0;

	list_for_each(pos, &files->held_files)
		n++;
	while (n-- && left && !list_empty(&files->held_files)) {
		pos = files->held_files.next;
		list_del(pos);
		list_add(&files->held_files, pos);
		homes_offer(list_entry(pos, struct file, held_link), &left);
	}
}

void prewrite_run(struct files *files, uint64_t now_ns)
{
	uint64_t reads;

	if (now_ns < files->look_ns &&
	    files->fs->options.prewrite != FS_PREWRITE_ALWAYS)
		return;
	reads = queue_stats(files->fs->queue)->class[QUEUE_READ].requests;
	files->users_read = reads >= files->reads_seen + READS_A_LOOK;
	files->reads_seen = reads;
	files->look_ns = now_ns + LOOK_NS;
	if (now_ns > WAIT_NS && !list_empty(&files->offered))
		recall_some(files, NULL, BOTH, now_ns - WAIT_NS);
	if (memory_is_short(files))
		prewrite_recall_all(files);
	if (files_may(files) && files->held_count)
		offer_homes(files);
	if (files->offer_task && !files->offers)
		task_close(files);
}

void prewrite_close(struct files *files)
{
	files->offers_end = true;
	task_close(files);
}
