/*
 * writeback.c - write-back: a stretch of dirty blocks on its way to the disk.
 *
 *            prepare                          write        commit
 *   dirty --[ticket: extents, room]--+-> DIRECT, IN_PLACE --> [ticket]-> clean
 *                                    +-> LOGGED --[ticket]----> held
 *                                    +-> INLINE --[ticket]----> clean
 *
 * DIRECT    new blocks, and overwrites of at least half a track: a new place,
 *           then one transaction maps it.  A crash before leaves nothing.
 * IN_PLACE  blocks with an unwritten extent: written there, then flipped.
 * LOGGED    little data that is being fsynced, and small overwrites: mapped and
 *           logged in one transaction, brought home later.
 * INLINE    a file of at most 2 KiB.
 *
 * 1. A job has blocks of one kind of mapping; what follows is another job's.
 * 2. Of a file one job at a time looks for its place; so blocks that no job has
 *    claimed don't change their mapping meanwhile.
 * 3. Data of a claimed block does not change: a writer gets a new buffer.
 */
#include "fs/data/failure.h"
#include "fs/place/late_place.h"
#include "fs/place/gap_writeback.h"
#include "fs/replica/replica.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/msg.h"
#include "fs/replica/access_trace.h"

#define PRESSING_PART 4u	/* of the pool is dirty: the cause */
#define EARLY_PART 16u	/* of the pool may be dirty for a while */
#define EARLY_LOOK 16u	/* files looked at for one to begin with */
#define STREAM_MIN_BLOCKS 256u	/* write out at least 1 MiB of a stream */
#define LOGGED_LOG_BYTES (LOG_BLOCKS * BLOCK_BYTES + (16u << 10) + \
			  REPLICA_LOG_BYTES)

/* A segment may begin and end inside a block. */
#define IOVS(blocks) ((blocks) + 2 * JOB_PIECES)

int jobs_new(struct files *files)
{
	size_t small = pool_count(files->dirty_pool) / SMALL_JOB_PART;
	size_t most, i;
	struct job *job;
	struct iovec *iov;
	void **data;

	small = small < SMALL_JOBS ? small : SMALL_JOBS;
	files->jobs = calloc(LARGE_JOBS + small, sizeof(*files->jobs));
	data = calloc(LARGE_JOBS * JOB_BLOCKS + small * SMALL_JOB_BLOCKS,
		      sizeof(*data));
	iov = calloc(LARGE_JOBS * IOVS(JOB_BLOCKS) +
		     small * IOVS(SMALL_JOB_BLOCKS), sizeof(*iov));
	files->small_jobs = (unsigned)small;
	files->job_data = data;
	files->job_iov = iov;
	if (!files->jobs || !data || !iov)
		return -ENOMEM;
	for (i = 0; i < LARGE_JOBS + small; i++) {
		job = &files->jobs[i];
		job->small = i >= LARGE_JOBS;
		job->data = data;
		job->iov = iov;
		most = job->small ? SMALL_JOB_BLOCKS : JOB_BLOCKS;
		data += most;
		iov += IOVS(most);
		list_add(&files->job_free[job->small], &job->link);
	}
	return 0;
}

static unsigned job_most(const struct job *job)
{
	return job->small ? SMALL_JOB_BLOCKS : JOB_BLOCKS;
}

/* ---- Life of a job ---- */

static bool file_is_small(const struct file *file)
{
	return file->size <= SMALL_BYTES;
}

static void job_sums_ready(struct need *need, int rc)
{
	struct job *job = need->owner;

	if (rc)
		job->rc = -EIO;
	ticket_again(job->ticket);
}

static struct job *job_begin(struct file *file, enum job_kind kind, bool small,
			     uint64_t first)
{
	struct files *files = file->files;
	struct job *job = list_first(&files->job_free[small], struct job, link);

	if (!job)
		return NULL;
	list_del(&job->link);
	list_add(kind == JOB_HOME ? &files->job_homes : &files->job_backs,
		 &job->link);
	job->files = files;
	job->file = file;
	job->kind = kind;
	job->claimed = job->stream = job->taken = job->waited = false;
	job->offer = job->offered = false;
	job->may_move = job->follows = job->going = false;
	job->behind = NULL;
	job->first = first;
	job->n = job->done = job->segments = job->outstanding = job->want = 0;
	job->stamp = UINT64_MAX;
	job->rc = 0;
	job->failed = false;
	job->hold = NULL;
	job->ticket = NULL;
	job->need = (struct need){
		.file = file, .ready = job_sums_ready, .owner = job,
	};
	list_init(&job->need.link);
	file->jobs++;
	files->jobs_busy++;
	file->backs += kind != JOB_HOME;
	files->homes_busy += kind == JOB_HOME;
	files->large_backs += kind != JOB_HOME && !small;
	return job;
}

