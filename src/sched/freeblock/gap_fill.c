/*
 * gap_fill.c - when tasks are served, and with what.
 *
 * Gap: the first call for a request makes the plan (gap_search.h) that is worth
 * most to one task; other tasks get the wanted ones among the sectors that it
 * reads.  The reads of a plan are handed over one by one, each only while the
 * head can still be there in time.  So a late read costs the rest of the plan,
 * not the request.
 *
 * Idle time: the task that has had least for its share is next.  It reads at
 * most a track at a time, in ascending order of address, which a drive that
 * reads ahead streams.
 */
#include <errno.h>
#include <string.h>

#include "sched/freeblock/gap_fill.h"

#include "base/units.h"

/* Tracks and nodes that one decision may look at: 100 us of work at most. */
#define STEPS 300u
/* Value, in ns of the head's time, of a wanted run that is completed.  Found by
 * trying: traxbench sched free. */
#define RUN_NS 700000u
/* Writes that are tried with the whole estimate, and writes that are looked at,
 * for one gap. */
#define WRITES_TRIED 4u
#define WRITES_LOOKED_AT 200u
/* A target missed by less than this is met: times are rounded. */
#define ROUND_NS 1000u
/* Idle time begins after this many times the recent gap of the foreground. */
#define QUIET_GAPS 10u
/*
 * The guards behind free reads: one for the first of a gap, one for such a
 * first one that goes on where the last access ends, and one for the rest.
 * Each missed revolution widens its guard by 1/GUARD_PART turn, to
 * 1/GUARD_MOST_PART turn at most; the guard fades so that missed revolutions
 * cost 1/GUARD_COST of the time in equilibrium: with what waits behind them the
 * three together cost the foreground half a per cent.
 *
 * How late the host is now and then is not known at first.  So the first two
 * begin with 1/GUARD_BEGIN turn, which fades as fast as if 1/GUARD_TRY of the
 * time were to be lost, and half as fast after each missed turn: behind a host
 * that is on time it is gone within some hundred reads.
 */
#define GUARD_COST 1024u
#define GUARD_TRY 32u
#define GUARD_BEGIN 16u
#define GUARD_PART 64u
#define GUARD_MOST_PART 4u
#define GUARD_GAP_NS (50 * NS_PER_MS)
/* A pause of the foreground that is longer than this is no gap within an
 * activity, and is not counted as one: a request that comes so seldom is
 * delayed by half a track at most, less than 1 % of its user's time. */
#define GAP_MAX_NS NS_PER_SECOND
/* In idle time a hole of up to this many unwanted sectors is read with its
 * neighbours, which costs less than two accesses. */
#define HOLE_SECTORS 64u

static struct freeblock_task *of_link(struct list *pos)
{
	return list_entry(pos, struct freeblock_task, link);
}

static uint32_t max_sectors(const struct freeblock *fb)
{
	return fb->queue->disk->limits.max_sectors;
}

bool gap_fill_wants(void *arg)
{
	struct freeblock *fb = arg;
	struct list *pos;

	list_for_each(pos, &fb->tasks)
		if (!of_link(pos)->paused &&
		    (freeblock_set_sectors(of_link(pos)->set) ||
		     task_writes(of_link(pos))))
			return true;
	return false;
}

/* ---- gaps: the plan ---- */

static void plan_check_delay(struct freeblock *fb,
			     const struct head_state *head_state)
{
	const struct service_request *target = &fb->target;

	fb->delay_check[fb->delay_checks++ % GAP_FILL_DELAY_CHECKS] =
		(struct delay_check){
			.lbn = target->lbn,
			.made_ns = head_state->now_ns,
			.over_ns = fb->plan.over_ns,
			.turn_ns = head_state->mech->period_ps / 1000,
	};
}

/* Is a read that is handed over now decoded so long before the last access ends
 * that it goes on there without losing a turn? */
static bool stream_in_time(const struct freeblock *fb,
			   const struct head_state *head_state)
{
	return !fb->extra_stream.ns ||
	       head_state_start_ns(head_state, false) >=
		       head_state->now_ns + head_state->read_overhead_ns +
			       head_state->late_ns + fb->extra_stream.ns;
}

static void extra_guards_begin(struct freeblock *fb, uint64_t turn_ns)
{
	if (fb->extra.cost)
		return;
	fb->extra = fb->extra_next = (struct extra_guard){
		.ns = turn_ns / GUARD_BEGIN, .cost = GUARD_TRY,
	};
	fb->extra_stream = (struct extra_guard){ .cost = GUARD_COST };
}

