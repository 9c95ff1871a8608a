/*
 * regions.h - the regions that hold copies, in memory: where they are, how much
 * they are used, and which of them goes first.
 *
 * A region is a run of sectors inside one track (format.h).  Complete while
 * mounted; about 64 bytes each, which is less than one byte for each block
 * copied where a region is a track.  Pure memory.
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
	uint32_t copies;	/* made in it */
	uint32_t live;		/* of these, not known to be dropped */
	uint32_t uses;		/* reads served by it */
	uint32_t saved_uses;	/* of these, known to the tree */
	uint64_t used_seconds, made_seconds;
};

struct replica_regions;

struct replica_regions *regions_new(void);	/* NULL: no memory */
void regions_free(struct replica_regions *regions);

/* Adds one that meets no other.  -ENOMEM, -EUCLEAN: it meets one. */
int regions_add(struct replica_regions *regions,
		const struct replica_region *region);
void regions_remove(struct replica_regions *regions, uint64_t sector);

size_t regions_count(const struct replica_regions *regions);
uint64_t regions_sectors(const struct replica_regions *regions);
/* In order of address; valid until the next add or remove. */
struct replica_region *regions_at(struct replica_regions *regions, size_t i);
/* The region that begins at this sector and has this number; NULL: gone. */
struct replica_region *regions_find(struct replica_regions *regions,
				    uint64_t sector, uint64_t number);
/* Index of the first that ends behind this sector. */
size_t regions_index(const struct replica_regions *regions, uint64_t sector);

/*
 * What a region is worth: uses, halved for each week since the last one, for
 * each block that it takes.  One that was made within the last hour and not
 * used yet counts as used once.
 */
double regions_worth(const struct replica_region *region, uint64_t now_seconds);
/* The one of least worth in [from, to); NULL: none. */
struct replica_region *regions_least(struct replica_regions *regions,
				     uint64_t from, uint64_t to,
				     uint64_t now_seconds);

#endif
