/*
 * test_fit.c - a profile in a file system: kept whole, looked at against the
 * drive, believed or not.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "extract/drive/fit.h"
#include "extract/measure.h"
#include "extract/probe/prober_disk.h"
#include "fs/drive/profile_load.h"
#include "fs/fs.h"
#include "fs/mkfs.h"
#include "fs/op/fs_internal.h"
#include "sim/model_error.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/test.h"

#define DRIVES 12
#define SECOND_NS UINT64_C(1000000000)

struct rig {
	struct spec *spec;
	struct sim *sim;
	struct profile *profile;
};

static char last_line[512];

static void keep_line(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

static void setup(void)
{
	msg_set_sink(keep_line, NULL);
	last_line[0] = 0;
}

static void teardown(void)
{
	msg_set_sink(NULL, NULL);
}

/* A drive that nobody has seen, and its true profile. */
static void rig_open(struct rig *rig, uint64_t seed)
{
	const struct specgen options = {
		.seed = seed, .bytes = UINT64_C(2000000000), .slipped = -1,
		.cache = -1, .zero_latency = -1, .noise = 1,
	};
	const struct sim_options o = { .seed = seed };

	ck_assert_int_eq(specgen_make(&options, &rig->spec), 0);
	ck_assert_int_eq(profile_from_spec(rig->spec, &rig->profile), 0);
	rig->sim = sim_new(rig->spec, 0, &o);
	ck_assert_ptr_nonnull(rig->sim);
}

static void rig_close(struct rig *rig)
{
	profile_free(rig->profile);
	sim_free(rig->sim);
	spec_free(rig->spec);
}

static enum fit_verdict fit_of(struct sim *sim, const struct profile *profile,
			       uint64_t *took_ns)
{
	struct prober *prober = prober_disk_new(sim_env(sim), sim_disk(sim),
						false, NULL);
	uint64_t begin_ns = env_now_ns(sim_env(sim));
	struct drive_fit fit;

	ck_assert_int_eq(fit_check(prober, profile, 5, &fit), 0);
	*took_ns = env_now_ns(sim_env(sim)) - begin_ns;
	prober_disk_free(prober);
	return fit.verdict;
}

/* ---- Does it fit? ---- */

START_TEST(true_ones_fit)
{
	struct rig rig;
	uint64_t ns;

	rig_open(&rig, 300 + (uint64_t)_i);
	ck_assert_int_eq(fit_of(rig.sim, rig.profile, &ns), FIT_GOOD);
	ck_assert_msg(ns < SECOND_NS, "seed %d: %g s", 300 + _i,
		      (double)ns / 1e9);
	rig_close(&rig);
}
END_TEST

START_TEST(wrong_ones_do_not)
{
	struct profile *p, *other;
	struct rig rig, rig2;
	uint64_t ns;

	rig_open(&rig, 300 + (uint64_t)_i);
	rig_open(&rig2, 400 + (uint64_t)_i);
	p = rig.profile;
	p->mech.period_ps += p->mech.period_ps / 100;
	ck_assert_int_eq(fit_of(rig.sim, p, &ns), FIT_PHASE);
	/* The profile of another drive. */
	other = rig2.profile;
	if (other->sectors <= p->sectors)
		ck_assert_int_gt(fit_of(rig.sim, other, &ns), FIT_UNKNOWN);
	else
		ck_assert_int_gt(fit_of(rig2.sim, p, &ns), FIT_UNKNOWN);
	rig_close(&rig);
	rig_close(&rig2);
}
END_TEST

/* The same tracks at the same angles, but each begins a few sectors later, and
 * only [first, end) are known. */
