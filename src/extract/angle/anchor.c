/*
 * anchor.c - a few reads of one track now and then, and the clock learns.
 */
#include <math.h>

#include "extract/angle/anchor.h"
#include "extract/mech/reach.h"

/* More often at first: the period is not known well. */
#define LOCK_NS UINT64_C(6000000000)
#define LOCK_FIRST_NS UINT64_C(1000000000)
#define LOCKS_FIRST 12u
#define READS 3u

uint64_t anchor_unit(const struct anchor *anchor,
		     const struct geom_track *track)
{
	uint32_t unit = anchor->reader->unit_sectors;

	return reach_first(track, unit) / unit;
}

int anchor_read(struct anchor *anchor, uint64_t unit, double *base)
{
	uint32_t each = anchor->reader->unit_sectors;
	int err = reader_read(anchor->reader, unit, base);

	*base = phase_part(*base - reach_angle(anchor->geom, unit * each,
					       each));
	return err;
}

static double median(const double v[READS])
{
	return fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
}

/* The first ones, where it does not matter how long a revolution of it is
 * believed to be; downwards, as a read-ahead has got what is above. */
static int read_from(struct anchor *anchor, const struct geom_track *track,
		     unsigned from, double *base)
{
	uint64_t n = track->sectors / anchor->reader->unit_sectors;
	double v[READS], one, near = NAN;
	int err = 0;

	for (unsigned i = 0; i < READS && !err; i++) {
		err = anchor_read(anchor, anchor_unit(anchor, track) +
				  (from + READS - 1 - i) %
				  (n > 1 ? n - 1 : 1), &one);
		near = isnan(near) ? one : near;
		v[i] = near + phase_wrap(one - near);
	}
	*base = median(v);
	return err;
}

int anchor_read_some(struct anchor *anchor, const struct geom_track *track,
		     double *base)
{
	return read_from(anchor, track, 0, base);
}

/* All that follows is told by the first ones: of three two may be late. */
int anchor_read_well(struct anchor *anchor, const struct geom_track *track,
		     double *base)
{
	double v[READS], one, near = NAN;
	int err = 0;

	for (unsigned i = 0; i < READS && !err; i++) {
		double w[READS];

		for (unsigned k = 0; k < READS && !err; k++) {
			err = read_from(anchor, track,
					(READS * i + k) * READS, &one);
			near = isnan(near) ? one : near;
			w[k] = near + phase_wrap(one - near);
		}
		v[i] = median(w);
	}
	*base = median(v);
	return err;
}

void anchor_drop(struct anchor *anchor, const struct geom_track *track,
		 double base)
{
	anchor->track = *track;
	anchor->base = base;
	anchor->locks = 0;
	anchor->reader->phase.locked_ns =
		env_now_ns(anchor->reader->prober->env);
}

int anchor_lock(struct anchor *anchor)
{
	struct env *env = anchor->reader->prober->env;
	struct phase *phase = &anchor->reader->phase;
	uint64_t every_ns = anchor->locks < LOCKS_FIRST ? LOCK_FIRST_NS :
							  LOCK_NS;
	double base;
	int err;

	if (env_now_ns(env) < phase->locked_ns + every_ns)
		return 0;
	err = anchor_read_some(anchor, &anchor->track, &base);
	if (err || isnan(base))
		return err;
	phase_correct(phase, env_now_ns(env), phase_wrap(base - anchor->base),
		      anchor->reader->noise);
	anchor->locks++;
	return 0;
}
