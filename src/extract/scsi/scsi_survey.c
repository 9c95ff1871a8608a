/*
 * scsi_survey.c - what speaks for and against a map.
 */
#include <errno.h>
#include <string.h>

#include "extract/scsi/scsi_survey.h"

/* Do the ranges follow each other, from the first block to the last? */
static bool ranges_whole(const struct scsi_survey *s)
{
	uint64_t at = 0;
	unsigned i;

	for (i = 0; i < s->ranges; i++) {
		if (s->range[i].first != at || !s->range[i].blocks ||
		    s->range[i].blocks > s->capacity.blocks - at)
			return false;
		at += s->range[i].blocks;
	}
	return at == s->capacity.blocks;
}

/* What a drive does not know it is not asked again; errors of the way count. */
static bool unknown(int err)
{
	return err == -EOPNOTSUPP || err == -EBADMSG || err == -ENODATA;
}

static int survey_ask(struct scsi_port *port, struct scsi_survey *s,
		      struct scsi_medium *medium)
{
	int err = scsi_read_capacity(port, &s->capacity);

	if (err)
		return err;
	err = scsi_read_medium(port, medium);
	if (err && !unknown(err))
		return err;
	if (err)
		memset(medium, 0, sizeof(*medium));
	s->rpm = medium->rpm;
	err = scsi_read_ranges(port, s->range, SCSI_SURVEY_RANGES, &s->ranges);
	if (err && !unknown(err))
		return err;
	if (err || !s->ranges) {
		s->range[0] = (struct scsi_range){ 0, s->capacity.blocks };
		s->ranges = 1;
	}
	return 0;
}

int scsi_survey(struct scsi_port *port, struct scsi_survey *s,
		const char **why)
{
	struct scsi_medium medium;
	int err;

	memset(s, 0, sizeof(*s));
	*why = NULL;
	err = survey_ask(port, s, &medium);
	if (err)
		return err;
	if (medium.rpm == 1)
		*why = "it does not rotate";
	else if (medium.zoned == 2)
		*why = "its zones must be written in order";
	else if (!ranges_whole(s))
		*why = "what it says of its actuators does not fit";
	return *why ? -EOPNOTSUPP : 0;
}
