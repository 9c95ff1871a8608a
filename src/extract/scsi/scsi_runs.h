/*
 * scsi_runs.h - tracks as they are found, and the geometry that they make.
 */
#ifndef TRAX_SCSI_SCSI_RUNS_H
#define TRAX_SCSI_SCSI_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "diskmodel/geom.h"

/* Where a track lies, by the drive's own names. */
struct track_place {
	uint32_t cylinder, head;
};

/* Tracks along a surface, `step` cylinders apart, that hold the same. */
struct track_run {
	struct track_place place;	/* of the first */
	int32_t step;
	uint32_t count;
	uint32_t blocks;
	uint32_t usual;		/* blocks that tracks of its surface and zone
				 * hold, if nothing is slipped */
};

struct track_runs {
	struct track_run *v;
	size_t n, room;
	size_t sealed;		/* these stay as they are */
};

/* What is appended goes on from the last one where it can, unless that is
 * sealed.  -ENOMEM */
int runs_add(struct track_runs *runs, const struct track_run *run);

/*
 * The geometry, of blocks of so many sectors.  Angles are 0.  Translations tell
 * only how many blocks a track holds; as many sectors go round it, which says
 * where its end passes under the head, as the fullest track of its surface and
 * zone has.
 */
int runs_geom(const struct track_runs *runs, uint32_t unit, struct geom **out);

#endif
