/*
 * spindle.h - phase and frequency of a spindle from the times at which known
 * angles passed: a Kalman filter of two states with a gate.
 *
 * Works on the phase and period of a struct service_mech in place.  Units:
 * nanoseconds, revolutions, seconds.
 */
#ifndef TRAX_HEAD_SPINDLE_H
#define TRAX_HEAD_SPINDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/service.h"

struct spindle {
	bool acquired;		/* the phase is known */
	double period_ps;	/* the same as mech->period_ps, but finer */
	double sure_ps;		/* period to return to when it is doubted */
	double var_phase;	/* revolutions^2, as of mech->phase_ns */
	double cov;
	double var_freq;	/* (revolutions/s)^2 */
	double noise;		/* sigma of a reading, revolutions */
	double other_noise;	/* sigma of a reading of spindle_follow */
	unsigned outliers_run;	/* readings left out in a row */
	double outlier_ahead;	/* the least late of these readings */
	unsigned settled;	/* readings since the phase was acquired */
	unsigned unsettled;	/* times in a row it was acquired again soon */
	uint64_t observed, outliers;
};

/* Begins with mech->period_ps; the phase is unknown. */
void spindle_init(struct spindle *spindle, const struct service_mech *mech);

/*
 * Takes in a reading: at at_ns the angle under the head was that of the
 * mechanics plus `ahead` revolutions, in [-1/2, 1/2]. False: it was left out as
 * an outlier.
 */
bool spindle_observe(struct spindle *spindle, struct service_mech *mech,
		     uint64_t at_ns, double ahead);

/* The same from a reading that is worth less (a write): it moves a known phase,
 * and a reading that contradicts the phase is ignored. */
void spindle_follow(struct spindle *spindle, struct service_mech *mech,
		    uint64_t at_ns, double ahead);

/* Standard deviation of the phase, in revolutions, at a time; 1 when it is not
 * known at all. */
double spindle_sigma(const struct spindle *spindle,
		     const struct service_mech *mech, uint64_t at_ns);

#endif