struct job *job_new(struct file *file, enum job_kind kind, uint64_t first)
{
	return job_begin(file, kind, file_is_small(file) && kind != JOB_HOME,
			 first);
}

struct job *job_new_offer(struct file *file, uint64_t first)
{
	struct job *job = job_begin(file, JOB_HOME, true, first);

	if (job)
		job->offer = true;
	return job;
}

void job_claim(struct job *job)
{
	struct block *block = block_find(job->file, job->first);
	struct pool *pool = job->files->dirty_pool;
	unsigned i;

	job->claimed = true;
	for (i = 0; i < job->n; i++, block = block->next) {
		assert(block && block->index == job->first + i && !block->job);
		block->job = job;
		if (job->kind == JOB_HOME) {
			job->data[i] = pool_share(pool, block->held_data);
			continue;
		}
		if (block->stamp < job->stamp)
			job->stamp = block->stamp;
		block_clean(job->file, block);
		job->data[i] = pool_share(pool, block->data);
	}
}

void job_release(struct job *job, unsigned i, bool ok)
{
	struct file *file = job->file;
	struct block *block = block_find(file, job->first + i);

	assert(block && block->job == job);
	block->job = NULL;
	pool_put(job->files->dirty_pool, job->data[i]);
	if (ok)
		block_settle(file, block);
	else	/* a home's content is older than anything dirty */
		block_redirty(file, block,
			      job->kind == JOB_HOME ? 0 : job->stamp);
}

/* Sectors of the segments from where nothing is committed go back. */
static void job_give_back(struct job *job)
{
	struct space *space = tree_space(job->files->fs->tree);
	uint64_t skip = (uint64_t)job->done * BLOCK_SECTORS;
	const struct job_segment *segment;
	unsigned i;

	for (i = 0; i < job->segments; i++) {
		segment = &job->segment[i];
		if (skip >= segment->n) {
			skip -= segment->n;
			continue;
		}
		if (segment->failed)
			bad_suspect(job->files, segment->sector + skip,
				    segment->n - skip);
		else
			space_give_back(space, segment->sector + skip,
					segment->n - skip);
		skip = 0;
	}
	job->taken = false;
}

void job_end(struct job *job)
{
	struct files *files = job->files;
	struct file *file = job->file;
	unsigned i;

	need_end(&job->need);
	if (job->taken)
		job_give_back(job);
	for (i = job->done; job->claimed && i < job->n; i++)
		job_release(job, i, false);
	if (job->claimed && job->done < job->n)
		job_flush(file, job->stamp, false, file->final);
	files_release(job->hold);
	job->file = NULL;
	list_del(&job->link);
	list_add(&files->job_free[job->small], &job->link);
	files->jobs_busy--;
	file->backs -= job->kind != JOB_HOME;
	files->homes_busy -= job->kind == JOB_HOME;
	files->large_backs -= job->kind != JOB_HOME && !job->small;
	file->users++;
	file->jobs--;
	file_settled(file);
	jobs_pump(files);
	file_put(file);
}

static void job_want_flush(struct file *file)
{
	struct list *flush = file->files->flush;

	if (list_empty(&file->flush_link) && file->dirty_count)
		list_add(&flush[file_is_small(file)], &file->flush_link);
}

/* The next job of the file may look for its place. */
static void job_prepared(struct file *file)
{
	file->preparing = false;
	if (list_empty(&file->dirty)) {
		file->sync = false;
		file->batch_sectors = 0;
	} else if (list_entry(file->dirty.next, struct block, link)->stamp <=
		   file->flush_stamp) {
		job_want_flush(file);
	}
}

/* At most `most`; what can't be written home is a job by itself. */
static unsigned collect(const struct job *job, unsigned most)
{
	struct block *block = block_find(job->file, job->first);
	bool bad_home = block && block->bad_home;
	unsigned n = 0;

	while (block && block->index == job->first + n && block->dirty &&
	       !block->job && block->bad_home == bad_home && n < most) {
		n++;
		block = block->next;
	}
	return n;
}

unsigned job_collect(const struct job *job)
{
	return collect(job, job_most(job));
}

/* ---- Disk ---- */

int job_add(struct job *job, uint64_t sector, uint64_t n, bool known)
{
	struct job_segment *last;

	if (job->segments) {
		last = &job->segment[job->segments - 1];
		if (last->sector + last->n == sector && last->known == known) {
			last->n += n;
			return 0;
		}
	}
	if (job->segments == JOB_PIECES)
		return -E2BIG;
	last = &job->segment[job->segments++];
	last->sector = sector;
	last->n = n;
	last->known = known;
	last->failed = false;
	return 0;
}

