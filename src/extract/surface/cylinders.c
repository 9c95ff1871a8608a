/*
 * cylinders.c - which symbols of tracks come again, and after how many.
 *
 * A cycle is each surface once, or once forth and once back.  Every place on
 * the disk votes for how many surfaces there are; nearly all must agree, or
 * nothing is said.  Where surfaces are alike the skew to the next cylinder
 * tells, if there is no other; where they are not, their sizes do.  A cycle in
 * which fewer than half of the sizes differ, but for one short track among
 * equal ones (the spares of a cylinder), looks the same for different numbers
 * of surfaces and is not decided.
 */
#include "extract/surface/cylinders.h"

#include <errno.h>
#include <math.h>

#include "diskmodel/geom_build.h"

/* No drive had more; a cycle that long is a pattern of something else. */
#define SURFACES_MOST 24u
#define CYCLE_MOST (2 * SURFACES_MOST)
/* A serpentine's group has more cylinders than a cylinder has tracks; but on
 * small disks. */
#define ALIKE_SURE 7u
#define TRACKS_LARGE 20000u
/* Skews of another kind that are as common as the end of a group. */
#define OTHER_SKEWS 100u
/* Votes, and those that agree. */
#define PLACES 4096u
#define VOTES_LEAST 12u
#define AGREE 0.95
#define SURE_PPM 999000u
/* Cylinders times surfaces, to the tracks there are. */
#define FULL 1.08
/* A track without its cylinder's spares. */
#define SPARES_MOST 0.05

struct finder {
	const struct symbols *s;
	struct prober *prober;	/* to pause; or NULL */
	struct heads *heads;
	bool alike;		/* surfaces are: skews tell */
	uint32_t cycle;		/* tracks */
	uint32_t at;		/* of the last track, in it */
	bool known;		/* the table is */
	uint64_t cylinder;
	uint32_t table[CYCLE_MOST];	/* letters in it, lately */
};

/* What tells tracks apart; 0: nothing does. */
static uint32_t letter(const struct finder *f, uint64_t i)
{
	const struct symbol *v = &f->s->v[i];

	if (!f->alike || !v->size)
		return v->size;
	return v->skew == SYMBOL_ODD ? 0 : 1u + v->skew;
}

/* ---- Cycles ---- */

static bool repeats(const struct finder *f, uint64_t i, uint32_t cycle)
{
	if (i + 2 * (uint64_t)cycle > f->s->n)
		return false;
	for (uint64_t k = i; k < i + cycle; k++) {
		if (!letter(f, k) || letter(f, k) != letter(f, k + cycle))
			return false;
	}
	return true;
}

static unsigned letters_in(const struct finder *f, uint64_t i, uint32_t n)
{
	unsigned differ = 0;

	for (uint64_t a = i; a < i + n; a++) {
		uint64_t b = i;

		while (b < a && letter(f, b) != letter(f, a))
			b++;
		differ += b == a;
	}
	return differ;
}

/* Forth and back, wherever it begins; the last track of each cylinder may lack
 * the spares. */
static bool is_there_and_back(const struct finder *f, uint64_t i, uint32_t n,
			      uint32_t *from)
{
	uint32_t at, half = n / 2, spares, k;

	for (*from = 0; n % 2 == 0 && *from < n; ++*from) {
		at = *from;
		spares = letter(f, i + at) - letter(f, i + (at + n - 1) % n);
		if (spares > letter(f, i + at) ||
		    letter(f, i + (at + half) % n) -
			    letter(f, i + (at + half - 1) % n) != spares)
			continue;
		for (k = 1; k + 1 < half; k++)
			if (letter(f, i + (at + k) % n) !=
			    letter(f, i + (at + n - 1 - k) % n))
				break;
		if (k + 1 >= half)
			return true;
	}
	return false;
}

/* All alike, but for one that is a little shorter? */
static bool has_spares(const struct finder *f, uint64_t i, uint32_t n)
{
	uint32_t least = UINT32_MAX, most = 0;
	unsigned shorter = 0;

	for (uint64_t k = i; k < i + n; k++) {
		least = letter(f, k) < least ? letter(f, k) : least;
		most = letter(f, k) > most ? letter(f, k) : most;
	}
	for (uint64_t k = i; k < i + n; k++)
		shorter += letter(f, k) == least;
	return n > 2 && shorter == 1 && least >= (1 - SPARES_MOST) * most;
}

/* Surfaces that a cycle of sizes goes over; 0: it can't be said. */
static uint32_t by_sizes(const struct finder *f, uint64_t i, uint32_t cycle,
			 bool *back)
{
	unsigned differ = letters_in(f, i, cycle);
	uint32_t from;

	*back = is_there_and_back(f, i, cycle, &from) && cycle > 2 &&
		differ > 2;
	/* Two surfaces and their spares look like four. */
	if (*back)
		return cycle > 4 && 4 * differ > cycle ? cycle / 2 : 0;
	if (differ == cycle || (differ > 2 && 2 * differ > cycle) ||
	    (differ == 2 && has_spares(f, i, cycle)))
		return cycle;
	return 0;
}

/* The same of skews: one is another than all others. */
static uint32_t by_skews(const struct finder *f, uint64_t i, uint32_t cycle)
{
	const uint64_t *common = f->s->common;
	unsigned other = 0;

	for (uint64_t k = i; k < i + cycle; k++)
		other += f->s->v[k].skew != SYMBOL_USUAL;
	return other == 1 &&
	       cycle <= (f->s->n < TRACKS_LARGE ? ALIKE_SURE : SURFACES_MOST) &&
	       common[2] * OTHER_SKEWS < common[1] ? cycle : 0;
}

