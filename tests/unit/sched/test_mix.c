/*
 * test_mix.c - random reads beside a stream that is read ahead, in virtual
 * time, on a simulated drive whose tracks are known: no read waits for long.
 */
#include <stdio.h>

#include "bench/mix.h"
#include "tests/rig/test.h"

#define MS 1000000ull
#define RANDOM_READS 0x01u
#define READ_AHEAD 0x02u

START_TEST(a_stream_starves_no_reads)
{
	const char *top = getenv("top_srcdir");
	char drive[512];
	struct rig_options options = {
		.drive = drive, .seed = (uint64_t)_i, .volatile_cache = true,
	};
	struct mix_result result[MIX_KINDS];
	struct rig rig;

	snprintf(drive, sizeof(drive), "%s/drives/modern.json",
		 top ? top : "..");
	ck_assert_int_eq(rig_open(&options, &rig), 0);
	/* The head is learned first. */
	ck_assert_int_eq(mix_run(&rig, RANDOM_READS, 2000 * MS, 1, result), 0);
	ck_assert_int_eq(mix_run(&rig, RANDOM_READS | READ_AHEAD, 4000 * MS, 2,
				 result), 0);
	rig_close(&rig);
	ck_assert_uint_gt(result[0].requests, 0);
	ck_assert_msg(result[0].max_ns <= 250 * MS, "a read waited %.1f ms",
		      (double)result[0].max_ns / 1e6);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mix");
	TCase *tcase = tcase_create("mix");

	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, a_stream_starves_no_reads, 1, 4);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
