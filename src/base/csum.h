/*
 * csum.h - the checksum of everything on disk: XXH3, 64 bits (libxxhash).
 */
#ifndef TRAX_BASE_CSUM_H
#define TRAX_BASE_CSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t csum(const void *buf, size_t bytes);
uint64_t csum_seeded(const void *buf, size_t bytes, uint64_t seed);

#endif
