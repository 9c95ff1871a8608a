/*
 * walk_fill.h - tracks of which the ends can't be seen.
 */
#ifndef TRAX_TRACK_WALK_FILL_H
#define TRAX_TRACK_WALK_FILL_H

#include "extract/track/track.h"
#include "extract/track/walk.h"

/*
 * What lies between the frontier of a walk and the track `t` is known if it is
 * one or two tracks of the size before it, of the size behind it, or of both,
 * and nothing else; otherwise it is unknown.  *cross: the angle from the last
 * track of the present run to the first of the next; NAN: not known.  Returns
 * how many of them are like `t`, or why measuring must stop (negative).
 */
int walk_fill(struct walk *walk, const struct track *t, double *cross);

#endif
