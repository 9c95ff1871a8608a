/*
 * middle.h - of some samples, whatever a few of them are.
 */
#ifndef TRAX_PROBE_MIDDLE_H
#define TRAX_PROBE_MIDDLE_H

/* Ascending, in place; for a hundred at most. */
void middle_sort(double *v, unsigned n);

/*
 * Of angles in revolutions, some late and none early, what a quarter of all
 * that are like them are less than: that is known better than the middle.  One
 * that seems to be earlier than the middle one by more than `early` is late by
 * most of a revolution.  Changes them.
 */
double middle_low(double *v, unsigned n, double early);

/* The middle one; sorts them. */
double middle_of(double *v, unsigned n);

#endif
