/*
 * segment.c - a line through angles, followed until it ends.
 *
 * In growing steps first, each of which says better how the line goes on, then
 * a search among several places at once.  Single units that lie elsewhere
 * (among spares) are no end: those behind them are on the line again.
 *
 * What is read of several places is read of all of them in each turn, and not
 * of one after the other in a turn for each read.
 */
#include "extract/track/segment.h"

#include <math.h>
#include <string.h>

#include "extract/probe/middle.h"

#define POINTS 64u
/* Reads of a place, and how many where the first do not say. */
#define READS 3u
#define READS_OFF 5u
#define READS_SURE 9u
#define READS_MOST 15u
/* Standard deviation of what n reads say, times the root of n. */
#define SIGMA 0.85
#define SIGMA_LEAST 0.0003
/* Standard deviations of one read that it may be early by. */
#define EARLY 7.8
/* So many of them: on the line after a few reads, after all of them, off it. */
#define ON 2.0
#define ON_AT_LAST 4.0
#define OFF 6.0
/* A leap, in units of what is none. */
#define LEAP 1.6
/* What a pitch that is known may be off by, as a share. */
#define PITCH_OFF 0.012
#define FREE 0.5
/* Steps grow by so much, up to so much of a turn. */
#define GROWS 1.5
#define STEP_MOST 0.2
#define FIRST_STEPS 3u
/* Standard deviations that a place may be off a line. */
#define BENT 3.0
#define AGAIN 3.0
/* Places that are read in one turn; revolutions from one to the next, so that
 * a drive gets the next command in time. */
#define PLACES 6u
#define APART 0.05
/* Places that are looked at all over one. */
#define HOLDS 20u
/* Fewer of them, where a track may have slips. */
#define GLANCES 12u

/* What is read, and what was seen. */
struct place {
	uint64_t unit;
	double from;		/* where it is thought to be */
	double slack;		/* up to which it is there; 0: that is not the
				 * question */
	double v[READS_MOST];	/* how much later it was, each time, */
	unsigned n;
	double off;		/* and as all say; NAN: it can't be read */
};

struct trace {
	struct reader *r;
	uint64_t first, limit;
	double sigma;			/* of a place */
	double tolerance;		/* after all reads */
	double guess, off;		/* pitch, and by what share it is off */
	double x[POINTS], y[POINTS];
	unsigned n;
	/* The line: at x = 0, and what is not known of it. */
	double at0, pitch, mean_x, pitch_var;
};

/* Of what n reads say. */
static double sigma_of(const struct reader *r, unsigned n)
{
	return fmax(SIGMA * r->noise / sqrt(n), SIGMA_LEAST);
}

/* Angles can be told apart from so many revolutions on. */
static double tolerance_of(const struct reader *r)
{
	return ON_AT_LAST * sigma_of(r, READS_MOST);
}

static void fit(struct trace *t)
{
	double ww = 1 / (t->sigma * t->sigma), prior, my = 0, xx = 0, xy = 0;

	prior = 1 / (t->guess * t->off * t->guess * t->off);
	t->mean_x = 0;
	for (unsigned i = 0; i < t->n; i++) {
		t->mean_x += t->x[i] / t->n;
		my += t->y[i] / t->n;
	}
	for (unsigned i = 0; i < t->n; i++) {
		xx += (t->x[i] - t->mean_x) * (t->x[i] - t->mean_x);
		xy += (t->x[i] - t->mean_x) * (t->y[i] - my);
	}
	t->pitch_var = 1 / (xx * ww + prior);
	t->pitch = (xy * ww + t->guess * prior) * t->pitch_var;
	t->at0 = my - t->pitch * t->mean_x;
}

/* Of a unit that is on the line. */
static double expected(const struct trace *t, uint64_t unit, double *slack)
{
	double x = (double)(unit - t->first + 1), from = x - t->mean_x;

	*slack = t->tolerance + 3 * sqrt(t->sigma * t->sigma / t->n +
					 t->pitch_var * from * from);
	return t->at0 + t->pitch * x;
}

