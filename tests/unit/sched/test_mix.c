/*
 * test_mix.c - what each class of request is promised beside any mixture of
 * eight kinds of load, in virtual time on a simulated drive: the longest time
 * from submission to completion.  A drive that orders its commands by itself
 * may serve those that it has in any order, and take twice as long.
 */
#include <stdio.h>

#include "bench/mix.h"
#include "tests/rig/test.h"

#define MS 1000000ull
#define ALL ((1u << MIX_KINDS) - 1)
#define RANDOM_READS 0x01u
#define READ_AHEAD 0x02u
/* The head is learned first. */
#define LEARN_NS (2000 * MS)
#define SEEDS 4

/* Nobody waits for the classes that are left out. */
static const uint64_t promised_ns[QUEUE_CLASSES] = {
	[QUEUE_COMMIT] = 100 * MS,
	[QUEUE_READ] = 250 * MS,
	[QUEUE_WRITE_BACK] = 5000 * MS,
};

static void open_rig(struct rig *rig, bool blind, uint64_t seed)
{
	const char *top = getenv("top_srcdir");
	struct mix_result result[MIX_KINDS];
	char drive[512];
	struct rig_options options = {
		.drive = drive, .seed = seed, .blind = blind,
		.volatile_cache = !blind,
	};

	snprintf(drive, sizeof(drive), "%s/drives/modern.json",
		 top ? top : "..");
	ck_assert_int_eq(rig_open(&options, rig), 0);
	ck_assert_int_eq(mix_run(rig, RANDOM_READS, LEARN_NS, 1, result), 0);
}

static void mixture(unsigned kinds, bool blind, uint64_t seed, uint64_t ns)
{
	struct mix_result result[MIX_KINDS];
	struct rig rig;
	unsigned k;

	open_rig(&rig, blind, seed);
	ck_assert_int_eq(mix_run(&rig, kinds, ns, seed + 1, result), 0);
	rig_close(&rig);
	for (k = 0; k < MIX_KINDS; k++) {
		uint64_t most_ns = promised_ns[mix_kinds[k].class];

		if (!(kinds & 1u << k) || !most_ns)
			continue;
		if (blind)
			most_ns *= 2;
		ck_assert_msg(result[k].max_ns <= most_ns,
			      "mixture %02x%s, seed %lu: %s waited %.1f ms",
			      kinds, blind ? " blind" : "",
			      (unsigned long)seed, mix_kinds[k].name,
			      (double)result[k].max_ns / 1e6);
	}
}

/* Case 2 * seed, or one more: blind. */
START_TEST(all_and_all_but_one)
{
	uint64_t seed = 1 + (uint64_t)_i / 2;
	unsigned k;

	mixture(ALL, _i % 2, seed, 12000 * MS);
	for (k = 0; k < MIX_KINDS; k++)
		mixture(ALL & ~(1u << k), _i % 2, seed, 8000 * MS);
}
END_TEST

START_TEST(any_two_classes_keep_their_promises)
{
	uint64_t seed = 1 + (uint64_t)_i / 2;
	unsigned a, b;

	for (a = 0; a < MIX_KINDS; a++)
		for (b = a; b < MIX_KINDS; b++)
			mixture(1u << a | 1u << b, _i % 2, seed, 6000 * MS);
}
END_TEST

/* Three random readers beside a stream that is read ahead: both go on. */
START_TEST(a_stream_and_small_reads)
{
	struct mix_result result[MIX_KINDS], *reads = &result[0],
			  *stream = &result[1];
	struct rig rig;

	open_rig(&rig, false, 1 + (uint64_t)_i);
	ck_assert_int_eq(mix_run(&rig, RANDOM_READS | READ_AHEAD, 8000 * MS, 2,
				 result), 0);
	rig_close(&rig);
	ck_assert_uint_gt(reads->requests, 0);
	ck_assert_uint_le(reads->wait_ns / reads->requests, 70 * MS);
	/* MB/s of about 190. */
	ck_assert_uint_ge(stream->bytes / 8, 95 * 1000000);
}
END_TEST

/* The drive tries to read a bad sector for half a minute, and would serve the
 * others meanwhile: one reader of three waits. */
START_TEST(a_slow_command_stops_nobody)
{
	struct mix_result result[MIX_KINDS];
	struct sim_fault fault = {
		.kind = SIM_SLOW, .ops = SIM_READS, .k = 20, .times = 1,
		.delay_ns = 30000 * MS,
	};
	struct rig rig;

	open_rig(&rig, _i, 1);
	ck_assert_int_eq(sim_fault_add(rig.sim, &fault), 0);
	ck_assert_int_eq(mix_run(&rig, RANDOM_READS, 20000 * MS, 1, result), 0);
	rig_close(&rig);
	ck_assert_uint_ge(result[0].max_ns, 15000 * MS);
	/* 2,400 are read in this time, and 10 ms is long for one. */
	ck_assert_uint_ge(result[0].requests, 1500);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("mix");
	TCase *tcase = tcase_create("mix");

	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, all_and_all_but_one, 0, 2 * SEEDS);
	tcase_add_loop_test(tcase, any_two_classes_keep_their_promises,
			    0, 2 * SEEDS);
	tcase_add_loop_test(tcase, a_stream_and_small_reads, 0, SEEDS);
	tcase_add_loop_test(tcase, a_slow_command_stops_nobody, 0, 2);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
