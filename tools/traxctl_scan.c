/*
 * traxctl_scan.c - reads the data of all files below a path in free bandwidth:
 * for a program or a pipe, for digests, to search in it, or to copy it.
 */
#include <argp.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "lib/trax.h"
#include "tools/amounts.h"
#include "tools/facts.h"
#include "tools/manifest.h"
#include "tools/progress.h"
#include "tools/scan_copy.h"
#include "tools/traxctl.h"
#include "tools/verity.h"

struct sink {
	/* Takes one record; 0 or a negative errno. */
	int (*take)(struct sink *sink, const struct trax_record *record);
	FILE *out;
	const char *pattern;
	size_t pattern_bytes;
	struct manifest *manifest;	/* NULL: digests are printed */
	struct scan_copy copy;
	struct progress progress;
	int bad;		/* files that were not seen, or not whole */
	uint64_t matches;
	uint64_t readable, unreadable;	/* bytes of free space */
};

/* ---- records to a program ---- */

static const char *type_name(enum trax_record_type type)
{
	static const char *const names[] = {
		[TRAX_DATA] = "DATA", [TRAX_WHOLE] = "WHOLE",
		[TRAX_VOID] = "VOID", [TRAX_GONE] = "GONE",
		[TRAX_BUSY] = "BUSY", [TRAX_ERROR] = "ERROR",
	};

	return names[type];
}

/* Writes "TYPE INODE OFFSET LENGTH PATH-LENGTH\n", the path, and the bytes of a
 * DATA record. */
static int take_stream(struct sink *sink, const struct trax_record *r)
{
	fprintf(sink->out, "%s %llu %llu %llu %zu\n", type_name(r->type),
		(unsigned long long)r->stat->st_ino,
		(unsigned long long)r->offset, (unsigned long long)r->bytes,
		strlen(r->path));
	fputs(r->path, sink->out);
	if (r->data)
		fwrite(r->data, 1, r->bytes, sink->out);
	return ferror(sink->out) ? -EPIPE : 0;
}

/* ---- digests ---- */

static int sum_data(const struct trax_record *r)
{
	struct verity *verity = *r->user;

	if (!verity)
		*r->user = verity = verity_new();
	return verity ? verity_add(verity, r->offset, r->data, r->bytes) :
			-ENOMEM;
}

static void sum_drop(const struct trax_record *r)
{
	verity_free(*r->user);
	*r->user = NULL;
}

/* Prints a line for --compare, but none for a file that is the same. */
static void compare(struct sink *sink, const struct trax_record *r,
		    const uint8_t *digest)
{
	static const char *const verdicts[] = {
		[MANIFEST_NEW] = "new", [MANIFEST_CHANGED] = "changed",
		[MANIFEST_ROTTED] = "rotted",
	};
	enum manifest_verdict verdict;
	struct stat st;

	/* The file may have been written to since it was found. */
	if (lstat(r->path, &st))
		st = *r->stat;
	verdict = manifest_judge(sink->manifest, r->path, digest,
				 st.st_mtim.tv_sec);
	if (verdict != MANIFEST_SAME)
		fprintf(sink->out, "%s %s\n", verdicts[verdict], r->path);
	sink->bad += verdict == MANIFEST_ROTTED;
}

static int sum_whole(struct sink *sink, const struct trax_record *r)
{
	uint8_t digest[VERITY_DIGEST_BYTES];
	unsigned i;
	int rc;

	if (!*r->user)
		*r->user = verity_new();
	if (!*r->user)
		return -ENOMEM;
	rc = verity_end(*r->user, r->offset, digest);
	sum_drop(r);
	if (rc)
		return rc;
	if (sink->manifest) {
		compare(sink, r, digest);
		return ferror(sink->out) ? -EPIPE : 0;
	}
	fputs("sha256:", sink->out);
	for (i = 0; i < sizeof(digest); i++)
		fprintf(sink->out, "%02x", digest[i]);
	fprintf(sink->out, " %s\n", r->path);
	return ferror(sink->out) ? -EPIPE : 0;
}