static struct geom *changed(const struct geom *geom, uint32_t by,
			    uint64_t first, uint64_t end)
{
	struct geom_build *build = geom_build_new(0, 0);
	struct geom_sweep sweep = { .count = 1 };
	struct geom_track track;
	struct geom *other;
	uint64_t i;

	for (i = 0; i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &track);
		sweep.around = (uint32_t)(4294967296.0 / track.per_sector +
					  0.5);
		sweep.known = i >= first && i < end;
		sweep.cylinder = track.cylinder;
		sweep.surface = (int32_t)track.surface;
		sweep.sectors = track.sectors;
		sweep.base = track.start + by * track.per_sector;
		if (i == 0)
			sweep.sectors += by;
		if (i + 1 == geom_tracks(geom))
			sweep.sectors -= by;
		if (sweep.around < sweep.sectors)
			sweep.around = sweep.sectors;
		ck_assert_int_eq(geom_build_sweep(build, &sweep), 0);
	}
	ck_assert_int_eq(geom_build_finish(build, &other), 0);
	geom_build_free(build);
	return other;
}

/* A quarter of the completions late by up to 3 ms: what is right is believed,
 * what is wrong is not. */
START_TEST(busy_hosts_tell_too)
{
	struct geom *geom;
	struct rig rig;
	uint64_t ns;

	rig_open(&rig, 300 + (uint64_t)_i);
	sim_free(rig.sim);
	rig.spec->noise.late = 0.25;
	rig.spec->noise.late_min_ns = 100000;
	rig.spec->noise.late_max_ns = 3000000;
	rig.sim = sim_new(rig.spec, 0, &(struct sim_options){ .seed = 1 });
	ck_assert_int_eq(fit_of(rig.sim, rig.profile, &ns), FIT_GOOD);
	geom = rig.profile->geom;
	rig.profile->geom = changed(geom, 40, 0, UINT64_MAX);
	geom_free(geom);
	ck_assert_int_gt(fit_of(rig.sim, rig.profile, &ns), FIT_UNKNOWN);
	rig_close(&rig);
}
END_TEST

/* Few tracks are known, as after a short mkfs, and a cache has just had them:
 * what it answers tells nothing. */
START_TEST(few_tracks_are_enough)
{
	enum fit_verdict verdict;
	struct geom *geom;
	struct rig rig;
	uint64_t ns;

	rig_open(&rig, 300 + (uint64_t)_i);
	geom = rig.profile->geom;
	rig.profile->geom = changed(geom, 0, 20, 30 + 5 * (uint64_t)_i);
	geom_free(geom);
	ck_assert_int_eq(fit_of(rig.sim, rig.profile, &ns), FIT_GOOD);
	verdict = fit_of(rig.sim, rig.profile, &ns);
	ck_assert(verdict == FIT_GOOD || verdict == FIT_FLAT);
	rig_close(&rig);
}
END_TEST

START_TEST(flat_ones_cost_nothing)
{
	struct rig rig;
	struct sim *sim;
	uint64_t ns;

	rig_open(&rig, 300);
	sim = sim_new(NULL, rig.profile->sectors, &(struct sim_options){ 0 });
	ck_assert_int_eq(fit_of(sim, rig.profile, &ns), FIT_FLAT);
	ck_assert_uint_lt(ns, SECOND_NS / 20);
	rig.profile->mech.period_ps = 0;
	ck_assert_int_eq(fit_of(sim, rig.profile, &ns), FIT_UNKNOWN);
	ck_assert_uint_eq(ns, 0);
	sim_free(sim);
	rig_close(&rig);
}
END_TEST

/* ---- What mkfs finds out by itself ---- */

static void measure_into(struct rig *rig, uint64_t most_ns,
			 enum period_verdict *verdict, struct profile **p)
{
	const struct measure_options options = { .most_ns = most_ns };
	struct prober *prober = prober_disk_new(sim_env(rig->sim),
						sim_disk(rig->sim), false,
						NULL);

	ck_assert_int_eq(measure_some(prober, &options, verdict, p), 0);
	prober_disk_free(prober);
}

struct interruption {
	volatile sig_atomic_t stopped;
	unsigned told;
	double part;
};

