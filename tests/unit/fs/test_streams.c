/*
 * test_streams.c - large files that are read at the same time, on a simulated
 * drive in virtual time: each is read ahead so far that the way from one to the
 * other costs little.  And rates that are promised to their readers.
 */
#include <errno.h>
#include <string.h>

#include "bench/rig.h"
#include "tests/rig/test.h"

#define FILES 3u
#define FILE_BYTES (64u << 20)
#define PIECE (128u << 10)	/* bytes that a reader asks for at once */
#define WRITE_BYTES (1u << 20)

static struct rig rig;
static struct fs_options options;
static struct fs *fs;
static uint64_t ino[FILES];
static uint8_t data[WRITE_BYTES];

static void op_done(struct fs_op *op)
{
	*(bool *)op->owner = true;
}

static void run(struct fs_op *op)
{
	bool done = false;
	uint64_t next_ns;

	op->done = op_done;
	op->owner = &done;
	fs_submit(fs, op);
	while (!done) {
		next_ns = fs_run(fs, 0);
		if (!done && sim_next_ns(rig.sim) < next_ns)
			next_ns = sim_next_ns(rig.sim);
		if (!done && next_ns > sim_now_ns(rig.sim))
			sim_advance(rig.sim, next_ns - sim_now_ns(rig.sim));
	}
	ck_assert_int_eq(op->rc, 0);
}

static void write_file(unsigned i)
{
	const char name[] = { (char)('a' + i), 0 };
	struct fs_op op = { .type = FS_MKNOD, .ino = 1, .name = name,
			    .mode = 0100644 };
	uint64_t at;

	run(&op);
	ino[i] = op.attr.ino;
	for (at = 0; at < FILE_BYTES; at += WRITE_BYTES)
		run(&(struct fs_op){ .type = FS_WRITE, .ino = ino[i],
				     .offset = at, .size = WRITE_BYTES,
				     .data = data });
	run(&(struct fs_op){ .type = FS_SYNCFS, .ino = 1 });
}

static void make(const char *drive, size_t memory_bytes)
{
	unsigned i;

	ck_assert_int_eq(rig_open(&(struct rig_options){
		.drive = drive, .seed = 1 }, &rig), 0);
	options = (struct fs_options){ .memory_bytes = memory_bytes };
	ck_assert_int_eq(rig_make_fs(&rig, &options, &fs), 0);
	memset(data, 7, sizeof(data));
	for (i = 0; i < FILES; i++)
		write_file(i);
}

static void setup(void)
{
	make("random:7", 512 << 20);
}

/* Two tracks of each file, 3.8 MB, are more than its share of the memory. */
static void setup_little(void)
{
	make("modern", 56 << 20);
}

static void teardown(void)
{
	ck_assert_int_eq(fs_close(fs), 0);
	rig_close(&rig);
}

/* Opens it anew: nothing is in memory. */
static void forget_all(void)
{
	unsigned i;

	ck_assert_int_eq(fs_close(fs), 0);
	ck_assert_int_eq(fs_open(rig.env, sim_disk(rig.sim), &options, &fs), 0);
	for (i = 0; i < FILES; i++) {
		const char name[] = { (char)('a' + i), 0 };

		run(&(struct fs_op){ .type = FS_LOOKUP, .ino = 1,
				     .name = name });
	}
}

static void read_piece(unsigned i, uint64_t at, uint32_t thread)
{
	run(&(struct fs_op){ .type = FS_READ, .ino = ino[i], .offset = at,
			     .size = PIECE, .buffer = data, .thread = thread });
}

/* Milliseconds that it takes to read all files, one after the other. */
static uint64_t in_order_ms(void)
{
	uint64_t begin_ns, at;
	unsigned i;

	forget_all();
	begin_ns = sim_now_ns(rig.sim);
	for (i = 0; i < FILES; i++)
		for (at = 0; at < FILE_BYTES; at += PIECE)
			read_piece(i, at, 1);
	return (sim_now_ns(rig.sim) - begin_ns) / 1000000;
}

/* ... and to read them at the same time, as a program that compares them. */
static uint64_t in_turns_ms(uint32_t thread)
{
	uint64_t begin_ns, at;
	unsigned i;

	forget_all();
	begin_ns = sim_now_ns(rig.sim);
	for (at = 0; at < FILE_BYTES; at += PIECE)
		for (i = 0; i < FILES; i++)
			read_piece(i, at, thread);
	return (sim_now_ns(rig.sim) - begin_ns) / 1000000;
}

START_TEST(files_read_in_turns_take_little_longer)
{
	uint64_t order_ms = in_order_ms();

	ck_assert_uint_le(in_turns_ms(1), order_ms * 5 / 4);
}
END_TEST

/* What is read ahead of one file doesn't push out what the others have not used
 * yet: it would be read twice, a piece at a time. */
START_TEST(files_read_in_turns_share_little_memory)
{
	uint64_t order_ms = in_order_ms();

	ck_assert_uint_le(in_turns_ms(1), order_ms * 2);
}
END_TEST

