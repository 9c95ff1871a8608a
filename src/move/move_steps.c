/*
 * move_steps.c - the steps of a move.
 *
 *   look -> read -> (verify) -> place -> write -> compare -> swap -> drain
 *   [txn]                       [txn]                       [txn]+
 *
 * 1. The old place is not touched; what was swapped is free there once the
 *    next root is durable (space/space.h).
 * 2. A place belongs to the move until its range is mapped to it: a crash
 *    before that leaves nothing behind, an error gives it back.
 * 3. A range in which anything fails, or that users have changed, stays where
 *    it is; the others go on.
 * 4. The free part of the tracks that a move empties is the move's until all of
 *    them is free, or nobody would ever find a whole track.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/data/bad_sectors.h"
#include "fs/data/file.h"
#include "move/move_internal.h"

#define PART_SECTORS 128u	/* sectors of one write: 64 KiB, which a gap has
				 * room for */
/* Time for which a move waits for a checkpoint to free the old places. */
#define DRAIN_NS UINT64_C(120000000000)

static void step_set(struct move *move, enum move_step step)
{
	move->step = step;
	move->step_ns = env_now_ns(move->moves->fs->env);
}

struct move *move_new(struct moves *moves)
{
	struct move *move;
	unsigned i;

	for (i = 0; i < MOVE_SLOTS && moves->move[i]; i++)
		;
	if (i == MOVE_SLOTS)
		return NULL;
	move = abandon_alloc(moves->fs, sizeof(*move));
	if (!move)
		return NULL;
	move->moves = moves;
	moves->move[i] = move;
	return move;
}

void move_start(struct move *move)
{
	struct moves_status *status = &move->moves->status;

	status->begun++;
	if (!status->under_way++)
		move->moves->busy_since_ns = env_now_ns(move->moves->fs->env);
	step_set(move, MOVE_LOOK);
	move_look(move);
}

/* ---- The end ---- */

static void claims_give_back(struct move *move)
{
	struct space *space = tree_space(move->moves->fs->tree);
	unsigned i;

	for (i = 0; i < move->claims; i++)
		space_give_back(space, move->claim[i].first, move->claim[i].n);
	move->claims = 0;
	space_release(space, move->reserved);
	move->reserved = 0;
}

/* Gives back the places of [from, end) of the data; those that could not be
 * written are examined (bad_sectors.h). */
static void places_give_back(struct move *move, uint32_t from, uint32_t end)
{
	struct fs *fs = move->moves->fs;
	const struct move_place *place;
	uint64_t first, last;
	unsigned i;

	for (i = 0; i < move->places; i++) {
		place = &move->place[i];
		first = place->at > from ? place->at : from;
		last = place->at + place->extent.n;
		last = last < end ? last : end;
		if (first >= last)
			continue;
		first += place->extent.sector - place->at;
		last += place->extent.sector - place->at;
		if (place->failed)
			bad_sectors_suspect(fs->files, first, last - first);
		else
			space_give_back(tree_space(fs->tree), first,
					last - first);
	}
}

static uint32_t range_end(const struct move_range *range)
{
	return range->at + range->blocks * BLOCK_SECTORS;
}

/* Leaves a range where it is from block `from` on. */
static void range_drop(struct move *move, struct move_range *range,
		       uint32_t from)
{
	places_give_back(move, range->at + from * BLOCK_SECTORS,
			 range_end(range));
	range->blocks = 0;
}

static bool move_is_busy(const struct move *move)
{
	return move->in_txn || move->writing || move->excl.active ||
	       (move->step == MOVE_SWAP && move->file);
}

/* Frees a move of which nothing is under way. */
static void move_free(struct move *move)
{
	struct moves *moves = move->moves;
	unsigned i;

	for (i = 0; i < move->ranges; i++)
		if (move->range[i].blocks)
			range_drop(move, &move->range[i], 0);
	claims_give_back(move);
	if (move->is_order)
		order_moved(move);
	for (i = 0; i < MOVE_SLOTS; i++)
		if (moves->move[i] == move)
			moves->move[i] = NULL;
	if (move->step != MOVE_FREE && !--moves->status.under_way)
		moves->status.run_ns += env_now_ns(moves->fs->env) -
					moves->busy_since_ns;
	abandon_free(move->memory);
	abandon_free(move->part);
	abandon_free(move);
}

