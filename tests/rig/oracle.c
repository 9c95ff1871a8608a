/*
 * oracle.c - see oracle.h.  Model first, then the operations as rows of a
 * table, then the comparison.
 */
#include "tests/rig/oracle.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "tests/rig/oracle_model.h"
#include "tests/rig/replay.h"

#define FILE_BYTES 393216u	/* of a client's file, at most */

/* ---- Driving the file system ---- */

static void forget(struct fs *fs, struct world *world, uint64_t ino)
{
	struct fs_op op = { .type = FS_FORGET, .ino = ino, .size = 1 };

	world_call(fs, world, &op);
}

/* ---- Clients ---- */

struct client {
	struct oracle *oracle;
	struct model *model;
	uint64_t random;
	struct fs *fs;
	struct world *world;
	struct fs_op op;
	const struct kind *kind;
	struct mnode *node;	/* operand, for what done does */
	struct mnode *held;	/* open handle */
	int expect;
	unsigned *left;		/* operations still to start; NULL: stopped */
	bool busy;
	bool stopped;		/* by a fault: what it did last may be there */
	char name[260], name2[260];
	uint8_t *data;
	unsigned fsync_op;
};

struct oracle {
	struct client *client;
	unsigned clients;
	uint64_t random;
	unsigned long counts[32];
	bool allow;
	bool overwrites;	/* hardly anything else is done */
	struct replay *replay;	/* what the only client does; NULL: anything */
};

static unsigned pick(struct client *c, unsigned n)
{
	return world_random(&c->random) % n;
}

static const char *pick_name(struct client *c, char *name)
{
	unsigned n = pick(c, 13);

	if (n == 12) {
		memset(name, 'L', 255);
		name[255] = 0;
	} else {
		snprintf(name, 8, "n%u", n);
	}
	return name;
}

/* A random node of a type (0: any), NULL: none. */
static struct mnode *pick_node(struct client *c, unsigned type)
{
	return model_pick(c->model, type, world_random(&c->random));
}

/* ---- The operations: fill c->op, tell the model, say what is expected ---- */

static void op_begin(struct client *c, enum fs_op_type type, uint64_t ino)
{
	memset(&c->op, 0, sizeof(c->op));
	c->op.type = type;
	c->op.ino = ino;
	c->op.uid = c->op.gid = 1000;
	c->op.umask = 022;
}

static int make(struct client *c, enum fs_op_type type, uint32_t mode,
		const char *target)
{
	struct mnode *dir = pick_node(c, S_IFDIR);
	const char *name = pick_name(c, c->name);

	if (S_ISDIR(mode) && model_depth(dir) > 3)
		return -1;
	op_begin(c, type, dir->ino);
	c->op.name = name;
	c->op.name2 = target;
	c->op.mode = mode;
	if (model_find(dir, name)) {
		c->expect = -EEXIST;
		return 0;
	}
	c->node = model_make(c->model, mode & ~(S_ISLNK(mode) ? 0 : 022),
			     target);
	model_link(dir, name, c->node);
	return 0;
}

static int start_create(struct client *c)
{
	return make(c, FS_MKNOD, S_IFREG | 0666, NULL);
}

static int start_fifo(struct client *c)
{
	return make(c, FS_MKNOD, S_IFIFO | 0644, NULL);
}

static int start_mkdir(struct client *c)
{
	return make(c, FS_MKDIR, S_IFDIR | 0777, NULL);
}

static int start_symlink(struct client *c)
{
	memset(c->name2, 0, sizeof(c->name2));
	memset(c->name2, 's', 1 + pick(c, 200));
	return make(c, FS_SYMLINK, S_IFLNK | 0777, c->name2);
}

/* What made a node learns its number and drops the reference. */
static void end_make(struct client *c)
{
	struct mnode *node = c->node;

	if (c->expect)
		return;
	assert(c->op.attr.ino && "an entry without a number");
	model_set_ino(c->model, node, c->op.attr.ino);
}

