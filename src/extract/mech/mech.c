/*
 * mech.c - seeks, switches, overhead, what a drive does with whole tracks and
 * when it reads ahead.
 *
 * Every try is made on tracks that have not been read before, as far as there
 * are enough: no cache knows them, and what is peculiar to one place averages
 * out.  Pairs of tracks at a distance are found by guessing an index from the
 * geometry's first tracks and looking at what cylinder that is.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "extract/mech/mech.h"
#include "extract/mech/reach.h"

#define SURE_PPM 1000000u
#define TRIES 16u
#define OVERHEAD_TRIES 32u
#define PAIR_TRIES 400u
#define MOST_DOUBT 0.35
#define ZERO_TRIES 64u
/* Shares of reads that begin in the middle; between these it is not known. */
#define ZERO_MOSTLY 0.6
#define ZERO_HARDLY 0.15
#define AHEAD_VOTES 5u
/* Revolutions, and twice what it takes: not when it would pass anyway. */
#define AHEAD_WAIT 3.4
/* Revolutions by which what comes from memory is elsewhere, mostly. */
#define AHEAD_STRAYS 0.03
#define LONGEST_AHEAD 65536u
/* Less than one track in so many is known: these are noted, so many of them. */
#define FEW 32u
#define NOTED 16384u

struct measure {
	struct prober *prober;
	const struct geom *geom;
	const struct mech_options *options;
	struct reach_clock clock;
	struct mech *out;
	uint64_t until_ns;
	uint32_t cylinders, surfaces;
	uint64_t tracks;
	uint64_t *noted;	/* usable ones, where there are few; or NULL */
	size_t noted_n;
};

/* ---- Tracks ---- */

static uint64_t below(struct measure *m, uint64_t n)
{
	return env_random(m->prober->env) % n;
}

static bool usable(const struct geom_track *t)
{
	return t->known && t->sectors >= 64;
}

static bool any_track(struct measure *m, struct geom_track *t)
{
	if (m->noted_n) {
		geom_track_at(m->geom, m->noted[below(m, m->noted_n)], t);
		return true;
	}
	for (unsigned i = 0; i < PAIR_TRIES; i++) {
		geom_track_at(m->geom, below(m, m->tracks), t);
		if (usable(t))
			return true;
	}
	return false;
}

static uint32_t apart(const struct geom_track *a, const struct geom_track *b)
{
	return a->cylinder < b->cylinder ? b->cylinder - a->cylinder :
					   a->cylinder - b->cylinder;
}

/* Looks from a track towards a cylinder: by as many tracks as the cylinders
 * ought to have, then by what is left, a few times. */
static bool walk_to(struct measure *m, const struct geom_track *from,
		    uint32_t cylinder, struct geom_track *to)
{
	uint64_t at = from->index;
	double each = (double)m->tracks / m->cylinders;

	*to = *from;
	for (unsigned i = 0; i < 24 && to->cylinder != cylinder; i++) {
		int64_t left = (int64_t)cylinder - (int64_t)to->cylinder;
		double step = (double)left * (i % 2 ? 1 : each);
		double next;

		if (i > 3 && i % 4 == 3)	/* the group runs outwards */
			step = -step;
		next = (double)at + (step < 0 ? floor(step) : ceil(step));
		if (next < 0 || next >= (double)m->tracks)
			next = (double)below(m, m->tracks);
		at = (uint64_t)next;
		geom_track_at(m->geom, at, to);
	}
	return usable(to);
}

/* Tracks as many cylinders apart, about; the first one is the outer. */
static bool pair_apart(struct measure *m, uint32_t cylinders,
		       struct geom_track *outer, struct geom_track *inner)
{
	for (unsigned i = 0; i < PAIR_TRIES; i++) {
		uint32_t is, slack = cylinders / 12;

		if (!any_track(m, outer))
			return false;
		if (outer->cylinder + cylinders >= m->cylinders ||
		    !walk_to(m, outer, outer->cylinder + cylinders, inner))
			continue;
		is = apart(outer, inner);
		if (inner->cylinder > outer->cylinder &&
		    is + slack >= cylinders && is <= cylinders + slack)
			return true;
	}
	return false;
}

