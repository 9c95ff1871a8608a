/*
 * look.h - looks at boundaries that a walk foretells.
 *
 * Boundary j is the start of track j of walk->ahead, 0 the frontier; its sides
 * are the unit before it, still on the track that ends there, and the first of
 * the next.  Functions return 0 or why measuring must stop.
 */
#ifndef TRAX_TRACK_LOOK_H
#define TRAX_TRACK_LOOK_H

#include "extract/track/walk.h"

enum look_side { LOOK_LOW, LOOK_HIGH };

/* Where a leap ended: a boundary ahead, and how late its sides were. */
struct look_landing {
	unsigned at;
	bool ok;
	enum look_side side;	/* not ok: which */
	double low, high;
};

/* The boundary of [lo, hi] that costs least to look at; 0: none can be. */
unsigned look_pick(const struct walk *w, enum look_side side, unsigned lo,
		   unsigned hi);

/* Is a unit where it is foretold, while others before it may have to be asked:
 * nothing is read ahead on the way there?  *off: by how much it is not. */
int look_ask(struct walk *w, enum look_side side, unsigned j, bool *ok,
	     double *off);

/* Both sides of a boundary; *side: the one that was wrong. */
int look_ask_both(struct walk *w, unsigned j, enum look_side *side, bool *ok,
		  double *low, double *high);

/* Likewise as they were read lately, and how late they are. */
int look_recall(struct walk *w, unsigned j, bool *ok, double off[2]);

/*
 * Where each cylinder may have spares, a slip in it does not show behind it:
 * boundaries that a leap goes over are looked at (rounds.h), in the order in
 * which they come under the head.  *bad: the first that is wrong, or 0.
 */
int look_into_rounds(struct walk *w, unsigned to, unsigned *bad);

/*
 * Where runs have spares in their last tracks, slips before them do not show
 * behind: the boundaries before those are looked at.  *bad: the first that is
 * wrong, or 0; *good: the last of them before that, or 0.
 */
int look_at_spares(struct walk *w, unsigned to, unsigned *good, unsigned *bad);

/* A boundary that a leap has gone over; more than once when it is wrong, and
 * then *l is where that is. */
int look_at(struct walk *w, unsigned at, struct look_landing *l);

/* Is what is before a boundary as foretold, too? */
int look_before(struct walk *w, unsigned at, struct look_landing *l);

/* What a leap that was right at its end went over. */
int look_inside(struct walk *w, struct look_landing *l);

#endif
