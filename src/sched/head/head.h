/*
 * head.h - where the head of a drive is, as far as can be told from outside.
 *
 * Begins with what somebody measured once (geometry, seeks, overheads, period;
 * not the phase) and learns the rest from the accesses that pass by: the queue
 * tells of each that it gives the disk (head_begin) and that completes
 * (head_end).  Prediction is used, for reads and writes apart, only while it is
 * good; it is tried again from time to time.  A wrong belief costs time, never
 * data.
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
	uint64_t hit_overhead_ns;	/* of a read that a cache answers */
	uint32_t read_ahead_sectors;	/* what the drive reads behind a read */
};

enum head_mode {
	HEAD_OFF,	/* nothing is known or prediction fails: a plain disk */
	HEAD_TRIAL,	/* one request at a time, to see whether it predicts */
	HEAD_ON,
};

/* An access at the disk; the queue keeps one for each. */
struct head_access {
	bool write;
	bool cached;		/* a volatile cache may take it: what it
				 * completes with says nothing */
	bool part;		/* the drive may join it with a neighbour: it
				 * is done when both are */
	uint64_t lbn;
	uint32_t sectors;
	/* The head's. */
	bool busy;		/* the drive was, when it was handed over */
	bool predicted;		/* it was known where the head was */
	bool streams;		/* behind the access before: the drive may have
				 * read it already */
	bool follows;		/* behind some read of late: likewise */
	bool unsure;		/* begins where a drive that reads ahead left
				 * the head: not to be judged by */
	bool unknown;		/* on tracks that nobody has measured: says
				 * nothing of the phase */
	uint64_t handed_ns;
	struct service expected; /* without a guard */
	uint64_t begin_ns;	/* decoded, and the head free for it ... */
	uint64_t ahead_ns;	/* ... after it had been waited for so long */
	uint64_t arrive_ns;	/* over its first track, by that */
	uint32_t cylinders;	/* moved before it */
	bool switched;		/* to another surface */
};

/* Bins of the error histogram: 1/64 of a revolution each, bin 32 from 0 on;
 * the first and the last take all that is beyond. */
#define HEAD_BINS 64u

struct head_kind_stats {
	bool on;
	uint64_t predictions;	/* of accesses that came from the medium */
	uint64_t hits;		/* answered by a cache: not counted above */
	uint64_t wrong;		/* off by more than 15 % of a revolution */
	uint64_t misses;	/* of these, late by a whole revolution */
	uint64_t switched;	/* on or off */
	uint64_t guard_ns;
	uint64_t overhead_ns;	/* learned */
	uint64_t error_bins[HEAD_BINS];
};

struct head_stats {
	enum head_mode mode;
	uint64_t period_ps;
	double period_sigma_ppm;
	double phase_sigma_revs;	/* now */
	uint64_t observed;		/* completions that moved the phase */
	uint64_t gated;			/* that were left out */
	uint64_t reacquired;
	uint64_t references;		/* reads made for this only */
	bool places; /* of writes are chosen, see head_state.h */
	struct head_kind_stats read, write;
};

int head_open(struct env *env, const struct head_options *options,
	      struct head **head);
void head_close(struct head *head);	/* NULL is harmless */

/* A read that somebody else made of the disk, which did nothing besides. */
struct head_heard {
	uint64_t lbn;
	uint32_t sectors;
	uint64_t handed_ns, complete_ns;
};

/* Learns from such reads as from its own; in order, before any of these. */
void head_hear(struct head *head, const struct head_heard *heard, size_t n);

/* Sectors on tracks that are not, or no more, where they are believed to be, as
 * ordinary reads have shown again and again: told once.  False: none. */
bool head_take_grown(struct head *head, uint64_t *first, uint64_t *n);

/* What completions have taught, to begin with another time. */
struct head_learned {
	const struct service_mech *mech; /* the head's; its phase is of now */
	bool writes;		/* of writes too: settling, and ... */
	uint64_t read_overhead_ns, write_overhead_ns;
};

/* False: prediction is off, or so little was seen that nothing is better than
 * it was. */
bool head_get_learned(const struct head *head, struct head_learned *learned);

/* Another geometry from now on; the queue is idle.  What was learned with the
 * old one is forgotten. */
void head_set_geom(struct head *head, const struct geom *geom);

/* Is there anything to go by?  And the geometry. */
bool head_is_known(const struct head *head);
const struct geom *head_geom(const struct head *head);
/* How long a revolution takes. */
uint64_t head_turn_ns(const struct head *head);
/* Sectors that the drive reads behind a read by itself. */
uint32_t head_read_ahead(const struct head *head);

/* What is believed now, behind all that has begun and not ended. */
void head_get_state(const struct head *head, struct head_state *head_state);

enum head_mode head_mode(const struct head *head);

/* Do all reads of late come from a cache?  Then order does not matter, and the
 * more requests at once the better. */
bool head_is_cached(const struct head *head);

/* An access is handed to the disk now. */
void head_begin(struct head *head, struct head_access *access);

/* It has completed; result as of disk.h. */
void head_end(struct head *head, struct head_access *access,
	      uint64_t complete_ns, int result);

/* When the running access is expected to be over; 0: nothing is running. */
uint64_t head_busy_until_ns(const struct head *head);

/* When the drive will have begun the last access it was given: before that
 * another one might be taken first.  0: nothing is running. */
uint64_t head_begun_ns(const struct head *head);
/* How long before that it will have been decoded: so late it may be. */
uint64_t head_ahead_ns(const struct head *head);

/* When it is expected to be on the medium: nothing joins it from then on. */
uint64_t head_media_ns(const struct head *head);

/* Does it end where these sectors begin, or begin where they end?  A drive that
 * has both makes one access of them. */
bool head_is_beside(const struct head *head, uint64_t lbn, uint32_t sectors);

/*
 * Does the phase want a reading that ordinary reads have not given?  Then a
 * sector whose read costs little; the queue reads it when nothing else waits.
 */
bool head_wants_reference(struct head *head, uint64_t *sector);

void head_get_stats(const struct head *head, struct head_stats *stats);

#endif
