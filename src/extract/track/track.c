/*
 * track.c - the end of a track by bisection.
 *
 * A late completion makes a unit look as if it were not on the track, never as
 * if it were (it would have to be late by nearly a revolution).  So what is on
 * the track is believed at once, and the first unit that is not is believed
 * when the units behind it are not on the track either and agree with it about
 * where the next track starts.
 *
 * Often the track is another one than was foretold.  What was seen of it says
 * so when it lies on a line through the start, of another pitch: then its end
 * is not looked for.
 *
 * A track of unknown size is first followed in doubling steps, each of which
 * says better how far a unit reaches; half way round, that says where the end
 * must be within a percent.
 *
 * Units that lie between two that have been read one after the other may be in
 * the drive's cache; bisection upwards therefore goes by way of something else.
 */
#include <math.h>

#include "extract/track/track.h"

#define POINTS 16u
#define START 4u
#define PITCH_GAIN 0.5
#define PITCH_MIN 1e-5
#define PITCH_MAX 0.1
/* A jump is believed from so many tolerances on. */
#define JUMP 2.0
#define AROUND_MAX 1.02
/* Within so much of a revolution pitches of tracks hardly differ. */
#define NEAR 0.06
#define RETRIES 4u
/* By which steps to the end grow. */
#define GROWS 4u
/* Units before an end that is looked for in all of the track. */
#define FAR 16u
/* Where the end may be anywhere in so many revolutions, not just the middle is
 * weighed against the time that it takes, but so many parts less one. */
#define WIDE 0.1
#define CHOICE 16u
/* So many units say that the pitch is another one, when they are off that line
 * by no more standard deviations, and in sum by so many off two tracks. */
#define DRIFT_LEAST 3u
#define DRIFT_NOISE 3.5
#define DRIFT_SURE 6.0
#define SEEN 48u

struct search {
	struct reader *r;
	struct track *t;
	double tolerance;
	uint64_t lo;		/* on the track */
	uint64_t hi;		/* not, or the limit */
	uint64_t over;		/* the one before hi; 0: none */
	uint64_t limit;		/* no track is longer */
	bool found;		/* hi was read */
	bool loose;		/* the pitch is only just being learned */
	double x[SEEN], off[SEEN];	/* what was seen */
	unsigned seen;
};

static double expected(const struct track *t, uint64_t unit)
{
	return t->start + (double)(unit - t->first + 1) * t->pitch;
}

/* Keeps by how much a unit was off the line; lowest first. */
static void keep(struct search *s, uint64_t unit, double off)
{
	unsigned k = s->seen;
	double x = (double)(unit - s->t->first + 1);

	if (s->seen == SEEN || isnan(off))
		return;
	for (; k && s->x[k - 1] > x; k--) {
		s->x[k] = s->x[k - 1];
		s->off[k] = s->off[k - 1];
	}
	s->x[k] = x;
	s->off[k] = off;
	s->seen++;
}

/* The squares of what the first n units are off two tracks, the second of which
 * begins somewhere. */
static double off_tracks(const struct search *s, unsigned n)
{
	double best = INFINITY;

	for (unsigned e = 0; e < n; e++) {
		double mean = 0, sum = 0;

		for (unsigned i = e; i < n; i++)
			mean += s->off[i] / (n - e);
		for (unsigned i = 0; i < n; i++)
			sum += i < e ? s->off[i] * s->off[i] :
			       (s->off[i] - mean) * (s->off[i] - mean);
		best = fmin(best, sum);
	}
	return best;
}

/* Do the first n units lie on a line from the start, but on one of another
 * pitch? */
static bool drifts(const struct search *s, unsigned n)
{
	double noise = s->r->noise, xx = 0, xy = 0, slope;

	for (unsigned i = 0; i < n; i++) {
		xx += s->x[i] * s->x[i];
		xy += s->x[i] * s->off[i];
	}
	slope = xy / xx;
	if (fabs(slope * s->x[n - 1]) < s->tolerance)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (fabs(s->off[i] - slope * s->x[i]) > DRIFT_NOISE * noise)
			return false;
	}
	return off_tracks(s, n) > DRIFT_SURE * DRIFT_SURE * noise * noise;
}

/* Reads a unit and narrows the search.  TRACK_UNDECIDED: it is seen by now that
 * the track is of another pitch. */
