/*
 * names.c - names under several processes at once.
 *
 *   names [--seed N] [--ops N] [--processes N] [--entries N] WHAT DIRECTORY
 *
 * WHAT: tree - every process creates, links, renames, exchanges, removes names
 * of its own in directories that all share and in its own, knows exactly what
 * must be where, and all fight for some common names of which only the number
 * is known; at the end each name and each link count must be accounted for.
 * seek - one directory is read, with returns to old offsets, while others
 * change it: what stays must be seen exactly once.  big - a directory of
 * `entries` files, read, looked at and removed while it is read.
 * Exit: 0, 1 (something is wrong), 2 (usage).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/stress/names.h"
#include "tests/stress/stress.h"

/* ---- The whole tree at the end ---- */

struct seen {
	uint64_t ino;
	uint64_t nlink;
	bool directory;
};

struct walk {
	struct seen *seen;
	size_t n, room;
	bool wrong;
};

static int seen_order(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

static void walk_directory(struct walk *walk, const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	char below[4096];
	struct stat st;

	if (!dir)
		stress_die("%s", path);
	while ((e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, e->d_name);
		if (lstat(below, &st))
			stress_die("listed, but: %s", below);
		if (walk->n == walk->room) {
			walk->room = walk->room * 2 + 1024;
			walk->seen = reallocarray(walk->seen, walk->room,
						  sizeof(*walk->seen));
		}
		if (st.st_ino != e->d_ino) {
			printf("%s: d_ino %lu, st_ino %lu\n", below,
			       (long)e->d_ino, (long)st.st_ino);
			walk->wrong = true;
		}
		walk->seen[walk->n++] = (struct seen){ st.st_ino, st.st_nlink,
						       S_ISDIR(st.st_mode) };
		if (S_ISDIR(st.st_mode))
			walk_directory(walk, below);
	}
	closedir(dir);
}

/* Every link count is the number of names found. */
static bool check_tree(const char *path, long must)
{
	struct walk walk = { 0 };
	size_t i, n;

	walk_directory(&walk, path);
	qsort(walk.seen, walk.n, sizeof(*walk.seen), seen_order);
	for (i = 0; i < walk.n; i += n) {
		const struct seen *s = &walk.seen[i];

		for (n = 1; i + n < walk.n && s[n].ino == s->ino; n++)
			continue;
		if (!s->directory && s->nlink != n) {
			printf("inode %lu: %zu names, link count %lu\n",
			       (long)s->ino, n, (long)s->nlink);
			walk.wrong = true;
		}
	}
	if ((long)walk.n != must) {
		printf("%zu names found, must be %ld\n", walk.n, must);
		walk.wrong = true;
	}
	free(walk.seen);
	return !walk.wrong;
}

static int run_tree(const struct names_config *c)
{
	struct names_shared *shared = stress_shared(sizeof(*shared));
	int failed = 0, status;
	char path[512];
	unsigned i;

	for (i = 0; i < NAMES_SHARED_DIRS; i++) {
		snprintf(path, sizeof(path), "%s/s%u", c->directory, i);
		if (mkdir(path, 0755))
			stress_die("%s", path);
	}
	for (i = 0; i < c->processes; i++)
		if (fork() == 0)
			_exit(!names_process(c, shared, i));
	while (wait(&status) > 0)
		failed |= status != 0;
	if (failed)
		return 1;
	if (!check_tree(c->directory, NAMES_SHARED_DIRS + shared->own +
			shared->common))
		return 1;
	printf("names: %ld own and %ld common names, all right\n",
	       shared->own, shared->common);
	return 0;
}

/* ---- Offsets of a directory that changes ---- */

#define STAY 3000u
#define MARKS 64u

static void change_names(const struct names_config *c, unsigned process,
			 const atomic_bool *over)
{
	uint64_t random = c->seed + process;
	char path[600], path2[600];

	while (!*over) {
		unsigned k = stress_below(&random, 2000);

		snprintf(path, sizeof(path), "%s/go.%u.%u", c->directory,
			 process, k);
		snprintf(path2, sizeof(path2), "%s/go.%u.%lu", c->directory,
			 process, (long)stress_below(&random, 2000));
		switch (stress_below(&random, 3)) {
		case 0:
			close(open(path, O_CREAT | O_WRONLY, 0600));
			break;
		case 1:
			unlink(path);
			break;
		default:
			rename(path, path2);
		}
	}
	_exit(0);
}

static int stay_number(const char *name)
{
	unsigned k;

	return sscanf(name, "stay.%u", &k) == 1 && k < STAY ? (int)k : -1;
}

/* One pass; now and then goes back to a remembered place. */
static bool read_once(const struct names_config *c, uint64_t *random)
{
	struct { long place; int next; } mark[MARKS] = { 0 };
	unsigned count[STAY] = { 0 }, marks = 0, k, backs = 0;
	DIR *dir = opendir(c->directory);
	const struct dirent *e;
	int last = -2, n;
	long place;

	for (;;) {
		place = telldir(dir);
		e = readdir(dir);
		n = e ? stay_number(e->d_name) : -1;
		if (n >= 0 && marks < MARKS &&
		    stress_below(random, 40) == 0) {
			mark[marks].place = place;
			mark[marks++].next = n;
		}
		if (n >= 0)
			count[n]++;
		if (!e)
			break;
		if (marks == 0 || backs > 200 || stress_below(random, 30))
			continue;
		/* There and back: the entry at a mark is the same. */
		place = telldir(dir);
		k = stress_below(random, marks);
		seekdir(dir, mark[k].place);
		while ((e = readdir(dir)) && stay_number(e->d_name) < 0)
			continue;
		last = e ? stay_number(e->d_name) : -1;
		if (last != mark[k].next) {
			printf("at offset %ld was stay.%d, now stay.%d\n",
			       mark[k].place, mark[k].next, last);
			return false;
		}
		seekdir(dir, place);
		backs++;
	}
	closedir(dir);
	for (k = 0; k < STAY; k++)
		if (count[k] != 1) {
			printf("stay.%u was seen %u times\n", k, count[k]);
			return false;
		}
	return true;
}

static int run_seek(const struct names_config *c)
{
	atomic_bool *over = stress_shared(sizeof(*over));
	uint64_t random = c->seed;
	bool ok = true;
	char path[600];
	unsigned i;

	for (i = 0; i < STAY; i++) {
		snprintf(path, sizeof(path), "%s/stay.%u", c->directory, i);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	for (i = 1; i < c->processes; i++)
		if (fork() == 0)
			change_names(c, i, over);
	for (i = 0; ok && i < c->ops / 100 + 3; i++)
		ok = read_once(c, &random);
	*over = true;
	while (wait(NULL) > 0)
		continue;
	printf("names: %u passes over a changing directory, %s\n", i,
	       ok ? "all right" : "WRONG");
	return !ok;
}

/* ---- A large directory ---- */

static void create_part(const struct names_config *c, unsigned process)
{
	char path[600];
	unsigned i;

	for (i = process; i < c->entries; i += c->processes) {
		int fd;

		snprintf(path, sizeof(path), "%s/entry.%u", c->directory, i);
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
		if (fd < 0)
			stress_die("%s", path);
		close(fd);
	}
	_exit(0);
}

/* Reads all; with `remove` takes each name away as soon as it is read. */
static bool read_big(const struct names_config *c, unsigned must, bool remove)
{
	unsigned char *seen = calloc(c->entries, 1);
	DIR *dir = opendir(c->directory);
	unsigned n = 0, k;
	const struct dirent *e;
	bool ok = true;

	while ((e = readdir(dir))) {
		if (sscanf(e->d_name, "entry.%u", &k) != 1)
			continue;
		if (k >= c->entries || seen[k]++)
			ok = false;
		n++;
		if (remove && unlinkat(dirfd(dir), e->d_name, 0))
			stress_die("unlink %s", e->d_name);
	}
	closedir(dir);
	free(seen);
	if (n != must || !ok)
		printf("names: %u entries read, must be %u; %s\n", n, must,
		       ok ? "each once" : "some twice");
	return ok && n == must;
}

static int run_big(const struct names_config *c)
{
	uint64_t random = c->seed;
	char path[600];
	struct stat st;
	unsigned i;

	for (i = 0; i < c->processes; i++)
		if (fork() == 0)
			create_part(c, i);
	for (int status; wait(&status) > 0;)
		if (status)
			return 1;
	if (!read_big(c, c->entries, false))
		return 1;
	for (i = 0; i < 2000; i++) {
		unsigned k = stress_below(&random, 2 * c->entries);
		int rc;

		snprintf(path, sizeof(path), "%s/entry.%u", c->directory, k);
		rc = stat(path, &st);
		if ((rc == 0) != (k < c->entries))
			stress_die("stat of %s gave %d", path, rc);
	}
	if (!read_big(c, c->entries, true) || !read_big(c, 0, false))
		return 1;
	if (rmdir(c->directory))
		stress_die("rmdir");
	printf("names: a directory of %u entries, all right\n", c->entries);
	return 0;
}

/* ---- Options ---- */

static const struct option options[] = {
	{ "seed", 1, NULL, 's' },      { "ops", 1, NULL, 'o' },
	{ "processes", 1, NULL, 'p' }, { "entries", 1, NULL, 'e' },
	{ 0 },
};

int main(int argc, char **argv)
{
	struct names_config c = { .seed = 1, .ops = 2000, .processes = 3,
				  .entries = 5000 };
	const char *what;
	int key;

	while ((key = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (key) {
		case 's': c.seed = strtoull(optarg, NULL, 0); break;
		case 'o': c.ops = strtoul(optarg, NULL, 0); break;
		case 'p': c.processes = atoi(optarg); break;
		case 'e': c.entries = atoi(optarg); break;
		default: return 2;
		}
	if (optind + 2 != argc || c.processes == 0 ||
	    c.processes > NAMES_PROCESSES_MAX) {
		fprintf(stderr, "usage: names [options] WHAT DIRECTORY\n");
		return 2;
	}
	what = argv[optind];
	c.directory = argv[optind + 1];
	printf("names %s: seed %lu\n", what, (long)c.seed);
	fflush(stdout);
	if (mkdir(c.directory, 0755) && errno != EEXIST)
		stress_die("%s", c.directory);
	if (strcmp(what, "tree") == 0)
		return run_tree(&c);
	if (strcmp(what, "seek") == 0)
		return run_seek(&c);
	return strcmp(what, "big") == 0 ? run_big(&c) : 2;
}
