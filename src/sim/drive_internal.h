/*
 * drive_internal.h - a drive from inside: drive.c (head, caches, interface),
 * drive_access.c (the queue and accesses).
 */
#ifndef TRAX_SIM_DRIVE_INTERNAL_H
#define TRAX_SIM_DRIVE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rangeset.h"
#include "sim/drive.h"
#include "sim/segments.h"
#include "sim/writes.h"

/* What the head does now. */
struct drive_access {
	bool write, destage;
	bool settled;		/* it is on the medium, so nothing joins it any
				 * more */
	uint64_t begun_ns;
	uint64_t lbn;
	uint32_t sectors;
	int64_t error_ns;
	struct service_head from;
	struct service service;
};

struct drive {
	const struct spec *spec;	/* NULL: a drive without mechanics */
	uint64_t latency_ns;
	struct geom *geom;
	struct service_mech mech;	/* that of the specification, with a
					 * phase */
	uint64_t seed;

	struct list queue;	/* operations in order of arrival */
	struct list active;
	struct list done;	/* operations in order of completion */

	bool busy;
	struct drive_access now;
	struct service_head head;	/* where the head is when it is not
					 * busy */
	uint64_t ahead_lbn;		/* LBN at which reading ahead goes on
					 * ... */
	uint32_t ahead_left;		/* ... and the sectors that are left of
					 * it */
	struct segments cache;
	struct rangeset dirty;		/* LBNs in the write cache */
	uint64_t dirty_ns;		/* when the write cache became dirty */
	uint64_t destaged;		/* end of the last range written */

	struct drive_times times;
};

/* ---- drive.c ---- */

uint64_t drive_later(uint64_t a, uint64_t b);

uint64_t drive_bus_ns(const struct drive *d, uint32_t sectors);

/* Done, to be returned when that time comes. */
void drive_op_done(struct drive *d, struct drive_op *op, uint64_t at_ns);

/* Is the head on its way over what a read wants, or the rest of it?  Up to a
 * track before it there is nothing better to do than to go on. */
bool drive_streams_into(struct drive *d, const struct drive_op *op);

/* ---- drive_access.c ---- */

/* The longest an access may grow by joining neighbours. */
uint32_t drive_access_most(const struct drive *d, uint64_t lbn);

void drive_access_estimate(struct drive *d);

/* An operation of the access at hand is done when its last sector is. */
void drive_access_part_done(struct drive *d, struct drive_op *op);

/* A neighbour that comes while the head is still on its way, or a part of what
 * is being read. */
bool drive_access_join_late(struct drive *d, struct drive_op *op);

void drive_access_join_waiting(struct drive *d);

struct drive_op *drive_choose(struct drive *d, uint64_t at_ns);

#endif
