/*
 * test_trim.c - angles that add up errors, made right by reading some tracks.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/angle/pitch.h"
#include "extract/angle/skews.h"
#include "extract/angle/trim.h"
#include "extract/probe/prober_disk.h"
#include "sim/model_error.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/test.h"

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + 1;
	return *state >> 33;
}

/* In [-1, 1). */
static double spread(uint64_t *state)
{
	return (double)(next_random(state) % 2000) / 1000 - 1;
}

static angle turn(double t)
{
	return (angle)(int64_t)llrint(ldexp(t, 32));
}

static void make(uint64_t seed, struct spec **spec, struct sim **sim)
{
	struct specgen options = {
		.seed = seed, .slipped = -1, .cache = -1, .zero_latency = -1,
		.noise = 1, .bytes = UINT64_C(600000000),
	};
	struct sim_options o = { .seed = seed };

	ck_assert_int_eq(specgen_make(&options, spec), 0);
	*sim = sim_new(*spec, 0, &o);
	ck_assert_ptr_nonnull(*sim);
}

/* As a map is: every few dozen tracks by something else, a step that is not
 * quite right in between. */
struct disturbance {
	uint64_t state;
	double off, step;
};

static void disturb(void *arg, const struct geom_track *track,
		    struct geom_sweep *sweep)
{
	struct disturbance *d = arg;

	(void)track;
	if (next_random(&d->state) % 40 == 0) {
		d->off += 0.004 * spread(&d->state);
		d->step = 0.0001 * spread(&d->state);
	}
	d->off += d->step;
	sweep->base += turn(d->off);
}

static struct geom *disturbed(const struct geom *truth, uint64_t seed)
{
	struct disturbance d = { .state = seed };
	struct geom *geom;

	ck_assert_int_eq(geom_change(truth, &(struct geom_changer){
		.change = disturb, .arg = &d }, &geom), 0);
	return geom;
}

