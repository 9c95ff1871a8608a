/*
 * again.h - rounds in what has been walked: which tracks have come again.
 */
#ifndef TRAX_TRACK_AGAIN_H
#define TRAX_TRACK_AGAIN_H

#include "extract/track/ends.h"
#include "extract/track/plan.h"
#include "extract/track/store.h"

/*
 * Do the last tracks before the plan's frontier come again, few at a time?
 * Then it foretells those, from the next track on.
 */
bool again_learn(const struct store *store, struct plan *plan);

/* The tracks of the plan's cycle one by one, in order; 0: they are more than
 * `most`. */
unsigned again_cycle(const struct plan *plan, struct run *run, unsigned most);

/* Is the last track one of a round, and only one?  Then the plan foretells
 * those behind it. */
bool again_resume(const struct store *store, struct plan *plan,
		  const struct run *round, unsigned n);

/* Are the last tracks those of two whole rounds?  *begin: the one that they
 * began with behind the zone before, that of `ends`; ENDS_NONE: not known. */
bool again_holds(const struct store *store, uint64_t unit,
		 const uint32_t *size, unsigned n, const struct ends *ends,
		 uint32_t *begin);

/* The size of the next track if the last ones are to those of a round as
 * another zone's are; 0: they say nothing. */
uint32_t again_guess(const struct store *store, uint64_t unit,
		     const struct ends *ends);

#endif
