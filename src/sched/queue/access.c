/*
 * access.c - makes requests to the disk of those in the queue: gathers
 * neighbours, cuts requests that are too large.
 *
 * A request that is cut into parts begins at `split_sectors` and goes round:
 * if that is 0 from its first sector to its last; else the second part comes
 * first (a whole track on a drive that would wait for its beginning).
 */
#include "base/units.h"
#include "sched/queue/queue_internal.h"

/* A run is begun at its first request if that lies no further back than this: a
 * request left behind costs a seek of its own. */
#define RUN_TRACKS 8u
/* The head goes on where it is for this long while others of the class wait,
 * divided by the number of classes that wait: some tracks, since the way to
 * another place and back costs 20 ms, and short beside the time that reads are
 * promised.  Nobody waits for read-ahead, unless it is of age. */
#define RUN_NS (60 * NS_PER_MS)
#define RUN_AHEAD_NS (150 * NS_PER_MS)

static struct access *access_get(struct queue *queue, enum disk_op op)
{
	struct access *access =
		list_first(&queue->free_accesses, struct access, link);

	list_del(&access->link);
	access->disk = (struct disk_request){
		.op = op,
		.iov = access->iov,
		.done = queue_access_done,
	};
	access->is_part = false;
	access->class = QUEUE_COMMIT;
	return access;
}

/* Counts whether the head goes on from where it is, or elsewhere. */
static void access_count_stream(struct queue *queue,
				const struct disk_request *disk)
{
	uint64_t now_ns = env_now_ns(queue->env), until_ns;

	if (disk->sector == queue->head_sector) {
		queue->stats.patient += !queue->outstanding &&
					queue_has_waiting(queue);
		return;
	}
	until_ns = read_stream_until_ns(&queue->streams, queue->head_sector);
	if (until_ns && until_ns <= now_ns) {
		queue->stats.in_vain++;
		read_stream_miss(&queue->streams, queue->head_sector);
	}
	if (disk->sector - queue->head_sector > LEFT_OUT)
		queue->arrived_ns = queue_begin_ns(queue);
}

/* Was the place of the access chosen when it was? */
static bool access_is_placed(const struct access *access)
{
	return !access->is_part && access->disk.op == DISK_WRITE &&
	       list_first(&access->requests, struct queue_request, link)
		       ->placed;
}

void access_submit(struct access *access, uint64_t chosen_ns)
{
	struct queue *queue = access->queue;
	struct disk_request *disk = &access->disk;

	if (disk->op != DISK_FLUSH)
		access_count_stream(queue, disk);
	queue->outstanding++;
	list_add(&queue->given, &access->link);
	access->followed = queue->head && disk->op != DISK_FLUSH;
	if (access->followed) {
		access->at_head.write = disk->op == DISK_WRITE;
		access->at_head.cached = access->at_head.write && !disk->fua &&
			queue->disk->limits.volatile_cache;
		access->at_head.chosen = access_is_placed(access);
		access->at_head.part = queue->last &&
			queue->last->disk.op == disk->op &&
			queue->head_sector == disk->sector;
		if (access->at_head.part)
			queue->last->at_head.part = true;
		access->at_head.lbn = disk->sector;
		access->at_head.sectors = disk->sectors;
		head_begin(queue->head, &access->at_head, chosen_ns);
	}
	if (disk->op != DISK_FLUSH) {
		queue->stats.accesses++;
		queue->head_sector = disk->sector + disk->sectors;
		queue->last = access;
	}
	disk_submit(queue->disk, disk);
}

uint64_t queue_head_sector(const struct queue *queue)
{
	return queue->head_sector;
}

void access_drop_given(struct queue *queue)
{
	const struct access *access;
	struct list *pos;

	list_for_each(pos, &queue->given) {
		access = list_entry(pos, struct access, link);
		if (access->followed)
			head_drop(queue->head, &access->at_head);
	}
}

/* ---- neighbours ---- */

static bool fits_together(const struct queue_request *a,
			  const struct queue_request *b)
{
	return !b->uncached_hint && !b->copies_n && a->disk.op == b->disk.op &&
	       a->disk.fua == b->disk.fua;
}

/* The waiting request of a class that continues an access; NULL: none may. */
static struct queue_request *access_neighbour(struct queue *queue,
					      const struct queue_request *req,
					      enum queue_class class,
					      bool after)
{
	struct interval *set = queue->waiting[class];
	struct interval *interval =
		after ? interval_at_or_after(set, req->live.end)
		      : interval_before(set, req->live.first);
	struct queue_request *near;

	if (!interval || (after ? interval->first != req->live.end
			    : interval->end != req->live.first))
		return NULL;
	near = container_of(interval, struct queue_request, waiting);
	return fits_together(req, near) ? near : NULL;
}

static bool commits_come(const struct queue *queue,
			 const struct queue_request *req)
{
	return req->class >= QUEUE_WRITE_BACK && queue->head &&
	       head_mode(queue->head) == HEAD_ON &&
	       commit_burst_of_late(&queue->burst, env_now_ns(queue->env));
}

