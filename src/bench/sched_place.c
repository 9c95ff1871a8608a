/*
 * sched_place.c - files created in a file system that has been used: their
 * places are chosen when they are written, or are fixed before.  Then all are
 * read again, with empty caches, by directory in the order of creation, to show
 * that what is gained by being near the head is not lost by being far from the
 * neighbours.
 *
 * Used: the first group is full of files, a part of which, picked at random, is
 * deleted.  Each writer has a directory of its own and one operation
 * outstanding.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rig.h"
#include "bench/sched.h"
#include "format/format.h"
#include "fs/fs.h"
#include "fs/mkfs.h"

/* Most writers; files that are made, and fewer when each is synced; MiB of the
 * file system's memory. */
#define WRITERS_MOST 16u
#define FILES 1024u
#define SYNCED_FILES 256u
#define MEMORY_MIB 256u
#define OLD_MOST_BLOCKS 48u	/* blocks of a file that was there before, at
				 * most */
#define DIR_FILES 256u

struct bench_load {
	const char *name;
	uint32_t least, most;	/* bytes of a file, at least and at most */
	bool sync;		/* fsync each file */
};

static const struct bench_load loads[] = {
	{ "4-16 KB", 4096, 16384, false },
	{ "16-64 KB", 16384, 65536, false },
	{ "128 KB", 131072, 131072, false },
	{ "16 KB, fsync", 16384, 16384, true },
	{ "128 KB, fsync", 131072, 131072, true },
};

#define LOADS (sizeof(loads) / sizeof(loads[0]))

/* One client: create, write, perhaps fsync, the next. */
struct client {
	struct fs_op op;
	struct used *used;
	uint64_t dir, ino;
	unsigned files, step;
	bool busy;
	char name[16];
};

struct used {
	struct rig rig;
	struct fs *fs;
	const struct bench_load *load;
	struct client client[WRITERS_MOST];
	uint8_t *bytes;
	uint64_t seed;
	unsigned busy;
	int err;
};

static uint64_t draw(struct used *u, uint64_t n)
{
	return rig_random(&u->seed) % n;
}

/* ---- one after the other ---- */

static void turn(struct used *u)
{
	const uint64_t next_ns = fs_run(u->fs, 0);

	if (u->busy)
		rig_pass(&u->rig, next_ns);
}

static void op_over(struct fs_op *op)
{
	struct used *u = op->owner;

	u->busy--;
	if (op->rc && !u->err)
		u->err = op->rc;
}

static int one(struct used *u, struct fs_op *op)
{
	op->done = op_over;
	op->owner = u;
	u->busy++;
	fs_submit(u->fs, op);
	while (u->busy && !u->err)
		turn(u);
	return u->err;
}

static int make(struct used *u, uint64_t dir, const char *name, bool is_dir,
		uint64_t *ino)
{
	struct fs_op op = {
		.type = is_dir ? FS_MKDIR : FS_MKNOD, .ino = dir,
		.name = name, .mode = is_dir ? 0040755 : 0100644,
	};
	int err = one(u, &op);

	*ino = op.attr.ino;
	return err;
}

static int sync_all(struct used *u)
{
	struct fs_op op = { .type = FS_SYNCFS, .ino = TRAX_ROOT_INO };

	return one(u, &op);
}

/* ---- what was there before ---- */

static int old_file(struct used *u, uint64_t dir, unsigned i, uint64_t *sum)
{
	struct fs_op op = {
		.type = FS_FALLOCATE,
		.size = (1 + draw(u, OLD_MOST_BLOCKS)) * TRAX_BLOCK_BYTES,
	};
	char name[16];
	int err;

	snprintf(name, sizeof(name), "old%u", i);
	err = make(u, dir, name, false, &op.ino);
	*sum += op.size / 512;
	return err ? err : one(u, &op);
}

