/*
 * prealloc.c - see prealloc.h.
 *
 * The extents of a preallocation follow one another in the file, from `off` on;
 * `left` is what of the file's sectors no write-back has taken yet.
 */
#include "fs/data/prealloc.h"
#include "fs/data/writeback.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Runs of sectors of one preallocation, at most. */
#define EXTENTS 8u
/* Most sectors of a preallocation: 64 MiB for a file that grows ... */
#define GROWTH_MOST (131072u)
/* ... and 4 GiB for one whose size is known. */
#define KNOWN_MOST (8388608u)
/* A file that is open is expected to grow by at least this many tracks. */
#define TRACKS_LEAST 2u
/* Files that may have a preallocation at a time: those of 32 writers, and some
 * that are appended to. */
#define FILES_MOST 64u
/* All preallocations together have at most this part of the free room that is
 * not reserved. */
#define ROOM_SHARE 8u

struct prealloc {
	struct list link;	/* files->preallocs, or preallocs_left */
	struct files *files;
	struct file *file;	/* the file; NULL when the room goes back */
	uint64_t off, n;	/* range of the file that it is for, in
				 * sectors */
	struct rangeset left;	/* sectors of this range that are not used
				 * yet */
	unsigned extents;
	struct alloc_extent extent[EXTENTS];
};

static struct space *space_of(const struct files *files)
{
	return tree_space(files->fs->tree);
}

/* Returns the extent that has sector `off` of the file, its place, and how many
 * sectors from there on are in the same extent. */
static const struct alloc_extent *prealloc_at(const struct prealloc *pre,
					     uint64_t off, uint64_t *sector,
					     uint64_t *n)
{
	uint64_t skip = off - pre->off;
	unsigned i;

	for (i = 0; skip >= pre->extent[i].n; i++)
		skip -= pre->extent[i].n;
	*sector = pre->extent[i].sector + skip;
	*n = pre->extent[i].n - skip;
	return &pre->extent[i];
}

/* ---- Giving back ---- */

/* Runs given back in one turn, and the time charged for each, in
 * nanoseconds. */
#define BACK_RUNS 16u
#define BACK_RUN_NS 4000u

/* Gives back the part of the first run that lies in one extent; false: nothing
 * is left. */
static bool give_back_one(struct prealloc *pre)
{
	uint64_t sector, n;
	struct range range;

	if (!rangeset_next(&pre->left, 0, &range))
		return false;
	prealloc_at(pre, range.first, &sector, &n);
	n = n < range.n ? n : range.n;
	/* This shortens a run at its front, which needs no memory. */
	rangeset_remove(&pre->left, range.first, n);
	space_give_back(space_of(pre->files), sector, n);
	turn_charge(&pre->files->fs->env->turn, TURN_RELEASE, BACK_RUN_NS);
	return true;
}

static bool give_back_some(struct files *files)
{
	struct prealloc *pre =
		list_first(&files->preallocs_left, struct prealloc, link);
	unsigned i;

	for (i = 0; pre && i < BACK_RUNS; i++)
		if (!give_back_one(pre))
			break;
	if (!pre || i == BACK_RUNS)
		return pre;
	list_del(&pre->link);
	abandon_free(pre);
	return true;
}

static void wake_room_waits(struct files *files)
{
	struct waiter *waiter;

	while ((waiter = list_first(&files->prealloc_waits, struct waiter,
				    link))) {
		list_del(&waiter->link);
		waiter->done(waiter, 0);
	}
}

void preallocs_run(struct files *files)
{
	while (give_back_some(files))
		if (turn_is_full(&files->fs->env->turn))
			return;
	wake_room_waits(files);
}

/* A preallocation in few runs, as most are, goes back at once, others in
 * several turns. */
static void give_back(struct files *files, struct prealloc *pre)
{
	bool others = !list_empty(&files->preallocs_left);

	files->prealloc_sectors -= pre->left.total;
	list_add(&files->preallocs_left, &pre->link);
	if (!others)
		give_back_some(files);
}

void prealloc_release(struct file *file)
{
	struct prealloc *pre = file->prealloc;

	if (!pre)
		return;
	file->files->prealloc_count--;
	file->prealloc = NULL;
	list_del(&pre->link);
	give_back(file->files, pre);
}

void prealloc_settle(struct file *file)
{
	if (!file->vnode->opens && list_empty(&file->dirty) &&
	    !file->data_writebacks)
		prealloc_release(file);
}

static void list_free(struct list *preallocs)
{
	struct prealloc *pre;

	while ((pre = list_first(preallocs, struct prealloc, link))) {
		list_del(&pre->link);
		rangeset_fini(&pre->left);
	}
}

void preallocs_free(struct files *files)
{
	list_free(&files->preallocs);
	list_free(&files->preallocs_left);
}

