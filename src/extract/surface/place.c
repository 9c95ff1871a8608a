/*
 * place.c - tracks one by one, as sweeps of one.
 */
#include "extract/surface/place.h"

#include <math.h>

/* Of a turn: angles that are no further apart may be kept as one. */
#define TOLERANCE (UINT32_MAX / 1000)

uint32_t place_around(const struct geom_track *track)
{
	return track->known && track->per_sector ?
		       (uint32_t)lrint(0x1p32 / track->per_sector) : 0;
}

struct geom_build *place_begin(const struct geom *geom)
{
	return geom_build_new(geom_period_ns(geom), TOLERANCE);
}

int place_track(struct geom_build *build, const struct geom_track *track,
		uint32_t surface, int64_t cylinder)
{
	uint32_t around = place_around(track);

	return geom_build_sweep(build, &(struct geom_sweep){
		.count = 1,
		.sectors = track->sectors,
		.around = around > track->sectors ? around : track->sectors,
		.cylinder = cylinder,
		.surface = (int32_t)surface,
		.base = track->start,
		.known = track->known,
	});
}

int place_end(struct geom_build *build, int err, struct prober *prober,
	      struct geom **out)
{
	if (!err) {
		geom_build_pause(build, prober_pause_now, prober);
		err = geom_build_finish(build, out);
	}
	geom_build_free(build);
	return err;
}
