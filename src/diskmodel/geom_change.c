/*
 * geom_change.c - makes a geometry of the same tracks, otherwise placed.
 *
 * It goes over single tracks and finds the patterns again, so its cost grows
 * with the number of tracks.
 */
#include <errno.h>

#include "diskmodel/geom_build.h"

/* Number of tracks between two calls of pause(). */
#define PAUSE_TRACKS 2048u

uint32_t geom_around(const struct geom_track *track)
{
	uint64_t turn = UINT64_C(1) << 32, step = track->per_sector;

	return step ? (uint32_t)((turn + step / 2) / step) : track->sectors;
}

static int change_all(const struct geom *geom,
		      const struct geom_changer *changer, struct geom_build *b)
{
	int err = 0;

	for (uint64_t i = 0; !err && i < geom_tracks(geom); i++) {
		struct geom_track t;
		struct geom_sweep s = { .count = 1 };
		int32_t more, idle;

		if (changer->pause && i % PAUSE_TRACKS == PAUSE_TRACKS - 1)
			changer->pause(changer->pause_arg);
		geom_track_at(geom, i, &t);
		s.around = geom_around(&t);
		s.cylinder = t.cylinder;
		s.surface = (int32_t)t.surface;
		s.base = t.start;
		s.known = t.known;
		changer->change(changer->arg, &t, &s);
		more = geom_more(geom, i);
		/* It is no odd one among larger ones if those hold no more. */
		idle = s.around > t.sectors ? (int32_t)(s.around - t.sectors) :
					      0;
		more = more < -idle ? -idle : more;
		s.sectors = t.sectors - (uint32_t)more;
		s.around = s.around > s.sectors ? s.around : s.sectors;
		if (more)
			err = geom_build_odd(b, i, more);
		if (!err)
			err = geom_build_sweep(b, &s);
	}
	return err;
}

int geom_change(const struct geom *geom, const struct geom_changer *changer,
		struct geom **changed)
{
	struct geom_build *b = geom_build_new(geom_period_ns(geom),
					      UINT32_MAX / GEOM_CHANGE_TURNS);
	int err = b ? change_all(geom, changer, b) : -ENOMEM;

	if (!err) {
		geom_build_pause(b, changer->pause, changer->pause_arg);
		err = geom_build_finish(b, changed);
	}
	geom_build_free(b);
	return err;
}

struct less {
	bool (*knows)(void *arg, const struct geom_track *track);
	void *arg;
};

static void make_less(void *arg, const struct geom_track *track,
		      struct geom_sweep *sweep)
{
	const struct less *less = arg;

	sweep->known = track->known && less->knows(less->arg, track);
}

int geom_less(const struct geom *geom,
	      bool (*knows)(void *arg, const struct geom_track *track),
	      void *arg, struct geom **less)
{
	struct less l = { knows, arg };

	return geom_change(geom, &(struct geom_changer){
		.change = make_less, .arg = &l }, less);
}
