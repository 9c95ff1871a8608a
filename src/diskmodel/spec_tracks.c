/*
 * spec_tracks.c - the tracks of a geometry one by one, as JSON.
 *
 * The members are those of struct geom (geom_build.h), so reading back gives
 * the same geometry: patterns of sweeps, runs that follow them, and lists of
 * irregularities. Members that are 0 are left out. All lengths are in LBNs;
 * angles have ten decimals, finer than 2^-32.
 *
 * Nothing that is read is trusted: geom_build_verify decides.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "diskmodel/geom_build.h"
#include "diskmodel/spec_json.h"

/* Bounds as signed numbers: steps may be negative. */
#define CYLINDERS ((int64_t)GEOM_MAX_CYLINDERS)
#define SURFACES ((int64_t)GEOM_MAX_SURFACES)
/* Bound of places: a run's pattern may begin outside the disk. */
#define MANY (4 * CYLINDERS)

/* ---- Reading ---- */

static void take_sweep(struct take *f, const json_t *obj,
		       struct geom_sweep *s)
{
	static const char *const keys[] = {
		"tracks", "sectors", "around", "cylinder", "surface", "angle",
		"cylinder_step", "surface_step", "angle_step", "known", NULL
	};
	int64_t surface = 0, cylinder_step = 0, surface_step = 0;

	take_keys(f, obj, keys);
	take_member(f, obj, "sectors", true);
	s->count = 1;
	s->known = true;
	take_count(f, obj, "tracks", 1, GEOM_MAX_CYLINDERS, &s->count);
	take_count(f, obj, "sectors", 1, GEOM_MAX_TRACK_SECTORS, &s->sectors);
	s->around = s->sectors;
	take_count(f, obj, "around", 1, GEOM_MAX_TRACK_SECTORS, &s->around);
	take_signed(f, obj, "cylinder", -MANY, MANY, &s->cylinder);
	take_signed(f, obj, "surface", -MANY, MANY, &surface);
	take_angle(f, obj, "angle", &s->base);
	take_signed(f, obj, "cylinder_step", -CYLINDERS, CYLINDERS,
		    &cylinder_step);
	take_signed(f, obj, "surface_step", -SURFACES, SURFACES,
		    &surface_step);
	take_angle(f, obj, "angle_step", &s->base_step);
	take_bool(f, obj, "known", &s->known);
	s->surface = (int32_t)surface;
	s->cylinder_step = (int32_t)cylinder_step;
	s->surface_step = (int32_t)surface_step;
}

static void take_pattern(struct take *f, const json_t *obj, struct geom *g,
			 struct geom_pattern *p)
{
	static const char *const keys[] = { "cylinder_step", "surface_step",
					    "angle_step", "sweeps", NULL };
	const json_t *sweeps = take_array(f, obj, "sweeps");
	int64_t surface_step = 0;

	take_keys(f, obj, keys);
	take_signed(f, obj, "cylinder_step", -CYLINDERS, CYLINDERS,
		    &p->cylinder_step);
	take_signed(f, obj, "surface_step", -SURFACES, SURFACES,
		    &surface_step);
	p->surface_step = (int32_t)surface_step;
	take_angle(f, obj, "angle_step", &p->base_step);
	p->part = g->parts_n;
	p->parts = (uint32_t)json_array_size(sweeps);
	for (uint32_t i = 0; !f->err && i < p->parts; i++)
		take_sweep(f, json_array_get(sweeps, i),
			   &g->parts[g->parts_n++].sweep);
}

static void take_patterns(struct take *f, const json_t *obj, struct geom *g)
{
	const json_t *array = take_array(f, obj, "patterns");
	size_t n = json_array_size(array), parts = 0;

	for (size_t i = 0; i < n; i++)
		parts += json_array_size(json_object_get(
			json_array_get(array, i), "sweeps"));
	g->patterns = take_memory(f, n, sizeof(*g->patterns));
	g->parts = take_memory(f, parts, sizeof(*g->parts));
	for (size_t i = 0; !f->err && i < n; i++) {
		snprintf(f->where, sizeof(f->where),
			 "geometry.patterns[%zu].", i);
		take_pattern(f, json_array_get(array, i), g,
			     &g->patterns[g->patterns_n++]);
	}
}

