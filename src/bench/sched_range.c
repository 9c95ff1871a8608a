/*
 * sched_range.c - range writes (Anand et al., FAST 2008, section 4): random
 * writes that may go to one place, anywhere on about a track, or anywhere in a
 * block group, by queue depth; over the whole disk or one group.
 *
 * As in the paper all places of a range are free: what is measured is the
 * scheduling.  Outstanding writes never collide (ranges_next).
 */
#include "base/list.h"
#include "bench/rig.h"
#include "bench/sched_measures.h"
#include "sched/queue/range_write.h"

#define DRIVE "hp-c2247a"	/* The drive of the paper. */
/* 4096 blocks of 512 bytes */
#define GROUP_SECTORS SCHED_GROUP_RANGE
#define GROUP_FIRST 409600u
#define MAX_DEPTH 64u
#define NO_SECTOR UINT64_MAX	/* No request is outstanding there. */

struct bench_writer {
	struct queue_place place;
	struct range_set set;
	struct ranges *ranges;
	struct range within;
	uint64_t sector;	/* where its outstanding write goes; NO_SECTOR:
				 * it has none */
};

/* One measurement. */
struct ranges {
	uint32_t range;		/* sectors of a range; 0: one place only */
	uint32_t slot;		/* sectors of a write, and its alignment */
	const struct range *fixed; /* all writes go to this range; NULL: to one
				    * of their own */
	struct bench_writer writer[MAX_DEPTH];
	uint64_t sectors;	/* sectors of the disk */
};

/* Does an outstanding write meet these sectors?  *end is where it ends. */
static bool is_taken(const struct ranges *r, uint64_t sector, uint64_t *end)
{
	for (unsigned i = 0; i < MAX_DEPTH; i++) {
		const uint64_t taken = r->writer[i].sector;

		*end = taken + r->slot;
		if (taken != NO_SECTOR && sector < *end &&
		    taken < sector + r->slot)
			return true;
	}
	return false;
}

static bool ranges_next(const struct range_set *set, uint64_t from,
			uint64_t end, uint32_t sectors, uint64_t *place)
{
	const struct bench_writer *w =
		container_of(set, const struct bench_writer, set);
	const uint32_t slot = w->ranges->slot;

	do
		*place = (from + slot - 1) / slot * slot;
	while (is_taken(w->ranges, *place, &from));
	return *place + sectors <= end;
}

static int ranges_find(struct queue_place *place,
		       const struct head_state *head_state, uint32_t sectors,
		       uint64_t *sector, uint64_t *cost_ns)
{
	struct bench_writer *w =
		container_of(place, struct bench_writer, place);
	const struct range_query query = {
		.set = &w->set, .within = &w->within, .within_n = 1,
		.sectors = sectors,
	};
	struct range_answer answer = { .cost_ns = 0 };
	int rc = 0;

	if (!head_state)
		return ranges_next(&w->set, w->within.first,
				   w->within.first + w->within.n, sectors,
				   sector) ? 0 : -1;
	rc = range_find(head_state, &query, &answer);
	*sector = answer.sector;
	*cost_ns = answer.cost_ns;
	return rc;
}

static void ranges_take(struct queue_place *place, struct queue_request *req,
			uint64_t sector)
{
	struct bench_writer *w =
		container_of(place, struct bench_writer, place);

	(void)req;
	w->sector = sector;
}

static void ranges_prepare(void *arg, unsigned client,
			   struct queue_request *req)
{
	struct ranges *r = arg;
	struct bench_writer *w = &r->writer[client];
	struct disk_request *disk = &req->disk;

	/* Requests that are old would take the choice from the scheduler; idle
	 * ones do not become old. */
	req->class = QUEUE_IDLE;
	disk->sectors = r->slot;
	disk->iov->iov_len = (size_t)r->slot * SECTOR_BYTES;
	disk->sector = disk->sector / r->slot * r->slot;
	if (disk->op == DISK_READ || !r->range)
		return;
	w->ranges = r;
	w->set.next = ranges_next;
	w->place = (struct queue_place){ .find = ranges_find,
					   .take = ranges_take };
	w->within = r->fixed ? *r->fixed :
		(struct range){ disk->sector, r->range };
	if (w->within.first + w->within.n > r->sectors)
		w->within.first = r->sectors - w->within.n;
	req->place = &w->place;
}

static void ranges_over(void *arg, unsigned client, struct queue_request *req)
{
	struct ranges *r = arg;

	(void)req;
	r->writer[client].sector = NO_SECTOR;
}

/* The head has to be found before anything is measured. */
static int learn(struct rig *rig, uint64_t seed)
{
	const struct rig_load load = {
		.clients = 1, .sectors = 8, .read_percent = 50,
		.requests = 400, .seed = seed,
	};
	struct rig_result result;

	return rig_run(rig, &load, &result);
}

int sched_range_times(const struct sched_options *options,
		      const struct sched_range_load *wanted,
		      struct sched_range_point *out)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : DRIVE,
		.seed = options->seed,
		.no_cache = true,
	};
	const struct range all = { GROUP_FIRST, GROUP_SECTORS };
	struct ranges ranges = {
		.range = wanted->range, .slot = wanted->slot,
		.fixed = wanted->group && wanted->range == GROUP_SECTORS ?
				 &all : NULL,
	}, *r = &ranges;
	struct rig_load load = {
		.clients = wanted->depth, .sectors = 8,
		.first = wanted->group ? GROUP_FIRST : 0,
		.span = wanted->group ? GROUP_SECTORS : 0,
		.requests = options->requests ? options->requests : 4000,
		.warmup = 500, .seed = options->seed,
		.prepare = ranges_prepare, .over = ranges_over, .arg = r,
	};
	struct rig_result result;
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	load.requests /= options->quick ? 10 : 1;
	r->sectors = geom_sectors(rig.geom);
	for (unsigned i = 0; i < MAX_DEPTH; i++)
		r->writer[i].sector = NO_SECTOR;
	err = learn(&rig, options->seed);
	if (!err)
		err = rig_run(&rig, &load, &result);
	rig_close(&rig);
	if (err)
		return err;
	out->positioning_ms = (double)(result.times.seek_ns +
		result.times.switch_ns + result.times.rotation_ns) / 1e6 /
		(double)load.requests;
	return 0;
}
