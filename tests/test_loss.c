/*
 * test_loss.c - write errors of the data area: nothing that was acknowledged is
 * lost, no other file is harmed, and what is given up is said.
 *
 * The log is left alone: faults meet the sectors of one file, or all but those
 * of the log and the tree.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/data.h"
#include "tests/rig_fs.h"
#include "tests/test.h"

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

static void compare(struct rig *rig, uint64_t ino, uint64_t seed,
		    uint64_t bytes)
{
	fill(seed);
	ck_assert_int_eq(do_read(rig, ino, bytes), 0);
	ck_assert_msg(!memcmp(seen, data, bytes), "wrong content");
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
	homes_now(rig->fs->files);
	jobs_pump(rig->fs->files);
}

/* Is data on its way to the disk that is no home? */
static bool back_is_written(const struct files *files)
{
	const struct job *job = list_first(&files->job_backs, struct job, link);

	return job && job->claimed && job->outstanding;
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
	ck_assert_uint_eq(files->held_count, 0);
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
	ck_assert_uint_gt(rig.fs->files->held_count, 0);
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

int main(void)
{
	Suite *suite = suite_create("loss");
	TCase *tc = tcase_create("data");

	tcase_add_test(tc, one_error_harms_nobody);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
