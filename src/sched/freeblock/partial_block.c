/*
 * partial_block.c - a tree of buffers, one for each unit of which a part is
 * held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "disk/disk.h"
#include "sched/freeblock/partial_block.h"

struct partial_block {
	struct interval interval;	/* the part of the unit that is held */
	char bytes[];
};

void partial_blocks_init(struct partial_blocks *parts, uint32_t unit_sectors,
			 uint64_t most_bytes)
{
	*parts = (struct partial_blocks){
		.unit_sectors = unit_sectors,
		.most = most_bytes / SECTOR_BYTES,
	};
}

void partial_blocks_fini(struct partial_blocks *parts)
{
	partial_blocks_drop(parts, 0, UINT64_MAX);
}

bool partial_blocks_have_room(const struct partial_blocks *parts)
{
	return parts->held + parts->unit_sectors <= parts->most;
}

/* Finds the first one at or after a sector. */
static struct partial_block *
partial_block_at(const struct partial_blocks *parts, uint64_t sector)
{
	struct interval *interval = interval_at_or_after(parts->root, sector);

	return interval ? container_of(interval, struct partial_block, interval)
			: NULL;
}

static void partial_block_remove(struct partial_blocks *parts,
				 struct partial_block *partial_block)
{
	interval_remove(&parts->root, &partial_block->interval);
	parts->held -=
		partial_block->interval.end - partial_block->interval.first;
	free(partial_block);
}

static struct partial_block *partial_block_new(uint64_t first, uint64_t end)
{
	struct partial_block *partial_block = malloc(sizeof(*partial_block) +
				   (end - first) * SECTOR_BYTES);

	if (partial_block)
		partial_block->interval = (struct interval){
			.first = first, .end = end, .order = first};
	return partial_block;
}

static void partial_block_put(struct partial_block *partial_block,
			      uint64_t first, uint64_t end, const void *bytes)
{
	memcpy(partial_block->bytes +
		       (first - partial_block->interval.first) * SECTOR_BYTES,
	       bytes, (end - first) * SECTOR_BYTES);
}

int partial_blocks_add(struct partial_blocks *parts, uint64_t sector,
		       uint32_t n, const void *bytes,
		       struct partial_block **whole)
{
	uint64_t unit = sector - sector % parts->unit_sectors;
	uint64_t first = sector, end = sector + n;
	struct partial_block *had = partial_block_at(parts, unit),
			     *partial_block = NULL;

	*whole = NULL;
	if (had && had->interval.first >= unit + parts->unit_sectors)
		had = NULL;
	if (had && had->interval.end != first && had->interval.first != end)
		return -ENOMEM;
	if (had && had->interval.first < first)
		first = had->interval.first;
	else if (had)
		end = had->interval.end;
	if (had || parts->held + n <= parts->most)
		partial_block = partial_block_new(first, end);
	if (!partial_block)
		return -ENOMEM;
	partial_block_put(partial_block, sector, sector + n, bytes);
	if (had) {
		partial_block_put(partial_block, had->interval.first,
				  had->interval.end, had->bytes);
		partial_block_remove(parts, had);
	}
	if (end - first == parts->unit_sectors) {
		*whole = partial_block;
		return 0;
	}
	interval_insert(&parts->root, &partial_block->interval);
	parts->held += end - first;
	return 0;
}

const void *partial_block_bytes(const struct partial_block *partial_block)
{
	return partial_block->bytes;
}

void partial_block_free(struct partial_block *partial_block)
{
	free(partial_block);
}

void partial_blocks_drop(struct partial_blocks *parts, uint64_t first,
			 uint64_t end)
{
	struct partial_block *partial_block;

	first -= first % parts->unit_sectors;
	while ((partial_block = partial_block_at(parts, first)) &&
	       partial_block->interval.first < end)
		partial_block_remove(parts, partial_block);
}