static int old_files(struct used *u, unsigned percent)
{
	uint64_t sum = 0, *dirs = calloc(TRAX_GROUP_SECTORS, sizeof(*dirs));
	unsigned n = 0, i;
	char name[16];
	int err = dirs ? 0 : -ENOMEM;

	while (!err && sum < TRAX_GROUP_SECTORS) {
		if (n % DIR_FILES == 0) {
			snprintf(name, sizeof(name), "d%u", n / DIR_FILES);
			err = make(u, TRAX_ROOT_INO, name, true,
				   &dirs[n / DIR_FILES]);
		}
		if (!err)
			err = old_file(u, dirs[n / DIR_FILES], n, &sum);
		n++;
	}
	for (i = 0; i < n && !err; i++) {
		struct fs_op op = { .type = FS_UNLINK, .name = name,
				    .ino = dirs[i / DIR_FILES] };

		if (draw(u, 100) < percent)
			continue;
		snprintf(name, sizeof(name), "old%u", i);
		err = one(u, &op);
	}
	free(dirs);
	return err ? err : sync_all(u);
}

/* ---- all at once ---- */

static void client_done(struct fs_op *op)
{
	struct client *c = op->owner;

	c->busy = false;
	c->used->busy--;
	if (op->rc && !c->used->err)
		c->used->err = op->rc;
	if (op->type == FS_MKNOD || op->type == FS_LOOKUP)
		c->ino = op->attr.ino;
}

/* The client's next operation; false: it has none left. */
static bool client_write(struct client *c)
{
	struct used *u = c->used;
	const struct bench_load *load = u->load;
	const unsigned steps = load->sync ? 3 : 2;

	if (c->step == steps * c->files)
		return false;
	snprintf(c->name, sizeof(c->name), "%u", c->step / steps);
	switch (c->step++ % steps) {
	case 0:
		c->op = (struct fs_op){ .type = FS_MKNOD, .ino = c->dir,
					.name = c->name, .mode = 0100644 };
		return true;
	case 1:
		c->op = (struct fs_op){
			.type = FS_WRITE, .ino = c->ino, .data = u->bytes,
			.size = load->least +
				draw(u, load->most - load->least + 1),
		};
		return true;
	default:
		c->op = (struct fs_op){ .type = FS_FSYNC, .ino = c->ino };
		return true;
	}
}

static bool client_read(struct client *c)
{
	if (c->step == 2 * c->files)
		return false;
	snprintf(c->name, sizeof(c->name), "%u", c->step / 2);
	if (c->step++ % 2 == 0)
		c->op = (struct fs_op){ .type = FS_LOOKUP, .ino = c->dir,
					.name = c->name };
	else
		c->op = (struct fs_op){ .type = FS_READ, .ino = c->ino,
					.buffer = c->used->bytes,
					.size = c->used->load->most };
	return true;
}

/* Lets clients [first, end) work until each of them has no operation left. */
static int clients_run(struct used *u, unsigned first, unsigned end,
		       bool (*next)(struct client *c))
{
	bool more = true;
	unsigned i;

	for (i = first; i < end; i++)
		u->client[i].step = 0;
	while (more && !u->err) {
		more = false;
		for (i = first; i < end; i++) {
			struct client *c = &u->client[i];

			if (c->busy || !next(c)) {
				more |= c->busy;
				continue;
			}
			more = c->busy = true;
			u->busy++;
			c->op.done = client_done;
			c->op.owner = c;
			fs_submit(u->fs, &c->op);
		}
		turn(u);
	}
	return u->err;
}

/* ---- one measurement ---- */

static int used_open(struct used *u, bool fixed)
{
	const struct fs_options options = {
		.head = u->rig.head, .memory_bytes = MEMORY_MIB << 20,
		.fixed_places = fixed,
	};

	return fs_open(u->rig.env, sim_disk(u->rig.sim), &options, &u->fs);
}

static int used_make(const struct sched_options *options, unsigned percent,
		     bool fixed, struct used *u)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : "wd800",
		.seed = options->seed,
	};
	const struct rig_load learn = { .clients = 1, .sectors = 8,
					.read_percent = 50, .requests = 400 };
	struct rig_result result;
	struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	struct disk *disk;
	int err = rig_open(&rig_options, &u->rig);

	if (err)
		return err;
	err = rig_run(&u->rig, &learn, &result);
	queue_close(u->rig.queue);
	u->rig.queue = NULL;
	disk = sim_disk(u->rig.sim);
	mkfs.geom = u->rig.geom;
	if (!err)
		err = mkfs_plan(u->rig.env, &disk->limits, &mkfs, &plan);
	if (!err)
		err = mkfs_write(u->rig.env, disk, &mkfs, &plan);
	if (!err)
		err = used_open(u, fixed);
	if (!err && percent)
		err = old_files(u, percent);
	return err;
}

