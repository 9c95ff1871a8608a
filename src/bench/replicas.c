/*
 * replicas.c - see replicas.h.
 *
 * A workload is a list of files, put down in two or more places far apart, and
 * a list of reads.  Each run mounts with cold caches (the drive's too), does
 * the reads, each file looked up by its name when it is read for the first
 * time, leaves the file system idle for a while, and unmounts.  The same runs
 * on the same content without replicas stand beside it.  What is counted is
 * what the head of the drive did, for each read of the client: positioning,
 * rotation, and reading of what was asked for, and apart from these what the
 * drive read ahead.  `limit` is how long the medium takes for what is read,
 * each block once: no order is faster.
 */
#include "bench/replicas.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hashmap.h"
#include "base/msg.h"
#include "base/units.h"
#include "bench/replicas_internal.h"
#include "bench/rig.h"
#include "diskmodel/profile.h"
#include "diskmodel/spec.h"
#include "format/format.h"
#include "fs/fs.h"
#include "fs/mkfs.h"
#include "sched/head/head.h"
#include "sim/drive.h"
#include "sim/named.h"
#include "sim/sim.h"

/* Virtual time for which the file system is idle after each run, and makes
 * replicas: 60 s. */
#define IDLE_NS (60 * NS_PER_SECOND)
/* Memory of the file system, and with a load that never pauses. */
#define MEMORY_BYTES (512u << 20)
#define BUSY_MEMORY_BYTES (48u << 20)

/* ---- The file system ---- */

static void bench_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

int bench_do(struct bench *bench, struct fs_op *op)
{
	bool done = false;

	op->done = bench_done;
	op->owner = &done;
	fs_submit(bench->fs, op);
	while (!done) {
		uint64_t next = fs_run(bench->fs, 1);
		uint64_t now = sim_now_ns(bench->sim);

		/* Time is advanced only when nothing but time can bring it
		 * on. */
		if (!done && sim_outstanding(bench->sim) == 0 &&
		    next != UINT64_MAX && next > now)
			sim_advance(bench->sim, next - now);
	}
	return op->rc;
}

static int bench_mount(struct bench *bench, unsigned replicas)
{
	const struct spec *spec = bench->model;
	const struct head_options head = {
		.geom = bench->geom,
		.mech = &spec->mech,
		.read_overhead_ns = spec->read_overhead_ns,
		.write_overhead_ns = spec->write_overhead_ns,
		.hit_overhead_ns = spec->hit_overhead_ns,
		.read_ahead_sectors = spec->read_ahead_lbns,
	};
	struct fs_options options = {
		.memory_bytes = bench->memory, .replicas = replicas,
		.noatime = true,
	};
	int rc;

	rc = head_open(sim_env(bench->sim), &head, &bench->head);
	if (rc)
		return rc;
	options.head = bench->head;
	return fs_open(sim_env(bench->sim), sim_disk(bench->sim), &options,
		       &bench->fs);
}

static int bench_unmount(struct bench *bench)
{
	int rc = fs_close(bench->fs);

	head_close(bench->head);
	drive_reset(sim_drive(bench->sim), sim_now_ns(bench->sim));
	return rc;
}

/* Lets virtual time pass while the file system is idle and makes replicas. */
static void bench_idle(struct bench *bench)
{
	uint64_t end = sim_now_ns(bench->sim) + IDLE_NS;

	while (sim_now_ns(bench->sim) < end) {
		uint64_t next = fs_run(bench->fs, 1);
		uint64_t now = sim_now_ns(bench->sim);

		if (sim_outstanding(bench->sim) || next <= now)
			continue;
		next = next < end ? next : end;
		if (next > now)
			sim_advance(bench->sim, next - now);
	}
}

static int bench_sim(struct bench *bench, const struct media *content)
{
	struct sim_options options = { .seed = bench->options->seed,
				       .content = content };

	bench->sim = sim_new(bench->spec, 0, &options);
	return bench->sim ? 0 : -ENOMEM;
}

static int bench_mkfs(struct bench *bench)
{
	struct mkfs_options mkfs = { .geom = bench->geom };
	struct mkfs_plan plan;
	struct disk *disk = sim_disk(bench->sim);
	int rc = mkfs_plan(sim_env(bench->sim), &disk->limits, &mkfs, &plan);

	return rc ? rc : mkfs_write(sim_env(bench->sim), disk, &mkfs, &plan);
}

