/*
 * traxctl.c - shows what a mounted file system knows, and controls it.
 *
 * Commands that show something read the trax.* attributes; commands that change
 * something call the ioctl of fuse/control.h.  Commands are rows of a table,
 * which has the options and the number of operands that each takes: others are
 * refused, and `traxctl COMMAND --help` prints those that it takes.
 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/progress.h"
#include "tools/traxctl.h"

#define MANY 0xffffu		/* any number of operands */
#define HELP_COLUMNS 79		/* what a terminal of 80 shows on one line */
#define HELP_KEY '?'		/* the same as argp's own key */
#define USAGE_KEY 'u'
#define VERSION_KEY 'V'

/* Which operands are mount points: a directory below one stands for it. */
enum mounts { NO_MOUNT, ONLY_IS_MOUNT, LAST_IS_MOUNT, ALL_ARE_MOUNTS };

struct command {
	const char *name;
	const char *operands;
	const char *help;	/* help in one line */
	const char *takes;	/* keys of its options */
	unsigned least, most;	/* operands */
	enum mounts mounts;
	int (*run)(const struct arguments *a);
	const char *more;	/* NULL: nothing more is to be said */
};

static int run_sync(const struct arguments *a)
{
	return sync_mount(a->path) ? complain(a, "sync") : EXIT_SUCCESS;
}

static const struct command commands[] = {
	{ "status", "MOUNTPOINT", "how the file system is; --all: every "
	  "counter", "jA", 1, 1, ALL_ARE_MOUNTS, run_status, NULL },
	{ "metrics", "MOUNTPOINT...", "counters, as Prometheus reads them",
	  "", 1, MANY, ALL_ARE_MOUNTS, run_metrics, NULL },
	{ "model", "MOUNTPOINT", "what is known of the drive, and how surely",
	  "j", 1, 1, ALL_ARE_MOUNTS, run_model, NULL },
	{ "top", "MOUNTPOINT", "a live view: the disk, its requests, tasks",
	  "", 1, 1, ALL_ARE_MOUNTS, run_top,
	  "Draws a frame each second until q or Ctrl-C, and only one when the "
	  "output is no terminal." },
	{ "report", "MOUNTPOINT", "a page in HTML: platter, health, requests",
	  "o", 1, 1, ALL_ARE_MOUNTS, run_report, NULL },
	{ "extents", "FILE", "where a file lies, cut at tracks",
	  "j", 1, 1, NO_MOUNT, run_extents, NULL },
	{ "tracks", "FILE", "where a file lies, one line for each track",
	  "j", 1, 1, NO_MOUNT, run_tracks, NULL },
	{ "replicas", "PATH", "copies of a file; of a mount point: counts",
	  "jds", 1, 1, NO_MOUNT, run_replicas, NULL },
	{ "replicate", "PATH...", "copies files to one place, next to each "
	  "other", "naq", 1, MANY, NO_MOUNT, run_replicate,
	  "Without --near and --at that is where the disk is used most." },
	{ "heat", "MOUNTPOINT", "how much each part of the disk is used",
	  "jS", 1, 1, ALL_ARE_MOUNTS, run_heat, NULL },
	{ "scrub", "ACTION DIR", "status, start, pause or resume the scrub",
	  "jwq", 2, 2, LAST_IS_MOUNT, run_scrub,
	  "Reads and verifies all of the disk in the background. "
	  "With --wait \"start\" returns when the pass is over: 1 if damage "
	  "was met." },
	{ "tasks", "[ACTION] DIR", "what works in the background", "j", 1, 3,
	  LAST_IS_MOUNT, run_tasks,
	  "Actions: pause TASK, resume TASK, limit PERCENT." },
	{ "streams", "[admit] PATH [RATE]", "readers with a pace; promises "
	  "to them", "j", 1, 3, ONLY_IS_MOUNT, run_streams,
	  "Lists those of a mount point.  \"admit FILE RATE\" promises the "
	  "readers of a file that many bytes (or K, M, G) a second, 0 takes "
	  "the promise back; 1 if the disk can't do it." },
	{ "order", "ACTION PATH...", "now brings files together; status, "
	  "pause, resume", "jwq", 2, MANY, NO_MOUNT, run_order,
	  "Puts fragmented files together, and small files of one directory "
	  "on one track, in the background.  With --wait \"now\" returns "
	  "when all is done." },
	{ "budget", "PERCENT DIR", "share of the head's time for background "
	  "work", "", 2, 2, LAST_IS_MOUNT, run_budget, NULL },
	{ "label", "[NEW] PATH", "shows or changes the label, mounted or not",
	  "", 1, 2, LAST_IS_MOUNT, run_label, NULL },
	{ "uuid", "[NEW] PATH", "shows or changes the UUID; NEW may be "
	  "\"random\"", "", 1, 2, LAST_IS_MOUNT, run_uuid, NULL },
	{ "grow", "PATH", "makes a file system as large as its device",
	  "jq", 1, 1, LAST_IS_MOUNT, run_grow,
	  "Once the device has become larger.  Nothing makes it smaller." },
	{ "errors", "MOUNTPOINT", "lists the damage that was met",
	  "jrc", 1, 1, ALL_ARE_MOUNTS, run_errors,
	  "What has become whole goes from the list with --recheck, and at the "
	  "end of each scrub." },
	{ "scan", "OPTION...", "reads all files below a path: scan --help",
	  "", 0, 0, NO_MOUNT, NULL, NULL },
	{ "sync", "MOUNTPOINT", "writes everything to the disk",
	  "", 1, 1, ALL_ARE_MOUNTS, run_sync, NULL },
};
/* Column at which the help of a command begins; behind longer operands it
 * follows after a blank. */
