/*
 * claim.c - a choice of tracks, looked at one by one.
 *
 * The beginning of the disk gets a third, because node tracks and the first
 * files go there; the rest is divided among the stretches of known tracks, a
 * few neighbours in each, so that a place for log records can be found
 * anywhere.  What a look costs is tried first, with reads here and there.
 */
#include "extract/drive/claim.h"

#include <errno.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "extract/drive/verify.h"

#define FIRST_SHARE 3u
#define LEAST_TRACKS 3u		/* of a stretch: two looks, one certain */
#define READS 2u		/* a track */
/* Looking again at what did not fit is not in the estimate. */
#define MARGIN_PERCENT 70u
#define SAMPLES 24u

struct choice {
	const struct geom *geom;
	bool *wanted;		/* by track */
	uint64_t tracks, n;	/* of the geometry; wanted */
};

static bool known(const struct choice *c, uint64_t i)
{
	struct geom_track track;

	geom_track_at(c->geom, i, &track);
	return track.known;
}

/* The end of the stretch of tracks that are known like track i, or not. */
static uint64_t stretch_end(const struct choice *c, uint64_t i)
{
	bool is = known(c, i);

	while (i < c->tracks && known(c, i) == is)
		i++;
	return i;
}

static void want(struct choice *c, uint64_t first, uint64_t n)
{
	for (uint64_t i = first; i < first + n; i++) {
		c->n += !c->wanted[i];
		c->wanted[i] = true;
	}
}

static uint64_t stretches(const struct choice *c)
{
	uint64_t i, n = 0;

	for (i = 0; i < c->tracks; i = stretch_end(c, i))
		n += known(c, i);
	return n;
}

/* At most `most` tracks. */
static void choose(struct choice *c, uint64_t most)
{
	uint64_t first = most / FIRST_SHARE, i, end, n = stretches(c);
	uint64_t each = n ? (most - first) / n : 0, every, k = 0;

	each = each > LEAST_TRACKS ? each : LEAST_TRACKS;
	every = 1 + n * each / (most - first + 1);
	for (i = 0; i < c->tracks && c->n < most; i = end) {
		end = stretch_end(c, i);
		if (!known(c, i) || k++ % every)
			continue;
		n = i ? each : each + first;
		n = n < end - i ? n : end - i;
		want(c, i, n < most - c->n ? n : most - c->n);
	}
}

struct claimed {
	const struct choice *c;
	const bool *bad;
};

static bool is_claimed(void *arg, const struct geom_track *track)
{
	const struct claimed *claimed = arg;

	return claimed->c->wanted[track->index] &&
	       !(claimed->bad && claimed->bad[track->index]);
}

/* The same tracks, of which only those wanted and not bad are known. */
static int build(const struct choice *c, const bool *bad, struct geom **out)
{
	struct claimed claimed = { c, bad };

	return geom_less(c->geom, is_claimed, &claimed, out);
}

/* What a read of it costs, as reads at random places do at most. */
static int sample(struct prober *prober, uint64_t *each_ns)
{
	uint32_t unit = prober->limits->physical_bytes / SECTOR_BYTES;
	uint64_t units = prober->limits->sectors / unit / 64;
	uint64_t begin_ns = env_now_ns(prober->env);
	struct probe_access a;
	int err = 0;

	for (unsigned i = 0; i < SAMPLES && !err; i++) {
		a = (struct probe_access){
			.sector = env_random(prober->env) % units * unit,
			.sectors = unit,
		};
		err = prober->access(prober, &a, 1, 1);
	}
	*each_ns = (env_now_ns(prober->env) - begin_ns) / SAMPLES + 1;
	return err;
}

static int look(struct prober *prober, struct choice *c, uint64_t period_ps,
		uint64_t most_ns, struct geom **claimed)
{
	uint64_t each_ns;
	struct geom *some;
	bool *bad = NULL;
	int err = sample(prober, &each_ns);

	if (err)
		return err;
	choose(c, most_ns / 100 * MARGIN_PERCENT / each_ns / READS);
	err = build(c, NULL, &some);
	if (err)
		return err;
	bad = calloc(c->tracks, sizeof(*bad));
	err = bad ? verify_tracks(prober, some, period_ps, bad, NULL, NULL) :
		    -ENOMEM;
	if (!err)
		err = build(c, bad, claimed);
	free(bad);
	geom_free(some);
	return err;
}

int claim_tracks(struct prober *prober, const struct geom *geom,
		 uint64_t period_ps, uint64_t most_ns, struct geom **claimed)
{
	struct choice c = { .geom = geom, .tracks = geom_tracks(geom) };
	int err;

	c.wanted = calloc(c.tracks, sizeof(*c.wanted));
	if (!c.wanted)
		return -ENOMEM;
	err = look(prober, &c, period_ps, most_ns, claimed);
	free(c.wanted);
	return err;
}
