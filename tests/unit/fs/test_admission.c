/*
 * test_admission.c - which rates the disk can promise.
 */
#include "fs/data/admission.h"
#include "tests/rig/test.h"

/* 7200 rpm, 100 MB/s on its slowest track. */
static const struct admission_drive drive = {
	.stroke_ns = 17500000, .step_ns = 900000, .turn_ns = 8333333,
	.media_rate = 100000000, .memory = 100000000,
};

static unsigned most_readers(const struct admission_drive *of, uint64_t rate)
{
	unsigned n = 0;

	while (admission_fits(of, n + 1, (n + 1) * rate))
		n++;
	return n;
}

START_TEST(a_round_is_not_too_long)
{
	unsigned n = most_readers(&drive, 500000);
	double round = 100e6 / (n * 500e3), used;

	round = round < 4 ? round : 4;
	/* A third of a stroke for each, with half a turn, would not do. */
	ck_assert_uint_gt(n, 80);
	used = n * (0.0009 + 0.0083 / 2) + round * n * 500e3 / 100e6;
	ck_assert(used < round);
	ck_assert_uint_lt(n, 200);
}
END_TEST

START_TEST(less_memory_and_slower_tracks_hold_fewer)
{
	struct admission_drive less = drive, slow = drive;

	less.memory /= 4;
	slow.media_rate /= 4;
	ck_assert_uint_lt(most_readers(&less, 500000),
			  most_readers(&drive, 500000));
	ck_assert_uint_lt(most_readers(&slow, 500000),
			  most_readers(&drive, 500000));
	/* Never as much as passes under the head. */
	ck_assert(!admission_fits(&drive, 1, 100000000));
	ck_assert(admission_fits(&drive, 1, 50000000));
	ck_assert(admission_fits(&drive, 0, 0));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("admission");
	TCase *all = tcase_create("all");

	tcase_add_test(all, a_round_is_not_too_long);
	tcase_add_test(all, less_memory_and_slower_tracks_hold_fewer);
	suite_add_tcase(suite, all);
	return test_run(suite);
}
