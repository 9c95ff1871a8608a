/*
 * refine_measure.c - the coroutine of a refinement: what is measured, in which
 * order.
 */
#include "base/units.h"
#include "refine/refine_internal.h"

#include <errno.h>
#include <jansson.h>

#include "base/coro.h"
#include "diskmodel/geom_build.h"
#include "extract/angle/trim.h"
#include "extract/drive/fit.h"
#include "extract/measure.h"
#include "extract/pipeline.h"
#include "extract/probe/period.h"
#include "extract/surface/heads.h"
#include "extract/track/map.h"
#include "fs/op/fs_internal.h"

/* The disk is mapped in this many steps, or fewer if they would be shorter than
 * STEP_MIN_SECTORS. */
#define STEPS 256u
#define STEP_MIN_SECTORS 65536u
/* An interrupted measurement of mechanics or angles is begun anew, up to this
 * number of tries. */
#define MECH_TRIES 3u
#define TRIM_TRIES 10u
/* Pause after which angles need not be measured anew: the refinement finds the
 * phase of the spindle again by itself. */
#define TRIM_REST_NS (60 * NS_PER_SECOND)
/* Angles are not refined in geometries of more tracks, which would take too
 * much memory. */
#define TRIM_TRACKS 3000000u
/* A profile that did not fit is tried again this long after the mount; the wait
 * doubles with each of DOUBT_TRIES tries. */
#define DOUBT_NS (60 * NS_PER_SECOND)
#define DOUBT_TRIES 8u
/* After this many tries in which something rotated, but not as the profile
 * says, it is another drive. */
#define DOUBT_OTHER 3u
/* The first pause of a measurement that makes no progress; each one is twice as
 * long as the one before, PAUSES times. */
#define PAUSE_NS (60 * NS_PER_SECOND)
#define PAUSES 12u
/* Unknown tracks are measured again when they are more than one part in
 * AGAIN_SHARE of the disk, because the host may have been busy: at most
 * AGAIN_TIMES times, first after AGAIN_NS, then after twice as long and so on,
 * as long as each time makes at least one part in AGAIN_GAIN of them known. */
#define AGAIN_SHARE 50u
#define AGAIN_TIMES 4u
#define AGAIN_NS (300 * NS_PER_SECOND)
#define AGAIN_GAIN 4u
/* Longest time spent on finding the period. */
#define PERIOD_NS (20 * NS_PER_SECOND)

/* ---- Measuring: the coroutine ---- */

/* The host is too busy to measure, or reads decide nothing: pauses; false:
 * gives up. */
static bool refine_is_patient(struct refine *r)
{
	if (r->pauses >= PAUSES)
		return false;
	r->wake_ns = env_now_ns(r->fs->env) + (PAUSE_NS << r->pauses++);
	coro_yield(r->coro);
	r->stall_reads = 0;
	return !r->closing;
}

/* Has a measurement broken off only because there was a pause, or for one? */
static bool goes_on(struct refine *r, int err)
{
	if (r->closing || !(err == -EINTR ? r->rested :
			    err == -EOPNOTSUPP && refine_is_patient(r)))
		return false;
	map_forget_clock(r->map);
	return true;
}

static int refine_step(struct refine *r, uint64_t end)
{
	int err;

	do {
		err = map_extract(r->map, r->done_sectors, end);
	} while (goes_on(r, err));
	if (!err)
		r->pauses = 0;
	/* Sectors that cannot be read stay unknown. */
	return err == -EIO ? 0 : err;
}

int refine_forget_grown(struct refine *r)
{
	int err = 0;
	unsigned i;

	for (i = 0; i < r->grown_n && !err; i++)
		err = map_forget(r->map, r->grown[i].first,
				 r->grown[i].first + r->grown[i].n);
	if (r->grown_n) {
		r->done &= ~(MEASURE_TRACKS | MEASURE_ANGLES);
		r->done_sectors = 0;
		r->dropped = true;
	}
	r->grown_n = 0;
	return err;
}

static int forget_unknown(struct refine *r)
{
	uint64_t all = r->prober.limits->sectors, at, end;
	bool known;
	int err = 0;

	for (at = 0; at < all && !err; at = end) {
		end = map_known(r->map, at, &known);
		if (!known)
			err = map_forget(r->map, at, end);
	}
	return err;
}

