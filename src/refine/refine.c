/*
 * refine.c - a prober over the queue of a mounted file system.
 *
 * Measuring is straight-line code, so it runs as a coroutine, which yields
 * wherever it must wait: for a read, for a moment, for an idle disk. The loop's
 * side (refine_run) resumes it only when it may read at once.
 *
 * A read counts only if it was alone: another request between its submission
 * and its end might have been merged with it, or made a cache hit look like the
 * medium. Then the read is repeated. After a pause the spindle may have drifted
 * further than the map's clock tolerates: measuring is broken off, and begins
 * again by finding the phase of the spindle.
 *
 * Tracks that are no longer where they were (head_take_grown) are forgotten,
 * the file system gets the rest of the map at once, and they are measured
 * again.
 */
#include "refine/refine.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/coro.h"
#include "base/msg.h"
#include "base/units.h"
#include "diskmodel/geom_build.h"
#include "extract/measure.h"
#include "extract/surface/heads.h"
#include "extract/track/map.h"
#include "fs/op/fs_internal.h"
#include "fs/op/quiet.h"
#include "refine/refine_internal.h"
#include "sched/head/head.h"
#include "sched/queue/queue.h"

/* The file system gets a new map when one part in this many of the disk has
 * become known. */
#define ADOPT_SHARE 64u
/* What has been measured is stored this often. */
#define STATE_NS (300 * NS_PER_SECOND)
/* After more failed reads than this the disk counts as gone. */
#define GONE_ERRORS 64u
/* In a geometry of more tracks changes are not followed without a map. */
#define GROWN_TRACKS 1000000u
/* When fewer than one in FLAT_SLOW of FLAT_READS reads take longer than 1 /
 * FLAT_TURNS of a revolution, nothing rotates for now (an emulator at full
 * speed), and measuring pauses for FLAT_REST_NS. */
#define FLAT_READS 64u
#define FLAT_SLOW 8u
#define FLAT_TURNS 20u
#define FLAT_REST_NS (600 * NS_PER_SECOND)
/* Measuring pauses after this many reads that have decided nothing. */
#define STALL_READS 50000u
#define BUFFER_BYTES (2u << 20)	/* longest read of a measurement */
/* Refined angles are used when their sigma is below this part of a revolution,
 * and the refined period when its sigma is below TRIM_PERIOD_PPM. */
#define TRIM_SIGMA 0.01
#define TRIM_PERIOD_PPM 0.3

/* ---- The map ---- */

uint64_t refine_known_sectors(const struct refine *r)
{
	struct map_stats stats;

	if (!r->map)
		return 0;
	map_get_stats(r->map, &stats);
	return stats.known_sectors;
}

/* Sectors whose tracks are known, or have been given up as unknown. */
static uint64_t refine_looked_sectors(const struct refine *r)
{
	struct map_stats stats;

	if (!r->map)
		return 0;
	map_get_stats(r->map, &stats);
	return stats.known_sectors + stats.unknown_sectors;
}

/* ---- Requests of users ---- */

static uint64_t refine_foreground(const struct refine *r)
{
	const struct queue_stats *stats = queue_stats(r->fs->queue);
	uint64_t n = 0;
	int i;

	for (i = 0; i < QUEUE_IDLE; i++)
		n += stats->class[i].requests;
	return n;
}

/* ---- The prober: inside the coroutine ---- */

static void read_done(struct disk_request *disk)
{
	struct refine *r = disk->owner;

	r->reading = false;
	r->read_ns = disk->complete_ns;
}

static void read_submit(struct refine *r, const struct probe_access *a)
{
	r->iov = (struct iovec){ r->buffer, a->sectors * SECTOR_BYTES };
	memset(&r->req, 0, sizeof(r->req));
	r->req.class = QUEUE_IDLE;
	r->req.disk = (struct disk_request){
		.op = DISK_READ,
		.sector = a->sector,
		.sectors = a->sectors,
		.iov = &r->iov,
		.iov_n = 1,
		.done = read_done,
		.owner = r,
	};
	r->requests_before = refine_foreground(r);
	r->accesses_before = queue_stats(r->fs->queue)->accesses;
	r->reading = true;
	r->prober.accesses++;
	queue_submit(r->fs->queue, &r->req);
}

static bool read_was_alone(const struct refine *r)
{
	return refine_foreground(r) == r->requests_before &&
	       queue_stats(r->fs->queue)->accesses == r->accesses_before + 1;
}

