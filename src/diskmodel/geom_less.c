/*
 * geom_less.c - makes a geometry in which less is known.
 *
 * It goes over single tracks and finds the patterns again, so its cost grows
 * with the number of tracks.
 */
#include <errno.h>

#include "diskmodel/geom_build.h"

/* Sectors around a track, by its angles: a short track does not go all the way
 * round. */
static uint32_t around(const struct geom_track *track)
{
	uint64_t turn = UINT64_C(1) << 32, step = track->per_sector;
	uint32_t n = step ? (uint32_t)((turn + step / 2) / step) : 0;

	return n > track->sectors ? n : track->sectors;
}

int geom_less(const struct geom *geom,
	      bool (*knows)(void *arg, const struct geom_track *track),
	      void *arg, struct geom **less)
{
	struct geom_build *b = geom_build_new(geom_period_ns(geom),
					      UINT32_MAX / GEOM_LESS_TURNS);
	struct geom_track t;
	int err = b ? 0 : -ENOMEM;

	for (uint64_t i = 0; !err && i < geom_tracks(geom); i++) {
		geom_track_at(geom, i, &t);
		err = geom_build_sweep(b, &(struct geom_sweep){
			.count = 1,
			.sectors = t.sectors,
			.around = around(&t),
			.cylinder = t.cylinder,
			.surface = (int32_t)t.surface,
			.base = t.start,
			.known = t.known && knows(arg, &t),
		});
	}
	if (!err)
		err = geom_build_finish(b, less);
	geom_build_free(b);
	return err;
}
