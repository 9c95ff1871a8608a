/*
 * scsi_survey.h - is this a drive whose tracks can be mapped, and as what?
 *
 * Zones that must be written in order, ranges of actuators that don't make up
 * the drive: there is no map then.  Actuators are one range of blocks each,
 * mapped apart.
 */
#ifndef TRAX_SCSI_SCSI_SURVEY_H
#define TRAX_SCSI_SCSI_SURVEY_H

#include "extract/scsi/scsi.h"

#define SCSI_SURVEY_RANGES 16u	/* as many as are mapped: scsi_map.h */

struct scsi_survey {
	struct scsi_capacity capacity;
	uint32_t rpm;			/* 0: not said */
	struct scsi_range range[SCSI_SURVEY_RANGES];
	unsigned ranges;		/* at least 1 */
};

/*
 * -EOPNOTSUPP with the reason in *why: it is not to be mapped (what it said is
 * in *survey all the same).  Errors of the port.
 */
int scsi_survey(struct scsi_port *port, struct scsi_survey *survey,
		const char **why);

#endif
