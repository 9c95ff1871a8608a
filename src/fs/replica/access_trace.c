/*
 * access_trace.c - see access_trace.h.
 *
 * Watermarks are compared for each allocation group by itself, with the part of
 * it that has neither data nor replicas.  Below the low one the group is closed
 * to new replicas, and those of least worth are dropped until it is open again
 * or the rest is worth keeping.  Below the critical one whole runs of regions
 * are dropped.  At the high one the group opens again.
 */
#include "fs/replica/access_trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/file_data.h"
#include "fs/op/quiet.h"
#include "fs/replica/copy_limit.h"
#include "fs/replica/head_account.h"
#include "fs/replica/node_replicas.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"
#include "replicate/replica_choice.h"
#include "sched/head/head.h"

#define TRACED_BYTES 48u	/* bytes of text for one access */
/* A read after a longer pause than this begins a new sequence. */
#define PAUSE_NS (2 * NS_PER_SECOND)
/* Groups are compared with the watermarks once a second, at most this many in
 * one turn. */
#define MARK_NS NS_PER_SECOND
#define MARK_GROUPS 2048u
/* Longest time that making replicas may delay an unmount. */
#define LEAVE_NS (5 * NS_PER_SECOND)
/* Fewer new reads than this are not judged. */
#define LEAST_READS 4u
#define BUSY_READS 2048u	/* reads judged at once while users work */
#define CHOICES HEAT_READS
#define CHOOSE_NS 30000u	/* charged in ns for a step of judging reads */
#define SAVE_PARTS 6u		/* parts of the trace stored by one
				 * transaction */
/* A seek, and the transfer rate (200 MB/s), of a drive that is not known. */
#define USUAL_SEEK_NS 16000000.0
#define USUAL_BYTES_PER_NS 0.2
/* A region of less worth is dropped when others need its room; see
 * regions_worth: one use in a month for each block. */
#define LITTLE_WORTH 0.001

struct trace_entry {
	uint32_t ms;
	uint8_t kind;
	uint64_t sector;
};

struct access_trace {
	struct heat *heat;
	struct trace_entry *ring;	/* accesses, by number %
					 * ACCESS_TRACE_TRACE */
	uint64_t traced;
	struct head_account with, without;
	uint64_t chosen;	/* reads before this number were judged */
	struct replica_chooser *chooser; /* NULL, or it judges those before */
	uint64_t choose_end;	/* reads up to this number are being judged */
	uint64_t saved;		/* reads before this number are in the tree */
	uint64_t read_ns;
	uint64_t mark_ns;	/* when watermarks are compared next */
	uint32_t mark_group;	/* number of the group that comes next */
	bool *closed;		/* by group: closed to new replicas */
	bool ready;		/* the stored trace was loaded */
	bool leaving;		/* no operation of a user will follow */
	bool over;		/* a save, load or sync has ended */
	struct waiter synced;
	unsigned part;
	int rc;
};

void access_trace_free(struct fs *fs)
{
	if (!fs->access_trace)
		return;
	heat_free(fs->access_trace->heat);
	replica_chooser_free(fs->access_trace->chooser);
	free(fs->access_trace->ring);
	free(fs->access_trace->closed);
	free(fs->access_trace);
	fs->access_trace = NULL;
}

/* ---- Storing the trace ---- */

static int load_run(struct fs_txn *txn)
{
	struct access_trace *trace = txn->fs->access_trace;
	struct tree_item item;
	int rc = 0;

	while (tree_txn_room(txn->tree_txn) >= TREE_SEEK_NODES) {
		rc = tree_get(txn->tree_txn,
			      key_make(0, ITEM_HEAT, trace->part), &item);
		if (rc)
			break;
		trace->chosen += heat_load(trace->heat, item.value,
					   item.bytes);
		trace->part++;
	}
	trace->over = rc == -ENOENT;
	return rc == -ENOENT ? 0 : rc;
}

static void load_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct access_trace *trace = txn->fs->access_trace;

	(void)seq;
	trace->rc = rc;
	if (rc || trace->over) {
		trace->over = true;
		fs_txn_finish(txn, 0);
	} else {
		fs_txn_restart(txn);
	}
}