void job_segment_over(struct job_segment *segment)
{
	const struct disk_request *req = &segment->req.disk;
	struct job *job = segment->job;

	watch_access(job->files->fs, WATCH_WRITE, req->sector, req->sectors);
	if (req->result) {
		job->rc = -EIO;
		job->failed = segment->failed = true;
		job->class = fault_class(req->op, req->result);
		msg_error("%s: sector %llu cannot be written",
			  job->files->fs->disk->name,
			  (unsigned long long)req->sector);
	}
	if (--job->outstanding == 0)
		job->written(job, job->rc);
}

static void job_written_one(struct disk_request *req)
{
	job_segment_over(req->owner);
}

/* The buffers of sectors [off, off + n) of the job. */
static unsigned job_iov(struct job *job, uint64_t off, uint64_t n,
			struct iovec *iov)
{
	unsigned used = 0;
	uint64_t part;

	while (n) {
		part = BLOCK_SECTORS - off % BLOCK_SECTORS;
		part = part < n ? part : n;
		iov[used].iov_base = (uint8_t *)job->data[off / BLOCK_SECTORS] +
				     off % BLOCK_SECTORS * SECTOR_BYTES;
		iov[used++].iov_len = part * SECTOR_BYTES;
		off += part;
		n -= part;
	}
	return used;
}

