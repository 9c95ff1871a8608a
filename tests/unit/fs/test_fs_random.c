/*
 * test_fs_random.c - random operations on names against a model in memory,
 * with remounts, clean ones and crashes after a sync.  The seed is printed when
 * something differs; TRAX_SEED and TRAX_OPS in the environment replay and
 * lengthen it.
 */
#include "tests/rig/test.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "format/format.h"
#include "fs/op/fs_internal.h"
#include "tests/rig/rig_fs.h"

#define NODES 2500
#define NAMES 60
#define MAX_DIRS 40
#define OPS 6000u
#define REMOUNT_OPS 700u

/* An inode of the model; one with nlink 0 is gone. */
struct node {
	uint64_t ino;
	uint32_t mode, nlink, uid;
	int parent;		/* directories */
	int child[NAMES];	/* directories: node by name, -1 */
	int xattr_bytes;	/* of user.x; -1: none */
	uint64_t seed;		/* of its value, and of a link's target */
};

struct world {
	struct rig rig;
	uint64_t random;
	uint64_t seed;
	struct node node[NODES];
	int nodes, dirs;
	char name[NAMES][TRAX_MAX_NAME_BYTES + 1];
	unsigned ok, failed;
};

static struct world *w;

static unsigned pick(unsigned n)
{
	return (unsigned)(test_random(&w->random) % n);
}

static const char *text_of(uint64_t seed, size_t bytes)
{
	static char text[TRAX_MAX_XATTR_BYTES + 1];
	size_t i;

	for (i = 0; i < bytes; i++)
		text[i] = (char)('a' + test_random(&seed) % 26);
	text[bytes] = '\0';
	return text;
}

static bool is_dir(const struct node *node)
{
	return S_ISDIR(node->mode);
}

static int pick_dir(void)
{
	int i;

	do
		i = (int)pick((unsigned)w->nodes);
	while (!w->node[i].nlink || !is_dir(&w->node[i]));
	return i;
}

static int pick_node(void)
{
	int i;

	do
		i = (int)pick((unsigned)w->nodes);
	while (!w->node[i].nlink);
	return i;
}

static int model_new(uint32_t mode, int parent)
{
	struct node *node;
	int i;

	for (i = 1; i < w->nodes && w->node[i].nlink; i++)
		;
	if (i == w->nodes)
		w->nodes++;
	ck_assert_int_lt(w->nodes, NODES);
	node = &w->node[i];
	memset(node, 0, sizeof(*node));
	memset(node->child, -1, sizeof(node->child));
	node->mode = mode;
	node->nlink = S_ISDIR(mode) ? 2 : 1;
	node->parent = parent;
	node->xattr_bytes = -1;
	return i;
}

static bool model_empty(const struct node *node)
{
	int i;

	for (i = 0; i < NAMES; i++)
		if (node->child[i] >= 0)
			return false;
	return true;
}

/* A name goes away, and with it perhaps the inode. */
static void model_drop(int dir, int child)
{
	struct node *node = &w->node[child];

	if (is_dir(node)) {
		node->nlink = 0;
		w->node[dir].nlink--;
		w->dirs--;
	} else {
		node->nlink--;
	}
}

static void check_rc(int rc, int want, const char *what)
{
	if (rc != want)
		ck_abort_msg("seed %llu: %s gave %d instead of %d",
			     (unsigned long long)w->seed, what, rc, want);
	*(want ? &w->failed : &w->ok) += 1;
}

/* ---- Operations, done and modelled ---- */

