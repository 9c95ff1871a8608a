/*
 * names_process.c - one process that changes names and knows what must be.
 *
 * Nodes are inodes, names point to them.  Every name slot has a text of its
 * own, so a process never meets its own names by accident, and others' never.
 * Nodes 0 to NAMES_SHARED_DIRS - 1 are the directories that all share.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/stress/names.h"
#include "tests/stress/stress.h"

#define NODES 200u
#define NAMES 300u
#define COMMON 40u
#define SAID 60u
#define PATH_ROOM 4096u

enum node_type { FREE, DIRECTORY, REGULAR, SYMLINK, FIFO };

struct node {
	enum node_type type;
	unsigned links;		/* names */
	unsigned bytes;		/* content, by id */
	uint64_t id, ino;
	unsigned xattr;		/* bytes of user.stress by id; 0: none */
	int fd;			/* unlinked and still open; else -1 */
};

struct name {
	int node;		/* -1: unused */
	int parent;
};

struct process {
	const struct names_config *config;
	struct names_shared *shared;
	unsigned number;
	uint64_t random, next_id;
	struct node nodes[NODES];
	struct name names[NAMES];
	char said[SAID][160];
	unsigned long step;
	bool failed;
};

/* ---- Saying ---- */

static void say(struct process *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void say(struct process *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(p->said[p->step++ % SAID], sizeof(p->said[0]), format, ap);
	va_end(ap);
}

static void wrong(struct process *p, const char *what, const char *path)
{
	int error = errno;
	unsigned long i;

	if (p->failed)
		return;
	p->failed = true;
	for (i = p->step > SAID ? p->step - SAID : 0; i < p->step; i++)
		fprintf(stderr, "%u.%lu: %s\n", p->number, i,
			p->said[i % SAID]);
	fprintf(stderr, "names: seed %lu process %u step %lu: %s: %s (%s)\n",
		(long)p->config->seed, p->number, p->step, path, what,
		strerror(error));
}

/* ---- The model ---- */

/* Texts of 3 to 255 bytes, the same for a slot at all times. */
static void name_text(const struct process *p, unsigned slot, char *to)
{
	unsigned length = slot % 7 ? slot % 29 : 40 + slot % 190;
	int n = sprintf(to, "p%u.%u.", p->number, slot);

	if (slot % 97 == 0)
		length = 255u - (unsigned)n;
	memset(to + n, 'a' + slot % 26, length);
	to[(unsigned)n + length] = 0;
}

static void node_path(const struct process *p, int node, char *to);

static void name_path(const struct process *p, unsigned slot, char *to)
{
	char text[256 + 32];

	name_text(p, slot, text);
	node_path(p, p->names[slot].parent, to);
	strcat(strcat(to, "/"), text);
}

/* Of a directory: it has one name, or is shared. */
static void node_path(const struct process *p, int node, char *to)
{
	unsigned i;

	if (node < (int)NAMES_SHARED_DIRS) {
		sprintf(to, "%s/s%d", p->config->directory, node);
		return;
	}
	for (i = 0; i < NAMES; i++)
		if (p->names[i].node == node) {
			name_path(p, i, to);
			return;
		}
	strcpy(to, "/nowhere");
}

static int name_of_directory(const struct process *p, int node)
{
	unsigned i;

	for (i = 0; i < NAMES; i++)
		if (p->names[i].node == node)
			return (int)i;
	return -1;
}

static bool is_empty(const struct process *p, int directory)
{
	unsigned i;

	for (i = 0; i < NAMES; i++)
		if (p->names[i].node >= 0 && p->names[i].parent == directory)
			return false;
	return true;
}

static unsigned subdirectories(const struct process *p, int directory)
{
	unsigned i, n = 0;

	for (i = 0; i < NAMES; i++)
		n += p->names[i].node >= 0 &&
		     p->names[i].parent == directory &&
		     p->nodes[p->names[i].node].type == DIRECTORY;
	return n;
}

/* `above` is `node` or one of the directories it lies in. */
static bool lies_in(const struct process *p, int node, int above)
{
	while (node >= (int)NAMES_SHARED_DIRS) {
		if (node == above)
			return true;
		node = p->names[name_of_directory(p, node)].parent;
	}
	return node == above;
}

static unsigned depth(const struct process *p, int node)
{
	unsigned n = 0;

	while (node >= (int)NAMES_SHARED_DIRS) {
		node = p->names[name_of_directory(p, node)].parent;
		n++;
	}
	return n;
}

/* ---- Choosing; -1: there is none ---- */

static int choose_name(struct process *p, bool used)
{
	unsigned i, at = stress_below(&p->random, NAMES);

	for (i = 0; i < NAMES; i++, at = (at + 1) % NAMES)
		if ((p->names[at].node >= 0) == used)
			return (int)at;
	return -1;
}

static int choose_directory(struct process *p)
{
	unsigned i, at = stress_below(&p->random, NODES);

	if (stress_below(&p->random, 2))
		return stress_below(&p->random, NAMES_SHARED_DIRS);
	for (i = 0; i < NODES; i++, at = (at + 1) % NODES)
		if (p->nodes[at].type == DIRECTORY && depth(p, at) < 8)
			return (int)at;
	return 0;
}

static int choose_free_node(const struct process *p)
{
	unsigned i;

	for (i = NAMES_SHARED_DIRS; i < NODES; i++)
		if (p->nodes[i].type == FREE)
			return (int)i;
	return -1;
}

/* ---- Checks ---- */

static bool is_content(int fd, const struct node *n)
{
	uint8_t buffer[4096];
	ssize_t got = pread(fd, buffer, sizeof(buffer), 0);

	return got == (ssize_t)n->bytes &&
	       stress_compare(buffer, n->id, 0, n->bytes) == n->bytes;
}

static void check_node(struct process *p, const struct node *n, int slot,
		       const struct stat *st, const char *path)
{
	static const mode_t type[] = { 0, S_IFDIR, S_IFREG, S_IFLNK,
				       S_IFIFO };
	unsigned links = n->links;

	if ((st->st_mode & S_IFMT) != type[n->type])
		wrong(p, "type", path);
	if (n->type == DIRECTORY && st->st_nlink != 1)
		links = 2 + subdirectories(p, p->names[slot].node);
	if (st->st_nlink != links)
		wrong(p, "link count", path);
	if (n->type == REGULAR && st->st_size != n->bytes)
		wrong(p, "size", path);
	if (st->st_ino != n->ino)
		wrong(p, "inode number", path);
}

static void check_name(struct process *p, int slot)
{
	const struct node *n = &p->nodes[p->names[slot].node];
	char path[PATH_ROOM], buffer[8192], must[32];
	struct stat st;
	ssize_t got;
	int fd;

	name_path(p, slot, path);
	if (lstat(path, &st)) {
		wrong(p, "lstat", path);
		return;
	}
	check_node(p, n, slot, &st, path);
	if (n->type == REGULAR) {
		fd = open(path, O_RDONLY);
		if (fd < 0 || !is_content(fd, n))
			wrong(p, "content", path);
		close(fd);
	}
	if (n->type == SYMLINK) {
		got = readlink(path, buffer, sizeof(buffer));
		sprintf(must, "to.%lu", (long)n->id);
		if (got != (ssize_t)strlen(must) || memcmp(buffer, must, got))
			wrong(p, "readlink", path);
	}
	if (n->type == REGULAR || n->type == DIRECTORY) {
		got = getxattr(path, "user.stress", buffer, sizeof(buffer));
		if (n->xattr ? got != (ssize_t)n->xattr ||
			       stress_compare(buffer, n->id, 0, n->xattr) !=
				       n->xattr :
			       got >= 0 || errno != ENODATA)
			wrong(p, "getxattr", path);
	}
}

/* Each own name in a directory is listed once, others' do not matter. */
static void check_list(struct process *p, int directory)
{
	char path[PATH_ROOM], text[512], own[16];
	unsigned seen[NAMES] = { 0 }, slot, i;
	const struct dirent *e;
	DIR *dir;

	node_path(p, directory, path);
	dir = opendir(path);
	if (!dir) {
		wrong(p, "opendir", path);
		return;
	}
	sprintf(own, "p%u.", p->number);
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, own, strlen(own)))
			continue;
		slot = atoi(e->d_name + strlen(own));
		name_text(p, slot, text);
		if (slot >= NAMES || strcmp(text, e->d_name))
			wrong(p, "a name that never was", e->d_name);
		else
			seen[slot]++;
	}
	closedir(dir);
	for (i = 0; i < NAMES; i++) {
		unsigned must = p->names[i].node >= 0 &&
				p->names[i].parent == directory;

		if (seen[i] != must) {
			name_text(p, i, text);
			wrong(p, must ? "not listed once" : "listed", text);
		}
	}
}

