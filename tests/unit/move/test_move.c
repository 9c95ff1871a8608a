/*
 * test_move.c - moves on a simulated disk: tracks are emptied, and whatever
 * users, the disk and the power do meanwhile, nothing is lost and no room
 * leaks.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/op/fs_internal.h"
#include "move/move_internal.h"
#include "tests/rig/rig_fs.h"
#include "tests/rig/test.h"

#define MIB 96u
#define FILES 1500u
#define BYTES 49152u		/* of a file */
#define MAX_TURNS 400000u
#define FULL_TURNS 60000u	/* five minutes */
#define TURN_NS 5000000u
#define HOUR_NS UINT64_C(3600000000000)

struct bench {
	struct rig rig;
	struct moves *moves;
	uint64_t ino[FILES];	/* 0: it was deleted */
	uint8_t version[FILES];
	uint64_t seed;
};

static void fill(uint8_t *data, unsigned file, unsigned version)
{
	for (size_t i = 0; i < BYTES; i++)
		data[i] = (uint8_t)(i * 7 + i / 4096 * 13 + file * 31 +
				    version * 101);
}

static void file_put_content(struct bench *b, unsigned file)
{
	static uint8_t data[BYTES];
	struct fs_op op = { .type = FS_WRITE, .ino = b->ino[file],
			    .size = BYTES, .data = data };

	fill(data, file, b->version[file]);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
}

static void file_make(struct bench *b, unsigned file)
{
	char name[16];

	snprintf(name, sizeof(name), "file%u", file);
	ck_assert_int_eq(rig_mknod(&b->rig, 1, name, S_IFREG | 0644,
				   &b->ino[file]), 0);
	file_put_content(b, file);
}

static void file_remove(struct bench *b, unsigned file)
{
	char name[16];

	snprintf(name, sizeof(name), "file%u", file);
	ck_assert_int_eq(rig_unlink(&b->rig, 1, name), 0);
	rig_forget(&b->rig, b->ino[file], 1);
	b->ino[file] = 0;
}

static void files_verify(struct bench *b)
{
	static uint8_t data[BYTES], seen[BYTES];

	for (unsigned i = 0; i < FILES; i++) {
		struct fs_op op = { .type = FS_READ, .ino = b->ino[i],
				    .size = BYTES, .buffer = seen };

		if (!b->ino[i])
			continue;
		ck_assert_int_eq(rig_do(&b->rig, &op), 0);
		ck_assert_uint_eq(op.result, BYTES);
		fill(data, i, b->version[i]);
		ck_assert_int_eq(memcmp(data, seen, BYTES), 0);
	}
}

/* Of four files three are deleted, in no order, and all of it is old. */
static void bench_open(struct bench *b, uint64_t seed)
{
	memset(b, 0, sizeof(*b));
	b->seed = seed;
	rig_open(&b->rig, MIB, seed + 3);
	for (unsigned i = 0; i < FILES; i++)
		file_make(b, i);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
	for (unsigned i = 0; i < FILES; i++)
		if (test_random(&b->seed) % 4)
			file_remove(b, i);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
	rig_remount(&b->rig);
	sim_advance(b->rig.sim, HOUR_NS);
	ck_assert_int_eq(moves_open(b->rig.fs, &b->moves), 0);
}

static void bench_close(struct bench *b)
{
	moves_close(b->moves);
	rig_close(&b->rig);
}

static void turn(struct bench *b)
{
	fs_run(b->rig.fs, 0);
	moves_run(b->moves);
	fs_run(b->rig.fs, 0);
	sim_advance(b->rig.sim, TURN_NS);
}

static void run_until(struct bench *b, uint64_t tracks, uint64_t sectors)
{
	struct moves_status s;
	unsigned turns = 0;

	do {
		turn(b);
		moves_get_status(b->moves, &s);
		ck_assert_uint_lt(turns++, MAX_TURNS);
	} while (s.tracks < tracks || s.sectors < sectors);
}

