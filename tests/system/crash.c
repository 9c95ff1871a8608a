/*
 * crash.c - the milestone: random clients, the power cut after any event, the
 * file system mounted again; every acknowledged byte is there and the checker
 * is silent.
 *
 *   crash [--seed N] [--runs N] [--ops N] [--clients N] [--cuts N]
 *         [--recuts N] [--cache] [--canary] [--replicas]
 *         [--keep] [--lose] [--gaps] [--moves] [--spills] [--gathers]
 *         [--discard]
 *         [--drive NAME [--doubt N]] [--trace FILE]
 *
 * A run records every write of `ops` operations and of the unmount, then cuts
 * at up to `cuts` events spread evenly (0: at every one), each in the four
 * variants of sim/sim.h; and each recovery is itself cut at up to `recuts`
 * events (then recovered and compared again).  --cache: the disk has a
 * volatile cache.  --canary: the disk lies about durability, and the run
 * fails when nobody notices.  --replicas: copies of what the clients have are
 * made and reclaimed all the while, with --drive in gaps too.  --keep: what is
 * known of the disk's tracks changes all the while, and is written back.
 * --lose: much is overwritten that nobody asks for, and after a cut the records
 * of the log that nobody was told of are gone, as if never written, or cannot
 * be read and the mount accepts a loss.
 * --trace: instead of random clients, what a program did (tests/traces), whole.
 * --moves: whatever lies in a track with room is moved on and on.  --spills: so
 * many nodes are changed that leaves are written without a checkpoint.
 * --gathers: leaves are brought together and lined up, and only events of such
 * checkpoints are cut at.  A run in which that did not happen fails, with exit
 * code 4 (beside.h).
 * --discard: what is free is discarded all the while and reads as garbage then.
 * --gaps: write-back waits for gaps, and others read meanwhile.  --drive: the
 * disk is a drive of drives/ or random:SEED, and the file system believes to
 * know it, which is wrong in one of the ways of doubt.h with --doubt.  The seed
 * of a failure is printed and replays.
 */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/msg.h"
#include "check/check.h"
#include "diskmodel/geom_build.h"
#include "fs/data/file_data.h"
#include "fs/drive/profile_save.h"
#include "fs/mkfs.h"
#include "fs/replica/node_replicas.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"
#include "log/log_internal.h"
#include "sched/freeblock/freeblock.h"
#include "sched/queue/queue.h"
#include "sim/media.h"
#include "tests/rig/beside.h"
#include "tests/rig/doubt.h"
#include "tests/rig/oracle.h"
#include "tests/rig/world.h"

#define DISK_SECTORS (96u << 11)	/* 96 MiB */
#define MEMORY_BYTES (32u << 20)
#define COPIES 16u
#define OPS_BETWEEN 5u
/* So many times the operations at most, when what is to be cut at does not
 * come. */
#define OPS_TIMES 6u
#define STORM_OPS 400u
#define STORM_SECONDS 40u
#define STORM_TURNS 300u
#define READS_BETWEEN 20u
#define PAUSE_NS UINT64_C(5000000000)
#define MAX_PROGRESS 60000u
#define PATIENCE_NS 61000000000u
#define GAP_TURNS 60u
#define EXIT_IDLE 4	/* what was to be tried never happened */
#define SETTLE_SECONDS 60u	/* at most, before the unmount */
#define TRIM_BYTES (4u << 20)

struct config {
	uint64_t seed;
	unsigned runs, ops, clients, cuts, recuts;
	bool cache, canary, replicas, keep, lose, gaps, discard;
	struct beside_kinds beside_kinds;
	bool unreadable;	/* of what is lost, in this recovery */
	const char *drive;	/* NULL: none */
	const char *trace;	/* NULL: random clients */
	unsigned kind;		/* enum doubt_kind */
	struct doubt doubt;
	struct beside *beside;
	uint8_t uuid[16];	/* of the file system that is cut */
};

static struct {
	uint64_t seed, event, recut;
	int mode;
} place;
static unsigned long done_cuts;
static const char *idle;	/* what was asked for and never happened */
static char said[4096];

/* What the file system had to say of this cut, for the report of a failure. */
static void keep_message(enum msg_level level, const char *line, void *arg)
{
	size_t n = strlen(said);

	(void)arg;
	if (level <= MSG_WARN)
		snprintf(said + n, sizeof(said) - n, "  %s\n", line);
}

