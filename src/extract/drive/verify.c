/*
 * verify.c - looks at the beginnings of tracks.
 *
 * Behind a boundary the angle leaps by the skew; half of it is no leap.  What
 * does not obey is looked at again, after so much else that a cache has
 * forgotten it: completions that come late do not come as late a second time.
 */
#include "extract/drive/verify.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/sort.h"
#include "extract/mech/reach.h"
#include "extract/probe/phase.h"

/* Revolutions: an angle may be believed a little wrong, a boundary not. */
#define TOLERANCE 0.04
#define TOLERANCE_NS 120e3	/* or that, if more */
#define LEAST_LEAP 0.03
#define LOOKS 4u
#define OTHERS 48u
#define PICK_TRIES 64u

/* ---- Pairs ---- */

/* First LBNs of known tracks behind known tracks, ascending. */
static unsigned pick(const struct geom *geom, uint32_t unit, uint64_t seed,
		     uint64_t *lbn, unsigned most)
{
	struct geom_track before, track;
	uint64_t tracks = geom_tracks(geom);
	unsigned n = 0, all;

	for (unsigned i = 0; tracks > 1 && i < PICK_TRIES * most && n < most;
	     i++) {
		geom_track_at(geom, 1 + random_next(&seed) % (tracks - 1),
			      &track);
		geom_track_at(geom, track.index - 1, &before);
		if (track.known && before.known && track.first >= unit &&
		    reach_first(&track, unit) + unit <= geom_sectors(geom))
			lbn[n++] = track.first;
	}
	qsort(lbn, n, sizeof(*lbn), sort_u64_cmp);
	/* Where few are known one is met again, and a cache has it. */
	all = n;
	n = 0;
	for (unsigned i = 0; i < all; i++)
		if (!i || lbn[i] != lbn[i - 1])
			lbn[n++] = lbn[i];
	return n;
}

unsigned verify_pick(const struct geom *geom, uint32_t unit, uint64_t seed,
		     struct probe_access *pair, unsigned most)
{
	uint64_t *lbn = calloc(most, sizeof(*lbn));
	unsigned n = lbn ? pick(geom, unit, seed, lbn, most) : 0;

	for (unsigned i = 0; i < n; i++, pair += 2) {
		pair[0].sector = (lbn[i] + unit - 1) / unit * unit;
		pair[1].sector = (lbn[i] - unit) / unit * unit;
		pair[0].sectors = pair[1].sectors = unit;
	}
	free(lbn);
	return n;
}

double verify_zero(const struct geom *geom, double period_ns,
		   const struct probe_access *access)
{
	return phase_part((double)access->complete_ns / period_ns -
			  reach_angle(geom, access->sector, access->sectors));
}

double verify_leap(const struct geom *geom, const struct probe_access *pair)
{
	struct geom_track after;

	geom_track_of(geom, pair[0].sector, &after);
	return phase_wrap(reach_angle(geom, pair[0].sector, 1) -
			  reach_angle(geom, pair[1].sector,
				      pair[1].sectors) -
			  (double)after.per_sector / 4294967296.0);
}

double verify_off(const struct geom *geom, double period_ns,
		  const struct probe_access *pair)
{
	return phase_wrap(verify_zero(geom, period_ns, &pair[1]) -
			  verify_zero(geom, period_ns, &pair[0]));
}

/* ---- Looking ---- */

/* So much else that a cache forgets what was looked at. */
static int read_others(struct prober *prober, uint32_t unit)
{
	uint64_t units = prober->limits->sectors / unit;
	int err = 0;

	for (unsigned i = 0; !err && i < OTHERS; i++) {
		struct probe_access a = {
			.sector = env_random(prober->env) % units * unit,
			.sectors = unit,
		};

		err = prober->access(prober, &a, 1, 1);
	}
	return err;
}

/* Is it wrong?  Without much of a leap it need not show where a track
 * begins. */
static bool judge(const struct geom *geom, double period_ns,
		  const struct probe_access *pair, struct verify *v)
{
	double leap = fabs(verify_leap(geom, pair));
	double off = fabs(verify_off(geom, period_ns, pair));
	double tolerance = fmax(TOLERANCE, TOLERANCE_NS / period_ns);

	if (pair[0].result || pair[1].result) {
		v->unreadable++;
		v->undecided++;
		return false;
	}
	if (leap >= LEAST_LEAP)
		tolerance = fmin(tolerance, leap / 2);
	if (off >= tolerance)
		return true;
	*(leap >= LEAST_LEAP ? &v->right : &v->undecided) += 1;
	return false;
}

/* Downwards: what is read ahead has been read already.  Those that are wrong
 * stay. */
static int look(struct prober *prober, const struct geom *geom,
		double period_ns, struct probe_access *pair, unsigned *n,
		struct verify *v)
{
	unsigned wrong = 0;
	int err = 0;

	for (unsigned i = *n; !err && i-- > 0;)
		err = prober->access(prober, &pair[2 * i], 2, 1);
	for (unsigned i = 0; !err && i < *n; i++) {
		if (!judge(geom, period_ns, &pair[2 * i], v))
			continue;
		pair[2 * wrong] = pair[2 * i];
		pair[2 * wrong++ + 1] = pair[2 * i + 1];
	}
	*n = wrong;
	return err;
}

int verify_boundaries(struct prober *prober, const struct geom *geom,
		      uint64_t period_ps, unsigned n, struct verify *verify)
{
	uint32_t unit = prober->limits->physical_bytes / SECTOR_BYTES;
	struct probe_access *pair = calloc(2 * n + 1, sizeof(*pair));
	int err = pair ? 0 : -ENOMEM;

	*verify = (struct verify){ .first_wrong = UINT64_MAX };
	if (!err)
		n = verify_pick(geom, unit, env_random(prober->env), pair, n);
	for (unsigned i = 0; !err && i < LOOKS && n; i++) {
		err = i ? read_others(prober, unit) : 0;
		if (!err)
			err = look(prober, geom, (double)period_ps / 1e3, pair,
				   &n, verify);
	}
	if (!err && n) {
		verify->wrong = n;
		verify->first_wrong = pair[0].sector;
	}
	free(pair);
	return err;
}
