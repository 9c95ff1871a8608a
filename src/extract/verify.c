/*
 * verify.c - boundaries looked at one by one.
 *
 * What does not fit is looked at again: completions that come late do not come
 * as late a second time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "extract/reach.h"
#include "extract/verify.h"

#define TOLERANCE 0.02		/* revolutions */
#define TOLERANCE_NS 120e3	/* or that, if more */
#define LOOKS 4u
#define OTHERS 48u
#define FIND_TRIES 64u

static double off_by(double turn, double expected)
{
	double off = turn - expected;

	return fabs(off - floor(off + 0.5));
}

static int read_one(struct prober *prober, uint64_t sector, uint32_t unit,
		    struct probe_access *a)
{
	*a = (struct probe_access){ .sector = sector, .sectors = unit };
	return prober->access(prober, a, 1, 1);
}

/* Once: how far the angle between the two is from what is believed; NAN: it
 * could not be read. */
static int look(struct prober *prober, const struct geom *geom,
		double period_ns, uint64_t before, uint64_t after,
		uint32_t unit, double *off)
{
	struct probe_access a, b;
	double turn;
	int err = read_one(prober, after, unit, &a);

	*off = NAN;
	if (!err && !a.result)
		err = read_one(prober, before, unit, &b);
	if (err || a.result || b.result)
		return err;
	turn = -(double)(b.complete_ns - a.complete_ns) / period_ns;
	*off = off_by(turn, reach_angle(geom, after, unit) -
			    reach_angle(geom, before, unit));
	return 0;
}

/* One boundary, and how often it fitted. */
struct candidate {
	uint64_t lbn;
	unsigned right, wrong;
};

static int check_one(struct prober *prober, const struct geom *geom,
		     double period_ns, struct candidate *c)
{
	uint32_t unit = prober->limits->physical_bytes / SECTOR_BYTES;
	uint64_t before = (c->lbn - unit) / unit * unit;
	uint64_t after = (c->lbn + unit - 1) / unit * unit;
	double tolerance = TOLERANCE_NS / period_ns, off;
	int err;

	tolerance = tolerance > TOLERANCE ? tolerance : TOLERANCE;
	if (off_by(reach_angle(geom, after, unit),
		   reach_angle(geom, before, unit)) < 2 * tolerance)
		return 0;
	err = look(prober, geom, period_ns, before, after, unit, &off);
	c->right += off < tolerance;
	c->wrong += off >= tolerance;
	return err;
}

/* So much else that a cache forgets what was looked at. */
static int read_others(struct prober *prober)
{
	uint32_t unit = prober->limits->physical_bytes / SECTOR_BYTES;
	uint64_t units = prober->limits->sectors / unit;
	struct probe_access a;
	int err = 0;

	for (unsigned i = 0; !err && i < OTHERS; i++)
		err = read_one(prober, env_random(prober->env) % units * unit,
			       unit, &a);
	return err;
}

static unsigned choose(struct prober *prober, const struct geom *geom,
		       struct candidate *list, unsigned n)
{
	uint64_t tracks = geom_tracks(geom);
	struct geom_track track;
	unsigned found = 0;

	for (unsigned i = 0; tracks > 2 && found < n && i < FIND_TRIES * n;
	     i++) {
		geom_track_at(geom, 1 + env_random(prober->env) % (tracks - 2),
			      &track);
		if (track.known && track.first >= 64)
			list[found++].lbn = track.first;
	}
	return found;
}

int verify_boundaries(struct prober *prober, const struct geom *geom,
		      uint64_t period_ps, unsigned n, struct verify *verify)
{
	struct candidate *list = calloc(n + 1, sizeof(*list));
	bool doubts = true;
	int err = 0;

	if (!list)
		return -ENOMEM;
	*verify = (struct verify){ .first_wrong = UINT64_MAX };
	n = choose(prober, geom, list, n);
	for (unsigned look = 0; !err && look < LOOKS && doubts; look++) {
		doubts = false;
		err = look ? read_others(prober) : 0;
		for (unsigned i = 0; !err && i < n; i++) {
			if (look && list[i].right >= list[i].wrong)
				continue;
			err = check_one(prober, geom, (double)period_ps / 1e3,
					&list[i]);
			doubts |= list[i].right < list[i].wrong;
		}
	}
	for (unsigned i = 0; !err && i < n; i++) {
		verify->right += list[i].right && list[i].right >=
							  list[i].wrong;
		verify->wrong += list[i].wrong > list[i].right;
		verify->undecided += !list[i].right && !list[i].wrong;
		if (list[i].wrong > list[i].right &&
		    list[i].lbn < verify->first_wrong)
			verify->first_wrong = list[i].lbn;
	}
	free(list);
	return err;
}
