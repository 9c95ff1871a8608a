/*
 * pieces.c - cuts, and what the lengths of pieces tell.
 *
 * Where pieces are of one length, and that is short, they are cylinders; long
 * ones are sweeps or bands, and skews tell which only if there are two kinds of
 * marks: so many sweeps from one of the rarer kind to the next are a band.  A
 * zone that is no longer than a group has one sweep on each surface: as many
 * pieces of one length as there are surfaces, of another length in each zone.
 */
#include "extract/surface/pieces.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/surface/turns.h"

#define SURFACES_MOST 64u
#define CYLINDER_MOST 24u
/* A group has more cylinders than a cylinder has tracks; but on small disks. */
#define CYLINDER_SURE 7u
#define TRACKS_LARGE 20000u
#define GROUP_LEAST 32u
#define PIECES_LEAST 6u
#define GROUP_SHARE 0.35
#define RUNS_LEAST 4u
#define LENGTHS_LEAST 3u
#define AGREE 0.9
#define SIZES_ALIKE 256u
/* Changes of size one way for each the other way, where it is zones. */
#define ZONES_MOST 6u
#define SURE_PPM 999000u
/* Tracks that a sweep may lack: slipped, or full of spares. */
#define LACKING 4u
#define TOLERANCE (UINT32_MAX / 1000)

/* ---- Cutting ---- */

static uint32_t around(const struct geom_track *t)
{
	return t->known && t->per_sector ?
		       (uint32_t)lrint(0x1p32 / t->per_sector) : 0;
}

/* Measured ones are never quite alike. */
static bool same_size(uint32_t a, uint32_t b)
{
	return (a > b ? a - b : b - a) <= a / SIZES_ALIKE;
}

/* A track or two of another size among those of one have slips. */
static bool size_changes(const struct geom *geom, uint64_t i, uint32_t size)
{
	struct geom_track t;

	for (unsigned k = 0; k < 3 && i + k < geom_tracks(geom); k++) {
		geom_track_at(geom, i + k, &t);
		if (same_size(around(&t), size))
			return false;
	}
	return true;
}

static int add(struct pieces *p, size_t *room, const struct piece *piece)
{
	struct piece *more;

	if (p->n == *room) {
		*room = *room ? 2 * *room : 1024;
		more = reallocarray(p->v, *room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->v = more;
	}
	p->v[p->n++] = *piece;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The most common length, if it is common. */
static int find_group(struct pieces *p)
{
	uint32_t *v = calloc(p->n + 1, sizeof(*v));
	size_t n = 0, best = 0, k;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].whole)
			v[n++] = p->v[i].tracks;
	qsort(v, n, sizeof(*v), by_number);
	for (size_t i = 0; i < n; i = k) {
		for (k = i; k < n && v[k] == v[i]; k++)
			;
		if (k - i > best) {
			best = k - i;
			p->group = v[i];
		}
	}
	if (best < PIECES_LEAST || (double)best < GROUP_SHARE * (double)n)
		p->group = 0;
	free(v);
	return 0;
}

/* Skews that are like no other cut only where tracks change: what was slipped
 * as a whole has one, too. */
static int cut(const struct geom *geom, struct prober *prober,
	       const struct turns *turns, struct pieces *p)
{
	struct piece piece = { .whole = true };
	uint32_t size = 0;
	size_t room = 0, k = 0;
	struct geom_track t;
	int err = 0;

	for (uint64_t i = 0; i < geom_tracks(geom) && !err; i++) {
		bool mark, change;

		prober_pause(prober, i);
		while (k < turns->n && turns->v[k].track < i)
			k++;
		mark = k < turns->n && turns->v[k].track == i &&
		       turns->v[k].kind != TURN_ODD;
		geom_track_at(geom, i, &t);
		change = !p->cylinders && !same_size(around(&t), size) &&
			 size_changes(geom, i, size);
		if (piece.tracks && (mark || change)) {
			err = add(p, &room, &piece);
			piece = (struct piece){
				.track = i, .whole = true,
				.band = mark && turns->v[k].kind == TURN_TWO,
				.sized = change,
			};
		}
		if (change || !size)
			size = around(&t);
		piece.whole &= t.known;
		piece.tracks++;
	}
	return err ? err : add(p, &room, &piece);
}

