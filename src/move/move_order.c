/*
 * move_order.c - brings together data that is read together: files in the order
 * in which they are named, each in the order of its data.
 *
 * A batch is one large file, up to ORDER_SECTORS of it, or small files that fit
 * on one track together.  Its data lies in fragments: one ends where the next
 * sector that is read lies elsewhere, which costs about a turn (a seek and half
 * of one), as reading or writing a track does, or, further on on the same
 * track, as much of a turn as lies between.  Room for all of the batch is taken
 * at once; it is moved if the reads of a month save more than moving costs,
 * else the room is given back.
 */
#include <errno.h>

#include "fs/data/bmap.h"
#include "move/move_internal.h"

/* Most sectors of one file in a batch (32 MiB): the room for it is taken at
 * once, and kept from others. */
#define ORDER_SECTORS (UINT64_C(32) << 11)
/* Reads in a month that are expected of a file that somebody names: one a day;
 * what happens to it after a month is not known. */
#define ORDER_READS 30u
/* Passes over the data that a move costs: each sector is read, written, and
 * read back. */
#define ORDER_PASSES 3u
#define LOOK_ROOM 12u		/* leaves that an extent may need */
#define TURN_PARTS 16u		/* costs are counted in parts of a turn */

int order_want(struct moves *moves, uint64_t ino, uint32_t reads)
{
	struct ordering *order = &moves->order;

	if (order->wanted_n == ORDER_WANTED)
		return -EAGAIN;
	order->wanted[(order->wanted_first + order->wanted_n++) %
		      ORDER_WANTED] = (struct order_target){ ino, reads };
	return 0;
}

int moves_order(struct moves *moves, uint64_t ino)
{
	return order_want(moves, ino, ORDER_READS);
}

void moves_order_pause(struct moves *moves, bool paused)
{
	moves->order.paused = paused;
}

bool order_has_work(const struct moves *moves)
{
	const struct ordering *order = &moves->order;

	return !order->paused && !order->looking &&
	       (order->extents ? order->handed < order->ranges :
				order->wanted_n || order->target.ino);
}

/* ---- What a batch has ---- */

static void batch_reset(struct ordering *order)
{
	order->ranges = order->handed = order->extents = 0;
	order->sectors = order->handed_sectors = order->end = 0;
	order->runs = order->cost = order->cut = 0;
	order->reads = UINT32_MAX;
	order->full = false;
	order->file_start = (struct order_mark){ 0 };
}

static struct order_mark mark(const struct ordering *order)
{
	return (struct order_mark){ order->ranges, order->runs, order->cost,
				    order->sectors, order->end };
}

/* Removes the last file from the batch; it goes to the next one.  If it lies
 * right behind this batch, moving the batch cuts the two apart. */
static void file_undo(struct ordering *order)
{
	order->cut = TURN_PARTS - order->file_break;
	order->ranges = order->file_start.ranges;
	order->runs = order->file_start.runs;
	order->cost = order->file_start.cost;
	order->sectors = order->file_start.sectors;
	order->end = order->file_start.end;
	order->at = 0;
	order->full = true;
}

static void file_over(struct ordering *order)
{
	order->target.ino = 0;
	order->full = order->sectors > order->track;
	order->file_start = mark(order);
}

/* Returns the last range of the file that is looked at; NULL: it has none. */
static struct move_range *range_last(struct ordering *order)
{
	return order->ranges > order->file_start.ranges ?
		       &order->range[order->ranges - 1] : NULL;
}

/* Adds blocks [first, end) of the file, as many as there is room for. */
static void blocks_add(struct ordering *order, uint64_t first, uint64_t end)
{
	struct move_range *last = range_last(order);
	uint64_t n;

	for (; first < end; first += n) {
		if (last && last->first + last->blocks == first &&
		    last->blocks < MOVE_RANGE_BLOCKS) {
			n = MOVE_RANGE_BLOCKS - last->blocks;
			n = n < end - first ? n : end - first;
			last->blocks += (uint32_t)n;
		} else if (order->ranges == MOVE_RANGES) {
			order->full = true;
			order->at = first * BLOCK_SECTORS;
			return;
		} else {
			n = end - first < MOVE_RANGE_BLOCKS ? end - first :
							      MOVE_RANGE_BLOCKS;
			last = &order->range[order->ranges++];
			*last = (struct move_range){
				.ino = order->target.ino, .first = first,
				.blocks = (uint32_t)n,
			};
		}
		order->at = (first + n) * BLOCK_SECTORS;
		order->sectors += n * BLOCK_SECTORS;
	}
}

