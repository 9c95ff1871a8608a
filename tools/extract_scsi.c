/*
 * extract_scsi.c - what the drive says of itself, its defects, then its tracks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "tools/extract_scsi.h"

struct told {
	struct scsi_port *port;
	struct scsi_capacity capacity;
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

/* What may speak against believing one map: said, and left to the timing. */
static int told_look(struct told *t, const char *path)
{
	struct scsi_medium medium;
	struct scsi_range range[16];
	unsigned n, gone;

	if (!scsi_read_medium(t->port, &medium) && medium.zoned == 2) {
		msg_error("%s: host-managed zones", path);
		return -EOPNOTSUPP;
	}
	if (!scsi_read_ranges(t->port, range, 16, &n) && n > 1)
		msg_info("%s: %u actuators", path, n);
	if (!scsi_count_elements(t->port, &n, &gone))
		msg_info("%s: %u storage elements, %u of them depopulated",
			 path, n, gone);
	return 0;
}

static int told_ask(struct told *t, const char *path)
{
	int err = scsi_open(path, &t->port);

	if (!err)
		err = scsi_read_capacity(t->port, &t->capacity);
	if (!err)
		err = told_look(t, path);
	if (!err)
		err = translate_open(t->port, t->capacity.blocks,
				     &t->translate);
	if (err) {
		msg_error("%s: does not translate addresses (%s)", path,
			  strerror(-err));
		return err;
	}
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

int extract_scsi(const char *path, struct profile *profile,
		 bool (*progress)(void *arg, uint64_t done, uint64_t blocks),
		 void *arg)
{
	struct told told = { 0 };
	struct scsi_map_options options = { .progress = progress,
					    .arg = arg };
	struct scsi_map map;
	int err = told_ask(&told, path);

	if (!err) {
		options.block_bytes = told.capacity.block_bytes;
		options.blocks = told.capacity.blocks;
		options.primary = told.primary;
		options.primary_n = told.primary ? told.primary_n : 0;
		options.grown = told.grown;
		options.grown_n = told.grown ? told.grown_n : 0;
		err = scsi_map_make(told.translate, &options, &map);
	}
	if (!err && geom_sectors(map.geom) != profile->sectors) {
		geom_free(map.geom);
		err = -EUCLEAN;
	}
	if (!err)
		told_take(profile, &map);
	told_free(&told);
	return err;
}
