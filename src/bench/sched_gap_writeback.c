/*
 * sched_gap_writeback.c - what write-back costs random reads: written in the
 * gaps of the reads (Lumb et al., OSDI 2000, 2.3), and without gaps.
 *
 * Writes come at their rate, whatever the readers do. They are written back by
 * age, 30 s later, so the first WARM_S seconds do not count.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/units.h"
#include "bench/rig.h"
#include "bench/sched.h"
#include "format/format.h"
#include "fs/fs.h"

#define DRIVE "wd800"
/* MiB of the file that is read, and of the file system's memory, an eighth of
 * it so that reads miss. */
#define FILE_MIB 512u
#define MEMORY_MIB 64u
#define CHUNK (1u << 20)	/* Bytes of a write that fills the file. */
/* Readers, and operations outstanding at most: theirs and those of the
 * writers. */
#define READERS 4u
#define SLOTS (READERS + 8u)
/* Seconds of a run that do not count, and those that do. */
#define WARM_S 60u
#define RUN_S 60u
#define COLD_MIB UINT64_C(512)	/* MiB of a file that fits into memory and is
				 * read for the first time */
/* MiB of memory then, and the number of reads. */
#define COLD_MEMORY_MIB UINT64_C(2048)
#define COLD_READS 3000u
/* Small files have up to this many bytes, and a directory has this many of
 * them. */
#define SMALL_BYTES 16384u
#define DIR_FILES 500u

enum bench_writer {
	NOBODY,
	COLD,			/* everything that is read fits into memory
				 * after a while */
	REWRITES, REWRITES_SYNCED, SMALL_FILES
};

struct bench_row {
	const char *name;
	enum bench_writer writer;
	unsigned per_second;
};

