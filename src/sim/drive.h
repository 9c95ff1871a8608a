/*
 * drive.h - when a drive would have done what it is asked: timing, no data.
 *
 * The simulated disk runs it in virtual time, the emulated one in real time.
 * Time only enters through arguments and never goes back.  An operation
 * belongs to the caller and is the drive's from drive_submit until drive_run
 * returns it; its completion time is in done_ns then.
 */
#ifndef TRAX_SIM_DRIVE_H
#define TRAX_SIM_DRIVE_H

#include <stdint.h>

#include "base/list.h"
#include "disk/disk.h"

struct drive;

struct drive_op {
	enum disk_op op;
	bool fua;
	uint64_t lbn;
	uint32_t sectors;
	uint64_t done_ns;	/* set by the drive */

	/* The drive's. */
	struct list link;
	uint64_t arrive_ns;
};

/* Takes latency_ns for everything, any number of operations at once. */
struct drive *drive_new_flat(uint64_t latency_ns);
void drive_free(struct drive *drive);

void drive_submit(struct drive *drive, struct drive_op *op, uint64_t now_ns);

/* Time of the next thing that happens; UINT64_MAX: nothing will. */
uint64_t drive_next_ns(const struct drive *drive);

/* Runs up to and including a moment; returns the next operation that is done
 * by then, or NULL: call again until NULL. */
struct drive_op *drive_run(struct drive *drive, uint64_t until_ns);

/* Forgets all operations and what the caches hold: power is gone. */
void drive_reset(struct drive *drive, uint64_t now_ns);

#endif
