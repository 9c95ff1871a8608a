/*
 * even.c - see even.h.
 *
 * A pitch is that of several units on a track; where tracks have slips others
 * are measured.
 */
#include "extract/track/even.h"

#include <math.h>

#include "extract/track/segment.h"

/* Surfaces that all seem to be equal by chance: no more. */
#define ROUND_MOST 3u
/* Rounds in a row. */
#define AGAIN 4u
/* Tracks of one size. */
#define ROW_LEAST 64u
/* Among which so many may be of other sizes; and as a divisor. */
#define ODD_LEAST 4u
#define ODD_SHARE 8u
/* Units of a turn that may seem to be left, standard deviations; and as many as
 * that are not known. */
#define ROOM 0.6
#define SIGMAS 2.0
#define TRIES 4u

/* The last tracks, the last one first. */
struct last {
	uint32_t size[AGAIN * ROUND_MOST];
	unsigned n;
	uint64_t end;
};

static void last_take(struct last *l, const struct store_track *t)
{
	if (t->first != l->end)
		l->n = 0;
	if (l->n < AGAIN * ROUND_MOST)
		l->n++;
	for (unsigned i = l->n - 1; i; i--)
		l->size[i] = l->size[i - 1];
	l->size[0] = t->size;
	l->end = t->first + t->size;
}

static bool is_round(const struct last *l, unsigned round)
{
	bool equal = true;

	if (l->n < AGAIN * round)
		return false;
	for (unsigned i = round; i < AGAIN * round; i++) {
		if (l->size[i] != l->size[i - round])
			return false;
		equal = equal && l->size[i] == l->size[i - 1];
	}
	return !equal;
}

unsigned even_rounds(const struct store *store, uint64_t first, uint64_t end)
{
	struct last last = { .n = 0 };
	struct store_track t;

	for (size_t i = store_find(store, first); i < store->n &&
	     store->pieces[i].first < end; i++) {
		const struct piece *p = &store->pieces[i];

		/* Nothing but its ends can be of a round. */
		for (uint32_t k = 0; k < p->tracks; k++) {
			if (k == ROUND_MOST && p->tracks > 2 * ROUND_MOST)
				k = p->tracks - ROUND_MOST;
			store_track(store, p, k, &t);
			last_take(&last, &t);
			for (unsigned r = 2; r <= ROUND_MOST; r++) {
				if (is_round(&last, r))
					return r;
			}
		}
	}
	return 0;
}

/* Does a row of tracks of a size go on with a piece, or behind it?  A gap does
 * not part it, nor do a few tracks that have slips. */
static bool in_row(const struct piece *p, uint32_t size, uint64_t tracks,
		   uint64_t *odd)
{
	if (!p->tracks || p->size == size)
		return true;
	*odd += p->tracks;
	return *odd <= ODD_LEAST + tracks / ODD_SHARE;
}

bool even_next(const struct store *store, uint64_t *first, uint64_t *end)
{
	const struct piece *from = NULL;
	uint64_t tracks = 0, odd = 0;

	for (size_t i = store_find(store, *first); i < store->n; i++) {
		const struct piece *p = &store->pieces[i];

		if (!from || !in_row(p, from->size, tracks, &odd)) {
			if (tracks >= ROW_LEAST)
				break;
			from = p->tracks ? p : NULL;
			tracks = odd = 0;
		}
		if (from && p->tracks && p->size == from->size) {
			tracks += p->tracks;
			*end = p->first + p->units;
		}
	}
	if (!from || tracks < ROW_LEAST)
		return false;
	*first = from->first > *first ? from->first : *first;
	return true;
}

/* Of one track; *known: it could be measured. */
static int has_room(struct reader *r, const struct store_track *t, bool *known,
		    bool *room)
{
	struct segment s = {
		.first = t->first, .units = t->size, .pitch = t->pitch,
	};
	int err = segment_line(r, &s, known);
	double left = 1 / s.pitch - t->size;

	*known = *known &&
		 SIGMAS * s.pitch_sigma / (s.pitch * s.pitch) < ROOM;
	*room = left > ROOM;
	return err;
}

int even_has_room(struct reader *reader, const struct store *store,
		  uint64_t first, uint64_t end, unsigned round, bool *room)
{
	struct store_track t;
	unsigned n = 0;
	int err = 0;

	*room = false;
	for (unsigned i = 0; i < TRIES * round && n < round && !*room && !err;
	     i++) {
		bool known;
		size_t k = store_find(store, first);
		const struct piece *p = &store->pieces[k];

		if (k == store->n || first >= end)
			break;
		if (!p->tracks) {
			first = p->first + p->units;
			continue;
		}
		first = p->first > first ? p->first : first;
		store_track(store, p, store_track_at(store, p, first), &t);
		first = t.first + t.size;
		err = has_room(reader, &t, &known, room);
		*room = *room && known;
		n = known ? n + 1 : 0;
	}
	*room = *room || n < round;
	return err;
}
