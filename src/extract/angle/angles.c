/*
 * angles.c - from track to track with leaps that what is known of skews allows.
 *
 * A skew is learned for each kind of step from one track to the next: sizes,
 * surfaces, cylinders between them.  The angle at the frontier and all skews
 * have a variance each; an angle that is read ahead is shared among those that
 * led there, as far as they were unsure, and with the tracks passed.  How the
 * errors of two skews hang together is left out: that makes leaps a little
 * shorter than they could be.
 *
 * What is further off than noise can be is read once more; then the leap is
 * halved, down to a track that is skewed like no other.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/angle/anchor.h"
#include "extract/angle/angles.h"
#include "extract/angle/skews.h"
#include "extract/probe/calibrate.h"

#define KINDS_MAX 4096u
#define LEAP_MAX 512u
/* Of the noise: how unsure the end of a leap may be. */
#define UNSURE 1.0
/* So many tracks in a row that are not skewed as their kind are another. */
#define STRANGE 2u
#define WANDERS 0.0006		/* revolutions, per look */
#define SKEW_LEAST 1e-6		/* never known better */
#define TOLERANCE (UINT32_MAX / 2000)

/* A step from one track to the next. */
struct kind {
	uint32_t before, after;		/* sectors around them */
	uint32_t from, to;		/* surfaces */
	int64_t cylinders;
	double skew, var;		/* revolutions; var < 0: not known */
	unsigned strange;
};

struct measure {
	struct reader reader;
	const struct geom *geom;
	const struct angles_options *options;
	struct angles_stats *stats;
	angle *bases;
	struct kind *kinds;
	unsigned kinds_n, kind_last;
	double at, var;			/* of the track at the frontier */
	struct anchor anchor;
	/* The leap at hand: of its k-th step, kind and foretold angle. */
	unsigned step[LEAP_MAX], steps;
	double ahead[LEAP_MAX];
	unsigned count[KINDS_MAX];	/* of each kind in it */
};

/* ---- Reading ---- */

/* As a share of a revolution that it is off from what is thought; when that is
 * much, it is read again. */
static int look(struct measure *m, uint64_t index, double expected,
		double *off)
{
	struct geom_track t;
	double base;
	int err = 0;

	geom_track_at(m->geom, index, &t);
	for (unsigned i = 0; i < 2 && !err; i++) {
		err = anchor_read(&m->anchor, anchor_unit(&m->anchor, &t),
				  &base);
		*off = phase_wrap(base - expected);
		if (fabs(*off) <= m->reader.tolerance)
			break;
	}
	return err;
}

/* ---- Kinds of steps ---- */

static bool same_kind(const struct kind *a, const struct kind *b)
{
	return a->before == b->before && a->after == b->after &&
	       a->from == b->from && a->to == b->to &&
	       a->cylinders == b->cylinders;
}

static unsigned kind_of(struct measure *m, const struct geom_track *a,
			const struct geom_track *b)
{
	struct kind k = {
		.before = skews_around(a), .after = skews_around(b),
		.from = a->surface, .to = b->surface,
		.cylinders = (int64_t)b->cylinder - a->cylinder,
		.var = -1,
	};

	/* Mostly the one before; backwards, or zones long past come first. */
	if (same_kind(&m->kinds[m->kind_last], &k))
		return m->kind_last;
	for (unsigned i = m->kinds_n; i--;) {
		if (same_kind(&m->kinds[i], &k))
			return m->kind_last = i;
	}
	if (m->kinds_n == KINDS_MAX)
		m->kinds_n = 0;
	m->kinds[m->kinds_n] = k;
	return m->kind_last = m->kinds_n++;
}

/* ---- Leaps ---- */

/* How unsure the end of the leap is. */
static double leap_var(const struct measure *m)
{
	double var = m->var;

	for (unsigned i = 0; i < m->steps; i++) {
		unsigned k = m->step[i];

		/* Each step's share of the square of its kind's count. */
		var += m->count[k] * m->kinds[k].var;
	}
	return var;
}

/* Foretells up to `most` tracks from one on: as far as they are known, of
 * known kinds, and sure enough; one, whatever it is.  A kind that is not known
 * is the only step. */
static void foretell(struct measure *m, uint64_t from, unsigned most)
{
	double limit = UNSURE * m->reader.noise, at = m->at, var = m->var;
	struct geom_track a, b;

	for (unsigned i = 0; i < m->steps; i++)
		m->count[m->step[i]] = 0;
	m->steps = 0;
	geom_track_at(m->geom, from, &a);
	while (m->steps < most && from + m->steps + 1 < geom_tracks(m->geom)) {
		unsigned k;

		geom_track_at(m->geom, from + m->steps + 1, &b);
		if (!b.known)
			break;
		k = kind_of(m, &a, &b);
		if (m->steps && m->kinds[k].var < 0)
			break;
		/* One more of it: (n + 1)^2 - n^2. */
		var += (2 * m->count[k] + 1) * fmax(m->kinds[k].var, 0);
		if (m->steps && var > limit * limit)
			break;
		at += m->kinds[k].skew;
		m->count[k]++;
		m->step[m->steps] = k;
		m->ahead[m->steps++] = phase_part(at);
		a = b;
		if (m->kinds[k].var < 0)
			break;
	}
}

