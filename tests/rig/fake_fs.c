/*
 * fake_fs.c - fs/fs.h in memory, for tests of src/fuse and the tools.
 *
 * Nodes by number; a directory's entries are a list, and one map finds an
 * entry by (directory, name).  Every operation is done at once.  No
 * permissions, no ACLs, no disk.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/csum.h"
#include "base/list.h"
#include "base/hashmap.h"
#include "diskmodel/geom.h"
#include "format/format.h"
#include "fs/fs.h"
#include "move/move.h"
#include "refine/refine.h"
#include "scan/file_scan.h"
#include "scrub/scrub.h"
#include "tasks/tasks.h"

#define FULL_BYTES (1u << 30)	/* a file has no room for more */
#define ROOM_BYTES (8u << 20)	/* room of a new disk, as fs_room tells */
#define ACCEPTED_BYTES (1u << 20)	/* more of it, as fs_room_accepted
					 * tells */

struct entry {
	struct list link;
	uint64_t ino, seq, hash;
	char name[256];
};

struct attribute {
	struct list link;
	char *name;
	void *value;
	size_t bytes;
};

struct node {
	struct fs_attr attr;
	uint64_t refs, opens, parent;
	uint8_t *data;
	size_t capacity;
	struct list entries, attributes;
};

struct fs {
	struct hashmap *nodes, *names;
	struct geom *geom;
	uint64_t next_ino, next_seq, handles;
	uint64_t expected;		/* of fs_expect */
	struct list waiting;		/* READs and WRITEs */
};

static struct node *node_find(struct fs *fs, uint64_t ino)
{
	return hashmap_get(fs->nodes, ino);
}

static struct node *node_add(struct fs *fs, uint32_t mode)
{
	struct node *n = calloc(1, sizeof(*n));

	clock_gettime(CLOCK_REALTIME, &n->attr.btime);
	n->attr.atime = n->attr.mtime = n->attr.ctime = n->attr.btime;
	n->attr.ino = fs->next_ino++;
	n->attr.mode = mode;
	n->attr.nlink = S_ISDIR(mode) ? 2 : 1;
	list_init(&n->entries);
	list_init(&n->attributes);
	hashmap_put(fs->nodes, n->attr.ino, n);
	return n;
}

static void node_free(struct node *n)
{
	struct attribute *a;
	struct entry *e;

	while ((a = list_first(&n->attributes, struct attribute, link))) {
		list_del(&a->link);
		free(a->name);
		free(a->value);
		free(a);
	}
	while ((e = list_first(&n->entries, struct entry, link))) {
		list_del(&e->link);
		free(e);
	}
	free(n->data);
	free(n);
}

static void node_drop_unused(struct fs *fs, struct node *n)
{
	if (n->refs || n->opens || n->attr.nlink)
		return;
	hashmap_del(fs->nodes, n->attr.ino);
	node_free(n);
}

static uint64_t name_hash(uint64_t dir, const char *name)
{
	return csum_seeded(name, strlen(name), dir) | 1;
}

static struct entry *entry_find(struct fs *fs, uint64_t dir, const char *name)
{
	return hashmap_get(fs->names, name_hash(dir, name));
}

static void entry_add(struct fs *fs, struct node *dir, const char *name,
		      uint64_t ino)
{
	struct entry *e = calloc(1, sizeof(*e));

	e->ino = ino;
	e->seq = fs->next_seq++;
	e->hash = name_hash(dir->attr.ino, name);
	strcpy(e->name, name);
	list_add(&dir->entries, &e->link);
	hashmap_put(fs->names, e->hash, e);
}

static void entry_del(struct fs *fs, struct entry *e)
{
	hashmap_del(fs->names, e->hash);
	list_del(&e->link);
	free(e);
}

/* ---- Operations ---- */

