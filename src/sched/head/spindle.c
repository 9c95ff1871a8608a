/*
 * spindle.c - the state is phase (revolutions) and frequency (revolutions/s).
 *
 * Between readings the variance grows by that of the frequency and by the
 * wander of the spindle (Q of a random walk of frequency).  A reading further
 * off than GATE sigmas is left out, as lateness has a long tail.  Several such
 * readings in a row mean that the state is wrong: then the phase is set from
 * the least late of them.  The frequency is doubted only when that happens
 * again and again, since once may have been a host that was busy for a moment.
 * When so much time has passed that whole turns can no longer be told apart,
 * the next reading sets the phase and tells nothing of the frequency.
 *
 * The noise of readings is their own mean deviation, so that a noisy path
 * widens the gate by itself.  A delay that is always the same is part of the
 * phase.
 */
#include <math.h>

#include "sched/head/spindle.h"

/* Standard deviations beyond which a reading is left out, and how many in a row
 * set the phase anew. */
#define GATE 3.5
#define OUTLIERS_RUN_MAX 5u
/* After SETTLED readings the phase is settled; if it is set anew UNSETTLED_MAX
 * times before that, the frequency is wrong. */
#define SETTLED 50u
#define UNSETTLED_MAX 3u
/* Standard deviation of the frequency: at first, more than that of crystals;
 * when the phase was wrong; and when the frequency is doubted, which finds a
 * period that is wrong by 0.3 %.  With the last one from the start, a host that
 * was late for a moment in a mount's first half second turned the frequency by
 * 0.06 %, and places of writes half a millisecond later were missed. */
#define FREQ_KNOWN 5e-5
#define FREQ_ODD 5e-4
#define FREQ_DOUBTED 2e-3
/* Wander of the frequency, relative, per square root of a second. */
#define WANDER 1e-7
/* Standard deviation of a reading, in revolutions: its bounds, its value at
 * first, and the weight of each new reading. */
#define NOISE_MIN 0.001
#define NOISE_MAX 0.03
#define NOISE_START 0.004
#define NOISE_WEIGHT (1.0 / 32)
/* If the phase is less certain than this (revolutions), a reading may be of the
 * turn before or after. */
#define SIGMA_MAX 0.15

static double frequency(const struct spindle *spindle)
{
	return 1e12 / spindle->period_ps;
}

void spindle_init(struct spindle *spindle, const struct service_mech *mech)
{
	*spindle = (struct spindle){
		.period_ps = (double)mech->period_ps,
		.sure_ps = (double)mech->period_ps,
		.noise = NOISE_START,
		.other_noise = NOISE_START,
	};
}

static double seconds_since(const struct service_mech *mech, uint64_t at_ns)
{
	return at_ns > mech->phase_ns ? (double)(at_ns - mech->phase_ns) / 1e9
				      : 0;
}

/* The variance of the phase after dt. */
static double var_after(const struct spindle *spindle, double dt)
{
	double q = WANDER * frequency(spindle);

	return spindle->var_phase + 2 * dt * spindle->cov +
	       dt * dt * spindle->var_freq + q * q * dt * dt * dt / 3;
}

static void spindle_turn(struct spindle *spindle, struct service_mech *mech,
			 uint64_t at_ns, double ahead)
{
	angle now = service_angle(mech, at_ns);

	mech->phase = now + (angle)(int64_t)(ahead * 4294967296.0);
	mech->phase_ns = at_ns;
	mech->period_ps = (uint64_t)(spindle->period_ps + 0.5);
}

/* Sets the phase to what the reading says; nothing is learned of the
 * frequency. */
static void spindle_acquire(struct spindle *spindle, struct service_mech *mech,
			    uint64_t at_ns, double ahead)
{
	spindle_turn(spindle, mech, at_ns, ahead);
	spindle->var_phase = spindle->noise * spindle->noise;
	spindle->cov = 0;
	spindle->acquired = true;
	spindle->outliers_run = 0;
	spindle->settled = 0;
	spindle->observed++;
}

/* Has readings tell the frequency, if it is off by no more than this part. */
static void spindle_loosen(struct spindle *spindle, double part)
{
	const double sigma = part * frequency(spindle);

	spindle->var_freq = fmax(spindle->var_freq, sigma * sigma);
}

