/*
 * spec.c - reading drive specifications.
 *
 * Tracks are given by zones, or, as a measurement leaves them, one by one
 * ("geometry", spec_tracks.c).  A profile may leave out what was not measured.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/spec_json.h"

/* A specification with more is refused; drives have tens. */
#define MAX_ZONES 4096u

/* ---- parts of a specification ---- */

/* Reads ascending numbers below `end`. */
static void get_list(struct take *f, const json_t *obj, const char *key,
		     uint64_t end, struct spec_list *list)
{
	const json_t *array = take_member(f, obj, key, false);

	if (!array)
		return;
	if (!json_is_array(array)) {
		take_wrong(f, key, "not an array");
		return;
	}
	list->v = take_memory(f, json_array_size(array), sizeof(*list->v));
	for (size_t i = 0; !f->err && i < json_array_size(array); i++) {
		uint64_t v = take_value_count(f, key, json_array_get(array, i),
					      0, end - 1);

		if (i && v <= list->v[i - 1])
			take_wrong(f, key, "not ascending");
		list->v[i] = v;
		list->n = i + 1;
	}
}

static void get_cylinders(struct take *f, const json_t *obj,
			  struct spec_zone *z)
{
	const json_t *v = take_member(f, obj, "cylinders", true);

	if (f->err)
		return;
	if (!json_is_array(v) || json_array_size(v) != 2) {
		take_wrong(f, "cylinders", "not a pair [first, last]");
		return;
	}
	z->first_cylinder = (uint32_t)take_value_count(f, "cylinders",
						       json_array_get(v, 0), 0,
						       GEOM_MAX_CYLINDERS - 1);
	z->last_cylinder = (uint32_t)take_value_count(f, "cylinders",
						      json_array_get(v, 1),
						      z->first_cylinder,
						      GEOM_MAX_CYLINDERS - 1);
}

/* Reads one size for all surfaces, or one for each. */
static void get_around(struct take *f, const json_t *obj,
		       const struct spec *s, struct spec_zone *z)
{
	const char *key = "sectors_per_track";
	const json_t *v = take_member(f, obj, key, true);
	uint32_t max = GEOM_MAX_TRACK_SECTORS / (s->physical_bytes / 512);

	z->around = take_memory(f, s->surfaces, sizeof(*z->around));
	if (f->err)
		return;
	if (json_is_array(v) && json_array_size(v) != s->surfaces)
		take_wrong(f, key, "%zu sizes for %u surfaces",
			   json_array_size(v), s->surfaces);
	for (uint32_t i = 0; !f->err && i < s->surfaces; i++)
		z->around[i] = (uint32_t)take_value_count(f, key,
			json_is_array(v) ? json_array_get(v, i) : v, 1, max);
}

/* Reads the order of surfaces, each of which must come once. */
static void get_surface_order(struct take *f, const json_t *obj,
			      const struct spec *s, struct spec_zone *z)
{
	const char *key = "surface_order";
	const json_t *v = take_member(f, obj, key, false);
	uint32_t i, k;

	if (!v)
		return;
	if (json_array_size(v) != s->surfaces)
		take_wrong(f, key, "not an array of all %u surfaces",
			   s->surfaces);
	z->surface_order = take_memory(f, s->surfaces,
				    sizeof(*z->surface_order));
	for (i = 0; !f->err && i < s->surfaces; i++) {
		z->surface_order[i] = (uint32_t)take_value_count(
			f, key, json_array_get(v, i), 0, s->surfaces - 1);
		for (k = 0; k < i; k++) {
			if (z->surface_order[k] == z->surface_order[i])
				take_wrong(f, key, "%u twice",
					   z->surface_order[i]);
		}
	}
}

static uint64_t zone_sectors(const struct spec *s, const struct spec_zone *z)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->surfaces; i++)
		sum += z->around[i];
	return sum * (z->last_cylinder - z->first_cylinder + 1);
}

static void get_zone(struct take *f, const json_t *obj, const struct spec *s,
		     struct spec_zone *z)
{
	static const char *const keys[] = {
		"cylinders", "sectors_per_track", "track_skew",
		"cylinder_skew", "group_skew", "start", "reserved", "spares",
		"slips", "slipped_tracks", "surface_order", NULL
	};
	static const char *const spares_keys[] = { "zone", "cylinder", "track",
						   NULL };
	const json_t *spares;

