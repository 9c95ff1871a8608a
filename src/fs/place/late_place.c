/*
 * late_place.c - chooses places of small new files at dispatch (range writes).
 *
 * The data of a new file of up to 64 KiB, for which nobody waits and which does
 * not continue the file's end, gets the place on its track, or on the next one
 * with room, that the head reaches first.
 *
 * Data that gets a place right behind such data, while that waits for its turn,
 * goes with it (a batch): only the first write-back is in the queue, as a range
 * write; when it gets its place the others get theirs behind it and are one
 * access with it.  Data that gets a place right behind it when it is already on
 * its way stays there, and the head just goes on.
 *
 * Where a track's worth of new data waits already, and the drive begins a write
 * anywhere, no place is chosen: whole tracks lose no rotation wherever the head
 * is, and what a chosen place leaves free before it is filled by single files
 * later, each with a seek.
 *
 * Nothing depends on the place before the write is over: the transaction that
 * maps the data follows it.  If more of a file has been placed behind this data
 * since, the data and all of its batch stay where they are.
 *
 * Files of a directory lie one behind the other in the order in which they were
 * made, and are read in this order.  A file that lies elsewhere costs each such
 * reader an eighth of a turn and more (measured), and LAMBDA such readers are
 * expected: the other place must win half a turn.
 */
#include "fs/place/late_place.h"

#include "base/list.h"
#include "fs/data/writeback.h"
#include "sched/queue/policy.h"
#include "sched/queue/range_write.h"

/* A file is expected to be read this many times in the order of its directory;
 * each of these reads loses one part in FOLLOWS_PART of a turn (measured) if
 * the file lies elsewhere. */
#define LAMBDA 4u
#define FOLLOWS_PART 8u

/* Data is placed late in files of up to this many blocks. */
#define SMALL_BLOCKS 16u

/* Free sectors in a window. */
struct room {
	struct range_set set;
	const struct alloc *alloc;
};

static bool room_next(const struct range_set *set, uint64_t from,
		      uint64_t end, uint32_t sectors, uint64_t *place)
{
	const struct room *room = container_of(set, const struct room, set);

	return alloc_next(room->alloc, from, end, sectors, place);
}

/* ---- Batches ---- */

static uint64_t writeback_begin_sector(const struct writeback *wb)
{
	return wb->segment[0].sector;
}

static uint64_t writeback_end_sector(const struct writeback *wb)
{
	const struct writeback_segment *last = &wb->segment[wb->segments - 1];

	return last->sector + last->n;
}

static uint64_t batch_sectors(const struct writeback *first)
{
	return writeback_end_sector(first->batch_last) -
	       writeback_begin_sector(first);
}

static bool is_waited_for(const struct writeback *wb)
{
	return wb->segment[0].req.class == QUEUE_COMMIT;
}

/* May the batch go elsewhere?  It may not if other data was placed behind
 * it. */
static bool batch_may_leave(const struct writeback *first)
{
	const struct writeback *wb;

	for (wb = first; wb && first->may_move; wb = wb->batch_next)
		if (wb->file->preparing ||
		    wb->file->tail_addr != writeback_end_sector(wb))
			return false;
	return first->may_move;
}

static void batch_move(struct writeback *first, uint64_t sector)
{
	struct alloc_extent extent = {
		.sector = writeback_begin_sector(first),
		.n = batch_sectors(first),
	};
	struct writeback *wb;

	if (alloc_move(first->files->fs->alloc, &extent, sector))
		return;
	for (wb = first; wb; wb = wb->batch_next) {
		wb->segment[0].sector = sector;
		wb->segment[0].known = extent.known;
		sector += wb->segment[0].n;
		wb->file->tail_addr = sector;
	}
}

/* ---- Calls of the queue ---- */

/* The cost that the queue expects of a request with a fixed place. */
static uint64_t cost_at(const struct head_state *head_state, uint64_t sector,
			uint32_t sectors)
{
	struct policy_site site;
	uint64_t seek_ns;

	policy_site_init(&site, head_state->geom, true, sector, sectors, 0);
	return policy_cost_ns(head_state, &site, &seek_ns);
}

static uint64_t follows_ns(const struct head_state *head_state,
			   const struct writeback *wb)
{
	return wb->follows ? LAMBDA * (head_state->mech->period_ps / 1000) /
			      FOLLOWS_PART : 0;
}

