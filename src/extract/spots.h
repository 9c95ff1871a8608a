/*
 * spots.h - single reads in the order that costs least.
 *
 * Where it is all the same in which order some units are read, they are read as
 * they come under the head, each as late as a cache may need to forget it.
 */
#ifndef TRAX_EXTRACT_SPOTS_H
#define TRAX_EXTRACT_SPOTS_H

#include "extract/reader.h"

struct spot {
	uint64_t unit;
	double at;		/* where it is thought to be, about */
	double turn;		/* where it is; NAN: can't be read */
	bool read;
};

/* Reads all that are not, in about the order in which they stand.  0, or why
 * measuring must stop. */
int spots_read(struct reader *reader, struct spot *spots, size_t n);

#endif
