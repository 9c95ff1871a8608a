/*
 * test_angles.c - angles of tracks that are known, on drives that nobody has
 * seen.
 */
#include "diskmodel/geom_build.h"
#include "extract/angle/trim.h"
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

static void forget_angle(void *arg, const struct geom_track *track,
			 struct geom_sweep *sweep)
{
	(void)arg;
	(void)track;
	sweep->base = 0;
}

/* What translations tell. */
static struct geom *without_angles(const struct geom *truth)
{
	struct geom *geom;

	ck_assert_int_eq(geom_change(truth, &(struct geom_changer){
		.change = forget_angle }, &geom), 0);
	return geom;
}

START_TEST(angles_of_known_tracks)
{
	struct geom *truth, *told, *geom;
	struct trim_options options;
	struct trim_stats stats;
	struct prober *prober;
	struct model_error judge;
	struct spec *spec;
	struct sim *sim;

	make(300 + (uint64_t)_i, &spec, &sim);
	ck_assert_int_eq(spec_geom(spec, &truth), 0);
	told = without_angles(truth);
	prober = prober_disk_new(sim_env(sim), sim_disk(sim), false, NULL);
	options = (struct trim_options){
		.period_ps = spec->mech.period_ps * 1000001 / 1000000,
		.unknown = true,
	};
	ck_assert_int_eq(trim_angles(prober, told, &options, &geom, &stats),
			 0);
	ck_assert_int_eq(model_error_geom(truth, geom, &judge), 0);
	ck_assert_uint_eq(judge.wrong, 0);
	ck_assert_uint_eq(judge.unknown_sectors, 0);
	ck_assert_msg(judge.angle_p99_ppm < 10000,
		      "seed %d: %u, %u, at most %u millionths off, %ju reads "
		      "of %ju tracks", 300 + _i, judge.angle_p50_ppm,
		      judge.angle_p99_ppm, judge.angle_max_ppm,
		      (uintmax_t)stats.reads, (uintmax_t)geom_tracks(truth));
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
