/*
 * fit.c - pairs of reads on both sides of boundaries at random.
 *
 * The moment at which the platter's angle 0 was under the head follows from
 * each read: its completion less the time that its end lies behind angle 0,
 * modulo the period.  With a true profile all agree but for the noise and the
 * late; a period that is off drifts away between them, angles that are off
 * scatter.  Those of a pair agree better still, unless there is no boundary,
 * and so no leap of the angle, where one is believed: then they are apart by
 * just that leap.  A late completion puts them apart by anything.  A period
 * wrong by 0.3 % drifts by a fifth of a revolution over these reads; what is
 * less than can be noticed here the head finds out itself.
 */
#include "extract/drive/fit.h"

#include <math.h>
#include <stdlib.h>

#include "extract/drive/verify.h"
#include "extract/probe/phase.h"

#define BOUNDARIES (FIT_READS / 2)
/* Of a revolution: further from the middle is elsewhere. */
#define NEAR 0.06
/* The same of two reads one after the other; a leap of twice as much can be
 * told from none. */
#define NEAR_PAIR 0.03
/* A read that came from the medium has turned by some of a revolution, half
 * of one in the mean. */
#define FLAT 0.15
#define AT_ONCE 0.03
#define RIGHT_PERCENT 60u
/* Of the pairs; the others may be late completions of a busy host, ... */
#define BOUNDARIES_PERCENT 40u
/* ... and so many of those on one track are no chance. */
#define WRONG_PERCENT 20u
#define LOOKS 2u

/* Did it come too soon to have come from the medium?  (Or the head was there
 * by chance.) */
static bool is_cached(const struct profile *profile,
		      const struct probe_access *access)
{
	return (double)(access->complete_ns - access->submit_ns) <
	       AT_ONCE * (double)profile->mech.period_ps / 1000;
}

static double apart(double a, double b)
{
	return fabs(phase_wrap(a - b));
}

/* The most that agree with one of them. */
static unsigned agreeing(const double *zero, unsigned n)
{
	unsigned best = 0, same, i, k;

	for (i = 0; i < n; i++) {
		for (k = 0, same = 0; k < n; k++)
			same += apart(zero[i], zero[k]) <= NEAR;
		best = same > best ? same : best;
	}
	return best;
}

static void judge_phases(const struct profile *profile,
			 const struct probe_access *access, unsigned n,
			 struct drive_fit *fit)
{
	double period_ns = (double)profile->mech.period_ps / 1000, turned = 0;
	double zero[BOUNDARIES];
	unsigned looked = 0, got = 0, i;

	for (i = 0; i < n; i += 2) {
		if (access[i].result)
			continue;
		turned += (double)(access[i].complete_ns -
				   access[i].submit_ns) / period_ns;
		looked++;
		if (!is_cached(profile, &access[i]))
			zero[got++] = verify_zero(profile->geom, period_ns,
						  &access[i]);
	}
	fit->verdict = turned < FLAT * looked ? FIT_FLAT : FIT_PHASE;
	if (got && agreeing(zero, got) * 100 >= got * RIGHT_PERCENT)
		fit->verdict = FIT_GOOD;
}

static void judge_boundaries(const struct profile *profile,
			     const struct probe_access *access, unsigned n,
			     struct drive_fit *fit)
{
	double period_ns = (double)profile->mech.period_ps / 1000, leap, off;
	unsigned clear, i;

	for (i = 0; i < n; i += 2) {
		leap = verify_leap(profile->geom, &access[i]);
		if (access[i].result || access[i + 1].result ||
		    is_cached(profile, &access[i]) ||
		    is_cached(profile, &access[i + 1]) ||
		    apart(leap, 0) < 2 * NEAR_PAIR)
			continue;
		off = verify_off(profile->geom, period_ns, &access[i]);
		fit->boundaries++;
		fit->boundaries_right += apart(off, 0) <= NEAR_PAIR;
		fit->boundaries_wrong += apart(off, leap) <= NEAR_PAIR;
	}
	clear = fit->boundaries_right + fit->boundaries_wrong;
	if (fit->boundaries_right * 100 <
	    fit->boundaries * BOUNDARIES_PERCENT ||
	    fit->boundaries_wrong * 100 > clear * WRONG_PERCENT)
		fit->verdict = FIT_BOUNDARIES;
}

static int look(struct prober *prober, const struct profile *profile,
		uint64_t seed, struct drive_fit *fit)
{
	struct probe_access *access = fit->read;
	unsigned n;
	int rc;

	*fit = (struct drive_fit){ .verdict = FIT_UNKNOWN };
	n = 2 * verify_pick(profile->geom,
			    profile->physical_bytes / SECTOR_BYTES, seed,
			    access, BOUNDARIES);
	if (!n)
		return 0;
	rc = prober->access(prober, access, n, 1);
	if (rc)
		return rc;
	fit->reads = n;
	judge_phases(profile, access, n, fit);
	if (fit->verdict == FIT_GOOD)
		judge_boundaries(profile, access, n, fit);
	return 0;
}

/* A busy host may have spoilt what seems to be wrong: it is looked at twice. */
int fit_check(struct prober *prober, const struct profile *profile,
	      uint64_t seed, struct drive_fit *fit)
{
	unsigned i;
	int rc = 0;

	*fit = (struct drive_fit){ .verdict = FIT_UNKNOWN };
	if (!profile->mech.period_ps || !geom_known(profile->geom))
		return 0;
	for (i = 0; !rc && i < LOOKS; i++) {
		rc = look(prober, profile, seed + i, fit);
		if (fit->verdict <= FIT_FLAT)
			break;
	}
	return rc;
}

const char *fit_verdict_text(enum fit_verdict verdict)
{
	static const char *const texts[] = {
		[FIT_GOOD] = "it fits",
		[FIT_UNKNOWN] = "it says too little",
		[FIT_FLAT] = "nothing rotates, or a cache answers",
		[FIT_PHASE] = "the period or the angles are other ones",
		[FIT_BOUNDARIES] = "tracks end elsewhere",
	};

	return texts[verdict];
}