/* ---- Operations ---- */

static void node_born(struct process *p, int slot, int parent, int node,
		      enum node_type type)
{
	struct node *n = &p->nodes[node];
	char path[PATH_ROOM];
	struct stat st;

	p->names[slot].node = node;
	p->names[slot].parent = parent;
	n->type = type;
	n->links = 1;
	n->fd = -1;
	n->xattr = 0;
	name_path(p, slot, path);
	if (lstat(path, &st))
		wrong(p, "lstat of a new one", path);
	n->ino = st.st_ino;
}

static void write_content(struct process *p, int fd, struct node *n)
{
	uint8_t buffer[4096];

	n->bytes = stress_below(&p->random, sizeof(buffer));
	stress_fill(buffer, n->id, 0, n->bytes);
	if (write(fd, buffer, n->bytes) != (ssize_t)n->bytes)
		wrong(p, "write", "new file");
	close(fd);
}

static void run_create(struct process *p)
{
	int slot = choose_name(p, false), node = choose_free_node(p);
	int parent = choose_directory(p), rc = -1;
	enum node_type type = DIRECTORY + stress_below(&p->random, 4);
	char path[PATH_ROOM], target[32];

	if (slot < 0 || node < 0)
		return;
	if (stress_below(&p->random, 3))
		type = REGULAR;
	p->nodes[node].id = ++p->next_id * 100 + p->number;
	p->nodes[node].bytes = 0;
	p->names[slot].parent = parent;
	name_path(p, slot, path);
	say(p, "create type %d slot %d in %d as node %d", type, slot, parent,
	    node);
	switch (type) {
	case DIRECTORY:
		rc = mkdir(path, 0755);
		break;
	case SYMLINK:
		sprintf(target, "to.%lu", (long)p->nodes[node].id);
		rc = symlink(target, path);
		break;
	case FIFO:
		rc = mkfifo(path, 0600);
		break;
	default:
		rc = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
		if (rc >= 0)
			write_content(p, rc, &p->nodes[node]);
	}
	if (rc < 0)
		wrong(p, "create", path);
	else
		node_born(p, slot, parent, node, type);
}

