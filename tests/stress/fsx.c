/*
 * fsx.c - random operations on files, each compared with a model.
 *
 *   fsx [--seed N] [--ops N] [--seconds N] [--files N] [--processes N]
 *       [--size BYTES] [--shared] [--skip KIND,...] [--log DIRECTORY]
 *       [--save DIRECTORY] DIRECTORY
 *   fsx --replay LIST DIRECTORY
 *   fsx --reduce LIST DIRECTORY
 *
 * Every process has its own files; with --shared also one that all of them
 * write, each in its own odd part.  When something is wrong the last
 * operations are printed and all of them are written to a list in the log
 * directory (/tmp), which --replay runs again and --reduce makes as short as
 * it can.  --save keeps copies of the models, to compare after a remount.
 * Exit: 0, 1 (the file system is wrong), 2 (usage).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/stress/fsx.h"
#include "tests/stress/stress.h"

#define SHOWN_OPS 200

struct config {
	uint64_t seed;
	unsigned long ops;
	double seconds;
	unsigned files, processes;
	size_t size;
	bool shared;
	const char *log, *save, *replay, *reduce, *directory;
	bool skip[FSX_KINDS_MAX];
};

struct list {
	struct fsx_op *ops;
	size_t n, room;
	unsigned files;
	size_t size;
};

/* ---- Lists of operations as text ---- */

static void print_op(FILE *to, const struct fsx_op *op)
{
	fprintf(to, "%s %u %lu %u %u %lu %u %lu\n", fsx_kinds[op->kind].name,
		op->file, (long)op->at, op->bytes, op->file2, (long)op->at2,
		op->flags, (long)op->seed);
}

static void list_add(struct list *l, const struct fsx_op *op)
{
	if (l->n == l->room) {
		l->room = l->room ? l->room * 2 : 1024;
		l->ops = reallocarray(l->ops, l->room, sizeof(*l->ops));
		if (!l->ops)
			stress_die("no memory for operations");
	}
	l->ops[l->n++] = *op;
}

static void list_write(const struct list *l, const char *path)
{
	FILE *to = fopen(path, "w");
	size_t i;

	if (!to)
		stress_die("%s", path);
	fprintf(to, "files %u size %zu\n", l->files, l->size);
	for (i = 0; i < l->n; i++)
		print_op(to, &l->ops[i]);
	fclose(to);
}

static void list_read(struct list *l, const char *path)
{
	FILE *from = fopen(path, "r");
	struct fsx_op op;
	char kind[32];

	if (!from || fscanf(from, "files %u size %zu", &l->files, &l->size) != 2
	    || l->files == 0 || l->files > FSX_FILES_MAX)
		stress_die("%s", path);
	while (fscanf(from, "%31s %u %lu %u %u %lu %u %lu", kind, &op.file,
		      &op.at, &op.bytes, &op.file2, &op.at2, &op.flags,
		      &op.seed) == 8) {
		for (op.kind = 0; op.kind < fsx_kind_count(); op.kind++)
			if (strcmp(fsx_kinds[op.kind].name, kind) == 0)
				break;
		if (op.kind < fsx_kind_count())
			list_add(l, &op);
	}
	fclose(from);
}

/* ---- Choosing ---- */

static uint64_t choose_offset(uint64_t *random, size_t size)
{
	uint64_t at = stress_below(random, size);

	switch (stress_below(random, 6)) {
	case 0:
		return at / 4096 * 4096;
	case 1:
		return at / 65536 * 65536 + stress_below(random, 3);
	case 2:
		return stress_below(random, 3000);
	}
	return at;
}

static uint32_t choose_bytes(uint64_t *random, size_t size)
{
	uint64_t most = size / 4;

	switch (stress_below(random, 6)) {
	case 0:
		return 1 + stress_below(random, 16);
	case 1:
	case 2:
		return 1 + stress_below(random, 5000);
	case 3:
		return 4096 * (1 + stress_below(random, 8));
	case 4:
		return 65536 * (1 + stress_below(random, 3));
	}
	return 1 + stress_below(random, most);
}

