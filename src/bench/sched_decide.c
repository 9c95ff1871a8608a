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
#include "bench/rig.h"
#include "bench/sched.h"
#include "sched/freeblock/gap_search.h"

#define WAITING 1000u
#define UNIT_SECTORS 8u

struct crowd {
	struct policy_site sites[WAITING];
	struct span spans[WAITING];
	struct policy_view view;
	uint64_t seed, first, span;
	struct wanted *wanted;	/* NULL: nothing is */
};

static uint64_t crowd_random(struct crowd *crowd)
{
	crowd->seed = crowd->seed * 6364136223846793005 + 1442695040888963407;
	return crowd->seed >> 20;
}

static void crowd_put(struct crowd *crowd, const struct geom *geom, unsigned i,
		      uint64_t order)
{
	uint64_t lbn = crowd->first + crowd_random(crowd) % crowd->span;
	struct span *span = &crowd->spans[i];

	policy_site_init(&crowd->sites[i], geom, crowd_random(crowd) % 3 == 0,
			 lbn, 8, order);
	crowd->sites[i].owner = span;
	*span = (struct span){ .first = lbn, .end = lbn + 8, .order = order };
	span_insert(&crowd->view.waiting, span);
	span_insert(&crowd->view.sites, &crowd->sites[i].span);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void search(const struct crowd *crowd, const struct belief *belief,
		   const struct policy_site *site)
{
	/* As gap_fill.c asks. */
	const struct gap_query query = {
		.belief = belief,
		.target = { .write = site->write, .lbn = site->lbn,
			    .sectors = site->sectors },
		.max_sectors = 2048, .joins = true, .steps = 300,
		.unit_sectors = UNIT_SECTORS, .prices = true,
		.run_ns = 700000, .across_ns = 900000,
	};
	struct gap_plan plan;

	gap_search(&query, crowd->wanted, &plan);
}

/* Chooses, moves the head there, puts another in its place; n times. */
static void decide(struct crowd *crowd, struct belief *belief,
		   const char *name, const char *where, uint64_t n,
		   uint64_t *took_ns)
{
	const struct policy *policy =
		policy_find(name, &crowd->view.window_percent);
	struct env *env = env_real();
	uint64_t i, order = WAITING;

	for (i = 0; i < n; i++) {
		struct policy_choice choice = { 0 };
		uint64_t begin_ns = env_now_ns(env);

		policy->choose(&crowd->view, &choice);
		if (crowd->wanted)
			search(crowd, belief, choice.site);
		took_ns[i] = env_now_ns(env) - begin_ns;
		belief->head.cylinder = choice.site->cylinder;
		belief->head.surface = choice.site->surface;
		belief->head_lbn = choice.site->lbn;
		belief->head.at_ns += 5000000;
		belief->now_ns = belief->head.at_ns;
		span_remove(&crowd->view.sites, &choice.site->span);
		span_remove(&crowd->view.waiting, choice.site->owner);
		crowd_put(crowd, belief->geom,
			  (unsigned)(choice.site - crowd->sites), ++order);
	}
	qsort(took_ns, n, sizeof(*took_ns), compare);
	printf("%-12s %-18s %9.1f %9.1f %9.1f\n", name, where,
	       (double)took_ns[n / 2] / 1e3,
	       (double)took_ns[n * 99 / 100] / 1e3,
	       (double)took_ns[n - 1] / 1e3);
}

static int decide_on(const struct rig *rig, const struct sched_options *options,
		     const char *name, bool crowded, bool wanted)
{
	uint64_t n = options->requests ? options->requests : 5000;
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	uint64_t *took_ns = calloc(n, sizeof(*took_ns));
	uint64_t all = geom_sectors(rig->geom);
	struct belief belief;
	int err = crowd && took_ns ? 0 : -ENOMEM;
	unsigned i;

	if (!err && wanted)
		err = wanted_open(rig->geom, UNIT_SECTORS, &crowd->wanted);
	if (!err && wanted)
		err = wanted_add(crowd->wanted, 0,
				 all / UNIT_SECTORS * UNIT_SECTORS);
	if (err)
		goto out;
	head_get_belief(rig->head, &belief);
	belief.reads = belief.writes = true;
	crowd->seed = options->seed;
	crowd->first = crowded ? all / 2 : 0;
	crowd->span = (crowded ? all / 100 : all) - 8;
	crowd->view.belief = &belief;
	for (i = 0; i < WAITING; i++)
		crowd_put(crowd, rig->geom, i, i + 1);
	decide(crowd, &belief, name, wanted ? "and all wanted" :
	       crowded ? "one hundredth" : "whole disk", n, took_ns);
out:
	if (crowd)
		wanted_close(crowd->wanted);
	free(crowd);
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
