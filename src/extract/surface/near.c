/*
 * near.c - tries at one moment, instead of looking for it (reach.h).
 *
 * Not always at the same tracks, nor always the same way: a cache would know
 * them.  What is late or from a cache does not count.
 */
#include "extract/surface/near.h"

#include <math.h>
#include <stdlib.h>

#define LIMIT_TRIES 20u
#define REPEATS 4u
#define MOST_DOUBT 0.35
#define USABLE_SECTORS 16u
/* Answers that must be ahead, and tries for them. */
#define AHEAD 2
#define ASK_TRIES 14u
#define PICKS 8u
/* Of the time that is asked about: less than half as much of it is a cache. */
#define FROM 0.25

void near_begin(struct near *near, struct prober *prober,
		const struct geom *geom, double period_ns, uint64_t most_ns)
{
	*near = (struct near){
		.prober = prober, .geom = geom,
		.clock = { .period_ns = period_ns, .strict = true },
		.until_ns = most_ns ? env_now_ns(prober->env) + most_ns : 0,
	};
}

bool near_late(const struct near *n)
{
	return n->until_ns && env_now_ns(n->prober->env) > n->until_ns;
}

uint64_t near_below(const struct near *n, uint64_t most)
{
	return env_random(n->prober->env) % most;
}

/* A known track no further from one than that. */
static bool pick(const struct near *n, uint64_t at, uint32_t stray,
		 struct geom_track *t)
{
	uint64_t all = geom_tracks(n->geom);

	for (unsigned i = 0; i < PICKS; i++) {
		uint64_t k = at + near_below(n, 2 * (uint64_t)stray + 1) -
			     stray;

		if (k >= all)
			continue;
		geom_track_at(n->geom, k, t);
		if (t->known && t->sectors >= USABLE_SECTORS)
			return true;
	}
	return false;
}

/* One way or the other; nothing is added where no tracks are known. */
static int try_once(struct near *n, uint64_t a, uint64_t b, uint32_t stray,
		    struct reach *r)
{
	struct geom_track from, to;
	bool back = near_below(n, 2);

	if (!pick(n, a, stray, &from) || !pick(n, b, stray, &to) ||
	    from.index == to.index)
		return 0;
	return reach_try(r, n->prober, &n->clock, n->geom, back ? &to : &from,
			 back ? &from : &to, false);
}

int near_limit(struct near *near, uint32_t tracks,
	       uint64_t (*place)(void *arg, uint32_t tracks), void *arg,
	       double *ns)
{
	unsigned k = (unsigned)(2 * log2(tracks) + 0.5);
	struct reach r;
	int err = 0;

	*ns = near->limit_ns[k];
	if (*ns != 0)
		return 0;
	tracks = (uint32_t)(pow(2, k / 2.0) + 0.5);
	reach_init(&r, 0, 0.9 * near->clock.period_ns);
	for (unsigned i = 0; !err && r.n < LIMIT_TRIES &&
	     i < REPEATS * LIMIT_TRIES; i++) {
		uint64_t at = place(arg, tracks);

		err = try_once(near, at, at + tracks, 0, &r);
	}
	if (err)
		return err;
	*ns = r.n == LIMIT_TRIES && reach_doubt(&r) <= MOST_DOUBT ?
		      reach_estimate(&r) : NAN;
	near->limit_ns[k] = *ns;
	return 0;
}

int near_ask(struct near *near, uint64_t a, uint64_t b, uint32_t stray,
	     double ns, int *answer)
{
	int ahead = 0, err = 0;
	struct reach r;

	for (unsigned i = 0; i < ASK_TRIES && !err && abs(ahead) < AHEAD; i++) {
		reach_init(&r, FROM * ns, (2 - FROM) * ns);
		err = try_once(near, a, b, stray, &r);
		if (!err && r.n)
			ahead += r.tries[0].missed ? -1 : 1;
	}
	*answer = ahead > 0 ? 1 : ahead < 0 ? -1 : 0;
	return err;
}
