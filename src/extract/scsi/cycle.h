/*
 * cycle.h - the order in which blocks go over the tracks, where it repeats.
 *
 * A cycle is a sequence of slots: tracks that follow each other along one
 * surface.  The next cycle is the same some cylinders further.  Cylinder order
 * is a slot of one track for each head; a serpentine one long slot for each
 * head.  Tracks are counted from 0 at the beginning of cycle 0.  Arithmetic
 * only.
 */
#ifndef TRAX_SCSI_CYCLE_H
#define TRAX_SCSI_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#define CYCLE_MAX_SLOTS 256u

struct cycle_slot {
	uint32_t head;
	int64_t cylinder;	/* of its first track in cycle 0 */
	int32_t step;		/* of cylinders, from track to track */
	uint64_t tracks;
	uint32_t blocks;	/* on each track */

	/* Derived: of the slots before it. */
	uint64_t before, before_blocks;
};

struct cycle {
	struct cycle_slot slot[CYCLE_MAX_SLOTS];
	unsigned slots;
	int64_t cylinder_step;	/* from cycle to cycle */

	/* Derived: of one cycle. */
	uint64_t tracks, blocks;
};

struct cycle_place {
	uint32_t cylinder;
	uint32_t head;
};

/* Computes what is derived; after every change of a slot. */
void cycle_settle(struct cycle *cycle);

/* The slot of a track and its number in it. */
unsigned cycle_slot_of(const struct cycle *cycle, uint64_t track,
		       uint64_t *in_slot);

void cycle_place_of(const struct cycle *cycle, uint64_t track,
		    struct cycle_place *out);

/* Blocks on the tracks [0, track). */
uint64_t cycle_blocks_before(const struct cycle *cycle, uint64_t track);

/*
 * Do the last slots of `slot[0..n)` repeat the ones before them, some
 * cylinders further?  Then the cycle that follows them.
 */
bool cycle_recognise(const struct cycle_slot *slot, unsigned n,
		     struct cycle *out);

#endif
