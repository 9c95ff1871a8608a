/*
 * test_trunc.c - a file of many extents is cut in many steps, and can be read
 * meanwhile; what it gives back is there for others.
 */
#include <errno.h>
#include <string.h>

#include "fs/op/fs_internal.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define BLOCK 4096u
#define EXTENTS 1500u
#define KEPT 40u		/* of them: whole cache chunks */

static void fill(uint8_t *block, unsigned i)
{
	memset(block, (int)(1 + i % 250), BLOCK);
}

/* Every other block, so that each has an extent; `whole`: what is between them
 * is preallocated. */
static uint64_t make_file(struct rig *rig, bool whole)
{
	uint8_t block[BLOCK];
	struct fs_op op = { .type = FS_WRITE, .size = BLOCK, .data = block };
	struct fs_op all = { .type = FS_FALLOCATE,
			     .size = (uint64_t)EXTENTS * 2 * BLOCK };
	uint64_t ino;
	unsigned i;

	ck_assert_int_eq(rig_mknod(rig, 1, "f", S_IFREG | 0600, &ino), 0);
	op.ino = all.ino = ino;
	if (whole)
		ck_assert_int_eq(rig_do(rig, &all), 0);
	for (i = 0; i < EXTENTS; i++) {
		fill(block, i);
		op.offset = (uint64_t)i * 2 * BLOCK;
		ck_assert_int_eq(rig_do(rig, &op), 0);
	}
	ck_assert_int_eq(rig_sync(rig), 0);
	return ino;
}

static struct fs *fs;
static struct fs_op ops[3];
static bool over[3];
static bool write_was_last;

/* When the size is true the other two are there at once. */
static void done(struct fs_op *op)
{
	*(bool *)op->owner = true;
	write_was_last = op->type == FS_WRITE;
	if (op->type == FS_SETATTR) {
		fs_submit(fs, &ops[1]);
		fs_submit(fs, &ops[2]);
	}
}

/* A reader does not wait for what is cut behind the end, a writer that came
 * before it does. */
START_TEST(readers_go_on)
{
	static uint8_t read[BLOCK * (2 * KEPT + 3)];
	uint8_t block[BLOCK];
	uint8_t written[BLOCK] = { 77 };
	struct rig rig = { 0 };
	uint64_t ino;
	unsigned i;

	rig_open(&rig, 128, 5);
	ino = make_file(&rig, false);
	ops[0] = (struct fs_op){ .type = FS_SETATTR, .flags = FS_SET_SIZE,
				 .attr.size = KEPT * 2 * BLOCK };
	ops[1] = (struct fs_op){ .type = FS_WRITE, .data = written,
				 .size = BLOCK, .offset = EXTENTS * BLOCK };
	ops[2] = (struct fs_op){ .type = FS_READ, .buffer = read,
				 .size = sizeof(read) };
	/* It will be in memory. */
	ops[2].ino = ino;
	ck_assert_int_eq(rig_do(&rig, &ops[2]), 0);
	for (i = 0; i < 3; i++) {
		over[i] = false;
		ops[i].ino = ino;
		ops[i].owner = &over[i];
		ops[i].done = done;
	}
	fs = rig.fs;
	fs_submit(fs, &ops[0]);
	for (i = 0; i < 3; i++) {
		rig_run_until(&rig, &over[i]);
		ck_assert_int_eq(ops[i].rc, 0);
	}
	ck_assert(write_was_last);
	ck_assert_uint_eq(ops[2].result, KEPT * 2 * BLOCK);
	for (i = 0; i < KEPT; i++) {
		fill(block, i);
		ck_assert(!memcmp(read + (size_t)i * 2 * BLOCK, block, BLOCK));
	}
	/* What was cut is a hole now, also where the reader has read on. */
	ops[2].offset = (KEPT * 2 - 2) * BLOCK;
	ck_assert_int_eq(rig_do(&rig, &ops[2]), 0);
	ck_assert_uint_eq(ops[2].result, sizeof(read));
	memset(block, 0, BLOCK);
	for (i = 1; i < sizeof(read) / BLOCK; i++)
		ck_assert(!memcmp(read + (size_t)i * BLOCK, block, BLOCK));
	rig_close(&rig);
}
END_TEST

