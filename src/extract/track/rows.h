/*
 * rows.h - tracks in a row, whatever slipped.
 *
 * Where scratches go over many tracks, it is where these begin that says which
 * stretches are one track: each begins later than the one before by a step that
 * others in the neighbourhood do, too (gap->step).
 */
#ifndef TRAX_TRACK_ROWS_H
#define TRAX_TRACK_ROWS_H

#include "extract/track/parts.h"

/*
 * The only such row that the parts of a gap are.  *found: there is one, and it
 * was looked at where it could be another; bit i of *ends: a track ends behind
 * part i.  0, or why measuring must stop.
 */
int rows_find(struct parts *parts, uint64_t *ends, bool *found);

#endif
