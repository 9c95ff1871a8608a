/*
 * middle.c - insertion: a few samples, of which most are in order.
 */
#include "extract/probe/middle.h"

#include <math.h>

/* What share of all is less: as often early as late, however few they are. */
#define LOW 0.28

void middle_sort(double *v, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		double a = v[i];
		unsigned k = i;

		for (; k && v[k - 1] > a; k--)
			v[k] = v[k - 1];
		v[k] = a;
	}
}

double middle_of(double *v, unsigned n)
{
	middle_sort(v, n);
	return v[n / 2];
}

double middle_low(double *v, unsigned n, double early)
{
	double place = fmax(LOW * (n + 1.0) - 1, 0), late;
	double middle = middle_of(v, n);
	unsigned at = (unsigned)place;

	for (unsigned i = 0; i < n; i++) {
		late = v[i] - middle;
		late -= rint(late);
		v[i] = middle + (late < -early ? late + 1 : late);
	}
	middle_sort(v, n);
	return at + 1 < n ? v[at] + (place - at) * (v[at + 1] - v[at]) : v[at];
}
