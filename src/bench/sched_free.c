/*
 * sched_free.c - freeblock scheduling (OSDI 2000, section 6): scans a whole
 * disk in units of 4 KiB, in the gaps of foreground requests whose times must
 * not change.
 *
 * Each load is run without a scan and then, from the same seed, with one scan
 * after the other. A scan also takes what the foreground reads anyway.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/sort.h"
#include "base/units.h"
#include "bench/rig.h"
#include "bench/sched_measures.h"
#include "format/format.h"
#include "sched/freeblock/freeblock.h"
#include "sched/freeblock/gap_search.h"

#define PROGRESS 20u	/* A scan is reported in steps of 5 %. */
/* Requests of the scan that are outstanding when its rest is no longer left to
 * the gaps. */
#define PROMOTED_DEPTH 4u
#define SEARCHES 5000u	/* Number of searches whose time is measured. */

/* ---- a scan ---- */

struct bench_scan {
	struct rig *rig;
	struct freeblock_task *task;
	double part;		/* share of the disk at which the scan is
				 * complete */
	double promote_at;	/* remaining share that is promoted; 0: nothing
				 * is */
	uint64_t all;		/* sectors of the disk */
	uint64_t begin_ns;
	uint64_t scans;
	uint64_t used_ns;	/* time that complete scans took */
	uint64_t got;		/* sectors read by the present scan */
	uint64_t mark[PROGRESS + 1];	/* time since the begin of the first
					 * scan, by twentieths of the disk */
};

static void scan_begin(struct bench_scan *scan)
{
	scan->begin_ns = env_now_ns(scan->rig->env);
	scan->got = 0;
	freeblock_promote(scan->task, 0);
	freeblock_unwant(scan->task, 0, scan->all);
	freeblock_want(scan->task, 0, scan->all);
}

static void scan_got(void *arg, uint64_t sector, uint32_t sectors,
		     const void *bytes, int result)
{
	struct bench_scan *scan = arg;
	uint64_t now_ns = env_now_ns(scan->rig->env);
	double left;
	unsigned i;

	(void)sector;
	(void)bytes;
	(void)result;
	scan->got += sectors;
	left = 1 - (double)scan->got / (double)scan->all;
	i = (unsigned)((1 - left) * PROGRESS);
	if (!scan->scans && !scan->mark[i])
		scan->mark[i] = now_ns - scan->begin_ns;
	if (left < scan->promote_at)
		freeblock_promote(scan->task, PROMOTED_DEPTH);
	if ((double)scan->got < scan->part * (double)scan->all)
		return;
	scan->scans++;
	scan->used_ns += now_ns - scan->begin_ns;
	scan_begin(scan);
}

static const struct freeblock_ops scan_ops = { .got = scan_got };

static int scan_open(struct rig *rig, struct bench_scan *scan)
{
	const struct freeblock_options options = {
		.name = "scan",
		.unit_sectors = TRAX_BLOCK_SECTORS,
		.no_idle = true,
		.parts_bytes = SCHED_PARTS_BYTES,
		.any = scan->part < 1,
	};
	int err = freeblock_open(rig->queue, &options, &scan_ops, scan,
				 &scan->task);

	if (err)
		return err;
	scan->rig = rig;
	scan->all = geom_sectors(rig->geom) / TRAX_BLOCK_SECTORS *
		    TRAX_BLOCK_SECTORS;
	scan_begin(scan);
	return 0;
}

/* ---- loads ---- */

struct oltp {
	uint64_t seed, sectors;
};

/* Places are multiples of 4 KiB, lengths 8 KiB on average. */
static void oltp_next(void *arg, uint64_t *sector, uint32_t *sectors)
{
	struct oltp *oltp = arg;
	double blocks = ceil(-log(1 - random_part(&oltp->seed)) * 1.4427);

	*sectors = blocks < 16 ? (uint32_t)blocks * 8 : 128;
	if (!*sectors)
		*sectors = 8;
	*sector = (uint64_t)(random_part(&oltp->seed) *
			     (double)(oltp->sectors - 128)) / 8 * 8;
}

struct outcome {
	struct rig_result result;
	struct freeblock_stats stats;
	struct bench_scan scan;
};

