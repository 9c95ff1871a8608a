/*
 * partial_block.c - a tree of buffers, one for each unit of which a run is
 * held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "disk/disk.h"
#include "sched/freeblock/partial_block.h"

struct part {
	struct span span;	/* what is held of the unit */
	char bytes[];
};

void parts_init(struct parts *parts, uint32_t unit_sectors, uint64_t most_bytes)
{
	*parts = (struct parts){
		.unit_sectors = unit_sectors,
		.most = most_bytes / SECTOR_BYTES,
	};
}

void parts_fini(struct parts *parts)
{
	parts_drop(parts, 0, UINT64_MAX);
}

bool parts_have_room(const struct parts *parts)
{
	return parts->held + parts->unit_sectors <= parts->most;
}

/* The first at or after a sector. */
static struct part *part_at(const struct parts *parts, uint64_t sector)
{
	struct span *span = span_at_or_after(parts->root, sector);

	return span ? container_of(span, struct part, span) : NULL;
}

static void part_remove(struct parts *parts, struct part *part)
{
	span_remove(&parts->root, &part->span);
	parts->held -= part->span.end - part->span.first;
	free(part);
}

static struct part *part_new(uint64_t first, uint64_t end)
{
	struct part *part = malloc(sizeof(*part) +
				   (end - first) * SECTOR_BYTES);

	if (part)
		part->span = (struct span){ .first = first, .end = end,
					    .order = first };
	return part;
}

static void part_put(struct part *part, uint64_t first, uint64_t end,
		     const void *bytes)
{
	memcpy(part->bytes + (first - part->span.first) * SECTOR_BYTES, bytes,
	       (end - first) * SECTOR_BYTES);
}

int parts_add(struct parts *parts, uint64_t sector, uint32_t n,
	      const void *bytes, struct part **whole)
{
	uint64_t unit = sector - sector % parts->unit_sectors;
	uint64_t first = sector, end = sector + n;
	struct part *had = part_at(parts, unit), *part = NULL;

	*whole = NULL;
	if (had && had->span.first >= unit + parts->unit_sectors)
		had = NULL;
	if (had && had->span.end != first && had->span.first != end)
		return -ENOMEM;
	if (had && had->span.first < first)
		first = had->span.first;
	else if (had)
		end = had->span.end;
	if (had || parts->held + n <= parts->most)
		part = part_new(first, end);
	if (!part)
		return -ENOMEM;
	part_put(part, sector, sector + n, bytes);
	if (had) {
		part_put(part, had->span.first, had->span.end, had->bytes);
		part_remove(parts, had);
	}
	if (end - first == parts->unit_sectors) {
		*whole = part;
		return 0;
	}
	span_insert(&parts->root, &part->span);
	parts->held += end - first;
	return 0;
}

const void *part_bytes(const struct part *part)
{
	return part->bytes;
}

void part_free(struct part *part)
{
	free(part);
}

void parts_drop(struct parts *parts, uint64_t first, uint64_t end)
{
	struct part *part;

	first -= first % parts->unit_sectors;
	while ((part = part_at(parts, first)) && part->span.first < end)
		part_remove(parts, part);
}
