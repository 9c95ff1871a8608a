/*
 * islands.c - tracks at even steps from some others, near or not.
 *
 * First with small steps and a small measure of what is near, then with larger
 * ones, until others than the own island are met.  The measure is a step long:
 * an island has two steps or so.
 */
#include "extract/surface/islands.h"

#include <math.h>
#include <stdlib.h>

#define STEP_LEAST 4u
#define STEP_GROWS 2.5
/* Steps that a disk has. */
#define STEPS_LEAST 8
/* Steps to either side that find another island if there is any. */
#define LOOK_STEPS 44
/* From the last island on; it may be further than from the one before. */
#define ON_STEPS 16
#define ON_TIMES 2.4
#define STEPS_MOST 1500
/* An own island that is wider has grown together with another one; and so have
 * those that are no further apart. */
#define WIDE_STEPS 5
#define APART_STEPS 3
/* Islands nearer than so many steps are counted, others by larger steps. */
#define COARSE_STEPS 26
#define BASES 7u
#define AGREE 3u
/* So many are no chance, and take long. */
#define MANY 6u
#define AGREE_MANY 2u
#define ISLANDS_MOST 24u
/* What takes four times the way takes longer by this. */
#define SLOPE_NS 90000.0

struct look {
	struct near *near;
	uint64_t base;
	uint32_t step;
	double limit_ns;
	int from[2 * ISLANDS_MOST], to[2 * ISLANDS_MOST]; /* steps, ascending */
	unsigned n;
};

static int is_near(struct look *l, int at, bool *yes)
{
	int64_t track = (int64_t)l->base + (int64_t)at * l->step;
	uint32_t stray = l->step / 4;
	int answer = 0, err;

	*yes = false;
	if (track < 0 || (uint64_t)track >= geom_tracks(l->near->geom))
		return 0;
	err = near_ask(l->near, l->base, (uint64_t)track, stray, l->limit_ns,
		       false, &answer);
	/* What is far by chance is met again a step further; what is near by
	 * chance is not. */
	if (!err && answer > 0)
		err = near_ask(l->near, l->base, (uint64_t)track, stray,
			       l->limit_ns, true, &answer);
	*yes = answer > 0;
	return err;
}

static void insert(struct look *l, int at)
{
	unsigned i;

	for (i = 0; i < l->n; i++) {
		if (at >= l->from[i] - 2 && at <= l->to[i] + 2) {
			l->from[i] = at < l->from[i] ? at : l->from[i];
			l->to[i] = at > l->to[i] ? at : l->to[i];
			return;
		}
	}
	if (l->n == 2 * ISLANDS_MOST)
		return;
	for (i = l->n++; i && l->from[i - 1] > at; i--) {
		l->from[i] = l->from[i - 1];
		l->to[i] = l->to[i - 1];
	}
	l->from[i] = l->to[i] = at;
}

/* Up or down, until no more islands come. */
static int walk(struct look *l, int way, int most)
{
	int gap = 0, last = 0, err = 0;
	bool yes;

	for (int i = 1; i < STEPS_MOST && !err; i++) {
		if (i > most && i - last > ON_STEPS + ON_TIMES * gap)
			break;
		if (near_late(l->near) || l->n == 2 * ISLANDS_MOST)
			break;
		err = is_near(l, way * i, &yes);
		if (!yes)
			continue;
		if (i - last > 2 && i - last > gap)
			gap = i - last;
		last = i;
		insert(l, way * i);
	}
	return err;
}

/* Between the middles of the nearest two. */
static double nearest(const struct look *l)
{
	double least = INFINITY;

	for (unsigned i = 1; i < l->n; i++)
		least = fmin(least, (l->from[i] + l->to[i] - l->from[i - 1] -
				     l->to[i - 1]) / 2.0);
	return least;
}

/* Each for itself? */
static bool are_clear(const struct look *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->to[i] - l->from[i] > WIDE_STEPS ||
		    (i && l->from[i] - l->to[i - 1] <= APART_STEPS))
			return false;
	}
	return true;
}

static int look_from(struct near *near, uint32_t step, double limit_ns,
		     int most, struct look *l)
{
	int err;

	*l = (struct look){
		.near = near, .step = step, .limit_ns = limit_ns, .n = 1,
		.base = env_random(near->prober->env) %
			geom_tracks(near->geom),
	};
	err = walk(l, 1, most);
	return err ? err : walk(l, -1, most);
}

/* The mean of a way there and a way back. */
static void note_sweep(const struct look *l, double *sum, unsigned *n)
{
	for (unsigned i = 2; i < l->n; i++, ++*n)
		*sum += (l->from[i] + l->to[i] - l->from[i - 2] -
			 l->to[i - 2]) / 4.0 * l->step;
}

/* By such steps from several tracks. */
static int count(struct near *near, uint32_t step, double limit_ns,
		 struct islands *out)
{
	unsigned votes[2 * ISLANDS_MOST + 1] = { 0 }, sums = 0;
	struct look l;
	double sum = 0;
	int err = 0;

	for (unsigned i = 0; i < BASES && !err && !near_late(near); i++) {
		err = look_from(near, step, limit_ns, LOOK_STEPS, &l);
		if (err || !are_clear(&l))
			continue;
		note_sweep(&l, &sum, &sums);
		if (++votes[l.n] < (l.n < MANY ? AGREE : AGREE_MANY) ||
		    l.n > ISLANDS_MOST)
			continue;
		out->surfaces = l.n;
		out->sweep = sums ? sum / sums : 0;
		return 0;
	}
	return err;
}

/* Does the measure tell what is near from what is not? */
static int find_limit(struct near *near, const struct pieces *pieces,
		      uint32_t step, double *limit_ns)
{
	double far_ns;
	int err = near_ruler(near, pieces, step, limit_ns);

	if (!err && !isnan(*limit_ns))
		err = near_ruler(near, pieces, 4 * step, &far_ns);
	if (!err && !isnan(*limit_ns) &&
	    !(far_ns - *limit_ns > SLOPE_NS))
		*limit_ns = NAN;
	return err;
}

int islands_count(struct near *near, const struct pieces *pieces,
		  struct islands *islands)
{
	double most = (double)geom_tracks(near->geom) / STEPS_LEAST;
	double limit_ns, step = STEP_LEAST, apart;
	struct islands seen = { 0 };
	struct look l;
	bool counted = false;
	int err = 0;

	*islands = (struct islands){ 0 };
	for (; !err && step < most && !near_late(near); step *= STEP_GROWS) {
		err = find_limit(near, pieces, (uint32_t)step, &limit_ns);
		if (err || isnan(limit_ns))
			continue;
		apart = INFINITY;
		for (unsigned i = 0; i < 2 && !err; i++) {
			err = look_from(near, (uint32_t)step, limit_ns,
					LOOK_STEPS, &l);
			apart = fmin(apart, nearest(&l));
		}
		if (apart > COARSE_STEPS) {
			if (counted)
				break;
			continue;
		}
		if (!err)
			err = count(near, (uint32_t)step, limit_ns, &seen);
		if (seen.surfaces > islands->surfaces) {
			islands->surfaces = seen.surfaces;
			islands->sweep = seen.sweep;
		}
		/* Two may be those where sweeps turn, and others further. */
		if (islands->surfaces > 2 || counted)
			break;
		counted = islands->surfaces == 2;
	}
	return err;
}
