/*
 * slip.c - see slip.h.
 *
 * Near a boundary a unit is on the line of the track before it (A) or of the
 * one behind it (B).  Slips move the boundary to earlier units and leave both
 * lines.  That a unit is on A is believed at once, for it would have to be late
 * by nearly a turn to seem so; that it is on B when it was seen twice.
 */
#include <math.h>

#include "extract/slip.h"

/* The share of a track that slips at most, as far as this goes. */
#define SHIFT_MOST 8u
/* Steps from a boundary downwards grow by this factor. */
#define GROW 3u
/* Standard deviations that a first estimate of a shift may be off by. */
#define SHIFT_NOISE 6.0
#define READS_MOST 4u

enum line { ON_A, ON_B, ON_NEITHER };

/* On which line is the unit `back` units before boundary `at`, which lies at
 * most `most` units earlier than predicted? */
static int line_of(const struct boundary_view *v, unsigned at, uint32_t back,
		   uint32_t most, bool anew, enum line *line)
{
	const struct ahead *a = &v->ahead[at - 1], *b = &v->ahead[at];
	double tolerance = v->reader->tolerance;
	double pitch = a->span / a->size, jump = boundary_jump(v, at);
	double end = a->start + a->span, turn, off;
	uint64_t unit = b->first - v->shift - back;
	int err = 0;

	if (anew || !reader_knows(v->reader, unit, &turn))
		err = reader_expect(v->reader, unit, end, &turn);
	/* With s slips it is back - 1 - s units before the end of A. */
	off = phase_wrap(turn - end + (back - 1.0) * pitch);
	*line = ON_NEITHER;
	if (off >= -tolerance && off <= most * pitch + tolerance)
		*line = ON_A;
	/* And s - back units behind the beginning of B. */
	off = phase_wrap(turn - end - jump);
	if (off >= -tolerance &&
	    off <= (most - back + 1) * b->span / b->size + tolerance)
		*line = *line == ON_A ? ON_NEITHER : ON_B;
	return err;
}

/* Likewise, seen often enough. */
static int sure_line_of(const struct boundary_view *v, unsigned at,
			uint32_t back, uint32_t most, enum line *line)
{
	unsigned seen[3] = { 0 };
	int err = line_of(v, at, back, most, false, line);

	for (unsigned i = 0; !err; i++) {
		seen[*line]++;
		if (seen[ON_A] && seen[ON_A] >= seen[ON_B])
			*line = ON_A;
		else if (seen[ON_B] >= 2 + seen[ON_A])
			*line = ON_B;
		else if (i + 1 < READS_MOST) {
			err = line_of(v, at, back, most, true, line);
			continue;
		} else
			*line = ON_NEITHER;
		return 0;
	}
	return err;
}

/* The boundary is `hi` units earlier at least: at most `most`. */
static int find_shift(const struct boundary_view *v, unsigned at,
		      uint32_t most, uint32_t *shift)
{
	uint32_t on_b = 1, on_a = 0, back = 2, step = 1;
	enum line line;
	int err;

	/* Units 1 ... shift before it are on B, the next on A. */
	while (!on_a || on_a - on_b > 1) {
		if (on_a)
			back = on_b + (on_a - on_b) / 2;
		if (back > most)
			return SLIP_NONE;
		err = line_of(v, at, back, most, false, &line);
		if (!err && line == ON_NEITHER)
			err = sure_line_of(v, at, back, most, &line);
		if (err)
			return err;
		if (line == ON_NEITHER)
			return SLIP_NONE;
		if (line == ON_A) {
			on_a = back;
			continue;
		}
		on_b = back;
		step *= GROW;
		back += step;
	}
	*shift = on_b;
	err = sure_line_of(v, at, on_b, most, &line);
	return err ? err : line == ON_B ? 0 : SLIP_NONE;
}

int slip_shift(const struct boundary_view *view, unsigned at, uint32_t *shift)
{
	const struct ahead *b = &view->ahead[at];
	double pitch = b->span / b->size, off, units;
	double noise = SHIFT_NOISE * view->reader->noise / pitch + 1;
	uint32_t most = b->size / SHIFT_MOST;
	enum line line;
	int err;

	if (!boundary_is_visible(view, at))
		return SLIP_NONE;
	err = boundary_recall(view, (struct look){ at, LOW }, &off);
	if (err)
		return err;
	units = phase_wrap(off - boundary_jump(view, at)) / pitch;
	if (isnan(units) || units < 1 - noise || units > most)
		return SLIP_NONE;
	if (units + noise + 1 < most)
		most = (uint32_t)fmax(units + noise + 1, 2);
	/* No more than leaves the two lines apart. */
	off = phase_part(boundary_jump(view, at));
	while (most > 2 && most * pitch > fmin(off, 1 - off) -
					  2 * view->reader->tolerance)
		most -= most / 8 + 1;
	if (most * pitch > fmin(off, 1 - off) - 2 * view->reader->tolerance ||
	    view->ahead[at].first < most + view->shift + 2)
		return SLIP_NONE;
	err = sure_line_of(view, at, 1, most, &line);
	if (err || line != ON_B)
		return err ? err : SLIP_NONE;
	return find_shift(view, at, most, shift);
}

