/*
 * scsi_order.h - in which order tracks are predicted to follow each other.
 *
 * While no order is recognised it is one slot along one surface; the slots that
 * end are recorded until they repeat, and then it is a cycle.  The next zone
 * mostly has the order of the last one with other sizes.  What is predicted
 * here is a guess in every respect: scsi_map.c asks whether it is so.
 *
 * Tracks are numbered as in cycle.h.  No I/O.
 */
#ifndef TRAX_SCSI_SCSI_ORDER_H
#define TRAX_SCSI_SCSI_ORDER_H

#include "extract/scsi/cycle.h"

#define ORDER_RECORDS (2u * CYCLE_MAX_SLOTS)

struct order_slot {
	unsigned seen;		/* tracks of its size, as far as they count */
	bool summed;		/* sums were believed by that size */
	int32_t more;		/* than its size the last odd track held, ... */
	uint64_t odd;		/* ... the number of that among its tracks, */
	unsigned times;		/* and how many in a row held just so many */
};

struct order {
	struct cycle cycle;	/* no slots: nothing is predicted */
	bool repeats;		/* it is a recognised one */
	struct order_slot slot[CYCLE_MAX_SLOTS];
	struct cycle_slot record[ORDER_RECORDS];
	unsigned records;
	struct cycle before;	/* the last one recognised; no slots: none */
	bool fresh;		/* nothing has been recorded since it ended */
};

/* It ends before this track. */
void order_end(struct order *order, uint64_t track);

/* Takes up the cycle that the recorded slots make, or else the last one, if it
 * goes on at a place.  Its sizes are not seen then. */
bool order_recognise(struct order *order, const struct cycle_place *place);

/* One slot from a place on, whose first track holds so many blocks and is
 * followed by the track at `next`. */
void order_begin_slot(struct order *order, const struct cycle_place *place,
		      const struct cycle_place *next, uint32_t blocks);

/* Blocks of the surface's last known track, or of any; 0: none is known. */
uint32_t order_last_blocks(const struct order *order, uint32_t head);

/* The state of a track's slot. */
struct order_slot *order_slot_of(struct order *order, uint64_t track);

/* The tracks of this one's slot hold so many blocks. */
void order_set_size(struct order *order, uint64_t track, uint32_t blocks);

/* A track held so many more blocks than its slot says.  How many in a row of
 * its slot did. */
unsigned order_odd(struct order *order, uint64_t track, int32_t more);

/* The last track of what may share spare sectors: a cylinder, or a sweep along
 * a surface. */
uint64_t order_region_last(const struct order *order, uint64_t track);

/* Tracks from `track` to the next one that lies there, at most `most`; 0: none
 * of them does. */
unsigned order_ahead(const struct order *order, uint64_t track,
		     const struct cycle_place *place, unsigned most);

#endif
