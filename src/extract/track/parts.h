/*
 * parts.h - the straight stretches of a gap.
 *
 * What gap.h and rows.h put together to tracks.  Units and angles as in
 * reader.h.
 */
#ifndef TRAX_TRACK_PARTS_H
#define TRAX_TRACK_PARTS_H

#include "extract/track/gap.h"
#include "extract/track/segment.h"
#include "extract/track/span.h"

#define PARTS_MOST (GAP_TRACKS / 2 - 1)
#define PARTS_CUTS 8u
/* Revolutions: a stretch is a turn, a few are. */
#define PARTS_TURN_OFF 0.006
#define PARTS_TURNS_OFF 0.01
/* So few may be the first or last of a track, and lie among the spares. */
#define PARTS_FEW_UNITS 4u
/* Pitches that hardly differ. */
#define PARTS_PITCH_SAME 0.008
/* Of slipped sectors in a row. */
#define PARTS_SLIPPED_MOST 0.3
/* A track with the whole of a turn, whatever slipped. */
#define PARTS_WHOLE_LEAST (1 - PARTS_SLIPPED_MOST)

enum part_kind { PART_SHORT, PART_WHOLE, PART_STRANGE };

struct part {
	struct segment s;
	double turns;
	double jump;		/* from its end to the next one's start */
	bool broken;		/* the head moves behind it */
	bool few;		/* units that may lie elsewhere */
	enum part_kind kind;
};

struct parts {
	struct reader *r;
	const struct gap *gap;
	struct part part[PARTS_MOST];
	unsigned n;
	bool all;		/* up to the end of the gap */
	uint64_t cut[PARTS_CUTS];	/* ends without a leap */
	unsigned cuts;
	double spared;		/* units of a turn that are spares */
};

/* All stretches from the beginning on, as far as they can be told.  `r`, `gap`
 * and the cuts are set.  0, or why measuring must stop. */
int parts_measure(struct parts *parts);

/* Looks closely at the neighbours of the gap that parts->gap is: where they
 * are, and how many units of a turn are spares.  Likewise. */
int parts_sharpen(struct parts *parts, struct gap *gap);

/* Where a stretch does not go on although there is no leap.  Likewise. */
int parts_break(struct parts *parts, const struct segment *s,
		struct span_end *end);

/* A stretch ends there without a leap: false, if that is not clear or there are
 * too many such. */
bool parts_cut(struct parts *parts, const struct span_end *end);

/* Are the tracks on both sides alike, as in the middle of a zone? */
bool parts_between_alike(const struct gap *gap);

/* Is there room on one track for parts [from, to), and for what slipped between
 * them, by the pitch of a neighbour like it? */
bool parts_fit(const struct parts *parts, unsigned from, unsigned to);

bool parts_is_turn(const struct parts *parts, double turns, double pitch);

/* Is it clear that part i goes on elsewhere? */
bool parts_leap(const struct parts *parts, unsigned i);

/* Have they other pitches, as in other zones or on other surfaces?  As sure as
 * so many standard deviations. */
bool parts_differ(const struct part *a, const struct part *b, double sigmas);

#endif