static void interrupt(void *arg, const char *stage, double part)
{
	struct interruption *i = arg;

	i->told++;
	ck_assert_double_ge(part, 0);
	ck_assert_double_le(part, 1);
	i->part = strcmp(stage, "tracks") ? 0 : part;
	i->stopped = i->part > 0.05;
}

/* Ctrl-C: what was found of the tracks until then is not lost. */
START_TEST(keeps_what_was_found_when_interrupted)
{
	struct interruption stop = { .stopped = 0 };
	const struct measure_options options = {
		.full = true, .progress = interrupt, .arg = &stop,
	};
	enum period_verdict verdict;
	struct profile *p = NULL;
	struct prober *prober;
	struct rig rig;

	rig_open(&rig, 300);
	prober = prober_disk_new(sim_env(rig.sim), sim_disk(rig.sim), false,
				 &stop.stopped);
	ck_assert_ptr_nonnull(prober);
	ck_assert_int_eq(measure_some(prober, &options, &verdict, &p), -EINTR);
	ck_assert_int_eq(verdict, PERIOD_GOOD);
	ck_assert_uint_gt(stop.told, 2);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_gt(geom_known_sectors(p->geom), p->sectors / 100);
	ck_assert_uint_lt(geom_known_sectors(p->geom), p->sectors / 2);
	profile_free(p);
	prober_disk_free(prober);
	rig_close(&rig);
}
END_TEST

START_TEST(measures_in_its_time)
{
	enum period_verdict verdict;
	struct model_error judge;
	struct profile *p;
	struct rig rig;
	uint64_t begin_ns, ns;
	double off;

	rig_open(&rig, 300 + (uint64_t)_i);
	begin_ns = env_now_ns(sim_env(rig.sim));
	measure_into(&rig, 20 * SECOND_NS, &verdict, &p);
	ns = env_now_ns(sim_env(rig.sim)) - begin_ns;
	ck_assert_int_eq(verdict, PERIOD_GOOD);
	ck_assert_ptr_nonnull(p);
	ck_assert_msg(ns < 25 * SECOND_NS, "seed %d: %g s", 300 + _i,
		      (double)ns / 1e9);
	off = (double)p->mech.period_ps / (double)rig.spec->mech.period_ps - 1;
	ck_assert_msg(off > -5e-6 && off < 5e-6, "period %g off", off);
	model_error_geom(rig.profile->geom, p->geom, &judge);
	/* On some drives with caches that is too little time for any. */
	ck_assert(judge.right || rig.spec->cache_segments);
	ck_assert_msg(!judge.wrong, "seed %d: %ju wrong, %ju right", 300 + _i,
		      (uintmax_t)judge.wrong, (uintmax_t)judge.right);
	profile_free(p);
	rig_close(&rig);
}
END_TEST

START_TEST(measures_no_flat_one)
{
	enum period_verdict verdict;
	struct profile *p;
	struct rig rig = { .sim = sim_new(NULL, 1u << 20,
					  &(struct sim_options){ 0 }) };

	measure_into(&rig, 20 * SECOND_NS, &verdict, &p);
	ck_assert_int_eq(verdict, PERIOD_FLAT);
	ck_assert_ptr_null(p);
	ck_assert_uint_lt(env_now_ns(sim_env(rig.sim)), SECOND_NS / 10);
	sim_free(rig.sim);
}
END_TEST

/* ---- In the file system ---- */

static void make(struct rig *rig, struct mkfs_plan *plan)
{
	const struct mkfs_options o = {
		.geom = rig->profile->geom,
		.profile = rig->profile,
	};
	struct disk *disk = sim_disk(rig->sim);

	ck_assert_int_eq(mkfs_plan(sim_env(rig->sim), &disk->limits, &o, plan),
			 0);
	ck_assert_int_eq(mkfs_write(sim_env(rig->sim), disk, &o, plan), 0);
}

