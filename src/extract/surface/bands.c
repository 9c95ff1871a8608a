/*
 * bands.c - from band to band by what explains most of what shows.
 *
 * Where a band begins is known, where it ends is tried at each mark that may be
 * its end: sweeps are all of one length then, and other marks must lie where
 * they begin.  A band at the end of a zone is shorter than others.  Seeks
 * decide afterwards: what lies in one cylinder must be near, what does not must
 * not.
 */
#include "extract/surface/bands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/sort.h"
#include "extract/surface/place.h"

/* Tracks that may be missing of a sweep: slipped as a whole, spares; and of
 * short ones, this part. */
#define LACKING 5.0
#define LACKING_PART 6.0
#define EACH_LEAST 4.0
/* Ends that are tried, and sweeps longer than they ought to be. */
#define MARKS_AHEAD 20u
#define LONGER 2.6
/* What it counts for that a mark ends it; against it, that it is not quite
 * there, that another size or another skew is not explained, or no mark
 * there. */
#define WORTH_END 1.5
#define WORTH_EXACT 0.5
#define STRANGE_SIZE 2.0
#define STRANGE_SKEW 0.7
#define MISSING 0.5
#define ALIKE 1.6
/* Doubts that are enough, if most were right. */
#define ASKED_LEAST 8u
#define ASKED_MOST 24u
#define SHORT 9.0
#define TURN_TRIES 400u
#define GROUP_LEAST 8u
/* Of all tracks, those in bands that are clear. */
#define CLEAR 0.8
/* Parts of a sweep that are near, and that do not matter. */
#define REACH 6
#define EDGE_REACH 3
#define STRAY 40
#define PICKS 64u
#define CHOOSE_PAIRS 8u
/* Of all that was asked, what agreed. */
#define ALL_LEAST 0.88

struct axis {
	uint64_t track;
	double at;
	bool mark, sized;	/* a piece begins; its tracks are of another
				 * size */
};

/* ---- Places ---- */

static int add_axis(struct bands *b, size_t *room, const struct axis *a)
{
	int err = array_grow(&b->axis, room, b->axis_n, sizeof(*b->axis));

	if (!err)
		b->axis[b->axis_n++] = *a;
	return err;
}

/* Where pieces begin, and what is unknown begins and ends. */
static int make_axis(struct bands *b, const struct pieces *p,
		     struct near *near)
{
	uint64_t n = geom_tracks(near->geom);
	struct geom_track t, last = { .known = true, .sectors = 1 };
	struct axis a = { 0 };
	size_t room = 0, k = 0;
	double size = 0;
	int err = 0;

	for (uint64_t i = 0; i < n && !err; i++) {
		prober_pause(near->prober, i);
		geom_track_at(near->geom, i, &t);
		a.track = i;
		a.mark = k < p->n && p->v[k].track == i;
		a.sized = a.mark && p->v[k].sized;
		k += a.mark;
		if (!i || a.mark || t.known != last.known)
			err = add_axis(b, &room, &a);
		size = t.known ? t.sectors : size;
		a.at += t.known || size <= 0 ? 1 : t.sectors / size;
		last = t;
	}
	a.track = n;
	a.mark = a.sized = true;
	return err ? err : add_axis(b, &room, &a);
}