void job_requests(struct job *job, enum queue_class class,
		  void (*written)(struct job *job, int rc))
{
	struct job_segment *segment;
	struct iovec *iov = job->iov;
	uint64_t off = 0;
	unsigned i, used;

	job->written = written;
	job->outstanding = job->segments;
	for (i = 0; i < job->segments; i++) {
		segment = &job->segment[i];
		used = job_iov(job, off, segment->n, iov);
		segment->job = job;
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

void job_submit(struct job *job, struct job_segment *segment,
		enum queue_class class)
{
	segment->req.class = class;
	segment->req.disk.done = job_written_one;
	segment->req.disk.owner = segment;
	queue_submit(job->files->fs->queue, &segment->req);
}

void job_write(struct job *job, enum queue_class class,
	       void (*written)(struct job *job, int rc))
{
	unsigned i;

	job_requests(job, class, written);
	if (job->kind == JOB_DIRECT && place_choose(job))
		return;
	for (i = 0; i < job->segments; i++)
		job_submit(job, &job->segment[i], class);
}

/* ---- What all transactions that map data share ---- */

/* Segments as extents of the file, from sector `off` of the file on. */
static unsigned job_extents(const struct job *job, struct extent *list)
{
	uint64_t off = job->first * BLOCK_SECTORS;
	unsigned i;

	for (i = 0; i < job->segments; i++) {
		list[i] = (struct extent){
			.off = off,
			.n = job->segment[i].n,
			.addr = addr_make(0, job->segment[i].sector),
			.flags = job->segment[i].known ? EXTENT_KNOWN : 0,
		};
		off += job->segment[i].n;
	}
	return job->segments;
}

static const void *job_data(const struct job *job, unsigned i)
{
	if (job->claimed)
		return job->data[i];
	return block_find(job->file, job->first + i)->data;
}

static uint64_t job_sum_fine(void *arg, unsigned i)
{
	struct job *job = arg;

	return csum(job_data(job, job->done + i), BLOCK_BYTES);
}

static uint64_t job_sum_coarse(void *arg, unsigned i)
{
	struct job *job = arg;
	struct iovec iov[PIECE_BLOCKS];
	unsigned b;

	for (b = 0; b < PIECE_BLOCKS; b++) {
		iov[b].iov_base = (void *)job_data(job, job->done + i + b);
		iov[b].iov_len = BLOCK_BYTES;
	}
	return csum_iov(iov, PIECE_BLOCKS);
}

/* The INLINE item goes when block 0 is mapped. */
static int job_inline_probe(struct ticket *ticket, const struct job *job,
			    bool *there)
{
	struct tree_item item;
	int rc;

	*there = false;
	if (!job->file->has_inline)
		return 0;
	rc = tree_get(ticket->txn, key_make(job->file->ino, ITEM_INLINE, 0),
		      &item);
	*there = rc == 0;
	return rc == -ENOENT ? 0 : rc;
}

static void job_size(const struct job *job, unsigned n, struct inode_item *item)
{
	uint64_t end = (job->first + job->done + n) * BLOCK_BYTES;

	if (end > job->file->size)
		end = job->file->size;
	if (end > le64_get(item->size))
		item->size = le64_put(end);
}

/*
 * Maps the next n blocks of a job to its segments, with sums; `coarse`: 64 KiB
 * written at once get one.  Returns the blocks mapped, or 0 and *rc.
 */
static unsigned job_map(struct ticket *ticket, struct job *job, unsigned n,
			bool coarse, bool remap, int *rc)
{
	struct file *file = job->file;
	uint64_t first = job->first + job->done;
	struct extent list[JOB_PIECES];
	struct map_sums sums = {
		.first = first, .fine = job_sum_fine, .arg = job,
		.coarse = coarse ? job_sum_coarse : NULL,
	};
	struct map_plan plan;
	struct replica_drop drop;
	struct inode_item item;
	bool is_inline;
	int err;

	*rc = inode_get(ticket, file->ino, &item);
	err = job_inline_probe(ticket, job, &is_inline);
	if (!*rc)
		*rc = replica_probe(ticket, file->ino, &item, first, &n, &drop);
	if (!*rc || *rc == -EAGAIN)
		*rc = err ? err : *rc;
	plan.n = (uint64_t)n * BLOCK_SECTORS;
	if (*rc && *rc != -EAGAIN)
		return 0;
	if (remap) {
		err = map_probe(ticket, file->ino, first * BLOCK_SECTORS,
				(uint64_t)n * BLOCK_SECTORS, list,
				job_extents(job, list), &plan);
		*rc = err ? err : *rc;
		if (err && err != -EAGAIN)
			return 0;
	}
	sums.n = (unsigned)(plan.n / BLOCK_SECTORS);
	err = map_sums_probe(ticket, file, &sums, &job->need);
	*rc = err ? err : *rc;
	if (*rc)
		return 0;
	replica_apply(ticket, file->ino, &drop);
	if (remap)
		map_apply(ticket, file->ino, &plan, &item);
	map_sums_apply(ticket, file, &sums);
	if (is_inline && job->first == 0)
		tree_del(ticket->txn, key_make(file->ino, ITEM_INLINE, 0));
	job_size(job, sums.n, &item);
	inode_put(ticket, file->ino, &item);
	if (job->first == 0) {
		file->has_inline = false;
		file->no_inline = false;
	}
	return sums.n;
}

/* ---- DIRECT and IN_PLACE: the transaction ---- */

static int commit_run(struct ticket *ticket)
{
	struct job *job = ticket->state;
	unsigned n = job->n - job->done;
	int rc;

	job->ticket = ticket;
	if (job->rc)
		return job->rc;
	if (n > TXN_BLOCKS)
		n = TXN_BLOCKS - (job->first + job->done) % PIECE_BLOCKS;
	job->want = job_map(ticket, job, n, true, true, &rc);
	return rc;
}

static void commit_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct job *job = ticket->state;
	struct file *file = job->file;
	struct block *block;
	unsigned end = job->done + job->want;

	need_end(&job->need);
	if (rc) {
		ticket_finish(ticket, 0);
		job_failed(job, rc);
		return;
	}
	for (; job->done < end; job->done++) {
		block = block_find(file, job->first + job->done);
		block->bad_home = false;
		block->failures = block->home_failures = 0;
		block_unreserve(file, block);
		if (block->hold)
			hold_drop_later(file, block, seq);
		job_release(job, job->done, true);
	}
	if (job->done < job->n) {
		ticket_again(ticket);
		return;
	}
	job->taken = false;
	ticket_finish(ticket, 0);
	job_end(job);
}

static const struct ticket_type commit_type = {
	.name = "map data",
	.bounds = { .nodes = 60,
		    .log_bytes = MAP_LOG_BYTES + REPLICA_LOG_BYTES },
	.paths = 14 + REPLICA_PATHS,
	.changes = 10 + REPLICA_PATHS,
	.stages = 60,
	.run = commit_run,
	.end = commit_end,
};

static void direct_written(struct job *job, int rc)
{
	struct fs *fs = job->files->fs;
	struct block *block;
	unsigned i;

	place_over(job);
	if (rc && job->kind == JOB_IN_PLACE)
		for (i = 0; i < job->n; i++) {
			block = block_find(job->file, job->first + i);
			block->bad_home = true;
		}
	if (!rc)
		rc = ticket_start(fs, &commit_type, NULL, job);
	if (rc)
		job_failed(job, rc);
}

/* ---- Where it goes: the first transaction, which changes nothing ---- */

enum mapping { UNMAPPED, WRITTEN, UNWRITTEN };

/*
 * What the job's first blocks are mapped to; shortens *n to those that are
 * mapped alike, and for UNWRITTEN and `places` lists where.
 */
static int job_mapping(struct ticket *ticket, struct job *job, unsigned *n,
		       bool places, enum mapping *mapping)
{
	uint64_t off = job->first * BLOCK_SECTORS, sector = off;
	uint64_t end = off + (uint64_t)*n * BLOCK_SECTORS, stop;
	struct extent extent;
	enum mapping kind;
	int rc;

	if (places)
		job->segments = 0;
	for (; sector < end; sector = stop) {
		rc = map_extent(ticket, job->file->ino, sector, &extent);
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
		    job_add(job, addr_sector(extent.addr) +
			    (sector - extent.off), stop - sector,
			    extent.flags & EXTENT_KNOWN)))
			break;
		if (tree_txn_room(ticket->txn) < 2 * TRAX_MAX_LEVEL) {
			sector = stop;
			break;
		}
	}
	*n = (unsigned)((sector - off) / BLOCK_SECTORS);
	return *n ? 0 : -EUCLEAN;
}

