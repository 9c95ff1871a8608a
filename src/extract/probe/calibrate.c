/*
 * calibrate.c - a second of reads before all others.
 *
 * What a cache answers, it answers at once, and again.  Of one that does: how
 * far it reads ahead when it has time and when it has none, how much else has
 * to be read until it forgets, whether a read of which it holds the end comes
 * from the medium as a whole, and whether in the order of its units.  Every
 * question is asked a few times, and one hit is enough: a late one looks like a
 * read of the medium, never the other way round.
 */
#include <errno.h>
#include <math.h>

#include "extract/probe/calibrate.h"
#include "extract/probe/middle.h"

#define PAIRS 24u
/* With more errors among these another place is tried, so often. */
#define ERRORS_MOST 4u
#define PLACES 8u
/* Before it is known how much a cache remembers. */
#define DEPTH_START 32u
#define NOISE_READS 96u
/* From the first to these the angles tell how large a track is. */
#define APART_FIRST 3u
#define APART 48u
#define APART_TURNS 0.3
/* Above this, no skew can be told from noise. */
#define NOISE_MAX 0.02
#define VOTES 3u
#define TAIL_VOTES 7u
/* Reads of what is being read ahead, and when that comes by; by how much later
 * than others, at least, one comes that waited for the medium. */
#define STREAM_VOTES 9u
#define STREAM_FIRST_NS 100000.0
#define STREAM_STEP_NS 20000.0
#define STREAM_MARGIN_NS 80000.0
/* Sectors of a read of which the cache has the end. */
#define TAIL 64u
#define TAIL_MIN 12u
/* Revolutions before its first one that it is asked for: time to come back
 * from another track. */
#define TAIL_BEFORE 0.5
/* In standard deviations of one angle, from which on long reads are late. */
#define LATE_SIGMAS 1.0
/* The share of a drive, as a divisor, in which the medium is fastest. */
#define FASTEST 8u
/* Reads of half a track, and how many of them end with another unit than the
 * last; in standard deviations. */
#define ORDER_VOTES 36u
#define ORDER_LEAST 5u
#define ORDER_NOISE 5.0
/* No read-ahead is longer, in sectors. */
#define AHEAD_MAX 32768u
#define DEPTH_MAX 256u

/* The standard deviation, whatever a few of them are. */
static double spread(double *off, unsigned n)
{
	middle_sort(off, n);
	/* Five eighths of a normal distribution lie within 0.89 sigma; more of
	 * what is exponential does.  On a busy host one read in eight is late,
	 * and so is a quarter of these differences, half of it on each side. */
	return (off[n * 13 / 16] - off[n * 3 / 16]) / 1.6;
}

static bool is_hit(const struct reader *r, const struct probe_access *a)
{
	return !a->result && a->complete_ns - a->submit_ns < r->hit_ns;
}

static int find_hits(struct reader *r, uint64_t unit)
{
	double period_ns = r->phase.period_ns, revs, took[PAIRS];
	unsigned n = 0;
	struct probe_access a = { 0 };
	uint64_t before_ns = 0;
	unsigned errors = 0;
	int err = 0;

	for (unsigned i = 0; i < PAIRS && !err; i++) {
		/* Pairs of the same one, and of one and the next. */
		err = reader_raw(r, unit + i / 4 + (i % 4 == 3), 1, &a);
		errors += a.result != 0;
		revs = (double)(a.complete_ns - before_ns) / period_ns;
		if (before_ns && i % 2 && !a.result && revs < 0.7)
			took[n++] = (double)(a.complete_ns - a.submit_ns);
		before_ns = a.complete_ns;
	}
	if (errors > ERRORS_MOST)
		return err ? err : -EIO;
	/* Not the slowest of them: that one was late. */
	if (n > PAIRS / 6) {
		middle_sort(took, n);
		r->hit_ns = (uint64_t)fmin(took[n * 2 / 3] +
					   CALIBRATE_MARGIN_NS,
					   period_ns / 8);
	}
	return err;
}

/* The angle between reads that are some way apart, the usual one; about
 * `near`. */
static double angle_apart(const double *turn, unsigned n, unsigned apart,
			  double near)
{
	double off[NOISE_READS];
	unsigned k = 0;

	for (unsigned i = 0; i + apart < n; i++)
		off[k++] = phase_wrap(turn[i] - turn[i + apart] - near);
	if (!k)
		return near;
	return near + middle_of(off, k);
}

