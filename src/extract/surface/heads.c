/*
 * heads.c - which sizes of tracks come again, and after how many.
 *
 * In cylinder order sizes tell: tracks of one size in a row are an item, and
 * many items are single tracks.  The tracks of a zone, each a slot then, are a
 * cycle: each surface once, or once forth and once back.  Every place on the
 * disk votes for how many surfaces there are; nearly all must agree, or nothing
 * is said.  A cycle in which fewer than half of the sizes differ, but for one
 * short track among equal ones (the spares of a cylinder), looks the same for
 * different numbers of surfaces and is not decided.
 *
 * Where sizes don't tell, skews do (pieces.h).  What is no cylinder order seeks
 * decide (islands.h, bands.h).
 */
#include "extract/surface/heads.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "extract/surface/bands.h"
#include "extract/surface/islands.h"
#include "extract/surface/pieces.h"
#include "extract/surface/place.h"

/* No drive had more; a cycle that long is a pattern of something else. */
#define SURFACES_MOST 24u
#define CYCLE_MOST (2 * SURFACES_MOST)
/* Of all items, those that are single tracks, at least. */
#define SINGLE_SHARE 0.1
#define ITEMS_LEAST 24u
/* Votes, and those that agree. */
#define VOTES_LEAST 12u
#define AGREE 0.95
#define SURE_PPM 999000u
#define SEEKS_PPM 990000u
#define GUESSES 4u
/* Cylinders times surfaces, to the tracks there are. */
#define FULL 1.08
/* Of known tracks, those that were not known before are too many. */
#define OTHERS_LEAST 8u
/* A track without its cylinder's spares. */
#define SPARES_MOST 0.05
/* Slots that tell where in a cycle they are. */
#define PLACED_BY 4u

struct slot {
	uint64_t track;
	uint32_t tracks;
	uint32_t size;		/* around; 0: not known */
	uint32_t at;		/* in the cycle */
	uint32_t cylinder;	/* the outermost of its cycle */
};

struct work {
	const struct geom *geom;
	struct prober *prober;	/* to pause; or NULL */
	struct heads *heads;
	struct slot *item;	/* then: the slots */
	size_t n, room;
	uint32_t cycle;		/* slots */
	uint32_t table[CYCLE_MOST];	/* sizes in it, in this zone */
};

/* ---- Items ---- */

static int push(struct work *w, const struct slot *slot)
{
	int err = array_grow(&w->item, &w->room, w->n, sizeof(*w->item));

	if (!err)
		w->item[w->n++] = *slot;
	return err;
}

static int make_items(struct work *w)
{
	struct slot s = { 0 };
	struct geom_track t;
	int err = 0;

	for (uint64_t i = 0; i < geom_tracks(w->geom) && !err; i++) {
		prober_pause(w->prober, i);
		geom_track_at(w->geom, i, &t);
		if (s.tracks && place_around(&t) == s.size) {
			s.tracks++;
			continue;
		}
		if (s.tracks)
			err = push(w, &s);
		s = (struct slot){ .track = i, .tracks = 1,
				   .size = place_around(&t) };
	}
	return err ? err : push(w, &s);
}

/* ---- Slots ---- */

/* Is it known where it begins and ends? */
static bool is_whole(const struct work *w, size_t i)
{
	return i && i + 1 < w->n && w->item[i].size && w->item[i - 1].size &&
	       w->item[i + 1].size;
}

/* Are enough of the items single tracks? */
static bool has_singles(const struct work *w)
{
	size_t all = 0, single = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (!is_whole(w, i))
			continue;
		all++;
		single += w->item[i].tracks == 1;
	}
	return all >= ITEMS_LEAST &&
	       (double)single >= SINGLE_SHARE * (double)all;
}

/* Items become slots: single tracks, or what is unknown. */
static int make_slots(struct work *w)
{
	struct slot *items = w->item;
	size_t n = w->n;
	int err = 0;

	w->item = NULL;
	w->n = w->room = 0;
	for (size_t i = 0; i < n && !err; i++) {
		struct slot one = items[i];
		uint32_t times = one.size ? one.tracks : 1;

		one.tracks /= times;
		for (; times && !err; times--, one.track++)
			err = push(w, &one);
	}
	free(items);
	return err;
}

/* ---- Cycles ---- */

