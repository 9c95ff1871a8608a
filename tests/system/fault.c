/*
 * fault.c - the k-th request and the k-th allocation fail, k = 1, 2, ..., until
 * a run never meets the fault (or `most` is reached).
 *
 *   fault [--seed N] [--ops N] [--first N] [--step N] [--most N]
 *         [--what requests|reads|writes|data|memory] [--times N] [--second N]
 *         [--late MS] [--every N] [--settle SECONDS] [--cut] [--cuts N]
 *         [--cache] [--gaps] [--moves] [--spills] [--gathers] [--trace FILE]
 *
 * Random clients (oracle.h) work meanwhile; an operation may fail, nothing may
 * crash or hang.  Afterwards the file system is closed, mounted on a disk that
 * works, and compared like after a power cut; the checker is silent.  --step k
 * grows by: 1 tries every one.  --what: of all requests, of reads, of writes,
 * or of writes that are neither of the log nor of the tree.  --times: so many
 * fail from the k-th on; --second: another one fails so many later.  --late:
 * that one (without --second the k-th) does not fail, but takes so much
 * longer. --every: each so many-th allocation fails from the k-th on.
 * --settle: time passes before the end, so that logged data is destaged, or
 * elsewhere, and what the file system gives is compared then as well: with a
 * few errors it is what was written last.  --cut: at the end power is cut
 * instead of unmounting. --cuts: power goes at so many of the events behind
 * the fault, too; each time what is left is mounted, compared and checked.
 * --cache: the disk has a volatile cache.  --gaps: write-back waits for gaps.
 * --moves: whatever lies in a track with room is moved on and on.  --spills:
 * so many nodes are changed that leaves are written without a checkpoint.
 * --gathers: leaves are brought together and lined up.  One of the runs has to
 * do all that was asked for (beside.h).  --trace: not random clients, but what
 * a program did (tests/traces).  Exits with 4 when no fault was met, or
 * nothing was done that was asked for.
 *
 * Allocations that fail are those of the file system while it runs an
 * operation; it does not become read-only by that.  The linker wraps malloc,
 * calloc and realloc of this program, and neither the oracle nor the simulator
 * is ever refused.
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
#include "fs/op/fs_internal.h"
#include "fs/mkfs.h"
#include "log/log_internal.h"
#include "sim/media.h"
#include "tests/rig/beside.h"
#include "tests/rig/oracle.h"
#include "tests/rig/world.h"

#define DISK_SECTORS (96u << 11)
#define MEMORY_BYTES (32u << 20)

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);

static uint64_t countdown;	/* 0: no allocation fails */
static uint64_t every;		/* then each so many-th; 0: one only */
static bool met;
static struct world *now;	/* the run's */

static bool fail_now(void)
{
	if (!now || !now->inside || !countdown || --countdown)
		return false;
	met = true;
	countdown = every;
	return true;
}

void *__wrap_malloc(size_t bytes)
{
	return fail_now() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return fail_now() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *p, size_t bytes)
{
	return fail_now() ? NULL : __real_realloc(p, bytes);
}

/* ---- A disk that shields the simulator from failing allocations ---- */

/* And has the k-th request of some kinds fail, and `times` in all; then the
 * same `second` later. */
struct shield {
	struct disk disk;
	struct disk *below;
	unsigned kinds;		/* SIM_...; 0: none fails */
	const struct fs *fs;	/* only what is_data of it; NULL: all */
	uint64_t k, times, second;
	uint64_t late_ns;	/* the last ones take longer; 0: they fail */
	uint64_t seen, met;	/* requests of the kinds, and with a fault */
	bool record;		/* the events behind the first fault */
};

static bool is_node(const struct space *space, uint64_t sector)
{
	struct range track = { 0, 0 };

	while (space_slots_next_track(space, track.first + track.n, &track))
		if (sector >= addr_sector(track.first) &&
		    sector < addr_sector(track.first) + track.n)
			return true;
	return false;
}