static unsigned whole_tracks(struct bench *b)
{
	const struct rangeset *set =
		space_free_set(tree_space(b->rig.fs->tree));
	struct range run, track;
	unsigned n = 0;

	for (uint64_t at = 0; rangeset_next(set, at, &run);) {
		at = run.first > at ? run.first : at;
		alloc_track(b->rig.fs->alloc, at, &track);
		n += rangeset_has(set, track.first, track.n);
		at = track.first + track.n > at ? track.first + track.n :
						  at + 8;
	}
	return n;
}

START_TEST(tracks_are_emptied)
{
	struct moves_status s;
	unsigned before;
	struct bench b;

	bench_open(&b, (uint64_t)_i);
	turn(&b);
	run_until(&b, 0, 1);
	before = whole_tracks(&b);
	run_until(&b, 12, 0);
	ck_assert_uint_ge(whole_tracks(&b), before + 6);
	moves_get_status(b.moves, &s);
	ck_assert_uint_eq(s.failed_sectors, 0);
	ck_assert_uint_eq(s.stale_sectors, 0);
	ck_assert_uint_eq(s.read_sectors, s.written_sectors);
	files_verify(&b);
	moves_close(b.moves);
	rig_remount(&b.rig);
	files_verify(&b);
	rig_close(&b.rig);
}
END_TEST

static void change_something(struct bench *b)
{
	unsigned i = test_random(&b->seed) % FILES;

	switch (test_random(&b->seed) % 4) {
	case 0:
		if (b->ino[i])
			file_remove(b, i);
		break;
	case 1:
		if (!b->ino[i])
			file_make(b, i);
		break;
	default:
		if (b->ino[i]) {
			b->version[i]++;
			file_put_content(b, i);
		}
		if (test_random(&b->seed) % 4 == 0)
			ck_assert_int_eq(rig_sync(&b->rig), 0);
	}
}

/* Users overwrite, delete and make files all the while. */
START_TEST(users_change_files)
{
	struct moves_status s;
	struct bench b;

	bench_open(&b, 40 + (uint64_t)_i);
	b.moves->limits = (struct move_limits){ -1, 1, 100, TURN_NS, 0,
						true };
	for (unsigned i = 0; i < 40000; i++) {
		turn(&b);
		if (i % 400 < 40)
			change_something(&b);
	}
	moves_get_status(b.moves, &s);
	ck_assert_uint_gt(s.sectors, 8192);
	files_verify(&b);
	bench_close(&b);
}
END_TEST

static void cut(struct bench *b, enum sim_cut how)
{
	struct rig *rig = &b->rig;

	ck_assert_int_eq(sim_power_cut(rig->sim, how, b->seed), 0);
	fs_run(rig->fs, 0);
	moves_close(b->moves);
	fs_abandon(rig->fs);
	sim_restart(rig->sim);
	ck_assert_int_eq(fs_open(sim_env(rig->sim), sim_disk(rig->sim),
				 &rig->options, &rig->fs), 0);
}

/* Power goes in the middle: all is there, and the checker finds no leak. */
START_TEST(a_power_cut_in_a_move_loses_nothing)
{
	static const enum sim_cut cuts[] = { SIM_CUT_KEEP, SIM_CUT_DROP,
					     SIM_CUT_RANDOM };
	struct bench b;

	bench_open(&b, 80 + (uint64_t)_i);
	for (int i = 0; i < 4 + _i * 9; i++)
		turn(&b);
	cut(&b, cuts[_i % 3]);
	files_verify(&b);
	rig_close(&b.rig);
}
END_TEST

static bool is_in_step(const struct bench *b, enum move_step step)
{
	for (unsigned i = 0; i < MOVE_SLOTS; i++)
		if (b->moves->move[i] && b->moves->move[i]->step == step)
			return true;
	return false;
}

/* Until a move is in a step. */
static void reach_step(struct bench *b, enum move_step step)
{
	unsigned turns = 0;

	while (!is_in_step(b, step)) {
		ck_assert_uint_lt(turns++, MAX_TURNS);
		sim_advance(b->rig.sim, TURN_NS);
		fs_run(b->rig.fs, 0);
		if (!is_in_step(b, step))
			moves_run(b->moves);
	}
}