/* Zones have fewer sectors, the further in, or more; surfaces go both ways. */
static bool is_uneven(const struct geom *geom, const struct pieces *p)
{
	uint32_t size, last = 0;
	size_t up = 0, down = 0;
	struct geom_track t;

	for (size_t i = 0; i < p->n; i++) {
		geom_track_at(geom, p->v[i].track, &t);
		size = around(&t);
		if (last && size && !same_size(size, last)) {
			up += size > last;
			down += size < last;
		}
		last = size ? size : last;
	}
	return up < down ? up * ZONES_MOST > down : down * ZONES_MOST > up;
}

/* Is that as many surfaces as there may be, rather than a group's cylinders? */
static bool is_cylinder(uint64_t tracks, const struct turns *turns)
{
	return turns->period > 1 && !turns->two &&
	       turns->period <= (tracks < TRACKS_LARGE ? CYLINDER_SURE :
							 CYLINDER_MOST);
}

int pieces_cut(const struct geom *geom, struct prober *prober,
	       struct pieces *pieces)
{
	struct turns turns;
	int err = turns_find(geom, prober, &turns);

	*pieces = (struct pieces){ 0 };
	if (err)
		return err;
	pieces->cylinders = is_cylinder(geom_tracks(geom), &turns);
	err = cut(geom, prober, &turns, pieces);
	turns_fini(&turns);
	if (!err)
		err = find_group(pieces);
	pieces->cylinders = pieces->cylinders && pieces->group > 1;
	pieces->uneven = !err && is_uneven(geom, pieces);
	if (err)
		pieces_free(pieces);
	return err;
}

void pieces_free(struct pieces *pieces)
{
	free(pieces->v);
	*pieces = (struct pieces){ 0 };
}

/* ---- Counting ---- */

struct votes {
	uint32_t of[SURFACES_MOST + 1], all, best;
};

static void vote(struct votes *v, size_t n)
{
	v->all++;
	if (n > SURFACES_MOST)
		return;
	v->of[n]++;
	if (v->of[n] > v->of[v->best])
		v->best = (uint32_t)n;
}

static uint32_t agreed(const struct votes *v, uint32_t *sure_ppm)
{
	if (v->of[v->best] < RUNS_LEAST || v->of[v->best] < AGREE * v->all)
		return 0;
	*sure_ppm = (uint32_t)((double)SURE_PPM * v->of[v->best] / v->all);
	return v->best;
}

/* Does a piece have as many tracks as most? */
static bool is_group(const struct pieces *p, size_t i)
{
	uint32_t n = p->v[i].tracks;

	return p->v[i].whole && n <= p->group && n + 2 >= p->group;
}

/* From a band's beginning to the next, all of them whole sweeps. */
static uint32_t by_bands(const struct pieces *p, uint32_t *sure_ppm)
{
	struct votes votes = { 0 };
	size_t since = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (p->v[i].band) {
			if (since > 1)
				vote(&votes, since);
			since = 0;
			if (is_group(p, i))
				since = 1;
		} else if (since && is_group(p, i)) {
			since++;
		} else {
			since = 0;
		}
	}
	return agreed(&votes, sure_ppm);
}

static bool alike(uint32_t a, uint32_t b)
{
	return a <= b + LACKING && b <= a + LACKING;
}

