/*
 * test_deadlines.c - what each class of request is promised, beside any mixture
 * of eight kinds of load, in virtual time: the longest wait from submission to
 * completion.  The drive is a simulated one whose tracks are known, or one
 * that orders its commands by itself, without a write cache: it may serve what
 * it has in any order, so all of it may take twice as long.
 */
#include <stdio.h>

#include "bench/mix.h"
#include "tests/rig/test.h"

#define MS 1000000ull
#define ALL ((1u << MIX_KINDS) - 1)
/* The head is learned first, with random reads. */
#define LEARN_NS (2000 * MS)
#define RUN_NS (8000 * MS)

/* Nobody promises the classes that are left out anything. */
static const uint64_t promised_ns[QUEUE_CLASSES] = {
	[QUEUE_COMMIT] = 100 * MS,
	[QUEUE_READ] = 250 * MS,
	[QUEUE_WRITE_BACK] = 5000 * MS,
};

static void mixture(unsigned kinds, bool blind)
{
	const char *top = getenv("top_srcdir");
	char drive[512];
	struct rig_options options = {
		.drive = drive, .seed = 3, .blind = blind,
		.volatile_cache = !blind,
	};
	unsigned times = blind ? 2 : 1, k;
	struct mix_result result[MIX_KINDS];
	struct rig rig;

	snprintf(drive, sizeof(drive), "%s/drives/modern.json",
		 top ? top : "..");
	ck_assert_int_eq(rig_open(&options, &rig), 0);
	ck_assert_int_eq(mix_run(&rig, 1, LEARN_NS, 1, result), 0);
	ck_assert_int_eq(mix_run(&rig, kinds, RUN_NS, 2, result), 0);
	rig_close(&rig);
	for (k = 0; k < MIX_KINDS; k++) {
		uint64_t most_ns = times * promised_ns[mix_kinds[k].class];

		if (kinds & 1u << k && most_ns)
			ck_assert_msg(result[k].max_ns <= most_ns,
				      "mixture %02x%s: %s waited %.1f ms",
				      kinds, blind ? " blind" : "",
				      mix_kinds[k].name,
				      (double)result[k].max_ns / 1e6);
	}
}

START_TEST(test_alone_and_in_pairs)
{
	unsigned a, b;

	for (a = 0; a < MIX_KINDS; a++)
		for (b = a; b < MIX_KINDS; b++)
			mixture(1u << a | 1u << b, _i);
}
END_TEST

START_TEST(test_all_but_one_and_all)
{
	unsigned k;

	mixture(ALL, _i);
	for (k = 0; k < MIX_KINDS; k++)
		mixture(ALL & ~(1u << k), _i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("deadlines");
	TCase *tcase = tcase_create("mixtures");

	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, test_alone_and_in_pairs, 0, 2);
	tcase_add_loop_test(tcase, test_all_but_one_and_all, 0, 2);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
