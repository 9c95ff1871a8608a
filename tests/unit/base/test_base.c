/* test_base.c - containers and services of src/base. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/csum.h"
#include "base/env.h"
#include "base/hashmap.h"
#include "base/msg.h"
#include "base/rangeset.h"
#include "base/slab.h"
#include "base/sort.h"
#include "base/text.h"
#include "tests/rig/test.h"

/* Published vectors of XXH3-64: the format must not change with the library. */
START_TEST(csum_is_xxh3)
{
	ck_assert_uint_eq(csum("", 0), 0x2d06800538d394c2);
	ck_assert_uint_ne(csum("a", 1), csum("b", 1));
	ck_assert_uint_eq(csum("abc", 3), csum_seeded("abc", 3, 0));
	ck_assert_uint_ne(csum("abc", 3), csum_seeded("abc", 3, 1));
}
END_TEST

START_TEST(env_real_clock_goes_on)
{
	struct env *env = env_real();
	uint64_t a = env_now_ns(env), b = env_now_ns(env);

	ck_assert_uint_le(a, b);
	ck_assert_int_gt(env_wall_ns(env), 1000000000000000000);
	ck_assert(env_random(env) != env_random(env));
}
END_TEST

static void keep_line(enum msg_level level, const char *line, void *arg)
{
	char *kept = arg;

	kept[0] = (char)('0' + level);
	strcpy(kept + 1, line);
}

START_TEST(msg_goes_to_sink)
{
	char kept[2048] = "";
	char wide[2000];

	msg_set_sink(keep_line, kept);
	msg_warn("track %d: %s", 7, "bad");
	ck_assert_str_eq(kept, "1track 7: bad");
	msg_debug("dropped");
	ck_assert_str_eq(kept, "1track 7: bad");
	msg_set_level(MSG_DEBUG);
	msg_debug("kept");
	ck_assert_str_eq(kept, "3kept");
	memset(wide, 'x', sizeof(wide) - 1);
	wide[sizeof(wide) - 1] = '\0';
	msg_error("%s", wide);
	ck_assert_uint_lt(strlen(kept), 1100);
	msg_set_level(MSG_INFO);
	msg_set_sink(NULL, NULL);
}
END_TEST

/* What the set must hold: one byte an element. */
#define UNIVERSE 600u

static void set_check(const struct rangeset *set, const bool *want,
		      uint64_t from, uint64_t n)
{
	uint64_t i, total = 0, sum = 0;
	size_t count = 0;
	bool all = true, any = false;
	struct range r = { 0, 0 };

	for (i = 0; i < UNIVERSE; i++) {
		total += want[i];
		count += want[i] && (i == 0 || !want[i - 1]);
	}
	ck_assert_uint_eq(set->count, count);
	ck_assert_uint_eq(set->total, total);
	for (i = from; i < from + n; i++) {
		all = all && want[i];
		any = any || want[i];
		sum += want[i];
	}
	ck_assert_uint_eq(rangeset_sum(set, from, n), sum);
	ck_assert_int_eq(rangeset_has(set, from, n), all);
	ck_assert_int_eq(rangeset_meets(set, from, n), any);
	for (i = 0; rangeset_next(set, i, &r); i = r.first + r.n) {
		for (; i < r.first; i++)
			ck_assert(!want[i]);
		for (; i < r.first + r.n; i++)
			ck_assert(want[i]);
	}
	for (; i < UNIVERSE; i++)
		ck_assert(!want[i]);
}

static void set_check_prev(const struct rangeset *set, const bool *want,
			   uint64_t before)
{
	struct range r = { 0, 0 };
	uint64_t last = before;

	while (last > 0 && !want[last - 1])
		last--;
	ck_assert_int_eq(rangeset_prev(set, before, &r), last > 0);
	if (last == 0)
		return;
	ck_assert_uint_lt(r.first, before);
	ck_assert_uint_ge(r.first + r.n, last);
	ck_assert(rangeset_has(set, r.first, r.n));
	ck_assert(r.first == 0 || !want[r.first - 1]);
}