/* Pieces of one length in a row, in zones that differ. */
static uint32_t by_zones(const struct pieces *p, uint32_t *sure_ppm)
{
	uint32_t length[LENGTHS_LEAST], best;
	unsigned lengths = 0, k;
	struct votes votes = { 0 };
	size_t i, n;

	for (i = 0; i < p->n; i += n) {
		for (n = 1; i + n < p->n &&
		     alike(p->v[i].tracks, p->v[i + n].tracks); n++)
			;
		/* What is in no row speaks against all. */
		vote(&votes, p->v[i].tracks < GROUP_LEAST ? 1 : n);
		if (n < 2)
			continue;
		for (k = 0; k < lengths &&
		     !alike(length[k], p->v[i].tracks); k++)
			;
		if (k == lengths && lengths < LENGTHS_LEAST)
			length[lengths++] = p->v[i].tracks;
	}
	best = lengths < LENGTHS_LEAST ? 0 : agreed(&votes, sure_ppm);
	return best > 1 ? best : 0;
}

uint32_t pieces_count(const struct pieces *p, enum pieces_are *are,
		      uint32_t *sure_ppm)
{
	uint32_t n;

	*are = PIECES_CYLINDERS;
	*sure_ppm = SURE_PPM;
	if (p->cylinders)
		return p->group;
	*are = PIECES_SWEEPS;
	n = p->group >= GROUP_LEAST ? by_bands(p, sure_ppm) : 0;
	return n ? n : by_zones(p, sure_ppm);
}

/* ---- Placing ---- */

struct placing {
	const struct pieces *pieces;
	enum pieces_are are;
	uint32_t surfaces;
	uint32_t sweep;		/* sweeps of this band so far */
	uint32_t cylinder, wide; /* where the band begins; its cylinders */
};

/* A piece begins: which sweep is it of its band? */
static void next_sweep(struct placing *w, size_t i)
{
	const struct piece *p = &w->pieces->v[i];
	uint32_t n = p->tracks;

	if (w->are != PIECES_SWEEPS) {
		w->cylinder += w->wide;
		w->wide = 1;
		return;
	}
	w->sweep++;
	if (!i || w->sweep >= w->surfaces || p->band ||
	    !alike(p->tracks, p[-1].tracks)) {
		w->cylinder += w->wide;
		w->wide = w->sweep = 0;
	}
	w->wide = n > w->wide ? n : w->wide;
}

/* Sweeps alternate, mostly; which way the first runs does not show. */
static void place(const struct placing *w, const struct piece *p,
		  uint32_t at, struct geom_sweep *out)
{
	uint32_t each = p->tracks;

	if (w->are == PIECES_CYLINDERS) {
		out->surface = (int32_t)(at % w->surfaces);
		out->cylinder = w->cylinder;
		return;
	}
	out->surface = (int32_t)w->sweep;
	out->cylinder = w->cylinder +
			(w->sweep % 2 && at < each ? each - 1 - at : at);
}

static int place_piece(struct placing *w, size_t i, const struct geom *geom,
		       struct geom_build *b)
{
	const struct piece *p = &w->pieces->v[i];
	struct geom_track t;
	int err = 0;

	next_sweep(w, i);
	for (uint32_t at = 0; at < p->tracks && !err; at++) {
		struct geom_sweep s = { .count = 1 };

		/* A mark was missed. */
		if (w->are == PIECES_CYLINDERS && at &&
		    at % w->surfaces == 0)
			w->cylinder++;
		geom_track_at(geom, p->track + at, &t);
		place(w, p, at, &s);
		s.sectors = t.sectors;
		s.around = around(&t) > t.sectors ? around(&t) : t.sectors;
		s.base = t.start;
		s.known = t.known;
		err = geom_build_sweep(b, &s);
	}
	return err;
}

int pieces_place(const struct pieces *pieces, enum pieces_are are,
		 uint32_t surfaces, const struct geom *geom, struct geom **out)
{
	struct placing w = { .pieces = pieces, .are = are,
			     .surfaces = surfaces };
	struct geom_build *b = geom_build_new(geom_period_ns(geom), TOLERANCE);
	int err = b ? 0 : -ENOMEM;

	for (size_t i = 0; i < pieces->n && !err; i++)
		err = place_piece(&w, i, geom, b);
	if (!err)
		err = geom_build_finish(b, out);
	geom_build_free(b);
	return err;
}
