/*
 * traxbench - measurements of traxfs; each sub-command is a row of a table.
 */
#include <argp.h>
#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/msg.h"
#include "bench/papers.h"
#include "bench/peers.h"
#include "bench/ram.h"
#include "bench/replicas.h"
#include "bench/layout.h"
#include "bench/sched.h"
#include "bench/work.h"
#include "tools/bare_fuse.h"
#include "tools/peers_page.h"

const char *argp_program_version = "traxbench (" PACKAGE_STRING ")";

enum { OPT_IMAGE_DIR = 256, OPT_BLIND, OPT_SCRATCH,
       OPT_HOST, OPT_OTHER, OPT_MEMORY, OPT_SIZE, OPT_AGED,
       OPT_HTML };

/* Sets the folder of the other build's programs, for shell commands. */
static void set_other(const char *dir)
{
	setenv("OTHER", dir, 1);
}

static const struct argp_option peers_argp_options[] = {
	{ "fs", 'f', "LIST", 0, "File systems (all that are here)", 0 },
	{ "drive", 'd', "SPEC", 0, "Drive specification or name (modern)", 0 },
	{ "workload", 'w', "LIST", 0, "Workloads; \"list\" lists them", 0 },
	{ "rounds", 'r', "N", 0, "Rounds, alternating (3)", 0 },
	{ "percent", 'p', "N", 0, "Scale sizes and counts (100)", 0 },
	{ "slow", 's', "N", 0, "Stretch the drive's times by N (1)", 0 },
	{ "json", 'j', "FILE", 0, "Write all figures to FILE", 0 },
	{ "image-dir", OPT_IMAGE_DIR, "DIR", 0,
	  "Where the sparse image goes (/var/tmp)", 0 },
	{ "html", OPT_HTML, "FILE", 0, "Write a page with everything to FILE",
	  0 },
	{ "memory", OPT_MEMORY, "MIB", 0,
	  "Of daemon and workload, in a control group", 0 },
	{ "size", OPT_SIZE, "MIB", 0, "Of the drive, its outer tracks", 0 },
	{ "aged", OPT_AGED, "PERCENT", OPTION_ARG_OPTIONAL,
	  "Then fill it so far (85), age it, run all again", 0 },
	{ "blind", OPT_BLIND, NULL, 0,
	  "Give mkfs.traxfs no profile of the drive", 0 },
	{ "other", OPT_OTHER, "DIR", 0,
	  "Compare with the traxfs in DIR: -f traxfs,other", 0 },
	{ 0 },
};

static void list_workloads(void)
{
	for (const struct work *w = work_table; w->name; w++)
		printf("%-10s %s\n", w->name, w->about);
	exit(0);
}

static uint64_t take_number(const char *text, struct argp_state *state)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-')
		argp_error(state, "not a number: \"%s\"", text);
	return n;
}

static unsigned number(struct argp_state *state, const char *text)
{
	uint64_t n = take_number(text, state);

	if (n < 1 || n > 10000)
		argp_error(state, "not a number from 1 to 10000: %s", text);
	return (unsigned)n;
}

/* How full a file system is that has aged, unless told. */
#define AGED_PERCENT 85u

struct peers_call {
	struct peers_options options;
	const char *json, *html;	/* files to write; NULL: none */
};