static const struct fs_txn_type load_type = {
	.name = "load heat",
	.bounds = { .nodes = 16 },
	.stages = 16,
	.run = load_run,
	.end = load_end,
};

static int access_trace_wait(struct fs *fs, const struct fs_txn_type *type)
{
	struct access_trace *trace = fs->access_trace;
	int rc;

	trace->over = false;
	trace->part = 0;
	rc = fs_txn_start(fs, type, NULL, trace);
	if (!rc)
		rc = fs_wait(fs, &trace->over);
	return rc ? rc : trace->rc;
}

int access_trace_open(struct fs *fs)
{
	struct access_trace *trace = calloc(1, sizeof(*trace));
	int rc;

	if (!trace)
		return -ENOMEM;
	fs->access_trace = trace;
	rc = heat_new(fs->disk->limits.sectors, &trace->heat);
	trace->closed = calloc(space_groups(tree_space(fs->tree)),
			       sizeof(*trace->closed));
	trace->ring = calloc(ACCESS_TRACE_TRACE, sizeof(*trace->ring));
	if (!trace->closed || !trace->ring)
		rc = -ENOMEM;
	if (!rc)
		rc = access_trace_wait(fs, &load_type);
	trace->saved = heat_end(trace->heat);
	trace->ready = true;
	return rc;
}

static int save_run(struct fs_txn *txn)
{
	struct access_trace *trace = txn->fs->access_trace;
	uint8_t buf[HEAT_PART_BYTES];
	struct tree_item item;
	size_t bytes;
	unsigned i;
	int rc, miss = 0;

	for (i = 0; i < SAVE_PARTS; i++) {
		rc = tree_get(txn->tree_txn,
			      key_make(0, ITEM_HEAT, trace->part + i), &item);
		if (rc == -EAGAIN)
			miss = rc;
		else if (rc && rc != -ENOENT)
			return rc;
	}
	if (miss)
		return miss;
	for (i = 0; i < SAVE_PARTS; i++) {
		bytes = heat_save(trace->heat, trace->part + i, trace->chosen,
				  buf);
		if (!bytes) {
			trace->over = true;
			break;
		}
		tree_put(txn->tree_txn,
			 key_make(0, ITEM_HEAT, trace->part + i), buf, bytes);
	}
	trace->part += i;
	return 0;
}

static const struct fs_txn_type save_type = {
	.name = "save heat",
	.bounds = { .log_bytes = SAVE_PARTS * 4096 },
	.paths = SAVE_PARTS,
	.changes = SAVE_PARTS,
	.stages = SAVE_PARTS,
	.run = save_run,
	.end = load_end,
};

/* Reads that have not been judged yet are judged after the next mount. */
int access_trace_save(struct fs *fs)
{
	struct access_trace *trace = fs->access_trace;

	if (!trace || trace->saved == heat_end(trace->heat))
		return 0;
	return access_trace_wait(fs, &save_type);
}

/* ---- When users are quiet ---- */

static uint64_t quiet_from(const struct fs *fs)
{
	uint64_t quiet_ns = fs_quiet_from_ns(fs);

	/* Between the reads of a stream users are not quiet: it will go on. */
	return quiet_ns > pace_streams_until_ns(fs->files) ?
		       quiet_ns : pace_streams_until_ns(fs->files);
}

bool access_trace_waits(const struct fs *fs)
{
	const struct access_trace *trace = fs->access_trace;

	return heat_end(trace->heat) - trace->chosen >= LEAST_READS;
}

bool access_trace_quiet(struct fs *fs)
{
	return !fs->access_trace || fs->access_trace->leaving ||
	       (fs_is_quiet(fs) && env_now_ns(fs->env) >= quiet_from(fs));
}

bool access_trace_leaving(const struct fs *fs)
{
	return fs->access_trace && fs->access_trace->leaving;
}

/* ---- Accounts ---- */