static void plan_search(struct freeblock *fb,
			const struct head_state *head_state)
{
	struct head_state guarded = *head_state;
	struct gap_query query = {
		.head_state = &guarded,
		.target = fb->target,
		.max_sectors = max_sectors(fb),
		.joins = fb->joins,
	};
	uint64_t best = 0, worth;
	unsigned tasks = 0;
	struct gap_plan plan;
	struct list *pos;

	extra_guards_begin(fb, head_state->mech->period_ps / 1000);
	if (!stream_in_time(fb, head_state))
		guarded.stream_lbn = UINT64_MAX;
	guarded.read_guard_ns += fb->extra.ns;
	/* A host that is late by this much may also be early now and then. */
	guarded.read_early_ns += fb->extra.ns / 4;
	guarded.write_early_ns += fb->extra.ns / 4;
	guarded.read_next_guard_ns += fb->extra_next.ns;
	guarded.write_next_guard_ns += fb->extra_next.ns;
	list_for_each(pos, &fb->tasks)
		tasks += freeblock_set_sectors(of_link(pos)->set) > 0;
	query.steps = STEPS / (tasks ? tasks : 1);
	gap_measure(&query, &fb->plan);
	list_for_each(pos, &fb->tasks) {
		struct freeblock_task *task = of_link(pos);

		if (task->paused || !freeblock_set_sectors(task->set))
			continue;
		query.run_ns = task->options.any ? 0 : RUN_NS;
		gap_search(&query, task->set, &plan);
		if (plan.worth_ns <= 0)
			continue;
		worth = (uint64_t)plan.worth_ns * task->options.share;
		if (worth > best) {
			best = worth;
			fb->plan = plan;
			fb->plan_task = task->options.name;
		}
	}
	fb->extent = 0;
}

static void plan_make(struct freeblock *fb, const struct head_state *head_state,
		      const struct service_request *next)
{
	fb->target = *next;
	fb->planned = true;
	plan_search(fb, head_state);
	fb->stats.gaps++;
	fb->stats.potential_ns += fb->plan.rotation_ns;
	plan_check_delay(fb, head_state);
}

/* The check of the request that has the gap at hand. */
static struct delay_check *watch_of(struct freeblock *fb)
{
	return &fb->delay_check[(fb->delay_checks - 1) % GAP_FILL_DELAY_CHECKS];
}

static void plan_used(struct freeblock *fb, const char *task)
{
	struct delay_check *watch = watch_of(fb);

	fb->stats.gaps_used += !watch->used;
	watch->used = true;
	watch->task = task;
}

/* ---- gaps: reads ---- */

/* Can the head be there when an extent begins? */
static bool extent_in_time(const struct head_state *head_state,
			  const struct gap_extent *extent)
{
	struct geom_place place;

	if (extent->sector == head_state->stream_lbn)
		return head_state_start_ns(head_state, false) <=
		       extent->begin_ns + ROUND_NS;
	geom_place_of(head_state->geom, extent->sector, &place);
	return head_state_start_ns(head_state, false) +
		       head_state->read_guard_ns +
		       service_move_ns(head_state->mech, &head_state->head,
				       place.cylinder, place.surface, false) <=
	       extent->begin_ns + ROUND_NS;
}

/* Extents on the target's track before it go with it in one access. */
static bool extent_joins(const struct freeblock *fb,
			const struct head_state *head_state,
			const struct gap_extent *extent)
{
	const struct service_request *target = &fb->target;
	uint64_t end = extent->sector + extent->sectors;
	struct geom_track track;

	if (!fb->joins || target->write || end > target->lbn ||
	    target->lbn + target->sectors - extent->sector > max_sectors(fb))
		return false;
	geom_track_of(head_state->geom, target->lbn, &track);
	return extent->sector >= track.first;
}

/* Number of these sectors that any task wants. */
static uint64_t wanted_in(const struct freeblock *fb, uint64_t first,
			  uint64_t end)
{
	uint64_t sum, most = 0, at;
	struct list *pos;
	struct range r;

	list_for_each(pos, &fb->tasks) {
		sum = 0;
		for (at = first;
		     freeblock_set_next(of_link(pos)->set, at, &r) &&
		     r.first < end; at = r.first + r.n)
			sum += r.n < end - r.first ? r.n : end - r.first;
		if (sum > most)
			most = sum;
	}
	return most;
}

