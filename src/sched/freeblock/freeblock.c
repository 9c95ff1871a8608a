/*
 * freeblock.c - tasks, and the data that they get.
 *
 * The sectors that a task wants are in one of three sets:
 *
 * wanted --(a read begins)--> flying --(it ends)--> got()
 *    ^--- it could not begin ---'  `--(error)--> suspect --> got(-EIO)
 *
 * A read that fails may have failed for one sector, and a drive retries a bad
 * one for seconds: its wanted sectors are read again in a few parts, and of a
 * part that fails each run that the drive stores as one sector, so that a bad
 * one is read three times.  That is done one read at a time and in the class of
 * idle time, which has its turn in a queue that is never idle, too; when the
 * task is promoted, like a foreground read.
 *
 * gap_fill.c decides when and where reads go.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "sched/freeblock/gap_fill.h"

/* The least time without foreground requests before idle time begins. */
#define QUIET_NS (100 * NS_PER_MS)

static void freeblock_fini(void *arg);

static const struct queue_filler freeblock_filler = {
	.gap = gap_fill_begin,
	.idle = gap_fill_idle,
	.wants = gap_fill_wants,
	.passed = gap_fill_passed,
	.close = freeblock_fini,
};

/* ---- the queue's part ---- */

static struct freeblock *freeblock_of(struct queue *queue)
{
	return queue->filler == &freeblock_filler ? queue->filler_arg : NULL;
}

static int freeblock_make(struct queue *queue, struct freeblock **out)
{
	struct freeblock *fb = calloc(1, sizeof(*fb));
	int err;

	if (!fb)
		return -ENOMEM;
	fb->queue = queue;
	fb->quiet_ns = QUIET_NS;
	list_init(&fb->tasks);
	list_init(&fb->closed);
	list_init(&fb->reads);
	if (queue->head && head_is_known(queue->head)) {
		fb->geom = head_geom(queue->head);
	} else {
		err = geom_regular(queue->disk->limits.sectors,
				   GEOM_PSEUDO_SECTORS,
				   &fb->own_geom);
		if (err) {
			free(fb);
			return err;
		}
		fb->geom = fb->own_geom;
	}
	queue_set_filler(queue, &freeblock_filler, fb);
	*out = fb;
	return 0;
}

static void read_free(struct free_read *free_read)
{
	list_del(&free_read->link);
	free(free_read->iov.iov_base);
	free(free_read);
}

static void freeblock_fini(void *arg)
{
	struct freeblock *fb = arg;
	struct free_read *free_read;
	struct list *pos, *next;

	assert(list_empty(&fb->tasks));
	list_for_each_safe(pos, next, &fb->closed)
		free(list_entry(pos, struct freeblock_task, link));
	while ((free_read = list_first(&fb->reads, struct free_read, link)))
		read_free(free_read);
	geom_free(fb->own_geom);
	free(fb);
}

/* ---- tasks ---- */

bool task_writes(const struct freeblock_task *task)
{
	return !list_empty(&task->writes) || !list_empty(&task->fixed.requests);
}

struct queue_request *task_first_write(struct freeblock_task *task)
{
	struct list *from = list_empty(&task->writes) ? &task->fixed.requests :
							&task->writes;

	return list_first(from, struct queue_request, link);
}

/* Removes a write from the set: it begins, or will not be made. */
void task_leave_write(struct freeblock_task *task, struct queue_request *req)
{
	req->gap_waits = false;
	if (req->place)
		list_del(&req->link);
	else
		gap_write_remove(&task->fixed, req);
}

int freeblock_open(struct queue *queue, const struct freeblock_options *options,
		   const struct freeblock_ops *ops, void *arg,
		   struct freeblock_task **out)
{
	struct freeblock *fb = freeblock_of(queue);
	struct freeblock_task *task;
	int err;

