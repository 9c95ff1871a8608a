/*
 * queue.c - the life of a request:
 *
 *	queue_submit -> held	(queue_hold: it meets an earlier one)
 *		     -> waiting (queue_wait) -> in an access (queue_dispatch)
 *		     -> finished (queue_finish) -> done() (queue_deliver)
 *
 * From submission to completion it is in `live`, where later ones look for what
 * they must wait for.  An access is one request to the disk: a request, several
 * neighbours, a piece of one too large (`partial`), or a flush for all that
 * asked for one.  Accesses are a fixed array; without a free one nothing goes
 * out.
 *
 * Choice (queue_choose): the highest class that waits, by the policy within
 * it; but of any two choices one goes to the request that is most overdue, if
 * any is.  So an overloaded disk keeps at least half of its order, and nothing
 * waits for ever.
 *
 * Writes are counted as they complete.  A flush that succeeds covers those
 * that had been counted when it was given to the disk (flushed_writes).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "sched/policy.h"
#include "sched/queue.h"

#define DEPTH_ROTATING 4u
#define DEPTH_OTHER 32u
#define DEPTH_MAX 1024u

/* How old a request may become before its age counts. */
static const uint64_t class_age_ns[QUEUE_CLASSES] = {
	[QUEUE_COMMIT] = 50000000,
	[QUEUE_READ] = 500000000,
	[QUEUE_READ_AHEAD] = 2000000000,
	[QUEUE_WRITE_BACK] = 30000000000,
	[QUEUE_IDLE] = 60000000000,
};

struct access {
	struct disk_request disk;
	struct queue *queue;
	struct list requests;	/* by sector; flushes in order */
	struct list link;	/* while free */
	bool is_piece;		/* of the one request */
	bool followed;		/* by the head */
	struct head_access at_head;
	uint64_t writes;	/* flush: those it covers */
	struct iovec iov[DISK_MAX_IOV];
};

struct queue {
	struct env *env;
	struct disk *disk;
	const struct policy *policy;
	struct span *live;
	struct span *waiting[QUEUE_CLASSES];
	struct head *head;	/* NULL: nothing is believed */
	const struct queue_filler *filler;	/* or NULL */
	void *filler_arg;
	unsigned window_percent;
	struct list unplaced;	/* writes without an address, in order */
	struct list held;	/* in order of submission */
	struct list flushes;	/* not yet with the disk */
	struct list finished;	/* done() not yet called */
	struct list free_accesses;
	struct queue_request *partial;
	uint64_t order;		/* of the last submitted */
	uint64_t head_sector;	/* where the last access ends */
	uint64_t completed_writes, flushed_writes;
	unsigned outstanding;
	bool was_overdue;	/* the last choice */
	int gone;		/* what disk_poll failed with */
	struct queue_stats stats;
	struct access *accesses;
};

static const struct queue_request *of_live(const struct span *span)
{
	return container_of(span, struct queue_request, live);
}

/* ---- completion ---- */

static void queue_finish(struct queue *queue, struct queue_request *req,
			 int result, uint64_t now_ns)
{
	req->disk.result = result;
	req->disk.complete_ns = now_ns;
	list_add(&queue->finished, &req->link);
}

struct conflict {
	uint64_t order;
	bool is_write;
};

static bool span_conflicts(const struct span *span, const void *arg)
{
	const struct conflict *later = arg;

	return span->order < later->order &&
	       (later->is_write || of_live(span)->disk.op == DISK_WRITE);
}

static bool queue_must_hold(struct queue *queue,
			    const struct queue_request *req)
{
	struct conflict later = { req->live.order,
				  req->disk.op == DISK_WRITE };

	return span_any(queue->live, req->live.first, req->live.end,
			span_conflicts, &later);
}

static void queue_wait(struct queue *queue, struct queue_request *req)
{
	span_insert(&queue->waiting[req->class], &req->waiting);
}

