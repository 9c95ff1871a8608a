/*
 * trace.h - the seek curve from any requests at all (FS2, SOSP 2005, 4.2).
 *
 * A request takes seek + rotation + transfer; over many the rotation is
 * anything from nothing to a revolution, so the lower envelope of access time
 * against the distance in sectors is the seek, with the overhead.  No geometry
 * is needed; the price is that distances are in sectors, not cylinders.
 */
#ifndef TRAX_MECH_TRACE_H
#define TRAX_MECH_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "extract/probe/probe.h"

#define TRACE_BINS 40u

struct trace_point {
	uint64_t sectors;	/* from the end of the one before */
	uint64_t ns;		/* from there to its completion */
};

/* Times in nanoseconds: a cubic for short distances, a line for long ones. */
struct trace_curve {
	struct trace_point envelope[TRACE_BINS];	/* ascending */
	unsigned n;
	double cubic[4];	/* of x^0 .. x^3 */
	double line[2];
	uint64_t knee;		/* sectors; where the line begins */
	double off_ns;		/* the envelope's mean distance from the fit */
};

/* The curve of n requests.  -ENODATA: too few, or all alike. */
int trace_fit(const struct trace_point *points, size_t n,
	      struct trace_curve *curve);

/* The fit at a distance. */
double trace_ns(const struct trace_curve *curve, uint64_t sectors);

/* Random reads of one unit, at distances of every order; *n points at most,
 * those that worked on return.  0 or why measuring had to stop. */
int trace_random(struct prober *prober, struct trace_point *points, size_t *n);

#endif