/* Units of a track, about: from those that are near each other, then from those
 * further apart. */
static double track_size(const double *turn, unsigned n)
{
	double each = 0;

	for (unsigned apart = APART_FIRST; apart <= APART &&
	     apart * each < APART_TURNS; apart *= 2)
		each = angle_apart(turn, n, apart, each * apart) / apart;
	return each > 1e-4 / APART ? 1 / each : 1e4 * APART;
}

/* Downwards: no read-ahead has been there. */
static int find_noise(struct reader *r, uint64_t unit, double *size)
{
	double turn[NOISE_READS], off[NOISE_READS];
	unsigned n = 0;
	int err = 0;

	for (unsigned i = NOISE_READS; i-- && !err;) {
		err = reader_read(r, unit + i, &turn[n]);
		n += !isnan(turn[n]);
	}
	if (err)
		return err;
	if (n < NOISE_READS / 2)
		return -EIO;
	/* They lie close together: what they differ by, all differ by. */
	for (unsigned i = 0; i + 1 < n; i++)
		off[i] = phase_wrap(turn[i + 1] - turn[i]);
	r->noise_once = spread(off, n - 1) / sqrt(2);
	*size = track_size(turn, n);
	return r->noise_once > NOISE_MAX ? -EOPNOTSUPP : 0;
}

/* A unit for a test, with some room behind it. */
static uint64_t place(struct reader *r)
{
	uint64_t room = r->units / 8;

	if (room > 4 * AHEAD_MAX / r->unit_sectors)
		room = 4 * AHEAD_MAX / r->unit_sectors;
	return 2 + env_random(r->prober->env) % (r->units - room - 2);
}

/* One question: a unit and the next are read, then `others` somewhere else or
 * nothing for a while, and then the unit `after` them.  Does one of the votes
 * find it in the cache? */
struct question {
	uint64_t after;
	unsigned others;
	uint64_t wait_ns;
};

static int ask(struct reader *r, const struct question *q, bool *yes)
{
	struct probe_access a;
	int err = 0;

	*yes = false;
	for (unsigned i = 0; i < VOTES && !err && !*yes; i++) {
		uint64_t at = place(r);

		err = reader_raw(r, at, 1, &a);
		if (!err)
			err = reader_raw(r, at + 1, 1, &a);
		if (!err && q->others)
			err = reader_elsewhere(r, at, q->others);
		if (err || a.result)
			continue;
		a = (struct probe_access){
			.sector = r->offset +
				  (at + 1 + q->after) * r->unit_sectors,
			.sectors = r->unit_sectors,
			.not_before_ns = q->wait_ns ? a.complete_ns +
						      q->wait_ns : 0,
		};
		err = r->prober->access(r->prober, &a, 1, 1);
		*yes = is_hit(r, &a);
	}
	recent_forget(&r->recent);
	return err;
}

/* Does it read so far ahead when it has time? */
static int ask_ahead(struct reader *r, uint64_t after, bool *yes)
{
	double revs = 2 + 2 * (double)after / r->around;

	return ask(r, &(struct question){ after, 0, (uint64_t)
			(revs * r->phase.period_ns) }, yes);
}

int calibrate_ahead(struct reader *r, uint64_t *ahead)
{
	uint64_t lo = r->recent.ahead / 2, mid;
	bool yes;
	int err = 0;

	*ahead = r->recent.ahead;
	while (!err && *ahead - lo > lo / 8) {
		mid = (lo + *ahead) / 2;
		err = ask_ahead(r, mid, &yes);
		*(yes ? &lo : ahead) = mid;
	}
	return err;
}

/* How far it reads ahead, with time and without; upper bounds. */
static int find_ahead(struct reader *r)
{
	uint64_t most = AHEAD_MAX / r->unit_sectors, d;
	bool yes = true;
	int err = 0;

	if (most > r->units / 16)
		most = r->units / 16;
	for (d = 4; d <= most && !err; d *= 2) {
		err = ask_ahead(r, d, &yes);
		if (!yes)
			break;
	}
	r->recent.ahead = d > 4 ? d : 0;
	yes = true;
	for (d = 4; d < r->recent.ahead && !err; d *= 2) {
		err = ask(r, &(struct question){ d, 1, 0 }, &yes);
		if (!yes)
			break;
	}
	r->recent.slack = d < r->recent.ahead ? d : r->recent.ahead;
	return err;
}