#define OPERANDS_COLUMN 14
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct argp_option options[] = {
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ "all", 'A', NULL, 0, "status: every counter", 0 },
	{ "near", 'n', "PATH", 0, "replicate: put the copies near this file",
	  0 },
	{ "at", 'a', "LBN", 0, "replicate: put the copies near this sector",
	  0 },
	{ "drop", 'd', NULL, 0, "replicas: give up the copies", 0 },
	{ "set", 's', "N", 0, "replicas: copies that a block may have from "
	  "now on", 0 },
	{ "wait", 'w', NULL, 0, "scrub start, order now: return when it is "
	  "over", 0 },
	{ "recheck", 'r', NULL, 0, "errors: look at each place again, and list "
	  "what is left", 0 },
	{ "clear", 'c', NULL, 0, "errors: empty the list", 0 },
	{ "svg", 'S', "FILE", 0, "heat: draw the last accesses there", 0 },
	{ "output", 'o', "FILE", 0, "report: write the page there", 0 },
	{ "quiet", 'q', NULL, 0, "Say nothing but errors", 0 },
	{ "help", HELP_KEY, NULL, 0, "Print this, or what a command takes",
	  -1 },
	{ "usage", USAGE_KEY, NULL, 0, "Print a short usage message", -1 },
	{ "version", VERSION_KEY, NULL, 0, "Print the program's version", -1 },
	{ 0 },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

/* ---- Help ---- */

/* "status: all ..." says of which command it is. */
static const char *option_text(const struct argp_option *o)
{
	const char *text = strchr(o->doc, ':');

	return text ? text + 2 : o->doc;
}

static void print_option(FILE *f, const struct argp_option *o)
{
	int n = fprintf(f, "  -%c, --%s%s%s", o->key, o->name,
			o->arg ? "=" : "", o->arg ? o->arg : "");

	fprintf(f, "%*s%s\n", n < 24 ? 24 - n : 1, "", option_text(o));
}

static void print_usage_of(FILE *f, const struct command *c)
{
	const struct argp_option *o;

	fprintf(f, "Usage: traxctl %s", c->name);
	for (o = options; o->name; o++)
		if (strchr(c->takes, o->key))
			fprintf(f, " [--%s%s%s]", o->name, o->arg ? "=" : "",
				o->arg ? o->arg : "");
	fprintf(f, " %s\n", c->operands);
}

static void print_wrapped(const char *text)
{
	const char *end, *next;

	while (strlen(text) > HELP_COLUMNS) {
		end = text;
		while ((next = strchr(end + 1, ' ')) &&
		       next - text <= HELP_COLUMNS)
			end = next;
		printf("%.*s\n", (int)(end - text), text);
		text = end + strspn(end, " ");
	}
	puts(text);
}

static void print_help_of(const struct command *c)
{
	const struct argp_option *o;

	print_usage_of(stdout, c);
	printf("traxctl %s: %s.\n", c->name, c->help);
	if (c->more)
		print_wrapped(c->more);
	if (*c->takes)
		putchar('\n');
	for (o = options; o->name; o++)
		if (strchr(c->takes, o->key))
			print_option(stdout, o);
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
		fprintf(f, "  %-10s%-*s %s\n", commands[i].name,
			OPERANDS_COLUMN, commands[i].operands,
			commands[i].help);
	fclose(f);
	return list;
}

static void help(const struct arguments *a, struct argp_state *state, int key)
{
	if (key == VERSION_KEY)
		puts("traxctl " PACKAGE_VERSION);
	else if (a->command)
		key == HELP_KEY ? print_help_of(a->command) :
				  print_usage_of(stdout, a->command);
	else
		argp_state_help(state, stdout, key == HELP_KEY ?
				ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK :
				ARGP_HELP_USAGE);
	exit(EXIT_SUCCESS);
}

/* ---- The command line ---- */

__attribute__((noreturn))
static void wrong_use(const struct command *c)
{
	print_usage_of(stderr, c);
	fprintf(stderr, "\"traxctl %s --help\" says more.\n", c->name);
	exit(EXIT_WRONG_USE);
}

