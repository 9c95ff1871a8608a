/*
 * map_state.h - the inside of a map, for the files map*.c.
 */
#ifndef TRAX_TRACK_MAP_STATE_H
#define TRAX_TRACK_MAP_STATE_H

#include "extract/track/gap.h"
#include "extract/track/map.h"
#include "extract/track/prove.h"
#include "extract/track/walk.h"

struct map {
	struct map_options options;
	struct reader reader;
	struct store store;
	struct walk walk;
	struct walk mender;	/* goes over what was wrong again */
	struct prove prove;
	bool dense;		/* all tracks are looked at */
	uint32_t largest;	/* units of a track */
	uint32_t chunk;		/* tracks before they are looked at */
	uint64_t doubt;		/* what is walked before this was measured */
	unsigned repeat;	/* reads for an angle that were enough, */
	unsigned sharpened;	/* and how often more of them were not */
	unsigned round;		/* tracks of unequal rounds, if some are; */
	bool looked;		/* what was mapped before was looked at */
	bool prepared;		/* reader calibrated, clock locked */
	bool anchored;
	struct store_track anchor; /* holds the clock */
	unsigned locks, strayed;
	double anchor_var;	/* of its start */
	/* What is being walked, and was not looked at; empty: all was. */
	uint64_t open_first, open_end;
	uint64_t report_end;	/* of what is being mapped */
	uint64_t deadline_ns;	/* 0: none */
	uint64_t told_ns;
	uint64_t spent_ns;
	uint64_t gaps_ns;	/* of that, on what others left unknown */
	uint64_t failed;
};

/* The unit that holds a sector; behind the last one the number of units. */
uint64_t map_unit_of(const struct map *map, uint64_t sector);

/* Corrects the clock if it is time, or `first`: whatever it takes.  0, or why
 * measuring must stop. */
int map_clock_hold(struct map *map, bool first);

/* To be called often: keeps the clock right, and reports.  Likewise. */
int map_tick(void *map);

/* A copy of what is known and was looked at, which is not yet so of what is
 * being walked.  The caller frees it.  -ENOMEM. */
int map_proven(const struct map *map, struct store *proven);

/* Lets the first known track hold the clock, unless one does. */
void map_clock_anchor(struct map *map);

/* The next gap from a unit on between tracks that are known. */
bool map_gaps_next(const struct map *map, uint64_t from, struct gap *gap);

/* Units of a gap that is looked at as such. */
uint64_t map_gaps_most(const struct map *map);

/* Looks again, closely, at what is unknown between known tracks in [from, end),
 * as long as that is worth it. */
int map_gaps_close(struct map *map, uint64_t from, uint64_t end);

#endif
