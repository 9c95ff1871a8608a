/*
 * sched_scrub.c - random reads that never pause, one outstanding, with a scan
 * of the whole disk in their gaps and without, by turns: what the scan gets, in
 * per cent of what the medium passes by, and what the reads notice.  In virtual
 * time, or in real time on a disk or an emulated drive, predicted from outside.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "format/format.h"
#include "sched/freeblock/freeblock.h"

#define TURN_REQUESTS 500u	/* Requests of a turn. */
/* Requests at the begin of each turn that are not counted, because they meet
 * what the other turn left in queues and caches. */
#define TURN_WARMUP 20u

struct bench_scan {
	struct rig *rig;
	struct freeblock_task *task;
	double part;		/* share of the disk at which a pass ends */
	double promote_at;	/* remaining share that is promoted */
	uint64_t all;		/* sectors of the disk */
	uint64_t got;		/* sectors read by the present pass */
	uint64_t passes;
	uint64_t on_ns;		/* time of the turns with a scan, the present
				 * one left out */
	uint64_t turn_ns;	/* begin of the present turn */
	uint64_t passes_ns;	/* time, counted in turns, when the last pass
				 * ended */
};

static uint64_t scan_time_ns(const struct bench_scan *scan)
{
	return scan->on_ns + env_now_ns(scan->rig->env) - scan->turn_ns;
}

static void scan_got(void *arg, uint64_t sector, uint32_t sectors,
		     const void *bytes, int result)
{
	struct bench_scan *scan = arg;

	(void)sector;
	(void)bytes;
	(void)result;
	scan->got += sectors;
	if ((double)(scan->all - scan->got) <
	    scan->promote_at * (double)scan->all)
		freeblock_promote(scan->task, 1);
	if ((double)scan->got < scan->part * (double)scan->all)
		return;
	scan->passes++;
	scan->passes_ns = scan_time_ns(scan);
	scan->got = 0;
	freeblock_promote(scan->task, 0);
	freeblock_unwant(scan->task, 0, scan->all);
	freeblock_want(scan->task, 0, scan->all);
}

static const struct freeblock_ops scan_ops = { .got = scan_got };

static int scan_open(struct rig *rig, double part, double promote_at,
		     struct bench_scan *scan)
{
	const struct freeblock_options options = {
		.name = "scan",
		.unit_sectors = TRAX_BLOCK_SECTORS,
		.no_idle = true,
		.any = part < 1,
		.parts_bytes = SCHED_PARTS_BYTES,
	};
	int err;

	*scan = (struct bench_scan){ .rig = rig, .part = part,
			       .promote_at = promote_at };
	scan->all = geom_sectors(rig->geom) / TRAX_BLOCK_SECTORS *
		    TRAX_BLOCK_SECTORS;
	err = freeblock_open(rig->queue, &options, &scan_ops, scan,
			     &scan->task);
	if (!err)
		err = freeblock_want(scan->task, 0, scan->all);
	if (!err)
		freeblock_pause(scan->task, true);
	return err;
}

/* ---- the reads ---- */

struct side {
	double *response_ns;
	uint64_t n;
	uint64_t ns;		/* time of its turns */
	double mean_ns, p99_ns;
};

struct turns {
	struct side side[2];	/* turns without and with a scan */
	bool with;
	uint64_t most;
	unsigned in_turn;
};

static void turns_over(void *arg, unsigned client, struct queue_request *req)
{
	struct turns *turns = arg;
	struct side *side = &turns->side[turns->with];

	(void)client;
	if (turns->in_turn++ >= TURN_WARMUP && side->n < turns->most)
		side->response_ns[side->n++] =
			(double)(req->disk.complete_ns - req->disk.submit_ns);
}

static int run_turn(struct rig *rig, struct turns *turns,
		    struct bench_scan *scan, uint64_t seed)
{
	struct rig_load load = {
		.clients = 1,
		.sectors = 8,
		.read_percent = 100,
		.requests = TURN_REQUESTS,
		.seed = seed,
		.over = turns_over,
		.arg = turns,
	};
	struct rig_result result;
	int err;

