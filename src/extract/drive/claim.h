/*
 * claim.h - of the tracks that a map believes to know, those that were looked
 * at from both sides.
 *
 * For who has little time: a map leaps over tracks and may be wrong about a few
 * of them.  What is laid out by a table of tracks needs few that are certain,
 * rather than many.
 */
#ifndef TRAX_DRIVE_CLAIM_H
#define TRAX_DRIVE_CLAIM_H

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

/*
 * Looks, for about `most_ns`, at as many known tracks as that allows: those at
 * the beginning of the disk and some of each stretch; *claimed knows the ones
 * that are what they were believed to be, and no others.  0, or why measuring
 * had to stop.
 */
int claim_tracks(struct prober *prober, const struct geom *geom,
		 uint64_t period_ps, uint64_t most_ns, struct geom **claimed);

#endif
