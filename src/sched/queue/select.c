/*
 * select.c - which request is next, and where it goes.
 *
 * 1. A commit that is due.  2. The class that has a slice (SLICE_NS): one below
 * reads has it at times while higher classes wait, so often that all that wait
 * in it have had theirs within the time that the class is paced for; reads have
 * it before commits when one is due.  3. The highest class that waits.  Within
 * a class the policy chooses; but a request that is due, at its age or later
 * when the class is overloaded by itself, goes first.  Requests one behind the
 * other are a run: the head goes on with them for RUN_NS at most while others
 * wait (access.c), and what is next then is none of that run if there is
 * anything else in its class.
 *
 * A read with copies stands at each of them among the sites of its class.  A
 * write that may go to several places is asked for its cheapest now
 * (PLACE_TRIES of the oldest are, which bounds the time of a decision); the
 * place is taken when it has won.  Where the head is not known they take turns
 * with the others.
 */
#include <string.h>

#include "sched/queue/queue_internal.h"

#define PLACE_TRIES 32u
/* What the window costs is looked at over some hundred choices. */
#define FADE (1.0 / 256)
#define WINDOW_MOST 60u

/* While higher classes wait, one of those below has the head for so long ... */
#define SLICE_NS 20000000u
/* ... so long after the last time at least. */
#define SLICE_EACH_NS 60000000u
/* A request may wait as long as those of its class take one after the other,
 * if that is more than its age; so many times as long where many wait: then
 * order is what helps them all. */
#define MANY 8u
#define OVERLOAD_MANY 3u

/* A request, and where it would go. */
struct candidate {
	struct queue_request *req;	/* NULL: none */
	bool placed;			/* a place was found: sector */
	uint64_t sector;
	uint64_t cost_ns;
};

static struct queue_request *of_waiting(struct interval *interval)
{
	return container_of(interval, struct queue_request, waiting);
}

static struct queue_request *first_unplaced(const struct queue *queue,
					     int class)
{
	return list_first(&queue->unplaced[class], struct queue_request, link);
}

bool queue_class_waits(const struct queue *queue, int class)
{
	return queue->waiting[class] || !list_empty(&queue->unplaced[class]);
}

bool queue_is_background(const struct queue *queue)
{
	int class;

	for (class = 0; class < QUEUE_WRITE_BACK; class++)
		if (queue_class_waits(queue, class))
			return false;
	return !queue->partial && !queue->parked &&
	       list_empty(&queue->flushes) &&
	       queue_class_waits(queue, QUEUE_WRITE_BACK);
}

bool queue_has_waiting(const struct queue *queue)
{
	int class;

	for (class = 0; class < QUEUE_CLASSES; class++)
		if (queue_class_waits(queue, class))
			return true;
	return queue->partial || queue->parked || !list_empty(&queue->flushes);
}

/* ---- places ---- */

/* Asks a write for its cheapest place; one that has none ends. */
static bool place_find(struct queue *queue, struct queue_request *req,
		       const struct head_state *head_state,
		       struct candidate *candidate)
{
	const struct head_state *known =
		head_state && (head_state->writes || head_state->places)
			? head_state
			: NULL;
	uint64_t sector, cost_ns = 0;
	int err = req->place->find(req->place, known, req->disk.sectors,
				   &sector, &cost_ns);

	if (err) {
		list_del(&req->link);
		if (req->class == QUEUE_COMMIT)
			queue_commit_over(queue, env_now_ns(queue->env));
		queue_finish(queue, req, err, env_now_ns(queue->env));
		return false;
	}
	if (!candidate->req || cost_ns < candidate->cost_ns)
		*candidate = (struct candidate){ req, true, sector, cost_ns };
	return true;
}

static void place_best(struct queue *queue, int class,
		       const struct head_state *head_state,
		       struct candidate *candidate)
{
	unsigned tries = head_state && head_state->writes ? PLACE_TRIES : 1;
	struct list *pos, *next;

