/*
 * extract_run.c - period, tracks, mechanics, verification.
 *
 * A part of the profile that is known already (from a state that was left) is
 * not measured again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/text.h"
#include "base/units.h"
#include "diskmodel/geom_build.h"
#include "extract/angle/trim.h"
#include "extract/measure.h"
#include "extract/mech/mech.h"
#include "extract/pipeline.h"
#include "extract/probe/period.h"
#include "extract/surface/heads.h"
#include "tools/extract_run.h"
#include "tools/extract_scsi.h"
#include "tools/progress.h"

/* --quick takes a minute: so much of it is for seeks and overheads, for the
 * period, for the tracks, and for their angles. */
#define QUICK_MECH_NS (15 * NS_PER_SECOND)
#define QUICK_PERIOD_NS (8 * NS_PER_SECOND)
#define QUICK_MAP_NS (24 * NS_PER_SECOND)
#define QUICK_TRIM_NS (4 * NS_PER_SECOND)
/* The search for surfaces ends after a minute. */
#define HEADS_NS (60 * NS_PER_SECOND)
/* The state is saved this often, so a run that is killed loses ten seconds of
 * its work. */
#define SAVE_NS (10 * NS_PER_SECOND)
/* Number of boundaries that are checked at the end. */
#define VERIFY_SOME 1024u
#define VERIFY_SOME_QUICK 64u
/* Number of boundaries that are checked before a run goes on from a saved
 * state; one in FIT_WRONG may be wrong. */
#define FIT_CHECKS 48u
#define FIT_WRONG 8u
/* One in this many boundaries that SCSI translation gives may be wrong. */
#define TRANSLATED_WRONG 10u
#define SURE_PPM PROFILE_CERTAIN_PPM
/* Sigma of a refined period, in millionths. */
#define REFINED_PPM 0.4

/* ---- Progress ---- */

static void stage(const struct extract_run *run, const char *name)
{
	if (run->progress)
		progress_stage(run->progress, name);
}

/* The callbacks of progress below have the run as their argument. */
static void say(const struct extract_run *run, double part)
{
	if (run->progress)
		progress_say(run->progress, part, "");
}

static void clear(const struct extract_run *run)
{
	if (run->progress)
		progress_clear(run->progress);
}

static bool known(const struct extract_run *run, enum profile_part part)
{
	return run->state->profile->part[part].confidence_ppm > 0;
}

/* ---- The stages ---- */

static enum extract_end end_of_period(enum period_verdict verdict)
{
	switch (verdict) {
	case PERIOD_SMALL:
		return EXTRACT_SMALL;
	case PERIOD_NOISY:
		return EXTRACT_NOISY;
	case PERIOD_UNREADABLE:
		return EXTRACT_UNREADABLE;
	default:
		return EXTRACT_UNMEASURABLE;
	}
}

static int run_period(void *arg)
{
	struct extract_run *run = arg;
	struct profile *p = run->state->profile;
	struct rotation period;
	int err;

	if (known(run, PROFILE_PERIOD))
		return 0;
	err = period_measure(run->prober, run->quick ? QUICK_PERIOD_NS : 0,
			     &period);
	if (err)
		return err;
	if (period.verdict == PERIOD_NOISY)
		msg_info("noise %.0f us, %.1f %% of the completions late",
			 period.noise_ns / 1e3, 100 * period.late);
	if (period.verdict != PERIOD_GOOD && run->scsi) {
		msg_info("nothing but the tracks: %s",
			 period_verdict_text(period.verdict));
		return 0;
	}
	if (period.verdict != PERIOD_GOOD) {
		run->verdict = period_verdict_text(period.verdict);
		run->end = end_of_period(period.verdict);
		return -EOPNOTSUPP;
	}
	p->mech.period_ps = period.period_ps;
	profile_found(p, PROFILE_PERIOD, PROFILE_TIMING, SURE_PPM);
	msg_info("period %.6f ms (%.2f rpm), known to %.1f millionths; noise "
		 "%.0f us, %.1f %% late%s", (double)period.period_ps / 1e9,
		 60e12 / (double)period.period_ps, period.sigma_ppm,
		 period.noise_ns / 1e3, 100 * period.late,
		 period.cached ? "; a cache answers" : "");
	return 0;
}

