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
	uint64_t late_ns;	/* additional delay of the completion */
	uint64_t reach_ns;	/* when the drive is reached */
	uint64_t host_ns;	/* delay of the answer by the host */
	bool failed, stuck, flip;
	int error;
	struct list link;	/* in one of the lists `air` and `ready` */
	struct list way;	/* of an outstanding op: in the lists `sent`,
				 * then `late`, or in none of them */
};

struct sim {
	struct disk disk;
	struct env env;
	struct drive *drive;
	struct drive *other;		/* the drive that is not in use, see
					 * sim_set_flat; NULL: there is none */
	bool is_flat;
	struct media *now, *durable;
	uint64_t now_ns;
	uint64_t env_seed;
	uint64_t host_ns, host_seed;
	uint64_t reach_ns;		/* when the last request that was sent
					 * reaches the drive */
	uint64_t answer_ns;		/* time of the last answer */

	struct list air, ready;		/* ops in these states */
	struct list sent;		/* ops on their way to the drive, in
					 * order */
	struct list late;		/* ops that the drive is through with,
					 * held back */
	unsigned outstanding;
	struct disk_request *refused;	/* requests for which there was no
					 * memory */

	struct write **unflushed;
	size_t unflushed_n, unflushed_room;
	uint64_t completed;		/* writes, since the beginning */
	uint64_t flushed;		/* number of these that are durable, or
					 * were listed before */

	bool off;
	uint64_t cut_at;		/* writes until a power cut; 0: none is
					 * armed */
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
