/*
 * profile.c - profiles in memory and as files.
 *
 * The file is that of a specification (spec.h) with two keys more: whose
 * profile it is, and for each part of it how it was found and how certain that
 * is. Without them it is a specification, and everything in it is given.
 */
#include "diskmodel/profile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/msg.h"
#include "base/units.h"
#include "diskmodel/geom_build.h"
#include "diskmodel/spec_json.h"

/* Bounds of a period: 60 us to 1 s, that is 1,000,000 to 60 revolutions a
 * minute.  All bounds are far outside of what drives have; they refuse damaged
 * records. */
#define MIN_PERIOD_PS UINT64_C(60000000)
#define MAX_PERIOD_PS UINT64_C(1000000000000)
/* Longest seek, settling time or overhead. */
#define MAX_NS (100 * NS_PER_SECOND)
#define MAX_W 1000.0	/* Most watts of a drive. */

static const char *const methods[PROFILE_METHODS + 1] = {
	"none", "given", "timing", "scsi", "trace", NULL
};

static const char *const parts[PROFILE_PARTS] = {
	"period", "boundaries", "angles", "seek", "switch", "settle",
	"overhead", "zero_latency", "read_ahead", "surfaces"
};

const char *profile_method_name(enum profile_method method)
{
	return methods[method];
}

const char *profile_part_name(enum profile_part part)
{
	return parts[part];
}

/* ---- Bounds ---- */

static const char *text_verify(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	if (n == room)
		return "a text without end";
	for (size_t i = 0; i < n; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return "an identity that is not plain text";
	}
	return NULL;
}

static const char *seek_verify(const struct service_mech *m)
{
	if (m->seek_n > UINT16_MAX || (m->seek_n && !m->seek))
		return "a seek curve of too many points";
	for (uint32_t i = 0; i < m->seek_n; i++) {
		const struct service_seek *p = &m->seek[i];

		if (!p->cylinders || p->cylinders > GEOM_MAX_CYLINDERS ||
		    !p->ns || p->ns > MAX_NS)
			return "a seek out of range";
		if (i && p->cylinders <= p[-1].cylinders)
			return "seeks out of order";
	}
	return NULL;
}

static bool power_fits(double w)
{
	return w >= 0 && w <= MAX_W;
}

static const char *mech_verify(const struct profile *p)
{
	const struct service_mech *m = &p->mech;

	if (m->period_ps &&
	    (m->period_ps < MIN_PERIOD_PS || m->period_ps > MAX_PERIOD_PS))
		return "a period out of range";
	if (m->head_switch_ns > MAX_NS || m->write_settle_ns > MAX_NS ||
	    p->read_overhead_ns > MAX_NS || p->write_overhead_ns > MAX_NS ||
	    p->hit_overhead_ns > MAX_NS)
		return "a time out of range";
	if (!power_fits(p->idle_w) || !power_fits(p->active_w) ||
	    !power_fits(p->seek_w))
		return "a power out of range";
	return seek_verify(m);
}

const char *profile_verify(const struct profile *profile)
{
	const char *why = text_verify(profile->model, sizeof(profile->model));

	if (!why)
		why = text_verify(profile->serial, sizeof(profile->serial));
	if (!why)
		why = text_verify(profile->firmware,
				  sizeof(profile->firmware));
	if (why)
		return why;
	if (profile->sectors != geom_sectors(profile->geom))
		return "a geometry of another size";
	if (profile->physical_bytes < SPEC_SECTOR_BYTES ||
	    profile->physical_bytes > GEOM_MAX_TRACK_SECTORS ||
	    profile->physical_bytes & (profile->physical_bytes - 1))
		return "a physical sector that is no power of two";
	for (int i = 0; i < PROFILE_PARTS; i++) {
		if (profile->part[i].method >= PROFILE_METHODS ||
		    profile->part[i].confidence_ppm > PROFILE_CERTAIN_PPM)
			return "a part found in no known way";
	}
	if (profile->progress_bytes > PROFILE_MAX_PROGRESS)
		return "a state of measuring that is too long";
	return mech_verify(profile);
}

/* ---- Making ---- */

void profile_found(struct profile *p, enum profile_part part,
		   enum profile_method how, uint32_t ppm)
{
	p->part[part].method = ppm ? how : PROFILE_NONE;
	p->part[part].confidence_ppm = ppm;
}

