/*
 * sched_create.c - small files created in a block group (Anand et al., FAST
 * 2008, section 5.3): 1000 files of 4 KB, 16 outstanding.
 *
 * Each writer begins at a place of its own, one of 16 in the group.  It goes on
 * from there to the next free block, as ext2 does; or it may take any free
 * block of its part of the group that the head comes by, and of the next parts
 * when that is nearly full.  The group is filled in part before, in runs of up
 * to eight blocks.
 */
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "bench/rig.h"
#include "bench/sched_measures.h"
#include "sched/queue/range_write.h"

#define DRIVE "hp-c2247a"	/* The drive of the paper. */
#define BLOCK 8u		/* sectors of a block */
#define BLOCKS 32768u		/* blocks of a group: 128 MB */
/* Parts of a group, one for each of the most writers. */
#define PARTS 16u
/* Blocks of a part; a writer that finds fewer free ones than ROOM in its part
 * may take those of the next part too. */
#define PART (BLOCKS / PARTS)
#define ROOM (PART / 4)
/* The sector at which the group begins. */
#define FIRST (UINT64_C(100000) * BLOCK)
/* Files that are made, and how many are outstanding, as in the paper. */
#define FILES 1000u
#define DEPTH 16u

struct creation {
	unsigned writers;
	bool ranges;
	struct range_set set;
	uint64_t free[BLOCKS / 64];	/* bit set: the block is free */
	struct creator {
		struct queue_place place;
		struct creation *of;
		unsigned part;
	} creator[DEPTH];
	unsigned asked;
	uint64_t seed;
};

static void take(struct creation *c, uint32_t block)
{
	c->free[block / 64] &= ~(UINT64_C(1) << block % 64);
}

/* Fills a share of the group. */
static void fill(struct creation *c, unsigned percent)
{
	uint32_t left = BLOCKS / 100 * percent;

	memset(c->free, 0xff, sizeof(c->free));
	while (left) {
		uint32_t at = (uint32_t)(rig_random(&c->seed) % BLOCKS);
		uint32_t n = 1 + (uint32_t)(rig_random(&c->seed) % 8);

		for (; n && left && at < BLOCKS; n--, at++) {
			left -= c->free[at / 64] >> at % 64 & 1;
			take(c, at);
		}
	}
}

static bool free_next(const struct range_set *set, uint64_t from,
		      uint64_t end, uint32_t sectors, uint64_t *place)
{
	const struct creation *c = container_of(set, struct creation, set);
	uint64_t i = from > FIRST ? (from - FIRST + BLOCK - 1) / BLOCK : 0;

	while (i < BLOCKS && !(c->free[i / 64] >> i % 64 & 1))
		i++;
	*place = FIRST + i * BLOCK;
	return i < BLOCKS && *place + sectors <= end;
}

/* Finds the next free block of the part or, when that is full, of the group. */
static bool next_free(struct creation *c, unsigned part, uint64_t *sector)
{
	const uint64_t from = FIRST + (uint64_t)part * PART * BLOCK;
	const uint64_t end = FIRST + (uint64_t)BLOCKS * BLOCK;

	return free_next(&c->set, from, end, BLOCK, sector) ||
	       free_next(&c->set, FIRST, end, BLOCK, sector);
}

/* Number of parts, from this one on, that have enough room to choose from. */
static unsigned parts_with_room(const struct creation *c, unsigned part)
{
	unsigned free = 0, n = 0;

	while (part + n < PARTS && free < ROOM) {
		const uint64_t *word = &c->free[(part + n) * PART / 64];

		for (unsigned i = 0; i < PART / 64; i++)
			free += (unsigned)__builtin_popcountll(word[i]);
		n++;
	}
	return n;
}

static int creation_find(struct queue_place *place,
			 const struct head_state *head_state, uint32_t sectors,
			 uint64_t *sector, uint64_t *cost_ns)
{
	struct creator *w = container_of(place, struct creator, place);
	struct creation *c = w->of;
	struct range within = {
		FIRST + (uint64_t)w->part * PART * BLOCK,
		(uint64_t)parts_with_room(c, w->part) * PART * BLOCK,
	};
	const struct range_query query = {
		.set = &c->set, .within = &within, .within_n = 1,
		.sectors = sectors,
	};
	struct range_answer answer;

	*cost_ns = 0;
	if (!head_state || range_find(head_state, &query, &answer))
		return next_free(c, w->part, sector) ? 0 : -1;
	*sector = answer.sector;
	*cost_ns = answer.cost_ns;
	return 0;
}

static void creation_take(struct queue_place *place, struct queue_request *req,
			  uint64_t sector)
{
	struct creator *w = container_of(place, struct creator, place);

	(void)req;
	take(w->of, (uint32_t)((sector - FIRST) / BLOCK));
}

static void creation_prepare(void *arg, unsigned client,
			     struct queue_request *req)
{
	struct creation *c = arg;
	struct creator *w = &c->creator[client];

	w->of = c;
	w->part = c->asked++ % c->writers * (PARTS / c->writers);
	req->class = QUEUE_IDLE;
	if (c->ranges) {
		w->place = (struct queue_place){
			.find = creation_find, .take = creation_take,
		};
		req->place = &w->place;
	} else if (next_free(c, w->part, &req->disk.sector)) {
		take(c, (uint32_t)((req->disk.sector - FIRST) / BLOCK));
	}
}

int sched_create_time(const struct sched_options *options, unsigned writers,
		      unsigned percent, bool ranges, double *ms)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : DRIVE,
		.seed = options->seed, .no_cache = true,
	};
	const struct rig_load learn = {
		.clients = 1, .sectors = BLOCK, .read_percent = 50,
		.requests = 400, .seed = options->seed,
	};
	static struct creation c;
	const struct rig_load load = {
		.clients = DEPTH, .sectors = BLOCK, .first = FIRST,
		.span = BLOCKS * BLOCK, .requests = FILES,
		.seed = options->seed, .prepare = creation_prepare, .arg = &c,
	};
	struct rig_result result;
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	c = (struct creation){ .writers = writers, .ranges = ranges,
			       .set = { free_next }, .seed = options->seed };
	fill(&c, percent);
	err = rig_run(&rig, &learn, &result);
	if (!err)
		err = rig_run(&rig, &load, &result);
	if (!err)
		*ms = (double)result.ns / 1e6 / FILES;
	rig_close(&rig);
	return err;
}
