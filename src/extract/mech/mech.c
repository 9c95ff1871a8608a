/*
 * mech.c - seeks, switches, overhead, and what a cache does.
 *
 * Tries are made on tracks all over the disk: no cache knows them, and what is
 * peculiar to one place averages out.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/sort.h"
#include "extract/mech/mech.h"
#include "extract/mech/reach.h"
#include "extract/probe/calibrate.h"

#define SURE_PPM 1000000u
/* Of each of some rounds. */
#define TRIES 11u
#define ROUNDS 3u
#define SAME_TRACK -1
#define SEEKS_LEAST 5u
#define PAIR_TRIES 400u
#define MOST_DOUBT 0.35
/* Tracks that are tried: of larger drives those of some cylinders. */
#define PLACES 16384u
#define LEVELS 3u
#define USABLE_SECTORS 64u

struct mech_place {
	uint32_t cylinder, surface;
	uint64_t track;
};

struct measure {
	struct prober *prober;
	const struct geom *geom;
	const struct mech_options *options;
	struct reach_clock clock;
	struct mech *out;
	uint64_t until_ns;
	struct mech_place *place;	/* by cylinder */
	size_t places;
	unsigned halved;	/* so often */
	uint64_t seed;		/* of which are left */
};

/* ---- Tracks ---- */

static uint64_t below(struct measure *m, uint64_t n)
{
	return env_random(m->prober->env) % n;
}

static int compare(const void *a, const void *b)
{
	const struct mech_place *p = a, *q = b;

	if (p->cylinder != q->cylinder)
		return p->cylinder < q->cylinder ? -1 : 1;
	return p->track < q->track ? -1 : p->track > q->track;
}

/* Does a cylinder belong to those that are tried?  Of 16 such groups of 16 side
 * by side a quarter, of 16 of those a quarter, and then as many as there is
 * room for: there are any distances between them. */
static bool is_chosen(const struct measure *m, uint32_t cylinder)
{
	unsigned left = m->halved, by;

	for (unsigned k = 1; k <= LEVELS; k++, left -= by) {
		uint64_t group = m->seed + (cylinder >> 4 * k);

		by = k < LEVELS && left > 2 ? 2 : left;
		if (random_next(&group) > UINT64_MAX >> by)
			return false;
	}
	return true;
}

/* Half as many of them. */
static void choose_fewer(struct measure *m)
{
	size_t n = 0;

	m->halved++;
	for (size_t i = 0; i < m->places; i++)
		if (is_chosen(m, m->place[i].cylinder))
			m->place[n++] = m->place[i];
	m->places = n;
}

static int find_places(struct measure *m)
{
	struct geom_track t;

	m->seed = env_random(m->prober->env);
	m->place = calloc(PLACES, sizeof(*m->place));
	if (!m->place)
		return -ENOMEM;
	for (uint64_t i = 0; i < geom_tracks(m->geom); i++) {
		prober_pause(m->prober, i);
		geom_track_at(m->geom, i, &t);
		if (!t.known || t.sectors < USABLE_SECTORS)
			continue;
		if (m->places == PLACES)
			choose_fewer(m);
		if (m->places < PLACES && is_chosen(m, t.cylinder))
			m->place[m->places++] = (struct mech_place){
				t.cylinder, t.surface, i };
	}
	prober_pause_now(m->prober);
	qsort(m->place, m->places, sizeof(*m->place), compare);
	return 0;
}

static uint32_t cylinders(const struct measure *m)
{
	return m->places ? m->place[m->places - 1].cylinder + 1 : 0;
}

/* The first one from a cylinder on, or the end of all. */
static const struct mech_place *first_from(const struct measure *m,
				      uint64_t cylinder)
{
	size_t lo = 0, hi = m->places, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (m->place[mid].cylinder < cylinder)
			lo = mid + 1;
		else
			hi = mid;
	}
	return m->place + lo;
}

static bool any_track(struct measure *m, struct geom_track *t)
{
	if (m->places)
		geom_track_at(m->geom, m->place[below(m, m->places)].track, t);
	return m->places;
}

/* Tracks as many cylinders apart, about, the first one the outer; 0: of one
 * cylinder and two surfaces. */
static bool pair_apart(struct measure *m, uint32_t apart,
		       struct geom_track *outer, struct geom_track *inner)
{
	for (unsigned i = 0; i < PAIR_TRIES && m->places; i++) {
		const struct mech_place *a = &m->place[below(m, m->places)], *b;

		b = first_from(m, (uint64_t)a->cylinder + apart);
		b += b == a;
		if (b == m->place + m->places ||
		    b->cylinder - a->cylinder > apart + apart / 12 ||
		    (!apart && b->surface == a->surface))
			continue;
		geom_track_at(m->geom, a->track, outer);
		geom_track_at(m->geom, b->track, inner);
		return true;
	}
	return false;
}