static bool repeats(const struct work *w, size_t i, uint32_t cycle)
{
	const struct slot *s = &w->item[i];

	if (i + 2 * (size_t)cycle > w->n)
		return false;
	for (uint32_t k = 0; k < cycle; k++) {
		if (!s[k].size || s[k].size != s[k + cycle].size)
			return false;
	}
	return true;
}

static unsigned sizes_in(const struct slot *s, uint32_t n)
{
	unsigned differ = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;

		while (k < i && s[k].size != s[i].size)
			k++;
		differ += k == i;
	}
	return differ;
}

/* Forth and back, wherever it begins. */
static bool is_there_and_back(const struct slot *s, uint32_t n,
			      uint32_t *from)
{
	for (*from = 0; n % 2 == 0 && *from < n; ++*from) {
		uint32_t k = 0;

		while (k < n / 2 && s[(*from + k) % n].size ==
				    s[(*from + n - 1 - k) % n].size)
			k++;
		if (k == n / 2)
			return true;
	}
	return false;
}

/* All alike, but for one that is a little shorter? */
static bool has_spares(const struct slot *s, uint32_t n)
{
	uint32_t least = UINT32_MAX, most = 0;
	unsigned shorter = 0;

	for (uint32_t i = 0; i < n; i++) {
		least = s[i].size < least ? s[i].size : least;
		most = s[i].size > most ? s[i].size : most;
	}
	for (uint32_t i = 0; i < n; i++)
		shorter += s[i].size == least;
	return n > 2 && shorter == 1 && least >= (1 - SPARES_MOST) * most;
}

/* Two surfaces, forth and back, of which the last track of each cylinder lacks
 * the spares, would look like four. */
static bool is_two_with_spares(const struct slot *s)
{
	for (uint32_t i = 0; i < 4; i++) {
		const struct slot *a = &s[i], *b = &s[(i + 1) % 4],
				  *c = &s[(i + 2) % 4], *d = &s[(i + 3) % 4];

		if (a->size > d->size && a->size - d->size == c->size - b->size)
			return true;
	}
	return false;
}

/* Surfaces that a cycle goes over; 0: it can't be said. */
static uint32_t surfaces_of(const struct slot *s, uint32_t cycle, bool *back)
{
	unsigned differ = sizes_in(s, cycle);
	uint32_t from;

	*back = differ < cycle && cycle >= 6 && differ > 2 &&
		is_there_and_back(s, cycle, &from);
	if (*back)
		return 4 * differ > cycle ? cycle / 2 : 0;
	if (cycle == 4 && is_two_with_spares(s))
		return 0;
	if (differ == cycle || (differ > 2 && 2 * differ > cycle) ||
	    (differ == 2 && has_spares(s, cycle)))
		return cycle;
	return 0;
}

/* The smallest cycle at a slot; 0: none. */
static uint32_t cycle_at(const struct work *w, size_t i)
{
	for (uint32_t n = 2; n <= CYCLE_MOST; n++) {
		if (repeats(w, i, n) && sizes_in(&w->item[i], n) > 1)
			return n;
	}
	return 0;
}

