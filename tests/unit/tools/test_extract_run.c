/*
 * test_extract_run.c - all stages of traxtract in virtual time: by the drive's
 * own word, interrupted, and on drives that go wrong under it.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/msg.h"
#include "base/units.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/spec.h"
#include "extract/probe/prober_disk.h"
#include "extract/scsi/scsi_map.h"
#include "sim/model_error.h"
#include "sim/sim.h"
#include "sim/specgen.h"
#include "tests/rig/scsi_target.h"
#include "tests/rig/test.h"
#include "tools/extract_run.h"
#include "tools/progress.h"

/* A port that counts, and stops the run some commands on. */
struct counting {
	struct scsi_port port, *to;
	unsigned commands, most;
	unsigned gone;		/* behind so many nobody answers; 0: never */
	bool not_there;		/* but that there is no such unit */
	volatile sig_atomic_t stopped;
};

struct rig {
	struct spec *spec;
	struct geom *truth;
	struct sim *sim;
	struct scsi_target *target;
	struct counting counting;
	struct identity identity;
	struct extract_state state;
	struct extract_run run;
	char path[64];
	volatile sig_atomic_t stopped;
};

static void quiet(enum msg_level level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static int counted(struct scsi_port *port, struct scsi_command *command)
{
	struct counting *c = (struct counting *)port;

	c->commands++;
	if (c->most && c->commands > c->most)
		c->stopped = 1;
	if (c->gone && c->commands > c->gone && c->not_there) {
		command->key = 0x5;
		command->asc = 0x25;
		return 0;
	}
	if (c->gone && c->commands > c->gone)
		return -ENODEV;
	return c->to->command(c->to, command);
}

static void open_drive(struct rig *r, uint64_t seed, uint64_t bytes)
{
	struct specgen options = {
		.seed = seed, .slipped = 0.01, .cache = -1, .zero_latency = -1,
		.noise = 1, .bytes = bytes,
	};
	struct sim_options o = { .seed = seed };

	memset(r, 0, sizeof(*r));
	msg_set_sink(quiet, NULL);
	ck_assert_int_eq(specgen_make(&options, &r->spec), 0);
	ck_assert_int_eq(spec_geom(r->spec, &r->truth), 0);
	r->sim = sim_new(r->spec, 0, &o);
	ck_assert_ptr_nonnull(r->sim);
	snprintf(r->path, sizeof(r->path), "/tmp/test-extract-run-%d.state",
		 getpid());
	r->identity.rotational = true;
	strcpy(r->identity.serial, "A1");
	r->run = (struct extract_run){
		.state = &r->state,
		.state_path = r->path,
		.identity = &r->identity,
		.stopped = &r->stopped,
	};
	r->run.prober = prober_disk_new(sim_env(r->sim), sim_disk(r->sim),
					false, &r->stopped);
	ck_assert_ptr_nonnull(r->run.prober);
}

/* It also answers SCSI commands. */
static void open_scsi(struct rig *r, uint64_t seed, uint64_t bytes,
		      struct scsi_target_habits habits)
{
	open_drive(r, seed, bytes);
	habits.block_bytes = r->spec->logical_bytes;
	r->target = scsi_target_new(r->truth, &habits);
	ck_assert_ptr_nonnull(r->target);
	r->counting = (struct counting){
		.port.command = counted,
		.to = scsi_target_port(r->target),
	};
	r->run.scsi = "drive";
	r->run.port = &r->counting.port;
	r->run.stopped = &r->counting.stopped;
}

/* Another process goes on: with what stands in the file. */
static void come_again(struct rig *r)
{
	extract_state_free(&r->state);
	ck_assert_int_eq(extract_state_read(r->path, &r->state), 0);
	r->stopped = r->counting.stopped = 0;
	r->counting.most = r->counting.commands = r->counting.gone = 0;
	r->run.verdict = NULL;
}

static void close_drive(struct rig *r)
{
	unlink(r->path);
	extract_state_free(&r->state);
	prober_disk_free(r->run.prober);
	scsi_target_free(r->target);
	sim_free(r->sim);
	geom_free(r->truth);
	spec_free(r->spec);
	msg_set_sink(NULL, NULL);
}

/* To the end, and why it is not. */
static void run_to_end(struct rig *r)
{
	enum extract_end end = extract_run(&r->run);

	ck_assert_msg(end == EXTRACT_DONE, "ends with %d: %s; %u right, %u "
		      "wrong from %ju on, %u undecided", end, r->run.verdict ?
		      r->run.verdict : "", r->run.verify.right,
		      r->run.verify.wrong,
		      (uintmax_t)r->run.verify.first_wrong,
		      r->run.verify.undecided);
}

static void judge(const struct rig *r, struct model_error *judge)
{
	ck_assert_ptr_nonnull(r->state.profile);
	ck_assert_int_eq(
		model_error_geom(r->truth, r->state.profile->geom, judge), 0);
	ck_assert_uint_eq(judge->wrong, 0);
}

/* ---- By the drive's own word ---- */

static const struct scsi_target_habits habits[] = {
	{ 0 },
	{ .attention = 97 },
};

START_TEST(scsi_then_angles)
{
	struct model_error j;
	struct rig r;

	open_scsi(&r, 800 + (uint64_t)_i, UINT64_C(600000000), habits[_i]);
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_eq(j.unknown_sectors, 0);
	ck_assert_msg(j.angle_p99_ppm < 7000, "%u", j.angle_p99_ppm);
	ck_assert_int_eq(r.state.profile->part[PROFILE_BOUNDARIES].method,
			 PROFILE_SCSI);
	ck_assert_int_eq(r.state.profile->part[PROFILE_ANGLES].method,
			 PROFILE_TIMING);
	ck_assert_uint_gt(r.state.profile->mech.seek_n, 4);
	ck_assert_double_lt(fabs((double)r.state.profile->mech.period_ps /
				 (double)r.spec->mech.period_ps - 1), 2e-6);
	close_drive(&r);
}
END_TEST

/* Short tracks at the ends of zones, and spares of cylinders: what is not known
 * of their angles says nothing against what the drive has told. */
START_TEST(scsi_short_tracks)
{
	static const uint64_t seeds[] = { 826, 834, 873 };
	struct model_error j;
	struct rig r;

	open_scsi(&r, seeds[_i], UINT64_C(600000000), habits[0]);
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_eq(j.unknown_sectors, 0);
	ck_assert_int_eq(r.state.profile->part[PROFILE_BOUNDARIES]
			 .confidence_ppm, PROFILE_CERTAIN_PPM);
	close_drive(&r);
}
END_TEST

/* As many sectors, on tracks of one size. */
static struct geom *made_up(uint64_t sectors)
{
	struct geom_build *b = geom_build_new(0, 0);
	struct geom_sweep sweep = { .known = true, .cylinder_step = 1 };
	struct geom *geom;

	sweep.sectors = sweep.around = 1024;
	sweep.count = (uint32_t)(sectors / 1024);
	ck_assert_int_eq(geom_build_sweep(b, &sweep), 0);
	if (sectors % 1024) {
		sweep.cylinder = sweep.count;
		sweep.count = 1;
		sweep.sectors = sectors % 1024;
		ck_assert_int_eq(geom_build_sweep(b, &sweep), 0);
	}
	ck_assert_int_eq(geom_build_finish(b, &geom), 0);
	geom_build_free(b);
	return geom;
}

/* A drive may translate to a geometry that it does not have. */
START_TEST(scsi_made_up)
{
	struct scsi_target_habits h = { 0 };
	struct geom *fake;
	struct rig r;

	open_scsi(&r, 840, UINT64_C(300000000), h);
	fake = made_up(geom_sectors(r.truth));
	scsi_target_free(r.target);
	h.block_bytes = r.spec->logical_bytes;
	r.target = scsi_target_new(fake, &h);
	r.counting.to = scsi_target_port(r.target);
	ck_assert_int_eq(extract_run(&r.run), EXTRACT_UNMEASURABLE);
	ck_assert_ptr_nonnull(r.run.verdict);
	ck_assert_uint_eq(r.state.profile->part[PROFILE_BOUNDARIES]
			  .confidence_ppm, 0);
	close_drive(&r);
	geom_free(fake);
}
END_TEST

/* Interrupted by a signal (0), or by a drive that vanishes, it asks again. */
START_TEST(scsi_goes_on)
{
	struct model_error j;
	struct rig r;

	open_scsi(&r, 810, UINT64_C(4000000000), habits[0]);
	r.counting.most = _i ? 0 : 1000;
	r.counting.gone = _i ? 1000 : 0;
	r.counting.not_there = _i == 2;
	ck_assert_int_eq(extract_run(&r.run), _i ? EXTRACT_GONE :
						   EXTRACT_INCOMPLETE);
	come_again(&r);
	ck_assert_ptr_nonnull(r.state.profile);
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_eq(j.unknown_sectors, 0);
	close_drive(&r);
}
END_TEST

/* A part that was found by timing is not all that the drive can tell; and what
 * the drive told of surfaces says nothing of tracks found by timing. */
START_TEST(timing_then_scsi)
{
	struct model_error j;
	struct rig r;

	open_scsi(&r, 813, UINT64_C(300000000), habits[0]);
	r.run.scsi = NULL;
	r.run.quick = true;
	run_to_end(&r);
	ck_assert_uint_gt(r.state.profile->part[PROFILE_BOUNDARIES]
			  .confidence_ppm, 0);
	come_again(&r);
	r.run.scsi = "drive";
	r.run.quick = false;
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_eq(j.unknown_sectors, 0);
	ck_assert_int_eq(r.state.profile->part[PROFILE_SURFACES].method,
			 PROFILE_SCSI);
	come_again(&r);
	r.run.scsi = NULL;
	r.run.quick = true;
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_eq(r.state.profile->part[PROFILE_SURFACES]
			  .confidence_ppm, 0);
	close_drive(&r);
}
END_TEST

/* Another drive of that size, which does not say who it is either. */
START_TEST(timing_of_another_drive)
{
	uint64_t period_ps;
	struct model_error j;
	struct rig r;

	open_drive(&r, 816, UINT64_C(60000000));
	run_to_end(&r);
	period_ps = r.state.profile->mech.period_ps;
	r.state.profile->mech.period_ps += period_ps / 5;
	ck_assert_int_eq(extract_state_write(r.path, &r.state), 0);
	come_again(&r);
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_lt(j.unknown_sectors, geom_sectors(r.truth) / 10);
	ck_assert_double_lt(fabs((double)r.state.profile->mech.period_ps /
				 (double)period_ps - 1), 5e-6);
	close_drive(&r);
}
END_TEST

/* A drive that does not tell where all of its tracks are is measured by
 * timing. */
START_TEST(timing_where_scsi_does_not_reach)
{
	struct model_error j;
	struct rig r;

	open_scsi(&r, 821, UINT64_C(300000000),
		  (struct scsi_target_habits){ .no_end = true });
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_int_eq(r.state.profile->part[PROFILE_BOUNDARIES].method,
			 PROFILE_TIMING);
	ck_assert_uint_gt(j.right, 100);
	close_drive(&r);
}
END_TEST

/* What is no use says why. */
START_TEST(a_drive_of_no_use_says_why)
{
	struct rig r;

	open_scsi(&r, 821, UINT64_C(300000000),
		  (struct scsi_target_habits){ .no_page = true });
	ck_assert_int_eq(extract_run(&r.run), EXTRACT_UNMEASURABLE);
	ck_assert_ptr_nonnull(r.run.verdict);
	close_drive(&r);
}
END_TEST

/* ---- What goes wrong ---- */

static void fail_reads(struct rig *r, uint64_t from, uint64_t first,
		       uint64_t sectors)
{
	const struct sim_fault fault = {
		.kind = SIM_FAIL, .ops = SIM_READS, .k = from, .first = first,
		.sectors = sectors,
	};

	ck_assert_int_eq(sim_fault_add(r->sim, &fault), 0);
}

/* Without a terminal progress is whole lines, at most one in five seconds of
 * disk time. */
START_TEST(progress_in_lines)
{
	int saved = dup(STDERR_FILENO);
	FILE *said = tmpfile();
	struct progress progress;
	unsigned lines = 0;
	uint64_t end_ns;
	char text[200];
	struct rig r;

	ck_assert_ptr_nonnull(said);
	open_drive(&r, 3, 60000000);
	progress_begin_as(&progress, "", r.run.prober->env, false);
	r.run.progress = &progress;
	fflush(stderr);
	dup2(fileno(said), STDERR_FILENO);
	extract_run(&r.run);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	end_ns = sim_now_ns(r.sim);
	rewind(said);
	while (fgets(text, sizeof(text), said)) {
		ck_assert_ptr_null(strchr(text, '\r'));
		ck_assert_ptr_nonnull(strchr(text, '%'));
		ck_assert_ptr_nonnull(strchr(text, '\n'));
		lines++;
	}
	ck_assert_uint_gt(lines, 2);
	ck_assert_uint_le(lines, end_ns / 5000000000 + 1);
	fclose(said);
	close_drive(&r);
}
END_TEST

/* Here and there, the first sector included: only that is unknown. */
START_TEST(errors_in_the_middle)
{
	struct model_error j;
	struct rig r;

	open_drive(&r, 210 + (uint64_t)_i, UINT64_C(300000000));
	for (uint64_t i = 0; i < 20; i++)
		sim_damage(r.sim, geom_sectors(r.truth) / 20 * i, 8);
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_lt(j.unknown_sectors, geom_sectors(r.truth) / 10);
	close_drive(&r);
}
END_TEST

START_TEST(a_drive_full_of_errors_is_given_up)
{
	struct rig r;

	open_drive(&r, 220, UINT64_C(300000000));
	sim_damage(r.sim, 0, geom_sectors(r.truth));
	ck_assert_int_ne(extract_run(&r.run), EXTRACT_DONE);
	close_drive(&r);

	/* Only now and then something can be read. */
	open_drive(&r, 220, UINT64_C(300000000));
	for (uint64_t i = 0; i < geom_sectors(r.truth); i += 512)
		sim_damage(r.sim, i, 504);
	ck_assert_int_eq(extract_run(&r.run), EXTRACT_UNREADABLE);
	ck_assert_ptr_nonnull(r.run.verdict);
	close_drive(&r);
}
END_TEST

/* In the middle of it: what was learned is there when it is back. */
START_TEST(a_run_goes_on_after_the_drive_was_gone)
{
	struct model_error j;
	uint64_t known;
	struct rig r;

	open_drive(&r, 221, UINT64_C(300000000));
	fail_reads(&r, 6000, 0, 0);
	ck_assert_int_eq(extract_run(&r.run), EXTRACT_GONE);
	sim_fault_clear(r.sim);
	prober_disk_free(r.run.prober);
	r.run.prober = prober_disk_new(sim_env(r.sim), sim_disk(r.sim), false,
				       &r.stopped);
	come_again(&r);
	ck_assert_ptr_nonnull(r.state.map);
	known = geom_known_sectors(r.state.profile->geom);
	ck_assert_uint_gt(known, geom_sectors(r.truth) / 10);
	ck_assert_uint_gt(r.state.profile->mech.period_ps, 0);
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_gt(geom_known_sectors(r.state.profile->geom), known);
	close_drive(&r);
}
END_TEST

/* A prober that takes its process with it at some time. */
struct mortal {
	struct prober prober, *to;
	uint64_t until_ns;
};

static int until_killed(struct prober *prober, struct probe_access *access,
			unsigned n, unsigned depth)
{
	struct mortal *m = (struct mortal *)prober;

	if (env_now_ns(prober->env) > m->until_ns)
		kill(getpid(), SIGKILL);
	return m->to->access(m->to, access, n, depth);
}

/* In a process of its own, which is killed after some time of the disk's. */
static void run_killed(struct rig *r, uint64_t most_ns)
{
	uint64_t now_ns = env_now_ns(r->run.prober->env);
	struct mortal m = { .to = r->run.prober, .until_ns = now_ns + most_ns };
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		m.prober = *m.to;
		m.prober.access = until_killed;
		r->run.prober = &m.prober;
		extract_run(&r->run);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
}

/* Each goes on where the one before was, but for some seconds, and believes
 * nothing that that had not looked at. */
START_TEST(killed_runs_go_on)
{
	static const uint64_t most_s[] = { 25, 17, 29, 40 };
	uint64_t known = 0, before;
	struct model_error j;
	struct rig r;

	open_drive(&r, 223 + (uint64_t)_i, UINT64_C(160000000000));
	for (unsigned i = 0; i < 4; i++) {
		run_killed(&r, most_s[i] * NS_PER_SECOND);
		come_again(&r);
		judge(&r, &j);
		before = known;
		known = geom_known_sectors(r.state.profile->geom);
		ck_assert_msg(known > before + geom_sectors(r.truth) / 100 ||
			      known > geom_sectors(r.truth) / 100 * 99,
			      "run %u: %ju of %ju known, %ju before", i,
			      (uintmax_t)known,
			      (uintmax_t)geom_sectors(r.truth),
			      (uintmax_t)before);
	}
	run_to_end(&r);
	judge(&r, &j);
	ck_assert_uint_lt(j.unknown_sectors, geom_sectors(r.truth) / 100);
	close_drive(&r);
}
END_TEST

/* A host that is late by so much that no skew could be told: nothing wrong is
 * believed, and it says so. */
START_TEST(too_busy_a_host)
{
	static const uint64_t late_ns[] = { 15000, 200000, 20000000 };
	static const int ends[] = { EXTRACT_DONE, EXTRACT_NOISY,
				    EXTRACT_NOISY };
	struct sim_options o = { .seed = 5, .host_ns = late_ns[_i] };
	struct model_error j;
	struct rig r;

	open_drive(&r, 222, _i == 1 ? UINT64_C(4000000000) :
				      UINT64_C(100000000));
	prober_disk_free(r.run.prober);
	sim_free(r.sim);
	r.sim = sim_new(r.spec, 0, &o);
	r.run.prober = prober_disk_new(sim_env(r.sim), sim_disk(r.sim), false,
				       NULL);
	ck_assert_int_eq(extract_run(&r.run), ends[_i]);
	judge(&r, &j);
	close_drive(&r);
}
END_TEST

START_TEST(no_disk_that_rotates)
{
	struct rig r;

	open_drive(&r, 223, UINT64_C(100000000));
	ck_assert_int_eq(sim_set_flat(r.sim, true), 0);
	ck_assert_int_eq(extract_run(&r.run), EXTRACT_UNMEASURABLE);
	ck_assert_ptr_nonnull(r.run.verdict);
	close_drive(&r);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("extract_run");
	TCase *tc = tcase_create("extract_run");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, scsi_then_angles, 0,
			    sizeof(habits) / sizeof(habits[0]));
	tcase_add_loop_test(tc, scsi_short_tracks, 0, 3);
	tcase_add_test(tc, scsi_made_up);
	tcase_add_loop_test(tc, scsi_goes_on, 0, 3);
	tcase_add_test(tc, timing_then_scsi);
	tcase_add_test(tc, timing_of_another_drive);
	tcase_add_test(tc, timing_where_scsi_does_not_reach);
	tcase_add_test(tc, a_drive_of_no_use_says_why);
	tcase_add_test(tc, progress_in_lines);
	tcase_add_loop_test(tc, errors_in_the_middle, 0, 3);
	tcase_add_test(tc, a_drive_full_of_errors_is_given_up);
	tcase_add_test(tc, a_run_goes_on_after_the_drive_was_gone);
	tcase_add_loop_test(tc, killed_runs_go_on, 0, 4);
	tcase_add_loop_test(tc, too_busy_a_host, 0, 3);
	tcase_add_test(tc, no_disk_that_rotates);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