static uint64_t track_at(const struct bands *b, double at)
{
	size_t lo = 0, hi = b->axis_n - 1, mid;
	const struct axis *a;

	while (lo + 1 < hi) {
		mid = lo + (hi - lo) / 2;
		if (b->axis[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	a = &b->axis[lo];
	if (!(a[1].at > a->at) || at <= a->at)
		return a->track;
	at = fmin((at - a->at) / (a[1].at - a->at), 1);
	return a->track + (uint64_t)(at * (double)(a[1].track - a->track));
}

/* ---- Cutting ---- */

struct cutting {
	struct bands *bands;
	struct near *near;
	const struct pieces *pieces;
	const struct bands_guess *guess;
	size_t from;		/* on the axis, behind the band's beginning */
	double at, last;	/* sweeps of the last clear band */
	size_t room;
	unsigned asked, failed;
};

static double lacking(double each)
{
	return fmin(LACKING, 1 + each / LACKING_PART);
}

/* How well sweeps of that length explain the marks up to their end. */
static double score(const struct cutting *c, double each)
{
	const struct bands *b = c->bands;
	double may = lacking(each), end = c->at + each * b->surfaces;
	double last = 0, k, explained = 0, strange = 0, ends = 0, off, sum = 0;

	for (size_t i = c->from; i < b->axis_n; i++) {
		const struct axis *a = &b->axis[i];

		if (!a->mark || a->at <= c->at + may)
			continue;
		if (a->at > end + may)
			break;
		k = floor((a->at - c->at) / each + 0.5);
		off = fabs(a->at - c->at - k * each);
		if (a->at >= end - may) {
			ends = WORTH_END - WORTH_EXACT * off / may;
			continue;
		}
		if (!c->guess->inside || (a->sized && !c->pieces->uneven) ||
		    off > may) {
			strange += a->sized ? STRANGE_SIZE : STRANGE_SKEW;
		} else if (k > last) {
			explained++;
			sum += off;
		}
		last = k;
	}
	strange += WORTH_EXACT * sum / may;
	if (c->guess->inside)
		strange += MISSING * (b->surfaces - 1 - explained);
	return explained - strange + ends;
}

/* The mark nearest to where a band ought to end. */
static double snap(const struct cutting *c, double end, double may)
{
	double best = end, off = may;

	for (size_t i = c->from; i < c->bands->axis_n; i++) {
		const struct axis *a = &c->bands->axis[i];

		if (a->at > end + may)
			break;
		if (a->mark && fabs(a->at - end) <= off) {
			off = fabs(a->at - end);
			best = a->at;
		}
	}
	return best;
}

static void try_each(const struct cutting *c, double each, double *best,
		     double *best_each)
{
	double s = score(c, each);

	if (s > *best) {
		*best = s;
		*best_each = each;
	}
}

/* How long sweeps are from here on, and how well that goes: as long as they
 * were, or some of them end at one of the next marks. */
static double find_each(const struct cutting *c, double longest, double *each)
{
	const struct bands *b = c->bands;
	double best = -INFINITY, n, end = b->axis[b->axis_n - 1].at;
	unsigned marks = 0;

	*each = 0;
	if (c->last > 0 && c->at + c->last * b->surfaces <= end + LACKING)
		try_each(c, c->last, &best, each);
	for (size_t i = c->from; i < b->axis_n && marks < MARKS_AHEAD; i++) {
		if (!b->axis[i].mark)
			continue;
		marks++;
		for (uint32_t k = 1; k <= b->surfaces; k++) {
			n = (b->axis[i].at - c->at) / k;
			if (n < EACH_LEAST)
				break;
			if (n <= longest &&
			    c->at + n * b->surfaces <= end + LACKING)
				try_each(c, n, &best, each);
		}
	}
	return best;
}

/* Are two sweeps of one length, so many further on, of one band? */
static int same_band(struct cutting *c, const struct band *band, uint32_t by,
		     int *yes)
{
	double part = 0.15 + 0.7 * (double)(env_random(c->near->prober->env) %
					    1000) / 1000;
	double to = c->guess->turns && by % 2 ? 1 - part : part, limit_ns;
	uint32_t reach = (uint32_t)(band->each / REACH);
	int err = near_ruled(c->near, c->pieces, reach ? reach : 1, &limit_ns);

	*yes = 0;
	if (err || isnan(limit_ns))
		return err;
	return near_ask(c->near,
			track_at(c->bands, band->at + band->each * part),
			track_at(c->bands, band->at + band->each * (by + to)),
			(uint32_t)(band->each / STRAY), limit_ns, true, yes);
}

/* Does a band begin where one is believed to?  If not, so many sweeps further
 * on another one does. */
static int find_begin(struct cutting *c, const struct band *band,
		      uint32_t *off)
{
	uint32_t lo = 0, hi = c->bands->surfaces - 1, mid;
	int yes, err = same_band(c, band, hi, &yes);

	*off = 0;
	c->asked++;
	if (err || yes >= 0)
		return err;
	c->failed++;
	while (hi - lo > 1 && !err) {
		mid = lo + (hi - lo) / 2;
		err = same_band(c, band, mid, &yes);
		*(yes > 0 ? &lo : &hi) = mid;
	}
	*off = hi;
	return err;
}

static int add_band(struct cutting *c, const struct band *band)
{
	struct bands *b = c->bands;
	int err = array_grow(&b->v, &c->room, b->n, sizeof(*b->v));
	struct band *last = b->v + b->n;

	if (err)
		return err;
	*last = *band;
	if (b->n++)
		last->cylinder = last[-1].cylinder +
				 (uint32_t)ceil(last[-1].each);
	return 0;
}

/* Is it like the one before, that was right? */
static bool goes_on(const struct bands *b, double each)
{
	return b->n && b->v[b->n - 1].clear &&
	       fabs(b->v[b->n - 1].each - each) <= ALIKE;
}

static int cut_one(struct cutting *c, double longest)
{
	struct bands *b = c->bands;
	struct band band = { .at = c->at };
	double best = find_each(c, longest, &band.each);
	uint32_t off = 0;
	int err = 0;

	if (band.each <= 0)
		band.each = (b->axis[b->axis_n - 1].at - c->at) / b->surfaces;
	band.clear = best > 0;
	/* Of short ones seeks tell little; what follows will show. */
	if (band.clear && !goes_on(b, band.each) &&
	    band.each > fmax(SHORT, c->last / 4))
		err = find_begin(c, &band, &off);
	if (band.clear && !off && band.each > SHORT)
		c->last = band.each;
	if (off) {
		/* Those before are what is left of another one. */
		c->at = snap(c, c->at + band.each * off, lacking(band.each));
		band.each *= (double)off / b->surfaces;
		band.clear = false;
	} else {
		c->at = snap(c, c->at + band.each * b->surfaces,
			     lacking(band.each));
	}
	return err ? err : add_band(c, &band);
}

/* Wherever it is asked, it is wrong. */
static bool is_vain(const struct cutting *c)
{
	return (c->asked >= ASKED_LEAST && c->failed == c->asked) ||
	       (c->asked > ASKED_MOST && c->failed * 4 > c->asked * 3);
}

static int cut_all(struct cutting *c, double longest)
{
	struct bands *b = c->bands;
	double end = b->axis[b->axis_n - 1].at;
	int err = 0;

	while (!err && c->at + EACH_LEAST * b->surfaces < end) {
		while (c->from < b->axis_n &&
		       b->axis[c->from].at <= c->at + 0.5)
			c->from++;
		err = cut_one(c, longest);
		if (near_late(c->near) || is_vain(c))
			break;
	}
	return err;
}

/* Of most tracks. */
static int find_usual(struct bands *b)
{
	double *v = calloc(b->n + 1, sizeof(*v)), all = 0, sum = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++) {
		v[i] = b->v[i].each;
		all += v[i];
	}
	qsort(v, b->n, sizeof(*v), sort_double_cmp);
	for (size_t i = 0; i < b->n && sum < all / 2; i++) {
		b->usual = v[i];
		sum += v[i];
	}
	free(v);
	return 0;
}

int bands_cut(struct near *near, const struct pieces *pieces,
	      const struct bands_guess *guess, struct bands *bands)
{
	struct cutting c = {
		.bands = bands, .near = near, .pieces = pieces,
		.guess = guess,
	};
	int err;

	*bands = (struct bands){
		.surfaces = guess->surfaces,
		.way = guess->turns ? BANDS_TURNS_IN : BANDS_IN,
	};
	err = make_axis(bands, pieces, near);
	if (!err)
		err = cut_all(&c, guess->sweep > 0 ? guess->sweep * LONGER :
						     INFINITY);
	return err ? err : find_usual(bands);
}

/* Near a sweep's beginning, the other one's beginning or end. */
static int turn_try(struct near *near, const struct pieces *p, size_t i,
		    bool turns, int *yes)
{
	uint32_t n = p->v[i].tracks, reach = n / REACH;
	double limit_ns;
	int err = near_ruled(near, p, reach ? reach : 1, &limit_ns);
	uint64_t a = p->v[i].track + n / 6;

	*yes = 0;
	if (err || isnan(limit_ns))
		return err;
	return near_ask(near, a, turns ? a + 2 * (n - n / 6) : a + n,
			n / (uint32_t)STRAY, limit_ns, true, yes);
}

int bands_turn(struct near *near, const struct pieces *pieces, int *votes)
{
	int back, same, err = 0;
	size_t i;

	*votes = 0;
	for (unsigned tries = 0; tries < TURN_TRIES && !err; tries++) {
		i = env_random(near->prober->env) % pieces->n;
		if (i + 1 == pieces->n || pieces->v[i].tracks < GROUP_LEAST ||
		    pieces->v[i].tracks != pieces->v[i + 1].tracks)
			continue;
		err = turn_try(near, pieces, i, true, &back);
		if (!err)
			err = turn_try(near, pieces, i, false, &same);
		*votes += (back > 0) - (same > 0);
		if (abs(*votes) >= BANDS_VOTES)
			break;
	}
	return err;
}

void bands_fini(struct bands *bands)
{
	free(bands->v);
	free(bands->axis);
	*bands = (struct bands){ 0 };
}

/* ---- Placing ---- */

static bool runs_in(enum bands_way way, uint32_t sweep)
{
	switch (way) {
	case BANDS_IN:
		return true;
	case BANDS_OUT:
		return false;
	case BANDS_TURNS_IN:
		return sweep % 2 == 0;
	default:
		return sweep % 2;
	}
}

int bands_place(const struct bands *bands, struct near *near,
		struct geom **out)
{
	const struct geom *geom = near->geom;
	struct geom_build *b = place_begin(geom);
	int err = b && bands->n ? 0 : -ENOMEM;
	const struct band *v = bands->v;
	size_t i = 0, k = 0;
	struct geom_track t;

	for (uint64_t n = 0; n < geom_tracks(geom) && !err; n++) {
		const struct axis *a;
		uint32_t sweep;
		double at;

		prober_pause(near->prober, n);
		while (k + 2 < bands->axis_n && bands->axis[k + 1].track <= n)
			k++;
		a = &bands->axis[k];
		at = a->at + (double)(n - a->track) * (a[1].at - a->at) /
				     (double)(a[1].track - a->track);
		while (i + 1 < bands->n && v[i + 1].at <= at)
			i++;
		at = (at - v[i].at) / v[i].each;
		sweep = (uint32_t)fmin(at, bands->surfaces - 1);
		at = fmin(at - sweep, 1) * (v[i].each - 1);
		if (!runs_in(bands->way, sweep))
			at = v[i].each - 1 - at;
		geom_track_at(geom, n, &t);
		err = place_track(b, &t, sweep, v[i].cylinder + llrint(at));
	}
	return place_end(b, err, near->prober, out);
}

/* ---- Proof ---- */

/* Pairs that are asked for. */
enum pair {
	PAIR_SAME,		/* one cylinder, two sweeps of a band */
	PAIR_INSIDE,		/* one band, cylinders that are far apart */
	PAIR_NEXT,		/* the same place of the next band, or the
				 * place opposite */
	PAIR_EDGE,		/* where two bands meet */
	PAIRS
};

struct proof {
	struct bands *bands;
	struct near *near;
	double limit_ns, edge_ns;
	uint32_t stray;
};

static uint64_t below(const struct proof *p, uint64_t n)
{
	return env_random(p->near->prober->env) % n;
}

/* From lo to hi. */
static double between(const struct proof *p, double lo, double hi)
{
	return lo + (hi - lo) * (double)below(p, 1000) / 1000;
}

static uint64_t track_of(const struct proof *p, const struct band *band,
			 uint32_t sweep, double part)
{
	if (!runs_in(p->bands->way, sweep))
		part = 1 - part;
	return track_at(p->bands, band->at + band->each * sweep +
				  (band->each - 1) * part);
}

/* A band that is as long as most, and the next one; where there are none side
 * by side it can't be proven. */
static const struct band *pick(const struct proof *p)
{
	const struct bands *b = p->bands;

	for (unsigned i = 0; i < PICKS && b->n > 1; i++) {
		const struct band *v = &b->v[below(p, b->n - 1)];

		if (v->clear && v[1].clear && v->each > b->usual / 2 &&
		    v[1].each > b->usual / 2)
			return v;
	}
	return NULL;
}

/* 1: as it must be, -1: not, 0: can't be told. */
static int ask(struct proof *p, enum pair pair, int *answer)
{
	const struct band *v = pick(p);
	uint32_t n = p->bands->surfaces, a = (uint32_t)below(p, n), c;
	double at = between(p, 0.08, 0.92), to = at;
	int err;

	*answer = 0;
	if (!v)
		return 0;
	c = (a + 1 + (uint32_t)below(p, n - 1)) % n;
	if (pair == PAIR_EDGE) {
		at = between(p, 0.97, 1);
		to = between(p, 0, 0.03);
	} else if (pair == PAIR_INSIDE) {
		at = between(p, 0.05, 0.2);
		to = between(p, 0.8, 0.95);
	} else if (pair == PAIR_NEXT && below(p, 2)) {
		/* As if it were the next sweep of one band. */
		at = between(p, 0.08, 0.6);
		to = 1 - at;
	}
	err = near_ask(p->near, track_of(p, v, a, at),
		       track_of(p, v + (pair > PAIR_INSIDE), c, to), p->stray,
		       pair == PAIR_EDGE ? p->edge_ns : p->limit_ns, true,
		       answer);
	if (pair == PAIR_INSIDE || pair == PAIR_NEXT)
		*answer = -*answer;
	return err;
}

/* How much more often than not. */
static int vote(struct proof *p, enum pair pair, unsigned n, int *sum)
{
	int one, err = 0;

	*sum = 0;
	for (unsigned i = 0; i < n && !err; i++) {
		err = ask(p, pair, &one);
		*sum += one;
	}
	return err;
}

/* Do the first sweeps run inwards or outwards? */
static int choose_way(struct proof *p)
{
	enum bands_way in = p->bands->way;
	int inwards, outwards = 0, err = vote(p, PAIR_EDGE, CHOOSE_PAIRS,
					      &inwards);

	p->bands->way = in + 1;
	if (!err)
		err = vote(p, PAIR_EDGE, CHOOSE_PAIRS, &outwards);
	if (inwards >= outwards)
		p->bands->way = in;
	return err;
}

/* Enough of each kind, agreeing less not?  Where bands meet angles are known
 * worse, and which way sweeps run has been decided. */
static int ask_all(struct proof *p, double *share)
{
	static const unsigned tries[PAIRS] = {
		[PAIR_SAME] = 24, [PAIR_INSIDE] = 16, [PAIR_NEXT] = 24,
		[PAIR_EDGE] = 12,
	};
	static const double least[PAIRS] = {
		[PAIR_SAME] = 0.55, [PAIR_INSIDE] = 0.55, [PAIR_NEXT] = 0.55,
		[PAIR_EDGE] = 0,
	};
	double sum = 0, all = 0;
	int yes, err = 0;

	*share = 0;
	for (unsigned i = 0; i < PAIRS && !err; i++) {
		err = vote(p, i, tries[i], &yes);
		if (err || (double)yes < least[i] * tries[i])
			return err;
		sum += tries[i] + yes;
		all += 2 * tries[i];
	}
	*share = !err && sum >= ALL_LEAST * all ? sum / all : 0;
	return err;
}

static double clear_share(const struct bands *b)
{
	double sum = 0;

	for (size_t i = 0; i < b->n; i++)
		sum += b->v[i].clear ? b->v[i].each * b->surfaces : 0;
	return sum / b->axis[b->axis_n - 1].at;
}

int bands_prove(struct bands *bands, struct near *near,
		const struct pieces *pieces, double *share)
{
	struct proof p = {
		.bands = bands, .near = near,
		.stray = (uint32_t)(bands->usual / STRAY),
	};
	uint32_t reach = (uint32_t)(bands->usual / REACH);
	int err;

	*share = 0;
	if (!bands->n || clear_share(bands) < CLEAR)
		return 0;
	err = near_ruled(near, pieces, reach ? reach : 1, &p.limit_ns);
	if (!err)
		err = near_ruled(near, pieces,
				 (uint32_t)(bands->usual / EDGE_REACH),
				 &p.edge_ns);
	if (err || isnan(p.limit_ns) || isnan(p.edge_ns))
		return err;
	err = choose_way(&p);
	return err ? err : ask_all(&p, share);
}