/* ---- The map of tracks ---- */

struct mapping {
	struct extract_run *run;
	struct map *map;
	uint64_t saved_ns;
};

/* Puts what the map knows into the profile, and saves the state. */
static int map_keep(struct mapping *m)
{
	struct extract_run *run = m->run;
	struct profile *p = run->state->profile;
	struct geom *geom;
	int err = map_geom(m->map, &geom);

	map_get_stats(m->map, &run->map);
	if (err)
		return err;
	geom_free(p->geom);
	p->geom = geom;
	/* The new map has no surfaces: each track counts as a cylinder until
	 * they are found again. */
	if (known(run, PROFILE_SURFACES) ||
	    (p->part[PROFILE_SEEK].method == PROFILE_TRACE && geom_known(geom)))
		profile_forget_seeks(p);
	profile_found(p, PROFILE_SURFACES, PROFILE_NONE, 0);
	/* The period of the map is used only if it is known better than the one
	 * that was measured before. */
	if (run->map.period_ns > 0 && run->map.period_ppm < REFINED_PPM)
		p->mech.period_ps = (uint64_t)(run->map.period_ns * 1e3 + 0.5);
	if (geom_known(geom)) {
		profile_found(p, PROFILE_BOUNDARIES, PROFILE_TIMING, SURE_PPM);
		profile_found(p, PROFILE_ANGLES, PROFILE_TIMING, SURE_PPM);
	}
	json_decref(run->state->map);
	run->state->map = map_save(m->map);
	m->saved_ns = env_now_ns(run->prober->env);
	return run->state_path ? extract_state_write(run->state_path,
						     run->state) : 0;
}

static int map_progress(const struct map_progress *progress, void *arg)
{
	struct mapping *m = arg;
	uint64_t now_ns = env_now_ns(m->run->prober->env);

	if (progress->total_sectors)
		say(m->run, (double)progress->done_sectors /
			    (double)progress->total_sectors);
	/* The state is saved seldom, because that takes time in which the drive
	 * waits. */
	if (now_ns - m->saved_ns > SAVE_NS)
		return map_keep(m);
	return 0;
}

static bool translate_progress(void *arg, uint64_t done, uint64_t blocks)
{
	const struct extract_run *run = arg;

	say(run, (double)done / (double)blocks);
	return !run->stopped || !*run->stopped;
}

/* Asks the drive for the boundaries of its tracks. It does not tell their
 * angles. */
static int run_translate(void *arg)
{
	struct extract_run *run = arg;
	const struct extract_scsi scsi = {
		.path = run->scsi,
		.port = run->port,
		.state = run->state,
		.progress = translate_progress,
		.arg = run,
	};
	const char *why;
	int err;

	/* Boundaries by timing may cover a part of the disk only, so the drive
	 * is asked for all of them. */
	if (run->state->profile->part[PROFILE_BOUNDARIES].method ==
	    PROFILE_SCSI)
		return 0;
	err = extract_scsi(&scsi, &why);
	if (!err)
		profile_forget_seeks(run->state->profile);
	if (err == -ERANGE)
		msg_warn("%s: %s: they are measured by timing", run->scsi, why);
	else if (why)
		run->verdict = why;
	return err;
}

