/*
 * spots.h - single reads in the order that costs least.
 *
 * Where it is all the same in which order some units are read, they are read as
 * they come under the head, each as late as a cache may need to forget it.
 */
#ifndef TRAX_PROBE_SPOTS_H
#define TRAX_PROBE_SPOTS_H

#include <stddef.h>

#include "extract/probe/reader.h"

struct spot {
	uint64_t unit;
	double at;		/* where it is thought to be, about */
	bool wanted;		/* it is to be read, once more */
	size_t owner;		/* the caller's */
	double turn;		/* as read last; NAN: it could not be read */
	unsigned looks;		/* how often it was */
	uint64_t when;		/* that was read number ... of all */
};

/* In order of units. */
struct spots {
	struct spot *v;
	size_t n, room;
	size_t from;		/* before it none is wanted */
	uint64_t reads;
	uint64_t round;		/* of them before this one */
};

/* One more, behind the others; not wanted yet.  -ENOMEM. */
int spots_add(struct spots *spots, uint64_t unit, double at, size_t owner);

/* Wants one to be read. */
void spots_want(struct spots *spots, size_t i);

/*
 * Reads one of those that are wanted, in about the order of units but not at
 * once a second time.  *i: which; n: none is wanted.  0, or why measuring must
 * stop.
 */
int spots_read(struct reader *reader, struct spots *spots, size_t *i);

#endif
