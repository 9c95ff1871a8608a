/*
 * replica_readahead.c - see replica_readahead.h.
 */
#include "fs/replica/replica_readahead.h"

#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "fs/data/file_data.h"
#include "fs/replica/access_trace.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"
#include "sched/head/head.h"

#define RUNS 128u	/* Runs that are remembered. */
/* Sectors of the first run of a stream, at least; fewer where tracks are
 * small. */
#define REPLICA_RUN_SECTORS 128u
/* Each run of a stream is this many times as long as the one before. */
#define REPLICA_RUN_GROWTH 4u
/* Distance in sectors (1 MiB) over which the head just goes on, where the
 * mechanics are not known. */
#define NEAR_SECTORS 2048u
#define MAX_SECTORS 8192u	/* Most sectors of a run: 4 MiB. */
/* Reads in a thousand that are assumed at first to find their data in a run
 * that was read for another one; and the weight of each further read. */
#define SHARE_FIRST 875
#define SHARE_WEIGHT 16
/* When fewer reads in a thousand do, reads come at random among the replicas:
 * then a run is read only for one in LONE_TRIES of them, to see whether that
 * has changed. */
#define SHARE_LEAST 125
#define LONE_TRIES 16u
/* The first run of a stream is at most a track divided by this. */
#define FIRST_TRACK_PART 4u
#define SHARE 4u		/* part of the replicas' memory that is left to
				 * others */
#define LEAST_RUNS 6u		/* runs that must fit into memory at a time */
#define REPLICA_RUN_TRACKS 2u		/* tracks of a run; longer ones make the
					 * reader wait */
#define FIRST_PART 4u		/* part of a run's room that begins a stream, as
				 * the reader waits for all of the first run */
/* Regions at most this far apart are read in one run. */
#define GAP_SECTORS 64u
/* A stream goes on in the next region when that is at most this far away. */
#define NEXT_SECTORS 16384u

struct replica_run {
	struct fs *fs;
	uint64_t sector;
	uint32_t sectors;	/* sectors of the run; 0: the entry is free */
	uint32_t room;		/* sectors that `data` has room for */
	bool loading, followed;
	bool stale;		/* its data must not be used */
	bool gone;		/* stale because a region in it was dropped */
	unsigned pins;		/* wants that use a part of it */
	uint32_t takes;		/* number of wants that took from it */
	uint64_t used;
	struct list wants;
	uint8_t *data;
	struct queue_request req;
	struct iovec iov;
};

struct replica_ra {
	struct replica_run run[RUNS];
	uint32_t room;		/* most sectors of a run */
	uint64_t total, most;	/* sectors in memory, and their bound */
	uint32_t first;		/* sectors of the first run of a stream */
	uint32_t least;		/* the same where not all fits into memory */
	int share;		/* reads in 1000 that find their data in a
				 * run */
	uint64_t lone;		/* reads for which a run did not seem to pay */
	uint64_t clock;
	uint64_t last;		/* where the last read ended */
	unsigned metas;
	struct replica_ra_stats stats;
};

int replica_ra_new(struct fs *fs)
{
	struct replica_ra *runs = calloc(1, sizeof(*runs));
	uint64_t most = (fs->budget.replicas - fs->budget.replicas / SHARE) /
			SECTOR_BYTES;
	uint64_t share = most / LEAST_RUNS;
	uint64_t tracks =
		REPLICA_RUN_TRACKS * alloc_track_sectors(fs->alloc, 0);
	unsigned i;

	if (!runs)
		return -ENOMEM;
	fs->replica_ra = runs;
	runs->most = most;
	share = share < MAX_SECTORS ? share : MAX_SECTORS;
	runs->room = (uint32_t)(share < tracks ? share : tracks);
	runs->share = SHARE_FIRST;
	runs->least = (uint32_t)(tracks / REPLICA_RUN_TRACKS /
				 FIRST_TRACK_PART / BLOCK_SECTORS *
				 BLOCK_SECTORS);
	if (runs->least > REPLICA_RUN_SECTORS)
		runs->least = REPLICA_RUN_SECTORS;
	runs->room -= runs->room % BLOCK_SECTORS;
	/* If all replicas fit into memory, long runs bring them there soon. */
	runs->first = regions_sectors(fs->replicas->regions) <= most ?
		runs->room / FIRST_PART : runs->least;
	if (runs->first < runs->least)
		runs->first = runs->least;
	for (i = 0; i < RUNS; i++) {
		runs->run[i].fs = fs;
		list_init(&runs->run[i].wants);
	}
	return 0;
}

