/*
 * test_mech.c - measuring what moves, on drives that nobody has seen.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/drive/verify.h"
#include "extract/mech/mech.h"
#include "extract/probe/period.h"
#include "extract/probe/prober_disk.h"
#include "sim/model_error.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/test.h"

#define GENERATED 12

struct rig {
	struct spec *spec;
	struct sim *sim;
	struct prober *prober;
};

static void rig_open(struct rig *rig, const struct specgen *options)
{
	struct sim_options o = { .seed = options->seed + 1 };

	ck_assert_int_eq(specgen_make(options, &rig->spec), 0);
	rig->sim = sim_new(rig->spec, 0, &o);
	ck_assert_ptr_nonnull(rig->sim);
	rig->prober = prober_disk_new(sim_env(rig->sim), sim_disk(rig->sim),
				      false, NULL);
	ck_assert_ptr_nonnull(rig->prober);
}

static void rig_close(struct rig *rig)
{
	prober_disk_free(rig->prober);
	sim_free(rig->sim);
	spec_free(rig->spec);
}

static struct specgen generated(uint64_t seed)
{
	return (struct specgen){
		.seed = seed, .slipped = -1, .cache = -1, .zero_latency = -1,
		.noise = 1,
	};
}

/* ---- The prober ---- */

START_TEST(prober_times_and_refuses)
{
	struct specgen options = generated(4);
	volatile sig_atomic_t stop = 0;
	struct probe_access a[3] = {
		{ .sector = 8, .sectors = 8 },
		{ .sector = UINT64_C(1) << 40, .sectors = 8 },
		{ .sector = 80, .sectors = 8,
		  .not_before_ns = 500000000 },
	};
	struct prober *p;
	struct rig rig;

	rig_open(&rig, &options);
	p = prober_disk_new(sim_env(rig.sim), sim_disk(rig.sim), false, &stop);
	ck_assert_int_eq(p->access(p, a, 3, 1), 0);
	ck_assert_int_eq(a[0].result, 0);
	ck_assert_int_eq(a[1].result, -EINVAL);
	ck_assert_int_eq(a[2].result, 0);
	ck_assert_uint_gt(a[0].complete_ns, a[0].submit_ns);
	ck_assert_uint_ge(a[2].submit_ns, 500000000);
	a[0].write = true;
	ck_assert_int_eq(p->access(p, a, 1, 1), -EROFS);
	a[0].write = false;
	stop = 1;
	ck_assert_int_eq(p->access(p, a, 1, 1), -EINTR);
	prober_disk_free(p);
	rig_close(&rig);
}
END_TEST

START_TEST(prober_gives_up_on_what_is_gone)
{
	struct specgen options = generated(4);
	struct sim_fault dead = { .kind = SIM_FAIL, .ops = SIM_READS, .k = 1 };
	struct probe_access a[100];
	struct rig rig;

	rig_open(&rig, &options);
	ck_assert_int_eq(sim_fault_add(rig.sim, &dead), 0);
	for (int i = 0; i < 100; i++)
		a[i] = (struct probe_access){ .sector = 8, .sectors = 8 };
	ck_assert_int_eq(rig.prober->access(rig.prober, a, 100, 4), -ENODEV);
	rig_close(&rig);
}
END_TEST

/* ---- The period ---- */

START_TEST(period_of_generated_drives)
{
	struct specgen options = generated(100 + (uint64_t)_i);
	struct rotation period;
	struct rig rig;
	double off;

	options.bytes = _i % 2 ? UINT64_C(1000000000000) : 0;
	rig_open(&rig, &options);
	ck_assert_int_eq(period_measure(rig.prober, 0, &period), 0);
	ck_assert_int_eq(period.verdict, PERIOD_GOOD);
	off = (double)period.period_ps / (double)rig.spec->mech.period_ps - 1;
	ck_assert_msg(fabs(off) < 1e-6, "seed %d: %g off", 100 + _i, off);
	ck_assert_int_eq(period.cached, rig.spec->cache_segments > 0);
	ck_assert(period.noise_ns < 40000);
	rig_close(&rig);
}
END_TEST

START_TEST(period_says_what_does_not_rotate)
{
	struct sim *sim = sim_new(NULL, 1 << 20, &(struct sim_options){ 0 });
	struct prober *p = prober_disk_new(sim_env(sim), sim_disk(sim), false,
					   NULL);
	struct rotation period;

	ck_assert_int_eq(period_measure(p, 0, &period), 0);
	ck_assert_int_eq(period.verdict, PERIOD_FLAT);
	prober_disk_free(p);
	sim_free(sim);
	sim = sim_new(NULL, 1000, &(struct sim_options){ 0 });
	p = prober_disk_new(sim_env(sim), sim_disk(sim), false, NULL);
	ck_assert_int_eq(period_measure(p, 0, &period), 0);
	ck_assert_int_eq(period.verdict, PERIOD_SMALL);
	prober_disk_free(p);
	sim_free(sim);
}
END_TEST