/* Do reads no longer show any rotation? Then measuring pauses for long. */
static bool read_is_flat(struct refine *r)
{
	bool flat = r->slow_reads < FLAT_SLOW;

	if (r->flat_reads < FLAT_READS)
		return false;
	r->flat_reads = r->slow_reads = 0;
	if (!flat)
		return false;
	r->wake_ns = env_now_ns(r->fs->env) + FLAT_REST_NS;
	coro_yield(r->coro);
	return true;
}

/* Do reads go on without deciding anything? */
static bool read_is_vain(struct refine *r)
{
	uint64_t looked = refine_looked_sectors(r);

	if (looked != r->stall_sectors || r->moving)
		r->stall_reads = 0;
	r->stall_sectors = looked;
	return ++r->stall_reads > STALL_READS;
}

static int access_one(struct refine *r, struct probe_access *a)
{
	do {
		r->wake_ns = a->not_before_ns;
		if (env_now_ns(r->fs->env) < r->wake_ns)
			coro_yield(r->coro);
		r->rested = r->read_ns &&
			    env_now_ns(r->fs->env) - r->read_ns > r->rest_ns;
		/* Mechanics and period are measured by one read and the next,
		 * so a drift of the clock does not matter. */
		r->rested &= !r->moving;
		r->rested |= read_is_flat(r);
		if (r->closing || r->rested) {
			r->read_ns = 0;
			return -EINTR;
		}
		if (read_is_vain(r))
			return -EOPNOTSUPP;
		read_submit(r, a);
		coro_yield(r->coro);
	} while (!read_was_alone(r));
	a->submit_ns = r->req.disk.submit_ns;
	a->complete_ns = r->req.disk.complete_ns;
	a->result = r->req.disk.result;
	r->flat_reads++;
	r->slow_reads += (a->complete_ns - a->submit_ns) * FLAT_TURNS >=
			 r->period_ps / 1000;
	r->errors = a->result ? r->errors + 1 : 0;
	return r->errors > GONE_ERRORS ? -ENODEV : 0;
}

static int refine_access(struct prober *prober, struct probe_access *access,
			 unsigned n, unsigned depth)
{
	struct refine *r = container_of(prober, struct refine, prober);
	int err = 0;
	unsigned i;

	(void)depth;	/* one read at a time, whatever is measured */
	for (i = 0; i < n && !err; i++) {
		if (access[i].write ||
		    access[i].sectors > BUFFER_BYTES / SECTOR_BYTES)
			return -EINVAL;
		err = access_one(r, &access[i]);
	}
	return err;
}

/* Called in the middle of a computation: lets the loop run. */
static void refine_pause(struct prober *prober)
{
	struct refine *r = container_of(prober, struct refine, prober);

	if (!r->closing)
		coro_yield(r->coro);
}

bool refine_can(const struct fs *fs)
{
	const struct profile *p = fs->profile;

	return p->mech.period_ps &&
	       p->part[PROFILE_PERIOD].method == PROFILE_TIMING &&
	       (p->part[PROFILE_BOUNDARIES].method == PROFILE_TIMING ||
		p->part[PROFILE_BOUNDARIES].method == PROFILE_NONE) &&
	       p->sectors == fs->disk->limits.sectors;
}

/* Is nothing known of the drive, and may it be measured? */
static bool refine_may_begin(const struct fs *fs)
{
	const struct profile *p = fs->profile;

	return fs->options.measure && !p->mech.period_ps &&
	       !geom_known(p->geom) && !fs->options.doubt;
}

/* ---- The loop's side ---- */

/* Adopts a new period; what was known of another drive is dropped. */
static int refine_adopt_period(struct refine *r)
{
	struct profile *next;
	struct geom *geom;
	int err = map_geom(r->map, &geom);

	if (err)
		return err;
	next = profile_from_geom(geom, PROFILE_NONE);
	if (!next) {
		geom_free(geom);
		return -ENOMEM;
	}
	measure_keep_period(next, &r->prober, r->period_ps);
	err = fs_adopt_profile(r->fs, next);
	if (err) {
		profile_free(next);
		return err;
	}
	if (r->fs->options.doubt)
		msg_warn("%s: another drive than that of its profile, or one "
			 "that was formatted anew: measured from the beginning",
			 r->fs->disk->name);
	r->fs->options.doubt = false;
	msg_info("%s: %.2f rpm", r->fs->disk->name,
		 60e12 / (double)r->period_ps);
	return 0;
}

