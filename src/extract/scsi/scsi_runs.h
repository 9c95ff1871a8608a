/*
 * scsi_runs.h - tracks as they are found, and the geometry that they make.
 */
#ifndef TRAX_SCSI_SCSI_RUNS_H
#define TRAX_SCSI_SCSI_RUNS_H

#include "diskmodel/geom.h"
#include "extract/scsi/cycle.h"

/* Tracks along a surface, `step` cylinders apart, that hold the same. */
struct track_run {
	struct cycle_place place;	/* of the first; head: the surface */
	int32_t step;
	uint32_t count;
	uint32_t blocks;
	uint32_t usual;		/* blocks that its slot's tracks hold */
	bool known;

	/* Derived. */
	uint32_t around;	/* blocks' sectors around each of them */
};

struct track_runs {
	struct track_run *v;
	size_t n, room;
	uint64_t tracks, odd;	/* found so far; those unlike their slot */
};

/* What is appended goes on from the last one where it can.  -ENOMEM */
int runs_add(struct track_runs *runs, const struct track_run *run);
void runs_fini(struct track_runs *runs);

/*
 * The geometry, of blocks of so many sectors.  Angles are 0.  Translations tell
 * only how many blocks a track holds; how many sectors go round it, which says
 * where its end passes under the head, its neighbours along the surface tell.
 */
int runs_geom(struct track_runs *runs, uint32_t unit, struct geom **out);

#endif
