/*
 * test_head_learning.c - what is learned of the head on a host that is late now
 * and then: that overheads do not only grow, and that the frequency stays.
 */
#include <math.h>
#include <stdlib.h>

#include "sched/head/seek_learn.h"
#include "sched/head/spindle.h"
#include "tests/rig/test.h"

#define US 1000ull
#define PERIOD_NS 8333333ull
#define OVERHEAD_NS (150 * US)

static struct service_seek seek = { .cylinders = 1, .ns = 900 * US };
static struct service_mech mech;

static void setup(void)
{
	mech = (struct service_mech){
		.period_ps = PERIOD_NS * 1000, .seek = &seek, .seek_n = 1,
	};
}

/* How long before a place passes the next write must be sent, so that it is
 * aimed at. */
static uint64_t lead_ns(const struct seek_learn *learn)
{
	return seek_learn_overhead_ns(learn, SEEK_LEARN_WRITE) +
	       seek_learn_place_ns(learn, PERIOD_NS);
}

/* Writes n times to places that pass up to 50 us later than they must; the
 * drive has a write late_ns after it was sent, each 100th 3 ms after. Returns
 * the number of misses. */
static unsigned write_to_places(struct seek_learn *learn, unsigned n,
				uint64_t late_ns)
{
	const struct seek_learn_access access = {
		.kind = SEEK_LEARN_WRITE, .when = SEEK_LEARN_IDLE,
		.chosen = true,
	};
	unsigned misses = 0;

	for (unsigned i = 1; i <= n; i++) {
		const uint64_t at_ns = lead_ns(learn) + i % 6 * 10 * US;
		const bool met = at_ns > (i % 100 ? late_ns : 3000 * US);

		seek_learn_see(learn, &access, (int64_t)at_ns -
			       (int64_t)seek_learn_overhead_ns(learn,
						SEEK_LEARN_WRITE),
			       met, PERIOD_NS);
		misses += !met;
	}
	return misses;
}

START_TEST(chance_lateness_makes_no_place_farther)
{
	struct seek_learn learn;
	unsigned misses;

	ck_assert(!seek_learn_init(&learn, &mech, OVERHEAD_NS, OVERHEAD_NS));
	misses = write_to_places(&learn, 3000, 200 * US);
	ck_assert_uint_le(misses, 3000 / 100 + 3000 / 60);
	ck_assert_uint_lt(lead_ns(&learn), 600 * US);
	/* It is found where the overhead has become longer, and forgotten. */
	write_to_places(&learn, 3000, 900 * US);
	ck_assert_uint_gt(lead_ns(&learn), 850 * US);
	ck_assert_uint_lt(lead_ns(&learn), 1300 * US);
	write_to_places(&learn, 6000, 200 * US);
	ck_assert_uint_lt(lead_ns(&learn), 600 * US);
	seek_learn_fini(&learn);
}
END_TEST

/* Readings each turn, each second one `late` of a turn late; the drive turns by
 * `fast` more than the model believes. */
static uint64_t read_turns(struct spindle *spindle, uint64_t at_ns, unsigned n,
			   double fast, double late)
{
	while (n--) {
		const double turns = (double)at_ns / PERIOD_NS * (1 + fast);
		double ahead;

		ahead = turns - (double)service_angle(&mech, at_ns) /
			4294967296.0 - (n % 2 ? late : 0);
		spindle_observe(spindle, &mech, at_ns,
				ahead - floor(ahead + 0.5));
		at_ns += PERIOD_NS;
	}
	return at_ns;
}

static double frequency_off(const struct spindle *spindle, double fast)
{
	return fabs(PERIOD_NS * 1000 / spindle->period_ps / (1 + fast) - 1);
}

START_TEST(a_late_moment_turns_no_frequency)
{
	struct spindle spindle;
	uint64_t at_ns;

	spindle_init(&spindle, &mech);
	at_ns = read_turns(&spindle, 1000000000, 32, 0, 0.02);
	read_turns(&spindle, at_ns, 16, 0, 0.07);
	ck_assert(frequency_off(&spindle, 0) < 5e-5);
}
END_TEST

START_TEST(a_wrong_frequency_is_found)
{
	static const double fast[] = { 0.003, -0.003, 0.001, -0.0001 };
	struct spindle spindle;

	spindle_init(&spindle, &mech);
	read_turns(&spindle, 1000000000, 300, fast[_i], 0);
	ck_assert(frequency_off(&spindle, fast[_i]) < 1e-4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("head_learning");
	TCase *tcase = tcase_create("head_learning");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, chance_lateness_makes_no_place_farther);
	tcase_add_test(tcase, a_late_moment_turns_no_frequency);
	tcase_add_loop_test(tcase, a_wrong_frequency_is_found, 0, 4);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
