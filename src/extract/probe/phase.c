/*
 * phase.c - a clock that turns once a revolution.
 *
 * A period that has been measured is right to a few millionths, and spindles
 * wander by a tenth of one in a second.  A fixed gain would take the noise of
 * every look for a change of the period.
 */
#include <math.h>

#include "extract/probe/phase.h"

/* Shares of the period: at first, and after a second. */
#define PERIOD_SIGMA 2e-6
#define WANDERS 0.1e-6
/* Standard deviations. */
#define DOUBT 4.0

double phase_part(double turn)
{
	double part = turn - floor(turn);

	return part < 1.0 ? part : 0.0;
}

double phase_wrap(double turn)
{
	return phase_part(turn + 0.5) - 0.5;
}

angle phase_angle(double turn)
{
	return (angle)(int64_t)llrint(ldexp(phase_part(turn), 32));
}

void phase_init(struct phase *phase, double period_ns, uint64_t now_ns)
{
	*phase = (struct phase){
		.period_ns = period_ns,
		.at_ns = now_ns,
		.pp = PERIOD_SIGMA * PERIOD_SIGMA,
	};
}

double phase_at(const struct phase *phase, uint64_t at_ns)
{
	double dt_ns = at_ns >= phase->at_ns ?
			       (double)(at_ns - phase->at_ns) :
			       -(double)(phase->at_ns - at_ns);

	return phase_part(phase->turn + dt_ns / phase->period_ns);
}

/* To a moment: what is unsure gets more so. */
static void move(struct phase *phase, uint64_t at_ns)
{
	double dt_ns = at_ns > phase->at_ns ? (double)(at_ns - phase->at_ns) :
					      0;
	double revs = dt_ns / phase->period_ns;
	double wanders = WANDERS * WANDERS * dt_ns * 1e-9;

	phase->turn = phase_at(phase, at_ns);
	phase->at_ns = at_ns;
	phase->aa += 2 * revs * phase->ap + revs * revs * phase->pp +
		     revs * revs * wanders / 3;
	phase->ap += revs * phase->pp + revs * wanders / 2;
	phase->pp += wanders;
}

/* More than can be noise: once it is not listened to, twice and the period is
 * not what was said. */
static bool doubt(struct phase *phase, double error, double sigma)
{
	double all = phase->aa + sigma * sigma;
	double revs = (double)(phase->at_ns - phase->locked_ns) /
		      phase->period_ns;

	if (!phase->locked_ns || error * error < DOUBT * DOUBT * all ||
	    revs < 1) {
		phase->strange = 0;
		return false;
	}
	if (!phase->strange++)
		return true;
	phase->pp += error * error / (revs * revs);
	phase->ap += error * error / revs;
	phase->aa += error * error;
	return false;
}

/* What is late has had its time as if a revolution took that much longer. */
void phase_correct(struct phase *phase, uint64_t at_ns, double error,
		   double sigma)
{
	double all, gain, period;

	move(phase, at_ns);
	if (doubt(phase, error, sigma))
		return;
	all = phase->aa + sigma * sigma;
	gain = phase->aa / all;
	period = phase->ap / all;
	phase->turn = phase_part(phase->turn - gain * error);
	phase->period_ns *= 1 + period * error;
	phase->pp -= period * phase->ap;
	phase->ap -= gain * phase->ap;
	phase->aa -= gain * phase->aa;
	phase->locked_ns = at_ns;
}

void phase_restart(struct phase *phase, uint64_t at_ns, double error,
		   double sigma)
{
	move(phase, at_ns);
	phase->turn = phase_part(phase->turn - error);
	phase->aa = sigma * sigma;
	phase->ap = 0;
	phase->pp = fmax(phase->pp, PERIOD_SIGMA * PERIOD_SIGMA);
	phase->locked_ns = at_ns;
}