static void print_place(const char *what)
{
	fprintf(stderr,
		"crash: seed %lu, cut at event %lu mode %d, recovery cut at "
		"%lu: %s\n%s",
		(long)place.seed, (long)place.event, place.mode,
		(long)place.recut, what, said);
}

static void on_abort(int sig)
{
	print_place(sig == SIGABRT ? "assertion" : "crash");
	_exit(3);
}

static const struct spec *drive_of(const struct config *config)
{
	return config->drive ? config->doubt.is : NULL;
}

/* *head: what it believes of the disk, after some time with `learn`; head_close
 * it behind the fs. */
static struct fs *open_fs(const struct config *config, struct world *world,
			  struct disk *disk, bool learn, struct head **head)
{
	struct fs_options options = { .memory_bytes = MEMORY_BYTES,
				      .accept_loss = config->unreadable,
				      .replicas = 2,
				      .gap_writeback = config->gaps ?
					      FS_GAP_WRITEBACK_ALWAYS :
					      FS_GAP_WRITEBACK_WHILE_READ };
	struct fs *fs;
	int rc;

	*head = config->drive ?
		doubt_head(&config->doubt, sim_env(world->sim)) : NULL;
	options.head = *head;
	if (*head && learn)
		doubt_learn(sim_env(world->sim), disk, *head, place.seed);
	rc = fs_open(sim_env(world->sim), disk, &options, &fs);
	if (rc) {
		snprintf(said + strlen(said), 64, "  fs_open: %s\n",
			 strerror(-rc));
		return NULL;
	}
	return fs;
}

/* ---- The canary: a disk that says "on the medium" when it is not ---- */

struct liar {
	struct disk disk;
	struct disk *below;
};

static void liar_submit(struct disk *disk, struct disk_request *req)
{
	req->fua = false;
	disk_submit(((struct liar *)disk)->below, req);
}

static int liar_poll(struct disk *disk, int64_t timeout_ns)
{
	return disk_poll_ns(((struct liar *)disk)->below, timeout_ns);
}

static int liar_event_fd(struct disk *disk)
{
	return disk_event_fd(((struct liar *)disk)->below);
}

static void liar_close(struct disk *disk)
{
	(void)disk;
}

static const struct disk_ops liar_ops = {
	.submit = liar_submit,
	.poll = liar_poll,
	.event_fd = liar_event_fd,
	.close = liar_close,
};

static struct disk *liar_disk(struct liar *liar, struct disk *below)
{
	liar->disk = (struct disk){ &liar_ops, below->limits, "canary" };
	liar->disk.limits.volatile_cache = false;
	liar->below = below;
	return &liar->disk;
}

/* ---- Records that nobody was told of, nor relies on ---- */

static uint64_t note_told(void *arg)
{
	const struct fs *fs = *(struct fs **)arg;

	return fs ? tree_log(fs->tree)->acked_seq : UINT64_MAX;
}

static void lose_record(struct media *media, const uint8_t *uuid,
			uint64_t sector, uint64_t told, bool unreadable)
{
	static uint8_t record[TRAX_MAX_RECORD_BYTES];
	const struct log_header *h = (const void *)record;
	const uint64_t left = DISK_SECTORS - sector;
	const uint64_t most = sizeof(record) / SECTOR_BYTES;

	media_read(media, sector, left < most ? left : most, record, NULL);
	if (!log_header_verify(record, sizeof(record), uuid, sector) &&
	    le64_get(h->seq) > told) {
		const uint64_t sectors = le32_get(h->bytes) / SECTOR_BYTES;

		memset(record, 0, sizeof(record));
		if (unreadable)
			media_damage(media, sector, sectors);
		else
			media_write(media, sector, sectors, record);
	}
}

static void lose(struct media *media, const uint8_t *uuid, uint64_t told,
		 bool unreadable)
{
	struct log_header h;
	uint8_t buf[SECTOR_BYTES];
	uint64_t sector;

	for (sector = 0; sector < DISK_SECTORS; sector += TRAX_BLOCK_SECTORS) {
		media_read(media, sector, 1, buf, NULL);
		memcpy(&h, buf, sizeof(h));
		if (le32_get(h.magic) == TRAX_LOG_MAGIC)
			lose_record(media, uuid, sector, told, unreadable);
	}
}

