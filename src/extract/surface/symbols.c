/*
 * symbols.c - skews, sorted by how common they are.
 *
 * The angle from the beginning of a track to that of the next is the same
 * whatever was slipped on it.  The most common one, and the most common of what
 * is left, are skews; how far their measurements scatter says what is one and
 * what is two.  A track that was slipped as a whole counts as usual.  All else
 * is the end of a zone, or a wrong angle.
 */
#include "extract/surface/symbols.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"

#define TURN 0x1p16
#define BIN 32u
#define BINS (65536u / BIN)
/* Of a turn. */
#define SCATTER_MOST 0.015
#define TOLERANCE_LEAST 0.0025
#define TOLERANCE_MOST 0.025
#define DEVIATIONS 6
#define COMMON_LEAST 6u
/* So many slipped tracks in a row. */
#define SLIPPED_MOST 3
#define SIZES_ALIKE 256u

struct finder {
	struct symbols *s;
	struct prober *prober;		/* to pause; or NULL */
	uint32_t bin[BINS];
	double skew[SYMBOL_SKEWS], tolerance;	/* of a turn */
	unsigned skews;
};

bool symbols_same_size(uint32_t a, uint32_t b)
{
	return (a > b ? a - b : b - a) <= a / SIZES_ALIKE;
}

static void make_leads(const struct geom *geom, const struct finder *f)
{
	struct geom_track t, last = { .known = false };

	for (uint64_t i = 0; i < f->s->n; i++, last = t) {
		struct symbol *v = &f->s->v[i];

		prober_pause(f->prober, i);
		geom_track_at(geom, i, &t);
		v->size = t.known ? geom_around(&t) : 0;
		v->skew = SYMBOL_ODD;
		v->lead = (uint16_t)((t.start - last.start) >> 16);
		/* So far: one that is to be sorted. */
		if (last.known && t.known)
			v->skew = SYMBOL_USUAL;
	}
}

static double off(double a, double b)
{
	return fabs(remainder(a - b, 1));
}

/* Gives the leads around a place a number; their middle, and how they
 * scatter. */
static uint64_t around(const struct finder *f, double at, double wide,
		       double *mean, double *scatter)
{
	double sum = 0, squares = 0, n = 0;

	for (uint64_t i = 1; i < f->s->n; i++) {
		const struct symbol *v = &f->s->v[i];
		double by = remainder(v->lead / TURN - at, 1);

		prober_pause(f->prober, i);
		if (v->skew != SYMBOL_USUAL || fabs(by) > wide)
			continue;
		n++;
		sum += by;
		squares += by * by;
	}
	*mean = at + sum / fmax(n, 1);
	*scatter = sqrt(fmax(0, squares / fmax(n, 1) -
				pow(sum / fmax(n, 1), 2)));
	return (uint64_t)n;
}

/* Which skew a lead is; f->skews: none. */
static unsigned skew_of(const struct finder *f, uint16_t lead)
{
	unsigned k = 0;

	while (k < f->skews && off(lead / TURN, f->skew[k]) > f->tolerance)
		k++;
	return k;
}

/* The most common of the leads that are no skew yet. */
static double densest(struct finder *f)
{
	uint32_t best = 0, most = 0, near;

	for (uint32_t b = 0; b < BINS; b++)
		f->bin[b] = 0;
	for (uint64_t i = 1; i < f->s->n; i++) {
		const struct symbol *v = &f->s->v[i];

		prober_pause(f->prober, i);
		f->bin[v->lead / BIN] += v->skew == SYMBOL_USUAL &&
					 skew_of(f, v->lead) == f->skews;
	}
	for (uint32_t b = 0; b < BINS; b++) {
		near = f->bin[b] + f->bin[(b + 1) % BINS];
		if (near > most) {
			most = near;
			best = b;
		}
	}
	return (best + 1.0) / BINS;
}

static void find_skews(struct finder *f)
{
	double at = densest(f), mean, scatter;

	around(f, at, SCATTER_MOST / 3, &mean, &scatter);
	f->tolerance = fmin(fmax(DEVIATIONS * scatter, TOLERANCE_LEAST),
			    TOLERANCE_MOST);
	while (f->skews < SYMBOL_SKEWS) {
		f->s->common[f->skews] = around(f, at, f->tolerance, &mean,
						&scatter);
		if (f->s->common[f->skews] < COMMON_LEAST)
			break;
		f->skew[f->skews++] = mean;
		at = densest(f);
	}
}

/* Behind a track that was slipped as a whole twice the usual skew is left. */
static bool is_usual(const struct finder *f, unsigned k)
{
	for (int n = 1; n <= 1 + SLIPPED_MOST; n++)
		if (off(f->skew[k], n * f->skew[0]) <= n * f->tolerance)
			return true;
	return false;
}

/* Numbers of the skews, without those that are none of their own. */
static void sort_leads(struct finder *f)
{
	uint8_t number[SYMBOL_SKEWS + 1], next = SYMBOL_USUAL + 1;
	struct symbols *s = f->s;

	for (unsigned k = 0; k < f->skews; k++)
		number[k] = is_usual(f, k) ? SYMBOL_USUAL : next++;
	number[f->skews] = SYMBOL_ODD;
	for (unsigned k = 0; k <= SYMBOL_SKEWS; k++)
		s->common[k] = 0;
	for (uint64_t i = 0; i < s->n; i++) {
		prober_pause(f->prober, i);
		if (s->v[i].skew == SYMBOL_USUAL)
			s->v[i].skew = number[skew_of(f, s->v[i].lead)];
		s->common[s->v[i].skew]++;
	}
}

int symbols_make(const struct geom *geom, struct prober *prober,
		 struct symbols *symbols)
{
	struct finder f = { .s = symbols, .prober = prober };

	*symbols = (struct symbols){ .n = geom_tracks(geom) };
	symbols->v = calloc(symbols->n, sizeof(*symbols->v));
	if (!symbols->v)
		return -ENOMEM;
	make_leads(geom, &f);
	find_skews(&f);
	sort_leads(&f);
	return 0;
}

void symbols_free(struct symbols *symbols)
{
	free(symbols->v);
	*symbols = (struct symbols){ 0 };
}
