/*
 * test_loss.c - write errors of the data area: nothing that was acknowledged is
 * lost, no other file is harmed, and what is given up is said.
 *
 * The log is left alone: faults meet the sectors of one file, or all but those
 * of the log and the tree.
 */
#include <errno.h>
#include <jansson.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "fs/data/destage.h"
#include "fs/data/dirty_block.h"
#include "fs/data/failure.h"
#include "fs/data/file_sync.h"
#include "fs/data/writeback.h"
#include "fs/op/errors.h"
#include "log/log_internal.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define BLOCK 4096u
#define BLOCKS 16u		/* as many as one fsync logs */
#define BYTES (BLOCKS * BLOCK)
#define OTHERS 200u
#define TURNS 200000u

static uint8_t data[BYTES], seen[BYTES];

/* ---- Operations ---- */

static void fill(uint64_t seed)
{
	size_t i;

	for (i = 0; i < BYTES; i += 8) {
		uint64_t word = test_random(&seed);

		memcpy(data + i, &word, 8);
	}
}

static int do_write(struct rig *rig, uint64_t ino, uint64_t bytes)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .size = bytes,
			    .data = data };

	return rig_do(rig, &op);
}

static int do_fsync(struct rig *rig, uint64_t ino)
{
	struct fs_op op = { .type = FS_FSYNC, .ino = ino };

	return rig_do(rig, &op);
}

static int do_read(struct rig *rig, uint64_t ino, uint64_t bytes)
{
	struct fs_op op = { .type = FS_READ, .ino = ino, .size = bytes,
			    .buffer = seen };
	int rc = rig_do(rig, &op);

	return rc ? rc : op.result == bytes ? 0 : -ENODATA;
}

static uint64_t make(struct rig *rig, const char *name, uint64_t seed,
		     uint64_t bytes)
{
	uint64_t ino;

	fill(seed);
	ck_assert_int_eq(rig_mknod(rig, 1, name, 0100644, &ino), 0);
	ck_assert_int_eq(do_write(rig, ino, bytes), 0);
	return ino;
}

/* Bytes of the file, in steps of BYTES, with the content of a seed. */
static void write_much(struct rig *rig, uint64_t ino, uint64_t seed,
		       uint64_t bytes)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .size = BYTES,
			    .data = data };

	fill(seed);
	for (; op.offset < bytes; op.offset += BYTES)
		ck_assert_int_eq(rig_do(rig, &op), 0);
}

static void compare(struct rig *rig, uint64_t ino, uint64_t seed,
		    uint64_t bytes)
{
	unsigned i;

	fill(seed);
	ck_assert_int_eq(do_read(rig, ino, bytes), 0);
	for (i = 0; i < bytes / BLOCK; i++)
		ck_assert_msg(!memcmp(seen + i * BLOCK, data + i * BLOCK,
				      BLOCK), "block %u is wrong", i);
}

static uint64_t lbn_of(struct rig *rig, uint64_t ino)
{
	struct fs_extent extent;
	struct fs_op op = { .type = FS_EXTENTS, .ino = ino, .buffer = &extent,
			    .size = 1 };

	ck_assert_int_eq(rig_do(rig, &op), 0);
	ck_assert_uint_ge(op.result, 1);
	return extent.lbn;
}

/* Lets the file system and the clock go on. */
static void turn(struct rig *rig)
{
	uint64_t next = fs_run(rig->fs, 0), now = sim_now_ns(rig->sim);

	if (sim_next_ns(rig->sim) < next)
		next = sim_next_ns(rig->sim);
	if (next != UINT64_MAX && next > now)
		sim_advance(rig->sim, next - now);
}

static void pass(struct rig *rig, uint64_t ns)
{
	uint64_t end = sim_now_ns(rig->sim) + ns;
	unsigned turns = 0;

	while (sim_now_ns(rig->sim) < end && turns++ < TURNS)
		turn(rig);
}

static void bring_home(struct rig *rig)
{
	destage_now(rig->fs->files);
	writeback_pump(rig->fs->files);
}

/* Is data on its way to the disk that is no home? */
static bool back_is_written(const struct files *files)
{
	const struct writeback *wb =
		list_first(&files->data_wbs, struct writeback, link);

	return wb && wb->claimed && wb->outstanding;
}

static void fail_writes(struct rig *rig, uint64_t first, uint64_t sectors,
			uint64_t times)
{
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES, .first = first,
		.sectors = sectors, .k = 1, .times = times,
	};

	ck_assert_int_eq(sim_fault_add(rig->sim, &fault), 0);
}

static void slow_writes(struct rig *rig)
{
	const struct sim_fault fault = {
		.kind = SIM_SLOW, .ops = SIM_WRITES, .k = 1,
		.delay_ns = 400000000,
	};

	ck_assert_int_eq(sim_fault_add(rig->sim, &fault), 0);
}

/* All memory for dirty data has come back. */
static void check_memory(struct rig *rig)
{
	const struct files *files = rig->fs->files;

	ck_assert_uint_eq(files->dirty_count, 0);
	ck_assert_uint_eq(files->pinned_count, 0);
	ck_assert_uint_eq(pool_available(files->dirty_pool),
			  pool_count(files->dirty_pool));
}

