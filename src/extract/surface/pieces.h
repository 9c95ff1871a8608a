/*
 * pieces.h - the tracks in a row on one surface, as far as it shows.
 *
 * Tracks are cut into pieces where their size or their skew changes.  A piece
 * is what a group of a serpentine has on one surface, or (where only the end of
 * a group shows) all that a group has, or a cylinder, or a zone.  Which of
 * them, and how many surfaces there are, heads.h and bands.h find out.
 */
#ifndef TRAX_SURFACE_PIECES_H
#define TRAX_SURFACE_PIECES_H

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

struct piece {
	uint64_t track;		/* its first */
	uint32_t tracks;
	bool whole;		/* all known, and begins and ends with a mark */
	bool sized;		/* its tracks are of another size than those
				 * before it */
};

struct pieces {
	struct piece *v;
	size_t n;
	uint32_t group;		/* tracks that most of them have; 0: none */
	bool cylinders;		/* they are */
	bool uneven;		/* surfaces are: a piece is on one of them */
};

/* Costs by the number of tracks; prober: only to pause now and then, may be
 * NULL.  -ENOMEM */
int pieces_cut(const struct geom *geom, struct prober *prober,
	       struct pieces *pieces);
void pieces_free(struct pieces *pieces);

/* Where they are cylinders, puts the tracks of a geometry in their places:
 * *out.  -ENOMEM */
int pieces_place(const struct pieces *pieces, const struct geom *geom,
		 struct geom **out);

#endif