/* ---- Reaches ---- */

static bool late(const struct measure *m)
{
	return m->until_ns && env_now_ns(m->prober->env) > m->until_ns;
}

static void say(struct measure *m, enum mech_stage stage, double done)
{
	if (m->options->progress)
		m->options->progress(m->options->arg, stage, done);
}

/* What a reach is found to be, in so many rounds of tries: a late completion
 * that is taken for a miss may spoil one of them, so the middle one counts. */
struct reach_found {
	double ns, doubt, cylinders;	/* the last in the mean */
	bool done;
};

static uint32_t sure(const struct reach_found *f)
{
	return !f->done || f->doubt > MOST_DOUBT ? 0 :
		(uint32_t)(SURE_PPM * (1 - f->doubt));
}

/* Tracks for a try: the same, or so many cylinders apart in either direction by
 * turns; each time others, as a cache may know some now. */
static bool pick(struct measure *m, int apart, unsigned i,
		 struct geom_track *from, struct geom_track *to)
{
	bool back = i % 2;

	if (apart != SAME_TRACK)
		return pair_apart(m, (uint32_t)apart, back ? to : from,
				  back ? from : to);
	if (!any_track(m, from))
		return false;
	*to = *from;
	return true;
}

static int measure_reach(struct measure *m, int apart, bool write, double lo_ns,
			 double hi_ns, struct reach_found *found)
{
	double sum = 0, ns[ROUNDS];
	struct geom_track a, b;
	struct reach r;
	int err = 0;

	*found = (struct reach_found){ 0 };
	for (unsigned i = 0; !err && i < ROUNDS * TRIES; i++) {
		if (i % TRIES == 0)
			reach_init(&r, lo_ns, hi_ns);
		if (late(m) || !pick(m, apart, i, &a, &b))
			return 0;
		err = reach_try(&r, m->prober, &m->clock, m->geom, &a, &b,
				write);
		sum += fabs((double)a.cylinder - b.cylinder);
		if (i % TRIES != TRIES - 1)
			continue;
		ns[i / TRIES] = reach_estimate(&r);
		found->doubt += reach_doubt(&r) / ROUNDS;
	}
	if (err)
		return err;
	qsort(ns, ROUNDS, sizeof(*ns), sort_double_cmp);
	found->ns = ns[ROUNDS / 2];
	found->cylinders = sum / (ROUNDS * TRIES);
	found->done = true;
	return 0;
}

static int measure_overhead(struct measure *m)
{
	struct reach_found f;
	int err;

	say(m, MECH_OVERHEAD, 0);
	err = measure_reach(m, SAME_TRACK, false, 0,
			    0.75 * m->clock.period_ns, &f);
	m->out->overhead_ns = (uint64_t)f.ns;
	m->out->overhead_ppm = sure(&f);
	return err;
}

static uint64_t beyond(const struct measure *m, double ns)
{
	double left = ns - (double)m->out->overhead_ns;

	return left > 0 ? (uint64_t)left : 0;
}

static int measure_switch(struct measure *m)
{
	struct reach_found f;
	int err;

	say(m, MECH_SWITCH, 0);
	if (!m->out->overhead_ppm)
		return 0;
	err = measure_reach(m, 0, false, (double)m->out->overhead_ns / 2,
			    m->clock.period_ns * 0.9, &f);
	m->out->head_switch_ns = beyond(m, f.ns);
	m->out->head_switch_ppm = sure(&f);
	return err;
}

/* ---- The seek curve ---- */

static int seek_point(struct measure *m, uint32_t apart)
{
	struct mech *out = m->out;
	struct service_seek *s = &out->seek[out->seek_n];
	double least_ns = (double)(out->overhead_ns +
				   (out->seek_n ? s[-1].ns : 0));
	double period_ns = m->clock.period_ns;
	struct reach_found f;
	int err;

	err = measure_reach(m, (int)apart, false,
			    fmax(least_ns - 0.06 * period_ns,
				 (double)out->overhead_ns),
			    least_ns + period_ns, &f);
	if (err || !sure(&f))
		return err;
	*s = (struct service_seek){ (uint32_t)f.cylinders, beyond(m, f.ns) };
	out->seek_n += !out->seek_n || s->cylinders > s[-1].cylinders;
	return 0;
}

