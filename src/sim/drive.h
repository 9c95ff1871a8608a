/*
 * drive.h - when a drive would have done what it is asked: timing, no data.
 *
 * The simulated disk runs it in virtual time, the emulated one in real time.
 * Time only enters through arguments and never goes back: before an operation
 * is submitted the drive must have been run up to that moment.  An operation
 * belongs to the caller and is the drive's from drive_submit until drive_run
 * returns it; its completion time is in done_ns then.
 */
#ifndef TRAX_SIM_DRIVE_H
#define TRAX_SIM_DRIVE_H

#include <stdint.h>

#include "base/list.h"
#include "disk/disk.h"
#include "diskmodel/service.h"
#include "diskmodel/spec.h"

struct drive;

struct drive_op {
	enum disk_op op;
	bool fua;
	uint64_t lbn;
	uint32_t sectors;

	/* Set by the drive: */
	uint64_t arrive_ns, start_ns, done_ns;
	bool hit;		/* answered by a cache */
	bool joined;		/* it was joined to an access that began
				 * elsewhere */
	struct service service;	/* times of the access that it was part of */

	/* Belong to the drive: */
	struct list link;
	uint64_t ready_ns;	/* command decoded */
};

/* Times of the head since the beginning or drive_clear_times. They add up to
 * the time that passed. */
struct drive_times {
	uint64_t seek_ns, switch_ns, rotation_ns, transfer_ns;
	uint64_t prefetch_ns;	/* reading ahead, its seeks included */
	uint64_t overhead_ns;	/* time in which commands waited to be
				 * decoded */
	uint64_t idle_ns;
	uint64_t accesses;	/* accesses to the medium */
	uint64_t joined;	/* operations that were joined to an access */
	uint64_t read_hits;
	uint64_t prefetched_sectors;
	double energy_j;
};

/* Makes a drive that takes latency_ns for everything, any number of operations
 * at once. */
struct drive *drive_new_flat(uint64_t latency_ns);

/* Makes the drive that a specification describes, which must outlive it.
 * -ENOMEM, or -EINVAL (reported). */
int drive_new(const struct spec *spec, uint64_t seed, struct drive **drive);
void drive_free(struct drive *drive);

/* Its true geometry; NULL for a flat one. */
const struct geom *drive_geom(const struct drive *drive);

/* Its true mechanics, the phase included; NULL for a flat one. */
const struct service_mech *drive_mech(const struct drive *drive);

void drive_submit(struct drive *drive, struct drive_op *op, uint64_t now_ns);

/* Time of the next event; UINT64_MAX: there is none. */
uint64_t drive_next_ns(const struct drive *drive);

/* Will an operation be done at that event, as far as is known? */
bool drive_next_is_done(const struct drive *drive);

/* Runs up to and including a moment; returns the next operation that is done
 * by then, or NULL: call again until NULL. */
struct drive_op *drive_run(struct drive *drive, uint64_t until_ns);

/* Forgets all operations and what the caches hold: power is gone. */
void drive_reset(struct drive *drive, uint64_t now_ns);

/* Times of the head up to now. */
void drive_get_times(struct drive *drive, uint64_t now_ns,
		     struct drive_times *times);
void drive_clear_times(struct drive *drive, uint64_t now_ns);

#endif
