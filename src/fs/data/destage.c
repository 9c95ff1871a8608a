/*
 * destage.c - logged data is brought to where it belongs.
 *
 * A block that is held is the tree's content, but on disk only in the log.
 * When the log wants its track back, the pool is short, the block is old, or at
 * unmount, held blocks are written to their extents, neighbours together, and
 * their holds are given up.
 *
 * 1. Not before the log record is durable: a home that is written before would
 *    not fit the sum that a crash goes back to.  From then on old content lives
 *    by that record (log_rely).
 * 2. It needs neither log nor new space: the log can always be emptied.
 * 3. Reads are served from memory until the write is over.
 */
#include "fs/data/failure.h"
#include "fs/place/gap_writeback.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/msg.h"

#define HOME_BLOCKS 512u
#define HOME_BATCH 128u		/* at least */
#define HOME_PART 8u		/* of the pool */
#define HOME_EARLY_PERCENT 40u
#define HOME_PERCENT 60u
#define HOME_URGENT_PERCENT 80u

/* ---- One job ---- */

static bool home_may(const struct block *block, uint64_t durable)
{
	return block->hold && !block->job && !block->bad_home &&
	       block->hold->seq <= durable;
}

/* Blocks it looks at. */
static unsigned home_most(const struct job *job)
{
	return job->offer ? prewrite_most(job->file) : HOME_BLOCKS;
}

static int home_run(struct ticket *ticket)
{
	struct job *job = ticket->state;
	struct log *log = tree_log(ticket->fs->tree);
	uint64_t durable = log_durable_seq(log), newest = 0;
	struct block *block = block_find(job->file, job->first);
	uint64_t sector = job->first * BLOCK_SECTORS, end, stop;
	unsigned n = 0, most = home_most(job);
	struct extent extent;
	int rc;

	while (block && block->index == job->first + n && n < most &&
	       home_may(block, durable)) {
		newest = block->hold->seq > newest ? block->hold->seq : newest;
		n++;
		block = block->next;
	}
	job->segments = 0;
	end = sector + (uint64_t)n * BLOCK_SECTORS;
	while (sector < end) {
		rc = map_extent(ticket, job->file->ino, sector, &extent);
		if (rc == -ENOENT || (rc == 0 && extent.off > sector))
			return -EUCLEAN;
		if (rc)
			return rc;
		stop = extent.off + extent.n;
		stop = stop < end ? stop : end;
		if (job_add(job, addr_sector(extent.addr) +
			    (sector - extent.off), stop - sector, true))
			break;
		sector = stop;
		if (tree_txn_room(ticket->txn) < 2 * TRAX_MAX_LEVEL)
			break;
	}
	n = (unsigned)(sector / BLOCK_SECTORS - job->first);
	stop = (uint64_t)n * BLOCK_SECTORS;
	for (job->n = 0; job->n < job->segments && stop; job->n++) {
		if (job->segment[job->n].n > stop)
			job->segment[job->n].n = stop;
		stop -= job->segment[job->n].n;
	}
	job->segments = job->n;
	job->n = n;
	if (n) {
		log_rely(log, newest);
		job_claim(job);
	}
	return 0;
}

static void home_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct job *job = ticket->state;

	(void)seq;
	ticket_finish(ticket, 0);
	if (rc) {
		home_failed(job, rc);
		return;
	}
	if (!job->n) {
		job_end(job);
		return;
	}
	if (!job->offer || !prewrite_may(job->file, JOB_HOME) ||
	    !prewrite_job(job, home_written))
		job_write(job, QUEUE_WRITE_BACK, home_written);
	jobs_pump(job->files);
}

static const struct ticket_type home_type = {
	.name = "bring home",
	.bounds = { .nodes = 48 },
	.stages = 60,
	.run = home_run,
	.end = home_end,
};

/* ---- Which ---- */

/* A job of this file is looking at this block already. */
static bool home_is_started(const struct file *file, uint64_t index)
{
	const struct list *homes = &file->files->job_homes, *pos;
	const struct job *job;

	list_for_each(pos, homes) {
		job = list_entry(pos, struct job, link);
		if (job->file == file && !job->claimed &&
		    index >= job->first && index < job->first + home_most(job))
			return true;
	}
	return false;
}