static void do_create(void)
{
	static const uint32_t types[] = { S_IFREG, S_IFREG, S_IFDIR, S_IFLNK,
					  S_IFIFO };
	uint32_t mode = types[pick(5)] | 0750;
	int dir = pick_dir(), name = (int)pick(NAMES), i;
	struct node *parent = &w->node[dir];
	int want = parent->child[name] >= 0 ? -EEXIST : 0;
	uint64_t seed = test_random(&w->random), ino = 0;
	int rc;

	if (S_ISDIR(mode) && w->dirs >= MAX_DIRS)
		mode = S_IFREG | 0750;
	if (S_ISLNK(mode))
		rc = rig_symlink(&w->rig, parent->ino, w->name[name],
				 text_of(seed, 1 + seed % 4095), &ino);
	else if (S_ISDIR(mode))
		rc = rig_mkdir(&w->rig, parent->ino, w->name[name], &ino);
	else
		rc = rig_mknod(&w->rig, parent->ino, w->name[name], mode,
			       &ino);
	check_rc(rc, want, "create");
	if (rc)
		return;
	rig_forget(&w->rig, ino, 1);
	i = model_new(S_ISLNK(mode) ? S_IFLNK | 0777 :
		      S_ISDIR(mode) ? S_IFDIR | 0755 : mode, dir);
	w->node[i].ino = ino;
	w->node[i].seed = seed;
	parent->child[name] = i;
	if (S_ISDIR(mode)) {
		parent->nlink++;
		w->dirs++;
	}
}

static void do_link(void)
{
	int dir = pick_dir(), name = (int)pick(NAMES), i = pick_node();
	struct node *node = &w->node[i], *parent = &w->node[dir];
	int want = is_dir(node) ? -EPERM :
		parent->child[name] >= 0 ? -EEXIST : 0;
	int rc = rig_link(&w->rig, node->ino, parent->ino, w->name[name]);

	check_rc(rc, want, "link");
	if (rc)
		return;
	rig_forget(&w->rig, node->ino, 1);
	parent->child[name] = i;
	node->nlink++;
}

static void do_remove(void)
{
	int dir = pick_dir(), name = (int)pick(NAMES);
	struct node *parent = &w->node[dir];
	int i = parent->child[name], want = 0, rc;
	bool as_dir = i >= 0 && is_dir(&w->node[i]);

	if (pick(8) == 0)
		as_dir = !as_dir;
	if (i < 0)
		want = -ENOENT;
	else if (as_dir && !is_dir(&w->node[i]))
		want = -ENOTDIR;
	else if (!as_dir && is_dir(&w->node[i]))
		want = -EISDIR;
	else if (as_dir && !model_empty(&w->node[i]))
		want = -ENOTEMPTY;
	rc = as_dir ? rig_rmdir(&w->rig, parent->ino, w->name[name]) :
		rig_unlink(&w->rig, parent->ino, w->name[name]);
	check_rc(rc, want, "remove");
	if (rc)
		return;
	parent->child[name] = -1;
	model_drop(dir, i);
}

/* Is `dir` inside of `of`, or it itself? */
static bool model_inside(int dir, int of)
{
	while (dir != of && dir)
		dir = w->node[dir].parent;
	return dir == of;
}

static int want_replace(const struct node *from, const struct node *to)
{
	if (is_dir(from) && !is_dir(to))
		return -ENOTDIR;
	if (!is_dir(from) && is_dir(to))
		return -EISDIR;
	return is_dir(to) && !model_empty(to) ? -ENOTEMPTY : 0;
}

static int want_rename(int d1, int a, int d2, int b, uint32_t flags)
{
	bool exchange = flags & FS_RENAME_EXCHANGE;

	if (a < 0)
		return -ENOENT;
	if (b >= 0 && flags & FS_RENAME_NOREPLACE)
		return -EEXIST;
	if (b < 0 && exchange)
		return -ENOENT;
	if (a == b)
		return 0;
	if (a == d2)
		return -EINVAL;
	if (b >= 0 && b == d1)
		return exchange ? -EINVAL : -ENOTEMPTY;
	if (b >= 0 && !exchange && want_replace(&w->node[a], &w->node[b]))
		return want_replace(&w->node[a], &w->node[b]);
	if (is_dir(&w->node[a]) && d1 != d2 && model_inside(d2, a))
		return -EINVAL;
	if (exchange && is_dir(&w->node[b]) && d1 != d2 && model_inside(d1, b))
		return -EINVAL;
	return 0;
}

static void model_move(int child, int from, int to)
{
	if (!is_dir(&w->node[child]))
		return;
	w->node[child].parent = to;
	w->node[from].nlink--;
	w->node[to].nlink++;
}