/* ---- One cut ---- */

static struct media *make_image(const struct config *config, uint64_t seed)
{
	struct sim_options options = { .seed = seed };
	struct mkfs_options mkfs = {
		.pseudo_track_sectors = 512,
		.geom = config->drive ? config->doubt.geom : NULL,
	};
	struct mkfs_plan plan;
	struct media *media;
	struct world world;
	struct disk *disk;
	int rc;

	world_init(&world, drive_of(config), DISK_SECTORS, &options, false);
	disk = sim_disk(world.sim);
	rc = mkfs_plan(sim_env(world.sim), &disk->limits, &mkfs, &plan);
	assert(!rc);
	rc = mkfs_write(sim_env(world.sim), disk, &mkfs, &plan);
	assert(!rc);
	media = sim_content(world.sim);
	world_fini(&world);
	return media;
}

static bool note_problem(void *arg, const struct check_found *found)
{
	size_t n = strlen(said);

	(void)arg;
	snprintf(said + n, sizeof(said) - n, "  chkfs: %s\n", found->text);
	return false;
}

/* The checker is silent, also about every checksum. */
static const char *check_world(struct world *world)
{
	struct check_options check = { .data = true, .found = note_problem };
	struct check_result result;
	int rc = check_run(sim_env(world->sim), sim_disk(world->sim), &check,
			   &result);

	return rc || result.found ? "the checker found problems" : NULL;
}

/* Whole, and one that was adopted. */
static const char *check_profile(const struct fs *fs)
{
	const uint8_t *state = fs->profile->progress;
	size_t i, n = fs->profile->progress_bytes;

	for (i = 0; i < n; i++)
		if (state[i] != (uint8_t)(n % 251))
			return "the profile is one that never was";
	return strstr(said, "record of the drive") ?
		       "the profile is damaged" : NULL;
}

/*
 * Recovers from a medium and compares.  `world` is left as it was after the
 * unmount; *mounted is its number of events when the mount was through.
 */
static const char *recover(struct config *config, struct oracle *oracle,
			   struct media *media, uint64_t event,
			   struct world *world, bool record,
			   uint64_t *mounted)
{
	struct sim_options options = { .seed = place.seed + event,
				       .volatile_cache = config->cache,
				       .content = media };
	const char *wrong = "it does not mount";
	struct head *head;
	struct fs *fs;

	world_init(world, drive_of(config), DISK_SECTORS, &options, record);
	fs = open_fs(config, world, sim_disk(world->sim), false, &head);
	*mounted = world->moments;
	world->record = false;
	if (fs) {
		wrong = oracle_verify(oracle, fs, world, event);
		if (!wrong)
			wrong = beside_verify(config->beside, fs, world, event);
		if (!wrong)
			wrong = check_profile(fs);
		if (fs_close(fs) && !wrong)
			wrong = "it does not unmount";
	}
	head_close(head);
	done_cuts++;
	return wrong ? wrong : check_world(world);
}

/* Cuts the recovery that `first` has recorded. */
static const char *recut(struct config *config, struct oracle *oracle,
			 struct world *first, uint64_t mounted, uint64_t event)
{
	uint64_t step = mounted / config->recuts + 1;
	const char *wrong = NULL;

	for (uint64_t e = 0; e < mounted && !wrong; e += step) {
		struct media *media = sim_moment_cut(first->moment[e],
						     SIM_CUT_RANDOM,
						     place.seed + e);
		struct world world;
		uint64_t again;

		assert(media);
		place.recut = e + 1;
		said[0] = 0;
		wrong = recover(config, oracle, media, event, &world, false,
				&again);
		world_fini(&world);
		media_free(media);
	}
	place.recut = 0;
	return wrong;
}

static const char *cut(struct config *config, struct oracle *oracle,
		       const struct world *run, uint64_t event)
{
	const struct sim_moment *moment = run->moment[event - 1];
	const char *wrong = NULL;

	for (int mode = SIM_CUT_KEEP; mode <= SIM_CUT_RANDOM && !wrong;
	     mode++) {
		uint64_t mounted;
		struct media *media;
		struct world world;

		place.event = event;
		place.mode = mode;
		said[0] = 0;
		media = sim_moment_cut(moment, mode,
				       place.seed * 1000003 + event);
		assert(media);
		config->unreadable = config->lose && event % 2;
		if (config->lose)
			lose(media, config->uuid, run->noted[event - 1],
			     config->unreadable);
		wrong = recover(config, oracle, media, event, &world,
				config->recuts > 0, &mounted);
		if (config->recuts && !wrong)
			wrong = recut(config, oracle, &world, mounted, event);
		world_fini(&world);
		media_free(media);
	}
	return wrong;
}