static int run_map(void *arg)
{
	struct extract_run *run = arg;
	struct mapping m = {
		.run = run,
		.saved_ns = env_now_ns(run->prober->env),
	};
	struct map_options options = {
		.period_ps = run->state->profile->mech.period_ps,
		.progress = map_progress,
		.arg = &m,
	};
	int err, kept;

	err = map_open(run->prober, &options, &m.map);
	if (!err && run->state->map && map_load(m.map, run->state->map))
		msg_info("the tracks are measured from the beginning");
	if (!err)
		err = run->quick ? map_quick(m.map, QUICK_MAP_NS) :
				   map_extract(m.map, 0, run->prober->
							 limits->sectors);
	if (m.map) {
		kept = map_keep(&m);
		err = err ? err : kept;
	}
	map_close(m.map);
	clear(run);
	msg_info("%" PRIu64 " tracks known, %.3f %% of the sectors unknown, %"
		 PRIu64 " reads, %.1f s", run->map.tracks,
		 100 * (1 - (double)geom_known_sectors(
				    run->state->profile->geom) /
			    (double)run->prober->limits->sectors),
		 run->map.reads, (double)run->map.disk_ns / 1e9);
	/* The seek curve can be measured without a map of the tracks. */
	if (err == -EOPNOTSUPP) {
		run->verdict = "the tracks cannot be told: completions stray "
			       "too much";
		run->end = EXTRACT_NOISY;
	}
	return err == -EOPNOTSUPP ? 0 : err;
}

static int angles_progress(void *arg, double part)
{
	say(arg, part);
	return 0;
}

/* ---- Angles as a whole ---- */

/* Those of `unknown` ones are found first. */
static int trim(struct extract_run *run, bool unknown)
{
	struct profile *p = run->state->profile;
	const struct trim_options options = {
		.period_ps = p->mech.period_ps,
		.most_ns = run->quick ? QUICK_TRIM_NS : 0,
		.unknown = unknown,
		.progress = angles_progress,
		.arg = run,
	};
	struct trim_stats stats;
	struct geom *geom;
	int err;

	err = trim_angles(run->prober, p->geom, &options, &geom, &stats);
	if (err == -EOPNOTSUPP && unknown)
		msg_warn("no angles: completions stray too much");
	if (err == -EOPNOTSUPP || err == -EINVAL || err == -EIO)
		return 0;
	if (err)
		return err;
	geom_free(p->geom);
	p->geom = geom;
	if (unknown)
		profile_found(p, PROFILE_ANGLES, PROFILE_TIMING, SURE_PPM);
	if (unknown || stats.period_ppm < REFINED_PPM)
		p->mech.period_ps = (uint64_t)(stats.period_ns * 1e3 + 0.5);
	msg_info("angles are known to %.2f %% of a revolution, by %" PRIu64
		 " reads; they were off by %.2f %%", 100 * stats.sigma,
		 stats.reads, 100 * stats.moved);
	return 0;
}

/* Finds the surfaces of the tracks by sizes, skews or seeks. */
static int run_heads(void *arg)
{
	struct extract_run *run = arg;
	struct profile *p = run->state->profile;
	struct heads heads;
	struct geom *geom;
	int err;

	/* --quick looks at a few places only, which is not enough to tell
	 * surfaces. */
	if (run->quick)
		return 0;
	err = heads_measure(run->prober, p->mech.period_ps, HEADS_NS, p->geom,
			    &heads, &geom);
	if (err)
		return err;
	profile_found(p, PROFILE_SURFACES, PROFILE_TIMING,
		      heads.confidence_ppm);
	if (heads.order == HEADS_UNKNOWN) {
		msg_info("surfaces can't be told: each track counts as a "
			 "cylinder");
		return 0;
	}
	geom_free(p->geom);
	p->geom = geom;
	profile_forget_seeks(p);
	if (heads.order == HEADS_CYLINDER)
		msg_info("%s in cylinder order%s",
			 count_text(heads.surfaces, "surface").s,
			 heads.back ? ", forth and back" : "");
	else
		msg_info("%s in groups of %s",
			 count_text(heads.surfaces, "surface").s,
			 count_text(heads.group, "track").s);
	return 0;
}