	list_for_each_safe(pos, next, &queue->unplaced[class]) {
		if (!tries)
			return;
		if (place_find(queue, list_entry(pos, struct queue_request,
						 link), head_state, candidate))
			tries--;
	}
}

/* ---- the policy ---- */

static const struct policy *policy_now(const struct queue *queue,
				       const struct head_state *head_state,
				       unsigned *window_percent)
{
	bool known = head_state && (head_state->reads || head_state->writes);
	unsigned unused = 0;

	*window_percent = queue->window.percent;
	if (queue->policy && (known || !queue->policy->needs_head))
		return queue->policy;
	if (!known)
		return policy_find("c-look", &unused);
	if (queue->filler && queue->filler->wants(queue->filler_arg))
		return policy_find("sptf-sw", &unused);
	return policy_find("sptf", &unused);
}

/* The window grows while what it costs is within the budget, and shrinks. */
static void window_follow(struct queue *queue,
			  const struct policy_choice *choice)
{
	double allowed = queue->window.budget_ppm / 1e6;
	double spent = (double)choice->extra_ns, of = (double)choice->cost_ns;

	queue->stats.window_ns += choice->extra_ns;
	queue->window.spent_ns += spent - queue->window.spent_ns * FADE;
	queue->window.of_ns += of - queue->window.of_ns * FADE;
	if (queue->window.fixed)
		return;
	if (queue->window.spent_ns >= allowed * queue->window.of_ns)
		queue->window.percent -= queue->window.percent != 0;
	else
		queue->window.percent += queue->window.percent < WINDOW_MOST;
	queue->stats.window_percent = queue->window.percent;
}

/* Not from the middle of a run, when it is read where it was written. */
static void candidate_widen(struct queue *queue, struct candidate *candidate)
{
	if (candidate->sector != candidate->req->disk.sector)
		return;
	candidate->req = access_run_begin(queue, candidate->req);
	candidate->sector = candidate->req->disk.sector;
}

static void choose_by_policy(struct queue *queue, int class,
			     const struct head_state *head_state,
			     struct candidate *candidate)
{
	struct policy_view view = {
		.waiting = queue->waiting[class],
		.head_sector = queue->head_sector,
		.sites = queue->sites[class],
		.head_state = head_state,
	};
	const struct policy *policy =
		policy_now(queue, head_state, &view.window_percent);
	struct policy_choice choice = { 0 };

	if (access_run_is_over(queue))
		view.skip_end = access_run_end(queue, class);
	policy->choose(&view, &choice);
	if (!choice.site && !choice.waiting) {
		view.skip_end = 0;
		policy->choose(&view, &choice);
	}
	if (!strcmp(policy->name, "sptf-sw"))
		window_follow(queue, &choice);
	if (choice.site) {
		*candidate = (struct candidate){
			.req = choice.site->owner,
			.sector = choice.site->lbn,
			.cost_ns = choice.cost_ns,
		};
		candidate_widen(queue, candidate);
	} else {
		*candidate = (struct candidate){
			.req = of_waiting(choice.waiting),
			.sector = choice.waiting->first,
		};
	}
}

static void choose_in_class(struct queue *queue, int class,
			    const struct head_state *head_state,
			    struct candidate *candidate)
{
	bool known = head_state && head_state->writes;

	if (queue->waiting[class] && (known || !queue->was_placed ||
				      list_empty(&queue->unplaced[class])))
		choose_by_policy(queue, class, head_state, candidate);
	if (!candidate->req || known)
		place_best(queue, class, head_state, candidate);
	/* Its places may all have failed. */
	if (!candidate->req && queue->waiting[class])
		choose_by_policy(queue, class, head_state, candidate);
}

/* ---- age ---- */

static bool has_many(const struct queue *queue, int class)
{
	return queue->count[class] >= MANY;
}

/* How much later than by its age a request of a class is due because so many of
 * the class wait. */
