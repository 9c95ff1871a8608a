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
	bool soft;		/* it may go on behind its end, nearly */
};

/*
 * From segment->first to the next leap or to `limit`.  `pitch`: that of the
 * units there, give or take a share `off` of it.  *found: the end is certain.
 * Otherwise the segment may be as much as is straight (soft).
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

/*
 * Is a segment of a pitch that is known, and begins about at its start, of one
 * track?  Another may go on from it in angle, nearly, where zones meet: but its
 * units are later than those before it, or earlier.
 */
int segment_level(struct reader *reader, const struct segment *segment,
		  bool *good);

#endif