static int look(struct search *s, uint64_t unit)
{
	struct track *t = s->t;
	double turn, off;
	int err = 0;

	if (!reader_knows(s->r, unit, &turn)) {
		if (unit > s->lo)
			err = reader_part(s->r, unit, expected(t, unit));
		if (!err)
			err = reader_expect(s->r, unit, expected(t, unit),
					    &turn);
	}
	if (err)
		return err;
	off = phase_wrap(turn - expected(t, unit));
	keep(s, unit, off);
	if (fabs(off) <= s->tolerance) {
		if (s->loose && unit > s->lo)
			t->pitch += PITCH_GAIN * off /
				    (double)(unit - t->first + 1);
		if (unit > s->lo)
			s->lo = unit;
	} else if (unit < s->hi) {
		s->over = s->found ? s->hi : 0;
		s->hi = unit;
		s->found = true;
	}
	for (unsigned n = s->seen; n >= DRIFT_LEAST && !s->loose; n--) {
		if (drifts(s, n))
			return TRACK_UNDECIDED;
	}
	return 0;
}

/* Which unit tells most about the end for the time that it takes? */
static uint64_t pick(const struct search *s)
{
	uint64_t width = s->hi - s->lo, best = s->lo + width / 2;
	double most = 0;

	if ((double)width * s->t->pitch < WIDE)
		return best;
	for (unsigned i = 1; i < CHOICE; i++) {
		uint64_t at = s->lo + width * i / CHOICE;
		double f = (double)i / CHOICE, tells;

		tells = -(f * log(f) + (1 - f) * log(1 - f)) /
			reader_effort(s->r, at, expected(s->t, at));
		if (at > s->lo && at < s->hi && tells > most) {
			most = tells;
			best = at;
		}
	}
	return best;
}

/* The end is not where it was thought to be.  Far before that?  Then the track
 * may not even begin where it was thought to. */
static int survey(struct search *s)
{
	uint64_t mid = s->lo + (s->hi - s->lo) / 2;
	double turn;
	int err;

	if (s->lo != s->t->first || s->hi - s->lo < FAR)
		return 0;
	err = look(s, mid);
	if (err || s->hi != mid)
		return err;
	err = reader_recall(s->r, s->lo, &turn);
	if (!err && !(fabs(phase_wrap(turn - expected(s->t, s->lo))) <=
		      s->tolerance))
		return TRACK_UNDECIDED;
	return err;
}

/* Around the hint in growing steps, then bisection. */
static int narrow(struct search *s, uint64_t hint)
{
	bool down = s->r->recent.depth > 0;
	uint64_t step, at, lo;
	int err = 0;

	/* What a track more begins with comes by soon behind the last unit, but
	 * a read-ahead gets what is above. */
	if (!down && hint > s->lo + 1 && hint <= s->hi)
		err = look(s, hint - 1);
	if (!err && hint > s->lo && hint + 2 < s->hi)
		err = look(s, hint + 2);
	if (!err && down && hint > s->lo + 1 && hint <= s->hi)
		err = look(s, hint - 1);
	if (!err && s->lo + 1 == hint && hint < s->hi)
		err = look(s, hint);
	for (step = 1; !err && !s->found && s->lo + 1 < s->hi; step *= GROWS) {
		at = s->lo + step;
		err = look(s, at < s->hi ? at : s->hi - 1);
	}
	/* Most often a unit or two have slipped. */
	if (!err && s->lo == s->t->first && s->lo + 1 < s->hi)
		err = look(s, s->hi - 1);
	if (!err)
		err = survey(s);
	lo = s->lo;
	for (step = 1; !err && s->lo == lo && s->hi - lo > GROWS * step;
	     step *= GROWS)
		err = look(s, s->hi - step);
	while (!err && s->lo + 1 < s->hi)
		err = look(s, pick(s));
	return err;
}

/* Where the next track starts, as a unit behind the end says. */
static int start_by(struct search *s, uint64_t unit, double *start, bool *on)
{
	double turn;
	int err = 0;

	if (unit > s->hi)
		err = reader_part(s->r, unit, expected(s->t, unit));
	if (!err)
		err = reader_recall(s->r, unit, &turn);

	if (err)
		return err;
	*start = turn - (double)(unit - s->hi + 1) * s->t->pitch;
	*on = fabs(phase_wrap(turn - expected(s->t, unit))) <= s->tolerance;
	return 0;
}

/* Is the last unit of a track really on it? */
static int look_again(struct search *s)
{
	double turn;
	int err = reader_read(s->r, s->lo, &turn);

	if (err)
		return err;
	return fabs(phase_wrap(turn - expected(s->t, s->lo))) <=
			       s->tolerance ? 0 : TRACK_UNDECIDED;
}

/* Do the units behind the end agree that a track starts there?  *again: one of
 * them, or the first itself at the second look, is still on the track. */
