/*
 * dispatch.c - when the disk is given the next request.
 *
 * A disk whose head is not known gets as many requests as it may have, and so
 * does one that orders small reads better than the queue (read_order.h).  Where
 * the head is known the choice is made as late as possible: one request is at
 * the disk, and the next is handed over when the predicted rest of that one is
 * the time that a command takes to be decoded, and the guard, for what cannot
 * be predicted.  Parts of a request and requests behind a gap filler are
 * handed over in the same way, so a drive has at most two, the second for a
 * moment only, and never reorders them.
 *
 * Before a chosen access is handed over (`parked`), the filler may put another
 * one into the time that its target needs to come round.
 *
 * A drive that begins anywhere within a request, and meets it in its middle,
 * turns for its beginning almost once.  While the filler wants something such a
 * request goes out in two parts, with the gap between them.
 *
 * A drive that waits for the first sector of a track, however far into it the
 * head arrives, is asked for the rest of the track first and then for its
 * beginning: one turn instead of one and a half.
 */
#include <errno.h>

#include "base/units.h"
#include "sched/queue/queue_internal.h"

/* Nanoseconds by which the next command is handed over before it has to be
 * decoded, if the host is not known to be later than that; and after which the
 * drive has surely begun the one before. */
#define LEAD_NS 60000u
#define BEGUN_NS 20000u
/* Accesses that the disk gets at once if each goes on where the one before it
 * ends. */
#define GOING_ON 4u
/* A command that the disk has had for this long is being retried by the drive,
 * and others need not wait for it.  No drive with a short queue takes as long
 * for sectors that it can read. */
#define SLOW_NS (300 * NS_PER_MS)
/* A disk that has several commands may leave one behind for the sake of nearer
 * ones.  When it has had a command for this long it gets no others until that
 * is done, or counts as slow: commits are to be over in 100 ms. */
#define LEFT_COMMIT_NS (5 * NS_PER_MS)
#define LEFT_NS (80 * NS_PER_MS)
/* Where it has many reads to order it may leave one behind for this many times
 * as long as it takes to read all of them: order helps all of them more than
 * age. */
#define LEFT_TIMES 6u

/* ---- when ---- */

uint64_t queue_begin_ns(const struct queue *queue)
{
	uint64_t now_ns = env_now_ns(queue->env);
	uint64_t busy_ns = queue->head ? head_busy_until_ns(queue->head) : 0;

	return busy_ns > now_ns ? busy_ns : now_ns;
}

bool queue_wants_gaps(const struct queue *queue)
{
	return queue->filler && queue->head &&
	       head_predicts(queue->head) &&
	       queue->filler->wants(queue->filler_arg);
}

bool queue_reads_only(const struct queue *queue)
{
	int class;

	if (queue->policy || !list_empty(&queue->flushes) ||
	    (queue->head && head_mode(queue->head) == HEAD_TRIAL) ||
	    queue_wants_gaps(queue))
		return false;
	for (class = 0; class < QUEUE_CLASSES; class++)
		if (class != QUEUE_READ && queue_class_waits(queue, class))
			return false;
	return true;
}

static bool drive_orders(const struct queue *queue)
{
	return read_order_is_drives(&queue->read_order,
				    queue->share.count[QUEUE_READ] +
					    queue->outstanding,
				    env_now_ns(queue->env)) &&
	       queue_reads_only(queue);
}

static bool one_at_a_time(const struct queue *queue)
{
	return queue->head && head_mode(queue->head) != HEAD_OFF &&
	       !head_is_cached(queue->head) && !drive_orders(queue);
}

/* How many accesses the disk may have. */
static unsigned depth_now(const struct queue *queue)
{
	return queue->depth < READ_ORDER_DEPTH && drive_orders(queue) ?
		       READ_ORDER_DEPTH : queue->depth;
}

static bool have_accesses(const struct queue *queue, unsigned n)
{
	const struct list *pos = queue->free_accesses.next;

	while (n && pos != &queue->free_accesses) {
		pos = pos->next;
		n--;
	}
	return !n;
}

/* Time by which the second part of a track is handed over early.  It follows
 * the first without a gap, and a turn is lost if it comes late; it only must
 * not be there before the first begins. */
static uint64_t part_lead_ns(const struct head_state *head_state)
{
	return head_state->mech->period_ps / 8000;
}

