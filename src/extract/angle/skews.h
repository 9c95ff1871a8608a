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

/* As believed: the angle of a track's physical sector 0, and how many sectors
 * go round. */
angle skews_base(const struct geom *geom, uint64_t track);
uint32_t skews_around(const struct geom_track *track);

/*
 * How late each track is, and how sure that is: late[], sigma[] of as many as
 * the geometry has.  Reads by track, ascending; `noise`: standard deviation of
 * one.  -ENOMEM.
 */
int skews_smooth(const struct skews *skews, const struct skews_read *read,
		 size_t n, double noise, float *late, float *sigma);

#endif
