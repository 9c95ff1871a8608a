/*
 * sched_tracks.c - whole-track requests at random tracks of the first zone
 * (Traxtents, FAST 2002, 5.2): onereq keeps one outstanding, tworeq two;
 * aligned ones begin where a track does, unaligned ones anywhere.  On drives
 * without zero-latency access the queue begins aligned ones where the head
 * arrives.
 */
#include <stdio.h>

#include "bench/rig.h"
#include "bench/sched_measures.h"

#define ZONE_TRACKS 2000u	/* tracks measured, all of them in the first
				 * zone */

struct places {
	const struct geom *geom;
	uint64_t seed;
	bool aligned;
};

/* A request has the track's length rounded to blocks, and begins at its first
 * block or anywhere. */
static void places_next(void *arg, uint64_t *sector, uint32_t *sectors)
{
	struct places *places = arg;
	struct geom_track track;
	uint64_t at;

	geom_track_at(places->geom, 1 + rig_random(&places->seed) % ZONE_TRACKS,
		      &track);
	at = track.first;
	if (!places->aligned)
		at += rig_random(&places->seed) % track.sectors / 8 * 8;
	*sector = at;
	*sectors = track.sectors;
}

int sched_track_times(const struct sched_options *options,
		      const struct sched_track_load *wanted,
		      struct rig_result *result)
{
	struct rig_options rig_options = {
		.drive = wanted->drive,
		.seed = options->seed,
		.policy = "fcfs",
		.no_cache = true,
		.device = options->device,
		.scratch = options->scratch,
	};
	struct places places = { .seed = options->seed,
				 .aligned = wanted->aligned };
	struct rig_load load = {
		.clients = wanted->clients,
		.sectors = 4096,
		.read_percent = wanted->read ? 100 : 0,
		.warmup = 300,
		.requests = options->requests ? options->requests : 3000,
		.seed = options->seed,
		.next = places_next,
		.arg = &places,
	};
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	if (options->quick)
		load.requests /= 10;
	places.geom = rig.geom;
	err = rig_run(&rig, &load, result);
	rig_close(&rig);
	return err;
}

static int compare(const struct sched_options *options,
		   struct sched_track_load load)
{
	struct rig_result r[2];
	int err = 0;

	for (int i = 0; i < 2 && !err; i++) {
		load.aligned = i;
		err = sched_track_times(options, &load, &r[i]);
		if (!err)
			printf("%-15s %-6s %-5s %-9s %9.2f %9.2f\n",
			       load.drive,
			       load.clients == 1 ? "onereq" : "tworeq",
			       load.read ? "read" : "write",
			       load.aligned ? "aligned" : "unaligned",
			       r[i].head_mean_ns / 1e6,
			       r[i].head_deviation_ns / 1e6);
	}
	if (!err)
		printf("%38s%9.1f %%\n", "",
		       100 * (r[1].head_mean_ns / r[0].head_mean_ns - 1));
	fflush(stdout);
	return err;
}

int sched_tracks(const struct sched_options *options)
{
	static const char *const drives[] = {
		"atlas-10k", "ultrastar-18es", "cheetah-9lp", NULL
	};
	int kinds = options->device && !options->scratch ? 2 : 4;
	int err = 0, i, kind;

	printf("%-15s %-6s %-5s %-9s %9s %9s\n", "drive", "", "", "",
	       "head ms", "deviation");
	for (i = 0; drives[i] && !err && (!i || !options->drive); i++)
		for (kind = 0; kind < kinds && !err; kind++)
			err = compare(options, (struct sched_track_load){
				.drive = options->drive ? options->drive :
							  drives[i],
				.clients = 1 + (kind & 1), .read = kind < 2 });
	printf("published, Atlas 10K reads: onereq -16 %%, tworeq -32 %%\n");
	return err;
}
