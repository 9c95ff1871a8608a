/*
 * move_swap.c - the transactions of a move: they look up where the data lies,
 * take its new place, and change the mapping.
 *
 * The last one is an exclusive operation of the file, so that no write-back is
 * under way.  It finds extents and checksums as they were looked up, or changes
 * nothing.
 */
#include <errno.h>

#include "fs/data/bmap.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "move/move_internal.h"

#define LOOK_ROOM 16u		/* leaves that a range may need */
#define SWAP_EXTENTS 16u	/* Most extents that one transaction maps. */
/* The rest of a track that moves have begun to fill is not used when it is
 * smaller than this part of a track, as files would be cut. */
#define OPEN_PART 8u

/* ---- Where it lies ---- */

static int look_extents(struct fs_txn *txn, struct move *move,
			struct move_range *range)
{
	uint64_t sector = range->first * BLOCK_SECTORS;
	uint64_t end = sector + (uint64_t)range->blocks * BLOCK_SECTORS, stop;
	uint32_t at = move->sectors;
	struct extent extent;
	int rc;

	range->source = move->sources;
	range->at = at;
	for (range->sources = 0; sector < end; sector = stop) {
		rc = bmap_extent(txn, range->ino, sector, &extent);
		if (rc)
			return rc;
		if (extent.off > sector || extent.flags & EXTENT_UNWRITTEN)
			return -ENOENT;
		if (range->source + range->sources == MOVE_SOURCES)
			return -E2BIG;
		stop = extent.off + extent.n;
		stop = stop < end ? stop : end;
		move->source[range->source + range->sources++] =
			(struct move_source){
				.sector = addr_sector(extent.addr) +
					  (sector - extent.off),
				.n = (uint32_t)(stop - sector), .at = at,
			};
		at += (uint32_t)(stop - sector);
	}
	return 0;
}

/* Looks up the checksum of a block; window_first: first block of the decoded
 * window. */
static int sum_of(struct fs_txn *txn, uint64_t ino, uint64_t block,
		  struct csum_window *window, uint64_t *window_first,
		  uint32_t *sum)
{
	uint64_t in = block % TRAX_CSUM_WINDOW_BLOCKS;
	unsigned chunk = (unsigned)(in / TRAX_CSUM_CHUNK_BLOCKS);
	unsigned i = (unsigned)(in % TRAX_CSUM_CHUNK_BLOCKS);
	int rc = 0;

	if (*window_first != block - in)
		rc = bmap_window(txn, ino, block / TRAX_CSUM_WINDOW_BLOCKS,
				 window);
	if (rc)
		return rc;
	*window_first = block - in;
	if (!(window->mask[chunk] >> i & 1))
		return -ENOENT;
	*sum = window->sum[chunk][i];
	return 0;
}

static int look_sums(struct fs_txn *txn, struct move *move,
		     const struct move_range *range)
{
	uint64_t window_first = UINT64_MAX;
	struct csum_window window;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < range->blocks; i++)
		rc = sum_of(txn, range->ino, range->first + i, &window,
			    &window_first,
			    &move->sum[range->at / BLOCK_SECTORS + i]);
	return rc;
}

static int look_run(struct fs_txn *txn)
{
	struct move *move = txn->state;
	struct move_range *range;
	int rc;

	for (; move->looked < move->ranges; move->looked++) {
		range = &move->range[move->looked];
		if (tree_txn_room(txn->tree_txn) < LOOK_ROOM)
			return 0;
		rc = move->sectors / BLOCK_SECTORS + range->blocks <=
			     MOVE_BLOCKS ? 0 : -E2BIG;
		rc = rc ? rc : look_extents(txn, move, range);
		rc = rc ? rc : look_sums(txn, move, range);
		if (rc && rc != -ENOENT && rc != -E2BIG)
			return rc;
		if (rc) {
			range->blocks = 0;
			continue;
		}
		move->sources += range->sources;
		move->sectors += range->blocks * BLOCK_SECTORS;
	}
	return 0;
}

static void look_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct move *move = txn->state;

	(void)seq;
	if (!rc && move->looked < move->ranges) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	move->in_txn = false;
	move_looked(move, rc);
}

