/*
 * scsi_ask.h - what is asked of a drive about its tracks, in as few
 * translations as its habits allow.
 *
 * A reassigned block is never mistaken for one in its place.  All answers are
 * exact; where the drive says nothing it is -ENODATA, or -EIO.
 */
#ifndef TRAX_SCSI_SCSI_ASK_H
#define TRAX_SCSI_SCSI_ASK_H

#include "extract/scsi/scsi_runs.h"
#include "extract/scsi/translate.h"

struct ask {
	struct translate *translate;
	uint64_t blocks;
	bool plain;		/* blocks to places only, both sides always */
	bool one_way;		/* places don't tell their blocks */
	unsigned at_zero, elsewhere; /* where tracks were seen to begin */
	uint32_t pitch;		/* bytes from sector to sector; 1 where places
				 * are sectors, 0: not known */
};

struct ask_spot {
	struct track_place place;
	uint32_t at;		/* sector, or bytes if there is no pitch */
};

/* Where a block is, or would be if it had not been reassigned. */
int ask_where(struct ask *ask, uint64_t block, struct ask_spot *out);

/* 1: the block is on that track, 0: it is not; or an error. */
int ask_on_track(struct ask *ask, uint64_t block,
		 const struct track_place *place);

/* 1: a block begins a track, which is (or is not) that one. */
int ask_begins(struct ask *ask, uint64_t block,
	       const struct track_place *place, bool that);

/* The first block of a track, thought to be near `guess`.  -ENODATA also when
 * there are no blocks on it. */
int ask_start(struct ask *ask, const struct track_place *place, uint64_t guess,
	      uint64_t *start);

/* The block behind the last one of the track that `first` is on, from a guess;
 * *next is where it lies (not at the end of the disk). */
int ask_end(struct ask *ask, uint64_t first, const struct track_place *place,
	    uint64_t guess, uint64_t *end, struct ask_spot *next);

/* Finds out how far sectors are apart. */
int ask_find_pitch(struct ask *ask);

/* Finds out whether places tell their blocks, by one that is known. */
int ask_try_back(struct ask *ask, uint64_t block);

/* 0: a block lies at the beginning of a track; 1: none, as far as the drive
 * tells. */
int ask_hole(struct ask *ask, const struct track_place *place);

#endif