	take_keys(f, obj, keys);
	get_cylinders(f, obj, z);
	get_around(f, obj, s, z);
	get_surface_order(f, obj, s, z);
	if (f->err)
		return;
	take_angle(f, obj, "track_skew", &z->track_skew);
	take_angle(f, obj, "cylinder_skew", &z->cylinder_skew);
	z->group_skew = z->cylinder_skew;
	take_angle(f, obj, "group_skew", &z->group_skew);
	z->start_given = json_object_get(obj, "start") != NULL;
	take_angle(f, obj, "start", &z->start);
	take_count(f, obj, "reserved", 0, UINT32_MAX, &z->reserved);
	spares = take_object(f, obj, "spares", spares_keys);
	if (spares) {
		take_count(f, spares, "zone", 0, UINT32_MAX, &z->spares_zone);
		take_count(f, spares, "cylinder", 0, UINT32_MAX,
			   &z->spares_cylinder);
		take_count(f, spares, "track", 0, UINT32_MAX, &z->spares_track);
	}
	get_list(f, obj, "slips", zone_sectors(s, z), &z->slips);
	get_list(f, obj, "slipped_tracks",
		 (z->last_cylinder - z->first_cylinder + 1) *
			 (uint64_t)s->surfaces,
		 &z->slipped_tracks);
}

static void get_zones(struct take *f, const json_t *obj, struct spec *s)
{
	const json_t *array = take_member(f, obj, "zones", true);
	size_t n;

	if (f->err)
		return;
	n = json_array_size(array);
	if (!n || n > MAX_ZONES) {
		take_wrong(f, "zones", "not an array of 1 to %u zones",
			   MAX_ZONES);
		return;
	}
	s->zones = take_memory(f, n, sizeof(*s->zones));
	for (size_t i = 0; !f->err && i < n; i++) {
		struct spec_zone *z = &s->zones[s->zones_n++];

		snprintf(f->where, sizeof(f->where), "zones[%zu].", i);
		if (!json_is_object(json_array_get(array, i)))
			take_wrong(f, "", "not an object");
		else
			get_zone(f, json_array_get(array, i), s, z);
		if (!f->err && i && z->first_cylinder <= z[-1].last_cylinder)
			take_wrong(f, "cylinders", "overlaps the zone before");
		f->where[0] = 0;
	}
}

static void get_remap(struct take *f, const json_t *obj, const struct spec *s,
		      struct spec_remap *r)
{
	static const char *const keys[] = { "lbn", "lbns", "cylinder",
					    "surface", "sector", NULL };
	const json_t *lbn = take_member(f, obj, "lbn", true);

	take_keys(f, obj, keys);
	take_member(f, obj, "cylinder", true);
	take_member(f, obj, "surface", true);
	take_member(f, obj, "sector", true);
	if (f->err)
		return;
	r->lbn = take_value_count(f, "lbn", lbn, 0, GEOM_MAX_SECTORS - 1);
	r->lbns = s->physical_bytes / 512;
	take_count(f, obj, "lbns", 1, GEOM_MAX_TRACK_SECTORS, &r->lbns);
	take_count(f, obj, "cylinder", 0, GEOM_MAX_CYLINDERS - 1, &r->cylinder);
	take_count(f, obj, "surface", 0, s->surfaces - 1, &r->surface);
	take_count(f, obj, "sector", 0, GEOM_MAX_TRACK_SECTORS, &r->sector);
}

static void get_remaps(struct take *f, const json_t *obj, struct spec *s)
{
	const json_t *array = take_member(f, obj, "remaps", false);
	size_t n = json_array_size(array);

	if (!array)
		return;
	s->remaps = take_memory(f, n, sizeof(*s->remaps));
	for (size_t i = 0; !f->err && i < n; i++) {
		struct spec_remap *r = &s->remaps[s->remaps_n++];

		snprintf(f->where, sizeof(f->where), "remaps[%zu].", i);
		get_remap(f, json_array_get(array, i), s, r);
		if (!f->err && i && r->lbn < r[-1].lbn + r[-1].lbns)
			take_wrong(f, "lbn", "not ascending");
		f->where[0] = 0;
	}
}

static void get_seek(struct take *f, const json_t *obj, bool partial,
		     struct spec *s)
{
	const json_t *array = take_member(f, obj, "seek", !partial);
	size_t n = json_array_size(array);

	if (!array)
		return;
	if (!f->err && (!n || n > UINT16_MAX))
		take_wrong(f, "seek", "not an array of [cylinders, ms]");
	s->mech.seek = take_memory(f, n, sizeof(*s->mech.seek));
	for (size_t i = 0; !f->err && i < n; i++) {
		const json_t *pair = json_array_get(array, i);
		struct service_seek *p = &s->mech.seek[i];

		p->cylinders = (uint32_t)take_value_count(f, "seek",
			json_array_get(pair, 0), 1, GEOM_MAX_CYLINDERS);
		p->ns = (uint64_t)llround(NS_PER_MS * take_value_number(f,
			"seek", json_array_get(pair, 1), 1e-3, TAKE_MAX_MS));
		if (!f->err && i && p->cylinders <= p[-1].cylinders)
			take_wrong(f, "seek", "cylinders not ascending");
		s->mech.seek_n = (uint32_t)i + 1;
	}
}

