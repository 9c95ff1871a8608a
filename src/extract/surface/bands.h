/*
 * bands.h - surfaces that are gone over by groups of cylinders.
 *
 * A band is all tracks of such a group: as many sweeps, each along one surface,
 * as there are surfaces.  Where sweeps or bands begin shows by sizes and skews
 * of tracks, not all of them and not always; how it goes on inside is the same
 * everywhere, and the drive is asked by seeks whether that is so (near.h).
 */
#ifndef TRAX_SURFACE_BANDS_H
#define TRAX_SURFACE_BANDS_H

#include "extract/surface/heads.h"
#include "extract/surface/near.h"
#include "extract/surface/symbols.h"

/* Says how many there are, and puts the tracks in their places: *out, or NULL.
 * -ENOMEM, or why measuring had to stop. */
int bands_find(struct near *near, const struct symbols *symbols,
	       struct heads *heads, struct geom **out);

#endif
