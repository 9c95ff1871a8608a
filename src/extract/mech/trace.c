/*
 * trace.c - the lower envelope, and a curve through it.
 *
 * Distances are put into bins, each half as wide again as the one before it.
 * Of a bin the second fastest counts: the fastest may have been a hit of a
 * cache.  The knee between cubic and line is tried at every bin.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "extract/mech/trace.h"

#define FEWEST_IN_BIN 4u
#define FEWEST_BINS 6u
/* Nearer than this what counts is whether the head came in time, not how far
 * it went. */
#define NEAR_SECTORS 20000u
/* Only if there is no other. */
#define DIPS_NS 1e9
/* Faster than this nothing seeks. */
#define HIT_NS 300000u

/* Solves a small system of normal equations in place, by elimination. */
static bool solve(double m[4][5], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned best = i;

		for (unsigned k = i; k < n; k++)
			best = fabs(m[k][i]) > fabs(m[best][i]) ? k : best;
		if (fabs(m[best][i]) < 1e-12)
			return false;
		for (unsigned k = 0; k <= n; k++) {
			double was = m[i][k];

			m[i][k] = m[best][k];
			m[best][k] = was;
		}
		for (unsigned k = 0; k < n; k++) {
			double f = m[k][i] / m[i][i];

			for (unsigned j = i; k != i && j <= n; j++)
				m[k][j] -= f * m[i][j];
		}
	}
	for (unsigned i = 0; i < n; i++)
		m[i][n] /= m[i][i];
	return true;
}

/* A polynomial of `terms` terms through points [from, to). */
static bool fit(const struct trace_point *p, unsigned from, unsigned to,
		unsigned terms, double *out)
{
	double m[4][5] = { { 0 } };
	/* In units of the longest: the powers stay near one. */
	double unit = (double)p[to - 1].sectors;

	for (unsigned i = from; i < to; i++) {
		double x = (double)p[i].sectors / unit, power[4] = { 1 };

		for (unsigned k = 1; k < terms; k++)
			power[k] = power[k - 1] * x;
		for (unsigned k = 0; k < terms; k++) {
			for (unsigned j = 0; j < terms; j++)
				m[k][j] += power[k] * power[j];
			m[k][terms] += power[k] * (double)p[i].ns;
		}
	}
	if (to - from < terms || !solve(m, terms))
		return false;
	for (unsigned k = 0; k < terms; k++)
		out[k] = m[k][terms] / pow(unit, k);
	return true;
}

double trace_ns(const struct trace_curve *curve, uint64_t sectors)
{
	double x = (double)sectors;
	const double *c = curve->cubic;

	if (sectors >= curve->knee)
		return curve->line[0] + curve->line[1] * x;
	return c[0] + x * (c[1] + x * (c[2] + x * c[3]));
}

static double off_by(const struct trace_curve *c, unsigned from)
{
	double sum = 0;

	for (unsigned i = from; i < c->n; i++)
		sum += fabs(trace_ns(c, c->envelope[i].sectors) -
			    (double)c->envelope[i].ns);
	return sum / (c->n - from);
}

static unsigned bin_of(uint64_t sectors)
{
	double bin = log((double)sectors + 1) / log(1.6);

	return bin < TRACE_BINS ? (unsigned)bin : TRACE_BINS - 1;
}

/* The two fastest of each bin. */
static void envelope(const struct trace_point *points, size_t n,
		     struct trace_curve *c)
{
	struct trace_point first[TRACE_BINS], second[TRACE_BINS];
	unsigned count[TRACE_BINS] = { 0 };

	memset(first, 0xff, sizeof(first));
	memset(second, 0xff, sizeof(second));
	for (size_t i = 0; i < n; i++) {
		unsigned k = bin_of(points[i].sectors);

		if (points[i].ns < HIT_NS || !points[i].sectors)
			continue;
		count[k]++;
		if (points[i].ns < first[k].ns) {
			second[k] = first[k];
			first[k] = points[i];
		} else if (points[i].ns < second[k].ns) {
			second[k] = points[i];
		}
	}
	c->n = 0;
	for (unsigned k = 0; k < TRACE_BINS; k++) {
		if (count[k] >= FEWEST_IN_BIN)
			c->envelope[c->n++] = second[k];
	}
}

/* Nothing further is nearer in time: between few points a cubic may dip. */
static bool rises(const struct trace_curve *c, unsigned from)
{
	double last = 0, x = (double)c->envelope[from].sectors;

	for (; x < (double)c->knee; x *= 1.1) {
		double ns = trace_ns(c, (uint64_t)x);

		if (ns < last)
			return false;
		last = ns;
	}
	return trace_ns(c, c->knee) >= 0.97 * last;
}

int trace_fit(const struct trace_point *points, size_t n,
	      struct trace_curve *curve)
{
	struct trace_curve best = { .off_ns = INFINITY };
	unsigned from = 0;

	envelope(points, n, curve);
	if (curve->n < FEWEST_BINS)
		return -ENODATA;
	while (from < curve->n && curve->envelope[from].sectors < NEAR_SECTORS)
		from++;
	for (unsigned at = from + 5; at + 3 <= curve->n; at++) {
		struct trace_curve c = *curve;

		if (!fit(c.envelope, from, at, 4, c.cubic) ||
		    !fit(c.envelope, at - 1, c.n, 2, c.line))
			continue;
		/* The last that both were fitted to. */
		c.knee = c.envelope[at - 1].sectors;
		c.off_ns = off_by(&c, from);
		if (!rises(&c, from))
			c.off_ns += DIPS_NS;
		if (c.off_ns < best.off_ns)
			best = c;
	}
	if (isinf(best.off_ns))
		return -ENODATA;
	*curve = best;
	if (curve->off_ns >= DIPS_NS)
		curve->off_ns -= DIPS_NS;
	return 0;
}

int trace_random(struct prober *prober, struct trace_point *points, size_t *n)
{
	uint32_t unit = prober->limits->physical_bytes / SECTOR_BYTES;
	uint64_t units = prober->limits->sectors / unit, at = units / 2;
	size_t wanted = *n;
	uint64_t last_ns = 0;
	int err = 0;

	*n = 0;
	for (size_t i = 0; !err && i < wanted; i++) {
		double order = log((double)units) *
			((double)(env_random(prober->env) >> 11) * 0x1p-53);
		uint64_t far = (uint64_t)exp(order), was = at;
		struct probe_access a = { .sectors = unit };

		/* Whichever way there is room, else to the other end. */
		if (at + far < units && (at < far ||
					 (env_random(prober->env) & 1)))
			at += far;
		else
			at = at >= far ? at - far : 0;
		a.sector = at * unit;
		err = prober->access(prober, &a, 1, 1);
		if (!err && !a.result && last_ns)
			points[(*n)++] = (struct trace_point){
				(at > was ? at - was : was - at) * unit,
				a.complete_ns - last_ns };
		last_ns = err || a.result ? 0 : a.complete_ns;
	}
	return err;
}