bool access_gives_way(const struct queue *queue,
		      const struct queue_request *req)
{
	return commits_come(queue, req) &&
	       !commit_burst_is_turn(&queue->burst, env_now_ns(queue->env));
}

/* While commits follow each other, a background access is at most a turn
 * long. */
uint32_t access_most(const struct queue *queue,
		     const struct queue_request *req)
{
	uint32_t most = queue->disk->limits.max_sectors;
	uint32_t unit = queue->disk->limits.physical_bytes / SECTOR_BYTES;
	struct geom_track track;

	if (!commits_come(queue, req))
		return most;
	geom_track_of(head_geom(queue->head), req->disk.sector, &track);
	track.sectors = (track.sectors + unit - 1) / unit * unit;
	return track.sectors < most ? track.sectors : most;
}

static bool access_has_room(const struct access *access,
			    const struct queue_request *req)
{
	return access->disk.sectors + (uint64_t)req->disk.sectors <=
		       access_most(access->queue, req) &&
	       access->disk.iov_n + req->disk.iov_n <= DISK_MAX_IOV;
}

static void access_add(struct access *access, struct queue_request *req,
		       bool front)
{
	access->disk.sectors += req->disk.sectors;
	access->disk.iov_n += req->disk.iov_n;
	if (front)
		list_add_front(&access->requests, &req->link);
	else
		list_add(&access->requests, &req->link);
}

/* Adds the read-ahead that lies behind a read, all of it: the way there is made
 * once. */
static void access_extend_ahead(struct access *access)
{
	struct queue *queue = access->queue;
	struct queue_request *near;
	struct interval *interval;
	uint64_t end = access->disk.sectors, most = 2 * end;

	end += list_first(&access->requests, struct queue_request, link)
		       ->live.first;
	while ((interval = interval_at_or_after(
			queue->waiting[QUEUE_READ_AHEAD], end)) &&
	       interval->first == end) {
		near = container_of(interval, struct queue_request, waiting);
		if (near->disk.op != DISK_READ || near->uncached_hint ||
		    near->copies_n || !access_has_room(access, near) ||
		    access->disk.sectors + near->disk.sectors > most)
			return;
		queue_leave_waiting(queue, near);
		access_add(access, near, false);
		queue->stats.merged++;
		end = near->live.end;
	}
}

/* Adds what waits on both sides of an access and is of a class. */
static void access_add_class(struct access *access, enum queue_class class)
{
	struct queue *queue = access->queue;
	struct queue_request *end, *near;
	int front;

	for (front = 0; front < 2; front++) {
		end = list_entry(front ? access->requests.next :
					 access->requests.prev,
				 struct queue_request, link);
		while ((near = access_neighbour(queue, end, class, !front)) &&
		       access_has_room(access, near) &&
		       !queue_stays_back(queue, near)) {
			queue_leave_waiting(queue, near);
			access_add(access, near, front);
			queue->stats.merged++;
			end = near;
		}
	}
}

/* Gathers the neighbours of a request.  Somebody waits for a read beside what
 * is read ahead: it goes along. */
static void access_extend(struct access *access, struct queue_request *req)
{
	access_add_class(access, req->class);
	if (req->class == QUEUE_READ_AHEAD && req->disk.op == DISK_READ)
		access_add_class(access, QUEUE_READ);
	if (req->class == QUEUE_READ && req->disk.op == DISK_READ &&
	    !req->copies_n)
		access_extend_ahead(access);
}

static void access_gather(struct access *access)
{
	const struct queue_request *req;
	struct iovec *to = access->iov;
	struct list *pos;
	unsigned i;

	list_for_each(pos, &access->requests) {
		req = list_entry(pos, struct queue_request, link);
		for (i = 0; i < req->disk.iov_n; i++)
			*to++ = req->disk.iov[i];
	}
	req = list_first(&access->requests, struct queue_request, link);
	access->disk.sector = req->disk.sector;
}

struct queue_request *access_run_begin(struct queue *queue,
				       struct queue_request *req)
{
	struct queue_request *near;
	struct geom_track track;
	uint64_t end = req->live.end;

	if (req->uncached_hint || req->copies_n)
		return req;
	geom_track_of(head_geom(queue->head), req->live.first, &track);
	while ((near = access_neighbour(queue, req, req->class, false)) &&
	       end - near->live.first <= RUN_TRACKS * track.sectors)
		req = near;
	return req;
}

/* The request of a class that goes on where the last access ends. */
static struct interval *run_next(const struct queue *queue, int class)
{
	struct interval *interval = interval_at_or_after(queue->waiting[class],
					     queue->head_sector);

	return interval && interval->first - queue->head_sector <= LEFT_OUT
		       ? interval
		       : NULL;
}

/* Where a sequence of requests of a class ends, each going on where the one
 * before it ends. */
static uint64_t run_end(const struct queue *queue, int class)
{
	struct interval *interval = run_next(queue, class);
	uint64_t end = queue->head_sector;

	while (interval && interval->first - end <= LEFT_OUT) {
		end = interval->end;
		interval = interval_at_or_after(queue->waiting[class], end);
	}
	return end;
}

/* Has the head gone on from one place for as long as RUN_NS allows while others
 * of the class wait? */
