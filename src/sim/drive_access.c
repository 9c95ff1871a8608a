/*
 * drive_access.c - which commands of a drive become one access, and which of
 * those that wait is next.
 */
#include "sim/drive_internal.h"

#include <math.h>

#include "sim/drive.h"

/* A command that has waited this long goes first whatever the policy: a round
 * number, as the firmware of real drives does not tell its own. */
#define STARVED_NS UINT64_C(1000000000)

/* ---- the queue ---- */

uint32_t drive_access_most(const struct drive *d, uint64_t lbn)
{
	struct geom_track track;

	geom_track_of(d->geom, lbn, &track);
	return 2 * track.sectors;
}

/* A read of what is being read anyway? */
static bool drive_access_contains(const struct drive *d,
				  const struct drive_op *op)
{
	const struct drive_access *a = &d->now;

	return op->op == DISK_READ && !a->write && op->lbn >= a->lbn &&
	       op->lbn + op->sectors <= a->lbn + a->sectors;
}

static bool drive_access_neighbour(const struct drive *d,
				   const struct drive_op *op)
{
	const struct drive_access *a = &d->now;

	if (drive_access_contains(d, op))
		return true;
	return op->op == (a->write ? DISK_WRITE : DISK_READ) &&
	       a->sectors + op->sectors <= drive_access_most(d, a->lbn) &&
	       (op->lbn == a->lbn + a->sectors ||
		op->lbn + op->sectors == a->lbn);
}

/* Adds an operation to the present access. */
static void drive_access_take(struct drive *d, struct drive_op *op)
{
	if (!drive_access_contains(d, op)) {
		if (op->lbn < d->now.lbn)
			d->now.lbn = op->lbn;
		d->now.sectors += op->sectors;
	}
	op->joined = !list_empty(&d->active);
	d->times.joined += op->joined;
	list_del(&op->link);
	list_add(&d->active, &op->link);
}

/* Does a write cover physical sectors in part?  Then these are read, and
 * written when they come round again. */
static bool drive_access_is_ragged(const struct drive *d,
				   const struct drive_access *a)
{
	uint32_t unit = d->spec->physical_bytes / SECTOR_BYTES;

	return a->lbn % unit || (a->lbn + a->sectors) % unit;
}

void drive_access_estimate(struct drive *d)
{
	struct drive_access *a = &d->now;
	struct service_request req = {
		.write = a->write,
		.lbn = a->lbn,
		.sectors = a->sectors,
		.error_ns = a->error_ns,
	};

	service_estimate(d->geom, &d->mech, &a->from, &req, &a->service);
	if (a->write && drive_access_is_ragged(d, a)) {
		uint64_t turn_ns = d->mech.period_ps / 1000;

		a->service.rotation_ns += turn_ns;
		a->service.head.at_ns += turn_ns;
		a->service.bus_ns += turn_ns;
	}
}

/* Time when the first `sectors` of the present access are done. */
static uint64_t part_done_ns(const struct drive *d, uint32_t sectors)
{
	const struct drive_access *a = &d->now;
	uint64_t end_ns = a->write ? a->service.head.at_ns :
				     a->service.bus_ns;
	struct service_mech in_order = d->mech;
	struct service_request req = {
		.write = a->write,
		.lbn = a->lbn,
		.sectors = a->sectors,
		.error_ns = a->error_ns,
	};
	struct service s;

	if (sectors == a->sectors || (a->write && drive_access_is_ragged(d, a)))
		return end_ns;
	in_order.zero_latency_read = in_order.zero_latency_write = false;
	service_estimate(d->geom, &in_order, &a->from, &req, &s);
	/* Sectors may pass out of order: the first one on the bus may pass
	 * last. */
	if (s.head.at_ns != a->service.head.at_ns)
		return a->write
			       ? end_ns
			       : end_ns - drive_bus_ns(d, a->sectors - sectors);
	req.sectors = sectors;
	service_estimate(d->geom, &in_order, &a->from, &req, &s);
	return a->write ? s.head.at_ns : s.bus_ns;
}

void drive_access_part_done(struct drive *d, struct drive_op *op)
{
	const struct drive_access *a = &d->now;
	uint32_t sectors = (uint32_t)(op->lbn + op->sectors - a->lbn);

	op->start_ns = a->from.at_ns;
	op->service = a->service;
	drive_op_done(d, op,
		      drive_later(part_done_ns(d, sectors),
				  drive_later(op->ready_ns, a->begun_ns)));
}

bool drive_access_join_late(struct drive *d, struct drive_op *op)
{
	if (!d->busy || !drive_access_neighbour(d, op))
		return false;
	if (d->now.settled && drive_access_contains(d, op)) {
		d->times.joined++;
		op->joined = true;
		drive_access_part_done(d, op);
		return true;
	}
	if (d->now.settled || op->ready_ns > d->now.service.media_ns)
		return false;
	list_init(&op->link);
	drive_access_take(d, op);
	drive_access_estimate(d);
	return true;
}

void drive_access_join_waiting(struct drive *d)
{
	struct list *pos;
	bool again = true;

	while (again) {
		uint32_t seen = 0;

		again = false;
		list_for_each(pos, &d->queue) {
			struct drive_op *op =
				list_entry(pos, struct drive_op, link);

			if (seen++ == d->spec->depth)
				break;
			if (!drive_access_neighbour(d, op))
				continue;
			drive_access_take(d, op);
			again = true;
			break;
		}
	}
}

/* What a policy likes least to spend on an operation. */
static uint64_t cost_ns(const struct drive *d, const struct drive_op *op,
			uint64_t at_ns)
{
	struct service_head head = d->head;
	struct service_request req = {
		.write = op->op == DISK_WRITE,
		.lbn = op->lbn,
		.sectors = op->sectors,
	};
	struct geom_place place;
	struct service s;

	head.at_ns = at_ns;
	if (d->spec->policy == SPEC_SSTF) {
		geom_place_of(d->geom, op->lbn, &place);
		return service_move_ns(&d->mech, &head, place.cylinder,
				       place.surface, false);
	}
	service_estimate(d->geom, &d->mech, &head, &req, &s);
	return s.head.at_ns - at_ns - s.transfer_ns;
}

struct drive_op *drive_choose(struct drive *d, uint64_t at_ns)
{
	struct drive_op *best = NULL;
	uint64_t best_ns = UINT64_MAX;
	uint32_t seen = 0;
	struct list *pos;

	list_for_each(pos, &d->queue) {
		struct drive_op *op = list_entry(pos, struct drive_op, link);
		uint64_t ns;

		if (seen++ == d->spec->depth)
			break;
		if (op->op == DISK_FLUSH || op->ready_ns > at_ns)
			continue;
		if (d->spec->policy == SPEC_FCFS ||
		    at_ns - op->arrive_ns > STARVED_NS ||
		    drive_streams_into(d, op))
			return op;
		ns = cost_ns(d, op, at_ns);
		if (ns < best_ns) {
			best = op;
			best_ns = ns;
		}
	}
	return best;
}
