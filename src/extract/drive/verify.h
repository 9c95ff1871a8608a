/*
 * verify.h - does a drive have the tracks that are believed of it?
 *
 * A boundary is where the angle leaps by the skew.  The last unit of a track
 * and the first of the next are read, the later one first (what a drive reads
 * ahead is behind it), and the angle between them is compared.
 */
#ifndef TRAX_DRIVE_VERIFY_H
#define TRAX_DRIVE_VERIFY_H

#include "diskmodel/geom.h"
#include "extract/probe/probe.h"

struct verify {
	unsigned right, wrong;
	unsigned undecided;	/* unreadable, or a skew like no skew */
	unsigned unreadable;	/* of those */
	uint64_t first_wrong;	/* LBN; UINT64_MAX: none */
};

/* n boundaries at random among the known ones.  0, or why measuring had to
 * stop. */
int verify_boundaries(struct prober *prober, const struct geom *geom,
		      uint64_t period_ps, unsigned n, struct verify *verify);

/*
 * Looks at every track that is believed to be known: that it begins and ends
 * with a leap, and that there is none in between.  bad[i] is set for tracks
 * that are not what they are believed to be, or have an end that could not be
 * read.  `progress` may be NULL.
 */
int verify_tracks(struct prober *prober, const struct geom *geom,
		  uint64_t period_ps, bool *bad,
		  void (*progress)(void *arg, double part), void *arg);

#endif
