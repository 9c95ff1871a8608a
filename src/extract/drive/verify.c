/*
 * verify.c - looks at the beginnings of tracks, and rules that they must obey.
 *
 * A look is the angles of the first unit of a track and of the last one of the
 * track before it.  What is believed obeys these rules:
 *
 *   1  Behind a boundary the angle leaps by the skew; half of it is no leap.
 *   2  Beside what is not known there is some leap, whichever.
 *   3  From the first unit of a track to its last it turns as far as its size
 *      says.
 *
 * What breaks one is looked at again: completions that come late do not come as
 * late a second time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "extract/drive/verify.h"
#include "extract/mech/reach.h"
#include "extract/probe/phase.h"

/* Revolutions: an angle may be believed a little wrong, a boundary not. */
#define TOLERANCE 0.04
#define TOLERANCE_NS 120e3	/* or that, if more */
#define LEAST_LEAP 0.03
#define LOOKS 4u
#define OTHERS 48u
#define FIND_TRIES 64u

/* Angles as read; NAN: they could not be. */
struct look {
	double before, after;
};

struct verifier {
	struct prober *prober;
	const struct geom *geom;
	uint32_t unit;
	double period_ns, tolerance;
	/* By track; tracks that are not looked at take no memory. */
	struct look *look;
	bool *wanted;		/* to be looked at */
	uint64_t n;
	struct verify *found;	/* where some are looked at */
	bool *bad;		/* that break a rule; where all are looked at */
	void (*progress)(void *arg, double part);
	void *arg;
};

static int begin(struct verifier *v, uint64_t period_ps)
{
	v->unit = v->prober->limits->physical_bytes / SECTOR_BYTES;
	v->period_ns = (double)period_ps / 1e3;
	v->tolerance = fmax(TOLERANCE, TOLERANCE_NS / v->period_ns);
	v->n = geom_tracks(v->geom);
	v->wanted = calloc(v->n, sizeof(*v->wanted));
	v->look = calloc(v->n, sizeof(*v->look));
	return v->wanted && v->look ? 0 : -ENOMEM;
}

static void end(struct verifier *v)
{
	free(v->wanted);
	free(v->look);
}

/* ---- Looks ---- */

/* Of the track that ends there. */
static uint64_t last_unit(const struct verifier *v, uint64_t end)
{
	return (end - v->unit) / v->unit * v->unit;
}

static int read_one(struct verifier *v, uint64_t sector, double *turn)
{
	struct probe_access a = { .sector = sector, .sectors = v->unit };
	int err = v->prober->access(v->prober, &a, 1, 1);

	*turn = err || a.result ? NAN :
		fmod((double)a.complete_ns, v->period_ns) / v->period_ns;
	return err;
}

/* The later one first: what a drive reads ahead is behind it. */
static int look_at(struct verifier *v, uint64_t i)
{
	struct look *look = &v->look[i];
	struct geom_track t;
	int err;

	geom_track_at(v->geom, i, &t);
	look->before = NAN;
	err = read_one(v, reach_first(&t, v->unit), &look->after);
	if (!err && t.first >= v->unit)
		err = read_one(v, last_unit(v, t.first), &look->before);
	return err;
}

/* So much else that a cache forgets what was looked at. */
static int read_others(struct verifier *v)
{
	uint64_t units = v->prober->limits->sectors / v->unit;
	double turn;
	int err = 0;

	for (unsigned i = 0; !err && i < OTHERS; i++)
		err = read_one(v, env_random(v->prober->env) % units * v->unit,
			       &turn);
	return err;
}

/* All that are wanted, until `judge` wants none.  Downwards: what is read ahead
 * has been read already. */
static int look_at_all(struct verifier *v, bool (*judge)(struct verifier *v))
{
	int err = 0;

	for (unsigned look = 0; !err && look < LOOKS; look++) {
		err = look ? read_others(v) : 0;
		for (uint64_t i = v->n; !err && i-- > 0;) {
			if (v->wanted[i])
				err = look_at(v, i);
			if (v->progress && !look && i % 64 == 0)
				v->progress(v->arg,
					    1 - (double)i / (double)v->n);
		}
		if (err || !judge(v))
			break;
	}
	return err;
}

/* ---- Rules ---- */

enum answer { NOTHING, RIGHT, WRONG, UNREADABLE, NO_LEAP };

static double off_by(double turn, double expected)
{
	return fabs(phase_wrap(turn - expected));
}

/* As it is believed. */
static double turn_between(const struct verifier *v, uint64_t from, uint64_t to)
{
	return reach_angle(v->geom, to, v->unit) -
	       reach_angle(v->geom, from, v->unit);
}

/* Rules 1 and 2.  Without much of a leap it need not show where a track
 * begins. */
