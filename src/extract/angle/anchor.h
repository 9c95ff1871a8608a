/*
 * anchor.h - the clock of a reader held right by one track, of which it is
 * known where it lies.
 */
#ifndef TRAX_ANGLE_ANCHOR_H
#define TRAX_ANGLE_ANCHOR_H

#include "diskmodel/geom.h"
#include "extract/probe/reader.h"

struct anchor {
	struct reader *reader;
	const struct geom *geom;
	struct geom_track track;
	double base;		/* angle of its physical sector 0 */
	unsigned locks;
};

/* The first unit that begins on a track. */
uint64_t anchor_unit(const struct anchor *anchor,
		     const struct geom_track *track);

/* The angle of physical sector 0 of a unit's track, by that unit; NAN. */
int anchor_read(struct anchor *anchor, uint64_t unit, double *base);

/* The same by three units of a track, of which one may be late. */
int anchor_read_some(struct anchor *anchor, const struct geom_track *track,
		     double *base);

/* The same by many, for the first time. */
int anchor_read_well(struct anchor *anchor, const struct geom_track *track,
		     double *base);

/* That track, at that angle by the reader's clock, holds it from now on. */
void anchor_drop(struct anchor *anchor, const struct geom_track *track,
		 double base);

/* When some seconds have passed since the last time: reads it and corrects the
 * clock. */
int anchor_lock(struct anchor *anchor);

#endif
