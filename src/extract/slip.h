/*
 * slip.h - why a boundary is not where it was predicted: the hypotheses that
 * keep the row as it is.
 *
 *   slips:   tracks before the boundary hold fewer units than predicted
 *            (defects), so that it lies that many units earlier;
 *   turned:  it is where it was predicted, but its angle is not: tracks without
 *            units were passed, or rows follow each other by another angle.
 *
 * A hypothesis is accepted when both sides of the boundary fit it, and then the
 * place where it begins to hold is found by bisection.
 */
#ifndef TRAX_EXTRACT_SLIP_H
#define TRAX_EXTRACT_SLIP_H

#include "extract/boundary.h"

/* None of them fits. */
#define SLIP_NONE 1

/* How many units earlier boundary `at` lies, if slips moved it.  SLIP_NONE, or
 * why measuring must stop. */
int slip_shift(const struct boundary_view *view, unsigned at, uint32_t *shift);

/*
 * Boundary `lo` is as predicted and `hi` is `shift` units earlier: the first
 * track with slips, and how many of them it has.  SLIP_NONE: that can't be told.
 */
int slip_place(const struct boundary_view *view, unsigned lo, unsigned hi,
	       uint32_t shift, unsigned *track, uint32_t *slips);

/* By which angle boundary `at` is later than predicted, when it is where it was
 * predicted to be.  *after: only the track behind it is. */
int slip_turn(const struct boundary_view *view, unsigned at, double *turn,
	      bool *after);

/* Boundary `lo` is as predicted and `hi` is later by `turn`: the first track
 * that is. */
int slip_turn_place(const struct boundary_view *view, unsigned lo, unsigned hi,
		    double turn, unsigned *track);

#endif