static void same(const struct profile *a, const struct profile *b)
{
	size_t bytes[2];
	void *buf[2];

	ck_assert_int_eq(profile_encode(a, &buf[0], &bytes[0]), 0);
	ck_assert_int_eq(profile_encode(b, &buf[1], &bytes[1]), 0);
	ck_assert_uint_eq(bytes[0], bytes[1]);
	ck_assert_mem_eq(buf[0], buf[1], bytes[0]);
	free(buf[0]);
	free(buf[1]);
}

static bool model_has(struct fs *fs, const char *what)
{
	char *text = fs_model_json(fs);
	bool has = strstr(text, what);

	free(text);
	return has;
}

START_TEST(mkfs_keeps_and_mount_uses)
{
	struct fs_options o = { 0 };
	struct mkfs_plan plan;
	struct profile *p;
	struct rig rig;
	struct fs *fs;

	rig_open(&rig, 300);
	make(&rig, &plan);
	ck_assert_int_eq(
		profile_record_read(sim_disk(rig.sim), &plan.super, &p), 0);
	same(p, rig.profile);
	profile_free(p);
	ck_assert_int_eq(fs_open(sim_env(rig.sim), sim_disk(rig.sim), &o, &fs),
			 0);
	same(fs->profile, rig.profile);
	ck_assert_ptr_eq(fs_geom(fs), fs->profile->geom);
	ck_assert(model_has(fs, "\"head\""));
	ck_assert(model_has(fs, "\"known_share\": 1.0"));
	ck_assert(model_has(fs, "\"method\": \"given\""));
	ck_assert_int_eq(fs_close(fs), 0);
	/* Doubted: its tracks are kept to, its mechanics not believed. */
	o.doubt = true;
	ck_assert_int_eq(fs_open(sim_env(rig.sim), sim_disk(rig.sim), &o, &fs),
			 0);
	ck_assert(!model_has(fs, "\"head\""));
	ck_assert(geom_known(fs_geom(fs)));
	ck_assert_int_eq(fs_close(fs), 0);
	rig_close(&rig);
}
END_TEST

/* A record that is damaged, or of a smaller drive, costs nothing but itself. */
START_TEST(bad_record_is_gone_without)
{
	struct fs_options o = { 0 };
	struct mkfs_plan plan;
	struct profile *p;
	struct rig rig;
	struct fs *fs;

	rig_open(&rig, 301);
	make(&rig, &plan);
	plan.super.sectors += 8;
	ck_assert_int_eq(
		profile_record_read(sim_disk(rig.sim), &plan.super, &p),
		-EUCLEAN);
	plan.super.sectors -= 8;
	sim_flip(rig.sim, plan.super.geom_sector, 100);
	ck_assert_int_eq(
		profile_record_read(sim_disk(rig.sim), &plan.super, &p),
		-EBADMSG);
	ck_assert_int_eq(fs_open(sim_env(rig.sim), sim_disk(rig.sim), &o, &fs),
			 0);
	ck_assert_ptr_nonnull(strstr(last_line, "going on without"));
	ck_assert(!geom_known(fs_geom(fs)));
	ck_assert(!model_has(fs, "\"head\""));
	ck_assert_int_eq(fs_close(fs), 0);
	rig_close(&rig);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fit");
	TCase *t = tcase_create("fit");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, true_ones_fit, 0, DRIVES);
	tcase_add_loop_test(t, wrong_ones_do_not, 0, DRIVES);
	tcase_add_loop_test(t, busy_hosts_tell_too, 0, DRIVES);
	tcase_add_loop_test(t, few_tracks_are_enough, 0, DRIVES);
	tcase_add_test(t, flat_ones_cost_nothing);
	tcase_add_loop_test(t, measures_in_its_time, 0, DRIVES);
	tcase_add_test(t, keeps_what_was_found_when_interrupted);
	tcase_add_test(t, measures_no_flat_one);
	tcase_add_test(t, mkfs_keeps_and_mount_uses);
	tcase_add_test(t, bad_record_is_gone_without);
	suite_add_tcase(s, t);
	return test_run(s);
}
