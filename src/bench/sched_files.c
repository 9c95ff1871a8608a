/*
 * sched_files.c - is anything slower on a file system that knows its drive than
 * on the same drive blind? Each flow reads or writes a file, in order or at
 * random, with some operations outstanding; all flows of a row run at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "fs/fs.h"
#include "fs/mkfs.h"

/* Number of files, MiB of each, and MiB of the file system's memory, which all
 * of them fit into. */
#define FILES 4u
#define FILE_MIB 48u
#define MEMORY_MIB 256u
#define CHUNK 131072u	/* Bytes of an operation in order. */
/* Most flows of a row, and most operations that a flow has outstanding. */
#define FLOWS 3u
#define DEPTH_MAX 16u

enum flow_way {
	IN_ORDER, AT_RANDOM,
	SYNCED,			/* in order, and each second operation is an
				 * fsync */
};

struct flow {
	unsigned file;		/* number of the file, from 1 on; 0: there is no
				 * flow */
	bool write;
	enum flow_way way;
	uint32_t bytes;		/* bytes of an operation */
	unsigned depth;
	unsigned percent;	/* bytes moved, in per cent of the file */
};

struct bench_row {
	const char *name;
	struct flow flow[FLOWS];
};

static const struct bench_row rows[] = {
	/* These two rows are always run blind, so that all others find the same
	 * files. */
	{ "(write one file)", { { 1, true, IN_ORDER, CHUNK, 4, 100 } } },
	{ "(write three at once)", { { 2, true, IN_ORDER, CHUNK, 2, 100 },
				     { 3, true, IN_ORDER, CHUNK, 2, 100 },
				     { 4, true, IN_ORDER, CHUNK, 2, 100 } } },
	{ "read one", { { 1, false, IN_ORDER, CHUNK, 2, 100 } } },
	{ "read one, bit by bit", {
		{ 1, false, IN_ORDER, CHUNK, 1, 100 } } },
	{ "read two at once", { { 1, false, IN_ORDER, CHUNK, 2, 100 },
				{ 3, false, IN_ORDER, CHUNK, 2, 100 } } },
	{ "random 4 KB, 1", { { 1, false, AT_RANDOM, 4096, 1, 3 } } },
	{ "random 4 KB, 16", { { 2, false, AT_RANDOM, 4096, 16, 6 } } },
	{ "random 4 KB, a writer", { { 2, false, AT_RANDOM, 4096, 4, 3 },
				     { 1, true, IN_ORDER, CHUNK, 2, 100 } } },
	{ "read one, a writer", { { 2, false, IN_ORDER, CHUNK, 2, 100 },
				  { 3, true, IN_ORDER, CHUNK, 2, 100 } } },
	{ "rewrite 4 KB, 16", { { 1, true, AT_RANDOM, 4096, 16, 6 } } },
	{ "4 KB + fsync, a writer", { { 2, true, SYNCED, 4096, 1, 6 },
				      { 1, true, IN_ORDER, CHUNK, 2, 100 } } },
	{ "write one anew", { { 1, true, IN_ORDER, CHUNK, 4, 100 } } },
	{ "write three anew", { { 2, true, IN_ORDER, CHUNK, 2, 100 },
				{ 3, true, IN_ORDER, CHUNK, 2, 100 },
				{ 4, true, IN_ORDER, CHUNK, 2, 100 } } },
};
/* Number of the first rows, which are run blind on both sides. */
#define PREPARED 2u
#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct bench_slot {
	struct fs_op op;
	struct mounted *m;
	const struct flow *flow;
	uint8_t *bytes;
	bool busy;
};

struct mounted {
	struct rig rig;
	struct fs *fs;
	uint64_t ino[FILES + 1];
	uint64_t at[FLOWS];	/* operations begun, by flow */
	struct bench_slot bench_slot[FLOWS * DEPTH_MAX];
	uint64_t seed, file_bytes, memory_bytes;
	unsigned busy;
	int err;
};

/* ---- turns ---- */

static void turn(struct mounted *m)
{
	const uint64_t next_ns = fs_run(m->fs, 0);

	if (m->busy)
		rig_pass(&m->rig, next_ns);
}

static void slot_done(struct fs_op *op)
{
	struct bench_slot *bench_slot = op->owner;

	bench_slot->busy = false;
	bench_slot->m->busy--;
	if (op->rc && !bench_slot->m->err)
		bench_slot->m->err = op->rc;
}

static void slot_submit(struct bench_slot *bench_slot)
{
	bench_slot->op.done = slot_done;
	bench_slot->op.owner = bench_slot;
	bench_slot->busy = true;
	bench_slot->m->busy++;
	fs_submit(bench_slot->m->fs, &bench_slot->op);
}

static int do_one(struct mounted *m, const struct fs_op *op,
		  struct fs_attr *attr)
{
	struct fs_op done = *op;
	int err = rig_do(&m->rig, m->fs, &done);

	if (err && !m->err)
		m->err = err;
	if (attr)
		*attr = done.attr;
	return err;
}

/* ---- flows ---- */

/* The next operation of a flow; false: there is none. */
static bool flow_next(struct mounted *m, unsigned i, const struct flow *flow,
		      struct bench_slot *bench_slot)
{
	uint64_t ops = m->file_bytes / 100 * flow->percent / flow->bytes;
	uint64_t n = m->at[i]++, random;

