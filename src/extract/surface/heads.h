/*
 * heads.h - surfaces and cylinders, from the order in which tracks come.
 *
 * Surfaces are seldom formatted alike: those of one zone have tracks of
 * different sizes.  Where the sizes come again and again in the same order,
 * track by track, it is the surfaces that come again; or skews tell where a
 * cylinder begins (cylinders.h).  What goes along a surface for more than a
 * track is found by seeks (bands.h).
 */
#ifndef TRAX_SURFACE_HEADS_H
#define TRAX_SURFACE_HEADS_H

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

enum heads_order {
	HEADS_UNKNOWN,
	HEADS_CYLINDER,		/* all surfaces of a cylinder, then the next */
	HEADS_SERPENTINE,	/* a group of cylinders along each surface */
};

struct heads {
	enum heads_order order;
	uint32_t surfaces;	/* 0: can't be told */
	uint32_t group;		/* cylinders; 1 in cylinder order */
	bool back;		/* every other round from the last surface */
	uint32_t confidence_ppm;
};

/*
 * Cylinders and surfaces of a geometry that counts each track as a cylinder:
 * *out has the same tracks in their places, or is NULL where heads->order is
 * unknown.  Costs by the number of tracks.  Where those don't tell the drive is
 * asked, unless the prober is NULL: ten seconds of reads on average, `most_ns`
 * at most (0: as long as it takes).  -ENOMEM, or why that had to stop.
 */
int heads_measure(struct prober *prober, uint64_t period_ps, uint64_t most_ns,
		  const struct geom *geom, struct heads *heads,
		  struct geom **out);

/*
 * Tracks of a geometry that were measured anew, in the places where they were:
 * *out, or NULL if too many are others now.  -ENOMEM.
 */
int heads_keep(const struct geom *was, const struct geom *now,
	       struct geom **out);

#endif
