/*
 * even.h - surfaces that seem to be equal, and are not.
 *
 * With spares in every cylinder the longer one of two unequal surfaces may have
 * as many units left as the other.  What slips on one is then made up for on
 * the next, and all that lies behind is where it should be: no leap sees it.
 * That the surfaces are unequal shows in other zones, and that there is room on
 * a track in its pitch.
 *
 * Units and angles as in reader.h.
 */
#ifndef TRAX_TRACK_EVEN_H
#define TRAX_TRACK_EVEN_H

#include "extract/probe/reader.h"
#include "extract/track/store.h"

/* Are there rounds of a few unequal tracks in [first, end)?  Tracks of one, or
 * 0. */
unsigned even_rounds(const struct store *store, uint64_t first, uint64_t end);

/* The next long row of tracks of one size, with gaps and a few of other sizes
 * among them, from *first on, which it may begin before, and where it ends.
 * False: there is none. */
bool even_next(const struct store *store, uint64_t *first, uint64_t *end);

/* Is there room for more on one of as many tracks as a round has, in such a
 * row?  Or might there be.  0, or why measuring must stop. */
int even_has_room(struct reader *reader, const struct store *store,
		  uint64_t first, uint64_t end, unsigned round, bool *room);

#endif
