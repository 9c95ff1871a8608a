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
#include "extract/scsi/scsi.h"
#include "tools/extract_scsi.h"

struct translation {
	const struct extract_scsi *scsi;
	struct scsi_port *port;
	struct scsi_capacity capacity;
	struct translate *translate;
};

static void translation_free(struct translation *t)
{
	translate_close(t->translate);
	if (!t->scsi->port)
		scsi_close(t->port);
}

static int translation_open(struct translation *t, const char **why)
{
	int err;

	t->port = t->scsi->port;
	err = t->port ? 0 : scsi_open(t->scsi->path, &t->port);
	if (!err)
		err = scsi_read_capacity(t->port, &t->capacity);
	if (!err)
		err = translate_open(t->port, t->capacity.blocks,
				     &t->translate);
	if (err == -EOPNOTSUPP)
		*why = "it does not translate addresses";
	if (err == -ERANGE)
		*why = "it has more cylinders than addresses can tell";
	return err;
}

static void translation_take(struct profile *profile,
			     const struct scsi_map *map)
{
	geom_free(profile->geom);
	profile->geom = map->geom;
	profile_found(profile, PROFILE_BOUNDARIES, PROFILE_SCSI,
		      PROFILE_CERTAIN_PPM);
	profile_found(profile, PROFILE_SURFACES, PROFILE_SCSI,
		      PROFILE_CERTAIN_PPM);
	profile_found(profile, PROFILE_ANGLES, PROFILE_NONE, 0);
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
	int err;

	options->block_bytes = t->capacity.block_bytes;
	options->blocks = t->capacity.blocks;
	err = scsi_map_make(t->translate, options, map);
	if (!err && geom_sectors(map->geom) != profile->sectors) {
		geom_free(map->geom);
		err = -EUCLEAN;
	}
	if (err == -EUCLEAN)
		*why = "its translations contradict each other";
	else if (err == -ENODATA || err == -EIO)
		*why = "it does not tell where some of its blocks are";
	return *why ? -ERANGE : err;
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