/* Lets go what no longer meets an earlier one. */
static void queue_release_held(struct queue *queue)
{
	struct queue_request *req;
	struct list *pos, *next;

	list_for_each_safe(pos, next, &queue->held) {
		req = list_entry(pos, struct queue_request, link);
		if (queue_must_hold(queue, req))
			continue;
		list_del(&req->link);
		queue_wait(queue, req);
	}
}

/* Its sectors are known: waits for what it meets, or for its turn. */
static void queue_enter(struct queue *queue, struct queue_request *req)
{
	struct span span = {
		.first = req->disk.sector,
		.end = req->disk.sector + req->disk.sectors,
		.order = ++queue->order,
		.due_ns = req->deadline_ns ? req->deadline_ns :
			  req->disk.submit_ns + class_age_ns[req->class],
	};

	req->live = req->waiting = span;
	if (queue_must_hold(queue, req)) {
		queue->stats.held++;
		list_add(&queue->held, &req->link);
	} else {
		queue_wait(queue, req);
	}
	span_insert(&queue->live, &req->live);
}

static void queue_end_request(struct queue *queue, struct queue_request *req,
			      int result, uint64_t now_ns)
{
	struct queue_class_stats *stats = &queue->stats.class[req->class];

	span_remove(&queue->live, &req->live);
	if (!result && req->disk.op == DISK_WRITE && !req->disk.fua)
		queue->completed_writes++;
	stats->requests++;
	stats->bytes += (uint64_t)req->disk.sectors * SECTOR_BYTES;
	queue_finish(queue, req, result, now_ns);
}

static void queue_count_service(struct queue *queue, enum queue_class class,
				const struct disk_request *disk)
{
	queue->stats.class[class].service_ns +=
		disk->complete_ns - disk->submit_ns;
}

/* A piece of a large request is over.  After an error no more are issued. */
static void queue_end_piece(struct queue *queue, struct access *access)
{
	struct queue_request *req = access->disk.owner;

	req->pieces--;
	queue_count_service(queue, req->class, &access->disk);
	if (access->disk.result && !req->disk.result)
		req->disk.result = access->disk.result;
	if (req->disk.result && queue->partial == req)
		queue->partial = NULL;
	if (!req->pieces && queue->partial != req)
		queue_end_request(queue, req, req->disk.result,
				  access->disk.complete_ns);
}

static void queue_end_merged(struct queue *queue, struct access *access)
{
	uint64_t now_ns = access->disk.complete_ns;
	bool single = access->requests.next == access->requests.prev;
	struct queue_request *req;

	while ((req = list_first(&access->requests, struct queue_request,
				 link))) {
		list_del(&req->link);
		queue_count_service(queue, req->class, &access->disk);
		if (access->disk.result && !single) {
			req->alone = true;
			queue->stats.retried++;
			queue_wait(queue, req);
			continue;
		}
		queue_end_request(queue, req, access->disk.result, now_ns);
	}
}

static void queue_end_flush(struct queue *queue, struct access *access)
{
	struct queue_request *req;

	if (!access->disk.result && access->writes > queue->flushed_writes)
		queue->flushed_writes = access->writes;
	while ((req = list_first(&access->requests, struct queue_request,
				 link))) {
		list_del(&req->link);
		queue_finish(queue, req, access->disk.result,
			     access->disk.complete_ns);
	}
}

static void access_done(struct disk_request *disk)
{
	struct access *access = container_of(disk, struct access, disk);
	struct queue *queue = access->queue;

	queue->outstanding--;
	if (access->followed)
		head_end(queue->head, &access->at_head, disk->complete_ns,
			 disk->result);
	if (disk->op == DISK_FLUSH)
		queue_end_flush(queue, access);
	else if (access->is_piece)
		queue_end_piece(queue, access);
	else
		queue_end_merged(queue, access);
	list_add(&queue->free_accesses, &access->link);
	if (!list_empty(&queue->held))
		queue_release_held(queue);
}

