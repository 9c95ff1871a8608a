/*
 * trim.h - the angles of tracks, as a whole.
 *
 * Who finds tracks knows the angle of each by what came before it, and that
 * adds up; here some tracks all over the disk are read once more, in one clock,
 * most where it is least sure, and all angles made to suit them (skews.h).
 *
 * Of tracks that a drive has told of (scsi_map.h) boundaries, cylinders and
 * surfaces are certain, and no angle is known: those are found first.
 */
#ifndef TRAX_ANGLE_TRIM_H
#define TRAX_ANGLE_TRIM_H

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

struct trim_options {
	uint64_t period_ps;	/* right to a few millionths */
	uint64_t most_ns;	/* about; 0: as long as it takes */
	bool unknown;		/* the geometry's angles mean nothing: they are
				 * found first, in any time */
	/* Called now and then; not 0 ends it with that.  May be NULL. */
	int (*progress)(void *arg, double part);
	void *arg;
};

struct trim_stats {
	uint64_t reads;
	double moved;		/* revolutions: how much angles were off, */
	double sigma;		/* and are: standard deviations */
	double period_ns;	/* as refined, */
	double period_ppm;	/* and to how many millionths */
};

/* *out: the same tracks with better angles, the caller's.  0, or why measuring
 * had to stop; -EOPNOTSUPP: the noise is too large; -EINVAL: no track is
 * known; -EIO: nothing of them can be read. */
int trim_angles(struct prober *prober, const struct geom *geom,
		const struct trim_options *options, struct geom **out,
		struct trim_stats *stats);

#endif