/* How many units, of at most `shift`, is boundary `at` earlier? */
static int shift_of(const struct boundary_view *v, unsigned at, uint32_t shift,
		    uint32_t *slips)
{
	uint32_t on_b = 1, on_a = shift + 1;
	enum line line;
	int err = 0;

	/* Most often all of them are in one place. */
	for (uint32_t back = shift; !err && on_a - on_b > 1;
	     back = on_b + (on_a - on_b) / 2) {
		err = sure_line_of(v, at, back, shift, &line);
		if (err)
			break;
		if (line == ON_NEITHER)
			return SLIP_NONE;
		*(line == ON_A ? &on_a : &on_b) = back;
	}
	*slips = on_b;
	return err;
}

/* Of the boundaries between two, one to look at: near the middle. */
static unsigned middle(const struct boundary_view *v, unsigned lo, unsigned hi)
{
	unsigned width = hi - lo, mid;

	mid = boundary_soonest(v, LOW, lo + 1 + (width - 2) * 2 / 5,
			       hi - 1 - (width - 2) * 2 / 5);
	return mid ? mid : boundary_soonest(v, LOW, lo + 1, hi - 1);
}

int slip_place(const struct boundary_view *view, unsigned lo, unsigned hi,
	       uint32_t shift, unsigned *track, uint32_t *slips)
{
	unsigned end = hi;
	enum line line;
	int err = 0;

	while (hi - lo > 1) {
		unsigned mid = middle(view, lo, hi);

		if (!mid)
			return SLIP_NONE;
		err = line_of(view, mid, 1, shift, false, &line);
		if (!err && line == ON_NEITHER)
			err = sure_line_of(view, mid, 1, shift, &line);
		/* What decides is seen twice. */
		if (!err && line == ON_B && mid - lo == 1)
			err = sure_line_of(view, mid, 1, shift, &line);
		if (err || line == ON_NEITHER)
			return err ? err : SLIP_NONE;
		*(line == ON_A ? &lo : &hi) = mid;
		/* One that seemed to be earlier was late. */
		if (line == ON_A && hi - lo == 1) {
			err = sure_line_of(view, hi, 1, shift, &line);
			if (err || line != ON_B)
				return err ? err : SLIP_NONE;
		}
	}
	/* That the lower one is right was seen once: what is late by nearly a
	 * turn seems so, too. */
	if (lo && boundary_is_visible(view, lo)) {
		err = line_of(view, lo, 1, shift, true, &line);
		if (err || line != ON_A)
			return err ? err : SLIP_NONE;
	}
	*track = lo;
	*slips = 1;
	if (shift > 1)
		err = shift_of(view, hi, shift, slips);
	/* No more than those, or tracks of other sizes begin. */
	if (!err && hi != end)
		err = line_of(view, hi, *slips + 1, shift + 1, false, &line);
	if (!err && hi != end && line != ON_A)
		err = sure_line_of(view, hi, *slips + 1, shift + 1, &line);
	return !err && hi != end && line != ON_A ? SLIP_NONE : err;
}

int slip_turn(const struct boundary_view *view, unsigned at, double *turn,
	      bool *after)
{
	double off[SIDES], near = view->reader->tolerance;
	double jump;
	int err = 0;

	if (!boundary_is_visible(view, at))
		return SLIP_NONE;
	for (int s = LOW; s < SIDES && !err; s++)
		err = boundary_recall(view, (struct look){ at, (enum side)s },
				      &off[s]);
	*after = fabs(off[LOW]) <= near;
	/* Either may have been late: both are seen once more. */
	for (unsigned i = 0; i < 2 && !err; i++) {
		double low = *after ? 0 : off[LOW];

		if (i && fabs(phase_wrap(off[HIGH] - *turn)) > near)
			return SLIP_NONE;
		if (*after ? fabs(off[LOW]) > near :
			     !(fabs(phase_wrap(low - off[HIGH])) <= near) ||
			     fabs(low) <= 2 * near)
			return SLIP_NONE;
		*turn = *after ? off[HIGH] :
				 low + phase_wrap(off[HIGH] - low) / 2;
		for (int s = LOW; s < SIDES && !err && !i; s++)
			err = boundary_read(view, (struct look){ at,
					    (enum side)s }, &off[s]);
	}
	/* There must still be a jump. */
	jump = boundary_jump(view, at) + (*after ? *turn : 0);
	return err ? err : fabs(phase_wrap(jump)) < 2 * near ? SLIP_NONE : 0;
}

int slip_turn_place(const struct boundary_view *view, unsigned lo, unsigned hi,
		    double turn, unsigned *track)
{
	double near = view->reader->tolerance, off[SIDES];
	int err;

	while (hi - lo > 1) {
		unsigned mid = middle(view, lo, hi);
		enum side side;
		bool ok, turned;

		if (!mid)
			return SLIP_NONE;
		err = boundary_both(view, mid, &ok, &side, off);
		if (err)
			return err;
		turned = !ok && side == LOW;
		if (turned)
			err = boundary_read(view, (struct look){ mid, HIGH },
					    &off[HIGH]);
		for (int s = LOW; s < SIDES && turned; s++)
			turned = fabs(phase_wrap(off[s] - turn)) <= near;
		/* The track behind it may be the first that is. */
		if (!ok && side == HIGH &&
		    fabs(phase_wrap(off[HIGH] - turn)) <= near) {
			*track = mid;
			return 0;
		}
		if (err || ok == turned)
			return err ? err : SLIP_NONE;
		*(ok ? &lo : &hi) = mid;
	}
	*track = lo;
	return 0;
}
