/*
 * writes.h - writes that a power cut may still undo.
 *
 * A write holds a copy of its data. The drive in whose air it is and the
 * moments taken of that drive share it by reference.
 */
#ifndef TRAX_SIM_WRITES_H
#define TRAX_SIM_WRITES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "disk/disk.h"
#include "sim/media.h"
#include "sim/sim.h"

struct write {
	unsigned refs;
	bool durable;		/* it is on the medium whatever happens */
	uint64_t sector;
	uint32_t sectors;
	uint8_t data[];
};

/* Makes a write with the data of a request and one reference. What is given up
 * may read as anything: a discard writes garbage. NULL: out of memory. */
struct write *writes_new(const struct disk_request *req);
struct write *writes_get(struct write *write);
void writes_put(struct write *write);

/* Puts all of it on a medium. */
int writes_apply(const struct write *write, struct media *media);

/* Puts on the medium what a power cut leaves of a write. A unit of
 * `unit_sectors` is never torn. *seed moves on. */
int writes_apply_cut(const struct write *write, struct media *media,
		     enum sim_cut cut, uint32_t unit_sectors, bool damage,
		     uint64_t *seed);

#endif
