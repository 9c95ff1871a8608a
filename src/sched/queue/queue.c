/*
 * queue.c - the life of a request:
 *
 *	queue_submit -> held	(queue_enter: it meets an earlier one)
 *		     -> waiting (queue_wait) -> in an access (queue_dispatch)
 *		     -> unplaced, until it has a place (queue_select)
 *		     -> finished (queue_finish) -> done() (queue_deliver)
 *
 * From the moment its sectors are known to completion it is in `live`, where
 * later ones look for what they must wait for.  Accesses are a fixed array;
 * without a free one nothing goes out.
 *
 * Writes are counted as they complete.  A flush that succeeds covers those
 * that had been counted when it was given to the disk (flushed_writes).  What
 * a failed one may have lost is not known and nobody writes it again, so after
 * it every flush fails: no write is taken for durable that was not FUA.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "base/units.h"
#include "sched/queue/queue_internal.h"

/* Accesses at the disk at once where the options do not say it, on disks that
 * rotate and on others; and the most that options may say. */
#define DEPTH_ROTATING 4u
#define DEPTH_OTHER 32u
#define DEPTH_MAX 1024u
/* Accesses beyond the depth: one that fills a gap, one behind it, and those of
 * a drive that orders reads. */
#define ACCESSES_MORE (2u + READ_ORDER_DEPTH)
/* Longest read that is handed to a drive that orders reads: 64 KiB, a tenth of
 * a turn. */
#define SMALL_READ_SECTORS 128u
/* Longest read of leaves with checksums that small reads need, which goes on
 * beside them: 512 KiB. */
#define LEAF_READ_SECTORS 1024u

/* Charged to the turn for a request that is over, in nanoseconds: its owner
 * goes on, and mostly begins a transaction. */
#define DONE_NS 3000u

/* The mean time of an access is over two to this power accesses. */
#define ACCESS_SHIFT 4

/*
 * For each class: the age from which on a request goes before all that are not
 * as old; and the time in which it should be over beside any mixture of loads,
 * which is the order of those that are of age.  By then it has waited only for
 * what is under way and for requests of age that are more urgent.
 */
static const struct {
	uint64_t age_ns, promised_ns;
} class_ages[QUEUE_CLASSES] = {
	[QUEUE_COMMIT] = { 35 * NS_PER_MS, 60 * NS_PER_MS },
	[QUEUE_READ] = { 120 * NS_PER_MS, 250 * NS_PER_MS },
	[QUEUE_READ_AHEAD] = { NS_PER_SECOND, 2 * NS_PER_SECOND },
	[QUEUE_WRITE_BACK] = { 2500 * NS_PER_MS, 5 * NS_PER_SECOND },
	[QUEUE_IDLE] = { 30 * NS_PER_SECOND, 60 * NS_PER_SECOND },
};
/* If at least MANY requests of a class wait, one of them is of age only when
 * all of them could have been served MANY_TIMES over: there, order helps all of
 * them more than age. */
#define MANY 8u
#define MANY_TIMES 8u

static const struct queue_request *of_live(const struct interval *interval)
{
	return container_of(interval, struct queue_request, live);
}

/* ---- completion ---- */

static void queue_forget_progress(struct queue_request *req)
{
	req->disk.result = 0;
	req->issued_sectors = req->split_sectors = 0;
	req->gap_inside = req->suspended = false;
	req->parts = 0;
}

void queue_finish(struct queue *queue, struct queue_request *req, int result,
		  uint64_t now_ns)
{
	req->disk.result = result;
	req->disk.complete_ns = now_ns;
	list_add(&queue->finished, &req->link);
}

struct queue_conflict {
	uint64_t order;
	bool is_write;
};

static bool span_conflicts(const struct interval *interval, const void *arg)
{
	const struct queue_conflict *later = arg;

	return interval->order < later->order &&
	       (later->is_write || of_live(interval)->disk.op == DISK_WRITE);
}

/* Must the request wait for an earlier one that it overlaps? */
static bool queue_must_hold(struct queue *queue,
			    const struct queue_request *req)
{
	struct queue_conflict later = { req->live.order,
				  req->disk.op == DISK_WRITE };

	return interval_any(queue->live, req->live.first, req->live.end,
			span_conflicts, &later);
}

