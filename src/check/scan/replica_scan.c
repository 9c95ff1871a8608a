/*
 * replica_scan.c - replicas: regions and their owners, lists, and what points
 * there.
 *
 * The items of regions pass before those of files, so each REPLICA item can be
 * judged when it passes: where its region is there with the same number the
 * copy counts, and is remembered for data_sums.c, which compares it with its
 * original's checksum.  One of a region that is gone means nothing.
 */
#include "check/scan/check_internal.h"

struct region_seen {
	uint64_t sector, n, number;
};

void copies_begin(struct check *check)
{
	vec_init(&check->copies.regions, sizeof(struct region_seen));
	vec_init(&check->copies.list, sizeof(struct copy_seen));
	check->copies.at = 0;
}

void copies_free(struct check *check)
{
	vec_fini(&check->copies.regions);
	vec_fini(&check->copies.list);
}

static void region_report(struct check *check, uint64_t sector, const char *why)
{
	problem_report(check, PROBLEM_COPY_REGION,
		       (struct problem_place){ .sector = sector },
		       (unsigned long long)sector, why);
}

/* The region that holds a sector; NULL: none. */
static const struct region_seen *region_of(const struct check *check,
					   uint64_t sector)
{
	const struct vec *regions = &check->copies.regions;
	size_t low = 0, high = regions->n;
	const struct region_seen *r;

	while (low < high) {
		size_t mid = (low + high) / 2;

		r = vec_at(regions, mid);
		if (r->sector <= sector)
			low = mid + 1;
		else
			high = mid;
	}
	r = low ? vec_at(regions, low - 1) : NULL;
	return r && sector < r->sector + r->n ? r : NULL;
}

void copies_system(struct check *check, struct key key, const void *value,
		   size_t bytes)
{
	const struct region_item *item = value;
	const struct copy_entry *list = value;
	uint64_t sector = addr_sector(key.off), blocks = 0;
	const struct region_seen *region;
	struct region_seen *seen;
	size_t i;

	if (key.type == ITEM_REGION) {
		seen = check_add(check, &check->copies.regions);
		if (seen)
			*seen = (struct region_seen){
				sector, le32_get(item->sectors),
				le64_get(item->number),
			};
		return;
	}
	for (i = 0; i < bytes / sizeof(*list); i++)
		blocks += le16_get(list[i].blocks);
	region = region_of(check, sector);
	if (!region || sector + blocks * TRAX_BLOCK_SECTORS >
		       region->sector + region->n)
		region_report(check, sector, "a list lies outside of it");
}

void copies_replica(struct check *check, const struct inode_state *now,
		    uint64_t off, const struct replica_item *item)
{
	uint64_t sector = addr_sector(le64_get(item->addr));
	uint64_t block = off / TRAX_MAX_REPLICAS;
	unsigned blocks = le16_get(item->blocks);
	const struct region_seen *region = region_of(check, sector);
	struct copy_seen *copy;
	const char *why = NULL;

	if (!region || region->number != le64_get(item->number))
		return;
	if (region->sector != addr_sector(le64_get(item->region)) ||
	    sector + blocks * TRAX_BLOCK_SECTORS > region->sector + region->n)
		why = "does not lie in its region";
	else if (now->have &&
		 !(le32_get(now->item.flags) & INODE_HAS_COPIES))
		why = "is not told by its inode";
	if (why) {
		copies_wrong(check, now->ino, block, sector, why);
		return;
	}
	copy = check_add(check, &check->copies.list);
	if (copy)
		*copy = (struct copy_seen){ now->ino, block, sector, blocks };
}

void copies_wrong(struct check *check, uint64_t ino, uint64_t block,
		  uint64_t sector, const char *why)
{
	problem_report(check, PROBLEM_COPY_WRONG,
		       (struct problem_place){ ino, sector },
		       (unsigned long long)ino,
		       (unsigned long long)block * TRAX_BLOCK_BYTES,
		       (unsigned long long)sector, why);
}

/* Regions and owners of kind replica say the same; both are in order. */
void copies_finish(struct check *check)
{
	const struct vec *fixed = &check->owners.fixed;
	const struct vec *regions = &check->copies.regions;
	size_t i = 0, k;

	for (k = 0; k < fixed->n; k++) {
		const struct claim *claim = vec_at(fixed, k);
		const struct region_seen *r;

		if (claim->kind != OWNER_REPLICA)
			continue;
		for (; i < regions->n; i++) {
			r = vec_at(regions, i);
			if (r->sector >= claim->sector)
				break;
			region_report(check, r->sector, "it has no owner");
		}
		r = i < regions->n ? vec_at(regions, i) : NULL;
		if (!r || r->sector != claim->sector) {
			region_report(check, claim->sector, "it has no item");
			continue;
		}
		if (r->n != claim->n)
			region_report(check, r->sector,
				      "its owner has another length");
		i++;
	}
	for (; i < regions->n; i++) {
		const struct region_seen *r = vec_at(regions, i);

		region_report(check, r->sector, "it has no owner");
	}
}
