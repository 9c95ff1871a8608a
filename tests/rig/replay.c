/*
 * replay.c - see replay.h.
 */
#include "tests/rig/replay.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/hashmap.h"
#include "tests/rig/oracle.h"
#include "tests/rig/trace.h"

#define XATTR_ROOM 65536u	/* bytes: the longest value, XATTR_SIZE_MAX */

/* An inode of the trace. */
struct subject {
	struct mnode *node;
	uint64_t given, held;	/* references: in the trace, here */
};

struct step {
	struct list link;	/* of those that are under way */
	struct replay *replay;
	const struct trace_event *event;
	struct fs_op op;
	struct mnode *node, *other;
	uint8_t *bytes;
	unsigned number;	/* of the model */
	unsigned durable;	/* what an fsync makes durable */
	bool ended;
};

struct replay {
	struct trace *trace;
	struct model *model;
	struct hashmap *subjects;
	struct step *step;	/* by number of the trace */
	struct list under_way;
	struct fs *fs;
	struct world *world;
	unsigned next;		/* event */
	bool faults, stopped;
	uint64_t start_ns;
};

static struct subject *subject_of(struct replay *r, uint64_t ino)
{
	struct subject *s = hashmap_get(r->subjects, ino);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	assert(s && !hashmap_put(r->subjects, ino, s));
	return s;
}

static struct mnode *node_of(struct replay *r, uint64_t ino)
{
	struct mnode *node = subject_of(r, ino)->node;

	if (ino == TRAX_ROOT)
		return r->model->root;
	assert(node && "an inode that the trace does not make");
	return node;
}

struct replay *replay_new(const char *path, struct model *model)
{
	struct replay *r = calloc(1, sizeof(*r));

	assert(r);
	r->trace = trace_read(path);
	r->model = model;
	r->subjects = hashmap_new();
	r->step = calloc(r->trace->events, sizeof(*r->step));
	assert(r->subjects && r->step);
	list_init(&r->under_way);
	return r;
}

void replay_free(struct replay *r)
{
	struct subject *s;
	size_t pos = 0;

	while ((s = hashmap_next(r->subjects, &pos, NULL)))
		free(s);
	for (unsigned i = 0; i < r->trace->events; i++)
		free(r->step[i].bytes);
	hashmap_free(r->subjects);
	trace_free(r->trace);
	free(r->step);
	free(r);
}

unsigned replay_ops(const struct replay *r)
{
	return r->trace->ops;
}

/* ---- What has to wait for what ---- */

static bool gives_entry(enum fs_op_type type)
{
	return type == FS_LOOKUP || type == FS_MKNOD || type == FS_MKDIR ||
	       type == FS_SYMLINK || type == FS_TMPFILE || type == FS_LINK;
}

static bool changes_names(enum fs_op_type type)
{
	return (gives_entry(type) && type != FS_LOOKUP) ||
	       type == FS_UNLINK || type == FS_RMDIR || type == FS_RENAME ||
	       type == FS_SETATTR || type == FS_SETXATTR ||
	       type == FS_REMOVEXATTR;
}

static bool changes_data(enum fs_op_type type)
{
	return type == FS_WRITE || type == FS_SETATTR ||
	       type == FS_FALLOCATE || type == FS_COPY_RANGE;
}

static bool is_sync(enum fs_op_type type)
{
	return type == FS_FSYNC || type == FS_SYNCFS || type == FS_RELEASE ||
	       type == FS_FORGET || type == FS_STATFS;
}

static bool same_file(const struct fs_op *a, const struct fs_op *b)
{
	return a->ino == b->ino || (a->ino2 && a->ino2 == b->ino) ||
	       (b->ino2 && (b->ino2 == a->ino || b->ino2 == a->ino2));
}

static bool conflict(const struct fs_op *a, const struct fs_op *b)
{
	if (is_sync(a->type) || is_sync(b->type))
		return false;
	if (changes_names(a->type) || changes_names(b->type))
		return true;
	if (a->type == FS_WRITE && b->type == FS_WRITE &&
	    (a->offset >= b->offset + b->size ||
	     b->offset >= a->offset + a->size))
		return false;
	return (changes_data(a->type) || changes_data(b->type)) &&
	       same_file(a, b);
}

