/*
 * replicas.h - `traxbench replicas`: what replicas in free space gain (FS2,
 * section 4), on a simulated drive in virtual time.
 */
#ifndef TRAX_BENCH_REPLICAS_H
#define TRAX_BENCH_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>

struct replicas_options {
	const char *drive;	/* file, or name of a shipped one */
	const char *workload;	/* NULL: all */
	unsigned runs;		/* number of runs; 0: 7 */
	unsigned percent;	/* per cent of the usual files and requests; 0:
				 * 100 */
	uint64_t seed;
};

/* What one run did, for each read of the client but for the first. */
struct replicas_figures {
	double time_s, seek_ms, rotation_ms, transfer_ms, ahead_ms, energy_mj;
	double limit_ms;
	uint64_t accesses;
};

/* Most runs. */
#define REPLICAS_RUNS 20u

/* Both: 0 or a negative errno, reported through msg. */

/* One named workload: a row for each run, with copies and
 * without. */
int replicas_measure(const struct replicas_options *options,
		     struct replicas_figures with[REPLICAS_RUNS],
		     struct replicas_figures without[REPLICAS_RUNS]);
int replicas_run(const struct replicas_options *options);

#endif
