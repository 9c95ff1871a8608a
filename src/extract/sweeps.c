/*
 * sweeps.c - pairs of tracks, and whether they are near.
 *
 * How long it takes from one track to another is reach.h's matter.  Two tracks
 * of one cylinder take a head switch, those of two sweeps that are not of one
 * group as much as a group's cylinders.  Times are compared with times from the
 * same pieces, never with what drives mostly need.
 */
#include "extract/sweeps.h"

#include <errno.h>
#include <math.h>

#include "extract/reach.h"

#define SURFACES_MOST 24u
#define TRIES 14u
#define FEW_TRIES 5u
#define REPEATS 4u
#define LEAST_TRIES 16u
#define STRAYING 16u
#define AGAIN 20u
#define PARTS 4u
#define MOST_DOUBT 0.35
/* Shorter sweeps are no way for a head. */
#define SWEEP_LEAST 24u
/* A piece is not looked into unless its sweeps are so long. */
#define PIECES_MOST 5u
#define AGREE_LEAST 2u
/* So much apart are near and far, at least; by that part of it two that are
 * near. */
#define APART_NS 220000.0
#define ALIKE 0.35
/* Sweeps in a row that are looked at, and ends of groups among them. */
#define ROW_MOST 100u
#define ENDS_MOST 4u
#define ENDS_LEAST 2u
#define PAIR_TRIES 5u
#define ALONE 10u

struct sweeping {
	struct prober *prober;
	const struct geom *geom;
	const struct pieces *pieces;
	struct reach_clock clock;
	double least_ns;	/* between any two tracks */
	uint64_t until_ns;
};

enum way {
	WAY_SAME,		/* the second sweep runs like the first */
	WAY_BACK,		/* against it */
	WAY_EITHER,
};

/* Pairs of tracks of a piece, or of two: where they lie. */
struct pairs {
	uint64_t first, second;	/* where two sweeps begin ... */
	uint32_t each;		/* ... of so many tracks */
	double from, to;	/* parts of a sweep */
	enum way way;
	uint32_t step, steps;	/* the same for sweeps further on */
};

static bool late(const struct sweeping *w)
{
	return w->until_ns && env_now_ns(w->prober->env) > w->until_ns;
}

static bool usable(const struct geom_track *t)
{
	return t->known && t->sectors >= 64;
}

/* One try; not always at the same tracks: a cache would know them. */
static int try_pair(struct sweeping *w, const struct pairs *p, unsigned i,
		    struct reach *r)
{
	uint64_t on = (uint64_t)(i % p->steps) * p->step;
	uint64_t n = geom_tracks(w->geom);
	int64_t stray = (int64_t)(env_random(w->prober->env) %
				  (p->each / STRAYING + 1));
	bool back = p->way == WAY_BACK ||
		    (p->way == WAY_EITHER && i / 2 % 2);
	uint64_t a = p->first + on + (uint64_t)(p->from * p->each) +
		     (uint64_t)stray;
	uint64_t b = p->second + on + (uint64_t)(p->to * p->each) +
		     (uint64_t)(back ? -stray : stray);
	struct geom_track from, to;

	if (a >= n || b >= n)
		return 0;
	geom_track_at(w->geom, i % 2 ? b : a, &from);
	geom_track_at(w->geom, i % 2 ? a : b, &to);
	if (!usable(&from) || !usable(&to))
		return 0;
	return reach_try(r, w->prober, &w->clock, w->geom, &from, &to, false);
}

/* How long it takes between such tracks; *sure: they agree. */
static int measure(struct sweeping *w, const struct pairs *p, unsigned tries,
		   double *ns, bool *sure)
{
	struct reach r;
	int err = 0;

	reach_init(&r, w->least_ns, w->least_ns + 0.9 * w->clock.period_ns);
	for (unsigned i = 0; !err && r.n < tries && i < REPEATS * tries; i++)
		err = try_pair(w, p, i, &r);
	*ns = reach_estimate(&r);
	*sure = r.n == tries && reach_doubt(&r) <= MOST_DOUBT;
	return err;
}

