/*
 * scsi_order.h - in which order tracks follow each other, and what each holds.
 *
 * An order is a sequence of slots: tracks that follow each other along one
 * surface.  Behind the last slot it begins again some cylinders further.
 * Cylinder order is a slot of one track for each head; a serpentine one long
 * slot for each head.  Tracks are counted from 0 at the order's beginning.
 *
 * It is a guess in every respect: scsi_map.c asks whether it is so.  No I/O.
 */
#ifndef TRAX_SCSI_SCSI_ORDER_H
#define TRAX_SCSI_SCSI_ORDER_H

#include "extract/scsi/scsi_runs.h"

#define ORDER_SLOTS 256u

struct order_slot {
	uint32_t head;
	int64_t cylinder;	/* of its first track, the first time */
	int32_t step;		/* of cylinders, from track to track */
	uint64_t tracks;
	uint32_t blocks;	/* on each track */
	uint64_t seen;		/* tracks of that size */

	uint64_t odd;		/* the last odd track's number in the slot, */
	int32_t more;		/* how many blocks more it held, */
	unsigned times;		/* and how many in a row held just so many */

	/* Derived: of the slots before it. */
	uint64_t before, before_blocks;
};

struct track_order {
	struct order_slot slot[ORDER_SLOTS];
	unsigned slots;		/* 0: nothing is predicted */
	int64_t cylinder_step;	/* from one repetition to the next; 0: it is a
				 * single slot that does not repeat */

	/* Derived: of one repetition. */
	uint64_t tracks, blocks;
};

/* Computes what is derived; after every change of a slot. */
void order_settle(struct track_order *order);

/* The slot of a track and its number in it. */
struct order_slot *order_slot_of(struct track_order *order, uint64_t track,
				 uint64_t *in_slot);

void order_place(struct track_order *order, uint64_t track,
		 struct track_place *out);

/* Blocks on the tracks [0, track). */
uint64_t order_blocks(struct track_order *order, uint64_t track);

/* One slot from a place on, whose first track holds so many blocks and is
 * followed by the track at `next`. */
void order_begin(struct track_order *order, const struct track_place *place,
		 const struct track_place *next, uint32_t blocks);

/* The order that the last of the tracks found repeat, if it goes on at a
 * place. */
bool order_recognise(struct track_order *order, const struct track_runs *runs,
		     const struct track_place *place);

/* The track holds so many more blocks than its slot says.  True: so have some
 * before it; another zone has begun, in which this slot (in cylinder order,
 * all) has a size of its own, that is not seen. */
bool order_odd(struct track_order *order, uint64_t track, int32_t more);

/* The last track of what may share spare sectors: a cylinder, or a sweep along
 * a surface. */
uint64_t order_region_last(struct track_order *order, uint64_t track);

/* Tracks from `track` to the next one that lies there, at most `most` and not
 * beyond the first of the next sweep; 0: none of them does. */
unsigned order_ahead(struct track_order *order, uint64_t track,
		     const struct track_place *place, unsigned most);

#endif