START_TEST(trims_what_has_added_up)
{
	struct geom *truth, *told, *geom;
	struct trim_options options;
	struct model_error before, after;
	struct prober *prober;
	struct trim_stats stats;
	struct spec *spec;
	struct sim *sim;

	make(700 + (uint64_t)_i, &spec, &sim);
	ck_assert_int_eq(spec_geom(spec, &truth), 0);
	told = disturbed(truth, 700 + (uint64_t)_i);
	ck_assert_int_eq(model_error_geom(truth, told, &before), 0);
	ck_assert_uint_gt(before.angle_p99_ppm, 4000);
	prober = prober_disk_new(sim_env(sim), sim_disk(sim), false, NULL);
	options = (struct trim_options){
		.period_ps = spec->mech.period_ps * 1000001 / 1000000,
	};
	ck_assert_int_eq(trim_angles(prober, told, &options, &geom, &stats),
			 0);
	ck_assert_int_eq(model_error_geom(truth, geom, &after), 0);
	ck_assert_uint_eq(after.wrong, 0);
	ck_assert_uint_eq(after.right, geom_tracks(truth));
	ck_assert_msg(after.angle_p99_ppm < 5000 &&
		      after.angle_p99_ppm < before.angle_p99_ppm,
		      "seed %d: %u, now %u, at most %u millionths off, %ju "
		      "reads", 700 + _i, before.angle_p99_ppm,
		      after.angle_p99_ppm, after.angle_max_ppm,
		      (uintmax_t)stats.reads);
	geom_free(geom);
	geom_free(told);
	geom_free(truth);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

/* Time is up after some reads: what they say is taken. */
START_TEST(trims_as_long_as_it_may)
{
	struct geom *truth, *told, *geom;
	struct trim_options options;
	struct prober *prober;
	struct trim_stats stats;
	struct spec *spec;
	struct sim *sim;
	uint64_t began_ns;

	make(720, &spec, &sim);
	ck_assert_int_eq(spec_geom(spec, &truth), 0);
	told = disturbed(truth, 720);
	prober = prober_disk_new(sim_env(sim), sim_disk(sim), false, NULL);
	options = (struct trim_options){
		.period_ps = spec->mech.period_ps, .most_ns = 1000000000,
	};
	began_ns = env_now_ns(sim_env(sim));
	ck_assert_int_eq(trim_angles(prober, told, &options, &geom, &stats),
			 0);
	ck_assert_uint_lt(env_now_ns(sim_env(sim)) - began_ns, 4000000000);
	ck_assert_uint_eq(geom_tracks(geom), geom_tracks(truth));
	geom_free(geom);
	geom_free(told);
	geom_free(truth);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

static bool is_even(void *arg, const struct geom_track *track)
{
	(void)arg;
	return track->index % 2 == 0;
}

/* Half of the disk can't be read any more, and no track tells of the next:
 * what stays unsure is not tried for ever. */
START_TEST(gives_up_what_cannot_be_read)
{
	struct trim_options options = { 0 };
	struct geom *truth, *some, *geom;
	struct prober *prober;
	struct trim_stats stats;
	struct spec *spec;
	struct sim *sim;

	make(723, &spec, &sim);
	ck_assert_int_eq(spec_geom(spec, &truth), 0);
	ck_assert_int_eq(geom_less(truth, is_even, NULL, &some), 0);
	sim_damage(sim, geom_sectors(truth) * 5 / 8,
		   geom_sectors(truth) * 3 / 8);
	prober = prober_disk_new(sim_env(sim), sim_disk(sim), false, NULL);
	options.period_ps = spec->mech.period_ps;
	ck_assert_int_eq(trim_angles(prober, some, &options, &geom, &stats),
			 0);
	ck_assert_double_gt(stats.sigma, 0.002);
	geom_free(geom);
	geom_free(some);
	geom_free(truth);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

START_TEST(nothing_known_is_nothing_to_trim)
{
	struct trim_options options = { .period_ps = 8333333333 };
	struct geom *geom, *out;
	struct prober *prober;
	struct trim_stats stats;
	struct spec *spec;
	struct sim *sim;

	make(721, &spec, &sim);
	prober = prober_disk_new(sim_env(sim), sim_disk(sim), false, NULL);
	ck_assert_int_eq(geom_regular(prober->limits->sectors, 2048, &geom),
			 0);
	ck_assert_int_eq(trim_angles(prober, geom, &options, &out, &stats),
			 -EINVAL);
	geom_free(geom);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

#define READS 200u

/* Spares make a track of 776 sectors 784 round: believed where it is not so,
 * and the other way round; all lie somewhere else than thought. */
START_TEST(finds_pitches)
{
	struct pitch_read read[2 * READS];
	struct pitch pitch[PITCH_MOST];
	uint64_t state = 5;

	for (unsigned i = 0; i < 2 * READS; i++) {
		struct pitch_read *r = &read[i];

		*r = (struct pitch_read){
			.track = i, .sectors = i % 2 ? 776 : 600,
			.around = i % 2 ? 784 : 600,
			.part = (1 + spread(&state)) / 2,
		};
		r->late = 0.00001 * i + 0.002 * spread(&state);
		r->late += i % 2 ? r->part * (784.0 / 776 - 1) : 0;
		r->late += i % 37 == 0 ? 0.2 : 0;
	}
	ck_assert_uint_eq(pitch_find(read, 2 * READS, 0.0015, 8, pitch), 1);
	ck_assert_uint_eq(pitch[0].sectors, 776);
	ck_assert_uint_eq(pitch[0].around, 784);
	ck_assert_uint_eq(pitch[0].right, 776);
}
END_TEST

/* So many spares that one end's readings seem to be late ones. */
START_TEST(finds_steep_pitches)
{
	struct pitch_read read[40];
	struct pitch pitch[PITCH_MOST];
	uint64_t state = 7;

	for (unsigned i = 0; i < 40; i++) {
		struct pitch_read *r = &read[i];

		*r = (struct pitch_read){
			.track = i, .sectors = 632, .around = 632,
			.part = i % 3 ? 0.9 : 0.1,
		};
		r->late = 0.003 * spread(&state) +
			  r->part * (632.0 / 776 - 1);
	}
	ck_assert_uint_eq(pitch_find(read, 40, 0.0025, 8, pitch), 1);
	ck_assert_uint_eq(pitch[0].right, 776);
}
END_TEST

/* All read near one place, some of them late: that is no slope. */
START_TEST(no_pitch_of_one_place)
{
	struct pitch_read read[READS];
	struct pitch pitch[PITCH_MOST];

	for (unsigned i = 0; i < READS; i++)
		read[i] = (struct pitch_read){
			.track = i, .sectors = 776, .around = 776,
			.part = i % 2 ? 0.11 : 0.1, .late = i % 2 ? 0 : 0.02,
		};
	ck_assert_uint_eq(pitch_find(read, READS, 0.0015, 8, pitch), 0);
}
END_TEST

/* A jump that nothing foretold, and late readings that are none. */
START_TEST(smooths_up_to_a_jump)
{
	struct skews_read read[READS];
	float *late, *sigma;
	struct skews *skews;
	struct geom *truth;
	uint64_t state = 7, n, far = 0;
	struct spec *spec;
	struct sim *sim;

	make(722, &spec, &sim);
	ck_assert_int_eq(spec_geom(spec, &truth), 0);
	n = geom_tracks(truth);
	ck_assert_int_eq(skews_new(truth, NULL, &skews), 0);
	late = calloc(n, sizeof(*late));
	sigma = calloc(n, sizeof(*sigma));
	for (unsigned i = 0; i < READS; i++) {
		read[i].track = n * i / READS;
		read[i].late = (i < 97 ? 0 : 0.01) + 0.003 * spread(&state) +
			       (i % 30 == 9 ? 0.3 : 0);
	}
	ck_assert_int_eq(skews_smooth(skews, read, READS, 0.0018, late, sigma),
			 0);
	for (uint64_t i = 0; i < n; i++) {
		double off = late[i] - (i < n * 97 / READS ? 0 : 0.01);

		far += fabs(off) > 0.003;
		ck_assert_double_lt(fabs(off), 0.011);
	}
	ck_assert_uint_lt(far, n / 10);
	free(late);
	free(sigma);
	skews_free(skews);
	geom_free(truth);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

/* Angles that are right stay so: two late readings at the beginning were taken
 * for a spindle that had changed its speed. */
START_TEST(leaves_what_is_right)
{
	struct specgen gen;
	struct trim_options options;
	struct trim_stats stats;
	struct prober *prober;
	struct geom *truth, *geom;
	struct model_error after;
	struct spec *spec;
	struct sim *sim;

	ck_assert_int_eq(specgen_parse("31504,bytes=80G", &gen), 0);
	ck_assert_int_eq(specgen_make(&gen, &spec), 0);
	sim = sim_new(spec, 0, &(struct sim_options){ .seed = 1 });
	ck_assert_ptr_nonnull(sim);
	ck_assert_int_eq(spec_geom(spec, &truth), 0);
	prober = prober_disk_new(sim_env(sim), sim_disk(sim), false, NULL);
	options = (struct trim_options){ .period_ps = spec->mech.period_ps };
	ck_assert_int_eq(trim_angles(prober, truth, &options, &geom, &stats),
			 0);
	ck_assert_int_eq(model_error_geom(truth, geom, &after), 0);
	ck_assert_uint_lt(after.angle_p99_ppm, 5000);
	geom_free(geom);
	geom_free(truth);
	prober_disk_free(prober);
	sim_free(sim);
	spec_free(spec);
}
END_TEST

#define MANY 20000u

static unsigned pauses;		/* of a prober that has no room for it */

static void count_pause(struct prober *prober)
{
	(void)prober;
	pauses++;
}

/* Who computes lets others go on all the time: it goes over all tracks ten
 * times and more. */
START_TEST(pauses_in_between)
{
	struct geom_build *b = geom_build_new(8000000, 1000);
	const struct geom_sweep sweep = {
		.count = MANY, .sectors = 500, .around = 500,
		.cylinder_step = 1, .base_step = 1u << 28, .known = true,
	};
	struct prober prober = { .pause = count_pause };
	struct skews_read read = { .track = MANY / 2, .late = 0.01 };
	float *late = calloc(MANY, sizeof(*late));
	float *sigma = calloc(MANY, sizeof(*sigma));
	struct skews *skews;
	struct geom *geom;

	ck_assert_int_eq(geom_build_sweep(b, &sweep), 0);
	ck_assert_int_eq(geom_build_finish(b, &geom), 0);
	geom_build_free(b);
	pauses = 0;
	ck_assert_int_eq(skews_new(geom, &prober, &skews), 0);
	ck_assert_int_eq(skews_smooth(skews, &read, 1, 0.0018, late, sigma), 0);
	/* Kinds, five ways to stray, there and back. */
	ck_assert_uint_ge(pauses, MANY / PROBER_STEPS * 8);
	free(late);
	free(sigma);
	skews_free(skews);
	geom_free(geom);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("trim");
	TCase *tc = tcase_create("trim");

	tcase_add_loop_test(tc, trims_what_has_added_up, 0, 10);
	tcase_add_test(tc, trims_as_long_as_it_may);
	tcase_add_test(tc, gives_up_what_cannot_be_read);
	tcase_add_test(tc, nothing_known_is_nothing_to_trim);
	tcase_add_test(tc, finds_pitches);
	tcase_add_test(tc, finds_steep_pitches);
	tcase_add_test(tc, no_pitch_of_one_place);
	tcase_add_test(tc, smooths_up_to_a_jump);
	tcase_add_test(tc, pauses_in_between);
	tcase_add_test(tc, leaves_what_is_right);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
