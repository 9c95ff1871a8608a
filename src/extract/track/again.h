/*
 * again.h - rounds in what has been walked: which tracks have come again.
 */
#ifndef TRAX_TRACK_AGAIN_H
#define TRAX_TRACK_AGAIN_H

#include "extract/track/plan.h"
#include "extract/track/store.h"

/*
 * Do the last tracks before the plan's frontier come again, few at a time?
 * Then it foretells those, from the next track on.
 */
bool again_learn(const struct store *store, struct plan *plan);

/* The sizes of the tracks of the plan's cycle, in order; 0: they are more than
 * `most`. */
unsigned again_cycle(const struct plan *plan, uint32_t *size, unsigned most);

/* Are the last tracks those of two whole rounds?  *begin: the one of a round
 * that they began with. */
bool again_holds(const struct store *store, uint64_t unit,
		 const uint32_t *size, unsigned n, unsigned *begin);

/* The size of the next track if the last ones are to those of a round as
 * another zone's are; 0: they say nothing. */
uint32_t again_guess(const struct store *store, uint64_t unit,
		     const uint32_t *size, unsigned n);

#endif
