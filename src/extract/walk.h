/*
 * walk.h - from track to track over a drive: skips, and what stops them.
 *
 * The walk has a frontier: the start of the next track, certain as to LBN and
 * known as to angle.  It adds the tracks that it passes to a store.
 */
#ifndef TRAX_EXTRACT_WALK_H
#define TRAX_EXTRACT_WALK_H

#include "extract/boundary.h"
#include "extract/line.h"
#include "extract/predict.h"
#include "extract/reader.h"
#include "extract/store.h"
#include "extract/track.h"

struct walk {
	struct reader *reader;
	struct store *store;
	struct predict predict;
	struct line line;	/* how certain its angles are */
	uint64_t limit;		/* unit; what is beyond it is mapped */
	bool there;		/* has a frontier: model.first */
	uint32_t guess;		/* size of a track elsewhere; 0: not known */
	double steady;		/* tracks since a row began that was measured */
	unsigned skip, skip_max; /* tracks that it skips at once */
	bool gone_now;		/* tracks without units follow the present */
	double apart;		/* tracks from one mispredict to the next,
				 * about */
	uint64_t event_at;	/* unit of the last mispredict */
	/* The last two tracks that were passed without having been measured,
	 * and from which unit on; passed: how many. */
	struct ahead last[2];
	uint64_t passed_from;
	unsigned passed;
	/* A track that was measured, the first of its row or one with slips:
	 * it is not proven as long as its row does not go on behind it.  Size
	 * 0: none. */
	struct track claim;
	uint32_t claim_nominal;	/* units without slips, */
	uint32_t claim_slips;	/* and slips in its row before it */
	bool claim_ends;	/* its row should end with it */
	bool claim_new;		/* a track of that size was not predicted */
	uint64_t odd_end;	/* unit behind the last track with fewer units */
	uint32_t odd_size;	/* than its row has, and how many it has */
	unsigned streak;	/* mispredicts without a skip between them */
	double last_start;	/* angle of the last track passed */
	struct ahead ahead[PREDICT_AHEAD + 1];
	unsigned known;		/* boundaries ahead that are predicted */
	/* Boundaries to be looked at for a skip. */
	struct look look[2 * PREDICT_AHEAD + 2];
	unsigned looks;
	bool right[PREDICT_AHEAD + 1];	/* low sides that were as predicted */
	double off[SIDES];	/* how late both sides of its end were */

	/* Statistics. */
	uint64_t leaps, events, slips, gone;
};

/*
 * Goes to a unit.  `on_track`: a track starts there; otherwise what is before
 * the first that does becomes unknown.
 */
int walk_begin(struct walk *walk, uint64_t unit, bool on_track);

/* On by one skip, or past one mispredict. */
int walk_step(struct walk *walk);

#endif