/* All places vote.  How many surfaces, and how sure that is. */
static void vote(struct work *w)
{
	size_t votes[2][SURFACES_MOST + 1] = { 0 };
	size_t all = 0, said = 0, best = 0;
	struct heads *h = w->heads;
	size_t step = w->n / 4096 + 1;

	for (size_t i = 0; i < w->n; i += step) {
		uint32_t cycle = cycle_at(w, i), n;
		bool back;

		/* Each is as many steps. */
		prober_pause(w->prober, i / step * CYCLE_MOST + CYCLE_MOST - 1);
		if (!cycle)
			continue;
		n = surfaces_of(&w->item[i], cycle, &back);
		all++;
		if (!n || n > SURFACES_MOST)
			continue;
		said++;
		votes[back][n]++;
		if (votes[back][n] > best) {
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
	w->cycle = h->back ? 2 * h->surfaces : h->surfaces;
	h->confidence_ppm = (uint32_t)((double)SURE_PPM * (double)best /
				       (double)said);
}

/* ---- Where each slot is ---- */

static bool fits(const struct work *w, size_t i, uint32_t at, uint32_t n)
{
	if (i + n > w->n)
		n = (uint32_t)(w->n - i);
	for (uint32_t k = 0; k < n; k++) {
		if (w->item[i + k].size != w->table[(at + k) % w->cycle])
			return false;
	}
	return true;
}

/* How unlike a new zone's sizes are to those of the last one, if its first slot
 * is at a place of the cycle: surfaces keep their proportions. */
static double unlike(const struct work *w, size_t i, uint32_t at)
{
	double sum = 0, squares = 0;

	for (uint32_t k = 0; k < w->cycle; k++) {
		double r = log((double)w->item[i + k].size /
			       w->table[(at + k) % w->cycle]);

		sum += r;
		squares += r * r;
	}
	return squares - sum * sum / w->cycle;
}

/* A zone begins: the sizes of its cycle.  `at`: where it would be if nothing
 * were missing. */
static uint32_t begin_zone(struct work *w, size_t i, uint32_t at, bool first)
{
	uint32_t best = at, k;
	double least, off;

	if (first && w->heads->back)
		is_there_and_back(&w->item[i], w->cycle, &k);
	else
		k = 0;
	if (first) {
		best = (w->cycle - k) % w->cycle;
	} else {
		least = unlike(w, i, at) * 0.9;
		for (k = 0; k < w->cycle; k++) {
			off = unlike(w, i, k);
			if (off < least) {
				least = off;
				best = k;
			}
		}
	}
	for (k = 0; k < w->cycle; k++)
		w->table[(best + k) % w->cycle] = w->item[i + k].size;
	return best;
}

/* Slots that are missing: how many places further is this one? */
static bool find_place(const struct work *w, size_t i, uint32_t *at)
{
	uint32_t n = w->cycle < PLACED_BY ? w->cycle : PLACED_BY;

	for (uint32_t k = 0; k < w->cycle; k++) {
		if (fits(w, i, (*at + k) % w->cycle, n)) {
			*at = (*at + k) % w->cycle;
			return true;
		}
	}
	return false;
}

/* Has a cycle begun between two slots that follow each other?  What is not
 * there is known by its surface. */
static bool is_begin(const struct work *w, uint32_t was, uint32_t at)
{
	uint32_t n = w->heads->surfaces;

	return at % w->cycle % n <= was % w->cycle % n;
}

static void place_slots(struct work *w)
{
	uint32_t at = 0, cylinder = 0, wide = 0;
	bool known = false;

	for (size_t i = 0; i < w->n; i++) {
		struct slot *s = &w->item[i];
		uint32_t was = at;

		at = i ? (at + 1) % w->cycle : 0;
		if (!(known && s->size == w->table[at]) &&
		    !(known && find_place(w, i, &at)) &&
		    repeats(w, i, w->cycle) &&
		    sizes_in(s, w->cycle) > 1) {
			at = begin_zone(w, i, at, !known);
			known = true;
		}
		if (i && is_begin(w, was, at)) {
			cylinder += wide;
			wide = 0;
		}
		if (s->size)
			wide = 1;
		s->at = at;
		s->cylinder = cylinder;
	}
}

/* ---- The geometry ---- */

static int build(const struct work *w, struct geom **out)
{
	struct geom_build *b = place_begin(w->geom);
	uint32_t n = w->heads->surfaces, at;
	struct geom_track t;
	size_t i = 0;
	int err = b ? 0 : -ENOMEM;

	for (uint64_t k = 0; k < geom_tracks(w->geom) && !err; k++) {
		prober_pause(w->prober, k);
		geom_track_at(w->geom, k, &t);
		while (i + 1 < w->n && w->item[i + 1].track <= k)
			i++;
		at = w->item[i].at;
		err = place_track(b, &t, at < n ? at : 2 * n - 1 - at,
				  w->item[i].cylinder);
	}
	return place_end(b, err, w->prober, out);
}

/* From what is in a row to how often it comes again. */
static int find(struct work *w)
{
	int err = make_items(w);

	if (err || !has_singles(w))
		return err;
	err = make_slots(w);
	if (!err)
		vote(w);
	return err;
}

static int find_by_sizes(const struct geom *geom, struct prober *prober,
			 struct heads *heads, struct geom **out)
{
	struct work w = { .geom = geom, .prober = prober, .heads = heads };
	int err = find(&w);

	if (!err && heads->surfaces) {
		heads->order = HEADS_CYLINDER;
		heads->group = 1;
		place_slots(&w);
		err = build(&w, out);
	} else {
		*heads = (struct heads){ 0 };
	}
	free(w.item);
	return err;
}

/* ---- By skews, and by seeks ---- */

/* Cylinders that are all but full? */
static bool is_full(const struct geom *geom, uint32_t surfaces)
{
	uint64_t n = geom_tracks(geom), most = 0;
	struct geom_track t;

	for (uint64_t i = 0; i < n; i++) {
		geom_track_at(geom, i, &t);
		most = t.cylinder > most ? t.cylinder : most;
	}
	return (double)(most + 1) * surfaces <= FULL * (double)n;
}

static int place_pieces(const struct pieces *p, const struct geom *geom,
			struct heads *heads, struct geom **out)
{
	int err;

	*heads = (struct heads){
		.order = HEADS_CYLINDER, .surfaces = p->group, .group = 1,
		.confidence_ppm = SURE_PPM,
	};
	err = pieces_place(p, geom, out);
	if (!err && !is_full(*out, p->group)) {
		geom_free(*out);
		*out = NULL;
		*heads = (struct heads){ 0 };
	}
	return err;
}

/* What is found by going near and far, if it all is so. */
static int try_bands(struct near *near, const struct pieces *p,
		     const struct bands_guess *guess,
		     struct heads *heads, struct geom **out)
{
	struct bands bands;
	double share = 0;
	int err = bands_cut(near, p, guess, &bands);

	if (!err)
		err = bands_prove(&bands, near, p, &share);
	if (!err && share > 0)
		err = bands_place(&bands, near, out);
	if (*out)
		*heads = (struct heads){
			.order = HEADS_SERPENTINE,
			.surfaces = guess->surfaces,
			.group = (uint32_t)lrint(bands.usual),
			.confidence_ppm = (uint32_t)(SEEKS_PPM * share),
		};
	bands_fini(&bands);
	return err;
}

/* So many surfaces, however that may be believed to show. */
static int try_surfaces(struct near *near, const struct pieces *p,
			uint32_t surfaces, double sweep, struct heads *heads,
			struct geom **out)
{
	struct bands_guess guess;
	int votes, err = bands_turn(near, p, &votes);

	for (unsigned i = 0; i < GUESSES && !err && !*out; i++) {
		guess = (struct bands_guess){
			.surfaces = surfaces, .sweep = sweep,
			.inside = i < 2,
			.turns = (votes > 0) != i % 2,
		};
		if (i % 2 && abs(votes) >= BANDS_VOTES)
			continue;
		err = try_bands(near, p, &guess, heads, out);
	}
	return err;
}

static int by_seeks(struct near *near, const struct pieces *p,
		    struct heads *heads, struct geom **out)
{
	struct islands islands = { 0 };
	int err = islands_count(near, p, &islands);

	if (!err && islands.surfaces > 1)
		err = try_surfaces(near, p, islands.surfaces, islands.sweep,
				   heads, out);
	return err;
}

int heads_measure(struct prober *prober, uint64_t period_ps, uint64_t most_ns,
		  const struct geom *geom, struct heads *heads,
		  struct geom **out)
{
	struct pieces p;
	struct near near;
	int err;

	*heads = (struct heads){ 0 };
	*out = NULL;
	err = find_by_sizes(geom, prober, heads, out);
	if (err || heads->surfaces)
		return err;
	err = pieces_cut(geom, prober, &p);
	if (err)
		return err;
	if (p.cylinders) {
		err = place_pieces(&p, geom, heads, out);
	} else if (prober) {
		err = near_begin(&near, prober, geom, (double)period_ps / 1e3,
				 most_ns);
		if (!err && near.least_ns > 0)
			err = by_seeks(&near, &p, heads, out);
	}
	pieces_free(&p);
	return err;
}

/* ---- Measured anew ---- */

int heads_keep(const struct geom *was, const struct geom *now,
	       struct geom **out)
{
	struct geom_build *b = place_begin(now);
	uint64_t known = 0, others = 0;
	struct geom_track t, old;
	int err = b ? 0 : -ENOMEM;

	*out = NULL;
	for (uint64_t i = 0; i < geom_tracks(now) && !err; i++) {
		geom_track_at(now, i, &t);
		geom_track_of(was, t.first, &old);
		known += t.known;
		others += t.known && (!old.known || old.first != t.first);
		err = place_track(b, &t, old.surface, old.cylinder);
	}
	if (!err && others <= known / OTHERS_LEAST)
		return place_end(b, err, NULL, out);
	geom_build_free(b);
	return err;
}
