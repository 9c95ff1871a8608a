/*
 * gap.h - what lies between two tracks that are known.
 *
 * For the few places that a walk could make nothing of: short tracks where
 * zones end, scratches, boundaries without a skew.  Every angle is read several
 * times here, so that much smaller skews can be told from none.  Units and
 * angles as in reader.h.
 */
#ifndef TRAX_TRACK_GAP_H
#define TRAX_TRACK_GAP_H

#include "extract/probe/reader.h"
#include "extract/track/store.h"

#define GAP_TRACKS 128u

struct gap {
	uint64_t first, end;	/* units: tracks begin at both */
	/* The tracks around it; size 0: the disk begins or ends there. */
	struct store_track before, behind;
	const struct store *store;	/* what else is known */
};

struct gap_track {
	struct store_track track;
	bool known;		/* otherwise some of what is not */
};

/* Is a track that is believed in a whole turn?  0, or why measuring must
 * stop. */
int gap_is_whole(struct reader *reader, const struct store_track *track,
		 bool *whole);

/*
 * The tracks in a gap, in order and all of it; at most GAP_TRACKS, *n of them.
 * 0, or why measuring must stop.
 */
int gap_close(struct reader *reader, const struct gap *gap,
	      struct gap_track *out, unsigned *n);

#endif
