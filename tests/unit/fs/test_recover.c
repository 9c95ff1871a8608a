/*
 * test_recover.c - mounts after a crash, on simulated disks: with little
 * memory, read-only, with sectors that cannot be written, with counters near
 * their ends.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/msg.h"
#include "check/check.h"
#include "fs/op/fs_internal.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"
#include "tree/tree_internal.h"

#define BLOCK 4096u
#define MIB (1u << 20)

static uint8_t buffer[MIB];

static int do_read(struct rig *rig, uint64_t ino, uint64_t offset, uint64_t n)
{
	struct fs_op op = { .type = FS_READ, .ino = ino, .offset = offset,
			    .size = n, .buffer = buffer };
	int rc = rig_do(rig, &op);

	return rc ? rc : (int)op.result;
}

static int do_write(struct rig *rig, uint64_t ino, uint64_t offset, uint64_t n)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino, .offset = offset,
			    .size = n, .data = buffer };
	int rc = rig_do(rig, &op);

	return rc ? rc : (int)op.result;
}

static int do_fsync(struct rig *rig, uint64_t ino)
{
	struct fs_op op = { .type = FS_FSYNC, .ino = ino };

	return rig_do(rig, &op);
}

/* ---- Logged data ---- */

#define LOGGED_BLOCKS 2600u

/* A file whose odd blocks are in the log only. */
static uint64_t make_logged(struct rig *rig)
{
	uint64_t ino, i;

	ck_assert_int_eq(rig_mknod(rig, 1, "f", 0100644, &ino), 0);
	memset(buffer, 1, sizeof(buffer));
	for (i = 0; i < 2 * LOGGED_BLOCKS * BLOCK; i += sizeof(buffer))
		ck_assert_int_eq(do_write(rig, ino, i, sizeof(buffer)),
				 (int)sizeof(buffer));
	ck_assert_int_eq(rig_sync(rig), 0);
	for (i = 0; i < LOGGED_BLOCKS; i++) {
		memset(buffer, (int)(i % 251) + 2, BLOCK);
		ck_assert_int_eq(do_write(rig, ino, (2 * i + 1) * BLOCK, BLOCK),
				 BLOCK);
		if (i % 8 == 7)
			ck_assert_int_eq(do_fsync(rig, ino), 0);
	}
	ck_assert_int_eq(do_fsync(rig, ino), 0);
	return ino;
}

static void check_logged(struct rig *rig, uint64_t ino)
{
	for (uint64_t i = 0; i < LOGGED_BLOCKS; i++) {
		ck_assert_int_eq(do_read(rig, ino, 2 * i * BLOCK, 2 * BLOCK),
				 2 * BLOCK);
		ck_assert_uint_eq(buffer[0], 1);
		ck_assert_uint_eq(buffer[BLOCK], i % 251 + 2);
		ck_assert_uint_eq(buffer[2 * BLOCK - 1], i % 251 + 2);
	}
}

/* More logged blocks than the memory for dirty ones has buffers. */
START_TEST(a_read_only_mount_serves_what_is_logged)
{
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 16384, 1);
	ino = make_logged(&rig);
	rig.options.read_only = true;
	rig.options.memory_bytes = 32 * MIB;
	rig_crash(&rig);
	ck_assert_uint_gt(tree_recovered(rig.fs->tree)->data_blocks, 2048);
	check_logged(&rig, ino);
	rig_close(&rig);
}
END_TEST

START_TEST(little_memory_recovers_what_much_has_logged)
{
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 16384, 1);
	ino = make_logged(&rig);
	rig.options.memory_bytes = 32 * MIB;
	rig_crash(&rig);
	check_logged(&rig, ino);
	rig_remount(&rig);
	check_logged(&rig, ino);
	rig_close(&rig);
}
END_TEST

/* Where the first odd block should are destaged cannot be written: the mount
 * goes on, the block goes elsewhere. */
START_TEST(a_home_that_cannot_be_written_moves)
{
	struct fs_extent extent;
	struct fs_op op = { .type = FS_EXTENTS, .buffer = &extent, .size = 1 };
	struct sim_fault fault = { .kind = SIM_FAIL, .ops = SIM_WRITES,
				   .sectors = 8, .k = 1,
				   .times = UINT64_MAX };
	struct rig rig;

	rig_open(&rig, 16384, 1);
	op.ino = make_logged(&rig);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	fault.first = extent.lbn + 8;
	ck_assert_int_eq(sim_power_cut(rig.sim, SIM_CUT_KEEP, 1), 0);
	fs_abandon(rig.fs);
	sim_restart(rig.sim);
	ck_assert_int_eq(sim_fault_add(rig.sim, &fault), 0);
	ck_assert_int_eq(fs_open(sim_env(rig.sim), sim_disk(rig.sim),
				 &rig.options, &rig.fs), 0);
	check_logged(&rig, op.ino);
	rig_settle(&rig);
	ck_assert_uint_gt(sim_fault_hits(rig.sim), 0);
	ck_assert(!fs_read_only(rig.fs));
	rig_remount(&rig);
	check_logged(&rig, op.ino);
	rig_close(&rig);
}
END_TEST

