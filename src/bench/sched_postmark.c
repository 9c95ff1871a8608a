/*
 * sched_postmark.c - what the metadata of small files costs with little memory,
 * counted.  As Postmark does: files of 5 to 10 KiB are made in 100 directories,
 * in any order; a transaction reads a file or appends to it, and makes a file
 * or deletes one; in the end all are deleted.  The kernel is taken to have all
 * files in its page cache: no read comes here, and an append comes as whole
 * pages.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "bench/rig.h"
#include "bench/sched.h"
#include "format/format.h"
#include "fs/fs.h"

#define DRIVE "modern"
/* Directories; files; and least and most bytes of a file. */
#define DIRS 100u
#define FILES 20000u
#define LEAST_BYTES 5120u
#define MOST_BYTES 10240u
/* Time that the program and the kernel need for an operation. */
#define THINK_NS 40000u

struct bench_file {
	uint64_t ino;
	uint32_t bytes, number, dir;
};

struct postmark_counts {
	uint64_t node_reads, node_writes, checkpoints, spills, log_bytes;
	uint64_t written_bytes, accesses;
};

struct bench {
	struct rig rig;
	struct fs *fs;
	uint64_t dir[DIRS];
	struct bench_file *file;
	uint32_t files, made;
	uint8_t bytes[MOST_BYTES];
	uint64_t seed;
	bool busy;
	struct postmark_counts count;
	uint64_t begin_ns;
};

static uint32_t random_below(struct bench *b, uint32_t n)
{
	return (uint32_t)(rig_random(&b->seed) % n);
}

/* Runs the file system until a time, or until an operation is over. */
static void run_until(struct bench *b, uint64_t until_ns, const bool *busy)
{
	do {
		uint64_t to_ns = fs_run(b->fs, 0);
		const uint64_t sim_ns = sim_next_ns(b->rig.sim);
		const uint64_t now_ns = sim_now_ns(b->rig.sim);

		if (busy && !*busy)
			return;
		to_ns = sim_ns < to_ns ? sim_ns : to_ns;
		to_ns = until_ns < to_ns ? until_ns : to_ns;
		if (to_ns > now_ns)
			sim_advance(b->rig.sim, to_ns - now_ns);
	} while (sim_now_ns(b->rig.sim) < until_ns);
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
	run_until(b, sim_now_ns(b->rig.sim) + THINK_NS, NULL);
	fs_submit(b->fs, op);
	while (b->busy)
		run_until(b, UINT64_MAX, &b->busy);
	return op->rc;
}

static int file_io(struct bench *b, const struct bench_file *file,
		   enum fs_op_type type, uint32_t from, uint32_t bytes)
{
	struct fs_op op = {
		.type = type, .ino = file->ino, .offset = from, .size = bytes,
		.data = b->bytes, .buffer = b->bytes,
	};

	return do_op(b, &op);
}

static int file_make(struct bench *b)
{
	struct bench_file *file = &b->file[b->files];
	char name[16];
	struct fs_op op = { .type = FS_MKNOD, .name = name, .mode = 0100644,
			    .opens = true };
	struct fs_op close = { .type = FS_RELEASE };
	int err;

	*file = (struct bench_file){
		.number = b->made++, .dir = random_below(b, DIRS),
		.bytes = LEAST_BYTES +
			 random_below(b, MOST_BYTES - LEAST_BYTES),
	};
	snprintf(name, sizeof(name), "%u", file->number);
	op.ino = b->dir[file->dir];
	err = do_op(b, &op);
	file->ino = close.ino = op.attr.ino;
	if (!err)
		err = file_io(b, file, FS_WRITE, 0, file->bytes);
	b->files++;
	close.handle = op.handle;
	return err ? err : do_op(b, &close);
}

static int file_delete(struct bench *b, uint32_t i)
{
	char name[16];
	struct fs_op op = { .type = FS_UNLINK, .name = name,
			    .ino = b->dir[b->file[i].dir] };
	struct fs_op forget = { .type = FS_FORGET, .size = 1,
				.ino = b->file[i].ino };
	int err;

	snprintf(name, sizeof(name), "%u", b->file[i].number);
	b->file[i] = b->file[--b->files];
	err = do_op(b, &op);
	return err ? err : do_op(b, &forget);
}

static int transaction(struct bench *b)
{
	struct bench_file *file = &b->file[random_below(b, b->files)];
	const uint32_t room = MOST_BYTES - file->bytes;
	const uint32_t more = room ? 1 + random_below(b, room) : 0;
	int err = 0;

	if (!random_below(b, 2) && more) {
		const uint32_t from = file->bytes & ~(TRAX_BLOCK_BYTES - 1);

		file->bytes += more;
		err = file_io(b, file, FS_WRITE, from, file->bytes - from);
	}
	if (err)
		return err;
	return random_below(b, 2) ? file_make(b) :
				    file_delete(b, random_below(b, b->files));
}

