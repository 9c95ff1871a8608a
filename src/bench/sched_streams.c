/*
 * sched_streams.c - several readers at once, each going on in a file of its
 * own, a read at a time: how much the head moves. Without anticipation it goes
 * from one file to the next after each read.
 */
#include <stdio.h>

#include "bench/rig.h"
#include "bench/sched_measures.h"

/* Sectors of a read, 64 KiB, and most readers. */
#define READ_SECTORS 128u
#define STREAMS_MAX 16u

struct streams {
	uint64_t at[STREAMS_MAX];
};

static void streams_prepare(void *arg, unsigned client,
			    struct queue_request *req)
{
	struct streams *streams = arg;

	req->disk.sector = streams->at[client];
	streams->at[client] += req->disk.sectors;
}

int sched_streams_rate(const struct sched_options *options, unsigned clients,
		       uint64_t think_ns, bool blind, double *mb_per_s)
{
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "wd800",
		.seed = options->seed,
		.blind = blind,
		.device = options->device,
	};
	struct streams streams;
	struct rig_load load = {
		.clients = clients,
		.think_ns = think_ns,
		.sectors = READ_SECTORS,
		.read_percent = 100,
		.requests = (options->requests ? options->requests : 3000) /
			    (options->quick ? 10 : 1),
		.seed = options->seed,
		.prepare = streams_prepare,
		.arg = &streams,
	};
	struct rig_load warm = {
		.clients = 1,
		.sectors = 8,
		.read_percent = 100,
		.requests = 200,
		.seed = options->seed,
	};
	struct rig_result r;
	struct rig rig;
	int err = rig_open(&rig_options, &rig);
	unsigned i;

	if (err)
		return err;
	for (i = 0; i < clients; i++)
		streams.at[i] = geom_sectors(rig.geom) / (2 * STREAMS_MAX) *
				i / 8 * 8;
	err = rig_run(&rig, &warm, &r);
	if (!err)
		err = rig_run(&rig, &load, &r);
	*mb_per_s = (double)load.requests * READ_SECTORS * SECTOR_BYTES /
		    1e6 / ((double)r.ns / 1e9);
	rig_close(&rig);
	return err;
}

int sched_streams(const struct sched_options *options)
{
	static const uint64_t thinks_ns[] = { 0, 200000, 1000000 };
	double with = 0, without = 0;
	unsigned clients;
	int err = 0;
	size_t i;

	printf("%-10s %-10s %12s %12s\n", "streams", "think ms", "C-LOOK MB/s",
	       "head MB/s");
	for (clients = 1; clients <= 8 && !err; clients *= 2)
		for (i = 0; i < 3 && !err; i++) {
			err = sched_streams_rate(options, clients, thinks_ns[i],
						 true, &without);
			if (!err)
				err = sched_streams_rate(options, clients,
							 thinks_ns[i], false,
							 &with);
			if (!err)
				printf("%-10u %-10.1f %12.1f %12.1f\n", clients,
				       (double)thinks_ns[i] / 1e6, without,
				       with);
		}
	return err;
}