static void others_make(struct rig *rig, uint64_t *ino)
{
	char name[16];
	unsigned i;

	for (i = 0; i < OTHERS; i++) {
		snprintf(name, sizeof(name), "other%u", i);
		ino[i] = make(rig, name, 1000 + i, 2 * BLOCK);
	}
	ck_assert_int_eq(rig_sync(rig), 0);
}

static void others_compare(struct rig *rig, const uint64_t *ino)
{
	unsigned i;

	for (i = 0; i < OTHERS; i++)
		compare(rig, ino[i], 1000 + i, 2 * BLOCK);
}

/* ---- One write error of a home ---- */

/*
 * The home write of a synced file fails once; its content is written elsewhere,
 * slowly, and is overwritten meanwhile.  Every buffer is given back once: what
 * other files then get belongs to nobody else.
 */
START_TEST(one_error_harms_nobody)
{
	uint64_t ino, lbn, others[OTHERS];
	struct rig rig;
	unsigned turns = 0;

	rig_open(&rig, 64, 1);
	ino = make(&rig, "file", 1, BYTES);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	ck_assert_uint_gt(rig.fs->files->pinned_count, 0);
	lbn = lbn_of(&rig, ino);
	fail_writes(&rig, lbn, BYTES / SECTOR_BYTES, 1);
	slow_writes(&rig);
	bring_home(&rig);
	while (!back_is_written(rig.fs->files)) {
		ck_assert_uint_lt(turns++, TURNS);
		turn(&rig);
	}
	ck_assert_uint_eq(sim_fault_hits(rig.sim) > 0, 1);
	fill(2);
	ck_assert_int_eq(do_write(&rig, ino, BYTES), 0);
	pass(&rig, 2000000000);
	sim_fault_clear(rig.sim);
	others_make(&rig, others);
	compare(&rig, ino, 2, BYTES);
	others_compare(&rig, others);
	ck_assert_int_eq(rig_sync(&rig), 0);
	bring_home(&rig);
	pass(&rig, 60000000000);
	check_memory(&rig);
	rig_remount(&rig);
	compare(&rig, ino, 2, BYTES);
	others_compare(&rig, others);
	rig_close(&rig);
}
END_TEST

/* ---- No data can be written ---- */

#define MANY_TRACKS 256u

struct stretch {
	uint64_t sector, n;
};

static int by_sector(const void *a, const void *b)
{
	return sort_order(((const struct stretch *)a)->sector,
			  ((const struct stretch *)b)->sector);
}

/* The tracks of the log and of nodes, and the root areas. */
static unsigned metadata_of(const struct rig *rig, struct stretch *at)
{
	const struct super *super = tree_super(rig->fs->tree);
	const struct space *space = tree_space(rig->fs->tree);
	const struct log *log = tree_log(rig->fs->tree);
	struct range track = { 0, 0 };
	unsigned n = 0, i;

	for (i = 0; i < log->tracks; i++)
		at[n++] = (struct stretch){
			log->track[i].first, log->track[i].units *
				(log->unit_bytes / SECTOR_BYTES) };
	while (n < MANY_TRACKS - 4 &&
	       space_slots_next_track(space, track.first + track.n, &track))
		at[n++] = (struct stretch){ addr_sector(track.first),
					    track.n };
	for (i = 0; i < 4; i++)
		at[n++] = (struct stretch){ super->area_sector[i / 2][i % 2],
					    super->area_sectors };
	qsort(at, n, sizeof(at[0]), by_sector);
	return n;
}

/* Every write of data between two sectors fails. */
static void fail_data_in(struct rig *rig, uint64_t from, uint64_t most)
{
	struct stretch at[MANY_TRACKS];
	unsigned n = metadata_of(rig, at), i;
	uint64_t end;

	for (i = 0; i <= n && from < most; i++) {
		end = i < n && at[i].sector < most ? at[i].sector : most;
		if (end > from)
			fail_writes(rig, from, end - from, 0);
		if (i < n && at[i].sector + at[i].n > from)
			from = at[i].sector + at[i].n;
	}
}

static void fail_data(struct rig *rig)
{
	fail_data_in(rig, 0, sim_disk(rig->sim)->limits.sectors);
}

/* Returns the bytes that there was room for. */
static uint64_t fill_disk(struct rig *rig)
{
	struct fs_op op = { .type = FS_WRITE, .size = BYTES, .data = data };
	int rc;

	ck_assert_int_eq(rig_mknod(rig, 1, "rest", 0100644, &op.ino), 0);
	while (!(rc = rig_do(rig, &op)))
		op.offset += BYTES;
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_int_eq(rig_sync(rig), 0);
	return op.offset;
}

/* The places at which writes have failed are free again when the disk is well,
 * without a mount. */
START_TEST(room_comes_back)
{
	uint64_t room[2], ino;
	struct rig rig;
	unsigned i;

	for (i = 0; i < 2; i++) {
		rig_open(&rig, 64, 1);
		ino = make(&rig, "file", 1, BYTES);
		write_much(&rig, ino, 1, 16 * BYTES);
		if (i)
			fail_data(&rig);
		pass(&rig, UINT64_C(20000000000));
		sim_fault_clear(rig.sim);
		pass(&rig, UINT64_C(60000000000));
		room[i] = fill_disk(&rig);
		rig_close(&rig);
	}
	ck_assert_uint_le(room[0], room[1] + BYTES);
}
END_TEST

