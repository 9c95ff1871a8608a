/*
 * facts.c - see facts.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/facts.h"

json_t *fact_at(json_t *object, const char *path)
{
	char name[64];
	const char *dot;

	while ((dot = strchr(path, '.'))) {
		snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
		object = json_object_get(object, name);
		path = dot + 1;
	}
	return json_object_get(object, path);
}

double fact_number(json_t *object, const char *path)
{
	return json_number_value(fact_at(object, path));
}

const char *fact_string(json_t *object, const char *path)
{
	const char *s = json_string_value(fact_at(object, path));

	return s ? s : "";
}

bool fact_is_set(json_t *object, const char *path)
{
	return json_is_true(fact_at(object, path));
}

struct text size_text(double bytes)
{
	static const char *const units[] = {
		"bytes", "KiB", "MiB", "GiB", "TiB", "PiB",
	};
	struct text t;
	unsigned unit = 0;

	while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(*units)) {
		bytes /= 1024;
		unit++;
	}
	snprintf(t.s, sizeof(t.s), "%.*f %s", unit ? 1 : 0, bytes, units[unit]);
	return t;
}

struct text date_text(double seconds)
{
	time_t when = (time_t)seconds;
	struct tm tm;
	struct text t = { "never" };

	if (when > 0 && localtime_r(&when, &tm))
		strftime(t.s, sizeof(t.s), "%Y-%m-%d %H:%M", &tm);
	return t;
}

struct text duration_text(double seconds)
{
	static const struct {
		const char *name;
		long seconds;
	} units[] = {
		{ "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 },
	};
	struct text t = { "not known" };
	long left = (long)(seconds + 0.5);
	unsigned i = 0;

	if (seconds < 0)
		return t;
	while (units[i].seconds > 1 && left < units[i].seconds)
		i++;
	if (units[i].seconds == 1)
		snprintf(t.s, sizeof(t.s), "%ld s", left);
	else
		snprintf(t.s, sizeof(t.s), "%ld %s %ld %s",
			 left / units[i].seconds, units[i].name,
			 left % units[i].seconds / units[i + 1].seconds,
			 units[i + 1].name);
	return t;
}

const char *mark(const char *how)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if ((no && *no) || !isatty(STDOUT_FILENO) || !term ||
	    !strcmp(term, "dumb"))
		return "";
	return !strcmp(how, "bold") ? "\033[1m" :
	       !strcmp(how, "bad") ? "\033[1;31m" : "\033[0m";
}

double sample_number(json_t *array, size_t i)
{
	return json_number_value(json_array_get(array, i));
}
