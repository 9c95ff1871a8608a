/*
 * near.c - tries at one moment, instead of looking for it (reach.h).
 *
 * Not always at the same tracks, nor always the same way: a cache would know
 * them.  What is late or from a cache does not count.
 */
#include "extract/surface/near.h"

#include <math.h>

#define LEAST_TRIES 16u
#define RULER_TRIES 20u
#define REPEATS 4u
#define MOST_DOUBT 0.35
#define USABLE_SECTORS 16u
/* Answers that must be ahead, and tries for them. */
#define AHEAD 2
#define ASK_TRIES 14u
#define GLANCE_TRIES 5u
#define PICKS 8u

bool near_late(const struct near *n)
{
	return n->until_ns && env_now_ns(n->prober->env) > n->until_ns;
}

static uint64_t below(const struct near *n, uint64_t most)
{
	return env_random(n->prober->env) % most;
}

/* A known track no further from one than that. */
static bool pick(const struct near *n, uint64_t at, uint32_t stray,
		 struct geom_track *t)
{
	uint64_t all = geom_tracks(n->geom);

	for (unsigned i = 0; i < PICKS; i++) {
		uint64_t k = at + below(n, 2 * (uint64_t)stray + 1) - stray;

		if (k >= all)
			continue;
		geom_track_at(n->geom, k, t);
		if (t->known && t->sectors >= USABLE_SECTORS)
			return true;
	}
	return false;
}

static int measure_least(struct near *n)
{
	uint64_t all = geom_tracks(n->geom);
	struct geom_track t;
	struct reach r;
	int err = 0;

	reach_init(&r, 0, 0.75 * n->clock.period_ns);
	for (unsigned i = 0; !err && r.n < LEAST_TRIES &&
	     i < REPEATS * LEAST_TRIES; i++) {
		if (pick(n, below(n, all), 0, &t))
			err = reach_try(&r, n->prober, &n->clock, n->geom, &t,
					&t, false);
	}
	n->least_ns = r.n == LEAST_TRIES && reach_doubt(&r) <= MOST_DOUBT ?
			      reach_estimate(&r) : 0;
	return err;
}

int near_begin(struct near *near, struct prober *prober,
	       const struct geom *geom, double period_ns, uint64_t most_ns)
{
	*near = (struct near){
		.prober = prober, .geom = geom,
		.clock = { .period_ns = period_ns, .strict = true },
		.until_ns = most_ns ? env_now_ns(prober->env) + most_ns : 0,
	};
	return measure_least(near);
}

/* Somewhere in a piece that is longer, if there are any. */
static uint64_t place_for(const struct near *n, const struct pieces *p,
			  uint32_t tracks)
{
	uint64_t all = geom_tracks(n->geom) - tracks;

	for (unsigned i = 0; p->n && i < 4 * PICKS; i++) {
		const struct piece *v = &p->v[below(n, p->n)];

		if (v->tracks > tracks + tracks / 4)
			return v->track + below(n, v->tracks - tracks);
	}
	return below(n, all);
}

int near_ruler(struct near *near, const struct pieces *pieces, uint32_t tracks,
	       double *ns)
{
	struct geom_track a, b;
	struct reach r;
	int err = 0;

	*ns = NAN;
	if (tracks >= geom_tracks(near->geom))
		return 0;
	reach_init(&r, near->least_ns, near->least_ns +
				       0.9 * near->clock.period_ns);
	for (unsigned i = 0; !err && r.n < RULER_TRIES &&
	     i < REPEATS * RULER_TRIES; i++) {
		uint64_t at = place_for(near, pieces, tracks);

		if (pick(near, at, 0, &a) && pick(near, at + tracks, 0, &b))
			err = reach_try(&r, near->prober, &near->clock,
					near->geom, i % 2 ? &a : &b,
					i % 2 ? &b : &a, false);
	}
	if (r.n == RULER_TRIES && reach_doubt(&r) <= MOST_DOUBT)
		*ns = reach_estimate(&r);
	return err;
}

int near_ruled(struct near *near, const struct pieces *pieces, uint32_t tracks,
	       double *ns)
{
	unsigned k = (unsigned)(2 * log2(tracks) + 0.5);
	int err = 0;

	if (near->ruled_ns[k] == 0)
		err = near_ruler(near, pieces,
				 (uint32_t)(pow(2, k / 2.0) + 0.5),
				 &near->ruled_ns[k]);
	*ns = near->ruled_ns[k];
	return err;
}

/* One try; *answer is 0 when it does not count. */
static int try_once(struct near *n, uint64_t a, uint64_t b, uint32_t stray,
		    double ns, int *answer)
{
	struct geom_track from, to;
	struct reach r;
	int err;

	*answer = 0;
	if (!pick(n, a, stray, &from) || !pick(n, b, stray, &to) ||
	    from.index == to.index)
		return 0;
	reach_init(&r, n->least_ns, 2 * ns - n->least_ns);
	err = below(n, 2) ?
		reach_try(&r, n->prober, &n->clock, n->geom, &from, &to,
			  false) :
		reach_try(&r, n->prober, &n->clock, n->geom, &to, &from,
			  false);
	if (!err && r.n)
		*answer = r.tries[0].missed ? -1 : 1;
	return err;
}

int near_ask(struct near *near, uint64_t a, uint64_t b, uint32_t stray,
	     double ns, bool sure, int *answer)
{
	unsigned tries = sure ? ASK_TRIES : GLANCE_TRIES;
	int ahead = 0, one, err = 0;

	for (unsigned i = 0; i < tries && !err; i++) {
		err = try_once(near, a, b, stray, ns, &one);
		ahead += one;
		if (ahead >= (sure ? AHEAD : 1) || -ahead >= (sure ? AHEAD : 1))
			break;
	}
	*answer = ahead > 0 ? 1 : ahead < 0 ? -1 : 0;
	return err;
}
