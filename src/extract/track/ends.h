/*
 * ends.h - which tracks of a round may be the last of a cylinder.
 *
 * A zone is whole cylinders, so that it begins with the first track of one.
 * The first tracks of a single zone may be missing, but not in the same way in
 * two: where two have begun with the same head it is known which tracks are
 * before it.  Heads are told by how their sizes compare, which is the same in
 * all zones, about.
 *
 * Cylinders that are gone over upwards and downwards in turn end at both turns
 * of a round.
 */
#ifndef TRAX_TRACK_ENDS_H
#define TRAX_TRACK_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#define ENDS_MOST 64u
/* Not known. */
#define ENDS_NONE UINT32_MAX

struct ends {
	unsigned n;			/* tracks of a round; 0: not known */
	uint32_t size[ENDS_MOST];	/* of those, in order */
	bool last[ENDS_MOST];		/* may be the last one of a cylinder */
	bool known;			/* some may not */
	/* A round from the beginning of a zone on, and zones that began so. */
	uint32_t first[ENDS_MOST];
	unsigned first_n, zones;
};

/* Another zone, of rounds of so many tracks; `begin`: the one that it begins
 * with, or ENDS_NONE. */
void ends_see(struct ends *ends, const uint32_t *size, unsigned n,
	      uint32_t begin);

/* What is behind is none. */
void ends_leave(struct ends *ends);

/* The least number of tracks after which the sizes of a round come again. */
unsigned ends_least(const uint32_t *size, unsigned n);

/* Can it be that slips in a track of that size do not show behind it because it
 * is the last of a cylinder? */
bool ends_may_be_last(const struct ends *ends, uint32_t size);

#endif