/* Is it clear by now whether a place is on the line or not? */
static bool is_clear(const struct trace *t, double off, double slack,
		     unsigned n)
{
	double sigma = sigma_of(t->r, n);

	off = fabs(off);
	return off <= slack - t->tolerance + ON * sigma ||
	       (n >= READS_OFF && off >= slack + OFF * sigma);
}

static bool is_done(const struct trace *t, const struct place *p,
		    unsigned least)
{
	if (p->n == READS_MOST || (p->n && isnan(p->off)))
		return true;
	return p->n % 2 && p->n >= least &&
	       (!(p->slack > 0) || is_clear(t, p->off, p->slack, p->n));
}

static int read_place(struct trace *t, struct place *p)
{
	double w[READS_MOST], turn;
	int err = reader_read(t->r, p->unit, &turn);

	if (err)
		return err;
	p->v[p->n++] = p->off = phase_wrap(turn - p->from);
	if (isnan(turn))
		return 0;
	memcpy(w, p->v, sizeof(w));
	p->off = middle_low(w, p->n, EARLY * t->r->noise_once);
	return 0;
}

static int read_often(struct trace *t, struct place *p, unsigned least)
{
	int err = 0;

	while (!err && !is_done(t, p, least)) {
		if (p->unit > t->r->last)
			err = reader_part(t->r, p->unit, p->from);
		if (!err)
			err = read_place(t, p);
	}
	return err;
}

/* Places in order, each so often at least, and until it is clear where it is:
 * upwards, all of them in a turn.  A cache would get what lies between, so then
 * it is one after the other, downwards. */
static int read_places(struct trace *t, struct place *p, unsigned n,
		       unsigned least)
{
	bool open = !t->r->recent.depth;
	int err = 0;

	while (open && !err) {
		open = false;
		for (unsigned i = 0; i < n && !err; i++) {
			if (is_done(t, &p[i], least))
				continue;
			err = read_place(t, &p[i]);
			open |= !is_done(t, &p[i], least);
		}
	}
	for (unsigned i = n; i-- && !err;)
		err = read_often(t, &p[i], least);
	return err;
}

/* How many are read at once. */
static unsigned places_most(const struct trace *t)
{
	return t->r->recent.depth ? 1 : PLACES;
}

static void take(struct trace *t, uint64_t unit, double y)
{
	if (t->n == POINTS)
		return;
	t->x[t->n] = (double)(unit - t->first + 1);
	t->y[t->n++] = y;
	fit(t);
}

static struct place place_at(const struct trace *t, uint64_t unit)
{
	double slack;

	return (struct place){
		.unit = unit, .from = expected(t, unit, &slack),
	};
}

/* Is a place that was read on the line as it is known by now?  One that is says
 * more of it. */
static int see(struct trace *t, struct place *p, bool *on)
{
	double at = expected(t, p->unit, &p->slack);
	double more = phase_wrap(p->from - at);
	int err;

	for (unsigned i = 0; i < p->n; i++)
		p->v[i] = phase_wrap(p->v[i] + more);
	p->off = phase_wrap(p->off + more);
	p->from = at;
	err = read_places(t, p, 1, READS);
	*on = fabs(p->off) <= p->slack;
	if (!err && *on)
		take(t, p->unit, at + p->off);
	return err;
}

static int look(struct trace *t, uint64_t unit, bool *on)
{
	struct place p = place_at(t, unit);

	return see(t, &p, on);
}

/* The same of a place; a single unit that is not says nothing. */
static int see_around(struct trace *t, struct place *p, bool *on)
{
	int err = see(t, p, on);

	if (!err && !*on && p->unit + 1 < t->limit)
		err = look(t, p->unit + 1, on);
	return err;
}

/* lo is on the line, hi is not: where does it end? */
static int narrow(struct trace *t, uint64_t lo, uint64_t hi, uint64_t *end)
{
	struct place p[PLACES];
	int err = 0;

	while (!err && hi - lo > 1) {
		uint64_t width = hi - lo;
		double most = (double)width * t->pitch / APART - 1;
		unsigned n = (unsigned)fmax(1, fmin(most, places_most(t)));
		bool on = true;

		for (unsigned i = 0; i < n; i++)
			p[i] = place_at(t, lo + (i + 1) * width / (n + 1));
		err = read_places(t, p, n, READS);
		for (unsigned i = 0; i < n && !err && on; i++) {
			err = see(t, &p[i], &on);
			*(on ? &lo : &hi) = p[i].unit;
		}
	}
	*end = hi;
	return err;
}

