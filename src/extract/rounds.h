/*
 * rounds.h - rounds of few unequal tracks: does a slip in one show behind it?
 *
 * Tracks of unequal surfaces, one after another, come again with every
 * cylinder.  When each cylinder has spares, a slip moves the boundaries behind
 * it as far as the end of the cylinder and no further: a leap over it is right
 * at its end and wrong on the way.  So every boundary is looked at until slips
 * of two different tracks of a round have been seen to move all that came
 * behind them; two, for the last track of a cylinder may slip by more than
 * there are spares.
 *
 * What is looked at is one side: a slip shows in it if the round itself is as
 * it is thought to be, which some looks from both sides have said before.
 */
#ifndef TRAX_EXTRACT_ROUNDS_H
#define TRAX_EXTRACT_ROUNDS_H

#include "extract/plan.h"
#include "extract/store.h"

struct rounds {
	unsigned tracks;	/* of a round; 0: there are none */
	uint64_t print;		/* of its sizes in order, whichever is first */
	unsigned both;		/* boundaries seen from both sides */
	unsigned wary;		/* tracks behind an event, to be seen so */
	uint32_t pending;	/* full size of a track with slips; 0: none */
	unsigned since;		/* tracks passed behind it */
	uint32_t shown;		/* of one whose slips showed behind; 0: none */
	bool absorbs;		/* slips were made up for */
	bool plain;		/* slips show behind */
};

/*
 * Do the last tracks before the plan's frontier come again, few at a time?
 * Then it foretells those, from the next track on.
 */
bool rounds_learn(const struct store *store, struct plan *plan);

/* What the plan says of rounds now. */
void rounds_see(struct rounds *rounds, const struct plan *plan);

/* Must every boundary be looked at; and from both sides? */
bool rounds_needed(const struct rounds *rounds);
bool rounds_fresh(const struct rounds *rounds);

/* A track with slips was passed, of that size without them. */
void rounds_slip(struct rounds *rounds, uint32_t size);

/* Something else was not as foretold. */
void rounds_event(struct rounds *rounds);

/* A leap was right at its end and wrong on the way. */
void rounds_doubt(struct rounds *rounds);

/* Tracks were passed that are as foretold. */
void rounds_pass(struct rounds *rounds, unsigned tracks);

#endif
