/*
 * pitch.h - how many sectors go round a track, where that was believed wrongly.
 *
 * Of tracks that hold fewer sectors than there is room for (spares), readings
 * at one end lie off those at the other.  Arithmetic only; revolutions.
 */
#ifndef TRAX_ANGLE_PITCH_H
#define TRAX_ANGLE_PITCH_H

#include <stddef.h>
#include <stdint.h>

/* A reading on a track, `part` of a revolution behind its first sector, `late`
 * against what is believed. */
struct pitch_read {
	uint64_t track;
	uint32_t sectors, around;	/* of the track */
	double part, late;
};

/* Tracks of that many sectors, of which so many are believed to go round. */
struct pitch {
	uint32_t sectors, around;
	uint32_t right;			/* so many do */
};

#define PITCH_MOST 256u

/*
 * Which are wrong; how many of them.  Reads by track, ascending; `noise`:
 * standard deviation of one; `unit`: sectors that go round are a multiple.
 */
size_t pitch_find(const struct pitch_read *read, size_t n, double noise,
		  uint32_t unit, struct pitch pitch[PITCH_MOST]);

#endif
