/*
 * chkfs.traxfs.c - checks and repairs a file system; also fsck.traxfs.
 *
 * src/check finds and repairs everything; this file has the options, the
 * questions, the progress and the report.  Exit codes are those of fsck(8).
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/msg.h"
#include "base/text.h"
#include "check/check.h"
#include "tools/amounts.h"
#include "tools/device.h"
#include "tools/progress.h"
#include "tools/signature.h"

enum exit_code {
	EXIT_CORRECTED = 1,
	EXIT_LEFT = 4,
	EXIT_OPERATION = 8,
	EXIT_WRONG_USE = 16,
	EXIT_CANCELLED = 32,
};

/* Lines printed of each row of the table, unless all are wanted. */
#define MAX_LINES 20u
/* Most problems in the JSON report, which is built in memory. */
#define MAX_JSON 10000u

enum mode { MODE_ASK, MODE_NO, MODE_YES, MODE_PREEN };

struct arguments {
	const char *device;
	const char *scratch;
	enum mode mode;
	bool mode_given;
	bool data, json, verbose, force, quiet;
};

/* Numbers of problems of one row. */
struct tally {
	uint64_t found, left;
	bool asked, yes;
};

struct session {
	const struct arguments *arguments;
	struct tally *tally;	/* one for each row of the table */
	json_t *problems;	/* NULL: no JSON */
	bool yes_to_all;
	bool terminal;		/* progress is shown */
	struct progress progress; /* of a step */
};

static volatile sig_atomic_t interrupted;

const char *argp_program_version = "chkfs.traxfs " PACKAGE_VERSION;

enum { KEY_DATA = 256, KEY_JSON, KEY_SCRATCH };

static const struct argp_option options[] = {
	{ "no", 'n', NULL, 0, "Only look, write nothing", 0 },
	{ "yes", 'y', NULL, 0, "Repair all that can be repaired", 0 },
	{ "preen", 'p', NULL, 0, "Repair if all that is wrong can be repaired "
				 "safely; skip a file system that was "
				 "unmounted properly", 0 },
	{ NULL, 'a', NULL, OPTION_ALIAS, NULL, 0 },
	{ "force", 'f', NULL, 0, "With -p: check it even if it was unmounted",
	  0 },
	{ "data", KEY_DATA, NULL, 0, "Read all files and compare them with "
				     "their checksums", 0 },
	{ "quiet", 'q', NULL, 0, "Say nothing but problems and errors", 0 },
	{ "json", KEY_JSON, NULL, 0, "Report in JSON", 0 },
	{ "verbose", 'v', NULL, 0, "Print every problem, and notes", 0 },
	{ "scratch", KEY_SCRATCH, "DIR", 0, "Keep what a repair collects in a "
					    "file there, not in memory", 0 },
	{ 0 },
};

static void take_mode(struct arguments *a, enum mode mode,
		      struct argp_state *state)
{
	if (a->mode_given && a->mode != mode)
		argp_error(state, "only one of -n, -y and -p can be given");
	a->mode = mode;
	a->mode_given = true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	switch (key) {
	case 'n':
		take_mode(a, MODE_NO, state);
		return 0;
	case 'y':
		take_mode(a, MODE_YES, state);
		return 0;
	case 'p':
	case 'a':
		take_mode(a, MODE_PREEN, state);
		return 0;
	case 'f':
		a->force = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case 'v':
		a->verbose = true;
		return 0;
	case KEY_DATA:
		a->data = true;
		return 0;
	case KEY_JSON:
		a->json = true;
		return 0;
	case KEY_SCRATCH:
		a->scratch = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->device)
			return ARGP_ERR_UNKNOWN;
		a->device = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->device)
			argp_usage(state);
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- Progress ---- */

static bool checked(void *arg, const char *step, uint64_t done, uint64_t total)
{
	struct session *s = arg;
	char count[24];

	if (!s->terminal)
		return !interrupted;
	if (!s->progress.what || strcmp(s->progress.what, step) != 0)
		progress_begin(&s->progress, step);
	if (total && done <= total) {
		progress_say(&s->progress, (double)done / (double)total, "");
	} else {
		snprintf(count, sizeof(count), "%llu",
			 (unsigned long long)done);
		progress_say(&s->progress, -1, count);
	}
	return !interrupted;
}

static void interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* ---- Problems ---- */

static const char *severity_name(enum check_severity severity)
{
	static const char *const names[] = {
		[CHECK_NOTE] = "note",
		[CHECK_MINOR] = "minor",
		[CHECK_ERROR] = "error",
		[CHECK_LOSS] = "loss",
		[CHECK_FATAL] = "fatal",
	};

	return names[severity];
}

static void add_json(struct session *s, const struct check_found *found)
{
	json_t *o;

	if (json_array_size(s->problems) >= MAX_JSON)
		return;
	o = json_pack("{s:s,s:s,s:s,s:b}", "name", found->problem->name,
		      "severity", severity_name(found->problem->severity),
		      "text", found->text, "after_repair", (int)found->again);
	if (!o)
		return;
	if (found->ino)
		json_object_set_new(o, "inode",
				    json_integer((json_int_t)found->ino));
	if (found->sector)
		json_object_set_new(o, "sector",
				    json_integer((json_int_t)found->sector));
	json_array_append_new(s->problems, o);
}

