/*
 * drive.c - a drive: a queue, a head, a read cache that reads ahead, and
 * perhaps a volatile write cache.
 *
 * An operation is in one of three lists:
 *
 *   queue --(head_begin)--> active --(head_media)--> done --> returned
 *      \____________ answered by a cache _____________/
 *
 * The head is busy with an access (`now`), or free since head.at_ns, and then
 * perhaps reading ahead: that is worked out only when somebody wants to know
 * (drive_read_ahead_until), from where the head stopped last.
 *
 * A decision what to do next falls when the head is free and the first of the
 * visible commands (the oldest `depth`) has been decoded; so commands that come
 * together are chosen from together.  Neighbours of the chosen one that wait
 * too are one access with it, also if they come while the head is still on its
 * way: a track that the host had to ask for in parts takes one turn.  Once it
 * has reached the medium (head_media) it is known when each part will be done.
 *
 * A drive without a specification takes the same time for everything.
 */
#include "sim/drive.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/rangeset.h"
#include "sim/drive_internal.h"
#include "sim/segments.h"

/* ---- making ---- */

static void lists_init(struct drive *d)
{
	list_init(&d->queue);
	list_init(&d->active);
	list_init(&d->done);
}

struct drive *drive_new_flat(uint64_t latency_ns)
{
	struct drive *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->latency_ns = latency_ns;
	lists_init(d);
	rangeset_init(&d->dirty);
	return d;
}

int drive_new(const struct spec *spec, uint64_t seed, struct drive **drive)
{
	struct drive *d = drive_new_flat(0);
	int err;

	if (!d)
		return -ENOMEM;
	d->spec = spec;
	d->seed = seed;
	d->mech = spec->mech;
	d->mech.phase = (angle)random_next(&d->seed);
	err = spec_geom(spec, &d->geom);
	if (!err)
		err = segments_init(&d->cache, spec->cache_segments,
				    spec->segment_lbns);
	if (err) {
		drive_free(d);
		return err;
	}
	*drive = d;
	return 0;
}

void drive_free(struct drive *drive)
{
	if (!drive)
		return;
	geom_free(drive->geom);
	segments_fini(&drive->cache);
	rangeset_fini(&drive->dirty);
	free(drive);
}

const struct geom *drive_geom(const struct drive *drive)
{
	return drive->geom;
}

const struct service_mech *drive_mech(const struct drive *drive)
{
	return drive->spec ? &drive->mech : NULL;
}

/* ---- times ---- */

uint64_t drive_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t jitter(struct drive *d, uint64_t most_ns)
{
	return most_ns ? random_next(&d->seed) % most_ns : 0;
}

uint64_t drive_bus_ns(const struct drive *d, uint32_t sectors)
{
	if (!d->mech.bus_bytes_per_s)
		return 0;
	return sectors * (SECTOR_BYTES * UINT64_C(1000000000)) /
	       d->mech.bus_bytes_per_s;
}

/* A random number from 0 (excluded) to 1. */
static double fraction(struct drive *d)
{
	return (double)((random_next(&d->seed) >> 11) + 1) * 0x1p-53;
}

/* Delay with which a completion arrives. */
static uint64_t noise_ns(struct drive *d)
{
	const struct spec_noise *n = &d->spec->noise;
	double ns = 0;

	if (n->normal_ns) {
		double normal = sqrt(-2 * log(fraction(d))) *
				cos(2 * M_PI * fraction(d));

		ns = (double)n->normal_ns * (3 + normal);
	}
	if (ns < 0)
		ns = 0;
	if (n->exponential_ns)
		ns -= (double)n->exponential_ns * log(fraction(d));
	if (n->late > 0 && fraction(d) <= n->late)
		ns += (double)n->late_min_ns +
		      (double)(n->late_max_ns - n->late_min_ns) * fraction(d);
	return (uint64_t)ns;
}

void drive_op_done(struct drive *d, struct drive_op *op, uint64_t at_ns)
{
	struct list *pos = d->done.prev;

	if (d->spec)
		at_ns += noise_ns(d);
	op->done_ns = at_ns;
	while (pos != &d->done &&
	       list_entry(pos, struct drive_op, link)->done_ns > at_ns)
		pos = pos->prev;
	list_add_front(pos, &op->link);
}

/* ---- reading ahead ---- */

/* At the end of a track the head of some drives is not free before it has come
 * to the next one. */
static void read_ahead_move(struct drive *d)
{
	if (d->spec->read_ahead_moves && d->ahead_left)
		d->times.prefetch_ns += service_go_on(d->geom, &d->mech,
						      &d->head, d->ahead_lbn);
}

