/*
 * sched_decide.c - how long one decision takes, in real time, with a thousand
 * requests waiting (Freeblock, section 4: 0 to 2.5 ms on 550 MHz): spread over
 * the disk, and crowded on a hundredth of it, which the walk by distance likes
 * least; and with the search of a gap before what was chosen while all of the
 * disk is wanted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/sort.h"
#include "bench/rig.h"
#include "bench/sched.h"
#include "format/format.h"
#include "sched/freeblock/gap_search.h"

#define WAITING 1000u	/* Number of requests that wait. */

struct waiting_set {
	struct policy_site sites[WAITING];
	struct interval spans[WAITING];
	struct policy_view view;
	uint64_t seed, first, span;
	struct freeblock_set *wanted;	/* NULL: no sector is wanted */
};

static uint64_t waiting_set_random(struct waiting_set *set)
{
	set->seed = set->seed * 6364136223846793005 + 1442695040888963407;
	return set->seed >> 20;
}

static void waiting_set_put(struct waiting_set *set, const struct geom *geom,
			    unsigned i, uint64_t order)
{
	uint64_t lbn = set->first + waiting_set_random(set) % set->span;
	struct interval *interval = &set->spans[i];

	policy_site_init(&set->sites[i], geom, waiting_set_random(set) % 3 == 0,
			 lbn, 8, order);
	set->sites[i].owner = interval;
	*interval =
		(struct interval){.first = lbn, .end = lbn + 8, .order = order};
	interval_insert(&set->view.waiting, interval);
	interval_insert(&set->view.sites, &set->sites[i].interval);
}

static void search(const struct waiting_set *set,
		   const struct head_state *head_state,
		   const struct policy_site *site)
{
	/* The same query as in gap_fill.c. */
	const struct gap_query query = {
		.head_state = head_state,
		.target = { .write = site->write, .lbn = site->lbn,
			    .sectors = site->sectors },
		.max_sectors = 2048, .joins = true, .steps = 300,
		.unit_sectors = TRAX_BLOCK_SECTORS,
		.run_ns = 700000, .across_ns = 900000,
	};
	struct gap_plan plan;

	gap_search(&query, set->wanted, &plan);
}

/* Chooses a request, moves the head there and puts another request in its
 * place, n times. */
static void decide(struct waiting_set *set, struct head_state *head_state,
		   const char *name, const char *where, uint64_t n,
		   uint64_t *took_ns)
{
	const struct policy *policy =
		policy_find(name, &set->view.window_percent);
	struct env *env = env_real();
	uint64_t i, order = WAITING;

	for (i = 0; i < n; i++) {
		struct policy_choice choice = { 0 };
		uint64_t begin_ns = env_now_ns(env);

		policy->choose(&set->view, &choice);
		if (set->wanted)
			search(set, head_state, choice.site);
		took_ns[i] = env_now_ns(env) - begin_ns;
		head_state->head.cylinder = choice.site->cylinder;
		head_state->head.surface = choice.site->surface;
		head_state->head_lbn = choice.site->lbn;
		head_state->head.at_ns += 5000000;
		head_state->now_ns = head_state->head.at_ns;
		interval_remove(&set->view.sites, &choice.site->interval);
		interval_remove(&set->view.waiting, choice.site->owner);
		waiting_set_put(set, head_state->geom,
			  (unsigned)(choice.site - set->sites), ++order);
	}
	qsort(took_ns, n, sizeof(*took_ns), sort_u64_cmp);
	printf("%-12s %-18s %9.1f %9.1f %9.1f\n", name, where,
	       (double)took_ns[n / 2] / 1e3,
	       (double)took_ns[n * 99 / 100] / 1e3,
	       (double)took_ns[n - 1] / 1e3);
}

static int decide_on(const struct rig *rig, const struct sched_options *options,
		     const char *name, bool crowded, bool wanted)
{
	uint64_t n = options->requests ? options->requests : 5000;
	struct waiting_set *set = calloc(1, sizeof(*set));
	uint64_t *took_ns = calloc(n, sizeof(*took_ns));
	uint64_t all = geom_sectors(rig->geom);
	struct head_state head_state;
	int err = set && took_ns ? 0 : -ENOMEM;
	unsigned i;

	if (!err && wanted)
		err = freeblock_set_open(rig->geom, TRAX_BLOCK_SECTORS,
					 &set->wanted);
	if (!err && wanted)
		err = freeblock_set_add(set->wanted, 0,
				 all / TRAX_BLOCK_SECTORS * TRAX_BLOCK_SECTORS);
	if (err)
		goto out;
	head_get_state(rig->head, &head_state);
	head_state.reads = head_state.writes = true;
	set->seed = options->seed;
	set->first = crowded ? all / 2 : 0;
	set->span = (crowded ? all / 100 : all) - 8;
	set->view.head_state = &head_state;
	for (i = 0; i < WAITING; i++)
		waiting_set_put(set, rig->geom, i, i + 1);
	decide(set, &head_state, name, wanted ? "and all wanted" :
	       crowded ? "one hundredth" : "whole disk", n, took_ns);
out:
	if (set)
		freeblock_set_close(set->wanted);
	free(set);
	free(took_ns);
	return err;
}

int sched_decide(const struct sched_options *options)
{
	static const char *const names[] = { "sptf", "sptf-sw40", "sstf" };
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "modern",
		.seed = options->seed,
	};
	struct rig rig;
	int err = rig_open(&rig_options, &rig);
	size_t i;

	if (err)
		return err;
	printf("%-12s %-18s %9s %9s %9s\n", "1000 waiting", "", "p50 us",
	       "p99 us", "most us");
	for (i = 0; i < 3 * sizeof(names) / sizeof(names[0]) && !err; i++)
		err = decide_on(&rig, options, names[i / 3], i % 3 == 1,
				i % 3 == 2);
	rig_close(&rig);
	return err;
}
