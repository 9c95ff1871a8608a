/*
 * test_small_readahead.c - many small files: written and read with few accesses
 * to the disk, whatever else happens to them meanwhile.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/msg.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define DIRS 6u
#define FILES_PER_DIR 60u
#define FILES (DIRS * FILES_PER_DIR)
#define MAX_BYTES 12000u
#define PASSES 3u
#define IN_VAIN_MOST (8u << 20)	/* bytes; 20 MB if all is read ahead */
#define BIG_BYTES (32u << 20)
#define BIG_READS 100u
#define BIG_BLOCK 4096u

static uint64_t ino[FILES];
static uint8_t data[MAX_BYTES], back[MAX_BYTES];

static uint64_t file_bytes(unsigned i)
{
	return 2100 + i * 7919u % (MAX_BYTES - 2100);
}

static void file_fill(unsigned i, unsigned version)
{
	memset(data, (int)(1 + (i * 31 + version) % 255), MAX_BYTES);
}

static void file_write(struct rig *rig, unsigned i, unsigned version)
{
	struct fs_op op = { .type = FS_WRITE, .ino = ino[i], .data = data,
			    .size = file_bytes(i) };

	file_fill(i, version);
	ck_assert_int_eq(rig_do(rig, &op), 0);
}

/* 0, or what reading it says. */
static int file_read(struct rig *rig, unsigned i, unsigned version)
{
	struct fs_op op = { .type = FS_READ, .ino = ino[i], .buffer = back,
			    .size = MAX_BYTES };
	int rc = rig_do(rig, &op);

	if (rc)
		return rc;
	file_fill(i, version);
	ck_assert_uint_eq(op.result, file_bytes(i));
	ck_assert_int_eq(memcmp(back, data, op.result), 0);
	return 0;
}

static uint64_t accesses(struct rig *rig)
{
	const struct sim_counts *counts = sim_counts(rig->sim);

	return counts->reads + counts->writes;
}

static void make_tree(struct rig *rig)
{
	char name[16];
	uint64_t dir = 0;

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		if (i % FILES_PER_DIR == 0)
			ck_assert_int_eq(rig_mkdir(rig, 1, name, &dir), 0);
		ck_assert_int_eq(rig_mknod(rig, dir, name, 0100644, &ino[i]),
				 0);
		file_write(rig, i, 0);
	}
}

START_TEST(small_files_are_read_in_few_accesses)
{
	uint64_t before;
	struct rig rig;

	rig_open(&rig, 256, 1);
	make_tree(&rig);
	before = accesses(&rig);
	ck_assert_int_eq(rig_sync(&rig), 0);
	ck_assert_uint_le(accesses(&rig) - before, FILES / 8);
	rig_remount(&rig);
	before = accesses(&rig);
	for (unsigned i = 0; i < FILES; i++)
		ck_assert_int_eq(file_read(&rig, i, 0), 0);
	ck_assert_uint_le(accesses(&rig) - before, FILES / 5);
	rig_close(&rig);
}
END_TEST

/* Far apart: nothing is read for nothing. */
START_TEST(files_far_apart_are_not_read_ahead)
{
	uint64_t before;
	struct rig rig;

	rig_open(&rig, 256, 2);
	make_tree(&rig);
	rig_remount(&rig);
	ck_assert_int_eq(file_read(&rig, 0, 0), 0);
	rig_settle(&rig);
	before = sim_counts(rig.sim)->reads;
	ck_assert_int_eq(file_read(&rig, FILES - 1, 0), 0);
	rig_settle(&rig);
	ck_assert_uint_le(sim_counts(rig.sim)->reads - before, 12);
	rig_close(&rig);
}
END_TEST

