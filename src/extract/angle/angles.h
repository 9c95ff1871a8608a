/*
 * angles.h - where tracks lie under the head, when it is known which there are.
 *
 * For geometries from translations (scsi_map.h), whose boundaries, cylinders
 * and surfaces are certain and whose angles are not known.  By how much tracks
 * are skewed is the same wherever the same two surfaces and sizes follow each
 * other, so that most tracks need not be read.
 */
#ifndef TRAX_ANGLE_ANGLES_H
#define TRAX_ANGLE_ANGLES_H

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

struct angles_options {
	uint64_t period_ps;	/* right to a few millionths */
	/* Called now and then; not 0 ends it with that.  May be NULL. */
	int (*progress)(void *arg, double part);
	void *arg;
};

struct angles_stats {
	uint64_t reads, tracks, skews;
	uint64_t odd;		/* tracks that are skewed like no others */
	double period_ns;	/* as refined */
};

/*
 * *out: the same with angles, the caller's.  0, or why measuring had to stop;
 * -EOPNOTSUPP: the noise is too large; -EINVAL: no track is known.
 */
int angles_measure(struct prober *prober, const struct geom *geom,
		   const struct angles_options *options, struct geom **out,
		   struct angles_stats *stats);

/* The same tracks with other angles, of their physical sectors 0, and with as
 * many sectors around them as `around` says (NULL: as many as there are).
 * prober: only to pause now and then; may be NULL. */
int angles_put(const struct geom *geom, struct prober *prober,
	       const angle *bases, const uint32_t *around, struct geom **out);

#endif
