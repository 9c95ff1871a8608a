/*
 * head_internal.h - the head from inside: head.c (making, prediction, reference
 * reads), head_observe.c (completions).
 */
#ifndef TRAX_HEAD_HEAD_INTERNAL_H
#define TRAX_HEAD_HEAD_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "sched/head/accuracy.h"
#include "sched/head/head.h"
#include "sched/head/remap_detect.h"
#include "sched/head/seek_learn.h"
#include "sched/head/spindle.h"

/* Accesses at the disk whose order can still be predicted.  With more the drive
 * is free to reorder them. */
#define CHAIN_MAX 5u
#define REFERENCE_SAVED 60u
#define REFERENCE_NS (10 * NS_PER_SECOND)
/* A drive may hold in its cache what it read ahead behind this many of the
 * last reads. */
#define READS_KEPT 32u

/* A drive that has taken writes into its cache brings them to the medium when
 * it has no command, or also between two. */
enum head_time { HEAD_TIME_BUSY, HEAD_TIME_AWAY, HEAD_TIMES };

struct head {
	struct env *env;
	const struct geom *geom;
	struct service_mech mech;
	struct spindle spindle;
	struct seek_learn learn;
	struct seek_learn sure;		/* `learn` when prediction was good */
	bool have_sure;			/* `sure` has been filled in */
	struct accuracy accuracy[SEEK_LEARN_KINDS];
	struct accuracy places;		/* accuracy for placing writes, see
					 * head_state.h */
	struct accuracy trial_writes;	/* accuracy of writes in this trial */
	struct accuracy through;	/* do writes that a cache may take go to
					 * the medium all the same? */
	bool wrong_last[SEEK_LEARN_KINDS];	/* was the last prediction
						 * wrong? */
	unsigned excused;
	uint64_t hit_overhead_ns;
	uint32_t read_ahead_sectors;
	uint32_t physical_sectors;
	bool goes_on;			/* the drive goes to the next track
					 * behind a read up to a track's end */
	unsigned gone_on;		/* how much speaks for that, up to
					 * GONE_ON */
	bool known;			/* geometry, seeks and period are
					 * given */
	enum head_mode mode;
	uint64_t accesses;		/* accesses since the mode changed */
	/* The spindle's counters when the mode changed. */
	uint64_t observed_before, outliers_before;
	uint64_t trial_busy_ns;		/* disk time of the accesses of this
					 * trial */
	uint64_t retry_ns;		/* no trial begins before this time */
	unsigned failures;		/* failed trials in a row */
	unsigned odd_run;		/* random reads answered by a cache,
					 * less those that were not */
	unsigned hits_run;		/* cache hits in a row */
	unsigned writes_run;		/* writes judged since the last read
					 * that was no reference */
	unsigned lost_run;		/* accesses without a phase */
	struct service_head at;		/* position of the head behind all that
					 * has completed */
	uint64_t last_ns;		/* when an access was last handed
					 * over */
	bool writes_trusted;		/* writes are on, but not yet judged */
	bool writes_cached;		/* the drive has taken writes into its
					 * cache */
	unsigned taken;			/* writes that it took, less those that
					 * went to the medium */
	uint64_t destage_ns;		/* until when it may be writing these */
	unsigned at_drive;		/* accesses that it has */
	bool away;			/* it has had none since it may be
					 * writing these, so the head may be
					 * anywhere */
	struct accuracy destaging[HEAD_TIMES];	/* of reads meanwhile */
	uint64_t destage_retry_ns;	/* no trial begins meanwhile before this
					 * time */
	double writes_ahead;		/* phase measured by writes less that
					 * measured by reads, in revolutions */
	unsigned writes_known;		/* number of writes that writes_ahead is
					 * a mean of */
	uint64_t predicted_ns;		/* time at which a read last showed the
					 * phase */
	uint64_t last_end;		/* LBN at which the last access ended */
	bool last_read;			/* the last access was a read */
	uint64_t read_ends[READS_KEPT];	/* ends of the last reads, a ring */
	unsigned reads;
	bool unsure;			/* the drive has read ahead since the
					 * last access */
	struct head_access *chain[CHAIN_MAX];
	unsigned outstanding;		/* the first of them in chain */
	struct remap_detect remap_detect;
	uint64_t grown;			/* a track that is off, + 1; 0: none */
	struct head_kind_stats kind[SEEK_LEARN_KINDS];
	unsigned silent;		/* accesses since the last reading */
	unsigned alone;			/* accesses since the last reading that
					 * was no reference */
	uint64_t reference;		/* LBN of the last reference read */
	uint64_t references, reference_seed;
	uint64_t saved_ns;		/* time saved up for reference reads */
	uint64_t saved_at_ns;
};

/* ---- head.c ---- */

void head_set_mode(struct head *head, enum head_mode mode);

uint64_t head_period_ns(const struct head *head);

uint64_t head_guard_ns(const struct head *head,
		       enum seek_learn_kind kind,
		       enum seek_learn_when when);

/* The guard of a command that is decoded `ahead_ns` before the head is free. */
uint64_t head_guard_ahead_ns(const struct head *head, enum seek_learn_kind kind,
			     uint64_t ahead_ns);

/* The same of a place that is chosen for a write. */
uint64_t head_place_guard_ns(const struct head *head, uint64_t ahead_ns);

bool head_phase_is_known(const struct head *head, uint64_t at_ns);

/* Has the drive taken most of the last writes into its cache? */
bool head_takes_writes(const struct head *head);

/* Predicts an access that begins where `from` says, when it was handed over. */
void head_expect(const struct head *head, struct head_access *access,
		 const struct service_head *from);

/* The first sector behind those that a read up to `lbn` brings: the rest of
 * what the drive stores as one is read as well. */
uint64_t head_read_end(const struct head *head, uint64_t lbn);

/* As head_expect, behind an access that left the head there, perhaps on the way
 * to the track that begins at `next`; UINT64_MAX: to none. */
void head_expect_behind(const struct head *head, struct head_access *access,
			const struct service_head *from, uint64_t next);

#endif