static int run_load(const struct sched_options *options,
		    const struct sched_free_load *setup, bool scan,
		    struct outcome *out)
{
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "atlas-10k",
		.seed = options->seed,
		.policy = setup->policy,
		.no_cache = true,
	};
	struct oltp oltp = { .seed = options->seed };
	struct rig_load load = {
		.clients = setup->clients,
		.think_ns = setup->think_ns,
		.sectors = setup->random ? 8 : 64,
		.read_percent = 67,
		.warmup = 300,
		.requests = options->requests ? options->requests :
						setup->requests,
		.seed = options->seed,
		.next = setup->random ? NULL : oltp_next,
		.arg = &oltp,
	};
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	*out = (struct outcome){ .scan = { .part = setup->part,
				.promote_at = setup->promote_at } };
	oltp.sectors = geom_sectors(rig.geom);
	if (options->quick)
		load.requests /= 10;
	if (scan)
		err = scan_open(&rig, &out->scan);
	if (!err)
		err = rig_run(&rig, &load, &out->result);
	freeblock_get_stats(rig.queue, NULL, &out->stats);
	freeblock_close(out->scan.task);
	if (!err)
		err = queue_drain(rig.queue) < 0;
	rig_close(&rig);
	return err;
}

/* ---- what is printed ---- */

static double scans_a_day(const struct outcome *with)
{
	const struct bench_scan *scan = &with->scan;

	if (scan->scans)
		return (double)NS_PER_DAY * (double)scan->scans /
		       (double)scan->used_ns;
	return (double)NS_PER_DAY * (double)scan->got / (double)scan->all /
	       scan->part / (double)with->result.ns;
}

static void heading(const char *what)
{
	printf("\n%-14s %8s %8s %8s %7s %7s %7s %7s %8s %8s %7s\n", what,
	       "alone ms", "scan ms", "delay %", "rot. %", "free %", "share %",
	       "scans", "a day", "p99 +%", "said %");
}

/* Share of a scan's time that its last twentieth took. */
static double last_part(const struct bench_scan *scan)
{
	double all = scan->scans ? (double)scan->used_ns /
				   (double)scan->scans : 0;

	return all > 0 ? 1 - (double)scan->mark[PROGRESS - 1] / all : 0;
}

static int run_both(const struct sched_options *options,
		    const struct sched_free_load *load, struct outcome *with,
		    struct sched_free_result *r)
{
	struct outcome without;
	int err = run_load(options, load, false, &without);

	if (!err)
		err = run_load(options, load, true, with);
	if (err)
		return err;
	*r = (struct sched_free_result){
		.alone = without.result, .with = with->result,
		.rotation = (double)without.result.times.rotation_ns /
			    (double)without.result.ns,
		.used = (double)with->stats.used_ns / (double)with->result.ns,
		.said = (double)with->stats.delay_ns / (double)with->result.ns,
		.scans = (double)with->scan.scans +
			 (double)with->scan.got / (double)with->scan.all,
		.scans_a_day = scans_a_day(with),
		.last_part = last_part(&with->scan),
	};
	return 0;
}

int sched_free_scans(const struct sched_options *options,
		     const struct sched_free_load *load,
		     struct sched_free_result *result)
{
	struct outcome with;

	return run_both(options, load, &with, result);
}

static int measure(const struct sched_options *options,
		   const struct sched_free_load *load, struct outcome *with)
{
	struct sched_free_result r;
	int err = run_both(options, load, with, &r);

	if (err)
		return err;
	printf("%-14s %8.3f %8.3f %8.2f %7.1f %7.1f %7.1f %7.2f %8.1f %8.2f "
	       "%7.2f\n", load->label, r.alone.mean_ns / 1e6,
	       r.with.mean_ns / 1e6,
	       100 * (r.with.mean_ns / r.alone.mean_ns - 1), 100 * r.rotation,
	       100 * r.used, 100 * r.used / r.rotation, r.scans, r.scans_a_day,
	       100 * (r.with.p99_ns / r.alone.p99_ns - 1), 100 * r.said);
	fflush(stdout);
	return 0;
}

static void print_progress(const struct bench_scan *scan)
{
	double all = scan->scans ? (double)scan->used_ns /
				   (double)scan->scans : 0;
	unsigned i;

	printf("\nprogress of the first scan: per cent done, of its time\n");
	for (i = 1; i <= PROGRESS; i++)
		if (scan->mark[i])
			printf("%4u %%  %6.1f s  %5.1f %%\n",
			       100 * i / PROGRESS, (double)scan->mark[i] / 1e9,
			       all > 0 ? 100 * (double)scan->mark[i] / all : 0);
}

static int by_level(const struct sched_options *options)
{
	static const unsigned levels[] = { 1, 2, 5, 10, 20 };
	struct sched_free_load setup = { .policy = "sstf",
					 .think_ns = 30000000, .part = 1,
					 .requests = 60000 };
	struct outcome with;
	char label[16];
	int err = 0;
	size_t i;

	heading("multiprogr.");
	for (i = 0; i < sizeof(levels) / sizeof(levels[0]) && !err; i++) {
		snprintf(label, sizeof(label), "%u", levels[i]);
		setup.label = label;
		setup.clients = levels[i];
		err = measure(options, &setup, &with);
	}
	return err;
}