static int start_unlink(struct client *c)
{
	struct mnode *dir = pick_node(c, S_IFDIR);
	const char *name = pick_name(c, c->name);
	struct mnode *node = model_find(dir, name);

	op_begin(c, FS_UNLINK, dir->ino);
	c->op.name = name;
	if (!node)
		c->expect = -ENOENT;
	else if (S_ISDIR(node->mode))
		c->expect = -EISDIR;
	else
		model_unlink(dir, name);
	return 0;
}

static int start_rmdir(struct client *c)
{
	struct mnode *dir = pick_node(c, S_IFDIR);
	const char *name = pick_name(c, c->name);
	struct mnode *node = model_find(dir, name);

	op_begin(c, FS_RMDIR, dir->ino);
	c->op.name = name;
	if (!node)
		c->expect = -ENOENT;
	else if (!S_ISDIR(node->mode))
		c->expect = -ENOTDIR;
	else if (node->entries)
		c->expect = -ENOTEMPTY;
	else
		model_unlink(dir, name);
	return 0;
}

static int start_link(struct client *c)
{
	struct mnode *dir = pick_node(c, S_IFDIR);
	struct mnode *node = pick_node(c, S_IFREG);
	const char *name = pick_name(c, c->name);

	if (!node)
		return -1;
	op_begin(c, FS_LINK, dir->ino);
	c->op.name = name;
	c->op.ino2 = node->ino;
	c->node = node;
	if (model_find(dir, name))
		c->expect = -EEXIST;
	else
		model_link(dir, name, node);
	return 0;
}

static int rename_rc(struct mnode *from, struct mnode *to, struct mnode *node,
		     struct mnode *old, unsigned flags)
{
	if (!node)
		return -ENOENT;
	if (flags == FS_RENAME_NOREPLACE && old)
		return -EEXIST;
	if (flags == FS_RENAME_EXCHANGE) {
		if (!old)
			return -ENOENT;
		return model_above(node, to) || model_above(old, from)
			       ? -EINVAL
			       : 0;
	}
	if (model_above(node, to))
		return -EINVAL;
	if (!old || old == node)
		return 0;
	if (S_ISDIR(node->mode) && !S_ISDIR(old->mode))
		return -ENOTDIR;
	if (!S_ISDIR(node->mode) && S_ISDIR(old->mode))
		return -EISDIR;
	return S_ISDIR(old->mode) && old->entries ? -ENOTEMPTY : 0;
}

static int start_rename(struct client *c)
{
	static const unsigned flags[] = { 0, 0, 0, FS_RENAME_NOREPLACE,
					  FS_RENAME_EXCHANGE };
	struct mnode *from = pick_node(c, S_IFDIR);
	struct mnode *to = pick_node(c, S_IFDIR);
	const char *name = pick_name(c, c->name);
	const char *name2 = pick_name(c, c->name2);
	struct mnode *node = model_find(from, name);
	struct mnode *old = model_find(to, name2);

	op_begin(c, FS_RENAME, from->ino);
	c->op.ino2 = to->ino;
	c->op.name = name;
	c->op.name2 = name2;
	c->op.flags = flags[pick(c, 5)];
	c->expect = rename_rc(from, to, node, old, c->op.flags);
	/* Errors of two kinds at once may be reported either way. */
	if ((c->expect == -EINVAL && old) || (old && model_above(old, from)))
		return -1;
	if (!c->expect)
		model_rename(c->model, from, name, to, name2,
			     c->op.flags == FS_RENAME_EXCHANGE);
	return 0;
}

static int start_write_at(struct client *c, struct mnode *node,
			  uint64_t offset, unsigned bytes)
{
	if (offset + bytes > FILE_BYTES)
		return -1;
	for (unsigned i = 0; i < bytes; i += 8) {
		uint64_t r = world_random(&c->random);

		memcpy(c->data + i, &r, 8);
	}
	op_begin(c, FS_WRITE, node->ino);
	c->op.offset = offset;
	c->op.size = bytes;
	c->op.data = c->data;
	model_write(c->model, node, offset, c->data, bytes);
	return 0;
}