void access_trace_accounts(const struct fs *fs, json_t *object)
{
	if (!fs->access_trace)
		return;
	json_object_set_new(object, "access",
			    head_account_json(fs, &fs->access_trace->with));
	json_object_set_new(object, "access_without",
			    head_account_json(fs, &fs->access_trace->without));
}

/* ---- What users read ---- */

/* A read of a user begins. Only reads that are learned from have a number. */
static uint64_t access_trace_begun(struct fs *fs, const struct heat_read *begun)
{
	struct access_trace *trace = fs->access_trace;
	uint64_t now_ns = env_now_ns(fs->env);
	struct heat_read read = *begun;

	if (!trace || !fs->replicas || !fs->replicas->most)
		return READ_NO_NUMBER;
	read.begin = !trace->read_ns || now_ns - trace->read_ns > PAUSE_NS;
	trace->read_ns = now_ns;
	return heat_add(trace->heat, &read);
}

static void account_both(struct fs *fs, const struct heat_read *read,
			 uint64_t sector, uint64_t wait_ns, bool from_copy)
{
	uint64_t sectors = read->blocks * BLOCK_SECTORS;
	struct access_trace *trace = fs->access_trace;

	head_account_read(fs, &trace->with, sector, sectors, wait_ns + 1);
	if (from_copy)
		head_account_guess(fs, &trace->without, read->sector, sectors);
	else
		head_account_read(fs, &trace->without, sector, sectors,
				  wait_ns + 1);
}

static void access_trace_found(struct fs *fs, uint64_t number, uint64_t sector,
			       uint64_t wait_ns, bool from_copy)
{
	const struct heat_read *read;

	if (number == READ_NO_NUMBER)
		return;
	read = heat_at(fs->access_trace->heat, number);
	if (read)
		account_both(fs, read, sector, wait_ns, from_copy);
	heat_found(fs->access_trace->heat, number, sector, wait_ns / 1000,
		   from_copy);
}

/* A user reads data that was read ahead from an original at `sector`. */
static void access_trace_used(struct fs *fs, const struct heat_read *read,
			      uint64_t sector, uint64_t wait_ns)
{
	struct access_trace *trace = fs->access_trace;
	struct heat_read begun = {
		.ino = read->ino, .block = read->block, .blocks = read->blocks,
		.sector = sector, .copied = read->copied,
	};

	if (trace && heat_end(trace->heat) > trace->chosen &&
	    heat_extend(trace->heat, read)) {
		trace->read_ns = env_now_ns(fs->env);
		return;
	}
	access_trace_found(fs, access_trace_begun(fs, &begun), read->sector,
			   wait_ns, read->from_copy);
}

void access_trace_access(struct fs *fs, enum access_kind kind, uint64_t sector,
		  uint64_t sectors)
{
	struct access_trace *trace = fs->access_trace;

	if (!trace)
		return;
	heat_count(trace->heat, sector, (uint32_t)sectors);
	trace->ring[trace->traced++ % ACCESS_TRACE_TRACE] =
		(struct trace_entry){
			.ms = (uint32_t)(env_now_ns(fs->env) / NS_PER_MS),
			.kind = (uint8_t)kind,
			.sector = sector,
	};
}

static void access_trace_done(struct fs *fs, const struct read_done *done)
{
	access_trace_found(fs, done->number, done->sector, done->wait_ns,
			   done->from_replica);
	access_trace_access(fs, done->from_replica ? ACCESS_TRACE_COPY :
						     ACCESS_TRACE_READ,
			    done->sector, done->n);
}

const struct read_events access_trace_events = {
	.begun = access_trace_begun,
	.done = access_trace_done,
	.used = access_trace_used,
};

void access_trace_trace(struct fs *fs, uint64_t from, size_t bytes,
			json_t *object)
{
	const struct access_trace *trace = fs->access_trace;
	json_t *list = json_array();
	uint64_t i = 0, n = 0;

	if (trace && trace->traced > ACCESS_TRACE_TRACE)
		i = trace->traced - ACCESS_TRACE_TRACE;
	i = i > from ? i : from;
	for (; trace && i < trace->traced && n < bytes / TRACED_BYTES; i++) {
		const struct trace_entry *t =
			&trace->ring[i % ACCESS_TRACE_TRACE];

		json_array_append_new(list, json_pack("[I, I, i]",
			(json_int_t)t->ms, (json_int_t)t->sector, t->kind));
		n++;
	}
	json_object_set_new(object, "trace", list);
	json_object_set_new(object, "next", json_integer(
		trace && i < trace->traced ? (json_int_t)i : 0));
}