/* Lets the free head read ahead up to a moment. */
static void drive_read_ahead_until(struct drive *d, uint64_t until_ns)
{
	struct service s = { 0 };
	uint32_t n;

	if (d->busy || !d->ahead_left || d->head.at_ns >= until_ns)
		return;
	n = service_stream(d->geom, &d->mech, &d->head, d->ahead_lbn,
			   d->ahead_left, until_ns, &s);
	if (n)
		segments_add(&d->cache, d->ahead_lbn, n);
	d->ahead_lbn += n;
	d->ahead_left -= n;
	if (d->ahead_lbn >= geom_sectors(d->geom))
		d->ahead_left = 0;
	d->times.prefetch_ns += s.seek_ns + s.switch_ns + s.rotation_ns +
				s.transfer_ns;
	d->times.prefetched_sectors += n;
	if (n)
		read_ahead_move(d);
}

/* The rest of a physical sector has been read with its beginning. */
static void read_ahead_begin(struct drive *d, uint64_t lbn)
{
	const uint32_t unit = d->spec->physical_bytes / SECTOR_BYTES;

	lbn += unit - 1;
	lbn -= lbn % unit;
	d->ahead_lbn = lbn;
	d->ahead_left = d->cache.count ? d->spec->read_ahead_lbns : 0;
	if (lbn >= geom_sectors(d->geom))
		d->ahead_left = 0;
	read_ahead_move(d);
}

/* A cached part of what was read ahead is used: reading ahead goes on, from
 * where it is or, if it had stopped, when that comes round again. */
static void read_ahead_extend(struct drive *d, uint64_t end, uint64_t now_ns)
{
	uint64_t limit = end + d->spec->read_ahead_lbns;

	if (d->busy || d->ahead_lbn < end || limit <= d->ahead_lbn ||
	    d->ahead_lbn >= geom_sectors(d->geom))
		return;
	if (!d->ahead_left && now_ns > d->head.at_ns) {
		d->times.idle_ns += now_ns - d->head.at_ns;
		d->head.at_ns = now_ns;
	}
	if (limit - d->ahead_lbn <= d->spec->read_ahead_lbns)
		d->ahead_left = (uint32_t)(limit - d->ahead_lbn);
}

bool drive_streams_into(struct drive *d, const struct drive_op *op)
{
	const struct cache_segment *s;
	struct geom_track track;

	if (op->op != DISK_READ || !d->ahead_left)
		return false;
	if (op->lbn >= d->ahead_lbn) {
		geom_track_of(d->geom, d->ahead_lbn, &track);
		return op->lbn - d->ahead_lbn < d->ahead_left &&
		       op->lbn - d->ahead_lbn < track.sectors;
	}
	s = segments_find(&d->cache, op->lbn);
	return s && s->first + s->n == d->ahead_lbn &&
	       op->lbn + op->sectors > d->ahead_lbn;
}

/* ---- the head ---- */

static void count_wait(struct drive *d, uint64_t arrive_ns, uint64_t at_ns)
{
	uint64_t from = d->head.at_ns;
	uint64_t asked =
		drive_later(from, arrive_ns < at_ns ? arrive_ns : at_ns);

	d->times.idle_ns += asked - from;
	d->times.overhead_ns += at_ns - asked;
}

/* The head is on the medium: what the operations have to wait for is known. */
static void head_media(struct drive *d)
{
	struct drive_access *a = &d->now;

	a->settled = true;
	while (!list_empty(&d->active)) {
		struct drive_op *op =
			list_first(&d->active, struct drive_op, link);

		list_del(&op->link);
		drive_access_part_done(d, op);
	}
}

static void head_begin(struct drive *d, struct drive_op *op, uint64_t at_ns)
{
	struct drive_access *a = &d->now;
	bool streams;

	drive_read_ahead_until(d, at_ns);
	at_ns = drive_later(at_ns, d->head.at_ns);
	streams = drive_streams_into(d, op);
	*a = (struct drive_access){
		.write = op->op == DISK_WRITE,
		.begun_ns = at_ns,
		.lbn = op->lbn,
		.sectors = op->sectors,
		.error_ns = (int64_t)jitter(d, d->spec->seek_jitter_ns),
	};
	list_del(&op->link);
	list_add(&d->active, &op->link);
	if (streams) {
		/* Never stopped: only the rest is still to be read. */
		a->sectors = (uint32_t)(a->lbn + a->sectors - d->ahead_lbn);
		a->lbn = d->ahead_lbn;
		a->error_ns = 0;
	} else {
		count_wait(d, op->arrive_ns, at_ns);
		d->head.at_ns = at_ns;
	}
	drive_access_join_waiting(d);
	a->from = d->head;
	drive_access_estimate(d);
	d->busy = true;
}

