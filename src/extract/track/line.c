/*
 * line.c - three variables, one sum of them seen.
 *
 * What the platter and the clock do between two looks is little and is the same
 * however far apart they are.
 */
#include <math.h>

#include "extract/track/line.h"

/* Revolutions per look: of the angle, of a step. */
#define ANGLE_WANDERS 0.0008
#define STEP_WANDERS 4e-6

enum { ANGLE, STEP, CROSS };

void line_doubt(struct line *line, double angle, double step, double cross)
{
	line->c[ANGLE][ANGLE] += angle * angle;
	line->c[STEP][STEP] += step * step;
	line->c[CROSS][CROSS] += cross * cross;
}

void line_steady(struct line *line, double apart, double period, double step,
		 double cross)
{
	line->apart = apart * apart;
	line->period = period;
	line_doubt(line, 0, step, cross);
}

/* What crosses are off by comes again with each period, of which the sum is
 * known: a Brownian bridge. */
static double bridge(const struct line *l, double a, double b)
{
	a = l->period > 0 ? fmod(a, l->period) : 0;
	b = l->period > 0 ? fmod(b, l->period) : 0;
	return l->period > 0 ? l->apart * fmin(a, b) *
			       (1 - fmax(a, b) / l->period) : 0;
}

void line_begin(struct line *line, double angle, double step, double cross)
{
	*line = (struct line){ 0 };
	line_doubt(line, angle, step, cross);
}

/* What the angle at a place is made of. */
static void weights(struct line_place at, double v[LINE_PARTS])
{
	v[ANGLE] = 1;
	v[STEP] = at.tracks - at.runs;
	v[CROSS] = at.runs;
}

/* Covariance of the angle at a place with each part. */
static void spread(const struct line *l, struct line_place at,
		   double v[LINE_PARTS])
{
	double w[LINE_PARTS];

	weights(at, w);
	for (unsigned i = 0; i < LINE_PARTS; i++) {
		v[i] = 0;
		for (unsigned k = 0; k < LINE_PARTS; k++)
			v[i] += l->c[i][k] * w[k];
	}
}

static double covariance(const struct line *l, struct line_place a,
			 struct line_place b)
{
	double v[LINE_PARTS], w[LINE_PARTS], sum = 0;

	spread(l, a, v);
	weights(b, w);
	for (unsigned i = 0; i < LINE_PARTS; i++)
		sum += v[i] * w[i];
	return sum + bridge(l, a.runs, b.runs);
}

double line_sigma(const struct line *line, struct line_place at)
{
	return sqrt(fmax(covariance(line, at, at), 0));
}

double line_share(const struct line *line, struct line_place seen,
		  double noise, struct line_place at)
{
	return covariance(line, seen, at) /
	       (covariance(line, seen, seen) + noise * noise);
}

/* The angle is that at the place from now on. */
static void move(struct line *l, struct line_place at)
{
	double v[LINE_PARTS];

	spread(l, at, v);
	l->c[ANGLE][ANGLE] = covariance(l, at, at);
	for (unsigned i = STEP; i < LINE_PARTS; i++)
		l->c[ANGLE][i] = l->c[i][ANGLE] = v[i];
}

void line_go(struct line *line, struct line_place seen, double noise,
	     double *step, double *cross)
{
	double v[LINE_PARTS], all;

	move(line, seen);
	all = line->c[ANGLE][ANGLE] + noise * noise;
	for (unsigned i = 0; i < LINE_PARTS; i++)
		v[i] = line->c[ANGLE][i];
	for (unsigned i = 0; i < LINE_PARTS; i++) {
		for (unsigned k = 0; k < LINE_PARTS; k++)
			line->c[i][k] -= v[i] * v[k] / all;
	}
	*step = v[STEP] / all;
	*cross = v[CROSS] / all;
	line_doubt(line, ANGLE_WANDERS, STEP_WANDERS, STEP_WANDERS);
}
