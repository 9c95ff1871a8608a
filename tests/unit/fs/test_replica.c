/*
 * test_replica.c - copies in free space: the table under all that changes a
 * file, room for users' data, damage.  Each unmount is followed by a check that
 * compares every copy with its original.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "base/csum.h"
#include "fs/op/errors.h"
#include "fs/mkfs.h"
#include "fs/replica/node_replicas.h"
#include "fs/data/file_data.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"
#include "fs/replica/replica_readahead.h"
#include "fs/replica/access_trace.h"
#include "fs/replica/copy_limit.h"
#include "replicate/replica_choice.h"
#include "sched/freeblock/freeblock.h"
#include "sched/head/head.h"
#include "tests/rig/doubt.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"
#include "tree/tree_internal.h"

#define BLOCK 4096u
#define FILES 6u
#define FILE_BLOCKS 160u
#define APART 24u
#define FAR_SECTOR 120000u	/* from the files, near the copies of one */

struct file_model {
	uint64_t ino, size;
	uint8_t data[FILE_BLOCKS * BLOCK];
};

static struct file_model models[FILES];
static uint8_t buffer[1 << 20];
static uint64_t made;
static uint64_t near_sector;	/* where copies go */

/* ---- Operations ---- */

static int do_write(struct rig *rig, uint64_t ino, uint64_t offset,
		    const void *data, uint64_t n)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .offset = offset,
			    .size = n, .data = data };

	return rig_do(rig, &op);
}

static int do_read(struct rig *rig, uint64_t ino, uint64_t offset, void *data,
		   uint64_t n)
{
	struct fs_op op = { .type = FS_READ, .ino = ino, .offset = offset,
			    .size = n, .buffer = data };
	int rc = rig_do(rig, &op);

	return rc ? rc : (int)op.result;
}

static int do_fsync(struct rig *rig, uint64_t ino)
{
	struct fs_op op = { .type = FS_FSYNC, .ino = ino };

	return rig_do(rig, &op);
}

static int do_truncate(struct rig *rig, uint64_t ino, uint64_t size)
{
	struct fs_op op = { .type = FS_SETATTR, .ino = ino,
			    .flags = FS_SET_SIZE, .attr.size = size };

	return rig_do(rig, &op);
}

static int do_punch(struct rig *rig, uint64_t ino, uint64_t offset, uint64_t n)
{
	struct fs_op op = {
		.type = FS_FALLOCATE, .ino = ino, .offset = offset, .size = n,
		.flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	};

	return rig_do(rig, &op);
}

static uint64_t do_create(struct rig *rig, const char *name)
{
	uint64_t ino;

	ck_assert_int_eq(rig_mknod(rig, TRAX_ROOT_INO, name, S_IFREG | 0644,
				   &ino), 0);
	return ino;
}

static void noise(void *data, size_t bytes, uint64_t *rng)
{
	uint64_t *p = data;
	size_t i;

	for (i = 0; i < bytes / sizeof(*p); i++)
		p[i] = test_random(rng);
}

/* ---- Copies ---- */

static void on_made(void *arg, uint64_t copies)
{
	*(int64_t *)arg = (int64_t)copies;
}

/* One turn, and time if nothing but time can bring it on. */
static void turn(struct rig *rig)
{
	uint64_t next = fs_run(rig->fs, 1);
	uint64_t now = sim_now_ns(rig->sim);

	if (sim_outstanding(rig->sim) == 0 && next != UINT64_MAX && next > now)
		sim_advance(rig->sim, next - now);
}

static uint64_t make(struct rig *rig, const struct replica_want *want,
		     size_t n)
{
	int64_t copies = -1;
	unsigned turns = 0;

	ck_assert_int_eq(replica_make(rig->fs, want, n, near_sector, false,
				      on_made, &copies), 0);
	while (copies < 0) {
		ck_assert_uint_lt(turns++, 100000);
		turn(rig);
	}
	return (uint64_t)copies;
}

static uint64_t make_one(struct rig *rig, uint64_t ino, uint64_t block,
			 uint64_t blocks)
{
	const struct replica_want want = { ino, block, blocks };

	return make(rig, &want, 1);
}

/* All regions go, and their room is free. */
static void reclaim_all(struct rig *rig)
{
	unsigned turns = 0;

	replica_reclaim(rig->fs, UINT64_MAX);
	while (!replicas_idle(rig->fs->replicas)) {
		ck_assert_uint_lt(turns++, 100000);
		turn(rig);
	}
	ck_assert_uint_eq(regions_count(rig->fs->replicas->regions), 0);
}

static void open_with(struct rig *rig, uint64_t mib, uint64_t seed,
		      unsigned replicas)
{
	rig_open(rig, mib, seed);
	rig->options.replicas = replicas;
	rig_remount(rig);
}

static struct fs_statfs do_statfs(struct rig *rig)
{
	struct fs_op op = { .type = FS_STATFS, .ino = TRAX_ROOT_INO };

	ck_assert_int_eq(rig_do(rig, &op), 0);
	return op.statfs;
}

/* ---- Tests ---- */