	if (n >= ops)
		return false;
	if (flow->way == SYNCED && n % 2) {
		bench_slot->op = (struct fs_op){ .type = FS_FSYNC,
					   .ino = m->ino[flow->file] };
		return true;
	}
	random = rig_random(&m->seed);
	if (flow->way == AT_RANDOM)
		n = random % (m->file_bytes / flow->bytes);
	bench_slot->op = (struct fs_op){
		.type = flow->write ? FS_WRITE : FS_READ,
		.ino = m->ino[flow->file],
		.offset = n * flow->bytes,
		.size = flow->bytes,
		.data = bench_slot->bytes,
		.buffer = bench_slot->bytes,
	};
	return true;
}

static int row_run(struct mounted *m, const struct bench_row *row,
		   double *seconds)
{
	const struct fs_op sync = { .type = FS_SYNCFS, .ino = 1 };
	uint64_t begin_ns = sim_now_ns(m->rig.sim);
	bool writes = false, more;
	unsigned i, j;

	memset(m->at, 0, sizeof(m->at));
	m->err = 0;
	do {
		more = false;
		for (i = 0; i < FLOWS && row->flow[i].file; i++)
			for (j = 0; j < row->flow[i].depth; j++) {
				struct bench_slot *bench_slot =
					&m->bench_slot[i * DEPTH_MAX + j];

				writes |= row->flow[i].write;
				more |= bench_slot->busy;
				if (bench_slot->busy || !flow_next(m, i,
						&row->flow[i], bench_slot))
					continue;
				/* The operation may have ended at once. */
				more = true;
				slot_submit(bench_slot);
			}
		turn(m);
	} while (more && !m->err);
	if (!m->err && writes)
		m->err = do_one(m, &sync, NULL);
	*seconds = (double)(sim_now_ns(m->rig.sim) - begin_ns) / 1e9;
	return m->err;
}

/* ---- mounting ---- */

static int open_fs(struct mounted *m, bool blind)
{
	struct fs_options options = { .head = blind ? NULL : m->rig.head,
				      .memory_bytes = m->memory_bytes };
	char name[16];
	struct fs_attr attr;
	unsigned i;
	int err = fs_open(m->rig.env, sim_disk(m->rig.sim), &options, &m->fs);

	for (i = 1; i <= FILES && !err; i++) {
		const struct fs_op look = { .type = FS_LOOKUP, .ino = 1,
					    .name = name };
		const struct fs_op make = { .type = FS_MKNOD, .ino = 1,
					    .name = name, .mode = 0100644 };

		snprintf(name, sizeof(name), "file%u", i);
		err = do_one(m, &look, &attr);
		if (err == -ENOENT)
			err = do_one(m, &make, &attr);
		if (!err) {
			const struct fs_op open = { .type = FS_OPEN,
						    .ino = attr.ino,
						    .flags = 2 };

			m->ino[i] = attr.ino;
			err = do_one(m, &open, NULL);
		}
	}
	return err;
}

static int make_fs(const struct sched_options *options, bool blind,
		   struct mounted *m)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "wd800",
		.seed = options->seed,
		.blind = blind,
	};
	const struct rig_load load = { .clients = 1, .sectors = 8,
				       .read_percent = 50, .requests = 400 };
	struct rig_result result;
	struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	struct disk *disk;
	int err = rig_open(&rig_options, &m->rig);

	if (err)
		return err;
	err = rig_run(&m->rig, &load, &result);
	queue_close(m->rig.queue);
	m->rig.queue = NULL;
	disk = sim_disk(m->rig.sim);
	mkfs.geom = m->rig.geom;
	if (!err)
		err = mkfs_plan(m->rig.env, &disk->limits, &mkfs, &plan);
	if (!err)
		err = mkfs_write(m->rig.env, disk, &mkfs, &plan);
	return err ? err : open_fs(m, true);
}

/* Runs every row with empty caches. */
static int run_rows(const struct sched_options *options, bool blind,
		    double *seconds)
{
	struct mounted *m = calloc(1, sizeof(*m));
	unsigned i;
	int err = m ? 0 : -ENOMEM;

	for (i = 0; i < FLOWS * DEPTH_MAX && !err; i++) {
		m->bench_slot[i].m = m;
		m->bench_slot[i].bytes = calloc(1, CHUNK);
		err = m->bench_slot[i].bytes ? 0 : -ENOMEM;
	}
	if (!err) {
		m->file_bytes = (options->requests ? options->requests :
						     FILE_MIB) << 20;
		m->memory_bytes = (options->memory_mib ? options->memory_mib :
							 MEMORY_MIB) << 20;
		err = make_fs(options, blind, m);
	}
	for (i = 0; i < ROWS && !err; i++) {
		err = row_run(m, &rows[i], &seconds[i]);
		if (!err)
			err = fs_close(m->fs);
		m->fs = NULL;
		if (!err)
			err = open_fs(m, i + 1 < PREPARED);
	}
	if (m && m->fs)
		fs_close(m->fs);
	if (m)
		rig_close(&m->rig);
	for (i = 0; m && i < FLOWS * DEPTH_MAX; i++)
		free(m->bench_slot[i].bytes);
	free(m);
	return err;
}

int sched_files(const struct sched_options *options)
{
	double known[ROWS] = { 0 }, blind[ROWS] = { 0 };
	int err = run_rows(options, true, blind);
	size_t i;

	if (!err)
		err = run_rows(options, false, known);
	printf("%-26s %10s %10s %8s\n", "seconds", "blind", "head", "");
	for (i = 0; i < ROWS && !err; i++)
		printf("%-26s %10.2f %10.2f %7.1f%%\n", rows[i].name, blind[i],
		       known[i], 100 * (known[i] / blind[i] - 1));
	return err;
}