static void get_period(struct take *f, const json_t *obj, bool partial,
		       struct spec *s)
{
	double ms = 0, rpm = 0;

	take_number(f, obj, "revolution_ms", 1000, &ms);
	take_number(f, obj, "rpm", 1e6, &rpm);
	if (!ms && rpm)
		ms = 60000 / rpm;
	if (ms < 0.06 && (ms > 0 || !partial))
		take_wrong(f, "revolution_ms", "missing or too small");
	s->mech.period_ps = (uint64_t)llround(ms * 1e9);
}

static void get_noise(struct take *f, const json_t *obj, struct spec_noise *n)
{
	static const char *const keys[] = {
		"normal_ms", "exponential_ms", "late", "late_min_ms",
		"late_max_ms", NULL
	};
	const json_t *o = take_object(f, obj, "noise", keys);

	take_ms(f, o, "normal_ms", &n->normal_ns);
	take_ms(f, o, "exponential_ms", &n->exponential_ns);
	take_number(f, o, "late", 1, &n->late);
	take_ms(f, o, "late_min_ms", &n->late_min_ns);
	take_ms(f, o, "late_max_ms", &n->late_max_ns);
	if (n->late_max_ns < n->late_min_ns)
		take_wrong(f, "noise", "late_max_ms is less than late_min_ms");
}

static void get_mechanics(struct take *f, const json_t *obj, bool partial,
			  struct spec *s)
{
	static const char *const overhead_keys[] = { "read_ms", "write_ms",
						     "hit_ms", NULL };
	static const char *const zero_keys[] = { "read", "write", NULL };
	static const char *const jitter_keys[] = { "seek_ms", "overhead_ms",
						   NULL };
	const json_t *o;
	double mb = 0;

	get_period(f, obj, partial, s);
	get_seek(f, obj, partial, s);
	take_ms(f, obj, "head_switch_ms", &s->mech.head_switch_ns);
	take_ms(f, obj, "write_settle_ms", &s->mech.write_settle_ns);
	take_number(f, obj, "bus_mb_per_s", 1e6, &mb);
	s->mech.bus_bytes_per_s = (uint64_t)llround(mb * 1e6);
	o = take_object(f, obj, "overhead", overhead_keys);
	take_ms(f, o, "read_ms", &s->read_overhead_ns);
	take_ms(f, o, "write_ms", &s->write_overhead_ns);
	take_ms(f, o, "hit_ms", &s->hit_overhead_ns);
	o = take_object(f, obj, "zero_latency", zero_keys);
	take_bool(f, o, "read", &s->mech.zero_latency_read);
	take_bool(f, o, "write", &s->mech.zero_latency_write);
	o = take_object(f, obj, "jitter", jitter_keys);
	take_ms(f, o, "seek_ms", &s->seek_jitter_ns);
	take_ms(f, o, "overhead_ms", &s->overhead_jitter_ns);
	get_noise(f, obj, &s->noise);
}

static void get_electronics(struct take *f, const json_t *obj, struct spec *s)
{
	static const char *const cache_keys[] = {
		"segments", "segment_lbns", "read_ahead_lbns",
		"read_ahead_moves", "write_lbns", NULL
	};
	static const char *const queue_keys[] = { "policy", "depth", NULL };
	static const char *const power_keys[] = { "idle_w", "active_w",
						  "seek_w", NULL };
	static const char *const policies[] = { "fcfs", "sstf", "sptf", NULL };
	unsigned policy = SPEC_FCFS;
	const json_t *o;

	o = take_object(f, obj, "cache", cache_keys);
	take_count(f, o, "segments", 0, 4096, &s->cache_segments);
	take_count(f, o, "segment_lbns", 1, UINT32_MAX, &s->segment_lbns);
	take_count(f, o, "read_ahead_lbns", 0, UINT32_MAX, &s->read_ahead_lbns);
	take_bool(f, o, "read_ahead_moves", &s->read_ahead_moves);
	take_count(f, o, "write_lbns", 0, UINT32_MAX, &s->write_cache_lbns);
	if (s->cache_segments && !s->segment_lbns)
		take_wrong(f, "cache", "segments without segment_lbns");
	o = take_object(f, obj, "queue", queue_keys);
	take_word(f, o, "policy", policies, &policy);
	s->policy = (enum spec_policy)policy;
	take_count(f, o, "depth", 1, 4096, &s->depth);
	o = take_object(f, obj, "power", power_keys);
	take_number(f, o, "idle_w", 1000, &s->idle_w);
	take_number(f, o, "active_w", 1000, &s->active_w);
	take_number(f, o, "seek_w", 1000, &s->seek_w);
}