static void on_answer(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

START_TEST(copies_come_and_go)
{
	struct fs_statfs before, after;
	struct replica_stats *stats;
	uint64_t rng = 1, ino;
	struct rig rig;

	open_with(&rig, 64, 1, 1);
	ino = do_create(&rig, "a");
	noise(buffer, sizeof(buffer), &rng);
	ck_assert_int_eq(do_write(&rig, ino, 0, buffer, 400000), 0);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	before = do_statfs(&rig);
	ck_assert_uint_eq(make_one(&rig, ino, 0, 98), 7);
	after = do_statfs(&rig);
	ck_assert_uint_eq(before.free, after.free);
	ck_assert_uint_eq(regions_count(rig.fs->replicas->regions), 1);
	stats = &rig.fs->replicas->stats;
	ck_assert_uint_eq(stats->made_bytes, 98 * BLOCK);

	/* They outlive an unmount and a crash. */
	rig_remount(&rig);
	ck_assert_uint_eq(regions_count(rig.fs->replicas->regions), 1);
	rig_sync(&rig);
	rig_crash(&rig);
	ck_assert_uint_eq(regions_count(rig.fs->replicas->regions), 1);
	after = do_statfs(&rig);
	ck_assert_uint_eq(before.free, after.free);

	/* Little and much is overwritten, cut, punched. */
	stats = &rig.fs->replicas->stats;
	ck_assert_int_eq(do_write(&rig, ino, 5 * BLOCK, buffer, 100), 0);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	ck_assert_uint_eq(stats->dropped, 1);
	ck_assert_int_eq(do_write(&rig, ino, 0, buffer, 40 * BLOCK), 0);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	ck_assert_uint_eq(stats->dropped, 3);
	rig_remount(&rig);
	ck_assert_int_eq(do_punch(&rig, ino, 50 * BLOCK, BLOCK), 0);
	ck_assert_int_eq(do_truncate(&rig, ino, 70 * BLOCK + 5), 0);
	rig_remount(&rig);
	reclaim_all(&rig);
	rig_remount(&rig);
	/* The piece with the hole has none. */
	ck_assert_uint_eq(make_one(&rig, ino, 0, 71), 4);
	ck_assert_int_eq(rig_unlink(&rig, TRAX_ROOT_INO, "a"), 0);
	rig_close(&rig);
}
END_TEST

/* Two tracks of copies: reads go on from one to the next. */
START_TEST(copies_serve_across_tracks)
{
	struct replica_stats *stats;
	uint64_t rng = 1, ino, i;
	struct rig rig;

	open_with(&rig, 64, 1, 1);
	rig.options.memory_bytes = 128 << 20;
	rig_remount(&rig);
	ino = do_create(&rig, "a");
	noise(buffer, sizeof(buffer), &rng);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(do_write(&rig, ino, i * sizeof(buffer), buffer,
					  sizeof(buffer)), 0);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	near_sector = FAR_SECTOR;
	ck_assert_uint_eq(make_one(&rig, ino, 0, 512), 32);
	near_sector = 0;
	ck_assert_uint_gt(regions_count(rig.fs->replicas->regions), 1);
	rig_remount(&rig);
	stats = &rig.fs->replicas->stats;
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(do_read(&rig, ino, i * sizeof(buffer), buffer,
					 sizeof(buffer)), sizeof(buffer));
	ck_assert_uint_eq(stats->used_bytes, 2 * sizeof(buffer));
	rig_close(&rig);
}
END_TEST

#define REGIONS_MOST 4u

/* The table of regions has a budget: those of least worth give way, also when
 * a mount with more memory has made more. */
START_TEST(regions_have_a_budget)
{
	struct replica_regions *regions;
	uint64_t rng = 1, ino[APART], full = 0;
	struct rig rig;
	char name[8];
	unsigned i;

	open_with(&rig, 128, 1, 1);
	regions = rig.fs->replicas->regions;
	regions_set_most(regions, REGIONS_MOST);
	noise(buffer, sizeof(buffer), &rng);
	for (i = 0; i < APART; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ino[i] = do_create(&rig, name);
		ck_assert_int_eq(do_write(&rig, ino[i], 0, buffer,
					  16 * BLOCK), 0);
		ck_assert_int_eq(do_fsync(&rig, ino[i]), 0);
		near_sector = 130000 + i * 4096;
		full += make_one(&rig, ino[i], 0, 16) == 0;
		rig_settle(&rig);
		ck_assert_uint_le(regions_count(regions), REGIONS_MOST);
	}
	near_sector = 0;
	ck_assert_uint_gt(full, 0);
	ck_assert_uint_lt(full, APART);
	regions_set_most(regions, 1);
	for (i = 0; i < 8; i++) {
		sim_advance(rig.sim, 2000000000);
		turn(&rig);
		rig_settle(&rig);
	}
	ck_assert_uint_le(regions_count(regions), 1);
	for (i = 0; i < APART; i++)
		ck_assert_int_eq(do_read(&rig, ino[i], 0, buffer, 16 * BLOCK),
				 16 * BLOCK);
	rig_close(&rig);
}
END_TEST

/* Files with copies that lie apart, all the same, in `buffer`. */
static void open_apart(struct rig *rig, uint64_t *ino)
{
	uint64_t rng = 1;
	char name[8];
	unsigned i;

	open_with(rig, 128, 16, 1);
	noise(buffer, sizeof(buffer), &rng);
	for (i = 0; i < APART; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ino[i] = do_create(rig, name);
		ck_assert_int_eq(do_write(rig, ino[i], 0, buffer,
					  sizeof(buffer)), 0);
		ck_assert_int_eq(do_fsync(rig, ino[i]), 0);
		near_sector = 130000 + i * 4096;
		ck_assert_uint_eq(make_one(rig, ino[i], 0, 256), 16);
	}
	near_sector = 0;
	rig_remount(rig);
}

/* More copies apart at once than there is memory for: the rest is read from
 * the originals. */
START_TEST(more_runs_than_memory)
{
	struct fs_op read[APART];
	bool done[APART] = { false };
	uint64_t ino[APART];
	struct rig rig;
	unsigned i;

	open_apart(&rig, ino);
	replica_ra_events.done(rig.fs, &(struct read_done){ .sector = 1 });
	for (i = 0; i < APART; i++) {
		read[i] = (struct fs_op){
			.type = FS_READ, .ino = ino[i], .size = BLOCK,
			.buffer = models[0].data + i * BLOCK,
			.done = on_answer, .owner = &done[i],
		};
		fs_submit(rig.fs, &read[i]);
	}
	for (i = 0; i < APART; i++) {
		while (!done[i])
			turn(&rig);
		ck_assert_int_eq(read[i].rc, 0);
		ck_assert_mem_eq(models[0].data + i * BLOCK, buffer, BLOCK);
	}
	ck_assert_uint_gt(replica_ra_stats(rig.fs)->loads, 1);
	rig_close(&rig);
}
END_TEST

/* Reads at random among replicas find nothing in runs that were read for
 * others: after a few of them no more runs are read than it takes to notice a
 * change. */
START_TEST(random_reads_read_no_runs)
{
	const struct replica_ra_stats *stats;
	uint64_t rng = 7, ino[APART], loads;
	struct rig rig;
	unsigned i;

	open_apart(&rig, ino);
	stats = replica_ra_stats(rig.fs);
	for (i = 0, loads = 0; i < 400; i++) {
		if (i == 100)
			loads = stats->loads;
		replica_ra_events.done(rig.fs, &(struct read_done){
			.sector = 1 });
		ck_assert_int_eq(do_read(&rig, ino[test_random(&rng) % APART],
					 test_random(&rng) % 256 * BLOCK,
					 models[0].data, BLOCK), BLOCK);
	}
	/* Chance lets some find their data in memory. */
	ck_assert_uint_lt(stats->loads - loads, 200);
	rig_close(&rig);
}
END_TEST

static void compare(struct rig *rig, const struct file_model *m)
{
	int n = do_read(rig, m->ino, 0, buffer, sizeof(buffer));

	ck_assert_int_eq(n, (int)m->size);
	ck_assert_mem_eq(buffer, m->data, m->size);
}

static void random_write(struct rig *rig, struct file_model *m, uint64_t *rng)
{
	uint64_t offset = test_random(rng) % (FILE_BLOCKS * BLOCK);
	uint64_t n = 1 + test_random(rng) % (test_random(rng) % 3 ? 9000 :
					     FILE_BLOCKS * BLOCK);

	if (n > FILE_BLOCKS * BLOCK - offset)
		n = FILE_BLOCKS * BLOCK - offset;
	noise(buffer, (n + 7) / 8 * 8, rng);
	ck_assert_int_eq(do_write(rig, m->ino, offset, buffer, n), 0);
	if (offset > m->size)
		memset(m->data + m->size, 0, offset - m->size);
	memcpy(m->data + offset, buffer, n);
	if (offset + n > m->size)
		m->size = offset + n;
}

static void random_cut(struct rig *rig, struct file_model *m, uint64_t *rng)
{
	uint64_t at = test_random(rng) % (FILE_BLOCKS * BLOCK), n;

	if (test_random(rng) % 2) {
		ck_assert_int_eq(do_truncate(rig, m->ino, at), 0);
		if (at > m->size)
			memset(m->data + m->size, 0, at - m->size);
		m->size = at;
		return;
	}
	n = 1 + test_random(rng) % 100000;
	ck_assert_int_eq(do_punch(rig, m->ino, at, n), 0);
	if (at < m->size)
		memset(m->data + at, 0, n < m->size - at ? n : m->size - at);
}

static void random_copies(struct rig *rig, uint64_t *rng)
{
	struct replica_want want[12];
	unsigned i;

	for (i = 0; i < 12; i++)
		want[i] = (struct replica_want){
			models[test_random(rng) % FILES].ino,
			test_random(rng) % FILE_BLOCKS,
			1 + test_random(rng) % 40,
		};
	/* Sometimes it is only begun. */
	if (test_random(rng) % 3)
		made += make(rig, want, 12);
	else
		replica_make(rig->fs, want, 12, 0, false, NULL, NULL);
}

static void random_step(struct rig *rig, uint64_t *rng)
{
	struct file_model *m = &models[test_random(rng) % FILES];
	unsigned i;

	switch (test_random(rng) % 16) {
	default:
		random_write(rig, m, rng);
		break;
	case 0:
	case 1:
		random_cut(rig, m, rng);
		break;
	case 2:
	case 3:
	case 4:
		while (!replicas_idle(rig->fs->replicas))
			turn(rig);
		random_copies(rig, rng);
		break;
	case 5:
		replica_reclaim(rig->fs, 1 + test_random(rng) % 5000);
		break;
	case 6:
	case 7:
		ck_assert_int_eq(do_fsync(rig, m->ino), 0);
		break;
	case 8:
		rig_remount(rig);
		break;
	case 9:
		rig_sync(rig);
		rig_crash(rig);
		for (i = 0; i < FILES; i++)
			compare(rig, &models[i]);
		break;
	case 10:
		compare(rig, m);
		break;
	}
}

START_TEST(random_agrees_with_the_model)
{
	uint64_t rng = (uint64_t)_i;
	char name[8] = "f0";
	struct rig rig;
	unsigned i;

	open_with(&rig, 64, (uint64_t)_i, 1 + (unsigned)_i % 3);
	for (i = 0; i < FILES; i++) {
		name[1] = (char)('0' + i);
		models[i].ino = do_create(&rig, name);
		models[i].size = 0;
	}
	for (i = 0; i < 250; i++)
		random_step(&rig, &rng);
	for (i = 0; i < FILES; i++)
		compare(&rig, &models[i]);
	ck_assert_uint_gt(made, 20);
	rig_close(&rig);
}
END_TEST

/* Writes until the disk is full; how much it took. */
static uint64_t fill(struct rig *rig, bool copies)
{
	uint64_t ino = do_create(rig, "copied"), rng = 3, taken = 0;
	int rc;

	noise(buffer, sizeof(buffer), &rng);
	ck_assert_int_eq(do_write(rig, ino, 0, buffer, sizeof(buffer)), 0);
	ck_assert_int_eq(do_fsync(rig, ino), 0);
	if (copies) {
		struct replica_want want[24];
		unsigned i;

		for (i = 0; i < 24; i++)
			want[i] = (struct replica_want){ ino, 0, 256 };
		for (i = 0; i < 24; i++)
			make(rig, want, 1);
		ck_assert_uint_gt(regions_count(rig->fs->replicas->regions),
				  15);
	}
	ino = do_create(rig, "filler");
	while ((rc = do_write(rig, ino, taken, buffer, sizeof(buffer))) == 0)
		taken += sizeof(buffer);
	ck_assert_int_eq(rc, -ENOSPC);
	while ((rc = do_write(rig, ino, taken, buffer, BLOCK)) == 0)
		taken += BLOCK;
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_int_eq(do_fsync(rig, ino), 0);
	return taken;
}

START_TEST(copies_never_cost_room)
{
	uint64_t with, without;
	struct rig rig;

	open_with(&rig, 64, 5, 1);
	without = fill(&rig, false);
	rig_close(&rig);
	open_with(&rig, 64, 5, 1);
	with = fill(&rig, true);
	ck_assert_uint_gt(rig.fs->replicas->stats.reclaimed, 10);
	rig_close(&rig);
	/* Nodes of the table are all the difference there may be. */
	ck_assert_uint_ge(with, without);
}
END_TEST

/* ---- Gaps ---- */

#define KNOWN_SECTORS (96u << 11)
#define KNOWN_CHUNK (64u << 10)
#define NODE_BLOCKS (TRAX_NODE_BYTES / BLOCK)
#define OTHER_BLOCKS 16u	/* room that is neither data nor a node track */

struct known {
	struct rig rig;
	struct doubt doubt;
	struct head *head;
};

/* A disk of which it is known where the head is. */
static void open_known(struct known *known)
{
	struct sim_options options = { .seed = 5 };
	struct mkfs_options mkfs = { 0 };
	struct rig *rig = &known->rig;
	struct mkfs_plan plan;
	struct disk *disk;
	struct env *env;

	memset(known, 0, sizeof(*known));
	doubt_init(&known->doubt, "hp-c2247a", KNOWN_SECTORS, DOUBT_NONE);
	rig->sim = sim_new(known->doubt.is, KNOWN_SECTORS, &options);
	disk = sim_disk(rig->sim);
	env = sim_env(rig->sim);
	mkfs.geom = known->doubt.geom;
	ck_assert_int_eq(mkfs_plan(env, &disk->limits, &mkfs, &plan), 0);
	ck_assert_int_eq(mkfs_write(env, disk, &mkfs, &plan), 0);
	known->head = doubt_head(&known->doubt, env);
	doubt_learn(env, disk, known->head, 5);
	rig->options.memory_bytes = 64 << 20;
	rig->options.replicas = 1;
	rig->options.head = known->head;
	ck_assert_int_eq(fs_open(env, disk, &rig->options, &rig->fs), 0);
}

static void close_known(struct known *known)
{
	rig_close(&known->rig);
	head_close(known->head);
	doubt_fini(&known->doubt);
}

/* The last region of the disk may be the hot one. */
START_TEST(hot_at_the_end)
{
	struct known known;
	struct rig *rig = &known.rig;
	uint64_t rng = 3, ino, i;

	open_known(&known);
	noise(buffer, sizeof(buffer), &rng);
	ino = do_create(rig, "a");
	ck_assert_int_eq(do_write(rig, ino, 0, buffer, sizeof(buffer)), 0);
	rig_remount(rig);
	for (i = 0; i < 64; i++)
		heat_count((struct heat *)access_trace_heat(rig->fs),
			   KNOWN_SECTORS - 8, 8);
	ck_assert_uint_ge(heat_hot(access_trace_heat(rig->fs)) +
				  HEAT_REGION_SECTORS,
			  KNOWN_SECTORS);
	for (i = 0; i < 8; i++)
		ck_assert_int_eq(do_read(rig, ino, (i * 37 % 64) * 4 * BLOCK,
					 buffer, BLOCK), BLOCK);
	close_known(&known);
}
END_TEST

/* Copies as for users who are never idle. */
static void make_while_busy(struct rig *rig, uint64_t ino)
{
	const struct replica_want want = { ino, 0, 256 };

	rig->fs->replicas->next_ns = 0;
	if (!rig->fs->replicas->maker)
		ck_assert_int_eq(replica_make(rig->fs, &want, 1, 0, true, NULL,
					      NULL), 0);
}

static uint64_t node_blocks(const struct rig *rig)
{
	return space_slots_total(tree_space(rig->fs->tree)) * NODE_BLOCKS;
}

/* Writes until the disk is full, while copies of another file are made; how
 * much it took, with the node tracks. Only data and node tracks take room. */
static uint64_t fill_known(struct known *known, bool copies)
{
	struct rig *rig = &known->rig;
	uint64_t rng = 3, ino, copied, taken = 0, step = KNOWN_CHUNK, room;
	int rc = 0;

	noise(buffer, sizeof(buffer), &rng);
	copied = do_create(rig, "copied");
	ck_assert_int_eq(do_write(rig, copied, 0, buffer, sizeof(buffer)), 0);
	ck_assert_int_eq(do_fsync(rig, copied), 0);
	ino = do_create(rig, "filler");
	room = do_statfs(rig).free + node_blocks(rig);
	while (step >= BLOCK) {
		if (copies && taken / KNOWN_CHUNK % 4 == 0) {
			ck_assert_int_eq(do_read(rig, copied, 0, buffer,
						 sizeof(buffer)),
					 sizeof(buffer));
			make_while_busy(rig, copied);
		}
		rc = do_write(rig, ino, taken, buffer, step);
		ck_assert(rc == 0 || rc == -ENOSPC);
		if (rc)
			step = step > BLOCK ? BLOCK : 0;
		else
			taken += step;
		rc = do_fsync(rig, ino);
		ck_assert(rc == 0 || rc == -ENOSPC);
		ck_assert_uint_ge(do_statfs(rig).free + node_blocks(rig) +
				  taken / BLOCK + OTHER_BLOCKS, room);
	}
	return taken + node_blocks(rig) * BLOCK;
}

/* A disk gets as full, and has as much room until then, while copies are made
 * for users who are never idle; what is there is right (rig_close). */
START_TEST(copies_for_the_busy_never_cost_room)
{
	uint64_t with, without;
	struct known known;

	open_known(&known);
	without = fill_known(&known, false);
	close_known(&known);
	open_known(&known);
	with = fill_known(&known, true);
	/* How many are made until room is short depends on where data lies. */
	ck_assert_uint_gt(known.rig.fs->replicas->stats.made, 5);
	ck_assert_uint_gt(known.rig.fs->replicas->stats.reclaimed, 0);
	close_known(&known);
	ck_assert_uint_ge(with, without);
}
END_TEST

/* ---- Learning ---- */

#define LATENCY_NS 3000000u
#define READS 60u
#define STRIDE 32u

/* As open_with, but the disk takes its time. */
static void open_slow(struct rig *rig, uint64_t mib, unsigned replicas)
{
	struct sim_options options = { .seed = 3, .latency_ns = LATENCY_NS };
	struct mkfs_options mkfs = { 0 };
	struct mkfs_plan plan;
	struct disk *disk;

	memset(rig, 0, sizeof(*rig));
	rig->options.memory_bytes = 64 << 20;
	rig->options.replicas = replicas;
	rig->sim = sim_new(NULL, mib << 11, &options);
	disk = sim_disk(rig->sim);
	ck_assert_int_eq(mkfs_plan(sim_env(rig->sim), &disk->limits, &mkfs,
				   &plan), 0);
	ck_assert_int_eq(mkfs_write(sim_env(rig->sim), disk, &mkfs, &plan), 0);
	ck_assert_int_eq(fs_open(sim_env(rig->sim), disk, &rig->options,
				 &rig->fs), 0);
}

static void pass_time(struct rig *rig, uint64_t seconds)
{
	uint64_t end = sim_now_ns(rig->sim) + seconds * 1000000000ull;

	while (sim_now_ns(rig->sim) < end) {
		uint64_t next = fs_run(rig->fs, 1);
		uint64_t now = sim_now_ns(rig->sim);

		if (sim_outstanding(rig->sim) || next <= now)
			continue;
		next = next < end ? next : end;
		if (next > now)
			sim_advance(rig->sim, next - now);
	}
}

/* Blocks here and there in a file, in an order that says nothing. */
static uint64_t scattered_file(struct rig *rig)
{
	uint64_t ino = do_create(rig, "scattered"), rng = 5;
	unsigned i;

	for (i = 0; i < READS; i++) {
		noise(buffer, BLOCK, &rng);
		ck_assert_int_eq(do_write(rig, ino, (uint64_t)i * STRIDE *
					  BLOCK, buffer, BLOCK), 0);
		ck_assert_int_eq(do_fsync(rig, ino), 0);
	}
	return ino;
}

static uint64_t read_scattered(struct rig *rig, uint64_t ino)
{
	uint64_t sum = 0;
	unsigned i, k;

	for (i = 0; i < READS; i++) {
		k = i * 37 % READS;
		ck_assert_int_eq(do_read(rig, ino, (uint64_t)k * STRIDE *
					 BLOCK, buffer, BLOCK), BLOCK);
		sum = sum * 31 + csum(buffer, BLOCK);
	}
	return sum;
}

/* The same in two mounts: it comes again. */
static uint64_t read_scattered_twice(struct rig *rig, uint64_t ino)
{
	uint64_t sum = read_scattered(rig, ino);

	rig_remount(rig);
	ck_assert_uint_eq(regions_count(rig->fs->replicas->regions), 0);
	ck_assert_uint_eq(read_scattered(rig, ino), sum);
	return sum;
}

static uint64_t disk_reads(const struct rig *rig)
{
	return sim_counts(rig->sim)->reads;
}

/* What is read apart again is copied together when it is quiet, and then read
 * in a few accesses; what was learned outlives the mount. */
START_TEST(learns_what_is_read_together)
{
	uint64_t ino, sum, before, first, second;
	struct rig rig;

	open_slow(&rig, 64, 1);
	ino = scattered_file(&rig);
	rig_remount(&rig);
	before = disk_reads(&rig);
	sum = read_scattered(&rig, ino);
	first = disk_reads(&rig) - before;
	pass_time(&rig, 5);
	ck_assert_uint_eq(rig.fs->replicas->stats.made, 0);
	rig_remount(&rig);
	ck_assert_uint_eq(read_scattered(&rig, ino), sum);
	pass_time(&rig, 5);
	ck_assert_uint_ge(rig.fs->replicas->stats.made, READS - 2);
	rig_remount(&rig);
	before = disk_reads(&rig);
	ck_assert(read_scattered(&rig, ino) == sum);
	second = disk_reads(&rig) - before;
	ck_assert_uint_ge(rig.fs->replicas->stats.used, READS - 2);
	ck_assert_uint_lt(second * 3, first);
	/* Nothing is left to be learned. */
	pass_time(&rig, 5);
	ck_assert_uint_le(rig.fs->replicas->stats.made, 2);
	rig_close(&rig);
}
END_TEST

/* A stream reads on each second, and rests: so long nothing is copied. */
START_TEST(nothing_is_copied_beside_a_stream)
{
	uint64_t ino, video, i;
	struct rig rig;

	open_slow(&rig, 64, 1);
	ino = scattered_file(&rig);
	video = do_create(&rig, "video");
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(do_write(&rig, video, i * 65536, buffer,
					  65536), 0);
	rig_remount(&rig);
	ck_assert_str_eq(copies_why_not(rig.fs),
			 "too little has been read");
	read_scattered(&rig, ino);
	rig_remount(&rig);
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(do_read(&rig, video, i * 65536, buffer,
					 65536), 65536);
		pass_time(&rig, 1);
		if (i == 10)
			read_scattered(&rig, ino);
	}
	ck_assert_uint_eq(rig.fs->replicas->stats.made, 0);
	ck_assert_str_eq(copies_why_not(rig.fs),
			 "streams are being read");
	/* Nor is what was read meanwhile copied afterwards. */
	pass_time(&rig, 20);
	ck_assert_uint_eq(rig.fs->replicas->stats.made, 0);
	rig_remount(&rig);
	ck_assert_uint_eq(regions_count(rig.fs->replicas->regions), 0);
	read_scattered(&rig, ino);
	pass_time(&rig, 5);
	ck_assert_uint_ge(rig.fs->replicas->stats.made, READS - 2);
	rig_close(&rig);
}
END_TEST

