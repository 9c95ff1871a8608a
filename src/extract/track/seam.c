/*
 * seam.c - see seam.h.
 *
 * Where surfaces come in turn all their sizes are new in a zone; it is the
 * first that follows one that had come again.
 */
#include "extract/track/seam.h"

#include "extract/track/segment.h"

/* Tolerances, of all reads of a place. */
#define OFF 1.2
/* Tracks from which on a run is long. */
#define LONG_RUN 8u
/* Of a track, what is nearly whole. */
#define WHOLE_LEAST 0.9
/* Tracks among which the largest is looked for: some of each surface. */
#define AMONG 64u

/* Does a piece go on from the one before it? */
static bool joins(const struct piece *p)
{
	return p[-1].tracks && p[-1].first + p[-1].units == p->first;
}

static unsigned number_of(struct seam *seam, uint32_t size)
{
	unsigned i = 0;

	while (i < seam->n && seam->size[i] != size)
		i++;
	if (i == seam->n && seam->n < SEAM_SIZES) {
		seam->size[seam->n] = size;
		seam->runs[seam->n++] = 0;
	}
	return i;
}

/* Behind a hole: whether it has come again can't be said. */
static void appears(struct seam *seam, uint32_t size)
{
	unsigned i = number_of(seam, size);

	if (i < SEAM_SIZES && !seam->runs[i])
		seam->runs[i] = 1;
}

/* A run of tracks of a size begins: is that one new, behind one that is not? */
static bool begins(struct seam *seam, uint32_t before, uint32_t size)
{
	unsigned a = number_of(seam, before), b = number_of(seam, size);
	bool is_new;

	if (a == SEAM_SIZES || b == SEAM_SIZES)
		return false;
	is_new = !seam->runs[b] && seam->runs[a];
	seam->again |= seam->runs[b] > 0;
	seam->runs[b]++;
	return is_new && (!seam->again || seam->runs[a] > 1);
}

bool seam_next(struct seam *seam, struct store_track *track)
{
	const struct store *s = seam->store;
	const struct piece *p = s->pieces;

	if (seam->behind) {
		seam->behind = false;
		store_track(s, &p[store_find(s, seam->first)], 0, track);
		return true;
	}
	for (size_t i = store_find(s, seam->at); i < s->n; i++) {
		bool joined = i && joins(&p[i]);

		seam->at = p[i].first + p[i].units;
		if (p[i].tracks && !joined)
			appears(seam, p[i].size);
		if (!p[i].tracks || !joined || p[i - 1].size == p[i].size ||
		    !begins(seam, p[i - 1].size, p[i].size))
			continue;
		store_track(s, &p[i - 1], p[i - 1].tracks - 1, track);
		seam->first = p[i].first;
		seam->behind = true;
		return true;
	}
	return false;
}

int seam_holds(struct reader *reader, const struct store_track *track,
	       bool closely, bool *holds)
{
	struct segment s = {
		.first = track->first, .units = track->size,
		.pitch = track->pitch,
	};
	int err = segment_line(reader, &s, holds);

	if (err || !*holds || !closely)
		return err;
	err = segment_holds(reader, &s, OFF, holds);
	s.pitch = track->pitch;
	return err || !*holds ? err : segment_level(reader, &s, holds);
}

/* The size of so many tracks that end before a piece; 0: they differ. */
static uint32_t row_before(const struct store *s, size_t i)
{
	const struct piece *p = s->pieces;
	uint32_t n = 0, row = i ? p[i - 1].size : 0;

	for (; i && n < LONG_RUN && joins(&p[i]) && p[i - 1].size == row; i--)
		n += p[i - 1].tracks;
	return n >= LONG_RUN ? row : 0;
}

/* Likewise that begin behind it. */
static uint32_t row_behind(const struct store *s, size_t i)
{
	const struct piece *p = s->pieces;
	uint32_t n = 0, row = i + 1 < s->n ? p[i + 1].size : 0;

	for (; ++i < s->n && n < LONG_RUN && p[i].tracks && joins(&p[i]) &&
	     p[i].size == row;)
		n += p[i].tracks;
	return n >= LONG_RUN ? row : 0;
}

bool seam_is_between(const struct store *store, size_t piece)
{
	const struct piece *p = &store->pieces[piece];
	uint32_t before = row_before(store, piece);
	uint32_t behind = row_behind(store, piece);

	return p->tracks == 1 && before && behind && before != behind &&
	       p->units != before && p->units != behind &&
	       p->units > WHOLE_LEAST * behind;
}

bool seam_is_grown(const struct store *store, size_t piece)
{
	const struct piece *p = &store->pieces[piece];
	uint32_t before = row_before(store, piece);
	uint32_t behind = row_behind(store, piece);

	return p->tracks == 1 && before && behind && p->units > before &&
	       p->units > behind;
}

/* Of the tracks before a unit; 0: there are none. */
static uint32_t largest_before(const struct store *s, uint64_t unit)
{
	uint32_t largest = 0, n = 0;

	for (size_t i = store_find(s, unit); i-- && n < AMONG;) {
		const struct piece *p = &s->pieces[i];

		if (p->first + p->units > unit || !p->tracks)
			continue;
		n += p->tracks;
		largest = p->size > largest ? p->size : largest;
	}
	return largest;
}

static uint32_t largest_behind(const struct store *s, uint64_t unit)
{
	uint32_t largest = 0, n = 0;

	for (size_t i = store_find(s, unit); i < s->n && n < AMONG; i++) {
		const struct piece *p = &s->pieces[i];

		if (p->first < unit || !p->tracks)
			continue;
		n += p->tracks;
		largest = p->size > largest ? p->size : largest;
	}
	return largest;
}

bool seam_may_be(const struct store *store, uint64_t first, uint64_t end)
{
	uint32_t before = largest_before(store, first);

	return !before || before != largest_behind(store, end);
}