/* Tracks of one cylinder and two surfaces. */
static bool pair_heads(struct measure *m, struct geom_track *a,
		       struct geom_track *b)
{
	for (unsigned i = 0; i < PAIR_TRIES / 8; i++) {
		uint64_t at, end;

		if (!any_track(m, a))
			return false;
		end = a->index + 40000 < m->tracks ? a->index + 40000 :
						      m->tracks;
		for (at = a->index + 1; at < end; at++) {
			geom_track_at(m->geom, at, b);
			if (b->cylinder == a->cylinder &&
			    b->surface != a->surface && usable(b))
				return true;
			/* Beyond a group of its own size it won't come. */
			if (b->surface != a->surface &&
			    apart(a, b) > 10000)
				break;
		}
	}
	return false;
}

/* The usable tracks; of more than can be noted each n-th one. */
static int note_tracks(struct measure *m)
{
	uint64_t every = 1, seen = 0;
	struct geom_track t;

	m->noted = calloc(NOTED, sizeof(*m->noted));
	if (!m->noted)
		return -ENOMEM;
	for (uint64_t i = 0; i < m->tracks; i++) {
		prober_pause(m->prober, i);
		geom_track_at(m->geom, i, &t);
		if (!usable(&t) || seen++ % every)
			continue;
		if (m->noted_n == NOTED) {
			for (size_t k = 0; k < NOTED / 2; k++)
				m->noted[k] = m->noted[2 * k];
			m->noted_n = NOTED / 2;
			every *= 2;
		}
		m->noted[m->noted_n++] = i;
	}
	return 0;
}

