/*
 * faults.h - the list of faults armed on a simulated disk.
 */
#ifndef TRAX_SIM_FAULTS_H
#define TRAX_SIM_FAULTS_H

#include <stddef.h>

#include "sim/sim.h"

struct faults {
	struct sim_fault *list;
	size_t n;
	uint64_t hits;
};

void faults_fini(struct faults *faults);
int faults_add(struct faults *faults, const struct sim_fault *fault);

/* The fault that a request meets, counted down; NULL: none. Valid until the
 * next faults_add. */
const struct sim_fault *faults_meet(struct faults *faults,
				    const struct disk_request *req);

#endif