/* ---- dispatch ---- */

static struct access *access_get(struct queue *queue, enum disk_op op)
{
	struct access *access =
		list_first(&queue->free_accesses, struct access, link);

	list_del(&access->link);
	access->disk = (struct disk_request){
		.op = op,
		.iov = access->iov,
		.done = access_done,
	};
	access->is_piece = false;
	return access;
}

static void access_submit(struct access *access)
{
	struct queue *queue = access->queue;
	struct disk_request *disk = &access->disk;

	queue->outstanding++;
	if (disk->op != DISK_FLUSH) {
		queue->stats.accesses++;
		queue->head_sector = disk->sector + disk->sectors;
	}
	access->followed = queue->head && disk->op != DISK_FLUSH;
	if (access->followed) {
		access->at_head.write = disk->op == DISK_WRITE;
		access->at_head.lbn = disk->sector;
		access->at_head.sectors = disk->sectors;
		head_begin(queue->head, &access->at_head);
	}
	disk_submit(queue->disk, disk);
}

static void queue_count_wait(struct queue *queue, struct queue_request *req)
{
	struct queue_class_stats *stats = &queue->stats.class[req->class];
	uint64_t wait_ns = env_now_ns(queue->env) - req->disk.submit_ns;

	stats->wait_ns += wait_ns;
	if (wait_ns > stats->max_wait_ns)
		stats->max_wait_ns = wait_ns;
}

static void queue_leave_waiting(struct queue *queue,
				struct queue_request *req)
{
	span_remove(&queue->waiting[req->class], &req->waiting);
	queue_count_wait(queue, req);
}

/* The waiting request that continues an access; NULL: none may. */
static struct queue_request *queue_neighbour(struct queue *queue,
					     const struct queue_request *req,
					     bool after)
{
	struct span *set = queue->waiting[req->class];
	struct span *span = after ? span_at_or_after(set, req->live.end)
				  : span_before(set, req->live.first);
	struct queue_request *near;

	if (!span || (after ? span->first != req->live.end
			    : span->end != req->live.first))
		return NULL;
	near = container_of(span, struct queue_request, waiting);
	if (near->alone || near->disk.op != req->disk.op ||
	    near->disk.fua != req->disk.fua)
		return NULL;
	return near;
}

static bool access_has_room(const struct access *access,
			    const struct queue_request *req)
{
	const struct disk_limits *limits = &access->queue->disk->limits;

	return access->disk.sectors + (uint64_t)req->disk.sectors <=
		       limits->max_sectors &&
	       access->disk.iov_n + req->disk.iov_n <= DISK_MAX_IOV;
}

static void access_add(struct access *access, struct queue_request *req)
{
	queue_leave_waiting(access->queue, req);
	access->disk.sectors += req->disk.sectors;
	access->disk.iov_n += req->disk.iov_n;
}

/* Gathers the neighbours of a request on both sides. */
static void access_extend(struct access *access, struct queue_request *req)
{
	struct queue *queue = access->queue;
	struct queue_request *end = req, *near;

	while ((near = queue_neighbour(queue, end, true)) &&
	       access_has_room(access, near)) {
		access_add(access, near);
		list_add(&access->requests, &near->link);
		queue->stats.merged++;
		end = near;
	}
	end = req;
	while ((near = queue_neighbour(queue, end, false)) &&
	       access_has_room(access, near)) {
		access_add(access, near);
		list_add_front(&access->requests, &near->link);
		queue->stats.merged++;
		end = near;
	}
}

static void access_gather_iov(struct access *access)
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
}

static void queue_issue(struct queue *queue, struct queue_request *req)
{
	struct access *access = access_get(queue, req->disk.op);
	const struct queue_request *first;

	access->disk.fua = req->disk.fua;
	access_add(access, req);
	list_add(&access->requests, &req->link);
	if (!req->alone)
		access_extend(access, req);
	access_gather_iov(access);
	first = list_first(&access->requests, struct queue_request, link);
	access->disk.sector = first->disk.sector;
	access_submit(access);
}

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