uint64_t access_trace_hot(const struct fs *fs)
{
	return fs->access_trace ? heat_hot(fs->access_trace->heat) : 0;
}

const struct heat *access_trace_heat(const struct fs *fs)
{
	return fs->access_trace ? fs->access_trace->heat : NULL;
}

const bool *access_trace_closed(const struct fs *fs)
{
	return fs->access_trace ? fs->access_trace->closed : NULL;
}

/* ---- Choosing ---- */

struct prices {
	struct fs *fs;
	const struct service_mech *mech;	/* NULL: the mechanics are not
						 * known */
	struct head_state head_state;
};

static uint64_t price_move(void *arg, uint64_t from, uint64_t to)
{
	struct prices *prices = arg;
	uint64_t sectors = geom_sectors(prices->fs->geom);
	struct geom_track a, b;
	double far;

	if (!prices->mech) {
		far = fabs((double)to - (double)from) / (double)sectors;
		return GEOM_USUAL_PERIOD_NS / 2 +
		       (uint64_t)(USUAL_SEEK_NS * sqrt(far));
	}
	/* Bounds the sector: the hot region may be the last one, and the trace
	 * comes from the disk. */
	sectors = geom_sectors(prices->head_state.geom);
	geom_track_of(prices->head_state.geom,
		      from < sectors ? from : sectors - 1, &a);
	geom_track_of(prices->head_state.geom, to < sectors ? to : sectors - 1,
		      &b);
	return service_seek_ns(prices->mech, a.cylinder, b.cylinder) +
	       prices->mech->period_ps / 2000;
}

static uint64_t price_transfer(void *arg, uint64_t sectors)
{
	struct prices *prices = arg;
	uint64_t track = alloc_track_sectors(prices->fs->alloc, 0);

	if (!prices->mech)
		return (uint64_t)((double)(sectors * SECTOR_BYTES) /
				  USUAL_BYTES_PER_NS);
	return prices->mech->period_ps / 1000 * sectors / track;
}

/*
 * Adds neighbours of chosen blocks that were read ahead together with them:
 * their replicas lie behind, so that the head need not go back for them.  At
 * most twice as many as were chosen.
 */
static size_t access_trace_left(struct fs *fs, struct replica_want *want,
				size_t most, uint64_t blocks)
{
	size_t n = chunks_unused_readahead(fs->files, want, most), i;

	blocks *= 2;
	for (i = 0; i < n && blocks; i++)
		blocks -= want[i].blocks < blocks ? want[i].blocks : blocks;
	return i;
}

/* Has replicas made of the chosen blocks. */
static void access_trace_make(struct fs *fs)
{
	struct access_trace *trace = fs->access_trace;
	struct replica_want *want = calloc(CHOICES, sizeof(*want));
	const struct replica_choice *choices;
	uint64_t saving, blocks = 0;
	size_t i, n = replica_chooser_get(trace->chooser, &choices, &saving);

	fs->replicas->gainless = !n;
	for (i = 0; want && i < n; i++) {
		want[i] = (struct replica_want){
			choices[i].ino, choices[i].block, choices[i].blocks,
		};
		blocks += choices[i].blocks;
	}
	if (want && n) {
		n += access_trace_left(fs, want + n, CHOICES - n, blocks);
		replica_make(fs, want, n, access_trace_hot(fs), true, NULL,
			     NULL);
	}
	free(want);
}

/* Judges the reads since the last time, as many as this turn has time for; at
 * the end replicas are made. */
