/*
 * verify.h - does a drive have the tracks that are believed of it?
 *
 * A boundary is where the angle leaps by the skew.  The first unit of a track
 * and then the last of the one before it are read (what a drive reads ahead is
 * behind the first), a *pair*, and the angle between them is compared.
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
 * The pairs of at most so many boundaries, each once, by LBN: one way over the
 * disk costs the least.  `unit`: sectors of each read.  How many there are.
 */
unsigned verify_pick(const struct geom *geom, uint32_t unit, uint64_t seed,
		     struct probe_access *pair, unsigned most);

/* When the platter's angle 0 was under the head, as a share of the period, by
 * an access that has come from the medium. */
double verify_zero(const struct geom *geom, double period_ns,
		   const struct probe_access *access);

/* By how much the angle leaps in a pair, in [-0.5, 0.5): as it is believed, and
 * how far what was read is off that. */
double verify_leap(const struct geom *geom, const struct probe_access *pair);
double verify_off(const struct geom *geom, double period_ns,
		  const struct probe_access *pair);

#endif