static struct queue_request *extent_read(struct freeblock *fb,
					const struct head_state *head_state,
					const struct gap_extent *extent)
{
	uint32_t sectors = extent->sectors;
	struct geom_track track;
	struct free_read *free_read;
	uint64_t sector_ns;

	if (extent_joins(fb, head_state, extent)) {
		sectors = (uint32_t)(fb->target.lbn - extent->sector);
		fb->planned = false;
	}
	free_read = read_new(fb, FREE_READ_GAP, NULL, extent->sector, sectors);
	if (!free_read)
		return NULL;
	geom_track_of(head_state->geom, extent->sector, &track);
	sector_ns = service_turn_ns(head_state->mech, track.per_sector);
	fb->stats.used_ns += sector_ns * wanted_in(fb, extent->sector,
						   extent->sector +
							   extent->sectors);
	fb->stats.passed_ns += sector_ns * sectors;
	freeblock_take(fb, extent->sector, sectors);
	plan_used(fb, fb->plan_task);
	if (extent == fb->plan.extent &&
	    extent->sector == head_state->stream_lbn)
		watch_of(fb)->streams = true;
	return &free_read->req;
}

/* ---- gaps: writes ---- */

/* Would the target be met as without a write to this sector before it? */
static bool write_fits(const struct freeblock *fb,
		       const struct head_state *head_state, uint64_t sector,
		       uint32_t sectors)
{
	struct service_request req = { .write = true, .lbn = sector,
				       .sectors = sectors };
	struct service service, target;

	head_state_estimate(head_state, &req, &service);
	service.head.at_ns += fb->target.write ? head_state->write_next_guard_ns
					       : head_state->read_next_guard_ns;
	if (service.head.at_ns > fb->plan.target_ns)
		return false;
	service_estimate(head_state->geom, head_state->mech, &service.head,
			 &fb->target, &target);
	return target.media_ns <= fb->plan.target_ns + ROUND_NS;
}

/* Begins a write: it belongs to the queue from now on. */
static struct queue_request *write_take(struct freeblock_task *task,
					struct queue_request *req,
					uint64_t sector)
{
	task_leave_write(task, req);
	if (req->place) {
		req->disk.sector = sector;
		req->place->take(req->place, req, sector);
		req->place = NULL;
	}
	task_get(task);
	return req;
}

struct fitting {
	const struct freeblock *fb;
	const struct head_state *head_state;
};

static bool fixed_fits(void *arg, uint64_t sector, uint32_t sectors)
{
	const struct fitting *f = arg;

	return write_fits(f->fb, f->head_state, sector, sectors);
}

static struct queue_request *task_write(struct freeblock_task *task,
					const struct head_state *head_state)
{
	const struct freeblock *fb = task->fb;
	struct fitting fitting = { fb, head_state };
	const struct gap_write_query query = {
		.head_state = head_state, .target = fb->target,
		.target_ns = fb->plan.target_ns, .steps = WRITES_LOOKED_AT,
		.fits = fixed_fits, .arg = &fitting,
	};
	unsigned tries = WRITES_TRIED;
	struct queue_request *req;
	uint64_t sector, cost_ns;
	struct list *pos;

	list_for_each(pos, &task->writes) {
		if (!tries--)
			break;
		req = list_entry(pos, struct queue_request, link);
		if (!req->place->find(req->place, head_state, req->disk.sectors,
				      &sector, &cost_ns) &&
		    write_fits(fb, head_state, sector, req->disk.sectors))
			return write_take(task, req, sector);
	}
	req = gap_write_find(&task->fixed, &query);
	return req ? write_take(task, req, req->disk.sector) : NULL;
}

static struct queue_request *fill_gap_write(struct freeblock *fb,
				       const struct head_state *head_state)
{
	struct queue_request *req;
	struct list *pos;

	if (!head_state->writes || !fb->plan.gap_ns)
		return NULL;
	list_for_each(pos, &fb->tasks) {
		if (of_link(pos)->paused)
			continue;
		req = task_write(of_link(pos), head_state);
		if (req) {
			plan_used(fb, of_link(pos)->options.name);
			return req;
		}
	}
	return NULL;
}

/* ---- gaps ---- */

