/*
 * sched_scale.c - what a mount, statfs, making and deleting files, and writing
 * a large one cost when there are few inodes or many, on an empty disk of 20 TB
 * or a full one, whose free room lies together or in small runs.
 *
 * Each row is a new file system, filled, unmounted, and mounted again with
 * nothing in memory.  Counted are accesses, virtual time, and the time of the
 * processor, that of the simulator included.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/msg.h"
#include "base/units.h"
#include "bench/sched_scale.h"
#include "fs/mkfs.h"

/* A drive of 20 TB, and MiB of the file system's memory. */
#define DRIVE "random:1,bytes=20T"
#define MEMORY_MIB 256u
#define FEW 10000u	/* Few inodes, and many. */
#define MANY 1000000u
#define FILES_PER_DIR 1000u
/* Per cent of the disk that the files of a full one take. */
#define FULL_PERCENT 97u
#define FILL_BYTES (UINT64_C(16) << 30)	/* bytes of one file */
/* The last file is halved until it fits, down to this. */
#define FILL_LEAST_BYTES (UINT64_C(1) << 30)
/* What is free of a scattered disk: once in so many bytes of its files a hole,
 * longer than a track of a disk without profile, but across the end of one, so
 * that it holds no whole track. */
#define HOLE_STEP (UINT64_C(256) << 20)
#define HOLE_AT (UINT64_C(600) << 10)
#define HOLE_BYTES (UINT64_C(1300) << 10)
#define OPS 1000u		/* files made, then deleted */
#define WRITE_BYTES (UINT64_C(1) << 20)	/* bytes of one write */
#define WRITES 16u		/* writes of the large file */

/* Accesses, virtual time, and time of the processor. */
struct cost {
	uint64_t accesses, ns, cpu_ns;
};

static void op_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

