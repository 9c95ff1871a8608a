/*
 * fuzz_csum.c - any bytes as a window of checksums: the encoding is unique.
 */
#include <assert.h>
#include <string.h>

#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t buf[TRAX_MAX_ITEM_BYTES];
	struct csum_window w;

	if (csum_window_decode(data, bytes, &w))
		return 0;
	assert(csum_window_encode(&w, buf) == bytes);
	assert(!memcmp(buf, data, bytes));
	return 0;
}