static error_t peers_parse(int key, char *arg, struct argp_state *state)
{
	struct peers_call *call = state->input;
	struct peers_options *o = &call->options;

	switch (key) {
	case 'f':
		o->fs = arg;
		return 0;
	case 'd':
		o->drive = arg;
		return 0;
	case 'w':
		if (!strcmp(arg, "list"))
			list_workloads();
		o->work = arg;
		return 0;
	case 'r':
		o->rounds = number(state, arg);
		return 0;
	case 'p':
		o->percent = number(state, arg);
		return 0;
	case 's':
		o->slow = number(state, arg);
		return 0;
	case 'j':
		call->json = arg;
		return 0;
	case OPT_IMAGE_DIR:
		o->image_dir = arg;
		return 0;
	case OPT_HTML:
		call->html = arg;
		return 0;
	case OPT_MEMORY:
		o->memory_mib = number(state, arg);
		return 0;
	case OPT_SIZE:
		o->size_mib = (unsigned)take_number(arg, state);
		return 0;
	case OPT_AGED:
		o->aged_percent = arg ? number(state, arg) : AGED_PERCENT;
		return 0;
	case OPT_BLIND:
		o->blind = true;
		return 0;
	case OPT_OTHER:
		set_other(arg);
		o->fs = "traxfs,other";
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp peers_argp = {
	peers_argp_options, peers_parse, "",
	"traxfs and its peers side by side on one emulated drive.  Needs root.",
	NULL, NULL, NULL
};

/* Our own programs are found beside this one, installed or not. */
static void prepend_path(void)
{
	char self[PATH_MAX], path[3 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *old = getenv("PATH");

	if (n < 0)
		return;
	self[n] = 0;
	snprintf(path, sizeof(path), "%s:%s", dirname(self),
		 old ? old : "/usr/sbin:/usr/bin:/sbin:/bin");
	setenv("PATH", path, 1);
}

static int command_peers(int argc, char **argv)
{
	struct peers_call call = { .options = { .drive = "modern" } };
	json_t *report = NULL;
	int rc;

	argp_parse(&peers_argp, argc, argv, 0, NULL, &call);
	if (geteuid() != 0) {
		fprintf(stderr, "traxbench peers: must be root (it mounts)\n");
		return 1;
	}
	prepend_path();
	rc = peers_run(&call.options, &report);
	if (!rc && call.json &&
	    json_dump_file(report, call.json, JSON_INDENT(1))) {
		fprintf(stderr, "traxbench peers: cannot write %s\n",
			call.json);
		rc = -EIO;
	}
	if (!rc && call.html)
		rc = peers_page_write(report, call.html);
	json_decref(report);
	return rc ? 1 : 0;
}

static const struct argp_option sched_argp_options[] = {
	{ "drive", 'd', "SPEC", 0, "Drive specification or name", 0 },
	{ "requests", 'n', "N", 0, "Requests of one measurement", 0 },
	{ "seed", 's', "N", 0, "Of all that is random (1)", 0 },
	{ "memory", 'm', "MIB", 0, "Of a file system (the experiment's)", 0 },
	{ "quick", 'q', NULL, 0, "A tenth of the requests", 0 },
	{ "device", 'D', "PATH", 0, "In real time on this disk", 0 },
	{ "scratch", OPT_SCRATCH, NULL, 0, "Overwrite the disk", 0 },
	{ "host", OPT_HOST, "US", 0,
	  "How late a busy host is each time, at the median (0)", 0 },
	{ 0 },
};

struct sched_call {
	struct sched_options options;
	const struct sched_experiment *experiment;
};

static error_t sched_parse(int key, char *arg, struct argp_state *state)
{
	struct sched_call *call = state->input;

	switch (key) {
	case 'd':
		call->options.drive = arg;
		return 0;
	case 'n':
		call->options.requests = take_number(arg, state);
		return 0;
	case 's':
		call->options.seed = take_number(arg, state);
		return 0;
	case 'm':
		call->options.memory_mib = take_number(arg, state);
		return 0;
	case 'D':
		call->options.device = arg;
		return 0;
	case OPT_SCRATCH:
		call->options.scratch = true;
		return 0;
	case OPT_HOST:
		call->options.host_ns = take_number(arg, state) * 1000;
		return 0;
	case 'q':
		call->options.quick = true;
		return 0;
	case ARGP_KEY_ARG:
		call->experiment = sched_find(arg);
		if (!call->experiment)
			argp_error(state, "no such experiment: %s", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp sched_argp = {
	sched_argp_options, sched_parse, "EXPERIMENT",
	"The disk queue on simulated drives, in virtual time.", NULL, NULL,
	NULL
};

static int command_sched(int argc, char **argv)
{
	struct sched_call call = { .options = { .seed = 1 } };
	const struct sched_experiment *experiment;

	argp_parse(&sched_argp, argc, argv, 0, NULL, &call);
	msg_set_level(call.options.device ? MSG_INFO : MSG_WARN);
	if (call.experiment)
		return call.experiment->run(&call.options) ? 1 : 0;
	for (experiment = sched_table; experiment->name; experiment++)
		printf("%-10s %s\n", experiment->name, experiment->about);
	return 64;
}

static const struct argp_option ram_argp_options[] = {
	{ "workload", 'w', "LIST", 0, "Show only these", 0 },
	{ "rounds", 'r', "N", 0, "Rounds, alternating (3)", 0 },
	{ "percent", 'p', "N", 0, "Scale sizes and counts (100)", 0 },
	{ "image-dir", OPT_IMAGE_DIR, "DIR", 0,
	  "Where the image goes (/dev/shm)", 0 },
	{ "other", OPT_OTHER, "DIR", 0,
	  "Compare with the traxfs in DIR, not with ext4", 0 },
	{ 0 },
};

static error_t ram_parse(int key, char *arg, struct argp_state *state)
{
	struct ram_options *o = state->input;

	switch (key) {
	case 'w':
		o->work = arg;
		return 0;
	case 'r':
		o->rounds = number(state, arg);
		return 0;
	case 'p':
		o->percent = number(state, arg);
		return 0;
	case OPT_IMAGE_DIR:
		o->image_dir = arg;
		return 0;
	case OPT_OTHER:
		set_other(arg);
		o->other = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp ram_argp = {
	ram_argp_options, ram_parse, "",
	"traxfs and ext4 on a loop device in memory.  Needs root.",
	NULL, NULL, NULL
};

static int command_ram(int argc, char **argv)
{
	struct ram_options options = { .mount_bare = bare_fuse_mount };

	argp_parse(&ram_argp, argc, argv, 0, NULL, &options);
	if (geteuid() != 0) {
		fprintf(stderr, "traxbench ram: must be root (it mounts)\n");
		return 1;
	}
	prepend_path();
	return ram_run(&options) ? 1 : 0;
}

static const struct argp_option layout_argp_options[] = {
	{ "drive", 'd', "SPEC", 0, "File, name or random:SEED (modern)", 0 },
	{ "memory", 'm', "MIB", 0, "Of the file system (32 to 1024)", 0 },
	{ "mib", 'M', "MIB", 0, "Of all files together (256)", 0 },
	{ "seed", 's', "N", 0, "Of all that is random (1)", 0 },
	{ 0 },
};

static error_t layout_parse(int key, char *arg, struct argp_state *state)
{
	struct layout_options *options = state->input;

	switch (key) {
	case 'd':
		options->drive = arg;
		return 0;
	case 'm':
		options->memory_mib = take_number(arg, state);
		return 0;
	case 'M':
		options->mib = take_number(arg, state);
		return 0;
	case 's':
		options->seed = take_number(arg, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp layout_argp = {
	layout_argp_options, layout_parse, NULL,
	"How files lie that are written with little memory.", NULL, NULL, NULL
};

static int command_layout(int argc, char **argv)
{
	struct layout_options options = { .seed = 1 };

	argp_parse(&layout_argp, argc, argv, 0, NULL, &options);
	msg_set_level(MSG_WARN);
	return layout_table(&options) ? 1 : 0;
}

static const struct argp_option replicas_argp_options[] = {
	{ "drive", 'd', "SPEC", 0, "File, name or random:SEED (modern)", 0 },
	{ "runs", 'r', "N", 0, "Runs of each workload (7)", 0 },
	{ "percent", 'p', "N", 0, "Scale files and requests (100)", 0 },
	{ "seed", 's', "N", 0, "Of all that is random (1)", 0 },
	{ 0 },
};

static error_t replicas_parse(int key, char *arg, struct argp_state *state)
{
	struct replicas_options *options = state->input;

	switch (key) {
	case 'd':
		options->drive = arg;
		return 0;
	case 'r':
		options->runs = (unsigned)take_number(arg, state);
		return 0;
	case 'p':
		options->percent = (unsigned)take_number(arg, state);
		return 0;
	case 's':
		options->seed = take_number(arg, state);
		return 0;
	case ARGP_KEY_ARG:
		options->workload = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp replicas_argp = {
	replicas_argp_options, replicas_parse,
	"[trees|aged|oltp|web|desktop|change|busy]",
	"What copies in free space bring, in virtual time.", NULL, NULL, NULL
};

static int command_replicas(int argc, char **argv)
{
	struct replicas_options options = { .drive = "modern", .seed = 1 };

	argp_parse(&replicas_argp, argc, argv, 0, NULL, &options);
	msg_set_level(MSG_WARN);
	return replicas_run(&options) ? 1 : 0;
}

static const struct argp_option papers_argp_options[] = {
	{ "seed", 's', "N", 0, "Of all that is random (1)", 0 },
	{ "quick", 'q', NULL, 0, "A tenth of the measurements", 0 },
	{ "json", 'j', "FILE", 0, "Write all figures to FILE", 0 },
	{ 0 },
};

static error_t papers_parse(int key, char *arg, struct argp_state *state)
{
	struct papers_options *options = state->input;

	switch (key) {
	case 's':
		options->seed = take_number(arg, state);
		return 0;
	case 'q':
		options->quick = true;
		return 0;
	case 'j':
		options->json = arg;
		return 0;
	case ARGP_KEY_ARG:
		options->only = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp papers_argp = {
	papers_argp_options, papers_parse, "[PAPER]",
	"The figures of the papers, beside the same here, in virtual time.",
	NULL, NULL, NULL
};

static int command_papers(int argc, char **argv)
{
	struct papers_options options = { .seed = 1 };

	argp_parse(&papers_argp, argc, argv, 0, NULL, &options);
	msg_set_level(MSG_WARN);
	return papers_run(&options) ? 1 : 0;
}

static const struct {
	const char *name, *about;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "peers", "compare with other file systems", command_peers },
	{ "papers", "compare with the papers, in virtual time",
	  command_papers },
	{ "ram", "compare with ext4 without a disk in the way", command_ram },
	{ "sched", "the disk queue in virtual time", command_sched },
	{ "layout", "how files lie, in virtual time", command_layout },
	{ "replicas", "copies in free space, in virtual time",
	  command_replicas },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static int usage(FILE *to, int status)
{
	fprintf(to, "Usage: traxbench COMMAND [OPTION...]\n");
	for (unsigned i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i].name,
			commands[i].about);
	fprintf(to, "traxbench COMMAND --help tells more.\n");
	return status;
}

/* Runs a command; its messages and help begin with "traxbench COMMAND". */
static int run_command(unsigned i, int argc, char **argv)
{
	char name[32];

	snprintf(name, sizeof(name), "traxbench %s", commands[i].name);
	argv[0] = name;
	return commands[i].run(argc, argv);
}

int main(int argc, char **argv)
{
	if (argc > 1 && (!strcmp(argv[1], "--version") ||
			 !strcmp(argv[1], "-V"))) {
		printf("%s\n", argp_program_version);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "--help"))
		return usage(stdout, 0);
	for (unsigned i = 0; argc > 1 && i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return run_command(i, argc - 1, argv + 1);
	return usage(stderr, 64);
}
