/*
 * span.c - reads of many units, begun when they are about to come by.
 *
 * Late completions take a part of a revolution, a command that comes too late
 * for its first sector a whole one.  So one read that is fast is proof; several
 * that are not, with more and more time to get there, are.
 */
#include "extract/track/span.h"

#include <math.h>

#include "extract/probe/middle.h"

/* Of one read: revolutions, sectors. */
#define TURN_MOST 0.3
#define SECTORS_MOST 256u
/* Revolutions before it that it is asked for: a seek, and less than one. */
#define AHEAD_FIRST 0.75
#define AHEAD_MORE 0.06
#define AHEAD_MOST 0.95
#define TRIES 6u
#define TRIES_SURE 16u
#define LATE 0.5
#define CONTROLS 8u
#define CONTROLS_GOOD 3u
#define LOOKS 5u

static double angle_of(const struct span *s, uint64_t unit)
{
	return phase_part(s->start + (double)(unit - s->first) * s->pitch);
}

static uint32_t most(const struct reader *r, const struct span *s)
{
	const struct disk_limits *l = r->prober->limits;
	uint32_t n = SECTORS_MOST < l->max_sectors ? SECTORS_MOST :
						     l->max_sectors;
	double turn = TURN_MOST / s->pitch;

	n /= r->unit_sectors;
	n = n < turn ? n : (uint32_t)turn;
	return n < 2 ? 2 : n;
}

/* Revolutions: a drive that is reading ahead is not interrupted by all. */
static double idle(const struct reader *r, const struct span *s)
{
	return r->recent.ahead ? ceil((double)r->recent.ahead * s->pitch) + 1 :
				 0;
}

/* Do n units come in one go?  From one side and then the other, as another
 * track may be far away. */
static int try_it(struct reader *r, const struct span *s, uint64_t first,
		  uint32_t n, unsigned tries, unsigned odd, bool *one)
{
	double turns, ahead = AHEAD_FIRST;
	unsigned from_cache = 0;
	int err = 0;

	*one = false;
	for (unsigned i = 0; i < tries && !err && !*one; i++) {
		err = reader_span(r, first, n, angle_of(s, first),
				  idle(r, s) + ahead, (i + odd) % 2, &turns);
		if (isnan(turns) && from_cache++ < TRIES)
			i--;
		*one = turns < n * s->pitch + LATE &&
		       turns > n * s->pitch - LATE;
		ahead += AHEAD_MORE;
		if (ahead > AHEAD_MOST)
			ahead = AHEAD_FIRST;
	}
	return err;
}

static int goes_on(struct reader *r, const struct span *s, uint64_t first,
		   uint32_t n, bool *one)
{
	return try_it(r, s, first, n, TRIES, 0, one);
}

/* The first stretch behind *first that does not go on: [*first, *end); empty:
 * none. */
static int find(struct reader *r, const struct span *s, uint64_t *first,
		uint64_t *end)
{
	uint64_t stop = s->first + s->units;
	bool one = true;
	int err = 0;

	while (!err && one && *first + 1 < stop) {
		*end = *first + most(r, s);
		*end = *end < stop ? *end : stop;
		err = goes_on(r, s, *first, (uint32_t)(*end - *first), &one);
		if (one)
			*first = *end - 1;
	}
	if (one)
		*first = *end = stop;
	return err;
}

/* Of a stretch that does not go on: the unit that the one before it, *at, does
 * not go on to. */
static int narrow(struct reader *r, const struct span *s, uint64_t *at,
		  uint64_t hi)
{
	uint64_t lo = *at;
	bool one;
	int err = 0;

	while (!err && hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		err = goes_on(r, s, lo, (uint32_t)(mid - lo + 1), &one);
		*(one ? &lo : &hi) = mid;
	}
	*at = lo;
	return err;
}

/* Of two units, mostly, at least from one side: then that others do not is no
 * chance. */
static int pair_goes_on(struct reader *r, const struct span *s, uint64_t first,
			bool *one)
{
	unsigned good = 0;
	int err = 0;

	for (unsigned i = 0; i < CONTROLS && !err && good < CONTROLS_GOOD;
	     i++) {
		err = try_it(r, s, first, 2, 1, i, one);
		good += *one;
	}
	*one = good >= CONTROLS_GOOD;
	return err;
}

/* Does a unit lie where it should be, by its angle? */
static int is_on_line(struct reader *r, const struct span *s, uint64_t unit,
		      bool *on)
{
	double off[LOOKS], turn;
	int err = 0;

	for (unsigned i = 0; i < LOOKS && !err; i++) {
		err = reader_read(r, unit, &turn);
		off[i] = phase_wrap(turn - angle_of(s, unit + 1));
	}
	*on = fabs(middle_of(off, LOOKS)) <= r->tolerance;
	return err;
}

/* Would it be seen if a span went on to a unit?  Those before it do, or, at its
 * beginning, those behind it. */
static int weigh(struct reader *r, const struct span *s, struct span_end *end)
{
	uint64_t at = end->at;
	bool before = false, behind = false, on = false;
	int err = 0;

	if (at - s->first > 1)
		err = pair_goes_on(r, s, at - 2, &before);
	if (!err && at + 1 < s->first + s->units)
		err = pair_goes_on(r, s, at, &behind);
	end->clear = before || (at - s->first <= 1 && behind);
	if (err || behind || at + 1 >= s->first + s->units)
		return err;
	/* That it is not seen to go on is no proof that it lies elsewhere. */
	err = is_on_line(r, s, at, &on);
	end->lone = !on;
	end->clear = end->clear && !on;
	return err;
}

int span_find_end(struct reader *reader, const struct span *span,
		  struct span_end *end)
{
	uint64_t first = span->first, stop = first;
	bool one = true;
	int err = 0;

	*end = (struct span_end){ .clear = true };
	while (!err && one) {
		err = find(reader, span, &first, &stop);
		if (err || first == stop)
			return err;
		err = narrow(reader, span, &first, stop - 1);
		if (!err)
			err = try_it(reader, span, first, 2, TRIES_SURE, 0,
				     &one);
		first++;
	}
	end->at = first;
	return err ? err : weigh(reader, span, end);
}
