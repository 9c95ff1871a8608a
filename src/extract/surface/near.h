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

struct near {
	struct prober *prober;
	const struct geom *geom;
	struct reach_clock clock;
	uint64_t until_ns;	/* 0: as long as it takes */
	double limit_ns[64];	/* two for each power of two of tracks; 0: not
				 * yet */
};

void near_begin(struct near *near, struct prober *prober,
		const struct geom *geom, double period_ns, uint64_t most_ns);

bool near_late(const struct near *near);

/* Any number below. */
uint64_t near_below(const struct near *near, uint64_t most);

/*
 * How long it takes between tracks about so many apart, in one sweep: `place`
 * says where one is that has as many behind it.  Measured once.  NAN: can't be
 * told.  0, or why measuring had to stop; so does near_ask.
 */
int near_limit(struct near *near, uint32_t tracks,
	       uint64_t (*place)(void *arg, uint32_t tracks), void *arg,
	       double *ns);

/* Does it take less, between tracks no further from those than `stray`?  1: it
 * does, -1: it does not, 0: can't be told. */
int near_ask(struct near *near, uint64_t a, uint64_t b, uint32_t stray,
	     double ns, int *answer);

#endif
