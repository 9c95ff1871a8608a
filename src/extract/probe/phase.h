/*
 * phase.h - what part of a revolution a moment is.
 *
 * Completion times modulo the period are angles; all angles of a measurement
 * are relative to one arbitrary angle.  The period is never exact, so the
 * phase has to be told now and then how far off it is; it learns from that.
 *
 * Angles here are doubles in revolutions.
 */
#ifndef TRAX_PROBE_PHASE_H
#define TRAX_PROBE_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/geom.h"

struct phase {
	double period_ns;
	uint64_t at_ns;		/* at this time ... */
	double turn;		/* ... it was this angle */
	uint64_t locked_ns;	/* last that was believed; 0: never */
	/* Covariances: of the angle and the period, as a share of it. */
	double aa, ap, pp;
	unsigned strange;	/* corrections in a row that could not be */
};

void phase_init(struct phase *phase, double period_ns, uint64_t now_ns);

/* In [0, 1). */
double phase_at(const struct phase *phase, uint64_t at_ns);

/* Something of a known angle was seen `error` revolutions late (negative:
 * early), give or take `sigma`. */
void phase_correct(struct phase *phase, uint64_t at_ns, double error,
		   double sigma);

/* Likewise, but what the angle was thought to be counts for nothing. */
void phase_restart(struct phase *phase, uint64_t at_ns, double error,
		   double sigma);

/* The same angle in [-0.5, 0.5), in [0, 1). */
double phase_wrap(double turn);
double phase_part(double turn);

/* As a geometry has it. */
angle phase_angle(double turn);

#endif
