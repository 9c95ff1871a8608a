/*
 * near.h - are two tracks near each other?
 *
 * Whether the head gets from one track to another within a given time: a sector
 * that comes by just then is hit or missed.  How long it takes to tracks some
 * tracks further on is the measure; whatever a drive needs for a cylinder.
 * Nothing but reads.
 */
#ifndef TRAX_SURFACE_NEAR_H
#define TRAX_SURFACE_NEAR_H

#include "extract/mech/reach.h"
#include "extract/probe/probe.h"
#include "extract/surface/pieces.h"

struct near {
	struct prober *prober;
	const struct geom *geom;
	struct reach_clock clock;
	double least_ns;	/* between any two tracks; 0: can't be told */
	uint64_t until_ns;	/* 0: as long as it takes */
	double ruled_ns[64];	/* two for each power of two of tracks; 0: not
				 * yet */
};

/* Or why measuring had to stop; so do all. */
int near_begin(struct near *near, struct prober *prober,
	       const struct geom *geom, double period_ns, uint64_t most_ns);

bool near_late(const struct near *near);

/* How long it takes between tracks so far apart, in one piece if pieces are so
 * long; NAN: can't be told. */
int near_ruler(struct near *near, const struct pieces *pieces, uint32_t tracks,
	       double *ns);

/* The same for about so many, measured once. */
int near_ruled(struct near *near, const struct pieces *pieces, uint32_t tracks,
	       double *ns);

/* Does it take less, between tracks no further from those than `stray`?  1: it
 * does, -1: it does not, 0: can't be told.  `sure`: asked until it is. */
int near_ask(struct near *near, uint64_t a, uint64_t b, uint32_t stray,
	     double ns, bool sure, int *answer);

#endif
