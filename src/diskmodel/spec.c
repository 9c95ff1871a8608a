/*
 * spec.c - reading drive specifications.
 *
 * The first thing found wrong is reported and ends it: `struct from` carries
 * the error along, and every function does nothing once there is one.  Unknown
 * keys are errors (a misspelt one would otherwise be a silent default), except
 * those meant for people.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/spec.h"

#define MS 1e6			/* in nanoseconds */
#define MAX_ZONES 4096u
#define MAX_MS 1e5

/* Where we are in the file, and whether something was wrong. */
struct from {
	const char *file;
	char where[48];		/* "zones[3]." */
	int err;
};

static void __attribute__((format(printf, 3, 4)))
wrong(struct from *f, const char *key, const char *fmt, ...)
{
	char why[200];
	va_list ap;

	if (f->err)
		return;
	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	msg_error("%s: %s%s: %s", f->file, f->where, key, why);
	f->err = -EINVAL;
}

static void no_memory(struct from *f)
{
	if (!f->err)
		f->err = -ENOMEM;
}

static void *allocate(struct from *f, size_t n, size_t each)
{
	void *p = f->err ? NULL : calloc(n ? n : 1, each);

	if (!p)
		no_memory(f);
	return p;
}

/* Every key must be in the list, which ends with NULL. */
static void known_keys(struct from *f, const json_t *obj,
		       const char *const *keys)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)obj, key, value) {
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], key))
			i++;
		if (!keys[i] && strcmp(key, "comment"))
			wrong(f, key, "unknown key");
	}
}

/* A member that must be there if `needed`; NULL otherwise. */
static json_t *member(struct from *f, const json_t *obj, const char *key,
		      bool needed)
{
	json_t *v = f->err ? NULL : json_object_get(obj, key);

	if (!v && needed)
		wrong(f, key, "missing");
	return v;
}

static double value_number(struct from *f, const char *key, const json_t *v,
			   double lo, double hi)
{
	double x;

	if (!json_is_number(v)) {
		wrong(f, key, "not a number");
		return lo;
	}
	x = json_number_value(v);
	if (!(x >= lo && x <= hi)) {
		wrong(f, key, "%g is not between %g and %g", x, lo, hi);
		return lo;
	}
	return x;
}

static uint64_t value_count(struct from *f, const char *key, const json_t *v,
			    uint64_t lo, uint64_t hi)
{
	json_int_t x;

	if (!json_is_integer(v)) {
		wrong(f, key, "not a whole number");
		return lo;
	}
	x = json_integer_value(v);
	if (x < 0 || (uint64_t)x < lo || (uint64_t)x > hi) {
		wrong(f, key, "%lld is not between %ju and %ju", (long long)x,
		      (uintmax_t)lo, (uintmax_t)hi);
		return lo;
	}
	return (uint64_t)x;
}

/* Optional ones leave *out as it is. */
static void get_number(struct from *f, const json_t *obj, const char *key,
		       double hi, double *out)
{
	const json_t *v = member(f, obj, key, false);

	if (v)
		*out = value_number(f, key, v, 0, hi);
}

static void get_ms(struct from *f, const json_t *obj, const char *key,
		   uint64_t *out_ns)
{
	const json_t *v = member(f, obj, key, false);

	if (v)
		*out_ns = (uint64_t)llround(
			value_number(f, key, v, 0, MAX_MS) * MS);
}

static void get_count(struct from *f, const json_t *obj, const char *key,
		      uint32_t lo, uint32_t hi, uint32_t *out)
{
	const json_t *v = member(f, obj, key, false);

	if (v)
		*out = (uint32_t)value_count(f, key, v, lo, hi);
}

static void get_bool(struct from *f, const json_t *obj, const char *key,
		     bool *out)
{
	const json_t *v = member(f, obj, key, false);

	if (v && !json_is_boolean(v))
		wrong(f, key, "neither true nor false");
	else if (v)
		*out = json_is_true(v);
}

/* A member that is an object, its keys checked; NULL when absent. */
static const json_t *get_object(struct from *f, const json_t *obj,
				const char *key, const char *const *keys)
{
	const json_t *v = member(f, obj, key, false);

	if (v && !json_is_object(v)) {
		wrong(f, key, "not an object");
		return NULL;
	}
	if (v)
		known_keys(f, v, keys);
	return v;
}

