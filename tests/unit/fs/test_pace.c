/*
 * test_pace.c - the pace of readers: who has one, its rate, deadlines, and how
 * much is read ahead of it.
 */
#include "fs/data/file_data.h"
#include "tests/rig/test.h"

#define SECOND 1000000000ull
#define PERIOD (SECOND / 2)
#define BYTES 250000ull
#define CHUNKS 4096u		/* 256 MiB */

static struct files *files;
static struct pace pace;

static void setup(void)
{
	files = calloc(1, sizeof(*files));
	list_init(&files->paced);
	ck_assert_int_eq(pool_new(CHUNK_BYTES, CHUNKS, &files->chunk_pool), 0);
	pace = (struct pace){ .rate = 0 };
}

static void teardown(void)
{
	pace_end(files, &pace);
	ck_assert_uint_eq(files->paced_count, 0);
	pool_free(files->chunk_pool);
	free(files);
}

/* Reads so many periods with O_DIRECT, each read over 10 ms after it came;
 * returns the time of the last one. */
static uint64_t read_direct(struct pace *of, unsigned periods, uint64_t rest_ns)
{
	uint64_t now_ns = SECOND, over_ns = 0;
	unsigned i;

	for (i = 0; i < periods; i++) {
		now_ns = i ? over_ns + rest_ns : now_ns;
		pace_read(files, of, i * BYTES, BYTES, true, over_ns, now_ns);
		over_ns = now_ns + 10000000;
	}
	return now_ns;
}

START_TEST(a_reader_that_rests_has_a_pace)
{
	uint64_t now_ns = read_direct(&pace, 5, PERIOD - 10000000);

	ck_assert_uint_eq(pace.rate, 2 * BYTES);
	ck_assert_uint_eq(files->paced_count, 1);
	/* It comes to the next byte a period later, and has three quarters of
	 * one to read it. */
	ck_assert_uint_eq(pace_due_ns(&pace, 5 * BYTES),
			  now_ns + PERIOD + PERIOD * 3 / 4 + 1);
	ck_assert_uint_eq(pace_read_due_ns(&pace, 4 * BYTES, now_ns),
			  now_ns + PERIOD * 3 / 4);
}
END_TEST

START_TEST(a_reader_that_reads_on_has_none)
{
	read_direct(&pace, 50, 1000000);
	ck_assert_uint_eq(pace.rate, 0);
	ck_assert_uint_eq(files->paced_count, 0);
	ck_assert_uint_eq(pace_due_ns(&pace, BYTES), 0);
}
END_TEST

/* Who compares two files waits for one of them while it rests in the other. */
START_TEST(who_reads_another_file_meanwhile_does_not_rest)
{
	const uint64_t over_ns = 5 * SECOND;

	ck_assert_uint_eq(pace_rest_begin(files, 7, over_ns), over_ns);
	pace_answered(files, 7, over_ns + 30000000);
	ck_assert_uint_eq(pace_rest_begin(files, 7, over_ns),
			  over_ns + 30000000);
	/* Others, those that are not known, and reads that are not over. */
	ck_assert_uint_eq(pace_rest_begin(files, 8, over_ns), over_ns);
	pace_answered(files, 0, over_ns + 40000000);
	ck_assert_uint_eq(pace_rest_begin(files, 0, over_ns), over_ns);
	ck_assert_uint_eq(pace_rest_begin(files, 7, 0), 0);
}
END_TEST

/* Who takes half of what the disk gives waits for it, or for what it writes. */
START_TEST(who_takes_much_has_no_pace)
{
	pace.media_rate = 4 * BYTES;
	read_direct(&pace, 5, PERIOD - 10000000);
	ck_assert_uint_eq(pace.rate, 0);
	pace.media_rate = 8 * BYTES;
	pace.beat_ns = 0;
	read_direct(&pace, 5, PERIOD - 10000000);
	ck_assert_uint_eq(pace.rate, 2 * BYTES);
	/* It has become a fast one. */
	pace.media_rate = 4 * BYTES;
	pace.beat_ns = 0;
	read_direct(&pace, 5, PERIOD - 10000000);
	ck_assert_uint_eq(pace.rate, 0);
	ck_assert_uint_eq(files->paced_count, 0);
}
END_TEST