static void run_link(struct process *p)
{
	int from = choose_name(p, true), to = choose_name(p, false);
	char path[PATH_ROOM], path2[PATH_ROOM];
	struct node *n;

	if (from < 0 || to < 0)
		return;
	n = &p->nodes[p->names[from].node];
	p->names[to].parent = choose_directory(p);
	name_path(p, from, path);
	name_path(p, to, path2);
	say(p, "link slot %d to slot %d in %d", from, to, p->names[to].parent);
	if (n->type == DIRECTORY) {
		if (link(path, path2) == 0 || errno != EPERM)
			wrong(p, "link of a directory", path);
		return;
	}
	if (link(path, path2)) {
		wrong(p, "link", path2);
		return;
	}
	n->links++;
	p->names[to].node = p->names[from].node;
}

/* A name is gone; its node too when it was the last and nobody has it open. */
static void name_gone(struct process *p, int slot)
{
	struct node *n = &p->nodes[p->names[slot].node];

	p->names[slot].node = -1;
	if (--n->links == 0 && n->fd < 0)
		n->type = FREE;
}

static void run_unlink(struct process *p)
{
	int slot = choose_name(p, true);
	char path[PATH_ROOM];
	struct node *n;
	int rc, must = 0;

	if (slot < 0)
		return;
	n = &p->nodes[p->names[slot].node];
	name_path(p, slot, path);
	say(p, "remove slot %d node %d type %d links %u", slot,
	    p->names[slot].node, n->type, n->links);
	if (n->type == REGULAR && n->links == 1 && n->fd < 0 &&
	    stress_below(&p->random, 3) == 0)
		n->fd = open(path, O_RDONLY);
	if (n->type == DIRECTORY && !is_empty(p, p->names[slot].node))
		must = ENOTEMPTY;
	rc = n->type == DIRECTORY ? rmdir(path) : unlink(path);
	if (must ? rc == 0 || errno != must : rc != 0)
		wrong(p, "remove", path);
	else if (!must)
		name_gone(p, slot);
}