/* What can't be written, or read back, stays where it is.  The first writes
 * after a move has begun are its data. */
START_TEST(a_failed_move_changes_nothing)
{
	const struct sim_fault fault = {
		.kind = _i % 2 ? SIM_FLIP : SIM_FAIL,
		.ops = SIM_WRITES, .sectors = MIB << 11, .k = 1, .times = 12,
	};
	struct moves_status s;
	unsigned turns = 0;
	struct bench b;

	bench_open(&b, 120 + (uint64_t)_i);
	reach_step(&b, MOVE_READ);
	ck_assert_int_eq(sim_fault_add(b.rig.sim, &fault), 0);
	while (sim_fault_hits(b.rig.sim) < fault.times) {
		ck_assert_uint_lt(turns++, MAX_TURNS);
		turn(&b);
	}
	sim_fault_clear(b.rig.sim);
	run_until(&b, 12, 0);
	moves_get_status(b.moves, &s);
	ck_assert_uint_gt(s.failed_sectors, 0);
	files_verify(&b);
	bench_close(&b);
}
END_TEST

/* A pause lets nothing begin; a close in the middle gives all back. */
START_TEST(pause_and_close)
{
	struct moves_status s;
	struct bench b;

	bench_open(&b, 160);
	moves_pause(b.moves, true);
	for (int i = 0; i < 300; i++)
		turn(&b);
	moves_get_status(b.moves, &s);
	ck_assert_uint_eq(s.begun, 0);
	moves_pause(b.moves, false);
	for (int i = 0; i < 3 + _i; i++)
		turn(&b);
	bench_close(&b);
}
END_TEST

/* Somebody asks for something all the while. */
static void busy_turns(struct bench *b, unsigned turns)
{
	struct fs_op op = { .type = FS_STATFS, .ino = TRAX_ROOT_INO };

	while (turns--) {
		turn(b);
		ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	}
}

START_TEST(nothing_is_emptied_beside_users)
{
	struct moves_status before, s;
	struct bench b;

	bench_open(&b, 180 + (uint64_t)_i);
	busy_turns(&b, 400);
	moves_get_status(b.moves, &before);
	busy_turns(&b, 4000);
	moves_get_status(b.moves, &s);
	ck_assert_uint_eq(s.begun, before.begun);
	bench_close(&b);
}
END_TEST

static uint64_t reserved(struct bench *b)
{
	struct space_counts count;

	space_count(tree_space(b->rig.fs->tree), &count);
	return count.reserved;
}

/* An unmount comes while a move is in the middle of a step. */
START_TEST(unmounts_in_each_step)
{
	enum move_step step = (enum move_step)_i;
	uint64_t before;
	struct bench b;

	bench_open(&b, 200 + (uint64_t)_i);
	before = reserved(&b);
	reach_step(&b, step);
	moves_close(b.moves);
	ck_assert_uint_eq(reserved(&b), before);
	rig_remount(&b.rig);
	files_verify(&b);
	rig_close(&b.rig);
}
END_TEST

/* A pause and what was counted are there after a remount. */
START_TEST(outlives_a_mount)
{
	uint64_t tracks, read;
	struct bench b;

	bench_open(&b, 170);
	run_until(&b, 3, 0);
	moves_pause(b.moves, true);
	moves_count(b.moves);
	read = b.moves->month[0].read;
	ck_assert_uint_ge(read, b.moves->status.sectors * 2);
	tracks = b.moves->status.tracks;
	moves_close(b.moves);
	rig_remount(&b.rig);
	ck_assert_int_eq(moves_open(b.rig.fs, &b.moves), 0);
	for (int i = 0; i < 300; i++)
		turn(&b);
	ck_assert(b.moves->status.paused);
	ck_assert_uint_eq(b.moves->status.begun, 0);
	ck_assert_uint_ge(b.moves->tracks_before, tracks);
	ck_assert_uint_ge(b.moves->month[0].read, read);
	bench_close(&b);
}
END_TEST

