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
#include "diskmodel/geom_build.h"

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

struct keeping {
	const struct geom *was;
	uint64_t known, others;
};

static void keep(void *arg, const struct geom_track *track,
		 struct geom_sweep *sweep)
{
	struct keeping *k = arg;
	struct geom_track old;

	geom_track_of(k->was, track->first, &old);
	k->known += track->known;
	k->others += track->known && (!old.known || old.first != track->first);
	sweep->surface = (int32_t)old.surface;
	sweep->cylinder = old.cylinder;
}

int heads_keep(const struct geom *was, const struct geom *now,
	       struct geom **out)
{
	struct keeping k = { .was = was };
	int err = geom_change(now, &(struct geom_changer){
		.change = keep, .arg = &k }, out);

	if (!err && k.others > k.known / OTHERS_LEAST) {
		geom_free(*out);
		*out = NULL;
	}
	return err;
}