static unsigned rooms;

static void *give_room(struct fs_op *op)
{
	ck_assert_uint_le(op->size, sizeof(data));
	rooms++;
	return data;
}

static void *give_none(struct fs_op *op)
{
	(void)op;
	return NULL;
}

START_TEST(a_read_has_no_buffer_while_it_waits)
{
	struct fs_op op = { .type = FS_READ, .room = give_room,
			    .size = 2 * PIECE };
	bool done = false;

	forget_all();
	op.ino = ino[0];
	op.done = op_done;
	op.owner = &done;
	rooms = 0;
	memset(data, 0, sizeof(data));
	fs_submit(fs, &op);
	fs_run(fs, 0);
	ck_assert(!done && !rooms);
	while (!done) {
		sim_advance(rig.sim, 1000000);
		fs_run(fs, 0);
	}
	ck_assert_int_eq(op.rc, 0);
	ck_assert_uint_eq(op.result, 2 * PIECE);
	ck_assert_uint_eq(rooms, 1);
	ck_assert_uint_eq(data[0], 7);
	ck_assert_uint_eq(data[2 * PIECE - 1], 7);
	ck_assert_uint_eq(data[2 * PIECE], 0);
	memset(data, 7, sizeof(data));
}
END_TEST

START_TEST(a_read_without_room_fails_alone)
{
	struct fs_op op = { .type = FS_READ, .room = give_none, .size = PIECE };
	bool done = false;

	op.ino = ino[0];
	op.done = op_done;
	op.owner = &done;
	fs_submit(fs, &op);
	while (!done) {
		sim_advance(rig.sim, 1000000);
		fs_run(fs, 0);
	}
	ck_assert_int_eq(op.rc, -ENOMEM);
	read_piece(0, 0, 1);
	ck_assert_uint_eq(data[0], 7);
}
END_TEST

/* Asks for a promise.  *files: how many files have one then. */
static int ask(unsigned i, uint64_t rate, uint32_t uid, unsigned *files)
{
	uint64_t all;

	return fs_promise(fs, &(struct fs_promise){
		.ino = ino[i], .rate = rate, .uid = uid, .admin = !uid },
		&all, files);
}

START_TEST(a_user_gets_half_and_leaves_promises_of_others)
{
	uint64_t rate = 1 << 16;
	unsigned files = 0;

	read_piece(0, 0, 1);
	while (!ask(0, rate, 1000, &files))
		rate *= 2;
	ck_assert_int_eq(ask(0, rate, 1000, &files), -EDQUOT);
	/* What it was promised before still is. */
	ck_assert_int_eq(ask(1, rate / 2, 1000, &files), -EDQUOT);
	ck_assert_int_eq(ask(1, rate / 4, 1001, &files), 0);
	ck_assert_uint_eq(files, 2);
	ck_assert_int_eq(ask(0, 0, 1001, &files), -EPERM);
	ck_assert_int_eq(ask(0, 1 << 16, 1001, &files), -EPERM);
	ck_assert_int_eq(ask(0, 0, 0, &files), 0);
	ck_assert_int_eq(ask(1, 0, 1001, &files), 0);
	ck_assert_uint_eq(files, 0);
	/* The administrator has no such limit. */
	ck_assert_int_eq(ask(0, rate, 0, &files), 0);
}
END_TEST

START_TEST(a_promise_ends_with_its_file)
{
	unsigned files = 0;

	read_piece(0, 0, 1);
	ck_assert_int_eq(ask(0, 1 << 16, 0, &files), 0);
	ck_assert_int_eq(ask(1, 1 << 16, 0, &files), 0);
	ck_assert_uint_eq(files, 2);
	run(&(struct fs_op){ .type = FS_UNLINK, .ino = 1, .name = "a" });
	run(&(struct fs_op){ .type = FS_FORGET, .ino = ino[0], .size = 1 });
	run(&(struct fs_op){ .type = FS_SYNCFS, .ino = 1 });
	ck_assert_int_eq(ask(1, 1 << 16, 0, &files), 0);
	ck_assert_uint_eq(files, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("streams");
	TCase *all = tcase_create("all");
	TCase *little = tcase_create("little memory");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_set_timeout(all, 120);
	tcase_add_test(all, files_read_in_turns_take_little_longer);
	tcase_add_test(all, a_read_has_no_buffer_while_it_waits);
	tcase_add_test(all, a_read_without_room_fails_alone);
	tcase_add_test(all, a_user_gets_half_and_leaves_promises_of_others);
	tcase_add_test(all, a_promise_ends_with_its_file);
	suite_add_tcase(suite, all);
	tcase_add_checked_fixture(little, setup_little, teardown);
	tcase_set_timeout(little, 120);
	tcase_add_test(little, files_read_in_turns_share_little_memory);
	suite_add_tcase(suite, little);
	return test_run(suite);
}
