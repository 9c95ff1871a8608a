/*
 * traxctl.c - shows what a mounted file system knows, and controls it.
 *
 * What is shown comes from the trax.* attributes, what is changed goes through
 * the ioctl of fuse/control.h.  Sub-commands are rows of a table.
 */
#include <argp.h>
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

#include "fuse/control.h"

enum exit_code { EXIT_FAILED = 1, EXIT_WRONG_USE = 2 };

#define VALUE_BYTES 65536u	/* the most an attribute holds */

struct command;

struct arguments {
	const struct command *command;
	const char *path;
	bool json;
};

struct command {
	const char *name;
	const char *operand;
	const char *help;
	int (*run)(const struct arguments *a);
};

const char *argp_program_version = "traxctl " PACKAGE_VERSION;

static int complain(const struct arguments *a, const char *what)
{
	if (errno == ENODATA || errno == EOPNOTSUPP || errno == ENOTTY)
		fprintf(stderr, "traxctl: %s: no %s there: not on a traxfs, or "
			"the wrong kind of file\n", a->path, what);
	else
		fprintf(stderr, "traxctl: %s: %s: %s\n", a->path, what,
			strerror(errno));
	return EXIT_FAILED;
}

/* The text of an attribute, terminated; the caller frees.  NULL: errno. */
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

/* ---- status, model: an object of facts ---- */

static char *value_text(json_t *value)
{
	if (json_is_string(value))
		return strdup(json_string_value(value));
	return json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
					 JSON_REAL_PRECISION(6));
}

/* Objects within become "outer.inner". */
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

static int print_facts(json_t *object)
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

static int print_json(json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
	return EXIT_SUCCESS;
}

static int show_facts(const struct arguments *a, const char *attribute)
{
	char *text = read_attribute(a->path, attribute);
	json_t *object;
	int code;

	if (!text)
		return complain(a, attribute);
	object = json_loads(text, 0, NULL);
	free(text);
	if (!object) {
		errno = EPROTO;
		return complain(a, attribute);
	}
	code = a->json ? print_json(object) : print_facts(object);
	json_decref(object);
	return code;
}

static int run_status(const struct arguments *a)
{
	return show_facts(a, "trax.stats");
}

static int run_model(const struct arguments *a)
{
	return show_facts(a, "trax.model");
}

/* ---- extents, tracks: an array over the file ---- */

/* Dirty pages have no place yet. */
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

/* Appends the pieces from `offset` on to `all`; where they end, -1: error. */
static int64_t add_part(const char *path, int64_t offset, json_t *all)
{
	int64_t end = offset;
	char name[64], *text;
	json_t *part, *last;

	snprintf(name, sizeof(name), "trax.extents:%lld", (long long)offset);
	text = read_attribute(path, name);
	if (!text)
		return -1;
	part = json_loads(text, 0, NULL);
	free(text);
	if (!json_is_array(part)) {
		json_decref(part);
		errno = EPROTO;
		return -1;
	}
	last = json_array_get(part, json_array_size(part) - 1);
	if (last)
		end = json_integer_value(json_object_get(last, "offset")) +
		      json_integer_value(json_object_get(last, "length"));
	json_array_extend(all, part);
	json_decref(part);
	return end;
}

static json_t *read_extents(const char *path)
{
	json_t *all = json_array();
	int64_t offset = 0, end;

	while ((end = add_part(path, offset, all)) > offset)
		offset = end;
	if (end < 0) {
		json_decref(all);
		return NULL;
	}
	return all;
}

static const char *const extent_columns[] = {
	"offset", "length", "lbn", "track", "tracks", "cylinder", "surface",
	"whole", "known",
};
#define EXTENT_COLUMNS (sizeof(extent_columns) / sizeof(extent_columns[0]))

static void add_extent(struct libscols_table *table, json_t *extent)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	size_t i;

	if (!line)
		return;
	for (i = 0; i < EXTENT_COLUMNS; i++) {
		json_t *value = json_object_get(extent, extent_columns[i]);

		if (json_is_boolean(value))
			scols_line_set_data(line, i,
					    json_is_true(value) ? "yes" : "no");
		else if (value)
			scols_line_refer_data(line, i, value_text(value));
		else
			scols_line_set_data(line, i, "-");
	}
}

static int print_extents(json_t *extents)
{
	struct libscols_table *table = scols_new_table();
	size_t i;
	json_t *e;

	if (!table)
		return EXIT_FAILED;
	for (i = 0; i < EXTENT_COLUMNS; i++)
		scols_table_new_column(table, extent_columns[i], 0,
				       SCOLS_FL_RIGHT);
	json_array_foreach(extents, i, e)
		add_extent(table, e);
	scols_print_table(table);
	scols_unref_table(table);
	return EXIT_SUCCESS;
}

static int run_extents(const struct arguments *a)
{
	json_t *extents;
	int code;

	if (flush(a->path))
		return complain(a, "open");
	extents = read_extents(a->path);
	if (!extents)
		return complain(a, "trax.extents");
	code = a->json ? print_json(extents) : print_extents(extents);
	json_decref(extents);
	return code;
}

/* Prints lines; where the last one's piece of the file ends. */
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

static int run_tracks(const struct arguments *a)
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

/* ---- sync ---- */

static int control(const struct arguments *a, struct trax_control *c)
{
	int fd = open(a->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return complain(a, "open");
	/* First what the kernel still holds, then what the server holds. */
	rc = syncfs(fd);
	if (!rc)
		rc = ioctl(fd, TRAX_IOC_CONTROL, c);
	if (rc)
		complain(a, "control");
	close(fd);
	return rc ? EXIT_FAILED : EXIT_SUCCESS;
}

static int run_sync(const struct arguments *a)
{
	struct trax_control c = { .command = TRAX_CONTROL_SYNC };

	return control(a, &c);
}

/* ---- The command line ---- */

static const struct command commands[] = {
	{ "status", "MOUNTPOINT", "what the file system has done and holds",
	  run_status },
	{ "model", "MOUNTPOINT", "what it believes of the disk", run_model },
	{ "extents", "FILE", "where a file lies, cut at tracks", run_extents },
	{ "tracks", "FILE", "the same, one line for each track", run_tracks },
	{ "sync", "MOUNTPOINT", "everything to the medium", run_sync },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ 0 },
};

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num > 1)
			return ARGP_ERR_UNKNOWN;
		if (state->arg_num == 1) {
			a->path = arg;
			return 0;
		}
		a->command = find_command(arg);
		if (!a->command)
			argp_error(state, "no command \"%s\"", arg);
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num < 2)
			argp_usage(state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* The table of commands, for --help. */
static char *help_filter(int key, const char *text, void *input)
{
	char *list = NULL;
	size_t bytes, i;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	f = open_memstream(&list, &bytes);
	if (!f)
		return NULL;
	fputs("Commands:\n", f);
	for (i = 0; i < COMMANDS; i++)
		fprintf(f, "  %-8s%-12s%s\n", commands[i].name,
			commands[i].operand, commands[i].help);
	fclose(f);
	return list;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "COMMAND PATH",
		"Shows and controls a mounted traxfs.\v ", NULL, help_filter,
		NULL,
	};
	struct arguments a = { 0 };

	argp_err_exit_status = EXIT_WRONG_USE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	return a.command->run(&a);
}