static void take_run(struct take *f, const json_t *obj, struct geom_run *r)
{
	static const char *const keys[] = { "pattern", "skip", "tracks",
					    "cylinder", "surface", "angle",
					    NULL };
	int64_t phase = 0, count = 0, surface = 0;

	take_keys(f, obj, keys);
	take_member(f, obj, "tracks", true);
	take_count(f, obj, "pattern", 0, UINT32_MAX, &r->pattern);
	take_signed(f, obj, "skip", 0, GEOM_MAX_SECTORS, &phase);
	take_signed(f, obj, "tracks", 1, GEOM_MAX_SECTORS, &count);
	take_signed(f, obj, "cylinder", -MANY, MANY, &r->cylinder);
	take_signed(f, obj, "surface", -MANY, MANY, &surface);
	take_angle(f, obj, "angle", &r->base);
	r->phase = (uint64_t)phase;
	r->count = (uint64_t)count;
	r->surface = (int32_t)surface;
}

static void take_runs(struct take *f, const json_t *obj, struct geom *g)
{
	const json_t *array = take_array(f, obj, "runs");
	size_t n = json_array_size(array);

	g->runs = take_memory(f, n, sizeof(*g->runs));
	for (size_t i = 0; !f->err && i < n; i++) {
		snprintf(f->where, sizeof(f->where), "geometry.runs[%zu].", i);
		take_run(f, json_array_get(array, i), &g->runs[g->runs_n++]);
	}
}

/* The k-th number of a row of a list. */
static uint64_t row_count(struct take *f, const char *key, const json_t *row,
			  size_t k, uint64_t hi)
{
	return take_value_count(f, key, json_array_get(row, k), 0, hi);
}

static void take_odds(struct take *f, const json_t *obj, struct geom *g)
{
	const json_t *array = take_array(f, obj, "odd_tracks"), *row;
	const int64_t most = GEOM_MAX_TRACK_SECTORS;
	size_t n = json_array_size(array);

	g->odds = take_memory(f, n, sizeof(*g->odds));
	for (size_t i = 0; !f->err && i < n; i++) {
		row = json_array_get(array, i);
		g->odds[g->odds_n++] = (struct geom_odd){
			.track = row_count(f, "odd_tracks", row, 0,
					   GEOM_MAX_SECTORS),
			.more = (int32_t)take_value_signed(f, "odd_tracks",
					json_array_get(row, 1), -most, most),
		};
	}
}

static void take_slips(struct take *f, const json_t *obj, struct geom *g)
{
	const json_t *array = take_array(f, obj, "slips"), *row;
	const uint64_t most = GEOM_MAX_TRACK_SECTORS;
	size_t n = json_array_size(array);

	g->slips = take_memory(f, n, sizeof(*g->slips));
	for (size_t i = 0; !f->err && i < n; i++) {
		row = json_array_get(array, i);
		g->slips[g->slips_n++] = (struct geom_slip){
			.track = row_count(f, "slips", row, 0,
					   GEOM_MAX_SECTORS),
			.at = (uint32_t)row_count(f, "slips", row, 1, most),
			.n = (uint32_t)row_count(f, "slips", row, 2, most),
		};
	}
}

static void take_moved(struct take *f, const json_t *obj, struct geom *g)
{
	const char *key = "remaps";
	const json_t *array = take_array(f, obj, key), *row;
	const uint64_t most = GEOM_MAX_TRACK_SECTORS;
	size_t n = json_array_size(array);

	g->remaps = take_memory(f, n, sizeof(*g->remaps));
	for (size_t i = 0; !f->err && i < n; i++) {
		row = json_array_get(array, i);
		g->remaps[g->remaps_n++] = (struct geom_remap){
			.lbn = row_count(f, key, row, 0, GEOM_MAX_SECTORS),
			.n = (uint32_t)row_count(f, key, row, 1, most),
			.cylinder = (uint32_t)row_count(f, key, row, 2,
							GEOM_MAX_CYLINDERS),
			.surface = (uint32_t)row_count(f, key, row, 3,
						       GEOM_MAX_SURFACES),
			.sector = (uint32_t)row_count(f, key, row, 4, most),
			.around = (uint32_t)row_count(f, key, row, 5, most),
			.start = take_value_angle(f, key,
						  json_array_get(row, 6)),
		};
	}
}

struct geom *spec_take_geom(struct take *f, const json_t *obj,
			    uint64_t period_ns)
{
	static const char *const keys[] = { "patterns", "runs", "odd_tracks",
					    "slips", "remaps", NULL };
	struct geom *g = take_memory(f, 1, sizeof(*g));
	const char *why;

	if (!g)
		return NULL;
	if (!json_is_object(obj))
		take_wrong(f, "geometry", "not an object");
	take_keys(f, obj, keys);
	g->period_ns = period_ns;
	take_patterns(f, obj, g);
	take_runs(f, obj, g);
	snprintf(f->where, sizeof(f->where), "geometry.");
	take_odds(f, obj, g);
	take_slips(f, obj, g);
	take_moved(f, obj, g);
	f->where[0] = 0;
	why = f->err ? "" : geom_build_verify(g);
	if (why) {
		take_wrong(f, "geometry", "%s", why);
		geom_free(g);
		return NULL;
	}
	return g;
}

