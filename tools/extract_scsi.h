/*
 * extract_scsi.h - tracks by the drive's own word, for traxtract --scsi.
 */
#ifndef TRAX_TOOLS_EXTRACT_SCSI_H
#define TRAX_TOOLS_EXTRACT_SCSI_H

#include "diskmodel/profile.h"
#include "extract/scsi_map.h"

/*
 * Puts the boundaries of tracks into the profile, as the drive at `path`
 * translates its addresses; angles remain unknown.  -EOPNOTSUPP: it is not
 * measurable in this way, *why says the reason; errors of the port.  progress
 * as in scsi_map.h.
 */
int extract_scsi(const char *path, struct profile *profile,
		 bool (*progress)(void *arg, uint64_t done, uint64_t blocks),
		 void *arg, const char **why);

#endif
