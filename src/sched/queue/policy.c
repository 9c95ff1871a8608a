/*
 * policy.c - the table of ways to choose.
 *
 * Policies that use the head go over the sites outwards from its cylinder, the
 * nearer side first.  A seek over a number of cylinders is less than anything
 * further out can cost, so this ends where the seek alone is no better than the
 * best so far; and after SITES_MAX estimates in any case, which bounds the time
 * of a decision when thousands wait on a few cylinders.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "sched/queue/policy.h"

/* Estimates that one decision makes, at most. */
#define SITES_MAX 300u
/* Sites that one decision passes over, most of them because they are not due:
 * that costs a tenth of an estimate. */
#define SITES_SEEN 1500u
/* A request that is at least this part of a revolution long is worth a full
 * estimate: it may begin in the middle, or go over several tracks. */
#define LONG_PART 8u
#define WINDOW_MAX 10000u	/* The largest N of sptf-swN, in percent. */

static bool is_out(const struct policy_view *view, uint64_t sector,
		   uint64_t due_ns)
{
	return view->due_most_ns &&
	       (due_ns > view->due_most_ns ||
		(sector >= view->cut_first && sector < view->cut_end));
}

static struct interval *first_from(const struct policy_view *view,
				   uint64_t sector)
{
	struct interval *interval = interval_at_or_after(view->waiting, sector);

	while (interval && is_out(view, interval->first, interval->due_ns))
		interval = interval_at_or_after(view->waiting,
						interval->first + 1);
	return interval;
}

/* Chooses the next one upwards from the head, or the lowest if there is none
 * above. */
static void choose_c_look(const struct policy_view *view,
			  struct policy_choice *choice)
{
	struct interval *interval = first_from(view, view->head_sector);

	choice->waiting = interval ? interval : first_from(view, 0);
}

static void choose_fcfs(const struct policy_view *view,
			struct policy_choice *choice)
{
	choice->waiting = interval_oldest(view->waiting);
}

/* ---- sites ---- */

static uint64_t site_key(uint32_t cylinder, uint64_t order)
{
	return (uint64_t)cylinder << 32 | (uint32_t)order;
}

void policy_site_init(struct policy_site *site, const struct geom *geom,
		      bool write, uint64_t lbn, uint32_t sectors,
		      uint64_t order)
{
	struct geom_place place;

	geom_place_of(geom, lbn, &place);
	*site = (struct policy_site){
		.lbn = lbn,
		.sectors = sectors,
		.write = write,
		.cylinder = place.cylinder,
		.surface = place.surface,
		.start = place.start,
	};
	site->interval.first = site_key(place.cylinder, order);
	site->interval.end = site->interval.first + 1;
	site->interval.order = order;
	site->interval.due_ns = 0;
}

static uint64_t cost_long_ns(const struct head_state *head_state,
			     const struct policy_site *site, uint64_t start_ns)
{
	struct service_request req = {
		.write = site->write,
		.lbn = site->lbn,
		.sectors = site->sectors,
	};
	struct service service;

	head_state_estimate(head_state, &req, &service);
	return service.head.at_ns - start_ns - service.transfer_ns;
}

static bool site_is_long(const struct head_state *head_state,
			 const struct policy_site *site)
{
	struct geom_track track;

	/* So short a request need not be compared with the track: no drive of
	 * today has fewer sectors on one. */
	if (site->sectors < 64)
		return false;
	geom_track_of(head_state->geom, site->lbn, &track);
	return site->sectors > track.sectors / LONG_PART;
}

uint64_t policy_cost_ns(const struct head_state *head_state,
			const struct policy_site *site, uint64_t *seek_ns)
{
	const struct service_mech *mech = head_state->mech;
	uint64_t start_ns = head_state_start_ns(head_state, site->write),
		 arrive_ns;

	*seek_ns = service_move_ns(mech, &head_state->head, site->cylinder,
				   site->surface, site->write);
	if (!site->write && site->lbn == head_state->stream_lbn)
		return *seek_ns;
	if (!(site->write ? head_state->writes : head_state->reads))
		return *seek_ns + mech->period_ps / 2000;
	if (site_is_long(head_state, site))
		return cost_long_ns(head_state, site, start_ns);
	arrive_ns = start_ns + *seek_ns + (site->write ?
		head_state->write_likely_ns : head_state->read_likely_ns);
	return arrive_ns - start_ns +
	       service_wait_ns(mech, arrive_ns, site->start);
}

/* ---- the walk ---- */

