/*
 * prove_internal.h - what the files prove*.c share.
 */
#ifndef TRAX_TRACK_PROVE_INTERNAL_H
#define TRAX_TRACK_PROVE_INTERNAL_H

#include "extract/track/prove.h"

/* How much later an angle is than expected, in [-0.5, 0.5); NAN if one of them
 * is. */
double prove_off(double turn, double expected);

/* The claim that goes on from the one at i (step 1), or that it goes on from
 * (step -1); NULL: none. */
const struct prove_claim *prove_neighbour(const struct prove *prove, size_t i,
					  int step);

/* Would so many of its units take a whole turn, as far as is seen? */
bool prove_takes_turn(const struct reader *reader,
		      const struct prove_claim *claim, uint32_t units);

/* Does a track without slips go round once, as far as is seen? */
bool prove_goes_round(const struct reader *reader,
		      const struct prove_claim *claim);

/* Claims that hold by what was read of them fail if what is around them does
 * not bear them out.  `more`: those behind the last one are still to come. */
void prove_judge(struct prove *prove, bool more);

/* Reads two units across the ends of claims that have nothing known beside
 * them.  0, or why measuring must stop. */
int prove_edges(struct prove *prove, bool more);

#endif