struct measured {
	double write_ms, read_ms;	/* milliseconds a file */
	struct drive_times times;	/* times of the head while writing */
};

static int used_write(struct used *u, unsigned writers, unsigned files,
		      struct measured *m)
{
	struct drive *drive = sim_drive(u->rig.sim);
	uint64_t begin_ns;
	unsigned i;
	int err = 0;

	for (i = 0; i < writers && !err; i++) {
		struct client *c = &u->client[i];

		*c = (struct client){ .used = u, .files = files / writers };
		snprintf(c->name, sizeof(c->name), "new%u", i);
		err = make(u, TRAX_ROOT_INO, c->name, true, &c->dir);
	}
	if (!err)
		err = sync_all(u);
	begin_ns = sim_now_ns(u->rig.sim);
	drive_clear_times(drive, begin_ns);
	if (!err)
		err = clients_run(u, 0, writers, client_write);
	if (!err)
		err = sync_all(u);
	m->write_ms = (double)(sim_now_ns(u->rig.sim) - begin_ns) / 1e6 /
		      files;
	drive_get_times(drive, sim_now_ns(u->rig.sim), &m->times);
	return err;
}

static int used_read(struct used *u, unsigned writers, unsigned files,
		     struct measured *m)
{
	uint64_t begin_ns;
	unsigned i;
	int err = fs_close(u->fs);

	u->fs = NULL;
	if (!err)
		err = used_open(u, true);
	begin_ns = sim_now_ns(u->rig.sim);
	for (i = 0; i < writers && !err; i++)
		err = clients_run(u, i, i + 1, client_read);
	m->read_ms = (double)(sim_now_ns(u->rig.sim) - begin_ns) / 1e6 / files;
	return err;
}

static int measure(const struct sched_options *options,
		   const struct bench_load *load, unsigned writers,
		   unsigned percent, bool fixed, struct measured *m)
{
	unsigned files = (load->sync ? SYNCED_FILES : FILES) /
			 (options->quick ? 4 : 1);
	struct used *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->load = load;
	u->seed = options->seed;
	u->bytes = calloc(1, load->most);
	err = u->bytes ? used_make(options, percent, fixed, u) : -ENOMEM;
	if (!err)
		err = used_write(u, writers, files, m);
	if (!err)
		err = used_read(u, writers, files, m);
	if (u->fs)
		fs_close(u->fs);
	rig_close(&u->rig);
	free(u->bytes);
	free(u);
	return err;
}

static int place_row(const struct sched_options *options,
		     const struct bench_load *load, unsigned writers,
		     unsigned percent)
{
	struct measured fixed, chosen;
	int err = measure(options, load, writers, percent, true, &fixed);

	if (!err)
		err = measure(options, load, writers, percent, false, &chosen);
	if (err)
		return err;
	printf("%-14s %7u %5u%% %8.2f %8.2f %6.1f%% %8.2f %8.2f %6.1f%%\n",
	       load->name, writers, percent, fixed.write_ms, chosen.write_ms,
	       100 * (chosen.write_ms / fixed.write_ms - 1), fixed.read_ms,
	       chosen.read_ms, 100 * (chosen.read_ms / fixed.read_ms - 1));
	fflush(stdout);
	return 0;
}

int sched_place(const struct sched_options *options)
{
	static const unsigned writers[] = { 1, 4, 16 };
	static const unsigned percent[] = { 0, 50, 90 };
	int err = 0;

	printf("ms a file             used        written: fixed, chosen"
	       "     read again\nfile           writers\n");
	for (unsigned l = 0; l < LOADS && !err; l++)
		for (unsigned w = 0; w < 3 && !err; w++)
			for (unsigned p = 0; p < 3 && !err; p++)
				err = place_row(options, &loads[l],
						writers[w], percent[p]);
	return err;
}
