/*
 * fuzz_super.c - any bytes as a superblock; what is accepted must come back
 * the same.
 */
#include <assert.h>
#include <string.h>

#include "base/csum.h"
#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void make_checksum_right(uint8_t *buf)
{
	const le64 magic = le64_put(TRAX_SUPER_MAGIC);
	const le64 sector = le64_put(TRAX_SUPER_SECTOR);
	le64 sum;

	memcpy(buf, &magic, sizeof(magic));
	memcpy(buf + 8, &sector, sizeof(sector));
	sum = le64_put(csum(buf, TRAX_BLOCK_BYTES - sizeof(sum)));
	memcpy(buf + TRAX_BLOCK_BYTES - sizeof(sum), &sum, sizeof(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint8_t buf[TRAX_BLOCK_BYTES] = { 0 };
	struct super super, again;

	memcpy(buf, data, bytes < sizeof(buf) ? bytes : sizeof(buf));
	make_checksum_right(buf);
	if (super_decode(buf, TRAX_SUPER_SECTOR, &super))
		return 0;
	assert(super_fixed_sectors(&super) < super.sectors);
	super_encode(&super, TRAX_SUPER_SECTOR, buf);
	assert(!super_decode(buf, TRAX_SUPER_SECTOR, &again));
	assert(super.log_tracks == again.log_tracks);
	assert(!memcmp(super.log, again.log, sizeof(super.log)));
	return 0;
}