static void drive_until(struct replay *r, const struct step *step)
{
	for (unsigned i = 0; !step->ended; i++) {
		assert(i < 10000000 && "the file system hangs");
		world_drive(r->world, r->fs);
	}
}

static struct step *first_conflict(struct replay *r, const struct fs_op *op)
{
	struct list *pos;
	struct step *step;

	list_for_each(pos, &r->under_way) {
		step = list_entry(pos, struct step, link);
		if (conflict(&step->event->op, op))
			return step;
	}
	return NULL;
}

/* ---- The model ---- */

/* Content that is different each time. */
static void fill_bytes(uint8_t *bytes, uint64_t n, uint64_t seed)
{
	for (uint64_t i = 0; i < n; i += 8) {
		const uint64_t word = world_random(&seed);

		memcpy(bytes + i, &word, n - i < 8 ? n - i : 8);
	}
}

static void model_new_node(struct step *s)
{
	const struct fs_op *op = &s->op;
	struct model *m = s->replay->model;

	s->node = model_make(m, s->event->mode, op->name2);
	subject_of(s->replay, s->event->ino)->node = s->node;
	if (op->type != FS_TMPFILE)
		model_link(node_of(s->replay, op->ino), op->name, s->node);
}

static void model_setattr(struct step *s)
{
	struct mnode *node = node_of(s->replay, s->op.ino);

	if (s->event->mode)
		node->mode = s->event->mode;
	if (s->op.flags & FS_SET_SIZE)
		model_truncate(s->replay->model, node, s->op.attr.size);
}

static void model_fallocate(struct step *s)
{
	struct mnode *node = node_of(s->replay, s->op.ino);
	const uint64_t end = s->op.offset + s->op.size;
	const unsigned mode = s->op.flags & ~FS_SET_KILL_PRIV;

	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
		model_zero(s->replay->model, node, s->op.offset, s->op.size);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && end > node->size)
		model_truncate(s->replay->model, node, end);
}

static void model_copy(struct step *s)
{
	struct mnode *from = node_of(s->replay, s->op.ino);
	uint8_t *copy = malloc(s->op.result + 1);

	assert(copy && s->op.offset + s->op.result <= from->size);
	memcpy(copy, from->bytes + s->op.offset, s->op.result);
	model_write(s->replay->model, node_of(s->replay, s->op.ino2),
		    s->op.offset2, copy, s->op.result);
	free(copy);
}

/* The permission bits of an access ACL are those of the mode (acl(5); the
 * kernel's format is that of linux/posix_acl_xattr.h). */
static void model_acl(struct mnode *node, const uint8_t *acl, size_t bytes)
{
	uint32_t owner = 0, group = 0, mask = 8, other = 0;

	for (size_t at = 4; at + 8 <= bytes; at += 8) {
		const uint32_t perm = acl[at + 2];

		if (acl[at] == ACL_USER_OBJ)
			owner = perm;
		else if (acl[at] == ACL_GROUP_OBJ)
			group = perm;
		else if (acl[at] == ACL_MASK)
			mask = perm;
		else if (acl[at] == ACL_OTHER)
			other = perm;
	}
	if (mask < 8)
		group = mask;
	node->mode = (node->mode & ~0777u) | owner << 6 | group << 3 | other;
}

/* The model knows user.x0 to x3, and what an ACL says of the mode. */
static void model_xattr(struct step *s)
{
	struct mnode *node = node_of(s->replay, s->op.ino);
	const char *name = s->op.name2;
	unsigned i;

	if (s->op.type == FS_SETXATTR &&
	    !strcmp(name, "system.posix_acl_access"))
		model_acl(node, s->op.data, s->op.size);
	if (strncmp(name, "user.x", 6) || !name[6] || name[7] ||
	    name[6] < '0' || name[6] >= '0' + (int)MODEL_XATTRS)
		return;
	i = (unsigned)(name[6] - '0');
	node->xattr[i] = s->op.type == FS_REMOVEXATTR ? 0 :
		csum_seeded(s->op.data, s->op.size, 1) | 1;
}