/* What was synced is in the log: it stays there, and in memory, when it can't
 * be destaged for a while, and then it is destaged. */
START_TEST(logged_data_outlives_errors)
{
	const uint64_t outage_ns = UINT64_C(1000000000) * (_i ? 3 : 20);
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 64, 1);
	ino = make(&rig, "file", 1, BYTES);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	fail_data(&rig);
	bring_home(&rig);
	pass(&rig, outage_ns);
	ck_assert_uint_gt(sim_fault_hits(rig.sim), 2);
	ck_assert(!fs_read_only(rig.fs));
	compare(&rig, ino, 1, BYTES);
	sim_fault_clear(rig.sim);
	pass(&rig, UINT64_C(60000000000));
	ck_assert_int_eq(rig_sync(&rig), 0);
	check_memory(&rig);
	compare(&rig, ino, 1, BYTES);
	rig_remount(&rig);
	compare(&rig, ino, 1, BYTES);
	rig_close(&rig);
}
END_TEST

/* While logged data looks for a place, new data of the same file does not wait
 * for it: an fsync takes what its log record takes. */
START_TEST(an_fsync_does_not_wait_for_another_place)
{
	struct fs_op op = { .type = FS_WRITE, .size = BLOCK, .data = data };
	struct rig rig;
	uint64_t begin;
	unsigned i;

	rig_open(&rig, 64, 1);
	op.ino = make(&rig, "file", 1, BYTES / 2);
	ck_assert_int_eq(do_fsync(&rig, op.ino), 0);
	fail_data(&rig);
	bring_home(&rig);
	pass(&rig, UINT64_C(3000000000));
	ck_assert_uint_gt(sim_fault_hits(rig.sim), 2);
	for (i = BLOCKS / 2; i < BLOCKS; i++) {
		op.offset = i * BLOCK;
		op.data = data + i * BLOCK;
		ck_assert_int_eq(rig_do(&rig, &op), 0);
		begin = sim_now_ns(rig.sim);
		ck_assert_int_eq(_i ? rig_sync(&rig) : do_fsync(&rig, op.ino),
				 0);
		ck_assert_uint_lt(sim_now_ns(rig.sim) - begin, 100000000);
		pass(&rig, UINT64_C(500000000));
	}
	ck_assert(!fs_read_only(rig.fs));
	sim_fault_clear(rig.sim);
	pass(&rig, UINT64_C(60000000000));
	check_memory(&rig);
	rig_remount(&rig);
	compare(&rig, op.ino, 1, BYTES);
	rig_close(&rig);
}
END_TEST

/* Nowhere for good: read-only, and the log has it at the next mount. */
START_TEST(logged_data_is_never_dropped)
{
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 64, 1);
	ino = make(&rig, "file", 1, BYTES);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	fail_data(&rig);
	bring_home(&rig);
	pass(&rig, UINT64_C(120000000000));
	ck_assert(fs_read_only(rig.fs));
	compare(&rig, ino, 1, BYTES);
	ck_assert_int_eq(do_write(&rig, ino, BYTES), -EROFS);
	ck_assert_int_eq(do_fsync(&rig, ino), -EIO);
	ck_assert_int_eq(fs_close(rig.fs), -EIO);
	sim_fault_clear(rig.sim);
	ck_assert_int_eq(fs_open(sim_env(rig.sim), sim_disk(rig.sim),
				 &rig.options, &rig.fs), 0);
	compare(&rig, ino, 1, BYTES);
	rig_close(&rig);
}
END_TEST

/* Every write to a log track fails, or every write to a node track. */
static void fail_log_or_nodes(struct rig *rig, bool nodes)
{
	const struct space *space = tree_space(rig->fs->tree);
	const struct log *log = tree_log(rig->fs->tree);
	struct range track = { 0, 0 };
	unsigned i;

	while (nodes && space_slots_next_track(space, track.first + track.n,
					       &track))
		fail_writes(rig, addr_sector(track.first), track.n, 0);
	for (i = 0; !nodes && i < log->tracks; i++)
		fail_writes(rig, log->track[i].first, log->track[i].units *
			    (log->unit_bytes / SECTOR_BYTES), 0);
}

/* All tracks of the log, or of nodes, take no writes any more: a commit that
 * was answered with 0 is kept, others hear of it, and unmounting ends. */
