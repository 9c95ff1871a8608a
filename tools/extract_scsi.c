/*
 * extract_scsi.c - what the drive says of itself, its defects, then its tracks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "extract/scsi_survey.h"
#include "tools/extract_scsi.h"

struct told {
	struct scsi_port *port;
	struct scsi_survey survey;
	struct translate *translate;
	struct scsi_address *primary, *grown;
	size_t primary_n, grown_n;
};

static void told_free(struct told *t)
{
	translate_close(t->translate);
	free(t->primary);
	free(t->grown);
	scsi_close(t->port);
}

/* What it says of itself; the reason in *why if it is not to be mapped. */
static int told_survey(struct told *t, const char *path, const char **why)
{
	const struct scsi_survey *s = &t->survey;
	int err = scsi_survey(t->port, &t->survey, why);

	if (s->elements.all)
		msg_info("%s: %u heads, %u of them out of use", path,
			 s->elements.all, s->elements.depopulated);
	if (!err && s->ranges > 1)
		msg_info("%s: %u actuators: their tracks are mapped apart, "
			 "and nothing else is measured", path, s->ranges);
	return err;
}

static int told_ask(struct told *t, const char *path, const char **why)
{
	int err = scsi_open(path, &t->port);

	if (!err)
		err = told_survey(t, path, why);
	if (!err)
		err = translate_open(t->port, t->survey.capacity.blocks,
				     &t->translate);
	if (err == -EOPNOTSUPP && !*why)
		*why = "it does not translate addresses";
	if (err)
		return err;
	/* Lists that cannot be had cost translations, nothing else. */
	if (scsi_read_defects(t->port, SCSI_PRIMARY, &t->primary,
			      &t->primary_n))
		t->primary = NULL;
	if (scsi_read_defects(t->port, SCSI_GROWN, &t->grown, &t->grown_n))
		t->grown = NULL;
	return 0;
}

static void told_take(struct profile *profile, const struct scsi_map *map)
{
	geom_free(profile->geom);
	profile->geom = map->geom;
	profile->part[PROFILE_BOUNDARIES].method = PROFILE_SCSI;
	profile->part[PROFILE_BOUNDARIES].confidence_ppm =
		PROFILE_CERTAIN_PPM;
	profile->part[PROFILE_ANGLES].method = PROFILE_NONE;
	profile->part[PROFILE_ANGLES].confidence_ppm = 0;
	msg_info("%" PRIu64 " tracks by %" PRIu64 " translations; %" PRIu64
		 " hold fewer blocks than their neighbours, %" PRIu64
		 " none; %u looked at again", map->tracks, map->translations,
		 map->odd, map->slipped, map->verified);
}

/* Errors of what the drive says end as errors of the way to it do not. */
static int told_map(struct told *t, struct scsi_map_options *options,
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
	options->primary = t->primary;
	options->primary_n = t->primary ? t->primary_n : 0;
	options->grown = t->grown;
	options->grown_n = t->grown ? t->grown_n : 0;
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

int extract_scsi(const char *path, struct profile *profile,
		 bool (*progress)(void *arg, uint64_t done, uint64_t blocks),
		 void *arg, const char **why)
{
	struct told told = { 0 };
	struct scsi_map_options options = { .progress = progress,
					    .arg = arg };
	struct scsi_map map;
	int err;

	*why = NULL;
	err = told_ask(&told, path, why);
	if (!err)
		err = told_map(&told, &options, profile, &map, why);
	if (!err)
		told_take(profile, &map);
	told_free(&told);
	return err;
}
