/*
 * sched_reads.c - small random reads by 1 to 32 readers within 4 GB, ordered by
 * the queue, by the drive (which queues 32), or by the one that the queue finds
 * to be faster.
 */
#include <stdio.h>

#include "bench/rig.h"
#include "bench/sched.h"

#define SPAN_SECTORS (4u << 21)		/* 4 GB */

static int measure(const struct sched_options *options, unsigned clients,
		   const char *policy, bool blind, double *per_s)
{
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "modern",
		.seed = options->seed,
		.policy = policy,
		.blind = blind,
		.depth = blind ? 32 : 0,
		.device = options->device,
		.host_ns = options->host_ns,
	};
	struct rig_load load = {
		.clients = clients,
		.sectors = 8,
		.read_percent = 100,
		.span = SPAN_SECTORS,
		.warmup = 1000,
		.requests = (options->requests ? options->requests : 5000) /
			    (options->quick ? 10 : 1),
		.seed = options->seed,
	};
	struct rig_result result;
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	if (load.span > rig_sectors(&rig))
		load.span = rig_sectors(&rig);
	err = rig_run(&rig, &load, &result);
	*per_s = (double)load.requests / ((double)result.ns / 1e9);
	rig_close(&rig);
	return err;
}

int sched_reads(const struct sched_options *options)
{
	double queue = 0, drive = 0, tried = 0;
	unsigned clients;
	int err = 0;

	printf("%-10s %12s %12s %12s\n", "readers", "queue, 1/s", "drive, 1/s",
	       "tried, 1/s");
	for (clients = 1; clients <= 32 && !err; clients *= 2) {
		err = measure(options, clients, "sptf", false, &queue);
		if (!err)
			err = measure(options, clients, NULL, true, &drive);
		if (!err)
			err = measure(options, clients, NULL, false, &tried);
		if (!err)
			printf("%-10u %12.1f %12.1f %12.1f\n", clients, queue,
			       drive, tried);
	}
	return err;
}