/* A longer seek takes no less time: neighbours that do are averaged. */
static void seek_smooth(struct mech *mech)
{
	for (uint32_t i = 1; i < mech->seek_n; i++) {
		uint32_t from = i;
		uint64_t sum = mech->seek[i].ns, mean = sum;

		while (from && mech->seek[from - 1].ns > mean) {
			sum += mech->seek[--from].ns;
			mean = sum / (i - from + 1);
		}
		for (uint32_t k = from; k <= i; k++)
			mech->seek[k].ns = mean;
	}
}

static int measure_seeks(struct measure *m)
{
	uint32_t d = 1, wanted = 0, most = cylinders(m) / 20 * 19;
	double step = pow(most, 1.0 / 30);
	int err = 0;

	if (!m->out->overhead_ppm || most < 8)
		return 0;
	while (!err && d <= most && m->out->seek_n < MECH_SEEKS && !late(m)) {
		say(m, MECH_SEEK, log(d) / log(most));
		wanted++;
		err = seek_point(m, d);
		d = d == most ? most + 1 :
		    (uint32_t)fmin(most, fmax(d + 1, floor(d * step)));
	}
	if (m->out->seek_n >= SEEKS_LEAST)
		m->out->seek_ppm = (uint32_t)
			((uint64_t)SURE_PPM * m->out->seek_n / wanted);
	seek_smooth(m->out);
	return err;
}

/* ---- The cache, and the order of what is read ---- */

static int measure_cache(struct measure *m)
{
	uint32_t unit = m->prober->limits->physical_bytes / SECTOR_BYTES;
	struct mech *out = m->out;
	struct geom_track t;
	uint64_t ahead = 0;
	bool any_order;
	struct reader r;
	int err;

	say(m, MECH_CACHE, 0);
	if (!out->overhead_ppm || !any_track(m, &t))
		return 0;
	reader_init(&r, m->prober, m->clock.period_ns, unit, 0);
	err = calibrate_reader(&r, reach_first(&t, unit) / unit);
	if (!err && r.hit_ns)
		err = calibrate_ahead(&r, &ahead);
	if (!err) {
		out->read_ahead_sectors = (uint32_t)(ahead * unit);
		out->hit_ns = r.hit_ns ? r.hit_ns - CALIBRATE_MARGIN_NS : 0;
		out->read_ahead_ppm = SURE_PPM * 9 / 10;
		say(m, MECH_CACHE, 0.5);
		err = calibrate_order(&r, &any_order);
	}
	if (!err) {
		out->zero_latency = any_order;
		/* Over a slow interface any long read ends late. */
		out->zero_latency_ppm = any_order && r.late > 0 ? 0 :
						SURE_PPM * 9 / 10;
	}
	/* Of too noisy a drive nothing is known. */
	return err == -EOPNOTSUPP || err == -EIO ? 0 : err;
}

/* ---- Writes, where they do no harm ---- */

static int measure_settle(struct measure *m)
{
	struct mech *out = m->out;
	double period_ns = m->clock.period_ns, moved_ns;
	struct reach_found f;
	int err;

	if (!m->options->scratch || !out->seek_n)
		return 0;
	say(m, MECH_SETTLE, 0);
	err = measure_reach(m, SAME_TRACK, true, 0, 0.75 * period_ns, &f);
	out->write_overhead_ns = (uint64_t)f.ns;
	out->write_overhead_ppm = sure(&f);
	if (err || !out->write_overhead_ppm)
		return err;
	moved_ns = f.ns + (double)out->seek[0].ns;
	err = measure_reach(m, (int)out->seek[0].cylinders, true,
			    moved_ns - 0.05 * period_ns,
			    moved_ns + 0.5 * period_ns, &f);
	out->write_settle_ns = (uint64_t)fmax(f.ns - moved_ns, 0);
	out->write_settle_ppm = sure(&f);
	return err;
}

/* ---- All of it ---- */

int mech_measure(struct prober *prober, const struct geom *geom,
		 uint64_t period_ps, const struct mech_options *options,
		 struct mech *mech)
{
	static int (*const stages[])(struct measure *m) = {
		measure_overhead, measure_switch, measure_seeks,
		measure_cache, measure_settle,
	};
	struct measure m = {
		.prober = prober,
		.geom = geom,
		.options = options,
		.clock = { .period_ns = (double)period_ps / 1e3 },
		.out = mech,
	};
	int err = 0;

	*mech = (struct mech){ 0 };
	if (!geom_known(geom) || !period_ps || geom_tracks(geom) < 16)
		return -EINVAL;
	if (options->most_ns)
		m.until_ns = env_now_ns(prober->env) + options->most_ns;
	err = find_places(&m);
	for (unsigned i = 0; !err && i < MECH_STAGES && !late(&m); i++)
		err = stages[i](&m);
	free(m.place);
	return err;
}
