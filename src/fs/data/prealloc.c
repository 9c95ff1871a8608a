/*
 * prealloc.c - see prealloc.h.
 *
 * The pieces of a preallocation follow one another in the file, from `off` on;
 * `left` is what of the file's sectors no write-back has taken yet.
 */
#include "fs/data/prealloc.h"
#include "fs/data/writeback.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define PIECES 8u
/* A file that grows gets at most so much, 64 MiB in sectors ... */
#define GROWTH_MOST (131072u)
/* ... and one whose size is known, 4 GiB. */
#define KNOWN_MOST (8388608u)
#define TRACKS_LEAST 2u
/* Files that may have some: those of 32 writers, and appenders. */
#define FILES_MOST 64u
/* All together have at most this part of the room that nobody was promised. */
#define ROOM_SHARE 8u

struct prealloc {
	struct list link;	/* files->preallocs, or preallocs_left */
	struct files *files;
	struct file *file;	/* while it has it */
	uint64_t off, n;	/* sectors of the file */
	struct rangeset left;	/* of these, not used yet */
	unsigned pieces;
	struct alloc_piece piece[PIECES];
};

static struct space *space_of(const struct files *files)
{
	return tree_space(files->fs->tree);
}

/* Where sector `off` of the file lies, and how much from there on is in the
 * same piece. */
static const struct alloc_piece *prealloc_at(const struct prealloc *pre,
					     uint64_t off, uint64_t *sector,
					     uint64_t *n)
{
	uint64_t skip = off - pre->off;
	unsigned i;

	for (i = 0; skip >= pre->piece[i].n; i++)
		skip -= pre->piece[i].n;
	*sector = pre->piece[i].sector + skip;
	*n = pre->piece[i].n - skip;
	return &pre->piece[i];
}

/* ---- Giving back ---- */

/* Runs given back at a time, and what is charged to the turn for one. */
#define BACK_RUNS 16u
#define BACK_RUN_NS 4000u

/* The first piece of a run; false: nothing is left. */
static bool give_back_one(struct prealloc *pre)
{
	uint64_t sector, n;
	struct range range;

	if (!rangeset_next(&pre->left, 0, &range))
		return false;
	prealloc_at(pre, range.first, &sector, &n);
	n = n < range.n ? n : range.n;
	/* From the front of a run: needs no memory. */
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

/* One in few runs goes back at once, as a rule all of them. */
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

/* What all files have left goes back. */
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

/* Sectors that are free and that nobody was promised. */
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
	const struct alloc_piece *piece;
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
		piece = prealloc_at(pre, off, &sector, &n);
		n = n < end - off ? n : end - off;
		segment->sector = sector;
		segment->n = n;
		segment->known = piece->known;
		segment->failed = false;
	}
	return true;
}

/* ---- Making ---- */

/* What the file is expected to need from a sector of it on; 0: not enough that
 * it pays. */
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

/* Forgets so many pieces at the front. */
static void forget_front(struct prealloc *pre, unsigned pieces)
{
	unsigned i;

	for (i = 0; i < pieces; i++) {
		pre->off += pre->piece[i].n;
		pre->n -= pre->piece[i].n;
	}
	pre->pieces -= pieces;
	for (i = 0; i < pre->pieces; i++)
		pre->piece[i] = pre->piece[i + pieces];
}

/* Pieces at the front of which nothing is left are forgotten. */
static void prealloc_pass(struct prealloc *pre)
{
	while (pre->pieces &&
	       !rangeset_meets(&pre->left, pre->off, pre->piece[0].n))
		forget_front(pre, 1);
}

/* What is left of so many pieces at the front goes back: what has not come by
 * now does not come soon.  -ENOMEM. */
