/*
 * walk_internal.h - what the parts of a walk share: walk.c leaps and bisects,
 * walk_event.c looks at what is odd, walk_track.c takes the frontier on.  All
 * return 0, a negative errno, or TRACK_UNDECIDED.
 */
#ifndef TRAX_TRACK_WALK_INTERNAL_H
#define TRAX_TRACK_WALK_INTERNAL_H

#include "extract/track/track.h"
#include "extract/track/walk.h"

/* An angle is seen from two sides. */
#define BOTH_SIDES 0.8
/* Tolerances from which on a jump of the angle is seen. */
#define LOOK_VISIBLE 2.2
/* A run of so many tracks has told its step. */
#define LONG_RUN 8u
/* Tracks: the first leap behind what was odd, and the first in a run of which
 * the step is known. */
#define LEAP_START 4u
#define LEAP_RUN 32u
/* Tracks from event to event that count, at most. */
#define APART_MOST 1000.0

static inline struct line_place walk_place(const struct walk *w, unsigned n)
{
	return (struct line_place){ n, w->ahead[n].run };
}

/* ---- walk_track.c ---- */

/* Past a track ahead, which is as `t`. */
int walk_pass_as(struct walk *w, const struct ahead *a,
		 const struct store_track *t);
/* Past the first n of the tracks ahead. */
int walk_pass(struct walk *w, unsigned n);
/* Few tracks that come again? */
void walk_learn_round(struct walk *w);
/* A run begins at the frontier with a track that has been measured. */
int walk_run_begin(struct walk *w, const struct track *t, double cross);
/* A size that is not too far off; none that is only a short track's. */
uint32_t walk_about(const struct walk *w);
/* The track that starts at a unit. */
int walk_measure(struct walk *w, struct track *t, uint64_t first);
/* Over what can't be decided, beginning at the frontier. */
int walk_skip(struct walk *w, uint64_t from);
/* Track n ahead was seen at another angle than expected: what of that is its
 * own, while the rest is noise. */
double walk_learn(struct walk *w, unsigned n, double off);

/* ---- walk_event.c ---- */

/* Measures the track at the frontier and finds out what comes next. */
int walk_event(struct walk *w);
/* A track at the frontier that the plan does not know but the rounds do, as one
 * of about that size.  TRACK_UNDECIDED: it is not. */
int walk_event_in_round(struct walk *w, uint32_t size);
/* The plan has come to its end: what begins here? */
int walk_next_run(struct walk *w);

#endif