/* Begins an operation; *done is set when it is over. */
static void scale_submit(struct scale *s, struct fs_op *op, bool *done)
{
	*done = false;
	op->done = op_done;
	op->owner = done;
	fs_submit(s->fs, op);
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static void note_turn(struct turn_times *turns, uint64_t ns)
{
	const size_t i = turns->n;

	/* Without memory for it the later ones are not counted. */
	if (array_grow(&turns->ns, &turns->room, i, sizeof(*turns->ns)))
		return;
	if (i >= turns->known || ns < turns->ns[i])
		turns->ns[i] = (uint32_t)ns;
	turns->n++;
	turns->known = turns->known > turns->n ? turns->known : turns->n;
}

void scale_turn(struct scale *s, const bool *done)
{
	const uint64_t begin_ns = thread_ns();
	const uint64_t next_ns = fs_run(s->fs, 0);

	if (s->turns)
		note_turn(s->turns, thread_ns() - begin_ns);
	if (!*done)
		rig_pass(&s->rig, next_ns);
}

int scale_do(struct scale *s, struct fs_op *op)
{
	bool done;

	scale_submit(s, op, &done);
	while (!done)
		scale_turn(s, &done);
	return op->rc;
}

static int scale_sync(struct scale *s)
{
	struct fs_op op = { .type = FS_SYNCFS, .ino = 1 };

	return scale_do(s, &op);
}

int scale_make(struct scale *s, uint64_t dir, enum fs_op_type type,
	       const char *name, uint64_t *ino)
{
	struct fs_op op = { .type = type, .ino = dir, .name = name,
			    .mode = 0644 };
	struct fs_op forget = { .type = FS_FORGET, .size = 1 };
	int err = scale_do(s, &op);

	forget.ino = op.attr.ino;
	if (!err && ino)
		*ino = op.attr.ino;
	return err ? err : scale_do(s, &forget);
}

static int make_inodes(struct scale *s, uint64_t n)
{
	uint64_t dir = 1;
	char name[32];
	int err = 0;

	for (uint64_t i = 0; i < n && !err; i++) {
		if (i % FILES_PER_DIR == 0) {
			snprintf(name, sizeof(name), "dir%llu",
				 (unsigned long long)s->dirs++);
			err = scale_make(s, 1, FS_MKDIR, name, &dir);
		}
		snprintf(name, sizeof(name), "file%llu", (unsigned long long)i);
		if (!err)
			err = scale_make(s, dir, FS_MKNOD, name, NULL);
	}
	return err;
}

static int free_percent(struct scale *s, unsigned *percent)
{
	struct fs_op op = { .type = FS_STATFS, .ino = 1 };
	int err = scale_do(s, &op);

	*percent = err ? 0 :
		(unsigned)(100 * op.statfs.free / op.statfs.blocks);
	return err;
}

static int punch_holes(struct scale *s, uint64_t ino, uint64_t bytes)
{
	struct fs_op op = {
		.type = FS_FALLOCATE, .ino = ino, .size = HOLE_BYTES,
		.flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	};
	int err = 0;

	for (op.offset = HOLE_AT; op.offset < bytes && !err;
	     op.offset += HOLE_STEP)
		err = scale_do(s, &op);
	return err;
}

/* Preallocates until no more than this is free; then makes holes, if wanted. */
static int fill_disk(struct scale *s, unsigned least, bool holes)
{
	struct fs_op op = { .type = FS_FALLOCATE, .size = FILL_BYTES };
	unsigned percent = 100;
	char name[32];
	int err = 0;

	for (unsigned i = 0; !err && percent > least; i++) {
		snprintf(name, sizeof(name), "fill%u", i);
		err = scale_make(s, 1, FS_MKNOD, name, &op.ino);
		if (!err)
			err = scale_do(s, &op);
		if (!err && holes)
			err = punch_holes(s, op.ino, op.size);
		if (err == -ENOSPC && op.size > FILL_LEAST_BYTES) {
			op.size /= 2;
			err = 0;
		}
		if (!err)
			err = free_percent(s, &percent);
	}
	return err == -ENOSPC ? 0 : err;
}

/* ---- Measuring ---- */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static struct cost now(const struct scale *s)
{
	const struct sim_counts *counts = sim_counts(s->rig.sim);

	return (struct cost){ counts->reads + counts->writes,
			      sim_now_ns(s->rig.sim), cpu_ns() };
}

static void print_cost(const struct scale *s, const struct cost *from,
		       unsigned ops)
{
	const struct cost to = now(s);

	printf(" | %8.2f %8.3f %8.3f",
	       (double)(to.accesses - from->accesses) / ops,
	       (double)(to.ns - from->ns) / ops / NS_PER_MS,
	       (double)(to.cpu_ns - from->cpu_ns) / ops / NS_PER_MS);
	fflush(stdout);
}

int scale_mount(struct scale *s)
{
	return fs_open(s->rig.env, s->rig.disk, &s->options, &s->fs);
}

int scale_unmount(struct scale *s)
{
	const int err = fs_close(s->fs);

	s->fs = NULL;
	return err;
}

/* Measures until the first file is made, which reads the nodes on its path:
 * what a mount costs that leaves them to whoever comes first. */
static int measure_first(struct scale *s, const struct cost *from)
{
	struct fs_op dir = { .type = FS_LOOKUP, .ino = 1, .name = "dir0" };
	int err = scale_do(s, &dir);

	if (!err)
		err = scale_make(s, dir.attr.ino, FS_MKNOD, "first", NULL);
	print_cost(s, from, 1);
	return err;
}

static int measure_files(struct scale *s, enum fs_op_type type)
{
	const struct cost from = now(s);
	struct fs_op dir = { .type = FS_LOOKUP, .ino = 1, .name = "dir0" };
	char name[24];
	int err = scale_do(s, &dir);

	for (unsigned i = 0; i < OPS && !err; i++) {
		struct fs_op op = { .type = FS_UNLINK, .ino = dir.attr.ino,
				    .name = name };

		snprintf(name, sizeof(name), "new%u", i);
		err = type == FS_UNLINK ? scale_do(s, &op) :
			scale_make(s, dir.attr.ino, type, name, NULL);
	}
	if (!err)
		err = scale_sync(s);
	print_cost(s, &from, OPS);
	return err;
}

static int measure_write(struct scale *s)
{
	static uint8_t data[WRITE_BYTES] __attribute__((aligned(4096)));
	const struct cost from = now(s);
	struct fs_op op = { .type = FS_WRITE, .size = WRITE_BYTES,
			    .data = data };
	int err = scale_make(s, 1, FS_MKNOD, "large", &op.ino);

	for (unsigned i = 0; i < WRITES && !err; i++) {
		op.offset = i * WRITE_BYTES;
		err = scale_do(s, &op);
	}
	if (!err)
		err = scale_sync(s);
	print_cost(s, &from, 1);
	return err;
}

static int measure(struct scale *s)
{
	const struct cost begin = now(s);
	struct cost mounted;
	unsigned percent;
	int err = scale_mount(s);

	print_cost(s, &begin, 1);
	mounted = now(s);
	if (!err)
		err = free_percent(s, &percent);
	print_cost(s, &mounted, 1);
	if (!err)
		err = measure_first(s, &begin);
	if (!err)
		err = measure_files(s, FS_MKNOD);
	if (!err)
		err = measure_files(s, FS_UNLINK);
	if (!err)
		err = measure_write(s);
	printf("\n");
	return err;
}

int scale_open(struct scale *s, const struct sched_options *options)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : DRIVE,
		.seed = options->seed, .blind = true,
	};
	const struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	int err;

	*s = (struct scale){ .options.memory_bytes =
		(size_t)(options->memory_mib ? options->memory_mib :
					       MEMORY_MIB) << 20 };
	err = rig_open(&rig_options, &s->rig);
	if (err)
		return err;
	queue_close(s->rig.queue);
	s->rig.queue = NULL;
	err = mkfs_plan(s->rig.env, &s->rig.disk->limits, &mkfs, &plan);
	if (!err)
		err = mkfs_write(s->rig.env, s->rig.disk, &mkfs, &plan);
	return err ? err : scale_mount(s);
}

