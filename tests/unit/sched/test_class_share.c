/*
 * test_class_share.c - how classes that wait share the head: who is next, for
 * how long, and that no class gains by not asking.
 */
#include "sched/queue/class_share.h"
#include "sched/queue/past_hour.h"
#include "tests/rig/test.h"

#define MS 1000000ull

enum { COMMIT, READ, READ_AHEAD, WRITE_BACK, IDLE };

static struct class_share share;
static uint64_t now_ns;

static void setup(void)
{
	share = (struct class_share){ 0 };
	now_ns = 1000 * MS;
}

static void wait_some(int class, unsigned n)
{
	while (n--)
		class_share_add(&share, class, true, now_ns);
}

/* For so many milliseconds all that wait go on waiting, and an access takes
 * 8 ms; the time that each class has had. */
static void serve(unsigned ms, uint64_t had_ns[QUEUE_CLASSES])
{
	uint64_t end_ns = now_ns + ms * MS;
	int class;

	while (now_ns < end_ns) {
		class = class_share_next(&share, now_ns);
		ck_assert_int_ge(class, 0);
		class_share_remove(&share, class);
		class_share_take(&share, class, now_ns);
		class_share_add(&share, class, true, now_ns);
		now_ns += 8 * MS;
		had_ns[class] += 8 * MS;
	}
}

START_TEST(the_highest_is_first)
{
	ck_assert_int_eq(class_share_next(&share, now_ns), -1);
	wait_some(IDLE, 1);
	ck_assert_int_eq(class_share_next(&share, now_ns), IDLE);
	wait_some(READ_AHEAD, 1);
	ck_assert_int_eq(class_share_next(&share, now_ns), READ_AHEAD);
	wait_some(READ, 1);
	wait_some(COMMIT, 1);
	ck_assert_int_eq(class_share_next(&share, now_ns), COMMIT);
}
END_TEST

START_TEST(each_has_its_share)
{
	uint64_t had_ns[QUEUE_CLASSES] = { 0 };
	int class;

	for (class = 0; class < (int)QUEUE_CLASSES; class++)
		wait_some(class, 1);
	serve(20000, had_ns);
	/* By their weights, 12, 4, 14, 6 and 1, in steps of an access. */
	ck_assert_uint_gt(had_ns[COMMIT], 20000 * MS * 10 / 37);
	ck_assert_uint_gt(had_ns[READ], 20000 * MS * 3 / 37);
	ck_assert_uint_gt(had_ns[READ_AHEAD], 20000 * MS * 11 / 37);
	ck_assert_uint_gt(had_ns[WRITE_BACK], 20000 * MS * 4 / 37);
	ck_assert_uint_gt(had_ns[IDLE], 0);
}
END_TEST

/* Milliseconds until the turn of a class that waits is over. */
static unsigned turn_ms(int class)
{
	uint64_t begin_ns = now_ns;

	while (class_share_next(&share, now_ns) == class) {
		class_share_remove(&share, class);
		class_share_take(&share, class, now_ns);
		class_share_add(&share, class, true, now_ns);
		now_ns += MS;
	}
	return (unsigned)((now_ns - begin_ns) / MS);
}

START_TEST(turns_are_longer_where_nobody_waits)
{
	uint64_t had_ns[QUEUE_CLASSES] = { 0 };
	unsigned alone_ms;

	wait_some(READ_AHEAD, 1);
	wait_some(WRITE_BACK, 1);
	serve(1000, had_ns);
	turn_ms(READ_AHEAD);
	alone_ms = turn_ms(WRITE_BACK);
	ck_assert_uint_ge(alone_ms, 90);
	wait_some(COMMIT, 1);
	serve(1000, had_ns);
	class_share_remove(&share, COMMIT);
	wait_some(READ, 1);
	serve(1000, had_ns);
	turn_ms(READ);
	turn_ms(READ_AHEAD);
	ck_assert_uint_lt(turn_ms(WRITE_BACK), alone_ms / 2);
}
END_TEST

