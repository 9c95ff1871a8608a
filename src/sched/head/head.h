/*
 * head.h - where the head of a drive is, as far as that can be predicted.
 *
 * The prediction begins with what was measured once (geometry, seeks,
 * overheads, period; not the phase) and learns the rest from accesses: the
 * queue reports each one that it gives to the disk (head_begin) and that
 * completes (head_end).  Prediction is used, for reads and writes apart, only
 * while it is good; it is tried again from time to time.  A wrong prediction
 * costs time, never data.
 *
 * Units: nanoseconds on the environment's clock; angles as in geom.h.
 */
#ifndef TRAX_HEAD_HEAD_H
#define TRAX_HEAD_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "diskmodel/geom.h"
#include "diskmodel/service.h"
#include "sched/head/head_state.h"

struct head;

struct head_options {
	const struct geom *geom;	/* outlives the head */
	/* Copied, seeks too; its phase means nothing.  NULL, without seeks or
	 * with period_ps 0: nothing is known, all stays off. */
	const struct service_mech *mech;
	uint64_t read_overhead_ns, write_overhead_ns;
	uint64_t hit_overhead_ns;	/* overhead of a read that the drive's
					 * cache answers */
	uint32_t read_ahead_sectors;	/* sectors that the drive reads behind a
					 * read */
	uint32_t physical_sectors;	/* sectors that it stores, and reads, as
					 * one; 0: 1 */
};

enum head_mode {
	HEAD_OFF,	/* nothing is known or prediction fails: a plain disk */
	HEAD_TRIAL,	/* one request at a time, to see whether predictions
			 * hold */
	HEAD_ON,
};

/* An access at the disk; the queue keeps one for each. */
struct head_access {
	bool write;
	bool chosen;		/* its place was chosen by the head_state */
	bool cached;		/* a volatile cache may take it: its completion
				 * time tells nothing */
	bool part;		/* the drive may join it with a neighbour; then
				 * both complete together */
	uint64_t lbn;
	uint32_t sectors;
	/* Private to the head. */
	bool busy;		/* the drive was busy at hand-over */
	bool predicted;		/* the head's position was known */
	bool streams;		/* begins where the access before ends: the
				 * drive may have read it ahead */
	bool follows;		/* begins where a recent read ends: the drive
				 * may have read it ahead */
	bool unsure;		/* the head began wherever read-ahead, or the
				 * drive that has just emptied its write cache,
				 * had left it: it is not judged */
	bool aside;		/* a write that the drive's cache takes: it
				 * moves no head */
	bool destages;		/* the drive may be bringing such writes to the
				 * medium: it is judged apart */
	bool away;		/* the drive had time to begin with that */
	bool went_on;		/* the read before it ended at a track's end:
				 * the drive may have gone to the next track
				 * first, so nothing is learned of its move */
	uint64_t gone_on_ns;	/* when it ends then, if that is half a turn or
				 * more later; else 0 */
	bool unknown;		/* its tracks are not measured, so it says
				 * nothing of the phase */
	uint64_t handed_ns;
	struct service expected; /* without a guard */
	uint64_t begin_ns;	/* when the command is decoded and the head is
				 * free for it */
	uint64_t ahead_ns;	/* how long before begin_ns it was decoded */
	uint64_t arrive_ns;	/* when the head is over its first track */
	uint32_t cylinders;	/* how many cylinders the head moved for it */
	bool switched;		/* it is on another surface than the access
				 * before it */
};

/* Bins of the error histogram: 1/64 of a revolution each, bin 32 from 0 on;
 * the first and the last take all that is beyond. */
#define HEAD_BINS 64u

struct head_kind_stats {
	bool on;
	uint64_t predictions;	/* predictions of accesses that came from the
				 * medium */
	uint64_t wrong;		/* off by more than 15 % of a revolution */
	uint64_t misses;	/* those that were late by a whole revolution */
	uint64_t switched;	/* times it went on or off */
	uint64_t overhead_ns;	/* learned */
	uint64_t error_bins[HEAD_BINS];
};