static void do_rename(void)
{
	static const uint32_t kinds[] = { 0, 0, 0, FS_RENAME_NOREPLACE,
					  FS_RENAME_EXCHANGE };
	int d1 = pick_dir(), d2 = pick(2) ? d1 : pick_dir();
	int n1 = (int)pick(NAMES), n2 = (int)pick(NAMES);
	int a = w->node[d1].child[n1], b = w->node[d2].child[n2];
	uint32_t flags = kinds[pick(5)];
	int rc = rig_rename(&w->rig, w->node[d1].ino, w->name[n1],
			    w->node[d2].ino, w->name[n2], flags);

	check_rc(rc, want_rename(d1, a, d2, b, flags), "rename");
	if (rc || a == b)
		return;
	model_move(a, d1, d2);
	if (flags & FS_RENAME_EXCHANGE)
		model_move(b, d2, d1);
	else if (b >= 0)
		model_drop(d2, b);
	w->node[d1].child[n1] = flags & FS_RENAME_EXCHANGE ? b : -1;
	w->node[d2].child[n2] = a;
}

static void do_attr(void)
{
	struct node *node = &w->node[pick_node()];
	struct fs_op op = { .type = FS_SETATTR, .ino = node->ino };

	op.flags = FS_SET_MODE | FS_SET_UID;
	op.attr.mode = S_ISLNK(node->mode) ? 0777 : pick(01000);
	op.attr.uid = pick(10);
	check_rc(rig_do(&w->rig, &op), 0, "setattr");
	node->mode = (node->mode & S_IFMT) | op.attr.mode;
	node->uid = op.attr.uid;
}

static void do_xattr(void)
{
	struct node *node = &w->node[pick_node()];
	size_t bytes = pick(4) ? pick(200) : pick(TRAX_MAX_XATTR_BYTES + 1);
	uint64_t seed = test_random(&w->random);

	if (pick(3) == 0) {
		check_rc(rig_removexattr(&w->rig, node->ino, "user.x"),
			 node->xattr_bytes < 0 ? -ENODATA : 0, "removexattr");
		node->xattr_bytes = -1;
		return;
	}
	if (S_ISLNK(node->mode))
		return;		/* the seed is its target's */
	check_rc(rig_setxattr(&w->rig, node->ino, "user.x",
			      text_of(seed, bytes), bytes, 0), 0, "setxattr");
	node->seed = seed;
	node->xattr_bytes = (int)bytes;
}

/* ---- Comparing ---- */

struct found {
	int dir;
	int n;
	uint64_t next;
};

static bool compare_entry(void *arg, const char *name, size_t bytes,
			  uint64_t ino, unsigned d_type, uint64_t next,
			  const struct fs_attr *attr)
{
	struct found *found = arg;
	const struct node *dir = &w->node[found->dir], *node;
	int i;

	found->next = next;
	if (!attr)
		return true;
	for (i = 0; i < NAMES; i++)
		if (strlen(w->name[i]) == bytes &&
		    memcmp(w->name[i], name, bytes) == 0)
			break;
	ck_assert_int_lt(i, NAMES);
	ck_assert_int_ge(dir->child[i], 0);
	node = &w->node[dir->child[i]];
	ck_assert_uint_eq(node->ino, ino);
	ck_assert_uint_eq(attr->ino, ino);
	ck_assert_uint_eq(attr->mode, node->mode);
	ck_assert_uint_eq(attr->nlink, node->nlink);
	ck_assert_uint_eq(attr->uid, node->uid);
	ck_assert_uint_eq(IFTODT(node->mode), d_type);
	found->n++;
	return true;
}

static void compare_dir(int dir)
{
	struct found found = { .dir = dir, .n = 0 };
	struct fs_op op = { .type = FS_READDIR, .ino = w->node[dir].ino,
			    .fill = compare_entry, .fill_arg = &found,
			    .plus = true };
	struct fs_attr attr;
	int i, n = 0;

	do {
		op.offset = found.next;
		ck_assert_int_eq(rig_do(&w->rig, &op), 0);
	} while (found.next != op.offset);
	for (i = 0; i < NAMES; i++) {
		if (w->node[dir].child[i] < 0)
			continue;
		n++;
		/* What readdir gave, and what lookup gives. */
		rig_forget(&w->rig, w->node[w->node[dir].child[i]].ino, 1);
		ck_assert_int_eq(rig_lookup(&w->rig, w->node[dir].ino,
					    w->name[i], &attr), 0);
		rig_forget(&w->rig, attr.ino, 1);
		ck_assert_uint_eq(attr.ino,
				  w->node[w->node[dir].child[i]].ino);
	}
	ck_assert_int_eq(found.n, n);
	ck_assert_int_eq(rig_lookup(&w->rig, w->node[dir].ino, "..", &attr),
			 0);
	rig_forget(&w->rig, attr.ino, 1);
	ck_assert_uint_eq(attr.ino, w->node[w->node[dir].parent].ino);
}