/* Counts the pieces of a file that begin elsewhere than at `end`, which then is
 * behind its last one. */
static unsigned pieces_of(struct bench *b, uint64_t ino, uint64_t *end)
{
	static struct fs_extent list[256];
	struct fs_op op = { .type = FS_EXTENTS, .ino = ino,
			    .buffer = list, .size = 256 };
	unsigned n = 0;

	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	for (unsigned k = 0; k < op.result; k++) {
		if (list[k].is_inline)
			continue;
		n += list[k].lbn != *end;
		*end = list[k].lbn + list[k].bytes / SECTOR_BYTES;
	}
	return n;
}

/* Of all files, in the order of their numbers. */
static unsigned pieces(struct bench *b)
{
	uint64_t end = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < FILES; i++)
		n += b->ino[i] ? pieces_of(b, b->ino[i], &end) : 0;
	return n;
}

static void order_all(struct bench *b)
{
	for (unsigned i = 0; i < FILES; i++)
		if (b->ino[i])
			ck_assert_int_eq(moves_order(b->moves, b->ino[i]), 0);
}

static bool is_ordering(const struct bench *b)
{
	struct order_status s;

	order_get_status(b->moves, &s);
	return s.wanted || s.is_at_work;
}

static void order_to_the_end(struct bench *b)
{
	for (unsigned turns = 0; is_ordering(b); turns++) {
		ck_assert_uint_lt(turns, MAX_TURNS);
		turn(b);
	}
}

/* Small files that lie apart are brought together, and nothing that lies well
 * is moved again. */
START_TEST(files_are_brought_together)
{
	struct order_status s, again;
	unsigned before, after;
	struct bench b;

	bench_open(&b, 220 + (uint64_t)_i);
	moves_pause(b.moves, true);
	before = pieces(&b);
	order_all(&b);
	order_to_the_end(&b);
	after = pieces(&b);
	order_get_status(b.moves, &s);
	ck_assert_uint_lt(after, before / 2);
	ck_assert_uint_gt(s.runs_before, 2 * s.runs_after);
	files_verify(&b);
	order_all(&b);
	order_to_the_end(&b);
	order_get_status(b.moves, &again);
	ck_assert_uint_lt(again.sectors - s.sectors, s.sectors / 8);
	moves_close(b.moves);
	rig_remount(&b.rig);
	files_verify(&b);
	ck_assert_uint_le(pieces(&b), after);
	rig_close(&b.rig);
}
END_TEST

static unsigned cleaning_moves(const struct bench *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MOVE_SLOTS; i++)
		n += b->moves->move[i] && !b->moves->move[i]->is_order;
	return n;
}

/* Tracks are emptied only after what lies apart was brought together. */
START_TEST(order_comes_before_cleaning)
{
	struct order_status s;
	unsigned turns = 0;
	struct bench b;

	bench_open(&b, 240 + (uint64_t)_i);
	order_all(&b);
	do {
		turn(&b);
		ck_assert_uint_eq(cleaning_moves(&b), 0);
		ck_assert_uint_lt(turns++, MAX_TURNS);
		order_get_status(b.moves, &s);
	} while (s.wanted || s.is_at_work);
	ck_assert_uint_gt(s.sectors, 0);
	files_verify(&b);
	bench_close(&b);
}
END_TEST