static int refine_steps(struct refine *r, struct coro *coro)
{
	uint64_t all = r->prober.limits->sectors, end;
	uint64_t step = all / STEPS > STEP_MIN_SECTORS ? all / STEPS :
							 STEP_MIN_SECTORS;
	int err = r->closing ? -EINTR : 0;

	while (!err && r->done_sectors < all) {
		err = refine_forget_grown(r);
		end = all - r->done_sectors > step ? r->done_sectors + step :
						     all;
		if (!err)
			err = refine_step(r, end);
		if (err)
			break;
		r->done_sectors = end;
		r->step_over = true;
		coro_yield(coro);
	}
	return err;
}

static int refine_tracks(struct refine *r, struct coro *coro)
{
	uint64_t all = r->prober.limits->sectors, left, before = all;
	unsigned i;
	int err = refine_steps(r, coro);

	for (i = 0; !err && i < AGAIN_TIMES; i++, before = left) {
		left = all - refine_known_sectors(r);
		if (left <= all / AGAIN_SHARE ||
		    left > before - before / AGAIN_GAIN)
			break;
		r->wake_ns = env_now_ns(r->fs->env) + (AGAIN_NS << i);
		coro_yield(coro);
		err = r->closing ? -EINTR : forget_unknown(r);
		r->done_sectors = 0;
		map_forget_clock(r->map);
		if (!err)
			err = refine_steps(r, coro);
	}
	return err;
}

/* Refines all angles together; when that fails it is left for another mount. */
static int refine_trim(struct refine *r, struct coro *coro)
{
	const struct trim_options options = {
		.period_ps = r->fs->profile->mech.period_ps,
	};
	const struct geom *geom = r->fs->profile->geom;
	unsigned i;
	int err = -EINTR;

	if (geom_tracks(geom) > TRIM_TRACKS || !geom_known(geom))
		return 0;
	r->rest_ns = TRIM_REST_NS;
	for (i = 0; i < TRIM_TRIES && !r->closing && err == -EINTR; i++)
		err = trim_angles(&r->prober, geom, &options, &r->trimmed,
				  &r->trim);
	r->rest_ns = REST_NS;
	if (err)
		return r->closing || err == -ENOMEM || err == -ENODEV ? err : 0;
	r->done |= MEASURE_ANGLES;
	r->step_over = true;
	coro_yield(coro);
	return 0;
}

bool refine_knows_heads(const struct fs *fs)
{
	return fs->profile->part[PROFILE_SURFACES].confidence_ppm > 0;
}

/* Finds the surfaces of the tracks; their geometry must not change
 * meanwhile. */
static int refine_heads(struct refine *r, struct coro *coro)
{
	const struct profile *p = r->fs->profile;
	int err = r->closing ? -EINTR : 0;

	if (!err && !refine_knows_heads(r->fs) && geom_known(p->geom) &&
	    geom_tracks(p->geom) <= TRIM_TRACKS) {
		r->moving = true;
		err = heads_measure(&r->prober, p->mech.period_ps, 0, p->geom,
				    &r->heads, &r->placed);
		r->moving = false;
	}
	if (err)
		return err;
	r->done |= MEASURE_HEADS;
	if (!r->placed)
		return 0;
	/* The mechanics depend on cylinders, which have changed. */
	r->done &= ~MEASURE_MECH;
	r->step_over = true;
	coro_yield(coro);
	return 0;
}

/* Measures seeks and switches on the known tracks; their geometry must not
 * change meanwhile. */
static int refine_mech(struct refine *r)
{
	const struct mech_options options = { 0 };
	const struct profile *p = r->fs->profile;
	unsigned i;
	int err = r->closing ? -EINTR : 0;

	r->moving = true;
	for (i = 0; i < MECH_TRIES && !r->closing; i++) {
		r->mech = (struct mech){ 0 };
		err = mech_measure(&r->prober, p->geom, p->mech.period_ps,
				   &options, &r->mech);
		if (err != -EINTR)
			break;
	}
	r->moving = false;
	if (err)
		return err;
	r->have_mech = r->mech.seek_ppm > 0;
	r->done |= MEASURE_MECH;
	return 0;
}

/* Finds the period of rotation; -EOPNOTSUPP: nothing rotates. */
static int refine_period(struct refine *r)
{
	struct rotation period = { .verdict = PERIOD_NOISY };
	int err;

	r->moving = true;
	do {
		err = period_measure(&r->prober, PERIOD_NS, &period);
	} while (!err && period.verdict == PERIOD_NOISY &&
		 refine_is_patient(r));
	r->moving = false;
	if (err || r->closing)
		return err ? err : -EINTR;
	if (period.verdict != PERIOD_GOOD)
		return -EOPNOTSUPP;
	r->pauses = 0;
	r->period_ps = period.period_ps;
	return 0;
}