START_TEST(no_track_of_metadata_takes_writes)
{
	const bool nodes = _i;
	uint64_t first, second;
	struct rig rig;
	int rc;

	rig_open(&rig, 64, 1);
	first = make(&rig, "first", 1, BYTES);
	ck_assert_int_eq(do_fsync(&rig, first), 0);
	fail_log_or_nodes(&rig, nodes);
	second = make(&rig, "second", 2, BYTES);
	rc = do_fsync(&rig, second);
	if (!nodes)
		ck_assert_int_eq(rc, -EIO);
	bring_home(&rig);
	pass(&rig, UINT64_C(120000000000));
	ck_assert(nodes || fs_read_only(rig.fs));
	compare(&rig, first, 1, BYTES);
	compare(&rig, second, 2, BYTES);
	ck_assert_int_eq(fs_close(rig.fs), -EIO);
	sim_fault_clear(rig.sim);
	ck_assert_int_eq(fs_open(sim_env(rig.sim), sim_disk(rig.sim),
				 &rig.options, &rig.fs), 0);
	compare(&rig, first, 1, BYTES);
	if (!rc)
		compare(&rig, second, 2, BYTES);
	rig_close(&rig);
}
END_TEST

static void op_done(struct fs_op *op)
{
	op->owner = op;
}

/* The disk cannot be reached for 10 s, for log, nodes and data alike: a sync
 * waits for it, and nothing is lost. */
START_TEST(an_unreachable_disk_is_waited_for)
{
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_WRITES, .k = 1,
		.error = -ENOLINK,
	};
	struct fs_op op = { .type = FS_SYNCFS, .ino = 1, .done = op_done };
	unsigned turns = 0;
	struct rig rig;
	uint64_t ino, big;

	rig_open(&rig, 64, 1);
	ino = make(&rig, "file", 1, BYTES);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	big = make(&rig, "big", 2, BYTES);
	write_much(&rig, big, 2, 64 * BYTES);
	ck_assert_int_eq(sim_fault_add(rig.sim, &fault), 0);
	bring_home(&rig);
	fs_submit(rig.fs, &op);
	pass(&rig, UINT64_C(10000000000));
	ck_assert_ptr_null(op.owner);
	ck_assert_uint_gt(sim_fault_hits(rig.sim), 2);
	sim_fault_clear(rig.sim);
	while (!op.owner) {
		ck_assert_uint_lt(turns++, TURNS);
		turn(&rig);
	}
	ck_assert_int_eq(op.rc, 0);
	ck_assert(!fs_read_only(rig.fs));
	rig_remount(&rig);
	compare(&rig, ino, 1, BYTES);
	compare(&rig, big, 2, BYTES);
	rig_close(&rig);
}
END_TEST

static int read_at(struct rig *rig, uint64_t ino, uint64_t offset)
{
	struct fs_op op = { .type = FS_READ, .ino = ino, .offset = offset,
			    .size = BYTES, .buffer = seen };

	return rig_do(rig, &op);
}

/* Failed writes, those that look at what is bad included: of a stretch of up
 * to 64 MiB, and of 256 MiB. */
#define MOST_HITS 1500u
#define MOST_HITS_256 2000u

/* However long the bad stretch is (1 to 256 MiB), what is to be written into it
 * goes elsewhere: what is logged, new files, large ones, nodes. */
START_TEST(a_bad_stretch_is_passed_over)
{
	const uint64_t sectors = UINT64_C(2048) << 2 * _i;
	const uint64_t large = 64 * BYTES;
	uint64_t ino, big, lbn, hits, others[OTHERS];
	struct rig rig;

	rig_open(&rig, 1024, 1);
	ino = make(&rig, "file", 1, BYTES);
	ck_assert_int_eq(rig_sync(&rig), 0);
	fill(2);
	ck_assert_int_eq(do_write(&rig, ino, BYTES), 0);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	lbn = lbn_of(&rig, ino);
	fail_data_in(&rig, lbn, lbn + sectors);
	bring_home(&rig);
	others_make(&rig, others);
	big = make(&rig, "big", 3, BYTES);
	write_much(&rig, big, 3, large);
	ck_assert_int_eq(rig_sync(&rig), 0);
	pass(&rig, UINT64_C(120000000000));
	ck_assert(!fs_read_only(rig.fs));
	check_memory(&rig);
	rig_remount(&rig);
	compare(&rig, ino, 2, BYTES);
	others_compare(&rig, others);
	compare(&rig, big, 3, BYTES);
	fill(3);
	ck_assert_int_eq(read_at(&rig, big, large - BYTES), 0);
	ck_assert(!memcmp(seen, data, BYTES));
	hits = sim_fault_hits(rig.sim);
	ck_assert_uint_lt(hits, _i < 4 ? MOST_HITS : MOST_HITS_256);
	/* Most of what was met is known. */
	write_much(&rig, make(&rig, "bigger", 4, BYTES), 4, large);
	ck_assert_int_eq(rig_sync(&rig), 0);
	pass(&rig, UINT64_C(120000000000));
	ck_assert_uint_lt(sim_fault_hits(rig.sim) - hits, hits);
	rig_close(&rig);
}
END_TEST

static uint64_t free_sectors(struct rig *rig)
{
	struct space_counts counts;

	space_count(tree_space(rig->fs->tree), &counts);
	return counts.free;
}

/* What nothing could be found out about, for want of memory, is looked at again
 * although no other write fails. */
