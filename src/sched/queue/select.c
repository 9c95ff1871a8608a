/*
 * select.c - which request is next, and where it goes.
 *
 * A request that is of age, the most urgent first (class_ages); else the class
 * whose share of the head it is (class_share.h), and the policy within it.
 *
 * A read with copies stands at each of them among the sites of its class.  A
 * write that may go to several places is asked for its cheapest now
 * (PLACE_TRIES of the oldest are, which bounds the time of a decision); the
 * place is taken when it has won.  Where the head is not known they take turns
 * with the others.
 */
#include <string.h>

#include "base/units.h"
#include "sched/queue/queue_internal.h"

/* Range writes whose place is looked up for one decision, the oldest ones. */
#define PLACE_TRIES 32u
/* Distance within which a read ahead of the head is of the same stream, or is
 * reached with it in some tens of milliseconds: 8 MiB. */
#define AHEAD_SECTORS 16384u
/* A request with this much time left still waits for the end of a run of its
 * class, which with other urgent requests takes as long. */
#define URGENT_NS (70 * NS_PER_MS)
/* The most urgent request and those that are due within this time after it are
 * served in the order of the policy: a few accesses. */
#define TOGETHER_NS (20 * NS_PER_MS)
/* Reads are served in the order of the policy that are due within this time
 * after the most urgent one of their class: as many accesses as make a good
 * order. */
#define GROUP_NS (300 * NS_PER_MS)
/* The cost of the window is a mean over some hundred choices; WINDOW_MOST is
 * its largest n, in percent. */
#define FADE (1.0 / 256)
#define WINDOW_MOST 60u

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
	return queue->share.count[class];
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
		class_share_remove(&queue->share, (int)req->class);
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
	if (queue_wants_gaps(queue))
		return policy_find("sptf-sw", &unused);
	return policy_find("sptf", &unused);
}