/* Measures the angles of the tracks that the drive has told of. */
static int run_angles(void *arg)
{
	struct extract_run *run = arg;

	return known(run, PROFILE_ANGLES) ? 0 : trim(run, true);
}

/* The same for the tracks that timing has found, as far as they have been
 * looked at from both sides. */
static int run_trim(void *arg)
{
	return trim(arg, false);
}

static void mech_progress(void *arg, enum mech_stage stage, double part)
{
	static const double share[MECH_STAGES + 1] = {
		[MECH_OVERHEAD] = 0, [MECH_SWITCH] = 0.05, [MECH_SEEK] = 0.1,
		[MECH_CACHE] = 0.85, [MECH_SETTLE] = 0.95, [MECH_STAGES] = 1,
	};

	say(arg, share[stage] + part * (share[stage + 1] - share[stage]));
}

static int run_mech(void *arg)
{
	struct extract_run *run = arg;
	struct profile *p = run->state->profile;
	struct mech_options options = {
		.most_ns = run->quick ? QUICK_MECH_NS : 0,
		.scratch = run->scratch,
		.progress = mech_progress,
		.arg = run,
	};
	struct mech mech;
	int err;

	if (known(run, PROFILE_OVERHEAD) && known(run, PROFILE_SEEK) &&
	    (!run->scratch || known(run, PROFILE_SETTLE)))
		return 0;
	err = mech_measure(run->prober, p->geom, p->mech.period_ps, &options,
			   &mech);
	return err ? err : measure_keep_mech(p, &mech);
}

/* ---- Verification ---- */

/* Are more places wrong than chance explains? One of a few may be wrong by its
 * angle, or because the host was late each time. */
static bool too_many_are_wrong(const struct verify *v)
{
	return v->wrong > 1 + v->right / 100;
}

/* Boundaries by translation are certain, the angles derived from them are not;
 * unless most are wrong: then the drive reports a geometry that is not real. */
static int judge_translated(struct extract_run *run)
{
	struct profile *p = run->state->profile;
	struct verify *v = &run->verify;

	if (!v->wrong)
		return 0;
	if (v->wrong > v->right / TRANSLATED_WRONG) {
		profile_found(p, PROFILE_BOUNDARIES, PROFILE_NONE, 0);
		profile_found(p, PROFILE_ANGLES, PROFILE_NONE, 0);
		run->verdict = "what it tells of its tracks is not what is "
			       "measured";
		return -EOPNOTSUPP;
	}
	profile_found(p, PROFILE_ANGLES, PROFILE_TIMING,
		      (uint32_t)((uint64_t)SURE_PPM * v->right /
				 (v->right + v->wrong)));
	msg_info("%u of %u angles at the ends of tracks are not right",
		 v->wrong, v->wrong + v->right);
	*v = (struct verify){ .right = v->right,
			      .undecided = v->undecided + v->wrong };
	return 0;
}

static int run_verify(void *arg)
{
	struct extract_run *run = arg;
	struct profile *p = run->state->profile;
	const enum profile_method how = p->part[PROFILE_BOUNDARIES].method;
	struct verify *v = &run->verify;
	int err;

	err = verify_boundaries(run->prober, p->geom, p->mech.period_ps,
				run->quick ? VERIFY_SOME_QUICK : VERIFY_SOME,
				v);
	if (!err && how == PROFILE_SCSI)
		return judge_translated(run);
	if (v->wrong)
		profile_found(p, PROFILE_BOUNDARIES, how,
			      (uint32_t)((uint64_t)SURE_PPM * v->right /
					 (v->right + v->wrong)));
	return err;
}

/* ---- All of it ---- */

/* Is the profile that of this drive? */
static bool is_same(const struct profile *p, const struct disk_limits *limits,
		    const struct identity *id)
{
	return p && p->sectors == limits->sectors &&
	       !strcmp(p->serial, id->serial) && !strcmp(p->model, id->model);
}

