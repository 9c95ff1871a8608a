/*
 * sched_pass.c - random reads all over a disk beside the scrub of a file system
 * that fills most of it, and without, by turns.  The scan of sched_free.c
 * wants all of the disk at once; what the scrub wants has to fit its memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "fs/op/fs_internal.h"
#include "fs/mkfs.h"
#include "scrub/scrub.h"

/* Number of reads that are measured, and those of a turn. */
#define READS 20000u
#define TURN_READS 2500u
/* Requests at the begin of each turn that are not counted, because they meet
 * what the other turn left in queues and caches. */
#define TURN_WARMUP 50u
/* Reads before the first turn, from which the head's position is learned. */
#define LEARN_READS 500u
/* Per cent of the room that files fill, and bytes of such a file. */
#define FULL_PERCENT 85u
#define FILE_BYTES (UINT64_C(256) << 20)

struct pass {
	struct rig rig;
	struct fs *fs;
	struct scrub *scrub;
	uint64_t seed;
	struct queue_request req;
	struct iovec iov;
	unsigned busy;
	double *response_ns[2];	/* response times without and with the scrub */
	uint64_t n[2], ns[2];
};

static void turn(struct pass *p)
{
	const uint64_t next_ns = fs_run(p->fs, 0);
	const uint64_t scrub_ns = p->scrub ? scrub_run(p->scrub) : UINT64_MAX;

	if (p->busy)
		rig_pass(&p->rig, scrub_ns < next_ns ? scrub_ns : next_ns);
}

/* ---- a file system that is full ---- */

static int do_op(struct pass *p, struct fs_op *op)
{
	return rig_do(&p->rig, p->fs, op);
}

/* Makes files without content: what lies in their sectors is read, and not
 * compared. */
static int fill(struct pass *p)
{
	uint64_t bytes = sim_disk(p->rig.sim)->limits.sectors * 512 / 100 *
			 FULL_PERCENT;
	char name[16];
	uint64_t i;
	int err = 0;

	for (i = 0; i < bytes / FILE_BYTES && !err; i++) {
		struct fs_op make = { .type = FS_MKNOD, .ino = 1,
				      .name = name, .mode = 0100644 };
		struct fs_op room = { .type = FS_FALLOCATE,
				      .size = FILE_BYTES };

		snprintf(name, sizeof(name), "%llu", (unsigned long long)i);
		err = do_op(p, &make);
		room.ino = make.attr.ino;
		if (!err)
			err = do_op(p, &room);
	}
	return err;
}

static int open_full(const struct sched_options *options, struct pass *p)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "modern",
		.seed = options->seed,
		.no_cache = !options->host_ns,
		.host_ns = options->host_ns,
	};
	struct fs_options fs_options = {
		.memory_bytes = (options->memory_mib ? options->memory_mib :
						       1024) << 20,
	};
	struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	struct disk *disk;
	int err = rig_open(&rig_options, &p->rig);

	if (err)
		return err;
	queue_close(p->rig.queue);
	p->rig.queue = NULL;
	disk = sim_disk(p->rig.sim);
	mkfs.geom = p->rig.geom;
	err = mkfs_plan(p->rig.env, &disk->limits, &mkfs, &plan);
	if (!err)
		err = mkfs_write(p->rig.env, disk, &mkfs, &plan);
	fs_options.head = p->rig.head;
	if (!err)
		err = fs_open(p->rig.env, disk, &fs_options, &p->fs);
	if (!err)
		err = fill(p);
	/* The measurement begins with nothing in memory. */
	if (!err)
		err = fs_close(p->fs);
	p->fs = NULL;
	if (!err)
		err = fs_open(p->rig.env, disk, &fs_options, &p->fs);
	return err ? err : scrub_open(p->fs, 0, &p->scrub);
}

/* ---- reads ---- */

static void read_over(struct disk_request *disk)
{
	struct pass *p = disk->owner;

	p->busy--;
}