static void run_rename(struct process *p)
{
	int from = choose_name(p, true), to = choose_name(p, false);
	char path[PATH_ROOM], path2[PATH_ROOM];
	bool inside;
	int rc;

	if (from < 0 || to < 0)
		return;
	p->names[to].parent = choose_directory(p);
	inside = lies_in(p, p->names[to].parent, p->names[from].node);
	name_path(p, from, path);
	name_path(p, to, path2);
	say(p, "rename slot %d (node %d in %d) to slot %d in %d", from,
	    p->names[from].node, p->names[from].parent, to,
	    p->names[to].parent);
	rc = renameat2(AT_FDCWD, path, AT_FDCWD, path2,
		       stress_below(&p->random, 2) ? RENAME_NOREPLACE : 0);
	if (inside ? rc == 0 || errno != EINVAL : rc != 0) {
		wrong(p, "rename", path2);
		return;
	}
	if (inside)
		return;
	p->names[to].node = p->names[from].node;
	p->names[from].node = -1;
}

/* May `from` replace `to`? */
static bool can_replace(const struct process *p, int from, int to)
{
	int a = p->names[from].node, b = p->names[to].node;

	if (a == b)
		return true;
	if ((p->nodes[a].type == DIRECTORY) != (p->nodes[b].type == DIRECTORY))
		return false;
	if (p->nodes[a].type != DIRECTORY)
		return true;
	return is_empty(p, b) && !lies_in(p, b, a);
}

static void run_replace(struct process *p)
{
	int from = choose_name(p, true), to = choose_name(p, true);
	char path[PATH_ROOM], path2[PATH_ROOM];
	bool may;

	if (from < 0 || from == to)
		return;
	may = can_replace(p, from, to);
	name_path(p, from, path);
	name_path(p, to, path2);
	say(p, "rename slot %d (node %d) over slot %d (node %d): %d", from,
	    p->names[from].node, to, p->names[to].node, may);
	if ((rename(path, path2) == 0) != may) {
		wrong(p, "replace", path2);
		return;
	}
	if (!may || p->names[from].node == p->names[to].node)
		return;
	p->nodes[p->names[from].node].links++;
	name_gone(p, to);
	p->names[to].node = p->names[from].node;
	name_gone(p, from);
}

static void run_exchange(struct process *p)
{
	int a = choose_name(p, true), b = choose_name(p, true), node;
	char path[PATH_ROOM], path2[PATH_ROOM];
	bool may;

	if (a < 0 || a == b)
		return;
	may = p->names[a].node == p->names[b].node ||
	      (!lies_in(p, p->names[a].parent, p->names[b].node) &&
	       !lies_in(p, p->names[b].parent, p->names[a].node));
	name_path(p, a, path);
	name_path(p, b, path2);
	say(p, "exchange slots %d and %d: %d", a, b, may);
	if ((renameat2(AT_FDCWD, path, AT_FDCWD, path2, RENAME_EXCHANGE) ==
	     0) != may) {
		wrong(p, "exchange", path2);
		return;
	}
	if (!may)
		return;
	node = p->names[a].node;
	p->names[a].node = p->names[b].node;
	p->names[b].node = node;
}

static void run_xattr(struct process *p)
{
	int slot = choose_name(p, true);
	char path[PATH_ROOM], value[4000];
	struct node *n;

	if (slot < 0)
		return;
	n = &p->nodes[p->names[slot].node];
	if (n->type != REGULAR && n->type != DIRECTORY)
		return;
	name_path(p, slot, path);
	say(p, "xattr of slot %d, had %u", slot, n->xattr);
	if (n->xattr && stress_below(&p->random, 2)) {
		if (removexattr(path, "user.stress"))
			wrong(p, "removexattr", path);
		n->xattr = 0;
		return;
	}
	n->xattr = 1 + stress_below(&p->random,
				    stress_below(&p->random, 4) ? 100 : 3500);
	stress_fill(value, n->id, 0, n->xattr);
	if (setxattr(path, "user.stress", value, n->xattr, 0))
		wrong(p, "setxattr", path);
}