/* What it takes at least: on one and the same track. */
static int measure_least(struct sweeping *w)
{
	struct geom_track t;
	struct reach r;
	int err = 0;

	reach_init(&r, 0, 0.75 * w->clock.period_ns);
	for (unsigned i = 0; !err && r.n < LEAST_TRIES &&
	     i < REPEATS * LEAST_TRIES; i++) {
		geom_track_at(w->geom, env_random(w->prober->env) %
					       geom_tracks(w->geom), &t);
		if (usable(&t))
			err = reach_try(&r, w->prober, &w->clock, w->geom, &t,
					&t, false);
	}
	w->least_ns = r.n == LEAST_TRIES && reach_doubt(&r) <= MOST_DOUBT ?
			      reach_estimate(&r) : 0;
	return err;
}

/* ---- Pieces that are all of a group ---- */

/* As long as in the middle, at another part of each sweep? */
static int is_near_at(struct sweeping *w, struct pairs p, double part,
		      double near_ns, double far_ns, bool *yes)
{
	double ns;
	int err;

	p.from = part;
	p.to = p.way == WAY_BACK ? 1 - part : part;
	err = measure(w, &p, TRIES, &ns, yes);
	*yes = *yes && fabs(ns - near_ns) < (far_ns - near_ns) * ALIKE;
	return err;
}

/* The middles of sweeps next to each other, that run so. */
static struct pairs middles(const struct piece *piece, uint32_t sweeps,
			    enum way way)
{
	uint32_t each = piece->tracks / sweeps;

	return (struct pairs){
		.first = piece->track, .second = piece->track + each,
		.each = each, .from = 0.5, .to = 0.5, .way = way,
		.step = each, .steps = sweeps - 1,
	};
}

/* Is there none among them that is far?  Then there are several groups. */
static int are_near(struct sweeping *w, const struct piece *piece,
		    uint32_t sweeps, enum way way, double middle_ns, bool *yes)
{
	struct pairs p = middles(piece, sweeps, way);
	uint32_t n = p.steps;
	double ns;
	bool sure;
	int err = 0;

	p.steps = 1;
	for (uint32_t i = 0; i < n && !err && *yes; i++) {
		err = measure(w, &p, PAIR_TRIES, &ns, &sure);
		*yes = sure && ns < middle_ns;
		p.first += p.each;
		p.second += p.each;
	}
	return err;
}

/* Does a piece fall into so many sweeps, running so? */
static int is_split(struct sweeping *w, const struct piece *piece,
		    uint32_t sweeps, enum way way, bool *yes)
{
	struct pairs near = middles(piece, sweeps, way), far = near;
	double near_ns, far_ns = 0;
	bool sure;
	int err;

	*yes = false;
	far.second = far.first;
	far.way = WAY_SAME;
	far.steps = sweeps;
	far.from = 0.2;
	far.to = 0.7;
	err = measure(w, &near, FEW_TRIES, &near_ns, &sure);
	if (!err)
		err = measure(w, &far, FEW_TRIES, &far_ns, &sure);
	if (err || far_ns - near_ns < APART_NS / 2)
		return err;
	err = measure(w, &near, TRIES + sweeps, &near_ns, &sure);
	if (err || !sure)
		return err;
	err = measure(w, &far, TRIES + sweeps, &far_ns, &sure);
	if (err || !sure || far_ns - near_ns < APART_NS)
		return err;
	err = is_near_at(w, near, 0.2, near_ns, far_ns, yes);
	if (!err && *yes)
		err = is_near_at(w, near, 0.35, near_ns, far_ns, yes);
	if (!err && *yes)
		err = are_near(w, piece, sweeps, way, (near_ns + far_ns) / 2,
			       yes);
	return err;
}

/* The most sweeps that a piece falls into: half as many may look the same, but
 * nothing else does. */