static bool is_data(const struct fs *fs, uint64_t sector)
{
	const struct super *super = tree_super(fs->tree);
	unsigned i;

	for (i = 0; i < 4; i++)
		if (sector - super->area_sector[i / 2][i % 2] <
		    super->area_sectors)
			return false;
	return !log_track_of(tree_log(fs->tree), sector) &&
	       !is_node(tree_space(fs->tree), sector);
}

/* Is the request one that has a fault?  Then this is it. */
static bool shield_meets(struct shield *s, const struct disk_request *req,
			 struct sim_fault *fault)
{
	const uint64_t last = s->k + s->times - 1 + s->second;
	bool is_last;
	uint64_t n;

	if (!(s->kinds & 1u << req->op) ||
	    (s->fs && !is_data(s->fs, req->sector)))
		return false;
	n = ++s->seen;
	is_last = s->second && n >= last && n - last < s->times;
	if (!is_last && (n < s->k || n - s->k >= s->times))
		return false;
	*fault = (struct sim_fault){
		.kind = s->late_ns && (is_last || !s->second) ? SIM_SLOW :
								SIM_FAIL,
		.ops = 1u << req->op, .k = 1, .times = 1,
		.first = req->sector, .sectors = req->sectors,
		.delay_ns = s->late_ns,
	};
	return true;
}

static void shield_submit(struct disk *disk, struct disk_request *req)
{
	struct shield *shield = (struct shield *)disk;
	bool before = now->inside;
	struct sim_fault fault;

	now->inside = false;
	if (shield_meets(shield, req, &fault)) {
		shield->met++;
		sim_fault_clear(now->sim);
		sim_fault_add(now->sim, &fault);
	}
	disk_submit(shield->below, req);
	if (shield->record && (shield->met || met))
		world_record(now);
	now->inside = before;
}

static int shield_poll(struct disk *disk, int64_t timeout_ns)
{
	bool before = now->inside;
	int n;

	now->inside = false;
	n = disk_poll_ns(((struct shield *)disk)->below, timeout_ns);
	now->inside = before;
	return n;
}

static int shield_event_fd(struct disk *disk)
{
	return disk_event_fd(((struct shield *)disk)->below);
}

static void shield_close(struct disk *disk)
{
	(void)disk;
}

static const struct disk_ops shield_ops = {
	.submit = shield_submit,
	.poll = shield_poll,
	.event_fd = shield_event_fd,
	.close = shield_close,
};

/* What the file system said in this run, for the report of a failure. */
static char said[4096];
static struct {
	uint64_t seed, k;
	uint64_t cut;		/* at this event; 0: not now */
	bool memory;
} place;
static unsigned long cuts;

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
		"fault: seed %lu, %s %lu failed, cut at event %lu: %s\n%s",
		(long)place.seed, place.memory ? "allocation" : "request",
		(long)place.k, (long)place.cut, what, said);
}

static void on_abort(int sig)
{
	print_place(sig == SIGABRT ? "assertion" : "crash");
	_exit(3);
}

/* A run had all that was to work beside the clients. */
static bool worked;

#define LOSING_TIMES 16u	/* failures: then data is given up */
#define OPS_BETWEEN 5u
#define EXIT_IDLE 4	/* what was to be tried never happened */
#define CUTS (SIM_CUT_RANDOM + 1)	/* kinds of cuts */

struct config {
	uint64_t seed;
	unsigned ops, first, step, most, times, second, settle, every, cuts;
	unsigned kinds;		/* of requests that fail, SIM_... */
	uint64_t late_ns;	/* 0: all fail */
	bool memory, data, cut, gaps, cache;
	struct beside_kinds beside;
	const char *trace;	/* NULL: random clients */
};

static struct fs *open_fs(const struct config *config, struct world *world,
			  struct disk *disk)
{
	struct fs_options options = { .memory_bytes = MEMORY_BYTES,
				      .gap_writeback = config->gaps ?
					      FS_GAP_WRITEBACK_ALWAYS :
					      FS_GAP_WRITEBACK_WHILE_READ };
	struct fs *fs;
	int rc = fs_open(sim_env(world->sim), disk, &options, &fs);

