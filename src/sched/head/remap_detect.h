/*
 * remap_detect.h - are the tracks where they were believed to be?
 *
 * Each reading of a known angle says so, or not, of the track it was made on.
 * One that is off again and again by the same part of a turn, while all others
 * are right, is not what it was: the drive has moved its sectors.
 *
 * Pure memory, of a fixed size; a track that has been forgotten is noticed
 * later.
 */
#ifndef TRAX_HEAD_REMAP_DETECT_H
#define TRAX_HEAD_REMAP_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#define REMAP_DETECT_TRACKS 64u	/* remembered */

struct remap_detect {
	struct remap_detect_track {
		uint64_t number;	/* + 1; 0: none */
		double off;		/* revolutions, of the first reading */
		unsigned times;
	} track[REMAP_DETECT_TRACKS];
	unsigned next;			/* entry to be overwritten next */
	uint64_t right;			/* readings in a row, anywhere */
};

/*
 * A reading on a track differs from its prediction by `off` revolutions.  True:
 * the track is not where the geometry says; its entry is dropped.
 */
bool remap_detect_see(struct remap_detect *detect, uint64_t track, double off);

#endif