void replica_ra_free(struct fs *fs)
{
	unsigned i;

	for (i = 0; fs->replica_ra && i < RUNS; i++)
		free(fs->replica_ra->run[i].data);
	free(fs->replica_ra);
	fs->replica_ra = NULL;
}

bool replica_ra_idle(const struct fs *fs)
{
	unsigned i;

	for (i = 0; fs->replica_ra && i < RUNS; i++)
		if (fs->replica_ra->run[i].loading)
			return false;
	return true;
}

const struct replica_ra_stats *replica_ra_stats(const struct fs *fs)
{
	return &fs->replica_ra->stats;
}

/* ---- Inodes of the files in a run ---- */

struct meta {
	uint64_t sector, end;
};

/* Looks up the inodes of one list; returns where it ends. */
static uint64_t meta_list(struct fs_txn *txn, const struct meta *meta,
			  const struct tree_item *item, bool *miss)
{
	struct copy_entry list[TRAX_COPIES_PER_ITEM];
	uint64_t at = addr_sector(item->key.off), ino = 0;
	size_t n = item->bytes / sizeof(list[0]), i;
	struct tree_item inode;

	memcpy(list, item->value, item->bytes);
	for (i = 0; i < n && at < meta->end; i++) {
		if (at >= meta->sector && le64_get(list[i].ino) != ino &&
		    tree_txn_room(txn->tree_txn) >= TREE_SEEK_NODES) {
			ino = le64_get(list[i].ino);
			if (ino && tree_get(txn->tree_txn,
					    key_make(ino, ITEM_INODE, 0),
					    &inode) == -EAGAIN)
				*miss = true;
		}
		at += le16_get(list[i].blocks) * BLOCK_SECTORS;
	}
	return at;
}

static int meta_run(struct fs_txn *txn)
{
	struct meta *meta = txn->state;
	struct key from = key_make(0, ITEM_COPIES, meta->sector);
	struct tree_item item;
	bool miss = false;
	uint64_t at;
	int rc;

	rc = tree_seek_le(txn->tree_txn, from, key_make(0, ITEM_COPIES, 0),
			  &item);
	while (rc == 0) {
		at = meta_list(txn, meta, &item, &miss);
		if (at >= meta->end ||
		    tree_txn_room(txn->tree_txn) < TREE_SEEK_NODES)
			break;
		from = key_make(0, ITEM_COPIES, item.key.off + 1);
		rc = tree_seek_ge(txn->tree_txn, from,
				  key_make(0, ITEM_COPIES, meta->end), &item);
	}
	return rc == -EAGAIN || miss ? -EAGAIN : 0;
}

static void meta_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct meta *meta = txn->state;

	(void)rc;
	(void)seq;
	txn->fs->replica_ra->metas--;
	abandon_free(meta);
	fs_txn_finish(txn, 0);
}

static const struct fs_txn_type meta_type = {
	.name = "inodes of a run",
	.bounds = { .nodes = 48 },
	.stages = 16,
	.run = meta_run,
	.end = meta_end,
};

static void meta_start(struct fs *fs, uint64_t sector, uint64_t sectors)
{
	struct meta *meta;

	if (fs->replica_ra->metas)
		return;
	meta = abandon_alloc(fs, sizeof(*meta));
	if (!meta)
		return;
	*meta = (struct meta){ sector, sector + sectors };
	fs->replica_ra->metas++;
	if (fs_txn_start(fs, &meta_type, NULL, meta)) {
		fs->replica_ra->metas--;
		abandon_free(meta);
	}
}

/* ---- Loading ---- */

/* Ends a want whose data is in memory, unless it waits for its other part. */
static void want_end(struct replica_run_want *want)
{
	struct replica_run *head = want->head, *tail = want->tail;
	uint64_t at = want->sector - head->sector;
	size_t bytes = (size_t)want->sectors * SECTOR_BYTES;

	if (head->loading || (tail && tail->loading)) {
		list_add(head->loading ? &head->wants : &tail->wants,
			 &want->link);
		return;
	}
	if (tail)
		bytes = (head->sectors - at) * SECTOR_BYTES;
	want->gone = head->gone || (tail && tail->gone);
	if (head->stale || (tail && tail->stale))
		want->done(want, NULL, 0, NULL);
	else
		want->done(want, head->data + at * SECTOR_BYTES, bytes,
			   tail ? tail->data : NULL);
	head->pins--;
	if (tail)
		tail->pins--;
}

