/*
 * rig.h - a simulated drive, what is believed of it, and the disk queue over
 * both: what experiments in virtual time are made of.
 *
 * What the drive is and what is believed of it are two readings of the same
 * file; `doubt` may make them differ.  The same loads run in real time on a
 * real disk, or an emulated one.
 */
#ifndef TRAX_BENCH_RIG_H
#define TRAX_BENCH_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/spec.h"
#include "sched/queue/queue.h"
#include "sim/drive.h"
#include "sim/sim.h"

struct rig_options {
	const char *drive;	/* file, name of a shipped one, random:SEED */
	uint64_t seed;
	const char *policy;	/* as struct queue_options */
	unsigned depth;		/* likewise */
	bool blind;		/* nothing is believed */
	bool no_cache;		/* the drive neither caches nor reads ahead */
	uint64_t host_ns;	/* see sim.h */
	bool volatile_cache;	/* likewise */
	bool flat;		/* no drive: the same time for every request */
	const char *device;	/* a real disk, in real time, that is believed
				 * to be the drive; NULL: a simulated one */
	bool scratch;		/* it may be written */
	unsigned slow;		/* it is so many times as slow; 0: once */
	/* What is, and what is believed: changes either; may be NULL. */
	void (*doubt)(struct spec *is, struct spec *model, void *arg);
	void *arg;
};

struct rig {
	struct spec *spec, *model;
	struct sim *sim;	/* NULL: a real disk */
	struct disk *disk;
	bool read_only;
	struct env *env;
	struct geom *geom;	/* as believed */
	struct head *head;	/* NULL when blind */
	struct queue *queue;
};

/* The drive takes so many times as long for everything. */
void rig_slow(struct spec *spec, unsigned slow);

/* 0 or a negative errno, reported through msg. */
int rig_open(const struct rig_options *options, struct rig *rig);
void rig_close(struct rig *rig);

/* Of the disk that are believed in. */
uint64_t rig_sectors(const struct rig *rig);

/*
 * A closed load: each client has one request outstanding, thinks, has the next.
 * All of class QUEUE_READ, so that the policy sees them all.
 */
struct rig_load {
	unsigned clients;
	uint64_t think_ns;	/* mean, exponentially distributed; 0: none */
	uint32_t sectors;	/* of a request, aligned to 8 */
	bool vary;		/* 1/2 to 3/2 of it */
	unsigned read_percent;
	uint64_t first, span;	/* where; span 0: all of the disk */
	uint64_t near;		/* local: so far from the last one; 0: not */
	uint64_t requests;	/* measured ... */
	uint64_t warmup;	/* ... after so many */
	uint64_t seed;
	/* Instead of at random: the next place; NULL. */
	void (*next)(void *arg, uint64_t *sector, uint32_t *sectors);
	/* Just before a client's request is submitted, and when it is over;
	 * NULL. */
	void (*prepare)(void *arg, unsigned client, struct queue_request *req);
	void (*over)(void *arg, unsigned client, struct queue_request *req);
	void *arg;
};

struct rig_result {
	uint64_t ns;		/* from the first measured to the last */
	double mean_ns, deviation_ns, p50_ns, p99_ns;	/* response times */
	double head_mean_ns, head_deviation_ns; /* see rig_run */
	struct drive_times times;	/* of the simulated head, meanwhile */
};

/*
 * Runs it to the end.  The head time of a request is the time between its
 * completion and the one before (Traxtents, 5.2) or its submission, if later.
 * 0 or a negative errno.
 */
int rig_run(struct rig *rig, const struct rig_load *load,
	    struct rig_result *result);

/* Mean and 99th percentile of n values, n at least 1, which it sorts. */
void rig_sum_up(double *v, uint64_t n, double *mean, double *p99);

/* What passes under a head in a second, in sectors, all tracks alike. */
double rig_media_rate(const struct rig *rig);

#endif