static int late_place_find(struct queue_place *place,
			   const struct head_state *head_state,
			   uint32_t sectors, uint64_t *sector,
			   uint64_t *cost_ns)
{
	const struct writeback *first =
		container_of(place, const struct writeback, place);
	const struct room room = {
		.set = { room_next }, .alloc = first->files->fs->alloc,
	};
	struct range_query query = {
		.set = &room.set, .within = &first->window, .within_n = 1,
		.sectors = (uint32_t)batch_sectors(first),
		.lambda = LAMBDA,
	};
	struct range_answer answer;
	struct geom_track ideal;
	uint64_t there_ns;

	*sector = writeback_begin_sector(first);
	*cost_ns = 0;
	if (!head_state)
		return 0;
	*cost_ns = cost_at(head_state, *sector, sectors);
	geom_track_of(head_state->geom, *sector, &ideal);
	query.ideal = ideal.cylinder;
	if (!batch_may_leave(first) || range_find(head_state, &query, &answer))
		return 0;
	there_ns = cost_at(head_state, answer.sector, sectors);
	if (there_ns + follows_ns(head_state, first) < *cost_ns) {
		*sector = answer.sector;
		*cost_ns = there_ns;
	}
	return 0;
}

static void late_place_take(struct queue_place *place,
			    struct queue_request *req, uint64_t sector)
{
	struct writeback *first = container_of(place, struct writeback, place),
			 *wb;
	struct place_batch *placing = &first->files->placing;
	unsigned i;

	if (sector != writeback_begin_sector(first))
		batch_move(first, sector);
	req->disk.sector = writeback_begin_sector(first);
	if (placing->last == first) {
		placing->last = NULL;
		placing->in_flight_end =
			writeback_end_sector(first->batch_last);
	}
	for (wb = first->batch_next; wb; wb = wb->batch_next) {
		wb->segment[0].req.disk.sector = writeback_begin_sector(wb);
		for (i = 0; i < wb->segments; i++)
			writeback_submit(wb, &wb->segment[i], req->class);
	}
}

/* ---- Write-backs ---- */

static void batch_begin(struct writeback *wb)
{
	const struct alloc_extent extent = {
		.sector = wb->segment[0].sector, .n = wb->segment[0].n,
	};

	alloc_window(wb->files->fs->alloc, &extent, &wb->window);
	wb->batch_last = wb->files->placing.last = wb;
	wb->place = (struct queue_place){ .find = late_place_find,
					   .take = late_place_take,
					   .leads = true };
	wb->segment[0].req.place = &wb->place;
	writeback_submit(wb, &wb->segment[0], wb->segment[0].req.class);
}

/* The batch may become too long to go anywhere. */
static void batch_join(struct writeback *first, struct writeback *wb)
{
	const struct fs *fs = wb->files->fs;
	const uint64_t begin = writeback_begin_sector(first);
	const uint64_t end = writeback_end_sector(wb);

	first->batch_last->batch_next = wb;
	first->batch_last = wb;
	first->may_move = first->may_move && wb->may_move &&
			  end - begin <= queue_limits(fs->queue)->max_sectors &&
			  alloc_cut(fs->alloc, begin, end) == end;
}

static bool may_begin(const struct writeback *wb)
{
	const struct fs *fs = wb->files->fs;

	return wb->may_move && !fs->options.fixed_places &&
	       wb->n <= SMALL_BLOCKS &&
	       wb->segment[0].n <= queue_limits(fs->queue)->max_sectors &&
	       queue_places(fs->queue, writeback_begin_sector(wb),
			    wb->files->placing.blocks * BLOCK_SECTORS);
}

bool late_place_choose(struct writeback *wb)
{
	struct place_batch *placing = &wb->files->placing;
	struct writeback *batch = placing->last;
	bool goes_on = placing->blocks &&
		       placing->in_flight_end == writeback_begin_sector(wb);

	if (is_waited_for(wb))
		return false;
	wb->in_flight = true;
	placing->blocks += wb->n;
	if (batch && writeback_end_sector(batch->batch_last) ==
			     writeback_begin_sector(wb)) {
		batch_join(batch, wb);
		return true;
	}
	if (!goes_on && may_begin(wb)) {
		batch_begin(wb);
		return true;
	}
	placing->in_flight_end = writeback_end_sector(wb);
	return false;
}

void late_place_over(struct writeback *wb)
{
	if (wb->in_flight)
		wb->files->placing.blocks -= wb->n;
}
