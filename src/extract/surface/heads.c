/*
 * heads.c - by what tracks look like, then by seeks.
 *
 * A drive in cylinder order shows it by symbols of tracks that come again
 * (cylinders.h).  What is no cylinder order seeks decide (bands.h).
 */
#include "extract/surface/heads.h"

#include <errno.h>

#include "extract/surface/bands.h"
#include "extract/surface/cylinders.h"
#include "extract/surface/place.h"

/* Of known tracks, those that were not known before are too many. */
#define OTHERS_LEAST 8u

int heads_measure(struct prober *prober, uint64_t period_ps, uint64_t most_ns,
		  const struct geom *geom, struct heads *heads,
		  struct geom **out)
{
	struct symbols symbols;
	struct near near;
	int err = symbols_make(geom, prober, &symbols);

	*heads = (struct heads){ 0 };
	*out = NULL;
	if (!err)
		err = cylinders_find(&symbols, geom, prober, heads, out);
	if (!err && !*out && prober) {
		near_begin(&near, prober, geom, (double)period_ps / 1e3,
			   most_ns);
		err = bands_find(&near, &symbols, heads, out);
	}
	symbols_free(&symbols);
	return err;
}

/* ---- Measured anew ---- */

int heads_keep(const struct geom *was, const struct geom *now,
	       struct geom **out)
{
	struct geom_build *b = place_begin(now);
	uint64_t known = 0, others = 0;
	struct geom_track t, old;
	int err = b ? 0 : -ENOMEM;

	*out = NULL;
	for (uint64_t i = 0; i < geom_tracks(now) && !err; i++) {
		geom_track_at(now, i, &t);
		geom_track_of(was, t.first, &old);
		known += t.known;
		others += t.known && (!old.known || old.first != t.first);
		err = place_track(b, &t, old.surface, old.cylinder);
	}
	if (!err && others <= known / OTHERS_LEAST)
		return place_end(b, err, NULL, out);
	geom_build_free(b);
	return err;
}
