/*
 * scsi_check.c - grown defects and samples.
 */
#include <errno.h>

#include "extract/scsi_check.h"
#include "extract/scsi_map.h"

/* ---- grown defects ---- */

/* Is this block where the drive put it, instead of on its track? */
static int try_remap(struct scsi_check *c, const struct geom_track *track,
		     uint64_t block, struct geom_build *build)
{
	uint32_t head = track->surface % SCSI_MAP_SURFACES;
	struct translate_place place;
	struct geom_remap remap;
	int err = translate_block(c->ask->translate, block, &place);

	if (err)
		return err;
	if (place.address.cylinder == track->cylinder &&
	    place.address.head == head)
		return 0;
	remap = (struct geom_remap){
		.lbn = block * c->unit,
		.n = c->unit,
		.cylinder = place.address.cylinder,
		.surface = track->surface - head + place.address.head,
		.sector = place.address.at * c->unit,
		.around = track->sectors,
	};
	if (remap.sector > remap.around - remap.n)
		remap.sector = remap.around - remap.n;
	err = geom_build_remap(build, &remap);
	if (!err)
		c->remaps++;
	return err;
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
int scsi_check_grown(struct scsi_check *c, const struct scsi_address *grown,
		     size_t n, struct geom_build *build)
{
	struct geom_track track;
	uint64_t i;
	size_t k;
	int err = 0;

	for (i = 0; n && i < geom_tracks(c->geom) && !err; i++) {
		geom_track_at(c->geom, i, &track);
		if (!track.known)
			continue;
		for (k = grown_on(grown, n, &track);
		     !err && k < n && grown[k].cylinder == track.cylinder &&
		     grown[k].head == track.surface % SCSI_MAP_SURFACES; k++)
			if (grown[k].at < track.sectors / c->unit)
				err = try_remap(c, &track,
						track.first / c->unit +
							grown[k].at, build);
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

/* 1: both ends of a track are where the geometry says. */
static int track_right(struct scsi_check *c, const struct geom_track *track)
{
	const struct cycle_place place = { track->cylinder,
					   track->surface % SCSI_MAP_SURFACES };
	uint64_t first = track->first / c->unit;
	int rc = ask_begins(c->ask, first, &place, true);

	return rc == 1 ? ask_begins(c->ask, first + track->sectors / c->unit,
				    &place, false) : rc;
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
