/*
 * traxctl_facts.c - reads the trax.* attributes, and prints them as they are:
 * facts, tables, the extents of a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/traxctl.h"

#define VALUE_BYTES 65536u	/* the most an attribute holds */

/* Reads an attribute as a terminated text, which the caller frees.  NULL:
 * errno. */
static char *read_attribute(const char *path, const char *name)
{
	char *text = malloc(VALUE_BYTES + 1);
	ssize_t n;

	if (!text)
		return NULL;
	n = getxattr(path, name, text, VALUE_BYTES);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

/* ---- model: an object of facts ---- */

static char *value_text(json_t *value)
{
	if (json_is_string(value))
		return text_escape(json_string_value(value));
	return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
					 JSON_REAL_PRECISION(6));
}

/* Adds the members of an object; those of an inner object have names like
 * "outer.inner". */
static void add_facts(struct libscols_table *table, const char *prefix,
		      json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) {
		char name[128];
		struct libscols_line *line;

		snprintf(name, sizeof(name), "%s%s%s", prefix,
			 *prefix ? "." : "", key);
		if (json_is_object(value)) {
			add_facts(table, name, value);
			continue;
		}
		line = scols_table_new_line(table, NULL);
		if (line) {
			scols_line_set_data(line, 0, name);
			scols_line_refer_data(line, 1, value_text(value));
		}
	}
}

int print_facts(json_t *object)
{
	struct libscols_table *table = scols_new_table();

	if (!table)
		return EXIT_FAILED;
	scols_table_enable_noheadings(table, 1);
	scols_table_new_column(table, "name", 0, 0);
	scols_table_new_column(table, "value", 0, SCOLS_FL_WRAP);
	add_facts(table, "", object);
	scols_print_table(table);
	scols_unref_table(table);
	return EXIT_SUCCESS;
}

int print_json(json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	putchar('\n');
	return EXIT_SUCCESS;
}

json_t *read_json(const char *path, const char *name)
{
	char *text = read_attribute(path, name);
	json_t *json;

	if (!text)
		return NULL;
	/* The value of a feature that this mount lacks is null. */
	json = json_loads(text, JSON_DECODE_ANY, NULL);
	free(text);
	if (!json)
		errno = EPROTO;
	return json;
}

int show_attribute(const struct arguments *a, const char *name,
		   void (*print)(json_t *json))
{
	json_t *json = read_json(a->path, name);

	if (!json)
		return complain(a, name);
	if (a->json)
		print_json(json);
	else
		print(json);
	json_decref(json);
	return EXIT_SUCCESS;
}

/* ---- extents, tracks: an array over the file ---- */

/* Has dirty pages written, which have no place yet. */
static int flush(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -1;
	rc = fsync(fd);
	if (rc && errno == EROFS)
		rc = 0;
	close(fd);
	return rc;
}

/* Columns of a line of text, as wide as most numbers are. */
static const struct {
	const char *name;
	int width;
} extent_columns[] = {
	{ "offset", 15 }, { "length", 12 }, { "lbn", 12 }, { "track", 9 },
	{ "tracks", 7 }, { "cylinder", 9 }, { "surface", 8 }, { "whole", 6 },
	{ "known", 6 },
};
#define EXTENT_COLUMNS (sizeof(extent_columns) / sizeof(extent_columns[0]))

static void print_extent(json_t *extent)
{
	size_t i;

	for (i = 0; i < EXTENT_COLUMNS; i++) {
		json_t *value = json_object_get(extent, extent_columns[i].name);
		char number[24] = "-";

		if (json_is_integer(value))
			snprintf(number, sizeof(number), "%lld",
				 (long long)json_integer_value(value));
		else if (json_is_boolean(value))
			strcpy(number, json_is_true(value) ? "yes" : "no");
		printf("%*s", extent_columns[i].width, number);
	}
	putchar('\n');
}

static void print_heading(const struct arguments *a)
{
	size_t i;

	if (a->json) {
		puts("[");
		return;
	}
	for (i = 0; i < EXTENT_COLUMNS; i++)
		printf("%*s", extent_columns[i].width, extent_columns[i].name);
	putchar('\n');
}

/*
 * Prints the extents from *offset on, as many as an attribute holds, and sets
 * *offset to where they end.  Returns their number, or -1: errno.
 */
static ssize_t print_part(const struct arguments *a, int64_t *offset)
{
	char name[64];
	json_t *part, *e;
	size_t i, n;

	snprintf(name, sizeof(name), "trax.extents:%lld", (long long)*offset);
	part = read_json(a->path, name);
	if (!part)
		return -1;
	if (!*offset)
		print_heading(a);
	n = json_array_size(part);
	for (i = 0; i < n; i++) {
		e = json_array_get(part, i);
		if (a->json) {
			fputs(*offset ? ",\n  " : "  ", stdout);
			json_dumpf(e, stdout, JSON_ENSURE_ASCII);
		} else {
			print_extent(e);
		}
		*offset = json_integer_value(json_object_get(e, "offset")) +
			  json_integer_value(json_object_get(e, "length"));
	}
	json_decref(part);
	return (ssize_t)n;
}

static void add_object(struct libscols_table *table, json_t *object,
		       const char *const *columns, unsigned n)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	unsigned i;

	if (!line)
		return;
	for (i = 0; i < n; i++) {
		json_t *value = json_object_get(object, columns[i]);

		if (json_is_boolean(value))
			scols_line_set_data(line, i,
					    json_is_true(value) ? "yes" : "no");
		else if (value)
			scols_line_refer_data(line, i, value_text(value));
		else
			scols_line_set_data(line, i, "-");
	}
}

int print_objects(json_t *array, const char *const *columns, unsigned n)
{
	struct libscols_table *table = scols_new_table();
	size_t i;
	json_t *e;

	if (!table)
		return EXIT_FAILED;
	for (i = 0; i < n; i++)
		scols_table_new_column(table, columns[i], 0, SCOLS_FL_RIGHT);
	json_array_foreach(array, i, e)
		add_object(table, e, columns, n);
	scols_print_table(table);
	scols_unref_table(table);
	return EXIT_SUCCESS;
}

/* Each part is printed before the next is asked for, however many there are. */
int run_extents(const struct arguments *a)
{
	int64_t offset = 0, before;
	ssize_t n;

	if (flush(a->path))
		return complain(a, "open");
	do {
		before = offset;
		n = print_part(a, &offset);
	} while (n > 0 && offset > before);
	if (a->json && n >= 0)
		puts("\n]");
	return n < 0 ? complain(a, "trax.extents") : EXIT_SUCCESS;
}

/* Prints lines; returns the offset at which the last one ends. */
static int64_t print_lines(char *text, int64_t offset)
{
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		long long from, bytes;

		if (sscanf(line, "%lld %lld", &from, &bytes) != 2)
			continue;
		puts(line);
		offset = from + bytes;
	}
	return offset;
}

int run_tracks(const struct arguments *a)
{
	int64_t offset = 0, before;
	char name[64], *text;

	if (a->json)
		return run_extents(a);
	if (flush(a->path))
		return complain(a, "open");
	do {
		snprintf(name, sizeof(name), "trax.tracks:%lld",
			 (long long)offset);
		text = read_attribute(a->path, name);
		if (!text)
			return complain(a, "trax.tracks");
		before = offset;
		offset = print_lines(text, offset);
		free(text);
	} while (offset > before);
	return EXIT_SUCCESS;
}