/* Writes the next dirty range of the write cache, in ascending order. */
static void destage_begin(struct drive *d, uint64_t at_ns)
{
	struct drive_access *a = &d->now;
	struct range r;
	uint32_t most;

	if (!rangeset_next(&d->dirty, d->destaged, &r))
		rangeset_next(&d->dirty, 0, &r);
	if (r.first < d->destaged && d->destaged < r.first + r.n) {
		r.n -= d->destaged - r.first;
		r.first = d->destaged;
	}
	most = drive_access_most(d, r.first);
	drive_read_ahead_until(d, at_ns);
	at_ns = drive_later(at_ns, d->head.at_ns);
	count_wait(d, at_ns, at_ns);
	d->head.at_ns = at_ns;
	*a = (struct drive_access){
		.write = true,
		.destage = true,
		.settled = true,
		.lbn = r.first,
		.sectors = r.n < most ? (uint32_t)r.n : most,
		.from = d->head,
	};
	drive_access_estimate(d);
	d->busy = true;
}

static void count_access(struct drive *d)
{
	const struct service *s = &d->now.service;
	struct drive_times *t = &d->times;

	t->seek_ns += s->seek_ns;
	t->switch_ns += s->switch_ns;
	t->rotation_ns += s->rotation_ns;
	t->transfer_ns += s->transfer_ns;
	t->accesses++;
}

static void head_end(struct drive *d)
{
	struct drive_access *a = &d->now;

	d->busy = false;
	d->head = a->service.head;
	count_access(d);
	if (a->write) {
		d->ahead_left = 0;
		d->ahead_lbn = UINT64_MAX;
		/* A failure to cut a range in two only leaves it dirty. */
		rangeset_remove(&d->dirty, a->lbn, a->sectors);
		d->destaged = a->lbn + a->sectors;
	} else {
		segments_add(&d->cache, a->lbn, a->sectors);
		read_ahead_begin(d, a->lbn + a->sectors);
	}
}

/* Answers reads whose data has come into the cache while they waited. */
static void answer_hits(struct drive *d, uint64_t at_ns)
{
	struct list *pos, *tmp;

	list_for_each_safe(pos, tmp, &d->queue) {
		struct drive_op *op = list_entry(pos, struct drive_op, link);

		if (op->op != DISK_READ ||
		    !segments_has(&d->cache, op->lbn, op->sectors))
			continue;
		op->hit = true;
		d->times.read_hits++;
		list_del(&op->link);
		drive_op_done(d, op, drive_later(at_ns, op->ready_ns) +
				       drive_bus_ns(d, op->sectors));
	}
}

/* Answers flushes that have nothing left to wait for; true: one still waits. */
static bool answer_flushes(struct drive *d, uint64_t at_ns)
{
	struct list *pos, *tmp;
	bool waits = false;

	list_for_each_safe(pos, tmp, &d->queue) {
		struct drive_op *op = list_entry(pos, struct drive_op, link);

		if (op->op != DISK_FLUSH)
			continue;
		if (d->dirty.total) {
			waits = true;
			continue;
		}
		list_del(&op->link);
		drive_op_done(d, op, drive_later(at_ns, op->ready_ns));
	}
	return waits;
}

/* Time of the head's next decision; UINT64_MAX: there is none. */
static uint64_t head_next_ns(const struct drive *d)
{
	uint64_t next = UINT64_MAX;
	uint32_t seen = 0;
	struct list *pos;

	if (d->busy)
		return d->now.settled ? d->now.service.head.at_ns :
					d->now.service.media_ns;
	list_for_each(pos, &d->queue) {
		struct drive_op *op = list_entry(pos, struct drive_op, link);

		if (seen++ == d->spec->depth)
			break;
		if (op->ready_ns < next)
			next = op->ready_ns;
	}
	if (next == UINT64_MAX && d->dirty.total)
		next = d->dirty_ns;
	return next == UINT64_MAX ? next : drive_later(next, d->head.at_ns);
}

static void head_decide(struct drive *d, uint64_t at_ns)
{
	bool flush;
	struct drive_op *op;

	drive_read_ahead_until(d, at_ns);
	answer_hits(d, at_ns);
	flush = answer_flushes(d, at_ns);
	op = flush ? NULL : drive_choose(d, at_ns);
	if (op)
		head_begin(d, op, at_ns);
	else if (d->dirty.total && (flush || list_empty(&d->queue)))
		destage_begin(d, at_ns);
}

/* ---- the interface ---- */