static const struct fs_txn_type look_type = {
	.name = "look what moves",
	.bounds = { .nodes = 40 },
	.stages = 40,
	.run = look_run,
	.end = look_end,
};

static int start(struct move *move, const struct fs_txn_type *type)
{
	int rc = fs_txn_start(move->moves->fs, type, NULL, move);

	move->in_txn = !rc;
	return rc;
}

void move_look(struct move *move)
{
	if (start(move, &look_type))
		move_looked(move, -ENOMEM);
}

/* ---- Where it goes ---- */

static void places_undo(struct move *move, unsigned places)
{
	struct space *space = tree_space(move->moves->fs->tree);

	while (move->places > places) {
		const struct alloc_extent *extent =
			&move->place[--move->places].extent;

		space_give_back(space, extent->sector, extent->n);
	}
}

/* Takes the free room behind the data of the last move, unless that is little;
 * less than 0: there is none. */
static int open_take(struct fs_txn *txn, const struct move *move,
		     uint64_t near, uint64_t left, struct alloc_extent *extent)
{
	struct alloc *alloc = txn->fs->alloc;
	uint64_t open = move->moves->clean.open;
	uint64_t least = alloc_track_sectors(alloc, near) / OPEN_PART;
	struct range track;
	int rc = -ENOSPC;

	alloc_track(alloc, open, &track);
	if (open > track.first &&
	    open / TRAX_GROUP_SECTORS == near / TRAX_GROUP_SECTORS)
		rc = alloc_fill_at(alloc, open, left, extent);
	if (rc || extent->n == left || extent->n >= least)
		return rc;
	space_give_back(tree_space(txn->fs->tree), extent->sector, extent->n);
	return -ENOSPC;
}

/*
 * Takes room for the data that a move still has to place:
 *
 *  1. behind the data that the last move has put on a free track, unless a
 *     track can be filled;
 *  2. a free track, if the move empties more of them;
 *  3. the smallest part of a used track that has room for all of it, or the
 *     largest one.
 */
static int extent_take(struct fs_txn *txn, struct move *move, uint64_t near,
		      uint64_t left, struct alloc_extent *extent, bool *goes_on)
{
	struct alloc *alloc = txn->fs->alloc;
	struct alloc_want want = {
		.sectors = alloc_track_sectors(alloc, near) /
			   TRAX_BLOCK_SECTORS * TRAX_BLOCK_SECTORS,
		.goal = near, .spare = true,
	};
	uint32_t group;
	int rc = -ENOSPC;

	*goes_on = true;
	if (left < want.sectors && !open_take(txn, move, near, left, extent))
		return 0;
	if (move->filled + 1 < move->tracks)
		rc = alloc_take(alloc, &want, extent, 1, &group);
	if (rc == 1) {
		move->filled++;
		return 0;
	}
	*goes_on = false;
	if (rc != -EAGAIN)
		rc = alloc_fill(alloc, near, left, extent, &group);
	return rc == -EAGAIN ? fs_txn_wait_group(txn, group) : rc;
}

/* How far the search for places has come. */
struct placing {
	unsigned next;		/* the range that comes next, of which the first
				 * `done` sectors have a place */
	uint64_t done;
	unsigned before, cuts;	/* places before this range; extents that it
				 * got */
};

/* Puts ranges into an extent: whole ones, but a part of one that is larger than
 * the extent.  Gives back the rest of the extent, and returns where that
 * begins. */
static uint64_t extent_fill(struct move *move,
			    const struct alloc_extent *extent,
			    struct placing *p)
{
	uint64_t used = 0, n, left;
	struct move_range *range;
	struct move_place *place;

	for (; p->next < move->ranges; p->next++) {
		range = &move->range[p->next];
		left = (uint64_t)range->blocks * BLOCK_SECTORS - p->done;
		n = left < extent->n - used ? left : extent->n - used;
		if (n < left && used)
			break;
		if (n && move->places == MOVE_PLACES)
			break;
		if (!n)
			continue;
		place = &move->place[move->places++];
		*place = (struct move_place){
			.extent = *extent, .at = range->at + (uint32_t)p->done,
		};
		place->extent.sector += used;
		place->extent.n = n;
		used += n;
		p->done = n < left ? p->done + n : 0;
		if (n < left)
			break;
	}
	if (used < extent->n)
		space_give_back(tree_space(move->moves->fs->tree),
				extent->sector + used, extent->n - used);
	return extent->sector + used;
}

