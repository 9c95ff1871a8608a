/*
 * sched_tracks.c - whole-track requests at random tracks of the first zone
 * (Traxtents, FAST 2002, 5.2): onereq keeps one outstanding, tworeq two;
 * aligned ones begin where a track does, unaligned ones anywhere.  On drives
 * without zero-latency access the queue begins aligned ones where the head
 * arrives.
 */
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