/* A second crash before anything is home: the log still has it. */
START_TEST(a_crash_of_the_recovery_loses_nothing)
{
	struct rig rig;
	uint64_t ino;

	rig_open(&rig, 16384, 1);
	ino = make_logged(&rig);
	for (unsigned i = 0; i < 3; i++)
		rig_crash(&rig);
	check_logged(&rig, ino);
	ck_assert_int_eq(rig_sync(&rig), 0);
	rig_crash(&rig);
	check_logged(&rig, ino);
	rig_settle(&rig);
	rig_remount(&rig);
	rig_crash(&rig);
	ck_assert_uint_eq(tree_recovered(rig.fs->tree)->data_blocks, 0);
	check_logged(&rig, ino);
	rig_close(&rig);
}
END_TEST

#define LEAVES 1000u
#define INODES_PER_LEAF 40u

/* Many leaves are changed without a sync: one record holds the changes, and the
 * node tracks that were made for them. */
START_TEST(one_record_grows_and_uses_node_tracks)
{
	static uint64_t ino[LEAVES * INODES_PER_LEAF];
	struct fs_op op = { .type = FS_SETATTR, .flags = FS_SET_MODE };
	struct rig rig;
	uint64_t dir = 1;
	char name[16];

	rig_open(&rig, 4096, 1);
	for (unsigned i = 0; i < LEAVES * INODES_PER_LEAF; i++) {
		snprintf(name, sizeof(name), "%u", i);
		if (i % 4000 == 0)
			ck_assert_int_eq(rig_mkdir(&rig, 1, name, &dir), 0);
		ck_assert_int_eq(rig_mknod(&rig, dir, name, 0100644, &ino[i]),
				 0);
	}
	rig.options.memory_bytes = (size_t)1 << 30;
	rig_remount(&rig);
	for (unsigned i = 0; i < LEAVES; i++) {
		op.ino = ino[i * 7919 % LEAVES * INODES_PER_LEAF];
		op.attr.mode = 0100600;
		ck_assert_int_eq(rig_do(&rig, &op), 0);
	}
	ck_assert_int_eq(do_fsync(&rig, op.ino), 0);
	rig_crash(&rig);
	ck_assert_int_eq(rig_getattr(&rig, op.ino, &op.attr), 0);
	ck_assert_uint_eq(op.attr.mode & 0777, 0600);
	rig_close(&rig);
}
END_TEST

/* ---- Roots ---- */

static unsigned told;

static void count_roots(enum msg_level level, const char *line, void *arg)
{
	(void)arg;
	told += level <= MSG_WARN && strstr(line, "root at sector");
}

static int mount_again(struct rig *rig)
{
	sim_restart(rig->sim);
	return fs_open(sim_env(rig->sim), sim_disk(rig->sim), &rig->options,
		       &rig->fs);
}

/* Power goes, and what `copies` say of the newest root. */
static void lose_root(struct rig *rig, unsigned copies)
{
	const uint64_t gen = tree_durable_root(rig->fs->tree)->gen;
	const struct super super = *fs_super(rig->fs);

	ck_assert_int_eq(sim_power_cut(rig->sim, SIM_CUT_KEEP, 1), 0);
	fs_abandon(rig->fs);
	for (unsigned i = 0; i < 2; i++)
		if (copies >> i & 1)
			sim_damage(rig->sim, super.area_sector[gen & 1][i], 8);
	msg_set_sink(count_roots, NULL);
	ck_assert_int_eq(mount_again(rig), 0);
	msg_set_sink(NULL, NULL);
}