/* Inserts a site for each place where the request can be served. */
static void sites_insert(struct queue *queue, struct queue_request *req)
{
	const struct geom *geom = head_geom(queue->head);
	unsigned copies = req->copies_n < QUEUE_COPIES ? req->copies_n :
							 QUEUE_COPIES;
	struct policy_site *site;

	for (req->sites_n = 0; req->sites_n <= copies; req->sites_n++) {
		site = &req->site[req->sites_n];
		policy_site_init(site, geom, req->disk.op == DISK_WRITE,
				 req->sites_n ? req->copies[req->sites_n - 1] :
						req->disk.sector,
				 req->disk.sectors,
				 req->live.order * (QUEUE_COPIES + 1) +
					 req->sites_n);
		site->interval.due_ns = req->waiting.due_ns;
		site->owner = req;
		interval_insert(&queue->sites[req->class], &site->interval);
	}
}

static void class_add(struct queue *queue, enum queue_class class)
{
	class_share_add(&queue->share, (int)class, queue->outstanding != 0,
			queue_begin_ns(queue));
}

void queue_wait(struct queue *queue, struct queue_request *req)
{
	class_add(queue, req->class);
	req->ready = true;
	interval_insert(&queue->waiting[req->class], &req->waiting);
	if (queue->head && head_is_known(queue->head))
		sites_insert(queue, req);
}

static void waiting_remove(struct queue *queue, struct queue_request *req)
{
	interval_remove(&queue->waiting[req->class], &req->waiting);
	while (req->sites_n)
		interval_remove(&queue->sites[req->class],
			    &req->site[--req->sites_n].interval);
	class_share_remove(&queue->share, (int)req->class);
	req->ready = false;
}

void queue_leave_waiting(struct queue *queue, struct queue_request *req)
{
	struct queue_class_stats *stats = &queue->stats.class[req->class];
	uint64_t wait_ns = env_now_ns(queue->env) - req->waits_ns;

	waiting_remove(queue, req);
	stats->wait_ns += wait_ns;
	if (wait_ns > stats->max_wait_ns)
		stats->max_wait_ns = wait_ns;
}

/* Lets requests go on that no longer overlap an earlier one. */
void queue_release_held(struct queue *queue)
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

/* Time by which the request should be over if it was submitted at from_ns. */
static uint64_t promised_from_ns(const struct queue_request *req,
				 uint64_t from_ns)
{
	uint64_t class_ns = from_ns + class_ages[req->class].promised_ns;

	/* Somebody waits for a read: its deadline may only be later. */
	if (req->class == QUEUE_READ && req->deadline_ns < class_ns)
		return class_ns;
	return req->deadline_ns ? req->deadline_ns : class_ns;
}

uint64_t queue_promised_ns(int class)
{
	return class_ages[class].promised_ns;
}

bool queue_is_of_age(const struct queue *queue, const struct queue_request *req,
		     uint64_t now_ns)
{
	uint64_t age_ns = class_ages[req->class].age_ns;
	unsigned count = queue->share.count[req->class];
	uint64_t all_ns = count * queue->access_ns;

	if (count > MANY)
		all_ns *= MANY_TIMES;
	if (req->deadline_ns && req->class != QUEUE_READ)
		return now_ns >= req->deadline_ns;
	return now_ns + class_ages[req->class].promised_ns >=
	       req->waiting.due_ns + (all_ns > age_ns ? all_ns : age_ns);
}

/* The sectors of the request are known: it waits for requests that overlap it,
 * or for its turn. */
bool queue_enter(struct queue *queue, struct queue_request *req)
{
	struct interval interval = {
		.first = req->disk.sector,
		.end = req->disk.sector + req->disk.sectors,
		.order = ++queue->order,
		.due_ns = promised_from_ns(req, req->disk.submit_ns),
	};

	bool hold;

	req->live = req->waiting = interval;
	hold = queue_must_hold(queue, req);
	if (hold) {
		queue->stats.held++;
		list_add(&queue->held, &req->link);
	} else {
		queue_wait(queue, req);
	}
	interval_insert(&queue->live, &req->live);
	return !hold;
}