static int make_profile(struct extract_run *run)
{
	const struct disk_limits *limits = run->prober->limits;
	const struct identity *id = run->identity;
	struct profile *p = run->state->profile;
	struct geom *geom;
	int err;

	if (is_same(p, limits, id))
		return 0;
	err = geom_regular(limits->sectors, GEOM_PSEUDO_SECTORS, &geom);
	if (err)
		return err;
	p = profile_from_geom(geom, PROFILE_NONE);
	if (!p) {
		geom_free(geom);
		return -ENOMEM;
	}
	/* The map belongs to another drive as well, so the whole state is
	 * forgotten. */
	extract_state_forget(run->state);
	run->state->profile = p;
	snprintf(p->model, sizeof(p->model), "%s", id->model);
	snprintf(p->serial, sizeof(p->serial), "%s", id->serial);
	snprintf(p->firmware, sizeof(p->firmware), "%s", id->firmware);
	p->physical_bytes = limits->physical_bytes;
	p->made_wall_ns = env_wall_ns(run->prober->env);
	return 0;
}

/* Checks whether the saved state is of this drive. One without a serial number
 * may be another drive, and any may have been formatted anew, so some
 * boundaries are measured. */
static int check_state(struct extract_run *run)
{
	struct profile *p = run->state->profile;
	struct verify v;
	int err;

	if (!known(run, PROFILE_PERIOD) || !known(run, PROFILE_ANGLES))
		return 0;
	err = verify_boundaries(run->prober, p->geom, p->mech.period_ps,
				FIT_CHECKS, &v);
	if (err || v.wrong <= v.right / FIT_WRONG)
		return err;
	msg_info("what an earlier run has found does not fit (%u of %u "
		 "boundaries): it is not used", v.wrong, v.wrong + v.right);
	extract_state_forget(run->state);
	return make_profile(run);
}

static enum extract_end end_of(const struct extract_run *run, int err)
{
	if ((!err || err == -EOPNOTSUPP) && run->end)
		return run->end;
	switch (err) {
	case 0:
		return too_many_are_wrong(&run->verify) ? EXTRACT_FAILED :
							   EXTRACT_DONE;
	case -EINTR:
		return EXTRACT_INCOMPLETE;
	case -EOPNOTSUPP:
		return EXTRACT_UNMEASURABLE;
	case -EIO:
		return EXTRACT_UNREADABLE;
	case -ENODEV:
		return EXTRACT_GONE;
	default:
		return EXTRACT_FAILED;
	}
}

static bool run_knows(void *arg, enum profile_part part)
{
	return known(arg, part);
}

static void run_begin(void *arg, const char *name)
{
	struct extract_run *run = arg;

	stage(run, name);
	say(run, 0);
}

/* Saves the state, also what an interrupted stage has found. */
static void run_end(void *arg)
{
	struct extract_run *run = arg;

	clear(run);
	if (run->state->profile && run->state_path)
		extract_state_write(run->state_path, run->state);
}

enum extract_end extract_run(struct extract_run *run)
{
	struct pipeline_host host = {
		.scsi = run->scsi,
		.knows = run_knows,
		.begin = run_begin,
		.end = run_end,
		.run = {
			[PIPELINE_PERIOD] = run_period,
			[PIPELINE_TRANSLATIONS] = run_translate,
			[PIPELINE_TRACKS] = run_map,
			[PIPELINE_ANGLES] = run_angles,
			[PIPELINE_VERIFICATION] = run_verify,
			[PIPELINE_ALL_ANGLES] = run_trim,
			[PIPELINE_SURFACES] = run_heads,
			[PIPELINE_MECHANICS] = run_mech,
		},
	};
	int err = make_profile(run);

	if (!err)
		err = check_state(run);
	if (!err)
		err = pipeline_run(&host, run);
	/* The drive can't tell where all of its tracks are. */
	if (err == -ERANGE) {
		run->scsi = NULL;
		host.scsi = false;
		err = pipeline_run(&host, run);
	}
	return end_of(run, err);
}