/* Is power to be cut at this event? */
static bool is_wanted(const struct config *config, uint64_t event)
{
	return !config->beside_kinds.gathers ||
	       beside_gathers_at(config->beside, event);
}

static const char *cut_all(struct config *config, struct oracle *oracle,
			   struct world *world, uint64_t first)
{
	uint64_t step = 1, n = 0, i = 0;
	const char *wrong = NULL;

	for (uint64_t e = first; e <= world->moments; e++)
		n += is_wanted(config, e);
	if (config->cuts && n > config->cuts)
		step = n / config->cuts;
	for (uint64_t e = first; e <= world->moments && !wrong; e++)
		if (is_wanted(config, e) && i++ % step == 0)
			wrong = cut(config, oracle, world, e);
	return wrong;
}

/* Copies of some of what is known are begun, or some room is made.  Where it is
 * known where the head is some are written in gaps. */
static void change_copies(struct fs *fs, struct world *world, uint64_t *rng)
{
	const bool gaps = fs->head && world_random(rng) % 2;
	struct fs_op sync = { .type = FS_SYNCFS };
	struct replica_want want[COPIES];
	const struct vnode *vnode;
	size_t pos = 0, n = 0;
	uint64_t ino;

	if (world_random(rng) % 3 == 0)
		world_call(fs, world, &sync);
	if (world_random(rng) % 10 == 0)
		node_replicas_make(fs);
	if (world_random(rng) % 10 == 0) {
		replica_reclaim(fs, 1 + world_random(rng) % 3000);
		return;
	}
	while (n < COPIES && (vnode = hashmap_next(fs->vnodes, &pos, &ino)))
		if (world_random(rng) % 2)
			want[n++] = (struct replica_want){
				ino, world_random(rng) % 20,
				1 + world_random(rng) % 60,
			};
	if (gaps)
		fs->replicas->next_ns = 0;
	/* What has found no gap for so long is written all the same. */
	if (n && replica_make(fs, want, n, 0, gaps, NULL, NULL) == -EBUSY &&
	    gaps) {
		sim_advance(world->sim, PATIENCE_NS);
		for (n = 0; n < GAP_TURNS; n++)
			world_drive(world, fs);
	}
}

/* Tracks of such a size, all known or none. */
static struct geom *tracks_of(uint32_t sectors, bool known)
{
	struct geom_build *b = geom_build_new(8000000, UINT32_MAX / 250);
	struct geom *geom;
	int rc;

	assert(b);
	rc = geom_build_sweep(b, &(struct geom_sweep){
		.count = DISK_SECTORS / sectors, .sectors = sectors,
		.around = sectors, .cylinder_step = 1, .known = known,
	});
	if (!rc && DISK_SECTORS % sectors)
		rc = geom_build_pseudo(b, DISK_SECTORS, sectors);
	assert(!rc);
	rc = geom_build_finish(b, &geom);
	assert(!rc);
	geom_build_free(b);
	return geom;
}

/* Other tracks, and a state of measuring that often outgrows its room. */
static void change_profile(struct fs *fs, struct world *world, uint64_t *rng)
{
	uint32_t track = 500 + (uint32_t)(world_random(rng) % 700);
	size_t bytes = 1 + world_random(rng) % MAX_PROGRESS;
	struct fs_op sync = { .type = FS_SYNCFS };
	struct profile *profile;
	struct geom *geom;

	world_call(fs, world, &sync);
	if (!queue_idle(fs->queue) || world_random(rng) % 4 == 0)
		return;
	geom = tracks_of(track, world_random(rng) % 8);
	profile = profile_from_geom(geom, PROFILE_TIMING);
	assert(profile);
	profile->progress = malloc(bytes);
	assert(profile->progress);
	memset(profile->progress, (int)(bytes % 251), bytes);
	profile->progress_bytes = bytes;
	if (fs_adopt_profile(fs, profile))
		profile_free(profile);
	profile_save_now(fs->profile_save);
}