static int op_lookup(struct fs *fs, struct fs_op *op)
{
	struct node *dir = node_find(fs, op->ino), *n;
	struct entry *e;

	if (strlen(op->name) > 255)
		return -ENAMETOOLONG;
	if (!strcmp(op->name, ".")) {
		n = dir;
	} else if (!strcmp(op->name, "..")) {
		n = node_find(fs, dir->parent);
	} else {
		e = entry_find(fs, op->ino, op->name);
		if (!e)
			return -ENOENT;
		n = node_find(fs, e->ino);
	}
	n->refs++;
	op->attr = n->attr;
	return 0;
}

static int op_create(struct fs *fs, struct fs_op *op)
{
	uint32_t mode = op->type == FS_SYMLINK ? S_IFLNK | 0777 :
						 op->mode & ~op->umask;
	struct node *dir = node_find(fs, op->ino), *n;

	if (op->type != FS_TMPFILE) {
		if (strlen(op->name) > 255)
			return -ENAMETOOLONG;
		if (entry_find(fs, op->ino, op->name))
			return -EEXIST;
	}
	n = node_add(fs, mode);
	n->attr.uid = op->uid;
	n->attr.gid = op->gid;
	n->attr.rdev = op->rdev;
	n->parent = op->ino;
	n->refs = 1;
	n->opens = op->opens;
	if (op->type == FS_SYMLINK) {
		n->data = (uint8_t *)strdup(op->name2);
		n->attr.size = strlen(op->name2);
	}
	if (op->type == FS_MKDIR)
		dir->attr.nlink++;
	if (op->type == FS_TMPFILE)
		n->attr.nlink = 0;
	else
		entry_add(fs, dir, op->name, n->attr.ino);
	op->attr = n->attr;
	return 0;
}

static int op_link(struct fs *fs, struct fs_op *op)
{
	struct node *n = node_find(fs, op->ino2);

	if (entry_find(fs, op->ino, op->name))
		return -EEXIST;
	entry_add(fs, node_find(fs, op->ino), op->name, op->ino2);
	n->attr.nlink++;
	n->refs++;
	op->attr = n->attr;
	return 0;
}

static void unlink_entry(struct fs *fs, uint64_t dir, struct entry *e)
{
	struct node *n = node_find(fs, e->ino);

	entry_del(fs, e);
	n->attr.nlink -= S_ISDIR(n->attr.mode) ? 2 : 1;
	if (S_ISDIR(n->attr.mode))
		node_find(fs, dir)->attr.nlink--;
	node_drop_unused(fs, n);
}

static int op_unlink(struct fs *fs, struct fs_op *op)
{
	struct entry *e = entry_find(fs, op->ino, op->name);

	if (!e)
		return -ENOENT;
	if (op->type == FS_RMDIR &&
	    !list_empty(&node_find(fs, e->ino)->entries))
		return -ENOTEMPTY;
	unlink_entry(fs, op->ino, e);
	return 0;
}

static int op_rename(struct fs *fs, struct fs_op *op)
{
	struct entry *e = entry_find(fs, op->ino, op->name);
	struct entry *old = entry_find(fs, op->ino2, op->name2);
	uint64_t ino;

	if (op->flags & ~(FS_RENAME_NOREPLACE | FS_RENAME_EXCHANGE |
			  FS_RENAME_WHITEOUT))
		return -EINVAL;
	if (!e)
		return -ENOENT;
	if (old && op->flags & FS_RENAME_NOREPLACE)
		return -EEXIST;
	if (old && old->ino == e->ino)
		return 0;
	if (old)
		unlink_entry(fs, op->ino2, old);
	ino = e->ino;
	entry_del(fs, e);
	entry_add(fs, node_find(fs, op->ino2), op->name2, ino);
	node_find(fs, ino)->parent = op->ino2;
	return 0;
}

static int op_forget(struct fs *fs, struct fs_op *op)
{
	struct node *n = node_find(fs, op->ino);

	if (n) {
		n->refs -= op->size < n->refs ? op->size : n->refs;
		node_drop_unused(fs, n);
	}
	return 0;
}

