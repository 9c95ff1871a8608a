/*
 * refine_internal.h - a refinement from inside: refine.c (prober, loop, results
 * that are adopted), refine_measure.c (the coroutine).
 */
#ifndef TRAX_REFINE_REFINE_INTERNAL_H
#define TRAX_REFINE_REFINE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "diskmodel/geom_build.h"
#include "extract/angle/trim.h"
#include "extract/measure.h"
#include "extract/surface/heads.h"
#include "extract/track/map.h"
#include "fs/op/fs_internal.h"
#include "refine/refine.h"
#include "sched/queue/queue.h"

/* A pause after which measuring has to find the phase of the spindle again. */
#define REST_NS (3 * NS_PER_SECOND)
/* Number of changes that are followed in one mount; when there is no map to
 * measure with, they are followed only in geometries of at most GROWN_TRACKS
 * tracks. */
#define GROWN_MOST 16u

struct refine {
	struct fs *fs;
	struct prober prober;
	struct map *map;
	struct coro *coro;
	uint64_t period_ps;
	bool over, closing;
	int error;

	/* The present read. */
	struct queue_request req;
	struct iovec iov;
	void *buffer;
	bool reading;
	uint64_t requests_before, accesses_before;
	uint64_t read_ns;	/* when the last read completed */
	uint64_t wake_ns;	/* the coroutine waits until this time */
	bool rested;		/* access() broke off because of a pause */
	unsigned errors;	/* read errors in a row */
	unsigned flat_reads, slow_reads; /* reads since they were last judged */
	uint64_t stall_reads, stall_sectors; /* reads that decided nothing, and
					      * the known sectors before them */
	unsigned pauses;	/* pauses in a row */
	uint64_t rest_ns;	/* pause that the map's clock tolerates */

	bool step_over;
	unsigned done, done_kept; /* MEASURE_* that are done, in this mount or
				   * before; and those in the stored state */
	bool moving;		/* mechanics or the period are being measured */
	bool have_period;	/* the period was measured in this mount */
	struct geom *trimmed;	/* geometry with better angles, to be adopted */
	struct trim_stats trim;
	struct geom *placed;	/* geometry with surfaces, to be adopted */
	struct heads heads;
	struct mech mech;
	bool have_mech;		/* the mechanics were measured in this mount */
	bool believes;		/* the profile fits after all */
	uint64_t done_sectors, adopted_sectors, adopted;
	uint64_t state_ns;	/* when the state of measuring is stored
				 * again */
	uint64_t looked_sectors; /* sectors looked at when the state was last
				  * stored or read */

	/* Changes that ordinary reads have shown. */
	struct range grown[GROWN_MOST];
	unsigned grown_n, grown_times;
	bool dropped;		/* the map knows less than before, on purpose */
};

/* ---- refine.c ---- */

uint64_t refine_known_sectors(const struct refine *r);

/* Were all known parts of the profile found by timing? */
bool refine_can(const struct fs *fs);

/* ---- refine_measure.c ---- */

/* Makes the map forget the tracks that have changed; no measurement is under
 * way. */
int refine_forget_grown(struct refine *r);

bool refine_knows_heads(const struct fs *fs);

void refine_body(struct coro *coro, void *arg);

#endif
