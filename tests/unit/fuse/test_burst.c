/*
 * test_burst.c - when the loop spins, and when processors are kept awake.
 */
#include <check.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "fuse/burst.h"
#include "tests/rig/test.h"

#define US 1000u
#define MS 1000000u
#define BEGIN_NS (5ull * MS)

/* 20 turns of 3 us that each take requests, `pause_ns` apart; returns when the
 * last one ended. */
static uint64_t ask(struct burst *burst, uint64_t pause_ns)
{
	uint64_t begin_ns = BEGIN_NS, end_ns = 0;
	int i;

	for (i = 0; i < 20; i++) {
		end_ns = begin_ns + 3 * US;
		burst_asked(burst, begin_ns, end_ns);
		begin_ns = end_ns + pause_ns;
	}
	return end_ns;
}

/* The limit of the machine in us; -1: it cannot be read. */
static int32_t machine_limit(void)
{
	int fd = open("/dev/cpu_dma_latency", O_RDONLY);
	int32_t us = -1;

	if (fd < 0 || read(fd, &us, sizeof(us)) != sizeof(us))
		us = -1;
	if (fd >= 0)
		close(fd);
	return us;
}

START_TEST(looks_for_the_next_request)
{
	struct burst *burst = burst_new(false);
	uint64_t end_ns;

	ck_assert(!burst_spins(burst, 0));
	end_ns = ask(burst, 1);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		ck_assert(burst_spins(burst, end_ns + 29 * US));
	ck_assert(!burst_spins(burst, end_ns + 31 * US));
	ck_assert_uint_eq(burst_run(burst, end_ns), UINT64_MAX);
	burst_free(burst);
}
END_TEST

START_TEST(a_burst_keeps_processors_awake)
{
	struct burst *burst = burst_new(true);
	uint64_t end_ns = ask(burst, 10 * US);
	uint64_t until_ns = burst_run(burst, end_ns);

	/* Otherwise nothing can be asked for here. */
	if (until_ns != UINT64_MAX) {
		ck_assert_uint_eq(until_ns, end_ns + MS);
		ck_assert_int_le(machine_limit(), 1000);
		ck_assert_uint_eq(burst_run(burst, until_ns), UINT64_MAX);
	}
	burst_free(burst);
}
END_TEST

START_TEST(single_requests_do_not)
{
	struct burst *burst = burst_new(true);
	uint64_t end_ns = ask(burst, 31 * US);

	ck_assert_uint_eq(burst_run(burst, end_ns), UINT64_MAX);
	burst_free(burst);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("burst");
	TCase *c = tcase_create("burst");

	tcase_add_test(c, looks_for_the_next_request);
	tcase_add_test(c, a_burst_keeps_processors_awake);
	tcase_add_test(c, single_requests_do_not);
	suite_add_tcase(suite, c);
	return test_run(suite);
}
