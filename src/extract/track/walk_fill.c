/*
 * walk_fill.c - see walk_fill.h.
 */
#include <math.h>

#include "extract/track/walk_fill.h"

/* Tracks of one size at most. */
#define MOST 2u
/* Tolerances: what a unit may be off its track, and by how much of a turn two
 * sizes must differ to be told apart. */
#define NEAR 1.3
#define HARDLY 4

/* Are units near both ends of a track where they should be? */
static int looks_whole(struct walk *w, uint64_t first, uint32_t size,
		       double start, bool *ok)
{
	const uint32_t at[2] = { size - 1 - size / 12, size / 12 };
	double turn, off;
	int err = 0;

	for (unsigned i = 0; i < 2 && !err && *ok; i++) {
		err = reader_read(w->reader, first + at[i], &turn);
		off = phase_wrap(turn - start - (at[i] + 1.0) / size);
		*ok = fabs(off) <= NEAR * w->reader->tolerance;
	}
	return err;
}

/* k tracks as before and j as after are what is between? */
static bool fills(uint64_t gap, uint32_t a, uint32_t b, unsigned *k,
		  unsigned *j)
{
	unsigned found = 0;

	for (unsigned i = MOST + 1; i--;) {
		uint64_t rest = gap - (uint64_t)i * a;

		if ((uint64_t)i * a > gap || rest % b || rest / b > MOST)
			continue;
		if (found++ && a != b)
			return false;
		if (found == 1 || i == 1) {
			*k = i;
			*j = (unsigned)(rest / b);
		}
	}
	return found > 0;
}

/* Are k tracks of the present run and then j like `t` what lies between? */
static int filled(struct walk *w, const struct track *t, unsigned k,
		  unsigned j, bool *ok)
{
	const struct run *now = &w->plan.now;
	double step = t->next - t->start;
	int err = 0;

	for (unsigned i = 0; i < k && *ok && !err; i++)
		err = looks_whole(w, w->plan.first + (uint64_t)i * now->size,
				  now->size, w->plan.start + i * now->step, ok);
	for (unsigned i = 1; i <= j && *ok && !err; i++)
		err = looks_whole(w, t->first - (uint64_t)i * t->size, t->size,
				  t->start - i * step, ok);
	return err;
}

int walk_fill(struct walk *w, const struct track *t, double *cross)
{
	const struct run *now = &w->plan.now;
	double step = t->next - t->start, start = w->plan.start;
	uint64_t at = w->plan.first;
	unsigned k = 0, j = 0;
	bool ok = now->size && fills(t->first - at, now->size, t->size, &k,
				     &j);
	struct store_track s;
	int err = ok ? filled(w, t, k, j, &ok) : 0;

	if (err)
		return err;
	*cross = NAN;
	/* Sizes that hardly differ could come in either order. */
	if (ok && k && j && now->size != t->size &&
	    fabs((double)now->size - t->size) / t->size <
		    HARDLY * w->reader->tolerance)
		ok = false;
	if (!ok)
		return store_unknown(w->store, at, t->first - at);
	for (unsigned i = 0; i < k && !err; i++) {
		s = (struct store_track){ at, now->size,
					  phase_part(start + i * now->step),
					  0 };
		err = store_add(w->store, &s, now->size, now->span);
		at += now->size;
		w->last_start = s.start;
		w->plan.now.count++;
	}
	*cross = t->start - j * step - w->last_start;
	for (unsigned i = j; i && !err; i--) {
		s = (struct store_track){ at, t->size,
					  phase_part(t->start - i * step), 0 };
		err = store_add(w->store, &s, t->size, 1);
		at += t->size;
	}
	return err ? err : (int)j;
}