static int confirm(struct search *s, bool nominal, bool *again, bool *soft)
{
	double start, other, turn;
	uint64_t at = s->hi, behind = at + 2;
	bool on;
	int err = start_by(s, at, &start, &on);

	if (s->over && (double)(s->over - at) * s->t->pitch < NEAR)
		behind = s->over;
	if (!err)
		err = start_by(s, behind, &other, again);
	if (!err && !*again &&
	    !(fabs(phase_wrap(other - start)) <= s->tolerance)) {
		/* One of the two was late, or the end is between them. */
		err = reader_read(s->r, at, &turn);
		if (!err)
			err = start_by(s, at, &start, again);
		if (!err && !(fabs(phase_wrap(other - start)) <=
			      s->tolerance))
			err = start_by(s, at + 5, &other, &on);
		if (*again)
			at -= 2;
	}
	if (!err && !*again && !nominal) {
		/* What was read once is not enough for an odd track. */
		err = look_again(s);
		if (!err)
			err = reader_read(s->r, s->hi, &turn);
		if (!err)
			err = start_by(s, s->hi, &start, again);
		if (*again)
			at = s->hi - 2;
	}
	if (err)
		return err;
	if (*again) {
		s->lo = at == s->hi ? behind : at + 2;
		s->hi = s->limit;
		s->over = 0;
		s->found = false;
		return 0;
	}
	s->t->next = phase_part(start + phase_wrap(other - start) / 2);
	turn = s->t->next - expected(s->t, s->hi - 1);
	*soft = !(fabs(phase_wrap(turn)) > JUMP * s->r->tolerance) ||
		!(fabs(phase_wrap(other - start)) <= s->tolerance);
	return 0;
}

static int finish(struct search *s, uint64_t hint, uint64_t nominal)
{
	bool again = true, soft = false;
	int err = 0;

	for (unsigned i = 0; again && i < RETRIES; i++) {
		if (s->lo >= s->hi)
			return TRACK_UNDECIDED;
		err = narrow(s, i ? s->lo + 1 : hint);
		if (err)
			return err;
		if (!s->found && s->hi < s->r->units)
			return TRACK_UNDECIDED;
		s->t->size = (uint32_t)(s->hi - s->t->first);
		/* The end of the disk is the end of a track. */
		if (s->hi >= s->r->units) {
			s->t->next = phase_part(expected(s->t, s->hi - 1));
			return 0;
		}
		err = confirm(s, s->hi == nominal, &again, &soft);
		if (err)
			return err;
	}
	/* Nothing goes round more than once. */
	if (s->t->size * s->t->pitch > AROUND_MAX)
		return TRACK_UNDECIDED;
	return again || soft ? TRACK_UNDECIDED : 0;
}

static void search_init(struct search *s, struct reader *r, struct track *t)
{
	*s = (struct search){
		.r = r,
		.t = t,
		.tolerance = r->tolerance,
		.lo = t->first,
		.limit = t->first + (uint64_t)(1.04 / t->pitch) + 2,
	};
	if (s->limit > r->units)
		s->limit = r->units;
	s->hi = s->limit;
}

int track_find(struct reader *reader, struct track *track, uint64_t hint)
{
	struct search s;

	search_init(&s, reader, track);
	if (hint > s.limit)
		hint = s.limit;
	return finish(&s, hint, hint);
}

int track_find_about(struct reader *reader, struct track *track, uint64_t hint)
{
	struct search s;

	search_init(&s, reader, track);
	return finish(&s, hint < s.limit ? hint : s.limit, 0);
}

/* A line through points (x, y). */
static void fit(const double *x, const double *y, unsigned n, double *at0,
		double *slope)
{
	double mx = 0, my = 0, xx = 0, xy = 0;

	for (unsigned i = 0; i < n; i++) {
		mx += x[i] / n;
		my += y[i] / n;
	}
	for (unsigned i = 0; i < n; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		xy += (x[i] - mx) * (y[i] - my);
	}
	*slope = xy / xx;
	*at0 = my - *slope * mx;
}

/* The line through most of the first points, one of which may be late.  False:
 * there is none. */
static bool settle(struct reader *r, struct track *t, double *x, double *y)
{
	double best = INFINITY;
	unsigned out = 0, good = 0;

	for (unsigned skip = 0; skip < START; skip++) {
		double px[START - 1], py[START - 1], at0, slope, worst = 0;
		unsigned n = 0;

		for (unsigned i = 0; i < START; i++) {
			if (i == skip)
				continue;
			px[n] = x[i];
			py[n++] = y[i];
		}
		fit(px, py, n, &at0, &slope);
		for (unsigned i = 0; i < n; i++)
			worst = fmax(worst, fabs(py[i] - at0 - slope * px[i]));
		if (worst < best) {
			best = worst;
			out = skip;
			t->pitch = slope;
			t->start = at0;
		}
	}
	for (unsigned i = 0; i < START; i++)
		good += fabs(y[i] - t->start - t->pitch * x[i]) <= r->tolerance;
	x[out] = x[START - 1];
	y[out] = y[START - 1];
	return best <= r->tolerance && good >= START - 1 && t->pitch > 0;
}

