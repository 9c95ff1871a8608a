/*
 * test_layout.c - files that are written with little memory lie on whole
 * tracks, whatever else is written and in whatever order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/layout.h"
#include "tests/rig/test.h"

#define MIB (1u << 20)

static const char *drive_path(void)
{
	static char path[4096];
	const char *top = getenv("top_srcdir");

	snprintf(path, sizeof(path), "%s/drives/modern.json", top ? top : ".");
	return path;
}

/* What is missing are the first and the last track of each file. */
START_TEST(most_bytes_lie_on_whole_tracks)
{
	const struct layout_options options = {
		.drive = drive_path(), .seed = 3, .memory_mib = 32, .mib = 256,
	};
	const struct layout_load *load = &layout_loads[_i];
	struct layout_result r;

	ck_assert_int_eq(layout_run(&options, load, &r), 0);
	ck_assert_uint_eq(r.bytes, (uint64_t)options.mib * MIB);
	ck_assert_uint_ge(r.whole_bytes * 100, r.bytes * 90);
	ck_assert_uint_le(r.runs, load->writers * 10);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("layout");
	Suite *suite = suite_create("layout");
	int loads = 0;

	while (layout_loads[loads].name)
		loads++;
	tcase_add_loop_test(tc, most_bytes_lie_on_whole_tracks, 0, loads);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