/* A day has had its copies: nothing is copied, and nobody tries again. */
START_TEST(a_day_has_its_copies)
{
	uint64_t ino, next_ns;
	struct rig rig;

	open_slow(&rig, 64, 1);
	ino = scattered_file(&rig);
	rig_remount(&rig);
	read_scattered_twice(&rig, ino);
	rig.fs->replicas->stats.made_bytes += 1ull << 30;
	pass_time(&rig, 5);
	ck_assert_uint_eq(rig.fs->replicas->stats.made, 0);
	ck_assert_str_eq(copies_why_not(rig.fs),
			 "as many as may be in a day have been made");
	next_ns = fs_run(rig.fs, 0);
	ck_assert_uint_gt(next_ns, sim_now_ns(rig.sim));
	/* The first read of the next day begins it. */
	pass_time(&rig, 86400);
	ck_assert_int_eq(do_read(&rig, ino, 0, buffer, BLOCK), BLOCK);
	pass_time(&rig, 5);
	ck_assert_uint_ge(rig.fs->replicas->stats.made, READS - 2);
	rig_close(&rig);
}
END_TEST

static uint64_t way_10ms(void *arg, uint64_t from, uint64_t to)
{
	(void)arg;
	return from == to ? 0 : 10000000;
}

static uint64_t transfer_1us(void *arg, uint64_t sectors)
{
	(void)arg;
	return sectors * 1000;
}