START_TEST(suspects_do_not_wait_for_another_error)
{
	struct rig rig;
	struct files *files;
	uint64_t ino, room;

	rig_open(&rig, 64, 1);
	files = rig.fs->files;
	ino = make(&rig, "file", 1, BYTES);
	ck_assert_int_eq(rig_sync(&rig), 0);
	room = free_sectors(&rig);
	/* As when no memory is found: there is room for no other one. */
	files->bad_writes = UINT8_MAX;
	fail_data(&rig);
	write_much(&rig, ino, 2, 4 * BYTES);
	pass(&rig, UINT64_C(40000000000));
	ck_assert_uint_gt(files->unexamined.count, 0);
	sim_fault_clear(rig.sim);
	files->bad_writes = 0;
	pass(&rig, UINT64_C(40000000000));
	ck_assert_uint_eq(files->unexamined.count, 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert_uint_ge(free_sectors(&rig) + 4 * BYTES / 512, room);
	rig_close(&rig);
}
END_TEST

/* A disk full of small files of which every other one is deleted: what write()
 * has accepted of a large file finds room in the holes. */
START_TEST(a_shredded_disk_takes_what_was_accepted)
{
	struct fs_op op = { .type = FS_WRITE, .size = BYTES, .data = data };
	uint64_t got, ino;
	unsigned i, n = 0;
	struct rig rig;
	char name[16];
	int rc = 0;

	rig_open(&rig, 64, 1);
	fill(1);
	while (!rc) {
		snprintf(name, sizeof(name), "small%u", n);
		rc = rig_mknod(&rig, 1, name, 0100644, &ino);
		if (rc)
			break;
		n++;
		rc = do_write(&rig, ino, BLOCK);
		ck_assert_int_eq(rig_forget(&rig, ino, 1), 0);
		if (!(n % 256) && !rc)
			rc = rig_sync(&rig);
	}
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_int_eq(rig_sync(&rig), 0);
	for (i = 0; i < n; i += 2) {
		snprintf(name, sizeof(name), "small%u", i);
		ck_assert_int_eq(rig_unlink(&rig, 1, name), 0);
	}
	ck_assert_int_eq(rig_sync(&rig), 0);
	pass(&rig, UINT64_C(60000000000));
	ck_assert_int_eq(rig_mknod(&rig, 1, "large", 0100644, &ino), 0);
	op.ino = ino;
	fill(2);
	while (!(rc = rig_do(&rig, &op)))
		op.offset += BYTES;
	ck_assert_int_eq(rc, -ENOSPC);
	/* Nearly all that was freed. */
	ck_assert_uint_gt(op.offset, n / 2 * BLOCK * 3 / 4);
	ck_assert_int_eq(rig_sync(&rig), 0);
	rig_remount(&rig);
	for (got = 0; got < op.offset; got += BYTES) {
		fill(2);
		ck_assert_int_eq(read_at(&rig, ino, got), 0);
		ck_assert(!memcmp(seen, data, BYTES));
	}
	rig_close(&rig);
}
END_TEST

/* ---- No room for nodes ---- */

#define VALUE_BYTES 3500u
#define NODE_FILES_MOST 20000u
#define DATA_BYTES (64u * BYTES)
#define LATE_BLOCKS 1000u
#define LATE_APART (64u * BLOCK)

/* Takes all sectors that are free. */
static void fill_with_nothing(struct rig *rig)
{
	struct fs_op op = { .type = FS_FALLOCATE, .size = 16u << 20 };

	ck_assert_int_eq(rig_mknod(rig, 1, "fill", 0100644, &op.ino), 0);
	while (op.size >= BLOCK) {
		const int rc = rig_do(rig, &op);

		ck_assert(!rc || rc == -ENOSPC);
		op.offset += rc ? 0 : op.size;
		op.size /= rc ? 2 : 1;
	}
}

/* Values of attributes are kept in the tree. */
static int make_node_file(struct rig *rig, unsigned i)
{
	char name[16];
	uint64_t ino;
	int rc;

	snprintf(name, sizeof(name), "node%u", i);
	rc = rig_mknod(rig, 1, name, 0100644, &ino);
	if (rc)
		return rc;
	rc = rig_setxattr(rig, ino, "user.v", data, VALUE_BYTES, 0);
	ck_assert_int_eq(rig_forget(rig, ino, 1), 0);
	return rc;
}

/* Neither sectors nor slots are left: ENOSPC, and nothing else.  What write()
 * accepts is written, what is deleted makes room. */
START_TEST(without_slots_it_is_full)
{
	struct fs_op op = { .type = FS_WRITE, .size = BLOCK, .data = data };
	struct fs_op late = op;
	uint64_t seed = 5;
	unsigned i, n = 0;
	struct rig rig;
	char name[16];
	int rc = 0;

	rig_open(&rig, 128, 1);
	op.ino = make(&rig, "data", 1, BYTES);
	write_much(&rig, op.ino, 1, DATA_BYTES);
	ck_assert_int_eq(rig_sync(&rig), 0);
	/* Each block needs an extent and an item of sums of its own. */
	late.ino = make(&rig, "late", 1, BLOCK);
	for (i = 0; i < LATE_BLOCKS; i++) {
		late.offset = i * LATE_APART;
		ck_assert_int_eq(rig_do(&rig, &late), 0);
	}
	ck_assert_uint_gt(rig.fs->files->dirty_count, LATE_BLOCKS / 2);
	fill_with_nothing(&rig);
	while (n < NODE_FILES_MOST && !(rc = make_node_file(&rig, n)))
		n++;
	ck_assert_int_eq(rc, -ENOSPC);
	ck_assert_uint_gt(n, 100);
	ck_assert_int_eq(rig_sync(&rig), 0);
	for (i = 0; i < 2000; i++) {
		op.offset = test_random(&seed) % (DATA_BYTES / BLOCK) * BLOCK;
		rc = rig_do(&rig, &op);
		ck_assert(!rc || rc == -ENOSPC);
		if (i % 100 == 0)
			ck_assert_int_eq(rig_sync(&rig), 0);
		if (i % 10 == 0)
			ck_assert_int_eq(do_fsync(&rig, op.ino), 0);
	}
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert(!fs_read_only(rig.fs));
	rig_remount(&rig);
	for (i = 0; i <= n; i++) {
		snprintf(name, sizeof(name), "node%u", i);
		rc = rig_unlink(&rig, 1, name);
		ck_assert_msg(!rc || (i == n && rc == -ENOENT),
			      "unlink %u of %u: %d", i, n, rc);
	}
	ck_assert_int_eq(rig_sync(&rig), 0);
	for (i = 0; i < n / 2; i++)
		ck_assert_int_eq(make_node_file(&rig, i), 0);
	rig_remount(&rig);
	check_memory(&rig);
	rig_close(&rig);
}
END_TEST

/* Nothing of it is newer than what is logged or on the disk. */
static bool lost_all(const struct file *file)
{
	const struct block *block;

	for (block = file->head; block; block = block->next)
		if (block->dirty && !block_is_logged(block))
			return false;
	return file->loss && !file->writebacks;
}

/* How many of the first blocks have the content of this seed. */
static unsigned count_equal(struct rig *rig, uint64_t ino, uint64_t seed)
{
	unsigned i, n = 0;

	fill(seed);
	ck_assert_int_eq(do_read(rig, ino, BYTES), 0);
	for (i = 0; i < BLOCKS; i++)
		n += !memcmp(seen + i * BLOCK, data + i * BLOCK, BLOCK);
	return n;
}

/* Newer content that is not durable is given up in the end; what the log holds
 * of the same blocks is not. */
START_TEST(older_content_comes_back)
{
	const uint64_t bytes = 16 * BYTES;	/* a track: not for the log */
	struct fs_op op = { .type = FS_FSYNC, .done = op_done };
	const struct file *file;
	unsigned turns = 0, older;
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 1024, 1);
	ino = make(&rig, "file", 1, BYTES);
	write_much(&rig, ino, 1, bytes);
	ck_assert_int_eq(rig_sync(&rig), 0);
	fill(2);
	ck_assert_int_eq(do_write(&rig, ino, BYTES), 0);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	ck_assert_uint_eq(rig.fs->files->pinned_count, BLOCKS);
	fail_data(&rig);
	write_much(&rig, ino, 3, bytes);
	compare(&rig, ino, 3, BYTES);
	op.ino = ino;
	fs_submit(rig.fs, &op);
	file = vnode_find(rig.fs, ino)->file;
	while (!op.owner && !lost_all(file)) {
		ck_assert_uint_lt(turns++, TURNS);
		turn(&rig);
	}
	sim_fault_clear(rig.sim);
	while (!op.owner) {
		ck_assert_uint_lt(turns++, TURNS);
		turn(&rig);
	}
	ck_assert_int_eq(op.rc, -EIO);
	ck_assert(!fs_read_only(rig.fs));
	older = count_equal(&rig, ino, 2);
	ck_assert_uint_gt(older, 0);
	/* The last few have been logged when the rest was given up. */
	ck_assert_uint_eq(older + count_equal(&rig, ino, 3), BLOCKS);
	fill(1);
	ck_assert_int_eq(read_at(&rig, ino, BYTES), 0);
	ck_assert(!memcmp(seen, data, BYTES));
	ck_assert_int_eq(rig_sync(&rig), -EIO);
	rig_remount(&rig);
	ck_assert_uint_eq(count_equal(&rig, ino, 2), older);
	ck_assert_uint_eq(older + count_equal(&rig, ino, 3), BLOCKS);
	rig_close(&rig);
}
END_TEST

