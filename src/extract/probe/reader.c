/*
 * reader.c - reads of one unit, their angles, and the fight with the cache.
 *
 * The trailing edge of a unit passes at the same angle whatever was read before
 * it in the same request.  So a unit that may be in the cache is read from a
 * little before it, from one that can't be there: drives do not answer the
 * first part of a request from the medium and the rest from memory, and those
 * that do are found out (calibrate.h).  So are those that take the units of a
 * request in any order: when the head gets to a track in the middle of them,
 * because the first ones were on another one, such a read ends with another
 * unit, at the same wrong angle each time.  Where that does not go, or a cache
 * answers unexpectedly, so much else is read that it has forgotten the unit.  A
 * hit is faster than any read of the medium but for those that happen to find
 * their sector just under the head; both are read again.
 *
 * How long it takes to reach a unit is kept for each power of two of the
 * distance: longer after every revolution missed, shorter bit by bit.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "extract/probe/middle.h"
#include "extract/probe/reader.h"

#define EVICT_DEPTH 16u
/* Times what the cache may read ahead of it, around a unit, is where the reads
 * that fill it are: short seeks. */
#define EVICT_ROOM 3u
#define PLACE_TRIES 20u
/* Sectors that may be read before the one that is wanted. */
#define PREFIX_MAX 256u
/* And of a turn: the head gets to its track amid more, or two tracks are read,
 * and then it ends with another unit. */
#define PREFIX_TURNS 0.125
/* Revolutions: a read that takes so long has not got all in one go, if it was
 * for something that near. */
#define DUBIOUS_TURNS 1.4
#define NEAR_TURNS 4
/* Units that are no further apart than that share of the noise. */
#define ALIKE 0.5
/* The drive had time to read ahead. */
#define IDLE_NS 1000000u
/* Units before one of known angle that are tried instead of it. */
#define PART_NEAR 3u
#define PART_TRIES 12u
/* Units before others that are as near, but none of them. */
#define BEFORE 3u
#define BEFORE_MORE 8u
#define REACH_START_NS 2500000.0
#define REACH_MAX_NS 60000000.0
#define REACH_MORE_NS 300000.0
#define REACH_LESS 0.02
#define HITS_MAX 8u
/* So many one after another, the last ones behind reads that should have filled
 * the cache, are hits. */
#define HITS_SURE 4u
/* By how much what a cache may hold is put off. */
#define CACHED_NS 30000000.0
/* A unit that fails so often is not read again. */
#define ERRORS_MOST 4u
/* Tolerances, in standard deviations of one read and of what several say,
 * which is no longer skew; revolutions. */
#define ONCE 7.8
#define ONCE_LEAST 0.012
#define OFTEN 5.5
#define OFTEN_LEAST 0.005
#define TOLERANCE_MOST 0.024
/* Reads of a unit that may say it is where it is expected, and the share of the
 * tolerance that they may be off then. */
#define REPEAT_FEW 3u
#define CLEARLY 0.5
/* Of what n reads say, times the root of n, as a share of one's. */
#define SEVERAL 0.85
/* What is behind a boundary that is read over seems to come early by so many
 * standard deviations of a read at most. */
#define CAUGHT_UP 1.0

void reader_init(struct reader *reader, struct prober *prober,
		 double period_ns, uint32_t unit_sectors, uint64_t offset)
{
	*reader = (struct reader){
		.prober = prober,
		.unit_sectors = unit_sectors,
		.offset = offset,
		.units = (prober->limits->sectors - offset) / unit_sectors,
		.noise = 0.003,
		.noise_once = 0.003,
		.tolerance = 0.015,
		.repeat = 1,
	};
	recent_init(&reader->recent);
	phase_init(&reader->phase, period_ns, env_now_ns(prober->env));
	for (unsigned i = 0; i < READER_CLASSES; i++)
		reader->reach[i] = REACH_START_NS;
	for (unsigned i = 0; i < READER_MEMO; i++)
		reader->memo[i].unit = UINT64_MAX;
}

void reader_sharpen(struct reader *reader, unsigned repeat)
{
	double noise = reader->noise_once;

	reader->repeat = repeat;
	reader->noise = noise;
	reader->tolerance = fmin(fmax(ONCE * noise, ONCE_LEAST),
				 TOLERANCE_MOST);
	if (repeat == 1)
		return;
	reader->noise = SEVERAL * noise / sqrt(repeat);
	reader->tolerance = fmin(fmax(OFTEN * reader->noise, OFTEN_LEAST),
				 reader->tolerance);
}

