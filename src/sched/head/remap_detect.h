/*
 * remap_detect.h - notices that a drive has moved the sectors of a track.
 *
 * Each reading of a known angle tells whether the track on which it was made is
 * where the geometry says.  A track that is off again and again by the same
 * part of a turn, while all others are right, has been moved by the drive.
 *
 * Pure memory, of a fixed size; a track that has been forgotten is noticed
 * later.
 */
#ifndef TRAX_HEAD_REMAP_DETECT_H
#define TRAX_HEAD_REMAP_DETECT_H

#include <stdbool.h>
#include <stdint.h>

#define REMAP_DETECT_TRACKS 64u	/* tracks that are remembered */

struct remap_detect {
	struct remap_detect_track {
		uint64_t number;	/* + 1; 0: none */
		double off;		/* by how much the first reading was
					 * off, in revolutions */
		unsigned times;
	} track[REMAP_DETECT_TRACKS];
	unsigned next;			/* entry to be overwritten next */
	uint64_t right;			/* right readings in a row, on any
					 * track */
};

/*
 * A reading on a track differs from its prediction by `off` revolutions.  True:
 * the track is not where the geometry says; its entry is dropped.
 */
bool remap_detect_see(struct remap_detect *detect, uint64_t track, double off);

#endif
