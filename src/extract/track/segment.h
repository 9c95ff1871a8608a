/*
 * segment.h - stretches of units without a leap of the angle.
 *
 * Every angle is read several times: what is left of the noise is a fraction,
 * late completions do not count, and so leaps of a few tolerances' tenth can
 * be told.  Costs some revolutions for each place looked at.
 */
#ifndef TRAX_TRACK_SEGMENT_H
#define TRAX_TRACK_SEGMENT_H

#include "extract/probe/reader.h"

struct segment {
	uint64_t first, units;
	double start;		/* of its first unit's leading edge */
	double pitch;		/* revolutions of a unit, */
	double pitch_sigma;	/* give or take */
};

/*
 * From segment->first to the next leap or to `limit`.  `pitch`: that of the
 * units there, give or take a share `off` of it.  *found: the end is certain.
 * 0, or why measuring must stop.
 */
int segment_find(struct reader *reader, struct segment *segment,
		 uint64_t limit, double pitch, double off, bool *found);

/* Start and pitch of units, of which the pitch is about known; *good: they are
 * on one line. */
int segment_line(struct reader *reader, struct segment *segment, bool *good);

/* Are its units on its line everywhere, but for `most` tolerances?  One that
 * crosses it has been taken for it. */
int segment_holds(struct reader *reader, const struct segment *segment,
		  double most, bool *good);

/* Are units on a line of the pitch that is known, but for slips, which make
 * them later from place to place, by `most` units in all?  Sets the start. */
int segment_slips(struct reader *reader, struct segment *segment,
		  uint64_t most, bool *good);

#endif