/* Segments may reach beyond what a shortened job has. */
static void job_cut(struct job *job, unsigned n)
{
	uint64_t left = (uint64_t)n * BLOCK_SECTORS;
	unsigned i;

	for (i = 0; i < job->segments && left; i++) {
		if (job->segment[i].n > left)
			job->segment[i].n = left;
		left -= job->segment[i].n;
	}
	job->segments = i;
}

/* Where the file ends on disk, if the job goes on there. */
static int job_after(struct ticket *ticket, const struct job *job,
		     uint64_t *after)
{
	const struct file *file = job->file;
	uint64_t off = job->first * BLOCK_SECTORS;
	struct extent extent;
	int rc;

	*after = 0;
	if (file->tail_addr && file->tail_off == off) {
		*after = file->tail_addr;
		return 0;
	}
	rc = map_extent_before(ticket, file->ino, off, &extent);
	if (rc == 0 && extent.off + extent.n == off)
		*after = addr_sector(extent.addr) + extent.n;
	return rc == -ENOENT ? 0 : rc;
}

/* Room for the job's first `want` blocks or, if there is not so much in few
 * enough pieces, fewer.  0, TICKET_WAIT or an error. */
static int job_take(struct ticket *ticket, struct job *job, uint64_t after)
{
	struct alloc_piece pieces[JOB_PIECES];
	struct fs *fs = job->files->fs;
	struct alloc_want want = {
		.goal = job->file->goal, .after = after,
		.dir = job->file->parent, .stream = job->stream,
		.batch = job->file->batch_sectors,
	};
	uint64_t sum = 0;
	uint32_t group;
	int rc, i;

	for (;;) {
		want.sectors = (uint64_t)job->want * BLOCK_SECTORS;
		rc = alloc_take(fs->alloc, &want, pieces, JOB_PIECES, &group);
		if (rc == -EAGAIN)
			return ticket_wait_group(ticket, group);
		if (rc == -ENOSPC && replica_room(ticket, want.sectors))
			return TICKET_WAIT;
		if (rc == -ENOSPC && !job->waited) {
			job->waited = true;
			return ticket_wait_checkpoint(ticket);
		}
		if (rc > 0)
			break;
		if ((rc != -ENOSPC && rc != -E2BIG) || job->want == 1)
			return rc;
		job->want = (job->want + 1) / 2;
	}
	job->segments = 0;
	for (i = 0; i < rc; i++) {
		job->segment[i].sector = pieces[i].sector;
		job->segment[i].n = pieces[i].n;
		job->segment[i].known = pieces[i].known;
		job->segment[i].failed = false;
		sum += pieces[i].n;
	}
	job->segments = (unsigned)rc;
	job->taken = true;
	job->may_move = rc == 1 && !pieces[0].whole_tracks &&
			pieces[0].sector != after;
	job->follows = pieces[0].follows;
	job->want = (unsigned)(sum / BLOCK_SECTORS);
	job->file->tail_off = job->first * BLOCK_SECTORS + sum;
	job->file->tail_addr = pieces[rc - 1].sector + pieces[rc - 1].n;
	return 0;
}

/* Is it better to write these blocks to a new place than home?  Only when
 * that takes nothing that is promised to others. */
static bool job_replaces(const struct job *job, unsigned n)
{
	struct fs *fs = job->files->fs;
	struct space *space = tree_space(fs->tree);
	uint64_t sectors = (uint64_t)n * BLOCK_SECTORS;
	struct block *block = block_find(job->file, job->first);

	if (!block->bad_home &&
	    sectors * 2 < alloc_track_sectors(fs->alloc, job->file->goal))
		return false;
	if (space_reserve(space, sectors))
		return false;
	space_release(space, sectors);
	return true;
}

