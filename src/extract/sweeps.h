/*
 * sweeps.h - surfaces, from how long the head takes to get from track to track.
 *
 * Where pieces (pieces.h) are sweeps, the middle of one and that of the next
 * lie side by side, unless another group of cylinders has begun.  Where a piece
 * is all that a group has, it falls into sweeps the middles of which do.
 * Nothing but reads; what is not told clearly is not told.
 */
#ifndef TRAX_EXTRACT_SWEEPS_H
#define TRAX_EXTRACT_SWEEPS_H

#include "extract/pieces.h"
#include "extract/probe.h"

/* *surfaces is 0 where they can't be told.  `most_ns`: 0: as long as it takes,
 * half a minute.  0, or why measuring had to stop. */
int sweeps_count(struct prober *prober, const struct geom *geom,
		 double period_ns, const struct pieces *pieces,
		 uint64_t most_ns, uint32_t *surfaces, enum pieces_are *are);

#endif