/* Time until the parked access may be handed over.  A command that is late must
 * not be at the drive together with the one that was to come behind it: the
 * drive takes the nearer one first. */
static uint64_t parked_behind_ns(const struct queue *queue,
				 const struct head_state *head_state)
{
	return head_state_behind_ns(head_state, head_ahead_ns(queue->head));
}

/* Does the next access go on where the last one ends?  A drive that begins
 * anywhere then reads or writes all of a track in one turn. */
static bool goes_on(const struct queue *queue)
{
	const struct queue_request *req = queue->partial;

	if (!req)
		req = access_continued(queue);
	return req && !req->split_sectors && !access_gives_way(queue, req);
}

/* ---- streams ---- */

/* May the disk wait for a stream: may the class of the last access keep the
 * head, and is no request for the same place due? */
static bool may_be_patient(const struct queue *queue)
{
	const struct queue_request *due = queue_overdue(queue);
	struct interval *interval;
	int class;

	for (class = 0; class < QUEUE_CLASSES; class++) {
		interval = interval_at_or_after(queue->waiting[class],
					queue->head_sector);
		if (interval && interval->first == queue->head_sector)
			return false;
	}
	return !queue->partial && !queue->parked &&
	       list_empty(&queue->flushes) &&
	       !(due && queue_is_urgent(queue, due)) &&
	       class_share_keeps(&queue->share, queue_begin_ns(queue));
}

/* Until when the disk is kept free for the next part of a stream; 0: not. */
static uint64_t patient_until_ns(const struct queue *queue)
{
	uint64_t until_ns = read_stream_until_ns(&queue->streams,
					    queue->head_sector);

	/* The last part of the stream still waits itself. */
	if (until_ns == UINT64_MAX && !queue->outstanding)
		return 0;
	return until_ns && may_be_patient(queue) ? until_ns : 0;
}

/* Until when the disk is kept free for the next commit; 0: not. */
static uint64_t burst_patient_ns(const struct queue *queue)
{
	uint64_t until_ns = commit_burst_until_ns(&queue->burst,
					   env_now_ns(queue->env));

	/* A commit that is held waits for something that must go first. */
	if (until_ns == UINT64_MAX && !queue->outstanding)
		return 0;
	return queue_is_background(queue) ? until_ns : 0;
}

/* Would the next access become one with what the drive was given last? */
static bool may_join(const struct queue *queue)
{
	const struct access *parked = queue->parked;

	return (queue->partial && queue->partial->gap_inside) ||
	       (parked && head_is_beside(queue->head, parked->disk.sector,
					 parked->disk.sectors));
}

/* How long the drive may leave an access behind. */
static uint64_t left_ns(const struct queue *queue, const struct access *access)
{
	uint64_t all_ns = LEFT_TIMES * queue->outstanding * queue->access_ns;

	if (access->class == QUEUE_COMMIT && !one_at_a_time(queue))
		return LEFT_COMMIT_NS;
	if (access->class != QUEUE_READ || !queue_reads_only(queue) ||
	    all_ns < LEFT_NS)
		return LEFT_NS;
	return all_ns < queue_promised_ns(QUEUE_READ) ? all_ns :
		queue_promised_ns(QUEUE_READ);
}

/* Until when the disk gets nothing more because it has left a command behind;
 * 0: it has not. */
static uint64_t left_until_ns(const struct queue *queue)
{
	uint64_t now_ns = env_now_ns(queue->env), until_ns = 0;
	const struct access *access;
	const struct list *pos;

	list_for_each(pos, &queue->given) {
		access = list_entry(pos, struct access, link);
		if (access->disk.op != DISK_FLUSH &&
		    now_ns >= access->disk.submit_ns + left_ns(queue, access) &&
		    now_ns < access->disk.submit_ns + SLOW_NS)
			until_ns = access->disk.submit_ns + SLOW_NS;
	}
	return until_ns;
}

/* Accesses that the disk has in a trial.  A drive that brings writes from its
 * cache to the medium begins with that when it has no command, so it always has
 * another one; it takes them in turn, as only one waits. */
static unsigned trial_depth(const struct queue *queue)
{
	return head_destages(queue->head) ? 2 : 1;
}

/* Time at which the running access leaves room for the next one, if none is
 * slow. */