static int take_sum(struct sink *sink, const struct trax_record *r)
{
	switch (r->type) {
	case TRAX_DATA:
		return sum_data(r);
	case TRAX_WHOLE:
		return sum_whole(sink, r);
	default:
		sum_drop(r);
		return 0;
	}
}

/* ---- search ---- */

/* The last bytes that were read of a file, kept for a match that goes on in the
 * next record. */
struct tail {
	bool found;
	uint64_t end;
	size_t n;
	char bytes[];
};

static void grep_data(struct sink *sink, const struct trax_record *r)
{
	const size_t keep = sink->pattern_bytes - 1;
	struct tail *tail = *r->user;
	size_t n = tail && tail->end == r->offset ? tail->n : 0;
	char *joined;

	if (!tail)
		*r->user = tail = calloc(1, sizeof(*tail) + keep);
	joined = tail && !tail->found ? malloc(n + r->bytes) : NULL;
	if (!joined)
		return;
	memcpy(joined, tail->bytes, n);
	memcpy(joined + n, r->data, r->bytes);
	n += r->bytes;
	tail->found = memmem(joined, n, sink->pattern, sink->pattern_bytes);
	tail->n = n < keep ? n : keep;
	tail->end = r->offset + r->bytes;
	memcpy(tail->bytes, joined + n - tail->n, tail->n);
	free(joined);
}

static int take_grep(struct sink *sink, const struct trax_record *r)
{
	struct tail *tail = *r->user;

	if (r->type == TRAX_DATA) {
		grep_data(sink, r);
		return *r->user ? 0 : -ENOMEM;
	}
	if (r->type == TRAX_ERROR)
		return 0;
	if (r->type == TRAX_WHOLE && tail && tail->found) {
		fprintf(sink->out, "%s\n", r->path);
		sink->matches++;
	}
	free(tail);
	*r->user = NULL;
	return ferror(sink->out) ? -EPIPE : 0;
}

/* ---- a copy ---- */

static int take_copy(struct sink *sink, const struct trax_record *r)
{
	return scan_copy_take(&sink->copy, r);
}

/* ---- free space ---- */

/* Counts the bytes: reading them was the purpose. */
static int take_nothing(struct sink *sink, const struct trax_record *r)
{
	if (r->type == TRAX_DATA)
		sink->readable += r->bytes;
	else if (r->type == TRAX_ERROR)
		sink->unreadable += r->bytes;
	return 0;
}

/* ---- the loop ---- */

static void show_progress(struct sink *sink, const struct trax_status *s)
{
	double rate = s->run_ns ? (double)s->given_bytes * 1e9 /
				  (double)s->run_ns : 0;
	char more[160];

	snprintf(more, sizeof(more), "of %s, %s, %.1f MB/s",
		 size_text((double)s->total_bytes).s,
		 count_text(s->whole_files, "file").s, rate / 1e6);
	progress_say(&sink->progress, s->total_bytes ?
		     (double)s->given_bytes / (double)s->total_bytes : 1,
		     more);
}

static void note_bad(struct sink *sink, const struct trax_record *r)
{
	progress_clear(&sink->progress);
	if (r->type == TRAX_BUSY)
		fprintf(stderr, "traxctl: %s: %s\n", r->path,
			strerror(-r->error));
	else if (r->type == TRAX_ERROR)
		fprintf(stderr, "traxctl: %s: %s from %llu on cannot "
			"be read\n", r->path, count_text(r->bytes, "byte").s,
			(unsigned long long)r->offset);
	else
		return;
	sink->bad++;
}