struct queue_request *gap_fill_begin(void *arg,
				     const struct head_state *head_state,
				     const struct service_request *next,
				     bool joins)
{
	struct freeblock *fb = arg;
	bool first = !fb->planned || fb->target.lbn != next->lbn ||
		     fb->target.write != next->write ||
		     fb->target.sectors != next->sectors;
	struct queue_request *req;

	if (head_state->geom != fb->geom || (first && !gap_fill_wants(fb)))
		return NULL;
	if (first) {
		fb->joins = joins;
		plan_make(fb, head_state, next);
	}
	/* After a write the expected times of reads do not hold. */
	req = first || fb->wrote ? fill_gap_write(fb, head_state) : NULL;
	fb->wrote = req != NULL;
	if (req) {
		fb->plan.extents_n = 0;
		return req;
	}
	if (fb->extent < fb->plan.extents_n &&
	    extent_in_time(head_state, &fb->plan.extent[fb->extent])) {
		req = extent_read(fb, head_state,
				  &fb->plan.extent[fb->extent++]);
		if (req)
			return req;
	}
	fb->planned = false;
	return NULL;
}

/* ---- idle time ---- */

/* Finds the next stretch of wanted units from an address on, within one track
 * and with small holes; false: there is none. */
static bool step_from(const struct freeblock_task *task, uint64_t from,
		      struct range *out)
{
	uint64_t most = max_sectors(task->fb), end;
	struct geom_track track;
	struct range r;

	if (!freeblock_set_next(task->set, from, out) &&
	    !freeblock_set_next(task->set, 0, out))
		return false;
	geom_track_of(task->fb->geom, out->first, &track);
	end = out->first + out->n;
	while (end < track.first + track.sectors &&
	       freeblock_set_next_on(task->set, &track, end, &r) &&
	       r.first <= end + HOLE_SECTORS)
		end = r.first + r.n;
	out->n = end - out->first;
	end = out->first + most;
	if (out->n > most)
		out->n = most - end % freeblock_set_unit(task->set);
	return out->n;
}

static struct freeblock_task *idle_task(struct freeblock *fb)
{
	struct freeblock_task *best = NULL, *task;
	struct list *pos;

	list_for_each(pos, &fb->tasks) {
		task = of_link(pos);
		if (task->paused || task->options.no_idle ||
		    (!freeblock_set_sectors(task->set) && !task_writes(task)))
			continue;
		if (!best || task->idle_sectors < best->idle_sectors)
			best = task;
	}
	return best;
}

/* Charges a task for idle time.  A new task does not get the idle time that
 * others had before it. */
static void idle_charge(struct freeblock *fb, struct freeblock_task *task,
			uint64_t sectors)
{
	uint64_t had = task->idle_sectors;
	struct list *pos;

	task->idle_sectors += sectors / task->options.share;
	list_for_each(pos, &fb->tasks)
		if (of_link(pos)->idle_sectors < had)
			of_link(pos)->idle_sectors = had;
}

static struct queue_request *idle_write(struct freeblock_task *task,
					const struct head_state *head_state)
{
	const struct head_state *known =
		head_state && head_state->writes ? head_state : NULL;
	struct queue_request *req;
	uint64_t sector, cost_ns;
	struct list *pos;

	list_for_each(pos, &task->writes) {
		req = list_entry(pos, struct queue_request, link);
		if (!req->place->find(req->place, known, req->disk.sectors,
				      &sector, &cost_ns))
			return write_take(task, req, sector);
	}
	req = gap_write_nearest(&task->fixed, known);
	return req ? write_take(task, req, req->disk.sector) : NULL;
}

uint64_t gap_fill_quiet_ns(const struct freeblock *fb)
{
	uint64_t wait_ns = fb->recent_gap_ns * QUIET_GAPS;

	return wait_ns > fb->quiet_ns ? wait_ns : fb->quiet_ns;
}

struct queue_request *gap_fill_idle(void *arg,
				    const struct head_state *head_state,
				    uint64_t quiet_ns, uint64_t *again_ns)
{
	struct freeblock *fb = arg;
	uint64_t now_ns = env_now_ns(fb->queue->env);
	struct freeblock_task *task;
	struct queue_request *req;
	struct free_read *free_read;
	struct range step;

	*again_ns = quiet_ns + gap_fill_quiet_ns(fb);
	if (now_ns < *again_ns)
		return NULL;
	*again_ns = UINT64_MAX;
	if (fb->sleep_ns && now_ns >= quiet_ns + fb->sleep_ns)
		return NULL;
	task = idle_task(fb);
	if (!task)
		return NULL;
	fb->idle_begin_ns = now_ns;
	fb->idle_end_ns = UINT64_MAX;
	fb->idle_task = task->options.name;
	req = idle_write(task, head_state);
	if (req) {
		idle_charge(fb, task, req->disk.sectors);
		return req;
	}
	if (!step_from(task, fb->idle_lbn, &step))
		return NULL;
	free_read = read_new(fb, FREE_READ_IDLE, NULL, step.first,
			     (uint32_t)step.n);
	if (!free_read)
		return NULL;
	fb->idle_lbn = step.first + step.n;
	idle_charge(fb, task, step.n);
	freeblock_take(fb, step.first, (uint32_t)step.n);
	return &free_read->req;
}