	if (!fb) {
		err = freeblock_make(queue, &fb);
		if (err)
			return err;
	}
	task = calloc(1, sizeof(*task));
	if (!task)
		return -ENOMEM;
	err = freeblock_set_open(fb->geom, queue->disk->limits.logical_bytes /
						   SECTOR_BYTES, &task->set);
	if (err) {
		free(task);
		return err;
	}
	task->fb = fb;
	task->options = *options;
	if (!task->options.share)
		task->options.share = 1;
	task->ops = ops;
	task->arg = arg;
	rangeset_init(&task->flying);
	rangeset_init(&task->suspect);
	list_init(&task->writes);
	gap_write_init(&task->fixed);
	task_get(task);
	list_add(&fb->tasks, &task->link);
	*out = task;
	return 0;
}

static void task_put(struct freeblock_task *task)
{
	if (--task->holds)
		return;
	list_del(&task->link);
	free(task);
}

void freeblock_close(struct freeblock_task *task)
{
	struct queue_request *req;

	if (!task)
		return;
	while ((req = task_first_write(task))) {
		task_leave_write(task, req);
		req->disk.result = -ECANCELED;
		task->ops->written(task->arg, req);
	}
	task->closed = true;
	list_del(&task->link);
	list_add(&task->fb->closed, &task->link);
	freeblock_set_close(task->set);
	rangeset_fini(&task->flying);
	rangeset_fini(&task->suspect);
	task_put(task);
}

void task_get(struct freeblock_task *task)
{
	task->holds++;
}

uint64_t freeblock_wanted(const struct freeblock_task *task)
{
	return freeblock_set_sectors(task->set) + task->flying.total +
	       task->suspect.total;
}

bool freeblock_wants(const struct freeblock_task *task, uint64_t sector,
		     uint64_t n)
{
	struct range r;

	return (freeblock_set_next(task->set, sector, &r) &&
		r.first < sector + n) ||
	       rangeset_meets(&task->flying, sector, n) ||
	       rangeset_meets(&task->suspect, sector, n);
}

/* Something may be possible now: has the queue ask for it. */
static void task_wake(struct freeblock_task *task)
{
	queue_ask_filler(task->fb->queue);
	gap_fill_promoted(task);
}

int freeblock_want(struct freeblock_task *task, uint64_t sector, uint64_t n)
{
	int err = freeblock_set_add(task->set, sector, n);

	task_wake(task);
	return err;
}

void freeblock_unwant(struct freeblock_task *task, uint64_t sector, uint64_t n)
{
	/* Without memory some sectors stay wanted, and got() is called for them
	 * once too often. */
	(void)freeblock_set_remove(task->set, sector, n);
	(void)rangeset_remove(&task->flying, sector, n);
	(void)rangeset_remove(&task->suspect, sector, n);
}

void freeblock_promote(struct freeblock_task *task, unsigned depth)
{
	task->promoted = depth;
	task_wake(task);
}

void freeblock_pause(struct freeblock_task *task, bool paused)
{
	task->paused = paused;
	task_wake(task);
}

/* ---- what is read ---- */

struct free_read *read_new(struct freeblock *fb, enum free_read_kind kind,
		      struct freeblock_task *task, uint64_t sector,
		      uint32_t sectors)
{
	size_t bytes = (size_t)sectors * SECTOR_BYTES;
	struct free_read *free_read = calloc(1, sizeof(*free_read));

	if (!free_read)
		return NULL;
	free_read->iov.iov_len = bytes;
	free_read->iov.iov_base = aligned_alloc(
		DISK_BUFFER_ALIGN,
		(bytes + DISK_BUFFER_ALIGN - 1) / DISK_BUFFER_ALIGN *
			DISK_BUFFER_ALIGN);
	if (!free_read->iov.iov_base) {
		free(free_read);
		return NULL;
	}
	free_read->fb = fb;
	free_read->kind = kind;
	free_read->task = task;
	if (task)
		task_get(task);
	free_read->req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = sector,
			.sectors = sectors,
			.iov = &free_read->iov,
			.iov_n = 1,
			.done = freeblock_read_done,
			.owner = free_read,
		},
		.class = kind == FREE_READ_PROMOTED ? QUEUE_READ : QUEUE_IDLE,
	};
	list_add(&fb->reads, &free_read->link);
	return free_read;
}

/* Finds the next wanted run in [from, end), within a track and in whole units;
 * false: there is none. */