	turns->in_turn = 0;
	scan->turn_ns = env_now_ns(rig->env);
	freeblock_pause(scan->task, !turns->with);
	err = rig_run(rig, &load, &result);
	freeblock_pause(scan->task, true);
	turns->side[turns->with].ns += env_now_ns(rig->env) - scan->turn_ns;
	if (turns->with)
		scan->on_ns += env_now_ns(rig->env) - scan->turn_ns;
	return err;
}

/* The head has to be found before anything is counted. */
static int run_turns(struct rig *rig, const struct sched_options *options,
		     struct turns *turns, struct bench_scan *scan)
{
	struct rig_load warmup = { .clients = 1, .sectors = 8,
				   .read_percent = 100, .requests = 500,
				   .seed = options->seed };
	struct rig_result result;
	uint64_t i, n = turns->most / TURN_REQUESTS;
	int err = rig_run(rig, &warmup, &result);

	for (i = 0; i < 2 * n && !err; i++) {
		turns->with = i % 2;
		err = run_turn(rig, turns, scan, options->seed + 1 + i / 2);
	}
	return err;
}

/* ---- what is printed ---- */

static void sum_up(struct turns *turns)
{
	struct side *side;

	for (side = turns->side; side < turns->side + 2; side++)
		rig_sum_up(side->response_ns, side->n, &side->mean_ns,
			   &side->p99_ns);
}

static void print_sides(const char *label, const struct turns *turns,
			const struct bench_scan *scan)
{
	const struct side *off = &turns->side[0], *on = &turns->side[1];
	double sectors = (double)scan->got, ns = (double)on->ns, rate;
	struct freeblock_stats stats;

	if (scan->passes) {
		sectors = (double)scan->passes * scan->part *
			  (double)scan->all;
		ns = (double)scan->passes_ns;
	}
	rate = sectors / ns * 1e9;
	freeblock_get_stats(scan->rig->queue, NULL, &stats);
	printf("%-10s %8.2f %8.2f %8.1f %8.3f %8.2f %8.2f %8.1f %7.1f %7.2f "
	       "%7.2f\n", label, 1e3 / off->mean_ns * 1e6,
	       1e3 / on->mean_ns * 1e6, 100 * off->mean_ns / on->mean_ns,
	       off->mean_ns / 1e6, 100 * (on->mean_ns / off->mean_ns - 1),
	       100 * (on->p99_ns / off->p99_ns - 1), rate * 512 / 1e6,
	       100 * rate / rig_media_rate(scan->rig),
	       (double)scan->passes +
		       (double)scan->got / (double)scan->all,
	       100 * (double)stats.delay_ns / (double)on->n /
		       off->mean_ns);
	fflush(stdout);
}

static int measure(const struct sched_options *options, const char *label,
		   double part, double promote_at)
{
	struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "atlas-10k",
		.seed = options->seed,
		.no_cache = !options->device && !options->host_ns,
		.device = options->device,
		.slow = options->slow,
		.host_ns = options->host_ns,
	};
	struct turns turns = { .most = options->requests ?
				       options->requests : 20000 };
	struct bench_scan scan;
	struct rig rig;
	int err = rig_open(&rig_options, &rig);

	if (err)
		return err;
	if (options->quick)
		turns.most /= 10;
	turns.side[0].response_ns = calloc(turns.most, sizeof(double));
	turns.side[1].response_ns = calloc(turns.most, sizeof(double));
	err = turns.side[0].response_ns && turns.side[1].response_ns ?
		      scan_open(&rig, part, promote_at, &scan) : -ENOMEM;
	if (!err) {
		err = run_turns(&rig, options, &turns, &scan);
		if (!err) {
			sum_up(&turns);
			print_sides(label, &turns, &scan);
		}
		freeblock_close(scan.task);
		queue_drain(rig.queue);
	}
	free(turns.side[0].response_ns);
	free(turns.side[1].response_ns);
	rig_close(&rig);
	return err;
}

int sched_scrub(const struct sched_options *options)
{
	int err;

	printf("%-10s %8s %8s %8s %8s %8s %8s %8s %7s %7s %7s\n", "scan of",
	       "reads/s", "with it", "of them%", "mean ms", "mean +%", "p99 +%",
	       "MB/s", "media%", "passes", "said +%");
	err = measure(options, "all", 1, 0);
	if (!err)
		err = measure(options, "all but .5", 1, 0.005);
	return err ? err : measure(options, "any 80 %", 0.8, 0);
}
