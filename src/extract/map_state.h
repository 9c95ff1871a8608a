/*
 * map_state.h - the inside of a map, for map.c and map_state.c.
 */
#ifndef TRAX_EXTRACT_MAP_STATE_H
#define TRAX_EXTRACT_MAP_STATE_H

#include "extract/map.h"
#include "extract/prove.h"
#include "extract/walk.h"

struct map {
	struct map_options options;
	struct reader reader;
	struct store store;
	struct walk walk;
	struct prove prove;
	uint32_t largest;	/* units of a track */
	unsigned scouted;	/* how often leaps were measured */
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
