/*
 * spots.c - see spots.h.
 *
 * Of the next few the one that is there soonest; others are as near.
 */
#include <math.h>

#include "extract/spots.h"

/* Among so many the next is chosen. */
#define WINDOW 24u

/* The next to read; n: none is left. */
static size_t soonest(const struct reader *r, const struct spot *s, size_t n,
		      size_t *from)
{
	double best_ns = INFINITY, ns;
	size_t best = n;
	unsigned seen = 0;

	while (*from < n && s[*from].read)
		++*from;
	for (size_t i = *from; i < n && seen < WINDOW; i++) {
		if (s[i].read)
			continue;
		seen++;
		ns = reader_effort(r, s[i].unit, s[i].at);
		if (ns < best_ns) {
			best_ns = ns;
			best = i;
		}
	}
	return best;
}

int spots_read(struct reader *reader, struct spot *spots, size_t n)
{
	size_t from = 0, i;
	int err = 0;

	while (!err && (i = soonest(reader, spots, n, &from)) < n) {
		err = reader_expect(reader, spots[i].unit, spots[i].at,
				    &spots[i].turn);
		spots[i].read = true;
	}
	return err;
}
