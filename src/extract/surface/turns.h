/*
 * turns.h - where the order of tracks turns to another surface or cylinder, by
 * skews.
 *
 * Most tracks begin a skew behind the one before them that is always the same;
 * where another surface, or another cylinder, begins it is mostly another one.
 * Those that come at even distances are marks.
 */
#ifndef TRAX_SURFACE_TURNS_H
#define TRAX_SURFACE_TURNS_H

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

enum turn_kind {
	TURN_ONE,		/* the more common kind of mark */
	TURN_TWO,
	TURN_ODD,		/* like no other; or something is missing */
	TURN_NONE,		/* none of these */
};

struct turn {
	uint64_t track;		/* the first one behind it */
	enum turn_kind kind;
};

struct turns {
	struct turn *v;		/* ascending */
	size_t n;
	uint32_t period;	/* tracks from mark to mark; 0: none */
	bool two;		/* both kinds come at that distance */
};

/* Costs by the number of tracks; prober: only to pause now and then, may be
 * NULL.  -ENOMEM */
int turns_find(const struct geom *geom, struct prober *prober,
	       struct turns *turns);
void turns_fini(struct turns *turns);

/* The most common one of some numbers, the least of those; how many are it. */
size_t turns_common(uint64_t *v, size_t n, uint64_t *number);

#endif