static void unwant(struct move *move)
{
	struct freeblock_task *task = move->moves->task;
	unsigned i;

	if (move->step == MOVE_READ)
		for (i = 0; i < move->sources; i++)
			freeblock_unwant(task, move->source[i].sector,
					 move->source[i].n);
	if (move->step == MOVE_COMPARE)
		for (i = 0; i < move->places; i++)
			freeblock_unwant(task, move->place[i].extent.sector,
					 move->place[i].extent.n);
}

void move_end(struct move *move)
{
	unsigned i, writing = move->writing;

	if (move->moves->task)
		unwant(move);
	for (i = 0; move->step == MOVE_WRITE && writing && i < move->parts; i++)
		if (move->part[i].move &&
		    freeblock_write_cancel(move->moves->task,
					   &move->part[i].req)) {
			move->part[i].move = NULL;
			move->writing--;
		}
	if (!move_is_busy(move))
		move_free(move);
}

static bool is_closing(struct move *move)
{
	if (!move->moves->closing)
		return false;
	move_end(move);
	return true;
}

/* ---- Reading, and reading back ---- */

static void move_read(struct move *move);
static void move_compared(struct move *move);

static void reads_over(struct move *move)
{
	if (move->step == MOVE_READ)
		move_read(move);
	else
		move_compared(move);
}

/* Returns the range that has this part of the data. */
static struct move_range *range_of(struct move *move, uint32_t at)
{
	unsigned i;

	for (i = 0; i < move->ranges; i++)
		if (move->range[i].blocks && move->range[i].at <= at &&
		    at < range_end(&move->range[i]))
			return &move->range[i];
	return NULL;
}

/* Sectors that a read of [sector, sector + n) has of a run of the data; *from:
 * where they begin in the run. */
static uint32_t overlap(uint64_t sector, uint32_t n, uint64_t first,
			uint64_t run, uint32_t *from)
{
	uint64_t low = sector > first ? sector : first;
	uint64_t end = sector + n < first + run ? sector + n : first + run;

	*from = (uint32_t)(low - first);
	return end > low ? (uint32_t)(end - low) : 0;
}

static void source_got(struct move *move, struct move_source *source,
		       uint64_t sector, uint32_t n, const uint8_t *bytes,
		       int result)
{
	uint32_t from, has = overlap(sector, n, source->sector, source->n,
				     &from);

	if (!has)
		return;
	source->failed |= result != 0;
	if (!result)
		memcpy(move->data + (size_t)(source->at + from) * SECTOR_BYTES,
		       bytes + (size_t)(source->sector + from - sector) *
			       SECTOR_BYTES,
		       (size_t)has * SECTOR_BYTES);
	/* Sectors that another move reads, too, come twice. */
	has = has < source->n - source->got ? has : source->n - source->got;
	source->got += has;
	move->left -= has < move->left ? has : move->left;
}

static void place_got(struct move *move, struct move_place *place,
		      uint64_t sector, uint32_t n, const uint8_t *bytes,
		      int result)
{
	uint32_t from, has = overlap(sector, n, place->extent.sector,
				     place->extent.n, &from);

	if (!has)
		return;
	place->failed |= result ||
		memcmp(move->data + (size_t)(place->at + from) * SECTOR_BYTES,
		       bytes + (size_t)(place->extent.sector + from - sector) *
			       SECTOR_BYTES,
		       (size_t)has * SECTOR_BYTES);
	move->left -= has < move->left ? has : move->left;
}

static void move_got(void *arg, uint64_t sector, uint32_t sectors,
		     const void *bytes, int result)
{
	struct moves *moves = arg;
	struct move *move;
	unsigned i, k;

	if (moves->closing)
		return;
	for (i = 0; i < MOVE_SLOTS; i++) {
		move = moves->move[i];
		if (!move || (move->step != MOVE_READ &&
			     move->step != MOVE_COMPARE))
			continue;
		for (k = 0; move->step == MOVE_READ && k < move->sources; k++)
			source_got(move, &move->source[k], sector, sectors,
				   bytes, result);
		for (k = 0; move->step == MOVE_COMPARE && k < move->places; k++)
			place_got(move, &move->place[k], sector, sectors, bytes,
				  result);
	}
}

/* Waits for reads.  The move goes on from move_run, as the queue must not be
 * called from here. */