/* All that led there was off by a share of it, and so were those passed. */
static void share(struct measure *m, uint64_t from, double off)
{
	double noise = m->reader.noise * m->reader.noise;
	double all = leap_var(m) + noise, with = m->var;

	for (unsigned i = 0; i < m->steps; i++) {
		with += m->count[m->step[i]] * m->kinds[m->step[i]].var;
		m->ahead[i] = phase_part(m->ahead[i] + off * with / all);
		m->bases[from + 1 + i] = phase_angle(m->ahead[i]);
	}
	m->at = m->ahead[m->steps - 1];
	m->var = (all - noise) * noise / all + WANDERS * WANDERS;
	for (unsigned i = 0; i < m->steps; i++) {
		struct kind *k = &m->kinds[m->step[i]];
		double n = m->count[m->step[i]], gain = n * k->var / all;

		m->count[m->step[i]] = 0;
		if (!(n > 0))
			continue;
		k->skew += gain * off;
		k->strange = 0;
		k->var = fmax(k->var * (1 - n * gain),
			      SKEW_LEAST * SKEW_LEAST);
	}
}

/* A single track, wherever it is. */
static int take(struct measure *m, uint64_t index)
{
	struct kind *k = &m->kinds[m->step[0]];
	double noise = m->reader.noise * m->reader.noise, base, off;
	struct geom_track t;
	int err;

	geom_track_at(m->geom, index, &t);
	err = anchor_read_some(&m->anchor, &t, &base);
	off = isnan(base) ? 0 : phase_wrap(base - m->ahead[0]);
	if (k->var < 0 || ++k->strange >= STRANGE) {
		k->skew = phase_wrap(k->skew + off);
		k->var = m->var + noise;
		m->stats->skews++;
	}
	m->stats->odd += k->strange > 0;
	m->at = phase_part(m->ahead[0] + off);
	m->var = noise / 2;
	m->bases[index] = phase_angle(m->at);
	return err;
}

/* On from a track; *at: how far that went. */
static int leap(struct measure *m, uint64_t *at)
{
	unsigned most = LEAP_MAX;
	double off = NAN;
	bool right;
	int err;

	do {
		foretell(m, *at, most);
		if (!m->steps)
			return 0;
		if (m->kinds[m->step[0]].var < 0) {
			right = false;
			break;
		}
		err = look(m, *at + m->steps, m->ahead[m->steps - 1], &off);
		if (err)
			return err;
		right = isnan(off) || fabs(off) <= m->reader.tolerance;
		most = m->steps / 2;
	} while (!right && m->steps > 1);
	err = right ? 0 : take(m, *at + 1);
	if (right)
		share(m, *at, isnan(off) ? 0 : off);
	*at += m->steps;
	return err;
}

/* ---- All of it ---- */

/* A known track that others are not known before. */
static int begin(struct measure *m, uint64_t index)
{
	struct geom_track t;
	int err;

	geom_track_at(m->geom, index, &t);
	err = anchor_read_well(&m->anchor, &t, &m->at);
	if (err)
		return err;
	if (isnan(m->at))
		m->at = 0;
	m->at = phase_part(m->at);
	m->var = m->reader.noise * m->reader.noise / 2;
	m->bases[index] = phase_angle(m->at);
	if (m->stats->tracks++)
		return 0;
	anchor_drop(&m->anchor, &t, m->at);
	return 0;
}

static int measure_all(struct measure *m)
{
	uint64_t tracks = geom_tracks(m->geom), at, was;
	struct geom_track t;
	int err = 0;

	for (at = 0; at < tracks && !err; at++) {
		geom_track_at(m->geom, at, &t);
		if (!t.known)
			continue;
		err = begin(m, at);
		do {
			was = at;
			if (!err)
				err = anchor_lock(&m->anchor);
			if (!err)
				err = leap(m, &at);
			m->stats->tracks += at - was;
			if (!err && m->options->progress)
				err = m->options->progress(m->options->arg,
					(double)at / (double)tracks);
		} while (!err && at > was);
	}
	return err ? err : m->stats->tracks ? 0 : -EINVAL;
}

