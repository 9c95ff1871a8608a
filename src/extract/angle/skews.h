/*
 * skews.h - where tracks lie under the head, of which some were read.
 *
 * A track is skewed against the one before it, and by the same wherever tracks
 * like the two follow each other: steps of a kind.  What is believed of the
 * angles says which steps are of a kind; by how much each kind is off, and
 * where tracks are skewed like no others, follows from what was read.  Readings
 * may be late, and angles may be believed to be anything.
 *
 * Arithmetic only.  Revolutions.
 */
#ifndef TRAX_ANGLE_SKEWS_H
#define TRAX_ANGLE_SKEWS_H

#include <stdbool.h>

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

/* A track was seen later than it was believed to come by. */
struct skews_read {
	uint64_t track;
	double late;
};

struct skews;

/* The kinds of a geometry's steps.  prober: only to pause now and then; may be
 * NULL.  -ENOMEM. */
int skews_new(const struct geom *geom, struct prober *prober,
	      struct skews **skews);
void skews_free(struct skews *skews);

/*
 * How late each track is, and how sure that is: late[], sigma[] of as many as
 * the geometry has.  Reads by track, ascending; `noise`: standard deviation of
 * one.  -ENOMEM.
 */
int skews_smooth(const struct skews *skews, const struct skews_read *read,
		 size_t n, double noise, float *late, float *sigma);

/* Reads a track: its angle, or NAN.  `surely`: it is not known where it is, so
 * a late reading must not be believed.  0, or why measuring must stop. */
struct skews_reader {
	int (*read)(void *arg, uint64_t track, bool surely, double *angle);
	void *arg;
	double tolerance;	/* what is further off is skewed otherwise */
};

/*
 * Where tracks lie that are believed to have the angle 0, as translations tell
 * no angles: of the first steps of a kind each is read, later ones in skips, as
 * long as tracks lie where they are foretold.  -ENOMEM, or why that had to
 * stop.
 */
int skews_find(const struct skews *skews, double noise,
	       const struct skews_reader *reader, float *late);

#endif
