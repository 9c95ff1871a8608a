/*
 * test_trunc.c - a file of many extents is cut in many steps, and can be read
 * meanwhile.
 */
#include <string.h>

#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define BLOCK 4096u
#define EXTENTS 1500u
#define KEPT 40u		/* of them: whole cache chunks */

static void fill(uint8_t *block, unsigned i)
{
	memset(block, (int)(1 + i % 250), BLOCK);
}

/* Every other block, so that each has an extent. */
static uint64_t make_file(struct rig *rig)
{
	uint8_t block[BLOCK];
	struct fs_op op = { .type = FS_WRITE, .size = BLOCK, .data = block };
	uint64_t ino;
	unsigned i;

	ck_assert_int_eq(rig_mknod(rig, 1, "f", S_IFREG | 0600, &ino), 0);
	op.ino = ino;
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
	ino = make_file(&rig);
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

int main(void)
{
	Suite *suite = suite_create("trunc");
	TCase *tcase = tcase_create("trunc");

	tcase_add_test(tcase, readers_go_on);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