/* Gives back what all files have left. */
static void preallocs_release(struct files *files)
{
	struct prealloc *pre;

	while ((pre = list_first(&files->preallocs, struct prealloc, link)))
		prealloc_release(pre->file);
}

int prealloc_wait_room(struct fs_txn *txn)
{
	struct files *files = txn->fs->files;

	if (list_empty(&files->preallocs) && list_empty(&files->preallocs_left))
		return -ENOSPC;
	preallocs_release(files);
	return fs_txn_wait_list(txn, &files->prealloc_waits);
}

/* Free sectors that are not reserved. */
static uint64_t room_of(const struct files *files)
{
	struct space_counts count;
	uint64_t kept;

	space_count(space_of(files), &count);
	kept = count.reserved + count.own + count.pending;
	return count.free > kept ? count.free - kept : 0;
}

void preallocs_check(struct files *files)
{
	if (files->prealloc_sectors > room_of(files) / ROOM_SHARE * 2)
		preallocs_release(files);
}

/* ---- Using ---- */

bool prealloc_use(struct writeback *wb)
{
	struct prealloc *pre = wb->file->prealloc;
	uint64_t off = wb->first * BLOCK_SECTORS, end, sector, n;
	const struct alloc_extent *extent;
	struct writeback_segment *segment;
	struct range range;

	if (!pre || !rangeset_next(&pre->left, off, &range) ||
	    range.first > off)
		return false;
	end = off + (uint64_t)wb->want * BLOCK_SECTORS;
	if (end > range.first + range.n)
		end = range.first + range.n;
	if (rangeset_remove(&pre->left, off, end - off))
		return false;
	wb->files->prealloc_sectors -= end - off;
	list_del(&pre->link);
	list_add(&wb->files->preallocs, &pre->link);
	wb->want = (unsigned)((end - off) / BLOCK_SECTORS);
	for (wb->segments = 0; off < end; off += n) {
		assert(wb->segments < writeback_segments(wb));
		segment = &wb->segment[wb->segments++];
		extent = prealloc_at(pre, off, &sector, &n);
		n = n < end - off ? n : end - off;
		segment->sector = sector;
		segment->n = n;
		segment->known = extent->known;
		segment->failed = false;
	}
	return true;
}

/* ---- Making ---- */

/* Sectors that the file is expected to need from sector `from` of it on; 0: too
 * few for a preallocation. */
static uint64_t wanted(const struct file *file, uint64_t from)
{
	uint64_t track = alloc_track_sectors(file->files->fs->alloc,
					     file->goal);
	uint64_t end = (file->size + BLOCK_BYTES - 1) / BLOCK_BYTES *
		       BLOCK_SECTORS;
	uint64_t known = end > from ? end - from : 0, grows = 0;
	uint64_t most = room_of(file->files) / ROOM_SHARE;

	if (file->size <= SMALL_FILE_BYTES)
		return 0;
	known = known < KNOWN_MOST ? known : KNOWN_MOST;
	if (file->vnode->opens) {
		grows = from < GROWTH_MOST ? from : GROWTH_MOST;
		if (grows < track * TRACKS_LEAST)
			grows = track * TRACKS_LEAST;
	}
	known = known > grows ? known : grows;
	most = most > file->files->prealloc_sectors ?
		       most - file->files->prealloc_sectors : 0;
	known = (known < most ? known : most) / BLOCK_SECTORS * BLOCK_SECTORS;
	return known > track ? known : 0;
}

/* Removes this many extents at the front. */
static void forget_front(struct prealloc *pre, unsigned extents)
{
	unsigned i;

	for (i = 0; i < extents; i++) {
		pre->off += pre->extent[i].n;
		pre->n -= pre->extent[i].n;
	}
	pre->extents -= extents;
	for (i = 0; i < pre->extents; i++)
		pre->extent[i] = pre->extent[i + extents];
}

/* Removes extents at the front that are used up. */
static void prealloc_pass(struct prealloc *pre)
{
	while (pre->extents &&
	       !rangeset_meets(&pre->left, pre->off, pre->extent[0].n))
		forget_front(pre, 1);
}

/* Gives back what is left of this many extents at the front: blocks that have
 * not come by now do not come soon. -ENOMEM. */
static int give_back_front(struct prealloc *pre, unsigned extents)
{
	struct prealloc *front = abandon_alloc(pre->files->fs, sizeof(*front));
	uint64_t n = 0;
	unsigned i;

	if (!front)
		return -ENOMEM;
	for (i = 0; i < extents; i++)
		n += pre->extent[i].n;
	*front = *pre;
	front->extents = extents;
	front->n = n;
	rangeset_init(&front->left);
	if (rangeset_move_out(&pre->left, pre->off, n, &front->left)) {
		abandon_free(front);
		return -ENOMEM;
	}
	forget_front(pre, extents);
	give_back(pre->files, front);
	return 0;
}

