/*
 * sample.h - one of the boundaries that a store holds, looked at once more.
 *
 * Units and angles as in reader.h.
 */
#ifndef TRAX_TRACK_SAMPLE_H
#define TRAX_TRACK_SAMPLE_H

#include "extract/probe/reader.h"
#include "extract/track/store.h"

struct sample {
	/* On both sides of it. */
	struct store_track before, behind;
	bool seen;		/* one could be looked at, */
	bool fits;		/* and both are where they should be */
};

/*
 * Of the boundaries from the track on that a unit is on, some tracks far, looks
 * at the one that comes under the head soonest.  0, or why measuring must stop.
 */
int sample_boundary(struct reader *reader, const struct store *store,
		    uint64_t unit, struct sample *sample);

#endif