static const struct bench_row rows[] = {
	{ "nobody writes", NOBODY, 0 },
	{ "the same, cold", COLD, 0 },
	{ "rewrites 10/s", REWRITES, 10 },
	{ "rewrites 30/s", REWRITES, 30 },
	{ "rewrites 30/s, fsync", REWRITES_SYNCED, 30 },
	{ "small files 20/s", SMALL_FILES, 20 },
	{ "small files 100/s", SMALL_FILES, 100 },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

struct bench_slot {
	struct fs_op op;
	struct bench *b;
	uint8_t *bytes;
	uint64_t begun_ns;
	bool busy;
};

struct bench {
	struct rig rig;
	struct fs *fs;
	uint64_t ino[2];	/* the inode that is read, and the one that is
				 * written */
	uint64_t file_bytes, memory_bytes, seed;
	struct bench_slot bench_slot[SLOTS];
	uint64_t dir, made;	/* directory of the small files, and how many
				 * were made */
	uint64_t *took_ns;
	size_t reads, reads_max;
	bool counts, cold;
	int err;
};

/* ---- operations ---- */

static void slot_done(struct fs_op *op)
{
	struct bench_slot *bench_slot = op->owner;
	struct bench *b = bench_slot->b;

	bench_slot->busy = false;
	if (op->rc && !b->err)
		b->err = op->rc;
	if (op->type == FS_READ && b->counts && b->reads < b->reads_max)
		b->took_ns[b->reads++] = sim_now_ns(b->rig.sim) -
					 bench_slot->begun_ns;
}

static void slot_submit(struct bench_slot *bench_slot, const struct fs_op *op)
{
	bench_slot->op = *op;
	bench_slot->op.done = slot_done;
	bench_slot->op.owner = bench_slot;
	bench_slot->busy = true;
	bench_slot->begun_ns = sim_now_ns(bench_slot->b->rig.sim);
	fs_submit(bench_slot->b->fs, &bench_slot->op);
}

/* Runs the file system once and advances time to its next event, at most to
 * `until_ns`. */
static void turn(struct bench *b, uint64_t until_ns)
{
	const uint64_t next_ns = fs_run(b->fs, 0);

	rig_pass(&b->rig, until_ns < next_ns ? until_ns : next_ns);
}

static int do_one(struct bench *b, const struct fs_op *op,
		  struct fs_attr *attr)
{
	struct bench_slot *bench_slot = &b->bench_slot[SLOTS - 1];

	slot_submit(bench_slot, op);
	while (bench_slot->busy)
		turn(b, sim_now_ns(b->rig.sim) + NS_PER_SECOND);
	if (attr)
		*attr = bench_slot->op.attr;
	return bench_slot->op.rc;
}

static struct bench_slot *slot_free(struct bench *b, unsigned first,
				    unsigned end)
{
	for (unsigned i = first; i < end; i++)
		if (!b->bench_slot[i].busy)
			return &b->bench_slot[i];
	return NULL;
}

static uint64_t place_next(struct bench *b)
{
	return rig_random(&b->seed) % (b->file_bytes / TRAX_BLOCK_BYTES) *
	       TRAX_BLOCK_BYTES;
}

static bool is_over(const struct bench *b)
{
	return b->cold && b->reads >= COLD_READS;
}

static void readers_go_on(struct bench *b)
{
	struct bench_slot *bench_slot;

	while (!is_over(b) && (bench_slot = slot_free(b, 0, READERS))) {
		const struct fs_op op = { .type = FS_READ, .ino = b->ino[0],
					  .offset = place_next(b),
					  .size = TRAX_BLOCK_BYTES,
					  .buffer = bench_slot->bytes };

		slot_submit(bench_slot, &op);
	}
}

/* Makes, writes and closes a file within the operations of one slot. */
static void small_file(struct bench *b)
{
	char name[24];
	struct fs_op op = { .type = FS_MKNOD, .name = name, .mode = 0100644 };
	struct fs_attr attr = { 0 };

	if (b->made % DIR_FILES == 0) {
		const struct fs_op dir = { .type = FS_MKDIR, .ino = 1,
					   .name = name, .mode = 040755 };

		snprintf(name, sizeof(name), "d%llu",
			 (unsigned long long)b->made);
		b->err = do_one(b, &dir, &attr);
		b->dir = attr.ino;
	}
	snprintf(name, sizeof(name), "f%llu", (unsigned long long)b->made++);
	op.ino = b->dir;
	if (!b->err)
		b->err = do_one(b, &op, &attr);
	op = (struct fs_op){ .type = FS_WRITE, .ino = attr.ino,
			     .size = TRAX_BLOCK_BYTES + rig_random(&b->seed) %
					     (SMALL_BYTES - TRAX_BLOCK_BYTES),
			     .data = b->bench_slot[SLOTS - 1].bytes };
	if (!b->err)
		b->err = do_one(b, &op, NULL);
}

static void writer_goes_on(struct bench *b, const struct bench_row *row)
{
	struct bench_slot *bench_slot = slot_free(b, READERS, SLOTS - 1);
	const struct fs_op op = {.type = FS_WRITE,
				 .ino = b->ino[1],
				 .offset = place_next(b),
				 .size = TRAX_BLOCK_BYTES,
				 .data = bench_slot ? bench_slot->bytes : NULL};
	const struct fs_op sync = { .type = FS_FSYNC, .ino = b->ino[1] };

	if (row->writer == SMALL_FILES) {
		small_file(b);
		return;
	}
	if (!bench_slot)
		return;
	slot_submit(bench_slot, &op);
	bench_slot = slot_free(b, READERS, SLOTS - 1);
	if (bench_slot && row->writer == REWRITES_SYNCED)
		slot_submit(bench_slot, &sync);
}

/* ---- a row ---- */

static void load_run(struct bench *b, const struct bench_row *row,
		     unsigned seconds)
{
	uint64_t end_ns = sim_now_ns(b->rig.sim) + seconds * NS_PER_SECOND;
	uint64_t step_ns = row->per_second ? NS_PER_SECOND / row->per_second :
					     NS_PER_SECOND;
	uint64_t next_ns = sim_now_ns(b->rig.sim);

	while (!b->err && sim_now_ns(b->rig.sim) < end_ns && !is_over(b)) {
		readers_go_on(b);
		if (row->per_second && sim_now_ns(b->rig.sim) >= next_ns) {
			next_ns += step_ns;
			writer_goes_on(b, row);
		}
		turn(b, row->per_second ? next_ns : end_ns);
	}
}

static int file_make(struct bench *b, const char *name, uint64_t *ino)
{
	const struct fs_op make = { .type = FS_MKNOD, .ino = 1, .name = name,
				    .mode = 0100644 };
	struct fs_op op = { .type = FS_OPEN, .flags = 2 };
	struct fs_attr attr = { 0 };
	int err = do_one(b, &make, &attr);

	*ino = op.ino = attr.ino;
	if (!err)
		err = do_one(b, &op, NULL);
	for (uint64_t at = 0; at < b->file_bytes && !err; at += CHUNK) {
		op = (struct fs_op){ .type = FS_WRITE, .ino = *ino,
				     .offset = at, .size = CHUNK,
				     .data = b->bench_slot[0].bytes };
		err = do_one(b, &op, NULL);
	}
	return err;
}

static int bench_mount(struct bench *b, const struct sched_options *options,
		       bool gaps)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : DRIVE,
		.seed = options->seed,
	};
	const struct fs_op sync = { .type = FS_SYNCFS, .ino = 1 };
	struct fs_op open = { .type = FS_OPEN, .flags = 2 };
	struct fs_options fs_options = {
		.memory_bytes = b->memory_bytes,
		.gap_writeback = gaps ? FS_GAP_WRITEBACK_WHILE_READ
				      : FS_GAP_WRITEBACK_NEVER,
	};
	int err = rig_open(&rig_options, &b->rig);

	if (!err)
		err = rig_make_fs(&b->rig, &fs_options, &b->fs);
	if (!err)
		err = file_make(b, "read", &b->ino[0]);
	if (!err)
		err = file_make(b, "written", &b->ino[1]);
	if (!err)
		err = do_one(b, &sync, NULL);
	if (err || !b->cold)
		return err;
	/* What was written is in memory: another mount reads it. */
	err = fs_close(b->fs);
	b->fs = NULL;
	if (!err)
		err = fs_open(b->rig.env, sim_disk(b->rig.sim),
			      &fs_options, &b->fs);
	open.ino = b->ino[0];
	return err ? err : do_one(b, &open, NULL);
}