static int give_back_front(struct prealloc *pre, unsigned pieces)
{
	struct prealloc *front = abandon_alloc(pre->files->fs, sizeof(*front));
	uint64_t n = 0;
	unsigned i;

	if (!front)
		return -ENOMEM;
	for (i = 0; i < pieces; i++)
		n += pre->piece[i].n;
	*front = *pre;
	front->pieces = pieces;
	front->n = n;
	rangeset_init(&front->left);
	if (rangeset_move_out(&pre->left, pre->off, n, &front->left)) {
		abandon_free(front);
		return -ENOMEM;
	}
	forget_front(pre, pieces);
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

/* Takes n sectors or fewer, in `room` pieces at most; their number or an
 * error. */
static int take(const struct file *file, uint64_t n, uint64_t after,
		struct alloc_piece *piece, unsigned room, uint32_t *group)
{
	struct alloc *alloc = file->files->fs->alloc;
	uint64_t track = alloc_track_sectors(alloc, file->goal);
	struct alloc_want want = {
		.goal = file->goal, .after = after, .dir = file->parent,
		.stream = file->vnode->opens,
	};
	int rc = -ENOSPC;

	for (; n > track; n = n / 2 / BLOCK_SECTORS * BLOCK_SECTORS) {
		want.sectors = n;
		rc = alloc_take(alloc, &want, piece, (int)room, group);
		if (rc != -E2BIG)
			return rc;
	}
	return rc == -E2BIG ? -ENOSPC : rc;
}

/* Does the write-back belong to what the file's preallocation is for, or does
 * somebody write elsewhere in the file? */
static bool is_near(const struct prealloc *pre, uint64_t off)
{
	return off + pre->n >= pre->off && off <= pre->off + 2 * pre->n;
}

/* The first sector of the hole that a write-back fills.  What is on its way is
 * not mapped yet, but is none. */
static uint64_t hole_of(const struct writeback *wb)
{
	uint64_t off = wb->first * BLOCK_SECTORS;
	uint64_t tail = wb->file->tail_addr ? wb->file->tail_off : 0;

	return tail > wb->hole && tail <= off ? tail : wb->hole;
}

/* Where the preallocation is to begin: where the present one ends, or at the
 * hole that the write-back fills: what comes before may be written later. */
static uint64_t begin_at(const struct writeback *wb, uint64_t *after)
{
	struct file *file = wb->file;
	struct prealloc *pre = file->prealloc;
	uint64_t off = wb->first * BLOCK_SECTORS, hole = hole_of(wb);
	const struct alloc_piece *last;

	if (pre)
		prealloc_pass(pre);
	if (pre && (!pre->pieces || !is_near(pre, off) ||
		    (pre->pieces > PIECES / 2 &&
		     give_back_front(pre, pre->pieces - PIECES / 2)))) {
		prealloc_release(file);
		pre = NULL;
	}
	if (!pre)
		return off - hole < KNOWN_MOST ? hole : off;
	last = &pre->piece[pre->pieces - 1];
	*after = last->sector + last->n;
	return pre->off + pre->n;
}

int prealloc_make(struct writeback *wb, uint64_t after, uint32_t *group)
{
	struct file *file = wb->file;
	uint64_t n, sum = 0, from;
	struct prealloc *pre;
	int rc, i;

	if (!wanted(file, wb->hole))
		return -ENOSPC;
	from = begin_at(wb, &after);
	/* What comes late, and was given a place that is not there any more,
	 * does not take the rest of the file away from its own. */
	if (wb->first * BLOCK_SECTORS < from)
		return -ENOSPC;
	n = wanted(file, from);
	pre = file->prealloc ? file->prealloc : prealloc_new(file, from);
	if (!pre)
		return -ENOMEM;
	rc = take(file, n, after, &pre->piece[pre->pieces],
		  PIECES - pre->pieces, group);
	for (i = 0; i < rc; i++)
		sum += pre->piece[pre->pieces + (unsigned)i].n;
	if (rc > 0 && rangeset_add(&pre->left, from, sum)) {
		for (i = 0; i < rc; i++)
			space_give_back(space_of(file->files),
					pre->piece[pre->pieces + (unsigned)i]
						.sector,
					pre->piece[pre->pieces + (unsigned)i]
						.n);
		rc = -ENOMEM;
	}
	if (rc <= 0) {
		if (!pre->pieces)
			prealloc_release(file);
		return rc ? rc : -ENOSPC;
	}
	pre->pieces += (unsigned)rc;
	pre->n += sum;
	file->files->prealloc_sectors += sum;
	return 0;
}
