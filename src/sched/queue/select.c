/*
 * select.c - which request is next, and where it goes.
 *
 * The highest class that waits, by the policy within it; but of any two choices
 * one goes to the request that is most overdue, if any is.  So an overloaded
 * disk keeps at least half of its order, and nothing waits for ever.  Overdue
 * is who has waited longer than its class may and much longer than its class
 * does: where all wait long, order is what helps them all.
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
/* What is read ahead is by the way when its cost is so much less. */
#define BY_THE_WAY 3u
#define NEAR_TRACKS 8u
/* No read that waits for so long is passed over for read-ahead: two or three
 * accesses. */
#define READ_WAITS_NS 30000000u
/* What the window costs is looked at over some hundred choices. */
#define FADE (1.0 / 256)
#define WINDOW_MOST 60u

/* How often a class is passed over for higher ones, at most. */
static const unsigned class_passes[QUEUE_CLASSES] = {
	[QUEUE_READ] = 4,
	[QUEUE_READ_AHEAD] = 4,
	[QUEUE_WRITE_BACK] = 4,
	[QUEUE_IDLE] = 64,
};

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

static struct queue_request *first_unplaced(struct queue *queue, int class)
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

	policy->choose(&view, &choice);
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

static void older_of(const struct queue *queue, struct candidate *best,
		     uint64_t *due_ns, struct queue_request *req,
		     uint64_t req_due_ns)
{
	req_due_ns += queue_patience_ns(queue, req);
	if (req_due_ns >= *due_ns)
		return;
	*due_ns = req_due_ns;
	*best = (struct candidate){ .req = req, .sector = req->disk.sector };
}

static void choose_overdue(struct queue *queue,
			   const struct head_state *head_state,
			   struct candidate *candidate)
{
	uint64_t now_ns = env_now_ns(queue->env), due_ns = now_ns + 1;
	struct queue_request *req;
	struct interval *interval;
	int class;

	for (class = 0; class < QUEUE_CLASSES; class++) {
		if (class == QUEUE_COMMIT &&
		    commit_burst_is_turn(&queue->burst, now_ns))
			continue;
		interval = interval_first_due(queue->waiting[class]);
		if (interval)
			older_of(queue, candidate, &due_ns,
				 of_waiting(interval), interval->due_ns);
		req = first_unplaced(queue, class);
		if (req)
			older_of(queue, candidate, &due_ns, req,
				 req->waiting.due_ns);
	}
	req = candidate->req;
	if (req && req->place && !req->placed) {
		candidate->req = NULL;
		place_find(queue, req, head_state, candidate);
	}
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

/* Whose turn it is: the highest that waits, unless a lower one has been passed
 * over often enough.  But who commits again and again and the background have
 * turns (commit_burst.h). */
static int class_first(const struct queue *queue)
{
	uint64_t now_ns = env_now_ns(queue->env);
	int class = 0, lower;

	while (class < QUEUE_CLASSES && !queue_class_waits(queue, class))
		class++;
	if (class == QUEUE_COMMIT && !queue_class_waits(queue, QUEUE_READ) &&
	    !queue_class_waits(queue, QUEUE_READ_AHEAD)) {
		if (commit_burst_is_turn(&queue->burst, now_ns) &&
		    queue_class_waits(queue, QUEUE_WRITE_BACK))
			return QUEUE_WRITE_BACK;
		if (commit_burst_until_ns(&queue->burst, now_ns))
			return class;
	}
	for (lower = class + 1; lower < QUEUE_CLASSES; lower++)
		if (queue_class_waits(queue, lower) &&
		    queue->passed[lower] >= class_passes[lower])
			return lower;
	return class;
}

static void class_count(struct queue *queue, int chosen)
{
	int class;

	queue->passed[chosen] = 0;
	for (class = chosen + 1; class < QUEUE_CLASSES; class++)
		queue->passed[class] += queue_class_waits(queue, class);
}

/* Is it of the same stream, perhaps?  There the order counts. */
static bool is_near(const struct head_state *head_state, uint64_t a, uint64_t b)
{
	struct geom_track one, other;

	geom_track_of(head_state->geom, a, &one);
	geom_track_of(head_state->geom, b, &other);
	return one.index - other.index + NEAR_TRACKS <= 2 * NEAR_TRACKS;
}

static bool read_has_waited(const struct queue *queue)
{
	const struct interval *first =
		interval_first_due(queue->waiting[QUEUE_READ]);

	return first && env_now_ns(queue->env) -
			of_waiting((struct interval *)first)->waits_ns >=
			READ_WAITS_NS;
}

/* What is read ahead goes first when it lies by the way: somebody will wait for
 * it, too.  The next piece of a stream always does: so not before a read that
 * has waited for long. */
static void ahead_by_the_way(struct queue *queue,
			     const struct head_state *head_state,
			     struct candidate *candidate)
{
	struct candidate ahead = { 0 };

	if (!head_state || !head_state->reads ||
	    candidate->req->class != QUEUE_READ || candidate->placed ||
	    read_has_waited(queue) || !queue->waiting[QUEUE_READ_AHEAD])
		return;
	choose_by_policy(queue, QUEUE_READ_AHEAD, head_state, &ahead);
	if (ahead.cost_ns * BY_THE_WAY < candidate->cost_ns &&
	    !is_near(head_state, ahead.sector, candidate->sector))
		*candidate = ahead;
}

struct queue_request *queue_select(struct queue *queue,
				   const struct head_state *head_state,
				   bool *alone)
{
	struct candidate candidate = { 0 };
	int class;

	do {
		candidate = (struct candidate){ 0 };
		if (!queue->was_overdue)
			choose_overdue(queue, head_state, &candidate);
		queue->was_overdue = candidate.req != NULL;
		queue->stats.overdue += queue->was_overdue;
		for (class = class_first(queue);
		     class < QUEUE_CLASSES && !candidate.req; class++)
			choose_in_class(queue, class, head_state, &candidate);
		if (candidate.req && !queue->was_overdue)
			ahead_by_the_way(queue, head_state, &candidate);
		if (candidate.req)
			class_count(queue, (int)candidate.req->class);
	} while (candidate.req && !candidate_take(queue, &candidate, alone));
	return candidate.req;
}
