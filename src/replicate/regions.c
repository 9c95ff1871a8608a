/*
 * regions.c - see regions.h: an array in order of address.
 */
#include "replicate/regions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "replicate/heat.h"

/* A region that is younger than this counts as used once. */
#define FRESH_SECONDS 3600u

struct replica_regions {
	struct replica_region *region;
	size_t n, room, most;
	uint64_t sectors;
};

struct replica_regions *regions_new(size_t most)
{
	struct replica_regions *regions = calloc(1, sizeof(*regions));

	if (regions)
		regions->most = most;
	return regions;
}

void regions_set_most(struct replica_regions *regions, size_t most)
{
	regions->most = most;
}

bool regions_full(const struct replica_regions *regions)
{
	return regions->n >= regions->most;
}

bool regions_over(const struct replica_regions *regions)
{
	return regions->n > regions->most;
}

void regions_free(struct replica_regions *regions)
{
	if (regions)
		free(regions->region);
	free(regions);
}

size_t regions_count(const struct replica_regions *regions)
{
	return regions->n;
}

uint64_t regions_sectors(const struct replica_regions *regions)
{
	return regions->sectors;
}

struct replica_region *regions_at(struct replica_regions *regions, size_t i)
{
	return i < regions->n ? &regions->region[i] : NULL;
}

size_t regions_index(const struct replica_regions *regions, uint64_t sector)
{
	size_t low = 0, high = regions->n;

	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct replica_region *r = &regions->region[mid];

		if (r->sector + r->sectors <= sector)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct replica_region *regions_find(struct replica_regions *regions,
				    uint64_t sector, uint64_t number)
{
	struct replica_region *r =
		regions_at(regions, regions_index(regions, sector));

	return r && r->sector == sector && r->number == number ? r : NULL;
}

static int regions_grow(struct replica_regions *regions)
{
	size_t room = regions->room ? 2 * regions->room : 64;
	struct replica_region *more =
		realloc(regions->region, room * sizeof(*more));

	if (!more)
		return -ENOMEM;
	regions->region = more;
	regions->room = room;
	return 0;
}

int regions_add(struct replica_regions *regions,
		const struct replica_region *region)
{
	size_t i = regions_index(regions, region->sector);
	const struct replica_region *next = regions_at(regions, i);

	if (next && next->sector < region->sector + region->sectors)
		return -EUCLEAN;
	if (regions->n == regions->room && regions_grow(regions))
		return -ENOMEM;
	memmove(&regions->region[i + 1], &regions->region[i],
		(regions->n - i) * sizeof(*region));
	regions->region[i] = *region;
	regions->n++;
	regions->sectors += region->sectors;
	return 0;
}

void regions_remove(struct replica_regions *regions, uint64_t sector)
{
	size_t i = regions_index(regions, sector);
	struct replica_region *r = regions_at(regions, i);

	if (!r || r->sector != sector)
		return;
	regions->sectors -= r->sectors;
	regions->n--;
	memmove(r, r + 1, (regions->n - i) * sizeof(*r));
}

double regions_worth(const struct replica_region *region, uint64_t now_seconds)
{
	uint64_t last = region->used_seconds > region->made_seconds ?
		region->used_seconds : region->made_seconds;
	double uses = region->uses, age = 0;

	if (!region->live && region->copies)
		return 0;
	if (now_seconds > last)
		age = (double)(now_seconds - last);
	if (!region->uses && age < FRESH_SECONDS)
		uses = 1;
	return (uses + 0.01) * exp2(-age / (7.0 * SECONDS_PER_DAY)) *
	       HEAT_BLOCK_SECTORS / region->sectors;
}

struct replica_region *regions_least(struct replica_regions *regions,
				     uint64_t from, uint64_t to,
				     uint64_t now_seconds)
{
	struct replica_region *least = NULL, *r;
	double worth, least_worth = 0;
	size_t i = regions_index(regions, from);

	for (; (r = regions_at(regions, i)) && r->sector < to; i++) {
		worth = regions_worth(r, now_seconds);
		if (least && worth >= least_worth)
			continue;
		least = r;
		least_worth = worth;
	}
	return least;
}