static int prepare_run(struct ticket *ticket)
{
	struct job *job = ticket->state;
	struct inode_item item;
	enum mapping mapping = UNMAPPED;
	unsigned n = collect(job, job->n ? job->n : job_most(job));
	uint64_t after;
	int rc, err;

	if (!n)
		return 0;
	err = inode_get(ticket, job->file->ino, &item);
	rc = job_mapping(ticket, job, &n, true, &mapping);
	if (rc || err)
		return rc && rc != -EAGAIN ? rc : err ? err : rc;
	job->file->parent = le64_get(item.parent);
	job->file->goal = addr_sector(le64_get(item.goal));
	job->kind = mapping == UNWRITTEN ? JOB_IN_PLACE : JOB_DIRECT;
	if (mapping == UNWRITTEN &&
	    block_find(job->file, job->first)->bad_home)
		job->kind = JOB_DIRECT;
	if (mapping == WRITTEN && !job_replaces(job, n)) {
		/* It is logged already. */
		if (block_is_logged(block_find(job->file, job->first)))
			return -ENOSPC;
		job->kind = JOB_LOGGED;
	}
	if (job->kind == JOB_DIRECT) {
		rc = job_after(ticket, job, &after);
		if (rc)
			return rc;
		if (!job->want || job->want > n)
			job->want = n;
		rc = job_take(ticket, job, after);
		if (rc == -ENOSPC && mapping == WRITTEN &&
		    !block_is_logged(block_find(job->file, job->first)))
			job->kind = JOB_LOGGED;
		else if (rc)
			return rc;
	}
	if (job->kind == JOB_IN_PLACE)
		job_cut(job, n);
	job->n = job->kind == JOB_DIRECT ? job->want : n;
	if (job->kind != JOB_LOGGED)
		job_claim(job);
	return 0;
}

static void logged_start(struct job *job);

static void prepare_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct job *job = ticket->state;
	struct file *file = job->file;
	enum queue_class class = file->sync ? QUEUE_COMMIT : QUEUE_WRITE_BACK;

	(void)seq;
	ticket_finish(ticket, 0);
	if (rc || !(job->claimed || job->kind == JOB_LOGGED)) {
		job_prepared(file);
		if (rc)
			job_failed(job, rc);
		else
			job_end(job);
		return;
	}
	if (job->kind == JOB_LOGGED) {
		logged_start(job);
		return;
	}
	job_prepared(file);
	if (class == QUEUE_COMMIT || !prewrite_may(file, job->kind) ||
	    !prewrite_job(job, direct_written))
		job_write(job, class, direct_written);
	jobs_pump(job->files);
}

static const struct ticket_type prepare_type = {
	.name = "place data",
	.bounds = { .nodes = 48 },
	.stages = 60,
	.run = prepare_run,
	.end = prepare_end,
};

/* ---- LOGGED ---- */

static void logged_data(struct ticket *ticket, struct job *job, unsigned n)
{
	struct block *block = block_find(job->file, job->first);
	struct iovec iov[LOG_BLOCKS];
	uint64_t sums[LOG_BLOCKS];
	unsigned i;

	for (i = 0; i < n; i++, block = block->next) {
		iov[i].iov_base = block->data;
		iov[i].iov_len = BLOCK_BYTES;
		sums[i] = csum(block->data, BLOCK_BYTES);
	}
	tree_log_data(ticket->txn, job->file->ino, job->first, n, sums, iov, n);
}

static int logged_run(struct ticket *ticket)
{
	struct job *job = ticket->state;
	enum mapping mapping = UNMAPPED;
	unsigned n = collect(job, LOG_BLOCKS), mapped;
	uint64_t after;
	int rc;

	job->ticket = ticket;
	job->n = 0;
	if (job->rc || !n)
		return job->rc;
	rc = job_mapping(ticket, job, &n, !job->taken, &mapping);
	if (rc)
		return rc;
	if (mapping == UNMAPPED && !job->taken) {
		rc = job_after(ticket, job, &after);
		if (rc)
			return rc;
		job->want = n;
		rc = job_take(ticket, job, after);
		if (rc)
			return rc;
	}
	if (mapping == UNMAPPED && n > job->want)
		n = job->want;
	if (mapping != UNMAPPED)
		job_cut(job, n);
	mapped = job_map(ticket, job, n, false, mapping != WRITTEN, &rc);
	if (rc)
		return rc;
	logged_data(ticket, job, mapped);
	job->n = mapped;
	return 0;
}

static void logged_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct job *job = ticket->state;
	struct file *file = job->file;
	struct files *files = job->files;
	struct block *block;
	unsigned i;

	ticket_finish(ticket, 0);
	job_prepared(file);
	if (rc) {
		job_failed(job, rc);
		return;
	}
	if (job->n) {
		job->hold->seq = seq;
		list_add(&files->holds, &job->hold->link);
	}
	for (i = 0; i < job->n; i++) {
		block = block_find(file, job->first + i);
		hold_set(file, block, job->hold);
		block->failures = 0;
		if (!block->bad_home)
			block->home_failures = 0;
		/* There was no other place: the old one again. */
		block->bad_home = false;
		block_clean(file, block);
		block_unreserve(file, block);
	}
	if (job->n)
		job->hold = NULL;
	job->done = job->n;
	job_end(job);
}

static const struct ticket_type logged_type = {
	.name = "log data",
	.bounds = { .nodes = 60, .log_bytes = LOGGED_LOG_BYTES },
	.paths = 10 + REPLICA_PATHS,
	.changes = 8 + REPLICA_PATHS,
	.stages = 60,
	.run = logged_run,
	.end = logged_end,
};

