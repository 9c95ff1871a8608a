/*
 * spots.c - see spots.h.
 *
 * Of the next few the one that is there soonest; others are as near.  What is
 * to be read again waits for some others: what made it late once may last.
 */
#include "extract/probe/spots.h"

#include <math.h>

#include "base/array.h"

/* Among so many the next is chosen. */
#define WINDOW 32u
/* So many others are read before one is read again, if there are any. */
#define APART 8u
/* The first of them is that much nearer than the last, in revolutions. */
#define LINGER 0.5

int spots_add(struct spots *spots, uint64_t unit, double at, size_t owner)
{
	int err = array_grow(&spots->v, &spots->room, spots->n,
			     sizeof(*spots->v));

	if (!err)
		spots->v[spots->n++] = (struct spot){
			.unit = unit, .at = at, .owner = owner, .turn = NAN,
		};
	return err;
}

void spots_want(struct spots *spots, size_t i)
{
	spots->v[i].wanted = true;
	if (i < spots->from)
		spots->from = i;
}

/* Is it too early to read one again?  A cache forgets until all others have
 * been read. */
static bool is_early(const struct reader *r, const struct spots *s,
		     const struct spot *v)
{
	return v->looks && (r->recent.depth ? v->when > s->round :
					      s->reads < v->when + APART);
}

/* The next to read; n: none is left that it is not too early for. */
static size_t soonest(const struct reader *r, struct spots *s)
{
	double best_ns = INFINITY, ns;
	size_t best = s->n;
	unsigned seen = 0;

	while (s->from < s->n && !s->v[s->from].wanted)
		s->from++;
	for (size_t i = s->from; i < s->n && seen < WINDOW; i++) {
		const struct spot *v = &s->v[i];

		if (!v->wanted || is_early(r, s, v))
			continue;
		ns = reader_effort(r, v->unit, v->at) +
		     LINGER / WINDOW * seen++ * r->phase.period_ns;
		if (ns < best_ns) {
			best_ns = ns;
			best = i;
		}
	}
	return best;
}

/* Likewise; when it is too early for all the first of them, and all others. */
static size_t next(const struct reader *r, struct spots *s)
{
	size_t i = soonest(r, s);

	if (i < s->n || s->from == s->n)
		return i;
	s->round = s->reads;
	return r->recent.depth ? soonest(r, s) : s->from;
}

int spots_read(struct reader *reader, struct spots *spots, size_t *i)
{
	struct spot *v;
	int err;

	*i = next(reader, spots);
	if (*i == spots->n)
		return 0;
	v = &spots->v[*i];
	err = reader_expect(reader, v->unit, v->at, &v->turn);
	v->wanted = false;
	v->looks++;
	v->when = ++spots->reads;
	return err;
}