static bool task_next(const struct freeblock_task *task, uint64_t from,
		      uint64_t end, struct range *out)
{
	if (!freeblock_set_next(task->set, from, out) || out->first >= end)
		return false;
	if (out->n > end - out->first)
		out->n = end - out->first -
			 (end - out->first) % freeblock_set_unit(task->set);
	return out->n;
}

/* Moves the wanted sectors of a range to `flying`. */
static void task_take(struct freeblock_task *task, uint64_t first,
		      uint64_t end)
{
	struct range r;

	while (task_next(task, first, end, &r)) {
		first = r.first + r.n;
		if (rangeset_add(&task->flying, r.first, r.n))
			return;
		if (freeblock_set_remove(task->set, r.first, r.n))
			(void)rangeset_remove(&task->flying, r.first, r.n);
	}
}

void freeblock_take(struct freeblock *fb, uint64_t sector, uint32_t sectors)
{
	struct list *pos;

	list_for_each(pos, &fb->tasks)
		task_take(list_entry(pos, struct freeblock_task, link), sector,
			  sector + sectors);
}

static void count_sectors(struct freeblock_stats *stats,
			  enum free_read_kind kind, uint64_t n)
{
	stats->sectors += n;
	switch (kind) {
	case FREE_READ_GAP:
		stats->gap_sectors += n;
		break;
	case FREE_READ_IDLE:
		stats->idle_sectors += n;
		break;
	case FREE_READ_PROMOTED:
		stats->promoted_sectors += n;
		break;
	case FREE_READ_PASSED:
		stats->passed_sectors += n;
		break;
	}
}

static void task_count(struct freeblock_task *task, enum free_read_kind kind,
		       uint64_t n)
{
	count_sectors(&task->stats, kind, n);
	count_sectors(&task->fb->stats, kind, n);
}

/* The next range of a set in [first, end), cut to it. */
static bool next_in(const struct rangeset *set, uint64_t first, uint64_t end,
		    struct range *out)
{
	if (!rangeset_next(set, first, out) || out->first >= end)
		return false;
	if (out->first < first) {
		out->n -= first - out->first;
		out->first = first;
	}
	if (out->n > end - out->first)
		out->n = end - out->first;
	return true;
}

static void task_got(struct freeblock_task *task, enum free_read_kind kind,
		     uint64_t first, uint32_t n, const void *bytes)
{
	task_count(task, kind, n);
	task->ops->got(task->arg, first, n, bytes, bytes ? 0 : -EIO);
}

/* Parts of a failed read that are read first: about the square root of the
 * number of stored sectors of a track, so that the fewest reads find a bad
 * one. */
#define SUSPECT_PARTS 32u

uint32_t suspect_least(const struct freeblock_task *task)
{
	uint32_t unit = freeblock_set_unit(task->set);
	uint32_t stored = task->fb->queue->disk->limits.physical_bytes /
			  SECTOR_BYTES;

	return stored > unit ? (stored + unit - 1) / unit * unit : unit;
}

uint32_t suspect_most(const struct freeblock_task *task)
{
	return suspect_least(task) * SUSPECT_PARTS;
}

/* Has sectors of a failed read read in parts from now on. */
static void task_suspect(struct freeblock_task *task, enum free_read_kind kind,
			 const struct range *r)
{
	freeblock_unwant(task, r->first, r->n);
	if (rangeset_add(&task->suspect, r->first, r->n))
		task_got(task, kind, r->first, (uint32_t)r->n, NULL);
}

/* Delivers the data of a read to a task. */
static void task_deliver(struct freeblock_task *task,
			 const struct free_read *free_read)
{
	const struct disk_request *disk = &free_read->req.disk;
	uint64_t first = disk->sector, end = first + disk->sectors;
	const char *bytes = free_read->iov.iov_base;
	struct range r;

	task_get(task);
	while (!task->closed && next_in(&task->flying, first, end, &r)) {
		first = r.first + r.n;
		if (rangeset_remove(&task->flying, r.first, r.n))
			continue;
		if (disk->result == -EBUSY) {
			(void)freeblock_set_add(task->set, r.first, r.n);
			continue;
		}
		if (disk->result)
			task_suspect(task, free_read->kind, &r);
		else
			task_got(task, free_read->kind, r.first, (uint32_t)r.n,
				 bytes + (r.first - disk->sector) *
						 SECTOR_BYTES);
	}
	task_put(task);
}