static void logged_start(struct job *job)
{
	job->kind = JOB_LOGGED;
	job->n = job->segments = 0;
	job->hold = files_alloc(job->files, sizeof(*job->hold));
	if (job->hold &&
	    !ticket_start(job->files->fs, &logged_type, NULL, job))
		return;
	job_prepared(job->file);
	job_failed(job, -ENOMEM);
}

/* ---- INLINE ---- */

static int inline_run(struct ticket *ticket)
{
	struct job *job = ticket->state;
	struct file *file = job->file;
	struct block *block = block_find(file, 0);
	struct inode_item item;
	struct tree_item old;
	int rc, err;

	job->n = 0;
	if (!block || !block->dirty || block->job)
		return 0;
	rc = inode_get(ticket, file->ino, &item);
	err = tree_get(ticket->txn, key_make(file->ino, ITEM_INLINE, 0), &old);
	if (err && err != -ENOENT)
		rc = rc && rc != -EAGAIN ? rc : err;
	if (rc)
		return rc;
	if (file->size > TRAX_MAX_INLINE_BYTES || file->no_inline ||
	    file->size == 0 || le64_get(item.sectors)) {
		file->no_inline = true;
		return 0;
	}
	tree_put(ticket->txn, key_make(file->ino, ITEM_INLINE, 0), block->data,
		 file->size);
	item.size = le64_put(file->size);
	inode_put(ticket, file->ino, &item);
	file->has_inline = true;
	pieces_changed(file, 0, 1);
	job->n = 1;
	return 0;
}

static void inline_end(struct ticket *ticket, int rc, uint64_t seq)
{
	struct job *job = ticket->state;
	struct file *file = job->file;
	struct block *block;

	ticket_finish(ticket, 0);
	job_prepared(file);
	if (rc) {
		job_failed(job, rc);
		return;
	}
	if (job->n) {
		block = block_find(file, 0);
		block_clean(file, block);
		block_unreserve(file, block);
		if (block->hold)
			hold_drop_later(file, block, seq);
		block_settle(file, block);
	}
	job->done = job->n;
	job_end(job);
}

static const struct ticket_type inline_type = {
	.name = "inline data",
	.bounds = { .log_bytes = TRAX_MAX_INLINE_BYTES + 1024 },
	.paths = 2,
	.changes = 2,
	.run = inline_run,
	.end = inline_end,
};

/* ---- Which, and when ---- */

/* The next dirty block of a file that may be written; NULL: none now. */
static struct block *job_next(struct file *file)
{
	struct block *block = block_at_or_after(file, file->cursor);
	struct block *start = block;
	bool wrapped = !block;

