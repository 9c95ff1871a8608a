/*
 * skews.c - a Kalman filter over the tracks, forwards and backwards.
 *
 * Its state is how late a track is and by how much each kind of step that was
 * met lately is off.  What it knows at a track from those before it and from
 * those behind it is put together by how sure each is.
 *
 * By how much the steps of a kind stray from each other is not known of a
 * drive: some answers are tried, and the one taken that makes the readings
 * likeliest.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/angle/skews.h"
#include "extract/probe/phase.h"

#define KINDS 48u		/* in the state */
#define KINDS_MOST 60000u
#define LOOK_BACK 64u
/* Steps that differ by more are of different kinds. */
#define SAME 0.006
/* What is known before: of an angle, of one behind something unknown, of the
 * step of a kind, and how much that may change from one to the next. */
#define ANGLE_SIGMA 0.05
#define GAP_SIGMA 0.02
#define KIND_SIGMA 0.001
#define KIND_WANDERS 1e-8
/* The same of a kind of which nothing is believed: it may be any angle. */
#define ANY_SIGMA 0.3
/* Where the kind changes, steps stray by so much more. */
#define CHANGE 4.0
#define DOUBT 4.0
/* Revolutions: nothing is known better. */
#define NOISE_LEAST 1e-6
/* What a reading that is not believed costs, as a logarithm. */
#define DOUBT_COST 6.0
/* Tracks from one that is read to the next, where nothing is believed; how
 * unsure the latter may be, of the noise; and how much its steps stray. */
#define SKIP_MOST 512u
#define UNSURE 1.0
#define SKIP_STRAYS 2e-5

struct kind {
	uint32_t before, after;		/* sectors around the two tracks */
	uint32_t from, to;		/* surfaces */
	int64_t cylinders;
	double step, tracks;		/* the mean of so many */
};

struct skews {
	struct prober *prober;	/* to pause; or NULL */
	uint64_t tracks;
	uint16_t *kind;		/* of the step to a track; 0: not known */
	float *excess;		/* of that over its kind's mean */
	bool *known;
	struct kind *kinds;
	unsigned kinds_n;
};

struct filter {
	const struct skews *skews;
	double x[KINDS + 1], c[KINDS + 1][KINDS + 1];
	unsigned kind[KINDS + 1];
	uint64_t used[KINDS + 1], now;
	unsigned n, last;	/* of the state; the kind met last */
	double strays;		/* of a step */
	double kind_sigma;	/* of a kind that is not in the state */
	bool backwards;
	double noise;
	double strange;		/* by how much the last reading was off that was
				 * not believed; 0: it was */
	double cost;		/* how unlikely the readings are */
};

/* ---- Kinds ---- */

static double turns(angle a)
{
	return (int32_t)a / 4294967296.0;
}

static unsigned kind_of(struct skews *s, const struct kind *k)
{
	unsigned i = s->kinds_n, to = i > LOOK_BACK ? i - LOOK_BACK : 0;
	struct kind *q;

	while (i-- > to) {
		q = &s->kinds[i];
		if (q->before == k->before && q->after == k->after &&
		    q->from == k->from && q->to == k->to &&
		    q->cylinders == k->cylinders &&
		    fabs(phase_wrap(q->step - k->step)) < SAME) {
			q->tracks++;
			q->step += phase_wrap(k->step - q->step) / q->tracks;
			return i + 1;
		}
	}
	if (s->kinds_n == KINDS_MOST)
		return 0;
	s->kinds[s->kinds_n] = *k;
	return ++s->kinds_n;
}

