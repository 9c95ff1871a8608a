/*
 * sched_freeblock_stats.c - compares the counters of freeblock with the drive's
 * own: the potential with the rotation of the head without a scan, the time
 * used with what the head transfers more with one, the delay with the
 * difference of the means. On drives from seeds, with a host that is late, and
 * with models that are wrong.
 */
#include <errno.h>
#include <stdio.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "format/format.h"
#include "sched/freeblock/freeblock.h"

/* Number of drives from seeds; requests of a measurement, and before it. */
#define DRIVES 6u
#define REQUESTS 2000u
#define WARMUP 400u

struct said {
	struct rig_result result;
	struct freeblock_stats stats;	/* counters over the measured
					 * requests */
};

static void scan_got(void *arg, uint64_t sector, uint32_t sectors,
		     const void *bytes, int result)
{
	(void)arg;
	(void)sector;
	(void)sectors;
	(void)bytes;
	(void)result;
}

static const struct freeblock_ops scan_ops = { .got = scan_got };

static int said_run(const struct sched_options *options, const char *drive,
		    size_t doubt, bool scan, struct said *out)
{
	const struct rig_options rig_options = {
		.drive = drive, .seed = options->seed, .no_cache = true,
		.host_ns = options->host_ns,
		.doubt = sched_doubts[doubt].doubt,
	};
	const struct freeblock_options task_options = {
		.name = "scan", .unit_sectors = TRAX_BLOCK_SECTORS,
		.no_idle = true,
	};
	struct rig_load load = { .clients = 1, .sectors = 8,
				 .read_percent = 67, .requests = WARMUP,
				 .seed = options->seed };
	struct freeblock_task *task = NULL;
	struct freeblock_stats before;
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	err = freeblock_open(rig.queue, &task_options, &scan_ops, NULL, &task);
	if (!err && scan)
		err = freeblock_want(task, 0, rig_sectors(&rig) /
					      TRAX_BLOCK_SECTORS *
					      TRAX_BLOCK_SECTORS);
	if (!err)
		err = rig_run(&rig, &load, &out->result);
	freeblock_get_stats(rig.queue, NULL, &before);
	load.requests = (options->requests ? options->requests : REQUESTS) /
			(options->quick ? 10 : 1);
	load.seed++;
	if (!err)
		err = rig_run(&rig, &load, &out->result);
	freeblock_get_stats(rig.queue, NULL, &out->stats);
	out->stats.gaps -= before.gaps;
	out->stats.potential_ns -= before.potential_ns;
	out->stats.passed_ns -= before.passed_ns;
	out->stats.delay_ns -= before.delay_ns;
	freeblock_close(task);
	if (!err)
		err = queue_drain(rig.queue) < 0;
	rig_close(&rig);
	return err;
}

static int said_row(const struct sched_options *options, const char *drive,
		    size_t doubt)
{
	struct said alone, scan;
	double n, free_ns;
	int err = said_run(options, drive, doubt, false, &alone);

	if (!err)
		err = said_run(options, drive, doubt, true, &scan);
	if (err)
		return err;
	n = options->requests ? (double)options->requests : REQUESTS;
	if (options->quick)
		n /= 10;
	free_ns = (double)scan.result.times.transfer_ns -
		  (double)alone.result.times.transfer_ns;
	printf("%-12s %-26s %6.1f %9.2f %7.1f %9.2f %7.1f %8.2f %8.2f\n", drive,
	       sched_doubts[doubt].name, 100 * (double)scan.stats.gaps / n,
	       (double)alone.result.times.rotation_ns / 1e9,
	       100 * ((double)scan.stats.potential_ns /
		      (double)alone.result.times.rotation_ns - 1),
	       free_ns / 1e9,
	       100 * ((double)scan.stats.passed_ns / free_ns - 1),
	       100 * (scan.result.mean_ns / alone.result.mean_ns - 1),
	       100 * (double)scan.stats.delay_ns / n / alone.result.mean_ns);
	fflush(stdout);
	return 0;
}

int sched_said(const struct sched_options *options)
{
	unsigned drives = options->drive ? 1 : DRIVES;
	char name[32];
	int err = 0;

	printf("%-12s %-26s %6s %9s %7s %9s %7s %8s %8s\n", "", "wrong",
	       "gaps %", "rot. s", "said %", "free s", "said %", "mean +%",
	       "said +%");
	for (unsigned d = 0; d < drives && !err; d++) {
		snprintf(name, sizeof(name), "random:%llu",
			 (unsigned long long)options->seed * 100 + d);
		for (size_t i = 0; sched_doubts[i].name && !err; i++) {
			err = said_row(options, options->drive ?
				       options->drive : name, i);
			/* Not every drive can have a model that is wrong in
			 * this way. */
			if (err == -EINVAL)
				err = 0;
		}
	}
	return err;
}