static uint64_t left_to_place(const struct move *move, const struct placing *p)
{
	uint64_t n = 0;
	unsigned i;

	for (i = p->next; i < move->ranges; i++)
		n += (uint64_t)move->range[i].blocks * BLOCK_SECTORS;
	return n - p->done;
}

/* Finds a place for the next range.  One that finds none, or would have to be
 * cut too often, stays where it is. */
static int place_next(struct fs_txn *txn, struct move *move, struct placing *p)
{
	struct move_range *range = &move->range[p->next];
	struct alloc_extent extent;
	uint64_t end;
	bool goes_on;
	int rc = -ENOSPC;

	if (!range->blocks) {
		p->next++;
		return 0;
	}
	if (!p->done) {
		p->before = move->places;
		p->cuts = 0;
	}
	if (p->cuts++ < SWAP_EXTENTS && move->places < MOVE_PLACES)
		rc = extent_take(txn, move, move->source[range->source].sector,
				left_to_place(move, p), &extent, &goes_on);
	if (!rc) {
		end = extent_fill(move, &extent, p);
		if (goes_on)
			move->moves->clean.open = end;
	} else if (rc == -ENOSPC) {
		places_undo(move, p->before);
		range->blocks = 0;
		p->done = 0;
		rc = 0;
	}
	return rc;
}

static int place_run(struct fs_txn *txn)
{
	struct move *move = txn->state;
	struct placing placing = { 0 };
	int rc = 0;

	places_undo(move, 0);
	move->filled = 0;
	while (!rc && placing.next < move->ranges)
		rc = place_next(txn, move, &placing);
	return rc;
}

static void place_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct move *move = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	move->in_txn = false;
	move_placed(move, rc);
}

static const struct fs_txn_type place_type = {
	.name = "place what moves",
	.bounds = { .nodes = 1 },
	.run = place_run,
	.end = place_end,
};

/* Gives a range its part of the batch's room. */
static void given_place(struct move *move, struct move_range *range)
{
	struct alloc_extent cut[ORDER_EXTENTS];
	unsigned n = room_cut(move->given, move->given_n, range->given_at,
				(uint64_t)range->blocks * BLOCK_SECTORS, cut);
	uint32_t at = range->at;

	if (n > SWAP_EXTENTS || move->places + n > MOVE_PLACES) {
		range->blocks = 0;
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		move->place[move->places++] = (struct move_place){
			.extent = cut[i], .at = at,
		};
		at += (uint32_t)cut[i].n;
	}
}

/* Does so for all ranges; the room of those that stay where they are goes
 * back. */
static void given_place_all(struct move *move)
{
	struct alloc_extent cut[ORDER_EXTENTS];
	struct space *space = tree_space(move->moves->fs->tree);
	uint64_t at = 0, stop;
	unsigned i, k, n;

	for (i = 0; i <= move->ranges; i++) {
		if (i < move->ranges && move->range[i].blocks)
			given_place(move, &move->range[i]);
		if (i < move->ranges && !move->range[i].blocks)
			continue;
		stop = i < move->ranges ? move->range[i].given_at : UINT64_MAX;
		n = room_cut(move->given, move->given_n, at, stop - at, cut);
		for (k = 0; k < n; k++)
			space_give_back(space, cut[k].sector, cut[k].n);
		if (i < move->ranges)
			at = stop + (uint64_t)move->range[i].blocks *
				    BLOCK_SECTORS;
	}
	move->given_n = 0;
}

void move_place(struct move *move)
{
	if (move->is_order) {
		given_place_all(move);
		move_placed(move, 0);
		return;
	}
	if (start(move, &place_type))
		move_placed(move, -ENOMEM);
}

/* ---- The change of the mapping ---- */

/* Are the blocks still at the old place, with the same checksums, and not newer
 * in memory? */