static uint64_t class_overload_ns(const struct queue *queue, int class)
{
	uint64_t all_ns = queue->count[class] * queue->access_ns;
	uint64_t age_ns = queue_age_ns(class);

	if (has_many(queue, class))
		all_ns *= OVERLOAD_MANY;
	return all_ns < age_ns ? 0 : all_ns - age_ns;
}

/* The request of a class that is due first, and when; NULL: none waits. */
static struct queue_request *class_oldest(const struct queue *queue, int class,
					  uint64_t *due_ns)
{
	struct interval *interval = interval_first_due(queue->waiting[class]);
	struct queue_request *req = first_unplaced(queue, class);

	if (interval && (!req || interval->due_ns < req->waiting.due_ns))
		req = of_waiting(interval);
	if (req)
		*due_ns = req->waiting.due_ns + (req->deadline_ns ? 0 :
			class_overload_ns(queue, class));
	return req;
}

static bool class_is_due(const struct queue *queue, int class, uint64_t now_ns)
{
	uint64_t due_ns;

	return class_oldest(queue, class, &due_ns) && due_ns <= now_ns;
}

/* One that its owner has given, not the class. */
static bool deadline_is_over(const struct queue *queue, int class,
			     uint64_t now_ns)
{
	uint64_t due_ns;
	const struct queue_request *req = class_oldest(queue, class, &due_ns);

	return req && req->deadline_ns && due_ns <= now_ns;
}

static void choose_oldest(struct queue *queue, int class,
			  const struct head_state *head_state,
			  struct candidate *candidate)
{
	uint64_t due_ns;
	struct queue_request *req = class_oldest(queue, class, &due_ns);

	if (req->place && !req->placed)
		place_find(queue, req, head_state, candidate);
	else
		*candidate = (struct candidate){
			.req = req, .sector = req->disk.sector,
		};
}

/* ---- slices of lower classes ---- */

int queue_slice(const struct queue *queue)
{
	uint64_t now_ns = env_now_ns(queue->env);

	if (now_ns >= queue->slice_end_ns ||
	    class_is_due(queue, QUEUE_COMMIT, now_ns))
		return -1;
	return queue->slice_class;
}

static int slice_give(struct queue *queue, int class, uint64_t now_ns)
{
	queue->slice_class = class;
	queue->slice_end_ns = now_ns + SLICE_NS;
	queue->was_oldest = false;
	return class;
}

/* A class below reads that is to have one now; QUEUE_CLASSES: none. */
static int slice_begin(struct queue *queue, int highest, uint64_t now_ns)
{
	int class = queue->slice_lower, n;

	if (now_ns < queue->slice_lower_ns)
		return QUEUE_CLASSES;
	for (n = 0; n < QUEUE_CLASSES; n++) {
		class = (class + 1) % QUEUE_CLASSES;
		if (class <= highest || class <= QUEUE_READ ||
		    !queue_class_waits(queue, class) ||
		    (now_ns < queue->pace_ns[class] &&
		     !deadline_is_over(queue, class, now_ns)))
			continue;
		queue->slice_lower = class;
		queue->slice_lower_ns = now_ns + SLICE_NS + SLICE_EACH_NS;
		return slice_give(queue, class, now_ns);
	}
	return QUEUE_CLASSES;
}

/* ---- the choice ---- */

static bool span_is_write(const struct interval *interval, const void *arg)
{
	(void)arg;
	return container_of(interval, const struct queue_request, live)
		       ->disk.op == DISK_WRITE;
}

/* Reads a copy instead, unless somebody writes there. */
static bool take_copy(struct queue *queue, struct queue_request *req,
		      uint64_t sector)
{
	if (interval_any(queue->live, sector, sector + req->disk.sectors,
		     span_is_write, NULL))
		return false;
	interval_remove(&queue->live, &req->live);
	req->live.first = sector;
	req->live.end = sector + req->disk.sectors;
	interval_insert(&queue->live, &req->live);
	req->disk.sector = sector;
	queue->stats.copies++;
	queue_release_held(queue);
	return true;
}

