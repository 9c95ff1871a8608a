/*
 * fuzz_profile.c - any bytes as the record of a profile; what is accepted can
 * be asked about any sector, and is the same when it is written again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/le.h"
#include "base/msg.h"
#include "diskmodel/profile.h"

#define HEAD_BYTES 424u
#define CSUM_AT 16
#define GEOM_BYTES_AT 124
#define GEOM_CSUM_AT 56

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void sum_at(uint8_t *buf, size_t bytes, size_t at)
{
	le64 sum = le64_put(0);

	memcpy(buf + at, &sum, sizeof(sum));
	sum = le64_put(csum(buf, bytes));
	memcpy(buf + at, &sum, sizeof(sum));
}

/* The record of the geometry is the last part, as it is without a state of
 * measuring. */
static void make_checksums_right(uint8_t *buf, size_t bytes)
{
	const le32 head[2] = { le32_put(0x666f7270), le32_put(1) };
	/* Version 1 or 2. */
	const le32 geom[2] = { le32_put(0x6d6f6567),
			       le32_put(1 + (buf[bytes - 1] & 1)) };
	const le64 length = le64_put(bytes);
	le32 n;
	le64 n64;

	memcpy(buf, head, sizeof(head));
	memcpy(buf + 8, &length, sizeof(length));
	memcpy(&n, buf + GEOM_BYTES_AT, sizeof(n));
	if (le32_get(n) >= 64 && le32_get(n) <= bytes - HEAD_BYTES) {
		uint8_t *at = buf + bytes - le32_get(n);

		n64 = le64_put(le32_get(n));
		memcpy(at, geom, sizeof(geom));
		memcpy(at + 8, &n64, sizeof(n64));
		sum_at(at, le32_get(n), GEOM_CSUM_AT);
	}
	sum_at(buf, bytes, CSUM_AT);
}

static void ask(const struct profile *profile)
{
	const uint64_t step = profile->sectors / 64 + 1;
	struct geom_track t;
	size_t bytes;
	void *buf;

	for (uint64_t lbn = 0; lbn < profile->sectors; lbn += step) {
		geom_track_of(profile->geom, lbn, &t);
		assert(t.first <= lbn && lbn - t.first < t.sectors);
	}
	assert(geom_known_sectors(profile->geom) <= profile->sectors);
	if (profile_encode(profile, &buf, &bytes))
		return;
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct profile *profile;
	uint8_t *buf;

	if (bytes < HEAD_BYTES)
		return 0;
	msg_set_sink(quiet, NULL);
	buf = malloc(bytes);
	if (!buf)
		return 0;
	memcpy(buf, data, bytes);
	make_checksums_right(buf, bytes);
	if (!profile_decode(buf, bytes, &profile)) {
		ask(profile);
		profile_free(profile);
	}
	free(buf);
	return 0;
}