/* Delivers a part of a failed read that was then read by itself, unless parts
 * of that are to be read. */
static void suspect_deliver(struct freeblock_task *task,
			    const struct free_read *free_read)
{
	const struct disk_request *disk = &free_read->req.disk;
	uint64_t first = disk->sector, end = first + disk->sectors;
	const char *bytes = free_read->iov.iov_base;
	bool again = disk->result == -EBUSY;
	struct range r;

	if (disk->result && disk->sectors > suspect_least(task)) {
		task->failed = (struct range){ first, disk->sectors };
		again = true;
	}
	while (!again && !task->closed &&
	       next_in(&task->suspect, first, end, &r)) {
		first = r.first + r.n;
		if (rangeset_remove(&task->suspect, r.first, r.n))
			break;
		task_got(task, free_read->kind, r.first, (uint32_t)r.n,
			 disk->result ? NULL : bytes +
				(r.first - disk->sector) * SECTOR_BYTES);
	}
	task->suspecting = false;
}

void freeblock_read_done(struct disk_request *disk)
{
	struct free_read *free_read = disk->owner;
	struct freeblock *fb = free_read->fb;
	struct freeblock_task *task = free_read->task;
	struct list *pos, *next;

	if (free_read->kind == FREE_READ_IDLE && !free_read->suspect)
		fb->idle_end_ns = disk->complete_ns;
	if (free_read->kind == FREE_READ_GAP)
		gap_fill_read_over(fb, disk);
	if (free_read->suspect)
		suspect_deliver(task, free_read);
	list_for_each_safe(pos, next, &fb->tasks)
		task_deliver(list_entry(pos, struct freeblock_task, link),
			     free_read);
	if (task && !free_read->suspect)
		task->reading--;
	read_free(free_read);
	if (task)
		task_put(task);
	list_for_each_safe(pos, next, &fb->tasks)
		gap_fill_promoted(list_entry(pos, struct freeblock_task, link));
}

static void task_pass(struct freeblock_task *task, uint64_t first,
		      uint64_t end, const char *bytes)
{
	uint64_t from = first;
	struct range r;

	task_get(task);
	while (!task->closed && task_next(task, first, end, &r)) {
		if (freeblock_set_remove(task->set, r.first, r.n))
			break;
		first = r.first + r.n;
		task_got(task, FREE_READ_PASSED, r.first, (uint32_t)r.n,
			 bytes + (r.first - from) * SECTOR_BYTES);
	}
	task_put(task);
}

void freeblock_pass(struct freeblock *fb, uint64_t sector, uint32_t sectors,
		    const void *bytes)
{
	struct list *pos, *next;

	list_for_each_safe(pos, next, &fb->tasks)
		task_pass(list_entry(pos, struct freeblock_task, link), sector,
			  sector + sectors, bytes);
}

/* ---- what is written ---- */

static void write_enter(struct freeblock_task *task, struct queue_request *req)
{
	if (req->place)
		list_add(&task->writes, &req->link);
	else
		gap_write_add(&task->fixed, task->fb->geom, req);
}

void freeblock_write(struct freeblock_task *task, struct queue_request *req)
{
	req->disk.done = freeblock_write_done;
	req->disk.owner = task;
	req->class = QUEUE_IDLE;
	req->gap_waits = true;
	req->gap_last = false;
	write_enter(task, req);
	task_wake(task);
}

bool freeblock_write_cancel(struct freeblock_task *task,
			    struct queue_request *req)
{
	if (!req->gap_waits) {
		req->gap_last = true;
		return false;
	}
	task_leave_write(task, req);
	return true;
}