/* A busy host that lets nobody run but at its ticks. */
struct ticking {
	struct prober prober;
	struct sim *sim;
};

static int ticking_access(struct prober *prober, struct probe_access *a,
			  unsigned n, unsigned depth)
{
	struct ticking *t = (struct ticking *)prober;
	uint64_t random, tick_ns = 4000000;
	unsigned i;

	(void)depth;
	for (i = 0; i < n; i++) {
		a[i].submit_ns = sim_now_ns(t->sim);
		random = env_random(prober->env);
		sim_advance(t->sim, tick_ns - a[i].submit_ns % tick_ns +
			    random % 20000 +
			    (random >> 32 & 7 ? 0 : (random >> 40) % 1500000));
		a[i].complete_ns = sim_now_ns(t->sim);
		a[i].result = 0;
	}
	return 0;
}

/* That has a period, too, but the same phase wherever is read. */
START_TEST(period_is_no_tick)
{
	struct sim *sim = sim_new(NULL, 1 << 20, &(struct sim_options){ 0 });
	struct ticking t = { .prober = {
		.env = sim_env(sim), .limits = &sim_disk(sim)->limits,
		.access = ticking_access,
	}, .sim = sim };
	struct rotation period;

	ck_assert_int_eq(period_measure(&t.prober, 0, &period), 0);
	ck_assert_int_eq(period.verdict, PERIOD_FLAT);
	sim_free(sim);
}
END_TEST

START_TEST(period_says_what_is_too_noisy)
{
	struct specgen options = generated(4);
	struct rotation period;
	struct rig rig;

	rig_open(&rig, &options);
	rig.spec->noise.exponential_ns = 1500000;
	rig.spec->noise.late = 0.3;
	ck_assert_int_eq(period_measure(rig.prober, 0, &period), 0);
	ck_assert_int_eq(period.verdict, PERIOD_NOISY);
	rig_close(&rig);
}
END_TEST

START_TEST(period_of_what_cannot_be_read)
{
	struct specgen options = generated(4);
	struct rotation period;
	struct rig rig;

	rig_open(&rig, &options);
	ck_assert_int_eq(sim_damage(rig.sim, 0,
				    rig.prober->limits->sectors), 0);
	ck_assert_int_eq(period_measure(rig.prober, 0, &period), 0);
	ck_assert_int_eq(period.verdict, PERIOD_UNREADABLE);
	rig_close(&rig);
}
END_TEST

/* ---- The mechanics ---- */

/* The true seek, and the half of its jitter that is part of the mean. */
static double seek_off(const struct spec *spec, const struct service_seek *seek)
{
	return (double)seek->ns - (double)(spec->seek_jitter_ns / 2) -
	       (double)service_seek_ns(&spec->mech, 0, seek->cylinders);
}

START_TEST(mechanics_of_generated_drives)
{
	struct specgen options = generated(50 + (uint64_t)_i);
	struct mech_options how = { .scratch = true };
	const struct service_mech *is;
	struct geom *geom;
	struct mech mech;
	struct rig rig;

	rig_open(&rig, &options);
	prober_disk_free(rig.prober);
	rig.prober = prober_disk_new(sim_env(rig.sim), sim_disk(rig.sim), true,
				     NULL);
	is = &rig.spec->mech;
	ck_assert_int_eq(spec_geom(rig.spec, &geom), 0);
	ck_assert_int_eq(mech_measure(rig.prober, geom, is->period_ps, &how,
				      &mech), 0);
	ck_assert(mech.overhead_ppm);
	ck_assert(fabs((double)mech.overhead_ns -
		       (double)rig.spec->read_overhead_ns) < 150e3);
	ck_assert_uint_gt(mech.seek_n, 15);
	for (uint32_t i = 0; i < mech.seek_n; i++) {
		ck_assert_msg(fabs(seek_off(rig.spec, &mech.seek[i])) < 250e3,
			      "seed %d, %u cylinders: %g us off", 50 + _i,
			      mech.seek[i].cylinders,
			      seek_off(rig.spec, &mech.seek[i]) / 1e3);
		ck_assert(!i || mech.seek[i].ns >= mech.seek[i - 1].ns);
	}
	if (mech.zero_latency_ppm)
		ck_assert_int_eq(mech.zero_latency, is->zero_latency_read);
	if (mech.head_switch_ppm)
		ck_assert(fabs((double)mech.head_switch_ns -
			       (double)is->head_switch_ns) < 300e3);
	if (mech.write_settle_ppm)
		ck_assert(fabs((double)mech.write_settle_ns -
			       (double)is->write_settle_ns) < 300e3);
	if (mech.read_ahead_ppm)
		ck_assert_int_eq(mech.read_ahead_sectors > 0,
				 rig.spec->read_ahead_lbns > 0);
	geom_free(geom);
	rig_close(&rig);
}
END_TEST