	return rc ? NULL : fs;
}

/* What each run begins with. */
static struct media *make(const struct config *config)
{
	struct sim_options options = { .seed = config->seed };
	struct mkfs_options mkfs = { .pseudo_track_sectors = 512 };
	struct beside *beside = beside_new(config->seed, &config->beside);
	struct mkfs_plan plan;
	struct media *media;
	struct world world;
	struct disk *disk;
	struct fs *fs;

	world_init(&world, NULL, DISK_SECTORS, &options, false);
	disk = sim_disk(world.sim);
	if (mkfs_plan(sim_env(world.sim), &disk->limits, &mkfs, &plan) ||
	    mkfs_write(sim_env(world.sim), disk, &mkfs, &plan))
		abort();
	if (config->beside.spills || config->beside.gathers) {
		fs = open_fs(config, &world, disk);
		assert(fs);
		beside_make(beside, fs, &world);
		if (fs_close(fs))
			abort();
	}
	media = sim_content(world.sim);
	assert(media);
	world_fini(&world);
	beside_free(beside);
	return media;
}

static bool print_problem(void *arg, const struct check_found *found)
{
	(void)arg;
	fprintf(stderr, "  chkfs: %s\n", found->text);
	return false;
}

/* Mounts what is left of a cut at that event, compares, checks. */
static const char *afterwards(const struct config *config, struct world *world,
			      struct oracle *oracle, struct beside *beside,
			      uint64_t event)
{
	struct check_options check = { .data = true, .found = print_problem };
	struct check_result result;
	struct fs *fs = open_fs(config, world, sim_disk(world->sim));
	const char *wrong;

	if (!fs)
		return "it does not mount afterwards";
	wrong = oracle_verify(oracle, fs, world, event);
	if (!wrong)
		wrong = beside_verify(beside, fs, world, event);
	if (fs_close(fs) && !wrong)
		wrong = "it does not unmount afterwards";
	if (!wrong && (check_run(sim_env(world->sim), sim_disk(world->sim),
				 &check, &result) || result.found))
		wrong = "the checker found problems";
	return wrong;
}

static void add_faults(const struct config *config, struct shield *shield,
		       const struct fs *fs, uint64_t k)
{
	shield->record = config->cuts > 0;
	if (config->memory) {
		countdown = k;
		every = config->every;
		return;
	}
	shield->kinds = config->kinds;
	shield->k = k;
	shield->times = config->times;
	shield->second = config->second;
	shield->late_ns = config->late_ns;
	shield->fs = config->data ? fs : NULL;
}

/* What it gives while it is mounted. */
static const char *verify(const struct config *config, struct world *world,
			  struct oracle *oracle, struct beside *beside,
			  struct fs *fs)
{
	const bool may_lose = fs_read_only(fs) || config->times >= LOSING_TIMES;
	const uint64_t event = may_lose ? world->events : UINT64_MAX;
	const char *wrong = oracle_verify(oracle, fs, world, event);

	/* Of names and attributes nothing is given up. */
	if (!wrong && !tree_failed(fs->tree))
		wrong = beside_verify(beside, fs, world, UINT64_MAX);
	return wrong;
}

/* It ends, in one way or the other; what it gives until then is right. */
static const char *finish(const struct config *config, struct world *world,
			  struct oracle *oracle, struct beside *beside,
			  struct fs *fs)
{
	const char *wrong = NULL;

	world_settle(world, fs, config->settle);
	countdown = 0;
	if (config->memory && fs_read_only(fs))
		wrong = "it gave up for lack of memory";
	else if (config->settle)
		wrong = verify(config, world, oracle, beside, fs);
	beside_close(beside);
	if (!config->cut) {
		fs_close(fs);
		return wrong;
	}
	sim_power_cut(world->sim, SIM_CUT_RANDOM, config->seed + place.k);
	fs_abandon(fs);
	sim_restart(world->sim);
	return wrong;
}