/* On until a place is not on the line: *hi, or the limit.  *lo: the last that
 * was. */
static int follow(struct trace *t, uint64_t *lo, uint64_t *hi)
{
	struct place p[PLACES];
	unsigned steps = 0;
	double step = 1;
	bool on = true;
	int err = 0;

	while (!err && on && *lo + 1 < t->limit) {
		uint64_t at = *lo;
		unsigned n = 0;

		for (; n < places_most(t) && at + 1 < t->limit; n++) {
			at += (uint64_t)step;
			at = at < t->limit ? at : t->limit - 1;
			p[n] = place_at(t, at);
			if (steps++ >= FIRST_STEPS)
				step *= GROWS;
			step = fmax(fmin(step, STEP_MOST / t->pitch), 1);
		}
		err = read_places(t, p, n, READS);
		for (unsigned i = 0; i < n && !err && on; i++) {
			err = see_around(t, &p[i], &on);
			*(on ? lo : hi) = p[i].unit;
		}
	}
	if (on)
		*hi = t->limit;
	return err;
}

/* Both sides of an end once more, by the whole line. */
static int is_end(struct trace *t, uint64_t end, bool *good)
{
	struct place p[] = { place_at(t, end - 1), place_at(t, end) };
	double slack;
	int err;

	expected(t, end - 1, &slack);
	p[0].slack = p[1].slack = slack;
	err = read_places(t, p, 2, READS_SURE);
	*good = fabs(p[0].off) <= slack && fabs(p[1].off) > LEAP * slack;
	return err;
}

static int begin(struct trace *t)
{
	struct place p = { .unit = t->first };
	int err = reader_read(t->r, t->first, &p.from);

	if (err || isnan(p.from))
		return err;
	err = read_places(t, &p, 1, READS_OFF);
	t->y[0] = p.from + p.off;
	t->x[0] = 1;
	t->n = !isnan(t->y[0]);
	fit(t);
	return err;
}

static double distance(const struct trace *t, unsigned i)
{
	return fabs(t->at0 + t->pitch * t->x[i] - t->y[i]);
}

/* Does the line fit all that was seen of it?  A bend does not; what was late is
 * read again. */
static int is_straight(struct trace *t, bool *straight)
{
	int err = 0;

	for (unsigned i = 0; i < t->n && !err; i++) {
		struct place p = place_at(t, t->first + (uint64_t)t->x[i] - 1);

		if (distance(t, i) <= AGAIN * t->sigma)
			continue;
		err = read_places(t, &p, 1, READS_SURE);
		if (!isnan(p.off))
			t->y[i] = p.from + p.off;
		fit(t);
	}
	*straight = true;
	for (unsigned i = 0; i < t->n; i++)
		*straight = *straight && distance(t, i) <= BENT * t->sigma;
	return err;
}

static int trace_end(struct trace *t, uint64_t *end, bool *found)
{
	uint64_t lo = t->first, hi = t->limit;
	int err = follow(t, &lo, &hi);

	*end = hi;
	*found = !err && hi == t->limit;
	if (err || *found)
		return err;
	err = narrow(t, lo, hi, end);
	return err ? err : is_end(t, *end, found);
}

static void trace_of(struct trace *t, struct reader *r, uint64_t first,
		     uint64_t units, double pitch)
{
	*t = (struct trace){
		.r = r, .first = first, .limit = first + units,
		.guess = pitch, .off = PITCH_OFF,
		.sigma = sigma_of(r, READS),
		.tolerance = tolerance_of(r),
	};
}

