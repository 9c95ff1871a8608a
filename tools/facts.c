/*
 * facts.c - see facts.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