/* Revolutions: a number, or a string "a/b", which is exact. */
static angle value_angle(struct from *f, const char *key, const json_t *v)
{
	unsigned long long a, b;
	double revs;
	int end = 0;

	if (json_is_string(v)) {
		if (sscanf(json_string_value(v), "%llu/%llu%n", &a, &b,
			   &end) < 2 || json_string_value(v)[end] || !b ||
		    a >= b || b > GEOM_MAX_TRACK_SECTORS) {
			wrong(f, key, "not a fraction of a revolution");
			return 0;
		}
		return (angle)(((a << 32) + b / 2) / b);
	}
	revs = value_number(f, key, v, 0, 1);
	return (angle)(uint64_t)llround(revs * 4294967296.0);
}

static void get_angle(struct from *f, const json_t *obj, const char *key,
		      angle *out)
{
	const json_t *v = member(f, obj, key, false);

	if (v)
		*out = value_angle(f, key, v);
}

/* One of the words, which end with NULL; its number. */
static void get_word(struct from *f, const json_t *obj, const char *key,
		     const char *const *words, unsigned *out)
{
	const json_t *v = member(f, obj, key, false);
	unsigned i;

	if (!v)
		return;
	for (i = 0; json_is_string(v) && words[i]; i++) {
		if (!strcmp(words[i], json_string_value(v))) {
			*out = i;
			return;
		}
	}
	wrong(f, key, "not one of %s, %s%s%s", words[0], words[1],
	      words[2] ? ", " : "", words[2] ? words[2] : "");
}

/* ---- parts of a specification ---- */

/* Ascending numbers below `end`. */
static void get_list(struct from *f, const json_t *obj, const char *key,
		     uint64_t end, struct spec_list *list)
{
	const json_t *array = member(f, obj, key, false);

	if (!array)
		return;
	if (!json_is_array(array)) {
		wrong(f, key, "not an array");
		return;
	}
	list->v = allocate(f, json_array_size(array), sizeof(*list->v));
	for (size_t i = 0; !f->err && i < json_array_size(array); i++) {
		uint64_t v = value_count(f, key, json_array_get(array, i), 0,
					 end - 1);

		if (i && v <= list->v[i - 1])
			wrong(f, key, "not ascending");
		list->v[i] = v;
		list->n = i + 1;
	}
}

static void get_cylinders(struct from *f, const json_t *obj,
			  struct spec_zone *z)
{
	const json_t *v = member(f, obj, "cylinders", true);

	if (f->err)
		return;
	if (!json_is_array(v) || json_array_size(v) != 2) {
		wrong(f, "cylinders", "not a pair [first, last]");
		return;
	}
	z->first_cylinder = (uint32_t)value_count(
		f, "cylinders", json_array_get(v, 0), 0,
		GEOM_MAX_CYLINDERS - 1);
	z->last_cylinder = (uint32_t)value_count(
		f, "cylinders", json_array_get(v, 1), z->first_cylinder,
		GEOM_MAX_CYLINDERS - 1);
}

/* One size for all surfaces, or one for each. */
static void get_around(struct from *f, const json_t *obj,
		       const struct spec *s, struct spec_zone *z)
{
	const char *key = "sectors_per_track";
	const json_t *v = member(f, obj, key, true);
	uint32_t max = GEOM_MAX_TRACK_SECTORS / (s->physical_bytes / 512);

	z->around = allocate(f, s->surfaces, sizeof(*z->around));
	if (f->err)
		return;
	if (json_is_array(v) && json_array_size(v) != s->surfaces)
		wrong(f, key, "%zu sizes for %u surfaces", json_array_size(v),
		      s->surfaces);
	for (uint32_t i = 0; !f->err && i < s->surfaces; i++)
		z->around[i] = (uint32_t)value_count(
			f, key, json_is_array(v) ? json_array_get(v, i) : v, 1,
			max);
}