static void access_set(const struct reader *r, struct probe_access *a,
		       uint64_t unit, uint32_t units)
{
	*a = (struct probe_access){
		.sector = r->offset + unit * r->unit_sectors,
		.sectors = units * r->unit_sectors,
	};
}

static void note(struct reader *r, uint64_t unit, uint32_t units,
		 const struct probe_access *a)
{
	bool idle = a->submit_ns > r->last_ns + IDLE_NS;

	if (!a->complete_ns)
		return;
	r->reads++;
	r->reads_for[r->purpose]++;
	/* A drive may have done some in another order. */
	if (a->complete_ns > r->done_ns) {
		if (r->done_ns)
			r->ns_for[r->purpose] += a->complete_ns - r->done_ns;
		r->done_ns = a->complete_ns;
	}
	r->last = unit + units - 1;
	r->last_ns = a->complete_ns;
	r->took_ns = a->complete_ns - a->submit_ns;
	recent_add(&r->recent, unit, unit + units, idle);
	if (a->result)
		r->errors++;
}

enum reader_purpose reader_set_purpose(struct reader *reader,
				       enum reader_purpose purpose)
{
	enum reader_purpose was = reader->purpose;

	reader->purpose = purpose;
	return was;
}

/* To the prober. */
static int pass(struct reader *r, struct probe_access *a, unsigned n,
		unsigned depth)
{
	if (r->until_ns && env_now_ns(r->prober->env) > r->until_ns)
		return -ETIME;
	return r->prober->access(r->prober, a, n, depth);
}

int reader_raw(struct reader *reader, uint64_t unit, uint32_t units,
	       struct probe_access *access)
{
	int err;

	access_set(reader, access, unit, units);
	err = pass(reader, access, 1, 1);
	note(reader, unit, units, access);
	return err;
}

/* A unit around another that is in no cache nor read ahead. */
static uint64_t place_elsewhere(struct reader *r, uint64_t unit)
{
	uint64_t each = r->recent.ahead + r->recent.slack + 256;
	uint64_t span = EVICT_ROOM * each * (r->recent.depth + 4), low, at = 0;

	if (span > r->units)
		span = r->units;
	low = unit > span / 2 ? unit - span / 2 : 0;
	if (low + span > r->units)
		low = r->units - span;
	for (unsigned i = 0; i < PLACE_TRIES; i++) {
		at = low + env_random(r->prober->env) % span;
		if (!recent_has(&r->recent, at) &&
		    !recent_streams(&r->recent, at))
			break;
	}
	return at;
}

int reader_elsewhere(struct reader *reader, uint64_t unit, unsigned n)
{
	struct probe_access a[EVICT_DEPTH];
	uint64_t at[EVICT_DEPTH];
	unsigned k;
	int err = 0;

	while (n && !err) {
		for (k = 0; k < EVICT_DEPTH && n; k++, n--) {
			at[k] = place_elsewhere(reader, unit);
			access_set(reader, &a[k], at[k], 1);
		}
		err = pass(reader, a, k, k);
		for (unsigned i = 0; i < k; i++)
			note(reader, at[i], 1, &a[i]);
	}
	return err;
}

static int evict(struct reader *r, uint64_t unit)
{
	r->evictions++;
	return reader_elsewhere(r, unit, r->recent.depth);
}

static void memo_put(struct reader *r, uint64_t unit, double turn)
{
	r->memo[r->memo_next].unit = unit;
	r->memo[r->memo_next].turn = turn;
	r->memo_next = (r->memo_next + 1) % READER_MEMO;
}

uint64_t reader_prefix_most(const struct reader *reader)
{
	uint64_t most = PREFIX_MAX / reader->unit_sectors;

	return most ? most : 2;
}

/* Units that are read before one.  What lags on a slow interface is caught up
 * while the head goes to the next track, so a unit behind a boundary that is
 * read over seems to come early. */
static uint64_t before_most(const struct reader *r)
{
	uint64_t most = reader_prefix_most(r);

	if (!r->whole)
		return 0;
	if (r->around > 0)
		most = (uint64_t)fmin((double)most, PREFIX_TURNS * r->around);
	return (double)most * r->late > CAUGHT_UP * r->noise_once ?
		       (uint64_t)(CAUGHT_UP * r->noise_once / r->late) : most;
}