static int split(struct sweeping *w, const struct piece *piece,
		 uint32_t *sweeps)
{
	bool yes = false;
	int err = 0;

	*sweeps = 0;
	for (uint32_t n = SURFACES_MOST; n > 1 && !err && !late(w); n--) {
		if (piece->tracks / n < SWEEP_LEAST)
			continue;
		err = is_split(w, piece, n, WAY_BACK, &yes);
		if (!err && !yes)
			err = is_split(w, piece, n, WAY_SAME, &yes);
		if (yes && *sweeps % n) {
			*sweeps = 0;
			break;
		}
		if (yes && !*sweeps)
			*sweeps = n;
	}
	return err;
}

/* The i-th of some pieces of which there is most to be seen: those of the
 * group's length, all over the disk; or else the longest. */
static const struct piece *piece_at(const struct pieces *p, unsigned i,
				    const struct piece *last)
{
	const struct piece *best = NULL;
	size_t from = p->n * i / PIECES_MOST;

	if (p->group) {
		for (size_t k = from; k < p->n; k++)
			if (p->v[k].whole && p->v[k].tracks == p->group &&
			    (!last || p->v[k].track > last->track))
				return &p->v[k];
		return NULL;
	}
	for (size_t k = 0; k < p->n; k++) {
		const struct piece *v = &p->v[k];

		if (v->whole && (!best || v->tracks > best->tracks) &&
		    (!last || v->tracks < last->tracks ||
		     (v->tracks == last->tracks && v->track > last->track)))
			best = v;
	}
	return best;
}

static int count_bands(struct sweeping *w, uint32_t *surfaces)
{
	const struct piece *piece = NULL;
	unsigned votes = 0, others = 0, none = 0;
	uint32_t n;
	int err = 0;

	*surfaces = 0;
	for (unsigned i = 0; i < PIECES_MOST && !err && !late(w); i++) {
		piece = piece_at(w->pieces, i, piece);
		if (!piece || piece->tracks < 2 * SWEEP_LEAST)
			break;
		err = split(w, piece, &n);
		if (!n && ++none > 1 && !votes)
			break;
		if (n && !*surfaces)
			*surfaces = n;
		votes += n && n == *surfaces;
		others += n && n != *surfaces;
	}
	if (votes < AGREE_LEAST || others || none > votes)
		*surfaces = 0;
	return err;
}

/* ---- Pieces that are sweeps ---- */

/* Between two values, or clearly on one side? */
static int is_end(struct sweeping *w, const struct piece *a, double near_ns,
		  double far_ns, int *end)
{
	struct pairs p = {
		.first = a->track, .second = a[1].track, .each = a->tracks,
		.from = 0.5, .to = 0.5, .way = WAY_EITHER, .steps = 1,
	};
	double ns, middle = (near_ns + far_ns) / 2;
	double clear = (far_ns - near_ns) / 6;
	bool sure;
	int err = 0;

	*end = -1;
	for (unsigned i = 0; i < 3 && !err; i++) {
		err = measure(w, &p, PAIR_TRIES + 4 * i, &ns, &sure);
		if (sure && fabs(ns - middle) > clear) {
			*end = ns > middle;
			return err;
		}
	}
	return err;
}

/* Sweeps in a row: how many from one end of a group to the next?  `alone`: all
 * are ends. */