/* Takes a write into the write cache. */
static bool cache_write(struct drive *d, struct drive_op *op)
{
	if (op->fua || d->dirty.total + op->sectors > d->spec->write_cache_lbns)
		return false;
	if (!d->dirty.total)
		d->dirty_ns = op->ready_ns;
	if (rangeset_add(&d->dirty, op->lbn, op->sectors))
		return false;
	drive_op_done(d, op, op->ready_ns + drive_bus_ns(d, op->sectors));
	return true;
}

static bool cache_read(struct drive *d, struct drive_op *op)
{
	if (!segments_has(&d->cache, op->lbn, op->sectors) &&
	    !rangeset_has(&d->dirty, op->lbn, op->sectors))
		return false;
	op->hit = true;
	d->times.read_hits++;
	if (segments_find(&d->cache, op->lbn))
		read_ahead_extend(d, op->lbn + op->sectors, op->arrive_ns);
	drive_op_done(d, op, op->arrive_ns + d->spec->hit_overhead_ns +
			       jitter(d, d->spec->overhead_jitter_ns) +
			       drive_bus_ns(d, op->sectors));
	return true;
}

void drive_submit(struct drive *drive, struct drive_op *op, uint64_t now_ns)
{
	const struct spec *spec = drive->spec;

	op->arrive_ns = op->start_ns = now_ns;
	op->hit = op->joined = false;
	op->service = (struct service){ 0 };
	if (!spec) {
		drive_op_done(drive, op, now_ns + drive->latency_ns);
		return;
	}
	drive_read_ahead_until(drive, now_ns);
	op->ready_ns = now_ns + jitter(drive, spec->overhead_jitter_ns) +
		       (op->op == DISK_READ ? spec->read_overhead_ns :
			op->op == DISK_WRITE ? spec->write_overhead_ns :
					       spec->hit_overhead_ns);
	if (op->op == DISK_WRITE)
		segments_drop(&drive->cache, op->lbn, op->sectors);
	if (op->op == DISK_FLUSH && !drive->dirty.total)
		drive_op_done(drive, op, op->ready_ns);
	else if (op->op == DISK_FLUSH ||
		 (!(op->op == DISK_WRITE && cache_write(drive, op)) &&
		  !(op->op == DISK_READ && cache_read(drive, op)) &&
		  !drive_access_join_late(drive, op)))
		list_add(&drive->queue, &op->link);
}

uint64_t drive_next_ns(const struct drive *drive)
{
	const struct drive_op *op =
		list_first(&drive->done, struct drive_op, link);
	uint64_t head_ns = head_next_ns(drive);

	return op && op->done_ns < head_ns ? op->done_ns : head_ns;
}

bool drive_next_is_done(const struct drive *drive)
{
	const struct drive_op *op =
		list_first(&drive->done, struct drive_op, link);

	return op && op->done_ns <= head_next_ns(drive);
}

struct drive_op *drive_run(struct drive *drive, uint64_t until_ns)
{
	for (;;) {
		struct drive_op *op =
			list_first(&drive->done, struct drive_op, link);
		uint64_t head_ns = head_next_ns(drive);

		if (op && op->done_ns <= until_ns && op->done_ns <= head_ns) {
			list_del(&op->link);
			return op;
		}
		if (head_ns > until_ns)
			return NULL;
		if (drive->busy && !drive->now.settled)
			head_media(drive);
		else if (drive->busy)
			head_end(drive);
		else
			head_decide(drive, head_ns);
	}
}

void drive_reset(struct drive *drive, uint64_t now_ns)
{
	lists_init(drive);
	drive->busy = false;
	drive->ahead_left = 0;
	segments_clear(&drive->cache);
	rangeset_fini(&drive->dirty);
	rangeset_init(&drive->dirty);
	drive->head.at_ns = now_ns;
}

void drive_get_times(struct drive *drive, uint64_t now_ns,
		     struct drive_times *times)
{
	const struct spec *spec = drive->spec;

	*times = drive->times;
	if (!spec)
		return;
	drive_read_ahead_until(drive, now_ns);
	*times = drive->times;
	if (!drive->busy && now_ns > drive->head.at_ns)
		times->idle_ns += now_ns - drive->head.at_ns;
	times->energy_j = 1e-9 *
		((double)times->seek_ns * spec->seek_w +
		 (double)(times->switch_ns + times->rotation_ns +
			  times->transfer_ns + times->prefetch_ns) *
			 spec->active_w +
		 (double)(times->idle_ns + times->overhead_ns) * spec->idle_w);
}

void drive_clear_times(struct drive *drive, uint64_t now_ns)
{
	if (drive->spec)
		drive_read_ahead_until(drive, now_ns);
	/* Where it is in its reading ahead is more than when it began. */
	if (!drive->busy && !drive->ahead_left && now_ns > drive->head.at_ns)
		drive->head.at_ns = now_ns;
	drive->times = (struct drive_times){ 0 };
}
