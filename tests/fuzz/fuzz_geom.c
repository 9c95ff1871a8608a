/*
 * fuzz_geom.c - any bytes as the record of a geometry; what is accepted can be
 * asked about any sector.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/le.h"
#include "base/msg.h"
#include "diskmodel/geom.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void make_checksum_right(uint8_t *buf, size_t bytes)
{
	/* Version 1 or 2. */
	const le32 head[2] = { le32_put(0x6d6f6567),
			       le32_put(1 + (buf[4] & 1)) };
	const le64 length = le64_put(bytes);
	le64 sum = le64_put(0);

	memcpy(buf, head, sizeof(head));
	memcpy(buf + 8, &length, sizeof(length));
	memcpy(buf + 56, &sum, sizeof(sum));
	sum = le64_put(csum(buf, bytes));
	memcpy(buf + 56, &sum, sizeof(sum));
}

static void ask(const struct geom *geom)
{
	const uint64_t sectors = geom_sectors(geom);
	const uint64_t step = sectors / 64 + 1;

	for (uint64_t lbn = 0; lbn < sectors; lbn += step) {
		struct geom_track t;
		struct geom_place p;

		geom_track_of(geom, lbn, &t);
		assert(t.first <= lbn && lbn - t.first < t.sectors);
		geom_place_of(geom, lbn, &p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct geom *geom;
	uint8_t *buf;

	if (bytes < 64)
		return 0;
	msg_set_sink(quiet, NULL);
	buf = malloc(bytes);
	if (!buf)
		return 0;
	memcpy(buf, data, bytes);
	make_checksum_right(buf, bytes);
	if (!geom_decode(buf, bytes, &geom)) {
		ask(geom);
		geom_free(geom);
	}
	free(buf);
	return 0;
}