static uint64_t usual_room_ns(const struct queue *queue)
{
	struct head_state head_state;
	uint64_t until_ns, lead_ns, begun_ns;

	if (!have_accesses(queue, 2))
		return UINT64_MAX;
	if (!one_at_a_time(queue))
		return queue->outstanding < depth_now(queue) ? 0 : UINT64_MAX;
	if (!queue->outstanding || (queue->outstanding < GOING_ON &&
				    goes_on(queue)))
		return 0;
	if (head_mode(queue->head) == HEAD_TRIAL)
		return queue->outstanding < trial_depth(queue) ? 0 : UINT64_MAX;
	until_ns = head_busy_until_ns(queue->head);
	if (queue->outstanding > 1 || !until_ns)
		return UINT64_MAX;
	head_get_state(queue->head, &head_state);
	lead_ns = head_state.read_overhead_ns;
	if (lead_ns < head_state.write_overhead_ns)
		lead_ns = head_state.write_overhead_ns;
	if (queue->partial && !queue->partial->gap_inside)
		lead_ns += part_lead_ns(&head_state);
	else
		lead_ns += head_state.late_ns > LEAD_NS ? head_state.late_ns
							: LEAD_NS;
	/* The next access is chosen: it is handed over in good time, as hosts
	 * are late. */
	if (queue->parked)
		lead_ns = head_state.mech->period_ps / 1000;
	until_ns = until_ns > lead_ns ? until_ns - lead_ns : 0;
	/* A command that takes longer to be decoded could be overtaken, and
	 * one on the way to its second part would become one with it. */
	begun_ns = (may_join(queue) ? head_media_ns(queue->head) :
				      head_begun_ns(queue->head)) +
		   (queue->parked ? parked_behind_ns(queue, &head_state) :
				    BEGUN_NS);
	return until_ns > begun_ns ? until_ns : begun_ns;
}

static uint64_t room_ns(const struct queue *queue)
{
	uint64_t ns = usual_room_ns(queue), until_ns;
	const struct access *oldest;

	if (!queue->outstanding || queue->outstanding >= depth_now(queue) ||
	    !have_accesses(queue, 2))
		return ns;
	until_ns = left_until_ns(queue);
	if (ns < until_ns)
		return until_ns;
	oldest = list_first(&queue->given, struct access, link);
	until_ns = oldest->disk.submit_ns + SLOW_NS;
	return ns < until_ns ? ns : until_ns;
}

/* Does the background's turn go on, though nothing of it waits?  Its owner may
 * submit more when the access at the disk is over. */
static bool turn_goes_on(const struct queue *queue)
{
	return commit_burst_is_turn(&queue->burst, env_now_ns(queue->env)) &&
	       !queue_class_waits(queue, QUEUE_WRITE_BACK) &&
	       !queue_class_waits(queue, QUEUE_READ) &&
	       !queue_class_waits(queue, QUEUE_READ_AHEAD) &&
	       (queue->outstanding || !list_empty(&queue->finished));
}

/* When the disk may get another access; UINT64_MAX: not before one
 * completes. */
static uint64_t queue_room_ns(const struct queue *queue)
{
	uint64_t ns = room_ns(queue), patient_ns;

	if (ns == UINT64_MAX || !queue->head ||
	    head_mode(queue->head) != HEAD_ON)
		return ns;
	if (turn_goes_on(queue))
		return UINT64_MAX;
	patient_ns = patient_until_ns(queue);
	if (!patient_ns)
		patient_ns = burst_patient_ns(queue);
	return ns > patient_ns ? ns : patient_ns;
}

/* When the first failed request may be repeated. */
static uint64_t repeat_ns(const struct queue *queue)
{
	uint64_t first_ns = UINT64_MAX;
	const struct list *pos;

	list_for_each(pos, &queue->repeats) {
		const struct queue_request *req =
			list_entry(pos, struct queue_request, link);

		if (req->repeat_ns < first_ns)
			first_ns = req->repeat_ns;
	}
	return first_ns;
}

static uint64_t work_ns(const struct queue *queue)
{
	uint64_t begin_ns = queue_room_ns(queue);

	if (queue_has_waiting(queue))
		return begin_ns;
	if (queue->outstanding || !queue->filler)
		return UINT64_MAX;
	return begin_ns > queue->idle_again_ns ? begin_ns :
						 queue->idle_again_ns;
}

