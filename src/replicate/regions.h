/*
 * regions.h - the regions that hold replicas, in memory: where they are, how
 * much they are used, and which of them is dropped first.
 *
 * A region is a run of sectors inside one track (format.h). The table is
 * complete while mounted; an entry has about 64 bytes, which is less than one
 * byte for each block copied where a region is a track. It has a budget: when
 * it is full, those of least worth give way. Pure memory.
 *
 * Units: sectors, seconds since 1970.
 */
#ifndef TRAX_REPLICATE_REGIONS_H
#define TRAX_REPLICATE_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replica_region {
	uint64_t sector;
	uint64_t number;	/* see region_item */
	uint32_t sectors;
	uint32_t copies;	/* replicas made in it */
	uint32_t live;		/* replicas not known to be dropped */
	uint32_t uses;		/* reads that it served */
	uint64_t used_seconds, made_seconds;
};

struct replica_regions;

/* `most`: number of regions that may be made, so that the memory is bounded;
 * those that the disk has are known in any case.  NULL: no memory. */
struct replica_regions *regions_new(size_t most);
void regions_set_most(struct replica_regions *regions, size_t most);
void regions_free(struct replica_regions *regions);

/* Adds a region. -EUCLEAN: it overlaps another one; -ENOMEM. */
int regions_add(struct replica_regions *regions,
		const struct replica_region *region);
void regions_remove(struct replica_regions *regions, uint64_t sector);

size_t regions_count(const struct replica_regions *regions);
/* regions_full: may no more be made? regions_over: are there more than that? */
bool regions_full(const struct replica_regions *regions);
bool regions_over(const struct replica_regions *regions);
uint64_t regions_sectors(const struct replica_regions *regions);
/* The i-th region by address; valid until the next add or remove. */
struct replica_region *regions_at(struct replica_regions *regions, size_t i);
/* The region that begins at this sector and has this number; NULL: there is
 * none any more. */
struct replica_region *regions_find(struct replica_regions *regions,
				    uint64_t sector, uint64_t number);
/* Index of the first region that ends behind this sector. */
size_t regions_index(const struct replica_regions *regions, uint64_t sector);

/*
 * What a region is worth: uses, halved for each week since the last one, for
 * each block that it takes.  One that was made within the last hour and not
 * used yet counts as used once.
 */
double regions_worth(const struct replica_region *region, uint64_t now_seconds);
/* The region of least worth in [from, to); NULL: there is none. */
struct replica_region *regions_least(struct replica_regions *regions,
				     uint64_t from, uint64_t to,
				     uint64_t now_seconds);

#endif
