/*
 * rounds.h - rounds of few unequal tracks: does a slip in one show behind it?
 *
 * Tracks of unequal surfaces, one after another, come again with every
 * cylinder.  When each cylinder has spares, a slip moves the boundaries behind
 * it as far as the end of the cylinder and no further: a leap over it is right
 * at its end and wrong on the way.  Nothing but that end moves boundaries back,
 * so each slip shows at the start of the last track of its cylinder; in that
 * track itself it moves none.  Which track that is may be known (ends.h): then
 * it is looked at in each cylinder, else every boundary is.
 *
 * That is over when slips of some tracks that are not the last of a cylinder,
 * the first in it, have been seen to move all that came behind them.  Not of
 * one: the last track may have slipped by just as many as there are spares,
 * which shows nowhere.  Where it is not known which is the last, it must be
 * some of one track of a round, and some of others.
 *
 * What is looked at is one side: a slip shows in it if the round itself is as
 * it is thought to be.  Whether that is so looks from both sides say for as
 * long as a scratch may go on, which made all rounds alike: at all boundaries
 * of the last round of each leap.  What is right there, before and behind, is
 * so between: a scratch does not end and begin again.
 */
#ifndef TRAX_TRACK_ROUNDS_H
#define TRAX_TRACK_ROUNDS_H

#include "extract/track/ends.h"
#include "extract/track/plan.h"
#include "extract/track/store.h"

struct rounds {
	unsigned tracks;	/* of a round; 0: there are none */
	unsigned cycle;		/* tracks of what the plan takes for one, */
	uint64_t print;		/* its sizes in order, whichever is first */
	bool seen;		/* that is known to be one */
	unsigned passed;	/* tracks since it is */
	unsigned wary;		/* behind an event: both sides are looked at */
	unsigned resumed;	/* tracks to pass until it was right to go on */
	bool lost;		/* it was not: it may be another zone */
	uint64_t alike;		/* unit from which on sizes are one; 0: none */
	uint32_t pending;	/* full size of a track with slips; 0: none */
	unsigned slips;		/* such tracks */
	bool clear;		/* nothing odd was near before it */
	unsigned since;		/* tracks passed behind it */
	/* Slips that showed behind their cylinder: not in its last track; in
	 * one of size `shown`, and in others. */
	unsigned inners, firsts, others;
	uint32_t shown;		/* 0: none yet */
	unsigned absorbs;	/* slips that may have been made up for */
	unsigned doubts;	/* leaps over some that did not, all the same */
	bool doubtful;		/* perhaps one more: what was late shows soon */
	bool plain;		/* slips show behind */
	struct ends ends;
	struct run round[ENDS_MOST]; /* the tracks of ends.size */
};

/* From which sides a boundary has to be looked at. */
enum rounds_look { ROUNDS_NONE, ROUNDS_LOW, ROUNDS_BOTH };

/* What the plan says of rounds now; the store has what is before. */
void rounds_see(struct rounds *rounds, const struct plan *plan,
		const struct store *store);

/* Does it know what comes next, when the plan does not?  Then that foretells
 * it. */
bool rounds_learn(struct rounds *rounds, struct plan *plan,
		  const struct store *store);

/* A size that the next track may have where the plan knows none; 0: neither
 * does this. */
uint32_t rounds_guess(const struct rounds *rounds, const struct plan *plan,
		      const struct store *store);

/* Must boundaries be looked at? */
bool rounds_needed(const struct rounds *rounds);

/*
 * Those before boundary `to`, as they are numbered in look.h: look[k] is for
 * the one at the start of track k of ahead[0..to].
 */
void rounds_wanted(const struct rounds *rounds, const struct ahead *ahead,
		   unsigned to, enum rounds_look *look);

/* A track with slips was passed, of that size without them. */
void rounds_slip(struct rounds *rounds, uint32_t size);

/* Something else was not as foretold. */
void rounds_event(struct rounds *rounds);

/* A leap seemed to be right at its end and wrong on the way: if nothing odd is
 * found now, it was not. */
void rounds_doubt(struct rounds *rounds);

/* Tracks were passed that are as foretold. */
void rounds_pass(struct rounds *rounds, unsigned tracks);

#endif
