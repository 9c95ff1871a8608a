/*
 * verify.c - boundaries looked at one by one.
 *
 * What does not fit is looked at again: completions that come late do not come
 * as late a second time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "extract/drive/verify.h"
#include "extract/mech/reach.h"

/* Revolutions: an angle may be believed a little wrong, a boundary not. */
#define TOLERANCE 0.04
#define TOLERANCE_NS 120e3	/* or that, if more */
#define LEAST_LEAP 0.03
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
	unsigned right, wrong, errors;
};

static int check_one(struct prober *prober, const struct geom *geom,
		     double period_ns, struct candidate *c)
{
	uint32_t unit = prober->limits->physical_bytes / SECTOR_BYTES;
	uint64_t before = (c->lbn - unit) / unit * unit;
	uint64_t after = (c->lbn + unit - 1) / unit * unit;
	double tolerance = TOLERANCE_NS / period_ns, off, leap;
	int err;

	/* Halfway between a leap and none is as far as it goes. */
	tolerance = tolerance > TOLERANCE ? tolerance : TOLERANCE;
	leap = off_by(reach_angle(geom, after, unit),
		      reach_angle(geom, before, unit));
	if (leap < LEAST_LEAP)
		return 0;
	tolerance = tolerance < leap / 2 ? tolerance : leap / 2;
	err = look(prober, geom, period_ns, before, after, unit, &off);
	c->right += off < tolerance;
	c->wrong += off >= tolerance;
	c->errors += isnan(off);
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
	struct geom_track track, before;
	unsigned found = 0;

	for (unsigned i = 0; tracks > 2 && found < n && i < FIND_TRIES * n;
	     i++) {
		geom_track_at(geom, 1 + env_random(prober->env) % (tracks - 2),
			      &track);
		geom_track_at(geom, track.index - 1, &before);
		if (track.known && before.known && track.first >= 64)
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
		verify->unreadable += !list[i].right && !list[i].wrong &&
				      list[i].errors;
		if (list[i].wrong > list[i].right &&
		    list[i].lbn < verify->first_wrong)
			verify->first_wrong = list[i].lbn;
	}
	free(list);
	return err;
}

/* ---- Every track ---- */

/* Both sides of the beginning of a track, as angles; NAN: not read. */
struct ends {
	double before, after;
};

struct walk {
	struct prober *prober;
	const struct geom *geom;
	double period_ns;
	struct ends *ends;	/* by track */
	uint64_t tracks;
};

static double turn_of(const struct walk *w, uint64_t at_ns)
{
	return (double)(at_ns % (uint64_t)(w->period_ns * 1e6)) /
	       w->period_ns;
}

static int read_ends(struct walk *w, uint64_t i)
{
	uint32_t unit = w->prober->limits->physical_bytes / SECTOR_BYTES;
	struct probe_access a;
	struct geom_track t;
	int err;

	w->ends[i] = (struct ends){ NAN, NAN };
	geom_track_at(w->geom, i, &t);
	err = read_one(w->prober, (t.first + unit - 1) / unit * unit, unit,
		       &a);
	if (!err && !a.result)
		w->ends[i].after = turn_of(w, a.complete_ns);
	if (err || t.first < unit)
		return err;
	err = read_one(w->prober, (t.first - unit) / unit * unit, unit, &a);
	if (!err && !a.result)
		w->ends[i].before = turn_of(w, a.complete_ns);
	return err;
}

/* Is the turn from one sector to another what it should be? */
static bool turns(const struct walk *w, double from, double to,
		  uint64_t from_sector, uint64_t to_sector)
{
	uint32_t unit = w->prober->limits->physical_bytes / SECTOR_BYTES;
	double tolerance = TOLERANCE_NS / w->period_ns;

	tolerance = tolerance > TOLERANCE ? tolerance : TOLERANCE;
	return off_by(to - from, reach_angle(w->geom, to_sector, unit) -
				 reach_angle(w->geom, from_sector, unit)) <
	       tolerance;
}

/* Does a track begin where it is believed to?  Without much of a leap that
 * need not show.  Next to what is not known there is some leap, whichever. */
static bool leaps(const struct walk *w, uint64_t i)
{
	uint32_t unit = w->prober->limits->physical_bytes / SECTOR_BYTES;
	uint64_t before, after;
	struct geom_track t, last;
	double leap, seen = off_by(w->ends[i].after, w->ends[i].before);

	geom_track_at(w->geom, i, &t);
	if (t.first < unit)
		return !isnan(w->ends[i].after);
	geom_track_at(w->geom, i - 1, &last);
	if (!t.known || !last.known)
		return seen > LEAST_LEAP;
	before = (t.first - unit) / unit * unit;
	after = (t.first + unit - 1) / unit * unit;
	leap = off_by(reach_angle(w->geom, after, unit),
		      reach_angle(w->geom, before, unit));
	return turns(w, w->ends[i].before, w->ends[i].after, before, after) &&
	       (leap < LEAST_LEAP || seen > leap / 2);
}

static bool track_holds(const struct walk *w, uint64_t i)
{
	uint32_t unit = w->prober->limits->physical_bytes / SECTOR_BYTES;
	struct geom_track t;

	geom_track_at(w->geom, i, &t);
	if (!leaps(w, i))
		return false;
	if (i + 1 == w->tracks)
		return true;
	return leaps(w, i + 1) &&
	       turns(w, w->ends[i].after, w->ends[i + 1].before,
		     (t.first + unit - 1) / unit * unit,
		     (t.first + t.sectors - unit) / unit * unit);
}

/* Downwards: what is read ahead has been read already. */
static int look_at_all(struct walk *w, const bool *which,
		       void (*progress)(void *arg, double part), void *arg)
{
	struct geom_track t;
	int err = 0;

	for (uint64_t i = w->tracks; !err && i-- > 0;) {
		geom_track_at(w->geom, i, &t);
		if ((t.known && which[i]) ||
		    (i && which[i - 1]))
			err = read_ends(w, i);
		if (progress && i % 64 == 0)
			progress(arg, 1 - (double)i / (double)w->tracks);
	}
	return err;
}

static bool judge_all(const struct walk *w, bool *bad)
{
	struct geom_track t;
	bool any = false;

	for (uint64_t i = 0; i < w->tracks; i++) {
		geom_track_at(w->geom, i, &t);
		bad[i] = bad[i] && t.known && !track_holds(w, i);
		any |= bad[i];
	}
	return any;
}

int verify_tracks(struct prober *prober, const struct geom *geom,
		  uint64_t period_ps, bool *bad,
		  void (*progress)(void *arg, double part), void *arg)
{
	struct walk w = {
		.prober = prober,
		.geom = geom,
		.period_ns = (double)period_ps / 1e3,
		.tracks = geom_tracks(geom),
	};
	struct geom_track t;
	bool any = true;
	int err = 0;

	w.ends = calloc(w.tracks, sizeof(*w.ends));
	if (!w.ends)
		return -ENOMEM;
	for (uint64_t i = 0; i < w.tracks; i++) {
		geom_track_at(geom, i, &t);
		bad[i] = t.known;
	}
	for (unsigned look = 0; !err && any && look < LOOKS; look++) {
		err = look ? read_others(prober) : 0;
		if (!err)
			err = look_at_all(&w, bad, look ? NULL : progress,
					  arg);
		any = judge_all(&w, bad);
	}
	free(w.ends);
	return err;
}