/* From where a unit has to be read so that no cache answers. */
static uint64_t begin_of(const struct reader *r, uint64_t unit)
{
	uint64_t most = before_most(r);

	if (!recent_has(&r->recent, unit))
		return unit;
	for (uint64_t k = 1; k <= most && k <= unit; k++) {
		if (!recent_has(&r->recent, unit - k))
			return unit - k;
	}
	return unit;
}

/* By powers of two of the distance. */
static double *reach_of(const struct reader *r, uint64_t from, uint64_t unit)
{
	uint64_t d = unit > from ? unit - from : from - unit;
	unsigned class = 0;

	for (d *= r->unit_sectors; d && class < READER_CLASSES - 1; d /= 2)
		class++;
	return (double *)&r->reach[class];
}

/* How long it takes to read a unit at an angle, and then another one; that may
 * be anywhere (NAN). */
static double cost_by(const struct reader *r, uint64_t unit, double turn,
		      uint64_t other, double expected)
{
	double ns = reader_cost(r, unit, turn), wait_ns;

	if (isnan(expected))
		return ns;
	wait_ns = phase_part(expected - turn) * r->phase.period_ns;
	while (wait_ns < *reach_of(r, unit, other))
		wait_ns += r->phase.period_ns;
	return ns + wait_ns;
}

/* The unit near one whose angle is known by way of which another one can be
 * read soonest. */
static uint64_t place_soon(const struct reader *r, uint64_t unit,
			   double expected)
{
	uint64_t best = UINT64_MAX, at;
	double best_ns = INFINITY, ns;

	for (unsigned i = 0; i < READER_MEMO; i++) {
		if (r->memo[i].unit < PART_NEAR + PART_TRIES ||
		    r->memo[i].unit >= r->units || isnan(r->memo[i].turn))
			continue;
		at = r->memo[i].unit - PART_NEAR;
		ns = cost_by(r, at, r->memo[i].turn, unit, expected);
		if (ns >= best_ns)
			continue;
		for (unsigned k = 0; k < PART_TRIES; k++, at--) {
			if (recent_has(&r->recent, at) ||
			    (unit >= at && unit - at <= r->recent.ahead) ||
			    recent_streams(&r->recent, at))
				continue;
			best = at;
			best_ns = ns;
			break;
		}
	}
	return best;
}

/* Is a unit read ahead, and later for it than when it is read by itself: is the
 * interface too slow for all that comes with it? */
static bool lags(const struct reader *r, uint64_t unit)
{
	return recent_streams(&r->recent, unit) &&
	       (double)(unit - r->recent.read_end) * r->late >
		       CAUGHT_UP * r->noise_once;
}

/* A cache answered, or what is wanted was just coming by: a read from before it
 * tells.  Is it unlike what was believed of the cache? */
static int after_hit(struct reader *r, uint64_t unit, unsigned tries)
{
	r->hits++;
	if (!tries && begin_of(r, unit) < unit)
		return 0;
	/* One read in some fifty finds its unit just under the head, and is as
	 * fast as a hit. */
	if (tries >= HITS_SURE)
		recent_more(&r->recent);
	return evict(r, unit);
}

/* Did a read take longer than to wait for its first unit?  Then that was on
 * another track, and the head got to this one in the middle of what is wanted:
 * a drive that takes it in any order has ended with another unit. */
static bool is_dubious(const struct reader *r, uint64_t first, uint64_t unit,
		       uint64_t from, const struct probe_access *a)
{
	double near = fmax(r->around, PREFIX_MAX) * NEAR_TURNS;
	double revs = (double)(a->complete_ns - a->submit_ns) /
		      r->phase.period_ns;

	/* Which of so few it ended with is all the same. */
	if ((double)(unit - first) <= ALIKE * r->noise_once * r->around)
		return false;
	return r->any_order && first < unit && revs > DUBIOUS_TURNS &&
	       fabs((double)unit - (double)from) < near;
}

/* Where it is kept how often a unit could not be read; NULL: it is not. */
static unsigned *bad_of(struct reader *r, uint64_t unit)
{
	for (unsigned i = 0; i < READER_BAD; i++) {
		if (r->bad[i].errors && r->bad[i].unit == unit)
			return &r->bad[i].errors;
	}
	return NULL;
}