static void set_size(struct node *n, uint64_t size)
{
	if (size > n->capacity) {
		n->capacity = size * 2;
		n->data = realloc(n->data, n->capacity);
	}
	if (size > n->attr.size)
		memset(n->data + n->attr.size, 0, size - n->attr.size);
	n->attr.size = size;
	n->attr.sectors = (size + 511) / 512;
}

static void set_times(struct node *n, const struct fs_op *op)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (op->flags & FS_SET_ATIME)
		n->attr.atime = op->attr.atime;
	if (op->flags & FS_SET_MTIME)
		n->attr.mtime = op->attr.mtime;
	if (op->flags & FS_SET_ATIME_NOW)
		n->attr.atime = now;
	if (op->flags & FS_SET_MTIME_NOW)
		n->attr.mtime = now;
	n->attr.ctime = op->flags & FS_SET_CTIME ? op->attr.ctime : now;
}

static int op_setattr(struct fs *fs, struct fs_op *op)
{
	struct node *n = node_find(fs, op->ino);

	if (op->flags & FS_SET_KILL_PRIV && !S_ISDIR(n->attr.mode))
		n->attr.mode &= ~(uint32_t)(S_ISUID | S_ISGID);
	if (op->flags & FS_SET_MODE)
		n->attr.mode = (n->attr.mode & S_IFMT) |
			       (op->attr.mode & 07777);
	if (op->flags & FS_SET_UID)
		n->attr.uid = op->attr.uid;
	if (op->flags & FS_SET_GID)
		n->attr.gid = op->attr.gid;
	if (op->flags & FS_SET_SIZE)
		set_size(n, op->attr.size);
	set_times(n, op);
	op->attr = n->attr;
	return 0;
}

static int op_read(struct node *n, struct fs_op *op)
{
	uint64_t left = op->offset < n->attr.size ? n->attr.size - op->offset :
						    0;

	op->result = op->size < left ? op->size : left;
	if (!op->buffer)
		op->buffer = op->room(op);
	if (op->result)
		memcpy(op->buffer, n->data + op->offset, op->result);
	return 0;
}

static int op_write(struct node *n, struct fs_op *op)
{
	if (op->offset + op->size > FULL_BYTES)
		return -ENOSPC;
	if (op->offset + op->size > n->attr.size)
		set_size(n, op->offset + op->size);
	memcpy(n->data + op->offset, op->data, op->size);
	op->result = op->size;
	return 0;
}

static int op_readdir(struct fs *fs, struct fs_op *op)
{
	struct node *dir = node_find(fs, op->ino);
	struct list *l;

	if (op->offset < 1 && !op->fill(op->fill_arg, ".", 1, op->ino, DT_DIR,
					1, NULL))
		return 0;
	if (op->offset < 2 && !op->fill(op->fill_arg, "..", 2, dir->parent,
					DT_DIR, 2, NULL))
		return 0;
	list_for_each(l, &dir->entries) {
		struct entry *e = list_entry(l, struct entry, link);
		struct node *n = node_find(fs, e->ino);

		if (e->seq <= op->offset)
			continue;
		if (!op->fill(op->fill_arg, e->name, strlen(e->name), e->ino,
			      n->attr.mode >> 12, e->seq,
			      op->plus ? &n->attr : NULL))
			break;
		n->refs += op->plus;
	}
	return 0;
}

static struct attribute *attribute_find(struct node *n, const char *name)
{
	struct list *l;

	list_for_each(l, &n->attributes) {
		struct attribute *a = list_entry(l, struct attribute, link);

		if (!strcmp(a->name, name))
			return a;
	}
	return NULL;
}

