/*
 * late_place.c - places of data that are chosen at dispatch (range writes).
 *
 * Who waits for an fsync of much new data waits for two writes, the data and
 * the record behind it.  The record goes where the head is, and then the place
 * behind the last data has just gone by.  So what begins anew (a file; not what
 * goes on behind the file's end) takes, of its track and the next one with
 * room, what comes by first.  Small files that nobody waits for do so too.
 *
 * What is given a place while it waits for its turn, right behind it, goes with
 * it (a train): the first alone is with the queue, as a range write, and when
 * it gets its place the others get theirs behind it and are one access with it.
 * What comes when it is on its way, and lies right behind it, stays there, and
 * the head just goes on.  Many who wait are served by that already, and a
 * choice would part them (CROWD); one or a few are not.
 *
 * Nothing depends on the place before the write is over: the transaction that
 * maps the data follows it.  A file of which more has been placed behind this
 * since stays where it is, and all of its train.
 *
 * Files of a directory lie one behind the other in the order they were made,
 * and are read that way.  Who is put elsewhere costs who reads them in order
 * an eighth of a turn and more (measured), and that is expected LAMBDA times:
 * half a turn must be won by it.
 */
#include "fs/place/late_place.h"

#include "base/list.h"
#include "sched/queue/policy.h"
#include "sched/queue/range_write.h"

/* Expected reads, as far as they pay for where it lies. */
#define LAMBDA 4u
#define FOLLOWS_PART 8u		/* of a turn */

/* Of what nobody waits for: files up to this. */
#define SMALL_BLOCKS 16u
/* So many on their way at once, of late, are enough of what is waited for. */
#define CROWD_UNIT 64u
#define CROWD (5 * CROWD_UNIT / 2)

/* What is free in a window. */
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

/* ---- Trains ---- */

static uint64_t job_begin_sector(const struct job *job)
{
	return job->segment[0].sector;
}

static uint64_t job_end_sector(const struct job *job)
{
	const struct job_segment *last = &job->segment[job->segments - 1];

	return last->sector + last->n;
}

static uint64_t train_sectors(const struct job *first)
{
	return job_end_sector(first->last) - job_begin_sector(first);
}

static bool is_waited_for(const struct job *job)
{
	return job->segment[0].req.class == QUEUE_COMMIT;
}

static struct placing *placing_of(const struct job *job)
{
	return &job->files->placing[!is_waited_for(job)];
}

/* Has nobody been given a place by where this train is? */
static bool train_may_leave(const struct job *first)
{
	const struct job *job;

	for (job = first; job && first->may_move; job = job->behind)
		if (job->file->preparing ||
		    job->file->tail_addr != job_end_sector(job))
			return false;
	return first->may_move;
}

static void train_move(struct job *first, uint64_t sector)
{
	struct alloc_piece piece = {
		.sector = job_begin_sector(first), .n = train_sectors(first),
	};
	struct job *job;

	if (alloc_move(first->files->fs->alloc, &piece, sector))
		return;
	for (job = first; job; job = job->behind) {
		job->segment[0].sector = sector;
		job->segment[0].known = piece.known;
		sector += job->segment[0].n;
		job->file->tail_addr = sector;
	}
}

/* ---- The queue asks ---- */

/* As the queue sees a request whose place is fixed. */
static uint64_t cost_at(const struct belief *belief, uint64_t sector,
			uint32_t sectors)
{
	struct policy_site site;
	uint64_t seek_ns;

	policy_site_init(&site, belief->geom, true, sector, sectors, 0);
	return policy_cost_ns(belief, &site, &seek_ns);
}

static uint64_t follows_ns(const struct belief *belief, const struct job *job)
{
	return job->follows ? LAMBDA * (belief->mech->period_ps / 1000) /
			      FOLLOWS_PART : 0;
}

