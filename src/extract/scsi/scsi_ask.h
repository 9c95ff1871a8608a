/*
 * scsi_ask.h - what is asked of a drive about its tracks.
 *
 * Two answers prove that a track begins at a block: the block lies on it, the
 * one before it on another; or one, if tracks were seen to begin at sector 0.
 * A reassigned block is never mistaken for one in
 * its place.  All answers are exact; where the drive says nothing it is
 * -ENODATA, or -EIO.
 */
#ifndef TRAX_SCSI_SCSI_ASK_H
#define TRAX_SCSI_SCSI_ASK_H

#include "extract/scsi/scsi_runs.h"
#include "extract/scsi/translate.h"

struct scsi_ask {
	struct translate *translate;
	uint64_t blocks;
	/* Where the ends of tracks were looked for, the next one began at
	 * sector 0, or elsewhere. */
	unsigned at_zero, elsewhere;
};

struct ask_spot {
	struct track_place place;
	uint32_t at;		/* sector: a hint */
};

/* Where a block is, or would be if it had not been reassigned. */
int ask_where(struct scsi_ask *ask, uint64_t block, struct ask_spot *out);

/* 1: the block is on that track, 0: it is not; or an error. */
int ask_on_track(struct scsi_ask *ask, uint64_t block,
		 const struct track_place *place);

/* 1: a block is on that track, and the one before it is not; 0: it is not
 * so. */
int ask_begins(struct scsi_ask *ask, uint64_t block,
	       const struct track_place *place);

/* The first block of a track, thought to be near `guess`.  -ENODATA also when
 * the guess is not good enough to tell. */
int ask_start(struct scsi_ask *ask, const struct track_place *place,
	      uint64_t guess, uint64_t *start);

/* The block behind the last one of the track that `first` is on, from a guess;
 * *next is where it lies (not at the end of the disk). */
int ask_end(struct scsi_ask *ask, uint64_t first,
	    const struct track_place *place,
	    uint64_t guess, uint64_t *end, struct ask_spot *next);

#endif