static void set_check_long(struct rangeset *set, const bool *want,
			   uint64_t from, uint64_t n)
{
	uint64_t i, run = 0, longest = 0;
	struct range r, s = { 0, 0 };
	struct rangeset part;
	bool found, is;

	for (i = from; i < from + n; i++) {
		run = want[i] ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	ck_assert_uint_eq(rangeset_longest(set, from, n), longest);
	found = rangeset_next_long(set, from, n, &r);
	for (i = from; (is = rangeset_next(set, i, &s)) && s.n < n;
	     i = s.first + s.n)
		;
	ck_assert_int_eq(found, is);
	ck_assert(!found || (r.first == s.first && r.n == s.n));
	rangeset_init(&part);
	ck_assert_int_eq(rangeset_move_out(set, from, n, &part), 0);
	ck_assert(!rangeset_meets(set, from, n));
	for (i = from; i < from + n; i++)
		ck_assert_int_eq(rangeset_has(&part, i, 1), want[i]);
	rangeset_move_in(set, &part);
	ck_assert_uint_eq(part.count, 0);
}

START_TEST(rangeset_is_a_bitmap)
{
	uint64_t seed = 7000 + (uint64_t)_i, first, n;
	bool want[UNIVERSE] = { false };
	struct rangeset set;
	bool add;
	int step;

	rangeset_init(&set);
	for (step = 0; step < 2000; step++) {
		first = test_random(&seed) % UNIVERSE;
		n = 1 + test_random(&seed) % (step % 50 ? 12 : 200);
		if (n > UNIVERSE - first)
			n = UNIVERSE - first;
		add = test_random(&seed) % 2;
		ck_assert_int_eq(add ? rangeset_add(&set, first, n)
				     : rangeset_remove(&set, first, n), 0);
		memset(want + first, add, n);
		first = test_random(&seed) % UNIVERSE;
		n = 1 + test_random(&seed) % 9;
		if (n > UNIVERSE - first)
			n = UNIVERSE - first;
		set_check(&set, want, first, n);
		set_check_prev(&set, want, first);
		if (step % 64)
			continue;
		set_check_long(&set, want, first, n);
		set_check(&set, want, first, n);
	}
	rangeset_fini(&set);
	ck_assert_uint_eq(set.count, 0);
}
END_TEST

START_TEST(rangeset_refuses_empty_and_wrapping_ranges)
{
	struct rangeset set;
	struct range r;

	rangeset_init(&set);
	ck_assert_int_eq(rangeset_add(&set, 5, 0), -EINVAL);
	ck_assert_int_eq(rangeset_add(&set, 5, UINT64_MAX - 4), -EINVAL);
	ck_assert_int_eq(rangeset_remove(&set, UINT64_MAX, 1), -EINVAL);
	ck_assert_int_eq(rangeset_add(&set, 0, UINT64_MAX), 0);
	ck_assert(rangeset_has(&set, 0, UINT64_MAX));
	ck_assert(rangeset_next(&set, UINT64_MAX - 1, &r));
	ck_assert(!rangeset_next(&set, UINT64_MAX, &r));
	ck_assert_int_eq(rangeset_remove(&set, 10, 1), 0);
	ck_assert_uint_eq(set.count, 2);
	ck_assert(!rangeset_has(&set, 0, 11));
	rangeset_fini(&set);
}
END_TEST

/* In order and backwards: the worst for a tree that does not balance. */
START_TEST(rangeset_takes_many)
{
	struct rangeset set;
	uint64_t i, many = 200000;

	rangeset_init(&set);
	for (i = 0; i < many; i++)
		ck_assert_int_eq(rangeset_add(&set, i * 4, 2), 0);
	ck_assert_uint_eq(set.count, many);
	for (i = many; i-- > 0;)
		ck_assert(rangeset_meets(&set, i * 4, 4));
	ck_assert_int_eq(rangeset_add(&set, 1, many * 4), 0);
	ck_assert_uint_eq(set.count, 1);
	ck_assert_uint_eq(set.total, many * 4 + 1);
	rangeset_fini(&set);
}
END_TEST

#define MAP_KEYS 300u

START_TEST(map_is_an_array)
{
	uint64_t seed = 42, key, walked;
	int values[MAP_KEYS], *want[MAP_KEYS] = { NULL };
	struct hashmap *map = hashmap_new();
	size_t step, count = 0, pos = 0;
	void *value;

	ck_assert_ptr_nonnull(map);
	for (step = 0; step < 20000; step++) {
		key = test_random(&seed) % MAP_KEYS;
		count -= want[key] != NULL;
		if (test_random(&seed) % 3) {
			want[key] = &values[test_random(&seed) % MAP_KEYS];
			ck_assert_int_eq(hashmap_put(map, key << 40, want[key]),
					 0);
			count++;
		} else {
			ck_assert_ptr_eq(hashmap_del(map, key << 40),
					 want[key]);
			want[key] = NULL;
		}
		key = test_random(&seed) % MAP_KEYS;
		ck_assert_ptr_eq(hashmap_get(map, key << 40), want[key]);
		ck_assert_uint_eq(hashmap_count(map), count);
	}
	for (walked = 0; (value = hashmap_next(map, &pos, &key)); walked++)
		ck_assert_ptr_eq(value, want[key >> 40]);
	ck_assert_uint_eq(walked, count);
	ck_assert_int_eq(hashmap_put(map, 1, NULL), -EINVAL);
	hashmap_free(map);
}
END_TEST

/* At any number of entries, also while they move to a larger table, and with
 * some removed: all are found, and walked over in order. */
START_TEST(map_grows_in_steps)
{
	struct hashmap *map = hashmap_new();
	uint64_t key, last;
	size_t pos, walked;

	for (uint64_t n = 1; n <= 600; n++) {
		ck_assert_int_eq(hashmap_put(map, n, map), 0);
		if (n % 3 == 0)
			ck_assert_ptr_eq(hashmap_del(map, n / 3), map);
		pos = walked = 0;
		for (last = n / 3; hashmap_next(map, &pos, &key); last = key) {
			walked++;
			if (key != last + 1)
				ck_abort_msg("out of order");
		}
		ck_assert_uint_eq(last, n);
		ck_assert_uint_eq(walked, n - n / 3);
		ck_assert_uint_eq(hashmap_count(map), walked);
		for (key = 1; key <= n; key++)
			if (hashmap_get(map, key) !=
			    (key > n / 3 ? map : NULL))
				ck_abort_msg("not found");
	}
	hashmap_free(map);
}
END_TEST

/* The memory of this process in bytes, from an open /proc/self/statm. */
static size_t mapped_bytes(int statm)
{
	char text[32];
	const ssize_t n = pread(statm, text, sizeof(text) - 1, 0);

	ck_assert_int_gt(n, 0);
	text[n] = 0;
	return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* The table of 262,144 entries that a larger one has replaced has 6 MiB; freed
 * at once a table that is ten times larger takes 4.4 ms. */
START_TEST(map_gives_back_in_slices)
{
	const int statm = open("/proc/self/statm", O_RDONLY);
	struct hashmap *map = hashmap_new();
	size_t before, most, now = 0;

	ck_assert_int_ge(statm, 0);
	for (uint64_t n = 0; n < 262145; n++)
		ck_assert_int_eq(hashmap_put(map, n, map), 0);
	before = most = mapped_bytes(statm);
	for (uint64_t n = 262145; n < 300000; n++, most = now) {
		ck_assert_int_eq(hashmap_put(map, n, map), 0);
		now = mapped_bytes(statm);
		if (now + ((size_t)1 << 20) < most)
			ck_abort_msg("%zu bytes at once", most - now);
	}
	ck_assert_uint_le(now + ((size_t)5 << 20), before);
	for (uint64_t n = 0; n < 300000; n++)
		if (hashmap_get(map, n) != map)
			ck_abort_msg("not found");
	hashmap_free(map);
	close(statm);
}
END_TEST

START_TEST(map_walks_in_order)
{
	struct hashmap *map = hashmap_new();
	uint64_t key, i, value = 0;
	size_t pos = 0;

	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(hashmap_put(map, i * 7919 % 1000, &value), 0);
	for (i = 0; hashmap_next(map, &pos, &key); i++) {
		ck_assert_uint_eq(key, i * 7919 % 1000);
		ck_assert_ptr_eq(hashmap_del(map, key), &value);
	}
	ck_assert_uint_eq(i, 1000);
	ck_assert_uint_eq(hashmap_count(map), 0);
	hashmap_free(map);
}
END_TEST

static const struct {
	const char *name, *text;
} escaped[] = {
	{ "plain, with spaces", "plain, with spaces" },
	{ "\303\244\342\202\254\360\237\230\200",
	  "\303\244\342\202\254\360\237\230\200" },
	{ "a\nb\033[2J\177", "a\\012b\\033[2J\\177" },
	{ "back\\slash", "back\\134slash" },
	/* U+0085 and U+009B, which terminals obey like ESC [ */
	{ "\302\205x\302\2332J", "\\302\\205x\\302\\2332J" },
	{ "\302\240", "\302\240" },
	{ "\342\200\250", "\\342\\200\\250" },
	/* a lone C1 byte, a cut sequence, overlong, a surrogate, too large */
	{ "\233", "\\233" },
	{ "\303", "\\303" },
	{ "\300\201", "\\300\\201" },
	{ "\340\202\233", "\\340\\202\\233" },
	{ "\355\240\200", "\\355\\240\\200" },
	{ "\364\220\200\200", "\\364\\220\\200\\200" },
};

START_TEST(text_has_no_control_characters)
{
	char *text = text_escape(escaped[_i].name);

	ck_assert_str_eq(text, escaped[_i].text);
	text_tame(text);
	ck_assert_str_eq(text, escaped[_i].text);
	free(text);
}
END_TEST

START_TEST(one_thing_is_no_plural)
{
	ck_assert_str_eq(count_text(0, "error").s, "0 errors");
	ck_assert_str_eq(count_text(1, "error").s, "1 error");
	ck_assert_str_eq(count_text(UINT64_MAX, "log record").s,
			 "18446744073709551615 log records");
	ck_assert_str_eq(count_text(1, "copy").s, "1 copy");
	ck_assert_str_eq(count_text(2, "copy").s, "2 copies");
}
END_TEST

static void count_line(enum msg_level level, const char *line, void *arg)
{
	unsigned *lines = arg;

	(void)level;
	(void)line;
	++*lines;
}

/* A reader of a damaged block can't fill the disk with lines. */
START_TEST(msg_is_limited_by_kind)
{
	unsigned lines = 0, i;
	char kept[200];

	msg_set_sink(count_line, &lines);
	msg_set_limit(10, 3600);
	for (i = 0; i < 1000; i++)
		msg_error("damaged: %u", i);
	ck_assert_uint_eq(lines, 10);
	msg_error("another kind");
	ck_assert_uint_eq(lines, 11);
	msg_set_limit(0, 0);
	msg_set_sink(keep_line, kept);
	msg_error("a profile says \033[2J\302\2332J %s", "\\033");
	ck_assert_str_eq(kept + 1, "a profile says ?[2J??2J \\033");
	msg_set_sink(count_line, &lines);
	for (i = 0; i < 20; i++)
		msg_error("damaged: %u", i);
	ck_assert_uint_eq(lines, 31);
	msg_set_sink(NULL, NULL);
}
END_TEST

#define SORTED 5000u

/* By keys, equal ones in the order they had, in steps of any length. */
START_TEST(sort_goes_in_steps)
{
	const size_t n = _i < 8 ? (size_t)_i : SORTED - (size_t)_i;
	uint64_t seed = (uint64_t)_i + 1;
	struct sort sort;
	size_t steps = 0;

	ck_assert_int_eq(sort_init(&sort, SORTED), 0);
	for (size_t i = 0; i < n; i++)
		sort.item[i] = (struct sort_item){
			test_random(&seed) % 1000, (uint32_t)i,
		};
	sort_begin(&sort, n);
	while (!sort_step(&sort, (size_t)_i * 7 + 1))
		ck_assert_uint_lt(steps++, n * 20);
	for (size_t i = 1; i < n; i++) {
		const struct sort_item *a = &sort.item[i - 1], *b = a + 1;

		ck_assert(a->key < b->key ||
			  (a->key == b->key && a->value < b->value));
	}
	sort_fini(&sort);
}
END_TEST

#define OBJECTS 20000u
#define OBJECT_BYTES 100u

/* All from the heap, as in the daemon, with pieces of others in between.  The
 * first half fills the holes that the heap had before. */
START_TEST(slabs_leave_little_between_them)
{
	static struct slabs slabs = SLABS_INIT(slabs, OBJECT_BYTES);
	static uint8_t *object[OBJECTS];
	static void *other[OBJECTS / 1000];
	uintptr_t low = UINTPTR_MAX, high = 0;

	mallopt(M_MMAP_THRESHOLD, 16 << 20);
	for (unsigned i = 0; i < OBJECTS; i++) {
		object[i] = slab_get(&slabs);
		ck_assert_ptr_nonnull(object[i]);
		memset(object[i], (int)(i % 251), OBJECT_BYTES);
		if (i % 1000 == 0)
			other[i / 1000] = malloc(500);
		if (i < OBJECTS / 2)
			continue;
		low = (uintptr_t)object[i] < low ? (uintptr_t)object[i] : low;
		high = (uintptr_t)object[i] > high ? (uintptr_t)object[i] :
						     high;
	}
#ifndef __SANITIZE_ADDRESS__
	ck_assert_uint_lt(high - low, OBJECTS / 2 * OBJECT_BYTES / 4 * 5);
#endif
	for (unsigned i = 0; i < OBJECTS; i++) {
		ck_assert_uint_eq(object[i][0], i % 251);
		ck_assert_uint_eq(object[i][OBJECT_BYTES - 1], i % 251);
		slab_put(&slabs, object[i]);
	}
	for (unsigned i = 0; i < OBJECTS / 1000; i++)
		free(other[i]);
}
END_TEST

START_TEST(array_keeps_what_it_holds)
{
	double *v = NULL;
	size_t room = 0, n = 0;

	while (n < 3 * ARRAY_ROOM) {
		ck_assert_int_eq(array_grow(&v, &room, n, sizeof(*v)), 0);
		ck_assert_uint_gt(room, n);
		v[n] = -(double)n;
		n++;
	}
	qsort(v, n, sizeof(*v), sort_double_cmp);
	for (size_t i = 0; i < n; i++)
		ck_assert(v[i] == (double)i - (double)(n - 1));
	free(v);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base");
	TCase *services = tcase_create("services");
	TCase *containers = tcase_create("containers");

	tcase_add_test(services, csum_is_xxh3);
	tcase_add_test(services, env_real_clock_goes_on);
	tcase_add_test(services, msg_goes_to_sink);
	tcase_add_test(services, msg_is_limited_by_kind);
	tcase_add_test(services, one_thing_is_no_plural);
	tcase_add_loop_test(services, text_has_no_control_characters, 0,
			    sizeof(escaped) / sizeof(escaped[0]));
	suite_add_tcase(suite, services);
	tcase_add_loop_test(containers, rangeset_is_a_bitmap, 0, 8);
	tcase_add_test(containers, rangeset_refuses_empty_and_wrapping_ranges);
	tcase_add_test(containers, rangeset_takes_many);
	tcase_add_loop_test(containers, sort_goes_in_steps, 0, 16);
	tcase_add_test(containers, array_keeps_what_it_holds);
	tcase_add_test(containers, slabs_leave_little_between_them);
	tcase_add_test(containers, map_is_an_array);
	tcase_add_test(containers, map_walks_in_order);
	tcase_add_test(containers, map_grows_in_steps);
	tcase_add_test(containers, map_gives_back_in_slices);
	tcase_set_timeout(containers, 120);
	suite_add_tcase(suite, containers);
	return test_run(suite);
}