/* Files are written anew, cut and deleted while others read past them. */
START_TEST(read_ahead_bears_changes)
{
	struct fs_op cut = { .type = FS_SETATTR, .flags = FS_SET_SIZE };
	uint64_t rng = 77 + (uint64_t)_i;
	struct rig rig;

	rig_open(&rig, 256, 3);
	rig.options.memory_bytes = _i ? 33 << 20 : 0;
	make_tree(&rig);
	for (unsigned pass = 0; pass < PASSES; pass++) {
		rig_remount(&rig);
		for (unsigned i = 0; i < FILES; i++) {
			unsigned next = (i + 1 + test_random(&rng) % 8) % FILES;

			ck_assert_int_eq(file_read(&rig, i, pass), 0);
			if (next > i && test_random(&rng) % 4 == 0) {
				cut.ino = ino[next];
				cut.attr.size = test_random(&rng) % MAX_BYTES;
				ck_assert_int_eq(rig_do(&rig, &cut), 0);
				file_write(&rig, next, pass);
				cut.attr.size = file_bytes(next);
				ck_assert_int_eq(rig_do(&rig, &cut), 0);
			}
			file_write(&rig, i, pass + 1);
		}
	}
	rig_close(&rig);
}
END_TEST

START_TEST(deleted_files_are_not_read_ahead)
{
	char name[16];
	uint64_t dir;
	struct rig rig;

	rig_open(&rig, 256, 4);
	make_tree(&rig);
	rig_remount(&rig);
	for (unsigned i = 0; i + 1 < FILES; i += 2) {
		struct fs_attr attr;

		snprintf(name, sizeof(name), "n%u",
			 i / FILES_PER_DIR * FILES_PER_DIR);
		ck_assert_int_eq(rig_lookup(&rig, 1, name, &attr), 0);
		dir = attr.ino;
		ck_assert_int_eq(file_read(&rig, i, 0), 0);
		snprintf(name, sizeof(name), "n%u", i + 1);
		ck_assert_int_eq(rig_unlink(&rig, dir, name), 0);
	}
	rig_settle(&rig);
	ck_assert_int_eq(file_read(&rig, 1, 0), -ESTALE);
	rig_close(&rig);
}
END_TEST

#define LONG_FILES 60u
#define LONG_BYTES 200000u
#define BEGINNING 16384u

static void make_long_files(struct rig *rig)
{
	static uint8_t bytes[LONG_BYTES];
	struct fs_op op = { .type = FS_WRITE, .data = bytes,
			    .size = LONG_BYTES };
	uint64_t dir;
	char name[16];

	ck_assert_int_eq(rig_mkdir(rig, 1, "long", &dir), 0);
	for (unsigned i = 0; i < LONG_FILES; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		ck_assert_int_eq(rig_mknod(rig, dir, name, 0100644, &ino[i]),
				 0);
		memset(bytes, (int)i + 1, LONG_BYTES);
		op.ino = ino[i];
		ck_assert_int_eq(rig_do(rig, &op), 0);
	}
	rig_remount(rig);
}

/* Reads files [first, end) up to `bytes`, as the kernel does. */
static void read_long_files(struct rig *rig, unsigned first, unsigned end,
			    uint64_t bytes)
{
	static uint8_t buffer[LONG_BYTES];
	struct fs_op op = { .type = FS_READ, .buffer = buffer,
			    .size = BEGINNING };

	for (unsigned i = first; i < end; i++)
		for (op.offset = 0; op.offset < bytes;
		     op.offset += BEGINNING) {
			op.ino = ino[i];
			ck_assert_int_eq(rig_do(rig, &op), 0);
			ck_assert_uint_gt(op.result, 0);
			ck_assert_uint_eq(buffer[op.result - 1], i + 1);
		}
	rig_settle(rig);
}

/* Who reads the beginnings of files gets few of their ends, and who then reads
 * whole files gets them in few accesses. */
START_TEST(beginnings_are_read_ahead_where_these_are_wanted)
{
	struct sim_counts before;
	uint64_t sectors;
	struct rig rig;

	rig_open(&rig, 256, 5);
	make_long_files(&rig);
	before = *sim_counts(rig.sim);
	read_long_files(&rig, 0, LONG_FILES / 2, BEGINNING);
	sectors = sim_counts(rig.sim)->read_sectors - before.read_sectors;
	ck_assert_uint_le(sectors * SECTOR_BYTES,
			  LONG_FILES / 2 * BEGINNING + 8 * LONG_BYTES);
	before = *sim_counts(rig.sim);
	read_long_files(&rig, LONG_FILES / 2, LONG_FILES, LONG_BYTES);
	ck_assert_uint_le(sim_counts(rig.sim)->reads - before.reads,
			  LONG_FILES / 2 + 20);
	rig_close(&rig);
}
END_TEST

