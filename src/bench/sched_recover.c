/*
 * sched_recover.c - how long a mount takes after a crash: a log full of small
 * overwrites, and changes of one inode in each of many leaves, which no root
 * contains.  It also measures how long the tracks of the log take to read at
 * the media rate, and when the first change after the mount is answered.
 *
 * The log gets as full as it may because writes to the data's own places are
 * slowed down, as if others kept the disk busy: logged data is not destaged,
 * and the log cannot be trimmed.  While leaves are changed, writes of nodes are
 * slowed down as well: half of the leaves are those of a checkpoint that does
 * not end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/sort.h"
#include "bench/rig.h"
#include "bench/sched.h"
#include "format/format.h"
#include "fs/fs.h"
#include "fs/mkfs.h"

#define DRIVE "modern"
/* MiB of the file system's memory, which bounds what is changed. */
#define MEMORY_MIB 1024u
#define LEAVES 8000u		/* Most leaves of the tree that are changed. */
#define INODES_PER_LEAF 40u	/* somewhat fewer inodes than fit into a leaf */
/* Files of a directory; bytes of the file that is overwritten; bytes of a write
 * that fills it. */
#define FILES_PER_DIR 4000u
#define DATA_BYTES (256u << 20)
#define CHUNK (1u << 20)
#define FULL_PERCENT 78u	/* transactions may fill the log to 80 per
				 * cent */
#define MAX_OVERWRITES 60000u	/* Most overwrites; the log is full before. */

struct crash {
	struct rig rig;
	struct fs *fs;
	struct fs_options options;
	uint64_t *ino;		/* inode numbers of files, in the order of
				 * creation */
	uint64_t files, data;	/* number of files, and the inode whose data is
				 * overwritten */
	uint64_t state;		/* state of the random numbers */
};

static uint8_t zeros[CHUNK];

static void op_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

/* -ETIMEDOUT: it is not over at that time, and stays under way. */
static int crash_do_until(struct crash *c, struct fs_op *op, uint64_t until_ns)
{
	static bool done;

	done = false;
	op->done = op_done;
	op->owner = &done;
	fs_submit(c->fs, op);
	while (!done) {
		const uint64_t next_ns = fs_run(c->fs, 0);

		if (!done && sim_now_ns(c->rig.sim) >= until_ns)
			return -ETIMEDOUT;
		if (!done)
			rig_pass(&c->rig, next_ns);
	}
	return op->rc;
}

static int crash_do(struct crash *c, struct fs_op *op)
{
	return rig_do(&c->rig, c->fs, op);
}

static int make_file(struct crash *c, uint64_t dir, enum fs_op_type type,
		     uint64_t number, uint64_t *ino)
{
	struct fs_op op = { .type = type, .ino = dir, .mode = 0644 };
	char name[24];
	int err;

	snprintf(name, sizeof(name), "%c%llu", type == FS_MKDIR ? 'd' : 'f',
		 (unsigned long long)number);
	op.name = name;
	err = crash_do(c, &op);
	*ino = op.attr.ino;
	return err;
}

static int make_files(struct crash *c)
{
	uint64_t dir = 1;
	int err = 0;

	for (uint64_t i = 0; i < c->files && !err; i++) {
		if (i % FILES_PER_DIR == 0)
			err = make_file(c, 1, FS_MKDIR, i, &dir);
		if (!err)
			err = make_file(c, dir, FS_MKNOD, i, &c->ino[i]);
	}
	return err;
}

static int write_data(struct crash *c, uint64_t offset, uint64_t n)
{
	struct fs_op op = { .type = FS_WRITE, .ino = c->data, .offset = offset,
			    .size = n, .data = zeros };

	return crash_do(c, &op);
}

