/*
 * layout.h - how files lie on the disk that several writers have written at the
 * same time, with little memory and with much: on a simulated drive, in virtual
 * time.
 */
#ifndef TRAX_BENCH_LAYOUT_H
#define TRAX_BENCH_LAYOUT_H

#include <stdint.h>

enum layout_order {
	LAYOUT_IN_ORDER,	/* some requests outstanding, nearly in order,
				 * as the kernel's write-back sends them */
	LAYOUT_APPENDED,	/* 64 KiB and an fsync, over and over */
	LAYOUT_RANDOM,		/* writes anywhere in a file that has its length
				 * before */
};

struct layout_load {
	const char *name;
	unsigned writers;	/* writers at the same time, each with a file of
				 * its own */
	enum layout_order order;
};

/* All loads; the last one has no name. */
extern const struct layout_load layout_loads[];

struct layout_options {
	const char *drive;	/* a drive, as in struct rig_options */
	uint64_t seed;
	uint64_t memory_mib;	/* memory of the file system; 0: several sizes
				 * by turns */
	uint64_t mib;		/* MiB of all files together; 0: 256 */
};

struct layout_result {
	uint64_t bytes;		/* bytes of all files */
	uint64_t whole_bytes;	/* part of these on tracks that one file
				 * fills */
	uint64_t runs;		/* number of runs: sectors that follow one
				 * another on the disk */
	uint64_t least_bytes;	/* bytes of the shortest run */
	double seconds;		/* virtual seconds, the sync at the end
				 * included */
};

/* One measurement.  0 or a negative errno, reported through msg. */
int layout_run(const struct layout_options *options,
	       const struct layout_load *load, struct layout_result *result);

/* Runs all loads and prints a table. The same results. */
int layout_table(const struct layout_options *options);

#endif