static int run_reads(struct pass *p, unsigned n, bool with)
{
	uint64_t blocks = sim_disk(p->rig.sim)->limits.sectors / 8;
	uint64_t begun_ns = env_now_ns(p->rig.env);
	unsigned i;

	for (i = 0; i < n; i++) {
		p->seed = p->seed * UINT64_C(6364136223846793005) + 1;
		p->req = (struct queue_request){
			.disk = {
				.op = DISK_READ,
				.sector = (p->seed >> 16) % blocks * 8,
				.sectors = 8,
				.iov = &p->iov,
				.iov_n = 1,
				.done = read_over,
				.owner = p,
			},
			.class = QUEUE_READ,
		};
		p->busy++;
		/* It stands for a user's, though no operation asks for it. */
		queue_set_own(p->fs->queue, false);
		queue_submit(p->fs->queue, &p->req);
		queue_set_own(p->fs->queue, true);
		while (p->busy)
			turn(p);
		if (p->req.disk.result)
			return p->req.disk.result;
		if (i >= TURN_WARMUP && p->response_ns[with])
			p->response_ns[with][p->n[with]++] =
				(double)(p->req.disk.complete_ns -
					 p->req.disk.submit_ns);
	}
	p->ns[with] += env_now_ns(p->rig.env) - begun_ns;
	return 0;
}

static int run_turns(struct pass *p, uint64_t reads)
{
	uint64_t i;
	int err = run_reads(p, LEARN_READS, false);

	p->response_ns[0] = calloc(reads + TURN_READS, sizeof(double));
	p->response_ns[1] = calloc(reads + TURN_READS, sizeof(double));
	if (!p->response_ns[0] || !p->response_ns[1])
		return -ENOMEM;
	p->ns[0] = 0;
	scrub_start(p->scrub);
	for (i = 0; i * TURN_READS < reads && !err; i++) {
		err = run_reads(p, TURN_READS, true);
		scrub_pause(p->scrub);
		if (!err)
			err = run_reads(p, TURN_READS, false);
		scrub_resume(p->scrub);
	}
	return err;
}

/* ---- what is printed ---- */

static void print(struct pass *p)
{
	double mean_ns[2], p99_ns[2], rate;
	struct scrub_status status;
	int i;

	for (i = 0; i < 2; i++)
		rig_sum_up(p->response_ns[i], p->n[i], &mean_ns[i],
			   &p99_ns[i]);
	scrub_get_status(p->scrub, &status);
	rate = (double)status.run_sectors / (double)p->ns[1] * 1e9;
	printf("%8s %8s %8s %8s %8s %8s %8s %8s\n", "reads/s", "with it",
	       "mean ms", "mean +%", "p99 +%", "MB/s", "media%", "passes");
	printf("%8.2f %8.2f %8.3f %8.2f %8.2f %8.1f %8.1f %8.2f\n",
	       1e9 / mean_ns[0], 1e9 / mean_ns[1], mean_ns[0] / 1e6,
	       100 * (mean_ns[1] / mean_ns[0] - 1),
	       100 * (p99_ns[1] / p99_ns[0] - 1), rate * 512 / 1e6,
	       100 * rate / rig_media_rate(&p->rig), (double)status.passes +
	       (double)status.done_sectors / (double)status.all_sectors);
}

int sched_pass(const struct sched_options *options)
{
	struct pass p = { .seed = options->seed };
	uint64_t reads = options->requests ? options->requests : READS;
	int err;

	p.iov.iov_len = 4096;
	p.iov.iov_base = aligned_alloc(4096, 4096);
	err = p.iov.iov_base ? open_full(options, &p) : -ENOMEM;
	if (!err)
		err = run_turns(&p, options->quick ? reads / 10 : reads);
	if (!err)
		print(&p);
	scrub_close(p.scrub);
	if (p.fs)
		fs_close(p.fs);
	if (p.rig.spec)
		rig_close(&p.rig);
	free(p.response_ns[0]);
	free(p.response_ns[1]);
	free(p.iov.iov_base);
	return err;
}
