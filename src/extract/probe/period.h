/*
 * period.h - how long a revolution takes, and whether timing is any good.
 *
 * A sector passes under the head once a revolution, so the completions of its
 * reads are whole revolutions apart, however long a drive or its host took to
 * get there.  That gives the period, and how far completions stray from it
 * gives the noise.  Where a cache answers repeated reads, many sectors are read
 * in turn, so that each is forgotten before it comes again.
 */
#ifndef TRAX_PROBE_PERIOD_H
#define TRAX_PROBE_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

#include "extract/probe/probe.h"

enum period_verdict {
	PERIOD_GOOD,
	PERIOD_SMALL,		/* too small a disk to measure */
	PERIOD_FLAT,		/* nothing rotates */
	PERIOD_NOISY,		/* something may, but completions stray */
	PERIOD_CACHED,		/* a cache that forgets nothing answers */
	PERIOD_UNREADABLE,	/* read errors wherever it was tried */
};

struct rotation {
	enum period_verdict verdict;
	uint64_t period_ps;
	double sigma_ppm;	/* of the period */
	double noise_ns;	/* standard deviation of completions */
	double late;		/* share that strays by more than 2 % of a
				 * revolution */
	bool cached;		/* repeated reads are answered by a cache, */
	uint64_t hit_ns;	/* in this time */
	uint64_t reads;
};

/*
 * Until sigma is below 0.3 millionths, or `most_ns` have passed (0: 10
 * seconds; it takes at least a second).  0 with a verdict, or why measuring had
 * to stop.
 */
int period_measure(struct prober *prober, uint64_t most_ns,
		   struct rotation *period);

/* For people: "completions stray too much ...". */
const char *period_verdict_text(enum period_verdict verdict);

#endif