static void row_print(struct bench *b, const struct bench_row *row, bool gaps,
		      double seconds)
{
	double sum_ns = 0;

	for (size_t i = 0; i < b->reads; i++)
		sum_ns += (double)b->took_ns[i];
	qsort(b->took_ns, b->reads, sizeof(*b->took_ns), sort_u64_cmp);
	printf("%-22s %-4s %8.1f %8.2f %8.2f\n", row->name,
	       gaps ? "yes" : "no", (double)b->reads / seconds,
	       sum_ns / (double)b->reads / 1e6,
	       (double)b->took_ns[b->reads * 99 / 100] / 1e6);
	fflush(stdout);
}

static int row_run(const struct sched_options *options,
		   const struct bench_row *row, bool gaps)
{
	unsigned part = options->quick ? 10 : 1;
	struct bench *b = calloc(1, sizeof(*b));
	int err = b ? 0 : -ENOMEM;
	uint64_t took_ns = 0;

	for (unsigned i = 0; i < SLOTS && !err; i++) {
		b->bench_slot[i].b = b;
		b->bench_slot[i].bytes = calloc(1, CHUNK);
		err = b->bench_slot[i].bytes ? 0 : -ENOMEM;
	}
	if (!err) {
		b->file_bytes = (uint64_t)(options->requests ?
			options->requests : FILE_MIB) << 20;
		b->memory_bytes = (uint64_t)(options->memory_mib ?
			options->memory_mib : MEMORY_MIB) << 20;
		if (row->writer == COLD) {
			b->cold = true;
			b->file_bytes = COLD_MIB << 20;
			b->memory_bytes = COLD_MEMORY_MIB << 20;
		}
		b->seed = options->seed + 1;
		b->reads_max = 100000 * RUN_S;
		b->took_ns = calloc(b->reads_max, sizeof(*b->took_ns));
		err = b->took_ns ? bench_mount(b, options, gaps) : -ENOMEM;
	}
	if (!err) {
		if (row->writer != COLD)
			load_run(b, row, WARM_S / part);
		b->counts = true;
		took_ns = sim_now_ns(b->rig.sim);
		load_run(b, row, RUN_S / (b->cold ? 1 : part));
		took_ns = sim_now_ns(b->rig.sim) - took_ns;
		b->counts = false;
		err = b->err;
	}
	if (!err && b->reads)
		row_print(b, row, gaps, (double)took_ns / NS_PER_SECOND);
	while (b && b->fs && slot_free(b, 0, SLOTS) != NULL && !fs_idle(b->fs))
		turn(b, sim_now_ns(b->rig.sim) + NS_PER_SECOND);
	if (b && b->fs)
		fs_close(b->fs);
	if (b)
		rig_close(&b->rig);
	for (unsigned i = 0; b && i < SLOTS; i++)
		free(b->bench_slot[i].bytes);
	if (b)
		free(b->took_ns);
	free(b);
	return err;
}

int sched_gap_writeback(const struct sched_options *options)
{
	int err = 0;

	printf("%u readers at random, %s, and somebody who writes\n"
	       "%-22s %-4s %8s %8s %8s\n", READERS,
	       options->drive ? options->drive : DRIVE, "", "gaps", "reads/s",
	       "mean ms", "p99 ms");
	for (unsigned i = 0; i < ROWS && !err; i++)
		for (unsigned gaps = 0; gaps < 2 && !err; gaps++)
			err = row_run(options, &rows[i], gaps);
	return err;
}
