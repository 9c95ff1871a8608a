/*
 * scsi_check.h - a map that is done, once more against the drive.
 */
#ifndef TRAX_SCSI_SCSI_CHECK_H
#define TRAX_SCSI_SCSI_CHECK_H

#include "diskmodel/geom_build.h"
#include "extract/scsi/scsi_ask.h"

struct scsi_check {
	struct ask *ask;
	struct geom *geom;
	uint32_t unit;		/* sectors of a block */

	/* Set by it. */
	unsigned verified;	/* tracks found right */
	uint64_t remaps;
};

/* Puts the blocks that were on grown defects (sorted) and lie elsewhere now
 * into the geometry. */
int scsi_check_grown(struct scsi_check *check,
		     const struct scsi_address *grown, size_t n);

/* So many tracks at random, both ends.  -EUCLEAN: one is not right. */
int scsi_check_tracks(struct scsi_check *check, unsigned n);

#endif