static void run_keep(struct config *config, struct oracle *oracle,
		     struct fs *fs, struct world *world, uint64_t seed)
{
	uint64_t rng = seed;
	struct profile_save_stats stats;

	for (unsigned done = 0; done < config->ops; done += OPS_BETWEEN) {
		change_profile(fs, world, &rng);
		if (config->replicas)
			change_copies(fs, world, &rng);
		oracle_run(oracle, fs, world, OPS_BETWEEN);
	}
	profile_save_get_stats(fs->profile_save, &stats);
	printf("profile: %lu written, %lu moved; ", (long)stats.written,
	       (long)stats.moved);
}

/* Much that nobody asks to be durable, until it is written all the same. */
static void run_lose(struct config *config, struct oracle *oracle,
		     struct fs *fs, struct world *world)
{
	for (unsigned done = 0; done < config->ops; done += 10 * OPS_BETWEEN) {
		oracle_run(oracle, fs, world, 10 * OPS_BETWEEN);
		oracle_overwrite(oracle, fs, world, STORM_OPS);
		for (unsigned s = 0; s < STORM_SECONDS; s++) {
			sim_advance(world->sim, 1000000000);
			for (unsigned n = 0; n < STORM_TURNS; n++)
				world_drive(world, fs);
		}
	}
}

/* Reads somewhere, by somebody who is never done. */
struct reader {
	struct queue_request req;
	struct iovec iov;
	uint8_t bytes[4096] __attribute__((aligned(4096)));
	struct queue *queue;
	uint64_t rng;
	unsigned left;
	bool busy;
};

static void reader_ask(struct reader *r)
{
	r->busy = r->left != 0;
	if (!r->busy)
		return;
	r->left--;
	r->req.disk.sector = world_random(&r->rng) % (DISK_SECTORS / 8) * 8;
	queue_submit(r->queue, &r->req);
}

static void reader_done(struct disk_request *req)
{
	reader_ask(req->owner);
}

static void reader_start(struct reader *r, struct fs *fs)
{
	r->left = READS_BETWEEN;
	if (r->busy)
		return;
	r->queue = fs->queue;
	r->iov = (struct iovec){ r->bytes, sizeof(r->bytes) };
	r->req = (struct queue_request){
		.class = QUEUE_READ,
		.disk = { .op = DISK_READ, .sectors = 8, .iov = &r->iov,
			  .iov_n = 1, .done = reader_done, .owner = r },
	};
	reader_ask(r);
}

static void run_gaps(struct config *config, struct oracle *oracle,
		     struct fs *fs, struct world *world, uint64_t seed)
{
	struct reader reader = { .rng = seed };
	uint64_t rng = seed;

	for (unsigned done = 0; done < config->ops; done += OPS_BETWEEN) {
		uint64_t until_ns = sim_now_ns(world->sim) +
				    world_random(&rng) % 3 * PAUSE_NS;

		reader_start(&reader, fs);
		oracle_run(oracle, fs, world, OPS_BETWEEN);
		while (sim_now_ns(world->sim) < until_ns) {
			reader_start(&reader, fs);
			world_drive(world, fs);
		}
	}
	reader.left = 0;
	while (reader.busy)
		world_drive(world, fs);
	printf("gaps: %lu offered, %lu recalled, %lu had; ",
	       (long)fs->files->gap_queued_total,
	       (long)fs->files->gap_recalled_total,
	       (long)queue_stats(fs->queue)->gaps);
}

/* Moves, leaves that are written without a checkpoint, and leaves that are
 * brought together. */
static void run_beside(struct config *config, struct oracle *oracle,
		       struct fs *fs, struct world *world)
{
	const unsigned most = OPS_TIMES * config->ops;

	beside_open(config->beside, fs, world);
	for (unsigned done = 0; done < config->ops ||
				(done < most && beside_idle(config->beside));
	     done += OPS_BETWEEN) {
		oracle_run(oracle, fs, world, OPS_BETWEEN);
		beside_work(config->beside);
	}
	beside_close(config->beside);
	beside_print(config->beside);
}

/* FITRIM of some of the disk or of all of it, while the clients go on. */
struct trimmer {
	struct fs_op op;
	uint64_t bytes;		/* discarded, in all */
	bool busy;
};

static void trimmer_done(struct fs_op *op)
{
	struct trimmer *t = op->owner;

	assert(!op->rc);
	t->bytes += op->result;
	t->busy = false;
}