static struct fsx_op choose_op(const struct config *c, unsigned files,
			       uint64_t *random)
{
	struct fsx_op op = { 0 };
	unsigned total = 0, i;
	uint64_t pick;

	for (i = 0; i < fsx_kind_count(); i++)
		total += fsx_kinds[i].weight;
	pick = stress_below(random, total);
	while (pick >= fsx_kinds[op.kind].weight)
		pick -= fsx_kinds[op.kind++].weight;
	op.file = stress_below(random, files);
	op.file2 = stress_below(random, files);
	op.flags = stress_random(random) & FSX_FLAVOUR;
	if (stress_below(random, 4) == 0)
		op.flags |= FSX_FROM_END;
	if (stress_below(random, 4) == 0)
		op.flags |= FSX_ALIGN;
	op.at = choose_offset(random, c->size);
	op.at2 = choose_offset(random, c->size);
	op.bytes = choose_bytes(random, c->size);
	op.seed = 1 + stress_below(random, 1u << 30);
	return op;
}

/* ---- Running ---- */

static void report(const struct config *c, unsigned process,
		   const struct fsx_world *w, const struct list *l)
{
	size_t i = l->n > SHOWN_OPS ? l->n - SHOWN_OPS : 0;
	char path[512];

	snprintf(path, sizeof(path), "%s/fsx-%lu-%u.ops", c->log,
		 (long)c->seed, process);
	list_write(l, path);
	for (; i < l->n; i++) {
		fprintf(stderr, "%zu: ", i);
		print_op(stderr, &l->ops[i]);
	}
	fprintf(stderr, "fsx: seed %lu process %u operation %zu: %s\n"
		"fsx: all operations are in %s\n", (long)c->seed, process,
		l->n - 1, w->wrong, path);
}

static void save_models(const struct config *c, const struct fsx_world *w)
{
	char path[1100];
	unsigned i;

	for (i = 0; i < w->nfiles; i++) {
		const struct fsx_file *f = &w->files[i];
		FILE *to;

		if (f->fixed)
			continue;
		snprintf(path, sizeof(path), "%s/%s", c->save,
			 strrchr(f->path, '/') + 1);
		to = fopen(path, "w");
		if (!to || fwrite(f->model, 1, f->size, to) != f->size ||
		    fclose(to))
			stress_die("%s", path);
	}
}

static const char *unsupported(const struct fsx_world *w, char *to)
{
	unsigned i;

	*to = 0;
	for (i = 0; i < fsx_kind_count(); i++)
		if (w->unsupported[i])
			strcat(strcat(to, " "), fsx_kinds[i].name);
	return to;
}

static int run_process(const struct config *c, unsigned process)
{
	double end = stress_now() + c->seconds;
	uint64_t random = c->seed * 1000 + process;
	char shared[512], without[512];
	struct list l = { .files = c->files, .size = c->size };
	struct fsx_world w;
	bool ok = true;

	fsx_world_open(&w, c->directory, process, c->files, c->size);
	if (c->shared) {
		size_t part = c->size / c->processes;

		snprintf(shared, sizeof(shared), "%s/fsx.shared",
			 c->directory);
		fsx_world_share(&w, shared, c->size, part * process,
				part * (process + 1));
	}
	while (ok && (c->seconds ? stress_now() < end : l.n < c->ops)) {
		struct fsx_op op = choose_op(c, w.nfiles, &random);

		if (c->skip[op.kind])
			continue;
		list_add(&l, &op);
		ok = fsx_run(&w, &op);
	}
	ok = ok && fsx_verify(&w);
	if (!ok)
		report(c, process, &w, &l);
	else if (c->save)
		save_models(c, &w);
	if (ok && process == 0)
		printf("fsx: %zu operations a process, all right; not "
		       "supported:%s\n", l.n, unsupported(&w, without));
	fflush(stdout);
	fsx_world_close(&w);
	free(l.ops);
	return !ok;
}