/* Sites by growing distance from a cylinder. */
struct site_walk {
	struct interval *sites;
	uint32_t from;
	struct interval *up, *down;	/* the next on either side */
	unsigned left;
};

static void walk_begin(struct site_walk *walk, const struct policy_view *view)
{
	uint32_t from = view->head_state->head.cylinder;

	*walk = (struct site_walk){
		.sites = view->sites,
		.from = from,
		.up = interval_at_or_after(view->sites, site_key(from, 0)),
		.down = interval_before(view->sites, site_key(from, 0)),
		.left = SITES_SEEN,
	};
}

static uint32_t walk_distance(const struct site_walk *walk,
			      const struct interval *interval)
{
	uint32_t cylinder = (uint32_t)(interval->first >> 32);

	return cylinder > walk->from ? cylinder - walk->from :
				       walk->from - cylinder;
}

static struct policy_site *walk_next(struct site_walk *walk)
{
	struct interval *interval = walk->up;

	if (!walk->left-- || (!walk->up && !walk->down))
		return NULL;
	if (!walk->up || (walk->down && walk_distance(walk, walk->down) <
						walk_distance(walk, walk->up)))
		interval = walk->down;
	if (interval == walk->up)
		walk->up =
			interval_at_or_after(walk->sites, interval->first + 1);
	else
		walk->down = interval_before(walk->sites, interval->first);
	return container_of(interval, struct policy_site, interval);
}

/* Among the sites that cost no more than `most_ns`, chooses the one with the
 * least whole cost or, where `whole` is false, with the shortest seek, if that
 * is less than `best_ns`; otherwise the choice stays. */
static void choose_least(const struct policy_view *view, bool whole,
			 uint64_t most_ns, uint64_t best_ns,
			 struct policy_choice *choice)
{
	const struct head_state *head_state = view->head_state;
	uint64_t cost_ns, seek_ns;
	unsigned looks = SITES_MAX;
	struct policy_site *site;
	struct site_walk walk;

	walk_begin(&walk, view);
	while ((site = walk_next(&walk))) {
		if (service_seek_ns(head_state->mech, head_state->head.cylinder,
				    site->cylinder) >= best_ns)
			break;
		if (is_out(view, site->lbn, site->interval.due_ns))
			continue;
		if (!looks--)
			break;
		cost_ns = policy_cost_ns(head_state, site, &seek_ns);
		if (cost_ns > most_ns ||
		    (whole ? cost_ns : seek_ns) >= best_ns)
			continue;
		best_ns = whole ? cost_ns : seek_ns;
		choice->site = site;
		choice->cost_ns = cost_ns;
	}
}

static void choose_sstf(const struct policy_view *view,
			struct policy_choice *choice)
{
	choose_least(view, false, UINT64_MAX, UINT64_MAX, choice);
}

static void choose_sptf(const struct policy_view *view,
			struct policy_choice *choice)
{
	choose_least(view, true, UINT64_MAX, UINT64_MAX, choice);
}

/* Chooses the shortest seek among those that cost little more than the
 * cheapest. */
static void choose_sptf_sw(const struct policy_view *view,
			   struct policy_choice *choice)
{
	uint64_t least_ns, seek_ns;

	choose_sptf(view, choice);
	if (!choice->site)
		return;
	least_ns = choice->cost_ns;
	policy_cost_ns(view->head_state, choice->site, &seek_ns);
	choose_least(view, false,
		     least_ns + least_ns * view->window_percent / 100, seek_ns,
		     choice);
	choice->extra_ns = choice->cost_ns - least_ns;
}

/* ---- the table ---- */

static const struct policy policies[] = {
	{ "c-look", false, choose_c_look },
	{ "fcfs", false, choose_fcfs },
	{ "sstf", true, choose_sstf },
	{ "sptf", true, choose_sptf },
	{ "sptf-sw", true, choose_sptf_sw },
};

const struct policy *policy_find(const char *name, unsigned *window_percent)
{
	const char *number = name + strcspn(name, "0123456789");
	unsigned long percent;
	char *end;
	size_t i, n;

	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if (!strcmp(policies[i].name, name))
			return &policies[i];
		n = strlen(policies[i].name);
		if (policies[i].choose != choose_sptf_sw || !*number ||
		    (size_t)(number - name) != n ||
		    strncmp(policies[i].name, name, n))
			continue;
		percent = strtoul(number, &end, 10);
		if (*end || percent > WINDOW_MAX)
			return NULL;
		*window_percent = (unsigned)percent;
		return &policies[i];
	}
	return NULL;
}