START_TEST(a_lost_copy_of_a_root_is_told)
{
	struct fs_attr attr;
	struct rig rig;

	rig_open(&rig, 64, 1);
	ck_assert_int_eq(rig_mknod(&rig, 1, "a", 0100644, NULL), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	lose_root(&rig, 1);
	ck_assert_uint_eq(told, 1);
	ck_assert(!fs_read_only(rig.fs));
	ck_assert_int_eq(rig_lookup(&rig, 1, "a", &attr), 0);
	rig_remount(&rig);
	rig_close(&rig);
}
END_TEST

/* Both copies of the first root of a mount are lost: the one before it is
 * clean, but there is a log behind the one that is lost. */
START_TEST(a_lost_root_is_no_older_state)
{
	struct fs_attr attr;
	struct rig rig;

	rig_open(&rig, 64, 1);
	ck_assert_int_eq(rig_mknod(&rig, 1, "a", 0100644, NULL), 0);
	rig_remount(&rig);
	ck_assert_int_eq(rig_mknod(&rig, 1, "b", 0100644, NULL), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	lose_root(&rig, 3);
	ck_assert_uint_eq(told, 2);
	ck_assert(fs_read_only(rig.fs));
	ck_assert(tree_recovered(rig.fs->tree)->damaged);
	ck_assert_int_eq(rig_lookup(&rig, 1, "a", &attr), 0);
	ck_assert_int_eq(rig_mknod(&rig, 1, "c", 0100644, NULL), -EROFS);
	ck_assert_int_eq(fs_close(rig.fs), 0);
	rig.options.accept_loss = true;
	ck_assert_int_eq(mount_again(&rig), 0);
	ck_assert(!fs_read_only(rig.fs));
	ck_assert_int_eq(rig_mknod(&rig, 1, "c", 0100644, NULL), 0);
	rig.options.accept_loss = false;
	rig_remount(&rig);
	ck_assert_int_eq(rig_lookup(&rig, 1, "c", &attr), 0);
	rig_close(&rig);
}
END_TEST

/* After a crash reads are served before the first root is durable; changes wait
 * for it, and what a second crash meets before it is no less than the first. */
START_TEST(reads_do_not_wait_for_the_first_root)
{
	const struct sim_fault slow = { .kind = SIM_SLOW, .ops = SIM_WRITES,
					.k = 1, .delay_ns = 5000000000 };
	struct fs_attr attr;
	struct rig rig;
	uint64_t begin, ino;

	rig_open(&rig, 64, 1);
	ck_assert_int_eq(rig_mknod(&rig, 1, "a", 0100644, &ino), 0);
	memset(buffer, 7, BLOCK);
	ck_assert_int_eq(do_write(&rig, ino, 0, BLOCK), BLOCK);
	ck_assert_int_eq(do_fsync(&rig, ino), 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(sim_power_cut(rig.sim, SIM_CUT_DROP, 1), 0);
		fs_abandon(rig.fs);
		ck_assert_int_eq(mount_again(&rig), 0);
		ck_assert_int_eq(sim_fault_add(rig.sim, &slow), 0);
		begin = sim_now_ns(rig.sim);
		memset(buffer, 0, BLOCK);
		ck_assert_int_eq(do_read(&rig, ino, 0, BLOCK), BLOCK);
		ck_assert_uint_eq(buffer[BLOCK - 1], 7);
		ck_assert_uint_lt(sim_now_ns(rig.sim) - begin, 1000000000);
		ck_assert(!rig.fs->tree->log_started);
	}
	ck_assert_int_eq(rig_mknod(&rig, 1, "b", 0100644, NULL), 0);
	ck_assert(rig.fs->tree->log_started);
	ck_assert_uint_gt(sim_now_ns(rig.sim) - begin, 5000000000);
	sim_fault_clear(rig.sim);
	rig_remount(&rig);
	ck_assert_int_eq(rig_lookup(&rig, 1, "b", &attr), 0);
	rig_close(&rig);
}
END_TEST

static char problems[4096];

static bool note_problem(void *arg, const struct check_found *found)
{
	(void)arg;
	strncat(problems, found->text,
		sizeof(problems) - strlen(problems) - 1);
	return true;
}

static struct check_result run_check(struct rig *rig, bool repair)
{
	const struct check_options options = {
		.data = true, .repair = repair, .found = note_problem,
	};
	struct check_result result;

	problems[0] = 0;
	ck_assert_int_eq(check_run(sim_env(rig->sim), sim_disk(rig->sim),
				   &options, &result), 0);
	return result;
}

/* The checker finds the log behind the root that is lost, and says so.  Where
 * the root before it is clean that brings back all that was acknowledged; after
 * a crash the records between the two roots may be overwritten. */
START_TEST(the_checker_goes_on_from_a_lost_root)
{
	struct check_result result;
	struct fs_attr attr;
	struct rig rig;

	rig_open(&rig, 64, 1);
	ck_assert_int_eq(rig_mknod(&rig, 1, "a", 0100644, NULL), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	if (_i)
		rig_crash(&rig);
	else
		rig_remount(&rig);
	ck_assert_int_eq(rig_mknod(&rig, 1, "b", 0100644, NULL), 0);
	ck_assert_int_eq(rig_sync(&rig), 0);
	lose_root(&rig, 3);
	ck_assert(fs_read_only(rig.fs));
	ck_assert_int_eq(fs_close(rig.fs), 0);
	result = run_check(&rig, false);
	ck_assert_uint_ge(result.found, 1);
	ck_assert_msg(strstr(problems, "newest root is lost") != NULL,
		      "found: %s", problems);
	result = run_check(&rig, true);
	ck_assert_msg(!result.left, "left: %s", problems);
	result = run_check(&rig, false);
	ck_assert_uint_eq(result.found, 0);
	ck_assert_int_eq(mount_again(&rig), 0);
	ck_assert(!fs_read_only(rig.fs));
	if (!_i) {
		ck_assert_int_eq(rig_lookup(&rig, 1, "a", &attr), 0);
		ck_assert_int_eq(rig_lookup(&rig, 1, "b", &attr), 0);
	}
	rig_close(&rig);
}
END_TEST

/* No log behind it: nothing that was acknowledged is lost with it. */
START_TEST(a_lost_root_without_a_log_is_replaced)
{
	struct fs_attr attr;
	struct rig rig;

	rig_open(&rig, 64, 1);
	ck_assert_int_eq(rig_mknod(&rig, 1, "a", 0100644, NULL), 0);
	rig_remount(&rig);
	lose_root(&rig, 3);
	ck_assert_uint_eq(told, 2);
	ck_assert(!fs_read_only(rig.fs));
	ck_assert_int_eq(rig_lookup(&rig, 1, "a", &attr), 0);
	rig_close(&rig);
}
END_TEST

/* ---- Counters ---- */

static unsigned warnings;

static void count_warnings(enum msg_level level, const char *line, void *arg)
{
	(void)arg;
	warnings += level == MSG_WARN && strstr(line, "inode numbers");
}

START_TEST(directory_groups_wrap)
{
	struct rig rig;
	uint64_t ino;
	char name[16];

	rig_open(&rig, 64, 1);
	rig.fs->tree->next_dirgroup = TRAX_DIRGROUPS - 2;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "d%u", i);
		ck_assert_int_eq(rig_mkdir(&rig, 1, name, &ino), 0);
		ck_assert_int_eq(rig_mknod(&rig, ino, "f", 0100644, NULL), 0);
		rig_remount(&rig);
	}
	rig_close(&rig);
}
END_TEST

/* The last inode number is used, then there is no room for more; what is there
 * can be mounted, read and deleted. */
START_TEST(inode_numbers_end_with_a_word)
{
	struct fs_op statfs = { .type = FS_STATFS, .ino = 1 };
	struct rig rig;

	rig_open(&rig, 64, 1);
	msg_set_sink(count_warnings, NULL);
	rig.fs->tree->next_ino_seq = TRAX_INO_SEQS / 8 * 7 - 1;
	ck_assert_int_eq(rig_mknod(&rig, 1, "a", 0100644, NULL), 0);
	ck_assert_uint_eq(warnings, 0);
	ck_assert_int_eq(rig_mknod(&rig, 1, "b", 0100644, NULL), 0);
	ck_assert_uint_eq(warnings, 1);
	rig.fs->tree->next_ino_seq = TRAX_INO_SEQS - 1;
	ck_assert_int_eq(rig_mknod(&rig, 1, "c", 0100644, NULL), 0);
	ck_assert_int_eq(rig_mknod(&rig, 1, "d", 0100644, NULL), -ENOSPC);
	ck_assert_int_eq(rig_do(&rig, &statfs), 0);
	ck_assert_uint_eq(statfs.statfs.files_free, 0);
	warnings = 0;
	rig_remount(&rig);
	ck_assert_uint_eq(warnings, 1);
	ck_assert_int_eq(rig_mknod(&rig, 1, "d", 0100644, NULL), -ENOSPC);
	ck_assert_int_eq(rig_unlink(&rig, 1, "c"), 0);
	rig_remount(&rig);
	ck_assert_int_eq(rig_mkdir(&rig, 1, "d", NULL), -ENOSPC);
	msg_set_sink(NULL, NULL);
	rig_close(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("recover");
	TCase *tcase = tcase_create("recover");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, a_read_only_mount_serves_what_is_logged);
	tcase_add_test(tcase, little_memory_recovers_what_much_has_logged);
	tcase_add_test(tcase, a_home_that_cannot_be_written_moves);
	tcase_add_test(tcase, a_crash_of_the_recovery_loses_nothing);
	tcase_add_test(tcase, one_record_grows_and_uses_node_tracks);
	tcase_add_test(tcase, reads_do_not_wait_for_the_first_root);
	tcase_add_test(tcase, a_lost_copy_of_a_root_is_told);
	tcase_add_test(tcase, a_lost_root_is_no_older_state);
	tcase_add_loop_test(tcase, the_checker_goes_on_from_a_lost_root, 0, 2);
	tcase_add_test(tcase, a_lost_root_without_a_log_is_replaced);
	tcase_add_test(tcase, directory_groups_wrap);
	tcase_add_test(tcase, inode_numbers_end_with_a_word);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