static void print_problem(struct session *s, const struct check_found *found,
			  const struct tally *tally)
{
	bool note = found->problem->severity == CHECK_NOTE;

	if (note && !s->arguments->verbose &&
	    strcmp(found->problem->name, "not-clean") != 0 &&
	    strcmp(found->problem->name, "rescued") != 0 &&
	    strcmp(found->problem->name, "data-lost") != 0 &&
	    strcmp(found->problem->name, "data-unsure") != 0)
		return;
	if (!s->arguments->verbose && tally->found > MAX_LINES + 1)
		return;
	progress_clear(&s->progress);
	if (!s->arguments->verbose && tally->found == MAX_LINES + 1)
		printf("[%s] and more like these\n", found->problem->name);
	else
		printf("[%s]%s %s\n", found->problem->name,
		       found->again ? " still:" : "", found->text);
	fflush(stdout);
}

/* Reads 'y', 'n' or 'a'; anything else, and the end of the input, is a no. */
static char read_answer(void)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		return 'n';
	return line[0] == 'y' || line[0] == 'a' ? line[0] : 'n';
}

static bool ask(struct session *s, const struct check_found *found)
{
	char answer;

	if (s->yes_to_all)
		return true;
	progress_clear(&s->progress);
	printf("%s, and all like it (yes, no, all)? ",
	       found->problem->question);
	fflush(stdout);
	answer = read_answer();
	s->yes_to_all = answer == 'a';
	return answer != 'n';
}

static bool answer(struct session *s, const struct check_found *found,
		   struct tally *tally)
{
	const struct check_problem *row = found->problem;

	if (!row->question)
		return true;
	switch (s->arguments->mode) {
	case MODE_YES:
		return true;
	case MODE_NO:
		return false;
	case MODE_PREEN:
		return row->safe;
	case MODE_ASK:
		if (!tally->asked)
			tally->yes = ask(s, found);
		tally->asked = true;
		return tally->yes;
	}
	return false;
}

static bool on_found(void *arg, const struct check_found *found)
{
	struct session *s = arg;
	struct tally *tally = &s->tally[found->problem - check_problems];

	if (found->again)
		tally->left++;
	else
		tally->found++;
	if (s->problems)
		add_json(s, found);
	else
		print_problem(s, found, tally);
	return answer(s, found, tally);
}

/* ---- Paths ---- */

static void add_path(json_t *problems, uint64_t ino, const char *path)
{
	json_t *problem, *inode;
	size_t i;

	json_array_foreach(problems, i, problem) {
		inode = json_object_get(problem, "inode");
		if (inode && (uint64_t)json_integer_value(inode) == ino)
			json_object_set_new(problem, "path",
					    json_string(path));
	}
}

static void on_named(void *arg, uint64_t ino, const char *path)
{
	struct session *s = arg;
	char *text = text_escape(path);

	if (text && s->problems) {
		add_path(s->problems, ino, text);
	} else if (text) {
		progress_clear(&s->progress);
		printf("inode %llu: %s\n", (unsigned long long)ino, text);
	}
	free(text);
}

/* ---- The report ---- */

static void add_row(struct libscols_table *table,
		    const struct check_problem *row, const struct tally *tally,
		    bool changed)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	char text[32];

	if (!line)
		return;
	scols_line_set_data(line, 0, row->name);
	scols_line_set_data(line, 1, severity_name(row->severity));
	snprintf(text, sizeof(text), "%llu", (unsigned long long)tally->found);
	scols_line_set_data(line, 2, text);
	snprintf(text, sizeof(text), "%llu",
		 (unsigned long long)(changed ? tally->left : tally->found));
	scols_line_set_data(line, 3, text);
}

static void print_rows(const struct session *s,
		       const struct check_result *result)
{
	struct libscols_table *table = scols_new_table();
	unsigned i;

	if (!table)
		return;
	scols_table_new_column(table, "PROBLEM", 0, 0);
	scols_table_new_column(table, "SEVERITY", 0, 0);
	scols_table_new_column(table, "FOUND", 0, SCOLS_FL_RIGHT);
	scols_table_new_column(table, "LEFT", 0, SCOLS_FL_RIGHT);
	for (i = 0; i < check_problems_n; i++)
		if (check_problems[i].severity > CHECK_NOTE &&
		    (s->tally[i].found || s->tally[i].left))
			add_row(table, &check_problems[i], &s->tally[i],
				result->changed);
	scols_print_table(table);
	scols_unref_table(table);
}