static void note_bad(struct reader *r, uint64_t unit)
{
	unsigned *errors = bad_of(r, unit);

	if (errors) {
		++*errors;
		return;
	}
	r->bad[r->bad_next].unit = unit;
	r->bad[r->bad_next].errors = 1;
	r->bad_next = (r->bad_next + 1) % READER_BAD;
}

/* A read of the medium; *a is its access. */
static int read_once(struct reader *r, uint64_t unit, struct probe_access *a,
		       double *turn)
{
	unsigned *errors;
	uint64_t first, from, least_ns;
	int err;

	*turn = NAN;
	errors = bad_of(r, unit);
	if (unit >= r->units || (errors && *errors >= ERRORS_MOST))
		return 0;
	for (unsigned tries = 0; tries < HITS_MAX; tries++) {
		first = begin_of(r, unit);
		if (lags(r, first)) {
			err = reader_part(r, first, NAN);
			if (err)
				return err;
		}
		from = r->last;
		least_ns = recent_streams(&r->recent, first) ? r->stream_ns :
							       r->hit_ns;
		err = reader_raw(r, first, (uint32_t)(unit - first + 1), a);
		if (err)
			return err;
		if (a->result) {
			note_bad(r, unit);
			return 0;
		}
		if (is_dubious(r, first, unit, from, a)) {
			err = evict(r, unit);
			if (err)
				return err;
			continue;
		}
		if (a->complete_ns - a->submit_ns >= least_ns) {
			*turn = phase_part(phase_at(&r->phase,
						    a->complete_ns) -
					   (double)(unit - first) * r->late);
			if (errors)
				*errors = 0;
			return 0;
		}
		err = after_hit(r, unit, tries);
		if (err)
			return err;
	}
	return 0;
}

/* Once more, until there are enough; *turn is what all say then.  A few that
 * say it is where it is expected are: leaps are so much larger that no noise
 * makes up for one in all of them. */
static int read_again(struct reader *r, uint64_t unit, double expected,
		      double *turn)
{
	double off[READER_REPEAT_MAX] = { 0 }, v[READER_REPEAT_MAX];
	double first = *turn, early = ONCE * r->noise_once;
	struct probe_access a;
	unsigned n = 1;
	int err = 0;

	while (n < r->repeat && !err) {
		err = read_once(r, unit, &a, turn);
		if (err || isnan(*turn))
			return err;
		off[n++] = phase_wrap(*turn - first);
		memcpy(v, off, sizeof(v));
		*turn = phase_part(first + middle_low(v, n, early));
		if (n >= REPEAT_FEW &&
		    fabs(phase_wrap(*turn - expected)) <=
			    CLEARLY * r->tolerance)
			break;
	}
	return err;
}

bool reader_knows(const struct reader *reader, uint64_t unit, double *turn)
{
	for (unsigned i = 1; i <= READER_MEMO; i++) {
		unsigned k = (reader->memo_next + READER_MEMO - i) %
			     READER_MEMO;

		if (reader->memo[k].unit == unit) {
			*turn = reader->memo[k].turn;
			return true;
		}
	}
	return false;
}

unsigned reader_saw(const struct reader *reader, uint64_t unit, double turn)
{
	unsigned times = 0;

	for (unsigned i = 1; i <= READER_MEMO; i++) {
		unsigned k = (reader->memo_next + READER_MEMO - i) %
			     READER_MEMO;

		if (reader->memo[k].unit != unit)
			continue;
		if (!(fabs(phase_wrap(reader->memo[k].turn - turn)) <=
		      reader->tolerance))
			break;
		times++;
	}
	return times;
}

/* Does a unit lie elsewhere than when it was read lately?  Then one of the two
 * was late, perhaps by as much as would be another track: what a third read
 * agrees with is right. */
static int decide(struct reader *r, uint64_t unit, double *turn)
{
	struct probe_access a;
	double was, now = *turn;
	int err;

	if (!reader_knows(r, unit, &was) ||
	    fabs(phase_wrap(now - was)) <= r->tolerance)
		return 0;
	err = read_once(r, unit, &a, turn);
	if (!err && !(fabs(phase_wrap(*turn - now)) <= r->tolerance) &&
	    !(fabs(phase_wrap(*turn - was)) <= r->tolerance))
		*turn = now;
	return err;
}

