/*
 * turn.h - counts how much one turn of the loop does.
 *
 * The daemon has one thread: it answers nobody while a turn lasts.  Work whose
 * amount depends on the size of something (files, extents, transactions) is
 * done in steps.  Each step is charged to the turn with the time that it is
 * expected to take; when the turn is full, the rest is left for the next one.
 * The charge is a constant, not a measurement, so that a run is the same on any
 * machine and a test can bound what a turn does.
 *
 * In src/fs a turn lasts from the end of one call of fs_run to the end of the
 * next.  Before the first one (a mount, a tool) and after the last no turn is
 * full.
 */
#ifndef TRAX_BASE_TURN_H
#define TRAX_BASE_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"

/* Expected time, in nanoseconds, at which a turn is full: half of the 2 ms that
 * a turn may take, as machines differ. */
#define TURN_FULL_NS NS_PER_MS

enum turn_part {
	TURN_TRANSACTIONS,	/* runs of transactions on the tree */
	TURN_COMPLETIONS,	/* requests that the disk has finished */
	TURN_FLUSH,		/* looking at dirty files, beginning
				 * write-backs */
	TURN_DESTAGE,		/* looking at logged blocks */
	TURN_RELEASE,		/* releasing freed sectors */
	TURN_CHECKPOINT,	/* freezing, sealing and submitting nodes */
	TURN_LEARN,		/* judging reads for replicas */
	TURN_PLACE,		/* looking at free runs for a place */
	TURN_PARTS
};

struct loop_turn {
	bool running;
	bool cut;		/* something was left for the next turn */
	uint64_t charged_ns[TURN_PARTS], all_ns;
	uint64_t turns, cuts;	/* numbers of turns, and of those cut */
	uint64_t max_charged_ns;	/* the most that was charged to one
					 * turn, and the part that was charged
					 * most of it */
	enum turn_part max_charged_part;
	uint64_t max_ns;	/* the same, measured */
};

static inline void turn_charge(struct loop_turn *turn, enum turn_part part,
			       uint64_t ns)
{
	turn->charged_ns[part] += ns;
	turn->all_ns += ns;
}

/* Is the turn full?  Then the caller leaves the rest of its work for the next
 * one. */
static inline bool turn_is_full(struct loop_turn *turn)
{
	if (!turn->running || turn->all_ns < TURN_FULL_NS)
		return false;
	turn->cut = true;
	return true;
}

/* Ends a turn, the first one excepted, and begins the next.  Returns whether
 * something was left to do. */
bool turn_next(struct loop_turn *turn);
/* The loop is over. */
void turn_stop(struct loop_turn *turn);
/* The turn that has just ended took `ns`, measured. */
void turn_measured(struct loop_turn *turn, uint64_t ns);

const char *turn_part_name(enum turn_part part);

#endif
