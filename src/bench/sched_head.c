/*
 * sched_head.c - what the head does with its time (Freeblock, OSDI 2000,
 * figures 2 to 6): random requests, two thirds of them reads.
 */
#include "bench/rig.h"
#include "bench/sched_measures.h"

int sched_head_uses(const struct sched_options *options,
		    const struct sched_head_load *m,
		    struct rig_result *result)
{
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : m->drive,
		.seed = options->seed,
		.policy = m->policy,
		.no_cache = true,
	};
	struct rig_load load = {
		.clients = m->clients,
		.sectors = m->sectors,
		.read_percent = 67,
		.warmup = 300,
		.requests = options->requests ? options->requests : 10000,
		.seed = options->seed,
	};
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (options->quick)
		load.requests /= 10;
	if (err)
		return err;
	err = rig_run(&rig, &load, result);
	rig_close(&rig);
	return err;
}