static bool run_is_over(const struct queue *queue, int class)
{
	struct interval *set = queue->waiting[class];
	uint64_t run_ns = class == QUEUE_READ_AHEAD ? RUN_AHEAD_NS : RUN_NS;
	unsigned other, classes = 0;

	for (other = 0; other < QUEUE_CLASSES; other++)
		classes += queue_class_waits(queue, (int)other);
	return queue_begin_ns(queue) >=
		       queue->arrived_ns + run_ns / (classes ? classes : 1) &&
	       (interval_before(set, queue->head_sector) ||
		interval_at_or_after(set, run_end(queue, class)) ||
		!list_empty(&queue->unplaced[class]));
}

void access_cut_run(struct queue *queue, int class)
{
	if (queue->cut.due_ns && queue->cut.class == class)
		return;
	if (run_next(queue, class) && run_is_over(queue, class))
		queue->cut = (struct run_cut){
			.class = class,
			.first = queue->head_sector,
			.end = run_end(queue, class),
			.due_ns = env_now_ns(queue->env) +
				  queue_promised_ns(class),
		};
}

struct queue_request *access_continued(const struct queue *queue)
{
	const struct access *last = queue->last;
	struct queue_request *req, *due;
	struct interval *interval;
	int class, next;

	if (!last || queue->partial || queue->parked)
		return NULL;
	due = queue_overdue(queue);
	if (due && queue_is_urgent(queue, due))
		return NULL;
	next = due ? (int)due->class : queue_next_class(queue);
	if (next < 0)
		return NULL;
	/* The request may have been raised to a higher class. */
	for (class = next == queue->share.holder ? 0 : next; class <= next;
	     class++) {
		interval = run_next(queue, class);
		if (!interval)
			continue;
		if (run_is_over(queue, class))
			return NULL;
		req = container_of(interval, struct queue_request, waiting);
		if (req->disk.op == last->disk.op && !req->uncached_hint &&
		    req->disk.fua == last->disk.fua &&
		    !queue_stays_back(queue, req))
			return req;
	}
	return NULL;
}

struct access *access_of(struct queue *queue, struct queue_request *req,
			 bool alone)
{
	struct access *access = access_get(queue, req->disk.op);

	access->disk.fua = req->disk.fua;
	access->class = req->class;
	access_add(access, req, false);
	if (!alone && !req->uncached_hint)
		access_extend(access, req);
	access_gather(access);
	return access;
}

bool access_join(struct access *access, struct queue_request *req)
{
	const struct disk_request *disk = &access->disk;
	bool front = req->disk.sector + req->disk.sectors == disk->sector;
	const struct queue_request *first;

	if (disk->op != DISK_READ || req->disk.op != DISK_READ ||
	    access->is_part || !access_has_room(access, req) ||
	    (!front && disk->sector + disk->sectors != req->disk.sector))
		return false;
	first = list_first(&access->requests, struct queue_request, link);
	if (first->uncached_hint)
		return false;
	access_add(access, req, front);
	access_gather(access);
	return true;
}

/* ---- parts ---- */

/* Cuts `bytes` at `offset` out of a list of buffers; returns the entries. */
static unsigned iov_slice(const struct iovec *iov, uint64_t offset,
			  uint64_t bytes, struct iovec *out)
{
	unsigned n = 0;
	size_t take;

	for (; offset >= iov->iov_len; iov++)
		offset -= iov->iov_len;
	for (; bytes; iov++) {
		take = iov->iov_len - offset;
		if (take > bytes)
			take = bytes;
		out[n++] = (struct iovec){ (char *)iov->iov_base + offset,
					   take };
		bytes -= take;
		offset = 0;
	}
	return n;
}

struct access *access_of_part(struct queue *queue)
{
	struct queue_request *req = queue->partial;
	struct access *access = access_get(queue, req->disk.op);
	uint32_t at = req->split_sectors + req->issued_sectors, left;
	uint32_t most = access_most(queue, req);

	left = req->disk.sectors - at;
	if (at >= req->disk.sectors) {
		at -= req->disk.sectors;
		left = req->split_sectors - at;
	}
	if (left > most)
		left = most;
	access->is_part = true;
	access->class = req->class;
	access->disk.owner = req;
	access->disk.fua = req->disk.fua;
	access->disk.sector = req->disk.sector + at;
	access->disk.sectors = left;
	access->disk.iov_n = iov_slice(req->disk.iov,
				       (uint64_t)at * SECTOR_BYTES,
				       (uint64_t)left * SECTOR_BYTES,
				       access->iov);
	req->issued_sectors += left;
	req->parts++;
	if (req->issued_sectors == req->disk.sectors)
		queue->partial = NULL;
	return access;
}

struct access *access_of_flushes(struct queue *queue)
{
	struct access *access = access_get(queue, DISK_FLUSH);
	struct queue_request *req;

	while ((req = list_first(&queue->flushes, struct queue_request,
				 link))) {
		list_del(&req->link);
		list_add(&access->requests, &req->link);
	}
	access->writes = queue->completed_writes;
	queue->stats.flushes++;
	return access;
}
