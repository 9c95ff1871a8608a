/*
 * islands.h - how many surfaces: the places that lie near a track.
 *
 * Near a track, as the head goes, there are the tracks next to it on its own
 * surface, and those of the same cylinders on all others.  Where surfaces take
 * turns by groups of cylinders, the latter are islands in the order of tracks:
 * as many as there are surfaces, whichever way each of them is gone over.
 */
#ifndef TRAX_SURFACE_ISLANDS_H
#define TRAX_SURFACE_ISLANDS_H

#include "extract/surface/near.h"

struct islands {
	uint32_t surfaces;	/* 0: can't be told */
	double sweep;		/* tracks from island to island, in the mean;
				 * 0: there are too few */
};

/* 0, or why measuring had to stop. */
int islands_count(struct near *near, const struct pieces *pieces,
		  struct islands *islands);

#endif