/* `expected`: NAN, if that is not known.  *a: the first access. */
static int read_medium(struct reader *r, uint64_t unit, double expected,
		       struct probe_access *a, double *turn)
{
	int err = read_once(r, unit, a, turn);

	if (!err && !isnan(*turn))
		err = r->repeat > 1 ? read_again(r, unit, expected, turn) :
				      decide(r, unit, turn);
	if (!err && !isnan(*turn))
		memo_put(r, unit, *turn);
	return err;
}

int reader_read(struct reader *reader, uint64_t unit, double *turn)
{
	struct probe_access a;

	return read_medium(reader, unit, NAN, &a, turn);
}

int reader_recall(struct reader *reader, uint64_t unit, double *turn)
{
	return reader_knows(reader, unit, turn) ?
	       0 : reader_read(reader, unit, turn);
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
	double reach_ns = *reach_of(reader, reader->last, unit);

	while (wait_ns < reach_ns)
		wait_ns += reader->phase.period_ns;
	return wait_ns;
}

double reader_effort(const struct reader *reader, uint64_t unit,
		     double expected)
{
	double ns = reader_cost(reader, unit, expected);

	/* What follows at once comes by all the same. */
	if (unit != reader->recent.read_end &&
	    (recent_has(&reader->recent, unit) ||
	     recent_streams(&reader->recent, unit)))
		ns += CACHED_NS;
	return ns;
}

int reader_expect(struct reader *reader, uint64_t unit, double expected,
		  double *turn)
{
	double *reach_ns = reach_of(reader, reader->last, unit);
	double wait_ns, took_ns;
	struct probe_access a;
	int err = read_medium(reader, unit, expected, &a, turn);

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

/* Or would a drive that reads ahead have it soon? */
static bool has_some(const struct reader *r, uint64_t unit, uint32_t units)
{
	if (recent_streams(&r->recent, unit))
		return true;
	for (uint32_t i = 0; i < units; i++) {
		if (recent_has(&r->recent, unit + i))
			return true;
	}
	return false;
}

/* Makes the cache forget units; the head ends near them, before or behind them,
 * where a read-ahead does not get at them. */
static int come_back(struct reader *r, uint64_t unit, uint32_t units,
		     bool behind)
{
	/* Not always the same: it may lie elsewhere. */
	uint64_t away = BEFORE + env_random(r->prober->env) % BEFORE_MORE;
	uint64_t before = r->recent.ahead + away, at;
	struct probe_access a;
	int err = evict(r, unit);

	while (before <= unit && recent_has(&r->recent, unit - before))
		before += BEFORE;
	at = before <= unit && !behind ? unit - before :
					 unit + units + away;
	return err || at >= r->units ? err : reader_raw(r, at, 1, &a);
}

int reader_span(struct reader *reader, uint64_t unit, uint32_t units,
		double begins, double ahead, bool behind, double *turns)
{
	double period_ns = reader->phase.period_ns;
	struct probe_access a;
	uint64_t now_ns;
	int err = has_some(reader, unit, units) ?
			  come_back(reader, unit, units, behind) : 0;

	*turns = NAN;
	if (err)
		return err;
	access_set(reader, &a, unit, units);
	now_ns = env_now_ns(reader->prober->env);
	a.not_before_ns = now_ns +
		(uint64_t)(wait_for(reader, now_ns, begins - ahead) +
			   floor(ahead) * period_ns);
	err = pass(reader, &a, 1, 1);
	note(reader, unit, units, &a);
	if (err || a.result)
		return err;
	if (a.complete_ns - a.submit_ns < reader->hit_ns) {
		reader->hits++;
		return 0;
	}
	*turns = ((double)(a.complete_ns - a.submit_ns) -
		  wait_for(reader, a.submit_ns, begins)) / period_ns;
	return 0;
}

int reader_part(struct reader *reader, uint64_t unit, double expected)
{
	struct probe_access a;
	uint64_t at;

	/* Nothing lies between it and the one that follows. */
	if (!recent_streams(&reader->recent, unit) || unit == reader->last + 1)
		return 0;
	at = place_soon(reader, unit, expected);
	if (at == UINT64_MAX)
		at = place_elsewhere(reader, unit);
	return reader_raw(reader, at, 1, &a);
}