static void wait_for_reads(struct move *move, enum move_step step)
{
	struct freeblock_task *task = move->moves->task;
	unsigned i;
	int rc = 0;

	step_set(move, step);
	move->left = 0;
	for (i = 0; !rc && step == MOVE_READ && i < move->sources; i++) {
		move->left += move->source[i].n;
		rc = freeblock_want(task, move->source[i].sector,
				    move->source[i].n);
	}
	for (i = 0; !rc && step == MOVE_COMPARE && i < move->places; i++) {
		move->left += (uint32_t)move->place[i].extent.n;
		rc = freeblock_want(task, move->place[i].extent.sector,
				    move->place[i].extent.n);
	}
	if (rc)
		move_end(move);
}

/* ---- Looked up; read; verified ---- */

void move_looked(struct move *move, int rc)
{
	uintptr_t at;

	if (is_closing(move))
		return;
	if (rc || !move->sectors) {
		move_end(move);
		return;
	}
	move->memory = abandon_alloc(move->moves->fs, (size_t)move->sectors *
				    SECTOR_BYTES + BLOCK_BYTES);
	if (!move->memory) {
		move_end(move);
		return;
	}
	at = (uintptr_t)move->memory + BLOCK_BYTES - 1;
	move->data = (uint8_t *)(at / BLOCK_BYTES * BLOCK_BYTES);
	wait_for_reads(move, MOVE_READ);
}

static bool range_is_good(const struct move *move,
			  const struct move_range *range)
{
	uint32_t i, block = range->at / BLOCK_SECTORS;

	for (i = block; i < block + range->blocks; i++)
		if (csum_block(move->data + (size_t)i * BLOCK_BYTES) !=
		    move->sum[i])
			return false;
	return true;
}

/* Verifies the data.  Blocks that do not match their checksums have been
 * overwritten since, or are damaged, which readers and the scrub find. */
static void move_read(struct move *move)
{
	struct moves_status *status = &move->moves->status;
	struct move_range *range;
	unsigned i, k;

	status->read_sectors += move->sectors;
	for (i = 0; i < move->ranges; i++) {
		range = &move->range[i];
		for (k = 0; range->blocks && k < range->sources; k++)
			if (move->source[range->source + k].failed) {
				status->failed_sectors += range->blocks *
							  BLOCK_SECTORS;
				range->blocks = 0;
			}
		if (range->blocks && !range_is_good(move, range)) {
			status->stale_sectors += range->blocks * BLOCK_SECTORS;
			range->blocks = 0;
		}
	}
	step_set(move, MOVE_PLACE);
	move_place(move);
}

/* ---- Placed; written ---- */

static void move_written(void *arg, struct queue_request *req)
{
	struct move_part *part = container_of(req, struct move_part, req);
	struct move *move = part->move;

	(void)arg;
	if (!move)
		return;
	part->move = NULL;
	move->writing--;
	if (move->moves->closing) {
		if (!move->writing)
			move_free(move);
		return;
	}
	if (req->disk.result)
		move->place[part->place].failed = true;
}

const struct freeblock_ops move_ops = {
	.got = move_got,
	.written = move_written,
};

static void part_set(struct move *move, struct move_part *part,
		     uint32_t place_index, uint64_t skip, uint64_t n)
{
	const struct move_place *place = &move->place[place_index];

	part->move = move;
	part->place = place_index;
	part->iov = (struct iovec){
		move->data + (size_t)(place->at + skip) * SECTOR_BYTES,
		(size_t)n * SECTOR_BYTES,
	};
	part->req = (struct queue_request){
		.disk = {
			.op = DISK_WRITE,
			.sector = place->extent.sector + skip,
			.sectors = (uint32_t)n,
			.iov = &part->iov, .iov_n = 1,
		},
		.class = QUEUE_IDLE,
		.origin = FAULT_COPY,
	};
}

static void parts_make(struct move *move)
{
	uint64_t skip, n;
	unsigned i;

	move->parts = 0;
	for (i = 0; i < move->places; i++)
		for (skip = 0; skip < move->place[i].extent.n; skip += n) {
			n = move->place[i].extent.n - skip;
			n = n < PART_SECTORS ? n : PART_SECTORS;
			part_set(move, &move->part[move->parts++], i, skip, n);
		}
}

void move_placed(struct move *move, int rc)
{
	unsigned i;

	if (is_closing(move))
		return;
	if (!rc && move->places)
		move->part = abandon_alloc(move->moves->fs,
			(move->places + move->sectors / PART_SECTORS) *
				sizeof(*move->part));
	if (!move->part) {
		move_end(move);
		return;
	}
	step_set(move, MOVE_WRITE);
	parts_make(move);
	move->writing = move->parts;
	for (i = 0; i < move->places; i++)
		move->moves->status.written_sectors += move->place[i].extent.n;
	for (i = 0; i < move->parts; i++)
		freeblock_write(move->moves->task, &move->part[i].req);
}

