/*
 * map_state.h - the inside of a map, for map.c and map_state.c.
 */
#ifndef TRAX_TRACK_MAP_STATE_H
#define TRAX_TRACK_MAP_STATE_H

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
	bool dense;		/* all tracks are looked at, */
	bool loose;		/* but not those that are known already */
	uint32_t largest;	/* units of a track */
	uint32_t chunk;		/* tracks before they are looked at */
	uint64_t doubt;		/* what is walked before this was measured */
	unsigned scouted;	/* how often leaps were measured */
	unsigned round;		/* tracks of unequal rounds, if some are; */
	bool looked;		/* what was mapped before was looked at */
	bool prepared;		/* reader calibrated, clock locked */
	bool anchored;
	struct store_track anchor; /* holds the clock */
	unsigned locks, strayed;
	double anchor_var;	/* of its start */
	uint64_t deadline_ns;	/* 0: none */
	uint64_t told_ns;
	uint64_t spent_ns;
	uint64_t gaps_ns;	/* of that, on what others left unknown */
	uint64_t checks, failed;
};

#endif