uint64_t queue_next_ns(const struct queue *queue)
{
	const uint64_t next_ns = work_ns(queue);
	const uint64_t again_ns = repeat_ns(queue);

	return next_ns < again_ns ? next_ns : again_ns;
}

/* ---- whole tracks ---- */

static bool head_state_of(const struct queue *queue,
			  struct head_state *head_state)
{
	if (!queue->head)
		return false;
	head_get_state(queue->head, head_state);
	return head_state->reads || head_state->writes;
}

bool queue_places(const struct queue *queue, uint64_t sector, uint64_t waiting)
{
	struct head_state head_state;
	struct geom_track track;

	if (!queue->head)
		return false;
	head_get_state(queue->head, &head_state);
	geom_track_of(head_state.geom, sector, &track);
	return (head_state.writes || head_state.places) &&
	       !(head_state.mech->zero_latency_write &&
		 waiting >= track.sectors);
}

/* Time at which the head can be at a place. */
static uint64_t arrival_ns(const struct head_state *head_state, bool write,
			   const struct geom_place *place)
{
	return head_state_start_ns(head_state, write) +
	       service_move_ns(head_state->mech, &head_state->head,
			       place->cylinder, place->surface, write);
}

/* Sector of a request, counted from its beginning, over which the head would
 * arrive, if all of it lies on one track; 0: not within it. */
static uint32_t arrival_in(const struct head_state *head_state, bool write,
			   uint64_t lbn, uint32_t sectors)
{
	struct geom_track track;
	struct geom_place place;
	uint64_t arrive_ns, at;

	geom_track_of(head_state->geom, lbn, &track);
	if (lbn + sectors > track.first + track.sectors)
		return 0;
	geom_place_of(head_state->geom, lbn, &place);
	arrive_ns = arrival_ns(head_state, write, &place) +
		    (write ? head_state->write_guard_ns
			   : head_state->read_guard_ns);
	at = geom_lbn_at(head_state->geom, &track,
			 service_angle(head_state->mech, arrive_ns) +
			 track.per_sector);
	return at > lbn && at < lbn + sectors ? (uint32_t)(at - lbn) : 0;
}

/* Sector from which on a request is best begun; 0: its first. */
static uint32_t split_of(const struct queue *queue,
			 const struct head_state *head_state,
			 const struct queue_request *req)
{
	bool write = req->disk.op == DISK_WRITE;
	const struct service_mech *mech = head_state->mech;
	uint32_t unit = queue->disk->limits.physical_bytes / SECTOR_BYTES;
	struct geom_track track;
	uint64_t first_ns, lead_ns;
	uint32_t at;

	if (!(write ? head_state->writes : head_state->reads) ||
	    (write ? mech->zero_latency_write : mech->zero_latency_read) ||
	    req->disk.sectors < 2 * unit)
		return 0;
	geom_track_of(head_state->geom, req->disk.sector, &track);
	if (req->disk.sectors < track.sectors / 2)
		return 0;
	at = arrival_in(head_state, write, req->disk.sector, req->disk.sectors);
	at = (at + unit - 1) / unit * unit;
	if (!at || at >= req->disk.sectors)
		return 0;
	first_ns = (req->disk.sectors - at) *
		   service_turn_ns(mech, track.per_sector);
	lead_ns = part_lead_ns(head_state) +
		  (write ? head_state->write_overhead_ns
			 : head_state->read_overhead_ns);
	return first_ns > lead_ns ? at : 0;
}

/* The same, where the drive would begin in the middle by itself: for the gap
 * before its beginning comes round. */
static uint32_t gap_inside(const struct queue *queue,
			   const struct head_state *head_state,
			   const struct queue_request *req)
{
	bool write = req->disk.op == DISK_WRITE;
	const struct service_mech *mech = head_state->mech;
	uint32_t unit = queue->disk->limits.physical_bytes / SECTOR_BYTES;
	struct geom_track track;
	struct geom_place place;
	uint64_t arrive_ns;
	uint32_t at;

	if (!(write ? head_state->writes : head_state->reads) ||
	    !head_state->reads || !head_state->stays ||
	    !(write ? mech->zero_latency_write : mech->zero_latency_read) ||
	    !queue_wants_gaps(queue))
		return 0;
	geom_track_of(head_state->geom, req->disk.sector, &track);
	if (req->disk.sectors > track.sectors / 2)
		return 0;
	/* The head must not be able to reach its beginning in time. */
	geom_place_of(head_state->geom, req->disk.sector, &place);
	arrive_ns = arrival_ns(head_state, write, &place);
	if (!service_wait_ns(mech, arrive_ns, place.start) ||
	    (angle)(service_angle(mech, arrive_ns) - place.start) >=
		    (uint64_t)req->disk.sectors * track.per_sector)
		return 0;
	at = arrival_in(head_state, write, req->disk.sector, req->disk.sectors);
	at = (at + unit - 1) / unit * unit;
	return at < req->disk.sectors ? at : 0;
}