static void queue_issue_piece(struct queue *queue)
{
	struct queue_request *req = queue->partial;
	struct access *access = access_get(queue, req->disk.op);
	uint32_t n = req->disk.sectors - req->issued_sectors;

	if (n > queue->disk->limits.max_sectors)
		n = queue->disk->limits.max_sectors;
	access->is_piece = true;
	access->disk.owner = req;
	access->disk.fua = req->disk.fua;
	access->disk.sector = req->disk.sector + req->issued_sectors;
	access->disk.sectors = n;
	access->disk.iov_n = iov_slice(
		req->disk.iov, (uint64_t)req->issued_sectors * SECTOR_BYTES,
		(uint64_t)n * SECTOR_BYTES, access->iov);
	req->issued_sectors += n;
	req->pieces++;
	if (req->issued_sectors == req->disk.sectors)
		queue->partial = NULL;
	access_submit(access);
}

/* One flush of the disk serves all that wait for one. */
static void queue_issue_flush(struct queue *queue)
{
	struct access *access = access_get(queue, DISK_FLUSH);
	struct queue_request *req;

	while ((req = list_first(&queue->flushes, struct queue_request,
				 link))) {
		list_del(&req->link);
		list_add(&access->requests, &req->link);
	}
	access->writes = queue->completed_writes;
	access->disk.iov_n = 0;
	queue->stats.flushes++;
	access_submit(access);
}

static struct span *queue_most_overdue(struct queue *queue)
{
	uint64_t now_ns = env_now_ns(queue->env);
	struct span *best = NULL, *span;
	int class;

	for (class = 0; class < QUEUE_CLASSES; class++) {
		span = span_first_due(queue->waiting[class]);
		if (span && span->due_ns <= now_ns &&
		    (!best || span->due_ns < best->due_ns))
			best = span;
	}
	return best;
}

/* The next request for the disk; NULL when none waits. */
static struct queue_request *queue_choose(struct queue *queue)
{
	struct policy_view view = { .head_sector = queue->head_sector };
	struct span *span = NULL;
	int class = 0;

	if (!queue->was_overdue)
		span = queue_most_overdue(queue);
	queue->was_overdue = span != NULL;
	if (span)
		queue->stats.overdue++;
	while (!span && class < QUEUE_CLASSES) {
		view.waiting = queue->waiting[class++];
		if (view.waiting)
			span = queue->policy->choose(&view);
	}
	return span ? container_of(span, struct queue_request, waiting) : NULL;
}

/* Gives the oldest write without an address one. */
static void queue_place_one(struct queue *queue)
{
	struct queue_request *req =
		list_first(&queue->unplaced, struct queue_request, link);
	struct belief belief, *known = NULL;
	uint64_t sector, cost_ns;
	int err;

	if (queue->head) {
		head_get_belief(queue->head, &belief);
		known = belief.writes ? &belief : NULL;
	}
	err = req->place->find(req->place, known, req->disk.sectors, &sector,
			       &cost_ns);
	list_del(&req->link);
	if (err) {
		queue_finish(queue, req, err, env_now_ns(queue->env));
		return;
	}
	req->disk.sector = sector;
	req->place->take(req->place, req, sector);
	queue_enter(queue, req);
}

static void queue_dispatch(struct queue *queue)
{
	struct queue_request *req;

	while (!list_empty(&queue->free_accesses)) {
		if (!list_empty(&queue->flushes)) {
			queue_issue_flush(queue);
		} else if (queue->partial) {
			queue_issue_piece(queue);
		} else {
			req = queue_choose(queue);
			if (!req && !list_empty(&queue->unplaced)) {
				queue_place_one(queue);
				continue;
			}
			if (!req)
				return;
			if (req->disk.sectors <=
			    queue->disk->limits.max_sectors) {
				queue_issue(queue, req);
			} else {
				queue_leave_waiting(queue, req);
				queue->partial = req;
			}
		}
	}
}

