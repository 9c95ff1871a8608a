/*
 * sched_clean.c - a Postmark-like load on a file system that has been in use:
 * without cleaning (move/move.h), with it beside the load, and with cleaning
 * that costs no time, the ideal (Lumb et al., OSDI 2000, 5).
 *
 * All of the disk but a GiB is given to one file.  Files of 4 to 64 KiB and,
 * one in LARGE_SHARE, of some tracks are written, then half of them are deleted
 * and others written, five times, so that what is free lies in pieces.  A day
 * later transactions begin: one reads a file or appends to it, and makes a file
 * or deletes one, so that the disk stays as full as it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/rig.h"
#include "bench/sched.h"
#include "format/format.h"
#include "fs/fs.h"
#include "move/move.h"

#define DRIVE "wd800"
#define SPACE_BYTES (UINT64_C(1) << 30) /* the rest of the disk is one file */
#define MEMORY_MIB 64u
#define DIRS 32u
#define MAX_FILES 60000u
#define SMALL_BYTES (64u << 10)
#define LARGE_BYTES (2u << 20)
#define LARGE_SHARE 64u
#define CHUNK (1u << 20)
#define ROUNDS 6u
#define TRANSACTIONS 6000u
/* Transactions between two pauses that do not count, in which ideal cleaning is
 * done, and how long it may take. */
#define PAUSE_EVERY 500u
#define IDEAL_NS (UINT64_C(3600) * NS_PER_SECOND)
#define DAY_NS (UINT64_C(86400) * NS_PER_SECOND)
#define PAUSE_NS (UINT64_C(700) * NS_PER_SECOND)

enum clean_way { CLEAN_NEVER, CLEAN_BESIDE, CLEAN_IDEAL };

struct bench_file {
	uint64_t ino;
	uint32_t bytes, number;
};

struct bench {
	struct rig rig;
	struct fs *fs;
	struct moves *moves;	/* NULL: there is no cleaning now */
	uint64_t moves_ns;	/* when they want to be called again */
	uint64_t dir[DIRS];
	struct bench_file *file;
	uint32_t files, made;
	uint8_t *bytes;
	uint64_t seed;
	bool busy;
	uint64_t large_bytes, large_extents;	/* of large files made while
						 * it was measured */
	bool counts;
};

struct clean_row {
	double per_second;
	double large_kib;	/* of an extent of a large file */
	struct moves_status moved;
};

static uint64_t random_next(uint64_t *state)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return *state >> 33;
}

/* ---- operations ---- */

/* Time passes unless an operation that was waited for is over. */
static void turn(struct bench *b, bool waits)
{
	uint64_t next_ns = fs_run(b->fs, 0), to_ns, now_ns;

	if (waits && !b->busy)
		return;
	b->moves_ns = b->moves ? moves_run(b->moves) : UINT64_MAX;
	to_ns = sim_next_ns(b->rig.sim);
	now_ns = sim_now_ns(b->rig.sim);
	to_ns = next_ns < to_ns ? next_ns : to_ns;
	to_ns = b->moves_ns < to_ns ? b->moves_ns : to_ns;
	if (to_ns == UINT64_MAX)
		to_ns = now_ns + NS_PER_SECOND;
	if (to_ns > now_ns)
		sim_advance(b->rig.sim, to_ns - now_ns);
}

static void op_done(struct fs_op *op)
{
	((struct bench *)op->owner)->busy = false;
}

static int do_op(struct bench *b, struct fs_op *op)
{
	op->done = op_done;
	op->owner = b;
	b->busy = true;
	fs_submit(b->fs, op);
	while (b->busy)
		turn(b, true);
	return op->rc;
}

static int sync_all(struct bench *b)
{
	struct fs_op op = { .type = FS_SYNCFS, .ino = TRAX_ROOT_INO };

	return do_op(b, &op);
}

static int file_io(struct bench *b, uint64_t ino, enum fs_op_type type,
		   uint64_t from, uint64_t end)
{
	int err = 0;

	for (; from < end && !err; from += CHUNK) {
		struct fs_op op = {
			.type = type, .ino = ino, .offset = from,
			.size = end - from < CHUNK ? end - from : CHUNK,
			.data = b->bytes, .buffer = b->bytes,
		};

		err = do_op(b, &op);
	}
	return err;
}

static int file_pieces(struct bench *b, const struct bench_file *file)
{
	static struct fs_extent list[1024];
	struct fs_op op = { .type = FS_EXTENTS, .ino = file->ino,
			    .buffer = list, .size = 1024 };
	int err = sync_all(b);

	if (!err)
		err = do_op(b, &op);
	b->large_bytes += file->bytes;
	b->large_extents += op.result;
	return err;
}

