/*
 * fuzz_root.c - any bytes as a root block.
 */
#include <assert.h>
#include <string.h>

#include "base/csum.h"
#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define SECTOR 16u

static void make_checksum_right(uint8_t *buf)
{
	const le64 magic = le64_put(TRAX_ROOT_MAGIC);
	const le64 sector = le64_put(SECTOR);
	le64 sum;

	memcpy(buf, &magic, sizeof(magic));
	memcpy(buf + 8, &sector, sizeof(sector));
	memset(buf + 16, 0, 16);
	sum = le64_put(csum(buf, TRAX_BLOCK_BYTES - sizeof(sum)));
	memcpy(buf + TRAX_BLOCK_BYTES - sizeof(sum), &sum, sizeof(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const uint8_t uuid[16] = { 0 };
	uint8_t buf[TRAX_BLOCK_BYTES] = { 0 };
	struct root root, again;

	memcpy(buf, data, bytes < sizeof(buf) ? bytes : sizeof(buf));
	make_checksum_right(buf);
	if (root_decode(buf, uuid, SECTOR, &root))
		return 0;
	root_encode(&root, uuid, SECTOR, buf);
	assert(!root_decode(buf, uuid, SECTOR, &again));
	assert(root.cut_seq == again.cut_seq && root.gen == again.gen);
	return 0;
}