/* All that has been read is judged, in small steps. */
static size_t choose(const struct heat *heat, struct replica_choice *choices,
		     size_t most, uint64_t *saving)
{
	const struct replica_choice_cost cost = {way_10ms, transfer_1us, NULL};
	struct replica_chooser *chooser =
		replica_chooser_new(heat, 0, heat_end(heat), most);
	const struct replica_choice *found;
	size_t n;

	ck_assert_ptr_nonnull(chooser);
	while (!replica_chooser_step(chooser, &cost))
		;
	n = replica_chooser_get(chooser, &found, saving);
	memcpy(choices, found, n * sizeof(*found));
	replica_chooser_free(chooser);
	return n;
}

/* Reads that overlap are chosen block by block, each once, in order. */
START_TEST(blocks_are_chosen_once)
{
	struct replica_choice choices[64];
	struct heat *heat;
	uint64_t saving, blocks = 0;
	unsigned i;
	size_t n;

	ck_assert_int_eq(heat_new(1 << 24, &heat), 0);
	for (i = 0; i < 40; i++)
		heat_add(heat, &(struct heat_read){
			.ino = 1 + i % 2, .block = i / 2 * 4, .blocks = 6,
			.sector = 100000 * (1 + i * 7 % 40), .wait_us = 10000,
			.begin = !i,
		});
	n = choose(heat, choices, 64, &saving);
	ck_assert_uint_eq(n, 40);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(choices[i].ino, 1 + i % 2);
		ck_assert_uint_eq(choices[i].block, i < 2 ? 0 : i / 2 * 4 + 2);
		blocks += choices[i].blocks;
	}
	ck_assert_uint_eq(blocks, 2 * (19 * 4 + 6));
	ck_assert_uint_gt(saving, 0);
	heat_free(heat);
}
END_TEST