static int run(struct trax_scan *scan, struct sink *sink)
{
	struct trax_record r;
	int rc, err = 0;

	progress_begin(&sink->progress, "scan");
	while (!err && (rc = trax_scan_next(scan, &r)) == 1) {
		if (r.type != TRAX_STATUS) {
			note_bad(sink, &r);
			err = sink->take(sink, &r);
		} else {
			show_progress(sink, &r.status);
		}
	}
	progress_clear(&sink->progress);
	if (!err && fflush(sink->out))
		err = -errno;
	return err ? err : rc;
}

/* ---- the command line ---- */

struct scan_arguments {
	const char *path, *pattern, *manifest, *copy;
	struct trax_scan_options options;
	bool sum, free, quiet;
	char **command;
};

/* Is the file there and may be written, or may it be made?  errno: why not. */
static bool may_write(const char *path)
{
	char *copy;
	bool may;

	if (!access(path, W_OK))
		return true;
	if (errno != ENOENT)
		return false;
	copy = strdup(path);
	may = copy && !access(dirname(copy), W_OK | X_OK);
	free(copy);
	return may;
}

static double take_percent(const char *arg, struct argp_state *state)
{
	char *end;
	double percent = strtod(arg, &end);

	if (end == arg || *end || !(percent > 0 && percent <= 100))
		argp_error(state, "\"%s\" is no share of more than 0 and at "
			   "most 100 percent", arg);
	return percent;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct scan_arguments *a = state->input;

	switch (key) {
	case 'p':
		a->path = arg;
		return 0;
	case 's':
		a->options.sample_percent = take_percent(arg, state);
		return 0;
	case 'l':
		a->options.last_percent = take_percent(arg, state);
		return 0;
	case 'o':
		if (strcmp(arg, "any") && strcmp(arg, "file"))
			argp_error(state, "--order is any or file");
		if (!strcmp(arg, "file"))
			a->options.flags |= TRAX_FILE_ORDER;
		else
			a->options.flags &= ~TRAX_FILE_ORDER;
		return 0;
	case 'S':
		a->sum = true;
		return 0;
	case 'c':
		a->manifest = arg;
		a->sum = true;
		return 0;
	case 'C':
		a->options.cursor = arg;
		return 0;
	case 'g':
		a->pattern = arg;
		a->options.flags |= TRAX_FILE_ORDER;
		return 0;
	case 'y':
		a->copy = arg;
		return 0;
	case 'f':
		a->free = true;
		a->options.flags |= TRAX_FREE_SPACE;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case ARGP_KEY_ARGS:
		a->command = state->argv + state->next;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = {
	{ "path", 'p', "PATH", 0, "Read this file, or all below this directory "
	  "(default: .)", 0 },
	{ "sample", 's', "PERCENT", 0, "End when this share of the data, any "
	  "of it, has been read", 0 },
	{ "promote-last", 'l', "PERCENT", 0,
	  "Read the last part as users' reads are, not only in "
	  "gaps", 0 },
	{ "order", 'o', "any|file", 0, "file: give each file's data in its "
	  "order", 0 },
	{ "sum", 'S', NULL, 0, "Print digests, as fsverity digest does", 0 },
	{ "compare", 'c', "MANIFEST", 0,
	  "Print what is not as in an earlier output of --sum", 0 },
	{ "cursor", 'C', "FILE", 0,
	  "Keep there which files are done, so that a later scan goes "
	  "on", 0 },
	{ "grep", 'g', "TEXT", 0, "Print the names of files that hold it", 0 },
	{ "copy", 'y', "DIRECTORY", 0, "Write the files there, for a backup",
	  0 },
	{ "free", 'f', NULL, 0,
	  "Read the free space instead, to find bad sectors", 0 },
	{ "quiet", 'q', NULL, 0, "Show no progress", 0 },
	{ 0 },
};

/* Starts the command that reads the records; *out is its standard input. */
static pid_t start(char **command, FILE **out)
{
	int fd[2];
	pid_t pid;

	if (pipe(fd))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fd[0], STDIN_FILENO);
		close(fd[0]);
		close(fd[1]);
		execvp(command[0], command);
		fprintf(stderr, "traxctl: %s: %s\n", command[0],
			strerror(errno));
		_exit(127);
	}
	close(fd[0]);
	*out = pid < 0 ? NULL : fdopen(fd[1], "w");
	return *out ? pid : -1;
}

