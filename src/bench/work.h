/*
 * work.h - the workloads of `traxbench peers`, as rows of a table.
 *
 * A workload works below one directory of a mounted file system.  `prepare`
 * makes its files; then the file system is mounted anew and caches are dropped;
 * then `run` is measured, with a sync behind it when `writes` is set.
 * `limit_seconds` tells how long a head that is always where it is needed would
 * take (the mechanical limit), or 0 when that cannot be computed.
 *
 * Functions return 0 or a negative errno, reported through msg.
 */
#ifndef TRAX_BENCH_WORK_H
#define TRAX_BENCH_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct work_drive {
	double media_bytes_per_second;	/* rate of the outermost track, skew
					 * included */
	double revolution_seconds;
};

/* What a run tells, beside how long it took. */
struct work_result {
	double value;		/* in the workload's unit */
	double *latency;	/* seconds of each operation; NULL: not
				 * measured */
	unsigned n, room;
};

struct work {
	const char *name, *about;
	const char *unit;	/* of what is better the more it is; NULL:
				 * seconds are what counts */
	bool writes;
	bool beside;		/* the file system scans itself meanwhile */
	unsigned before;	/* runs before the one that is measured, each
				 * with a mount of its own */
	/* Both do their work; `percent` scales sizes and counts, 100 as
	 * documented. */
	int (*prepare)(const char *dir, unsigned percent);
	int (*run)(const char *dir, unsigned percent,
		   struct work_result *result);
	double (*limit_seconds)(const struct work_drive *drive,
				unsigned percent);
};

/* All workloads; the last has name NULL. */
extern const struct work work_table[];

/* Makes, deletes and makes again files below `dir` until the file system is
 * full_percent full and has aged. */
int work_age(const char *dir, unsigned full_percent);

#endif