static uint64_t fill_rest(struct rig *rig, uint64_t *ino)
{
	static uint8_t many[1 << 20];
	struct fs_op op = { .type = FS_WRITE, .size = sizeof(many),
			    .data = many };

	ck_assert_int_eq(rig_mknod(rig, 1, "rest", S_IFREG | 0600, ino), 0);
	op.ino = *ino;
	while (op.size >= BLOCK) {
		if (!rig_do(rig, &op))
			op.offset += op.size;
		else
			op.size /= 2;
	}
	ck_assert_int_eq(rig_sync(rig), 0);
	return op.offset;
}

/* The disk is full, and a file of many extents is being deleted: a write waits
 * for the room that it will need. */
START_TEST(a_deletion_makes_room)
{
	static uint8_t many[EXTENTS * BLOCK / 2];
	struct fs_op op = { .type = FS_WRITE, .size = sizeof(many),
			    .data = many };
	struct rig rig = { 0 };
	uint64_t ino;

	rig_open(&rig, 64, 5);
	ino = make_file(&rig, true);
	op.offset = fill_rest(&rig, &op.ino);
	ck_assert_int_eq(rig_unlink(&rig, 1, "f"), 0);
	ck_assert_int_eq(rig_forget(&rig, ino, 1), 0);
	ck_assert_int_eq(rig_do(&rig, &op), 0);
	ck_assert_uint_eq(op.result, sizeof(many));
	/* Without a deletion there is nothing to wait for. */
	op.offset += sizeof(many);
	while (!rig_do(&rig, &op))
		op.offset += sizeof(many);
	ck_assert_int_eq(op.rc, -ENOSPC);
	ck_assert_int_eq(rig_sync(&rig), 0);
	rig_close(&rig);
}
END_TEST

/* A preallocation that there is no room for takes none, though it met many
 * gaps for which there was; what there is room for succeeds after it. */
START_TEST(a_preallocation_takes_all_or_nothing)
{
	struct fs_op all = { .type = FS_FALLOCATE, .size = 64 << 20 };
	struct fs_attr before, after;
	struct rig rig = { 0 };
	struct space_counts counts;
	uint64_t promised;

	rig_open(&rig, 64, 5);
	all.ino = make_file(&rig, false);
	ck_assert_int_eq(rig_getattr(&rig, all.ino, &before), 0);
	space_count(tree_space(rig.fs->tree), &counts);
	promised = counts.reserved;
	ck_assert_int_eq(rig_do(&rig, &all), -ENOSPC);
	ck_assert_int_eq(rig_getattr(&rig, all.ino, &after), 0);
	ck_assert_uint_eq(after.sectors, before.sectors);
	ck_assert_uint_eq(after.size, before.size);
	space_count(tree_space(rig.fs->tree), &counts);
	ck_assert_uint_eq(counts.reserved, promised);
	all.size = EXTENTS * 2 * BLOCK;
	ck_assert_int_eq(rig_do(&rig, &all), 0);
	ck_assert_int_eq(rig_getattr(&rig, all.ino, &after), 0);
	ck_assert_uint_eq(after.sectors, EXTENTS * 2 * BLOCK / 512);
	space_count(tree_space(rig.fs->tree), &counts);
	ck_assert_uint_eq(counts.reserved, promised);
	rig_close(&rig);
}
END_TEST

/* What was deleted right before an unmount has whole groups free after it,
 * though nothing was free there when the last root was cut.  The same after a
 * crash. */
START_TEST(room_is_there_after_a_mount)
{
	struct fs_op all = { .type = FS_FALLOCATE, .size = UINT64_C(5) << 30 };
	struct rig rig = { 0 };
	uint64_t first;

	rig_open(&rig, 6 << 10, 5);
	ck_assert_int_eq(rig_mknod(&rig, 1, "first", S_IFREG | 0644, &first),
			 0);
	all.ino = first;
	ck_assert_int_eq(rig_do(&rig, &all), 0);
	rig_remount(&rig);
	ck_assert_int_eq(rig_unlink(&rig, 1, "first"), 0);
	rig_settle(&rig);
	if (_i) {
		ck_assert_int_eq(rig_sync(&rig), 0);
		rig_crash(&rig);
	} else {
		rig_remount(&rig);
	}
	ck_assert_int_eq(rig_mknod(&rig, 1, "second", S_IFREG | 0644,
				   &all.ino), 0);
	ck_assert_int_eq(rig_do(&rig, &all), 0);
	rig_close(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trunc");
	TCase *tcase = tcase_create("trunc");

	tcase_add_test(tcase, readers_go_on);
	tcase_add_test(tcase, a_deletion_makes_room);
	tcase_add_test(tcase, a_preallocation_takes_all_or_nothing);
	tcase_add_loop_test(tcase, room_is_there_after_a_mount, 0, 2);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