static void replica_run_loaded(struct disk_request *req)
{
	struct replica_run *run = req->owner;
	struct replica_run_want *want;
	struct list wants;

	run->loading = false;
	run->stale |= req->result != 0;
	list_init(&wants);
	while ((want = list_first(&run->wants, struct replica_run_want,
				  link))) {
		list_del(&want->link);
		list_add(&wants, &want->link);
	}
	run->pins++;
	while ((want = list_first(&wants, struct replica_run_want, link))) {
		list_del(&want->link);
		want_end(want);
	}
	run->pins--;
}

static void replica_run_drop(struct replica_ra *runs, struct replica_run *run)
{
	free(run->data);
	run->data = NULL;
	runs->total -= run->room;
	run->room = run->sectors = 0;
}

/* Memory of the runs that are in use. */
static uint64_t replica_ra_busy(const struct replica_ra *runs)
{
	const struct replica_run *run;
	uint64_t sectors = 0;

	for (run = runs->run; run < runs->run + RUNS; run++)
		if (run->loading || run->pins)
			sectors += run->room;
	return sectors;
}

/* Makes a run with room for `sectors`, in place of the runs that have not been
 * used for longest; NULL: all are in use. */
static struct replica_run *replica_run_new(struct replica_ra *runs,
					   uint32_t sectors)
{
	struct replica_run *oldest, *run;

	if (replica_ra_busy(runs) + sectors > runs->most)
		return NULL;
	for (;;) {
		oldest = NULL;
		for (run = runs->run; run < runs->run + RUNS; run++)
			if (!run->loading && !run->pins &&
			    (!oldest || run->used < oldest->used))
				oldest = run;
		if (!oldest)
			return NULL;
		replica_run_drop(runs, oldest);
		oldest->used = ++runs->clock;
		if (runs->total + sectors <= runs->most)
			break;
	}
	oldest->used = 0;
	oldest->data = aligned_alloc(TRAX_BLOCK_BYTES,
				     ((size_t)sectors * SECTOR_BYTES +
				      TRAX_BLOCK_BYTES - 1) /
				     TRAX_BLOCK_BYTES * TRAX_BLOCK_BYTES);
	if (!oldest->data)
		return NULL;
	oldest->room = sectors;
	runs->total += sectors;
	return oldest;
}

/* End of the replicas that lie from a sector on with no more than GAP_SECTORS
 * between them, at most `end`. */
static uint64_t replica_run_end(struct replica_regions *regions,
				uint64_t sector, uint64_t end)
{
	size_t i = regions_index(regions, sector);
	const struct replica_region *region = regions_at(regions, i);
	uint64_t at;

	if (!region || region->sector > sector)
		return sector;
	do {
		at = region->sector + region->sectors;
		region = regions_at(regions, ++i);
	} while (at < end && region && region->copies &&
		 region->sector <= at + GAP_SECTORS);
	return at < end ? at : end;
}

/* End of the range that begins at a sector and of which nothing is in
 * memory. */
static uint64_t replica_run_gap(const struct replica_ra *runs, uint64_t sector,
				uint64_t end)
{
	const struct replica_run *run;

	for (run = runs->run; run < runs->run + RUNS; run++)
		if (run->sectors && !run->stale && run->sector > sector &&
		    run->sector < end)
			end = run->sector;
	return end;
}

/* Begins to read a run at `sector`. It ends with its region, or where another
 * run in memory begins. */
static struct replica_run *replica_run_load(struct fs *fs, uint64_t sector,
					    uint32_t sectors,
					    enum queue_class class)
{
	struct replica_regions *regions = fs->replicas->regions;
	struct replica_ra *runs = fs->replica_ra;
	struct replica_run *run;

