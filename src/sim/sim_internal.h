/*
 * sim_internal.h - a simulated disk from inside: sim.c (requests, durability,
 * time), sim_power.c (content and power).
 */
#ifndef TRAX_SIM_SIM_INTERNAL_H
#define TRAX_SIM_SIM_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/drive.h"
#include "sim/faults.h"
#include "sim/sim.h"
#include "sim/writes.h"

struct op {
	struct drive_op timing;
	struct disk_request *req;
	struct write *write;	/* NULL: not a write, or one that is lost */
	uint64_t order;		/* flush: covers what completed before */
	uint64_t late_ns;	/* completes that much later */
	uint64_t reach_ns;	/* the drive is reached */
	uint64_t host_ns;	/* the answer is late by that */
	bool failed, stuck, flip;
	int error;
	struct list link;	/* in the air, late or ready */
	struct list way;	/* sent */
};

struct sim {
	struct disk disk;
	struct env env;
	struct drive *drive;
	struct drive *other;		/* not now, see sim_set_flat; or NULL */
	bool is_flat;
	struct media *now, *durable;
	uint64_t now_ns;
	uint64_t env_seed;
	uint64_t host_ns, host_seed;
	uint64_t reach_ns;		/* of the last that was sent */
	uint64_t answer_ns;		/* of the last answer */

	struct list sent;		/* ops, in order */
	struct list air, late, ready;	/* ops */
	unsigned outstanding;
	struct disk_request *refused;	/* no memory for an op */

	struct write **unflushed;
	size_t unflushed_n, unflushed_room;
	uint64_t completed;		/* writes, since the beginning */
	uint64_t flushed;		/* of these, durable or listed before */

	bool off;
	uint64_t cut_at;		/* writes to go; 0: not armed */
	enum sim_cut cut;
	uint64_t cut_seed;

	struct faults faults;
	sim_hook hook;
	void *hook_arg;
	struct sim_counts counts;
};

/* ---- sim.c ---- */

/* Forgets all requests: nobody will hear of them again. */
void sim_drop_all(struct sim *sim);

#endif
