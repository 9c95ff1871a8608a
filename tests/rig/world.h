/*
 * world.h - a simulated disk (sim/sim.h) whose writes and flushes are counted
 * as events and, when asked, remembered as moments at which power may go.
 *
 * Event n is the submission of the n-th write or flush.  What happens between
 * two events belongs to the later one: it cannot be seen by a cut at the
 * earlier.
 */
#ifndef TRAX_RIG_WORLD_H
#define TRAX_RIG_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"
#include "sim/sim.h"

struct world {
	struct sim *sim;
	uint64_t events;	/* number of the next event; the first is 1 */
	bool record;
	uint64_t recorded;	/* the first event that is remembered */
	struct sim_moment **moment;	/* of event i at [i - recorded] */
	uint64_t moments, room;
	/* Its result is kept beside each moment; NULL: none is. */
	uint64_t (*note)(void *arg);
	void *note_arg;
	uint64_t *noted;
	bool inside;		/* the file system runs, not the test */
};

/* `spec` NULL: a disk that takes the same time for everything; else it
 * outlives the world.  Aborts when out of memory. */
void world_init(struct world *world, const struct spec *spec, uint64_t sectors,
		const struct sim_options *options, bool record);
void world_fini(struct world *world);

/* Remembers the events from the next one on, unless it does already. */
void world_record(struct world *world);

/* fs_submit, with `inside` set meanwhile. */
void world_submit(struct world *world, struct fs *fs, struct fs_op *op);

/* Runs the file system once, then lets time pass to the next event. */
void world_drive(struct world *world, struct fs *fs);

/* The same, but time passes to this moment at most. */
void world_drive_until(struct world *world, struct fs *fs, uint64_t until_ns);

/* Lets so much time pass while nobody asks for anything. */
void world_settle(struct world *world, struct fs *fs, unsigned seconds);

/* Runs the file system until the operation is done; returns op->rc. */
int world_call(struct fs *fs, struct world *world, struct fs_op *op);

/* Returns the next number of the generator of all tests (splitmix64). */
uint64_t world_random(uint64_t *state);

#endif