/* Gives the file system a profile, which it then owns; on an error it is
 * freed. */
static int adopt(struct refine *r, struct profile *next)
{
	int err;

	measure_keep_state(next, r->map, r->done);
	err = fs_adopt_profile(r->fs, next);
	if (err)
		profile_free(next);
	else
		r->done_kept = r->done;
	return err;
}

static int refine_adopt_angles(struct refine *r)
{
	struct profile *next;
	int err = profile_copy(r->fs->profile, &next);

	if (err)
		return err;
	geom_free(next->geom);
	next->geom = r->trimmed;
	r->trimmed = NULL;
	if (r->trim.period_ppm < TRIM_PERIOD_PPM)
		next->mech.period_ps =
			(uint64_t)(r->trim.period_ns * 1e3 + 0.5);
	err = adopt(r, next);
	if (err)
		return err;
	msg_info("%s: angles are known to %.2f %% of a revolution; they were "
		 "off by %.2f %%", r->fs->disk->name, 100 * r->trim.sigma,
		 100 * r->trim.moved);
	return 0;
}

static int refine_adopt_heads(struct refine *r)
{
	struct profile *next;
	int err = profile_copy(r->fs->profile, &next);

	if (err)
		return err;
	measure_keep_heads(next, r->placed, r->heads.confidence_ppm);
	r->placed = NULL;
	err = adopt(r, next);
	if (err)
		return err;
	msg_info("%s: %u surface%s", r->fs->disk->name, r->heads.surfaces,
		 r->heads.surfaces > 1 ? "s" : "");
	return 0;
}

static int refine_adopt(struct refine *r)
{
	uint64_t now_ns = env_now_ns(r->fs->env);
	struct profile *next;
	int err = profile_copy(r->fs->profile, &next);

	if (err)
		return err;
	/* The map's angles are worse than the refined angles that were made
	 * from them. */
	if (!(r->done & MEASURE_ANGLES))
		err = measure_keep(next, r->map);
	/* The stored state need not be newer than the profile it is stored
	 * with. */
	if (!err && (now_ns >= r->state_ns || r->closing ||
		     r->done != r->done_kept || r->dropped)) {
		measure_keep_state(next, r->map, r->done);
		r->state_ns = now_ns + STATE_NS;
		r->looked_sectors = refine_looked_sectors(r);
	}
	if (!err && r->have_mech)
		err = measure_keep_mech(next, &r->mech);
	if (!err)
		err = fs_adopt_profile(r->fs, next);
	if (err) {
		profile_free(next);
		return err;
	}
	r->have_mech = r->dropped = false;
	r->done_kept = r->done;
	r->adopted_sectors = refine_known_sectors(r);
	r->adopted++;
	return 0;
}

/* Has enough become known for a new profile, or something of which nothing was
 * known before? */
static bool is_better(const struct refine *r)
{
	uint64_t known = refine_known_sectors(r),
		 all = r->prober.limits->sectors;
	bool end = r->over || r->done != r->done_kept;

	/* Measuring again may have shown that a part of it was wrong. */
	return r->dropped ||
	       known >= r->adopted_sectors + all / ADOPT_SHARE ||
	       (end && !r->error && (known >= r->adopted_sectors ||
				     r->done & MEASURE_TRACKS));
}

/* A step has ended: adopts its result if that has brought enough. */
static void refine_weigh(struct refine *r)
{
	int err = 0;

	r->step_over = false;
	if (r->have_period) {
		r->have_period = false;
		err = refine_adopt_period(r);
	} else if (r->trimmed && r->trim.sigma < TRIM_SIGMA) {
		err = refine_adopt_angles(r);
	} else if (r->placed) {
		err = refine_adopt_heads(r);
	} else if (r->believes) {
		r->believes = false;
		err = fs_trust_profile(r->fs);
		if (!err)
			msg_info("%s: the profile of the drive fits now",
				 r->fs->disk->name);
	} else if (is_better(r)) {
		err = refine_adopt(r);
	}
	if (err && err != -EBUSY)
		msg_warn("%s: the new map of tracks is not used: %s",
			 r->fs->disk->name, strerror(-err));
}