/* Measures how long the search of a gap takes on this machine when a part of
 * the disk is wanted, in runs of up to a track. */
static int search_times(const struct sched_options *options, double part)
{
	static uint64_t times[SEARCHES];
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "atlas-10k",
		.seed = options->seed,
	};
	uint64_t seed = options->seed;
	struct gap_query query = { .max_sectors = 2048, .joins = true,
				   .unit_sectors = TRAX_BLOCK_SECTORS,
				   .steps = 300,
				   .run_ns = 700000, .across_ns = 900000 };
	struct geom_track track;
	struct freeblock_set *wanted = NULL;
	struct head_state head_state;
	struct gap_plan plan;
	struct rig rig;
	uint64_t all, i;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	all = geom_sectors(rig.geom) / TRAX_BLOCK_SECTORS;
	err = freeblock_set_open(rig.geom, TRAX_BLOCK_SECTORS, &wanted);
	if (!err)
		err = freeblock_set_add(wanted, 0, all * TRAX_BLOCK_SECTORS);
	while (!err && (double)freeblock_set_sectors(wanted) >
			       part * (double)all * TRAX_BLOCK_SECTORS)
		err = freeblock_set_remove(
			wanted,
			(uint64_t)(random_part(&seed) * (double)(all - 30)) *
				TRAX_BLOCK_SECTORS,
			30 * TRAX_BLOCK_SECTORS);
	head_get_state(rig.head, &head_state);
	head_state.reads = head_state.writes = true;
	query.head_state = &head_state;
	for (i = 0; i < SEARCHES && !err; i++) {
		head_state.head_lbn = (uint64_t)(random_part(&seed) *
					     (double)all) * TRAX_BLOCK_SECTORS;
		geom_track_of(rig.geom, head_state.head_lbn, &track);
		head_state.head = (struct service_head){
			head_state.now_ns + i % 100 * 70000, track.cylinder,
			track.surface };
		query.target = (struct service_request){
			.write = i % 3 == 0,
			.lbn = (uint64_t)(random_part(&seed) *
					  (double)(all - 2)) *
				TRAX_BLOCK_SECTORS,
			.sectors = 2 * TRAX_BLOCK_SECTORS };
		times[i] = env_now_ns(env_real());
		gap_search(&query, wanted, &plan);
		times[i] = env_now_ns(env_real()) - times[i];
	}
	qsort(times, SEARCHES, sizeof(*times), sort_u64_cmp);
	if (!err)
		printf("%5.1f %% wanted: median %5.1f us, p99 %5.1f us, %zu KB "
		       "to know what\n", 100 * part,
		       (double)times[SEARCHES / 2] / 1e3,
		       (double)times[SEARCHES * 99 / 100] / 1e3,
		       wanted ? freeblock_set_bytes(wanted) / 1024 : 0);
	freeblock_set_close(wanted);
	rig_close(&rig);
	return err;
}

static int by_part(const struct sched_options *options)
{
	static const double parts[] = { 1, 0.8, 0.5, 0.2, 0.05, 0.005 };
	int err = 0;
	size_t i;

	printf("\ntime of a search (this machine)\n");
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]) && !err; i++)
		err = search_times(options, parts[i]);
	return err;
}

int sched_free(const struct sched_options *options)
{
	static const struct sched_free_load setups[] = {
		{ "OLTP, SSTF", "sstf", 10, 30000000, false, 1, 0, 440000,
		  true },
		{ "random, one", "fcfs", 1, 0, true, 1, 0, 440000, false },
		{ "any 80 %", "sstf", 10, 30000000, false, 0.8, 0, 220000,
		  false },
		{ "0.5 % promoted", "sstf", 10, 30000000, false, 1, 0.005,
		  330000, true },
		{ "1 % promoted", "sstf", 10, 30000000, false, 1, 0.01,
		  330000, false },
		{ "2 % promoted", "sstf", 10, 30000000, false, 1, 0.02,
		  330000, false },
		{ "5 % promoted", "sstf", 10, 30000000, false, 1, 0.05,
		  330000, false },
		{ "OLTP, default", NULL, 10, 30000000, false, 1, 0, 220000,
		  false },
		{ "any, default", NULL, 10, 30000000, false, 0.8, 0, 220000,
		  false },
	};
	struct outcome with;
	int err = 0;
	size_t i;

	heading("scan of all");
	for (i = 0; i < sizeof(setups) / sizeof(setups[0]) && !err; i++) {
		err = measure(options, &setups[i], &with);
		if (!err && setups[i].progress)
			print_progress(&with.scan);
	}
	printf("published: OLTP 47 scans a day, half of the potential; any "
	       "80 %% over 90\n");
	if (!err)
		err = by_level(options);
	return err ? err : by_part(options);
}
