/* test_base.c - containers and services of src/base. */
#include <string.h>

#include "base/csum.h"
#include "base/env.h"
#include "base/msg.h"
#include "tests/test.h"

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

int main(void)
{
	Suite *suite = suite_create("base");
	TCase *services = tcase_create("services");

	tcase_add_test(services, csum_is_xxh3);
	tcase_add_test(services, env_real_clock_goes_on);
	tcase_add_test(services, msg_goes_to_sink);
	suite_add_tcase(suite, services);
	return test_run(suite);
}