static int make_data(struct crash *c)
{
	struct fs_op sync = { .type = FS_SYNCFS, .ino = 1 };
	int err = make_file(c, 1, FS_MKNOD, c->files, &c->data);

	for (uint64_t at = 0; at < DATA_BYTES && !err; at += CHUNK)
		err = write_data(c, at, CHUNK);
	return err ? err : crash_do(c, &sync);
}

static unsigned fill_percent(struct crash *c)
{
	char *text = fs_stats_json(c->fs);
	const char *at = text ? strstr(text, "\"fill_percent\": ") : NULL;
	const unsigned percent = at ? (unsigned)atoi(at + 16) : 0;

	free(text);
	return percent;
}

/* Most extents of the data whose places are made slow. */
#define EXTENTS_MOST 256u
#define SLOW_NS 20000000000ull	/* longer than filling the log takes */

static int slow_writes(struct crash *c, uint64_t first, uint64_t end)
{
	const struct sim_fault slow = {
		.kind = SIM_SLOW, .ops = SIM_WRITES, .k = 1, .first = first,
		.sectors = end - first, .delay_ns = SLOW_NS,
	};

	return end > first ? sim_fault_add(c->rig.sim, &slow) : 0;
}

/* Makes writes to the places of the data take long. */
static int slow_data(struct crash *c)
{
	static struct fs_extent extents[EXTENTS_MOST];
	struct fs_op op = { .type = FS_EXTENTS, .ino = c->data,
			    .buffer = extents, .size = EXTENTS_MOST };
	int err = crash_do(c, &op);

	for (uint64_t i = 0; i < op.result && !err; i++)
		err = slow_writes(c, extents[i].lbn, extents[i].lbn +
				  extents[i].bytes / SECTOR_BYTES);
	return err;
}

static int by_sector(const void *a, const void *b)
{
	const struct super_track *x = a, *y = b;

	return sort_order(x->sector, y->sector);
}

/* Makes all other writes but those to the log take long, so that no checkpoint
 * ends. */
static int slow_nodes(struct crash *c)
{
	struct super super = *fs_super(c->fs);
	uint64_t from = 0;
	int err = 0;

	qsort(super.log, super.log_tracks, sizeof(super.log[0]), by_sector);
	for (unsigned i = 0; i < super.log_tracks && !err; i++) {
		err = slow_writes(c, from, super.log[i].sector);
		from = super.log[i].sector + super.log[i].sectors;
	}
	return err ? err : slow_writes(c, from, super.sectors);
}

/* Overwrites single blocks until the log is full. */
static int fill_log(struct crash *c)
{
	struct fs_op sync = { .type = FS_FSYNC, .ino = c->data };
	int err = slow_data(c);

	for (unsigned i = 0; i < MAX_OVERWRITES && !err; i++) {
		memset(zeros, (int)i, TRAX_BLOCK_BYTES);
		err = write_data(c, rig_random(&c->state) %
				    (DATA_BYTES / TRAX_BLOCK_BYTES) *
				    TRAX_BLOCK_BYTES, TRAX_BLOCK_BYTES);
		if (i % 16 != 15 || err)
			continue;
		err = crash_do(c, &sync);
		if (i % 256 == 255 && fill_percent(c) >= FULL_PERCENT)
			break;
	}
	return err;
}

/* Changes one inode in each leaf, in random order, until memory takes no more
 * changed leaves: then *leaves is less. */
static int touch_leaves(struct crash *c, uint64_t *leaves)
{
	const uint64_t begin_ns = sim_now_ns(c->rig.sim);
	struct fs_op sync = { .type = FS_FSYNC };
	int err = slow_nodes(c);
	uint64_t i;

	for (i = 0; i < *leaves && !err; i++) {
		const uint64_t leaf = (i * 7919) % *leaves;
		static struct fs_op op;

		op = (struct fs_op){
			.type = FS_SETATTR, .flags = FS_SET_MODE,
			.ino = c->ino[leaf * INODES_PER_LEAF],
			.attr.mode = 0100600,
		};

		sync.ino = op.ino;
		err = crash_do_until(c, &op, begin_ns + SLOW_NS / 2);
		if (err == -ETIMEDOUT)
			break;
	}
	*leaves = i;
	return err == -ETIMEDOUT ? 0 : err ? err : crash_do(c, &sync);
}

