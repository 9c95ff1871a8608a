/*
 * pieces.c - cuts, and what the lengths of pieces tell.
 *
 * Where pieces are of one length, and that is short, they are cylinders; long
 * ones are sweeps or bands, and seeks tell which (bands.h).
 */
#include "extract/surface/pieces.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "extract/surface/place.h"
#include "extract/surface/turns.h"

#define CYLINDER_MOST 24u
/* A group has more cylinders than a cylinder has tracks; but on small disks. */
#define CYLINDER_SURE 7u
#define TRACKS_LARGE 20000u
#define PIECES_LEAST 6u
#define GROUP_SHARE 0.35
#define SIZES_ALIKE 256u
/* Changes of size one way for each the other way, where it is zones. */
#define ZONES_MOST 6u

/* ---- Cutting ---- */

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
		if (same_size(place_around(&t), size))
			return false;
	}
	return true;
}

static int add(struct pieces *p, size_t *room, const struct piece *piece)
{
	int err = array_grow(&p->v, room, p->n, sizeof(*p->v));

	if (!err)
		p->v[p->n++] = *piece;
	return err;
}

/* The most common length, if it is common. */
static int find_group(struct pieces *p)
{
	uint64_t *v = calloc(p->n + 1, sizeof(*v)), group = 0;
	size_t n = 0, best;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].whole)
			v[n++] = p->v[i].tracks;
	best = turns_common(v, n, &group);
	if (best >= PIECES_LEAST && (double)best >= GROUP_SHARE * (double)n)
		p->group = (uint32_t)group;
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
		change = !p->cylinders && !same_size(place_around(&t), size) &&
			 size_changes(geom, i, size);
		if (piece.tracks && (mark || change)) {
			err = add(p, &room, &piece);
			piece = (struct piece){
				.track = i, .whole = true,
				.sized = change,
			};
		}
		if (change || !size)
			size = place_around(&t);
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
		size = place_around(&t);
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

/* ---- Placing ---- */

int pieces_place(const struct pieces *pieces, const struct geom *geom,
		 struct geom **out)
{
	struct geom_build *b = place_begin(geom);
	int err = b ? 0 : -ENOMEM;
	int64_t cylinder = -1;
	struct geom_track t;

	for (size_t i = 0; i < pieces->n && !err; i++) {
		const struct piece *p = &pieces->v[i];

		for (uint32_t at = 0; at < p->tracks && !err; at++) {
			/* A piece begins, or a mark was missed. */
			cylinder += at % pieces->group == 0;
			geom_track_at(geom, p->track + at, &t);
			err = place_track(b, &t, at % pieces->group, cylinder);
		}
	}
	return place_end(b, err, NULL, out);
}