static int run_all(const struct config *c)
{
	int failed = 0, status;
	unsigned i;

	printf("fsx: seed %lu\n", (long)c->seed);
	fflush(stdout);
	if (c->shared) {
		char path[512];
		int fd;

		snprintf(path, sizeof(path), "%s/fsx.shared", c->directory);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
		if (fd < 0 || ftruncate(fd, (off_t)c->size) || close(fd))
			stress_die("%s", path);
	}
	for (i = 0; i < c->processes; i++)
		if (fork() == 0)
			_exit(run_process(c, i));
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

/* ---- Replaying and reducing ---- */

/* Runs those of the list that are kept (NULL: all); true when nothing fails. */
static bool run_list(const struct list *l, const bool *kept,
		     const char *directory, bool silent)
{
	struct fsx_world w;
	bool ok = true;
	size_t i;

	fsx_world_open(&w, directory, 99, l->files, l->size);
	for (i = 0; ok && i < l->n; i++)
		if ((!kept || kept[i]) && l->ops[i].file < w.nfiles &&
		    l->ops[i].file2 < w.nfiles)
			ok = fsx_run(&w, &l->ops[i]);
	ok = ok && fsx_verify(&w);
	if (!ok && !silent)
		printf("operation %zu: %s\n", i - 1, w.wrong);
	fsx_world_close(&w);
	return ok;
}

/* Leaves out ever smaller pieces as long as it still fails. */
static int reduce(struct list *l, const char *path, const char *directory)
{
	bool *kept = malloc(l->n);
	size_t piece, at, i, n = 0;

	memset(kept, 1, l->n);
	for (piece = l->n / 2; piece; piece /= 2) {
		for (at = 0; at + piece <= l->n; at += piece) {
			bool before[piece];

			memcpy(before, kept + at, piece);
			memset(kept + at, 0, piece);
			if (run_list(l, kept, directory, true))
				memcpy(kept + at, before, piece);
		}
	}
	for (i = 0; i < l->n; i++)
		if (kept[i])
			l->ops[n++] = l->ops[i];
	l->n = n;
	free(kept);
	for (i = 0; i < n; i++)
		print_op(stdout, &l->ops[i]);
	list_write(l, path);
	return run_list(l, NULL, directory, false);
}

/* ---- Options ---- */

static void skip_kinds(struct config *c, char *names)
{
	char *name;
	unsigned i;

	for (name = strtok(names, ","); name; name = strtok(NULL, ","))
		for (i = 0; i < fsx_kind_count(); i++)
			if (strcmp(fsx_kinds[i].name, name) == 0)
				c->skip[i] = true;
}

static const struct option options[] = {
	{ "seed", 1, NULL, 's' },      { "ops", 1, NULL, 'o' },
	{ "seconds", 1, NULL, 't' },   { "files", 1, NULL, 'f' },
	{ "processes", 1, NULL, 'p' }, { "size", 1, NULL, 'z' },
	{ "shared", 0, NULL, 'h' },    { "skip", 1, NULL, 'k' },
	{ "log", 1, NULL, 'l' },       { "save", 1, NULL, 'v' },
	{ "replay", 1, NULL, 'r' },    { "reduce", 1, NULL, 'd' },
	{ 0 },
};

static bool take_option(struct config *c, int key)
{
	switch (key) {
	case 's': c->seed = strtoull(optarg, NULL, 0); break;
	case 'o': c->ops = strtoul(optarg, NULL, 0); break;
	case 't': c->seconds = atof(optarg); break;
	case 'f': c->files = atoi(optarg); break;
	case 'p': c->processes = atoi(optarg); break;
	case 'z': c->size = strtoull(optarg, NULL, 0); break;
	case 'h': c->shared = true; break;
	case 'k': skip_kinds(c, optarg); break;
	case 'l': c->log = optarg; break;
	case 'v': c->save = optarg; break;
	case 'r': c->replay = optarg; break;
	case 'd': c->reduce = optarg; break;
	default: return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct config c = { .seed = 1, .ops = 2000, .files = 2,
			    .processes = 1, .size = 1u << 20, .log = "/tmp" };
	struct list l = { 0 };
	int key;

	while ((key = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!take_option(&c, key))
			return 2;
	if (optind + 1 != argc || c.files == 0 || c.files >= FSX_FILES_MAX ||
	    c.processes == 0 || c.size < 65536) {
		fprintf(stderr, "usage: fsx [options] DIRECTORY\n");
		return 2;
	}
	c.directory = argv[optind];
	if (c.replay)
		list_read(&l, c.replay);
	if (c.replay)
		return run_list(&l, NULL, c.directory, false) ? 0 : 1;
	if (!c.reduce)
		return run_all(&c);
	list_read(&l, c.reduce);
	return reduce(&l, c.reduce, c.directory) ? 0 : 1;
}