void freeblock_write_done(struct disk_request *disk)
{
	struct queue_request *req =
		container_of(disk, struct queue_request, disk);
	struct freeblock_task *task = disk->owner;
	enum free_read_kind kind = req->class == QUEUE_IDLE ? FREE_READ_GAP :
							 FREE_READ_PROMOTED;

	if (disk->result == -EBUSY && !task->closed && !req->gap_last) {
		req->gap_waits = true;
		write_enter(task, req);
	} else {
		if (!disk->result)
			task_count(task, kind, disk->sectors);
		task->ops->written(task->arg, req);
	}
	task_put(task);
}

/* ---- statistics and settings ---- */

void freeblock_set_quiet(struct queue *queue, uint64_t quiet_ns)
{
	struct freeblock *fb = freeblock_of(queue);

	if (fb)
		fb->quiet_ns = quiet_ns;
}

void freeblock_set_sleep(struct queue *queue, uint64_t sleep_ns)
{
	struct freeblock *fb = freeblock_of(queue);

	if (fb)
		fb->sleep_ns = sleep_ns;
}

uint64_t freeblock_quiet_ns(struct queue *queue)
{
	const struct freeblock *fb = freeblock_of(queue);

	return fb ? gap_fill_quiet_ns(fb) : QUIET_NS;
}

uint64_t freeblock_sleep_ns(struct queue *queue)
{
	const struct freeblock *fb = freeblock_of(queue);

	return fb && fb->sleep_ns ? fb->sleep_ns : UINT64_MAX;
}

/* Converts the set to the tracks of another geometry. */
static int task_set_geom(struct freeblock_task *task, const struct geom *geom)
{
	struct range r;
	uint64_t at = 0;
	int err = freeblock_set_open(geom, freeblock_set_unit(task->set),
				     &task->next);

	while (!err && freeblock_set_next(task->set, at, &r)) {
		at = r.first + r.n;
		err = freeblock_set_add(task->next, r.first, r.n);
	}
	return err;
}

/* Gives each task the set that was made for it; after an error it keeps its old
 * one. */
static void task_end_geom(struct freeblock_task *task, int err)
{
	if (!err) {
		freeblock_set_close(task->set);
		task->set = task->next;
	} else if (task->next) {
		freeblock_set_close(task->next);
	}
	task->next = NULL;
}

int freeblock_set_geom(struct queue *queue, const struct geom *geom)
{
	struct freeblock *fb = freeblock_of(queue);
	struct list *pos;
	int err = 0;

	if (!fb)
		return 0;
	list_for_each(pos, &fb->tasks)
		if (!err)
			err = task_set_geom(list_entry(pos,
						       struct freeblock_task,
						       link), geom);
	list_for_each(pos, &fb->tasks) {
		struct freeblock_task *task =
			list_entry(pos, struct freeblock_task, link);

		task_end_geom(task, err);
		if (!err)
			gap_write_set_geom(&task->fixed, geom);
	}
	if (err)
		return err;
	fb->geom = geom;
	fb->planned = false;
	return 0;
}

static uint64_t delay_p99_ns(const struct freeblock *fb)
{
	uint64_t left = fb->followed / 100;
	unsigned i = GAP_FILL_DELAYS;

	while (i-- > 1) {
		if (fb->delay_bins[i] > left)
			return (uint64_t)(i + 1) * GAP_FILL_DELAY_NS;
		left -= fb->delay_bins[i];
	}
	return 0;
}

void freeblock_get_stats(struct queue *queue, const struct freeblock_task *task,
			 struct freeblock_stats *out)
{
	struct freeblock *fb = freeblock_of(queue);

	*out = (struct freeblock_stats){ 0 };
	if (task) {
		*out = task->stats;
	} else if (fb) {
		*out = fb->stats;
		out->p99_delay_ns = delay_p99_ns(fb);
	}
}

void freeblock_get_delay(struct queue *queue, const char *name,
			 struct freeblock_delay *out)
{
	const struct freeblock *fb = freeblock_of(queue);
	unsigned i;

	*out = (struct freeblock_delay){ 0, 0 };
	for (i = 0; fb && i < GAP_FILL_TASKS && fb->delay[i].task; i++)
		if (!strcmp(fb->delay[i].task, name))
			*out = fb->delay[i].is;
}
