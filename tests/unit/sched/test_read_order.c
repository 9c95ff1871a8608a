/*
 * test_read_order.c - who orders small reads, by the times that they take and
 * on a simulated drive in virtual time.
 */
#include <stdio.h>

#include "bench/rig.h"
#include "sched/queue/read_order.h"
#include "tests/rig/test.h"

#define MS 1000000ull

static struct read_order order;
static uint64_t now_ns;

static void setup(void)
{
	order = (struct read_order){ 0 };
	now_ns = 1000 * MS;
}

/* Reads of which `left` are left each time; how many the drive ordered. */
static unsigned reads(unsigned n, unsigned left, uint64_t queue_ns,
		      uint64_t drive_ns)
{
	unsigned i, drives = 0;

	for (i = 0; i < n; i++) {
		bool drive = read_order_is_drives(&order, left + 1, now_ns);

		drives += drive;
		now_ns += drive ? drive_ns : queue_ns;
		read_order_done(&order, left, now_ns);
	}
	return drives;
}

START_TEST(the_faster_one_orders)
{
	unsigned drives;

	reads(1000, 15, 3 * MS, 2 * MS);
	drives = reads(10000, 15, 3 * MS, 2 * MS);
	ck_assert_uint_ge(drives, 9000);
	/* The drive gets slower: seen by its own times. */
	reads(2000, 15, 3 * MS, 5 * MS);
	drives = reads(10000, 15, 3 * MS, 5 * MS);
	ck_assert_uint_le(drives, 1000);
	/* And faster: seen when it has its turn. */
	reads(20000, 15, 3 * MS, 1 * MS);
	drives = reads(10000, 15, 3 * MS, 1 * MS);
	ck_assert_uint_ge(drives, 9000);
}
END_TEST

/* The queue needs twice as long: what it has costs a hundredth. */
START_TEST(who_is_much_slower_is_seldom_tried)
{
	reads(300, 15, 4 * MS, 2 * MS);
	ck_assert_uint_ge(reads(12000, 15, 4 * MS, 2 * MS), 12000 - 128);
}
END_TEST

START_TEST(few_reads_are_the_queues)
{
	reads(1000, 15, 3 * MS, 2 * MS);
	ck_assert_uint_eq(reads(1000, 1, 3 * MS, 2 * MS), 0);
	ck_assert_uint_gt(reads(1000, 15, 3 * MS, 2 * MS), 0);
}
END_TEST

START_TEST(beside_others_the_queue_orders)
{
	reads(1000, 15, 3 * MS, 2 * MS);
	read_order_other(&order, now_ns);
	ck_assert_uint_eq(reads(80, 15, 3 * MS, 2 * MS), 0);
	ck_assert_uint_gt(reads(1000, 15, 3 * MS, 2 * MS), 0);
}
END_TEST

static struct queue_request *no_gap(void *arg,
				    const struct head_state *head_state,
				    const struct service_request *next,
				    bool joins)
{
	(void)arg;
	(void)head_state;
	(void)next;
	(void)joins;
	return NULL;
}

static struct queue_request *not_idle(void *arg,
				      const struct head_state *head_state,
				      uint64_t quiet_ns, uint64_t *again_ns)
{
	(void)arg;
	(void)head_state;
	(void)quiet_ns;
	*again_ns = UINT64_MAX;
	return NULL;
}

static bool wants_all(void *arg)
{
	(void)arg;
	return true;
}

static const struct queue_filler task = { no_gap, not_idle, wants_all, NULL,
					  NULL };

static double rate_beside(unsigned clients, uint64_t host_ns,
			  const char *policy, unsigned blind_depth,
			  const struct queue_filler *filler)
{
	const char *top = getenv("top_srcdir");
	char drive[512];
	struct rig_options options = {
		.drive = drive, .seed = 1, .policy = policy,
		.blind = blind_depth, .depth = blind_depth, .host_ns = host_ns,
	};
	struct rig_load load = {
		.clients = clients, .sectors = 8, .read_percent = 100,
		.span = 8u << 20, .warmup = 1000, .requests = 4000, .seed = 1,
	};
	struct rig_result result;
	struct rig rig;

	snprintf(drive, sizeof(drive), "%s/drives/modern.json",
		 top ? top : "..");
	ck_assert_int_eq(rig_open(&options, &rig), 0);
	queue_set_filler(rig.queue, filler, NULL);
	ck_assert_int_eq(rig_run(&rig, &load, &result), 0);
	rig_close(&rig);
	return (double)load.requests / ((double)result.ns / 1e9);
}

static double rate(unsigned clients, uint64_t host_ns, const char *policy,
		   unsigned blind_depth)
{
	return rate_beside(clients, host_ns, policy, blind_depth, NULL);
}

/* Trying both costs little where one of them is better. */
START_TEST(never_slower_than_the_drive_alone)
{
	const uint64_t host_ns = (uint64_t)_i * 100000;
	unsigned clients;
	double queue, drive, tried;

	for (clients = 4; clients <= 16; clients *= 2) {
		queue = rate(clients, host_ns, "sptf", 0);
		drive = rate(clients, host_ns, NULL, 32);
		tried = rate(clients, host_ns, NULL, 0);
		ck_assert_msg(tried >= 0.97 * queue && tried >= 0.97 * drive,
			      "%u readers: %.1f by the queue, %.1f by the "
			      "drive, %.1f when tried", clients, queue, drive,
			      tried);
	}
}
END_TEST

/* With a host so late that hardly anything can be predicted. */
START_TEST(the_drive_helps_a_late_host)
{
	double queue = rate(16, 800000, "sptf", 0);
	double tried = rate(16, 800000, NULL, 0);

	ck_assert_msg(tried >= 1.15 * queue, "%.1f and %.1f reads/s", queue,
		      tried);
}
END_TEST

/* Without a head that is followed nothing is read in gaps. */
START_TEST(what_has_no_gaps_keeps_the_drive_from_nothing)
{
	double alone = rate(16, 0, NULL, 4);
	double beside = rate_beside(16, 0, NULL, 4, &task);

	ck_assert_msg(beside >= 0.97 * alone, "%.1f and %.1f reads/s", alone,
		      beside);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("read_order");
	TCase *tcase = tcase_create("read_order");

	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, the_faster_one_orders);
	tcase_add_test(tcase, who_is_much_slower_is_seldom_tried);
	tcase_add_test(tcase, few_reads_are_the_queues);
	tcase_add_test(tcase, beside_others_the_queue_orders);
	tcase_add_loop_test(tcase, never_slower_than_the_drive_alone, 0, 2);
	tcase_add_test(tcase, the_drive_helps_a_late_host);
	tcase_add_test(tcase, what_has_no_gaps_keeps_the_drive_from_nothing);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