/* Cost of reading on at a sector, in parts of a turn: on the same track the
 * sectors between pass by. */
static unsigned break_cost(const struct alloc *alloc, uint64_t end,
			   uint64_t sector)
{
	struct range track;

	alloc_track(alloc, sector, &track);
	if (!end || end < track.first || end > sector)
		return TURN_PARTS;
	return (unsigned)((sector - end) * TURN_PARTS / track.n);
}

static void extent_add(const struct alloc *alloc, struct ordering *order,
		       const struct extent *extent)
{
	const struct move_range *last = range_last(order);
	uint64_t sector = addr_sector(extent->addr);
	uint64_t off = extent->off, n = extent->n, first, end;
	bool is_first = !order->file_start.ranges;
	unsigned cost;

	if (off < order->at) {
		sector += order->at - off;
		n -= order->at - off;
		off = order->at;
	}
	if (is_first && order->sectors + n >= ORDER_SECTORS) {
		n = ORDER_SECTORS - order->sectors;
		order->full = true;
	}
	if (order->reads > order->target.reads)
		order->reads = order->target.reads;
	cost = sector == order->end ? 0 : break_cost(alloc, order->end, sector);
	order->runs += sector != order->end;
	order->cost += cost;
	if (!last)
		order->file_break = cost;
	order->end = sector + n;
	order->at = off + n;
	first = off / BLOCK_SECTORS;
	end = (off + n + BLOCK_SECTORS - 1) / BLOCK_SECTORS;
	if (last && first < last->first + last->blocks)
		first = last->first + last->blocks;
	blocks_add(order, first, end);
	if (!is_first && (order->full || order->sectors > order->track))
		file_undo(order);
}

static int file_look(struct fs_txn *txn, struct ordering *order)
{
	struct extent extent;
	int rc = bmap_extent(txn, order->target.ino, order->at, &extent);

	if (rc == -ENOENT) {
		file_over(order);
		return 0;
	}
	if (rc)
		return rc;
	if (!order->ranges)
		order->goal = addr_sector(extent.addr);
	if (!order->ranges)
		order->track = alloc_track_sectors(txn->fs->alloc, order->goal);
	if (extent.flags & EXTENT_UNWRITTEN)
		order->at = extent.off + extent.n;
	else
		extent_add(txn->fs->alloc, order, &extent);
	return 0;
}

/* Adds files until the batch is full, or no more files wait. */
static int batch_look(struct fs_txn *txn, struct ordering *order)
{
	int rc = 0;

	while (!rc && !order->full) {
		if (tree_txn_room(txn->tree_txn) < LOOK_ROOM)
			return 0;
		if (!order->target.ino && !order->wanted_n)
			break;
		if (!order->target.ino) {
			order->target = order->wanted[order->wanted_first];
			order->wanted_first = (order->wanted_first + 1) %
					      ORDER_WANTED;
			order->wanted_n--;
			order->at = 0;
		}
		rc = file_look(txn, order);
	}
	order->looked = !rc;
	return rc;
}

/* ---- Does it pay? ---- */

static unsigned extent_runs(const struct ordering *order, int n)
{
	unsigned runs = 0;
	int i;

	for (i = 0; i < n; i++)
		runs += !i || order->extent[i - 1].sector +
			      order->extent[i - 1].n != order->extent[i].sector;
	return runs;
}

static bool pays(const struct ordering *order, unsigned runs)
{
	uint64_t passes = ORDER_PASSES * TURN_PARTS * order->sectors /
			  (order->track ? order->track : 1);
	uint64_t cost = order->cost, then = runs * TURN_PARTS;

	return then + order->cut < cost &&
	       order->reads * (cost - then - order->cut) >
		       cost + 2 * then + passes;
}

static void extents_give_back(struct moves *moves,
			     const struct alloc_extent *extent, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		space_give_back(tree_space(moves->fs->tree), extent[i].sector,
				extent[i].n);
}

/* Takes room for the batch. -EALREADY: nothing is to be gained.  Reserved room
 * is not taken. */
