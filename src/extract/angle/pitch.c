/*
 * pitch.c - slopes, of pairs of readings on tracks near each other.
 *
 * Pairs, because it is not known where each track lies.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/sort.h"
#include "extract/angle/pitch.h"
#include "extract/probe/phase.h"

/* Revolutions: what further is off is late. */
#define FAR 0.06
/* In standard deviations: of a pair, of a slope. */
#define PAIR_DOUBT 4.0
#define SURE 5.0
/* Less than this is none; more are late readings near one place. */
#define LEAST 0.002
#define MOST 0.2
/* Pairs of which the median slope is taken, and how far apart at least. */
#define STEEP_MOST 64u
#define STEEP_LEAST 5u
#define STEEP_APART 0.25

struct sum {
	double xx, xy;
	const struct pitch_read *last;
};

static bool same(const struct pitch_read *r, const struct pitch *p)
{
	return r->sectors == p->sectors && r->around == p->around;
}

/* The slope, of pairs that are no further off one of before than that. */
static struct sum slope_of(const struct pitch_read *read, size_t n,
			   const struct pitch *p, double slope, double far)
{
	struct sum s = { 0 };
	double dx, dy;

	for (size_t i = 0; i < n; i++) {
		if (!same(&read[i], p))
			continue;
		if (s.last) {
			dx = read[i].part - s.last->part;
			dy = phase_wrap(read[i].late - s.last->late);
			if (fabs(dy - slope * dx) <= far) {
				s.xx += dx * dx;
				s.xy += dx * dy;
			}
		}
		s.last = &read[i];
	}
	return s;
}

/* Where so much room is left that its readings lie further off than late ones
 * are cut off at: the median slope of pairs far from each other.  Else 0. */
static double steep_slope(const struct pitch_read *read, size_t n,
			  const struct pitch *p)
{
	double slope[STEEP_MOST], dx;
	const struct pitch_read *last = NULL;
	size_t k = 0;

	for (size_t i = 0; i < n && k < STEEP_MOST; i++) {
		if (!same(&read[i], p))
			continue;
		dx = last ? read[i].part - last->part : 0;
		if (fabs(dx) >= STEEP_APART)
			slope[k++] = phase_wrap(read[i].late - last->late) / dx;
		last = &read[i];
	}
	if (k < STEEP_LEAST)
		return 0;
	qsort(slope, k, sizeof(*slope), sort_double_cmp);
	return fabs(slope[k / 2]) > FAR / 2 ? slope[k / 2] : 0;
}

/* The slope of its readings when they leave no doubt that there is one; 0. */
static double clear_slope(const struct sum *s, double noise)
{
	double slope = s->xy / s->xx;

	return fabs(slope) >= LEAST && fabs(slope) <= MOST &&
	       fabs(slope) >= SURE * M_SQRT2 * noise / sqrt(s->xx) ? slope : 0;
}

/* How many sectors really go round tracks like these. */
static uint32_t around(const struct pitch_read *read, size_t n,
		       const struct pitch *p, double noise, uint32_t unit)
{
	struct sum s = slope_of(read, n, p, steep_slope(read, n, p), FAR);
	uint32_t right;
	double slope;

	if (s.xx > 0)
		s = slope_of(read, n, p, s.xy / s.xx,
			     PAIR_DOUBT * M_SQRT2 * noise);
	if (!(s.xx > 0))
		return p->around;
	slope = clear_slope(&s, noise);
	if (slope == 0)
		return p->around;
	right = (uint32_t)lrint(p->around / (1 + slope) / unit) * unit;
	return right < p->sectors ? p->sectors : right;
}

size_t pitch_find(const struct pitch_read *read, size_t n, double noise,
		  uint32_t unit, struct pitch pitch[PITCH_MOST])
{
	size_t found = 0, seen = 0, k;

	for (size_t i = 0; i < n && seen < PITCH_MOST; i++) {
		for (k = 0; k < seen && !same(&read[i], &pitch[k]); k++)
			;
		if (k == seen)
			pitch[seen++] = (struct pitch){ read[i].sectors,
							read[i].around, 0 };
	}
	for (k = 0; k < seen; k++)
		pitch[k].right = around(read, n, &pitch[k], noise, unit);
	for (k = 0; k < seen; k++) {
		if (pitch[k].right != pitch[k].around)
			pitch[found++] = pitch[k];
	}
	return found;
}