static void spindle_doubt(struct spindle *spindle)
{
	spindle->period_ps = spindle->sure_ps;
	spindle_loosen(spindle, FREQ_DOUBTED);
}

static void spindle_update(struct spindle *spindle, struct service_mech *mech,
			   uint64_t at_ns, double ahead, double noise)
{
	double dt = seconds_since(mech, at_ns);
	double q = WANDER * frequency(spindle);
	double p00 = var_after(spindle, dt);
	double p01 =
		spindle->cov + dt * spindle->var_freq + q * q * dt * dt / 2;
	double p11 = spindle->var_freq + q * q * dt;
	double s = p00 + noise * noise;
	double k0 = p00 / s, k1 = p01 / s;
	double f = frequency(spindle) + k1 * ahead;

	/* Turned by the old period up to now, and by the new one from now
	 * on. */
	spindle->period_ps = 1e12 / f;
	spindle_turn(spindle, mech, at_ns, k0 * ahead);
	spindle->var_phase = (1 - k0) * p00;
	spindle->cov = (1 - k0) * p01;
	spindle->var_freq = p11 - k1 * p01;
}

static void spindle_hear(double *noise, double ahead)
{
	double off = fmin(fabs(ahead), NOISE_MAX);

	*noise += NOISE_WEIGHT * (1.25 * off - *noise);
	*noise = fmin(fmax(*noise, NOISE_MIN), NOISE_MAX);
}

/* Leaves a reading out, unless too many in a row were. */
static bool spindle_gate(struct spindle *spindle, struct service_mech *mech,
			 uint64_t at_ns, double ahead)
{
	spindle->outliers++;
	if (!spindle->outliers_run || ahead > spindle->outlier_ahead)
		spindle->outlier_ahead = ahead;
	if (++spindle->outliers_run < OUTLIERS_RUN_MAX)
		return false;
	spindle->unsettled = spindle->settled < SETTLED ?
				     spindle->unsettled + 1 : 1;
	if (spindle->unsettled >= UNSETTLED_MAX) {
		spindle->unsettled = 0;
		spindle_doubt(spindle);
	}
	spindle_loosen(spindle, FREQ_ODD);
	spindle_acquire(spindle, mech, at_ns, spindle->outlier_ahead);
	return true;
}

bool spindle_observe(struct spindle *spindle, struct service_mech *mech,
		     uint64_t at_ns, double ahead)
{
	double var;

	if (!spindle->acquired) {
		spindle_loosen(spindle, FREQ_KNOWN);
		spindle_acquire(spindle, mech, at_ns, ahead);
		return true;
	}
	var = var_after(spindle, seconds_since(mech, at_ns));
	if (var > SIGMA_MAX * SIGMA_MAX) {
		spindle_acquire(spindle, mech, at_ns, ahead);
		return true;
	}
	if (ahead * ahead >
	    GATE * GATE * (var + spindle->noise * spindle->noise))
		return spindle_gate(spindle, mech, at_ns, ahead);
	spindle_hear(&spindle->noise, ahead);
	spindle_update(spindle, mech, at_ns, ahead, spindle->noise);
	spindle->outliers_run = 0;
	spindle->settled++;
	spindle->observed++;
	return true;
}

void spindle_follow(struct spindle *spindle, struct service_mech *mech,
		    uint64_t at_ns, double ahead)
{
	double noise = spindle->other_noise, var;

	var = var_after(spindle, seconds_since(mech, at_ns));
	if (!spindle->acquired || var > SIGMA_MAX * SIGMA_MAX ||
	    ahead * ahead > GATE * GATE * (var + noise * noise))
		return;
	spindle_hear(&spindle->other_noise, ahead);
	spindle_update(spindle, mech, at_ns, ahead, noise);
}

double spindle_sigma(const struct spindle *spindle,
		     const struct service_mech *mech, uint64_t at_ns)
{
	double var;

	if (!spindle->acquired)
		return 1;
	var = var_after(spindle, seconds_since(mech, at_ns));
	return var < 1 ? sqrt(var) : 1;
}
