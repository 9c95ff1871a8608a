/*
 * track.h - where one track ends and where the next begins.
 *
 * Units and angles as in reader.h.  A unit is on a track when its trailing
 * edge passes where a line from the track's start says.
 */
#ifndef TRAX_TRACK_TRACK_H
#define TRAX_TRACK_TRACK_H

#include "extract/probe/reader.h"

struct track {
	uint64_t first;
	double start;		/* of its first unit's leading edge */
	double pitch;		/* revolutions of a unit */

	/* Found. */
	uint32_t size;
	double next;		/* start of the next track */
};

/* The end could not be told: no jump of the angle, or too many errors. */
#define TRACK_UNDECIDED 1

/*
 * From a start and a pitch to the end, which is thought to be at `hint`.  0, or
 * TRACK_UNDECIDED, or why measuring must stop.
 */
int track_find(struct reader *reader, struct track *track, uint64_t hint);

/* The same when the hint is only a guess: wherever the end is, it is looked at
 * twice. */
int track_find_about(struct reader *reader, struct track *track, uint64_t hint);

/*
 * The same for a track of which only the first unit is known, or any unit of
 * it.  `guess` is a size that is not too far off, 0: none; `sizes` are likely
 * ones.
 */
int track_measure(struct reader *reader, struct track *track, uint32_t guess,
		  const uint32_t *sizes, unsigned sizes_n);

/* Reads both sides of the end that was found again. */
int track_check(struct reader *reader, const struct track *track, bool *good);

#endif