static int file_make(struct bench *b)
{
	struct bench_file *file = &b->file[b->files];
	char name[16];
	struct fs_op op = { .type = FS_MKNOD, .name = name, .mode = 0100644 };
	struct fs_op forget = { .type = FS_FORGET, .size = 1 };
	bool large = random_next(&b->seed) % LARGE_SHARE == 0;
	int err;

	if (b->files == MAX_FILES)
		return -ENFILE;
	*file = (struct bench_file){ .number = b->made++ };
	file->bytes = large ? LARGE_BYTES :
		4096 + (uint32_t)(random_next(&b->seed) % (SMALL_BYTES - 4096));
	snprintf(name, sizeof(name), "f%u", file->number);
	op.ino = b->dir[file->number % DIRS];
	err = do_op(b, &op);
	if (err)
		return err;
	file->ino = forget.ino = op.attr.ino;
	err = file_io(b, file->ino, FS_WRITE, 0, file->bytes);
	if (!err && large && b->counts)
		err = file_pieces(b, file);
	b->files++;
	return err ? err : do_op(b, &forget);
}

static int file_delete(struct bench *b, uint32_t i)
{
	char name[16];
	struct fs_op op = { .type = FS_UNLINK, .name = name };

	snprintf(name, sizeof(name), "f%u", b->file[i].number);
	op.ino = b->dir[b->file[i].number % DIRS];
	b->file[i] = b->file[--b->files];
	return do_op(b, &op);
}

static unsigned percent_full(struct bench *b)
{
	struct fs_op op = { .type = FS_STATFS, .ino = TRAX_ROOT_INO };

	if (do_op(b, &op) || op.statfs.avail * 4096 > SPACE_BYTES)
		return 0;
	return (unsigned)(100 - op.statfs.avail * 4096 * 100 / SPACE_BYTES);
}

static uint32_t file_any(struct bench *b)
{
	return (uint32_t)(random_next(&b->seed) % b->files);
}

/* ---- a used file system ---- */

static int fill(struct bench *b, unsigned percent)
{
	int err = 0;

	for (unsigned n = 0; !err && (n % 16 || percent_full(b) < percent); n++)
		err = file_make(b);
	return err ? err : sync_all(b);
}

/* Leaves SPACE_BYTES of the disk. */
static int take_rest(struct bench *b)
{
	struct fs_op stat = { .type = FS_STATFS, .ino = TRAX_ROOT_INO };
	struct fs_op make = { .type = FS_MKNOD, .ino = TRAX_ROOT_INO,
			      .name = "rest", .mode = 0100644 };
	int err = do_op(b, &stat);
	struct fs_op op = {
		.type = FS_FALLOCATE,
		.size = stat.statfs.avail * 4096 - SPACE_BYTES,
	};

	if (!err)
		err = do_op(b, &make);
	op.ino = make.attr.ino;
	return err ? err : do_op(b, &op);
}

static int make_used(struct bench *b, unsigned percent)
{
	uint32_t left;
	int err = take_rest(b);

	for (unsigned i = 0; i < DIRS && !err; i++) {
		char name[16];
		struct fs_op op = { .type = FS_MKDIR, .ino = TRAX_ROOT_INO,
				    .name = name, .mode = 040755 };

		snprintf(name, sizeof(name), "d%u", i);
		err = do_op(b, &op);
		b->dir[i] = op.attr.ino;
	}
	for (unsigned round = 0; round < ROUNDS && !err; round++) {
		err = fill(b, percent);
		left = round + 1 < ROUNDS ? b->files / 2 : 0;
		for (; left && !err; left--)
			err = file_delete(b, file_any(b));
	}
	sim_advance(b->rig.sim, DAY_NS);
	return err;
}

static int bench_mount(struct bench *b, const struct sched_options *options)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : DRIVE,
		.seed = options->seed,
	};
	struct fs_options fs_options = {
		.memory_bytes = (size_t)(options->memory_mib ?
			options->memory_mib : MEMORY_MIB) << 20,
	};
	int err = rig_open(&rig_options, &b->rig);

	return err ? err : rig_make_fs(&b->rig, &fs_options, &b->fs);
}

/* ---- the load ---- */