struct head_stats {
	enum head_mode mode;
	uint64_t period_ps;
	uint64_t observed;		/* completions that moved the phase */
	uint64_t outliers;		/* completions left out as outliers */
	uint64_t references;		/* reads made for the phase only */
	struct head_kind_stats read, write;
};

int head_open(struct env *env, const struct head_options *options,
	      struct head **head);
void head_close(struct head *head);	/* NULL is harmless */

/* A read that was made outside the queue, while the disk did nothing else. */
struct head_past_read {
	uint64_t lbn;
	uint32_t sectors;
	uint64_t handed_ns, complete_ns;
};

/* Learns from such reads as from ordinary ones.  They are in order of time and
 * earlier than any access. */
void head_learn_reads(struct head *head, const struct head_past_read *reads,
		      size_t n);

/* Returns sectors of tracks that ordinary reads have repeatedly found elsewhere
 * than the geometry says.  Each range is returned once.  False: none. */
bool head_take_grown(struct head *head, uint64_t *first, uint64_t *n);

/* What was learned from completions, for the profile: the next mount begins
 * with it. */
struct head_learned {
	const struct service_mech *mech; /* owned by the head; phase of now */
	bool writes;		/* settling and write_overhead_ns are known */
	uint64_t read_overhead_ns, write_overhead_ns;
};

/* False: prediction is off, or too few accesses were seen to improve on the
 * profile. */
bool head_get_learned(const struct head *head, struct head_learned *learned);

/* Predicts with another geometry from now on; the queue must be idle.  What was
 * learned with the old one is forgotten. */
void head_set_geom(struct head *head, const struct geom *geom);

/* Is there a profile with seeks and a period to predict by, and a geometry? */
bool head_is_known(const struct head *head);
const struct geom *head_geom(const struct head *head);
/* May the drive have read this sector ahead into its cache, behind one of the
 * last reads? */
bool head_may_have(const struct head *head, uint64_t lbn);

/* Predicts the state behind all accesses that have begun and not ended. */
void head_get_state(const struct head *head, struct head_state *head_state);

enum head_mode head_mode(const struct head *head);

/* Are reads predicted now?  What is known of the head is used only then. */
bool head_predicts(const struct head *head);

/* Do all reads of late come from a cache?  Then order does not matter, and the
 * more requests at once the better. */
bool head_is_cached(const struct head *head);

/* An access is handed to the disk.  now_ns is when it was chosen: the time
 * until the disk has it, in which a record is sealed, is part of its
 * overhead. */
void head_begin(struct head *head, struct head_access *access, uint64_t now_ns);

/* It has completed; result as of disk.h. */
void head_end(struct head *head, struct head_access *access,
	      uint64_t complete_ns, int result);

/* The access will never complete, as the disk is gone: it belongs to the caller
 * again, and nothing is learned from it. */
void head_drop(struct head *head, const struct head_access *access);

/* A flush has ended: the drive's cache holds no writes. */
void head_flushed(struct head *head);

/* May the drive be bringing writes from its cache to the medium now? */
bool head_destages(const struct head *head);

/* When the running access is expected to end; 0: nothing is running. */
uint64_t head_busy_until_ns(const struct head *head);

/* When the drive will surely have begun the last access it was given.  A
 * command that arrives earlier might be served first.  0: nothing is running.
 */
uint64_t head_begun_ns(const struct head *head);
/* How long before head_begun_ns that access will have been decoded. */
uint64_t head_ahead_ns(const struct head *head);

/* When the last access is expected to reach the medium. From then on the drive
 * joins nothing to it. */
uint64_t head_media_ns(const struct head *head);

/* Does the last access touch these sectors at either end?  A drive that has
 * both makes one access of them. */
bool head_is_beside(const struct head *head, uint64_t lbn, uint32_t sectors);

/*
 * Does the phase need a reading that ordinary reads have not given?  If so,
 * *sector is one whose read costs little.  The queue reads it when nothing else
 * waits.
 */
bool head_wants_reference(struct head *head, uint64_t *sector);

void head_get_stats(const struct head *head, struct head_stats *stats);

#endif