static int op_setxattr(struct node *n, struct fs_op *op)
{
	struct attribute *a = attribute_find(n, op->name2);

	if (a && op->flags & XATTR_CREATE)
		return -EEXIST;
	if (!a && op->flags & XATTR_REPLACE)
		return -ENODATA;
	if (!a) {
		a = calloc(1, sizeof(*a));
		a->name = strdup(op->name2);
		list_add(&n->attributes, &a->link);
	}
	free(a->value);
	a->value = malloc(op->size + 1);
	memcpy(a->value, op->data, op->size);
	a->bytes = op->size;
	return 0;
}

static int op_getxattr(struct node *n, struct fs_op *op)
{
	struct attribute *a = attribute_find(n, op->name2);

	if (!a)
		return -ENODATA;
	op->result = a->bytes;
	if (op->size && op->size < a->bytes)
		return -ERANGE;
	if (op->size)
		memcpy(op->buffer, a->value, a->bytes);
	return 0;
}

static int op_removexattr(struct node *n, struct fs_op *op)
{
	struct attribute *a = attribute_find(n, op->name2);

	if (!a)
		return -ENODATA;
	list_del(&a->link);
	free(a->name);
	free(a->value);
	free(a);
	return 0;
}

static int op_listxattr(struct node *n, struct fs_op *op)
{
	struct list *l;
	char *to = op->buffer;

	op->result = 0;
	list_for_each(l, &n->attributes) {
		struct attribute *a = list_entry(l, struct attribute, link);
		size_t bytes = strlen(a->name) + 1;

		if (op->size && op->result + bytes > op->size)
			return -ERANGE;
		if (op->size)
			memcpy(to + op->result, a->name, bytes);
		op->result += bytes;
	}
	return 0;
}

static int op_extents(struct node *n, struct fs_op *op)
{
	struct fs_extent e = { .bytes = n->attr.size, .lbn = 100 };

	op->result = op->offset < n->attr.size && op->size;
	if (op->result)
		memcpy(op->buffer, &e, sizeof(e));
	return 0;
}

static int op_text(struct fs_op *op)
{
	op->buffer = strdup("[]");
	return op->buffer ? 0 : -ENOMEM;
}

