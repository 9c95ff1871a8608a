/*
 * reader.c - reads of one unit, their angles, and the fight with the cache.
 *
 * A hit is faster than any read of the medium but for those that happen to
 * find their sector just under the head; both are read again after so many
 * other reads that the cache has forgotten the unit.  How many that takes is
 * learned: twice as many each time it was not enough.
 *
 * How long it takes to reach a unit is kept for each power of two of the
 * distance: longer after every revolution missed, shorter bit by bit.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "extract/reader.h"

#define EVICT_MIN 16u
#define EVICT_MAX 512u
#define EVICT_DEPTH 16u
/* Sectors between two of the reads that fill a cache. */
#define EVICT_STRIDE 40000u
#define REACH_START_NS 2500000.0
#define REACH_MAX_NS 60000000.0
#define REACH_MORE_NS 300000.0
#define REACH_LESS 0.02
#define HITS_MAX 8u
#define HIT_MARGIN_NS 120000.0
#define CALIBRATE 24u
#define NOISE_READS 96u
/* No read-ahead is longer, in sectors. */
#define AHEAD_MAX 32768u
/* Above this, no skew can be told from noise. */
#define NOISE_MAX 0.02

void reader_init(struct reader *reader, struct prober *prober,
		 double period_ns, uint32_t unit_sectors, uint64_t offset)
{
	*reader = (struct reader){
		.prober = prober,
		.unit_sectors = unit_sectors,
		.offset = offset,
		.units = (prober->limits->sectors - offset) / unit_sectors,
		.noise = 0.003,
		.tolerance = 0.015,
		.evict = EVICT_MIN,
	};
	phase_init(&reader->phase, period_ns, env_now_ns(prober->env));
	for (unsigned i = 0; i < READER_CLASSES; i++)
		reader->reach[i] = REACH_START_NS;
	for (unsigned i = 0; i < READER_MEMO; i++)
		reader->memo[i].unit = UINT64_MAX;
}

static void access_set(const struct reader *r, struct probe_access *a,
		       uint64_t unit)
{
	*a = (struct probe_access){
		.sector = r->offset + unit * r->unit_sectors,
		.sectors = r->unit_sectors,
	};
}

static int access_one(struct reader *r, uint64_t unit, struct probe_access *a)
{
	int err;

	access_set(r, a, unit);
	err = r->prober->access(r->prober, a, 1, 1);
	r->reads++;
	r->last = unit;
	if (a->result)
		r->errors++;
	return err;
}

/* Reads so much else that the cache forgets. */
static int evict(struct reader *r, uint64_t unit)
{
	struct probe_access a[EVICT_DEPTH];
	uint64_t stride = EVICT_STRIDE / r->unit_sectors;
	uint64_t span = stride * (EVICT_MAX + 2);
	uint64_t at;
	int err = 0;

	if (span > r->units / 2)
		stride = r->units / 2 / (EVICT_MAX + 2) + 1;
	at = unit + stride * (1 + env_random(r->prober->env) % 4);
	r->evictions++;
	for (unsigned i = 0; i < r->evict && !err; i += EVICT_DEPTH) {
		for (unsigned k = 0; k < EVICT_DEPTH; k++) {
			at += stride;
			access_set(r, &a[k], at % r->units);
		}
		err = r->prober->access(r->prober, a, EVICT_DEPTH,
					EVICT_DEPTH);
		r->reads += EVICT_DEPTH;
	}
	r->last = at % r->units;
	return err;
}

static void memo_put(struct reader *r, uint64_t unit, double turn)
{
	r->memo[r->memo_next].unit = unit;
	r->memo[r->memo_next].turn = turn;
	r->memo_next = (r->memo_next + 1) % READER_MEMO;
}

/* A read of the medium; *a is its access. */
static int read_medium(struct reader *r, uint64_t unit, struct probe_access *a,
		       double *turn)
{
	unsigned tries = 0;
	int err;

	*turn = NAN;
	if (unit >= r->units)
		return 0;
	for (;;) {
		err = access_one(r, unit, a);
		if (err || a->result)
			return err;
		if (a->complete_ns - a->submit_ns >= r->hit_ns)
			break;
		r->hits++;
		if (++tries == HITS_MAX)
			return 0;
		if (tries > 2 && r->evict < EVICT_MAX)
			r->evict *= 2;
		err = evict(r, unit);
		if (err)
			return err;
	}
	*turn = phase_at(&r->phase, a->complete_ns);
	memo_put(r, unit, *turn);
	return 0;
}

int reader_read(struct reader *reader, uint64_t unit, double *turn)
{
	struct probe_access a;

	return read_medium(reader, unit, &a, turn);
}

int reader_recall(struct reader *reader, uint64_t unit, double *turn)
{
	for (unsigned i = 1; i <= READER_MEMO; i++) {
		unsigned k = (reader->memo_next + READER_MEMO - i) %
			     READER_MEMO;

		if (reader->memo[k].unit == unit) {
			*turn = reader->memo[k].turn;
			return 0;
		}
	}
	return reader_read(reader, unit, turn);
}