int segment_find(struct reader *reader, struct segment *segment,
		 uint64_t limit, double pitch, double off, bool *found)
{
	bool straight = false;
	uint64_t end = limit;
	struct trace t;
	int err;

	trace_of(&t, reader, segment->first, limit - segment->first, pitch);
	t.off = off;
	err = begin(&t);
	*found = false;
	if (err || !t.n)
		return err;
	if (segment->first + 1 < limit)
		err = trace_end(&t, &end, found);
	else
		*found = true;
	if (!err)
		err = is_straight(&t, &straight);
	/* What it is by itself. */
	t.off = FREE;
	fit(&t);
	*found = *found && straight;
	segment->units = end - segment->first;
	segment->pitch = t.pitch;
	segment->pitch_sigma = sqrt(t.pitch_var);
	segment->start = phase_part(t.at0);
	return err;
}

int segment_line(struct reader *reader, struct segment *segment, bool *good)
{
	/* In the middle, too: a slip may have been taken for units. */
	static const double at[] = { 0, 0.08, 0.5, 0.75, 0.92, 0.999 };
	struct place p[PLACES];
	bool on = true, straight = false;
	struct trace t;
	double turn;
	int err = reader_read(reader, segment->first, &turn);

	*good = false;
	if (err || isnan(turn))
		return err;
	trace_of(&t, reader, segment->first, segment->units, segment->pitch);
	for (unsigned i = 0; i < PLACES; i++) {
		uint64_t k = (uint64_t)(at[i] * (double)segment->units);

		p[i] = (struct place){
			.unit = segment->first + k,
			.from = turn + (double)k * segment->pitch,
		};
	}
	err = read_places(&t, p, PLACES, READS);
	if (!err)
		err = read_places(&t, p, 1, READS_OFF);
	if (!err && !isnan(p[0].off))
		take(&t, p[0].unit, p[0].from + p[0].off);
	for (unsigned i = 1; !err && t.n && on && i < PLACES; i++)
		err = see(&t, &p[i], &on);
	if (!err)
		err = is_straight(&t, &straight);
	*good = t.n && on && straight;
	segment->pitch = t.pitch;
	segment->pitch_sigma = sqrt(t.pitch_var);
	segment->start = phase_part(t.at0);
	return err;
}

/* n places all over a segment, in order. */
static void places_over(const struct segment *s, struct place *p, unsigned n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t k = (2 * i + 1) * s->units / (2 * n);

		p[i] = (struct place){
			.unit = s->first + k,
			.from = s->start + (double)(k + 1) * s->pitch,
		};
	}
}

int segment_holds(struct reader *reader, const struct segment *segment,
		  double most, bool *good)
{
	unsigned n = (unsigned)fmin((double)segment->units, HOLDS);
	struct place p[HOLDS];
	double slack = most * tolerance_of(reader);
	unsigned strays = 0;
	struct trace t;
	int err;

	trace_of(&t, reader, segment->first, segment->units, segment->pitch);
	places_over(segment, p, n);
	for (unsigned i = 0; i < n; i++)
		p[i].slack = slack;
	err = read_places(&t, p, n, READS);
	for (unsigned i = 0; i < n; i++)
		strays += !(fabs(p[i].off) <= slack);
	/* A unit may lie elsewhere. */
	*good = strays < 2;
	return err;
}

int segment_slips(struct reader *reader, struct segment *segment,
		  uint64_t most, bool *good)
{
	double slack = ON_AT_LAST * sigma_of(reader, READS_OFF);
	double late = 0, last = 0;
	struct place p[GLANCES];
	struct trace t;
	double turn;
	int err = reader_read(reader, segment->first, &turn);

	*good = false;
	if (err || isnan(turn) || segment->units < GLANCES)
		return err;
	segment->start = phase_part(turn - segment->pitch);
	trace_of(&t, reader, segment->first, segment->units, segment->pitch);
	places_over(segment, p, GLANCES);
	err = read_places(&t, p, GLANCES, READS_OFF);
	*good = true;
	for (unsigned i = 0; i < GLANCES; i++) {
		late = phase_wrap(p[i].off - p[0].off);
		*good = *good && late >= last - slack &&
			late <= (double)most * segment->pitch + slack;
		last = late;
	}
	segment->start = phase_part(segment->start + p[0].off);
	return err;
}