/* ---- gaps and idle time ---- */

/* Enters a request that did not wait. */
static bool enter_directly(struct queue *queue, struct queue_request *req)
{
	queue_begin(queue, req);
	if (!queue_enter(queue, req)) {
		list_del(&req->link);
		interval_remove(&queue->live, &req->live);
		queue_finish(queue, req, -EBUSY, req->disk.submit_ns);
		return false;
	}
	queue_leave_waiting(queue, req);
	return true;
}

/* Is there a gap before a part?  Only before the beginning of a request that
 * was begun in its middle. */
static bool part_has_gap(const struct access *access)
{
	const struct queue_request *req = access->disk.owner;

	return !access->is_part ||
	       (req->gap_inside && access->disk.sector == req->disk.sector);
}

/* Gets an access to go before the parked one; NULL: nothing more. */
static struct access *fill_gap(struct queue *queue)
{
	struct access *parked = queue->parked;
	struct service_request next = {
		.write = parked->disk.op == DISK_WRITE,
		.lbn = parked->disk.sector,
		.sectors = parked->disk.sectors,
	};
	struct queue_request *req;
	struct head_state head_state;

	if (!queue->filler || !part_has_gap(parked) ||
	    queue->gaps == QUEUE_GAP ||
	    !head_state_of(queue, &head_state) || !head_state.stays ||
	    !(next.write ? head_state.writes : head_state.reads))
		return NULL;
	/* The drive goes on reading behind a stream by itself: there is no gap
	 * before what follows, but there would be one behind a filler. */
	if (!next.write && head_may_have(queue->head, next.lbn)) {
		queue->gaps = QUEUE_GAP;
		return NULL;
	}
	req = queue->filler->gap(queue->filler_arg, &head_state, &next,
				 !parked->is_part);
	if (!req || !enter_directly(queue, req)) {
		queue->gaps = QUEUE_GAP;
		return NULL;
	}
	queue->gaps++;
	queue->stats.gaps++;
	/* A read behind the target would only make it longer. */
	if (req->disk.sector > next.lbn || !access_join(parked, req))
		return access_of(queue, req, true);
	return NULL;
}

static void reference_done(struct disk_request *disk)
{
	struct reference *reference = disk->owner;

	reference->busy = false;
}

/* Makes a read for the phase if that has become uncertain. */
static struct access *reference_read(struct queue *queue)
{
	struct reference *reference = queue->reference;
	struct queue_request *req = &reference->req;
	uint32_t sectors = queue->disk->limits.physical_bytes / SECTOR_BYTES;
	uint64_t sector, most = queue->disk->limits.sectors - sectors;

	if (!queue->head || reference->busy ||
	    !head_wants_reference(queue->head, &sector))
		return NULL;
	/* The model may have more sectors than the disk. */
	if (sector > most)
		sector = most;
	sector -= sector % sectors;
	*req = (struct queue_request){
		.disk = {
			.op = DISK_READ,
			.sector = sector,
			.sectors = sectors,
			.iov = &reference->iov,
			.iov_n = 1,
			.done = reference_done,
			.owner = reference,
		},
		.class = QUEUE_IDLE,
	};
	reference->iov.iov_len = (size_t)sectors * SECTOR_BYTES;
	if (!enter_directly(queue, req))
		return NULL;
	reference->busy = true;
	return access_of(queue, req, true);
}

void queue_set_own(struct queue *queue, bool own)
{
	queue->own = own;
}

uint64_t queue_users_ns(const struct queue *queue)
{
	return queue->quiet_ns;
}

