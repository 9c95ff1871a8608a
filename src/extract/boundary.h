/*
 * boundary.h - is the boundary of two tracks where it is predicted?
 *
 * Boundary j is the start of track j of a prediction (predict.h), 0 the frontier.
 * Its low side is the last unit of the track that ends there, its high side the
 * first unit of the next.  With a shift, both are that many units earlier:
 * slips before it.  Functions return 0 or why measuring must stop.
 */
#ifndef TRAX_EXTRACT_BOUNDARY_H
#define TRAX_EXTRACT_BOUNDARY_H

#include "extract/predict.h"
#include "extract/reader.h"

enum side { LOW, HIGH, SIDES };

/* Something to be read: a side of a boundary. */
struct look {
	unsigned at;
	enum side side;
};

struct boundary_view {
	struct reader *reader;
	const struct ahead *ahead;
	unsigned shift;		/* units that all boundaries lie earlier */
	bool careful;		/* near something that was not predicted */
};

/* By how much the angle jumps at boundary j, in [-0.5, 0.5). */
double boundary_jump(const struct boundary_view *view, unsigned j);

/* Is that seen? */
bool boundary_is_visible(const struct boundary_view *view, unsigned j);

uint64_t boundary_unit(const struct boundary_view *view, struct look look);

/* Angle of the unit's trailing edge. */
double boundary_angle(const struct boundary_view *view, struct look look);

/* The visible boundary in [lo, hi] of which that side can be read soonest; 0:
 * none is visible. */
unsigned boundary_soonest(const struct boundary_view *view, enum side side,
			  unsigned lo, unsigned hi);

/* By how much one side is off, as it was read lately, or anew. */
int boundary_recall(const struct boundary_view *view, struct look look,
		    double *off);
int boundary_read(const struct boundary_view *view, struct look look,
		  double *off);

/*
 * Is one side where it is predicted?  What is not is read again: a completion
 * may have been late.  So is what would only seem right by being late for less
 * than half a turn: the low side, and when careful the high side, too.
 */
int boundary_side(const struct boundary_view *view, struct look look, bool *ok,
		  double *off);

/* Both sides; *bad: the side that was wrong. */
int boundary_both(const struct boundary_view *view, unsigned j, bool *ok,
		  enum side *bad, double off[SIDES]);

#endif
