/*
 * fs_trim.c - see fs_trim.h.
 *
 * What was deleted is free only with the next checkpoint: that comes first.
 * Then it goes from one run of free sectors to the next, at most SLICE_SECTORS
 * at a time: they are taken, so that no allocation gets them, discarded, and
 * given back.  Groups whose free set is not in memory are loaded on the way.
 * Discards do not go through the queue, as no other request concerns these
 * sectors meanwhile.
 */
#include "fs/drive/fs_trim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rangeset.h"

/* Sectors discarded at a time, 16 MiB: the disk has done it before a user waits
 * long. */
#define SLICE_SECTORS (16u << 11)
#define RUNS_OF_A_TURN 64u	/* too short runs that one turn passes over */

struct trim {
	struct fs *fs;
	struct fs_op *op;
	uint64_t at, end;	/* sectors */
	uint64_t least;		/* least sectors of a run that is discarded */
	uint64_t unit;		/* sectors to which the ends of a discard are
				 * aligned */
	struct range slice;	/* range that is discarded now */
	bool waiting;		/* it waits for the disk, for a group or for the
				 * checkpoint */
	struct waiter waiter;
	struct disk_request req;
};

static void trim_over(struct trim *trim, int rc)
{
	struct fs *fs = trim->fs;
	struct fs_op *op = trim->op;

	fs->trim = NULL;
	free(trim);
	fs_answer(fs, op, rc);
}

static void trim_discarded(struct disk_request *req)
{
	struct trim *trim = req->owner;

	space_give_back(tree_space(trim->fs->tree), trim->slice.first,
			trim->slice.n);
	trim->waiting = false;
	if (req->result)
		trim_over(trim, req->result);
	else
		trim->op->result += trim->slice.n * SECTOR_BYTES;
}

static int trim_slice(struct trim *trim, uint64_t first, uint64_t n)
{
	struct fs *fs = trim->fs;
	int rc = space_take(tree_space(fs->tree), first, n);

	if (rc)
		return rc;
	trim->slice = (struct range){ first, n };
	trim->waiting = true;
	trim->req = (struct disk_request){
		.sector = first, .sectors = (uint32_t)n,
		.done = trim_discarded, .owner = trim,
	};
	disk_discard(fs->disk, &trim->req);
	return 0;
}

/* The checkpoint, or a group. */
static void trim_waited(struct waiter *waiter, int rc)
{
	struct trim *trim = waiter->owner;

	trim->waiting = false;
	if (rc)
		trim_over(trim, rc);
}

static void trim_wait(struct trim *trim)
{
	trim->waiting = true;
	list_init(&trim->waiter.link);
}

/* Has the free set of the group loaded; true: it is in memory. */
static bool trim_group_known(struct trim *trim, uint32_t group)
{
	struct tree *tree = trim->fs->tree;

	if (space_group_loaded(tree_space(tree), group))
		return true;
	trim_wait(trim);
	tree_load_group(tree, group, &trim->waiter);
	return false;
}

/* Discards the next run of the group, or a part of it; 0: there was nothing to
 * discard, or the group is being loaded. */
static int trim_next(struct trim *trim)
{
	const struct space *space = tree_space(trim->fs->tree);
	uint32_t group = (uint32_t)(trim->at / TRAX_GROUP_SECTORS);
	uint64_t group_end = (group + 1ull) * TRAX_GROUP_SECTORS;
	uint64_t end = group_end < trim->end ? group_end : trim->end;
	uint64_t first, last;
	struct range run;

	if (!trim_group_known(trim, group))
		return 0;
	if (!rangeset_next(space_free_set(space), trim->at, &run) ||
	    run.first >= end) {
		trim->at = end;
		return 0;
	}
	first = run.first > trim->at ? run.first : trim->at;
	last = run.first + run.n < end ? run.first + run.n : end;
	first += (trim->unit - first % trim->unit) % trim->unit;
	if (first + SLICE_SECTORS < last)
		last = first + SLICE_SECTORS;
	trim->at = last;
	last -= last % trim->unit;
	if (run.n < trim->least || first >= last)
		return 0;
	return trim_slice(trim, first, last - first);
}

bool trim_due(const struct fs *fs)
{
	return fs->trim && !fs->trim->waiting;
}

uint64_t trim_run(struct fs *fs, uint64_t now_ns)
{
	struct trim *trim = fs->trim;
	unsigned i;
	int rc;

	if (!trim || trim->waiting)
		return UINT64_MAX;
	for (i = 0; i < RUNS_OF_A_TURN && !trim->waiting; i++) {
		rc = tree_failed(fs->tree) ? -EROFS : 0;
		if (rc || trim->at >= trim->end) {
			trim_over(trim, rc);
			return now_ns;
		}
		rc = trim_next(trim);
		if (rc) {
			trim_over(trim, rc);
			return now_ns;
		}
		/* The discard was done at once, and it was the last one. */
		if (fs->trim != trim)
			return now_ns;
	}
	return trim->waiting ? UINT64_MAX : now_ns;
}

void trim_op(struct fs *fs, struct fs_op *op)
{
	const struct disk_limits *limits = &fs->disk->limits;
	uint64_t sectors = tree_super(fs->tree)->sectors;
	uint64_t first = op->offset / SECTOR_BYTES;
	uint64_t n = op->size / SECTOR_BYTES;
	struct trim *trim;
	int rc = 0;

	op->result = 0;
	if (first >= sectors || op->size < TRAX_BLOCK_BYTES)
		rc = -EINVAL;
	else if (!fs->disk->ops->discards)
		rc = -EOPNOTSUPP;
	else if (fs->trim)
		rc = -EBUSY;
	trim = rc ? NULL : calloc(1, sizeof(*trim));
	if (!rc && !trim)
		rc = -ENOMEM;
	if (rc) {
		fs_answer(fs, op, rc);
		return;
	}
	trim->fs = fs;
	trim->op = op;
	trim->at = first;
	trim->end = n < sectors - first ? first + n : sectors;
	trim->least = op->offset2 / SECTOR_BYTES;
	trim->unit = limits->physical_bytes / SECTOR_BYTES;
	fs->trim = trim;
	trim->waiter.done = trim_waited;
	trim->waiter.owner = trim;
	trim_wait(trim);
	tree_checkpoint(fs->tree, &trim->waiter);
}