static const struct workload {
	const char *name, *about, *paper;
	int (*set_up)(struct bench *bench);
	void (*order)(struct bench *bench);	/* called before each run; NULL:
						 * nothing */
	unsigned change;	/* run before which replicas_change_order is
				 * called; 0: never */
	bool busy;		/* there is no pause in a run, nor between
				 * runs */
} workloads[] = {
	{ "trees", "two far-apart trees read interleaved",
	  "FS2 (CVS): access time -41 %, run time -31 %", replicas_trees, NULL,
	  0, false },
	{ "aged", "the same, directories in another order than they lie in",
	  "not in the paper", replicas_aged, NULL, 0, false },
	{ "oltp", "transactions of 5 to 20 blocks, in random order",
	  "FS2 (TPC-W): access time -50 %, seek -72 %, rotation -31 %",
	  replicas_oltp, replicas_oltp_order, 0, false },
	{ "web", "web server with two document roots",
	  "FS2 (SURGE): access time -69 %, seek -78 %, rotation -68 %",
	  replicas_web, replicas_web_order, 0, false },
	{ "desktop", "start of a desktop",
	  "FS2 (X server): access time -44 %, seek -53 %, rotation -47 %",
	  replicas_desktop, NULL, 0, false },
	{ "change", "trees, read in another order from run 4 on",
	  "not in the paper", replicas_trees, NULL, 4, false },
	{ "busy", "transactions without a pause, in little memory, one mount",
	  "not in the paper", replicas_oltp, replicas_oltp_order, 0, true },
};

#define WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

/* ---- Runs ---- */

/* Looks a file up by its name unless that was done before, as the kernel
 * does. */
static int look_up(struct bench *bench, struct bench_file *file)
{
	struct dir *dir = &bench->dir[file->dir];
	char name[32];
	struct fs_op op = { .type = FS_LOOKUP, .name = name };
	int rc = 0;

	if (!dir->seen && file->dir) {
		snprintf(name, sizeof(name), "d%u", file->dir);
		op.ino = bench->dir[dir->parent].ino;
		rc = bench_do(bench, &op);
	}
	dir->seen = true;
	if (rc || file->seen)
		return rc;
	file->seen = true;
	snprintf(name, sizeof(name), "f%u", (unsigned)(file - bench->file));
	op.ino = dir->ino;
	return bench_do(bench, &op);
}

static int run_reads(struct bench *bench, const struct workload *workload)
{
	static uint8_t buffer[CHUNK_BYTES];
	struct fs_op op = { .type = FS_READ, .buffer = buffer };
	uint32_t i;
	int rc = 0;

	for (i = 0; i < bench->files; i++)
		bench->file[i].seen = false;
	for (i = 0; i < bench->dirs; i++)
		bench->dir[i].seen = false;
	for (i = 0; !rc && i < bench->reads; i++) {
		const struct read *read = &bench->read[i];
		bool one = workload->set_up == replicas_oltp;
		struct bench_file *file = &bench->file[one ? 0 : read->file];

		rc = look_up(bench, file);
		op.ino = file->ino;
		op.offset = read->offset;
		op.size = read->bytes < CHUNK_BYTES ? read->bytes : CHUNK_BYTES;
		if (!rc)
			rc = bench_do(bench, &op);
		sim_advance(bench->sim, bench->think_ns);
	}
	return rc;
}

/* Time that the outermost tracks take to give all blocks that are read, each
 * one once. */
static double limit_ms(struct bench *bench, const struct workload *workload)
{
	struct hashmap *seen = hashmap_new();
	struct geom_track track;
	uint64_t block, end, blocks = 0;
	uint32_t i;

	geom_track_at(bench->geom, 0, &track);
	for (i = 0; seen && i < bench->reads; i++) {
		const struct read *read = &bench->read[i];
		bool one = workload->set_up == replicas_oltp;

		block = read->offset / TRAX_BLOCK_BYTES;
		end = ((uint64_t)read->offset + read->bytes +
		       TRAX_BLOCK_BYTES - 1) / TRAX_BLOCK_BYTES;
		for (; block < end; block++) {
			uint64_t key = block << 32 | (one ? 0 : read->file);

			if (hashmap_get(seen, key))
				continue;
			blocks++;
			hashmap_put(seen, key, bench);
		}
	}
	hashmap_free(seen);
	return (double)(blocks * TRAX_BLOCK_BYTES / 512) / track.sectors *
	       geom_period_ns(bench->geom) / 1e6;
}