static void access_trace_choose(struct fs *fs)
{
	struct access_trace *trace = fs->access_trace;
	struct prices prices = { .fs = fs };
	const struct replica_choice_cost cost = { price_move, price_transfer,
						  &prices };
	struct loop_turn *turn = &fs->env->turn;
	bool over = false;

	if (fs->head && head_is_known(fs->head)) {
		head_get_state(fs->head, &prices.head_state);
		prices.mech = prices.head_state.mech;
	}
	if (!trace->chooser) {
		trace->choose_end = heat_end(trace->heat);
		trace->chooser = replica_chooser_new(trace->heat,
						     trace->chosen,
						     trace->choose_end,
						     CHOICES);
		turn_charge(turn, TURN_LEARN, CHOOSE_NS);
	}
	while (trace->chooser && !over) {
		over = replica_chooser_step(trace->chooser, &cost);
		turn_charge(turn, TURN_LEARN, CHOOSE_NS);
		if (!over && turn_is_full(turn))
			return;
	}
	trace->chosen = trace->choose_end;
	if (trace->chooser)
		access_trace_make(fs);
	replica_chooser_free(trace->chooser);
	trace->chooser = NULL;
}

static void leave_synced(struct waiter *waiter, int rc)
{
	struct access_trace *trace = waiter->owner;

	(void)rc;
	trace->over = true;
}

/* Dirty data changes the nodes that are about to be copied: writes it first. */
static void leave_sync(struct fs *fs)
{
	struct access_trace *trace = fs->access_trace;
	uint64_t next_ns;

	trace->over = false;
	trace->synced = (struct waiter){
		.done = leave_synced, .owner = trace,
	};
	list_init(&trace->synced.link);
	files_sync(fs, &trace->synced);
	while (!trace->over && !fs->disk_gone && !tree_failed(fs->tree)) {
		next_ns = fs->run(fs, 0);
		if (!trace->over && !fs->disk_gone)
			fs_sleep(fs, next_ns);
	}
}

/* The last reads are still in memory: this is the time to copy them. */
void access_trace_leave(struct fs *fs)
{
	struct access_trace *trace = fs->access_trace;
	uint64_t next_ns, end_ns;

	if (!trace || fs_read_only(fs) || !fs->replicas->most)
		return;
	trace->leaving = true;
	leave_sync(fs);
	end_ns = env_now_ns(fs->env) + LEAVE_NS;
	while (!fs->disk_gone && !fs_read_only(fs) &&
	       env_now_ns(fs->env) < end_ns && !copies_wait(fs) &&
	       (fs->replicas->maker || node_replicas_due(fs) ||
		!node_replicas_idle(fs) || !node_replicas_over(fs) ||
		heat_end(trace->heat) - trace->chosen >= LEAST_READS)) {
		next_ns = fs->run(fs, 1);
		if (queue_idle(fs->queue) && next_ns != UINT64_MAX &&
		    next_ns > env_now_ns(fs->env) && fs->replicas->maker)
			env_wait(fs->env, NS_PER_MS);
	}
	trace->leaving = false;
}

/* ---- Watermarks ---- */

static uint32_t group_percent(const struct fs *fs, uint32_t group)
{
	uint64_t first = (uint64_t)group * TRAX_GROUP_SECTORS;
	uint64_t sectors = tree_super(fs->tree)->sectors - first;

	if (sectors > TRAX_GROUP_SECTORS)
		sectors = TRAX_GROUP_SECTORS;
	return (uint32_t)(100ull * space_group_free(tree_space(fs->tree),
						    group) / sectors);
}

static void mark_group(struct fs *fs, uint32_t group)
{
	const struct fs_options *options = &fs->options;
	uint64_t first = (uint64_t)group * TRAX_GROUP_SECTORS;
	uint64_t end = first + TRAX_GROUP_SECTORS;
	uint64_t now = (uint64_t)env_wall_seconds(fs->env);
	uint32_t percent = group_percent(fs, group);
	bool *closed = &fs->access_trace->closed[group];
	struct replica_region *least;

	*closed = *closed ? percent < options->high_percent :
			    percent < options->low_percent;
	if (percent >= options->low_percent)
		return;
	least = regions_least(fs->replicas->regions, first, end, now);
	if (!least)
		return;
	if (percent < options->critical_percent)
		replica_reclaim_in(fs, first, end, TRAX_GROUP_SECTORS / 100 *
				   (options->low_percent - percent));
	else if (regions_worth(least, now) < LITTLE_WORTH)
		replica_reclaim_in(fs, first, end, least->sectors);
}