	if (sectors > runs->room)
		sectors = runs->room;
	sectors = (uint32_t)(replica_run_gap(runs, sector,
				     replica_run_end(regions, sector,
					     sector + sectors)) - sector);
	run = sectors ? replica_run_new(runs, sectors) : NULL;
	if (!run)
		return NULL;
	run->takes = 0;
	run->sector = sector;
	run->sectors = sectors;
	run->loading = true;
	run->stale = run->gone = run->followed = false;
	run->used = ++runs->clock;
	run->iov.iov_base = run->data;
	run->iov.iov_len = (size_t)sectors * SECTOR_BYTES;
	run->req = (struct queue_request){
		.disk =
			{
				.op = DISK_READ,
				.sector = sector,
				.sectors = sectors,
				.iov = &run->iov,
				.iov_n = 1,
				.done = replica_run_loaded,
				.owner = run,
			},
		.class = class,
	};
	runs->stats.loads++;
	runs->stats.load_bytes += (uint64_t)sectors * SECTOR_BYTES;
	meta_start(fs, sector, sectors);
	queue_submit(fs->queue, &run->req);
	return run;
}

/* ---- Taking ---- */

static bool replica_run_has(const struct replica_run *run, uint64_t sector,
			    uint32_t sectors)
{
	return run->sectors && !run->stale && sector >= run->sector &&
	       sector + sectors <= run->sector + run->sectors;
}

/* Sector at which a stream goes on that has come to the end of a row of
 * replicas; 0: nowhere. */
static uint64_t replica_run_next(struct fs *fs, uint64_t end)
{
	struct replica_regions *regions = fs->replicas->regions;
	const struct replica_region *region = regions_at(regions,
						 regions_index(regions, end));

	if (!region || !region->copies)
		return 0;
	if (region->sector <= end)
		return end;
	return region->sector - end < NEXT_SECTORS ? region->sector : 0;
}

/* The reader has come to the second half of a run: the next one is read. */
static void replica_run_follow(struct fs *fs, struct replica_run *run,
			       uint64_t sector)
{
	const struct replica_ra *runs = fs->replica_ra;
	uint64_t next;
	unsigned i;

	if (run->followed ||
	    sector + run->sectors / 2 < run->sector + run->sectors)
		return;
	run->followed = true;
	next = replica_run_next(fs, run->sector + run->sectors);
	for (i = 0; next && i < RUNS; i++)
		if (replica_run_has(&runs->run[i], next, 1))
			return;
	if (next)
		replica_run_load(fs, next, run->sectors * REPLICA_RUN_GROWTH,
				 QUEUE_READ_AHEAD);
}

static void replica_run_give(struct fs *fs, struct replica_run *run,
			     struct replica_run *tail,
			     struct replica_run_want *want)
{
	int found = run->takes ? 1000 : 0;

	fs->replica_ra->share += (found - fs->replica_ra->share) / SHARE_WEIGHT;
	run->used = ++fs->replica_ra->clock;
	run->takes++;
	fs->replica_ra->stats.hits++;
	want->head = run;
	want->tail = tail;
	run->pins++;
	if (tail) {
		tail->pins++;
		tail->used = fs->replica_ra->clock;
	}
	replica_run_follow(fs, run, want->sector + want->sectors);
	want_end(want);
}

/* Serves a want that begins in one run and ends in the run behind it, which is
 * read if need be. */
static bool replica_run_give_two(struct fs *fs, struct replica_run *run,
				 struct replica_run_want *want)
{
	uint64_t end = run->sector + run->sectors;
	uint32_t rest = (uint32_t)(want->sector + want->sectors - end);
	struct replica_ra *runs = fs->replica_ra;
	uint32_t size = run->sectors * REPLICA_RUN_GROWTH;
	struct replica_run *tail;

	for (tail = runs->run; tail < runs->run + RUNS; tail++)
		if (tail->sector == end && replica_run_has(tail, end, rest))
			break;
	if (tail == runs->run + RUNS) {
		run->pins++;
		tail = replica_run_load(fs, end, size > rest ? size : rest,
					QUEUE_READ);
		run->pins--;
	}
	if (!tail || !replica_run_has(tail, end, rest))
		return false;
	run->followed = true;
	replica_run_give(fs, run, tail, want);
	return true;
}

/* First sector of a run for a read that continues no stream: runs lie side by
 * side, so that data is not read twice for single reads. */
static uint64_t replica_run_start(struct fs *fs, uint64_t sector)
{
	struct replica_regions *regions = fs->replicas->regions;
	const struct replica_region *region = regions_at(regions,
						 regions_index(regions,
							       sector));

	if (!region || region->sector > sector ||
	    fs->replica_ra->first <= fs->replica_ra->least)
		return sector;
	return sector - (sector - region->sector) % fs->replica_ra->first;
}