/* 97 % full, then of two small files one is deleted. */
static void full_open(struct bench *b)
{
	struct fs_op stat = { .type = FS_STATFS, .ino = TRAX_ROOT_INO };
	struct fs_op rest = { .type = FS_FALLOCATE };
	uint64_t left;

	memset(b, 0, sizeof(*b));
	b->seed = 300;
	rig_open(&b->rig, MIB, 300);
	for (unsigned i = 0; i < FILES; i++)
		file_make(b, i);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
	ck_assert_int_eq(rig_do(&b->rig, &stat), 0);
	left = stat.statfs.blocks * 3 / 100;
	ck_assert_uint_gt(stat.statfs.free, left);
	ck_assert_int_eq(rig_mknod(&b->rig, 1, "rest", S_IFREG | 0644,
				   &rest.ino), 0);
	rest.size = (stat.statfs.free - left) * TRAX_BLOCK_BYTES;
	/* What checksums and extents will need is kept from it. */
	while (rig_do(&b->rig, &rest))
		rest.size -= TRAX_BLOCK_BYTES * 16;
	for (unsigned i = 0; i < FILES; i++)
		if (test_random(&b->seed) % 2)
			file_remove(b, i);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
	rig_remount(&b->rig);
	sim_advance(b->rig.sim, HOUR_NS);
}

/* Pieces of a file of 16 MiB that is made now. */
static unsigned large_pieces(struct bench *b)
{
	static uint8_t data[1 << 20];
	struct fs_op op = { .type = FS_WRITE, .size = sizeof(data),
			    .data = data };
	uint64_t end = 0;

	ck_assert_int_eq(rig_mknod(&b->rig, 1, "large", S_IFREG | 0644,
				   &op.ino), 0);
	for (; op.offset < 16u << 20; op.offset += op.size)
		ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	ck_assert_int_eq(rig_sync(&b->rig), 0);
	return pieces_of(b, op.ino, &end);
}

/* Where what was deleted left holes there is room for large files after a quiet
 * time. */
START_TEST(a_full_disk_has_room_again)
{
	unsigned before, after;
	struct bench b;

	full_open(&b);
	before = large_pieces(&b);
	rig_close(&b.rig);
	full_open(&b);
	ck_assert_int_eq(moves_open(b.rig.fs, &b.moves), 0);
	for (unsigned turns = 0; turns < FULL_TURNS; turns++)
		turn(&b);
	after = large_pieces(&b);
	files_verify(&b);
	bench_close(&b);
	ck_assert_uint_lt(after * 4, before);
}
END_TEST

#define PARTS 40u

static void part_do(struct bench *b, uint64_t ino, unsigned part,
		    enum fs_op_type type)
{
	static uint8_t data[BYTES], seen[BYTES];
	struct fs_op op = { .type = type, .ino = ino, .size = BYTES,
			    .offset = part * (uint64_t)BYTES,
			    .data = data, .buffer = seen };

	fill(data, part, 1);
	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	if (type == FS_READ)
		ck_assert_int_eq(memcmp(data, seen, BYTES), 0);
}

/* Two files grow by turns: they lie in pieces. */
static void make_pieces(struct bench *b, uint64_t ino[2])
{
	ck_assert_int_eq(rig_mknod(&b->rig, 1, "one", S_IFREG | 0644, &ino[0]),
			 0);
	ck_assert_int_eq(rig_mknod(&b->rig, 1, "two", S_IFREG | 0644, &ino[1]),
			 0);
	for (unsigned i = 0; i < 2 * PARTS; i++) {
		part_do(b, ino[i % 2], i / 2, FS_WRITE);
		ck_assert_int_eq(rig_sync(&b->rig), 0);
	}
}

static void remount(struct bench *b)
{
	moves_close(b->moves);
	rig_remount(&b->rig);
	ck_assert_int_eq(moves_open(b->rig.fs, &b->moves), 0);
	moves_pause(b->moves, true);
}

/* As a read of all of the file from the disk is told. */
static void tell_read(struct bench *b, uint64_t ino)
{
	static struct fs_extent list[256];
	static struct file file;
	struct read_watch *watch = b->rig.fs->read_watch;
	struct fs_op op = { .type = FS_EXTENTS, .ino = ino,
			    .buffer = list, .size = 256 };

	ck_assert_int_eq(rig_do(&b->rig, &op), 0);
	file.ino = ino;
	file.size = (uint64_t)PARTS * BYTES;
	for (unsigned i = 0; i < op.result; i++) {
		struct read_segment segment = {
			.file = &file,
			.addr = list[i].lbn, .n = list[i].bytes / SECTOR_BYTES,
			.off = list[i].offset / SECTOR_BYTES,
			.first = list[i].lbn,
			.end = list[i].lbn + list[i].bytes / SECTOR_BYTES,
		};

		watch->read(watch, &segment);
	}
}