static void trimmer_start(struct trimmer *t, struct fs *fs, uint64_t *rng)
{
	t->busy = true;
	t->op = (struct fs_op){
		.type = FS_TRIM, .owner = t, .done = trimmer_done,
		.size = DISK_SECTORS * SECTOR_BYTES,
	};
	if (world_random(rng) % 4 == 0) {
		t->op.offset = world_random(rng) % t->op.size;
		t->op.size = 4096 + world_random(rng) % TRIM_BYTES;
	}
	fs_submit(fs, &t->op);
}

static void run_discard(struct config *config, struct oracle *oracle,
			struct fs *fs, struct world *world, uint64_t seed)
{
	struct trimmer t = { .busy = false };
	uint64_t rng = seed;

	for (unsigned done = 0; done < config->ops; done += OPS_BETWEEN) {
		struct fs_op sync = { .type = FS_SYNCFS };

		oracle_run(oracle, fs, world, OPS_BETWEEN);
		if (!t.busy)
			trimmer_start(&t, fs, &rng);
		/* What the clients wrote is given places meanwhile. */
		world_call(fs, world, &sync);
	}
	while (t.busy)
		world_drive(world, fs);
	printf("discarded: %lu KiB; ", (long)(t.bytes >> 10));
}

static void run_clients(struct config *config, struct oracle *oracle,
			struct fs *fs, struct world *world, uint64_t seed)
{
	struct freeblock_stats free;
	uint64_t rng = seed;
	unsigned done;

	if (config->lose) {
		run_lose(config, oracle, fs, world);
		return;
	}
	if (config->keep) {
		run_keep(config, oracle, fs, world, seed);
		return;
	}
	if (config->gaps) {
		run_gaps(config, oracle, fs, world, seed);
		return;
	}
	if (config->beside_kinds.moves || config->beside_kinds.spills ||
	    config->beside_kinds.gathers) {
		run_beside(config, oracle, fs, world);
		return;
	}
	if (config->discard) {
		run_discard(config, oracle, fs, world, seed);
		return;
	}
	if (!config->replicas) {
		oracle_run(oracle, fs, world, config->ops);
		return;
	}
	for (done = 0; done < config->ops; done += OPS_BETWEEN) {
		change_copies(fs, world, &rng);
		oracle_run(oracle, fs, world, OPS_BETWEEN);
	}
	freeblock_get_stats(fs->queue, NULL, &free);
	printf("copies: %lu made, %lu dropped, %lu regions reclaimed, "
	       "%lu sectors in gaps; ",
	       (long)fs->replicas->stats.made,
	       (long)fs->replicas->stats.dropped,
	       (long)fs->replicas->stats.reclaimed, (long)free.gap_sectors);
}

static void print_head(const struct head *head)
{
	struct head_stats stats;

	if (!head)
		return;
	head_get_stats(head, &stats);
	printf("head: mode %d, %lu writes predicted, %lu wrong, "
	       "switched %lu times, now %s\n", (int)stats.mode,
	       (long)stats.write.predictions, (long)stats.write.wrong,
	       (long)stats.write.switched, stats.write.on ? "on" : "off");
}