static void refine_end(struct refine *r)
{
	r->over = true;
	if (r->closing || r->fs->options.doubt || !refine_can(r->fs))
		return;
	refine_weigh(r);
	if (r->error)
		msg_warn("%s: measuring ends: %s", r->fs->disk->name,
			 strerror(-r->error));
	else
		msg_info("%s: the map of tracks is finished: %llu of %llu "
			 "sectors", r->fs->disk->name,
			 (unsigned long long)refine_known_sectors(r),
			 (unsigned long long)r->prober.limits->sectors);
}

/* ---- Changed tracks ---- */

static void grown_note(struct refine *r)
{
	struct range *range = &r->grown[r->grown_n];

	if (!r->fs->own_head || r->grown_times >= GROWN_MOST ||
	    !head_take_grown(r->fs->own_head, &range->first, &range->n))
		return;
	r->grown_n++;
	r->grown_times++;
	msg_warn("%s: tracks at sectors %llu to %llu are not where they were "
		 "believed to be", r->fs->disk->name,
		 (unsigned long long)range->first,
		 (unsigned long long)(range->first + range->n - 1));
}

static bool grown_knows(void *arg, const struct geom_track *track)
{
	const struct refine *r = arg;
	unsigned i;

	for (i = 0; i < r->grown_n; i++)
		if (track->first < r->grown[i].first + r->grown[i].n &&
		    r->grown[i].first < track->first + track->sectors)
			return false;
	return true;
}

/* Drops changed tracks from the geometry: without a map to measure with they
 * stay unknown. */
static int grown_cut(struct refine *r)
{
	struct profile *next;
	struct geom *geom;
	int err;

	if (geom_tracks(r->fs->geom) > GROWN_TRACKS)
		return -EFBIG;
	err = profile_copy(r->fs->profile, &next);
	if (err)
		return err;
	err = geom_less(next->geom, grown_knows, r, &geom);
	if (!err) {
		geom_free(next->geom);
		next->geom = geom;
		err = fs_adopt_profile(r->fs, next);
	}
	if (err)
		profile_free(next);
	return err;
}

/* Begins again with the changed tracks, after the coroutine has ended. */
static int grown_again(struct refine *r)
{
	int err = refine_forget_grown(r);

	if (!err)
		err = refine_adopt(r);
	if (err)
		return err;
	coro_free(r->coro);
	r->coro = NULL;
	err = coro_new(refine_body, r, &r->coro);
	r->over = err != 0;
	return err;
}

static void refine_take_grown(struct refine *r)
{
	bool again = refine_can(r->fs) &&
		     refine_known_sectors(r) >= geom_known_sectors(r->fs->geom);
	int err = again ? grown_again(r) : grown_cut(r);

	r->grown_n = 0;
	if (err)
		msg_warn("%s: they are used on: %s", r->fs->disk->name,
			 strerror(-err));
}

uint64_t refine_run(struct refine *r)
{
	uint64_t now_ns = env_now_ns(r->fs->env), at_ns;

	if (r->fs->disk_gone)
		return UINT64_MAX;
	grown_note(r);
	if (r->over && !r->grown_n)
		return UINT64_MAX;
	/* A completion or an answer will end what is under way now. */
	if (r->reading || r->fs->op_count || !queue_idle(r->fs->queue))
		return UINT64_MAX;
	if (r->over)
		refine_take_grown(r);
	if (r->over)
		return UINT64_MAX;
	if (fs_may_sleep(r->fs))
		return UINT64_MAX;
	at_ns = fs_quiet_from_ns(r->fs);
	if (r->wake_ns > at_ns)
		at_ns = r->wake_ns;
	if (now_ns < at_ns)
		return at_ns;
	if (r->step_over)
		refine_weigh(r);
	if (!coro_resume(r->coro))
		refine_end(r);
	/* Transactions that were begun have to reach the disk. */
	return r->over ? UINT64_MAX : now_ns;
}

/* ---- Opening and closing ---- */

static bool is_done(const struct refine *r)
{
	const struct profile *p = r->fs->profile;

	if (r->fs->options.doubt)
		return !p->mech.period_ps || !geom_known(p->geom);
	if (!refine_can(r->fs))
		return !refine_may_begin(r->fs);
	/* A profile that was complete from the beginning has been searched for
	 * surfaces, too. */
	return (r->done & MEASURE_TRACKS ?
			r->done & MEASURE_HEADS || refine_knows_heads(r->fs) :
			geom_known_sectors(p->geom) == p->sectors) &&
	       (r->done & MEASURE_MECH || p->mech.seek_n);
}