/* Calls done() of all that is finished, and of what finishes by that. */
static int queue_deliver(struct queue *queue)
{
	struct queue_request *req;
	int n = 0;

	while ((req = list_first(&queue->finished, struct queue_request,
				 link))) {
		list_del(&req->link);
		n++;
		req->disk.done(&req->disk);
		if (list_empty(&queue->finished))
			queue_dispatch(queue);
	}
	return n;
}

/* ---- the interface ---- */

int queue_open(struct env *env, struct disk *disk,
	       const struct queue_options *options, struct queue **out)
{
	const struct policy *policy =
		policy_find(options->policy ? options->policy : "c-look");
	unsigned depth = options->depth, i;
	struct queue *queue;

	if (!depth)
		depth = disk->limits.rotational ? DEPTH_ROTATING : DEPTH_OTHER;
	if (!policy || depth > DEPTH_MAX)
		return -EINVAL;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	queue->accesses = calloc(depth, sizeof(*queue->accesses));
	if (!queue->accesses) {
		free(queue);
		return -ENOMEM;
	}
	queue->env = env;
	queue->disk = disk;
	queue->policy = policy;
	queue->completed_writes = disk->limits.volatile_cache;
	list_init(&queue->unplaced);
	list_init(&queue->held);
	list_init(&queue->flushes);
	list_init(&queue->finished);
	list_init(&queue->free_accesses);
	for (i = 0; i < depth; i++) {
		queue->accesses[i].queue = queue;
		list_init(&queue->accesses[i].requests);
		list_add(&queue->free_accesses, &queue->accesses[i].link);
	}
	*out = queue;
	return 0;
}

void queue_close(struct queue *queue)
{
	if (!queue)
		return;
	assert(queue->gone || queue_idle(queue));
	free(queue->accesses);
	free(queue);
}

const struct disk_limits *queue_limits(const struct queue *queue)
{
	return &queue->disk->limits;
}

void queue_set_head(struct queue *queue, struct head *head)
{
	assert(!queue->outstanding);
	queue->head = head;
}

void queue_set_filler(struct queue *queue, const struct queue_filler *filler,
		      void *arg)
{
	queue->filler = filler;
	queue->filler_arg = arg;
}

void queue_set_window(struct queue *queue, unsigned percent)
{
	queue->window_percent = percent;
}

static int queue_refuse(const struct queue *queue,
			const struct disk_request *disk)
{
	const struct disk_limits *limits = &queue->disk->limits;
	uint32_t unit = limits->logical_bytes / SECTOR_BYTES;

	if (!disk->sectors || disk->sector % unit || disk->sectors % unit ||
	    disk->sectors > limits->sectors ||
	    disk->sector > limits->sectors - disk->sectors)
		return -EINVAL;
	if (disk->op == DISK_WRITE && limits->read_only)
		return -EROFS;
	return 0;
}

static bool iov_fits(const struct disk_request *disk)
{
	uint64_t bytes = 0;
	unsigned i;

	for (i = 0; i < disk->iov_n; i++)
		bytes += disk->iov[i].iov_len;
	return disk->iov_n <= DISK_MAX_IOV &&
	       bytes == (uint64_t)disk->sectors * SECTOR_BYTES;
}

static void queue_begin(struct queue *queue, struct queue_request *req)
{
	req->disk.result = 0;
	req->disk.submit_ns = env_now_ns(queue->env);
	req->issued_sectors = 0;
	req->pieces = 0;
	req->alone = false;
}