static int start_write(struct client *c)
{
	struct mnode *node = pick_node(c, S_IFREG);
	unsigned bytes = 1 + pick(c, pick(c, 8) ? 12000 : 250000);

	if (!node)
		return -1;
	return start_write_at(c, node, pick(c, 3) ? pick(c, 300000)
						  : node->size,
			      bytes);
}

static int start_append(struct client *c)
{
	struct mnode *node = pick_node(c, S_IFREG);

	if (!node)
		return -1;
	return start_write_at(c, node, node->size, 1 + pick(c, 5000));
}

static int start_overwrite_block(struct client *c)
{
	struct mnode *node = pick_node(c, S_IFREG);

	if (!node || node->size < 4096)
		return -1;
	return start_write_at(c, node,
			      pick(c, node->size / 4096) * 4096ull, 4096);
}

static int start_read(struct client *c)
{
	struct mnode *node = pick_node(c, S_IFREG);

	if (!node)
		return -1;
	op_begin(c, FS_READ, node->ino);
	c->op.offset = pick(c, FILE_BYTES);
	c->op.size = 1 + pick(c, FILE_BYTES);
	c->op.buffer = c->data;
	c->node = node;
	return 0;
}

static void end_read(struct client *c)
{
	const struct mnode *node = c->node;
	uint64_t n = 0;

	if (c->op.offset < node->size)
		n = node->size - c->op.offset;
	if (n > c->op.size)
		n = c->op.size;
	assert(c->op.result == n && "a read of the wrong length");
	assert((!n || !memcmp(c->data, node->bytes + c->op.offset, n)) &&
	       "a read of wrong bytes");
}

static int start_truncate(struct client *c)
{
	struct mnode *node = pick_node(c, S_IFREG);

	if (!node)
		return -1;
	op_begin(c, FS_SETATTR, node->ino);
	c->op.flags = FS_SET_SIZE;
	c->op.attr.size = pick(c, 2) ? pick(c, FILE_BYTES)
				     : pick(c, node->size + 1);
	model_truncate(c->model, node, c->op.attr.size);
	return 0;
}

static int start_fallocate(struct client *c)
{
	static const int modes[] = {
		0, FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		FALLOC_FL_ZERO_RANGE,
		FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE
	};
	struct mnode *node = pick_node(c, S_IFREG);
	uint64_t offset = pick(c, 240000), size = 1 + pick(c, 150000);
	int mode = modes[pick(c, 5)];

	if (!node)
		return -1;
	op_begin(c, FS_FALLOCATE, node->ino);
	c->op.offset = offset;
	c->op.size = size;
	c->op.flags = mode;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		model_zero(c->model, node, offset, size);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && offset + size > node->size)
		model_truncate(c->model, node, offset + size);
	return 0;
}

static int start_chmod(struct client *c)
{
	struct mnode *node = pick_node(c, 0);

	if (S_ISLNK(node->mode) || node->root)
		return -1;
	op_begin(c, FS_SETATTR, node->ino);
	c->op.flags = FS_SET_MODE;
	c->op.attr.mode = pick(c, 01000);
	node->mode = (node->mode & S_IFMT) | c->op.attr.mode;
	return 0;
}

static int start_setxattr(struct client *c)
{
	struct mnode *node = pick_node(c, 0);
	unsigned which = pick(c, MODEL_XATTRS);
	unsigned bytes = pick(c, 6) ? pick(c, 300) : pick(c, 65536);

	if (S_ISLNK(node->mode))
		return -1;
	memset(c->data, 'a' + pick(c, 26), bytes);
	snprintf(c->name2, sizeof(c->name2), "user.x%u", which);
	op_begin(c, FS_SETXATTR, node->ino);
	c->op.name2 = c->name2;
	c->op.data = c->data;
	c->op.size = bytes;
	node->xattr[which] = csum_seeded(c->data, bytes, 1) | 1;
	return 0;
}