static int place_find(struct queue_place *place, const struct belief *belief,
		      uint32_t sectors, uint64_t *sector, uint64_t *cost_ns)
{
	const struct job *first = container_of(place, const struct job, place);
	const struct room room = {
		.set = { room_next }, .alloc = first->files->fs->alloc,
	};
	struct range_query query = {
		.set = &room.set, .within = &first->window, .within_n = 1,
		.sectors = (uint32_t)train_sectors(first),
		.options = RANGE_OPTIONS, .lambda = LAMBDA,
	};
	struct range_answer answer;
	struct geom_track home;
	uint64_t there_ns;

	*sector = job_begin_sector(first);
	*cost_ns = 0;
	if (!belief)
		return 0;
	*cost_ns = cost_at(belief, *sector, sectors);
	geom_track_of(belief->geom, *sector, &home);
	query.home = home.cylinder;
	if (!train_may_leave(first) || range_find(belief, &query, &answer))
		return 0;
	there_ns = cost_at(belief, answer.sector, sectors);
	if (there_ns + follows_ns(belief, first) < *cost_ns) {
		*sector = answer.sector;
		*cost_ns = there_ns;
	}
	return 0;
}

static void place_take(struct queue_place *place, struct queue_request *req,
		       uint64_t sector)
{
	struct job *first = container_of(place, struct job, place), *job;
	struct placing *placing = placing_of(first);
	unsigned i;

	if (sector != job_begin_sector(first))
		train_move(first, sector);
	req->disk.sector = job_begin_sector(first);
	if (placing->train == first) {
		placing->train = NULL;
		placing->going_to = job_end_sector(first->last);
	}
	for (job = first->behind; job; job = job->behind) {
		job->segment[0].req.disk.sector = job_begin_sector(job);
		for (i = 0; i < job->segments; i++)
			job_submit(job, &job->segment[i], req->class);
	}
}

/* ---- Jobs ---- */

static void train_begin(struct job *job)
{
	const struct alloc_piece piece = {
		.sector = job->segment[0].sector, .n = job->segment[0].n,
	};

	alloc_window(job->files->fs->alloc, &piece, &job->window);
	job->last = placing_of(job)->train = job;
	job->place = (struct queue_place){ .find = place_find,
					   .take = place_take,
					   .leads = true };
	job->segment[0].req.place = &job->place;
	job_submit(job, &job->segment[0], job->segment[0].req.class);
}

/* What it has become may be too long to go anywhere. */
static void train_join(struct job *first, struct job *job)
{
	const struct fs *fs = job->files->fs;
	const uint64_t begin = job_begin_sector(first);
	const uint64_t end = job_end_sector(job);

	first->last->behind = job;
	first->last = job;
	first->may_move = first->may_move && job->may_move &&
			  end - begin <= queue_limits(fs->queue)->max_sectors &&
			  alloc_cut(fs->alloc, begin, end) == end;
}

static bool may_begin(const struct job *job)
{
	const struct fs *fs = job->files->fs;

	return job->may_move && !fs->options.fixed_places &&
	       (is_waited_for(job) ? placing_of(job)->crowd <= CROWD :
				     job->n <= SMALL_BLOCKS) &&
	       job->segment[0].n <= queue_limits(fs->queue)->max_sectors &&
	       queue_places(fs->queue);
}

bool place_choose(struct job *job)
{
	struct placing *placing = placing_of(job);
	struct job *train = placing->train;
	bool goes_on = placing->going &&
		       placing->going_to == job_begin_sector(job);

	job->going = true;
	placing->going++;
	placing->crowd += placing->going * CROWD_UNIT / 8;
	placing->crowd -= placing->crowd / 8;
	if (train && job_end_sector(train->last) == job_begin_sector(job)) {
		train_join(train, job);
		return true;
	}
	if (!goes_on && may_begin(job)) {
		train_begin(job);
		return true;
	}
	placing->going_to = job_end_sector(job);
	return false;
}

void place_over(struct job *job)
{
	placing_of(job)->going -= job->going;
}
