/*
 * sample.c - see sample.h.
 *
 * The unit before a boundary and the one behind it are read, in one go: angles
 * are absolute, so that neither others of another size may end there.
 */
#include <math.h>

#include "extract/track/sample.h"

/* Tracks among which a boundary is chosen. */
#define CHOICE 16u
/* Tolerances from which on a leap is seen. */
#define VISIBLE 2.2
/* Looks that may be wrong before the boundary is. */
#define WRONG_MOST 2u

/* The track that a unit is on. */
static bool track_of(const struct store *s, uint64_t unit,
		     struct store_track *t)
{
	size_t i = store_find(s, unit);
	const struct piece *p = &s->pieces[i];

	if (i >= s->n || p->first > unit || !p->tracks)
		return false;
	store_track(s, p, store_track_at(s, p, unit), t);
	return true;
}

static double end_of(const struct store_track *t)
{
	return t->start + t->size * t->pitch;
}

/* Until both sides of a boundary have been read; INFINITY: it can't be seen. */
static double cost(const struct reader *r, const struct store_track *a,
		   const struct store_track *b)
{
	double leap = phase_part(b->start + b->pitch - end_of(a));

	if (fabs(phase_wrap(b->start - end_of(a))) < VISIBLE * r->tolerance)
		return INFINITY;
	return reader_effort(r, b->first - 1, end_of(a)) +
	       leap * r->phase.period_ns;
}

static bool choose(const struct reader *r, const struct store *s,
		   uint64_t unit, struct sample *sample)
{
	double best_ns = INFINITY, ns;
	struct store_track a, b;
	bool there = track_of(s, unit, &a);

	for (unsigned i = 0; i < CHOICE && there; i++, a = b) {
		there = track_of(s, a.first + a.size, &b);
		ns = there ? cost(r, &a, &b) : INFINITY;
		if (ns >= best_ns)
			continue;
		best_ns = ns;
		sample->before = a;
		sample->behind = b;
	}
	return best_ns < INFINITY;
}

static int look(struct reader *r, uint64_t unit, double expected, bool *fits)
{
	double turn;
	int err = reader_expect(r, unit, expected, &turn);

	*fits = fabs(phase_wrap(turn - expected)) <= r->tolerance;
	return err;
}

/* What is late is rarely late again. */
static int look_often(struct reader *r, struct sample *sample)
{
	const struct store_track *a = &sample->before, *b = &sample->behind;
	unsigned right = 0, wrong = 0;
	int err = 0;

	while (!err && right <= wrong && wrong < WRONG_MOST) {
		err = look(r, b->first - 1, end_of(a), &sample->fits);
		if (!err && sample->fits)
			err = look(r, b->first, b->start + b->pitch,
				   &sample->fits);
		right += sample->fits;
		wrong += !sample->fits;
	}
	sample->fits = right > wrong;
	return err;
}

int sample_boundary(struct reader *reader, const struct store *store,
		    uint64_t unit, struct sample *sample)
{
	*sample = (struct sample){ 0 };
	sample->seen = choose(reader, store, unit, sample);
	return sample->seen ? look_often(reader, sample) : 0;
}