static int finish(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0)
		return EXIT_FAILED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

static int scan_to(struct trax_scan *scan, const struct scan_arguments *a,
		   struct sink *sink)
{
	pid_t pid = 0;
	int rc, code = 0;

	if (a->command)
		pid = start(a->command, &sink->out);
	if (pid < 0)
		return -errno;
	rc = run(scan, sink);
	if (a->command) {
		fclose(sink->out);
		code = finish(pid);
	}
	if (rc)
		return rc;
	if (a->free && !a->command)
		printf("%llu bytes of free space were read, %llu cannot be "
		       "read\n", (unsigned long long)sink->readable,
		       (unsigned long long)sink->unreadable);
	if (a->pattern && !sink->matches && !sink->bad)
		return EXIT_FAILED;
	return code ? code : sink->bad ? EXIT_FAILED : EXIT_SUCCESS;
}

/* Chooses what is done with the records; false: options contradict. */
static bool sink_choose(const struct scan_arguments *a, struct sink *sink)
{
	if (a->sum)
		sink->take = take_sum;
	if (a->copy)
		sink->take = take_copy;
	if (a->pattern) {
		sink->take = take_grep;
		sink->pattern = a->pattern;
		sink->pattern_bytes = strlen(a->pattern);
	}
	if (a->free && !a->command)
		sink->take = take_nothing;
	return a->sum + !!a->copy + !!a->pattern + !!a->command <= 1 &&
	       (!a->pattern || sink->pattern_bytes) &&
	       !(a->free && (a->sum || a->copy || a->pattern ||
			     a->options.flags & TRAX_FILE_ORDER));
}

int scan_main(int argc, char **argv)
{
	static const struct argp argp = {
		options, parse, "[-- COMMAND ARGUMENT...]",
		"Reads all files below a path in free bandwidth.", NULL, NULL,
		NULL,
	};
	struct scan_arguments a = { .path = "." };
	struct sink sink = { .take = take_stream, .out = stdout };
	struct trax_scan *scan;
	time_t begun;
	int rc = 0;

	argp_err_exit_status = EXIT_WRONG_USE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
	if (!sink_choose(&a, &sink)) {
		fputs("traxctl: scan: one of --sum, --grep, --copy and a "
		      "command; with --free only a command\n", stderr);
		return EXIT_WRONG_USE;
	}
	if (a.quiet)
		progress_mute();
	if (a.manifest)
		rc = manifest_open(a.manifest, &sink.manifest);
	if (a.copy)
		rc = scan_copy_open(&sink.copy, a.copy, a.path);
	if (rc) {
		fprintf(stderr, "traxctl: %s: %s\n",
			a.copy ? a.copy : a.manifest,
			!a.copy && rc == -EINVAL ?
			"not what \"traxctl scan --sum\" prints" :
			strerror(-rc));
		return EXIT_FAILED;
	}
	if (a.options.cursor && !may_write(a.options.cursor)) {
		fprintf(stderr, "traxctl: %s: %s\n", a.options.cursor,
			strerror(errno));
		return EXIT_FAILED;
	}
	begun = time(NULL);
	rc = trax_scan_new(a.path, &a.options, &scan);
	if (!rc) {
		if (a.sum && !a.manifest)
			printf(MANIFEST_HEAD "%lld\n", (long long)begun);
		rc = scan_to(scan, &a, &sink);
		trax_scan_free(scan);
	}
	if (rc >= 0 && sink.manifest)
		manifest_print_missing(sink.manifest, stdout);
	manifest_close(sink.manifest);
	if (a.copy)
		scan_copy_close(&sink.copy);
	if (rc >= 0)
		return rc;
	errno = -rc;
	return complain(&(struct arguments){ .path = a.path }, "scan");
}