void queue_submit(struct queue *queue, struct queue_request *req)
{
	int err;

	if (req->place)
		req->disk.sector = 0;
	err = queue_refuse(queue, &req->disk);
	assert(req->disk.op != DISK_FLUSH && iov_fits(&req->disk));
	assert(req->class < QUEUE_CLASSES);
	queue_begin(queue, req);
	if (err)
		queue_finish(queue, req, err, req->disk.submit_ns);
	else if (req->place)
		list_add(&queue->unplaced, &req->link);
	else
		queue_enter(queue, req);
}

void queue_flush(struct queue *queue, struct queue_request *req)
{
	queue_begin(queue, req);
	req->disk.op = DISK_FLUSH;
	req->disk.sectors = 0;
	if (queue_unflushed(queue)) {
		list_add(&queue->flushes, &req->link);
		return;
	}
	queue->stats.flushes_saved++;
	queue_finish(queue, req, 0, req->disk.submit_ns);
}

bool queue_unflushed(const struct queue *queue)
{
	return queue->disk->limits.volatile_cache &&
	       queue->completed_writes != queue->flushed_writes;
}

uint64_t queue_next_ns(const struct queue *queue)
{
	(void)queue;
	return UINT64_MAX;
}

/* One look at the disk: reap, dispatch, tell. */
static int queue_turn(struct queue *queue, int timeout_ms)
{
	int n = disk_poll(queue->disk, timeout_ms);

	if (n < 0) {
		queue->gone = n;
		return n;
	}
	queue_dispatch(queue);
	return queue_deliver(queue);
}

int queue_poll(struct queue *queue, int timeout_ms)
{
	int n = queue->gone ? queue->gone : queue_turn(queue, 0);

	if (n || !timeout_ms || (timeout_ms < 0 && !queue->outstanding))
		return n;
	return queue_turn(queue, timeout_ms);
}

int queue_drain(struct queue *queue)
{
	int n;

	while (!queue_idle(queue)) {
		n = queue_poll(queue, -1);
		if (n < 0)
			return n;
	}
	return 0;
}

bool queue_idle(const struct queue *queue)
{
	return !queue->live && !queue->outstanding &&
	       list_empty(&queue->unplaced) &&
	       list_empty(&queue->flushes) && list_empty(&queue->finished);
}

int queue_event_fd(struct queue *queue)
{
	return disk_event_fd(queue->disk);
}

const struct queue_stats *queue_stats(const struct queue *queue)
{
	return &queue->stats;
}

/* ---- synchronous helpers ---- */

static void sync_done(struct disk_request *disk)
{
	bool *done = disk->owner;

	*done = true;
}

static int queue_finish_sync(struct queue *queue, struct queue_request *req,
			     const bool *done)
{
	int n;

	while (!*done) {
		n = queue_poll(queue, -1);
		if (n < 0)
			return n;
	}
	return req->disk.result;
}

static int queue_transfer(struct queue *queue, enum disk_op op,
			  uint64_t sector, uint32_t sectors, void *buf)
{
	bool done = false;
	struct iovec iov = { buf, (size_t)sectors * SECTOR_BYTES };
	struct queue_request req = {
		.disk = {
			.op = op,
			.sector = sector,
			.sectors = sectors,
			.iov = &iov,
			.iov_n = 1,
			.done = sync_done,
			.owner = &done,
		},
		.class = op == DISK_READ ? QUEUE_READ : QUEUE_COMMIT,
	};

	queue_submit(queue, &req);
	return queue_finish_sync(queue, &req, &done);
}

int queue_read(struct queue *queue, uint64_t sector, uint32_t sectors,
	       void *buf)
{
	return queue_transfer(queue, DISK_READ, sector, sectors, buf);
}

int queue_write(struct queue *queue, uint64_t sector, uint32_t sectors,
		const void *buf)
{
	return queue_transfer(queue, DISK_WRITE, sector, sectors, (void *)buf);
}

int queue_flush_wait(struct queue *queue)
{
	bool done = false;
	struct queue_request req = {
		.disk = { .done = sync_done, .owner = &done },
	};

	queue_flush(queue, &req);
	return queue_finish_sync(queue, &req, &done);
}