static void work(const struct config *config, struct world *world,
		 struct oracle *oracle, struct beside *beside, struct fs *fs)
{
	unsigned done, n;

	if (!config->beside.moves && !config->beside.spills &&
	    !config->beside.gathers) {
		oracle_run(oracle, fs, world, config->trace ?
			   oracle_ops(oracle) : config->ops);
		return;
	}
	for (done = 0; done < config->ops; done += n) {
		n = config->ops - done < OPS_BETWEEN ? config->ops - done :
						       OPS_BETWEEN;
		oracle_run(oracle, fs, world, n);
		beside_work(beside);
	}
}

/* Power goes at some of the events behind the fault. */
static const char *cut_some(const struct config *config,
			    const struct world *run, struct oracle *oracle,
			    struct beside *beside)
{
	const uint64_t n = run->moments < config->cuts ? run->moments :
							 config->cuts;
	const char *wrong = NULL;

	for (uint64_t i = 0; i < n && !wrong; i++) {
		/* Others with each k. */
		const uint64_t at = (i * run->moments +
				     place.k % n * run->moments / n) / n;
		struct sim_options options = {
			.seed = config->seed + at,
			.volatile_cache = config->cache,
		};
		struct world world;
		struct media *media;

		place.cut = run->recorded + at;
		media = sim_moment_cut(run->moment[at], (i + place.k) % CUTS,
				       config->seed * 1000003 + place.cut);
		assert(media);
		options.content = media;
		world_init(&world, NULL, DISK_SECTORS, &options, false);
		said[0] = 0;
		wrong = afterwards(config, &world, oracle, beside, place.cut);
		world_fini(&world);
		media_free(media);
		cuts++;
	}
	place.cut = 0;
	return wrong;
}

static struct oracle *oracle_of(const struct config *config)
{
	struct oracle *oracle = config->trace ?
		oracle_new_replay(config->trace) : oracle_new(config->seed, 2);

	oracle_allow_faults(oracle);
	if (config->times >= LOSING_TIMES)
		oracle_allow_losses(oracle);
	return oracle;
}

/* One run in which the k-th fails; *hit: the fault was met. */
static const char *run(const struct config *config, const struct media *base,
		       uint64_t k, bool *hit)
{
	struct sim_options options = { .seed = config->seed, .content = base,
				       .volatile_cache = config->cache };
	struct oracle *oracle = oracle_of(config);
	struct beside *beside = beside_new(config->seed, &config->beside);
	struct world world;
	struct shield shield = { .kinds = 0 };
	struct fs *fs;
	const char *wrong;

	world_init(&world, NULL, DISK_SECTORS, &options, false);
	shield.below = sim_disk(world.sim);
	shield.disk = (struct disk){ &shield_ops, shield.below->limits,
				     "shield" };
	now = &world;
	fs = open_fs(config, &world, &shield.disk);
	assert(fs);
	oracle_begin(oracle, fs, &world);
	beside_open(beside, fs, &world);
	add_faults(config, &shield, fs, k);
	work(config, &world, oracle, beside, fs);
	wrong = finish(config, &world, oracle, beside, fs);
	*hit = config->memory ? met : shield.met > 0;
	met = false;
	now = NULL;
	sim_fault_clear(world.sim);
	world.record = false;
	if (!wrong)
		wrong = afterwards(config, &world, oracle, beside,
				   world.events);
	if (!wrong)
		wrong = cut_some(config, &world, oracle, beside);
	if (k == config->first)
		beside_print(beside);
	if (config->trace || !beside_idle(beside))
		worked = true;
	world_fini(&world);
	oracle_free(oracle);
	beside_free(beside);
	return wrong;
}