/* What is read only once is not copied, nor what was read long ago. */
START_TEST(what_comes_again_is_chosen)
{
	struct replica_choice choices[64];
	struct heat *heat;
	uint64_t saving;
	unsigned i;

	ck_assert_int_eq(heat_new(1 << 24, &heat), 0);
	for (i = 0; i < HEAT_READS + 80; i++) {
		if (i == 40 || i == 80)
			ck_assert_uint_eq(choose(heat, choices, 64, &saving),
					  i == 80 ? 40 : 0);
		heat_add(heat, &(struct heat_read){
			.ino = i < 80 ? 1 + i % 40 : 1, .blocks = 1,
			.block = i < 80 ? 0 : i - 40, .begin = i % 40 == 0,
			.sector = i < 80 ? 100000 * (1 + i * 7 % 40) :
					   1000000 + 8 * i,
			.wait_us = 10000,
		});
	}
	ck_assert_uint_eq(heat_times(heat, &(struct heat_read){ .ino = 5 }), 0);
	ck_assert_uint_eq(heat_pairs(heat, &(struct heat_read){ .ino = 5 },
				     &(struct heat_read){ .ino = 6 }), 0);
	heat_free(heat);
}
END_TEST

/* Files beside each other, reads of each that are judged together, and blocks
 * of a read. */
static const struct {
	unsigned files, reads, blocks;
} streams[] = {
	{ 2, 400, 16 }, { 8, 400, 16 }, { 17, 400, 16 }, { 100, 20, 64 },
	{ 250, 8, 64 },
};

/* Large files that are read from front to back in turns, as players do, are
 * read well where they are, however little of each is judged at a time, and
 * though they are read again. */
START_TEST(streams_are_not_copied)
{
	const unsigned files = streams[_i].files, blocks = streams[_i].blocks;
	const unsigned reads = streams[_i].reads;
	struct replica_choice choices[64];
	struct heat *heat;
	uint64_t saving;
	unsigned i, k;

	ck_assert_int_eq(heat_new(1 << 28, &heat), 0);
	for (i = 0; i < 2 * files * reads; i++) {
		k = i / files % reads * blocks;
		heat_add(heat, &(struct heat_read){
			.ino = 1 + i % files, .block = k, .blocks = blocks,
			.wait_us = 10000, .begin = i % (files * reads) == 0,
			.sector = 1000000ull * (i % files) + k * 8,
		});
	}
	ck_assert_uint_eq(choose(heat, choices, 64, &saving), 0);
	ck_assert_uint_eq(saving, 0);
	heat_free(heat);
}
END_TEST

#define SCAN_READS 4000u
#define SCAN_BLOCKS 128u
#define SCAN_PIECE 40u		/* reads in one piece of the file */

/* The kernel's requests for a large file that is read once from front to back
 * overtake each other, and the file lies in pieces of 20 MiB. */
START_TEST(a_scan_out_of_order_is_not_copied)
{
	struct replica_choice choices[64];
	struct heat *heat;
	uint64_t saving;
	unsigned i, k;

	ck_assert_int_eq(heat_new(1 << 28, &heat), 0);
	for (i = 0; i < 2 * SCAN_READS; i++) {
		k = i % SCAN_READS ^ (unsigned)_i;
		heat_add(heat, &(struct heat_read){
			.ino = 7, .block = (uint64_t)k * SCAN_BLOCKS,
			.blocks = SCAN_BLOCKS, .wait_us = 10000,
			.begin = i % SCAN_READS == 0,
			.sector = 8ull * k * SCAN_BLOCKS +
				  k / SCAN_PIECE * 500000ull,
		});
	}
	ck_assert_uint_eq(choose(heat, choices, 64, &saving), 0);
	ck_assert_uint_eq(saving, 0);
	heat_free(heat);
}
END_TEST

#define NODE_FILES 2400u

/* Leaves of so small a tree would all come with the first one. */
static void nodes_come_alone(struct rig *rig)
{
	struct buffer_cache *buffers = rig->fs->tree->buffers;
	struct buffer *node;

	rig->fs->tree->run_slots = 1;
	while ((node = list_first(&buffers->lru, struct buffer, link)))
		buffer_put(buffers, node);
}

