/*
 * measure.c - period, then tracks, until the time is over.
 *
 * The period gets a quarter of it, the map what is left.
 */
#include "extract/measure.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "extract/pipeline.h"
#include "extract/surface/heads.h"
#include "extract/track/map.h"

#define PERIOD_SHARE 4u
/* The map gets so much of the time that is left: it ends what it has begun. */
#define MAP_PERCENT 90u
#define SURE_PPM 999000u
/* Digits of what is kept of angles. */
#define PRECISION 8

void measure_keep_state(struct profile *p, const struct map *map,
			unsigned done)
{
	json_t *state = map_save(map);
	char *text;

	json_object_set_new(state, "done", json_integer(done));
	text = state ? json_dumps(state, JSON_COMPACT |
					 JSON_REAL_PRECISION(PRECISION)) : NULL;
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

static void keep(struct profile *p)
{
	if (geom_known(p->geom)) {
		profile_found(p, PROFILE_BOUNDARIES, PROFILE_TIMING, SURE_PPM);
		profile_found(p, PROFILE_ANGLES, PROFILE_TIMING, SURE_PPM);
	}
}

void measure_keep_heads(struct profile *p, struct geom *geom,
			uint32_t sure_ppm)
{
	geom_free(p->geom);
	p->geom = geom;
	profile_found(p, PROFILE_SURFACES, PROFILE_TIMING, sure_ppm);
	profile_forget_seeks(p);
}

/* The map knows nothing of surfaces.  Where the profile did, its seeks are by
 * cylinders: tracks stay in theirs, or both mean nothing. */
static int keep_places(struct profile *p, const struct geom *was)
{
	struct geom *geom;
	int err;

	if (!p->part[PROFILE_SURFACES].confidence_ppm)
		return 0;
	err = heads_keep(was, p->geom, &geom);
	if (err)
		return err;
	if (geom) {
		geom_free(p->geom);
		p->geom = geom;
		return 0;
	}
	profile_found(p, PROFILE_SURFACES, PROFILE_NONE, 0);
	profile_forget_seeks(p);
	return 0;
}

int measure_keep(struct profile *profile, const struct map *map)
{
	struct geom *was = profile->geom;
	int err = map_geom(map, &profile->geom);

	if (!err)
		err = keep_places(profile, was);
	if (err) {
		if (profile->geom != was)
			geom_free(profile->geom);
		profile->geom = was;
		return err;
	}
	geom_free(was);
	keep(profile);
	return 0;
}

int measure_recall(const struct profile *profile, struct map *map,
		   unsigned *done)
{
	json_t *state;
	int err;

	*done = 0;
	if (!profile->progress_bytes)
		return -ENOENT;
	state = json_loadb(profile->progress, profile->progress_bytes, 0,
			   NULL);
	err = state ? map_load(map, state) : -EINVAL;
	if (!err)
		*done = (unsigned)json_integer_value(json_object_get(state,
								     "done"));
	json_decref(state);
	return err;
}

static void found(struct profile *p, enum profile_part part, uint32_t ppm)
{
	profile_found(p, part, PROFILE_TIMING, ppm);
}

static int keep_seeks(struct profile *p, const struct mech *m)
{
	struct service_seek *seek = calloc(m->seek_n, sizeof(*seek));

	if (!seek)
		return -ENOMEM;
	memcpy(seek, m->seek, m->seek_n * sizeof(*seek));
	free(p->mech.seek);
	p->mech.seek = seek;
	p->mech.seek_n = m->seek_n;
	return 0;
}

int measure_keep_mech(struct profile *p, const struct mech *m)
{
	int err = m->seek_ppm && m->seek_n ? keep_seeks(p, m) : 0;

	if (err)
		return err;
	p->read_overhead_ns = m->overhead_ns;
	p->write_overhead_ns = m->write_overhead_ppm ? m->write_overhead_ns :
						       m->overhead_ns;
	p->hit_overhead_ns = m->hit_ns;
	p->mech.head_switch_ns = m->head_switch_ns;
	p->mech.write_settle_ns = m->write_settle_ns;
	p->mech.zero_latency_read = m->zero_latency;
	p->mech.zero_latency_write = m->zero_latency;
	p->read_ahead_sectors = m->read_ahead_sectors;
	found(p, PROFILE_OVERHEAD, m->overhead_ppm);
	found(p, PROFILE_SWITCH, m->head_switch_ppm);
	found(p, PROFILE_SETTLE, m->write_settle_ppm);
	found(p, PROFILE_ZERO_LATENCY, m->zero_latency_ppm);
	found(p, PROFILE_READ_AHEAD, m->read_ahead_ppm);
	found(p, PROFILE_SEEK, m->seek_ppm);
	return 0;
}

void measure_keep_period(struct profile *p, const struct prober *prober,
			 uint64_t period_ps)
{
	p->mech.period_ps = period_ps;
	p->physical_bytes = prober->limits->physical_bytes;
	p->made_wall_ns = env_wall_ns(prober->env);
	profile_found(p, PROFILE_PERIOD, PROFILE_TIMING, SURE_PPM);
}

/* A measurement that has to end within a given time. */
struct some {
	struct prober *prober;
	struct measure_options options;
	uint64_t end_ns;	/* when all should be over */
	struct rotation period;
	struct profile *profile; /* NULL: no tracks have been looked for */
};

static bool some_knows(void *arg, enum profile_part part)
{
	const struct some *s = arg;

	if (part == PROFILE_PERIOD)
		return s->period.verdict == PERIOD_GOOD;
	return s->profile && s->profile->part[part].confidence_ppm;
}

static uint64_t some_left_ns(const struct some *s)
{
	uint64_t now_ns = env_now_ns(s->prober->env);

	if (s->options.full)
		return UINT64_MAX;
	return s->end_ns > now_ns ? s->end_ns - now_ns : 0;
}

static void some_begin(void *arg, const char *name)
{
	struct some *s = arg;

	if (s->options.progress)
		s->options.progress(s->options.arg, name, 0);
}

static int some_mapped(const struct map_progress *map, void *arg)
{
	struct some *s = arg;
	double part = s->options.full ?
		(double)map->done_sectors /
			(double)s->prober->limits->sectors :
		1 - (double)some_left_ns(s) / (double)s->options.most_ns;

	if (s->options.progress)
		s->options.progress(s->options.arg, "tracks", part);
	return 0;
}

static int some_period(void *arg)
{
	struct some *s = arg;
	int err = period_measure(s->prober, s->options.full ? 0 :
				 s->options.most_ns / PERIOD_SHARE, &s->period);

	return err ? err : some_left_ns(s) ? 0 : PIPELINE_OVER;
}

static int make_profile(struct some *s, const struct map *map)
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
	measure_keep_period(p, s->prober, s->period.period_ps);
	keep(p);
	measure_keep_state(p, map, 0);
	s->profile = p;
	return 0;
}