/* The smallest cycle at a track; 0: none. */
static uint32_t cycle_at(const struct finder *f, uint64_t i)
{
	for (uint32_t n = 2; n <= CYCLE_MOST; n++) {
		if (repeats(f, i, n) && letters_in(f, i, n) > 1)
			return n;
	}
	return 0;
}

/* All places vote.  How many surfaces, and how sure that is. */
static void vote(struct finder *f)
{
	uint64_t votes[2][SURFACES_MOST + 1] = { 0 };
	uint64_t all = 0, said = 0, best = 0, step = f->s->n / PLACES + 1;
	struct heads *h = f->heads;

	*h = (struct heads){ 0 };
	for (uint64_t i = 0; i < f->s->n; i += step) {
		uint32_t cycle = cycle_at(f, i), n;
		bool back = false;

		/* Each is as many steps. */
		prober_pause(f->prober, i / step * CYCLE_MOST + CYCLE_MOST - 1);
		if (!cycle)
			continue;
		n = f->alike ? by_skews(f, i, cycle) :
			       by_sizes(f, i, cycle, &back);
		all++;
		if (!n || n > SURFACES_MOST)
			continue;
		said++;
		if (++votes[back][n] > best) {
			best = votes[back][n];
			h->surfaces = n;
			h->back = back;
		}
	}
	if (best < VOTES_LEAST || (double)best < AGREE * (double)said ||
	    2 * best < all) {
		h->surfaces = 0;
		return;
	}
	f->cycle = h->back ? 2 * h->surfaces : h->surfaces;
	h->order = HEADS_CYLINDER;
	h->group = 1;
	h->confidence_ppm = (uint32_t)((double)SURE_PPM * (double)best /
				       (double)said);
}

/* ---- Where each track is ---- */

/* How unlike sizes are to those of the last row, if their first track is at a
 * place of the cycle: surfaces keep their proportions in another zone. */
static double unlike(const struct finder *f, uint64_t i, uint32_t at)
{
	double sum = 0, squares = 0;

	for (uint32_t k = 0; k < f->cycle; k++) {
		double r = log((double)letter(f, i + k) /
			       f->table[(at + k) % f->cycle]);

		sum += r;
		squares += r * r;
	}
	return squares - sum * sum / f->cycle;
}

/* Where in its cycle the first track is. */
static uint32_t first_place(const struct finder *f, uint64_t i)
{
	uint32_t k = 0;

	if (f->alike)
		while (f->s->v[i + k].skew == SYMBOL_USUAL)
			k++;
	else if (f->heads->back)
		is_there_and_back(f, i, f->cycle, &k);
	return (f->cycle - k) % f->cycle;
}

/* A zone begins, or tracks were missing: the letters of the cycle from here on.
 * `at`: where it would be if nothing were missing; UINT32_MAX: it is the first
 * one. */
static uint32_t begin_row(struct finder *f, uint64_t i, uint32_t at)
{
	uint32_t best = at;
	double least, off;

	if (at == UINT32_MAX) {
		best = first_place(f, i);
	} else {
		least = unlike(f, i, at) * 0.9;
		for (uint32_t k = 0; k < f->cycle; k++) {
			off = unlike(f, i, k);
			if (off < least) {
				least = off;
				best = k;
			}
		}
	}
	for (uint32_t k = 0; k < f->cycle; k++)
		f->table[(best + k) % f->cycle] = letter(f, i + k);
	return best;
}

/* The next track's place in its cycle. */
static uint32_t next_place(struct finder *f, uint64_t i)
{
	uint32_t at = i ? (f->at + 1) % f->cycle : 0;

	if (f->known && letter(f, i) == f->table[at])
		return at;
	if (repeats(f, i, f->cycle) && letters_in(f, i, f->cycle) > 1) {
		at = begin_row(f, i, f->known ? at : UINT32_MAX);
		f->known = true;
	}
	return at;
}

static void place(void *arg, const struct geom_track *track,
		  struct geom_sweep *sweep)
{
	struct finder *f = arg;
	uint32_t n = f->heads->surfaces, was = f->at;

	f->at = next_place(f, track->index);
	/* What is not there is known by its surface. */
	f->cylinder += track->index && f->at % n <= was % n;
	sweep->surface = (int32_t)(f->at < n ? f->at : 2 * n - 1 - f->at);
	sweep->cylinder = (int64_t)f->cylinder;
}

static int place_all(struct finder *f, const struct geom *geom,
		     struct geom **out)
{
	int err = geom_change(geom, &(struct geom_changer){
		.change = place, .arg = f,
		.pause = prober_pause_now, .pause_arg = f->prober,
	}, out);

	if (!err && (double)(f->cylinder + 1) * f->heads->surfaces >
		    FULL * (double)f->s->n) {
		geom_free(*out);
		*out = NULL;
	}
	return err;
}

int cylinders_find(const struct symbols *symbols, const struct geom *geom,
		   struct prober *prober, struct heads *heads,
		   struct geom **out)
{
	struct finder f = { .s = symbols, .prober = prober, .heads = heads };
	int err = 0;

	*out = NULL;
	vote(&f);
	if (!heads->surfaces) {
		f.alike = true;
		vote(&f);
	}
	if (heads->surfaces)
		err = place_all(&f, geom, out);
	if (!*out)
		*heads = (struct heads){ 0 };
	return err;
}