static int make_dirs(struct bench *b)
{
	int err = 0;

	for (unsigned i = 0; i < DIRS && !err; i++) {
		char name[16];
		struct fs_op op = { .type = FS_MKDIR, .ino = TRAX_ROOT_INO,
				    .name = name, .mode = 040755 };

		snprintf(name, sizeof(name), "s%u", i);
		err = do_op(b, &op);
		b->dir[i] = op.attr.ino;
	}
	return err;
}

static uint64_t count_of(json_t *stats, const char *part, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(
		json_object_get(stats, part), name));
}

static void get_counts(const struct bench *b, struct postmark_counts *out)
{
	const struct sim_counts *sim = sim_counts(b->rig.sim);
	char *text = fs_stats_json(b->fs);
	json_t *stats = text ? json_loads(text, 0, NULL) : NULL;

	*out = (struct postmark_counts){
		.node_reads = count_of(stats, "tree", "node_reads"),
		.node_writes = count_of(stats, "tree", "node_writes"),
		.checkpoints = count_of(stats, "tree", "checkpoints"),
		.spills = count_of(stats, "tree", "spills"),
		.log_bytes = count_of(stats, "log", "record_bytes"),
		.written_bytes = sim->written_sectors * SECTOR_BYTES,
		.accesses = sim->reads + sim->writes,
	};
	json_decref(stats);
	free(text);
}

static void row_begin(struct bench *b)
{
	b->begin_ns = sim_now_ns(b->rig.sim);
	get_counts(b, &b->count);
}

static void row_end(struct bench *b, const char *name, unsigned n)
{
	const struct postmark_counts *was = &b->count;
	struct postmark_counts is;

	get_counts(b, &is);
	printf("%-13s %7.2f %7llu %7llu %5llu %6llu %8.2f %8.1f %8.1f %8llu\n",
	       name, (double)(sim_now_ns(b->rig.sim) - b->begin_ns) / 1e9,
	       (unsigned long long)(is.node_reads - was->node_reads),
	       (unsigned long long)(is.node_writes - was->node_writes),
	       (unsigned long long)(is.checkpoints - was->checkpoints),
	       (unsigned long long)(is.spills - was->spills),
	       (double)(is.node_writes - was->node_writes) *
	       TRAX_NODE_BYTES / 1024 / n,
	       (double)(is.log_bytes - was->log_bytes) / 1e6,
	       (double)(is.written_bytes - was->written_bytes) / 1e6,
	       (unsigned long long)(is.accesses - was->accesses));
	fflush(stdout);
}

static int sync_all(struct bench *b)
{
	struct fs_op op = { .type = FS_SYNCFS, .ino = TRAX_ROOT_INO };

	return do_op(b, &op);
}

static int load_run(struct bench *b, unsigned n)
{
	int err = make_dirs(b);

	row_begin(b);
	for (unsigned i = 0; i < n && !err; i++)
		err = file_make(b);
	row_end(b, "made", n);
	row_begin(b);
	for (unsigned i = 0; i < n && !err; i++)
		err = transaction(b);
	row_end(b, "transactions", n);
	row_begin(b);
	while (b->files && !err)
		err = file_delete(b, 0);
	row_end(b, "deleted", n);
	row_begin(b);
	if (!err)
		err = sync_all(b);
	row_end(b, "sync", n);
	return err;
}

int sched_postmark(const struct sched_options *options)
{
	const unsigned n = options->requests ? (unsigned)options->requests :
			   FILES / (options->quick ? 10 : 1);
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : DRIVE,
		.seed = options->seed,
	};
	struct fs_options fs_options = {
		.memory_bytes = (size_t)(options->memory_mib ?
			options->memory_mib : 64) << 20,
	};
	struct bench *b = calloc(1, sizeof(*b));
	int err = b ? 0 : -ENOMEM;

	if (err)
		return err;
	b->seed = options->seed;
	b->file = calloc(2 * (size_t)n, sizeof(*b->file));
	printf("%u files, %u transactions, %zu MiB of memory\n"
	       "phase         seconds   reads  writes ckpts spills KiB/file"
	       "   log MB    MB out accesses\n",
	       n, n, fs_options.memory_bytes >> 20);
	err = b->file ? rig_open(&rig_options, &b->rig) : -ENOMEM;
	if (!err)
		err = rig_make_fs(&b->rig, &fs_options, &b->fs);
	if (!err)
		err = load_run(b, n);
	if (b->fs)
		fs_close(b->fs);
	rig_close(&b->rig);
	free(b->file);
	free(b);
	return err;
}