static void tell_model(struct step *s)
{
	struct replay *r = s->replay;
	struct model *m = r->model;
	const struct fs_op *op = &s->op;

	if (op->rc)
		return;
	if (gives_entry(op->type) && op->type != FS_LOOKUP &&
	    op->type != FS_LINK)
		model_new_node(s);
	else if (op->type == FS_LINK)
		model_link(node_of(r, op->ino), op->name,
			   node_of(r, op->ino2));
	else if (op->type == FS_UNLINK || op->type == FS_RMDIR)
		model_unlink(node_of(r, op->ino), op->name);
	else if (op->type == FS_RENAME)
		model_rename(m, node_of(r, op->ino), op->name,
			     node_of(r, op->ino2), op->name2,
			     op->flags == FS_RENAME_EXCHANGE);
	else if (op->type == FS_SETATTR)
		model_setattr(s);
	else if (op->type == FS_WRITE)
		model_write(m, node_of(r, op->ino), op->offset, s->bytes,
			    op->size);
	else if (op->type == FS_FALLOCATE)
		model_fallocate(s);
	else if (op->type == FS_COPY_RANGE)
		model_copy(s);
	else if (op->type == FS_SETXATTR || op->type == FS_REMOVEXATTR)
		model_xattr(s);
}

/* Older operations that have not ended are not promised by an fsync. */
static unsigned all_ended(const struct replay *r)
{
	unsigned last = r->model->op;
	struct list *pos;

	list_for_each(pos, &r->under_way) {
		const struct step *s = list_entry(pos, struct step, link);

		if (s->number <= last)
			last = s->number - 1;
	}
	return last;
}

/* ---- Operations ---- */

static bool is_fault(int rc)
{
	return rc == -EIO || rc == -EROFS || rc == -ENOMEM;
}

static void compare_read(const struct step *s)
{
	const struct mnode *node = node_of(s->replay, s->event->op.ino);
	uint64_t n = 0;

	if (s->op.offset < node->size)
		n = node->size - s->op.offset;
	if (n > s->op.size)
		n = s->op.size;
	assert(s->op.result == n && "a read of the wrong length");
	assert((!n || !memcmp(s->bytes, node->bytes + s->op.offset, n)) &&
	       "a read of wrong bytes");
}

static void took_reference(struct step *s)
{
	struct subject *subject = subject_of(s->replay, s->event->ino);

	if (s->op.type != FS_LOOKUP && s->op.type != FS_LINK)
		model_set_ino(s->replay->model, s->node, s->op.attr.ino);
	assert(s->op.attr.ino == node_of(s->replay, s->event->ino)->ino);
	subject->given++;
	subject->held++;
}

static void step_ended(struct step *s)
{
	struct replay *r = s->replay;
	const int rc = s->event->op.rc;

	s->ended = true;
	list_del(&s->link);
	if (s->op.rc != rc && r->faults && is_fault(s->op.rc)) {
		r->stopped = true;
	} else if (s->op.rc != rc && rc != -EINPROGRESS) {
		fprintf(stderr, "replay: %s, %u of the trace: rc %d, was %d\n",
			trace_types[s->op.type], s->event->number, s->op.rc,
			rc);
		abort();
	} else if (!s->op.rc) {
		if (gives_entry(s->op.type))
			took_reference(s);
		if (s->op.type == FS_READ)
			compare_read(s);
		if (s->op.type == FS_FSYNC || s->op.type == FS_SYNCFS)
			model_durable(r->model, r->world->events, s->durable,
				      s->node);
	}
	free(s->bytes);
	s->bytes = NULL;
}

static void step_done(struct fs_op *op)
{
	struct step *s = op->owner;
	bool before = s->replay->world->inside;

	s->replay->world->inside = false;
	step_ended(s);
	s->replay->world->inside = before;
}

