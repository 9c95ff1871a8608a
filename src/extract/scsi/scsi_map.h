/*
 * scsi_map.h - the map of tracks from a drive's translations.
 *
 * The expert way of the papers (Traxtents, 4.1; Validation, 2.3): what order
 * the tracks are in is recognised, predicted and checked in leaps that double,
 * so that the cost is that of the irregularities.  Where nothing repeats it is
 * the expertise-free walk, two translations a track.
 *
 * Translations say nothing of angles that could be trusted: those of the
 * geometry are 0 and for the timing path to find.
 */
#ifndef TRAX_SCSI_SCSI_MAP_H
#define TRAX_SCSI_SCSI_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "diskmodel/geom.h"
#include "extract/scsi/translate.h"

struct scsi_map_options {
	uint32_t block_bytes;
	uint64_t blocks;
	unsigned verify;	/* tracks tried at the end; 0: 100 */
	/* Called now and then; false ends it with -EINTR.  May be NULL. */
	bool (*progress)(void *arg, uint64_t done, uint64_t blocks);
	void *arg;
};

struct scsi_map {
	struct geom *geom;	/* the caller's, geom_free */
	uint64_t translations;
	uint64_t tracks;
	uint64_t odd;		/* tracks that hold more or fewer blocks */
	uint64_t slipped;	/* tracks that hold none */
	unsigned verified;	/* tracks, at random, both ends */
};

/*
 * -EUCLEAN: translations contradict each other; -ENODATA: the drive says
 * nothing of some blocks.  Nothing is believed then.
 * Errors of the port.
 */
int scsi_map_make(struct translate *translate,
		  const struct scsi_map_options *options,
		  struct scsi_map *out);

#endif