static bool is_one_of_few(void *arg, const struct geom_track *track)
{
	const uint64_t *from = arg;

	return track->index >= *from && track->index < *from + 60;
}

/* What has been mapped in a minute may be next to nothing of a large drive. */
START_TEST(mechanics_where_few_tracks_are_known)
{
	struct specgen options = generated(51);
	struct mech_options how = { 0 };
	struct geom *truth, *few;
	struct mech mech;
	uint64_t from;
	struct rig rig;

	options.bytes = UINT64_C(200000000000);
	rig_open(&rig, &options);
	ck_assert_int_eq(spec_geom(rig.spec, &truth), 0);
	from = geom_tracks(truth) / 3;
	ck_assert_int_eq(geom_less(truth, is_one_of_few, &from, &few), 0);
	how.most_ns = UINT64_C(15000000000);
	ck_assert_int_eq(mech_measure(rig.prober, few,
				      rig.spec->mech.period_ps, &how, &mech),
			 0);
	ck_assert_uint_gt(mech.overhead_ppm, 0);
	ck_assert(fabs((double)mech.overhead_ns -
		       (double)rig.spec->read_overhead_ns) < 200e3);
	geom_free(few);
	geom_free(truth);
	rig_close(&rig);
}
END_TEST

/* A true geometry passes, one that is a unit off from somewhere on does not. */
START_TEST(boundaries_are_verified)
{
	struct specgen options = generated(20 + (uint64_t)_i);
	struct geom *truth, *shifted;
	struct verify verify;
	struct spec *other;
	struct rig rig;

	options.slipped = 0;
	rig_open(&rig, &options);
	ck_assert_int_eq(specgen_make(&options, &other), 0);
	ck_assert_int_eq(spec_geom(rig.spec, &truth), 0);
	/* More than the spares of the first track make up for. */
	other->zones[0].reserved += other->zones[0].spares_track + 1;
	ck_assert_int_eq(spec_geom(other, &shifted), 0);
	ck_assert_int_eq(verify_boundaries(rig.prober, truth,
					   rig.spec->mech.period_ps, 32,
					   &verify), 0);
	ck_assert_msg(!verify.wrong && verify.right > 20,
		      "seed %d: %u wrong, first %ju", 20 + _i, verify.wrong,
		      (uintmax_t)verify.first_wrong);
	ck_assert_int_eq(verify_boundaries(rig.prober, shifted,
					   rig.spec->mech.period_ps, 200,
					   &verify), 0);
	ck_assert_uint_gt(verify.wrong, 0);
	geom_free(truth);
	geom_free(shifted);
	spec_free(other);
	rig_close(&rig);
}
END_TEST

/* ---- The judge ---- */

START_TEST(judge_finds_what_is_wrong)
{
	struct specgen options = generated(4);
	struct specgen other;
	struct geom *truth, *slipped;
	struct spec *a, *b;
	struct model_error judge;

	options.slipped = 0.05;
	other = options;
	ck_assert_int_eq(specgen_make(&options, &a), 0);
	ck_assert_int_eq(specgen_make(&other, &b), 0);
	ck_assert_int_eq(spec_geom(a, &truth), 0);
	ck_assert_int_eq(model_error_geom(truth, truth, &judge), 0);
	ck_assert_uint_eq(judge.right, judge.tracks);
	ck_assert_uint_eq(judge.wrong + judge.unknown_sectors +
			  judge.angle_max_ppm, 0);
	/* Without its defects it is another drive. */
	b->lbns = geom_sectors(truth);
	for (size_t i = 0; i < b->zones_n; i++)
		b->zones[i].slips.n = 0;
	ck_assert_int_eq(spec_geom(b, &slipped), 0);
	ck_assert_int_eq(model_error_geom(truth, slipped, &judge), 0);
	ck_assert_uint_gt(judge.wrong, judge.tracks / 2);
	geom_free(truth);
	geom_free(slipped);
	spec_free(a);
	spec_free(b);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("mech");
	TCase *t = tcase_create("mech");

	tcase_add_test(t, prober_times_and_refuses);
	tcase_add_test(t, prober_gives_up_on_what_is_gone);
	tcase_add_loop_test(t, period_of_generated_drives, 0, GENERATED);
	tcase_add_test(t, period_says_what_does_not_rotate);
	tcase_add_test(t, period_is_no_tick);
	tcase_add_test(t, period_says_what_is_too_noisy);
	tcase_add_test(t, period_of_what_cannot_be_read);
	tcase_add_test(t, mechanics_where_few_tracks_are_known);
	tcase_add_loop_test(t, mechanics_of_generated_drives, 0, GENERATED);
	tcase_add_loop_test(t, boundaries_are_verified, 0, 8);
	tcase_add_test(t, judge_finds_what_is_wrong);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return test_run(suite());
}