void scale_close(struct scale *s)
{
	if (s->fs)
		fs_abandon(s->fs);
	rig_close(&s->rig);
}

/* What the disk is filled with. */
enum scale_fill { EMPTY, FULL, SCATTERED };

static int scale_row(const struct sched_options *options, uint64_t inodes,
		     enum scale_fill fill)
{
	struct scale s;
	unsigned percent = 100;
	int err = scale_open(&s, options);

	if (!err && fill != EMPTY)
		err = fill_disk(&s, fill == FULL ? 100 - FULL_PERCENT : 0,
				fill == SCATTERED);
	if (!err)
		err = make_inodes(&s, inodes);
	if (!err)
		err = free_percent(&s, &percent);
	if (!err)
		err = scale_unmount(&s);
	printf("%9llu %3u %%", (unsigned long long)inodes, 100 - percent);
	if (!err)
		err = measure(&s);
	scale_close(&s);
	return err;
}

int sched_scale(const struct sched_options *options)
{
	const uint64_t many = options->requests ? options->requests : MANY;
	int err = 0;

	printf("accesses, milliseconds of the disk and of the processor; of "
	       "files for each of %u\n"
	       "   inodes  full |            mount           |"
	       "           statfs           |   mount to the first file  |"
	       "         make a file        |        delete a file       |"
	       "        write 16 MiB\n", OPS);
	for (unsigned row = 0; row < 4 && !err; row++)
		err = scale_row(options, row % 2 ? many : FEW,
				row / 2 ? FULL : EMPTY);
	if (!err)
		err = scale_row(options, FEW, SCATTERED);
	if (err)
		msg_error("scale: %s", strerror(-err));
	return err;
}