START_TEST(reads_weigh_by_their_number)
{
	uint64_t few_ns[QUEUE_CLASSES] = { 0 }, many_ns[QUEUE_CLASSES] = { 0 };

	wait_some(READ, 2);
	wait_some(READ_AHEAD, 8);
	serve(10000, few_ns);
	wait_some(READ, 10);
	serve(10000, many_ns);
	ck_assert_uint_gt(few_ns[READ_AHEAD], few_ns[READ]);
	ck_assert_uint_gt(many_ns[READ], 2 * many_ns[READ_AHEAD]);
}
END_TEST

/* The way to what is read ahead is worth more than one access. */
START_TEST(a_stream_goes_on_for_a_while)
{
	unsigned n = 0;

	wait_some(READ_AHEAD, 8);
	class_share_take(&share, READ_AHEAD, now_ns);
	wait_some(READ, 1);
	while (class_share_next(&share, now_ns) == READ_AHEAD) {
		ck_assert(class_share_keeps(&share, now_ns));
		now_ns += 5 * MS;
		n++;
	}
	ck_assert_int_eq(class_share_next(&share, now_ns), READ);
	ck_assert_uint_ge(n, 6);
	ck_assert_uint_le(n, 10);
}
END_TEST

START_TEST(who_did_not_ask_gains_nothing)
{
	uint64_t had_ns[QUEUE_CLASSES] = { 0 }, begun_ns;

	wait_some(READ, 1);
	serve(60000, had_ns);
	wait_some(WRITE_BACK, 1);
	begun_ns = now_ns;
	serve(1000, had_ns);
	ck_assert_uint_lt(had_ns[WRITE_BACK], now_ns - begun_ns);
	ck_assert_uint_gt(had_ns[READ], 60000 * MS + 300 * MS);
}
END_TEST

/* A prediction of when the disk is free may be taken back. */
START_TEST(time_may_go_back)
{
	uint64_t used_ns;

	wait_some(READ, 1);
	wait_some(WRITE_BACK, 1);
	class_share_take(&share, READ, now_ns);
	used_ns = share.used_ns[READ];
	now_ns -= 5 * MS;
	ck_assert_int_eq(class_share_next(&share, now_ns), READ);
	class_share_take(&share, READ, now_ns);
	ck_assert_uint_eq(share.used_ns[READ], used_ns);
}
END_TEST

#define SECOND UINT64_C(1000000000)

/* Whatever the pauses, what is more than an hour ago counts no more. */
START_TEST(an_hour_has_sixty_minutes)
{
	static struct past_hour hour;
	uint64_t sum[PAST_HOUR_KINDS], at_s;

	for (at_s = 1; at_s <= 7200; at_s += 20)
		past_hour_add(&hour, at_s * SECOND, at_s < 3000 ? 0 : 1, 10);
	past_hour_sum(&hour, 7200 * SECOND, sum);
	ck_assert_uint_eq(sum[0], 0);
	ck_assert_uint_ge(sum[1], 10 * (3600 / 20 - 3));
	ck_assert_uint_le(sum[1], 10 * 3600 / 20);
	past_hour_add(&hour, 9000 * SECOND, 2, 5);
	past_hour_sum(&hour, 10700 * SECOND, sum);
	ck_assert_uint_le(sum[1], 10 * 5);
	ck_assert_uint_eq(sum[2], 5);
	past_hour_sum(&hour, 20000 * SECOND, sum);
	ck_assert_uint_eq(sum[0] + sum[1] + sum[2], 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("class_share");
	TCase *tcase = tcase_create("class_share");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, the_highest_is_first);
	tcase_add_test(tcase, each_has_its_share);
	tcase_add_test(tcase, turns_are_longer_where_nobody_waits);
	tcase_add_test(tcase, reads_weigh_by_their_number);
	tcase_add_test(tcase, a_stream_goes_on_for_a_while);
	tcase_add_test(tcase, who_did_not_ask_gains_nothing);
	tcase_add_test(tcase, time_may_go_back);
	tcase_add_test(tcase, an_hour_has_sixty_minutes);
	suite_add_tcase(suite, tcase);
	return test_run(suite);
}
