/* Shows XXH3_state_t: a state on the stack. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "base/csum.h"

uint64_t csum(const void *buf, size_t bytes)
{
	return XXH3_64bits(buf, bytes);
}

uint64_t csum_seeded(const void *buf, size_t bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(buf, bytes, seed);
}

uint64_t csum_iov(const struct iovec *iov, unsigned n)
{
	XXH3_state_t state;
	unsigned i;

	XXH3_64bits_reset(&state);
	for (i = 0; i < n; i++)
		XXH3_64bits_update(&state, iov[i].iov_base, iov[i].iov_len);
	return XXH3_64bits_digest(&state);
}
