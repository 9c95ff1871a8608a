/*
 * test_scrub_recheck.c - what has become whole goes from the list of damage,
 * and nothing else does.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "fs/data/file_data.h"
#include "fs/op/errors.h"
#include "scrub/scrub.h"
#include "tests/rig/rig_scrub.h"
#include "tests/rig/test.h"

static const size_t file_bytes[] = { 1u << 18, 1u << 18, 1u << 18, 1u << 18 };

static void bench_open(struct rig_scrub *b)
{
	rig_scrub_open(b, file_bytes, 4);
}

static void bench_remount(struct rig_scrub *b)
{
	scrub_close(b->scrub);
	ck_assert_int_eq(fs_close(b->rig.fs), 0);
	ck_assert_int_eq(fs_open(sim_env(b->rig.sim), sim_disk(b->rig.sim),
				 &b->rig.options, &b->rig.fs), 0);
	rig_scrub_begin(b);
}

/* Without the checker, which would have its say about the damage. */
static void bench_close(struct rig_scrub *b)
{
	scrub_close(b->scrub);
	ck_assert_int_eq(fs_close(b->rig.fs), 0);
	sim_free(b->rig.sim);
}

static bool is_busy(struct rig_scrub *b)
{
	char *text = scrub_json(b->scrub);
	json_t *json = json_loads(text, 0, NULL);
	bool busy = json_is_true(json_object_get(json, "rechecking")) ||
		    !strcmp(json_string_value(json_object_get(json, "state")),
			    "running");

	json_decref(json);
	free(text);
	return busy;
}

static void run(struct rig_scrub *b)
{
	unsigned turns = 0;

	do {
		ck_assert_uint_lt(turns++, RIG_SCRUB_TURNS);
		rig_scrub_turn(b);
	} while (is_busy(b));
}

static void run_pass(struct rig_scrub *b)
{
	scrub_start(b->scrub);
	run(b);
}

static size_t notes(struct rig_scrub *b)
{
	json_t *array = rig_errors(&b->rig);
	size_t n = json_array_size(array);

	json_decref(array);
	return n;
}

/* Looks at all notes again; returns how many are left. */
static size_t recheck(struct rig_scrub *b)
{
	/* A reader may have noted something that waits for its transaction. */
	rig_settle(&b->rig);
	ck_assert_int_eq(scrub_recheck(b->scrub), 0);
	run(b);
	return notes(b);
}

/* Rot that was repaired below, overwritten or deleted; what is still bad keeps
 * its note, also over a remount. */
START_TEST(what_became_whole_goes)
{
	json_t *array;
	struct rig_scrub b;

	bench_open(&b);
	rig_scrub_flip(&b, 0, 8192);
	rig_scrub_flip(&b, 1, 100000);
	rig_scrub_flip(&b, 2, 0);
	ck_assert_int_eq(sim_damage(b.rig.sim, rig_scrub_sector(&b, 3, 0), 1),
			 0);
	run_pass(&b);
	ck_assert_uint_eq(notes(&b), 4);
	ck_assert_uint_eq(recheck(&b), 4);
	bench_remount(&b);
	ck_assert_uint_eq(recheck(&b), 4);
	rig_scrub_flip(&b, 0, 8192);
	ck_assert_uint_eq(recheck(&b), 3);
	rig_scrub_write(&b, 1, 98304, 4096, 1);
	ck_assert_int_eq(rig_sync(&b.rig), 0);
	ck_assert_uint_eq(recheck(&b), 2);
	ck_assert_int_eq(rig_unlink(&b.rig, 1, "file2"), 0);
	ck_assert_uint_eq(recheck(&b), 1);
	array = rig_errors(&b.rig);
	ck_assert_str_eq(json_string_value(json_object_get(
		json_array_get(array, 0), "path")), "/file3");
	json_decref(array);
	bench_close(&b);
}
END_TEST

/* The end of a pass looks at older notes, too. */
START_TEST(a_pass_ends_with_a_recheck)
{
	struct rig_scrub b;

	bench_open(&b);
	rig_scrub_flip(&b, 0, 8192);
	run_pass(&b);
	ck_assert_uint_eq(notes(&b), 1);
	rig_scrub_flip(&b, 0, 8192);
	run_pass(&b);
	ck_assert_uint_eq(notes(&b), 0);
	ck_assert_uint_eq(errors_count(b.rig.fs), 0);
	/* The same damage again is news. */
	rig_scrub_flip(&b, 0, 8192);
	run_pass(&b);
	ck_assert_uint_eq(notes(&b), 1);
	bench_close(&b);
}
END_TEST

/* Only the first bad block of 64 KiB is noted when all are read; each note is
 * looked at for itself. */
