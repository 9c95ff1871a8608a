/*
 * fit.h - does a profile fit the drive that it is found on?
 *
 * A mount asks this before it believes where the head is: drives are swapped,
 * images copied, emulators run at full speed.  Takes under a second and well
 * over a hundred reads at most, much less where nothing rotates.
 */
#ifndef TRAX_DRIVE_FIT_H
#define TRAX_DRIVE_FIT_H

#include "diskmodel/profile.h"
#include "extract/probe/probe.h"

enum fit_verdict {
	FIT_GOOD,
	FIT_UNKNOWN,	/* the profile says too little to be wrong */
	FIT_FLAT,	/* nothing rotates, or a cache answers */
	FIT_PHASE,	/* period or angles are other ones */
	FIT_BOUNDARIES,	/* tracks end elsewhere */
};

#define FIT_READS 64u

struct drive_fit {
	enum fit_verdict verdict;
	/* Right, and wrong beyond doubt; others were late. */
	unsigned boundaries, boundaries_right, boundaries_wrong;
	/* What was read, in order. */
	struct probe_access read[FIT_READS];
	unsigned reads;
};

/* `seed`: which places are looked at.  0, or why measuring had to stop. */
int fit_check(struct prober *prober, const struct profile *profile,
	      uint64_t seed, struct drive_fit *fit);

/* For people: "the period or the angles are other ones". */
const char *fit_verdict_text(enum fit_verdict verdict);

#endif
