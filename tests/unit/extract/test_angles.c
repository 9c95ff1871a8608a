/*
 * test_angles.c - angles of tracks that are known, on drives that nobody has
 * seen.
 */
#include <stdlib.h>

#include "extract/angle/angles.h"
#include "extract/probe/prober_disk.h"
#include "sim/model_error.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/test.h"

static void make(uint64_t seed, struct spec **spec, struct sim **sim)
{
	struct specgen options = {
		.seed = seed, .slipped = -1, .cache = -1, .zero_latency = -1,
		.noise = 1, .bytes = UINT64_C(2000000000),
	};
	struct sim_options o = { .seed = seed };

	ck_assert_int_eq(specgen_make(&options, spec), 0);
	*sim = sim_new(*spec, 0, &o);
	ck_assert_ptr_nonnull(*sim);
}

/* What translations tell. */
static struct geom *without_angles(const struct geom *truth)
{
	angle *none = calloc(geom_tracks(truth), sizeof(*none));
	struct geom *geom;

	ck_assert_ptr_nonnull(none);
	ck_assert_int_eq(angles_put(truth, NULL, none, NULL, &geom), 0);
	free(none);
	return geom;
}

START_TEST(angles_of_known_tracks)
{
	struct geom *truth, *told, *geom;
	struct angles_options options;
	struct angles_stats stats;
	struct prober *prober;
	struct model_error judge;
	struct spec *spec;
	struct sim *sim;

	make(300 + (uint64_t)_i, &spec, &sim);
	ck_assert_int_eq(spec_geom(spec, &truth), 0);
	told = without_angles(truth);
	prober = prober_disk_new(sim_env(sim), sim_disk(sim), false, NULL);
	options = (struct angles_options){
		.period_ps = spec->mech.period_ps * 1000001 / 1000000,
	};
	ck_assert_int_eq(angles_measure(prober, told, &options, &geom,
					&stats), 0);
	ck_assert_int_eq(model_error_geom(truth, geom, &judge), 0);
	ck_assert_uint_eq(judge.wrong, 0);
	ck_assert_uint_eq(judge.unknown_sectors, 0);
	ck_assert_msg(judge.angle_p99_ppm < 12000,
		      "seed %d: %u, %u, at most %u millionths off, %ju reads "
		      "of %ju tracks, %ju odd", 300 + _i, judge.angle_p50_ppm,
		      judge.angle_p99_ppm, judge.angle_max_ppm,
		      (uintmax_t)stats.reads, (uintmax_t)stats.tracks,
		      (uintmax_t)stats.odd);
	/* Most are foretold. */
	ck_assert_uint_lt(stats.reads, stats.tracks);
	ck_assert_uint_eq(stats.tracks, geom_tracks(truth));
	geom_free(geom);
	geom_free(told);
	geom_free(truth);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("angles");
	TCase *tc = tcase_create("angles");

	tcase_add_loop_test(tc, angles_of_known_tracks, 0, 12);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