static bool *flag_of(struct config *c, int option)
{
	switch (option) {
	case 'c':
		return &c->cut;
	case 'g':
		return &c->gaps;
	case 'M':
		return &c->beside.moves;
	case 'p':
		return &c->beside.spills;
	case 'G':
		return &c->beside.gathers;
	case 'v':
		return &c->cache;
	default:
		return NULL;
	}
}

/* Of requests that fail, by the word behind --what. */
static unsigned kinds_of(const char *what)
{
	if (!strcmp(what, "reads"))
		return SIM_READS;
	if (!strcmp(what, "writes") || !strcmp(what, "data"))
		return SIM_WRITES;
	return SIM_ALL;
}

static void parse(int argc, char **argv, struct config *c)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' }, { "ops", 1, NULL, 'o' },
		{ "step", 1, NULL, 'k' }, { "most", 1, NULL, 'm' },
		{ "what", 1, NULL, 'w' }, { "first", 1, NULL, 'f' },
		{ "gaps", 0, NULL, 'g' }, { "times", 1, NULL, 't' },
		{ "second", 1, NULL, '2' }, { "settle", 1, NULL, 'S' },
		{ "cut", 0, NULL, 'c' }, { "every", 1, NULL, 'e' },
		{ "trace", 1, NULL, 'T' },
		{ "moves", 0, NULL, 'M' }, { "spills", 0, NULL, 'p' },
		{ "gathers", 0, NULL, 'G' }, { "cuts", 1, NULL, 'C' },
		{ "late", 1, NULL, 'l' }, { "cache", 0, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	bool *flag;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			c->seed = strtoul(optarg, NULL, 0);
			break;
		case 'o':
			c->ops = strtoul(optarg, NULL, 0);
			break;
		case 'k':
			c->step = strtoul(optarg, NULL, 0);
			break;
		case 'm':
			c->most = strtoul(optarg, NULL, 0);
			break;
		case 'f':
			c->first = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			c->memory = !strcmp(optarg, "memory");
			c->data = !strcmp(optarg, "data");
			c->kinds = kinds_of(optarg);
			break;
		case 't':
			c->times = strtoul(optarg, NULL, 0);
			break;
		case '2':
			c->second = strtoul(optarg, NULL, 0);
			break;
		case 'S':
			c->settle = strtoul(optarg, NULL, 0);
			break;
		case 'e':
			c->every = strtoul(optarg, NULL, 0);
			break;
		case 'C':
			c->cuts = strtoul(optarg, NULL, 0);
			break;
		case 'l':
			c->late_ns = strtoul(optarg, NULL, 0) * 1000000;
			break;
		case 'T':
			c->trace = optarg;
			break;
		default:
			flag = flag_of(c, opt);
			if (!flag)
				exit(2);
			*flag = true;
		}
	}
}

int main(int argc, char **argv)
{
	struct config c = {
		.seed = 1, .ops = 60, .first = 1, .step = 1, .most = UINT32_MAX,
		.times = 1, .kinds = SIM_ALL,
	};
	unsigned long runs = 0;
	struct media *base;
	bool hit = true;

	parse(argc, argv, &c);
	if (!c.step)
		return 2;
	signal(SIGABRT, on_abort);
	signal(SIGSEGV, on_abort);
	msg_set_sink(keep_message, NULL);
	base = make(&c);
	for (uint64_t k = c.first; hit && k <= c.most; k += c.step) {
		const char *wrong;

		place.seed = c.seed;
		place.k = k;
		place.memory = c.memory;
		said[0] = 0;
		wrong = run(&c, base, k, &hit);
		runs += hit;
		if (wrong) {
			print_place(wrong);
			return 1;
		}
	}
	media_free(base);
	if (!worked || !runs) {
		fprintf(stderr, "fault: %s\n", worked ?
			"no fault was met" :
			"nothing worked beside the clients");
		return EXIT_IDLE;
	}
	printf("%lu runs with a failing %s, %lu cuts, all well\n", runs,
	       c.memory ? "allocation" : "request", cuts);
	return 0;
}