static int start_removexattr(struct client *c)
{
	struct mnode *node = pick_node(c, 0);
	unsigned which = pick(c, MODEL_XATTRS);

	if (S_ISLNK(node->mode))
		return -1;
	snprintf(c->name2, sizeof(c->name2), "user.x%u", which);
	op_begin(c, FS_REMOVEXATTR, node->ino);
	c->op.name2 = c->name2;
	c->expect = node->xattr[which] ? 0 : -ENODATA;
	node->xattr[which] = 0;
	return 0;
}

static int start_fsync(struct client *c)
{
	struct mnode *node = pick_node(c, S_IFREG);

	if (!node)
		return -1;
	op_begin(c, FS_FSYNC, node->ino);
	c->op.flags = pick(c, 2);
	c->node = node;
	c->fsync_op = c->model->op;
	return 0;
}

static void end_fsync(struct client *c)
{
	model_durable(c->model, c->world->events, c->fsync_op, c->node);
}

static int start_syncfs(struct client *c)
{
	op_begin(c, FS_SYNCFS, TRAX_ROOT);
	c->fsync_op = c->model->op;
	return 0;
}

static void end_syncfs(struct client *c)
{
	model_durable(c->model, c->world->events, c->fsync_op, NULL);
}

static int start_open(struct client *c)
{
	struct mnode *node = c->held ? c->held : pick_node(c, S_IFREG);

	if (!node)
		return -1;
	op_begin(c, c->held ? FS_RELEASE : FS_OPEN, node->ino);
	c->op.flags = c->held ? 0 : O_RDWR;
	c->held = c->held ? NULL : node;
	return 0;
}

/* Reads and writes through the handle, also when the name is gone. */
static int start_held(struct client *c)
{
	if (!c->held)
		return -1;
	if (pick(c, 2))
		return start_write_at(c, c->held, pick(c, 100000),
				      1 + pick(c, 9000));
	op_begin(c, FS_READ, c->held->ino);
	c->op.size = FILE_BYTES;
	c->op.buffer = c->data;
	c->node = c->held;
	return 0;
}

static void end_held(struct client *c)
{
	if (c->op.type == FS_READ)
		end_read(c);
}

static int start_copy(struct client *c)
{
	struct mnode *from = pick_node(c, S_IFREG);
	struct mnode *to = pick_node(c, S_IFREG);

	if (!from || from == to || !from->size)
		return -1;
	op_begin(c, FS_COPY_RANGE, from->ino);
	c->op.ino2 = to->ino;
	c->op.offset = pick(c, from->size);
	c->op.size = 1 + pick(c, from->size - c->op.offset);
	c->op.offset2 = pick(c, FILE_BYTES - c->op.size);
	c->node = to;
	memcpy(c->data, from->bytes + c->op.offset, c->op.size);
	/* May be short: the model writes what was asked once it is known;
	 * until then any prefix may be there. */
	model_write(c->model, to, c->op.offset2, c->data, c->op.size);
	return 0;
}

/* A fault may make it short: then any part of it may be there. */
static void end_copy(struct client *c)
{
	const bool is_short = c->op.result != c->op.size;

	assert((!is_short || c->oracle->allow) && "a short copy");
	c->stopped = is_short;
}

struct kind {
	const char *name;
	unsigned weight;
	int (*start)(struct client *c);	/* -1: nothing to do it with */
	void (*end)(struct client *c);
	bool entry;			/* returns a reference */
};