static bool any_entry(void *arg, const char *name, size_t bytes, uint64_t ino,
		      unsigned d_type, uint64_t next,
		      const struct fs_attr *attr)
{
	(void)arg;
	(void)name;
	(void)bytes;
	(void)ino;
	(void)d_type;
	(void)next;
	(void)attr;
	return true;
}

/* What the operation points to, and inodes as they are called here. */
static void step_prepare(struct step *s)
{
	struct replay *r = s->replay;
	struct fs_op *op = &s->op;
	uint64_t room = op->size;

	if (op->type == FS_READLINK || op->type == FS_GETXATTR ||
	    op->type == FS_LISTXATTR)
		room += XATTR_ROOM;
	if (op->type == FS_WRITE || op->type == FS_READ ||
	    room >= XATTR_ROOM) {
		s->bytes = malloc(room + 1);
		assert(s->bytes);
		op->buffer = s->bytes;
	}
	if (op->type == FS_WRITE) {
		fill_bytes(s->bytes, op->size, s->event->number + 1);
		op->data = s->bytes;
	}
	op->fill = any_entry;
	op->plus = false;
	op->done = step_done;
	op->owner = s;
	if (op->type == FS_FSYNC)
		s->node = node_of(r, op->ino);
}

static void name_inodes(struct step *s)
{
	struct fs_op *op = &s->op;

	if (op->ino)
		op->ino = node_of(s->replay, op->ino)->ino;
	if (op->ino2)
		op->ino2 = node_of(s->replay, op->ino2)->ino;
	op->rc = 0;
	op->result = 0;
}

static void step_start(struct step *s)
{
	struct replay *r = s->replay;

	s->durable = all_ended(r);
	model_begin(r->model);
	s->number = r->model->op;
	step_prepare(s);
	tell_model(s);
	name_inodes(s);
	r->model->same_names = !changes_names(s->event->op.type);
	model_issued(r->model, r->world->events);
	list_add(&r->under_way, &s->link);
	world_submit(r->world, r->fs, &s->op);
}

/* All the references that are held, once the kernel has none any more. */
static bool forget(struct replay *r, struct step *s)
{
	struct subject *subject = subject_of(r, s->op.ino);

	assert(subject->given >= s->op.size);
	subject->given -= s->op.size;
	if (subject->given || !subject->held)
		return false;
	s->op.size = subject->held;
	subject->held = 0;
	return true;
}

static void submit(struct replay *r, const struct trace_event *event)
{
	struct step *s = &r->step[event->number], *other;
	const uint64_t due_ns = r->start_ns + event->ms * 1000000;

	while (sim_now_ns(r->world->sim) < due_ns)
		world_drive_until(r->world, r->fs, due_ns);
	*s = (struct step){ .replay = r, .event = event, .op = event->op };
	if (event->op.type == FS_FORGET && !forget(r, s)) {
		s->ended = true;
		return;
	}
	/* Inodes of both are those of the trace. */
	while ((other = first_conflict(r, &event->op)))
		drive_until(r, other);
	if (r->stopped)
		s->ended = true;
	else
		step_start(s);
}

static void event_happens(struct replay *r, const struct trace_event *event)
{
	if (event->kind == TRACE_SUBMIT)
		submit(r, event);
	else if (event->kind == TRACE_END)
		drive_until(r, &r->step[event->number]);
	else if (event->kind == TRACE_ENTRY)
		subject_of(r, event->ino)->given++;
	else if (fs_new_handle(r->fs) != event->handle)
		abort();
}

void replay_run(struct replay *r, struct fs *fs, struct world *world,
		unsigned ops, bool faults)
{
	r->fs = fs;
	r->world = world;
	r->faults = faults;
	if (!r->start_ns)
		r->start_ns = sim_now_ns(world->sim);
	while (r->next < r->trace->events && !r->stopped) {
		const struct trace_event *event = &r->trace->event[r->next];

		if (event->kind == TRACE_SUBMIT && !ops--)
			break;
		r->next++;
		event_happens(r, event);
	}
	while (!list_empty(&r->under_way))
		world_drive(world, fs);
}