static void compare_content(const struct node *node)
{
	static char back[TRAX_MAX_XATTR_BYTES];
	struct fs_op op = { .type = FS_READLINK, .ino = node->ino,
			    .buffer = back };
	int n = rig_getxattr(&w->rig, node->ino, "user.x", back, sizeof(back));
	size_t bytes;

	ck_assert_int_eq(n, node->xattr_bytes < 0 ? -ENODATA :
			 node->xattr_bytes);
	if (n > 0)
		ck_assert_int_eq(memcmp(back, text_of(node->seed, (size_t)n),
					(size_t)n), 0);
	if (!S_ISLNK(node->mode))
		return;
	bytes = 1 + node->seed % 4095;
	ck_assert_int_eq(rig_do(&w->rig, &op), 0);
	ck_assert_uint_eq(op.result, bytes);
	ck_assert_int_eq(memcmp(back, text_of(node->seed, bytes), bytes), 0);
}

static void compare_all(void)
{
	struct fs_op op = { .type = FS_STATFS };
	uint64_t n = 0;
	int i;

	for (i = 0; i < w->nodes; i++) {
		if (!w->node[i].nlink)
			continue;
		n++;
		compare_content(&w->node[i]);
		if (is_dir(&w->node[i]))
			compare_dir(i);
	}
	rig_settle(&w->rig);
	ck_assert_int_eq(rig_do(&w->rig, &op), 0);
	ck_assert_uint_eq(op.statfs.files - op.statfs.files_free, n);
}

/* ---- The run ---- */

static void world_new(uint64_t seed)
{
	static const size_t long_ones[] = { 255, 254, 200, 100, 64 };
	int i;

	w = calloc(1, sizeof(*w));
	w->seed = w->random = seed;
	rig_open(&w->rig, 64, seed);
	for (i = 0; i < NAMES; i++) {
		size_t bytes = i < 5 ? long_ones[i] : 1 + (size_t)i % 30;

		strcpy(w->name[i], text_of((uint64_t)i, bytes));
		w->name[i][bytes / 2] = (char)('A' + i);
	}
	i = model_new(S_IFDIR | 0755, 0);
	w->node[0] = w->node[i];
	w->node[0].ino = TRAX_ROOT_INO;
	w->nodes = w->dirs = 1;
}

static void run(uint64_t seed, unsigned ops)
{
	static void (*const kinds[])(void) = {
		do_create, do_create, do_create, do_link, do_remove, do_remove,
		do_rename, do_rename, do_rename, do_attr, do_xattr,
	};
	unsigned i;

	world_new(seed);
	for (i = 1; i <= ops; i++) {
		kinds[pick(sizeof(kinds) / sizeof(kinds[0]))]();
		if (i % REMOUNT_OPS)
			continue;
		if (pick(2)) {
			rig_remount(&w->rig);
		} else {
			ck_assert_int_eq(rig_sync(&w->rig), 0);
			rig_crash(&w->rig);
		}
		compare_all();
	}
	compare_all();
	ck_assert_uint_gt(w->ok, ops / 4);
	ck_assert_uint_gt(w->failed, ops / 20);
	rig_close(&w->rig);
	free(w);
}

START_TEST(random_operations_are_as_in_the_model)
{
	const char *seed = getenv("TRAX_SEED"), *ops = getenv("TRAX_OPS");

	run(seed ? strtoull(seed, NULL, 0) : (uint64_t)_i + 1,
	    ops ? (unsigned)strtoul(ops, NULL, 0) : OPS);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fs random names");
	TCase *tc = tcase_create("random");

	tcase_add_loop_test(tc, random_operations_are_as_in_the_model, 0, 3);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return test_run(suite());
}
