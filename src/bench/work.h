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

struct work {
	const char *name, *about;
	bool writes;
	/* Both do their work; `percent` scales sizes and counts, 100 as
	 * documented. */
	int (*prepare)(const char *dir, unsigned percent);
	int (*run)(const char *dir, unsigned percent);
	double (*limit_seconds)(const struct work_drive *drive,
				unsigned percent);
};

/* All workloads; the last has name NULL. */
extern const struct work work_table[];

#endif
