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

#define PROGRESS 20u	/* A scan is reported in steps of 5 %. */
/* Requests of the scan that are outstanding when its rest is no longer left to
 * the gaps. */
#define PROMOTED_DEPTH 4u

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
		.no_idle = true,
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
	return err;
}