static double watts(double known, double usual)
{
	return known > 0 ? known : usual;
}

/* The runs of a load that is never idle are done within one mount. */
static int run_once(struct bench *bench, const struct workload *workload,
		    unsigned replicas, unsigned run,
		    struct replicas_figures *figures)
{
	struct drive_times times;
	uint64_t start;
	int rc = 0;

	bench->memory = workload->busy ? BUSY_MEMORY_BYTES : MEMORY_BYTES;
	if (!run || !workload->busy)
		rc = bench_mount(bench, replicas);
	if (rc)
		return rc;
	start = sim_now_ns(bench->sim);
	drive_clear_times(sim_drive(bench->sim), start);
	rc = run_reads(bench, workload);
	if (rc)
		return rc;
	figures->time_s = (double)(sim_now_ns(bench->sim) - start) / 1e9;
	drive_get_times(sim_drive(bench->sim), sim_now_ns(bench->sim), &times);
	figures->seek_ms = (double)(times.seek_ns + times.switch_ns) / 1e6 /
			   bench->reads;
	figures->rotation_ms = (double)times.rotation_ns / 1e6 / bench->reads;
	figures->transfer_ms = (double)times.transfer_ns / 1e6 / bench->reads;
	figures->ahead_ms = (double)times.prefetch_ns / 1e6 / bench->reads;
	figures->limit_ms = limit_ms(bench, workload) / bench->reads;
	figures->energy_mj = ((double)(times.seek_ns + times.switch_ns) *
			      watts(bench->spec->seek_w,
				    PROFILE_USUAL_SEEK_W) +
			      (double)(times.rotation_ns + times.transfer_ns) *
			      watts(bench->spec->active_w,
				    PROFILE_USUAL_ACTIVE_W)) / 1e6 /
			     bench->reads;
	figures->accesses = times.accesses;
	if (workload->busy && run + 1 < bench->options->runs)
		return 0;
	if (!workload->busy)
		bench_idle(bench);
	return bench_unmount(bench);
}

static double head_ms(const struct replicas_figures *f)
{
	return f->seek_ms + f->rotation_ms + f->transfer_ms;
}

static double replicas_percent(double with, double without)
{
	return without > 0 ? 100 * (with - without) / without : 0;
}

static void print_run(unsigned run, const struct replicas_figures *with,
		      const struct replicas_figures *without)
{
	printf("%3u  %7.3f %+6.1f%%  %7.3f %+6.1f%%  %6.3f %+6.1f%%  "
	       "%6.3f %+6.1f%%  %6.3f  %6.3f  %6.3f  %7.2f %+6.1f%%  %6lu\n",
	       run, with->time_s,
	       replicas_percent(with->time_s, without->time_s), head_ms(with),
	       replicas_percent(head_ms(with), head_ms(without)), with->seek_ms,
	       replicas_percent(with->seek_ms, without->seek_ms),
	       with->rotation_ms,
	       replicas_percent(with->rotation_ms, without->rotation_ms),
	       with->transfer_ms, with->limit_ms, with->ahead_ms,
	       with->energy_mj,
	       replicas_percent(with->energy_mj, without->energy_mj),
	       (unsigned long)with->accesses);
}

/* Does all runs of one side, with or without replicas, on this content. */
static int run_side(struct bench *bench, const struct workload *workload,
		    const struct media *content, unsigned replicas,
		    struct replicas_figures *figures)
{
	struct read *read = malloc(bench->reads * sizeof(*read));
	unsigned run;
	int rc = read ? bench_sim(bench, content) : -ENOMEM;

	if (rc)
		return rc;
	memcpy(read, bench->read, bench->reads * sizeof(*read));
	bench->rng = bench->options->seed + 1;
	for (run = 0; !rc && run < bench->options->runs; run++) {
		if (workload->order)
			workload->order(bench);
		if (workload->change && run + 1 == workload->change)
			replicas_change_order(bench);
		rc = run_once(bench, workload, replicas, run, &figures[run]);
	}
	memcpy(bench->read, read, bench->reads * sizeof(*read));
	free(read);
	sim_free(bench->sim);
	return rc;
}

