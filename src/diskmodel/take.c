/*
 * take.c - reads values out of JSON.
 *
 * Unknown keys are errors (a misspelt one would otherwise be a silent default),
 * except those meant for people.
 */
#include "diskmodel/take.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/units.h"
#include "diskmodel/geom_build.h"

void take_wrong(struct take *f, const char *key, const char *fmt, ...)
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

void take_no_memory(struct take *f)
{
	if (!f->err)
		f->err = -ENOMEM;
}

void *take_memory(struct take *f, size_t n, size_t each)
{
	void *p = f->err ? NULL : calloc(n ? n : 1, each);

	if (!p)
		take_no_memory(f);
	return p;
}

/* Refuses keys that are not in the list, which ends with NULL. */
void take_keys(struct take *f, const json_t *obj, const char *const *keys)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)obj, key, value) {
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], key))
			i++;
		if (!keys[i] && strcmp(key, "comment"))
			take_wrong(f, key, "unknown key");
	}
}

/* A member; when it is missing, NULL, and an error if `needed`. */
json_t *take_member(struct take *f, const json_t *obj, const char *key,
		    bool needed)
{
	json_t *v = f->err ? NULL : json_object_get(obj, key);

	if (!v && needed)
		take_wrong(f, key, "missing");
	return v;
}

double take_value_number(struct take *f, const char *key, const json_t *v,
			 double lo, double hi)
{
	double x;

	if (!json_is_number(v)) {
		take_wrong(f, key, "not a number");
		return lo;
	}
	x = json_number_value(v);
	if (!(x >= lo && x <= hi)) {
		take_wrong(f, key, "%g is not between %g and %g", x, lo, hi);
		return lo;
	}
	return x;
}

uint64_t take_value_count(struct take *f, const char *key, const json_t *v,
			  uint64_t lo, uint64_t hi)
{
	json_int_t x;

	if (!json_is_integer(v)) {
		take_wrong(f, key, "not a whole number");
		return lo;
	}
	x = json_integer_value(v);
	if (x < 0 || (uint64_t)x < lo || (uint64_t)x > hi) {
		take_wrong(f, key, "%lld is not between %ju and %ju",
			   (long long)x, (uintmax_t)lo, (uintmax_t)hi);
		return lo;
	}
	return (uint64_t)x;
}

/* Reads an optional number; a missing one leaves *out as it is. */
void take_number(struct take *f, const json_t *obj, const char *key, double hi,
		 double *out)
{
	const json_t *v = take_member(f, obj, key, false);

	if (v)
		*out = take_value_number(f, key, v, 0, hi);
}

void take_ms(struct take *f, const json_t *obj, const char *key,
	     uint64_t *out_ns)
{
	const json_t *v = take_member(f, obj, key, false);

	if (v)
		*out_ns = (uint64_t)llround(
			take_value_number(f, key, v, 0, TAKE_MAX_MS) *
			NS_PER_MS);
}

void take_count(struct take *f, const json_t *obj, const char *key, uint32_t lo,
		uint32_t hi, uint32_t *out)
{
	const json_t *v = take_member(f, obj, key, false);

	if (v)
		*out = (uint32_t)take_value_count(f, key, v, lo, hi);
}

void take_bool(struct take *f, const json_t *obj, const char *key, bool *out)
{
	const json_t *v = take_member(f, obj, key, false);

	if (v && !json_is_boolean(v))
		take_wrong(f, key, "neither true nor false");
	else if (v)
		*out = json_is_true(v);
}

/* A member that is an object, its keys checked; NULL when absent. */
const json_t *take_object(struct take *f, const json_t *obj, const char *key,
			  const char *const *keys)
{
	const json_t *v = take_member(f, obj, key, false);

	if (v && !json_is_object(v)) {
		take_wrong(f, key, "not an object");
		return NULL;
	}
	if (v)
		take_keys(f, v, keys);
	return v;
}