static void read_files(struct rig *rig, const uint64_t *ino)
{
	unsigned i;

	nodes_come_alone(rig);
	for (i = 0; i < NODE_FILES; i++) {
		ck_assert_int_eq(do_read(rig, ino[i * 7 % NODE_FILES], 0,
					 buffer, BLOCK), BLOCK);
		ck_assert_uint_eq(*(uint64_t *)buffer, i * 7 % NODE_FILES);
	}
}

static uint64_t node_hits(struct rig *rig)
{
	return node_replicas_stats(rig->fs)->hits;
}

/* Leaves that were waited for are read in one go the next time, also those that
 * have been written meanwhile. */
START_TEST(nodes_have_copies)
{
	uint64_t ino[NODE_FILES], waits, hits;
	struct rig rig;
	char name[80];
	unsigned i;

	open_slow(&rig, 64, 1);
	for (i = 0; i < NODE_FILES; i++) {
		snprintf(name, sizeof(name), "%060u", i);
		ino[i] = do_create(&rig, name);
		memset(buffer, 0, BLOCK);
		*(uint64_t *)buffer = i;
		ck_assert_int_eq(do_write(&rig, ino[i], 0, buffer, BLOCK), 0);
	}
	rig_remount(&rig);
	read_files(&rig, ino);
	waits = node_replicas_stats(rig.fs)->waits;
	ck_assert_uint_ge(waits, 4);
	while (!replicas_idle(rig.fs->replicas))
		turn(&rig);
	node_replicas_make(rig.fs);
	while (!node_replicas_idle(rig.fs))
		turn(&rig);
	ck_assert_uint_ge(node_replicas_stats(rig.fs)->made, 4);
	rig_remount(&rig);
	read_files(&rig, ino);
	hits = node_hits(&rig);
	ck_assert_uint_ge(hits, 4);
	ck_assert_uint_lt(node_replicas_stats(rig.fs)->waits, waits);
	/* They are elsewhere now, and copied again before it is closed. */
	for (i = 0; i < NODE_FILES; i += 20) {
		memset(buffer, 0, BLOCK);
		*(uint64_t *)buffer = i;
		ck_assert_int_eq(do_write(&rig, ino[i], 0, buffer, BLOCK), 0);
	}
	rig_remount(&rig);
	read_files(&rig, ino);
	ck_assert_uint_ge(node_hits(&rig), hits);
	ck_assert_uint_le(node_replicas_stats(rig.fs)->waits, 1);
	reclaim_all(&rig);
	rig.fs->replicas->most = 0;	/* none is made at the unmount */
	rig_remount(&rig);
	read_files(&rig, ino);
	ck_assert_uint_eq(node_hits(&rig), 0);
	rig_close(&rig);
}
END_TEST

/* Copies of nodes that are to be made when the checkpoint is over do not keep
 * an unmount that comes before. */
START_TEST(nodes_do_not_keep_an_unmount)
{
	uint64_t ino[NODE_FILES];
	struct rig rig;
	char name[80];
	unsigned i;

	open_slow(&rig, 64, 1);
	for (i = 0; i < NODE_FILES; i++) {
		snprintf(name, sizeof(name), "%060u", i);
		ino[i] = do_create(&rig, name);
		memset(buffer, 0, BLOCK);
		*(uint64_t *)buffer = i;
		ck_assert_int_eq(do_write(&rig, ino[i], 0, buffer, BLOCK), 0);
	}
	rig_remount(&rig);
	read_files(&rig, ino);
	while (!replicas_idle(rig.fs->replicas))
		turn(&rig);
	node_replicas_make(rig.fs);
	rig.fs->replicas->most = 0;
	ck_assert_int_eq(do_read(&rig, ino[0], 0, buffer, BLOCK), BLOCK);
	ck_assert(!node_replicas_idle(rig.fs));
	rig_close(&rig);
}
END_TEST

/* A region of nodes that is damaged is as if it were not there. */
START_TEST(bad_copies_of_nodes_do_no_harm)
{
	uint64_t ino[NODE_FILES], at;
	struct replica_region *region;
	struct rig rig;
	char name[80];
	unsigned i;

	open_slow(&rig, 64, 1);
	for (i = 0; i < NODE_FILES; i++) {
		snprintf(name, sizeof(name), "%060u", i);
		ino[i] = do_create(&rig, name);
		memset(buffer, 0, BLOCK);
		*(uint64_t *)buffer = i;
		ck_assert_int_eq(do_write(&rig, ino[i], 0, buffer, BLOCK), 0);
	}
	rig_remount(&rig);
	read_files(&rig, ino);
	while (!replicas_idle(rig.fs->replicas))
		turn(&rig);
	node_replicas_make(rig.fs);
	while (!node_replicas_idle(rig.fs))
		turn(&rig);
	rig_remount(&rig);
	for (i = 0; (region = regions_at(rig.fs->replicas->regions, i)); i++)
		for (at = 3; !region->copies && at < region->sectors; at += 32)
			ck_assert_int_eq(sim_flip(rig.sim, region->sector + at,
						  77), 0);
	read_files(&rig, ino);
	ck_assert_uint_gt(node_hits(&rig), 0);	/* tried */
	ck_assert_uint_eq(errors_count(rig.fs), 0);
	rig_close(&rig);
}
END_TEST

/* Who unmounts at once has it copied then. */
START_TEST(learns_when_it_leaves)
{
	struct rig rig;
	uint64_t ino;

	open_slow(&rig, 64, 1);
	ino = scattered_file(&rig);
	rig_remount(&rig);
	read_scattered_twice(&rig, ino);
	rig_remount(&rig);
	ck_assert_uint_gt(regions_count(rig.fs->replicas->regions), 0);
	read_scattered(&rig, ino);
	ck_assert_uint_ge(rig.fs->replicas->stats.used, READS - 2);
	rig_close(&rig);
}
END_TEST

START_TEST(switched_off_it_learns_nothing)
{
	struct rig rig;
	uint64_t ino;

	open_slow(&rig, 64, 0);
	ino = scattered_file(&rig);
	rig_remount(&rig);
	read_scattered_twice(&rig, ino);
	pass_time(&rig, 5);
	ck_assert_uint_eq(regions_count(rig.fs->replicas->regions), 0);
	rig_close(&rig);
}
END_TEST

/* Copies give way when the group fills, and are made again when it empties. */
START_TEST(replicas_give_way_and_are_made_again)
{
	struct fs_op unlink = { .type = FS_UNLINK, .ino = TRAX_ROOT_INO,
				.name = "filler" };
	uint64_t ino, filler, at = 0;
	struct fs_statfs free;
	struct rig rig;

	open_slow(&rig, 64, 1);
	ino = scattered_file(&rig);
	ck_assert_uint_eq(make_one(&rig, ino, 0, 1), 1);
	filler = do_create(&rig, "filler");
	do {
		ck_assert_int_eq(do_write(&rig, filler, at, buffer,
					  sizeof(buffer)), 0);
		at += sizeof(buffer);
		free = do_statfs(&rig);
	} while (free.free * 100 > free.blocks * 7);
	ck_assert_int_eq(do_fsync(&rig, filler), 0);
	pass_time(&rig, 3);
	ck_assert(access_trace_closed(rig.fs)[0]);
	ck_assert_uint_eq(regions_count(rig.fs->replicas->regions), 1);
	while (free.free * 100 > free.blocks * 4) {
		ck_assert_int_eq(do_write(&rig, filler, at, buffer, 65536), 0);
		at += 65536;
		free = do_statfs(&rig);
	}
	ck_assert_int_eq(do_fsync(&rig, filler), 0);
	/* The room is looked at when something is done, once a second. */
	pass_time(&rig, 3);
	do_statfs(&rig);
	pass_time(&rig, 3);
	ck_assert_uint_eq(regions_count(rig.fs->replicas->regions), 0);
	ck_assert_int_eq(rig_do(&rig, &unlink), 0);
	rig_forget(&rig, filler, 1);
	pass_time(&rig, 3);
	do_statfs(&rig);
	pass_time(&rig, 3);
	ck_assert(!access_trace_closed(rig.fs)[0]);
	rig_close(&rig);
}
END_TEST

