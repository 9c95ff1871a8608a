/*
 * pipeline.c - how a drive is measured, from the first read to the seek curve.
 *
 * Each stage rests on what the stages before it have found out:
 *
 *   period        How long a revolution takes, and whether completions of
 *                 reads tell angles at all (probe/period.h).  From here on a
 *                 read is an angle: its completion modulo the period
 *                 (probe/reader.h).
 *   translations  Where tracks begin, by the drive's own word, if it
 *                 translates addresses (scsi/scsi_map.h).
 *   tracks        The same by timing (track/map.h): a walk predicts where a
 *                 track ends, skips ahead as long as that is right, and
 *                 bisects where it is not; what it believes is proven by
 *                 reads of its own, and what lies between known tracks is
 *                 looked at closely.
 *   angles        Where translated tracks lie under the head: a few are read,
 *                 most follow from skews (angle/trim.h).
 *   verification  Samples of boundaries (drive/verify.h).
 *   all angles    The angles are made to suit each other, as a whole
 *                 (angle/trim.h).
 *   surfaces      Which tracks are on one surface, by sizes, skews and seeks
 *                 (surface/heads.h).  Only now there are cylinders.
 *   mechanics     Overheads, head switch, seek curve, write settle
 *                 (mech/mech.h).
 *
 * Three hosts run it: the tool (tools/extract_run.c) all of it, saving its
 * state; mkfs (measure.c) the period and some tracks within a budget; a mount
 * (src/refine) what is left, in its idle time.  Whatever is not certain stays
 * unknown, in each of them.
 */
#include "extract/pipeline.h"

#define NEEDS(part) (1u << (part))
#define NOTHING 0u

enum way { ANY_WAY, BY_SCSI, BY_TIMING };

struct stage {
	const char *name;
	enum way way;
	unsigned needs;		/* parts of a profile: a bit of each */
};

static const struct stage stages[PIPELINE_STEPS] = {
	[PIPELINE_PERIOD] = { "period", ANY_WAY, NOTHING },
	[PIPELINE_TRANSLATIONS] = { "translations", BY_SCSI, NOTHING },
	[PIPELINE_TRACKS] = { "tracks", BY_TIMING, NEEDS(PROFILE_PERIOD) },
	[PIPELINE_ANGLES] = { "angles", BY_SCSI,
			      NEEDS(PROFILE_PERIOD) |
			      NEEDS(PROFILE_BOUNDARIES) },
	[PIPELINE_VERIFICATION] = { "verification", ANY_WAY,
				    NEEDS(PROFILE_ANGLES) },
	[PIPELINE_ALL_ANGLES] = { "all angles", BY_TIMING,
				  NEEDS(PROFILE_ANGLES) },
	[PIPELINE_SURFACES] = { "surfaces", BY_TIMING,
				NEEDS(PROFILE_BOUNDARIES) },
	[PIPELINE_MECHANICS] = { "mechanics", ANY_WAY, NEEDS(PROFILE_ANGLES) },
};

static bool is_due(const struct pipeline_host *host, void *arg,
		   enum pipeline_step step)
{
	const struct stage *stage = &stages[step];

	if (!host->run[step] ||
	    (stage->way != ANY_WAY && (stage->way == BY_SCSI) != host->scsi))
		return false;
	for (unsigned part = 0; part < PROFILE_PARTS; part++) {
		if ((stage->needs & NEEDS(part)) &&
		    !host->knows(arg, (enum profile_part)part))
			return false;
	}
	return true;
}

int pipeline_run(const struct pipeline_host *host, void *arg)
{
	int err = 0;

	for (unsigned i = 0; i < PIPELINE_STEPS && !err; i++) {
		if (!is_due(host, arg, (enum pipeline_step)i))
			continue;
		if (host->begin)
			host->begin(arg, stages[i].name);
		err = host->run[i](arg);
		if (host->end)
			host->end(arg);
	}
	return err == PIPELINE_OVER ? 0 : err;
}
