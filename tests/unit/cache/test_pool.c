/*
 * test_pool.c - pools, the budget, and the limits of control groups.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/limit.h"
#include "cache/pool.h"
#include "tests/rig/test.h"

START_TEST(a_pool_gives_each_buffer_once)
{
	void *buf[7];
	struct pool *pool;

	ck_assert_int_eq(pool_new(0, 3, &pool), -EINVAL);
	ck_assert_int_eq(pool_new(SIZE_MAX / 2, 3, &pool), -EINVAL);
	ck_assert_int_eq(pool_new(5000, 7, &pool), 0);
	ck_assert_uint_eq(pool_count(pool), 7);
	for (unsigned i = 0; i < 7; i++) {
		buf[i] = pool_get(pool);
		ck_assert_ptr_nonnull(buf[i]);
		ck_assert_uint_eq((uintptr_t)buf[i] % 4096, 0);
		memset(buf[i], (int)i, 5000);
	}
	ck_assert_ptr_null(pool_get(pool));
	ck_assert_uint_eq(pool_available(pool), 0);
	for (unsigned i = 0; i < 7; i++)
		ck_assert_int_eq(((uint8_t *)buf[i])[4999], (int)i);
	pool_put(pool, buf[3]);
	ck_assert_ptr_eq(pool_get(pool), buf[3]);
	pool_free(pool);
}
END_TEST

START_TEST(a_shared_buffer_is_free_after_its_last_put)
{
	struct pool *pool;
	void *buf;

	ck_assert_int_eq(pool_new(4096, 2, &pool), 0);
	buf = pool_get(pool);
	ck_assert(!pool_is_shared(pool, buf));
	ck_assert_ptr_eq(pool_share(pool, buf), buf);
	ck_assert(pool_is_shared(pool, buf));
	pool_put(pool, buf);
	ck_assert(!pool_is_shared(pool, buf));
	ck_assert_uint_eq(pool_available(pool), 1);
	pool_put(pool, buf);
	ck_assert_uint_eq(pool_available(pool), 2);
	pool_free(pool);
}
END_TEST

START_TEST(giving_back_twice_is_caught)
{
	struct pool *pool;
	void *buf;

	ck_assert_int_eq(pool_new(4096, 2, &pool), 0);
	buf = pool_get(pool);
	pool_put(pool, buf);
	pool_put(pool, buf);
}
END_TEST

START_TEST(use_after_free_is_caught)
{
	struct pool *pool;
	uint8_t *buf;

	pool_set_poison(true);
	ck_assert_int_eq(pool_new(4096, 2, &pool), 0);
	buf = pool_get(pool);
	pool_put(pool, buf);
	ck_assert_uint_ne(buf[0], 0);
	buf[4095]++;
	pool_get(pool);
}
END_TEST

START_TEST(a_budget_is_divided_without_rest)
{
	struct pool_budget b;

	ck_assert_int_eq(pool_budget_make(31u << 20, &b), -EINVAL);
	ck_assert_int_eq(pool_budget_make(32u << 20, &b), 0);
	ck_assert_uint_eq(b.nodes + b.dirty + b.tracks + b.replicas + b.flight,
			  32u << 20);
	ck_assert_uint_ge(b.nodes, 4u << 20);
	ck_assert_uint_ge(b.dirty, 4u << 20);
	ck_assert_uint_ge(b.tracks, 4u << 20);
	ck_assert_int_eq(pool_budget_make(0, &b), 0);
	ck_assert_uint_le(b.nodes + b.dirty + b.tracks + b.replicas + b.flight,
			  1u << 30);
}
END_TEST

static void write_file(const char *root, const char *path, const char *text)
{
	char name[512];
	FILE *f;

	snprintf(name, sizeof(name), "%s%s", root, path);
	for (char *p = strchr(name + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(name, 0755);
		*p = '/';
	}
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void remove_tree(const char *root)
{
	char command[512];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(the_tightest_cgroup_limit_counts)
{
	char root[] = "/tmp/test_pool-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_uint_eq(limit_memory(root), UINT64_MAX);
	write_file(root, "/proc/self/cgroup",
		   "4:memory,x:/old/g\n1:cpu:/c\n0::/a/b\n");
	ck_assert_uint_eq(limit_memory(root), UINT64_MAX);
	write_file(root, "/proc/self/mountinfo",
		   "30 1 0:2 / /cg2 rw shared:4 - cgroup2 cgroup2 rw,x\n"
		   "31 1 0:3 / /cg1/c rw - cgroup cgroup rw,cpu\n"
		   "32 1 0:4 /old /cg1/m rw - cgroup cgroup rw,memory,x\n");
	ck_assert_uint_eq(limit_memory(root), UINT64_MAX);
	write_file(root, "/cg2/a/b/memory.max", "max\n");
	ck_assert_uint_eq(limit_memory(root), UINT64_MAX);
	write_file(root, "/cg2/a/memory.max", "5000000\n");
	ck_assert_uint_eq(limit_memory(root), 5000000);
	write_file(root, "/cg2/a/b/memory.max", "4000000\n");
	ck_assert_uint_eq(limit_memory(root), 4000000);
	write_file(root, "/cg1/m/g/memory.limit_in_bytes", "3000000\n");
	ck_assert_uint_eq(limit_memory(root), 3000000);
	write_file(root, "/cg1/m/memory.limit_in_bytes", "2000000\n");
	ck_assert_uint_eq(limit_memory(root), 2000000);
	remove_tree(root);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool");
	TCase *tc = tcase_create("pool");

	tcase_add_test(tc, a_pool_gives_each_buffer_once);
	tcase_add_test(tc, a_shared_buffer_is_free_after_its_last_put);
	tcase_add_test_raise_signal(tc, giving_back_twice_is_caught, SIGABRT);
	tcase_add_test_raise_signal(tc, use_after_free_is_caught, SIGABRT);
	tcase_add_test(tc, a_budget_is_divided_without_rest);
	tcase_add_test(tc, the_tightest_cgroup_limit_counts);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
