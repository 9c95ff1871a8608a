/*
 * csum.c - see csum.h: calls of libxxhash.
 */
#include "base/csum.h"

#include <xxhash.h>

uint64_t csum(const void *buf, size_t bytes)
{
	return XXH3_64bits(buf, bytes);
}

uint64_t csum_seeded(const void *buf, size_t bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(buf, bytes, seed);
}