void queue_commit_over(struct queue *queue, uint64_t now_ns)
{
	commit_burst_done(&queue->burst, now_ns,
		   queue_class_waits(queue, QUEUE_WRITE_BACK));
}

/* Repeats a failed request; false: it is not repeated.  Until then it stays in
 * `live`: nothing that overlaps it overtakes it. */
static bool queue_repeats(struct queue *queue, struct queue_request *req,
			  int result)
{
	const enum fault_class class = fault_class(req->disk.op, result);
	uint64_t pause_ns;

	req->failures++;
	if (req->origin == FAULT_CALLER ||
	    fault_next(req->origin, class, req->failures, &pause_ns) !=
		    FAULT_RETRY)
		return false;
	queue_forget_progress(req);
	req->uncached_hint = true;
	req->repeat_ns = env_now_ns(queue->env) + pause_ns;
	queue->stats.repeated++;
	list_add(&queue->repeats, &req->link);
	return true;
}

void queue_release_repeats(struct queue *queue)
{
	const uint64_t now_ns = env_now_ns(queue->env);
	struct list *pos, *next;

	list_for_each_safe(pos, next, &queue->repeats) {
		struct queue_request *req =
			list_entry(pos, struct queue_request, link);

		if (req->repeat_ns > now_ns)
			continue;
		list_del(&req->link);
		req->waits_ns = now_ns;
		req->waiting.first = req->live.first;
		queue_wait(queue, req);
	}
}

static bool is_short_read(const struct queue_request *req, uint32_t sectors)
{
	return req->disk.op == DISK_READ && req->class == QUEUE_READ &&
	       req->disk.sectors <= sectors;
}

static void queue_end_request(struct queue *queue, struct queue_request *req,
			      int result, uint64_t now_ns)
{
	struct queue_class_stats *stats = &queue->stats.class[req->class];

	if (result && queue_repeats(queue, req, result))
		return;
	interval_remove(&queue->live, &req->live);
	if (!result && req->disk.op == DISK_WRITE && !req->disk.fua)
		queue->completed_writes++;
	stats->requests++;
	stats->bytes += (uint64_t)req->disk.sectors * SECTOR_BYTES;
	if (req->disk.op == DISK_READ && req->class != QUEUE_IDLE)
		read_stream_done(&queue->streams, req->live.end, now_ns);
	if (is_short_read(req, SMALL_READ_SECTORS))
		read_order_done(&queue->read_order, queue_reads_only(queue) ?
				queue->share.count[QUEUE_READ] +
					queue->outstanding : 0, now_ns);
	if (req->class == QUEUE_COMMIT)
		queue_commit_over(queue, now_ns);
	queue_end_idle(queue, req, now_ns);
	queue_finish(queue, req, result, now_ns);
}

static void queue_count_service(struct queue *queue, enum queue_class class,
				const struct disk_request *disk)
{
	uint64_t ns = disk->complete_ns - disk->submit_ns;

	queue->stats.class[class].service_ns += ns;
	past_hour_add(&queue->past_hour, env_now_ns(queue->env), class, ns);
}

/* A part of a large request is over.  After an error no more are issued. */
static void queue_end_part(struct queue *queue, struct access *access)
{
	struct queue_request *req = access->disk.owner;

	req->parts--;
	queue_count_service(queue, req->class, &access->disk);
	if (access->disk.result && !req->disk.result)
		req->disk.result = access->disk.result;
	if (req->disk.result && queue->partial == req)
		queue->partial = NULL;
	if (req->disk.result && req->suspended) {
		queue_leave_waiting(queue, req);
		req->suspended = false;
	}
	if (!req->parts && queue->partial != req && !req->suspended)
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
			req->uncached_hint = true;
			req->waits_ns = now_ns;
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

	if (access->disk.result && !queue->flush_rc)
		queue->flush_rc = access->disk.result;
	if (!queue->flush_rc && access->writes > queue->flushed_writes)
		queue->flushed_writes = access->writes;
	if (queue->head && !queue_unflushed(queue))
		head_flushed(queue->head);
	while ((req = list_first(&access->requests, struct queue_request,
				 link))) {
		list_del(&req->link);
		queue_finish(queue, req, queue->flush_rc,
			     access->disk.complete_ns);
	}
}

