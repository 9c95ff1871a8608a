/*
 * heat.c - see heat.h.
 *
 * Halving every count would take long. Instead the amount that a request adds
 * doubles, and all counts are scaled down when it has become large.
 */
#include "replicate/heat.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/le.h"

/* Counters of pairs of blocks, found by a hash of both; and the count at which
 * all counts are scaled down, as they are floats. */
#define PAIRS 65536u
#define LARGE 1e15f
/* Counters of places in files, found by a hash, and the blocks of a place
 * (64 KiB): what is read again seldom begins at the same block, as part of it
 * was read ahead. */
#define PLACES 65536u
#define PLACE_BLOCKS 16u
#define SAVED_BYTES 27u		/* bytes of a stored read */
/* Unit of stored waits in microseconds: 16 bits then hold a second. */
#define WAIT_UNIT_US 16u
#define MOST_WAIT_US (UINT16_MAX * WAIT_UNIT_US)
#define MOST_BLOCKS 256u	/* most blocks of one stored read */

struct heat {
	uint32_t regions;
	float *count;
	float unit;		/* amount that one request adds */
	struct heat_read *read;	/* by number % HEAT_READS */
	uint64_t end;
	uint8_t pair[PAIRS];
	uint8_t place[PLACES];
};

struct saved_read {
	le64 ino, block;
	le32 blocks;
	le32 sector_low;	/* in blocks: 16 TiB are enough for advice */
	uint8_t flags;		/* 1 begin, 2 copied, 4 from_copy, 8 judged */
	le16 wait;		/* in units of 16 us */
};
static_assert(sizeof(struct saved_read) == SAVED_BYTES, "saved_read");

int heat_new(uint64_t sectors, struct heat **out)
{
	struct heat *heat = calloc(1, sizeof(*heat));

	if (!heat)
		return -ENOMEM;
	heat->regions = (uint32_t)((sectors + HEAT_REGION_SECTORS - 1) /
				   HEAT_REGION_SECTORS);
	heat->unit = 1;
	heat->count = calloc(heat->regions, sizeof(*heat->count));
	heat->read = calloc(HEAT_READS, sizeof(*heat->read));
	if (!heat->count || !heat->read) {
		heat_free(heat);
		return -ENOMEM;
	}
	*out = heat;
	return 0;
}

void heat_free(struct heat *heat)
{
	if (!heat)
		return;
	free(heat->count);
	free(heat->read);
	free(heat);
}

/* ---- By region ---- */

void heat_count(struct heat *heat, uint64_t sector, uint32_t sectors)
{
	uint64_t region = (sector + sectors / 2) / HEAT_REGION_SECTORS;
	uint32_t i;

	if (region >= heat->regions)
		return;
	heat->count[region] += heat->unit;
	heat->unit *= exp2f(1.0f / HEAT_HALF);
	if (heat->unit < LARGE)
		return;
	for (i = 0; i < heat->regions; i++)
		heat->count[i] /= heat->unit;
	heat->unit = 1;
}

uint32_t heat_regions(const struct heat *heat)
{
	return heat->regions;
}

double heat_region(const struct heat *heat, uint32_t region)
{
	return region < heat->regions ? heat->count[region] / heat->unit : 0;
}

uint64_t heat_hot(const struct heat *heat)
{
	float sum, most = 0;
	uint32_t i, hot = 0;

	for (i = 0; i < heat->regions; i++) {
		sum = 2 * heat->count[i];
		if (i)
			sum += heat->count[i - 1];
		if (i + 1 < heat->regions)
			sum += heat->count[i + 1];
		if (sum > most) {
			most = sum;
			hot = i;
		}
	}
	return (uint64_t)hot * HEAT_REGION_SECTORS;
}

/* ---- In order ---- */

static uint8_t *pair_of(const struct heat *heat, const struct heat_read *a,
			const struct heat_read *b)
{
	const uint64_t tuple[4] = { a->ino, a->block, b->ino, b->block };

	return (uint8_t *)&heat->pair[csum(tuple, sizeof(tuple)) % PAIRS];
}

unsigned heat_pairs(const struct heat *heat, const struct heat_read *a,
		    const struct heat_read *b)
{
	return *pair_of(heat, a, b);
}

uint64_t heat_first(const struct heat *heat)
{
	return heat->end > HEAT_READS ? heat->end - HEAT_READS : 0;
}

uint64_t heat_end(const struct heat *heat)
{
	return heat->end;
}