/* Reads the first points, as far apart as `step`. */
static int first_points(struct reader *r, struct track *t, uint64_t step,
			double *x, double *y)
{
	double turn, first = NAN;
	int err = 0;

	for (unsigned i = 0; i < START && !err; i++) {
		err = reader_recall(r, t->first + i * step, &turn);
		if (isnan(turn))
			return err ? err : TRACK_UNDECIDED;
		x[i] = (double)(i * step);
		if (i) {
			turn = phase_part(turn - first - t->pitch * x[i] + 0.25)
			       - 0.25 + t->pitch * x[i];
			y[i] = turn;
		} else {
			first = turn;
			y[0] = 0;
		}
	}
	if (!err && !settle(r, t, x, y))
		return TRACK_UNDECIDED;
	t->start += first;
	return err;
}

/*
 * Follows the track from its first unit, up to half way round.  *good: the last
 * unit that was on it; *bad: the first that was not, or 0.
 */
static int follow(struct reader *r, struct track *t, uint32_t guess,
		  uint64_t *good, uint64_t *bad)
{
	double x[POINTS], y[POINTS], turn, zero, off, d;
	uint64_t step = guess > 96 ? guess / 14 : 4;
	unsigned n = START;
	int err;

	*bad = 0;
	*good = t->first;
	t->pitch = guess ? 1.0 / guess : 0;
	if (t->first + START * step >= r->units)
		return TRACK_UNDECIDED;
	err = first_points(r, t, step, x, y);
	if (err)
		return err;
	/* What the points are relative to. */
	zero = t->start;
	off = 0;
	fit(x, y, START - 1, &off, &t->pitch);
	zero -= off;
	n = START - 1;
	for (d = 4.0 * (double)step; n < POINTS; d *= 1.7) {
		if (t->first + (uint64_t)d >= r->units)
			break;
		d = floor(d);
		err = reader_recall(r, t->first + (uint64_t)d, &turn);
		if (err)
			return err;
		off = phase_wrap(turn - t->start - t->pitch * d);
		if (!(fabs(off) <= 1.6 * r->tolerance)) {
			*bad = t->first + (uint64_t)d;
			break;
		}
		*good = t->first + (uint64_t)d;
		x[n] = d;
		y[n++] = t->start - zero + t->pitch * d + off;
		fit(x, y, n, &t->start, &t->pitch);
		t->start += zero;
		if (t->pitch <= 0)
			t->pitch = r->noise / d;
		if (t->pitch * d > 0.45)
			break;
	}
	t->start -= t->pitch;
	return t->pitch < PITCH_MIN || t->pitch > PITCH_MAX ? TRACK_UNDECIDED :
							     0;
}

/* Is the first unit on the line that those behind it make?  It may be another
 * track's. */
static int begins_there(struct reader *r, const struct track *t)
{
	double turn;
	int err = reader_recall(r, t->first, &turn);

	if (!err && !(fabs(phase_wrap(turn - expected(t, t->first))) <=
		      1.6 * r->tolerance))
		err = reader_read(r, t->first, &turn);
	if (err)
		return err;
	return fabs(phase_wrap(turn - expected(t, t->first))) <=
	       1.6 * r->tolerance ? 0 : TRACK_UNDECIDED;
}

int track_measure(struct reader *reader, struct track *track, uint32_t guess,
		  const uint32_t *sizes, unsigned sizes_n)
{
	uint64_t good, bad, hint;
	struct search s;
	double around, best = 0.02, turn;
	int err = follow(reader, track, guess, &good, &bad);

	if (!err)
		err = begins_there(reader, track);
	if (err)
		return err;
	around = 1 / track->pitch;
	if (sizes_n && fabs(guess / around - 1) > 0.25)
		return TRACK_UNDECIDED;
	hint = track->first + (uint64_t)(around + 0.5);
	for (unsigned i = 0; i < sizes_n; i++) {
		if (fabs(sizes[i] / around - 1) < best) {
			best = fabs(sizes[i] / around - 1);
			hint = track->first + sizes[i];
		}
	}
	search_init(&s, reader, track);
	s.tolerance *= 1.3;
	s.loose = true;
	if (bad && bad < s.hi) {
		s.hi = bad;
		s.found = true;
		hint = bad;
	}
	/* What says how the line goes is on it. */
	if (good < s.hi && reader_knows(reader, good, &turn))
		err = look(&s, good);
	return err ? err : finish(&s, hint, 0);
}

int track_check(struct reader *reader, const struct track *track, bool *good)
{
	uint64_t end = track->first + track->size;
	double first, last = NAN, near = 1.3 * reader->tolerance;
	int err = reader_read(reader, end, &first);

	if (!err)
		err = reader_read(reader, end - 1, &last);
	*good = fabs(phase_wrap(first - track->pitch - track->next)) <= near &&
		fabs(phase_wrap(last - expected(track, end - 1))) <= near;
	return err;
}
