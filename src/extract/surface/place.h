/*
 * place.h - a geometry of the same tracks in other places.
 */
#ifndef TRAX_SURFACE_PLACE_H
#define TRAX_SURFACE_PLACE_H

#include "diskmodel/geom_build.h"
#include "extract/probe/probe.h"

/* How many sectors go round a track; 0: that is not known. */
uint32_t place_around(const struct geom_track *track);

/* Tracks are handed over in order.  NULL: no memory. */
struct geom_build *place_begin(const struct geom *geom);
int place_track(struct geom_build *build, const struct geom_track *track,
		uint32_t surface, int64_t cylinder);

/* *out: the geometry, unless there was an error before, which is returned.
 * prober: only to pause now and then; may be NULL. */
int place_end(struct geom_build *build, int err, struct prober *prober,
	      struct geom **out);

#endif