	if (!block)
		block = file->head;
	while (block) {
		if (block->dirty && !block->job &&
		    block->stamp <= file->flush_stamp)
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

static bool job_is_inline(const struct file *file, const struct block *block)
{
	return file->size <= TRAX_MAX_INLINE_BYTES && file->size &&
	       !file->no_inline && block->index == 0 && !block->bad_home;
}

static bool job_start(struct file *file, struct block *block, bool stream)
{
	struct fs *fs = file->files->fs;
	const struct ticket_type *type = &prepare_type;
	enum job_kind kind = JOB_DIRECT;
	struct job *job;

	if (file->has_inline && block->index != 0)
		return false;
	if (job_is_inline(file, block)) {
		type = &inline_type;
		kind = JOB_INLINE;
	} else if (file->sync && file->dirty_count <= SYNC_LOG_BLOCKS &&
		   !block->bad_home) {
		kind = JOB_LOGGED;
	}
	job = job_new(file, kind, block->index);
	if (!job)
		return false;
	job->stream = stream;
	file->preparing = true;
	if (kind == JOB_LOGGED) {
		logged_start(job);
	} else if (ticket_start(fs, type, NULL, job)) {
		job_prepared(file);
		job_failed(job, -ENOMEM);
	}
	return true;
}

static bool jobs_may(const struct files *files, bool small)
{
	return small ? !list_empty(&files->job_free[1]) :
		       files->large_backs < LARGE_BACKS;
}

/*
 * May a new job of this file begin now?  Many small files go out at once, so
 * that they make up whole tracks; a large one waits for them meanwhile, and
 * grows, so that its stretches are long.
 */
static bool job_may(const struct file *file)
{
	const struct files *files = file->files;
	unsigned backs = files->jobs_busy - files->homes_busy -
			 (files->offers - files->home_offers);

	return !file->preparing && !file_pauses(file) &&
	       file->backs - file->offers < JOBS_PER_FILE &&
	       !file_is_closed(file) && file->loaded &&
	       jobs_may(files, file_is_small(file)) &&
	       (file_is_small(file) || file->sync || backs < LARGE_BACKS);
}

/* Starts one job of a file that is to be flushed; false: nothing to start. */
static bool job_pump_file(struct file *file)
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
	if (!job_may(file))
		return false;
	block = file->has_inline ? block_find(file, 0) : job_next(file);
	if (!block || !block->dirty || block->job)
		return false;
	file->cursor = block->index + 1;
	file->users++;
	started = job_start(file, block, !file->final);
	file->users--;
	return started;
}

void job_flush(struct file *file, uint64_t stamp, bool sync, bool final)
{
	if (stamp > file->flush_stamp)
		file->flush_stamp = stamp;
	file->sync |= sync;
	file->final = final;
	job_want_flush(file);
}

void job_stream(struct file *file)
{
	struct files *files = file->files;
	uint64_t track = alloc_track_sectors(files->fs->alloc, file->goal);
	uint64_t least = track / BLOCK_SECTORS + 1;
	size_t most = pool_count(files->dirty_pool) / 4;
	struct block *block;

	least = least < STREAM_MIN_BLOCKS ? STREAM_MIN_BLOCKS : least;
	least = least < most ? least : most;
	if (file->run_end - file->run_first < least || !job_may(file) ||
	    file->has_inline || tree_failed(files->fs->tree))
		return;
	block = block_at_or_after(file, file->run_first);
	while (block && (!block->dirty || block->job))
		block = block->next;
	if (!block || block->index + least > file->run_end)
		return;
	file->run_first = block->index;
	job_start(file, block, true);
}

/*
 * Half of the pool is full: the oldest files go first.  Not while it is full of
 * what is held or on its way and little is dirty: a piece of a track would be
 * logged, which frees nothing, and the next would find it fuller yet.  Whatever
 * job ends then comes back here.
 */
static void jobs_pressure(struct files *files, struct file *file)
{
	size_t count = pool_count(files->dirty_pool);

	prewrite_recall_all(files);
	/* What comes later waits for its turn: one by one would be slow. */
	if (files->held_count > count / 4)
		homes_now(files);
	if (!file || (files->dirty_count < count / PRESSING_PART &&
		      files->jobs_busy))
		return;
	if (file->dirty_count >= count / 16)
		job_flush(file, files->stamp, false, !file->vnode->opens);
	else
		files_flush_group(file, UINT64_MAX, false);
}

/*
 * Long before that, of many small files those of the oldest directories go, so
 * that who writes a tree and then syncs does not wait for all of it.  What has
 * been written to just now may become a large file, which goes by itself
 * (job_stream).
 */
static void jobs_early(struct files *files)
{
	size_t few = pool_count(files->dirty_pool) / EARLY_PART;
	unsigned left = EARLY_LOOK;
	struct file *file;
	struct list *pos;

	if (files->dirty_count <= few)
		return;
	list_for_each(pos, &files->dirty_files) {
		file = list_entry(pos, struct file, dirty_link);
		if (file_is_small(file) &&
		    file_stamp(file) + few / 2 <= files->stamp) {
			files_flush_group(file, files->stamp - few / 2, false);
			return;
		}
		if (--left == 0)
			return;
	}
}

/* What goes before anybody asks for it. */
static void jobs_unasked(struct files *files)
{
	size_t count = pool_count(files->dirty_pool);
	bool going = !list_empty(&files->flush[0]) ||
		     !list_empty(&files->flush[1]);

	if (pool_available(files->dirty_pool) <= count / 2)
		jobs_pressure(files, going ? NULL :
			      list_first(&files->dirty_files, struct file,
					 dirty_link));
	else if (!going)
		jobs_early(files);
}

/* Once around: each goes to the end, of the list where it belongs. */
static void jobs_pump_list(struct files *files, bool small)
{
	struct list *pos, *flush = &files->flush[small];
	struct file *file;

	files->pump_round++;
	while (jobs_may(files, small) && !list_empty(flush)) {
		pos = flush->next;
		file = list_entry(pos, struct file, flush_link);
		if (file->pump_round == files->pump_round)
			break;
		file->pump_round = files->pump_round;
		list_del(pos);
		list_add(&files->flush[file_is_small(file)], pos);
		while (job_pump_file(file))
			;
	}
}

static void jobs_pump_once(struct files *files)
{
	jobs_unasked(files);
	jobs_pump_list(files, false);
	jobs_pump_list(files, true);
	homes_pump(files);
}

void jobs_pump(struct files *files)
{
	if (files->pumping) {
		files->pump_again = true;
		return;
	}
	files->pumping = true;
	do {
		files->pump_again = false;
		if (!tree_failed(files->fs->tree))
			jobs_pump_once(files);
		writers_run(files);
	} while (files->pump_again);
	files->pumping = false;
}
