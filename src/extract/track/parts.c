/*
 * parts.c - see parts.h.
 *
 * From leap to leap (segment.h).  Slips too small to be told end a stretch, too
 * (segment->soft).  Where there is no leap, the time that a head takes to the
 * next track tells (span.h).
 */
#include "extract/track/parts.h"

#include <math.h>

/* What a pitch may be off by if it is known, and if it is not, as a share. */
#define PITCH_NEAR 0.012
#define PITCH_OFF 0.12
/* How many units that lie elsewhere are gone past. */
#define LONE_MOST 3u
#define SPARES_MOST 3
/* Tolerances from which on a leap is one, all that was seen considered. */
#define LEAP 1.2
/* Pitches of tracks of one size, as measured; and what a size may be off by, in
 * units. */
#define FIT_PITCH 0.001
#define FIT_SIGMAS 2.0
#define FIT_OFF 0.4

static double end_of(const struct part *p)
{
	return p->s.start + p->turns;
}

/* Has a neighbour the pitch of a part? */
static bool is_like(const struct store_track *t, const struct segment *s)
{
	return fabs(t->pitch / s->pitch - 1) <
	       FIT_PITCH + FIT_SIGMAS * s->pitch_sigma / s->pitch;
}

/* Slightly less than nothing is nothing. */
static double jump(const struct part *a, const struct part *b)
{
	double by = phase_part(b->s.start - end_of(a));

	return by > 1 - PARTS_TURNS_OFF ? by - 1 : by;
}

bool parts_is_turn(const struct parts *g, double turns, double pitch)
{
	return fabs(turns - 1) <= PARTS_TURN_OFF ||
	       fabs(turns + g->spared * pitch - 1) <= PARTS_TURN_OFF;
}

/* By a unit too long or too short for a turn, where all others are alike: a
 * unit that lies elsewhere may be between them. */
static bool is_unlike(const struct parts *g, const struct part *p)
{
	const struct store_track *t = &g->gap->before;

	return parts_between_alike(g->gap) && p->s.units != t->size &&
	       is_like(t, &p->s);
}

static void judge(const struct parts *g, struct part *p)
{
	bool unlike = is_unlike(g, p);

	p->kind = PART_STRANGE;
	/* Nor is it certain where that begins which is behind a soft end. */
	if (p->s.soft || (p > g->part && p[-1].s.soft) ||
	    (unlike && p->s.units > g->gap->before.size))
		return;
	if (parts_is_turn(g, p->turns, p->s.pitch) && !unlike)
		p->kind = PART_WHOLE;
	else if (p->turns < 1 + PARTS_TURN_OFF)
		p->kind = PART_SHORT;
}

/* Where a stretch does not go on although there is no leap. */
int parts_break(struct parts *g, const struct segment *s,
		struct span_end *end)
{
	struct span span = { s->first, s->units, s->start, s->pitch };
	int err = 0;

	for (unsigned i = 0; !err && i < LONE_MOST; i++) {
		uint64_t gone;

		err = span_find_end(g->r, &span, end);
		if (err || !end->at || !end->lone || !end->clear)
			return err;
		/* One that lies elsewhere, and those behind it do not. */
		gone = end->at + 1 - span.first;
		span.units -= gone;
		span.start += (double)gone * span.pitch;
		span.first += gone;
	}
	end->clear = false;
	return err;
}

/* Where the next stretch ends at the latest. */
static uint64_t limit_of(const struct parts *g, uint64_t first)
{
	uint64_t limit = g->gap->end;

	for (unsigned i = 0; i < g->cuts; i++) {
		if (g->cut[i] > first && g->cut[i] < limit)
			limit = g->cut[i];
	}
	return limit;
}

/* A stretch ends there without a leap. */
bool parts_cut(struct parts *g, const struct span_end *end)
{
	if (!end->at || !end->clear || g->cuts == PARTS_CUTS)
		return false;
	g->cut[g->cuts++] = end->at;
	return true;
}

/* By a pitch; where it is not straight or goes round more than once, a head may
 * move without a leap. */
static int measure_by(struct parts *g, struct part *p, double pitch,
		      double off, bool *found)
{
	struct segment *s = &p->s;
	struct span_end end;
	uint64_t first = s->first, limit = limit_of(g, first);
	int err;

	*s = (struct segment){ .first = first };
	err = segment_find(g->r, s, limit, pitch, off, found);
	if (err || s->units < 2 ||
	    (*found && (double)s->units * s->pitch < 1 + PARTS_TURNS_OFF))
		return err;
	err = parts_break(g, s, &end);
	if (err || !parts_cut(g, &end))
		return err;
	*s = (struct segment){ .first = first };
	return segment_find(g->r, s, end.at, pitch, off, found);
}

/* The same; if no end is found, as far as it is straight: *soft is the longest
 * of such. */
