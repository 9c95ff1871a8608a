/*
 * phase.c - state: phase (revolutions) and frequency (revolutions/s).
 *
 * Between readings the variance grows by that of the frequency and by the
 * wander of the spindle (Q of a random walk of frequency).  A reading further
 * off than GATE sigmas is left out: lateness has a long tail.  Several in a row
 * say that it is us who are wrong: then the phase is taken anew and the
 * frequency is doubted.  When so much time has passed that whole turns can no
 * longer be told apart, the next reading gives the phase and says nothing of
 * the frequency.
 *
 * The noise of readings is their own mean deviation, so that a noisy path
 * widens the gate by itself.  A delay that is always the same is part of the
 * phase.
 */
#include <math.h>

#include "sched/phase.h"

#define GATE 3.5
#define GATED_MAX 5u
/* Of the frequency: what a period that is wrong by 0.3 % leaves to find. */
#define FREQ_SIGMA 0.002
/* Wander of the frequency, relative, per square root of a second. */
#define WANDER 1e-7
#define NOISE_MIN 0.001
#define NOISE_MAX 0.03
#define NOISE_START 0.004
#define NOISE_WEIGHT (1.0 / 32)
/* Beyond this sigma a reading may be of the turn before or after. */
#define SIGMA_MAX 0.15

static double frequency(const struct phase *phase)
{
	return 1e12 / phase->period_ps;
}

void phase_init(struct phase *phase, const struct service_mech *mech)
{
	*phase = (struct phase){
		.period_ps = (double)mech->period_ps,
		.noise = NOISE_START,
	};
}

static double seconds_since(const struct service_mech *mech, uint64_t at_ns)
{
	return at_ns > mech->phase_ns ?
		       (double)(at_ns - mech->phase_ns) / 1e9 : 0;
}

/* The variance of the phase after dt. */
static double var_after(const struct phase *phase, double dt)
{
	double q = WANDER * frequency(phase);

	return phase->var_phase + 2 * dt * phase->cov +
	       dt * dt * phase->var_freq + q * q * dt * dt * dt / 3;
}

static void phase_turn(struct phase *phase, struct service_mech *mech,
		       uint64_t at_ns, double ahead)
{
	angle now = service_angle(mech, at_ns);

	mech->phase = now + (angle)(int64_t)(ahead * 4294967296.0);
	mech->phase_ns = at_ns;
	mech->period_ps = (uint64_t)(phase->period_ps + 0.5);
}

/* The phase is what the reading says; of the frequency nothing is learned. */
static void phase_acquire(struct phase *phase, struct service_mech *mech,
			  uint64_t at_ns, double ahead)
{
	phase_turn(phase, mech, at_ns, ahead);
	phase->var_phase = phase->noise * phase->noise;
	phase->cov = 0;
	phase->acquired = true;
	phase->gated_run = 0;
	phase->observed++;
}

static void phase_doubt(struct phase *phase)
{
	double sigma = FREQ_SIGMA * frequency(phase);

	phase->var_freq = sigma * sigma;
}

static void phase_update(struct phase *phase, struct service_mech *mech,
			 uint64_t at_ns, double ahead)
{
	double dt = seconds_since(mech, at_ns);
	double q = WANDER * frequency(phase);
	double p00 = var_after(phase, dt);
	double p01 = phase->cov + dt * phase->var_freq + q * q * dt * dt / 2;
	double p11 = phase->var_freq + q * q * dt;
	double s = p00 + phase->noise * phase->noise;
	double k0 = p00 / s, k1 = p01 / s;
	double f = frequency(phase) + k1 * ahead;

	/* Turned by the old period up to now, then goes on with the new. */
	phase->period_ps = 1e12 / f;
	phase_turn(phase, mech, at_ns, k0 * ahead);
	phase->var_phase = (1 - k0) * p00;
	phase->cov = (1 - k0) * p01;
	phase->var_freq = p11 - k1 * p01;
	phase->gated_run = 0;
	phase->observed++;
}

static void phase_hear(struct phase *phase, double ahead)
{
	double off = fmin(fabs(ahead), NOISE_MAX);

	phase->noise += NOISE_WEIGHT * (1.25 * off - phase->noise);
	phase->noise = fmin(fmax(phase->noise, NOISE_MIN), NOISE_MAX);
}

bool phase_observe(struct phase *phase, struct service_mech *mech,
		   uint64_t at_ns, double ahead)
{
	double var;

	if (!phase->acquired) {
		phase_doubt(phase);
		phase_acquire(phase, mech, at_ns, ahead);
		return true;
	}
	var = var_after(phase, seconds_since(mech, at_ns));
	if (var > SIGMA_MAX * SIGMA_MAX) {
		phase_acquire(phase, mech, at_ns, ahead);
		return true;
	}
	if (ahead * ahead >
	    GATE * GATE * (var + phase->noise * phase->noise)) {
		phase->gated++;
		if (++phase->gated_run < GATED_MAX)
			return false;
		phase->reacquired++;
		phase_doubt(phase);
		phase_acquire(phase, mech, at_ns, ahead);
		return true;
	}
	phase_hear(phase, ahead);
	phase_update(phase, mech, at_ns, ahead);
	return true;
}

double phase_sigma(const struct phase *phase, const struct service_mech *mech,
		   uint64_t at_ns)
{
	double var;

	if (!phase->acquired)
		return 1;
	var = var_after(phase, seconds_since(mech, at_ns));
	return var < 1 ? sqrt(var) : 1;
}

double phase_period_sigma_ppm(const struct phase *phase)
{
	return phase->acquired ?
		       1e6 * sqrt(phase->var_freq) / frequency(phase) : 1e6;
}
