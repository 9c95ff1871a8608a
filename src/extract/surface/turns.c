/*
 * turns.c - skews, sorted by how common they are.
 *
 * The angle from the beginning of a track to that of the next is the same
 * whatever was slipped on it.  The most common one, and the two most common of
 * what is left, are skews; how far their measurements scatter says what is one
 * and what is two.  All that is neither is the end of a zone, a track that was
 * slipped as a whole, or a wrong angle.
 */
#include "extract/surface/turns.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/sort.h"

/* Leads are in 1/65536 of a turn; this one is not known. */
#define UNKNOWN 0xffffu
#define TURN 0x1p16
#define BIN 32u
#define BINS (65536u / BIN)
/* Of a turn. */
#define SCATTER_MOST 0.015
#define TOLERANCE_LEAST 0.0025
#define TOLERANCE_MOST 0.025
#define DEVIATIONS 6
/* Of all distances between marks, those that are the period. */
#define PERIOD_SHARE 0.4
#define MARKS_LEAST 6u
#define CYCLE_MOST 64u
#define VOTES_LEAST 4u
#define AGREE 0.9

/* Two kinds of marks, the usual one, and others that are none. */
#define SKEWS_MOST 12u
/* So many tolerances beside one that is so much more common are what strays
 * from it. */
#define TAIL 3.5
#define TAIL_RARE 60u
/* So many slipped tracks in a row. */
#define SLIPPED_MOST 3

struct leads {
	struct prober *prober;	/* to pause; or NULL */
	uint16_t *v;		/* v[i]: from track i - 1 to i */
	uint64_t n;
	uint32_t bin[BINS];
	double skew[SKEWS_MOST], tolerance;	/* of a turn */
	uint64_t common[SKEWS_MOST + 1];	/* and of others */
	unsigned skews;
};

/* ---- Leads ---- */

static int leads_make(const struct geom *geom, struct prober *prober,
		      struct leads *l)
{
	struct geom_track t, last = { .known = false };

	l->n = geom_tracks(geom);
	l->v = calloc(l->n + 1, sizeof(*l->v));
	if (!l->v)
		return -ENOMEM;
	for (uint64_t i = 0; i < l->n; i++, last = t) {
		prober_pause(prober, i);
		geom_track_at(geom, i, &t);
		l->v[i] = last.known && t.known ?
				  (uint16_t)((t.start - last.start) >> 16) :
				  UNKNOWN;
	}
	return 0;
}

static double off(double a, double b)
{
	return fabs(remainder(a - b, 1));
}

/* Which skew a lead is; l->skews: none. */
static unsigned skew_of(const struct leads *l, uint16_t lead)
{
	unsigned k;

	for (k = 0; k < l->skews; k++)
		if (off(lead / TURN, l->skew[k]) <= l->tolerance)
			break;
	return k;
}

/* The most common of the leads that are no skew yet; its share of all. */
static double densest(struct leads *l, double *at)
{
	uint64_t all = 0;
	uint32_t best = 0, most = 0;

	for (uint32_t b = 0; b < BINS; b++)
		l->bin[b] = 0;
	for (uint64_t i = 1; i < l->n; i++) {
		prober_pause(l->prober, i);
		if (l->v[i] == UNKNOWN)
			continue;
		all++;
		l->bin[l->v[i] / BIN] += skew_of(l, l->v[i]) == l->skews;
	}
	for (uint32_t b = 0; b < BINS; b++) {
		uint32_t near = l->bin[b] + l->bin[(b + 1) % BINS];

		if (near > most) {
			most = near;
			best = b;
		}
	}
	*at = (best + 1.0) / BINS;
	return all ? (double)most / (double)all : 0;
}

/* The middle of the leads around a place, and how they scatter. */
static uint64_t around(const struct leads *l, double at, double wide,
		       double *mean, double *scatter)
{
	double sum = 0, squares = 0;
	uint64_t n = 0;

	for (uint64_t i = 1; i < l->n; i++) {
		double by = remainder(l->v[i] / TURN - at, 1);

		prober_pause(l->prober, i);
		if (l->v[i] == UNKNOWN || fabs(by) > wide)
			continue;
		n++;
		sum += by;
		squares += by * by;
	}
	*mean = n ? at + sum / (double)n : at;
	*scatter = n ? sqrt(fmax(0, squares / (double)n -
				    sum / (double)n * sum / (double)n)) : 0;
	return n;
}

static void find_skews(struct leads *l)
{
	double at, mean, scatter;

	l->skews = 0;
	if (densest(l, &at) == 0)
		return;
	around(l, at, SCATTER_MOST / 3, &mean, &scatter);
	l->tolerance = fmin(fmax(DEVIATIONS * scatter, TOLERANCE_LEAST),
			    TOLERANCE_MOST);
	while (l->skews < SKEWS_MOST) {
		if (around(l, at, l->tolerance, &mean, &scatter) < MARKS_LEAST)
			break;
		l->skew[l->skews++] = mean;
		densest(l, &at);
	}
	for (uint64_t i = 1; i < l->n; i++) {
		prober_pause(l->prober, i);
		if (l->v[i] != UNKNOWN)
			l->common[skew_of(l, l->v[i])]++;
	}
}