static const char *run(struct config *config, uint64_t seed)
{
	struct media *before = make_image(config, seed);
	struct sim_options options = { .seed = seed,
				       .volatile_cache = config->cache ||
							 config->canary,
				       .content = before };
	struct oracle *oracle = config->trace ?
		oracle_new_replay(config->trace) :
		oracle_new(seed, config->clients);
	struct world world;
	struct liar liar;
	struct head *head;
	struct disk *disk;
	struct fs *fs = NULL;
	uint64_t first, random = seed;
	const char *wrong;

	place.seed = seed;
	if (config->trace)
		config->ops = oracle_ops(oracle);
	world_init(&world, drive_of(config), DISK_SECTORS, &options, true);
	world.note = note_told;
	world.note_arg = &fs;
	disk = sim_disk(world.sim);
	fs = open_fs(config, &world,
		     config->canary ? liar_disk(&liar, disk) : disk, true,
		     &head);
	assert(fs);
	memcpy(config->uuid, tree_super(fs->tree)->uuid, sizeof(config->uuid));
	oracle_begin(oracle, fs, &world);
	config->beside = beside_new(seed, &config->beside_kinds);
	beside_make(config->beside, fs, &world);
	first = world.events;
	run_clients(config, oracle, fs, &world, seed);
	/* What is written when nobody asks is cut at as well. */
	world_settle(&world, fs, world_random(&random) % SETTLE_SECONDS);
	/* A trace may be too short. */
	idle = config->trace ? NULL : beside_idle(config->beside);
	wrong = idle;
	if (!wrong)
		wrong = oracle_verify(oracle, fs, &world, UINT64_MAX);
	if (!wrong)
		wrong = beside_verify(config->beside, fs, &world, UINT64_MAX);
	if (fs_close(fs) && !wrong)
		wrong = "it does not unmount";
	print_head(head);
	head_close(head);
	if (!wrong)
		wrong = check_world(&world);
	printf("seed %lu: %lu events: ", (long)seed, (long)world.moments);
	oracle_print(oracle);
	if (!wrong)
		wrong = cut_all(config, oracle, &world, first);
	world_fini(&world);
	oracle_free(oracle);
	beside_free(config->beside);
	media_free(before);
	return wrong;
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*end || end == text) {
		fprintf(stderr, "crash: not a number: %s\n", text);
		exit(2);
	}
	return n;
}

static bool *flag_of(struct config *config, int option)
{
	switch (option) {
	case 'v':
		return &config->cache;
	case 'y':
		return &config->canary;
	case 'L':
		return &config->lose;
	case 'R':
		return &config->replicas;
	case 'P':
		return &config->keep;
	case 'g':
		return &config->gaps;
	case 'm':
		return &config->beside_kinds.moves;
	case 'T':
		return &config->discard;
	case 'G':
		return &config->beside_kinds.gathers;
	case 'p':
		return &config->beside_kinds.spills;
	default:
		return NULL;
	}
}

static void parse(int argc, char **argv, struct config *config)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' },    { "runs", 1, NULL, 'r' },
		{ "ops", 1, NULL, 'o' },     { "clients", 1, NULL, 'c' },
		{ "cuts", 1, NULL, 'k' },    { "recuts", 1, NULL, 'K' },
		{ "cache", 0, NULL, 'v' },   { "canary", 0, NULL, 'y' },
		{ "replicas", 0, NULL, 'R' }, { "keep", 0, NULL, 'P' },
		{ "lose", 0, NULL, 'L' },
		{ "drive", 1, NULL, 'd' },   { "doubt", 1, NULL, 'D' },
		{ "gaps", 0, NULL, 'g' },    { "moves", 0, NULL, 'm' },
		{ "discard", 0, NULL, 'T' }, { "trace", 1, NULL, 't' },
		{ "spills", 0, NULL, 'p' },  { "gathers", 0, NULL, 'G' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			config->seed = number(optarg);
			break;
		case 'r':
			config->runs = number(optarg);
			break;
		case 'o':
			config->ops = number(optarg);
			break;
		case 'c':
			config->clients = number(optarg);
			break;
		case 'k':
			config->cuts = number(optarg);
			break;
		case 'K':
			config->recuts = number(optarg);
			break;
		case 't':
			config->trace = optarg;
			break;
		case 'd':
			config->drive = optarg;
			break;
		case 'D':
			config->kind = number(optarg);
			break;
		default:
			if (!flag_of(config, c))
				exit(2);
			*flag_of(config, c) = true;
		}
	}
}

int main(int argc, char **argv)
{
	struct config config = { .seed = 1,
				 .runs = 1,
				 .ops = 300,
				 .clients = 3,
				 .cuts = 60 };

	parse(argc, argv, &config);
	signal(SIGABRT, on_abort);
	signal(SIGSEGV, on_abort);
	msg_set_sink(keep_message, NULL);
	if (config.drive)
		doubt_init(&config.doubt, config.drive, DISK_SECTORS,
			   config.kind % DOUBT_KINDS);
	for (unsigned i = 0; i < config.runs; i++) {
		const char *wrong = run(&config, config.seed + i);

		if (wrong && config.canary) {
			printf("the canary was caught: %s\n", wrong);
			return 0;
		}
		if (wrong) {
			print_place(wrong);
			return idle ? EXIT_IDLE : 1;
		}
		printf("%lu cuts, all well\n", done_cuts);
		fflush(stdout);
	}
	if (config.drive)
		doubt_fini(&config.doubt);
	return config.canary;
}