/* Goes on from the state in the profile; without a valid one measuring begins
 * anew. */
static int refine_recall(struct refine *r)
{
	const struct profile *p = r->fs->profile;
	int err = measure_recall(p, r->map, &r->done);

	if (err == -EINVAL)
		msg_warn("%s: the state of measuring is not usable; it begins "
			 "anew", r->fs->disk->name);
	r->done_kept = r->done;
	if (!err)
		r->looked_sectors = refine_looked_sectors(r);
	return err == -ENOMEM ? err : 0;
}

static void refine_free(struct refine *r)
{
	coro_free(r->coro);
	geom_free(r->trimmed);
	geom_free(r->placed);
	map_close(r->map);
	free(r->buffer);
	free(r);
}

static int refine_new(struct fs *fs, struct refine *r)
{
	const struct map_options options = {
		.period_ps = fs->profile->mech.period_ps,
	};
	int err;

	r->fs = fs;
	r->prober.env = fs->env;
	r->prober.limits = &fs->disk->limits;
	r->prober.access = refine_access;
	r->prober.pause = refine_pause;
	r->rest_ns = REST_NS;
	r->period_ps = options.period_ps;
	r->adopted_sectors = geom_known_sectors(fs->profile->geom);
	r->buffer = aligned_alloc(DISK_BUFFER_ALIGN, BUFFER_BYTES);
	if (!r->buffer)
		return -ENOMEM;
	err = refine_may_begin(fs) ? 0 :
				     map_open(&r->prober, &options, &r->map);
	if (!err && refine_can(fs))
		err = refine_recall(r);
	if (err)
		return err;
	/* Everything is measured: from now on only changes are watched for. */
	r->over = is_done(r);
	return r->over ? 0 : coro_new(refine_body, r, &r->coro);
}

/* Stores the results since the last time, together with the file system's
 * closing. */
static void refine_leave(struct refine *r)
{
	if ((refine_looked_sectors(r) <= r->looked_sectors &&
	     r->done == r->done_kept) ||
	    (refine_known_sectors(r) < r->adopted_sectors &&
	     !(r->done & MEASURE_TRACKS)))
		return;
	while (!r->fs->disk_gone && !queue_idle(r->fs->queue))
		fs_run(r->fs, -1);
	if (!r->fs->disk_gone)
		refine_adopt(r);
}

void refine_close(struct refine *r)
{
	if (!r)
		return;
	r->closing = true;
	while (r->reading && !r->fs->disk_gone)
		fs_run(r->fs, -1);
	while (!r->over && coro_resume(r->coro))
		;
	refine_leave(r);
	refine_free(r);
}

int refine_open(struct fs *fs, struct refine **out)
{
	struct refine *r;
	int err;

	*out = NULL;
	if (fs->options.read_only ||
	    (!refine_can(fs) && !refine_may_begin(fs) && !fs->own_head &&
	     !fs->options.doubt))
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	err = refine_new(fs, r);
	if (err) {
		refine_free(r);
		return err;
	}
	*out = r;
	return 0;
}

void refine_get_status(const struct refine *r, struct refine_status *status)
{
	*status = (struct refine_status){
		.running = !r->over,
		.complete = r->over && !r->error,
		.error = r->error,
		.reads = r->prober.accesses,
		.done_sectors = r->done_sectors,
		.all_sectors = r->prober.limits->sectors,
		.known_sectors = refine_known_sectors(r),
		.adopted = r->adopted,
	};
}

char *refine_model_json(const struct refine *r)
{
	struct refine_status s;
	char *text = fs_model_json(r->fs), *out;
	json_t *json = text ? json_loads(text, 0, NULL) : NULL;

	refine_get_status(r, &s);
	json_object_set_new(json, "refine", json_pack(
		"{s:s, s:I, s:I, s:I, s:I, s:I}",
		"state", s.running ? "running" :
			 s.complete ? "complete" : "given up",
		"reads", (json_int_t)s.reads,
		"done_sectors", (json_int_t)s.done_sectors,
		"all_sectors", (json_int_t)s.all_sectors,
		"known_sectors", (json_int_t)s.known_sectors,
		"adopted", (json_int_t)s.adopted));
	out = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	json_decref(json);
	free(text);
	return out;
}