/* ---- like the foreground ---- */

/* Sectors that are read together from the beginning of a suspect range. */
static uint32_t suspect_step(const struct freeblock_task *task,
			     const struct range *r)
{
	const struct range *failed = &task->failed;
	uint32_t n = r->first >= failed->first &&
		     r->first < failed->first + failed->n ?
			     suspect_least(task) : suspect_most(task);

	n -= (uint32_t)(r->first % n);
	return r->n < n ? (uint32_t)r->n : n;
}

static void submit_suspect(struct freeblock_task *task)
{
	struct free_read *free_read;
	struct range r;

	if (task->suspecting || !rangeset_next(&task->suspect, 0, &r))
		return;
	free_read = read_new(task->fb, task->promoted ? FREE_READ_PROMOTED :
							FREE_READ_IDLE,
			     task, r.first, suspect_step(task, &r));
	if (!free_read)
		return;
	free_read->suspect = true;
	task->suspecting = true;
	queue_submit(task->fb->queue, &free_read->req);
}

static bool submit_promoted(struct freeblock_task *task)
{
	struct free_read *free_read;
	struct range step;

	if (!step_from(task, task->promoted_lbn, &step))
		return false;
	free_read = read_new(task->fb, FREE_READ_PROMOTED, task, step.first,
			(uint32_t)step.n);
	if (!free_read)
		return false;
	task->promoted_lbn = step.first + step.n;
	task->reading++;
	freeblock_take(task->fb, step.first, (uint32_t)step.n);
	queue_submit(task->fb->queue, &free_read->req);
	return true;
}

void gap_fill_promoted(struct freeblock_task *task)
{
	struct queue_request *req;

	if (task->paused || task->closed)
		return;
	submit_suspect(task);
	while (task->promoted && (req = task_first_write(task))) {
		task_leave_write(task, req);
		task_get(task);
		req->class = QUEUE_WRITE_BACK;
		queue_submit(task->fb->queue, req);
	}
	while (task->reading < task->promoted && submit_promoted(task))
		;
}

/* ---- what the foreground does ---- */

static struct freeblock_delay *delay_of(struct freeblock *fb, const char *task)
{
	unsigned i;

	for (i = 0; i < GAP_FILL_TASKS; i++) {
		if (!fb->delay[i].task)
			fb->delay[i].task = task;
		if (!strcmp(fb->delay[i].task, task))
			return &fb->delay[i].is;
	}
	return NULL;
}

static void delay_count(struct freeblock *fb, const char *task,
			uint64_t delay_ns)
{
	struct freeblock_delay *of_task = delay_of(fb, task);
	unsigned bin = GAP_FILL_DELAYS - 1;

	if (of_task) {
		of_task->requests++;
		of_task->sum_ns += delay_ns;
	}

	fb->stats.delays++;
	fb->stats.delay_ns += delay_ns;
	if (delay_ns > fb->stats.max_delay_ns)
		fb->stats.max_delay_ns = delay_ns;
	if (delay_ns / GAP_FILL_DELAY_NS < bin)
		bin = (unsigned)(delay_ns / GAP_FILL_DELAY_NS);
	fb->delay_bins[bin]++;
}

/* Widens a guard after a missed turn; time narrows it. */
static void extra_guard_move(struct extra_guard *guard, uint64_t turn_ns,
			     uint64_t since_ns, bool missed)
{
	uint64_t fade_ns = since_ns / guard->cost / GUARD_PART;

	if (missed) {
		guard->ns += turn_ns / GUARD_PART;
		guard->cost *= guard->cost < GUARD_COST ? 2 : 1;
	} else {
		guard->ns -= fade_ns < guard->ns ? fade_ns : guard->ns;
	}
	if (guard->ns > turn_ns / GUARD_MOST_PART)
		guard->ns = turn_ns / GUARD_MOST_PART;
}