/* Makes the choice true; false: it has to wait after all. */
static bool candidate_take(struct queue *queue, struct candidate *candidate,
			   bool *alone)
{
	struct queue_request *req = candidate->req;

	queue->was_placed = candidate->placed;
	*alone = candidate->placed && !req->place->leads;
	if (candidate->placed) {
		list_del(&req->link);
		req->disk.sector = candidate->sector;
		req->placed = true;
		req->place->take(req->place, req, candidate->sector);
		if (!queue_enter(queue, req))
			return false;
	}
	queue_leave_waiting(queue, req);
	if (candidate->sector != req->disk.sector)
		*alone = take_copy(queue, req, candidate->sector);
	return true;
}

/* Who commits again and again and the background have turns (commit_burst.h).
 * The class whose turn it is; QUEUE_CLASSES: it is nothing like that. */
static int class_of_burst(const struct queue *queue, uint64_t now_ns)
{
	if (!queue_class_waits(queue, QUEUE_COMMIT) ||
	    queue_class_waits(queue, QUEUE_READ) ||
	    queue_class_waits(queue, QUEUE_READ_AHEAD))
		return QUEUE_CLASSES;
	if (commit_burst_is_turn(&queue->burst, now_ns) &&
	    queue_class_waits(queue, QUEUE_WRITE_BACK))
		return QUEUE_WRITE_BACK;
	return commit_burst_until_ns(&queue->burst, now_ns) ? QUEUE_COMMIT :
							      QUEUE_CLASSES;
}

/* Whose turn it is. */
static int class_now(struct queue *queue, uint64_t now_ns)
{
	int highest = 0, class;

	while (highest < QUEUE_CLASSES && !queue_class_waits(queue, highest))
		highest++;
	if (highest >= QUEUE_IDLE || class_is_due(queue, QUEUE_COMMIT, now_ns))
		return highest;
	class = class_of_burst(queue, now_ns);
	if (class < QUEUE_CLASSES)
		return class;
	class = queue_slice(queue);
	if (class > highest && queue_class_waits(queue, class))
		return class;
	class = slice_begin(queue, highest, now_ns);
	if (class < QUEUE_CLASSES)
		return class;
	if (highest == QUEUE_COMMIT && class_is_due(queue, QUEUE_READ, now_ns))
		return slice_give(queue, QUEUE_READ, now_ns);
	return highest;
}

/* Is the next request of a class the oldest one?  Commits and reads that are
 * due go one by one; where many wait, and below reads, every other choice is
 * the policy's, so that no load undoes all of the order. */
static bool oldest_is_next(struct queue *queue, int class)
{
	bool every = class == QUEUE_COMMIT ||
		(class == QUEUE_READ && !has_many(queue, class));

	queue->was_oldest = class_is_due(queue, class,
					 env_now_ns(queue->env)) &&
			    (every || !queue->was_oldest);
	return queue->was_oldest;
}

static void choose(struct queue *queue, const struct head_state *head_state,
		   struct candidate *candidate)
{
	int class = class_now(queue, env_now_ns(queue->env));

	if (class < QUEUE_CLASSES && oldest_is_next(queue, class)) {
		queue->stats.overdue++;
		choose_oldest(queue, class, head_state, candidate);
	}
	for (; class < QUEUE_CLASSES && !candidate->req; class++)
		choose_in_class(queue, class, head_state, candidate);
}

struct queue_request *queue_select(struct queue *queue,
				   const struct head_state *head_state,
				   bool *alone)
{
	struct candidate candidate;

	do {
		candidate = (struct candidate){ 0 };
		choose(queue, head_state, &candidate);
	} while (candidate.req && !candidate_take(queue, &candidate, alone));
	return candidate.req;
}