static const struct notice_file *noticed(const struct bench *b, uint64_t ino)
{
	for (unsigned i = 0; i < NOTICE_FILES; i++)
		if (b->moves->notice.file[i].ino == ino)
			return &b->moves->notice.file[i];
	ck_abort_msg("nothing was noticed");
}

/* Both files are read from the disk once, and one again and again: that one is
 * brought together. */
START_TEST(what_is_read_is_brought_together)
{
	uint64_t ino[2], end[2] = { 0, 0 };
	unsigned before[2];
	struct bench b;

	bench_open(&b, 230 + (uint64_t)_i);
	make_pieces(&b, ino);
	remount(&b);
	for (unsigned i = 0; i < 2; i++)
		before[i] = pieces_of(&b, ino[i], &end[i]);
	ck_assert_uint_gt(before[0], 8);
	for (unsigned i = 0; i < 2 * PARTS; i++)
		part_do(&b, ino[i >= PARTS], i % PARTS, FS_READ);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_gt(noticed(&b, ino[i])->sectors,
				  PARTS * BYTES / SECTOR_BYTES / 2);
		ck_assert_uint_gt(noticed(&b, ino[i])->breaks, before[i] / 2);
	}
	for (unsigned round = 1; round <= 16; round++)
		tell_read(&b, ino[0]);
	ck_assert_uint_ge(noticed(&b, ino[0])->reads, 15);
	order_to_the_end(&b);
	end[0] = end[1] = 0;
	ck_assert_uint_lt(pieces_of(&b, ino[0], &end[0]), before[0] / 2);
	ck_assert_uint_eq(pieces_of(&b, ino[1], &end[1]), before[1]);
	remount(&b);
	for (unsigned i = 0; i < 2 * PARTS; i++)
		part_do(&b, ino[i % 2], i / 2, FS_READ);
	bench_close(&b);
}
END_TEST

/* Users change files, and the power goes or an unmount comes. */
START_TEST(order_beside_users)
{
	struct bench b;

	bench_open(&b, 240 + (uint64_t)_i);
	order_all(&b);
	for (int i = 0; i < 40 + _i * 60; i++) {
		turn(&b);
		change_something(&b);
		if (i == 200)
			order_all(&b);
	}
	if (_i % 2) {
		bench_close(&b);
		return;
	}
	ck_assert_int_eq(rig_sync(&b.rig), 0);
	for (int i = 0; i < _i; i++)
		turn(&b);
	cut(&b, SIM_CUT_RANDOM);
	files_verify(&b);
	rig_close(&b.rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("move");
	TCase *tcase = tcase_create("move");

	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, tracks_are_emptied, 0, 2);
	tcase_add_loop_test(tcase, users_change_files, 0, 3);
	tcase_add_loop_test(tcase, a_power_cut_in_a_move_loses_nothing, 0, 12);
	tcase_add_loop_test(tcase, a_failed_move_changes_nothing, 0, 4);
	tcase_add_loop_test(tcase, pause_and_close, 0, 12);
	tcase_add_loop_test(tcase, unmounts_in_each_step, MOVE_LOOK,
			    MOVE_DRAIN + 1);
	tcase_add_loop_test(tcase, nothing_is_emptied_beside_users, 0, 2);
	tcase_add_test(tcase, outlives_a_mount);
	tcase_add_loop_test(tcase, files_are_brought_together, 0, 2);
	tcase_add_loop_test(tcase, order_comes_before_cleaning, 0, 2);
	tcase_add_test(tcase, a_full_disk_has_room_again);
	tcase_add_loop_test(tcase, what_is_read_is_brought_together, 0, 2);
	tcase_add_loop_test(tcase, order_beside_users, 0, 8);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