static void sort_out(struct skews *s, const struct geom *geom)
{
	struct geom_track t, before = { 0 };
	double base, base_before = 0;

	for (uint64_t i = 0; i < s->tracks; i++) {
		geom_track_at(geom, i, &t);
		base = turns(t.start);
		s->known[i] = t.known;
		if (i && t.known && before.known)
			s->kind[i] = (uint16_t)kind_of(s, &(struct kind){
				geom_around(&before), geom_around(&t),
				before.surface, t.surface,
				(int64_t)t.cylinder - before.cylinder,
				phase_wrap(base - base_before), 1 });
		s->excess[i] = (float)(base - base_before);
		before = t;
		base_before = base;
		prober_pause(s->prober, i);
	}
	for (uint64_t i = 0; i < s->tracks; i++) {
		double step = s->kind[i] ? s->kinds[s->kind[i] - 1].step :
					   s->excess[i];

		s->excess[i] = (float)phase_wrap(s->excess[i] - step);
	}
}

int skews_new(const struct geom *geom, struct prober *prober,
	      struct skews **skews)
{
	struct skews *s = calloc(1, sizeof(*s));
	uint64_t n = geom_tracks(geom);

	if (!s)
		return -ENOMEM;
	s->tracks = n;
	s->prober = prober;
	s->kind = calloc(n, sizeof(*s->kind));
	s->excess = calloc(n, sizeof(*s->excess));
	s->known = calloc(n, sizeof(*s->known));
	s->kinds = calloc(KINDS_MOST, sizeof(*s->kinds));
	if (!s->kind || !s->excess || !s->known || !s->kinds) {
		skews_free(s);
		return -ENOMEM;
	}
	sort_out(s, geom);
	*skews = s;
	return 0;
}

void skews_free(struct skews *skews)
{
	if (!skews)
		return;
	free(skews->kind);
	free(skews->excess);
	free(skews->known);
	free(skews->kinds);
	free(skews);
}

/* ---- The filter ---- */

static void filter_begin(struct filter *f)
{
	f->n = 1;
	f->x[0] = f->strange = f->cost = 0;
	f->c[0][0] = ANGLE_SIGMA * ANGLE_SIGMA;
	f->last = 0;
	f->now = 0;
}

/* A place for a kind: another one's, when there is none left. */
static unsigned filter_slot(struct filter *f, unsigned kind)
{
	unsigned slot = 0;

	if (f->last && f->kind[f->last] == kind)
		return f->last;
	for (unsigned i = 1; i < f->n; i++) {
		if (f->kind[i] == kind)
			return i;
		if (!slot || f->used[i] < f->used[slot])
			slot = i;
	}
	if (f->n <= KINDS)
		slot = f->n++;
	f->kind[slot] = kind;
	f->x[slot] = 0;
	for (unsigned i = 0; i < f->n; i++)
		f->c[slot][i] = f->c[i][slot] = 0;
	f->c[slot][slot] = f->kind_sigma * f->kind_sigma;
	return slot;
}

/* Over the step to track i, or back over it. */
static void filter_step(struct filter *f, uint64_t i)
{
	const struct skews *s = f->skews;
	double way = f->backwards ? -1 : 1, stray = f->strays;
	unsigned slot;

	if (!s->kind[i]) {
		f->c[0][0] += GAP_SIGMA * GAP_SIGMA;
		return;
	}
	slot = filter_slot(f, s->kind[i]);
	stray *= slot == f->last ? 1 : CHANGE;
	f->last = slot;
	f->used[slot] = ++f->now;
	f->x[0] += way * (f->x[slot] - s->excess[i]);
	f->c[0][0] += 2 * way * f->c[0][slot] + f->c[slot][slot] +
		      stray * stray;
	for (unsigned j = 1; j < f->n; j++) {
		f->c[0][j] += way * f->c[slot][j];
		f->c[j][0] = f->c[0][j];
	}
	f->c[slot][slot] += KIND_WANDERS * KIND_WANDERS;
}

static void filter_learn(struct filter *f, double off, double all)
{
	double v[KINDS + 1];

	for (unsigned i = 0; i < f->n; i++)
		v[i] = f->c[0][i];
	for (unsigned i = 0; i < f->n; i++) {
		f->x[i] += v[i] / all * off;
		for (unsigned j = 0; j < f->n; j++)
			f->c[i][j] -= v[i] * v[j] / all;
	}
}

