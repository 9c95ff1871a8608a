/*
 * span.h - are units on one track?
 *
 * Two tracks may go on from one another without a leap of the angle.  But to go
 * from one to the other takes a drive some time, in which the next sectors have
 * passed: a read over both takes a revolution more.  So do sectors that lie
 * elsewhere; thus it is certain that a span is on one track, while what is not
 * may have either reason.
 */
#ifndef TRAX_TRACK_SPAN_H
#define TRAX_TRACK_SPAN_H

#include "extract/probe/reader.h"

/* On a line of angles. */
struct span {
	uint64_t first, units;
	double start, pitch;
};

/* Where a span does not go on. */
struct span_end {
	uint64_t at;		/* the unit behind it; 0: it is on one track */
	bool clear;		/* if it went on there it would be seen */
	bool lone;		/* nor does that unit to the next */
};

/* The first end of a span.  0, or why measuring must stop. */
int span_find_end(struct reader *reader, const struct span *span,
		  struct span_end *end);

#endif