static int count_row(struct sweeping *w, size_t from, double near_ns,
		     double far_ns, uint32_t *surfaces, bool *alone)
{
	const struct pieces *p = w->pieces;
	unsigned ends = 0, looked = 0;
	size_t last = 0;
	int end = 0, err = 0;

	*surfaces = 0;
	for (size_t i = from; i + 1 < p->n && looked < ROW_MOST && !err &&
	     ends <= ENDS_MOST + (looked < ALONE ? ALONE : 0); i++, looked++) {
		if (!p->v[i].whole || p->v[i].tracks != p->group ||
		    p->v[i + 1].tracks != p->group || late(w))
			break;
		err = is_end(w, &p->v[i], near_ns, far_ns, &end);
		if (err || end < 0)
			break;
		if (!end)
			continue;
		if (ends++ && *surfaces && i - last != *surfaces) {
			*surfaces = 0;
			return err;
		}
		if (ends > 1)
			*surfaces = (uint32_t)(i - last);
		last = i;
	}
	*alone = ends == looked && looked >= ALONE;
	if (ends <= ENDS_LEAST || (*surfaces == 1 && !*alone))
		*surfaces = 0;
	return err;
}

/* Where as many sweeps as possible are in a row, from a place on. */
static size_t row_from(const struct pieces *p, size_t from)
{
	size_t best = p->n, most = 0, n = 0;

	for (size_t i = from; i < p->n && n < ROW_MOST; i++) {
		n = p->v[i].whole && p->v[i].tracks == p->group ? n + 1 : 0;
		if (n > most) {
			most = n;
			best = i + 1 - n;
		}
	}
	return best;
}

/* What a way within a sweep takes: to the next track, and along all of it; the
 * further the longer, or it is none. */
static int measure_sweep(struct sweeping *w, const struct piece *piece,
			 double *near_ns, double *far_ns, bool *good)
{
	struct pairs p = {
		.first = piece->track, .second = piece->track + 1,
		.each = piece->tracks, .from = 0.02, .to = 0.02, .steps = 1,
	};
	double last_ns;
	bool sure;
	int err = measure(w, &p, AGAIN, near_ns, &sure);

	*good = !err && sure;
	p.second = p.first;
	last_ns = *near_ns;
	for (unsigned i = 1; i <= PARTS && !err && *good; i++) {
		p.to = 0.02 + 0.96 * i / PARTS;
		p.way = i < PARTS ? WAY_SAME : WAY_BACK;
		err = measure(w, &p, AGAIN, far_ns, &sure);
		*good = sure && *far_ns > last_ns;
		last_ns = *far_ns;
	}
	*good = *good && *far_ns - *near_ns > 2 * APART_NS;
	return err;
}

static int count_sweeps(struct sweeping *w, uint32_t *surfaces)
{
	const struct pieces *p = w->pieces;
	double near_ns, far_ns;
	uint32_t n[2] = { 0 };
	bool good, alone[2];
	size_t at;
	int err = 0;

	*surfaces = 0;
	for (unsigned i = 0; i < 2 && !err; i++) {
		at = row_from(p, p->n * i / 2);
		if (at + 2 >= p->n)
			return 0;
		err = measure_sweep(w, &p->v[at], &near_ns, &far_ns, &good);
		if (err || !good)
			return err;
		err = count_row(w, at, near_ns, far_ns, &n[i], &alone[i]);
		if (!n[i])
			return err;
	}
	if (n[0] == n[1] && n[0] <= SURFACES_MOST)
		*surfaces = n[0];
	return err;
}

int sweeps_count(struct prober *prober, const struct geom *geom,
		 double period_ns, const struct pieces *pieces,
		 uint64_t most_ns, uint32_t *surfaces, enum pieces_are *are)
{
	struct sweeping w = {
		.prober = prober, .geom = geom, .pieces = pieces,
		.clock = { .period_ns = period_ns, .strict = true },
		.until_ns = most_ns ? env_now_ns(prober->env) + most_ns : 0,
	};
	int err;

	*surfaces = 0;
	*are = PIECES_BANDS;
	if (pieces->group && pieces->group < SWEEP_LEAST)
		return 0;
	err = measure_least(&w);
	if (!err && w.least_ns > 0 && !pieces->uneven)
		err = count_bands(&w, surfaces);
	if (err || *surfaces || !pieces->group || w.least_ns <= 0)
		return err;
	*are = PIECES_SWEEPS;
	return count_sweeps(&w, surfaces);
}