/* Errors that must come, and unlinked files that are still open. */
static void run_absent(struct process *p)
{
	int used = choose_name(p, true), unused = choose_name(p, false);
	char path[PATH_ROOM];
	struct stat st;
	unsigned i;

	if (unused >= 0) {
		p->names[unused].parent = choose_directory(p);
		name_path(p, unused, path);
		if (lstat(path, &st) == 0 || errno != ENOENT)
			wrong(p, "must not be there", path);
	}
	if (used >= 0) {
		name_path(p, used, path);
		if (mkdir(path, 0700) == 0 || errno != EEXIST)
			wrong(p, "mkdir over it", path);
	}
	for (i = NAMES_SHARED_DIRS; i < NODES; i++) {
		struct node *n = &p->nodes[i];

		if (n->type == FREE || n->fd < 0)
			continue;
		if (!is_content(n->fd, n) || fstat(n->fd, &st) ||
		    st.st_nlink != n->links)
			wrong(p, "unlinked file", "open");
		close(n->fd);
		n->fd = -1;
		if (n->links == 0)
			n->type = FREE;
	}
}

/* Names that all processes fight for: only their number is known. */
static void run_common(struct process *p)
{
	char path[600], path2[600];
	int fd, choice = stress_below(&p->random, 4);
	long change = 0;

	snprintf(path, sizeof(path), "%s/s%lu/c%lu", p->config->directory,
		 (long)stress_below(&p->random, NAMES_SHARED_DIRS),
		 (long)stress_below(&p->random, COMMON));
	snprintf(path2, sizeof(path2), "%s/s%lu/c%lu", p->config->directory,
		 (long)stress_below(&p->random, NAMES_SHARED_DIRS),
		 (long)stress_below(&p->random, COMMON));
	say(p, "common %d %s %s", choice, path, path2);
	errno = 0;
	switch (choice) {
	case 0:
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
		change = fd >= 0;
		if (fd >= 0)
			close(fd);
		break;
	case 1:
		change = -(unlink(path) == 0);
		break;
	case 2:
		change = link(path, path2) == 0;
		break;
	default:
		renameat2(AT_FDCWD, path, AT_FDCWD, path2,
			  stress_below(&p->random, 2) ? RENAME_NOREPLACE :
							RENAME_EXCHANGE);
	}
	if (errno && errno != ENOENT && errno != EEXIST)
		wrong(p, "common name", path);
	p->shared->common += change;
}

static void run_check(struct process *p)
{
	int slot = choose_name(p, true);

	if (slot >= 0)
		check_name(p, slot);
}

static void run_list(struct process *p)
{
	check_list(p, choose_directory(p));
}

static const struct {
	unsigned weight;
	void (*run)(struct process *p);
} kinds[] = {
	{ 30, run_create },  { 12, run_link },	  { 16, run_unlink },
	{ 16, run_rename },  { 12, run_replace }, { 8, run_exchange },
	{ 10, run_xattr },   { 10, run_absent },  { 30, run_common },
	{ 20, run_check },   { 3, run_list },
};

static void step(struct process *p)
{
	unsigned total = 0, i, pick;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		total += kinds[i].weight;
	pick = stress_below(&p->random, total);
	for (i = 0; pick >= kinds[i].weight; i++)
		pick -= kinds[i].weight;
	kinds[i].run(p);
}

bool names_process(const struct names_config *c, struct names_shared *shared,
		   unsigned process)
{
	struct process *p = calloc(1, sizeof(*p));
	unsigned long k;
	unsigned i;

	p->config = c;
	p->shared = shared;
	p->number = process;
	p->random = c->seed * 100 + process;
	for (i = 0; i < NAMES; i++)
		p->names[i].node = -1;
	for (i = 0; i < NAMES_SHARED_DIRS; i++)
		p->nodes[i].type = DIRECTORY;
	for (k = 0; k < c->ops && !p->failed; k++)
		step(p);
	run_absent(p);
	for (i = 0; i < NAMES; i++)
		if (p->names[i].node >= 0) {
			check_name(p, (int)i);
			shared->own++;
		}
	for (i = 0; i < NODES; i++)
		if (p->nodes[i].type == DIRECTORY)
			check_list(p, (int)i);
	return !p->failed;
}