static int some_tracks(void *arg)
{
	struct some *s = arg;
	const struct map_options options = {
		.period_ps = s->period.period_ps,
		.progress = some_mapped,
		.arg = s,
	};
	struct map *map;
	int kept, err = map_open(s->prober, &options, &map);

	if (err)
		return err;
	err = s->options.full ?
		map_extract(map, 0, s->prober->limits->sectors) :
		map_quick(map, some_left_ns(s) / 100 * MAP_PERCENT);
	/* What was decided before the interruption is valid. */
	if (err && err != -EIO && err != -EOPNOTSUPP && err != -EINTR) {
		map_close(map);
		return err;
	}
	kept = make_profile(s, map);
	map_close(map);
	return kept || err != -EINTR ? kept : err;
}

int measure_some(struct prober *prober, const struct measure_options *options,
		 enum period_verdict *verdict, struct profile **profile)
{
	static const struct pipeline_host host = {
		.begin = some_begin,
		.knows = some_knows,
		.run = {
			[PIPELINE_PERIOD] = some_period,
			[PIPELINE_TRACKS] = some_tracks,
		},
	};
	struct some s = {
		.prober = prober, .options = *options,
		.end_ns = env_now_ns(prober->env) + options->most_ns,
		.period.verdict = PERIOD_FLAT,
	};
	int err;

	*profile = NULL;
	err = pipeline_run(&host, &s);
	*verdict = s.period.verdict;
	*profile = s.profile;
	return err;
}
