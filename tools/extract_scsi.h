/*
 * extract_scsi.h - tracks by the drive's own word, for traxtract --scsi.
 */
#ifndef TRAX_TOOLS_EXTRACT_SCSI_H
#define TRAX_TOOLS_EXTRACT_SCSI_H

#include "base/env.h"
#include "extract/scsi/scsi_map.h"
#include "tools/extract_state.h"

struct extract_scsi {
	const char *path;		/* path of the drive */
	struct scsi_port *port;		/* port to the drive; NULL: the path is
					 * opened */
	struct extract_state *state;
	/* called as scsi_map.h says */
	bool (*progress)(void *arg, uint64_t done, uint64_t blocks);
	void *arg;
};

/*
 * Puts the boundaries of tracks into the state's profile, as the drive
 * translates its addresses; angles remain unknown.  -EOPNOTSUPP: it is not
 * measurable in this way, *why says the reason; -ERANGE: not all of it, or
 * the answers contradict each other, and timing remains; errors of the port;
 * -EINTR.
 */
int extract_scsi(const struct extract_scsi *scsi, const char **why);

#endif
