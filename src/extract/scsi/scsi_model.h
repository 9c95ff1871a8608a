/*
 * scsi_model.h - how the tracks are thought to go on.
 *
 * While no order is recognised it is one slot along one surface; what slots
 * there have been is kept until they repeat, then it is a cycle.  How sure the
 * sizes of a slot's tracks are is kept too: a leap over tracks whose sizes are
 * only supposed would prove nothing.
 *
 * Tracks are numbered as in cycle.h.  No I/O.
 */
#ifndef TRAX_SCSI_SCSI_MODEL_H
#define TRAX_SCSI_SCSI_MODEL_H

#include "extract/scsi/cycle.h"

#define MODEL_RECORDS (2u * CYCLE_MAX_SLOTS)

/* What a track says of its slot's size, beside how many blocks it holds: how
 * many of its sectors are slipped, or one of these. */
#define MODEL_UNTOLD (-1)	/* the drive doesn't say */
#define MODEL_UNSURE (-2)	/* there may be spares among its blocks */

/* How sure it is what the tracks of a slot hold. */
struct model_slot {
	unsigned right;		/* tracks that held it, one by one */
	bool seen;		/* one of them, at least */
	uint64_t sure_track;	/* the last that was looked at for it */
	int32_t more;		/* than it the last odd track held ... */
	uint64_t odd_track;	/* ... which was this one */
	uint64_t odd_number;	/* (its number among the slot's tracks) */
	unsigned times;		/* that, on tracks next to each other */
};

struct model {
	struct cycle cycle;	/* no slots: nothing is thought */
	bool in_cycle;		/* it is a recognised one */
	struct model_slot slot[CYCLE_MAX_SLOTS];
	struct cycle_slot record[MODEL_RECORDS];
	unsigned records;
	struct cycle before;	/* the last one recognised; no slots: none */
	bool fresh;		/* nothing has been recorded since it ended */
	uint64_t changed;	/* track: a slot was, the last time, ... */
	uint64_t zone;		/* ... and since when: a zone has begun */
	bool careful;		/* a track without slips is not enough */
};

/* It ends before this track; it is kept for recognition.  `proven`: a cycle was
 * indeed followed. */
void model_end(struct model *model, uint64_t track, bool proven);

/* Takes up the cycle that the slots before make, if it goes on at a place. */
bool model_recognise(struct model *model, const struct cycle_place *place);

/*
 * The same of the last cycle: zones mostly go over their tracks in one order.
 * The sizes of its tracks are not known then (model_fresh).
 */
bool model_recall(struct model *model, const struct cycle_place *place);

/* Has no track of its slot been seen? */
bool model_fresh(const struct model *model, uint64_t track);

/* A slot's first track holds so many blocks.  What its tracks hold then. */
uint32_t model_first(struct model *model, uint64_t track, uint32_t blocks,
		     int slips);

/* One slot from a place on, of which one track is known. */
void model_begin_slot(struct model *model, const struct cycle_place *place,
		      const struct cycle_place *next, uint32_t blocks);

/* Blocks of the surface's last known track, or of any; 0: none. */
uint32_t model_last_blocks(const struct model *model, uint32_t head);

/* Tracks from this one on whose sizes are sure, at most `most`. */
uint64_t model_sure(const struct model *model, uint64_t track, uint64_t most);

/* Are the slips of a track that holds so many more blocks worth asking for? */
bool model_wonders(const struct model *model, uint64_t track, int32_t more);

/* A track held what it should, looked at alone. */
void model_right(struct model *model, uint64_t track, int slips);

/* A track held more or fewer blocks than its slot says: is it the slot that is
 * wrong?  Then it is changed: true. */
bool model_odd(struct model *model, uint64_t track, int32_t more, int slips);

/* Does a track that holds so many more blocks say that its slot's size, of
 * which all was sure, had been taken from slipped ones? */
bool model_misled(const struct model *model, uint64_t track, int32_t more);

/* From here on track by track, until all slots are sure again. */
void model_doubt(struct model *model);

/*
 * The region of a track: what may share spare sectors, a cylinder or a sweep
 * along a surface.  Its last track is where they would be.
 */
uint64_t model_region_last(const struct model *model, uint64_t track);

/* Can a region have spare sectors at its end? */
bool model_may_spare(const struct model *model);

/* Cylinders all of whose tracks hold the same? */
bool model_alike(const struct model *model);

/* Are regions cylinders? */
bool model_by_cylinder(const struct model *model);

/* Tracks from `track` to the next one that lies there, at most `most`; 0:
 * none of them. */
unsigned model_ahead(const struct model *model, uint64_t track,
		     const struct cycle_place *place, unsigned most);

#endif