/* The kernel's windows double; the reader is where the one before began. */
START_TEST(windows_of_the_kernel_tell_the_rate)
{
	static const uint64_t kib[][2] = {	/* the reader, the window */
		{ 0, 0 }, { 256, 512 }, { 512, 1536 }, { 1536, 3584 },
		{ 3584, 7680 },
	};
	uint64_t now_ns = 0, rate = 512000;
	unsigned i;

	for (i = 0; i < 5; i++) {
		uint64_t over_ns = now_ns + 10000000;

		now_ns = SECOND + (kib[i][0] << 10) * SECOND / rate;
		pace_read(files, &pace, kib[i][1] << 10, 512 << 10, false,
			  i ? over_ns : 0, now_ns);
		if (i < 1)
			continue;
		ck_assert_uint_ge(pace.rate, rate - 2);
		ck_assert_uint_le(pace.rate, rate + 2);
		/* The window is wanted when the reader comes to it. */
		ck_assert_uint_le(pace_read_due_ns(&pace, kib[i][1] << 10,
						   now_ns),
			now_ns + (kib[i][1] - kib[i][0] + 1) * 1024 *
				SECOND / rate);
		ck_assert_uint_ge(pace_read_due_ns(&pace, kib[i][1] << 10,
						   now_ns),
			now_ns + (kib[i][1] - kib[i][0] - 1) * 1024 *
				SECOND / rate);
	}
}
END_TEST

static uint64_t ahead(struct pace *of, uint64_t to, bool there)
{
	const struct pace_ahead ahead = {
		.ahead = to, .there = there, .end = 3 * BYTES,
		.most = 4 << 20, .media_rate = 200000000,
	};

	return pace_ahead_bytes(files, of, &ahead);
}

/* All that is read ahead of many readers fits into memory, twice. */
START_TEST(readers_share_the_memory)
{
	struct pace many[300] = { { .rate = 0 } };
	uint64_t bytes, all = 0;
	unsigned i, round;

	for (i = 0; i < 300; i++)
		read_direct(&many[i], 3, PERIOD);
	for (round = 0; round < 5; round++)
		for (i = 0, all = 0; i < 300; i++) {
			bytes = ahead(&many[i], 3 * BYTES, true);
			ck_assert_uint_ge(bytes, BYTES / 2);
			all += bytes;
		}
	ck_assert_uint_le(2 * all, (uint64_t)CHUNKS * CHUNK_BYTES);
	/* Who has enough gets no more. */
	ck_assert_uint_eq(ahead(&many[0], 6 * BYTES, true), 0);
	for (i = 0; i < 300; i++)
		pace_end(files, &many[i]);
}
END_TEST

/* A piece that was there long before it was wanted is followed by a larger one,
 * by as much as all readers can be given in half of that time. */
START_TEST(pieces_grow_by_the_time_that_is_left)
{
	struct pace other = { .rate = 0 };
	uint64_t first;

	read_direct(&pace, 3, PERIOD - 10000000);
	read_direct(&other, 3, PERIOD - 10000000);
	first = ahead(&pace, 3 * BYTES, false);
	ck_assert_uint_eq(first, 2 * BYTES);
	/* The last one is not there yet. */
	ck_assert_uint_eq(ahead(&pace, 4 * BYTES, false), first);
	/* It came as the reader did. */
	ck_assert_uint_eq(ahead(&pace, 3 * BYTES, true), first);
	/* It came ten milliseconds before. */
	ck_assert_uint_eq(ahead(&pace, 3 * BYTES + 5000, true),
			  first + 200000000 / 2 / 2 / 100);
	pace_end(files, &other);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pace");
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, a_reader_that_rests_has_a_pace);
	tcase_add_test(all, a_reader_that_reads_on_has_none);
	tcase_add_test(all, who_reads_another_file_meanwhile_does_not_rest);
	tcase_add_test(all, who_takes_much_has_no_pace);
	tcase_add_test(all, windows_of_the_kernel_tell_the_rate);
	tcase_add_test(all, readers_share_the_memory);
	tcase_add_test(all, pieces_grow_by_the_time_that_is_left);
	suite_add_tcase(suite, all);
	return test_run(suite);
}
