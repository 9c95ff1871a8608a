/*
 * cylinders.h - surfaces of a drive that goes over all of them before it goes
 * on to the next cylinder: by which symbols come again.
 */
#ifndef TRAX_SURFACE_CYLINDERS_H
#define TRAX_SURFACE_CYLINDERS_H

#include "extract/surface/heads.h"
#include "extract/surface/symbols.h"

/* Says how many there are, and puts the tracks in their places: *out, or NULL.
 * prober: only to pause now and then; may be NULL.  -ENOMEM */
int cylinders_find(const struct symbols *symbols, const struct geom *geom,
		   struct prober *prober, struct heads *heads,
		   struct geom **out);

#endif