/* Widens the window while its cost is within the budget, else narrows it. */
static void window_follow(struct queue *queue,
			  const struct policy_choice *choice)
{
	double allowed = queue->window.budget_ppm / 1e6;
	double spent = (double)choice->extra_ns, of = (double)choice->cost_ns;

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

/* A run of requests that follow each other is begun with its first one, unless
 * the candidate is read from a copy. */
static void candidate_widen(struct queue *queue, struct candidate *candidate)
{
	if (candidate->sector != candidate->req->disk.sector)
		return;
	candidate->req = access_run_begin(queue, candidate->req);
	candidate->sector = candidate->req->disk.sector;
}

/* Chooses by the policy among the requests within the view's limits; if there
 * are none the candidate stays. */
static void choose_limited(struct queue *queue, int class,
			   const struct head_state *head_state,
			   struct policy_view view, struct candidate *candidate)
{
	const struct policy *policy =
		policy_now(queue, head_state, &view.window_percent);
	struct policy_choice choice = { 0 };

	view.waiting = queue->waiting[class];
	view.head_sector = queue->head_sector;
	view.sites = queue->sites[class];
	view.head_state = head_state;
	policy->choose(&view, &choice);
	if (choice.site && !strcmp(policy->name, "sptf-sw"))
		window_follow(queue, &choice);
	if (choice.site) {
		*candidate = (struct candidate){
			.req = choice.site->owner,
			.sector = choice.site->lbn,
			.cost_ns = choice.cost_ns,
		};
		candidate_widen(queue, candidate);
	} else if (choice.waiting) {
		*candidate = (struct candidate){
			.req = of_waiting(choice.waiting),
			.sector = choice.waiting->first,
		};
	}
}

/* Chooses the run that was cut, if it still waits. */
static void choose_cut(struct queue *queue, struct candidate *candidate)
{
	struct run_cut *cut = &queue->cut;
	struct interval *interval =
		interval_at_or_after(queue->waiting[cut->class], cut->first);

	cut->due_ns = 0;
	if (interval && interval->first == cut->first)
		*candidate = (struct candidate){
			.req = of_waiting(interval),
			.sector = interval->first,
		};
}

/* Latest deadline of the reads that are served together; 0: no limit.  Reads
 * for which there is time stay back while others are wanted sooner; those
 * wanted within GROUP_NS are served on one way over the disk (SCAN-EDF). */
static uint64_t due_together_ns(const struct queue *queue, int class)
{
	const struct interval *first =
		interval_first_due(queue->waiting[class]);
	uint64_t now_ns = env_now_ns(queue->env);

	if (!first || (class != QUEUE_READ && class != QUEUE_READ_AHEAD))
		return 0;
	return (first->due_ns > now_ns ? first->due_ns : now_ns) + GROUP_NS;
}

/* There is no time for it if serving all that waits takes until the first one
 * is due. */
bool queue_stays_back(const struct queue *queue,
		      const struct queue_request *req)
{
	const struct interval *first =
		interval_first_due(queue->waiting[QUEUE_READ]);

	return req->deadline_ns && req->class == QUEUE_READ &&
	       req->waiting.due_ns > due_together_ns(queue, QUEUE_READ) &&
	       env_now_ns(queue->env) + queue->access_ns *
			queue->share.count[QUEUE_READ] > first->due_ns;
}

static void choose_by_policy(struct queue *queue, int class,
			     const struct head_state *head_state,
			     struct candidate *candidate)
{
	struct policy_view view = { 0 };
	struct run_cut *cut = &queue->cut;
	struct interval *first;

	access_cut_run(queue, class);
	if (cut->due_ns && cut->class == class) {
		view.cut_first = cut->first;
		view.cut_end = cut->end;
		view.due_most_ns = cut->due_ns;
		choose_limited(queue, class, head_state, view, candidate);
		if (!candidate->req)
			choose_cut(queue, candidate);
		view.due_most_ns = 0;
	}
	if (!candidate->req) {
		first = interval_first_due(queue->waiting[class]);
		view.due_most_ns = due_together_ns(queue, class);
		choose_limited(queue, class, head_state, view, candidate);
	}
	/* If thousands wait not all are looked at, so there may be no
	 * candidate. */
	if (!candidate->req)
		*candidate = (struct candidate){
			.req = of_waiting(first), .sector = first->first,
		};
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
	/* All places of range writes may have failed. */
	if (!candidate->req && queue->waiting[class])
		choose_by_policy(queue, class, head_state, candidate);
}

/* ---- age ---- */

/* The request of a class that should be over first; NULL: none waits. */
static struct queue_request *first_due(const struct queue *queue, int class)
{
	struct interval *interval = interval_first_due(queue->waiting[class]);
	struct queue_request *req;

	if (list_empty(&queue->unplaced[class]))
		return interval ? of_waiting(interval) : NULL;
	req = first_unplaced(queue, class);
	return interval && interval->due_ns < req->waiting.due_ns ?
		       of_waiting(interval) : req;
}

struct queue_request *queue_overdue(const struct queue *queue)
{
	uint64_t now_ns = env_now_ns(queue->env);
	struct queue_request *best = NULL, *req;
	int class;

	for (class = 0; class < QUEUE_CLASSES; class++) {
		req = first_due(queue, class);
		if (req && queue_is_of_age(queue, req, now_ns) &&
		    (!best || req->waiting.due_ns < best->waiting.due_ns))
			best = req;
	}
	return best;
}

bool queue_is_urgent(const struct queue *queue,
		     const struct queue_request *req)
{
	return req->waiting.due_ns <
		       env_now_ns(queue->env) + URGENT_NS &&
	       (!req->ready ||
		req->waiting.first - queue->head_sector > LEFT_OUT);
}

static void choose_overdue(struct queue *queue,
			   const struct head_state *head_state,
			   struct candidate *candidate)
{
	struct queue_request *req = queue_overdue(queue);
	struct policy_view view = { 0 };

	if (!req)
		return;
	queue->stats.overdue++;
	if (req->place && !req->placed) {
		place_find(queue, req, head_state, candidate);
		return;
	}
	view.due_most_ns = req->waiting.due_ns + TOGETHER_NS;
	choose_limited(queue, (int)req->class, head_state, view, candidate);
	if (!candidate->req)
		*candidate = (struct candidate){
			.req = req, .sector = req->disk.sector,
		};
}

/* ---- the choice ---- */

static bool span_is_write(const struct interval *interval, const void *arg)
{
	(void)arg;
	return container_of(interval, const struct queue_request, live)
		       ->disk.op == DISK_WRITE;
}

/* Has a replica read instead, unless a write to it is under way. */
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

/* Takes the chosen request out of the waiting ones; false: it has to wait after
 * all. */
static bool candidate_take(struct queue *queue, struct candidate *candidate,
			   bool *alone)
{
	struct queue_request *req = candidate->req;

	queue->was_placed = candidate->placed;
	*alone = candidate->placed && !req->place->leads;
	if (candidate->placed) {
		list_del(&req->link);
		class_share_remove(&queue->share, (int)req->class);
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

/* The class that is next, by the shares.  But write-back waits for commits
 * where nothing is read, until it has its turn (commit_burst.h) or is of
 * age. */
int queue_next_class(const struct queue *queue)
{
	if (queue_class_waits(queue, QUEUE_COMMIT) &&
	    !queue_class_waits(queue, QUEUE_READ) &&
	    !queue_class_waits(queue, QUEUE_READ_AHEAD))
		return queue_class_waits(queue, QUEUE_WRITE_BACK) &&
				       commit_burst_is_turn(&queue->burst,
						env_now_ns(queue->env)) ?
			       QUEUE_WRITE_BACK : QUEUE_COMMIT;
	return class_share_next(&queue->share, queue_begin_ns(queue));
}

/* The read that goes on where the last access ends; NULL: none waits. */
static struct queue_request *read_continued(const struct queue *queue)
{
	struct interval *interval;
	int class;

	for (class = QUEUE_READ; class <= QUEUE_READ_AHEAD; class++) {
		interval = interval_at_or_after(queue->waiting[class],
						queue->head_sector);
		if (interval &&
		    interval->first - queue->head_sector <= LEFT_OUT &&
		    of_waiting(interval)->disk.op == DISK_READ &&
		    !queue_stays_back(queue, of_waiting(interval)))
			return of_waiting(interval);
	}
	return NULL;
}

/* Whatever class is next: the next read of a stream goes first, as the head
 * would have to come back for it, and soon comes to what lies ahead. */
static void keep_stream_order(struct queue *queue, struct candidate *candidate)
{
	struct queue_request *req = candidate->req;

	if ((req->class != QUEUE_READ && req->class != QUEUE_READ_AHEAD) ||
	    candidate->sector - queue->head_sector > AHEAD_SECTORS)
		return;
	req = read_continued(queue);
	if (req)
		*candidate = (struct candidate){
			.req = req, .sector = req->disk.sector,
		};
}

struct queue_request *queue_select(struct queue *queue,
				   const struct head_state *head_state,
				   bool *alone)
{
	struct candidate candidate = { 0 };
	int class;

	do {
		candidate = (struct candidate){ 0 };
		choose_overdue(queue, head_state, &candidate);
		class = candidate.req ? -1 : queue_next_class(queue);
		if (class >= 0)
			choose_in_class(queue, class, head_state, &candidate);
		for (class = 0; class < QUEUE_CLASSES && !candidate.req;
		     class++)
			choose_in_class(queue, class, head_state, &candidate);
		if (candidate.req)
			keep_stream_order(queue, &candidate);
	} while (candidate.req && !candidate_take(queue, &candidate, alone));
	return candidate.req;
}
