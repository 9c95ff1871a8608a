/*
 * walk.h - from track to track over a drive: leaps, and what stops them.
 *
 * The walk has a frontier: the start of the next track, certain as to LBN and
 * known as to angle.  It adds what it passes to a store.
 */
#ifndef TRAX_TRACK_WALK_H
#define TRAX_TRACK_WALK_H

#include "extract/probe/reader.h"
#include "extract/track/line.h"
#include "extract/track/plan.h"
#include "extract/track/rounds.h"
#include "extract/track/store.h"

struct walk {
	struct reader *reader;
	struct store *store;
	struct plan plan;
	struct line line;	/* how sure its angles are */
	uint64_t limit;		/* unit; beyond it is mapped */
	bool there;		/* has a frontier: plan.first */
	uint32_t guess;		/* size of a track elsewhere; 0: not known */
	unsigned leap, leap_max; /* tracks */
	bool leapt;		/* the last step was one that was right */
	uint64_t measured;	/* where it began to measure, if it was not */
	struct rounds rounds;
	double last_start;	/* angle of the last track passed, */
	double last_end;	/* and where its last unit has passed */
	unsigned streak;	/* of leaps that failed */
	unsigned calm;		/* tracks since the last that did, */
	uint64_t steady;	/* since a run began that was not foretold */
	double apart;		/* tracks from one event to the next, about; */
	uint64_t event_at;	/* where the last was */
	unsigned lost;		/* how often in a row no track was found */
	uint64_t odd_at;	/* end of the last odd track, */
	uint32_t odd_size;	/* and its size, */
	unsigned odd_times;	/* which so many before it had as well */
	struct ahead ahead[PLAN_AHEAD + 1];

	/* Statistics. */
	uint64_t leaps, events, slips, gone;
};

/*
 * Goes to a unit.  `on_track`: a track starts there; otherwise what is before
 * the first that does becomes unknown.
 */
int walk_begin(struct walk *walk, uint64_t unit, bool on_track);

/* On by one leap, or past one event. */
int walk_step(struct walk *walk);

#endif