/*
 * The guards let 2 % of all moves miss their target, and a free read is a move
 * more.  So they are widened until the turns that are missed cost no more than
 * their part of the time: those missed by what a gap begins with, for which the
 * host may be late, those missed by what goes on where the last access ends and
 * came too late for that, and those missed by what follows in a gap, apart.
 */
static void extra_guards_follow(struct freeblock *fb,
				const struct delay_check *watch,
				uint64_t over_ns)
{
	uint64_t since_ns = over_ns - fb->narrowed_ns;
	bool missed = over_ns > watch->over_ns + watch->turn_ns / 2;

	fb->narrowed_ns = over_ns;
	if (since_ns > GUARD_GAP_NS)
		since_ns = GUARD_GAP_NS;
	extra_guard_move(&fb->extra, watch->turn_ns, since_ns,
			 missed && watch->first_late && !watch->streams);
	extra_guard_move(&fb->extra_stream, watch->turn_ns, since_ns,
			 missed && watch->first_late && watch->streams);
	extra_guard_move(&fb->extra_next, watch->turn_ns, since_ns,
			 missed && !watch->first_late);
}

void gap_fill_read_over(struct freeblock *fb, const struct disk_request *disk)
{
	struct delay_check *watch = watch_of(fb);
	const struct gap_extent *extent = &fb->plan.extent[0];

	if (watch->used && fb->plan.extents_n &&
	    extent->sector == disk->sector &&
	    disk->complete_ns > extent->end_ns + watch->turn_ns / 2)
		watch->first_late = true;
}

/* A request that was watched is over.  If one before it was late, on which the
 * expectation of this one rested, this one's lateness is that one's. */
static void delay_look(struct freeblock *fb, const struct delay_check *watch,
		       uint64_t over_ns)
{
	bool late = over_ns > watch->over_ns + watch->turn_ns / 2;

	if (watch->used && watch->made_ns >= fb->late_ns) {
		fb->followed++;
		extra_guards_follow(fb, watch, over_ns);
		if (late)
			delay_count(fb, watch->task, over_ns - watch->over_ns);
	}
	if (late)
		fb->late_ns = over_ns;
}

/* Notes whether a request was made late by a read before it, or by a step in
 * idle time. */
static void passed_delay(struct freeblock *fb, const struct disk_request *disk)
{
	uint64_t end_ns = fb->idle_end_ns;
	unsigned i;

	if (disk->submit_ns > fb->idle_begin_ns && disk->submit_ns < end_ns &&
	    end_ns != UINT64_MAX) {
		fb->followed++;
		delay_count(fb, fb->idle_task, end_ns - disk->submit_ns);
	}
	for (i = 0; i < GAP_FILL_DELAY_CHECKS; i++) {
		struct delay_check *watch = &fb->delay_check[i];

		if (watch->turn_ns && watch->lbn >= disk->sector &&
		    watch->lbn < disk->sector + disk->sectors) {
			delay_look(fb, watch, disk->complete_ns);
			*watch = (struct delay_check){ 0 };
		}
	}
}

/* Takes in a gap of the foreground.  The longest recent gap fades by a
 * sixteenth with each other one. */
static void passed_gap(struct freeblock *fb, const struct disk_request *disk)
{
	uint64_t gap_ns = 0;

	if (fb->last_over_ns && disk->submit_ns > fb->last_over_ns) {
		gap_ns = disk->submit_ns - fb->last_over_ns;
		fb->recent_gap_ns -= fb->recent_gap_ns / 16;
		if (fb->recent_gap_ns < gap_ns && gap_ns <= GAP_MAX_NS)
			fb->recent_gap_ns = gap_ns;
	}
	if (fb->last_over_ns < disk->complete_ns)
		fb->last_over_ns = disk->complete_ns;
}

void gap_fill_passed(void *arg, const struct queue_request *req)
{
	const struct disk_request *disk = &req->disk;
	struct freeblock *fb = arg;
	uint64_t at = disk->sector;
	unsigned i;

	if (disk->done == freeblock_read_done ||
	    disk->done == freeblock_write_done)
		return;
	if (!req->own && req->class != QUEUE_IDLE)
		passed_gap(fb, disk);
	passed_delay(fb, disk);
	if (disk->op != DISK_READ || disk->result)
		return;
	for (i = 0; i < disk->iov_n; i++) {
		uint32_t n = (uint32_t)(disk->iov[i].iov_len / SECTOR_BYTES);

		freeblock_pass(fb, at, n, disk->iov[i].iov_base);
		at += n;
	}
}