static int find_size(struct measure *m)
{
	struct geom_track t;
	uint64_t n = m->tracks < 4096 ? m->tracks : 4096, known = 0;

	for (uint64_t i = 0; i < n; i++) {
		geom_track_at(m->geom, i * (m->tracks - 1) / n, &t);
		known += usable(&t);
		if (t.cylinder >= m->cylinders)
			m->cylinders = t.cylinder + 1;
		if (t.surface >= m->surfaces)
			m->surfaces = t.surface + 1;
	}
	return known < n / FEW ? note_tracks(m) : 0;
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

static uint32_t sure(const struct reach *r)
{
	double doubt = reach_doubt(r);

	return r->n < 6 || doubt > MOST_DOUBT ? 0 :
		(uint32_t)(SURE_PPM * (1 - doubt));
}

/* The reach on one and the same track. */
static int reach_same(struct measure *m, bool write, double *ns,
		      uint32_t *ppm)
{
	struct geom_track t;
	struct reach r;
	int err = 0;

	reach_init(&r, 0, 0.75 * m->clock.period_ns);
	for (unsigned i = 0; !err && i < OVERHEAD_TRIES; i++) {
		if (!any_track(m, &t))
			break;
		err = reach_try(&r, m->prober, &m->clock, m->geom, &t, &t,
				write);
	}
	*ns = reach_estimate(&r);
	*ppm = sure(&r);
	return err;
}

static int measure_overhead(struct measure *m)
{
	double ns;
	int err;

	say(m, MECH_OVERHEAD, 0);
	err = reach_same(m, false, &ns, &m->out->overhead_ppm);
	m->out->overhead_ns = (uint64_t)ns;
	return err;
}

static uint64_t beyond(const struct measure *m, double ns)
{
	double left = ns - (double)m->out->overhead_ns;

	return left > 0 ? (uint64_t)left : 0;
}

static int measure_switch(struct measure *m)
{
	struct geom_track a, b;
	struct reach r;
	int err = 0;

	say(m, MECH_SWITCH, 0);
	if (m->surfaces < 2 || !m->out->overhead_ppm)
		return 0;
	reach_init(&r, (double)m->out->overhead_ns / 2,
		   m->clock.period_ns * 0.9);
	for (unsigned i = 0; !err && i < 2 * TRIES && !late(m); i++) {
		if (!pair_heads(m, &a, &b))
			break;
		err = reach_try(&r, m->prober, &m->clock, m->geom,
				i % 2 ? &b : &a, i % 2 ? &a : &b, false);
	}
	m->out->head_switch_ns = beyond(m, reach_estimate(&r));
	m->out->head_switch_ppm = sure(&r);
	return err;
}

/* ---- The seek curve ---- */

/* Both directions at one distance; false when there is no such pair. */
static int seek_point(struct measure *m, uint32_t cylinders, double lo_ns,
		      bool *found)
{
	double hi_ns = lo_ns + m->clock.period_ns;
	struct mech_seek *s = &m->out->seek[m->out->seek_n];
	struct geom_track outer, inner;
	struct reach in, out;
	uint64_t sum = 0;
	unsigned i;
	int err = 0;

	lo_ns -= 0.06 * m->clock.period_ns;
	if (lo_ns < (double)m->out->overhead_ns)
		lo_ns = (double)m->out->overhead_ns;
	reach_init(&in, lo_ns, hi_ns);
	reach_init(&out, lo_ns, hi_ns);
	for (i = 0; !err && i < TRIES && !late(m); i++) {
		if (!pair_apart(m, cylinders, &outer, &inner))
			break;
		err = reach_try(&in, m->prober, &m->clock, m->geom, &outer,
				&inner, false);
		sum += apart(&outer, &inner);
		/* Another pair: a cache may know this one now. */
		if (err || !pair_apart(m, cylinders, &outer, &inner))
			break;
		err = reach_try(&out, m->prober, &m->clock, m->geom, &inner,
				&outer, false);
	}
	*found = i == TRIES && sure(&in) && sure(&out);
	if (!*found)
		return err;
	s->cylinders = (uint32_t)(sum / i);
	s->in_ns = beyond(m, reach_estimate(&in));
	s->out_ns = beyond(m, reach_estimate(&out));
	s->ns = (s->in_ns + s->out_ns) / 2;
	if (m->out->seek_n && s->cylinders <= s[-1].cylinders)
		*found = false;
	m->out->seek_n += *found;
	return err;
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
	double lo_ns = (double)m->out->overhead_ns, step;
	uint32_t d = 1, last = 0, wanted = 0, most = m->cylinders * 19 / 20;
	bool found;
	int err = 0;

	if (!m->out->overhead_ppm || m->cylinders < 8)
		return 0;
	step = pow(most, 1.0 / 30);
	while (!err && d <= most && m->out->seek_n < MECH_SEEKS && !late(m)) {
		say(m, MECH_SEEK, log(d) / log(most));
		wanted++;
		err = seek_point(m, d, lo_ns, &found);
		if (found)
			lo_ns = (double)(m->out->overhead_ns +
					 m->out->seek[m->out->seek_n - 1].ns);
		last = d;
		d = (uint32_t)(d * step) > d ? (uint32_t)(d * step) : d + 1;
		if (d > most && last < most)
			d = most;
	}
	if (wanted)
		m->out->seek_ppm = m->out->seek_n < 5 ? 0 :
			(uint32_t)((uint64_t)SURE_PPM * m->out->seek_n /
				   wanted);
	seek_smooth(m->out);
	return err;
}

/* ---- Zero latency ---- */

/* One large read from wherever the head comes in.  What an ordinary drive
 * would have taken and what one would that begins anywhere are far enough
 * apart or it does not count. */
static int zero_try(struct measure *m, int *vote)
{
	uint32_t unit = m->prober->limits->physical_bytes / SECTOR_BYTES;
	double period_ns = m->clock.period_ns, ready_ns, wait_ns, arc_ns;
	double ordinary_ns, zero_ns, took_ns;
	struct probe_access a = { .sectors = unit }, b = { 0 };
	struct geom_track from, to;
	int err;

	*vote = 0;
	if (!pair_apart(m, 1 + (uint32_t)below(m, 4), &to, &from))
		return 0;
	b.sector = reach_first(&to, unit);
	b.sectors = (to.sectors - unit) / unit * unit;
	if (b.sectors > m->prober->limits->max_sectors)
		b.sectors = m->prober->limits->max_sectors / unit * unit;
	a.sector = (from.first + below(m, from.sectors - unit)) / unit * unit;
	err = m->prober->access(m->prober, &a, 1, 1);
	if (!err && !a.result)
		err = m->prober->access(m->prober, &b, 1, 1);
	if (err || a.result || b.result)
		return err;
	reach_clock_see(&m->clock, a.complete_ns,
			reach_angle(m->geom, a.sector, unit));
	took_ns = (double)(b.complete_ns - a.complete_ns);
	ready_ns = (double)(m->out->overhead_ns + m->out->seek[0].ns);
	arc_ns = period_ns * b.sectors * (double)to.per_sector / 4294967296.0;
	wait_ns = reach_clock_wait(&m->clock, a.complete_ns +
				   (uint64_t)ready_ns,
				   (double)to.start / 4294967296.0);
	ordinary_ns = ready_ns + wait_ns + arc_ns;
	zero_ns = wait_ns + arc_ns > period_ns ? ready_ns + period_ns :
						 ordinary_ns;
	if (ordinary_ns - zero_ns < 0.15 * period_ns)
		return 0;
	/* The interface may make it less of a gain, but there is one. */
	*vote = took_ns < ordinary_ns - 0.07 * period_ns ? 1 : -1;
	return 0;
}

static int measure_zero_latency(struct measure *m)
{
	unsigned zero = 0, ordinary = 0;
	int vote, err = 0;

	if (!m->out->seek_n)
		return 0;
	for (unsigned i = 0; !err && i < ZERO_TRIES && !late(m); i++) {
		say(m, MECH_ZERO_LATENCY, (double)i / ZERO_TRIES);
		err = zero_try(m, &vote);
		zero += vote > 0;
		ordinary += vote < 0;
	}
	if (zero + ordinary < 8)
		return err;
	m->out->zero_latency_share = (double)zero / (zero + ordinary);
	m->out->zero_latency = m->out->zero_latency_share > ZERO_MOSTLY;
	if (m->out->zero_latency)
		m->out->zero_latency_ppm = (uint32_t)
			(SURE_PPM * m->out->zero_latency_share);
	else if (m->out->zero_latency_share < ZERO_HARDLY)
		m->out->zero_latency_ppm = (uint32_t)
			(SURE_PPM * (1 - m->out->zero_latency_share));
	return err;
}

/* ---- Reading ahead ---- */

/* Did a read come at once, and not when its sector passed?  Some drives take
 * longer for a hit than for a command. */
static bool is_memory(const struct measure *m, const struct probe_access *a)
{
	double took_ns = (double)(a->complete_ns - a->submit_ns);
	double off = (took_ns - reach_clock_wait(&m->clock, a->submit_ns,
			reach_angle(m->geom, a->sector, a->sectors))) /
		     m->clock.period_ns;

	return took_ns < m->clock.period_ns / 4 &&
	       fabs(off - floor(off + 0.5)) > AHEAD_STRAYS;
}

/* Is what lies n sectors on read ahead?  Most of a few votes. */
static int is_ahead(struct measure *m, uint32_t n, bool *yes, uint64_t *hit_ns)
{
	uint32_t unit = m->prober->limits->physical_bytes / SECTOR_BYTES;
	uint64_t end = m->prober->limits->sectors - n - 2 * unit;
	unsigned votes = 0;
	int err = 0;

	for (unsigned i = 0; !err && i < AHEAD_VOTES; i++) {
		struct probe_access a = { .sectors = unit }, b = a;
		struct geom_track t;
		uint64_t took_ns;

		a.sector = below(m, end) / unit * unit;
		b.sector = a.sector + (n + unit - 1) / unit * unit;
		err = m->prober->access(m->prober, &a, 1, 1);
		geom_track_of(m->geom, a.sector, &t);
		b.not_before_ns = a.complete_ns + (uint64_t)
			((AHEAD_WAIT + 2.0 * n / t.sectors) *
			 m->clock.period_ns);
		if (!err && !a.result)
			err = m->prober->access(m->prober, &b, 1, 1);
		if (err || a.result || b.result)
			continue;
		reach_clock_see(&m->clock, a.complete_ns,
				reach_angle(m->geom, a.sector, unit));
		took_ns = b.complete_ns - b.submit_ns;
		if (is_memory(m, &b)) {
			*hit_ns = took_ns;
			votes++;
		}
	}
	*yes = votes > AHEAD_VOTES / 2;
	return err;
}

static int measure_read_ahead(struct measure *m)
{
	uint32_t lo = 0, hi = 16, mid;
	uint64_t hit_ns = 0;
	bool yes = true;
	int err = 0;

	say(m, MECH_READ_AHEAD, 0);
	if (!m->out->overhead_ppm)
		return 0;
	while (!err && !late(m) && hi <= LONGEST_AHEAD &&
	       hi < m->prober->limits->sectors / 8) {
		err = is_ahead(m, hi, &yes, &hit_ns);
		if (!yes)
			break;
		lo = hi;
		hi *= 2;
	}
	while (!err && !late(m) && lo && hi - lo > lo / 8 + 8) {
		mid = lo + (hi - lo) / 2;
		err = is_ahead(m, mid, &yes, &hit_ns);
		if (yes)
			lo = mid;
		else
			hi = mid;
	}
	if (err || late(m))
		return err;
	m->out->read_ahead_sectors = lo;
	m->out->hit_ns = hit_ns;
	m->out->read_ahead_ppm = SURE_PPM * 9 / 10;
	return 0;
}

/* ---- Writes, where they do no harm ---- */

static int measure_settle(struct measure *m)
{
	double same_ns, lo_ns;
	struct geom_track outer, inner;
	struct reach r;
	uint64_t moved;
	int err;

	if (!m->options->scratch || !m->out->seek_n)
		return 0;
	say(m, MECH_SETTLE, 0);
	err = reach_same(m, true, &same_ns, &m->out->write_overhead_ppm);
	m->out->write_overhead_ns = (uint64_t)same_ns;
	if (err || !m->out->write_overhead_ppm)
		return err;
	lo_ns = same_ns + (double)m->out->seek[0].ns;
	reach_init(&r, lo_ns - 0.05 * m->clock.period_ns,
		   lo_ns + 0.5 * m->clock.period_ns);
	for (unsigned i = 0; !err && i < 2 * TRIES && !late(m); i++) {
		if (!pair_apart(m, m->out->seek[0].cylinders, &outer, &inner))
			break;
		err = reach_try(&r, m->prober, &m->clock, m->geom,
				i % 2 ? &inner : &outer,
				i % 2 ? &outer : &inner, true);
	}
	moved = m->out->write_overhead_ns + m->out->seek[0].ns;
	m->out->write_settle_ns = reach_estimate(&r) > (double)moved ?
		(uint64_t)reach_estimate(&r) - moved : 0;
	m->out->write_settle_ppm = sure(&r);
	return err;
}

/* ---- All of it ---- */

int mech_measure(struct prober *prober, const struct geom *geom,
		 uint64_t period_ps, const struct mech_options *options,
		 struct mech *mech)
{
	static int (*const stages[])(struct measure *m) = {
		measure_overhead, measure_switch, measure_seeks,
		measure_zero_latency, measure_read_ahead, measure_settle,
	};
	struct measure m = {
		.prober = prober,
		.geom = geom,
		.options = options,
		.clock = { .period_ns = (double)period_ps / 1e3 },
		.out = mech,
		.tracks = geom_tracks(geom),
	};
	int err = 0;

	*mech = (struct mech){ 0 };
	if (!geom_known(geom) || !period_ps || m.tracks < 16)
		return -EINVAL;
	if (options->most_ns)
		m.until_ns = env_now_ns(prober->env) + options->most_ns;
	err = find_size(&m);
	for (unsigned i = 0; !err && i < MECH_STAGES && !late(&m); i++)
		err = stages[i](&m);
	free(m.noted);
	return err;
}