/* ---- Who hears of a loss ---- */

static int fsync_of(struct rig *rig, uint64_t ino, uint64_t handle)
{
	struct fs_op op = { .type = FS_FSYNC, .ino = ino, .handle = handle };

	return rig_do(rig, &op);
}

static void release(struct rig *rig, uint64_t ino, uint64_t handle)
{
	struct fs_op op = { .type = FS_RELEASE, .ino = ino, .handle = handle };

	ck_assert_int_eq(rig_do(rig, &op), 0);
}

/* A file too large for the log, that nobody has asked to be durable. */
static uint64_t make_large(struct rig *rig)
{
	uint64_t ino = make(rig, "big", 7, BYTES);

	write_much(rig, ino, 7, 8 * BYTES);
	return ino;
}

static char *errors_of(struct rig *rig)
{
	struct fs_op op = { .type = FS_ERRORS };

	ck_assert_int_eq(rig_do(rig, &op), 0);
	return op.buffer;
}

/* Each description that was open hears of it once, syncfs too; who opens it
 * when somebody has been told does not; and it is in trax.errors. */
START_TEST(each_description_hears_once)
{
	uint64_t ino, a, b, c;
	struct rig rig;
	char *text;

	rig_open(&rig, 64, 1);
	a = fs_new_handle(rig.fs);
	b = fs_new_handle(rig.fs);
	ino = make_large(&rig);
	fail_data(&rig);
	ck_assert_int_eq(fsync_of(&rig, ino, a), -EIO);
	ck_assert(!fs_read_only(rig.fs));
	sim_fault_clear(rig.sim);
	c = fs_new_handle(rig.fs);
	ck_assert_int_eq(fsync_of(&rig, ino, a), 0);
	ck_assert_int_eq(fsync_of(&rig, ino, c), 0);
	ck_assert_int_eq(rig_sync(&rig), -EIO);
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert_int_eq(fsync_of(&rig, ino, b), -EIO);
	ck_assert_int_eq(fsync_of(&rig, ino, b), 0);
	release(&rig, ino, b);
	ck_assert_int_eq(do_read(&rig, ino, BYTES), -EIO);
	text = errors_of(&rig);
	ck_assert_ptr_nonnull(strstr(text, "lost"));
	ck_assert_ptr_nonnull(strstr(text, "/big"));
	free(text);
	rig_remount(&rig);
	ck_assert_int_ne(do_read(&rig, ino, BYTES), 0);
	rig_close(&rig);
}
END_TEST

