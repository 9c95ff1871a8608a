/*
 * extract_scsi.c - what the drive says of itself, then its tracks.
 *
 * A run that was interrupted asks for all of it again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "extract/scsi/scsi_survey.h"
#include "tools/extract_scsi.h"

struct translation {
	const struct extract_scsi *scsi;
	struct scsi_port *port;
	struct scsi_survey survey;
	struct translate *translate;
};

static void translation_free(struct translation *t)
{
	translate_close(t->translate);
	if (!t->scsi->port)
		scsi_close(t->port);
}

/* What it says of itself; the reason in *why if it is not to be mapped. */
static int translation_survey(struct translation *t, const char *path,
			      const char **why)
{
	const struct scsi_survey *s = &t->survey;
	int err = scsi_survey(t->port, &t->survey, why);

	if (!err && s->ranges > 1)
		msg_info("%s: %u actuators: their tracks are mapped apart, "
			 "and nothing else is measured", path, s->ranges);
	return err;
}

static int translation_open(struct translation *t, const char **why)
{
	int err;

	t->port = t->scsi->port;
	err = t->port ? 0 : scsi_open(t->scsi->path, &t->port);
	if (!err)
		err = translation_survey(t, t->scsi->path, why);
	if (!err)
		err = translate_open(t->port, t->survey.capacity.blocks,
				     &t->translate);
	if (err == -EOPNOTSUPP && !*why)
		*why = "it does not translate addresses";
	return err;
}

static void translation_take(struct profile *profile,
			     const struct scsi_map *map)
{
	geom_free(profile->geom);
	profile->geom = map->geom;
	profile->part[PROFILE_BOUNDARIES].method = PROFILE_SCSI;
	profile->part[PROFILE_BOUNDARIES].confidence_ppm =
		PROFILE_CERTAIN_PPM;
	profile->part[PROFILE_SURFACES] = profile->part[PROFILE_BOUNDARIES];
	profile->part[PROFILE_ANGLES].method = PROFILE_NONE;
	profile->part[PROFILE_ANGLES].confidence_ppm = 0;
	msg_info("%" PRIu64 " tracks by %" PRIu64 " translations; %" PRIu64
		 " hold fewer blocks than their neighbours, %" PRIu64
		 " none; %u looked at again", map->tracks, map->translations,
		 map->odd, map->slipped, map->verified);
}

static bool translation_progress(void *arg, uint64_t done, uint64_t blocks)
{
	const struct translation *t = arg;

	return t->scsi->progress(t->scsi->arg, done, blocks);
}

/* Errors of what the drive says end as errors of the way to it do not. */
static int translation_map(struct translation *t,
			   struct scsi_map_options *options,
			   const struct profile *profile, struct scsi_map *map,
			   const char **why)
{
	const struct scsi_capacity *capacity = &t->survey.capacity;
	int err;

	options->block_bytes = capacity->block_bytes;
	options->blocks = capacity->blocks;
	if (t->survey.ranges > 1) {
		options->range = t->survey.range;
		options->ranges = t->survey.ranges;
	}
	err = scsi_map_make(t->translate, options, map);
	if (!err && geom_sectors(map->geom) != profile->sectors) {
		geom_free(map->geom);
		err = -EUCLEAN;
	}
	if (err != -EUCLEAN)
		return err;
	*why = "its translations contradict each other";
	return -EOPNOTSUPP;
}

int extract_scsi(const struct extract_scsi *scsi, const char **why)
{
	struct translation translation = {.scsi = scsi};
	struct scsi_map_options options = {.progress = translation_progress,
					   .arg = &translation};
	struct extract_state *state = scsi->state;
	struct scsi_map map;
	int err;

	*why = NULL;
	err = translation_open(&translation, why);
	if (!err)
		err = translation_map(&translation, &options, state->profile,
				      &map, why);
	if (!err)
		translation_take(state->profile, &map);
	translation_free(&translation);
	return err;
}
