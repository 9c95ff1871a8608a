/*
 * turn.h - how much one turn of the loop does, counted.
 *
 * The daemon has one thread: nobody is answered while a turn lasts.  Work
 * whose amount depends on what there is (files, extents, transactions) is done
 * in steps.  Each step is charged to the turn with the time that it is expected
 * to take; when the turn is full, the rest is left for the next one.  The
 * charge is a constant, not a measurement, so that a run is the same on any
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

/* A turn that is expected to take so long is full, in nanoseconds: half of the
 * 2 ms that a turn may take, as machines differ. */
#define TURN_FULL_NS NS_PER_MS

enum turn_part {
	TURN_TRANSACTIONS,	/* runs of transactions on the tree */
	TURN_COMPLETIONS,	/* requests that the disk has finished */
	TURN_FLUSH,		/* dirty files looked at, write-backs begun */
	TURN_DESTAGE,		/* logged blocks looked at */
	TURN_RELEASE,		/* freed sectors that may be used again */
	TURN_CHECKPOINT,	/* nodes frozen, sealed, submitted */
	TURN_LEARN,		/* reads looked at for replicas */
	TURN_PLACE,		/* free runs looked at for a place */
	TURN_PARTS
};

struct loop_turn {
	bool running;
	bool cut;		/* something was left for the next turn */
	enum turn_part last_part;	/* what did most of the last turn */
	uint64_t charged_ns[TURN_PARTS], all_ns;
	uint64_t turns, cuts;	/* numbers of turns, and of those cut */
	uint64_t max_charged_ns;	/* of one turn, and the part of the loop
					 * that did most of it */
	enum turn_part max_charged_part;
	uint64_t max_ns;	/* the same, measured */
	enum turn_part max_part;
	uint64_t long_turns;		/* measured turns of over 2 ms */
};

static inline void turn_charge(struct loop_turn *turn, enum turn_part part,
			       uint64_t ns)
{
	turn->charged_ns[part] += ns;
	turn->all_ns += ns;
}

/* Asked by whoever has more to do: true: leave it for the next turn. */
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
/* The turn that has just ended took so long, with all that belongs to it. */
void turn_measured(struct loop_turn *turn, uint64_t ns);

const char *turn_part_name(enum turn_part part);

#endif