/* ---- Damage ---- */

static void on_written(struct disk_request *req)
{
	*(bool *)req->owner = true;
}

/* Other bytes than were written there, behind the file system's back. */
static void spoil(struct rig *rig, uint64_t sector)
{
	struct disk *disk = sim_disk(rig->sim);
	static uint8_t junk[512] __attribute__((aligned(4096)));
	struct iovec iov = { junk, sizeof(junk) };
	bool done = false;
	struct disk_request req = {
		.op = DISK_WRITE, .sector = sector, .sectors = 1, .iov = &iov,
		.iov_n = 1, .done = on_written, .owner = &done,
	};

	rig_settle(rig);
	disk_submit(disk, &req);
	while (!done)
		disk_poll(disk, 1);
}

static void damage(struct rig *rig, uint64_t sector, bool fail)
{
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_READS, .first = sector,
		.sectors = 1,
	};

	if (fail)
		ck_assert_int_eq(sim_fault_add(rig->sim, &fault), 0);
	else
		spoil(rig, sector + 3);
}

static char *errors_text(struct rig *rig)
{
	struct fs_op op = { .type = FS_ERRORS, .ino = TRAX_ROOT_INO };

	ck_assert_int_eq(rig_do(rig, &op), 0);
	ck_assert_uint_eq(op.result, strlen(op.buffer));
	return op.buffer;
}

static void settle(struct rig *rig)
{
	unsigned turns = 0;

	do {
		ck_assert_uint_lt(turns++, 100000);
		turn(rig);
	} while (!fs_idle(rig->fs) || !errors_idle(rig->fs));
}

/* The head has just read before a sector: what lies there is nearest. */
static void head_is_before(struct rig *rig, uint64_t sector)
{
	replica_ra_events.done(rig->fs, &(struct read_done){
		.sector = sector });
}

/* A file with a copy of all of it; its content is in models[0].  The head is at
 * the original. */
static uint64_t copied_file(struct rig *rig, bool whole)
{
	struct file_model *m = &models[0];
	uint64_t rng = 9, ino, i;

	ck_assert_int_eq(rig_mkdir(rig, TRAX_ROOT_INO, "d", &ino), 0);
	ck_assert_int_eq(rig_mknod(rig, ino, "copied", S_IFREG | 0644,
				   &m->ino), 0);
	noise(m->data, sizeof(m->data), &rng);
	m->size = 60 * BLOCK;
	for (i = 0; i < m->size; i += whole ? m->size : BLOCK) {
		ck_assert_int_eq(do_write(rig, m->ino, i, m->data + i,
					  whole ? m->size : BLOCK), 0);
		ck_assert_int_eq(do_fsync(rig, m->ino), 0);
	}
	near_sector = FAR_SECTOR;
	ck_assert_uint_eq(make_one(rig, m->ino, 0, 60), 4);
	near_sector = 0;
	rig_remount(rig);
	head_is_before(rig, rig_sector_of(rig, m->ino, 0));
	return m->ino;
}

/* A bad place of the original: the reader gets the right bytes, the block is
 * elsewhere afterwards, its place is not used again, its copy counts on. */
START_TEST(bad_blocks_move)
{
	const bool fail = _i & 1, whole = _i & 2;
	uint64_t ino, lbn;
	struct rig rig;
	char *text;

	open_with(&rig, 64, 11, 1);
	ino = copied_file(&rig, whole);
	lbn = rig_sector_of(&rig, ino, 20 * BLOCK);
	damage(&rig, lbn, fail);
	compare(&rig, &models[0]);
	settle(&rig);
	ck_assert_uint_ne(rig_sector_of(&rig, ino, 20 * BLOCK), lbn);
	ck_assert_uint_eq(rig_sector_of(&rig, ino, 21 * BLOCK), lbn + 8);
	ck_assert_uint_eq(errors_count(rig.fs), 1);
	text = errors_text(&rig);
	ck_assert_ptr_nonnull(strstr(text, "\"path\": \"/d/copied\""));
	ck_assert_ptr_nonnull(strstr(text, "\"healed\": true"));
	ck_assert_ptr_nonnull(strstr(text, fail ? "unreadable" : "checksum"));
	free(text);
	sim_fault_clear(rig.sim);
	rig_remount(&rig);
	compare(&rig, &models[0]);
	ck_assert_int_eq(rig_unlink(&rig, TRAX_ROOT_INO, "none"), -ENOENT);
	ck_assert_uint_gt(rig.fs->replicas->stats.offered, 0);
	rig_close(&rig);
}
END_TEST

/* The same for a part of a block that is just overwritten: the rest is read
 * from the copy, and the new content does not wait in the log for ever. */
START_TEST(bad_homes_move)
{
	const unsigned at = 20 * BLOCK + 512;
	struct file_model *m = &models[0];
	uint64_t ino, lbn, rng = 4;
	struct rig rig;

	open_with(&rig, 64, 13, 1);
	ino = copied_file(&rig, true);
	lbn = rig_sector_of(&rig, ino, at);
	damage(&rig, lbn, true);
	noise(m->data + at, BLOCK / 2, &rng);
	ck_assert_int_eq(do_write(&rig, ino, at, m->data + at,
				  BLOCK / 2), 0);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	settle(&rig);
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert_uint_ne(rig_sector_of(&rig, ino, at), lbn);
	sim_fault_clear(rig.sim);
	rig_remount(&rig);
	compare(&rig, m);
	rig_close(&rig);
}
END_TEST

/* A bad copy: dropped, and nobody notices. */
START_TEST(bad_copies_go)
{
	struct rig rig;
	uint64_t ino;

	open_with(&rig, 64, 13, 1);
	ino = copied_file(&rig, false);
	spoil(&rig, regions_at(rig.fs->replicas->regions, 0)->sector + 5);
	damage(&rig, rig_sector_of(&rig, ino, 0), true);
	/* Now neither is good: an error, noted. */
	ck_assert_int_eq(do_read(&rig, ino, 0, buffer, BLOCK), -EIO);
	settle(&rig);
	ck_assert_uint_eq(errors_count(rig.fs), 1);
	sim_fault_clear(rig.sim);
	compare(&rig, &models[0]);
	reclaim_all(&rig);
	rig_close(&rig);
}
END_TEST

