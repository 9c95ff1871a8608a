/*
 * predict.h - which tracks are predicted to come next.
 *
 * Tracks in LBN order form rows: tracks of one size, each a constant step of
 * angle after the one before it, of which the last may hold fewer units (the
 * spares of a cylinder or of a surface).  A change of head, zone or group
 * begins another row.  The model keeps the rows that were passed, finds the
 * earlier row that the present one corresponds to, and predicts that the rows
 * after it come again.  In another zone the sizes of all rows change by one
 * factor.  A prediction is a hint: the walk checks it on the drive.
 *
 * Units and angles as in reader.h.
 */
#ifndef TRAX_EXTRACT_PREDICT_H
#define TRAX_EXTRACT_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PREDICT_ROWS 512u
#define PREDICT_AHEAD 1024u
/* Tracks with as many slips, as far apart, that are no defects. */
#define PREDICT_ODDS 5u

struct row {
	uint32_t tracks;	/* tracks, those without units included */
	uint32_t whole;		/* tracks where no zone ends; 0: not known */
	uint32_t size;		/* units of each track but the last */
	uint32_t less;		/* units that the last track has fewer */
	uint32_t was;		/* size of the row's counterpart in the zone
				 * before; 0: not known */
	uint32_t zone;		/* number of the zone */
	uint32_t seen;		/* times that its counterpart had that size */
	bool sure;		/* tracks of that size followed each other: it
				 * is none that slips have left */
	double scale;		/* sizes of the zone, relative to the first */
	double step;		/* angle from track to track */
	double cross;		/* from the last track before the row to its
				 * first; NAN: not known */
	double span;		/* revolutions that the units of a track
				 * cover */
};

/* A predicted track. */
struct ahead {
	uint64_t first;
	uint32_t size;
	uint32_t row;		/* 0: the present one, 1: the next ... */
	double start;
	double span;		/* of all its units */
	bool part;		/* perhaps only a part of a track */
	bool spares;		/* slips before it in its row or cylinder do
				 * not move its end */
};

struct predict {
	struct row past[PREDICT_ROWS];
	size_t n;
	struct row now;		/* tracks: so far */
	uint32_t expected;	/* its tracks in all; 0: no end in sight */
	size_t like;		/* the past row it corresponds to; n: none */
	size_t next;		/* that which was expected when it began */
	bool ragged;		/* it is not known how many tracks it had before
				 * the first */
	uint32_t cut;		/* tracks of rows at the end of the zone, all
				 * of which end early; 0: not there */
	double rate;		/* by which each track is later than its step
				 * says, */
	double cross_rate;	/* and each first one of a row */
	uint64_t first;		/* unit of the next track */
	double start;		/* its angle */

	/* Slips in the row or cylinder so far, that spares may absorb. */
	uint32_t slips;
	uint64_t passed;	/* tracks, and the last of them with slips */
	struct predict_odd {
		uint64_t track;
		uint32_t slips;
	} odd[PREDICT_ODDS];
	unsigned odds;

	bool hidden;		/* any track may have spares that absorb slips
				 * of others in its cylinder */
	bool uneven;		/* the tracks of a cylinder have been seen to
				 * differ */
	uint32_t pending;	/* slips of which it is not known yet whether
				 * spares absorb them, */
	uint32_t pending_left;	/* in so many tracks at most */
};

/*
 * The tracks to come, `max` at most, and the start of the one behind them.
 * Returns how many there are without that one.
 */
unsigned predict_ahead(const struct predict *predict, struct ahead *ahead,
		     unsigned max);

/* Where the size of the row behind those is not known: what it may be, 0:
 * nothing is known.  *cross: its angle from the last track; NAN: not known. */
uint32_t predict_guess(const struct predict *predict, double *cross);

/* The present row is over; another one, of which one track is known (tracks
 * 1), has begun. */
void predict_begin(struct predict *predict, const struct row *row);

/* The tracks of the present row so far had slips: others have that size. */
void predict_resize(struct predict *predict, uint32_t size);

/* Past one predicted track, which had `slips` units fewer than its size. */
void predict_pass(struct predict *predict, const struct ahead *track,
		uint32_t slips);

/* The present row goes on, though it should have ended. */
void predict_overrun(struct predict *predict);

/* The walk goes on at another unit: what was passed may come again there. */
void predict_break(struct predict *predict, uint64_t unit);

/* Are rows long, as far as is known?  Then tracks of other sizes are no rows. */
bool predict_is_long(const struct predict *predict);

/* Units that the last tracks of long rows have fewer, as a rule. */
uint32_t predict_spare(const struct predict *predict);

/* The next row begins later by that angle than predicted. */
void predict_crossed(struct predict *predict, double by);

/* What came before the present row is no help any more. */
void predict_forget(struct predict *predict);

/* Tracks after which rows come again; 0: not known. */
unsigned predict_cycle(const struct predict *predict);

/* Sizes that the next track may have; at most `max`. */
unsigned predict_sizes(const struct predict *predict, uint32_t *sizes, unsigned max);

/* Slips of a track: spares may absorb them within a cylinder. */
void predict_slipped(struct predict *predict, uint32_t slips);

/* They were absorbed. */
void predict_absorbed(struct predict *predict);

#endif