/* Compares some groups with the watermarks, those that hold replicas; true:
 * they were the last. */
static bool access_trace_marks(struct fs *fs)
{
	struct replica_regions *regions = fs->replicas->regions;
	const uint32_t groups = space_groups(tree_space(fs->tree));
	uint32_t *next = &fs->access_trace->mark_group;
	const struct replica_region *region;

	for (uint32_t n = 0; n < MARK_GROUPS && *next < groups; n++) {
		const uint32_t group = (*next)++;
		uint64_t first = (uint64_t)group * TRAX_GROUP_SECTORS;

		region = regions_at(regions, regions_index(regions, first));
		if (fs->access_trace->closed[group] ||
		    (region && region->sector < first + TRAX_GROUP_SECTORS) ||
		    group_percent(fs, group) < fs->options.low_percent)
			mark_group(fs, group);
	}
	if (*next < groups)
		return false;
	*next = 0;
	if (regions_over(regions))
		replica_reclaim_least(fs);
	return true;
}

/* ---- The loop ---- */

/* The answer of an operation under way calls this again. */
static uint64_t access_trace_next(const struct fs *fs, uint64_t ns)
{
	uint64_t quiet_ns = quiet_from(fs);

	/* Users are quiet, but the limit of this day is reached. */
	if (!list_empty(&fs->ops) || quiet_ns <= env_now_ns(fs->env))
		return ns;
	return quiet_ns < ns ? quiet_ns : ns;
}

/* Number of reads after which they are judged: some of their data is still in
 * memory then. */
static uint64_t busy_reads(const struct fs *fs)
{
	uint64_t chunks = pool_count(fs->files->chunk_pool);

	return chunks < BUSY_READS ? chunks : BUSY_READS;
}

/* What is read while streams are is theirs for the most part, and read well
 * where it lies: it is not judged. */
static void skip_streams(struct access_trace *trace)
{
	replica_chooser_free(trace->chooser);
	trace->chooser = NULL;
	trace->chosen = heat_end(trace->heat);
}

uint64_t access_trace_run(struct fs *fs, uint64_t now_ns)
{
	struct access_trace *trace = fs->access_trace;
	struct replicas *replicas = fs->replicas;
	uint64_t fresh;

	if (!trace || !trace->ready || fs_read_only(fs) || fs->closing)
		return UINT64_MAX;
	if (now_ns >= trace->mark_ns &&
	    ((!replicas->most && !regions_count(replicas->regions)) ||
	     access_trace_marks(fs)))
		trace->mark_ns = now_ns + MARK_NS;
	if (now_ns < pace_streams_until_ns(fs->files))
		skip_streams(trace);
	fresh = replicas->most ? heat_end(trace->heat) - trace->chosen : 0;
	if (replica_maker_is_paused(replicas->maker)) {
		if (copies_wait(fs))
			return access_trace_next(fs, UINT64_MAX);
		if (!access_trace_quiet(fs) &&
		    now_ns < replica_maker_next_ns(replicas->maker))
			return access_trace_next(
				fs, replica_maker_next_ns(replicas->maker));
		replica_maker_resume(replicas->maker);
	} else if (!replicas->maker && fresh >= LEAST_READS) {
		/* While users are never quiet, reads are judged in large
		 * parts. */
		if (!trace->chooser &&
		    (copies_wait(fs) || (!access_trace_quiet(fs) &&
					 fresh < busy_reads(fs))))
			return access_trace_next(fs, UINT64_MAX);
		access_trace_choose(fs);
	} else if (!replicas->maker && replicas->most &&
		   access_trace_quiet(fs)) {
		node_replicas_run(fs);
	} else if (!replicas->maker && replicas->most &&
		   node_replicas_due(fs)) {
		return access_trace_next(fs, UINT64_MAX);
	}
	return UINT64_MAX;
}
