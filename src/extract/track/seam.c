/*
 * seam.c - see seam.h.
 *
 * Where surfaces come in turn all their sizes are new in a zone; it is the
 * first that follows one that had come again.  Or, where the sizes of a zone
 * were those of other surfaces before, a track by itself between such sizes as
 * it was not between.
 */
#include "extract/track/seam.h"

#include <math.h>

#include "extract/probe/middle.h"
#include "extract/track/segment.h"

/* Tolerances, of all reads of a place. */
#define OFF 1.2
/* The first tracks of a row, of which those from one on say how they follow
 * each other; revolutions that the first is off by. */
#define ROW 12u
#define ROW_SURE 4u
#define STRAYS 0.0125

/* Does a piece go on from the one before it? */
static bool joins(const struct piece *p)
{
	return p[-1].tracks && p[-1].first + p[-1].units == p->first;
}

/* How many runs of tracks of a size there were lately, behind those of another
 * one (0: of any). */
static unsigned runs_of(const struct seam *seam, uint32_t before, uint32_t size)
{
	uint64_t n = seam->pairs < SEAM_PAIRS ? seam->pairs : SEAM_PAIRS;
	unsigned runs = 0;

	for (uint64_t i = 0; i < n; i++)
		runs += seam->pair[i][1] == size &&
			(!before || seam->pair[i][0] == before);
	return runs;
}

static void add(struct seam *seam, uint32_t before, uint32_t size)
{
	seam->pair[seam->pairs % SEAM_PAIRS][0] = before;
	seam->pair[seam->pairs++ % SEAM_PAIRS][1] = size;
}

/* A run of tracks of a size begins: is that one new, behind one that is not, or
 * a single track that is between others for the first time?  (One with slips is
 * followed by what it is behind.) */
static bool begins(struct seam *seam, const struct piece *p, bool last)
{
	uint32_t a = p[-1].size, b = p->size;
	unsigned runs_a = runs_of(seam, 0, a), runs_b = runs_of(seam, 0, b);
	bool known = runs_of(seam, a, b), alone;

	alone = seam->known && !known && p->tracks == 1 && !last &&
		joins(p + 1) && p[1].size != a && !runs_of(seam, b, p[1].size);
	add(seam, a, b);
	seam->known = known;
	seam->again |= runs_b > 0;
	return alone || (!runs_b && runs_a && (!seam->again || runs_a > 1));
}

/* The starts of the first tracks of a row of one size that begins with a piece;
 * false: it is shorter. */
static bool row_starts(const struct store *s, size_t i, double start[ROW])
{
	uint32_t size = s->pieces[i].size;
	struct store_track t;
	unsigned n = 0;

	for (size_t k = i; k < s->n && n < ROW; k++) {
		const struct piece *p = &s->pieces[k];

		if (!p->tracks || p->size != size || (k > i && !joins(p)))
			break;
		for (uint32_t j = 0; j < p->tracks && n < ROW; j++) {
			store_track(s, p, j, &t);
			start[n++] = t.start;
		}
	}
	return n == ROW;
}

/* Does the first track of a row lie elsewhere than those behind it say?  Two
 * short ones may be as long as it. */
static bool strays(const struct store *s, size_t i)
{
	double start[ROW], off[ROW - ROW_SURE], step;
	unsigned n = 0;

	if (!row_starts(s, i, start))
		return false;
	step = start[ROW - 1] - start[ROW - 2];
	for (unsigned k = ROW_SURE; k < ROW; k++)
		off[n++] = phase_wrap(start[k] - start[k - 1] - step);
	step += middle_of(off, n);
	return fabs(phase_wrap(start[1] - start[0] - step)) > STRAYS;
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
			add(seam, 0, p[i].size);
		if (!p[i].tracks || !joined || p[i - 1].size == p[i].size ||
		    (!begins(seam, &p[i], i + 1 == s->n) && !strays(s, i)))
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

	return err || !*holds || !closely ? err :
	       segment_holds(reader, &s, OFF, holds);
}
