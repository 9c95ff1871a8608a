/*
 * rounds.h - rounds of few unequal tracks, in which slips do not show behind.
 *
 * Tracks of unequal surfaces, one after another, come again with every
 * cylinder.  When each cylinder has spares, a slip moves the boundaries behind
 * it as far as the end of the cylinder and no further: a leap over it is right
 * at its end and wrong on the way.  So every boundary that a leap went over is
 * looked at from one side, where a slip shows if the round itself is as it is
 * thought to be.  Whether that is so looks from both sides say: at all
 * boundaries of the last round of each leap for as long as a scratch may go on,
 * which made all rounds alike.  What is right there, before and behind, is so
 * between: a scratch does not end and begin again.
 */
#ifndef TRAX_TRACK_ROUNDS_H
#define TRAX_TRACK_ROUNDS_H

#include "extract/track/plan.h"
#include "extract/track/store.h"

#define ROUNDS_MOST 64u

struct rounds {
	unsigned tracks;	/* of a round; 0: there are none */
	unsigned cycle;		/* tracks of what the plan takes for one, */
	uint64_t print;		/* its sizes in order, whichever is first */
	bool seen;		/* that is known to be one */
	unsigned passed;	/* tracks since it is */
	unsigned wary;		/* behind an event: both sides are looked at */
	uint64_t alike;		/* unit from which on sizes are one; 0: none */
	/* The round of the zone that is known, from the track on that it
	 * began with; 0: there is none. */
	unsigned n;
	uint32_t size[ROUNDS_MOST];
};

/* From which sides a boundary has to be looked at. */
enum rounds_look { ROUNDS_NONE, ROUNDS_LOW, ROUNDS_BOTH };

/* What the plan says of rounds now; the store has what is before. */
void rounds_see(struct rounds *rounds, const struct plan *plan,
		const struct store *store);

/* A size that the next track may have where the plan knows none; 0: neither
 * does this. */
uint32_t rounds_guess(const struct rounds *rounds, const struct plan *plan,
		      const struct store *store);

/* Those before boundary `to`, as they are numbered in look.h: look[k] is for
 * the one at the start of track k. */
void rounds_wanted(const struct rounds *rounds, unsigned to,
		   enum rounds_look *look);

/* Something was not as foretold. */
void rounds_event(struct rounds *rounds);

/* Tracks were passed that are as foretold. */
void rounds_pass(struct rounds *rounds, unsigned tracks);

#endif