static int find_depth(struct reader *r)
{
	unsigned lo = 0, hi = 1, mid;
	bool yes = true;
	int err;

	for (;; hi *= 2) {
		err = ask(r, &(struct question){ 0, hi, 0 }, &yes);
		if (err || !yes || hi >= DEPTH_MAX)
			break;
		lo = hi;
	}
	while (!err && !yes && hi - lo > 1 + hi / 16) {
		mid = lo + (hi - lo) / 2;
		err = ask(r, &(struct question){ 0, mid, 0 }, &yes);
		*(yes ? &lo : &hi) = mid;
		yes = false;
	}
	r->recent.depth = yes ? RECENT_MAX : hi + 1;
	return err;
}

/* While it reads ahead: how long does a read take of what comes by before the
 * drive has understood that it is wanted?  That is answered from the cache, but
 * no sooner than any other read is. */
static int find_stream(struct reader *r, double size)
{
	double took[STREAM_VOTES], soon_ns = STREAM_FIRST_NS;
	unsigned n = 0;
	struct probe_access a;
	int err = 0;

	for (unsigned i = 0; i < STREAM_VOTES && !err; i++) {
		uint64_t at = place(r);

		err = reader_raw(r, at, 1, &a);
		if (!err && !a.result)
			err = reader_raw(r, at + 1 + (uint64_t)(soon_ns /
				r->phase.period_ns * size), 1, &a);
		if (!err && !a.result)
			took[n++] = (double)(a.complete_ns - a.submit_ns);
		soon_ns += STREAM_STEP_NS;
	}
	recent_forget(&r->recent);
	r->stream_ns = r->hit_ns;
	if (n <= STREAM_VOTES / 2)
		return err;
	/* Some had come by already; one or two are late. */
	middle_sort(took, n);
	r->stream_ns = (uint64_t)fmax((double)r->hit_ns, took[n * 3 / 4] +
							 STREAM_MARGIN_NS);
	return err;
}

/* A read just before a unit comes by, at `turn`, from which it begins. */
static int read_from(struct reader *r, uint64_t unit, uint32_t units,
		     double turn, struct probe_access *a)
{
	uint64_t now_ns = env_now_ns(r->prober->env);
	double wait = phase_part(turn - TAIL_BEFORE -
				 phase_at(&r->phase, now_ns));

	*a = (struct probe_access){
		.sector = r->offset + unit * r->unit_sectors,
		.sectors = units * r->unit_sectors,
		.not_before_ns = now_ns + (uint64_t)(wait *
						     r->phase.period_ns),
	};
	return r->prober->access(r->prober, a, 1, 1);
}

/* Where does a read end that begins before what the cache has?  Its last unit
 * is read by itself before, and nothing behind that: a read-ahead could have
 * got there, and what comes from a cache ends whenever.  Where the medium is
 * fastest, on the first tracks.  *late: by how much, against that unit; NAN: it
 * is not read as a whole, or can't be. */
static int try_whole(struct reader *r, uint32_t n, bool *bad, double *late)
{
	uint64_t at = place(r) / FASTEST + n;
	const struct { uint64_t first; uint32_t units; } v[3] = {
		{ at + n, 1 }, { at, 1 }, { at + 1, n },
	};
	struct probe_access a;
	double turn[3], last;
	int err = 0;

	*bad = false;
	for (unsigned k = 0; k < 3 && !err; k++) {
		err = reader_raw(r, v[k].first, v[k].units, &a);
		turn[k] = phase_at(&r->phase, a.complete_ns);
		*bad = *bad || a.result;
	}
	if (!err)
		err = read_from(r, at - 1, n + 2, turn[1], &a);
	*bad = *bad || a.result;
	last = phase_at(&r->phase, a.complete_ns);
	*late = phase_wrap(last - turn[0]);
	if (fabs(*late) >= fabs(phase_wrap(last - turn[1])))
		*late = NAN;
	return err;
}

