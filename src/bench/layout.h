/*
 * layout.h - how files lie that several writers have written at the same time,
 * with little memory and with much: on a simulated drive, in virtual time.
 */
#ifndef TRAX_BENCH_LAYOUT_H
#define TRAX_BENCH_LAYOUT_H

#include <stdint.h>

enum layout_order {
	LAYOUT_IN_ORDER,	/* a few requests outstanding, nearly in order,
				 * as the kernel's write-back sends them */
	LAYOUT_APPENDED,	/* 64 KiB, then fsync, and so on */
	LAYOUT_RANDOM,		/* in a file that was made as long before */
};

struct layout_load {
	const char *name;
	unsigned writers;	/* each has a file of its own */
	enum layout_order order;
};

extern const struct layout_load layout_loads[];	/* the last has no name */

struct layout_options {
	const char *drive;	/* as struct rig_options */
	uint64_t seed;
	uint64_t memory_mib;	/* of the file system; 0: several by turns */
	uint64_t mib;		/* of all files together; 0: 256 */
};

struct layout_result {
	uint64_t bytes;		/* of all files */
	uint64_t whole_bytes;	/* of these, on tracks that one file fills */
	uint64_t runs;		/* that follow one another on the disk */
	uint64_t least_bytes;	/* the shortest of these */
	double seconds;		/* virtual, with a sync at the end */
};

/* One measurement.  0 or a negative errno, reported through msg. */
int layout_run(const struct layout_options *options,
	       const struct layout_load *load, struct layout_result *result);

/* A table of all.  Likewise. */
int layout_table(const struct layout_options *options);

#endif
