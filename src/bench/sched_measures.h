/*
 * sched_measures.h - single measurements of the experiments of sched.h, for
 * those who want values instead of a printed table.
 *
 * All run in virtual time.  0 or a negative errno, reported through msg.
 */
#ifndef TRAX_BENCH_SCHED_MEASURES_H
#define TRAX_BENCH_SCHED_MEASURES_H

#include "bench/rig.h"
#include "bench/sched.h"

/* ---- sched_tracks.c: requests of a whole track ---- */

struct sched_track_load {
	const char *drive;
	unsigned clients;
	bool read, aligned;
};

int sched_track_times(const struct sched_options *options,
		      const struct sched_track_load *load,
		      struct rig_result *result);

/* ---- sched_segments.c: a log-structured file system ---- */

struct sched_segment_cost {
	double write;			/* what cleaning adds: blocks moved for
					 * each new one */
	double anywhere, aligned;	/* time of a segment, of that at the
					 * media rate */
};

/* For segments of 1/parts of a track, or of `tracks` tracks. */
int sched_segment_costs(const struct sched_options *options, unsigned parts,
			unsigned tracks, struct sched_segment_cost *cost);

/* ---- sched_head.c: what the head does ---- */

struct sched_head_load {
	const char *drive, *policy;
	unsigned clients;
	uint32_t sectors;
};

int sched_head_uses(const struct sched_options *options,
		    const struct sched_head_load *load,
		    struct rig_result *result);

/* ---- sched_free.c: scans in the gaps ---- */

struct sched_free_load {
	const char *label;
	const char *policy;
	unsigned clients;
	uint64_t think_ns;
	bool random;		/* 4-KiB requests at random, not OLTP */
	double part;		/* share of the disk at which a scan is over */
	double promote_at;	/* remaining share that is promoted; 0: nothing
				 * is */
	uint64_t requests;
	bool progress;		/* print the progress of the scan */
};

struct sched_free_result {
	struct rig_result alone, with;
	double rotation;	/* shares of the time: of rotation without a
				 * scan, */
	double used;		/* and of free reads with one */
	double said;		/* of delays, by freeblock's own account */
	double scans;		/* whole disks that were read */
	double scans_a_day;
	double last_part;	/* share of a scan's time for its last 5 %; 0:
				 * none was finished */
};

int sched_free_scans(const struct sched_options *options,
		     const struct sched_free_load *load,
		     struct sched_free_result *result);

/* ---- sched_range.c: writes with a choice of places ---- */

/* Sectors of a range that is just more than a track of the drive, and of a
 * block group. */
#define SCHED_TRACK_RANGE 100u
#define SCHED_GROUP_RANGE 4096u

struct sched_range_load {
	unsigned depth;
	bool group;		/* all within a block group, not anywhere */
	uint32_t range;		/* sectors of a range; 0: one place only */
	uint32_t slot;		/* sectors of a write, and its alignment */
};

struct sched_range_point {
	double positioning_ms;
};

int sched_range_times(const struct sched_options *options,
		      const struct sched_range_load *load,
		      struct sched_range_point *point);

/* ---- sched_create.c: files of 4 KB in a group that is full in part ---- */

int sched_create_time(const struct sched_options *options, unsigned writers,
		      unsigned percent, bool ranges, double *ms);

/* ---- sched_log.c: transactions like those of TPC-B ---- */

enum sched_journal {
	JOURNAL_NULL, JOURNAL_SKIPPING, JOURNAL_BLIND, JOURNAL_TWO
};

/* *least_ms: the shortest time of any log. */
int sched_tpcb_time(const struct sched_options *options,
		    enum sched_journal journal, uint64_t think_ns, double *ms,
		    double *least_ms);

/* ---- sched_streams.c: readers that each go on in a file ---- */

int sched_streams_rate(const struct sched_options *options, unsigned clients,
		       uint64_t think_ns, bool blind, double *mb_per_s);

#endif