void profile_forget_seeks(struct profile *p)
{
	profile_found(p, PROFILE_SEEK, PROFILE_NONE, 0);
	free(p->mech.seek);
	p->mech.seek = NULL;
	p->mech.seek_n = 0;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	geom_free(profile->geom);
	free(profile->mech.seek);
	free(profile->progress);
	free(profile);
}

static void *duplicate(const void *from, size_t bytes)
{
	void *to = malloc(bytes ? bytes : 1);

	if (to && bytes)
		memcpy(to, from, bytes);
	return to;
}

int profile_copy(const struct profile *profile, struct profile **copy)
{
	struct profile *p = duplicate(profile, sizeof(*p));
	size_t seek = profile->mech.seek_n * sizeof(*profile->mech.seek);
	int err = -ENOMEM;

	if (!p)
		return -ENOMEM;
	p->geom = NULL;
	p->progress = NULL;
	p->mech.seek = duplicate(profile->mech.seek, seek);
	if (profile->progress_bytes)
		p->progress = duplicate(profile->progress,
					profile->progress_bytes);
	if (p->mech.seek && (p->progress || !p->progress_bytes))
		err = geom_copy(profile->geom, &p->geom);
	if (err) {
		profile_free(p);
		return err;
	}
	*copy = p;
	return 0;
}

struct profile *profile_from_geom(struct geom *geom, enum profile_method how)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->geom = geom;
	p->sectors = geom_sectors(geom);
	p->physical_bytes = SPEC_SECTOR_BYTES;
	if (!geom_known(geom))
		return p;
	p->part[PROFILE_BOUNDARIES].method = how;
	p->part[PROFILE_BOUNDARIES].confidence_ppm = PROFILE_CERTAIN_PPM;
	p->part[PROFILE_ANGLES] = p->part[PROFILE_BOUNDARIES];
	return p;
}

/* Copies as much of a text as fits; characters that are not printable become
 * question marks. */
