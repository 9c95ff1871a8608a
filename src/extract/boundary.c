/*
 * boundary.c - see boundary.h.
 *
 * Angles are absolute: that a unit is where it is predicted excludes that
 * tracks of other sizes add up to the same.
 */
#include <math.h>

#include "extract/boundary.h"

/* Tolerances from which on a jump is seen. */
#define VISIBLE 2.2
/* Of the boundaries in question, how many are weighed against one another. */
#define CHOICE 24u
/* Revolutions that no completion is late by more often than once in a
 * thousand. */
#define LATE_MOST 0.5
/* Reads of one side at most. */
#define READS_MOST 4u

double boundary_jump(const struct boundary_view *v, unsigned j)
{
	const struct ahead *a = &v->ahead[j - 1];

	return phase_wrap(v->ahead[j].start - a->start - a->span);
}

bool boundary_is_visible(const struct boundary_view *v, unsigned j)
{
	return j && fabs(boundary_jump(v, j)) >=
			    VISIBLE * v->reader->tolerance;
}

uint64_t boundary_unit(const struct boundary_view *v, struct look look)
{
	return v->ahead[look.at].first - v->shift - (look.side == LOW);
}

double boundary_angle(const struct boundary_view *v, struct look look)
{
	const struct ahead *a = &v->ahead[look.at - (look.side == LOW)];

	return look.side == LOW ? a->start + a->span :
				  a->start + a->span / a->size;
}

unsigned boundary_soonest(const struct boundary_view *v, enum side side,
			  unsigned lo, unsigned hi)
{
	unsigned best = 0, stride = (hi - lo) / CHOICE + 1;
	double best_ns = INFINITY, ns;

	for (unsigned j = lo; j <= hi; j += stride) {
		struct look look = { j, side };

		if (!boundary_is_visible(v, j) ||
		    v->ahead[j].first >= v->reader->units)
			continue;
		ns = reader_effort(v->reader, boundary_unit(v, look),
				   boundary_angle(v, look));
		if (ns < best_ns) {
			best_ns = ns;
			best = j;
		}
	}
	return best;
}

int boundary_read(const struct boundary_view *v, struct look look, double *off)
{
	double expected = boundary_angle(v, look), turn;
	int err = reader_expect(v->reader, boundary_unit(v, look), expected,
				&turn);

	*off = phase_wrap(turn - expected);
	return err;
}

int boundary_recall(const struct boundary_view *v, struct look look,
		    double *off)
{
	double turn;

	if (!reader_knows(v->reader, boundary_unit(v, look), &turn))
		return boundary_read(v, look, off);
	*off = phase_wrap(turn - boundary_angle(v, look));
	return 0;
}

int boundary_side(const struct boundary_view *v, struct look look, bool *ok,
		  double *off)
{
	double jump = phase_part(boundary_jump(v, look.at));
	/* What is on the other side of the boundary would have to be late by
	 * so much to seem right. */
	double late = look.side == LOW ? 1 - jump : jump;
	unsigned need = (look.side == LOW || v->careful) && late < LATE_MOST ?
			2 : 1;
	unsigned right = 0, wrong = 0;
	int err = boundary_recall(v, look, off);

	for (;;) {
		*ok = fabs(*off) <= v->reader->tolerance;
		right += *ok;
		wrong += !*ok;
		if (err || right >= need + (wrong > 1) || wrong >= need + 1 ||
		    right + wrong >= READS_MOST)
			break;
		err = boundary_read(v, look, off);
	}
	*ok = right > wrong || (right == 1 && wrong == 1 && need == 1);
	return err;
}

int boundary_both(const struct boundary_view *v, unsigned j, bool *ok,
		  enum side *bad, double off[SIDES])
{
	int err = 0;

	*ok = true;
	for (int s = LOW; s < SIDES && *ok && !err; s++) {
		*bad = (enum side)s;
		err = boundary_side(v, (struct look){ j, *bad }, ok, &off[s]);
	}
	return err;
}
