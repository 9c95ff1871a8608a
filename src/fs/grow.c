/*
 * grow.c - what a larger file system consists of; tree_grow writes it.
 *
 * The four root areas are spread over what is new: their old places may be too
 * short for the group table, and the new root is not to overwrite the old one.
 * Log tracks and node tracks stay; node tracks are added when they are wanted.
 * The profile of the drive is dropped when it describes less than there is now:
 * the disk is another one.
 */
#include "fs/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/msg.h"
#include "fs/drive/profile_load.h"
#include "fs/fs.h"
#include "fs/mkfs.h"
#include "sched/queue/queue.h"
#include "tree/tree.h"

#define AREAS 4u	/* Number of root areas. */
/* Most sector ranges that change owner: each root area and the last superblock
 * at its old and its new place, and the room of the profile. */
#define CHANGES_MOST (2 * AREAS + 2 + 1)

struct growth_plan {
	struct super super;
	struct tree_change change[CHANGES_MOST];
	struct owner_item owner[CHANGES_MOST];
	unsigned n;
};

static void plan_owner(struct growth_plan *plan, uint64_t sector,
		       uint64_t sectors, enum owner_kind kind, bool is_new)
{
	struct owner_item *owner = &plan->owner[plan->n];

	owner->sectors = le64_put(sectors);
	owner->kind = (uint8_t)kind;
	plan->change[plan->n++] = (struct tree_change){
		.key = key_make(0, ITEM_OWNER, addr_make(0, sector)),
		.value = is_new ? owner : NULL,
		.bytes = sizeof(*owner),
	};
}

static void plan_areas(struct growth_plan *plan, const struct super *super,
		       bool are_new)
{
	for (unsigned i = 0; i < AREAS; i++)
		plan_owner(plan, super->area_sector[i / 2][i % 2],
			   super->area_sectors, OWNER_AREA, are_new);
}

static uint64_t round_up(uint64_t x, uint64_t unit)
{
	return (x + unit - 1) / unit * unit;
}

/* Puts a root area at the beginning of each quarter of the new room. */
static int place_areas(struct super *next, uint64_t from)
{
	const uint64_t unit = super_write_unit(next) / SECTOR_BYTES;
	const uint64_t part = (next->sectors - TRAX_BLOCK_SECTORS - from) /
			      AREAS;

	if (part < next->area_sectors + unit) {
		msg_error("%" PRIu64 " MiB more are too few to grow: it takes "
			  "%" PRIu64, (next->sectors - from) >> 11,
			  ((AREAS * (next->area_sectors + unit) +
			    TRAX_BLOCK_SECTORS) >> 11) + 1);
		return -ENOSPC;
	}
	for (unsigned i = 0; i < AREAS; i++)
		next->area_sector[i / 2][i % 2] = round_up(from + i * part,
							   unit);
	return 0;
}

/* Is the profile kept?  Sets *tracks to the number of its tracks or, without a
 * profile, of the pseudo-tracks that node tracks are made of. */
static bool keep_profile(struct disk *disk, const struct super *super,
			 uint64_t sectors, uint64_t *tracks)
{
	struct profile *profile;
	bool keep;

	*tracks = sectors / super->pseudo_track_sectors;
	if (!super->geom_sector ||
	    profile_record_read(disk, super, &profile))
		return false;
	keep = profile->sectors >= sectors;
	*tracks += geom_tracks(profile->geom);
	profile_free(profile);
	return keep;
}

static void drop_profile(struct growth_plan *plan, const char *name)
{
	const struct super_run run = super_geom_run(&plan->super);

	if (!run.sectors)
		return;
	msg_warn("%s: the profile of the drive describes fewer sectors than "
		 "there are now: dropped; traxtract(8) measures a new one",
		 name);
	plan_owner(plan, run.sector, run.sectors, OWNER_GEOM, false);
	plan->super.geom_sector = plan->super.room_sector = 0;
	plan->super.geom_bytes = plan->super.room_sectors = 0;
	plan->super.geom_csum = 0;
}

static int plan_growth(struct growth_plan *plan, struct disk *disk,
		       const struct super *super)
{
	struct super *next = &plan->super;
	uint64_t place[3], tracks;
	int rc;

	*next = *super;
	next->sectors = disk->limits.sectors -
			disk->limits.sectors % TRAX_BLOCK_SECTORS;
	super_places(super, place);
	plan_areas(plan, super, false);
	plan_owner(plan, place[2], TRAX_BLOCK_SECTORS, OWNER_SUPER, false);
	if (!keep_profile(disk, super, next->sectors, &tracks))
		drop_profile(plan, disk->name);
	next->area_sectors = mkfs_area_sectors(next->sectors, tracks);
	rc = place_areas(next, super->sectors);
	if (rc)
		return rc;
	super_places(next, place);
	plan_areas(plan, next, true);
	plan_owner(plan, place[2], TRAX_BLOCK_SECTORS, OWNER_SUPER, true);
	return 0;
}

/* Opens and closes the file system, which replays the log, destages its data,
 * and ends moves under way. */
static int make_clean(struct env *env, struct disk *disk)
{
	const struct fs_options options = { .read_only = false };
	struct fs *fs;
	bool read_only;
	int rc = fs_open(env, disk, &options, &fs);

	if (rc)
		return rc;
	read_only = fs_read_only(fs);
	rc = fs_close(fs);
	return rc ? rc : read_only ? -EROFS : 0;
}

int fs_grow(struct env *env, struct disk *disk, struct fs_grown *out)
{
	const struct queue_options queue_options = { 0 };
	struct growth_plan plan = { .n = 0 };
	struct queue *queue;
	struct tree *tree;
	int rc = make_clean(env, disk), rc2;

	if (!rc)
		rc = queue_open(env, disk, &queue_options, &queue);
	if (rc)
		return rc;
	rc = tree_open(env, queue, NULL, &tree);
	if (rc) {
		queue_close(queue);
		return rc;
	}
	out->was = out->now = tree_super(tree)->sectors;
	if (disk->limits.sectors >= out->was + TRAX_BLOCK_SECTORS) {
		rc = plan_growth(&plan, disk, tree_super(tree));
		if (!rc)
			rc = tree_grow(tree, &plan.super, plan.change, plan.n);
		out->now = plan.super.sectors;
	}
	if (rc)
		tree_abandon(tree);
	rc2 = rc ? 0 : tree_close(tree);
	queue_close(queue);
	return rc ? rc : rc2;
}