/* Small reads at random, now and then near each other: no more is read than is
 * asked for, but for checksums. */
START_TEST(chance_makes_no_stream)
{
	const uint64_t blocks = BIG_BYTES / BIG_BLOCK;
	struct sim_counts before;
	struct fs_op op = { .type = FS_WRITE, .data = data };
	uint64_t at = 1000, big = 0, sectors;
	struct rig rig;
	unsigned i;

	rig_open(&rig, 256, 1);
	ck_assert_int_eq(rig_mknod(&rig, 1, "big", 0100644, &big), 0);
	op.ino = big;
	op.size = BIG_BLOCK;
	for (; op.offset < BIG_BYTES; op.offset += BIG_BLOCK)
		ck_assert_int_eq(rig_do(&rig, &op), 0);
	rig_remount(&rig);
	before = *sim_counts(rig.sim);
	for (i = 0; i < BIG_READS; i++) {
		/* Every other one a little behind the one before. */
		at = i % 2 ? at + 3 : at + blocks / 7;
		op = (struct fs_op){ .type = FS_READ, .ino = big,
				     .buffer = back, .size = BIG_BLOCK,
				     .offset = at % blocks * BIG_BLOCK };
		ck_assert_int_eq(rig_do(&rig, &op), 0);
	}
	rig_settle(&rig);
	sectors = sim_counts(rig.sim)->read_sectors - before.read_sectors;
	ck_assert_uint_le(sectors * SECTOR_BYTES,
			  2 * BIG_READS * BIG_BLOCK + (1u << 20));
	rig_close(&rig);
}
END_TEST

/* Files in any order and little memory: what is read ahead leaves it before
 * anybody comes, and soon nearly nothing is; in order again, it is again. */
START_TEST(read_ahead_in_vain_ends)
{
	struct sim_counts before;
	uint64_t rng = 9, n;
	struct rig rig;
	unsigned i;

	rig_open(&rig, 256, 5);
	rig.options.memory_bytes = 33 << 20;
	make_tree(&rig);
	rig_remount(&rig);
	for (i = 0; i < FILES; i++)
		ck_assert_int_eq(file_read(&rig,
				test_random(&rng) % FILES, 0), 0);
	before = *sim_counts(rig.sim);
	for (i = 0; i < FILES; i++)
		ck_assert_int_eq(file_read(&rig,
				test_random(&rng) % FILES, 0), 0);
	rig_settle(&rig);
	n = sim_counts(rig.sim)->read_sectors - before.read_sectors;
	ck_assert_msg(n * 512 < IN_VAIN_MOST, "%lu bytes", n * 512);
	for (i = 0; i < FILES; i++)
		ck_assert_int_eq(file_read(&rig, i, 0), 0);
	before = *sim_counts(rig.sim);
	for (i = 0; i < FILES; i++)
		ck_assert_int_eq(file_read(&rig, i, 0), 0);
	n = sim_counts(rig.sim)->reads - before.reads;
	ck_assert_msg(n < FILES / 2, "%lu reads", n);
	rig_close(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("near");
	TCase *tcase = tcase_create("near");

	msg_set_level(MSG_WARN);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, small_files_are_read_in_few_accesses);
	tcase_add_test(tcase, files_far_apart_are_not_read_ahead);
	tcase_add_loop_test(tcase, read_ahead_bears_changes, 0, 2);
	tcase_add_test(tcase, deleted_files_are_not_read_ahead);
	tcase_add_test(tcase, beginnings_are_read_ahead_where_these_are_wanted);
	tcase_add_test(tcase, chance_makes_no_stream);
	tcase_add_test(tcase, read_ahead_in_vain_ends);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