static void queue_count_access(struct queue *queue,
			       const struct disk_request *disk)
{
	uint64_t from_ns = disk->submit_ns;

	if (queue->access_end_ns > from_ns)
		from_ns = queue->access_end_ns;
	if (disk->complete_ns <= from_ns)
		return;
	queue->access_end_ns = disk->complete_ns;
	queue->access_ns -= queue->access_ns >> ACCESS_SHIFT;
	queue->access_ns += (disk->complete_ns - from_ns) >> ACCESS_SHIFT;
}

void queue_access_done(struct disk_request *disk)
{
	struct access *access = container_of(disk, struct access, disk);
	struct queue *queue = access->queue;

	queue->outstanding--;
	queue_count_access(queue, disk);
	if (queue->last == access)
		queue->last = NULL;
	if (access->followed)
		head_end(queue->head, &access->at_head, disk->complete_ns,
			 disk->result);
	if (disk->op == DISK_FLUSH)
		queue_end_flush(queue, access);
	else if (access->is_part)
		queue_end_part(queue, access);
	else
		queue_end_merged(queue, access);
	list_del(&access->link);
	list_add_front(&queue->free_accesses, &access->link);
	if (!list_empty(&queue->held))
		queue_release_held(queue);
}

/* ---- the interface ---- */

/* Calls done() of all finished requests, and of those that finish by that. */
static int queue_deliver(struct queue *queue)
{
	struct loop_turn *turn = &queue->env->turn;
	struct queue_request *req;
	int n = 0;

	while ((req = list_first(&queue->finished, struct queue_request,
				 link)) && (!n || !turn_is_full(turn))) {
		list_del(&req->link);
		turn_charge(turn, TURN_COMPLETIONS, DONE_NS);
		n++;
		if (queue->filler && queue->filler->passed &&
		    req->class != QUEUE_IDLE && req->disk.op != DISK_FLUSH)
			queue->filler->passed(queue->filler_arg, req);
		req->disk.done(&req->disk);
		if (list_empty(&queue->finished))
			queue_dispatch(queue);
	}
	return n;
}

static struct reference *reference_new(const struct disk *disk)
{
	size_t bytes = disk->limits.physical_bytes;
	struct reference *reference = calloc(1, sizeof(*reference));

	if (bytes < DISK_BUFFER_ALIGN)
		bytes = DISK_BUFFER_ALIGN;
	if (reference)
		reference->iov.iov_base =
			aligned_alloc(DISK_BUFFER_ALIGN, bytes);
	if (reference && !reference->iov.iov_base) {
		free(reference);
		reference = NULL;
	}
	return reference;
}

