/*
 * bands.h - groups of cylinders that are gone over surface by surface.
 *
 * A band is all tracks of such a group: as many sweeps, each along one surface,
 * as there are surfaces.  Where sweeps begin shows by sizes and skews of tracks
 * (pieces.h), not all of them and not always; how it goes on inside is the same
 * everywhere, and the drive is asked by seeks whether that is so (near.h).
 */
#ifndef TRAX_SURFACE_BANDS_H
#define TRAX_SURFACE_BANDS_H

#include "extract/surface/near.h"
#include "extract/surface/pieces.h"

/* Which way sweeps run: all the same, or the first one so and by turns. */
enum bands_way { BANDS_IN, BANDS_OUT, BANDS_TURNS_IN, BANDS_TURNS_OUT };

/* Tracks are counted as they lie; what is unknown has as many as would fit. */
struct band {
	double at, each;	/* where it begins; tracks of a sweep */
	uint32_t cylinder;
	bool clear;		/* all that shows says so */
};

struct bands {
	struct band *v;
	size_t n;
	uint32_t surfaces;
	enum bands_way way;
	double usual;		/* tracks of most sweeps */
	struct axis *axis;	/* tracks and their places */
	size_t axis_n;
};

/* What is believed of them. */
struct bands_guess {
	uint32_t surfaces;
	double sweep;		/* about so many tracks; 0: not known */
	bool inside;		/* where sweeps begin shows, not only bands */
	bool turns;		/* every other sweep runs back */
};

/* Does every other sweep run back?  So many votes more than not, if pieces are
 * sweeps.  Or why measuring had to stop. */
#define BANDS_VOTES 6
int bands_turn(struct near *near, const struct pieces *pieces, int *votes);

/* From band to band, asking where one may begin wrongly.  -ENOMEM, or why
 * measuring had to stop.  bands_fini, always. */
int bands_cut(struct near *near, const struct pieces *pieces,
	      const struct bands_guess *guess, struct bands *bands);
void bands_fini(struct bands *bands);

/* Which way, and is it all so?  *share: of what was asked, that agreed; 0: it
 * is not.  Or why measuring had to stop. */
int bands_prove(struct bands *bands, struct near *near,
		const struct pieces *pieces, double *share);

/* The tracks in their places.  -ENOMEM. */
int bands_place(const struct bands *bands, struct near *near,
		struct geom **out);

#endif