static int swap_check(struct fs_txn *txn, const struct move *move,
		      const struct move_range *range)
{
	uint64_t window_first = UINT64_MAX;
	struct csum_window window;
	const struct block *block;
	const struct move_source *source;
	struct extent extent;
	uint64_t off;
	uint32_t i, sum;
	int rc = 0;

	for (i = move->swapped; !rc && i < range->blocks; i++) {
		block = block_find(move->file, range->first + i);
		if (block && (block->pin || block->wb))
			return -ESTALE;
		rc = sum_of(txn, range->ino, range->first + i, &window,
			    &window_first, &sum);
		if (!rc && sum != move->sum[range->at / BLOCK_SECTORS + i])
			return -ESTALE;
	}
	for (i = 0; !rc && i < range->sources; i++) {
		source = &move->source[range->source + i];
		if (source->at + source->n <= range->at +
					      move->swapped * BLOCK_SECTORS)
			continue;
		off = range->first * BLOCK_SECTORS + source->at - range->at;
		if (off < (range->first + move->swapped) * BLOCK_SECTORS)
			off = (range->first + move->swapped) * BLOCK_SECTORS;
		rc = bmap_extent(txn, range->ino, off, &extent);
		if (!rc && (extent.off > off ||
			    addr_sector(extent.addr) + (off - extent.off) !=
				    source->sector + (off - range->first *
				    BLOCK_SECTORS + range->at - source->at)))
			return -ESTALE;
	}
	return rc == -ENOENT ? -ESTALE : rc;
}

/* Lists the places of the part of a range that is not mapped yet, as
 * extents. */
static unsigned swap_extents(const struct move *move,
			    const struct move_range *range,
			    struct extent *list)
{
	uint32_t from = range->at + move->swapped * BLOCK_SECTORS, skip;
	uint32_t end = range->at + range->blocks * BLOCK_SECTORS;
	const struct move_place *place;
	unsigned i, n = 0;

	for (i = 0; i < move->places && n < SWAP_EXTENTS; i++) {
		place = &move->place[i];
		if (place->at + place->extent.n <= from || place->at >= end)
			continue;
		skip = place->at < from ? from - place->at : 0;
		list[n++] = (struct extent){
			.off = range->first * BLOCK_SECTORS + place->at + skip -
			       range->at,
			.n = place->extent.n - skip,
			.addr = addr_make(0, place->extent.sector + skip),
			.flags = place->extent.known ? EXTENT_KNOWN : 0,
		};
	}
	return n;
}

static int swap_run(struct fs_txn *txn)
{
	struct move *move = txn->state;
	const struct move_range *range = &move->range[move->swapping];
	uint64_t left = (uint64_t)(range->blocks - move->swapped) *
			BLOCK_SECTORS;
	struct extent list[SWAP_EXTENTS];
	struct inode_item item;
	struct bmap_plan plan;
	int rc, err;

	if (move->moves->closing || move->file->dead)
		return -ESTALE;
	rc = swap_check(txn, move, range);
	if (rc && rc != -EAGAIN)
		return rc;
	err = inode_get(txn, range->ino, &item);
	rc = err ? err : rc;
	err = bmap_probe(txn, range->ino,
			 (range->first + move->swapped) * BLOCK_SECTORS, left,
			 list, swap_extents(move, range, list), &plan);
	if (err || rc)
		return err && err != -EAGAIN ? err : rc ? rc : err;
	if (!plan.n)
		return -E2BIG;
	bmap_apply(txn, range->ino, &plan, &item);
	inode_put(txn, range->ino, &item);
	move->step_blocks = (uint32_t)(plan.n / BLOCK_SECTORS);
	return 0;
}

static void swap_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct move *move = txn->state;

	(void)seq;
	if (!rc)
		move->swapped += move->step_blocks;
	if (!rc && move->swapped < move->range[move->swapping].blocks) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	move->in_txn = false;
	move_swapped(move, rc);
}

static const struct fs_txn_type swap_type = {
	.name = "map what has moved",
	.bounds = { .nodes = 60, .log_bytes = BMAP_LOG_BYTES },
	.paths = 20,
	.changes = 14,
	.stages = 60,
	.run = swap_run,
	.end = swap_end,
};

void move_swap(struct move *move)
{
	if (start(move, &swap_type))
		move_swapped(move, -ENOMEM);
}
