/*
 * middle.c - insertion: a few samples, of which most are in order.
 */
#include "extract/middle.h"

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
