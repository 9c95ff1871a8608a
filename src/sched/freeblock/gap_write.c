/*
 * gap_write.c - a write fits before a request if the head gets there, writes it
 * at its first pass, and is with the request in time.
 *
 * Sites are tried outwards from the cylinder of the head and from the
 * request's: those between cost no seek more than the request itself does.
 * This ends where the way there alone takes all the time there is.  Rough
 * estimates come first; only a site that beats the best so far gets a whole
 * one.
 */
#include <stddef.h>

#include "sched/freeblock/gap_write.h"

struct gap_write_search {
	const struct gap_write_query *query;
	struct geom_place target;
	uint64_t start_ns;	/* when the head begins to move */
	struct queue_request *best;
	uint64_t lost_ns;	/* time that the best one loses */
	unsigned left;
};

void gap_write_init(struct gap_write_set *set)
{
	*set = (struct gap_write_set){ .sites = NULL };
	list_init(&set->requests);
}

static void site_add(struct gap_write_set *set, const struct geom *geom,
		     struct queue_request *req)
{
	policy_site_init(&req->site[0], geom, true, req->disk.sector,
			 req->disk.sectors, ++set->order);
	req->site[0].owner = req;
	interval_insert(&set->sites, &req->site[0].interval);
}

void gap_write_add(struct gap_write_set *set, const struct geom *geom,
		  struct queue_request *req)
{
	site_add(set, geom, req);
	list_add(&set->requests, &req->link);
}

void gap_write_remove(struct gap_write_set *set, struct queue_request *req)
{
	interval_remove(&set->sites, &req->site[0].interval);
	list_del(&req->link);
}

void gap_write_set_geom(struct gap_write_set *set, const struct geom *geom)
{
	struct list *pos;

	set->sites = NULL;
	list_for_each(pos, &set->requests)
		site_add(set, geom, list_entry(pos, struct queue_request,
					       link));
}

static uint64_t transfer_ns(const struct gap_write_search *s,
			    const struct policy_site *site)
{
	struct geom_track track;

	geom_track_of(s->query->head_state->geom, site->lbn, &track);
	return service_turn_ns(s->query->head_state->mech,
			       (uint64_t)track.per_sector * site->sectors);
}

/* May it fit, and lose less time than the best?  Sets *lost_ns. */
static bool site_may(const struct gap_write_search *s,
		     const struct policy_site *site, uint64_t *lost_ns)
{
	const struct gap_write_query *q = s->query;
	const struct service_mech *mech = q->head_state->mech;
	struct service_head there = { 0, site->cylinder, site->surface };
	uint64_t arrive_ns, leave_ns;

	arrive_ns = s->start_ns + q->head_state->write_guard_ns +
		    service_move_ns(mech, &q->head_state->head, site->cylinder,
				    site->surface, true);
	leave_ns = q->target_ns - service_move_ns(mech, &there,
						  s->target.cylinder,
						  s->target.surface,
						  q->target.write);
	if (arrive_ns >= leave_ns || leave_ns > q->target_ns)
		return false;
	arrive_ns += service_wait_ns(mech, arrive_ns, site->start);
	*lost_ns = arrive_ns - s->start_ns;
	return arrive_ns < leave_ns && (!s->best || *lost_ns < s->lost_ns) &&
	       arrive_ns + transfer_ns(s, site) <= leave_ns;
}

static void site_try(struct gap_write_search *s, const struct policy_site *site)
{
	uint64_t lost_ns;

	if (!site_may(s, site, &lost_ns) ||
	    !s->query->fits(s->query->arg, site->lbn, site->sectors))
		return;
	s->best = site->owner;
	s->lost_ns = lost_ns;
}

/* Walks one step outwards from a cylinder, on one side; false: nothing better
 * can follow. */
static bool walk_step(struct gap_write_search *s, uint32_t from,
		      const struct interval *interval)
{
	const struct gap_write_query *q = s->query;
	const struct policy_site *site;
	uint64_t way_ns;

	if (!interval || !s->left)
		return false;
	site = container_of(interval, const struct policy_site, interval);
	way_ns = s->start_ns + service_seek_ns(q->head_state->mech, from,
					       site->cylinder);
	if (way_ns >= q->target_ns)
		return false;
	s->left--;
	site_try(s, site);
	return true;
}

static void walk(struct gap_write_search *s, const struct gap_write_set *set,
		 uint32_t from)
{
	const uint64_t key = (uint64_t)from << 32;
	struct interval *up = interval_at_or_after(set->sites, key);
	struct interval *down = interval_before(set->sites, key);
	bool ups = true, downs = true;

	s->left = s->query->steps / 2;
	while (ups || downs) {
		ups = ups && walk_step(s, from, up);
		if (ups)
			up = interval_at_or_after(set->sites, up->first + 1);
		downs = downs && walk_step(s, from, down);
		if (downs)
			down = interval_before(set->sites, down->first);
	}
}

struct queue_request *gap_write_find(const struct gap_write_set *set,
				    const struct gap_write_query *query)
{
	struct gap_write_search s = {
		.query = query,
		.start_ns = head_state_start_ns(query->head_state, true),
	};

	if (!set->sites || s.start_ns >= query->target_ns)
		return NULL;
	geom_place_of(query->head_state->geom, query->target.lbn, &s.target);
	walk(&s, set, query->head_state->head.cylinder);
	walk(&s, set, s.target.cylinder);
	return s.best;
}

struct queue_request *gap_write_nearest(const struct gap_write_set *set,
				       const struct head_state *head_state)
{
	const struct policy_view view = { .sites = set->sites,
					  .head_state = head_state };
	struct policy_choice choice = { 0 };
	unsigned unused;

	if (!set->sites)
		return NULL;
	if (!head_state)
		return list_first(&set->requests, struct queue_request, link);
	policy_find("sptf", &unused)->choose(&view, &choice);
	return choice.site->owner;
}