static int run_names(struct fs *fs, struct fs_op *op)
{
	switch (op->type) {
	case FS_LOOKUP:
		return op_lookup(fs, op);
	case FS_MKNOD:
	case FS_MKDIR:
	case FS_SYMLINK:
	case FS_TMPFILE:
		return op_create(fs, op);
	case FS_LINK:
		return op_link(fs, op);
	case FS_UNLINK:
	case FS_RMDIR:
		return op_unlink(fs, op);
	case FS_RENAME:
		return op_rename(fs, op);
	case FS_FORGET:
		return op_forget(fs, op);
	case FS_READDIR:
		return op_readdir(fs, op);
	case FS_SETATTR:
		return op_setattr(fs, op);
	case FS_STATFS:
		op->statfs = (struct fs_statfs){ 1000, 500, 400, 100, 50 };
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int run(struct fs *fs, struct fs_op *op)
{
	struct node *n = node_find(fs, op->ino);

	if (!n && op->type != FS_FORGET)
		return -ESTALE;
	switch (op->type) {
	case FS_GETATTR:
		op->attr = n->attr;
		return 0;
	case FS_READLINK:
		op->result = n->attr.size;
		memcpy(op->buffer, n->data, n->attr.size);
		return 0;
	case FS_READ:
		return op_read(n, op);
	case FS_WRITE:
		return op_write(n, op);
	case FS_OPEN:
		n->opens++;
		return 0;
	case FS_RELEASE:
		n->opens--;
		node_drop_unused(fs, n);
		return 0;
	case FS_FSYNC:
	case FS_SYNCFS:
	case FS_SHUTDOWN:
		return 0;
	case FS_SETXATTR:
		return op_setxattr(n, op);
	case FS_GETXATTR:
		return op_getxattr(n, op);
	case FS_REMOVEXATTR:
		return op_removexattr(n, op);
	case FS_LISTXATTR:
		return op_listxattr(n, op);
	case FS_EXTENTS:
		return op_extents(n, op);
	case FS_ERRORS:
	case FS_HEAT:
		return op_text(op);
	case FS_GETFLAGS:
		op->result = n->attr.flags;
		return 0;
	case FS_SETFLAGS:
		n->attr.flags = op->flags;
		return 0;
	case FS_FALLOCATE:
		return op->size + fs->expected > fs_room(fs) ? -ENOSPC : 0;
	default:
		return run_names(fs, op);
	}
}

/* ---- fs.h ---- */

int fs_open(struct env *env, struct disk *disk,
	    const struct fs_options *options, struct fs **out)
{
	struct fs *fs = calloc(1, sizeof(*fs));

	(void)env;
	(void)disk;
	(void)options;
	fs->nodes = hashmap_new();
	fs->names = hashmap_new();
	list_init(&fs->waiting);
	fs->next_ino = 1;
	fs->next_seq = 3;
	geom_regular(1 << 20, 2048, &fs->geom);
	node_add(fs, S_IFDIR | 0755)->parent = 1;
	*out = fs;
	return 0;
}

int fs_close(struct fs *fs)
{
	struct node *n;
	size_t pos = 0;

	while ((n = hashmap_next(fs->nodes, &pos, NULL)))
		node_free(n);
	hashmap_free(fs->nodes);
	hashmap_free(fs->names);
	geom_free(fs->geom);
	free(fs);
	return 0;
}

/* A READ or WRITE at this offset waits for a SYNCFS, as if the disk were slow
 * or memory short. */
#define WAITING_OFFSET (1ull << 41)

void fs_submit(struct fs *fs, struct fs_op *op)
{
	struct fs_op *waiting;

	if ((op->type == FS_READ || op->type == FS_WRITE) &&
	    op->offset == WAITING_OFFSET) {
		list_add(&fs->waiting, &op->link);
		return;
	}
	if (op->type == FS_SYNCFS) {
		while ((waiting = list_first(&fs->waiting, struct fs_op,
					     link))) {
			list_del(&waiting->link);
			waiting->rc = -ENOSPC;
			waiting->done(waiting);
		}
	}
	op->rc = run(fs, op);
	op->done(op);
}

uint64_t fs_new_handle(struct fs *fs)
{
	return ++fs->handles;
}

static uint64_t room_of(const struct fs *fs, uint64_t bytes)
{
	uint64_t used = 0;
	const struct node *n;
	size_t pos = 0;

	while ((n = hashmap_next(fs->nodes, &pos, NULL)))
		used += n->attr.sectors * 512;
	return used < bytes ? bytes - used : 0;
}

uint64_t fs_room(const struct fs *fs)
{
	return room_of(fs, ROOM_BYTES);
}

uint64_t fs_room_accepted(const struct fs *fs)
{
	return room_of(fs, ROOM_BYTES + ACCEPTED_BYTES);
}

void fs_expect(struct fs *fs, uint64_t bytes)
{
	fs->expected = bytes;
}

void fs_each_inode(const struct fs *fs,
		   void (*each)(void *arg, uint64_t ino), void *arg)
{
	size_t pos = 0;
	uint64_t ino;

	while (hashmap_next(fs->nodes, &pos, &ino))
		each(arg, ino);
}

uint64_t fs_run(struct fs *fs, int timeout_ms)
{
	(void)fs;
	(void)timeout_ms;
	return UINT64_MAX;
}

size_t fs_request_bytes(const struct fs *fs)
{
	(void)fs;
	return 0;
}

bool fs_idle(const struct fs *fs)
{
	(void)fs;
	return false;
}

int fs_event_fd(struct fs *fs)
{
	(void)fs;
	return -1;
}

const struct super *fs_super(const struct fs *fs)
{
	static const struct super super = { .label = "fake" };

	(void)fs;
	return &super;
}

char *fs_stats_json(struct fs *fs)
{
	(void)fs;
	return strdup("{\"operations\":7}");
}

char *fs_model_json(struct fs *fs)
{
	(void)fs;
	return strdup("{\"tracks\":512, \"profile\":"
		      "{\"serial\":\"12345\", \"firmware\":\"A1\"}}");
}

char *fs_platter_json(struct fs *fs)
{
	(void)fs;
	return strdup("{\"tracks\":512, \"profile\":"
		      "{\"serial\":\"12345\", \"firmware\":\"A1\"}}");
}

const struct geom *fs_geom(const struct fs *fs)
{
	return fs->geom;
}

/* ---- Nothing beside it ---- */

char *fs_streams_json(struct fs *fs)
{
	(void)fs;
	return strdup("{}");
}

int fs_promise(struct fs *fs, const struct fs_promise *ask, uint64_t *rate_all,
	       unsigned *files)
{
	(void)fs;
	*rate_all = ask->rate;
	*files = 1;
	return 0;
}

void fs_set_budget(struct fs *fs, unsigned ppm)
{
	(void)fs;
	(void)ppm;
}

uint64_t scrub_run(struct scrub *scrub)
{
	(void)scrub;
	return UINT64_MAX;
}

int scrub_recheck(struct scrub *scrub)
{
	(void)scrub;
	return 0;
}

void scrub_start(struct scrub *scrub)
{
	(void)scrub;
}

void scrub_pause(struct scrub *scrub)
{
	(void)scrub;
}

void scrub_resume(struct scrub *scrub)
{
	(void)scrub;
}

char *scrub_json(struct scrub *scrub)
{
	(void)scrub;
	return NULL;
}

uint64_t refine_run(struct refine *refine)
{
	(void)refine;
	return UINT64_MAX;
}

char *refine_model_json(const struct refine *refine)
{
	(void)refine;
	return NULL;
}

/* ---- No file scans ---- */

int file_scan_begin(struct file_scans *scans,
		    const struct file_scan_options *options,
		    struct file_scan **scan)
{
	(void)scans;
	(void)options;
	(void)scan;
	return -EBUSY;
}

void file_scan_end(struct file_scan *scan)
{
	(void)scan;
}

uint64_t file_scan_id(const struct file_scan *scan)
{
	(void)scan;
	return 0;
}

int file_scan_add(struct file_scan *scan, uint64_t ino)
{
	(void)scan;
	(void)ino;
	return -EINVAL;
}

void file_scan_seal(struct file_scan *scan)
{
	(void)scan;
}

void file_scan_pause(struct file_scan *scan, bool paused)
{
	(void)scan;
	(void)paused;
}

void file_scan_promote(struct file_scan *scan, unsigned depth)
{
	(void)scan;
	(void)depth;
}

bool file_scan_readable(const struct file_scan *scan)
{
	(void)scan;
	return false;
}

size_t file_scan_read(struct file_scan *scan, void *buffer, size_t bytes)
{
	(void)scan;
	(void)buffer;
	(void)bytes;
	return 0;
}

void file_scan_get_status(const struct file_scan *scan,
			  struct scan_status *status)
{
	(void)scan;
	*status = (struct scan_status){ 0 };
}

uint64_t file_scans_run(struct file_scans *scans)
{
	(void)scans;
	return UINT64_MAX;
}

/* ---- No tasks ---- */

uint64_t moves_run(struct moves *moves)
{
	(void)moves;
	return UINT64_MAX;
}

int moves_order(struct moves *moves, uint64_t ino)
{
	(void)moves;
	(void)ino;
	return -EAGAIN;
}

char *moves_json(struct moves *moves)
{
	(void)moves;
	return NULL;
}

char *tasks_json(const struct tasks *tasks)
{
	(void)tasks;
	return NULL;
}

int tasks_pause(const struct tasks *tasks, const char *name, bool paused)
{
	(void)tasks;
	(void)name;
	(void)paused;
	return -ENOENT;
}