void queue_end_idle(struct queue *queue, const struct queue_request *req,
		    uint64_t now_ns)
{
	if (req->class == QUEUE_IDLE)
		return;
	queue->idle_again_ns = 0;
	if (!req->own)
		queue->quiet_ns = now_ns;
}

static struct access *fill_idle(struct queue *queue)
{
	uint64_t again_ns = UINT64_MAX;
	struct queue_request *req;
	struct head_state head_state;

	if (!queue->filler || queue->outstanding ||
	    env_now_ns(queue->env) < queue->idle_again_ns)
		return NULL;
	req = queue->filler->idle(
		queue->filler_arg,
		head_state_of(queue, &head_state) ? &head_state : NULL,
		queue->quiet_ns, &again_ns);
	queue->idle_again_ns = req ? 0 : again_ns;
	if (!req || !enter_directly(queue, req))
		return NULL;
	queue->stats.idle_steps++;
	return access_of(queue, req, true);
}

/* ---- the next access ---- */

/* Does a long request in the background give way to a commit that has come? */
static bool partial_gives_way(const struct queue *queue)
{
	return queue_class_waits(queue, QUEUE_COMMIT) &&
	       queue->partial->issued_sectors &&
	       !queue->partial->split_sectors &&
	       access_gives_way(queue, queue->partial);
}

static void partial_suspend(struct queue *queue)
{
	struct queue_request *req = queue->partial;

	queue->partial = NULL;
	req->suspended = req->uncached_hint = true;
	req->waits_ns = env_now_ns(queue->env);
	/* The rest of it counts as a request of its own. */
	req->waiting.due_ns = req->waits_ns +
			      queue_promised_ns((int)req->class);
	req->waiting.first = req->live.first + req->issued_sectors;
	queue_wait(queue, req);
}

/* The next access, perhaps parked for its gap; NULL: nothing waits. */
static struct access *next_access(struct queue *queue)
{
	struct head_state head_state;
	bool known = head_state_of(queue, &head_state), alone = false;
	bool places = queue->head && head_state.places;
	struct queue_request *req;

	if (queue->partial && partial_gives_way(queue))
		partial_suspend(queue);
	if (queue->partial)
		return access_of_part(queue);
	req = one_at_a_time(queue) && queue->outstanding ?
		      access_continued(queue) : NULL;
	if (req)
		queue_leave_waiting(queue, req);
	else
		req = queue_select(queue, known || places ? &head_state : NULL,
				   &alone);
	if (!req)
		return NULL;
	class_share_take(&queue->share, (int)req->class,
			 queue_begin_ns(queue));
	if (req->suspended) {
		req->suspended = false;
		queue->partial = req;
		return access_of_part(queue);
	}
	req->split_sectors = known ? split_of(queue, &head_state, req) : 0;
	if (known && !req->split_sectors) {
		req->split_sectors = gap_inside(queue, &head_state, req);
		req->gap_inside = req->split_sectors;
		queue->stats.gaps_inside += req->gap_inside;
	}
	if (req->disk.sectors <= access_most(queue, req) &&
	    !req->split_sectors)
		return access_of(queue, req, alone);
	queue->stats.split += req->split_sectors && !req->gap_inside;
	queue->partial = req;
	return access_of_part(queue);
}

/* Gives the disk one access; false: there is none. */
static bool dispatch_one(struct queue *queue)
{
	const uint64_t chosen_ns = env_now_ns(queue->env);
	struct access *access = NULL;

	if (!list_empty(&queue->flushes))
		access = access_of_flushes(queue);
	/* A commit does not wait for it: it comes behind. */
	if (!access && !queue_class_waits(queue, QUEUE_COMMIT))
		access = reference_read(queue);
	if (!access && !queue->parked) {
		queue->parked = next_access(queue);
		queue->gaps = 0;
	}
	if (!access && queue->parked) {
		access = fill_gap(queue);
		if (!access) {
			access = queue->parked;
			queue->parked = NULL;
		}
	}
	if (!access)
		access = fill_idle(queue);
	if (!access)
		return false;
	access_submit(access, chosen_ns);
	return true;
}

void queue_dispatch(struct queue *queue)
{
	commit_burst_turn(&queue->burst, env_now_ns(queue->env));
	if (!list_empty(&queue->repeats))
		queue_release_repeats(queue);
	while (queue_room_ns(queue) <= env_now_ns(queue->env) &&
	       dispatch_one(queue))
		;
}