/* As many at a time as an attribute holds, and then the next: with a path that
 * is long enough for few. */
START_TEST(errors_are_listed_in_parts)
{
	struct fs_op op = { .type = FS_ERRORS };
	uint64_t dir = 1, i, all = 0, parts = 0, ino = 0;
	char name[201];
	struct rig rig;
	json_t *part;
	size_t n;

	rig_open(&rig, 64, 1);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	for (i = 0; i < 5; i++)
		ck_assert_int_eq(rig_mkdir(&rig, dir, name, &dir), 0);
	ck_assert_int_eq(rig_mknod(&rig, dir, "file", S_IFREG | 0644, &ino),
			 0);
	for (i = 0; i < 150; i++) {
		errors_add(rig.fs, &(struct error){
			.ino = ino, .off = i * 4096, .sector = 8 * i,
			.sectors = 8, .what = ERROR_CSUM });
		rig_settle(&rig);
	}
	do {
		ck_assert_int_eq(rig_do(&rig, &op), 0);
		ck_assert_uint_le(op.result, 65536);
		part = json_loads(op.buffer, 0, NULL);
		free(op.buffer);
		ck_assert_ptr_nonnull(part);
		n = json_array_size(part);
		for (i = 0; i < n; i++) {
			json_t *o = json_array_get(part, i);

			ck_assert_uint_ge((uint64_t)json_integer_value(
				json_object_get(o, "number")), op.offset2);
			op.offset2 = (uint64_t)json_integer_value(
				json_object_get(o, "number")) + 1;
			ck_assert_uint_eq(strlen(json_string_value(
				json_object_get(o, "path"))), 5 * 201 + 5);
		}
		all += n;
		parts += n != 0;
		json_decref(part);
	} while (n);
	ck_assert_uint_eq(all, 150);
	ck_assert_uint_gt(parts, 2);
	rig_close(&rig);
}
END_TEST

/* Nobody has been told yet: whoever opens it now is. */
START_TEST(a_loss_waits_for_somebody)
{
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 64, 1);
	ino = make_large(&rig);
	fail_data(&rig);
	ck_assert_int_eq(rig_sync(&rig), -EIO);
	sim_fault_clear(rig.sim);
	ck_assert_int_eq(fsync_of(&rig, ino, fs_new_handle(rig.fs)), -EIO);
	ck_assert_int_eq(fsync_of(&rig, ino, fs_new_handle(rig.fs)), 0);
	rig_close(&rig);
}
END_TEST

/* ---- Operations that fail ---- */

/* A truncation, or a punch, that fails when the block at its edge has been
 * read: the file is as it was. */
START_TEST(what_fails_changes_nothing)
{
	struct fs_op op = { .type = FS_SETATTR, .flags = FS_SET_SIZE,
			    .attr.size = BYTES - 100, .done = op_done };
	unsigned turns = 0;
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 64, 1);
	ino = make(&rig, "file", 1, BYTES);
	rig_remount(&rig);
	if (_i)
		op = (struct fs_op){ .type = FS_FALLOCATE, .offset = 100,
				     .size = 5 * BLOCK, .done = op_done,
				     .flags = FALLOC_FL_PUNCH_HOLE |
					      FALLOC_FL_KEEP_SIZE };
	op.ino = ino;
	ck_assert_int_eq(do_read(&rig, ino, BYTES), 0);
	fs_submit(rig.fs, &op);
	ck_assert_ptr_null(op.owner);
	tree_fail(rig.fs->tree, "this is a test");
	while (!op.owner) {
		ck_assert_uint_lt(turns++, TURNS);
		turn(&rig);
	}
	ck_assert_int_ne(op.rc, 0);
	compare(&rig, ino, 1, BYTES);
	ck_assert_uint_eq(rig.fs->files->dirty_count, 0);
	ck_assert_int_eq(fs_close(rig.fs), -EIO);
	ck_assert_int_eq(fs_open(sim_env(rig.sim), sim_disk(rig.sim),
				 &rig.options, &rig.fs), 0);
	compare(&rig, ino, 1, BYTES);
	rig_close(&rig);
}
END_TEST