static void set_text(char *out, size_t room, const char *text)
{
	size_t n = strnlen(text, room - 1);

	for (size_t i = 0; i < n; i++)
		out[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
	out[n] = 0;
}

static void set_mechanics(const struct spec *spec, struct profile *p)
{
	struct service_seek *seek = p->mech.seek;

	p->mech = spec->mech;
	p->mech.seek = seek;
	p->mech.phase_ns = 0;
	p->mech.phase = 0;
	p->read_overhead_ns = spec->read_overhead_ns;
	p->write_overhead_ns = spec->write_overhead_ns;
	p->hit_overhead_ns = spec->hit_overhead_ns;
	p->read_ahead_sectors = spec->read_ahead_lbns;
	p->idle_w = spec->idle_w;
	p->active_w = spec->active_w;
	p->seek_w = spec->seek_w;
}

int profile_from_spec(const struct spec *spec, struct profile **profile)
{
	size_t seek = spec->mech.seek_n * sizeof(*spec->mech.seek);
	struct profile *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->mech.seek = duplicate(spec->mech.seek, seek);
	err = p->mech.seek ? spec_geom(spec, &p->geom) : -ENOMEM;
	if (err) {
		profile_free(p);
		return err;
	}
	set_mechanics(spec, p);
	set_text(p->model, sizeof(p->model), spec->name);
	p->sectors = geom_sectors(p->geom);
	p->physical_bytes = spec->physical_bytes;
	for (int i = 0; i < PROFILE_PARTS; i++) {
		p->part[i].method = PROFILE_GIVEN;
		p->part[i].confidence_ppm = PROFILE_CERTAIN_PPM;
	}
	*profile = p;
	return 0;
}

/* ---- Reading ---- */

static void read_identity(struct take *f, const json_t *root,
			  struct profile *p)
{
	static const char *const keys[] = { "model", "serial", "firmware",
					    NULL };
	const json_t *o = take_object(f, root, "identity", keys);

	if (!o)
		return;
	p->model[0] = 0;
	take_string(f, o, "model", p->model, sizeof(p->model));
	take_string(f, o, "serial", p->serial, sizeof(p->serial));
	take_string(f, o, "firmware", p->firmware, sizeof(p->firmware));
}

static void read_date(struct take *f, const json_t *o, struct profile *p)
{
	char text[32] = "";
	struct tm tm = { 0 };
	const char *end;

	take_string(f, o, "date", text, sizeof(text));
	if (!text[0])
		return;
	end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (!end || *end)
		take_wrong(f, "date", "not like 2026-11-21T08:00:00Z");
	else
		p->made_wall_ns = (int64_t)timegm(&tm) * NS_PER_SECOND;
}

static void read_part(struct take *f, const json_t *o, struct profile *p,
		      int part)
{
	static const char *const keys[] = { "method", "confidence", NULL };
	unsigned method = PROFILE_NONE;
	double confidence = 0;

	o = take_object(f, o, parts[part], keys);
	take_word(f, o, "method", methods, &method);
	take_number(f, o, "confidence", 1, &confidence);
	p->part[part].method = (enum profile_method)method;
	p->part[part].confidence_ppm = (uint32_t)lround(
		confidence * PROFILE_CERTAIN_PPM);
}

static void read_measured(struct take *f, const json_t *root,
			  struct profile *p)
{
	const char *keys[PROFILE_PARTS + 2] = { "date" };
	const json_t *o;

	memcpy(keys + 1, parts, sizeof(parts));
	o = take_object(f, root, "measured", keys);
	if (!o)
		return;
	read_date(f, o, p);
	for (int i = 0; i < PROFILE_PARTS; i++)
		read_part(f, o, p, i);
}

static int from_json(const json_t *root, const char *name,
		     struct profile **profile)
{
	struct take f = { .file = name };
	struct profile *p;
	struct spec *spec;
	const char *why;
	int err;

	err = spec_take(root, name, json_object_get(root, "measured"), &spec);
	if (err)
		return err;
	err = profile_from_spec(spec, &p);
	spec_free(spec);
	if (err)
		return err;
	read_identity(&f, root, p);
	read_measured(&f, root, p);
	why = f.err ? NULL : profile_verify(p);
	if (why)
		take_wrong(&f, "profile", "%s", why);
	if (f.err) {
		profile_free(p);
		return f.err;
	}
	*profile = p;
	return 0;
}

int profile_parse(const char *text, const char *name,
		  struct profile **profile)
{
	int err;
	json_t *root = take_text(text, name, &err);

	if (root)
		err = from_json(root, name, profile);
	json_decref(root);
	return err;
}

int profile_read(const char *path, struct profile **profile)
{
	int err;
	json_t *root = take_file(path, &err);

	if (root)
		err = from_json(root, path, profile);
	json_decref(root);
	return err;
}

/* ---- Writing ---- */

static void write_identity(const struct profile *p, FILE *f)
{
	fprintf(f, "  \"identity\": { \"model\": ");
	spec_write_string(f, p->model);
	fprintf(f, ", \"serial\": ");
	spec_write_string(f, p->serial);
	fprintf(f, ",\n    \"firmware\": ");
	spec_write_string(f, p->firmware);
	fprintf(f, " },\n");
}

static void write_measured(const struct profile *p, FILE *f)
{
	time_t seconds = (time_t)(p->made_wall_ns / NS_PER_SECOND);
	const char *between = "\n";
	char date[32];
	struct tm tm;

	fprintf(f, "  \"measured\": {");
	if (seconds && gmtime_r(&seconds, &tm) &&
	    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm)) {
		fprintf(f, " \"date\": \"%s\"", date);
		between = ",\n";
	}
	for (int i = 0; i < PROFILE_PARTS; i++) {
		if (p->part[i].method == PROFILE_NONE)
			continue;
		fprintf(f, "%s    \"%s\": { \"method\": \"%s\", "
			"\"confidence\": %.6f }", between, parts[i],
			methods[p->part[i].method],
			p->part[i].confidence_ppm /
				(double)PROFILE_CERTAIN_PPM);
		between = ",\n";
	}
	fprintf(f, " },\n");
}

int profile_write(const struct profile *profile, FILE *f)
{
	char name[sizeof(profile->model)];
	const struct spec spec = {
		.name = name,
		.logical_bytes = SPEC_SECTOR_BYTES,
		.physical_bytes = profile->physical_bytes,
		.lbns = profile->sectors,
		.mech = profile->mech,
		.read_overhead_ns = profile->read_overhead_ns,
		.write_overhead_ns = profile->write_overhead_ns,
		.hit_overhead_ns = profile->hit_overhead_ns,
		.read_ahead_lbns = profile->read_ahead_sectors,
		.depth = 1,
		.idle_w = profile->idle_w,
		.active_w = profile->active_w,
		.seek_w = profile->seek_w,
		.geom = profile->geom,
	};

	memcpy(name, profile->model, sizeof(name));
	fprintf(f, "{\n");
	write_identity(profile, f);
	write_measured(profile, f);
	spec_write_keys(&spec, f);
	fprintf(f, "\n}\n");
	return ferror(f) ? -EIO : 0;
}
