/*
 * middle.h - of some samples, whatever a few of them are.
 */
#ifndef TRAX_PROBE_MIDDLE_H
#define TRAX_PROBE_MIDDLE_H

/* Ascending, in place; for a hundred at most. */
void middle_sort(double *v, unsigned n);

/* What a quarter of all that are like them are less than: where some are late
 * and none is early, it is known better than the middle.  Sorts them. */
double middle_low(double *v, unsigned n);

/* The middle one; sorts them. */
double middle_of(double *v, unsigned n);

#endif
