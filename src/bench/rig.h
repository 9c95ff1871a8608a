/*
 * rig.h - what experiments in virtual time are made of: a simulated drive, the
 * model that the queue has of it, and the disk queue over both.
 *
 * Drive and model are read from the same file; `doubt` may make them differ.
 * The same loads run in real time on a real or an emulated disk.
 */
#ifndef TRAX_BENCH_RIG_H
#define TRAX_BENCH_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/spec.h"
#include "fs/fs.h"
#include "sched/queue/queue.h"
#include "sim/drive.h"
#include "sim/sim.h"

struct rig_options {
	const char *drive;	/* a drive: a file, the name of a shipped one,
				 * or random:SEED */
	uint64_t seed;
	const char *policy;	/* as struct queue_options */
	unsigned depth;		/* as in struct queue_options */
	bool blind;		/* the queue has no model of the drive */
	bool no_cache;		/* the drive neither caches nor reads ahead */
	uint64_t host_ns;	/* delay of the host, see sim.h */
	bool volatile_cache;	/* see sim.h */
	bool flat;		/* every request takes the same time, as if
				 * there were no drive */
	const char *device;	/* a real disk, used in real time, that the
				 * model fits; NULL: a simulated one */
	bool scratch;		/* the disk may be written */
	/* Changes the drive or the model so that they differ; may be NULL. */
	void (*doubt)(struct spec *is, struct spec *model, void *arg);
	void *arg;
};

struct rig {
	struct spec *spec, *model;
	struct sim *sim;	/* NULL: a real disk */
	struct disk *disk;
	bool read_only;
	struct env *env;
	struct geom *geom;	/* geometry of the model */
	struct head *head;	/* NULL when blind */
	struct queue *queue;
	uint64_t fs_sectors;	/* of a file system made on it; 0: all */
};

/* 0 or a negative errno, reported through msg. */
int rig_open(const struct rig_options *options, struct rig *rig);
void rig_close(struct rig *rig);
/*
 * Learns the head's position from a few requests, gives up the rig's own queue,
 * and makes and opens a file system on the disk, with the head in the options.
 * 0 or a negative errno.
 */
int rig_make_fs(struct rig *rig, struct fs_options *options, struct fs **fs);

/* Advances virtual time to the next event of the simulated disk, at most to
 * `to_ns`. */
void rig_pass(const struct rig *rig, uint64_t to_ns);
/* Submits an operation and runs the file system, in virtual time, until it is
 * over.  Returns its result. */
int rig_do(const struct rig *rig, struct fs *fs, struct fs_op *op);

/* Number of sectors of the disk that the model covers. */
uint64_t rig_sectors(const struct rig *rig);

/*
 * A closed load: each client has one request outstanding, thinks, has the next.
 * All of class QUEUE_READ, so that the policy sees them all.
 */
struct rig_load {
	unsigned clients;
	uint64_t think_ns;	/* mean think time, exponentially distributed;
				 * 0: none */
	uint32_t sectors;	/* sectors of a request, aligned to 8 */
	bool vary;		/* requests have 1/2 to 3/2 of that length */
	unsigned read_percent;
	uint64_t first, span;	/* range of the places; span 0: all of the
				 * disk */
	uint64_t near;		/* distance from the last place, at most; 0:
				 * anywhere */
	uint64_t requests;	/* number of requests that are measured */
	uint64_t warmup;	/* number of requests before these */
	uint64_t seed;
	/* Chooses the next place instead of chance; NULL: chance. */
	void (*next)(void *arg, uint64_t *sector, uint32_t *sectors);
	/* Called just before a client's request is submitted, and when it is
	 * over; NULL. */
	void (*prepare)(void *arg, unsigned client, struct queue_request *req);
	void (*over)(void *arg, unsigned client, struct queue_request *req);
	void *arg;
};

struct rig_result {
	uint64_t ns;		/* from the begin of the first measured request
				 * to the end of the last one */
	double mean_ns, p99_ns;	/* response times of the measured requests */
	double head_mean_ns, head_deviation_ns; /* head times, see rig_run */
	struct drive_times times;	/* times of the simulated head
					 * meanwhile */
};

/*
 * Runs a load to its end. The head time of a request is the time between its
 * completion and the one before (Traxtents, 5.2), or its submission when that
 * was later. 0 or a negative errno.
 */
int rig_run(struct rig *rig, const struct rig_load *load,
	    struct rig_result *result);

/* Computes the mean and the 99th percentile of n values, n at least 1; sorts
 * them. */
void rig_sum_up(double *v, uint64_t n, double *mean, double *p99);

/* Returns the next number of a sequence, 31 bits.  The figures in doc/ come
 * from this sequence. */
static inline uint64_t rig_random(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 33;
}

/* Sectors that pass under a head in a second, as a mean of all tracks. */
double rig_media_rate(const struct rig *rig);

#endif