/* After a shutdown nothing is read from memory that the disk may not have. */
START_TEST(after_a_shutdown_nothing_is_read)
{
	struct fs_op op = { .type = FS_SHUTDOWN, .ino = 1 };
	struct rig rig = { 0 };
	uint64_t ino;

	rig_open(&rig, 64, 3);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", S_IFREG | 0600, &ino), 0);
	fill(1);
	ck_assert_int_eq(do_write(&rig, ino, BYTES), 0);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	op = (struct fs_op){ .type = FS_READ, .ino = ino, .size = BYTES,
			     .buffer = seen };
	ck_assert_int_eq(rig_do(&rig, &op), -EIO);
	ck_assert_int_eq(do_write(&rig, ino, BYTES), -EIO);
	fs_close(rig.fs);
	sim_free(rig.sim);
}
END_TEST

/* ---- Two commits at once ---- */

static void commit_over(struct waiter *waiter, int rc)
{
	ck_assert_int_eq(rc, 0);
	*(bool *)waiter->owner = true;
}

static unsigned pins_to_drop(const struct files *files)
{
	const struct list *pos;
	unsigned n = 0;

	list_for_each(pos, &files->log_unpins)
		n++;
	return n;
}

/*
 * The commit of a destage is under way when logged data is cut off, and that of
 * an unmount begins.  What the cut made superfluous is in the second one only:
 * the end of the first one drops no pin.
 */
START_TEST(a_pin_waits_for_its_own_commit)
{
	struct fs_op cut = { .type = FS_SETATTR, .flags = FS_SET_SIZE };
	struct waiter waiter = { .done = commit_over };
	bool over = false;
	struct files *files;
	struct rig rig;

	rig_open(&rig, 64, 1);
	files = rig.fs->files;
	cut.ino = make(&rig, "file", 1, BYTES);
	ck_assert_int_eq(do_fsync(&rig, cut.ino), 0);
	ck_assert_uint_eq(files->pinned_count, BLOCKS);
	make(&rig, "other", 2, BLOCK);
	slow_writes(&rig);
	files_commit(files);
	ck_assert_int_eq(rig_do(&rig, &cut), 0);
	ck_assert_uint_eq(pins_to_drop(files), 1);
	waiter.owner = &over;
	files_sync(rig.fs, &waiter);
	ck_assert(files->committing);
	while (files->committing)
		turn(&rig);
	ck_assert(!over);
	ck_assert_uint_eq(pins_to_drop(files), 1);
	while (!over)
		turn(&rig);
	ck_assert_uint_eq(pins_to_drop(files), 0);
	sim_fault_clear(rig.sim);
	rig_close(&rig);
}
END_TEST

/* What was made and answered is there afterwards. */
START_TEST(a_shutdown_commits)
{
	struct fs_op op = { .type = FS_SHUTDOWN, .ino = 1 };
	struct fs_attr attr;
	struct rig rig;

	rig_open(&rig, 64, 3);
	ck_assert_int_eq(rig_mknod(&rig, 1, "f", S_IFREG | 0600, NULL), 0);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_int_eq(rig_mknod(&rig, 1, "g", S_IFREG | 0600, NULL),
			 -EIO);
	rig_crash(&rig);
	ck_assert_int_eq(rig_lookup(&rig, 1, "f", &attr), 0);
	rig_close(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("loss");
	TCase *tc = tcase_create("data");

	tcase_add_test(tc, one_error_harms_nobody);
	tcase_add_loop_test(tc, logged_data_outlives_errors, 0, 2);
	tcase_add_test(tc, errors_are_listed_in_parts);
	tcase_add_loop_test(tc, an_fsync_does_not_wait_for_another_place, 0, 2);
	tcase_add_test(tc, room_comes_back);
	tcase_add_test(tc, suspects_do_not_wait_for_another_error);
	tcase_add_test(tc, a_shredded_disk_takes_what_was_accepted);
	tcase_add_loop_test(tc, a_bad_stretch_is_passed_over, 0, 5);
	tcase_add_test(tc, logged_data_is_never_dropped);
	tcase_add_test(tc, an_unreachable_disk_is_waited_for);
	tcase_add_loop_test(tc, no_track_of_metadata_takes_writes, 0, 2);
	tcase_add_test(tc, older_content_comes_back);
	tcase_add_test(tc, each_description_hears_once);
	tcase_add_test(tc, a_loss_waits_for_somebody);
	tcase_add_loop_test(tc, what_fails_changes_nothing, 0, 2);
	tcase_add_test(tc, after_a_shutdown_nothing_is_read);
	tcase_add_test(tc, a_pin_waits_for_its_own_commit);
	tcase_add_test(tc, without_slots_it_is_full);
	tcase_add_test(tc, a_shutdown_commits);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