static uint64_t way_ns(const struct head_state *head_state, uint64_t sector,
		       uint32_t sectors)
{
	struct service_request req = { .lbn = sector, .sectors = sectors };
	struct service out;

	service_estimate(head_state->geom, head_state->mech, &head_state->head,
			 &req, &out);
	return out.seek_ns + out.switch_ns +
	       (head_state->reads ? out.rotation_ns : 0);
}

static uint64_t back_ns(const struct head_state *head_state, uint64_t from,
			uint64_t to)
{
	struct geom_track a, b;

	geom_track_of(head_state->geom, from, &a);
	geom_track_of(head_state->geom, to, &b);
	return service_seek_ns(head_state->mech, a.cylinder, b.cylinder) +
	       head_state->mech->period_ps / 2000;
}

/* Percent of the way from the original back to the replica that count as the
 * original's cost, because the head would come back for the next replicas. */
static uint64_t back_percent(const struct replica_ra *runs)
{
	return runs->share > 500 ? (uint64_t)(runs->share - 500) / 5 : 0;
}

/* Is the replica nearer?  A head that goes to the original would come back for
 * the replicas of the next reads, as often as reads find their data in runs. */
static bool copy_is_nearer(struct fs *fs, const struct replica_run_want *want,
			   uint64_t copy, uint64_t original)
{
	uint64_t last = fs->replica_ra->last;
	struct head_state head_state;

	if (fs->head && head_is_known(fs->head) &&
	    head_mode(fs->head) != HEAD_OFF) {
		head_get_state(fs->head, &head_state);
		return way_ns(&head_state, copy, want->sectors) <
		       way_ns(&head_state, original, want->sectors) +
			       back_ns(&head_state, original, copy) *
				       back_percent(fs->replica_ra) / 100;
	}
	/* A replica was made because its original lies apart; that does not
	 * count when the head just goes on to the original. */
	return original < last || original - last > NEAR_SECTORS;
}

static bool runs_pay(struct replica_ra *runs)
{
	return runs->share >= SHARE_LEAST || runs->lone++ % LONE_TRIES == 0;
}

/*
 * Takes the data of `want` from a run that has one of these replicas, when they
 * are nearer than the original.
 */
static bool replica_ra_take(struct fs *fs, struct replica_run_want *want,
		     const uint64_t *copies, unsigned copies_n,
		     uint64_t original)
{
	struct replica_ra *runs = fs->replica_ra;
	struct replica_run *run;
	uint64_t start;
	uint32_t size;
	unsigned i, k;

	list_init(&want->link);
	for (i = 0; i < copies_n; i++) {
		want->sector = copies[i];
		for (k = 0; k < RUNS; k++) {
			run = &runs->run[k];
			if (replica_run_has(run, copies[i], want->sectors)) {
				replica_run_give(fs, run, NULL, want);
				return true;
			}
			if (replica_run_has(run, copies[i], 1) &&
			    replica_run_give_two(fs, run, want))
				return true;
		}
	}
	if (!runs_pay(runs))
		return false;
	for (i = 0; i < copies_n; i++) {
		want->sector = copies[i];
		if (!copy_is_nearer(fs, want, copies[i], original))
			continue;
		start = replica_run_start(fs, copies[i]);
		size = runs->first;
		if (start + size < copies[i] + want->sectors)
			size = (uint32_t)(copies[i] + want->sectors - start);
		run = replica_run_load(fs, start, size, QUEUE_READ);
		if (run && replica_run_has(run, want->sector, want->sectors)) {
			replica_run_give(fs, run, NULL, want);
			return true;
		}
		if (run && replica_run_has(run, want->sector, 1) &&
		    replica_run_give_two(fs, run, want))
			return true;
	}
	return false;
}

static void replica_ra_passed(struct fs *fs, const struct read_done *done)
{
	if (fs->replica_ra)
		fs->replica_ra->last = done->sector + done->n;
}

void replica_ra_forget(struct fs *fs, uint64_t sector, uint64_t sectors)
{
	struct replica_run *run;

	for (run = fs->replica_ra->run; run < fs->replica_ra->run + RUNS;
	     run++) {
		if (run->sector >= sector + sectors ||
		    sector >= run->sector + run->sectors)
			continue;
		run->stale = run->gone = true;
	}
}

const struct read_events replica_ra_events = {
	.take_replica = replica_ra_take,
	.done = replica_ra_passed,
};