static int transaction(struct bench *b, unsigned percent)
{
	uint32_t i = file_any(b);
	struct bench_file *file = &b->file[i];
	uint32_t more = (uint32_t)(random_next(&b->seed) % 8192);
	int err;

	if (random_next(&b->seed) % 2) {
		err = file_io(b, file->ino, FS_READ, 0, file->bytes);
	} else {
		err = file_io(b, file->ino, FS_WRITE, file->bytes,
			      file->bytes + more);
		file->bytes += more;
	}
	if (err)
		return err;
	return percent_full(b) >= percent ? file_delete(b, file_any(b)) :
					    file_make(b);
}

/* A pause, in which ideal cleaning goes on until nothing is left to clean. */
static void pause_load(struct bench *b, enum clean_way way)
{
	uint64_t now_ns = sim_now_ns(b->rig.sim);
	uint64_t quiet_ns = now_ns + PAUSE_NS, end_ns = quiet_ns + IDEAL_NS;

	if (b->moves)
		moves_pause(b->moves, way != CLEAN_IDEAL);
	do {
		turn(b, false);
		now_ns = sim_now_ns(b->rig.sim);
	} while (now_ns < quiet_ns ||
		 (way == CLEAN_IDEAL && now_ns < end_ns &&
		  b->moves_ns < now_ns + 60 * NS_PER_SECOND));
	if (b->moves)
		moves_pause(b->moves, way != CLEAN_BESIDE);
}

static int load_run(struct bench *b, const struct sched_options *options,
		    unsigned percent, enum clean_way way, struct clean_row *row)
{
	unsigned n = TRANSACTIONS / (options->quick ? 6 : 1);
	uint64_t begin_ns = sim_now_ns(b->rig.sim), pause_ns;
	int err = 0;

	if (options->requests)
		n = (unsigned)options->requests;
	b->counts = true;
	for (unsigned i = 0; i < n && !err; i++) {
		if (i % PAUSE_EVERY == 0) {
			pause_ns = sim_now_ns(b->rig.sim);
			pause_load(b, way);
			begin_ns += sim_now_ns(b->rig.sim) - pause_ns;
		}
		err = transaction(b, percent);
	}
	if (!err)
		err = sync_all(b);
	row->per_second = n * 1e9 /
			  (double)(sim_now_ns(b->rig.sim) - begin_ns);
	row->large_kib = (double)b->large_bytes / 1024 /
			 (double)(b->large_extents ? b->large_extents : 1);
	return err;
}

static int measure(const struct sched_options *options, unsigned percent,
		   enum clean_way way, struct clean_row *row)
{
	struct bench *b = calloc(1, sizeof(*b));
	int err = b ? 0 : -ENOMEM;

	*row = (struct clean_row){ 0 };
	if (err)
		return err;
	b->seed = options->seed;
	b->file = calloc(MAX_FILES, sizeof(*b->file));
	b->bytes = calloc(1, CHUNK);
	err = b->file && b->bytes ? bench_mount(b, options) : -ENOMEM;
	if (!err)
		err = make_used(b, percent);
	if (!err && way != CLEAN_NEVER)
		err = moves_open(b->fs, &b->moves);
	if (!err)
		err = load_run(b, options, percent, way, row);
	if (b->moves)
		moves_get_status(b->moves, &row->moved);
	moves_close(b->moves);
	if (b->fs)
		fs_close(b->fs);
	rig_close(&b->rig);
	free(b->file);
	free(b->bytes);
	free(b);
	return err;
}

int sched_clean(const struct sched_options *options)
{
	static const unsigned full[] = { 60, 85, 93 };
	static const char *const ways[] = {
		[CLEAN_NEVER] = "no cleaning", [CLEAN_BESIDE] = "cleaning",
		[CLEAN_IDEAL] = "ideal cleaning",
	};
	struct clean_row row;
	int err = 0;

	printf("transactions/s, and what moved meanwhile\n"
	       "full                    trans/s  KiB/extent   tracks    begun"
	       " moved MB stale MB\n");
	for (unsigned i = 0; i < 3 && !err; i++)
		for (unsigned way = 0; way < 3 && !err; way++) {
			err = measure(options, full[i], way, &row);
			if (err)
				break;
			printf("%3u %%  %-15s %8.1f %11.1f %8llu %8llu %8.1f "
			       "%8.1f\n", full[i], ways[way], row.per_second,
			       row.large_kib,
			       (unsigned long long)row.moved.tracks,
			       (unsigned long long)row.moved.begun,
			       (double)row.moved.sectors / 2048,
			       (double)row.moved.stale_sectors / 2048);
			fflush(stdout);
		}
	return err;
}