static void print_text(const struct session *s,
		       const struct check_result *result)
{
	const char *device = s->arguments->device;

	if (result->found || result->left)
		print_rows(s, result);
	if (!result->nodes) {
		printf("%s: clean, generation %llu\n", device,
		       (unsigned long long)result->generation);
		return;
	}
	printf("%s: %s (%s), %s, %s; %s in files, %s free\n", device,
	       count_text(result->inodes, "inode").s,
	       count_text(result->directories, "directory").s,
	       count_text(result->extents, "extent").s,
	       count_text(result->nodes, "node").s,
	       size_text((double)result->data_sectors * SECTOR_BYTES).s,
	       size_text((double)result->free_sectors * SECTOR_BYTES).s);
	if (result->bytes_verified)
		printf("%s: %s of data verified, %llu bytes bad\n", device,
		       size_text((double)result->bytes_verified).s,
		       (unsigned long long)result->bytes_bad);
	if (result->left)
		printf("%s: problems left: %llu%s\n", device,
		       (unsigned long long)result->left,
		       s->arguments->mode == MODE_PREEN ?
		       "; run chkfs.traxfs without -p" : "");
	else if (result->found)
		printf("%s: repaired\n", device);
}

static void print_json(struct session *s, const struct check_result *result)
{
	json_t *o = json_pack(
		"{s:s,s:b,s:b,s:b,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,"
		"s:O}", "device", s->arguments->device,
		"was_clean", (int)result->was_clean,
		"log_replayed", (int)result->replayed,
		"changed", (int)result->changed,
		"found", (json_int_t)result->found,
		"left", (json_int_t)result->left,
		"generation", (json_int_t)result->generation,
		"nodes", (json_int_t)result->nodes,
		"inodes", (json_int_t)result->inodes,
		"directories", (json_int_t)result->directories,
		"extents", (json_int_t)result->extents,
		"free_bytes", (json_int_t)(result->free_sectors * SECTOR_BYTES),
		"bytes_verified", (json_int_t)result->bytes_verified,
		"bytes_bad", (json_int_t)result->bytes_bad,
		"problems", s->problems);

	if (!o)
		return;
	json_dumpf(o, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(o);
}

static enum exit_code exit_of(const struct check_result *result, int rc)
{
	if (rc == -ECANCELED)
		return EXIT_CANCELLED;
	if (rc)
		return EXIT_OPERATION;
	if (result->left)
		return EXIT_LEFT;
	return result->found && result->changed ? EXIT_CORRECTED :
		EXIT_SUCCESS;
}

/* ---- Doing it ---- */

/* Reports what is there instead of a traxfs. */
static void say_foreign(const char *device)
{
	char name[64];
	bool is_fs;

	if (signature_name(device, name, sizeof(name), &is_fs))
		msg_error("%s: holds %s, no traxfs%s", device, name,
			  is_fs ? "; fsck(8) finds what checks that" : "");
	else
		msg_error("%s: neither a traxfs is there nor anything else "
			  "that libblkid knows: is it the right device?",
			  device);
}

static enum exit_code check(struct session *s, struct disk *disk)
{
	const struct arguments *a = s->arguments;
	struct check_options o = {
		.repair = a->mode != MODE_NO,
		.safe_only = a->mode == MODE_PREEN,
		.skip_clean = a->mode == MODE_PREEN && !a->force,
		.data = a->data,
		.scratch = a->scratch,
		.found = on_found,
		.named = on_named,
		.progress = checked,
		.arg = s,
	};
	struct check_result result;
	struct super super;
	int rc = check_run(env_real(), disk, &o, &result);

	progress_clear(&s->progress);
	if (s->problems)
		print_json(s, &result);
	else if (!rc && (!a->quiet || result.found || result.left))
		print_text(s, &result);
	if (rc == -ECANCELED)
		msg_error("%s: cancelled", a->device);
	else if (rc == -EINVAL && device_read_super(disk, &super) == -EINVAL)
		say_foreign(a->device);
	else if (rc == -EFBIG)
		msg_error("%s: smaller than its file system: make it as large "
			  "as it was", a->device);
	else if (rc)
		msg_error("%s: the check could not be finished: %s", a->device,
			  strerror(-rc));
	return exit_of(&result, rc);
}

static enum exit_code check_device(struct session *s)
{
	const struct arguments *a = s->arguments;
	struct disk *disk;
	enum exit_code code;

	if (device_open(a->device, a->mode == MODE_NO, &disk))
		return EXIT_OPERATION;
	code = check(s, disk);
	disk_close(disk);
	return code;
}

static enum exit_code run(const struct arguments *a)
{
	struct session s = {
		.arguments = a,
		.tally = calloc(check_problems_n, sizeof(*s.tally)),
		.problems = a->json ? json_array() : NULL,
		.terminal = isatty(STDERR_FILENO) && !a->json,
	};
	struct sigaction action = { .sa_handler = interrupt };
	enum exit_code code = EXIT_OPERATION;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (s.tally && (s.problems || !a->json))
		code = check_device(&s);
	else
		msg_error("out of memory");
	json_decref(s.problems);
	free(s.tally);
	return code;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "DEVICE",
		"Checks a traxfs file system, and repairs it.",
		NULL, NULL, NULL,
	};
	struct arguments a = { 0 };

	argp_err_exit_status = EXIT_WRONG_USE;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	if (a.quiet) {
		msg_set_level(MSG_WARN);
		progress_mute();
	}
	/* Without a terminal there is no user to ask. */
	if (!a.mode_given && (a.json || !isatty(STDIN_FILENO)))
		a.mode = MODE_NO;
	return run(&a);
}