/* All surfaces, each once. */
static void get_surface_order(struct from *f, const json_t *obj,
			      const struct spec *s, struct spec_zone *z)
{
	const char *key = "surface_order";
	const json_t *v = member(f, obj, key, false);
	uint32_t i, k;

	if (!v)
		return;
	if (json_array_size(v) != s->surfaces)
		wrong(f, key, "not an array of all %u surfaces", s->surfaces);
	z->surface_order = allocate(f, s->surfaces,
				    sizeof(*z->surface_order));
	for (i = 0; !f->err && i < s->surfaces; i++) {
		z->surface_order[i] = (uint32_t)value_count(
			f, key, json_array_get(v, i), 0, s->surfaces - 1);
		for (k = 0; k < i; k++) {
			if (z->surface_order[k] == z->surface_order[i])
				wrong(f, key, "%u twice", z->surface_order[i]);
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

static void get_zone(struct from *f, const json_t *obj, const struct spec *s,
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

	known_keys(f, obj, keys);
	get_cylinders(f, obj, z);
	get_around(f, obj, s, z);
	get_surface_order(f, obj, s, z);
	if (f->err)
		return;
	get_angle(f, obj, "track_skew", &z->track_skew);
	get_angle(f, obj, "cylinder_skew", &z->cylinder_skew);
	z->group_skew = z->cylinder_skew;
	get_angle(f, obj, "group_skew", &z->group_skew);
	z->start_given = json_object_get(obj, "start") != NULL;
	get_angle(f, obj, "start", &z->start);
	get_count(f, obj, "reserved", 0, UINT32_MAX, &z->reserved);
	spares = get_object(f, obj, "spares", spares_keys);
	if (spares) {
		get_count(f, spares, "zone", 0, UINT32_MAX, &z->spares_zone);
		get_count(f, spares, "cylinder", 0, UINT32_MAX,
			  &z->spares_cylinder);
		get_count(f, spares, "track", 0, UINT32_MAX, &z->spares_track);
	}
	get_list(f, obj, "slips", zone_sectors(s, z), &z->slips);
	get_list(f, obj, "slipped_tracks",
		 (z->last_cylinder - z->first_cylinder + 1) *
			 (uint64_t)s->surfaces,
		 &z->slipped_tracks);
}

static void get_zones(struct from *f, const json_t *obj, struct spec *s)
{
	const json_t *array = member(f, obj, "zones", true);
	size_t n;

	if (f->err)
		return;
	n = json_array_size(array);
	if (!n || n > MAX_ZONES) {
		wrong(f, "zones", "not an array of 1 to %u zones", MAX_ZONES);
		return;
	}
	s->zones = allocate(f, n, sizeof(*s->zones));
	for (size_t i = 0; !f->err && i < n; i++) {
		struct spec_zone *z = &s->zones[s->zones_n++];

		snprintf(f->where, sizeof(f->where), "zones[%zu].", i);
		if (!json_is_object(json_array_get(array, i)))
			wrong(f, "", "not an object");
		else
			get_zone(f, json_array_get(array, i), s, z);
		if (!f->err && i && z->first_cylinder <= z[-1].last_cylinder)
			wrong(f, "cylinders", "overlaps the zone before");
		f->where[0] = 0;
	}
}

static void get_remap(struct from *f, const json_t *obj, const struct spec *s,
		      struct spec_remap *r)
{
	static const char *const keys[] = { "lbn", "lbns", "cylinder",
					    "surface", "sector", NULL };
	const json_t *lbn = member(f, obj, "lbn", true);

	known_keys(f, obj, keys);
	member(f, obj, "cylinder", true);
	member(f, obj, "surface", true);
	member(f, obj, "sector", true);
	if (f->err)
		return;
	r->lbn = value_count(f, "lbn", lbn, 0, GEOM_MAX_SECTORS - 1);
	r->lbns = s->physical_bytes / 512;
	get_count(f, obj, "lbns", 1, GEOM_MAX_TRACK_SECTORS, &r->lbns);
	get_count(f, obj, "cylinder", 0, GEOM_MAX_CYLINDERS - 1, &r->cylinder);
	get_count(f, obj, "surface", 0, s->surfaces - 1, &r->surface);
	get_count(f, obj, "sector", 0, GEOM_MAX_TRACK_SECTORS, &r->sector);
}

static void get_remaps(struct from *f, const json_t *obj, struct spec *s)
{
	const json_t *array = member(f, obj, "remaps", false);
	size_t n = json_array_size(array);

	if (!array)
		return;
	s->remaps = allocate(f, n, sizeof(*s->remaps));
	for (size_t i = 0; !f->err && i < n; i++) {
		struct spec_remap *r = &s->remaps[s->remaps_n++];

		snprintf(f->where, sizeof(f->where), "remaps[%zu].", i);
		get_remap(f, json_array_get(array, i), s, r);
		if (!f->err && i && r->lbn < r[-1].lbn + r[-1].lbns)
			wrong(f, "lbn", "not ascending");
		f->where[0] = 0;
	}
}

static void get_seek(struct from *f, const json_t *obj, struct spec *s)
{
	const json_t *array = member(f, obj, "seek", true);
	size_t n = json_array_size(array);

	if (!f->err && (!n || n > UINT16_MAX))
		wrong(f, "seek", "not an array of [cylinders, ms]");
	s->mech.seek = allocate(f, n, sizeof(*s->mech.seek));
	for (size_t i = 0; !f->err && i < n; i++) {
		const json_t *pair = json_array_get(array, i);
		struct service_seek *p = &s->mech.seek[i];

		p->cylinders = (uint32_t)value_count(
			f, "seek", json_array_get(pair, 0), 1,
			GEOM_MAX_CYLINDERS);
		p->ns = (uint64_t)llround(MS * value_number(f, "seek",
			json_array_get(pair, 1), 1e-3, MAX_MS));
		if (!f->err && i && p->cylinders <= p[-1].cylinders)
			wrong(f, "seek", "cylinders not ascending");
		s->mech.seek_n = (uint32_t)i + 1;
	}
}

static void get_period(struct from *f, const json_t *obj, struct spec *s)
{
	double ms = 0, rpm = 0;

	get_number(f, obj, "revolution_ms", 1000, &ms);
	get_number(f, obj, "rpm", 1e6, &rpm);
	if (!ms && rpm)
		ms = 60000 / rpm;
	if (ms < 0.06)
		wrong(f, "revolution_ms", "missing or too small");
	s->mech.period_ps = (uint64_t)llround(ms * 1e9);
}

static void get_noise(struct from *f, const json_t *obj, struct spec_noise *n)
{
	static const char *const keys[] = {
		"normal_ms", "exponential_ms", "late", "late_min_ms",
		"late_max_ms", NULL
	};
	const json_t *o = get_object(f, obj, "noise", keys);

	get_ms(f, o, "normal_ms", &n->normal_ns);
	get_ms(f, o, "exponential_ms", &n->exponential_ns);
	get_number(f, o, "late", 1, &n->late);
	get_ms(f, o, "late_min_ms", &n->late_min_ns);
	get_ms(f, o, "late_max_ms", &n->late_max_ns);
	if (n->late_max_ns < n->late_min_ns)
		wrong(f, "noise", "late_max_ms is less than late_min_ms");
}

static void get_mechanics(struct from *f, const json_t *obj, struct spec *s)
{
	static const char *const overhead_keys[] = { "read_ms", "write_ms",
						     "hit_ms", NULL };
	static const char *const zero_keys[] = { "read", "write", NULL };
	static const char *const jitter_keys[] = { "seek_ms", "overhead_ms",
						   NULL };
	const json_t *o;
	double mb = 0;

	get_period(f, obj, s);
	get_seek(f, obj, s);
	get_ms(f, obj, "head_switch_ms", &s->mech.head_switch_ns);
	get_ms(f, obj, "write_settle_ms", &s->mech.write_settle_ns);
	get_number(f, obj, "bus_mb_per_s", 1e6, &mb);
	s->mech.bus_bytes_per_s = (uint64_t)llround(mb * 1e6);
	o = get_object(f, obj, "overhead", overhead_keys);
	get_ms(f, o, "read_ms", &s->read_overhead_ns);
	get_ms(f, o, "write_ms", &s->write_overhead_ns);
	get_ms(f, o, "hit_ms", &s->hit_overhead_ns);
	o = get_object(f, obj, "zero_latency", zero_keys);
	get_bool(f, o, "read", &s->mech.zero_latency_read);
	get_bool(f, o, "write", &s->mech.zero_latency_write);
	o = get_object(f, obj, "jitter", jitter_keys);
	get_ms(f, o, "seek_ms", &s->seek_jitter_ns);
	get_ms(f, o, "overhead_ms", &s->overhead_jitter_ns);
	get_noise(f, obj, &s->noise);
}

static void get_electronics(struct from *f, const json_t *obj, struct spec *s)
{
	static const char *const cache_keys[] = {
		"segments", "segment_lbns", "read_ahead_lbns", "write_lbns",
		NULL
	};
	static const char *const queue_keys[] = { "policy", "depth", NULL };
	static const char *const power_keys[] = { "idle_w", "active_w",
						  "seek_w", NULL };
	static const char *const policies[] = { "fcfs", "sstf", "sptf", NULL };
	unsigned policy = SPEC_FCFS;
	const json_t *o;

	o = get_object(f, obj, "cache", cache_keys);
	get_count(f, o, "segments", 0, 4096, &s->cache_segments);
	get_count(f, o, "segment_lbns", 1, UINT32_MAX, &s->segment_lbns);
	get_count(f, o, "read_ahead_lbns", 0, UINT32_MAX, &s->read_ahead_lbns);
	get_count(f, o, "write_lbns", 0, UINT32_MAX, &s->write_cache_lbns);
	if (s->cache_segments && !s->segment_lbns)
		wrong(f, "cache", "segments without segment_lbns");
	o = get_object(f, obj, "queue", queue_keys);
	get_word(f, o, "policy", policies, &policy);
	s->policy = (enum spec_policy)policy;
	get_count(f, o, "depth", 1, 4096, &s->depth);
	o = get_object(f, obj, "power", power_keys);
	get_number(f, o, "idle_w", 1000, &s->idle_w);
	get_number(f, o, "active_w", 1000, &s->active_w);
	get_number(f, o, "seek_w", 1000, &s->seek_w);
}

static void get_sizes(struct from *f, const json_t *obj, struct spec *s)
{
	static const char *const orders[] = { "cylinder",
					      "cylinder-serpentine",
					      "serpentine", NULL };
	const json_t *v = member(f, obj, "name", false);
	static const char *const directions[] = {
		"alternate", "alternate-outwards", "inwards", "outwards", NULL
	};
	unsigned order = SPEC_CYLINDER, direction = SPEC_ALTERNATE;

	s->name = strdup(json_is_string(v) ? json_string_value(v) : f->file);
	if (!s->name)
		no_memory(f);
	s->logical_bytes = s->physical_bytes = 512;
	s->depth = 1;
	s->group_cylinders = 1;
	get_count(f, obj, "logical_bytes", 512, 4096, &s->logical_bytes);
	get_count(f, obj, "physical_bytes", 512, 4096, &s->physical_bytes);
	if ((s->logical_bytes != 512 && s->logical_bytes != 4096) ||
	    (s->physical_bytes != 512 && s->physical_bytes != 4096) ||
	    s->logical_bytes > s->physical_bytes)
		wrong(f, "physical_bytes", "neither 512 nor 4096, or less "
		      "than logical_bytes");
	v = member(f, obj, "lbns", false);
	if (v)
		s->lbns = value_count(f, "lbns", v, 1, GEOM_MAX_SECTORS);
	member(f, obj, "surfaces", true);
	get_count(f, obj, "surfaces", 1, GEOM_MAX_SURFACES - 1, &s->surfaces);
	get_word(f, obj, "order", orders, &order);
	s->order = (enum spec_order)order;
	get_count(f, obj, "group_cylinders", 1, GEOM_MAX_CYLINDERS - 1,
		  &s->group_cylinders);
	get_bool(f, obj, "alternate_surfaces", &s->alternate_surfaces);
	get_word(f, obj, "direction", directions, &direction);
	s->direction = (enum spec_direction)direction;
}

static void get_spec(struct from *f, const json_t *obj, struct spec *s)
{
	static const char *const keys[] = {
		"name", "identity", "measured", "logical_bytes",
		"physical_bytes", "lbns", "surfaces", "order",
		"group_cylinders", "alternate_surfaces", "revolution_ms",
		"rpm", "seek", "head_switch_ms", "write_settle_ms", "overhead",
		"zero_latency", "bus_mb_per_s", "cache", "queue", "jitter",
		"noise", "direction", "power", "zones", "remaps", NULL
	};

	if (!json_is_object(obj)) {
		wrong(f, "", "not an object");
		return;
	}
	known_keys(f, obj, keys);
	get_sizes(f, obj, s);
	get_mechanics(f, obj, s);
	get_electronics(f, obj, s);
	get_zones(f, obj, s);
	get_remaps(f, obj, s);
}

/* Takes `root`, which is NULL when it could not be parsed. */
static int from_json(json_t *root, const json_error_t *error, const char *name,
		     struct spec **spec)
{
	struct from f = { .file = name };
	struct spec *s;

	if (!root) {
		if (error->line > 0)
			msg_error("%s:%d: %s", name, error->line, error->text);
		else
			msg_error("%s: %s", name, error->text);
		return -EINVAL;
	}
	s = calloc(1, sizeof(*s));
	if (s)
		get_spec(&f, root, s);
	json_decref(root);
	if (!s || f.err) {
		spec_free(s);
		return s ? f.err : -ENOMEM;
	}
	*spec = s;
	return 0;
}

int spec_parse(const char *text, const char *name, struct spec **spec)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	return from_json(root, &error, name, spec);
}

int spec_read(const char *path, struct spec **spec)
{
	json_error_t error;
	json_t *root;
	FILE *f = fopen(path, "re");
	int err;

	if (!f) {
		err = -errno;
		msg_error("%s: %s", path, strerror(errno));
		return err;
	}
	root = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
	fclose(f);
	return from_json(root, &error, path, spec);
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
	free(spec->remaps);
	free(spec->mech.seek);
	free(spec->name);
	free(spec);
}