/* Begins to measure a drive of which only the period is known. */
static int refine_begin(struct refine *r, struct coro *coro)
{
	const struct map_options options = { .period_ps = r->period_ps };
	int err;

	map_close(r->map);
	r->map = NULL;
	err = map_open(&r->prober, &options, &r->map);
	if (err)
		return err;
	r->done = r->done_kept = 0;
	r->adopted_sectors = r->looked_sectors = r->stall_sectors = 0;
	r->have_period = r->step_over = true;
	coro_yield(coro);
	return 0;
}

static int refine_is_fit(struct refine *r, enum fit_verdict *verdict)
{
	struct drive_fit fit;
	int err = fit_check(&r->prober, r->fs->profile,
			    env_random(r->fs->env), &fit);

	*verdict = err ? FIT_UNKNOWN : fit.verdict;
	return err == -EINTR && !r->closing ? 0 : err;
}

/* Tries a profile again that did not fit at the mount: the host may have been
 * busy, or an emulator at full speed; or it may be another drive. */
static int refine_believe(struct refine *r, struct coro *coro)
{
	uint64_t wait_ns = DOUBT_NS;
	enum fit_verdict verdict;
	unsigned i, other = 0;
	int err;

	for (i = 0; i < DOUBT_TRIES; i++, wait_ns *= 2) {
		r->wake_ns = env_now_ns(r->fs->env) + wait_ns;
		coro_yield(coro);
		if (r->closing)
			return -EINTR;
		err = refine_is_fit(r, &verdict);
		other += verdict > FIT_FLAT;
		/* Measures the period once more, where times show any
		 * rotation. */
		if (!err && other >= DOUBT_OTHER && r->fs->options.measure &&
		    verdict > FIT_FLAT && !(err = refine_period(r)))
			err = refine_is_fit(r, &verdict);
		if (err == -EOPNOTSUPP)
			continue;
		if (err)
			return err;
		if (verdict > FIT_FLAT && other >= DOUBT_OTHER &&
		    r->fs->options.measure)
			return refine_begin(r, coro);
		if (verdict != FIT_GOOD)
			continue;
		r->believes = r->step_over = true;
		coro_yield(coro);
		return 0;
	}
	return -EOPNOTSUPP;
}

/* The map of a mount has the tracks that it knows, and each stage looks itself
 * whether it has anything to begin with. */
static bool stage_knows(void *arg, enum profile_part part)
{
	(void)arg;
	(void)part;
	return true;
}

static int stage_tracks(void *arg)
{
	struct refine *r = arg;
	int err;

	if (r->done & MEASURE_TRACKS)
		return 0;
	err = refine_tracks(r, r->coro);
	r->done |= err ? 0 : MEASURE_TRACKS;
	r->step_over = true;
	if (!err)
		coro_yield(r->coro);
	return err;
}

static int stage_angles(void *arg)
{
	struct refine *r = arg;

	return r->done & MEASURE_ANGLES ? 0 : refine_trim(r, r->coro);
}

static int stage_surfaces(void *arg)
{
	struct refine *r = arg;

	return r->done & MEASURE_HEADS ? 0 : refine_heads(r, r->coro);
}

static int stage_mechanics(void *arg)
{
	struct refine *r = arg;

	return r->done & MEASURE_MECH || r->fs->profile->mech.seek_n ?
	       0 : refine_mech(r);
}

void refine_body(struct coro *coro, void *arg)
{
	static const struct pipeline_host host = {
		.knows = stage_knows,
		.run = {
			[PIPELINE_TRACKS] = stage_tracks,
			[PIPELINE_ALL_ANGLES] = stage_angles,
			[PIPELINE_SURFACES] = stage_surfaces,
			[PIPELINE_MECHANICS] = stage_mechanics,
		},
	};
	struct refine *r = arg;
	int err = 0;

	if (r->fs->options.doubt)
		err = refine_believe(r, coro);
	else if (!r->map && !(err = refine_period(r)))
		err = refine_begin(r, coro);
	if (err || !refine_can(r->fs)) {
		r->error = err == -EINTR ? 0 : err;
		return;
	}
	err = pipeline_run(&host, r);
	if (err != -EINTR)
		r->error = err == -EIO ? 0 : err;
	r->step_over = true;
}