static uint64_t take_number(const char *name, const char *arg)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(arg, &end, 0);
	if (errno || *end || end == arg || *arg == '-') {
		fprintf(stderr, "traxctl: --%s: \"%s\" is not a number\n", name,
			arg);
		exit(EXIT_WRONG_USE);
	}
	return n;
}

static void take_option(struct arguments *a, int key, char *arg)
{
	switch (key) {
	case 'j':
		a->json = true;
		break;
	case 'A':
		a->all = true;
		break;
	case 'n':
		a->near = arg;
		break;
	case 'a':
		a->at = take_number("at", arg);
		break;
	case 'd':
		a->drop = true;
		break;
	case 's':
		a->set = (long)take_number("set", arg);
		break;
	case 'w':
		a->wait = true;
		break;
	case 'r':
		a->recheck = true;
		break;
	case 'c':
		a->clear = true;
		break;
	case 'S':
		a->svg = arg;
		break;
	case 'o':
		a->output = arg;
		break;
	}
}

static void take_operand(struct arguments *a, char *arg,
			 struct argp_state *state)
{
	if (!a->command) {
		a->command = find_command(arg);
		if (!a->command || !a->command->run)
			argp_error(state, "no command \"%s\"", arg);
		return;
	}
	a->paths[a->paths_n] = strdup(arg);
	if (!a->paths[a->paths_n++])
		argp_failure(state, EXIT_FAILED, ENOMEM, "%s", arg);
}

/* Replaces paths by their mount points.  A path outside of a traxfs stays as it
 * is. */
static void take_mount_points(struct arguments *a)
{
	static const unsigned from_last[] = {
		[ONLY_IS_MOUNT] = 1, [LAST_IS_MOUNT] = 1,
		[ALL_ARE_MOUNTS] = MANY,
	};
	enum mounts mounts = a->command->mounts;
	unsigned i, n = from_last[mounts];
	struct stat st;
	char *root;

	if (mounts == ONLY_IS_MOUNT && a->paths_n > 1)
		n = 0;
	for (i = a->paths_n; i-- > 0 && n-- > 0;) {
		if (stat(a->paths[i], &st) || !S_ISDIR(st.st_mode))
			continue;
		root = traxfs_mount_point(a->paths[i]);
		if (!root)
			continue;
		free(a->paths[i]);
		a->paths[i] = root;
	}
}

/* Called when all arguments are known: does the command take the options that
 * were given? */
static void check_use(const struct arguments *a)
{
	const struct command *c = a->command;
	const struct argp_option *o;

	for (o = options; o->name; o++) {
		if (!(a->given & option_bit(o->key)) ||
		    strchr(c->takes, o->key))
			continue;
		fprintf(stderr, "traxctl: %s takes no --%s\n", c->name,
			o->name);
		wrong_use(c);
	}
	if (a->paths_n < c->least || a->paths_n > c->most)
		wrong_use(c);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *a = state->input;

	if (key == HELP_KEY || key == USAGE_KEY || key == VERSION_KEY)
		help(a, state, key);
	if (key == ARGP_KEY_ARG)
		take_operand(a, arg, state);
	else if (key == ARGP_KEY_END && !a->command)
		argp_usage(state);
	else if (key == ARGP_KEY_END)
		check_use(a);
	else if (key <= 0 || key > 'z')
		return ARGP_ERR_UNKNOWN;
	if (key > 0 && key <= 'z' && key != ARGP_KEY_ARG) {
		a->given |= option_bit(key);
		take_option(a, key, arg);
	}
	return 0;
}

/* "help" and "help COMMAND" are other words for --help. */
static void say_help(char **argv, int argc)
{
	if (argc < 2 || strcmp(argv[1], "help"))
		return;
	argv[1] = argc > 2 ? argv[2] : "--help";
	if (argc > 2)
		argv[2] = "--help";
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "COMMAND [OPTION...] PATH...",
		"Shows and controls a mounted traxfs.\v ", NULL, help_filter,
		NULL,
	};
	static char scan_name[] = "traxctl scan";	/* in its messages */
	struct arguments a = { .set = -1 };
	int code;

	say_help(argv, argc);
	/* It has options of its own, and a command line behind them. */
	if (argc > 1 && !strcmp(argv[1], "scan")) {
		argv[1] = scan_name;
		return scan_main(argc - 1, argv + 1);
	}
	a.paths = calloc((size_t)argc + 1, sizeof(*a.paths));
	if (!a.paths)
		return EXIT_FAILED;
	argp_err_exit_status = EXIT_WRONG_USE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &a);
	if (a.given & option_bit('q')) {
		progress_mute();
		if (!freopen("/dev/null", "w", stdout))
			return EXIT_FAILED;
	}
	take_mount_points(&a);
	a.path = a.paths[0];
	code = a.command->run(&a);
	while (a.paths_n)
		free(a.paths[--a.paths_n]);
	free(a.paths);
	return code;
}
