/*
 * test_extract.c - the map of tracks by timing is exact, on simulated drives
 * behind a noisy host; it survives interruption and being written down.
 */
#include <errno.h>

#include "diskmodel/spec.h"
#include "tests/extract_rig.h"
#include "tests/test.h"

static struct spec *spec_of(const char *name)
{
	const char *dir = getenv("top_srcdir");
	struct spec *spec;
	char path[512];

	snprintf(path, sizeof(path), "%s/drives/%s", dir ? dir : ".", name);
	ck_assert_int_eq(spec_read(path, &spec), 0);
	return spec;
}

static struct map *map_of(struct extract_rig *rig, const struct spec *spec)
{
	/* As well as a period is measured. */
	struct map_options o = {
		.period_ps = spec->mech.period_ps * 1000001 / 1000000,
	};
	struct map *map;

	ck_assert_int_eq(map_open(&rig->prober, &o, &map), 0);
	return map;
}

/* All that is known is true, and nearly all is known. */
static void judge(const struct extract_rig *rig, const struct map *map,
		  uint64_t sectors)
{
	struct extract_verdict v;
	struct map_stats s;
	struct geom *geom;

	ck_assert_int_eq(map_geom(map, &geom), 0);
	ck_assert_uint_eq(geom_sectors(geom), rig->prober.limits->sectors);
	extract_rig_judge(rig, geom, &v);
	ck_assert_uint_eq(v.wrong, 0);
	map_get_stats(map, &s);
	ck_assert_uint_ge(s.known_sectors, sectors - sectors / 50);
	geom_free(geom);
}

START_TEST(exact)
{
	static const struct {
		const char *name;
		uint64_t sectors;
	} drives[] = {
		{ "modern.json", 20000000 },
		{ "wd800.json", 3000000 },
		{ "atlas-10k.json", 1000000 },
	};
	struct spec *spec = spec_of(drives[_i].name);
	struct extract_rig rig;
	struct map *map;

	ck_assert_int_eq(extract_rig_init(&rig, spec, 7), 0);
	map = map_of(&rig, spec);
	ck_assert_int_eq(map_extract(map, 0, drives[_i].sectors), 0);
	ck_assert_int_eq(map_verify(map, 0, drives[_i].sectors, 100), 0);
	judge(&rig, map, drives[_i].sectors);
	map_close(map);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

START_TEST(interrupted)
{
	struct spec *spec = spec_of("modern.json");
	struct extract_rig rig;
	struct map *map, *again;
	bool known;
	json_t *state;

	ck_assert_int_eq(extract_rig_init(&rig, spec, 3), 0);
	map = map_of(&rig, spec);
	rig.stop_at = 1500;
	ck_assert_int_eq(map_extract(map, 0, 8000000), -EINTR);
	ck_assert_uint_gt(map_known(map, 0, &known), 100000);
	ck_assert(known);
	state = map_save(map);
	ck_assert_ptr_nonnull(state);
	map_close(map);
	rig.stop_at = 0;
	again = map_of(&rig, spec);
	ck_assert_int_eq(map_load(again, state), 0);
	json_decref(state);
	ck_assert_int_eq(map_extract(again, 0, 8000000), 0);
	judge(&rig, again, 8000000);
	/* A place in the middle, of which nothing is known. */
	ck_assert_int_eq(map_extract(again, 3000000000, 3000200000), 0);
	ck_assert_uint_ge(map_known(again, 3000100000, &known), 3000200000);
	ck_assert(known);
	judge(&rig, again, 8200000);
	map_close(again);
	extract_rig_fini(&rig);
	spec_free(spec);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("extract");
	TCase *tc = tcase_create("map");

	tcase_add_loop_test(tc, exact, 0, 3);
	tcase_add_test(tc, interrupted);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