/* Starts jobs for what is due in a file. */
static bool home_pump_file(struct file *file, uint64_t durable, unsigned *left)
{
	struct files *files = file->files;
	struct block *block = file->head;
	bool commit = false, started = false;
	uint64_t skip = 0;
	struct excl *excl;
	struct job *job;

	excl = list_first(&file->excls, struct excl, link);
	if ((excl && excl->active) || file_pauses(file))
		return false;
	for (; block && *left; block = block->next) {
		if (!block->hold || block->job || block->index < skip ||
		    block->hold->seq > files->home_seq)
			continue;
		commit |= block->hold->seq > durable;
		if (!home_may(block, durable) ||
		    home_is_started(file, block->index))
			continue;
		job = job_new(file, JOB_HOME, block->index);
		if (!job)
			break;
		skip = block->index + HOME_BLOCKS;
		(*left)--;
		started = true;
		if (ticket_start(files->fs, &home_type, NULL, job)) {
			file->users++;
			home_failed(job, -ENOMEM);
			file->users--;
			return true;
		}
	}
	if (commit)
		files_commit(files);
	return started;
}

void homes_offer(struct file *file, unsigned *left)
{
	struct files *files = file->files;
	uint64_t durable = log_durable_seq(tree_log(files->fs->tree));
	struct block *block = block_at_or_after(file, file->offer_cursor);
	struct job *job;

	for (; block && *left;
	     block = block_at_or_after(file, file->offer_cursor)) {
		(*left)--;
		file->offer_cursor = block->index + 1;
		if (!home_may(block, durable) || block->dirty ||
		    home_is_started(file, block->index))
			continue;
		if (!prewrite_may(file, JOB_HOME) ||
		    files->homes_busy >= files->small_jobs / 2)
			return;
		job = job_new_offer(file, block->index);
		if (!job)
			return;
		file->offer_cursor = block->index + prewrite_most(file);
		if (ticket_start(files->fs, &home_type, NULL, job)) {
			file->users++;
			job_end(job);
			file->users--;
			return;
		}
	}
	if (!block)
		file->offer_cursor = 0;
}

/* The log asks early and often; writing many at once is cheaper. */
static bool homes_pay(const struct files *files)
{
	unsigned fill = log_fill_percent(tree_log(files->fs->tree));
	size_t batch = pool_count(files->dirty_pool) / HOME_PART;

	if (batch < HOME_BATCH)
		batch = HOME_BATCH;
	if (fill < HOME_EARLY_PERCENT && prewrite_homes(files))
		return false;
	if (fill >= HOME_EARLY_PERCENT)
		batch = HOME_BATCH;
	return files->held_count >= batch || fill >= HOME_URGENT_PERCENT ||
	       (fill >= HOME_PERCENT && files->held_count >= HOME_BATCH / 4);
}

bool homes_asked(const struct files *files)
{
	return files->home_seq &&
	       log_oldest_held(tree_log(files->fs->tree)) <= files->home_seq;
}

/* As long as what was asked for before is on its way, what comes meanwhile is
 * left for the next time, when it is many again. */
static void homes_ask(struct files *files, uint64_t seq)
{
	if (seq > files->home_seq &&
	    (!homes_asked(files) || files->homes_busy == files->home_offers))
		files->home_seq = seq;
}

void homes_now(struct files *files)
{
	homes_ask(files, log_durable_seq(tree_log(files->fs->tree)));
}

bool homes_pump(struct files *files)
{
	uint64_t durable = log_durable_seq(tree_log(files->fs->tree));
	unsigned busy, left;
	struct list *pos;
	bool started = false;
	size_t n = 0;

	if (tree_failed(files->fs->tree))
		return false;
	if (files->home_asked && homes_pay(files)) {
		homes_ask(files, files->home_asked);
		files->home_asked = 0;
	}
	if (homes_asked(files))
		prewrite_recall_homes(files);
	busy = files->homes_busy;
	if (!files->home_seq || busy >= HOME_JOBS)
		return false;
	if (files->held_count == 0) {
		files->home_seq = 0;
		return false;
	}
	left = HOME_JOBS - busy;
	list_for_each(pos, &files->held_files)
		n++;
	while (n-- && left && !list_empty(&files->held_files)) {
		pos = files->held_files.next;
		list_del(pos);
		list_add(&files->held_files, pos);
		started |= home_pump_file(list_entry(pos, struct file,
						     held_link),
					  durable, &left);
	}
	return started;
}

void homes_want(void *arg, uint64_t seq)
{
	struct files *files = arg;

	files->home_asked = seq;
	if (!list_empty(&files->releases))
		files_commit(files);
	jobs_pump(files);
}
