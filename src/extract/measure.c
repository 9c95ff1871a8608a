/*
 * measure.c - period, then tracks, until the time is over.
 *
 * The period gets a quarter of it.  Nothing is believed that was not decided
 * by the map itself, so a map that breaks off is merely smaller.
 */
#include "extract/measure.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "extract/map.h"

#define PERIOD_SHARE 4u
#define SURE_PPM 999000u

static void found(struct profile *profile, enum profile_part part)
{
	profile->part[part].method = PROFILE_TIMING;
	profile->part[part].confidence_ppm = SURE_PPM;
}

/* The state of measuring; NULL with bytes 0 when there is no room for it. */
static void keep_progress(struct profile *p, const struct map *map, bool whole)
{
	json_t *state = map_save(map);
	char *text;

	if (whole)
		json_object_set_new(state, "whole", json_true());
	text = state ? json_dumps(state, JSON_COMPACT) : NULL;
	json_decref(state);
	free(p->progress);
	p->progress = text;
	p->progress_bytes = text ? strlen(text) : 0;
	if (p->progress_bytes <= PROFILE_MAX_PROGRESS)
		return;
	free(text);
	p->progress = NULL;
	p->progress_bytes = 0;
}

static void keep(struct profile *p, const struct map *map, bool whole)
{
	if (geom_known(p->geom)) {
		found(p, PROFILE_BOUNDARIES);
		found(p, PROFILE_ANGLES);
	}
	keep_progress(p, map, whole);
}

int measure_keep(struct profile *profile, const struct map *map, bool whole)
{
	struct geom *geom;
	int err = map_geom(map, &geom);

	if (err)
		return err;
	geom_free(profile->geom);
	profile->geom = geom;
	keep(profile, map, whole);
	return 0;
}

int measure_recall(const struct profile *profile, struct map *map, bool *whole)
{
	json_t *state;
	int err;

	*whole = false;
	if (!profile->progress_bytes)
		return -ENOENT;
	state = json_loadb(profile->progress, profile->progress_bytes, 0,
			   NULL);
	err = state ? map_load(map, state) : -EINVAL;
	*whole = !err && json_is_true(json_object_get(state, "whole"));
	json_decref(state);
	return err;
}

static int make_profile(struct prober *prober, const struct map *map,
			uint64_t period_ps, struct profile **profile)
{
	struct geom *geom;
	struct profile *p;
	int err = map_geom(map, &geom);

	if (err)
		return err;
	p = profile_from_geom(geom, PROFILE_TIMING);
	if (!p) {
		geom_free(geom);
		return -ENOMEM;
	}
	p->mech.period_ps = period_ps;
	p->physical_bytes = prober->limits->physical_bytes;
	p->made_wall_ns = env_wall_ns(prober->env);
	found(p, PROFILE_PERIOD);
	keep(p, map, false);
	*profile = p;
	return 0;
}

static int make_map(struct prober *prober, uint64_t period_ps,
		    uint64_t most_ns, bool full, struct profile **profile)
{
	const struct map_options options = { .period_ps = period_ps };
	struct map *map;
	int err = map_open(prober, &options, &map);

	if (err)
		return err;
	err = full ? map_extract(map, 0, prober->limits->sectors) :
		     map_quick(map, most_ns);
	/* What has been decided until then holds. */
	if (!err || err == -EIO || err == -EOPNOTSUPP)
		err = make_profile(prober, map, period_ps, profile);
	map_close(map);
	return err;
}

int measure_some(struct prober *prober, uint64_t most_ns, bool full,
		 enum period_verdict *verdict, struct profile **profile)
{
	uint64_t begin_ns = env_now_ns(prober->env), took_ns;
	struct period period;
	int err;

	*profile = NULL;
	err = period_measure(prober, full ? 0 : most_ns / PERIOD_SHARE,
			     &period);
	if (err)
		return err;
	*verdict = period.verdict;
	took_ns = env_now_ns(prober->env) - begin_ns;
	if (period.verdict != PERIOD_GOOD || (!full && took_ns >= most_ns))
		return 0;
	return make_map(prober, period.period_ps, most_ns - took_ns, full,
			profile);
}