/* ---- Compared; swapped ---- */

static void swap_next(struct move *move);

static void move_compared(struct move *move)
{
	struct move_range *range;
	unsigned i;

	for (i = 0; i < move->places; i++) {
		range = range_of(move, move->place[i].at);
		if (!move->place[i].failed || !range)
			continue;
		move->moves->status.failed_sectors += range->blocks *
						     BLOCK_SECTORS;
		range_drop(move, range, 0);
	}
	move->moves->status.compared_sectors += move->sectors;
	step_set(move, MOVE_SWAP);
	move->swapping = 0;
	swap_next(move);
}

static void swap_locked(struct excl_lock *excl, int rc)
{
	struct move *move = container_of(excl, struct move, excl);

	if (rc)
		move_swapped(move, rc);
	else
		move_swap(move);
}

/* Goes on with the next range that has been written. */
static void swap_next(struct move *move)
{
	struct move_range *range;

	for (; move->swapping < move->ranges; move->swapping++) {
		range = &move->range[move->swapping];
		if (!range->blocks)
			continue;
		move->swapped = 0;
		move->file = file_get(move->moves->fs, range->ino);
		if (!move->file) {
			range_drop(move, range, 0);
			continue;
		}
		move->excl = (struct excl_lock){ .file = move->file,
						.start = swap_locked };
		list_init(&move->excl.link);
		file_lock_excl(&move->excl);
		return;
	}
	if (move->is_order) {
		move_end(move);
		return;
	}
	step_set(move, MOVE_DRAIN);
	abandon_free(move->memory);
	abandon_free(move->part);
	move->memory = NULL;
	move->part = NULL;
}

void move_swapped(struct move *move, int rc)
{
	struct move_range *range = &move->range[move->swapping];
	struct file *file = move->file;
	struct moves_status *status = &move->moves->status;

	status->sectors += move->swapped * BLOCK_SECTORS;
	move->moved += move->swapped * BLOCK_SECTORS;
	if (rc)
		status->stale_sectors += (range->blocks - move->swapped) *
					 BLOCK_SECTORS;
	for (unsigned i = 0; !rc && i < range->sources; i++)
		move->source[range->source + i].left = true;
	range_drop(move, range, move->swapped);
	move->file = NULL;
	move->swapping++;
	file_unlock_excl(&move->excl);
	file_put(file);
	if (!is_closing(move))
		swap_next(move);
}

/* ---- Time passes ---- */

/* Is each sector of a track free, or taken by the move? */
static bool track_is_empty(const struct move *move, const struct range *track)
{
	const struct rangeset *set =
		space_free_set(tree_space(move->moves->fs->tree));
	uint64_t at = track->first, end = at + track->n;
	struct range run;
	unsigned i;

	while (at < end) {
		for (i = 0; i < move->claims && move->claim[i].first != at; i++)
			;
		if (i < move->claims)
			at += move->claim[i].n;
		else if (rangeset_next(set, at, &run) && run.first <= at)
			at = run.first + run.n;
		else
			return false;
	}
	return true;
}

/* Ends a move whose tracks are free, or when its time is over: some of the data
 * on the tracks may have stayed. */
static void drain(struct move *move, uint64_t now_ns)
{
	const struct rangeset *set =
		space_free_set(tree_space(move->moves->fs->tree));
	bool is_free = true;
	unsigned i;

	for (i = 0; is_free && i < move->sources; i++)
		is_free = !move->source[i].left ||
			  rangeset_has(set, move->source[i].sector,
				       move->source[i].n);
	if (!is_free && now_ns - move->step_ns < DRAIN_NS)
		return;
	for (i = 0; i < move->tracks; i++)
		move->moves->status.tracks +=
			track_is_empty(move, &move->track[i]);
	move_end(move);
}

void move_run(struct move *move, uint64_t now_ns)
{
	switch (move->step) {
	case MOVE_READ:
	case MOVE_COMPARE:
		if (!move->left)
			reads_over(move);
		break;
	case MOVE_WRITE:
		if (!move->writing)
			wait_for_reads(move, MOVE_COMPARE);
		break;
	case MOVE_DRAIN:
		drain(move, now_ns);
		break;
	default:
		break;
	}
}