/* Does a track go on where a sweep along its surface ends, and as it began? */
static bool goes_on(const struct geom_sweep *last,
		    const struct geom_sweep *next)
{
	int64_t step = next->cylinder - last->cylinder -
		       ((int64_t)last->count - 1) * last->cylinder_step;

	return last->count && (step == 1 || step == -1) &&
	       (last->count == 1 || step == last->cylinder_step) &&
	       last->surface == next->surface && last->base == next->base &&
	       last->sectors == next->sectors &&
	       last->around == next->around && last->known == next->known;
}

/* What goes on is put together: else the geometry would not repeat. */
static int put_sweep(struct geom_build *b, struct geom_sweep *pending,
		     const struct geom_sweep *next)
{
	int err;

	if (next && goes_on(pending, next)) {
		if (pending->count == 1)
			pending->cylinder_step = (int32_t)(next->cylinder -
							   pending->cylinder);
		pending->count++;
		return 0;
	}
	err = pending->count ? geom_build_sweep(b, pending) : 0;
	if (next)
		*pending = *next;
	return err;
}

static int put_tracks(const struct geom *geom, struct prober *prober,
		      const angle *bases,
		      const uint32_t *rounds, struct geom_build *b)
{
	uint64_t n = geom_tracks(geom);
	struct geom_sweep pending = { 0 };
	uint32_t odd = 0, slip = 0;
	struct geom_track t;
	int err = 0;

	for (uint64_t i = 0; i < n && !err; i++) {
		int32_t more = 0;
		uint32_t sectors, round, idle;

		prober_pause(prober, i);
		geom_track_at(geom, i, &t);
		round = rounds ? rounds[i] : skews_around(&t);
		if (odd < geom->odds_n && geom->odds[odd].track == i)
			more = geom->odds[odd++].more;
		/* It is no odd one among larger ones, then. */
		idle = round > t.sectors ? round - t.sectors : 0;
		if (more < 0 && (uint32_t)-more > idle)
			more = -(int32_t)idle;
		if (more)
			err = geom_build_odd(b, i, more);
		while (!err && slip < geom->slips_n &&
		       geom->slips[slip].track == i)
			err = geom_build_slip(b, &geom->slips[slip++]);
		sectors = t.sectors - (uint32_t)more;
		if (!err)
			err = put_sweep(b, &pending, &(struct geom_sweep){
				.count = 1,
				.sectors = sectors,
				.around = round > sectors ? round : sectors,
				.cylinder = t.cylinder,
				.surface = (int32_t)t.surface,
				.base = bases[i],
				.known = t.known,
			});
	}
	if (!err)
		err = put_sweep(b, &pending, NULL);
	for (uint32_t i = 0; i < geom->remaps_n && !err; i++)
		err = geom_build_remap(b, &geom->remaps[i]);
	return err;
}

int angles_put(const struct geom *geom, struct prober *prober,
	       const angle *bases, const uint32_t *rounds, struct geom **out)
{
	struct geom_build *b = geom_build_new(geom_period_ns(geom), TOLERANCE);
	int err = b ? put_tracks(geom, prober, bases, rounds, b) : -ENOMEM;

	if (!err) {
		geom_build_pause(b, prober_pause_now, prober);
		err = geom_build_finish(b, out);
	}
	geom_build_free(b);
	return err;
}

static int prepare(struct measure *m, struct prober *prober)
{
	struct geom_track t = { 0 };

	reader_init(&m->reader, prober, (double)m->options->period_ps / 1e3,
		    prober->limits->physical_bytes / SECTOR_BYTES, 0);
	m->anchor = (struct anchor){ .reader = &m->reader, .geom = m->geom };
	for (uint64_t i = 0; i < geom_tracks(m->geom) && !t.known; i++)
		geom_track_at(m->geom, i, &t);
	m->bases = calloc(geom_tracks(m->geom) + 1, sizeof(*m->bases));
	m->kinds = calloc(KINDS_MAX, sizeof(*m->kinds));
	if (!m->bases || !m->kinds)
		return -ENOMEM;
	return t.known ? calibrate_reader(&m->reader,
					     anchor_unit(&m->anchor, &t)) :
			 -EINVAL;
}

int angles_measure(struct prober *prober, const struct geom *geom,
		   const struct angles_options *options, struct geom **out,
		   struct angles_stats *stats)
{
	struct measure *m = calloc(1, sizeof(*m));
	int err;

	*stats = (struct angles_stats){ 0 };
	if (!m)
		return -ENOMEM;
	m->geom = geom;
	m->options = options;
	m->stats = stats;
	err = prepare(m, prober);
	if (!err)
		err = measure_all(m);
	stats->reads = m->reader.reads;
	stats->period_ns = m->reader.phase.period_ns;
	if (!err)
		err = angles_put(geom, NULL, m->bases, NULL, out);
	free(m->bases);
	free(m->kinds);
	free(m);
	return err;
}
