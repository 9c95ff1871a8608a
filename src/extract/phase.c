/*
 * phase.c - a clock that turns once a revolution.
 *
 * Corrections are a second-order loop: part of an error is taken as an error
 * of the angle, part as one of the period, which has built up over the
 * revolutions since the last correction.
 */
#include <math.h>

#include "extract/phase.h"

#define ANGLE_GAIN 0.6
#define PERIOD_GAIN 0.3

double phase_part(double turn)
{
	double part = turn - floor(turn);

	return part < 1.0 ? part : 0.0;
}

double phase_wrap(double turn)
{
	return phase_part(turn + 0.5) - 0.5;
}

void phase_init(struct phase *phase, double period_ns, uint64_t now_ns)
{
	*phase = (struct phase){ .period_ns = period_ns, .at_ns = now_ns };
}

double phase_at(const struct phase *phase, uint64_t at_ns)
{
	double dt_ns = at_ns >= phase->at_ns ?
			       (double)(at_ns - phase->at_ns) :
			       -(double)(phase->at_ns - at_ns);

	return phase_part(phase->turn + dt_ns / phase->period_ns);
}

void phase_correct(struct phase *phase, uint64_t at_ns, double error)
{
	double turn = phase_at(phase, at_ns), revs;

	if (phase->locked_ns && at_ns > phase->locked_ns) {
		revs = (double)(at_ns - phase->locked_ns) / phase->period_ns;
		phase->period_ns *= 1 + PERIOD_GAIN * error / revs;
	}
	phase->turn = phase_part(turn - ANGLE_GAIN * error);
	phase->at_ns = at_ns;
	phase->locked_ns = at_ns;
}