/* ---- Writing ---- */

static void write_count(FILE *f, const char *key, int64_t v)
{
	if (v)
		fprintf(f, ", \"%s\": %" PRId64, key, v);
}

static void write_angle(FILE *f, const char *key, angle a)
{
	if (a)
		fprintf(f, ", \"%s\": %.10f", key, a / 4294967296.0);
}

static void write_sweep(FILE *f, const struct geom_sweep *s)
{
	fprintf(f, "{ \"tracks\": %u, \"sectors\": %u", s->count, s->sectors);
	if (s->around != s->sectors)
		write_count(f, "around", s->around);
	write_count(f, "cylinder", s->cylinder);
	write_count(f, "surface", s->surface);
	write_angle(f, "angle", s->base);
	if (s->count > 1) {
		write_count(f, "cylinder_step", s->cylinder_step);
		write_count(f, "surface_step", s->surface_step);
		write_angle(f, "angle_step", s->base_step);
	}
	fprintf(f, "%s }", s->known ? "" : ", \"known\": false");
}

static void write_pattern(FILE *f, const struct geom *g,
			  const struct geom_pattern *p)
{
	fprintf(f, "\n      { \"sweeps\": [");
	for (uint32_t i = 0; i < p->parts; i++) {
		fprintf(f, "%s", i ? ",\n          " : "\n          ");
		write_sweep(f, &g->parts[p->part + i].sweep);
	}
	fprintf(f, " ]");
	write_count(f, "cylinder_step", p->cylinder_step);
	write_count(f, "surface_step", p->surface_step);
	write_angle(f, "angle_step", p->base_step);
	fprintf(f, " }");
}

static void write_run(FILE *f, const struct geom_run *r)
{
	fprintf(f, "\n      { \"pattern\": %u, \"tracks\": %" PRIu64,
		r->pattern, r->count);
	write_count(f, "skip", (int64_t)r->phase);
	write_count(f, "cylinder", r->cylinder);
	write_count(f, "surface", r->surface);
	write_angle(f, "angle", r->base);
	fprintf(f, " }");
}

/* Begins row i of a list with `line` rows to a line of text. */
static void write_between(FILE *f, const char *key, uint32_t i, uint32_t line)
{
	if (!i)
		fprintf(f, ",\n    \"%s\": [\n      [", key);
	else
		fprintf(f, i % line ? ", [" : ",\n      [");
}

static void write_lists(FILE *f, const struct geom *g)
{
	for (uint32_t i = 0; i < g->odds_n; i++) {
		write_between(f, "odd_tracks", i, 5);
		fprintf(f, "%" PRIu64 ", %d]", g->odds[i].track,
			g->odds[i].more);
	}
	fprintf(f, g->odds_n ? "]" : "");
	for (uint32_t i = 0; i < g->slips_n; i++) {
		write_between(f, "slips", i, 4);
		fprintf(f, "%" PRIu64 ", %u, %u]", g->slips[i].track,
			g->slips[i].at, g->slips[i].n);
	}
	fprintf(f, g->slips_n ? "]" : "");
	for (uint32_t i = 0; i < g->remaps_n; i++) {
		const struct geom_remap *r = &g->remaps[i];

		write_between(f, "remaps", i, 1);
		fprintf(f, "%" PRIu64 ", %u, %u, %u, %u, %u, %.10f]", r->lbn,
			r->n, r->cylinder, r->surface, r->sector, r->around,
			r->start / 4294967296.0);
	}
	fprintf(f, g->remaps_n ? "]" : "");
}

void spec_write_geom(const struct geom *geom, FILE *f)
{
	fprintf(f, "  \"geometry\": {\n    \"patterns\": [");
	for (uint32_t i = 0; i < geom->patterns_n; i++) {
		if (i)
			putc(',', f);
		write_pattern(f, geom, &geom->patterns[i]);
	}
	fprintf(f, "],\n    \"runs\": [");
	for (uint32_t i = 0; i < geom->runs_n; i++) {
		if (i)
			putc(',', f);
		write_run(f, &geom->runs[i]);
	}
	fprintf(f, "]");
	write_lists(f, geom);
	fprintf(f, " }");
}