static const struct kind kinds[] = {
	{ "create", 16, start_create, end_make, true },
	{ "mkdir", 7, start_mkdir, end_make, true },
	{ "symlink", 3, start_symlink, end_make, true },
	{ "fifo", 1, start_fifo, end_make, true },
	{ "unlink", 9, start_unlink, NULL, false },
	{ "rmdir", 4, start_rmdir, NULL, false },
	{ "link", 4, start_link, NULL, true },
	{ "rename", 10, start_rename, NULL, false },
	{ "write", 14, start_write, NULL, false },
	{ "append", 10, start_append, NULL, false },
	{ "overwrite", 8, start_overwrite_block, NULL, false },
	{ "read", 8, start_read, end_read, false },
	{ "truncate", 6, start_truncate, NULL, false },
	{ "fallocate", 6, start_fallocate, NULL, false },
	{ "chmod", 3, start_chmod, NULL, false },
	{ "setxattr", 5, start_setxattr, NULL, false },
	{ "removexattr", 3, start_removexattr, NULL, false },
	{ "fsync", 12, start_fsync, end_fsync, false },
	{ "syncfs", 2, start_syncfs, end_syncfs, false },
	{ "open", 4, start_open, NULL, false },
	{ "held", 5, start_held, end_held, false },
	{ "copy", 3, start_copy, end_copy, false },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void free_op(struct fs_op *op)
{
	free(op);
}

static void client_forget(struct client *c, uint64_t ino)
{
	struct fs_op *op = calloc(1, sizeof(*op));

	assert(op);
	op->type = FS_FORGET;
	op->ino = ino;
	op->size = 1;
	op->done = free_op;
	world_submit(c->world, c->fs, op);
}

/* What an operation may end with when the disk or the memory fails. */
static bool is_fault(int rc)
{
	return rc == -EIO || rc == -EROFS || rc == -ENOMEM;
}

static void client_end(struct client *c)
{
	struct fs_op *op = &c->op;

	c->busy = false;
	if (op->rc != c->expect && c->oracle->allow && is_fault(op->rc)) {
		c->stopped = true;
		return;
	}
	if (op->rc != c->expect) {
		fprintf(stderr, "oracle: %s: rc %d, expected %d (op %u)\n",
			c->kind->name, op->rc, c->expect, c->model->op);
		abort();
	}
	if (!op->rc && c->kind->end)
		c->kind->end(c);
	if (!op->rc && c->kind->entry)
		client_forget(c, op->attr.ino);
}

static void client_done(struct fs_op *op)
{
	struct client *c = op->owner;
	bool before = c->world->inside;

	c->world->inside = false;
	client_end(c);
	c->world->inside = before;
}

static const struct kind *pick_kind(struct client *c)
{
	unsigned total = 0, n;

	if (c->oracle->overwrites && pick(c, 16))
		for (unsigned i = 0; i < KINDS; i++)
			if (kinds[i].start == start_overwrite_block)
				return &kinds[i];
	for (unsigned i = 0; i < KINDS; i++)
		total += kinds[i].weight;
	n = pick(c, total);
	for (unsigned i = 0;; i++) {
		if (n < kinds[i].weight)
			return &kinds[i];
		n -= kinds[i].weight;
	}
}

static void client_start(struct client *c)
{
	do {
		c->kind = pick_kind(c);
		c->expect = 0;
		c->node = NULL;
		model_begin(c->model);
	} while (c->kind->start(c));
	c->oracle->counts[c->kind - kinds]++;
	model_issued(c->model, c->world->events);
	c->op.done = client_done;
	c->op.owner = c;
	c->busy = true;
	world_submit(c->world, c->fs, &c->op);
}

/* ---- Outside ---- */

struct oracle *oracle_new(uint64_t seed, unsigned clients)
{
	struct oracle *o = calloc(1, sizeof(*o));

	assert(o);
	o->random = seed;
	o->clients = clients;
	o->client = calloc(clients, sizeof(*o->client));
	assert(o->client);
	for (unsigned i = 0; i < clients; i++) {
		struct client *c = &o->client[i];

		c->oracle = o;
		c->model = model_new();
		c->random = world_random(&o->random);
		c->data = malloc(2 * FILE_BYTES);
		assert(c->data);
	}
	return o;
}

struct oracle *oracle_new_replay(const char *path)
{
	struct oracle *o = oracle_new(1, 1);

	o->replay = replay_new(path, o->client[0].model);
	return o;
}

unsigned oracle_ops(const struct oracle *o)
{
	return replay_ops(o->replay);
}

void oracle_free(struct oracle *o)
{
	if (o->replay)
		replay_free(o->replay);
	for (unsigned i = 0; i < o->clients; i++) {
		model_free(o->client[i].model);
		free(o->client[i].data);
	}
	free(o->client);
	free(o);
}

void oracle_begin(struct oracle *o, struct fs *fs, struct world *world)
{
	struct fs_op sync = { .type = FS_SYNCFS, .ino = TRAX_ROOT };

	if (o->replay)
		model_root(o->client[0].model, TRAX_ROOT, "root");
	for (unsigned i = 0; i < o->clients && !o->replay; i++) {
		char name[16];
		struct fs_op op = { .type = FS_MKDIR,
				    .ino = TRAX_ROOT,
				    .name = name,
				    .mode = S_IFDIR | 0755 };
		int rc;

		snprintf(name, sizeof(name), "c%u", i);
		rc = world_call(fs, world, &op);
		assert(!rc);
		model_root(o->client[i].model, op.attr.ino, name);
		forget(fs, world, op.attr.ino);
	}
	if (world_call(fs, world, &sync))
		abort();
	for (unsigned i = 0; i < o->clients; i++)
		model_durable(o->client[i].model, world->events, 0,
			      NULL);
}

void oracle_allow_faults(struct oracle *o)
{
	o->allow = true;
}

void oracle_allow_losses(struct oracle *o)
{
	for (unsigned i = 0; i < o->clients; i++)
		o->client[i].model->loses = true;
}

static bool any_busy(const struct oracle *o)
{
	for (unsigned i = 0; i < o->clients; i++)
		if (o->client[i].busy)
			return true;
	return false;
}

static bool all_stopped(const struct oracle *o)
{
	for (unsigned i = 0; i < o->clients; i++)
		if (!o->client[i].stopped)
			return false;
	return true;
}

/* An open handle does not survive the file system it was opened on. */
static void drop_handles(struct oracle *o, struct fs *fs, struct world *world)
{
	for (unsigned i = 0; i < o->clients; i++) {
		struct client *c = &o->client[i];
		struct fs_op op = { .type = FS_RELEASE };

		if (!c->held)
			continue;
		op.ino = c->held->ino;
		if (world_call(fs, world, &op) && !o->allow)
			abort();
		c->held = NULL;
	}
}

void oracle_overwrite(struct oracle *o, struct fs *fs, struct world *world,
		      unsigned ops)
{
	o->overwrites = true;
	oracle_run(o, fs, world, ops);
	o->overwrites = false;
}

void oracle_run(struct oracle *o, struct fs *fs, struct world *world,
		unsigned ops)
{
	unsigned idle = 0;

	if (o->replay) {
		replay_run(o->replay, fs, world, ops, o->allow);
		return;
	}
	while (ops || any_busy(o)) {
		for (unsigned i = 0; ops && i < o->clients; i++) {
			struct client *c = &o->client[i];

			if (c->busy || c->stopped)
				continue;
			c->fs = fs;
			c->world = world;
			client_start(c);
			ops--;
			idle = 0;
		}
		assert(idle++ < 10000000 && "the file system hangs");
		if (all_stopped(o))
			ops = 0;
		world_drive(world, fs);
	}
	drop_handles(o, fs, world);
}

const char *oracle_verify(struct oracle *o, struct fs *fs,
			  struct world *world, uint64_t event)
{
	for (unsigned i = 0; i < o->clients; i++) {
		const char *wrong = model_verify(o->client[i].model, fs,
						 world, event);

		if (wrong)
			return wrong;
	}
	return NULL;
}

void oracle_print(const struct oracle *o)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (o->counts[i])
			printf("%s %lu  ", kinds[i].name, o->counts[i]);
	printf("\n");
}