/* What is far off is late, unless the next one says the same. */
static void filter_see(struct filter *f, double late)
{
	double noise = f->noise * f->noise, all = f->c[0][0] + noise;
	double off = phase_wrap(late - f->x[0]), before = f->strange;

	if (off * off > DOUBT * DOUBT * all) {
		f->cost += DOUBT_COST;
		f->strange = off;
		if (before == 0 || fabs(before - off) > DOUBT * f->noise)
			return;
		f->c[0][0] += off * off;
		all = f->c[0][0] + noise;
	} else {
		f->cost += (off * off / all + log(all)) / 2;
	}
	f->strange = 0;
	filter_learn(f, off, all);
}

/* The readings of a track, the next ones in its direction. */
static void filter_see_all(struct filter *f, const struct skews_read *read,
			   size_t n, size_t *k, uint64_t i)
{
	for (; *k < n; ++*k) {
		const struct skews_read *r = &read[f->backwards ?
						   n - 1 - *k : *k];

		if (r->track != i)
			break;
		filter_see(f, r->late);
	}
}

/* From one end to the other: late[], sigma[] take what it knows at each track,
 * forwards with its own readings, backwards without; or NULL. */
static void filter_run(struct filter *f, const struct skews_read *read,
		       size_t n, float *late, float *sigma)
{
	uint64_t tracks = f->skews->tracks;
	size_t k = 0;

	filter_begin(f);
	for (uint64_t step = 0; step < tracks; step++) {
		uint64_t i = f->backwards ? tracks - 1 - step : step;

		if (!f->backwards) {
			filter_step(f, i);
			filter_see_all(f, read, n, &k, i);
		}
		if (late) {
			late[i] = (float)f->x[0];
			sigma[i] = (float)hypot(sqrt(fmax(f->c[0][0], 0)),
						f->strange);
		}
		if (f->backwards) {
			filter_see_all(f, read, n, &k, i);
			filter_step(f, i);
		}
		prober_pause(f->skews->prober, step);
	}
}

/* The answer that suits the readings. */
static void filter_choose(struct filter *f, const struct skews_read *read,
			  size_t n)
{
	static const double strays[] = { 1e-6, 1e-5, 5e-5, 2e-4, 8e-4 };
	double best = INFINITY;
	struct filter try = *f;

	for (unsigned i = 0; i < sizeof(strays) / sizeof(*strays); i++) {
		try.strays = strays[i];
		filter_run(&try, read, n, NULL, NULL);
		if (try.cost >= best)
			continue;
		best = try.cost;
		f->strays = try.strays;
	}
}

static void join(float *late, float *sigma, double other, double other_sigma)
{
	double here = (double)*sigma * *sigma;
	double there = other_sigma * other_sigma;

	/* Both certain. */
	if (!(here + there > 0))
		return;
	*late += (float)(here / (here + there) * phase_wrap(other - *late));
	*sigma = (float)sqrt(here * there / (here + there));
}

int skews_smooth(const struct skews *skews, const struct skews_read *read,
		 size_t n, double noise, float *late, float *sigma)
{
	struct filter f = {
		.skews = skews, .noise = fmax(noise, NOISE_LEAST),
		.kind_sigma = KIND_SIGMA,
	};
	float *back = calloc(2 * skews->tracks, sizeof(*back));
	float *back_sigma = back ? back + skews->tracks : NULL;

	if (!back)
		return -ENOMEM;
	filter_choose(&f, read, n);
	filter_run(&f, read, n, late, sigma);
	f.backwards = true;
	filter_run(&f, read, n, back, back_sigma);
	for (uint64_t i = 0; i < skews->tracks; i++)
		join(&late[i], &sigma[i], back[i], back_sigma[i]);
	free(back);
	return 0;
}

/* ---- Where nothing is believed ---- */

struct skip {
	struct filter at, ahead;	/* at a track that was read; ahead */
	const struct skews_reader *reader;
	float *late;
};

static bool filter_has(const struct filter *f, unsigned kind)
{
	unsigned i = 1;

	while (i < f->n && f->kind[i] != kind)
		i++;
	return i < f->n;
}

