/*
 * seam.h - the tracks where zones meet.
 *
 * The last track of a zone is short, and the first of the next one lacks its
 * beginning: together they may have as many units as a track and lie where it
 * would, but for a part of it that is off by less than one look can tell.
 *
 * Units and angles as in reader.h.
 */
#ifndef TRAX_TRACK_SEAM_H
#define TRAX_TRACK_SEAM_H

#include "extract/probe/reader.h"
#include "extract/track/store.h"

#define SEAM_PAIRS 256u

/* Runs of tracks of one size, up to some unit. */
struct seam {
	const struct store *store;
	uint64_t at;		/* unit, from which on pieces are next */
	uint32_t pair[SEAM_PAIRS][2];	/* sizes of the last ones, and of those
					 * before them; 0: behind a hole */
	uint64_t pairs;
	bool known;		/* the last pair had come before */
	bool again;		/* a size came again */
	bool behind;		/* the track behind the last one is next, */
	uint64_t first;		/* which begins there */
};

/* The next track before one of a size that was not there lately, or by itself
 * between two that it never was between, or before a row that does not begin
 * where its tracks say; and then that one.  False: there is none.  The seam is
 * all 0 but for the store at first, which may forget the last track meanwhile,
 * and nothing else. */
bool seam_next(struct seam *seam, struct store_track *track);

/* Is a track one line?  Closely: everywhere on it.  0, or why measuring must
 * stop. */
int seam_holds(struct reader *reader, const struct store_track *track,
	       bool closely, bool *holds);

#endif