int queue_open(struct env *env, struct disk *disk,
	       const struct queue_options *options, struct queue **out)
{
	unsigned depth = options->depth, window = 0, i;
	const struct policy *policy = NULL;
	struct queue *queue;

	if (!depth)
		depth = disk->limits.rotational ? DEPTH_ROTATING : DEPTH_OTHER;
	if (options->policy) {
		policy = policy_find(options->policy, &window);
		if (!policy)
			return -EINVAL;
	}
	if (depth > DEPTH_MAX)
		return -EINVAL;
	queue = calloc(1, sizeof(*queue));
	if (!queue)
		return -ENOMEM;
	list_init(&queue->given);
	queue->accesses = calloc(depth + ACCESSES_MORE,
				 sizeof(*queue->accesses));
	queue->reference = reference_new(disk);
	if (!queue->accesses || !queue->reference) {
		queue->gone = -ENOMEM;
		queue_close(queue);
		return -ENOMEM;
	}
	queue->env = env;
	queue->opened_ns = env_now_ns(env);
	queue->disk = disk;
	queue->policy = policy;
	queue->window.fixed = window;
	queue->window.percent = window;
	queue->window.budget_ppm = QUEUE_BUDGET_PPM;
	queue->stats.budget_ppm = QUEUE_BUDGET_PPM;
	queue->depth = depth;
	queue->quiet_ns = env_now_ns(env);
	queue->completed_writes = disk->limits.volatile_cache;
	for (i = 0; i < QUEUE_CLASSES; i++)
		list_init(&queue->unplaced[i]);
	list_init(&queue->held);
	list_init(&queue->repeats);
	list_init(&queue->flushes);
	list_init(&queue->finished);
	list_init(&queue->free_accesses);
	for (i = 0; i < depth + ACCESSES_MORE; i++) {
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
	access_drop_given(queue);
	if (queue->filler && queue->filler->close)
		queue->filler->close(queue->filler_arg);
	if (queue->reference)
		free(queue->reference->iov.iov_base);
	free(queue->reference);
	free(queue->accesses);
	free(queue);
}

const struct disk_limits *queue_limits(const struct queue *queue)
{
	return &queue->disk->limits;
}

static bool track_known(const struct queue *queue, uint64_t sector,
			struct geom_track *track)
{
	track->known = false;
	if (queue->head && head_is_known(queue->head))
		geom_track_of(head_geom(queue->head), sector, track);
	return track->known;
}

uint32_t queue_track_sectors(const struct queue *queue, uint64_t sector)
{
	struct geom_track track;

	return track_known(queue, sector, &track) ? track.sectors : 0;
}

void queue_set_head(struct queue *queue, struct head *head)
{
	assert(queue_idle(queue));
	if (head && geom_sectors(head_geom(head)) <
			    queue->disk->limits.sectors) {
		msg_warn("%s: larger than its geometry, which is not used",
			 queue->disk->name);
		head = NULL;
	}
	queue->head = head;
}

void queue_set_filler(struct queue *queue, const struct queue_filler *filler,
		      void *arg)
{
	queue->filler = filler;
	queue->filler_arg = arg;
}

void queue_set_budget(struct queue *queue, unsigned ppm)
{
	queue->window.fixed = false;
	queue->window.budget_ppm = ppm;
	queue->stats.budget_ppm = ppm;
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

void queue_begin(struct queue *queue, struct queue_request *req)
{
	queue_forget_progress(req);
	req->disk.submit_ns = req->waits_ns = env_now_ns(queue->env);
	req->sites_n = 0;
	req->placed = req->ready = false;
	req->uncached_hint = false;
	req->own = queue->own;
}

/* A range write waits without a place, which it gets when its turn comes. */
static void queue_leave_open(struct queue *queue, struct queue_request *req)
{
	req->waiting.due_ns = promised_from_ns(req, req->disk.submit_ns);
	class_add(queue, req->class);
	list_add(&queue->unplaced[req->class], &req->link);
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
		queue_leave_open(queue, req);
	else
		queue_enter(queue, req);
	if (!is_short_read(req, LEAF_READ_SECTORS))
		read_order_other(&queue->read_order, req->disk.submit_ns);
	if (!err && req->class == QUEUE_COMMIT)
		commit_burst_submit(&queue->burst, req->disk.submit_ns);
	if (!err && req->disk.op == DISK_READ && req->class != QUEUE_IDLE)
		read_stream_submit(&queue->streams, req->disk.sector,
			      req->disk.sectors, req->disk.submit_ns);
}

static void change_class(struct queue *queue, struct queue_request *req,
			 enum queue_class class, uint64_t deadline_ns)
{
	bool ready = req->ready;

	if (req->suspended || (req->class != QUEUE_READ_AHEAD &&
		(req->class != QUEUE_READ || deadline_ns >= req->deadline_ns)))
		return;
	if (ready)
		waiting_remove(queue, req);
	req->class = class;
	req->deadline_ns = deadline_ns;
	req->waiting.due_ns = promised_from_ns(req, env_now_ns(queue->env));
	if (ready)
		queue_wait(queue, req);
}

void queue_raise(struct queue *queue, struct queue_request *req,
		 uint64_t deadline_ns)
{
	if (req->deadline_ns && req->deadline_ns < deadline_ns)
		deadline_ns = req->deadline_ns;
	change_class(queue, req, QUEUE_READ, deadline_ns);
}

void queue_hasten(struct queue *queue, struct queue_request *req)
{
	if (!req->deadline_ns)
		change_class(queue, req, req->class, env_now_ns(queue->env) +
				class_ages[QUEUE_READ].age_ns);
}

void queue_flush(struct queue *queue, struct queue_request *req)
{
	queue_begin(queue, req);
	req->disk.op = DISK_FLUSH;
	req->disk.sectors = 0;
	if (queue_unflushed(queue) && !queue->flush_rc) {
		list_add(&queue->flushes, &req->link);
		return;
	}
	queue->stats.flushes_saved += !queue->flush_rc;
	queue_finish(queue, req, queue->flush_rc, req->disk.submit_ns);
}

bool queue_unflushed(const struct queue *queue)
{
	return queue->disk->limits.volatile_cache &&
	       queue->completed_writes != queue->flushed_writes;
}

unsigned queue_reads_wait(const struct queue *queue)
{
	return queue->share.count[QUEUE_READ];
}

void queue_ask_filler(struct queue *queue)
{
	queue->idle_again_ns = 0;
}

/* Looks once at the disk: takes completions, dispatches, calls done(). */
static int queue_turn(struct queue *queue, int64_t timeout_ns)
{
	int n = disk_poll_ns(queue->disk, timeout_ns);

	if (n < 0) {
		queue->gone = n;
		return n;
	}
	queue_dispatch(queue);
	return queue_deliver(queue);
}

/* Waits for a completion until limit_ns, awake when something is to be handed
 * over meanwhile. */
static int queue_wait_until(struct queue *queue, uint64_t limit_ns)
{
	uint64_t now_ns, next_ns, until_ns;
	int n;

	do {
		now_ns = env_now_ns(queue->env);
		next_ns = queue_next_ns(queue);
		until_ns = next_ns < limit_ns ? next_ns : limit_ns;
		if (until_ns == UINT64_MAX && !queue->outstanding)
			return 0;
		n = queue_turn(queue, until_ns == UINT64_MAX ? -1 :
				      until_ns < now_ns ? 0 :
				      (int64_t)(until_ns - now_ns));
	} while (!n && until_ns < limit_ns);
	return n;
}

int queue_poll_ns(struct queue *queue, int64_t timeout_ns)
{
	int n = queue->gone ? queue->gone : queue_turn(queue, 0);

	if (n || !timeout_ns)
		return n;
	return queue_wait_until(queue, timeout_ns < 0 ? UINT64_MAX :
			env_now_ns(queue->env) + (uint64_t)timeout_ns);
}

int queue_poll(struct queue *queue, int timeout_ms)
{
	return queue_poll_ns(queue, timeout_ms < 0 ? -1 :
				    (int64_t)timeout_ms * 1000000);
}

int queue_drain(struct queue *queue)
{
	int n = 0;

	while (n >= 0 && !queue_idle(queue))
		n = queue_poll(queue, -1);
	return n < 0 ? n : 0;
}

bool queue_idle(const struct queue *queue)
{
	return !queue->live && !queue->outstanding &&
	       !queue_has_waiting(queue) && list_empty(&queue->finished);
}

int queue_event_fd(struct queue *queue)
{
	return disk_event_fd(queue->disk);
}

const struct queue_stats *queue_stats(const struct queue *queue)
{
	return &queue->stats;
}

uint64_t queue_past_hour(const struct queue *queue,
			 uint64_t service_ns[QUEUE_CLASSES])
{
	uint64_t now_ns = env_now_ns(queue->env);
	uint64_t open_ns = now_ns - queue->opened_ns;

	_Static_assert(QUEUE_CLASSES == PAST_HOUR_KINDS, "kinds of time");
	past_hour_sum(&queue->past_hour, now_ns, service_ns);
	return open_ns < PAST_HOUR_NS ? open_ns : PAST_HOUR_NS;
}