static int batch_take(struct fs_txn *txn, struct ordering *order)
{
	struct space *space = tree_space(txn->fs->tree);
	const struct alloc_want want = { .sectors = order->sectors,
					 .goal = order->goal, .spare = true };
	uint32_t group;
	unsigned runs;
	int rc;

	if (order->runs < 2)
		return -EALREADY;
	rc = space_reserve(space, order->sectors);
	if (rc)
		return rc;
	rc = alloc_take(txn->fs->alloc, &want, order->extent, ORDER_EXTENTS,
			&group);
	space_release(space, order->sectors);
	if (rc < 0)
		return rc == -EAGAIN ? fs_txn_wait_group(txn, group) : rc;
	runs = extent_runs(order, rc);
	if (!pays(order, runs)) {
		extents_give_back(txn->state, order->extent, (unsigned)rc);
		return -EALREADY;
	}
	order->extents = (unsigned)rc;
	order->runs_then = runs;
	return 0;
}

static int order_run(struct fs_txn *txn)
{
	struct moves *moves = txn->state;
	struct ordering *order = &moves->order;
	int rc;

	if (moves->closing)
		return -ESHUTDOWN;
	rc = order->looked ? 0 : batch_look(txn, order);
	return rc || !order->looked ? rc : batch_take(txn, order);
}

static void order_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct moves *moves = txn->state;
	struct ordering *order = &moves->order;

	(void)seq;
	if (!rc && !order->looked) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	order->looking = false;
	if (order->looked && order->ranges)
		order->status.batches++;
	if (!rc)
		return;
	order->status.left += order->looked && order->ranges;
	if (!order->looked)
		order->target.ino = 0;
	batch_reset(order);
}

static const struct fs_txn_type order_type = {
	.name = "look what is to be brought together",
	.bounds = { .nodes = 60 },
	.stages = 60,
	.run = order_run,
	.end = order_end,
};

/* ---- Moves of a batch ---- */

unsigned room_cut(const struct alloc_extent *extent, unsigned extents,
		    uint64_t from, uint64_t n, struct alloc_extent *cut)
{
	uint64_t at = 0, low, end;
	unsigned i, cuts = 0;

	for (i = 0; i < extents && (at < from || at - from < n); i++) {
		low = from > at ? from - at : 0;
		end = from + n - at < extent[i].n ? from + n - at : extent[i].n;
		if (n > UINT64_MAX - from)
			end = extent[i].n;
		if (low < end) {
			cut[cuts] = extent[i];
			cut[cuts].sector += low;
			cut[cuts++].n = end - low;
		}
		at += extent[i].n;
	}
	return cuts;
}

static bool batch_hand_over(struct moves *moves)
{
	struct ordering *order = &moves->order;
	struct move *move = move_new(moves);
	uint64_t sectors = 0;

	if (!move)
		return false;
	while (order->handed < order->ranges) {
		struct move_range range = order->range[order->handed];

		range.given_at = sectors;
		sectors += (uint64_t)range.blocks * BLOCK_SECTORS;
		if (sectors > MOVE_BLOCKS * BLOCK_SECTORS) {
			sectors = range.given_at;
			break;
		}
		move->range[move->ranges++] = range;
		order->handed++;
	}
	move->given_n = room_cut(order->extent, order->extents,
				   order->handed_sectors, sectors,
				   move->given);
	order->handed_sectors += sectors;
	move->is_order = true;
	order->under_way++;
	move_start(move);
	return true;
}

bool order_pick(struct moves *moves)
{
	struct ordering *order = &moves->order;

	if (order->extents)
		return batch_hand_over(moves);
	batch_reset(order);
	order->looked = false;
	order->looking = !fs_txn_start(moves->fs, &order_type, NULL, moves);
	return false;
}

void order_moved(struct move *move)
{
	struct ordering *order = &move->moves->order;

	extents_give_back(move->moves, move->given, move->given_n);
	move->moves->unfreed += move->moved;
	order->status.sectors += move->moved;
	order->moved += move->moved;
	order->under_way--;
	if (order->under_way || order->handed < order->ranges)
		return;
	if (order->moved == order->sectors) {
		order->status.runs_before += order->runs;
		order->status.runs_after += order->runs_then;
	} else {
		order->status.left++;
	}
	order->moved = 0;
	batch_reset(order);
}

void order_close(struct moves *moves)
{
	struct ordering *order = &moves->order;
	struct alloc_extent rest[ORDER_EXTENTS];

	extents_give_back(moves, rest,
			 room_cut(order->extent, order->extents,
				    order->handed_sectors,
				    order->sectors - order->handed_sectors,
				    rest));
	order->extents = 0;
}

void order_get_status(const struct moves *moves, struct order_status *status)
{
	*status = moves->order.status;
	status->paused = moves->order.paused;
	status->wanted = moves->order.wanted_n + (moves->order.target.ino != 0);
	status->is_at_work = moves->order.looking || moves->order.extents;
}