static int crash_mkfs(struct crash *c, const struct sched_options *options)
{
	const struct rig_options rig_options = {
		.drive = options->drive ? options->drive : DRIVE,
		.seed = options->seed, .blind = true,
	};
	const struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	int err = rig_open(&rig_options, &c->rig);

	if (err)
		return err;
	queue_close(c->rig.queue);
	c->rig.queue = NULL;
	err = mkfs_plan(c->rig.env, &c->rig.disk->limits, &mkfs, &plan);
	if (!err)
		err = mkfs_write(c->rig.env, c->rig.disk, &mkfs, &plan);
	return err ? err : fs_open(c->rig.env, c->rig.disk, &c->options,
				   &c->fs);
}

static double seconds_of_log(const struct crash *c)
{
	const struct super *super = fs_super(c->fs);
	uint64_t sectors = 0;

	for (unsigned i = 0; i < super->log_tracks; i++)
		sectors += super->log[i].sectors;
	return (double)sectors / rig_media_rate(&c->rig);
}

static int crash_measure(struct crash *c, uint64_t leaves)
{
	const unsigned percent = fill_percent(c);
	const double log_seconds = seconds_of_log(c);
	struct sim *sim = c->rig.sim;
	uint64_t begin_ns, mounted_ns, reads, ino;
	int err = sim_power_cut(sim, SIM_CUT_DROP, 1);

	fs_abandon(c->fs);
	c->fs = NULL;
	sim_restart(sim);
	sim_fault_clear(sim);
	begin_ns = sim_now_ns(sim);
	reads = sim_counts(sim)->reads;
	if (!err)
		err = fs_open(c->rig.env, c->rig.disk, &c->options, &c->fs);
	if (err)
		return err;
	mounted_ns = sim_now_ns(sim);
	reads = sim_counts(sim)->reads - reads;
	err = make_file(c, 1, FS_MKNOD, c->files + 1, &ino);
	printf("%6llu %5u %% %9.2f %10llu %17.2f %14.2f\n",
	       (unsigned long long)leaves, percent,
	       (double)(mounted_ns - begin_ns) / 1e9,
	       (unsigned long long)reads, log_seconds,
	       (double)(sim_now_ns(sim) - begin_ns) / 1e9);
	return err;
}

static int crash_row(const struct sched_options *options, uint64_t leaves)
{
	struct crash c = { .files = leaves * INODES_PER_LEAF + 1,
			   .state = options->seed };
	int err;

	c.options.memory_bytes = (options->memory_mib ? options->memory_mib :
				  MEMORY_MIB) << 20;
	c.ino = calloc(c.files, sizeof(*c.ino));
	err = c.ino ? crash_mkfs(&c, options) : -ENOMEM;
	if (!err)
		err = make_files(&c);
	if (!err)
		err = make_data(&c);
	if (!err)
		err = fill_log(&c);
	if (!err)
		err = touch_leaves(&c, &leaves);
	if (!err)
		err = crash_measure(&c, leaves);
	if (c.fs)
		fs_abandon(c.fs);
	free(c.ino);
	rig_close(&c.rig);
	return err;
}

int sched_recover(const struct sched_options *options)
{
	const uint64_t most = options->requests ? options->requests : LEAVES;
	int err = 0;

	printf("a mount after a crash\n"
	       "leaves     log   seconds      reads  log at the rate  "
	       "first change\n");
	for (uint64_t leaves = most / 16; leaves <= most && !err; leaves *= 4)
		err = crash_row(options, leaves);
	if (err)
		msg_error("recover: %s", strerror(-err));
	return err;
}
