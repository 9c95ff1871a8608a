/*
 * store.c - arrays in order, found by bisection.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "extract/probe/phase.h"
#include "extract/track/store.h"

/* A track goes on a piece when its angle is this near, in revolutions, and when
 * its units take as much of a revolution, but for so much: of two surfaces with
 * as many units a track one may have spares. */
#define ANGLE_SAME 0.004
#define SPAN_SAME 0.012

size_t store_find(const struct store *store, uint64_t unit)
{
	size_t lo = 0, hi = store->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct piece *p = &store->pieces[mid];

		if (p->first + p->units <= unit)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

size_t store_find_odd(const struct store *store, uint64_t unit)
{
	size_t lo = 0, hi = store->odds_n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (store->odds[mid].first < unit)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int store_insert(struct store *store, const struct piece *piece)
{
	size_t i;
	int err = store_cut(store, piece->first, piece->first + piece->units);

	i = store_find(store, piece->first);
	if (!err)
		err = array_grow(&store->pieces, &store->room, store->n,
				 sizeof(*piece));
	if (err)
		return err;
	memmove(store->pieces + i + 1, store->pieces + i,
		(store->n - i) * sizeof(*piece));
	store->pieces[i] = *piece;
	store->n++;
	return 0;
}

int store_odd(struct store *store, uint64_t first, uint32_t less)
{
	size_t i = store_find_odd(store, first);
	int err = array_grow(&store->odds, &store->odds_room, store->odds_n,
			     sizeof(*store->odds));

	if (err)
		return err;
	memmove(store->odds + i + 1, store->odds + i,
		(store->odds_n - i) * sizeof(*store->odds));
	store->odds[i] = (struct odd){ first, less };
	store->odds_n++;
	return 0;
}

/* Does a track go on where a piece ends? */
static bool goes_on(struct piece *p, const struct store_track *t,
		    uint32_t nominal, double span)
{
	double step;

	if (!p->tracks || p->first + p->units != t->first ||
	    p->size != nominal || fabs(p->span - span) > SPAN_SAME)
		return false;
	step = phase_part(t->start - p->start);
	if (p->tracks == 1)
		p->step = step;
	return fabs(phase_wrap(p->start + p->tracks * p->step - t->start)) <=
	       ANGLE_SAME;
}

int store_add(struct store *store, const struct store_track *track,
	      uint32_t nominal, double span)
{
	int err = store_cut(store, track->first, track->first + track->size);
	size_t i = store_find(store, track->first);
	struct piece *p = i ? &store->pieces[i - 1] : NULL, piece;

	if (track->size > nominal)
		nominal = track->size;
	if (!err && p && goes_on(p, track, nominal, span)) {
		p->tracks++;
		p->units += track->size;
	} else if (!err) {
		piece = (struct piece){
			.first = track->first,
			.units = track->size,
			.tracks = 1,
			.size = nominal,
			.start = track->start,
			.span = span,
		};
		err = store_insert(store, &piece);
	}
	if (!err && track->size < nominal)
		err = store_odd(store, track->first, nominal - track->size);
	return err;
}

int store_unknown(struct store *store, uint64_t first, uint64_t units)
{
	struct piece piece = { .first = first, .units = units };

	return units ? store_insert(store, &piece) : 0;
}

/* [a, b) of them go. */
static void odds_cut(struct store *store, size_t a, size_t b)
{
	if (a == b)
		return;
	memmove(store->odds + a, store->odds + b,
		(store->odds_n - b) * sizeof(*store->odds));
	store->odds_n -= b - a;
}

static void pieces_remove(struct store *store, size_t i, size_t n)
{
	memmove(store->pieces + i, store->pieces + i + n,
		(store->n - i - n) * sizeof(*store->pieces));
	store->n -= n;
}

void store_remove(struct store *store, size_t i, size_t n)
{
	const struct piece *last = &store->pieces[i + n - 1];
	size_t a = store_find_odd(store, store->pieces[i].first);
	size_t b = store_find_odd(store, last->first + last->units);

	odds_cut(store, a, b);
	pieces_remove(store, i, n);
}

uint32_t store_track_at(const struct store *s, const struct piece *p,
			uint64_t unit)
{
	uint32_t lo = (uint32_t)((unit - p->first) / p->size), hi = p->tracks;
	struct store_track t;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		store_track(s, p, mid, &t);
		if (t.first <= unit)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* The tracks [from, to) of a piece as one. */
static struct piece part(const struct store *s, const struct piece *p,
			 uint32_t from, uint32_t to)
{
	struct piece q = *p;
	struct store_track t;

	store_track(s, p, from, &t);
	q.first = t.first;
	q.start = t.start;
	store_track(s, p, to, &t);
	q.units = t.first - q.first;
	q.tracks = to - from;
	return q;
}

/* Takes [first, end) away from the piece i; *whole: nothing is left of it. */
static int cut_piece(struct store *s, size_t i, uint64_t first, uint64_t end,
		     bool *whole)
{
	struct piece p = s->pieces[i], left = { 0 }, right = { 0 };
	uint64_t stop = p.first + p.units;
	size_t a, b;

	if (p.tracks && first > p.first)
		left = part(s, &p, 0, store_track_at(s, &p, first));
	if (p.tracks && end < stop)
		right = part(s, &p, store_track_at(s, &p, end - 1) + 1,
			     p.tracks);
	if (!p.tracks && first > p.first)
		left = (struct piece){ .first = p.first,
				       .units = first - p.first };
	if (!p.tracks && end < stop)
		right = (struct piece){ .first = end, .units = stop - end };
	a = store_find_odd(s, p.first + left.units);
	b = store_find_odd(s, stop - right.units);
	odds_cut(s, a, b);
	*whole = !left.units && !right.units;
	s->pieces[i] = left.units ? left : right;
	return left.units && right.units ? store_insert(s, &right) : 0;
}

int store_cut(struct store *store, uint64_t first, uint64_t end)
{
	size_t i = store_find(store, first);
	bool whole;
	int err = 0;

	while (!err && i < store->n && store->pieces[i].first < end) {
		err = cut_piece(store, i, first, end, &whole);
		if (!whole) {
			i++;
			continue;
		}
		pieces_remove(store, i, 1);
	}
	return err;
}

void store_undo(struct store *store, uint64_t end, uint32_t size)
{
	size_t i = store_find(store, end - size);
	size_t k = store_find_odd(store, end - size);
	struct piece *p = &store->pieces[i];

	if (i == store->n || p->first + p->units != end || !p->tracks)
		return;
	if (p->tracks == 1) {
		store_remove(store, i, 1);
		return;
	}
	if (k < store->odds_n && store->odds[k].first == end - size)
		odds_cut(store, k, k + 1);
	p->tracks--;
	p->units -= size;
}

void store_track(const struct store *store, const struct piece *piece,
		 uint32_t k, struct store_track *track)
{
	size_t i = store_find_odd(store, piece->first);
	uint64_t at = piece->first + (uint64_t)k * piece->size;
	const struct odd *odd = &store->odds[i];

	for (; i < store->odds_n && odd->first < at; i++, odd++)
		at -= odd->less;
	track->first = at;
	track->size = piece->size;
	if (i < store->odds_n && odd->first == at)
		track->size -= odd->less;
	track->start = phase_part(piece->start + k * piece->step);
	track->pitch = piece->span / piece->size;
}

int store_copy(const struct store *store, struct store *copy)
{
	*copy = (struct store){
		.pieces = malloc((store->n + 1) * sizeof(*store->pieces)),
		.odds = malloc((store->odds_n + 1) * sizeof(*store->odds)),
		.n = store->n, .room = store->n + 1,
		.odds_n = store->odds_n, .odds_room = store->odds_n + 1,
	};
	if (!copy->pieces || !copy->odds) {
		store_fini(copy);
		return -ENOMEM;
	}
	for (size_t i = 0; i < store->n; i++)
		copy->pieces[i] = store->pieces[i];
	for (size_t i = 0; i < store->odds_n; i++)
		copy->odds[i] = store->odds[i];
	return 0;
}

static uint32_t tracks_of(const struct store *s, size_t from, size_t to,
			  uint32_t size)
{
	uint32_t tracks = 0;

	for (size_t i = from; i < to && i < s->n; i++)
		tracks += s->pieces[i].size == size ? s->pieces[i].tracks : 0;
	return tracks;
}

uint32_t store_before(const struct store *store, uint64_t unit, uint32_t size)
{
	size_t at = store_find(store, unit);

	return tracks_of(store, at > STORE_NEAR ? at - STORE_NEAR : 0, at,
			 size);
}

uint32_t store_behind(const struct store *store, uint64_t unit, uint32_t size)
{
	size_t at = store_find(store, unit) + 1;

	return tracks_of(store, at, at + STORE_NEAR, size);
}

void store_fini(struct store *store)
{
	free(store->pieces);
	free(store->odds);
	*store = (struct store){ 0 };
}