/* By powers of two of the distance. */
static double *reach_of(const struct reader *r, uint64_t unit)
{
	uint64_t d = unit > r->last ? unit - r->last : r->last - unit;
	unsigned class = 0;

	for (d *= r->unit_sectors; d && class < READER_CLASSES - 1; d /= 2)
		class++;
	return (double *)&r->reach[class];
}

/* Until a trailing edge passes, from a moment on. */
static double wait_for(const struct reader *r, uint64_t at_ns, double expected)
{
	return phase_part(expected - phase_at(&r->phase, at_ns)) *
	       r->phase.period_ns;
}

double reader_cost(const struct reader *reader, uint64_t unit,
		   double expected)
{
	double wait_ns = wait_for(reader, env_now_ns(reader->prober->env),
				  expected);
	double reach_ns = *reach_of(reader, unit);

	while (wait_ns < reach_ns)
		wait_ns += reader->phase.period_ns;
	return wait_ns;
}

int reader_expect(struct reader *reader, uint64_t unit, double expected,
		  double *turn)
{
	double *reach_ns = reach_of(reader, unit), wait_ns, took_ns;
	struct probe_access a;
	int err = read_medium(reader, unit, &a, turn);

	if (err || isnan(*turn))
		return err;
	took_ns = (double)(a.complete_ns - a.submit_ns);
	wait_ns = wait_for(reader, a.submit_ns, expected);
	while (wait_ns < *reach_ns / 2)
		wait_ns += reader->phase.period_ns;
	if (took_ns > wait_ns + reader->phase.period_ns / 2) {
		if (wait_ns >= *reach_ns && wait_ns < REACH_MAX_NS)
			*reach_ns += REACH_MORE_NS;
	} else if (took_ns > wait_ns - reader->phase.period_ns / 2) {
		*reach_ns -= *reach_ns * REACH_LESS;
	}
	return 0;
}

int reader_part(struct reader *reader, uint64_t unit)
{
	uint64_t ahead = AHEAD_MAX / reader->unit_sectors, at;
	struct probe_access a;

	if (!reader->hit_ns || unit < reader->last ||
	    unit - reader->last > ahead)
		return 0;
	/* Somewhere else each time, or the cache answers that. */
	at = unit + (2 + reader->parts++ % EVICT_MAX) * ahead;
	return access_one(reader, at % reader->units, &a);
}

static void sort(double *off, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		double v = off[i];
		unsigned k = i;

		for (; k && off[k - 1] > v; k--)
			off[k] = off[k - 1];
		off[k] = v;
	}
}

/* The standard deviation, whatever a few of them are. */
static double spread(double *off, unsigned n)
{
	sort(off, n);
	/* Three quarters of a normal distribution lie within 1.15 sigma;
	 * what comes late stretches one side. */
	return (off[n * 7 / 8] - off[n / 8]) / 2.3;
}

/* What a cache answers, it answers again, and at once. */
static int find_hits(struct reader *r, uint64_t unit)
{
	double period_ns = r->phase.period_ns, revs, took[CALIBRATE];
	unsigned n = 0;
	struct probe_access a = { 0 };
	uint64_t before_ns = 0;
	int err = 0;

	for (unsigned i = 0; i < CALIBRATE && !err; i++) {
		/* Pairs of the same one, and of one and the next. */
		err = access_one(r, unit + i / 4 + (i % 4 == 3), &a);
		revs = (double)(a.complete_ns - before_ns) / period_ns;
		if (before_ns && i % 2 && !a.result && revs < 0.7)
			took[n++] = (double)(a.complete_ns - a.submit_ns);
		before_ns = a.complete_ns;
	}
	/* Not the slowest of them: that one was late. */
	if (n > CALIBRATE / 6) {
		sort(took, n);
		r->hit_ns = (uint64_t)fmin(took[n * 2 / 3] + HIT_MARGIN_NS,
					   period_ns / 8);
	}
	return err;
}

int reader_calibrate(struct reader *reader, uint64_t unit)
{
	double turn, off[NOISE_READS], first = NAN;
	unsigned n = 0;
	int err = find_hits(reader, unit);

	for (unsigned i = 0; i < NOISE_READS && !err; i++) {
		err = reader_part(reader, unit + 64 + i);
		if (!err)
			err = reader_read(reader, unit + 64 + i, &turn);
		if (err || isnan(turn))
			continue;
		if (isnan(first))
			first = turn;
		off[n++] = phase_wrap(turn - first);
	}
	if (err)
		return err;
	if (n < NOISE_READS / 2)
		return -EIO;
	/* They lie close together: what they differ by, all differ by. */
	for (unsigned i = 0; i + 1 < n; i++)
		off[i] = off[i + 1] - off[i];
	reader->noise = spread(off, n - 1) / sqrt(2);
	if (reader->noise > NOISE_MAX)
		return -EOPNOTSUPP;
	reader->tolerance = fmin(fmax(7.8 * reader->noise, 0.012), 0.024);
	return 0;
}
