/*
 * random.h - pseudo-random numbers that are the same from the same seed.  Not
 * for secrets.
 */
#ifndef TRAX_BASE_RANDOM_H
#define TRAX_BASE_RANDOM_H

#include <stdint.h>

/* Mixes a number, so that each bit of it changes half of the result's bits (the
 * finalizer of splitmix64). */
static inline uint64_t random_mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Returns the next number of a sequence (splitmix64). */
static inline uint64_t random_next(uint64_t *state)
{
	return random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Returns the next number of a sequence as one in [0, 1). */
static inline double random_part(uint64_t *state)
{
	return (double)(random_next(state) >> 11) * 0x1p-53;
}

#endif