/* ---- Marks ---- */

/* Behind a track that was slipped as a whole twice the usual skew is left. */
static bool is_slipped(const struct leads *l, double skew)
{
	for (int n = 2; n <= 1 + SLIPPED_MOST; n++)
		if (off(skew, n * l->skew[0]) <= n * l->tolerance)
			return true;
	return false;
}

/* Does it only stray from another one? */
static bool is_tail(const struct leads *l, unsigned k)
{
	for (unsigned j = 0; j < k; j++) {
		if (off(l->skew[j], l->skew[k]) <= TAIL * l->tolerance &&
		    l->common[k] < l->common[j] / TAIL_RARE)
			return true;
	}
	return false;
}

/* What kind of mark each skew is; the usual one is none. */
static void find_kinds(const struct leads *l, enum turn_kind *kind)
{
	enum turn_kind next = TURN_ONE;

	for (unsigned k = 1; k < l->skews; k++)
		kind[k] = is_slipped(l, l->skew[k]) || is_tail(l, k) ?
				  TURN_NONE :
			  next == TURN_ODD ? TURN_ODD : next++;
	kind[l->skews] = TURN_ODD;
}

static int find_marks(const struct leads *l, struct turns *turns)
{
	enum turn_kind kind[SKEWS_MOST + 1] = { TURN_NONE };
	size_t room = 0;
	int err = 0;

	find_kinds(l, kind);
	for (uint64_t i = 1; i < l->n && !err; i++) {
		unsigned k = l->v[i] == UNKNOWN ? l->skews :
						  skew_of(l, l->v[i]);

		prober_pause(l->prober, i);
		if (kind[k] == TURN_NONE)
			continue;
		err = array_grow(&turns->v, &room, turns->n,
				 sizeof(*turns->v));
		if (!err)
			turns->v[turns->n++] = (struct turn){ i, kind[k] };
	}
	return err;
}

/* From what is before a mark; 0: it is none. */
static uint64_t distance(const struct turns *t, size_t i)
{
	return i && t->v[i].kind != TURN_ODD ?
		       t->v[i].track - t->v[i - 1].track : 0;
}

size_t turns_common(uint64_t *v, size_t n, uint64_t *number)
{
	size_t best = 0, k;

	qsort(v, n, sizeof(*v), sort_u64_cmp);
	for (size_t i = 0; i < n; i = k) {
		for (k = i; k < n && v[k] == v[i]; k++)
			;
		if (k - i > best) {
			best = k - i;
			*number = v[i];
		}
	}
	return best;
}

/* The most common distance between marks, if most have it. */
static int find_period(struct turns *t)
{
	uint64_t *v = calloc(t->n + 1, sizeof(*v)), period = 0;
	size_t n = 0, best;

	if (!v)
		return -ENOMEM;
	for (size_t i = 1; i < t->n; i++)
		if (distance(t, i))
			v[n++] = distance(t, i);
	best = turns_common(v, n, &period);
	if (best + 1 >= MARKS_LEAST &&
	    (double)best >= PERIOD_SHARE * (double)n && period < UINT32_MAX)
		t->period = (uint32_t)period;
	free(v);
	return 0;
}

/* Do a mark and the one before it enclose a whole period? */
static bool is_whole(const struct turns *t, size_t i)
{
	uint64_t n = distance(t, i);

	/* A track may be slipped as a whole. */
	return n && n <= t->period && n + 2 >= t->period &&
	       (n == t->period || t->period > 16);
}

/* Do marks of the other kind come at even distances? */
static bool has_cycle(const struct turns *t)
{
	uint32_t votes[CYCLE_MOST + 1] = { 0 }, all = 0, best = 0, marks = 0;

	for (size_t i = 1; i < t->n; i++) {
		if (!is_whole(t, i)) {
			marks = 0;
			continue;
		}
		if (marks)
			marks++;
		if (t->v[i].kind != TURN_TWO)
			continue;
		if (marks > 1 && marks - 1 <= CYCLE_MOST) {
			all++;
			if (++votes[marks - 1] > votes[best])
				best = marks - 1;
		}
		marks = 1;
	}
	return best && votes[best] >= VOTES_LEAST && votes[best] >= AGREE * all;
}

int turns_find(const struct geom *geom, struct prober *prober,
	       struct turns *turns)
{
	struct leads leads = { .prober = prober };
	int err;

	*turns = (struct turns){ 0 };
	err = leads_make(geom, prober, &leads);
	if (!err) {
		find_skews(&leads);
		if (leads.skews > 1)
			err = find_marks(&leads, turns);
	}
	free(leads.v);
	if (!err && turns->n)
		err = find_period(turns);
	if (err)
		turns_fini(turns);
	else if (turns->period)
		turns->two = has_cycle(turns);
	return err;
}

void turns_fini(struct turns *turns)
{
	free(turns->v);
	*turns = (struct turns){ 0 };
}