/* A read that finds a bad copy drops that one, and reads on. */
START_TEST(only_the_bad_copy_goes)
{
	const bool whole = _i;
	struct replica_stats *stats;
	struct rig rig;

	open_with(&rig, 64, 14, 1);
	copied_file(&rig, whole);
	damage(&rig, regions_at(rig.fs->replicas->regions, 0)->sector + 17 * 8,
	       false);
	head_is_before(&rig, FAR_SECTOR);
	compare(&rig, &models[0]);
	settle(&rig);
	stats = &rig.fs->replicas->stats;
	ck_assert_uint_eq(stats->bad, 1);
	ck_assert_uint_eq(stats->dropped, 1);
	ck_assert_uint_eq(errors_count(rig.fs), 0);
	rig_remount(&rig);
	stats = &rig.fs->replicas->stats;
	head_is_before(&rig, FAR_SECTOR);
	compare(&rig, &models[0]);
	ck_assert_uint_eq(stats->used_bytes, (60 - 16) * BLOCK);
	ck_assert_uint_eq(stats->bad, 0);
	reclaim_all(&rig);
	rig_close(&rig);
}
END_TEST

/* What was read with it says nothing about a copy: neither a bad sector
 * elsewhere in the run nor a region that is dropped meanwhile. */
START_TEST(copies_answer_for_themselves)
{
	struct fs_op op = { .type = FS_READ, .size = BLOCK, .buffer = buffer };
	const struct replica_region *region;
	struct replica_stats *stats;
	struct rig rig;

	open_with(&rig, 64, 15, 1);
	op.ino = copied_file(&rig, true);
	stats = &rig.fs->replicas->stats;
	region = regions_at(rig.fs->replicas->regions, 0);
	damage(&rig, region->sector + 50 * 8, true);
	head_is_before(&rig, FAR_SECTOR);
	ck_assert_int_eq(do_read(&rig, op.ino, 0, buffer, BLOCK), BLOCK);
	ck_assert_mem_eq(buffer, models[0].data, BLOCK);
	ck_assert_uint_gt(stats->used, 0);
	sim_fault_clear(rig.sim);
	op.done = on_answer;
	op.owner = &(bool){ false };
	op.offset = 40 * BLOCK;
	head_is_before(&rig, FAR_SECTOR);
	fs_submit(rig.fs, &op);
	while (replica_ra_stats(rig.fs)->loads < 2)
		fs_run(rig.fs, 0);
	replica_ra_forget(rig.fs, region->sector, region->sectors);
	while (!*(bool *)op.owner)
		turn(&rig);
	ck_assert_int_eq(op.rc, 0);
	ck_assert_mem_eq(buffer, models[0].data + 40 * BLOCK, BLOCK);
	settle(&rig);
	ck_assert_uint_eq(stats->bad, 0);
	ck_assert_uint_eq(stats->dropped, 0);
	ck_assert_uint_eq(errors_count(rig.fs), 0);
	rig_close(&rig);
}
END_TEST

START_TEST(without_a_copy_it_is_an_error)
{
	struct rig rig;
	uint64_t ino;
	char *text;

	open_with(&rig, 64, 12, 1);
	ino = copied_file(&rig, false);
	reclaim_all(&rig);
	damage(&rig, rig_sector_of(&rig, ino, 20 * BLOCK), true);
	ck_assert_int_eq(do_read(&rig, ino, 10 * BLOCK, buffer, 20 * BLOCK),
			 -EIO);
	settle(&rig);
	text = errors_text(&rig);
	ck_assert_ptr_nonnull(strstr(text, "\"healed\": false"));
	ck_assert_ptr_nonnull(strstr(text, "\"path\": \"/d/copied\""));
	free(text);
	sim_fault_clear(rig.sim);
	rig_close(&rig);
}
END_TEST

/* Of what the disk is asked to read for files. */
static void count_sectors(struct sim *sim, const struct disk_request *req,
			  void *arg)
{
	uint64_t *sectors = arg;

	(void)sim;
	if (req->op == DISK_READ && req->sectors != TRAX_NODE_SECTORS)
		*sectors += req->sectors;
}

/* A block is read without its neighbours, from a copy or from its place: each
 * has a checksum of its own, however it was written. */
START_TEST(blocks_have_sums)
{
	struct file_model *m = &models[0];
	uint64_t rng = 9, sectors = 0;
	struct rig rig;

	open_with(&rig, 64, 14, 1);
	noise(m->data, sizeof(m->data), &rng);
	m->ino = do_create(&rig, "parts");
	m->size = sizeof(m->data);
	ck_assert_int_eq(do_write(&rig, m->ino, 0, m->data, m->size), 0);
	ck_assert_int_eq(do_fsync(&rig, m->ino), 0);
	near_sector = FAR_SECTOR;
	ck_assert_uint_eq(make_one(&rig, m->ino, 20, 5), 1);
	near_sector = 0;
	rig_remount(&rig);
	sim_set_hook(rig.sim, count_sectors, &sectors);
	ck_assert_int_eq(do_read(&rig, m->ino, 21 * BLOCK, buffer, 3 * BLOCK),
			 3 * BLOCK);
	ck_assert_mem_eq(buffer, m->data + 21 * BLOCK, 3 * BLOCK);
	ck_assert_uint_le(sectors, 5 * BLOCK_SECTORS);
	sectors = 0;
	ck_assert_int_eq(do_read(&rig, m->ino, 148 * BLOCK, buffer, BLOCK),
			 BLOCK);
	ck_assert_uint_eq(sectors, BLOCK_SECTORS);
	sim_set_hook(rig.sim, NULL, NULL);
	compare(&rig, m);
	rig_close(&rig);
}
END_TEST

/* ---- Running ---- */

int main(void)
{
	Suite *s = suite_create("replica");
	TCase *tc = tcase_create("replica");
	SRunner *runner = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, copies_come_and_go);
	tcase_add_test(tc, copies_serve_across_tracks);
	tcase_add_test(tc, regions_have_a_budget);
	tcase_add_test(tc, more_runs_than_memory);
	tcase_add_test(tc, random_reads_read_no_runs);
	tcase_add_loop_test(tc, random_agrees_with_the_model, 1, 7);
	tcase_add_test(tc, copies_never_cost_room);
	tcase_add_test(tc, hot_at_the_end);
	tcase_add_test(tc, copies_for_the_busy_never_cost_room);
	tcase_add_test(tc, learns_what_is_read_together);
	tcase_add_test(tc, nothing_is_copied_beside_a_stream);
	tcase_add_test(tc, a_day_has_its_copies);
	tcase_add_test(tc, blocks_are_chosen_once);
	tcase_add_test(tc, what_comes_again_is_chosen);
	tcase_add_loop_test(tc, a_scan_out_of_order_is_not_copied, 0, 8);
	tcase_add_loop_test(tc, streams_are_not_copied, 0,
			    (int)(sizeof(streams) / sizeof(*streams)));
	tcase_add_test(tc, nodes_have_copies);
	tcase_add_test(tc, bad_copies_of_nodes_do_no_harm);
	tcase_add_test(tc, nodes_do_not_keep_an_unmount);
	tcase_add_test(tc, learns_when_it_leaves);
	tcase_add_test(tc, switched_off_it_learns_nothing);
	tcase_add_test(tc, replicas_give_way_and_are_made_again);
	tcase_add_loop_test(tc, bad_blocks_move, 0, 4);
	tcase_add_test(tc, bad_homes_move);
	tcase_add_test(tc, bad_copies_go);
	tcase_add_loop_test(tc, only_the_bad_copy_goes, 0, 2);
	tcase_add_test(tc, copies_answer_for_themselves);
	tcase_add_test(tc, without_a_copy_it_is_an_error);
	tcase_add_test(tc, blocks_have_sums);
	suite_add_tcase(s, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
