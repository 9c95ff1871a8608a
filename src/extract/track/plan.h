/*
 * plan.h - which track is thought to come next.
 *
 * Tracks in LBN order are runs: tracks of one size, each a constant step of
 * angle after the one before.  A change of head, zone or group begins a new
 * run.  Runs come again with a period (the heads of a serpentine, a cylinder);
 * a plan remembers the last ones, finds the period, and foretells.  It is
 * advice: what it says is checked on the drive.
 *
 * Units and angles as in reader.h.
 */
#ifndef TRAX_TRACK_PLAN_H
#define TRAX_TRACK_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_RUNS 256u
#define PLAN_AHEAD 1024u

struct run {
	uint64_t first;		/* unit */
	uint32_t count;		/* tracks, those without units included */
	uint32_t size;		/* units of a track */
	uint32_t lacks;		/* that all its tracks have fewer, in sum */
	double start;		/* of the first track */
	double step;		/* from track to track */
	double cross;		/* from the last track before it to its first;
				 * NAN: not known, in plan_begin() */
	double span;		/* what the units of a track cover */
	uint32_t was;		/* size in the last zone; 0: not known */
	bool cut;		/* shorter than usual */
};

/* A track that is thought to come. */
struct ahead {
	uint64_t first;
	uint32_t size;
	uint32_t run;		/* 0: the present one, 1: the next ... */
	uint32_t whole;		/* size of one without spares in its place */
	bool spares;		/* slips before it in its run do not move its
				 * end: it has spares for them */
	double start;
	double span;		/* of its own units */
};

/* What was foretold in the last long run. */
struct plan_long {
	uint32_t expected;
	bool trusted;
	size_t period, whole, stale;
	double ratio;
	uint32_t cut;
};

#define PLAN_ODDS 4u

struct plan {
	struct run past[PLAN_RUNS];
	size_t n;
	struct run now;		/* count: tracks so far */
	uint32_t expected;	/* of its tracks in all; 0: no end in sight */
	double rate;		/* by which each track is later than that, */
	double cross_rate;	/* and each first one of a run */
	size_t period;		/* runs; 0: not known */
	size_t whole;		/* it, while the last zone is longer ago */
	size_t stale;		/* past ones, the first, of another zone; */
	size_t uncounted;	/* whose counts can't be relied on */
	double ratio;		/* of sizes to those of the last zone */
	uint32_t cut;		/* tracks of runs at its end; 0: not there */
	unsigned overran;	/* last ones, longer than foretold */
	bool trusted;		/* what comes after this run is known */
	struct plan_long was;
	/* The last tracks of the present run that lack units: their numbers in
	 * it.  The first ones are older. */
	struct plan_odd {
		uint32_t track, lacks;
	} odd[PLAN_ODDS];
	uint64_t first;		/* unit of the next track */
	double start;		/* and its angle */
};

/*
 * The tracks to come, `max` at most, and one that may not be counted on: where
 * the last of the others ends.  Returns how many there are without that one.
 */
unsigned plan_ahead(const struct plan *plan, struct ahead *ahead,
		    unsigned max);

/* The present run is over; a new one, of which one track is known (count 1),
 * has begun.  Sets expected, period and trusted.  Behind a track or two with
 * slips that were taken for a run, the one before them goes on. */
void plan_begin(struct plan *plan, const struct run *run);

/* Past one track of the present run or, when that is over, of the next. */
void plan_pass(struct plan *plan, const struct ahead *track);

/* The last track passed had so many units fewer than was foretold. */
void plan_slip(struct plan *plan, int32_t units);

/* The last track passed, which had so many units fewer than a whole one, was
 * none of those foretold. */
void plan_undo(struct plan *plan, uint32_t less);

/* Were some of the last runs long?  Then tracks of about a size are of one. */
bool plan_is_long(const struct plan *plan);

/* The tracks of the present run so far had slips: others have that size. */
void plan_resize(struct plan *plan, uint32_t size);

/* Should the present run have ended here, before what is not known? */
bool plan_is_over(const struct plan *plan);

/* The present run goes on, though it should have ended. */
void plan_overrun(struct plan *plan);

/* What came before the present run is no help any more. */
void plan_forget(struct plan *plan);

/* Tracks after which runs come again; 0: not known. */
unsigned plan_cycle(const struct plan *plan);

/* Likewise of different sizes; 0, too, when they are all of one. */
unsigned plan_round(const struct plan *plan);

/* The size to come when the present run ends here. */
uint32_t plan_guess(const struct plan *plan);

#endif