/* Reads revolutions: a number, or a string "a/b", which is exact. */
angle take_value_angle(struct take *f, const char *key, const json_t *v)
{
	unsigned long long a, b;
	double revs;
	int end = 0;

	if (json_is_string(v)) {
		if (sscanf(json_string_value(v), "%llu/%llu%n", &a, &b,
			   &end) < 2 || json_string_value(v)[end] || !b ||
		    a >= b || b > GEOM_MAX_TRACK_SECTORS) {
			take_wrong(f, key, "not a fraction of a revolution");
			return 0;
		}
		return (angle)(((a << 32) + b / 2) / b);
	}
	revs = take_value_number(f, key, v, 0, 1);
	return (angle)(uint64_t)llround(revs * 4294967296.0);
}

void take_angle(struct take *f, const json_t *obj, const char *key, angle *out)
{
	const json_t *v = take_member(f, obj, key, false);

	if (v)
		*out = take_value_angle(f, key, v);
}

/* Reads one of the words of a list that ends with NULL; *out: its index. */
void take_word(struct take *f, const json_t *obj, const char *key,
	       const char *const *words, unsigned *out)
{
	const json_t *v = take_member(f, obj, key, false);
	unsigned i;

	if (!v)
		return;
	for (i = 0; json_is_string(v) && words[i]; i++) {
		if (!strcmp(words[i], json_string_value(v))) {
			*out = i;
			return;
		}
	}
	take_wrong(f, key, "not one of %s, %s%s%s", words[0], words[1],
		   words[2] ? ", " : "", words[2] ? words[2] : "");
}

int64_t take_value_signed(struct take *f, const char *key, const json_t *v,
			  int64_t lo, int64_t hi)
{
	json_int_t x;

	if (!json_is_integer(v)) {
		take_wrong(f, key, "not a whole number");
		return lo;
	}
	x = json_integer_value(v);
	if (x < lo || x > hi) {
		take_wrong(f, key, "%lld is not between %lld and %lld",
			   (long long)x, (long long)lo, (long long)hi);
		return lo;
	}
	return x;
}

void take_signed(struct take *f, const json_t *obj, const char *key, int64_t lo,
		 int64_t hi, int64_t *out)
{
	const json_t *v = take_member(f, obj, key, false);

	if (v)
		*out = take_value_signed(f, key, v, lo, hi);
}

void take_string(struct take *f, const json_t *obj, const char *key, char *out,
		 size_t room)
{
	const json_t *v = take_member(f, obj, key, false);

	if (!v)
		return;
	if (!json_is_string(v) || json_string_length(v) >= room)
		take_wrong(f, key, "not a string of less than %zu bytes", room);
	else
		memcpy(out, json_string_value(v), json_string_length(v) + 1);
}

const json_t *take_array(struct take *f, const json_t *obj, const char *key)
{
	const json_t *v = take_member(f, obj, key, false);

	if (!v || json_is_array(v))
		return v;
	take_wrong(f, key, "not an array");
	return NULL;
}

static json_t *parsed(json_t *root, const json_error_t *error,
		      const char *name, int *err)
{
	*err = root ? 0 : -EINVAL;
	if (root)
		return root;
	if (error->line > 0)
		msg_error("%s:%d: %s", name, error->line, error->text);
	else
		msg_error("%s: %s", name, error->text);
	return NULL;
}

json_t *take_text(const char *text, const char *name, int *err)
{
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	return parsed(root, &error, name, err);
}

json_t *take_file(const char *path, int *err)
{
	json_error_t error;
	json_t *root;
	FILE *f = fopen(path, "re");

	if (!f) {
		*err = -errno;
		msg_error("%s: %s", path, strerror(errno));
		return NULL;
	}
	root = json_loadf(f, JSON_REJECT_DUPLICATES, &error);
	fclose(f);
	return parsed(root, &error, path, err);
}