const struct heat_read *heat_at(const struct heat *heat, uint64_t number)
{
	if (number >= heat->end || number < heat_first(heat))
		return NULL;
	return &heat->read[number % HEAT_READS];
}

static uint8_t *place_of(const struct heat *heat, const struct heat_read *read)
{
	const uint64_t tuple[2] = { read->ino, read->block / PLACE_BLOCKS };

	return (uint8_t *)&heat->place[csum(tuple, sizeof(tuple)) % PLACES];
}

unsigned heat_times(const struct heat *heat, const struct heat_read *read)
{
	return *place_of(heat, read);
}

/* The oldest read gives way to a new one, and counts no more. */
static void heat_drop_first(struct heat *heat)
{
	const struct heat_read *first = heat_at(heat, heat->end - HEAT_READS);
	const struct heat_read *next = heat_at(heat,
					       heat->end - HEAT_READS + 1);
	uint8_t *pair = pair_of(heat, first, next);
	uint8_t *place = place_of(heat, first);

	*place -= *place > 0;
	if (!next->begin)
		*pair -= *pair > 0;
}

uint64_t heat_add(struct heat *heat, const struct heat_read *read)
{
	const struct heat_read *before = heat->end ?
		heat_at(heat, heat->end - 1) : NULL;
	uint8_t *place = place_of(heat, read), *pair;

	*place += *place < UINT8_MAX;
	if (before && !read->begin) {
		pair = pair_of(heat, before, read);
		*pair += *pair < UINT8_MAX;
	}
	if (heat->end >= HEAT_READS)
		heat_drop_first(heat);
	heat->read[heat->end % HEAT_READS] = *read;
	return heat->end++;
}

bool heat_extend(struct heat *heat, const struct heat_read *read)
{
	struct heat_read *last = heat->end ?
		&heat->read[(heat->end - 1) % HEAT_READS] : NULL;

	if (!last || last->ino != read->ino ||
	    last->block + last->blocks != read->block ||
	    last->sector + last->blocks * HEAT_BLOCK_SECTORS != read->sector ||
	    last->copied != read->copied ||
	    last->blocks + read->blocks > MOST_BLOCKS)
		return false;
	last->blocks += read->blocks;
	return true;
}

void heat_found(struct heat *heat, uint64_t number, uint64_t sector,
		uint64_t wait_us, bool from_copy)
{
	struct heat_read *read = (struct heat_read *)heat_at(heat, number);

	if (!read)
		return;
	read->sector = sector;
	read->wait_us = wait_us < MOST_WAIT_US ? (uint32_t)wait_us :
						 MOST_WAIT_US;
	read->from_copy = from_copy;
}

/* ---- Storing ---- */

size_t heat_save(const struct heat *heat, unsigned part, uint64_t judged,
		 void *buf)
{
	const uint64_t each = HEAT_PART_BYTES / SAVED_BYTES;
	uint64_t number = heat_first(heat) + part * each, n = 0;
	struct saved_read *to = buf;
	const struct heat_read *read;

	for (; n < each && (read = heat_at(heat, number)); n++, number++)
		to[n] = (struct saved_read){
			.ino = le64_put(read->ino),
			.block = le64_put(read->block),
			.blocks = le32_put(read->blocks),
			.sector_low = le32_put((uint32_t)(read->sector /
							  HEAT_BLOCK_SECTORS)),
			.flags = (uint8_t)(read->begin | read->copied << 1 |
					   read->from_copy << 2 |
					   (number < judged) << 3),
			.wait = le16_put((uint16_t)(read->wait_us /
						    WAIT_UNIT_US)),
		};
	return n * sizeof(*to);
}

uint64_t heat_load(struct heat *heat, const void *buf, size_t bytes)
{
	const struct saved_read *from = buf;
	uint64_t judged = 0;
	size_t i;

	for (i = 0; i < bytes / sizeof(*from); i++) {
		struct heat_read read = {
			.ino = le64_get(from[i].ino),
			.block = le64_get(from[i].block),
			.blocks = le32_get(from[i].blocks),
			.sector = (uint64_t)le32_get(from[i].sector_low) *
				  HEAT_BLOCK_SECTORS,
			.wait_us = le16_get(from[i].wait) * WAIT_UNIT_US,
			.begin = from[i].flags & 1,
			.copied = from[i].flags & 2,
			.from_copy = from[i].flags & 4,
		};

		if (!read.ino || !read.blocks)
			continue;
		heat_add(heat, &read);
		heat_count(heat, read.sector, read.blocks * HEAT_BLOCK_SECTORS);
		judged += from[i].flags >> 3 & 1;
	}
	return judged;
}
