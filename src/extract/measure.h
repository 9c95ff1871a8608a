/*
 * measure.h - what can be found out of a drive in a given time.
 *
 * For mkfs.traxfs without a profile: the period, the tracks at the beginning
 * of the disk and at places spread over it, their skews and heads.  All else
 * stays unknown.
 */
#ifndef TRAX_EXTRACT_MEASURE_H
#define TRAX_EXTRACT_MEASURE_H

#include "diskmodel/profile.h"
#include "extract/mech/mech.h"
#include "extract/probe/period.h"
#include "extract/probe/probe.h"
#include "extract/track/map.h"

struct measure_options {
	uint64_t most_ns;	/* about so long, five seconds at least */
	bool full;		/* instead: as long as all tracks take */
	/* Called now and then: which stage, and how much of it or of the time
	 * is over, 0 to 1.  NULL: never. */
	void (*progress)(void *arg, const char *stage, double part);
	void *arg;
};

/*
 * What does not rotate is found out by some reads.  *profile is NULL unless the
 * verdict is PERIOD_GOOD.  0, or why measuring had to stop; what had been found
 * of tracks when it was interrupted (-EINTR) is in *profile all the same.
 */
int measure_some(struct prober *prober, const struct measure_options *options,
		 enum period_verdict *verdict, struct profile **profile);

/* What there is nothing left to look at of: flags. */
#define MEASURE_TRACKS 1u
#define MEASURE_MECH 2u
#define MEASURE_ANGLES 4u	/* as a whole, see trim.h */
#define MEASURE_HEADS 8u	/* surfaces, see heads.h */

/* A profile of which nothing is known gets the period. */
void measure_keep_period(struct profile *profile, const struct prober *prober,
			 uint64_t period_ps);

/* What a map knows becomes what the profile knows of tracks.  Surfaces that it
 * knew it goes on to know, if tracks are mostly the same.  On an error the
 * profile is as it was. */
int measure_keep(struct profile *profile, const struct map *map);

/* And the state of measuring to go on from (left out when it is too large),
 * with what is `done`; takes milliseconds for large maps. */
void measure_keep_state(struct profile *profile, const struct map *map,
			unsigned done);

/* Takes over the same tracks in their places.  Seeks are by cylinders: those
 * must be measured anew. */
void measure_keep_heads(struct profile *profile, struct geom *geom,
			uint32_t sure_ppm);

/* Likewise what was measured of its mechanics.  -ENOMEM. */
int measure_keep_mech(struct profile *profile, const struct mech *mech);

/* The map goes on from that state.  -ENOENT: there is none; -EINVAL: it is of
 * no use.  *done: as it was kept. */
int measure_recall(const struct profile *profile, struct map *map,
		   unsigned *done);

#endif