/* Of a cache that has the end of a read: does the whole come from the medium,
 * and by how much later for each unit?  An interface that is slower than the
 * medium ends a read later the longer it is, though the last unit passes at the
 * same angle. */
static int find_whole(struct reader *r, double size)
{
	double most = r->prober->limits->max_sectors / r->unit_sectors - 2.0;
	uint32_t n = (uint32_t)fmin(fmin(reader_prefix_most(r), most),
				    size / 4);
	double late[TAIL_VOTES], one, by;
	unsigned whole = 0, all = 0;
	bool bad;
	int err = 0;

	for (unsigned i = 0; i < TAIL_VOTES && !err && n >= TAIL_MIN; i++) {
		err = try_whole(r, n, &bad, &one);
		all += !bad;
		if (!bad && !isnan(one))
			late[whole++] = one;
	}
	recent_forget(&r->recent);
	r->whole = all > TAIL_VOTES / 2 && whole > all * 2 / 3;
	by = r->whole ? middle_of(late, whole) : 0;
	r->late = by > LATE_SIGMAS * r->noise_once ? by / n : 0;
	return err;
}

/* The last of some units, and then all of them, asked for whenever: does that
 * end with another one? */
static int try_order(struct reader *r, uint64_t first, uint32_t units,
		     bool *other)
{
	double period_ns = r->phase.period_ns, turn;
	struct probe_access a;
	int err = reader_raw(r, first + units - 1, 1, &a);

	*other = false;
	if (err || a.result)
		return err;
	turn = phase_at(&r->phase, a.complete_ns);
	a = (struct probe_access){
		.sector = r->offset + first * r->unit_sectors,
		.sectors = units * r->unit_sectors,
		.not_before_ns = a.complete_ns +
			(uint64_t)((1 + (double)(env_random(r->prober->env) %
						 1024) / 1024) * period_ns),
	};
	err = r->prober->access(r->prober, &a, 1, 1);
	if (!err && !a.result)
		*other = fabs(phase_wrap(phase_at(&r->phase, a.complete_ns) -
					 turn)) > ORDER_NOISE * r->noise_once;
	return err;
}

/* Downwards: what it has read ahead is behind them. */
int calibrate_order(struct reader *r, bool *any_order)
{
	double most = r->prober->limits->max_sectors / r->unit_sectors;
	uint32_t units = (uint32_t)fmin(r->around / 2, most);
	uint64_t room = (units + TAIL) * (uint64_t)ORDER_VOTES, at;
	unsigned others = 0;
	bool other;
	int err = 0;

	*any_order = false;
	if (room > r->units / 2 || units < 2)
		return 0;
	at = room + env_random(r->prober->env) % (r->units - room - units);
	for (unsigned i = 0; others + (ORDER_VOTES - i) >= ORDER_LEAST &&
	     others < ORDER_LEAST && !err; i++) {
		at -= units + env_random(r->prober->env) % TAIL;
		err = try_order(r, at, units, &other);
		others += other;
	}
	*any_order = others >= ORDER_LEAST;
	recent_forget(&r->recent);
	return err;
}

static int find_cache(struct reader *r, double size)
{
	int err = find_ahead(r);

	if (!err && r->recent.ahead)
		err = find_stream(r, size);
	if (!err)
		err = find_depth(r);
	if (!err)
		err = find_whole(r, size);
	if (!err)
		err = calibrate_order(r, &r->any_order);
	return err;
}

static int calibrate_at(struct reader *reader, uint64_t unit)
{
	unsigned repeat = reader->repeat;
	double size = 0;
	int err = 0;

	reader_sharpen(reader, 1);
	recent_forget(&reader->recent);
	if (!reader->learned) {
		err = find_hits(reader, unit);
		reader->recent.depth = reader->hit_ns ? DEPTH_START : 0;
	}
	if (!err)
		err = find_noise(reader, unit + 64, &size);
	reader_sharpen(reader, repeat);
	if (err || reader->learned)
		return err;
	reader->around = size;
	if (reader->hit_ns)
		err = find_cache(reader, size);
	reader->learned = !err;
	return err;
}

int calibrate_reader(struct reader *reader, uint64_t unit)
{
	int err = calibrate_at(reader, unit);

	for (unsigned i = 1; err == -EIO && i < PLACES; i++)
		err = calibrate_at(reader, place(reader));
	return err;
}