/* Makes the workload's files on a file system that exists. */
static int set_up(struct bench *bench, const struct workload *workload)
{
	int rc;

	bench->rng = bench->options->seed;
	bench->files = bench->reads = 0;
	bench->dir[0] = (struct dir){ .ino = 1 };
	bench->dirs = 1;
	bench->memory = MEMORY_BYTES;
	rc = bench_mount(bench, 0);
	if (!rc)
		rc = workload->set_up(bench);
	return rc ? rc : bench_unmount(bench);
}

static void print_head(const struct bench *bench,
		       const struct workload *workload)
{
	printf("\n%s: %s; %u reads a run, %s\n%s\n"
	       "run   time s            access ms/read    seek ms          "
	       "rotation ms      transf   limit   ahead  energy mJ         "
	       "accesses\n",
	       workload->name, workload->about, bench->reads,
	       bench->options->drive, workload->paper);
}

static void print_side(char side, unsigned run,
		       const struct replicas_figures *figures,
		       const struct replicas_figures *without)
{
	printf("  %c", side);
	print_run(run + 1, figures, without);
}

static int run_both_sides(struct bench *bench, const struct workload *workload,
			  struct replicas_figures *with,
			  struct replicas_figures *without)
{
	struct media *content;
	int rc = bench_sim(bench, NULL);

	if (!rc)
		rc = bench_mkfs(bench);
	if (!rc)
		rc = set_up(bench, workload);
	if (rc)
		return rc;
	content = sim_content(bench->sim);
	sim_free(bench->sim);
	if (!content)
		return -ENOMEM;
	rc = run_side(bench, workload, content, 0, without);
	if (!rc)
		rc = run_side(bench, workload, content, 1, with);
	media_free(content);
	return rc;
}

static int run_workload(struct bench *bench, const struct workload *workload)
{
	struct replicas_figures with[REPLICAS_RUNS], without[REPLICAS_RUNS];
	unsigned run;
	int rc;

	rc = run_both_sides(bench, workload, with, without);
	if (rc)
		return rc;
	print_head(bench, workload);
	for (run = 0; run < bench->options->runs; run++) {
		print_side('0', run, &without[run], &without[run]);
		print_side('1', run, &with[run], &without[run]);
	}
	return 0;
}

static int bench_open(struct bench *bench, struct replicas_options *options,
		      const struct replicas_options *given)
{
	int rc;

	*options = *given;
	*bench = (struct bench){ .options = options };
	options->runs = options->runs ? options->runs : 7;
	if (options->runs > REPLICAS_RUNS)
		options->runs = REPLICAS_RUNS;
	options->percent = options->percent ? options->percent : 100;
	rc = named_spec(options->drive, &bench->spec);
	if (!rc)
		rc = named_spec(options->drive, &bench->model);
	if (!rc)
		rc = spec_geom(bench->model, &bench->geom);
	return rc;
}

static int bench_close(struct bench *bench, int rc)
{
	if (rc)
		msg_error("replicas: %s", strerror(-rc));
	geom_free(bench->geom);
	spec_free(bench->spec);
	spec_free(bench->model);
	free(bench->file);
	free(bench->read);
	return rc;
}

int replicas_measure(const struct replicas_options *given,
		     struct replicas_figures with[REPLICAS_RUNS],
		     struct replicas_figures without[REPLICAS_RUNS])
{
	struct replicas_options options;
	struct bench bench;
	int rc = bench_open(&bench, &options, given);

	for (unsigned i = 0; !rc && i < WORKLOADS; i++)
		if (!strcmp(options.workload, workloads[i].name))
			rc = run_both_sides(&bench, &workloads[i], with,
					    without);
	return bench_close(&bench, rc);
}

int replicas_run(const struct replicas_options *given)
{
	struct replicas_options options;
	struct bench bench;
	int rc = bench_open(&bench, &options, given);

	for (unsigned i = 0; !rc && i < WORKLOADS; i++)
		if (!options.workload ||
		    !strcmp(options.workload, workloads[i].name))
			rc = run_workload(&bench, &workloads[i]);
	return bench_close(&bench, rc);
}