static struct prealloc *prealloc_new(struct file *file, uint64_t off)
{
	struct files *files = file->files;
	struct prealloc *pre = abandon_alloc(files->fs, sizeof(*pre));

	if (!pre)
		return NULL;
	if (files->prealloc_count == FILES_MOST)
		prealloc_release(list_first(&files->preallocs, struct prealloc,
					    link)->file);
	pre->files = files;
	pre->file = file;
	pre->off = off;
	rangeset_init(&pre->left);
	list_add(&files->preallocs, &pre->link);
	files->prealloc_count++;
	file->prealloc = pre;
	return pre;
}

/* Takes up to n sectors, in at most `room` extents; returns the number of
 * extents or an error. */
static int take(const struct file *file, uint64_t n, uint64_t after,
		unsigned loads, struct alloc_extent *extent, unsigned room,
		uint32_t *group)
{
	struct alloc *alloc = file->files->fs->alloc;
	uint64_t track = alloc_track_sectors(alloc, file->goal);
	struct alloc_want want = {
		.goal = file->goal, .after = after, .dir = file->parent,
		.stream = file->vnode->opens, .loads = loads,
	};
	int rc = -ENOSPC;

	for (; n > track; n = n / 2 / BLOCK_SECTORS * BLOCK_SECTORS) {
		want.sectors = n;
		rc = alloc_take(alloc, &want, extent, (int)room, group);
		if (rc != -E2BIG)
			return rc;
	}
	return rc == -E2BIG ? -ENOSPC : rc;
}

/* Does the write-back belong to the range of the preallocation, or does
 * somebody write elsewhere in the file? */
static bool is_near(const struct prealloc *pre, uint64_t off)
{
	return off + pre->n >= pre->off && off <= pre->off + 2 * pre->n;
}

/* First sector of the hole that a write-back fills.  Blocks that are being
 * written are not mapped yet, but are no hole. */
static uint64_t hole_of(const struct writeback *wb)
{
	uint64_t off = wb->first * BLOCK_SECTORS;
	uint64_t tail = wb->file->tail_addr ? wb->file->tail_off : 0;

	return tail > wb->hole && tail <= off ? tail : wb->hole;
}

/* Sector of the file at which the preallocation is to begin: the end of the
 * present one, or the begin of the hole that the write-back fills, as what
 * comes before may be written later. */
static uint64_t begin_at(const struct writeback *wb, uint64_t *after)
{
	struct file *file = wb->file;
	struct prealloc *pre = file->prealloc;
	uint64_t off = wb->first * BLOCK_SECTORS, hole = hole_of(wb);
	const struct alloc_extent *last;

	if (pre)
		prealloc_pass(pre);
	if (pre && (!pre->extents || !is_near(pre, off) ||
		    (pre->extents > EXTENTS / 2 &&
		     give_back_front(pre, pre->extents - EXTENTS / 2)))) {
		prealloc_release(file);
		pre = NULL;
	}
	if (!pre)
		return off - hole < KNOWN_MOST ? hole : off;
	last = &pre->extent[pre->extents - 1];
	*after = last->sector + last->n;
	return pre->off + pre->n;
}

int prealloc_make(struct writeback *wb, uint64_t after, unsigned loads,
		  uint32_t *group)
{
	struct file *file = wb->file;
	uint64_t n, sum = 0, from;
	struct prealloc *pre;
	int rc, i;

	if (!wanted(file, wb->hole))
		return -ENOSPC;
	from = begin_at(wb, &after);
	/* Late blocks whose place was given back do not take the rest of the
	 * file away from its own place. */
	if (wb->first * BLOCK_SECTORS < from)
		return -ENOSPC;
	n = wanted(file, from);
	pre = file->prealloc ? file->prealloc : prealloc_new(file, from);
	if (!pre)
		return -ENOMEM;
	rc = take(file, n, after, loads, &pre->extent[pre->extents],
		  EXTENTS - pre->extents, group);
	for (i = 0; i < rc; i++)
		sum += pre->extent[pre->extents + (unsigned)i].n;
	if (rc > 0 && rangeset_add(&pre->left, from, sum)) {
		for (i = 0; i < rc; i++)
			space_give_back(space_of(file->files),
					pre->extent[pre->extents + (unsigned)i]
						.sector,
					pre->extent[pre->extents + (unsigned)i]
						.n);
		rc = -ENOMEM;
	}
	if (rc <= 0) {
		if (!pre->extents)
			prealloc_release(file);
		return rc ? rc : -ENOSPC;
	}
	pre->extents += (unsigned)rc;
	pre->n += sum;
	file->files->prealloc_sectors += sum;
	return 0;
}