static void get_sizes(struct take *f, const json_t *obj, struct spec *s)
{
	static const char *const orders[] = { "cylinder",
					      "cylinder-serpentine",
					      "serpentine", NULL };
	const json_t *v = take_member(f, obj, "name", false);
	static const char *const directions[] = {
		"alternate", "alternate-outwards", "inwards", "outwards", NULL
	};
	unsigned order = SPEC_CYLINDER, direction = SPEC_ALTERNATE;

	s->name = strdup(json_is_string(v) ? json_string_value(v) : f->file);
	if (!s->name)
		take_no_memory(f);
	s->logical_bytes = s->physical_bytes = 512;
	s->depth = 1;
	s->group_cylinders = 1;
	take_count(f, obj, "logical_bytes", 512, 4096, &s->logical_bytes);
	take_count(f, obj, "physical_bytes", 512, 4096, &s->physical_bytes);
	if ((s->logical_bytes != 512 && s->logical_bytes != 4096) ||
	    (s->physical_bytes != 512 && s->physical_bytes != 4096) ||
	    s->logical_bytes > s->physical_bytes)
		take_wrong(f, "physical_bytes", "neither 512 nor 4096, or less "
		      "than logical_bytes");
	v = take_member(f, obj, "lbns", false);
	if (v)
		s->lbns = take_value_count(f, "lbns", v, 1, GEOM_MAX_SECTORS);
	take_member(f, obj, "surfaces", !json_object_get(obj, "geometry"));
	take_count(f, obj, "surfaces", 1, GEOM_MAX_SURFACES - 1, &s->surfaces);
	take_word(f, obj, "order", orders, &order);
	s->order = (enum spec_order)order;
	take_count(f, obj, "group_cylinders", 1, GEOM_MAX_CYLINDERS - 1,
		   &s->group_cylinders);
	take_bool(f, obj, "alternate_surfaces", &s->alternate_surfaces);
	take_word(f, obj, "direction", directions, &direction);
	s->direction = (enum spec_direction)direction;
}

static void get_spec(struct take *f, const json_t *obj, bool partial,
		     struct spec *s)
{
	static const char *const keys[] = {
		"name", "identity", "measured", "logical_bytes",
		"physical_bytes", "lbns", "surfaces", "order",
		"group_cylinders", "alternate_surfaces", "revolution_ms",
		"rpm", "seek", "head_switch_ms", "write_settle_ms", "overhead",
		"zero_latency", "bus_mb_per_s", "cache", "queue", "jitter",
		"noise", "direction", "power", "zones", "remaps", "geometry",
		NULL
	};
	const json_t *tracks;

	if (!json_is_object(obj)) {
		take_wrong(f, "", "not an object");
		return;
	}
	take_keys(f, obj, keys);
	get_sizes(f, obj, s);
	get_mechanics(f, obj, partial, s);
	get_electronics(f, obj, s);
	tracks = take_member(f, obj, "geometry", false);
	if (!tracks) {
		get_zones(f, obj, s);
		get_remaps(f, obj, s);
		return;
	}
	if (json_object_get(obj, "zones") || json_object_get(obj, "remaps"))
		take_wrong(f, "geometry", "excludes zones and remaps");
	s->geom = spec_take_geom(f, tracks, s->mech.period_ps / 1000);
	if (s->geom && s->lbns && s->lbns != geom_sectors(s->geom))
		take_wrong(f, "lbns", "the geometry has %ju",
			   (uintmax_t)geom_sectors(s->geom));
}

int spec_take(const json_t *root, const char *name, bool partial,
	      struct spec **spec)
{
	struct take f = { .file = name };
	struct spec *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	get_spec(&f, root, partial, s);
	if (f.err) {
		spec_free(s);
		return f.err;
	}
	*spec = s;
	return 0;
}

int spec_parse(const char *text, const char *name, struct spec **spec)
{
	int err;
	json_t *root = take_text(text, name, &err);

	if (root)
		err = spec_take(root, name, false, spec);
	json_decref(root);
	return err;
}

int spec_read(const char *path, struct spec **spec)
{
	int err;
	json_t *root = take_file(path, &err);

	if (root)
		err = spec_take(root, path, false, spec);
	json_decref(root);
	return err;
}

void spec_free(struct spec *spec)
{
	if (!spec)
		return;
	for (size_t i = 0; i < spec->zones_n; i++) {
		free(spec->zones[i].around);
		free(spec->zones[i].surface_order);
		free(spec->zones[i].slips.v);
		free(spec->zones[i].slipped_tracks.v);
	}
	free(spec->zones);
	geom_free(spec->geom);
	free(spec->remaps);
	free(spec->mech.seek);
	free(spec->name);
	free(spec);
}