START_TEST(two_blocks_of_one_chunk_are_two_notes)
{
	struct rig_scrub b;

	bench_open(&b);
	rig_scrub_flip(&b, 0, 5 * 4096);
	run_pass(&b);
	rig_scrub_flip(&b, 0, 3 * 4096);
	run_pass(&b);
	ck_assert_uint_eq(notes(&b), 2);
	ck_assert_uint_eq(recheck(&b), 2);
	rig_scrub_flip(&b, 0, 3 * 4096);
	ck_assert_uint_eq(recheck(&b), 1);
	bench_close(&b);
}
END_TEST

static void note(struct rig_scrub *b, unsigned file, enum error_what what,
		 bool healed)
{
	errors_add(b->rig.fs, &(struct error){
		.ino = b->ino[file], .off = 4096, .sectors = 8,
		.sector = what == ERROR_LOST ? 0 :
					       rig_scrub_sector(b, file, 4096),
		.what = what, .healed = healed });
}

/* What was healed is a record of the drive; what was lost is not found by
 * reading. */
START_TEST(healed_and_lost_stay)
{
	struct rig_scrub b;

	bench_open(&b);
	note(&b, 0, ERROR_CSUM, true);
	note(&b, 1, ERROR_LOST, false);
	ck_assert_uint_eq(recheck(&b), 2);
	ck_assert_int_eq(rig_unlink(&b.rig, 1, "file1"), 0);
	ck_assert_uint_eq(recheck(&b), 1);
	bench_close(&b);
}
END_TEST

START_TEST(structures_are_looked_at)
{
	uint64_t place[3];
	struct rig_scrub b;

	bench_open(&b);
	super_places(fs_super(b.rig.fs), place);
	ck_assert_int_eq(sim_flip(b.rig.sim, place[1] + 1, 77), 0);
	run_pass(&b);
	ck_assert_uint_eq(notes(&b), 1);
	ck_assert_uint_eq(recheck(&b), 1);
	ck_assert_int_eq(sim_flip(b.rig.sim, place[1] + 1, 77), 0);
	ck_assert_uint_eq(recheck(&b), 0);
	/* A place that nothing begins at is read. */
	errors_add(b.rig.fs, &(struct error){
		.sector = place[1] + 8, .sectors = 8, .what = ERROR_READ });
	ck_assert_uint_eq(recheck(&b), 0);
	bench_close(&b);
}
END_TEST

/* More notes than one transaction removes; those behind the number stay. */
START_TEST(notes_are_cleared_up_to_a_number)
{
	struct fs_op op = { .type = FS_ERRORS_CLEAR, .size = 21 };
	struct rig_scrub b;

	bench_open(&b);
	for (unsigned i = 0; i < 30; i++)
		errors_add(b.rig.fs, &(struct error){
			.ino = b.ino[0], .off = 4096 * i, .sector = 1000 + i,
			.sectors = 8, .what = ERROR_CSUM });
	ck_assert_uint_eq(notes(&b), 30);
	ck_assert_uint_eq(errors_count(b.rig.fs), 30);
	ck_assert_int_eq(rig_do(&b.rig, &op), 0);
	ck_assert_uint_eq(notes(&b), 10);
	ck_assert_uint_eq(errors_count(b.rig.fs), 10);
	op.size = 0;
	ck_assert_int_eq(rig_do(&b.rig, &op), 0);
	ck_assert_uint_eq(notes(&b), 10);
	bench_close(&b);
}
END_TEST

START_TEST(a_read_only_mount_keeps_its_notes)
{
	struct rig_scrub b;

	bench_open(&b);
	rig_scrub_flip(&b, 0, 8192);
	run_pass(&b);
	scrub_close(b.scrub);
	ck_assert_int_eq(fs_close(b.rig.fs), 0);
	b.rig.options.read_only = true;
	ck_assert_int_eq(fs_open(sim_env(b.rig.sim), sim_disk(b.rig.sim),
				 &b.rig.options, &b.rig.fs), 0);
	rig_scrub_begin(&b);
	ck_assert_int_eq(scrub_recheck(b.scrub), -EROFS);
	ck_assert_uint_eq(notes(&b), 1);
	bench_close(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("scrub_recheck");
	TCase *tcase = tcase_create("scrub_recheck");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, what_became_whole_goes);
	tcase_add_test(tcase, a_pass_ends_with_a_recheck);
	tcase_add_test(tcase, two_blocks_of_one_chunk_are_two_notes);
	tcase_add_test(tcase, healed_and_lost_stay);
	tcase_add_test(tcase, structures_are_looked_at);
	tcase_add_test(tcase, notes_are_cleared_up_to_a_number);
	tcase_add_test(tcase, a_read_only_mount_keeps_its_notes);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