static enum answer rule_leap(const struct verifier *v, uint64_t i)
{
	const struct look *look = &v->look[i];
	struct geom_track t, last;
	double turn, leap;

	geom_track_at(v->geom, i, &t);
	if (t.first < v->unit)
		return isnan(look->after) ? UNREADABLE : RIGHT;
	if (isnan(look->before) || isnan(look->after))
		return UNREADABLE;
	geom_track_at(v->geom, i - 1, &last);
	if (!t.known || !last.known)
		return off_by(look->after, look->before) > LEAST_LEAP ? RIGHT :
									WRONG;
	turn = turn_between(v, last_unit(v, t.first),
			    reach_first(&t, v->unit));
	leap = off_by(turn, 0);
	if (leap >= LEAST_LEAP)
		return off_by(look->after - look->before, turn) <
		       fmin(v->tolerance, leap / 2) ? RIGHT : WRONG;
	return off_by(look->after - look->before, turn) < v->tolerance ?
		       NO_LEAP : WRONG;
}

/* Rule 3, of a track and the next. */
static bool rule_size(const struct verifier *v, uint64_t i)
{
	struct geom_track t;
	double turn;

	geom_track_at(v->geom, i, &t);
	turn = turn_between(v, reach_first(&t, v->unit),
			    last_unit(v, t.first + t.sectors));
	return off_by(v->look[i + 1].before - v->look[i].after, turn) <
	       v->tolerance;
}

/* ---- Some boundaries ---- */

/* At random. */
static void want_some(struct verifier *v, unsigned n)
{
	struct geom_track track, before;
	unsigned found = 0;

	for (unsigned i = 0; v->n > 2 && found < n && i < FIND_TRIES * n; i++) {
		geom_track_at(v->geom, 1 + env_random(v->prober->env) %
					   (v->n - 2), &track);
		geom_track_at(v->geom, track.index - 1, &before);
		if (!track.known || !before.known || track.first < 64)
			continue;
		found++;
		v->wanted[track.index] = true;
	}
}

/* What is wrong stays wanted. */
static bool judge_boundaries(struct verifier *v)
{
	struct verify *found = v->found;
	struct geom_track t;

	found->wrong = 0;
	for (uint64_t i = v->n; i-- > 0;) {
		enum answer answer = v->wanted[i] ? rule_leap(v, i) : NOTHING;

		found->right += answer == RIGHT;
		found->wrong += answer == WRONG;
		found->undecided += answer == UNREADABLE || answer == NO_LEAP;
		found->unreadable += answer == UNREADABLE;
		v->wanted[i] = answer == WRONG;
		if (!v->wanted[i])
			continue;
		geom_track_at(v->geom, i, &t);
		found->first_wrong = t.first;
	}
	return found->wrong;
}

int verify_boundaries(struct prober *prober, const struct geom *geom,
		      uint64_t period_ps, unsigned n, struct verify *verify)
{
	struct verifier v = {
		.prober = prober, .geom = geom, .found = verify,
	};
	int err = begin(&v, period_ps);

	*verify = (struct verify){ .first_wrong = UINT64_MAX };
	if (!err) {
		want_some(&v, n);
		err = look_at_all(&v, judge_boundaries);
	}
	if (!verify->wrong)
		verify->first_wrong = UINT64_MAX;
	end(&v);
	return err;
}

/* ---- Every track ---- */

/* Of the bad ones both ends are looked at. */
static bool want_bad(struct verifier *v)
{
	bool any = false;

	for (uint64_t i = 0; i < v->n; i++) {
		v->wanted[i] = v->bad[i] || (i && v->bad[i - 1]);
		any |= v->bad[i];
	}
	return any;
}

static bool begins(const struct verifier *v, uint64_t i)
{
	enum answer answer = rule_leap(v, i);

	return answer == RIGHT || answer == NO_LEAP;
}

static bool judge_tracks(struct verifier *v)
{
	for (uint64_t i = 0; i < v->n; i++) {
		if (v->bad[i])
			v->bad[i] = !begins(v, i) ||
				    (i + 1 < v->n && !(begins(v, i + 1) &&
						       rule_size(v, i)));
	}
	return want_bad(v);
}

int verify_tracks(struct prober *prober, const struct geom *geom,
		  uint64_t period_ps, bool *bad,
		  void (*progress)(void *arg, double part), void *arg)
{
	struct verifier v = {
		.prober = prober, .geom = geom, .bad = bad,
		.progress = progress, .arg = arg,
	};
	int err = begin(&v, period_ps);
	struct geom_track t;

	for (uint64_t i = 0; !err && i < v.n; i++) {
		geom_track_at(geom, i, &t);
		bad[i] = t.known;
	}
	if (!err && want_bad(&v))
		err = look_at_all(&v, judge_tracks);
	end(&v);
	return err;
}
