/*
 * scsi_check.c - grown defects and samples.
 */
#include <errno.h>
#include <stdlib.h>

#include "extract/scsi/scsi_check.h"
#include "extract/scsi/scsi_map.h"

/* ---- grown defects ---- */

static bool on_track(const struct translate_place *place,
		     const struct geom_track *track)
{
	return place->address.cylinder == track->cylinder &&
	       place->address.head == track->surface % SCSI_MAP_SURFACES;
}

static void add_remap(struct scsi_check *c, const struct geom_track *track,
		      uint64_t block, const struct scsi_address *to)
{
	struct geom *g = c->geom;
	struct geom_remap remap = {
		.lbn = block * c->unit,
		.n = c->unit,
		.cylinder = to->cylinder,
		.surface = track->surface -
			   track->surface % SCSI_MAP_SURFACES + to->head,
		.sector = to->at * c->unit,
		.around = track->sectors,
	};

	if (g->remaps_n && g->remaps[g->remaps_n - 1].lbn >= remap.lbn)
		return;
	if (remap.sector > remap.around - remap.n)
		remap.sector = remap.around - remap.n;
	g->remaps[g->remaps_n++] = remap;
	c->remaps++;
}

/* The block that was at a sector of a track: is it where the drive put it
 * instead?  Slips before it make its number smaller than the sector's. */
static int try_remap(struct scsi_check *c, const struct geom_track *track,
		     uint32_t at)
{
	uint64_t first = track->first / c->unit, block = first + at;
	struct translate_place place;
	int err;

	if (at >= track->sectors / c->unit)
		return 0;
	err = translate_block(c->ask->translate, block, &place);
	if (!err && on_track(&place, track) && place.address.at > at &&
	    place.address.at - at <= at) {
		block -= place.address.at - at;
		err = translate_block(c->ask->translate, block, &place);
	}
	if (!err && !on_track(&place, track))
		add_remap(c, track, block, &place.address);
	return err == -ENODATA || err == -EIO ? 0 : err;
}

/* The first of the sorted grown defects on a track. */
static size_t grown_on(const struct scsi_address *grown, size_t n,
		       const struct geom_track *track)
{
	size_t lo = 0, hi = n, mid;

	while (lo < hi) {
		const struct scsi_address *a;

		mid = (lo + hi) / 2;
		a = &grown[mid];
		if (a->cylinder < track->cylinder ||
		    (a->cylinder == track->cylinder &&
		     a->head < track->surface % SCSI_MAP_SURFACES))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The geometry has no way from a track's place to its number: one pass over
 * the tracks finds them all, in order. */
static int find_remaps(struct scsi_check *c, const struct scsi_address *grown,
		       size_t n)
{
	struct geom_track track;
	uint64_t i;
	size_t k;
	int err = 0;

	for (i = 0; i < geom_tracks(c->geom) && !err; i++) {
		geom_track_at(c->geom, i, &track);
		if (!track.known)
			continue;
		for (k = grown_on(grown, n, &track);
		     !err && k < n && grown[k].cylinder == track.cylinder &&
		     grown[k].head == track.surface % SCSI_MAP_SURFACES; k++)
			err = try_remap(c, &track, grown[k].at);
	}
	return err;
}

int scsi_check_grown(struct scsi_check *c, const struct scsi_address *grown,
		     size_t n)
{
	struct geom *g = c->geom;
	int err;

	if (!n)
		return 0;
	free(g->remaps);
	g->remaps_n = 0;
	/* A place may be that of two tracks, of two actuators. */
	g->remaps = calloc(SCSI_MAP_ACTUATORS * n, sizeof(*g->remaps));
	if (!g->remaps)
		return -ENOMEM;
	err = find_remaps(c, grown, n);
	if (!err && geom_build_verify(g)) {
		/* Nonsense; the tracks are right all the same. */
		g->remaps_n = 0;
		c->remaps = 0;
		err = geom_build_verify(g) ? -EUCLEAN : 0;
	}
	return err;
}

/* ---- samples ---- */

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* 1: a track's ends are where the geometry says. */
static int track_right(struct scsi_check *c, const struct geom_track *track)
{
	const struct cycle_place place = { track->cylinder,
					   track->surface % SCSI_MAP_SURFACES };
	uint64_t first = track->first / c->unit;
	int rc = ask_begins(c->ask, first, &place, true);

	if (rc == 1)
		rc = ask_begins(c->ask, first + track->sectors / c->unit,
				&place, false);
	return rc;
}

int scsi_check_tracks(struct scsi_check *c, unsigned n)
{
	uint64_t state = c->ask->blocks;
	struct geom_track track;
	int rc;

	while (n--) {
		geom_track_of(c->geom,
			      next_random(&state) % c->ask->blocks * c->unit,
			      &track);
		if (!track.known)
			continue;
		rc = track_right(c, &track);
		if (!rc)
			return -EUCLEAN;
		if (rc < 0 && rc != -ENODATA)
			return rc;
		c->verified += rc == 1;
	}
	return 0;
}