static int measure_some(struct parts *g, struct part *p, double pitch,
			double off, bool *found, struct segment *soft)
{
	int err = measure_by(g, p, pitch, off, found);

	if (!*found && p->s.soft && p->s.units > soft->units)
		*soft = p->s;
	return err;
}

/* One stretch: like the one before it, that behind the gap, or neither. */
static int measure_one(struct parts *g, struct part *p, double pitch,
		       bool *found)
{
	double behind = g->gap->behind.size ? g->gap->behind.pitch : pitch;
	struct segment soft = { .units = 0 };
	int err = measure_some(g, p, pitch, PITCH_NEAR, found, &soft);

	if (!err && !*found && fabs(behind / pitch - 1) > PITCH_NEAR)
		err = measure_some(g, p, behind, PITCH_NEAR, found, &soft);
	if (!err && !*found)
		err = measure_some(g, p, pitch, PITCH_OFF, found, &soft);
	if (!*found && soft.units) {
		p->s = soft;
		*found = true;
	}
	p->broken = p->s.first + p->s.units == limit_of(g, p->s.first) &&
		    p->s.first + p->s.units < g->gap->end;
	return err;
}

/* All stretches from the beginning on, as far as they can be told. */
int parts_measure(struct parts *g)
{
	const struct gap *gap = g->gap;
	uint64_t at = gap->first;
	double pitch = gap->before.size ? gap->before.pitch :
					  gap->behind.pitch;
	bool found = true;
	int err = 0;

	g->n = 0;
	while (!err && found && at < gap->end && g->n < PARTS_MOST) {
		struct part *p = &g->part[g->n];

		*p = (struct part){ .s.first = at };
		err = measure_one(g, p, pitch, &found);
		if (err || !found)
			break;
		pitch = p->s.pitch;
		at += p->s.units;
		p->turns = (double)p->s.units * pitch;
		judge(g, p);
		if (g->n)
			p[-1].jump = jump(&p[-1], p);
		g->n++;
	}
	g->all = at == gap->end;
	return err;
}

/* Of what a neighbour leaves of a turn some units may be spares. */
static void learn(struct parts *g, const struct segment *s)
{
	double units = (double)s->units;
	double spared = round(1 / s->pitch - units);

	if (spared > g->spared && spared <= SPARES_MOST &&
	    fabs((units + spared) * s->pitch - 1) <= PARTS_TURN_OFF)
		g->spared = spared;
}

/* What was only leapt over may be off by as much as one track begins later than
 * another. */
static int sharpen(struct parts *g, struct store_track *t)
{
	struct segment s = {
		.first = t->first, .units = t->size, .pitch = t->pitch,
	};
	bool good = false;
	int err = t->size ? segment_line(g->r, &s, &good) : 0;

	if (err || !good)
		return err;
	learn(g, &s);
	t->start = s.start;
	return 0;
}

int parts_sharpen(struct parts *g, struct gap *gap)
{
	int err = sharpen(g, &gap->before);

	if (!err)
		err = sharpen(g, &gap->behind);
	for (unsigned i = 0; i < g->n && !err; i++)
		judge(g, &g->part[i]);
	return err;
}

bool parts_leap(const struct parts *g, unsigned i)
{
	const struct part *p = &g->part[i];

	return p->broken || i + 1 >= g->n ||
	       fabs(phase_wrap(p->jump)) > LEAP * segment_tolerance(g->r);
}

bool parts_differ(const struct part *a, const struct part *b, double sigmas)
{
	double sigma = hypot(a->s.pitch_sigma, b->s.pitch_sigma);

	return fabs(a->s.pitch - b->s.pitch) >
	       PARTS_PITCH_SAME * a->s.pitch + sigmas * sigma;
}

bool parts_between_alike(const struct gap *gap)
{
	return gap->before.size && gap->before.size == gap->behind.size &&
	       fabs(gap->before.pitch / gap->behind.pitch - 1) <
		       PARTS_PITCH_SAME;
}

/* The longest of some parts. */
static const struct part *longest(const struct parts *g, unsigned from,
				  unsigned to)
{
	const struct part *best = &g->part[from];

	for (unsigned i = from + 1; i < to; i++) {
		if (g->part[i].s.units > best->s.units)
			best = &g->part[i];
	}
	return best;
}

bool parts_fit(const struct parts *g, unsigned from, unsigned to)
{
	const struct store_track *near[2] = { &g->gap->before,
					      &g->gap->behind };
	const struct segment *s = &longest(g, from, to)->s;
	double slots = 0;

	for (unsigned i = from; i < to; i++)
		slots += (double)g->part[i].s.units +
			 (i + 1 < to && g->part[i].jump > s->pitch / 2);
	for (unsigned i = 0; i < 2; i++) {
		if (near[i]->size && slots > near[i]->size &&
		    is_like(near[i], s) &&
		    slots * near[i]->pitch > 1 + FIT_OFF * near[i]->pitch)
			return false;
	}
	return true;
}
