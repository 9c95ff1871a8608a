/*
 * fuzz_slotmap.c - any bytes as the slot map of a root; what is accepted is
 * saved as the same bytes.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "space/space.h"

#define SECTORS 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void check_saved(struct space *space, const uint8_t *data, size_t bytes)
{
	uint32_t map_bytes, group_bytes;
	void *payload;

	assert(!space_cut(space, &payload, &map_bytes, &group_bytes));
	assert(map_bytes == bytes);
	assert(!bytes || !memcmp(payload, data, bytes));
	free(payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	const struct group_item group = { le32_put(SECTORS), le32_put(0) };
	struct space *space;

	msg_set_sink(quiet, NULL);
	if (space_new(SECTORS, &space))
		return 0;
	if (!space_load_root(space, data, bytes, &group, sizeof(group)))
		check_saved(space, data, bytes);
	space_free(space);
	return 0;
}
