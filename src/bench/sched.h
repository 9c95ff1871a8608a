/*
 * sched.h - `traxbench sched NAME`: experiments with the disk queue in virtual
 * time, as rows of a table.  Each prints what a paper printed, beside it.
 */
#ifndef TRAX_BENCH_SCHED_H
#define TRAX_BENCH_SCHED_H

#include <stdbool.h>
#include <stdint.h>

struct sched_options {
	const char *drive;	/* NULL: the experiment's own */
	uint64_t requests;	/* requests of one measurement; 0: the
				 * experiment's own number */
	uint64_t seed;
	uint64_t memory_mib;	/* memory of a file system; 0: the experiment's
				 * own */
	bool quick;		/* measure a tenth only */
	const char *device;	/* disk for a run in real time; NULL: virtual
				 * time */
	bool scratch;		/* that disk may be written */
	uint64_t host_ns;	/* virtual time: delay of the host, see sim.h */
};

struct sched_experiment {
	const char *name, *about;
	/* 0 or a negative errno, reported through msg. */
	int (*run)(const struct sched_options *options);
};

/* All experiments; the last one has name NULL. */
extern const struct sched_experiment sched_table[];

/* Returns the experiment of this name; NULL: there is none. */
const struct sched_experiment *sched_find(const char *name);

/* The experiments, each in a file of its own. */
int sched_free(const struct sched_options *options);
int sched_scan(const struct sched_options *options);
int sched_pass(const struct sched_options *options);
int sched_cut(const struct sched_options *options);
int sched_files(const struct sched_options *options);
int sched_place(const struct sched_options *options);
int sched_gap_writeback(const struct sched_options *options);
int sched_mix(const struct sched_options *options);
int sched_reads(const struct sched_options *options);
int sched_streams(const struct sched_options *options);
int sched_deadlines(const struct sched_options *options);
int sched_segments(const struct sched_options *options);
int sched_age(const struct sched_options *options);
int sched_clean(const struct sched_options *options);
int sched_postmark(const struct sched_options *options);
int sched_fsync(const struct sched_options *options);
int sched_unpack(const struct sched_options *options);
int sched_recover(const struct sched_options *options);
int sched_scale(const struct sched_options *options);
int sched_tpcb(const struct sched_options *options);

#endif