/* Is it known where the track ahead is? */
static bool is_foretold(const struct filter *f)
{
	return f->c[0][0] < f->kind_sigma * f->kind_sigma / 4;
}

/* To the last of at most so many tracks that is sure enough to be told from
 * one that is skewed otherwise; the next one, whatever it is. */
static uint64_t skip_ahead(struct skip *k, uint64_t from, uint64_t most)
{
	const struct skews *s = k->at.skews;
	double limit = UNSURE * k->at.noise;
	struct filter *f = &k->ahead;
	uint64_t i = from;

	*f = k->at;
	while (i < from + most && i + 1 < s->tracks && s->kind[i + 1]) {
		if (i > from && (!filter_has(f, s->kind[i + 1]) ||
				 f->c[0][0] > limit * limit))
			break;
		filter_step(f, ++i);
		f->x[0] = phase_part(f->x[0]);
		k->late[i] = (float)f->x[0];
	}
	return i;
}

/* Takes what was seen; the tracks on the way were off by their part of it. */
static void skip_learn(struct skip *k, uint64_t from, uint64_t to, double off)
{
	struct filter *f = &k->ahead;
	double was = f->x[0];

	filter_learn(f, off, f->c[0][0] + f->noise * f->noise);
	for (uint64_t i = from + 1; i <= to; i++)
		k->late[i] += (float)((f->x[0] - was) * (double)(i - from) /
				      (double)(to - from));
	k->at = *f;
}

static int skip_read(struct skip *k, uint64_t track, bool surely, double *off)
{
	double seen;
	int err = k->reader->read(k->reader->arg, track, surely, &seen);

	*off = err || isnan(seen) ? 0 : phase_wrap(seen - k->ahead.x[0]);
	return err;
}

/* From a track that was read to another one; *at: how far that went. */
static int skip_once(struct skip *k, uint64_t *at)
{
	uint64_t most = SKIP_MOST, from = *at, to;
	double tolerance = k->reader->tolerance, off = 0;
	struct filter *f = &k->ahead;
	bool strange = false;
	int err = 0;

	do {
		to = skip_ahead(k, from, most);
		if (to == from)
			return 0;
		err = skip_read(k, to, !is_foretold(f), &off);
		strange = is_foretold(f) && fabs(off) > tolerance;
		if (!err && strange)
			err = skip_read(k, to, to == from + 1, &off);
		strange = strange && fabs(off) > tolerance;
		most = (to - from) / 2;
	} while (!err && strange && most);
	/* Skewed like no other, or as its kind is from now on. */
	if (strange) {
		f->c[0][0] += off * off;
		f->c[f->last][f->last] += off * off;
	}
	if (!err)
		skip_learn(k, from, to, off);
	*at = to;
	return err;
}

/* A track that is behind none. */
static int skip_begin(struct skip *k, uint64_t track)
{
	struct filter *f = &k->at;
	double off;
	int err;

	f->x[0] = k->ahead.x[0] = 0;
	err = skip_read(k, track, true, &off);
	f->x[0] = phase_part(off);
	k->late[track] = (float)f->x[0];
	for (unsigned i = 1; i < f->n; i++)
		f->c[0][i] = f->c[i][0] = 0;
	f->c[0][0] = f->noise * f->noise;
	f->last = 0;
	return err;
}

int skews_find(const struct skews *skews, double noise,
	       const struct skews_reader *reader, float *late)
{
	struct skip k = { .reader = reader, .late = late, .at = {
		.skews = skews, .noise = fmax(noise, NOISE_LEAST),
		.kind_sigma = ANY_SIGMA, .strays = SKIP_STRAYS,
	} };
	uint64_t at, was;
	int err = 0;

	filter_begin(&k.at);
	for (at = 0; at < skews->tracks && !err; at++) {
		late[at] = 0;
		if (!skews->known[at])
			continue;
		err = skip_begin(&k, at);
		do {
			was = at;
			if (!err)
				err = skip_once(&k, &at);
		} while (!err && at > was);
	}
	return err;
}
