/*
 * oracle_model.c - see oracle_model.h.
 */
#include "tests/rig/oracle_model.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "tests/rig/oracle.h"

struct version {
	unsigned op;
	uint64_t hash;		/* of the block; or the size */
};

struct versions {
	struct version *v;
	unsigned n;
};

/* "Everything (or this node's data) up to op": since an event (durable) or
 * when the name space is at or past `op` itself (order). */
struct mark {
	uint64_t event;
	unsigned op;
	struct mnode *node;
};

static void *grow(void *p, size_t bytes)
{
	p = realloc(p, bytes);
	assert(p);
	return p;
}

/* ---- Name space ---- */

struct model *model_new(void)
{
	struct model *m = calloc(1, sizeof(*m));

	assert(m);
	return m;
}

static void node_free(struct mnode *node)
{
	for (unsigned i = 0; i < node->entries; i++)
		free(node->entry[i].name);
	for (uint64_t i = 0; i < node->blocks; i++)
		free(node->versions[i].v);
	if (node->sizes)
		free(node->sizes->v);
	free(node->versions);
	free(node->sizes);
	free(node->entry);
	free(node->target);
	free(node->bytes);
	free(node);
}

void model_free(struct model *m)
{
	for (unsigned i = 0; i < m->count; i++)
		node_free(m->nodes[i]);
	free(m->nodes);
	free(m->hash);
	free(m->event);
	free(m->durable);
	free(m->order);
	free(m->name);
	free(m);
}

static void version_add(struct versions *v, unsigned op, uint64_t hash)
{
	if (v->n && v->v[v->n - 1].op == op) {
		v->v[v->n - 1].hash = hash;
		return;
	}
	v->v = grow(v->v, (v->n + 1) * sizeof(*v->v));
	v->v[v->n++] = (struct version){ op, hash };
}

static uint64_t block_hash(const uint8_t *bytes)
{
	return csum(bytes, 4096);
}

/* Makes room for this much content.  New blocks are zeros, as they were since
 * the file was made. */
static void make_room(struct mnode *node, uint64_t bytes)
{
	const uint64_t blocks = (bytes + 4095) / 4096;
	uint64_t i = node->blocks;

	if (blocks <= i)
		return;
	node->bytes = grow(node->bytes, blocks * 4096);
	memset(node->bytes + i * 4096, 0, (blocks - i) * 4096);
	node->versions = grow(node->versions, blocks * sizeof(*node->versions));
	for (; i < blocks; i++) {
		node->versions[i] = (struct versions){ NULL, 0 };
		version_add(&node->versions[i], node->made,
			    block_hash(node->bytes + i * 4096));
	}
	node->blocks = blocks;
}

struct mnode *model_make(struct model *m, uint32_t mode, const char *target)
{
	struct mnode *node = calloc(1, sizeof(*node));

	assert(node);
	node->mode = mode;
	node->nlink = S_ISDIR(mode) ? 1 : 0;
	if (target && S_ISLNK(mode))
		node->target = strdup(target);
	node->made = m->op;
	if (S_ISREG(mode)) {
		node->sizes = calloc(1, sizeof(*node->sizes));
		assert(node->sizes);
		version_add(node->sizes, m->op, 0);
	}
	m->nodes = grow(m->nodes, (m->count + 1) * sizeof(*m->nodes));
	m->nodes[m->count++] = node;
	return node;
}

void model_set_ino(struct model *m, struct mnode *node, uint64_t ino)
{
	for (unsigned i = 0; i < m->count; i++)
		assert(m->nodes[i]->ino != ino && "a number used twice");
	node->ino = ino;
}

struct mnode *model_find(const struct mnode *dir, const char *name)
{
	for (unsigned i = 0; i < dir->entries; i++)
		if (!strcmp(dir->entry[i].name, name))
			return dir->entry[i].node;
	return NULL;
}

void model_link(struct mnode *dir, const char *name, struct mnode *node)
{
	unsigned i = dir->entries++;

	dir->entry = grow(dir->entry, dir->entries * sizeof(*dir->entry));
	for (; i && strcmp(dir->entry[i - 1].name, name) > 0; i--)
		dir->entry[i] = dir->entry[i - 1];
	dir->entry[i] = (struct mentry){ strdup(name), node };
	node->nlink++;
	if (S_ISDIR(node->mode)) {
		node->parent = dir;
		dir->nlink++;
	}
}

void model_unlink(struct mnode *dir, const char *name)
{
	unsigned i = 0;
	struct mnode *node;

	while (strcmp(dir->entry[i].name, name))
		i++;
	node = dir->entry[i].node;
	free(dir->entry[i].name);
	memmove(dir->entry + i, dir->entry + i + 1,
		(--dir->entries - i) * sizeof(*dir->entry));
	node->nlink--;
	if (S_ISDIR(node->mode)) {
		node->parent = NULL;
		dir->nlink--;
	}
}

void model_rename(struct model *m, struct mnode *from, const char *name,
		  struct mnode *to, const char *name2, bool exchange)
{
	struct mnode *node = model_find(from, name);
	struct mnode *old = model_find(to, name2);

	if (node == old)
		return;
	if (old)
		model_unlink(to, name2);
	model_unlink(from, name);
	model_link(to, name2, node);
	if (exchange)
		model_link(from, name, old);
	if (!old || exchange || !S_ISREG(node->mode))
		return;
	m->order = grow(m->order, (m->orders + 1) * sizeof(*m->order));
	m->order[m->orders++] = (struct mark){ 0, m->op, node };
}

unsigned model_depth(const struct mnode *dir)
{
	unsigned n = 0;

	for (; dir->parent; dir = dir->parent)
		n++;
	return n;
}

bool model_above(const struct mnode *node, const struct mnode *dir)
{
	for (; dir; dir = dir->parent)
		if (dir == node)
			return true;
	return false;
}

static bool alive(const struct mnode *node)
{
	if (node->root)
		return true;
	return S_ISDIR(node->mode) ? node->parent != NULL : node->nlink > 0;
}

struct mnode *model_pick(const struct model *m, uint32_t type,
			 uint64_t random)
{
	struct mnode *found = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < m->count; i++) {
		struct mnode *node = m->nodes[i];

		if (!alive(node) || (type && (node->mode & S_IFMT) != type))
			continue;
		if (random % ++n == 0)
			found = node;
		random = random * 6364136223846793005ull + 1442695040888963407;
		random ^= random >> 33;
	}
	return found;
}

void model_root(struct model *m, uint64_t ino, const char *name)
{
	m->root = model_make(m, S_IFDIR | 0755, NULL);
	m->root->root = true;
	m->root->nlink = 2;
	m->root->ino = ino;
	m->name = strdup(name);
	m->open = true;
	model_issued(m, 0);
}

/* ---- Data ---- */

static void data_changed(struct model *m, struct mnode *node, uint64_t first,
			 uint64_t end)
{
	for (uint64_t i = first / 4096; i * 4096 < end; i++)
		version_add(&node->versions[i], m->op,
			    block_hash(node->bytes + i * 4096));
}

static void size_changed(struct model *m, struct mnode *node, uint64_t size)
{
	node->size = size;
	version_add(node->sizes, m->op, size);
}

void model_write(struct model *m, struct mnode *node, uint64_t offset,
		 const uint8_t *bytes, uint64_t n)
{
	make_room(node, offset + n);
	memcpy(node->bytes + offset, bytes, n);
	data_changed(m, node, offset, offset + n);
	if (offset + n > node->size)
		size_changed(m, node, offset + n);
}

void model_zero(struct model *m, struct mnode *node, uint64_t offset,
		uint64_t n)
{
	if (offset >= node->size)
		return;
	if (n > node->size - offset)
		n = node->size - offset;
	memset(node->bytes + offset, 0, n);
	data_changed(m, node, offset, offset + n);
}

void model_truncate(struct model *m, struct mnode *node, uint64_t size)
{
	make_room(node, size);
	if (size < node->size) {
		uint64_t old = node->size;

		memset(node->bytes + size, 0, old - size);
		data_changed(m, node, size, old);
	}
	size_changed(m, node, size);
}

/* ---- History ---- */

struct facts {
	uint32_t mode, nlink;
	uint64_t target;
	uint64_t xattr[MODEL_XATTRS];
};

static uint64_t fold(uint64_t hash, const char *name, unsigned depth,
		     const struct facts *facts)
{
	hash = csum_seeded(name, strlen(name), hash + depth);
	return csum_seeded(facts, sizeof(*facts), hash);
}

static uint64_t node_hash(const struct mnode *node, const char *name,
			  unsigned depth, uint64_t hash)
{
	struct facts facts;

	memset(&facts, 0, sizeof(facts));
	facts.mode = node->mode;
	facts.nlink = node->nlink;
	if (node->target)
		facts.target = csum(node->target, strlen(node->target));
	memcpy(facts.xattr, node->xattr, sizeof(facts.xattr));
	hash = fold(hash, name, depth, &facts);
	for (unsigned i = 0; i < node->entries; i++)
		hash = node_hash(node->entry[i].node, node->entry[i].name,
				 depth + 1, hash);
	return hash;
}

void model_begin(struct model *m)
{
	if (!m->open)
		m->op++;
	m->open = true;
}

void model_issued(struct model *m, uint64_t event)
{
	if (m->op >= m->room) {
		m->room = 2 * m->op + 64;
		m->hash = grow(m->hash, m->room * sizeof(*m->hash));
		m->event = grow(m->event, m->room * sizeof(*m->event));
	}
	m->hash[m->op] = m->same_names ? m->hash[m->op - 1] :
					 node_hash(m->root, "", 0, 0);
	m->event[m->op] = event;
	m->open = false;
}

void model_durable(struct model *m, uint64_t event, unsigned op,
		   struct mnode *node)
{
	m->durable = grow(m->durable, (m->durables + 1) * sizeof(*m->durable));
	m->durable[m->durables++] = (struct mark){ event, op, node };
}

/* ---- Comparison ---- */

struct found {
	uint64_t ino, size;
};

struct reader {
	struct fs *fs;
	struct world *world;
	struct found *file;	/* regular files met */
	unsigned files;
	char wrong[256];
};

static char report[512];

struct listed {
	char *name;
	struct fs_attr attr;
};

struct listing {
	struct listed *entry;
	unsigned n;
	uint64_t next;
};

static bool list_fill(void *arg, const char *name, size_t bytes, uint64_t ino,
		      unsigned d_type, uint64_t next,
		      const struct fs_attr *attr)
{
	struct listing *l = arg;

	(void)d_type;
	l->next = next;
	if (!attr)
		return true;
	assert(attr->ino == ino);
	l->entry = grow(l->entry, (l->n + 1) * sizeof(*l->entry));
	l->entry[l->n++] = (struct listed){ strndup(name, bytes), *attr };
	return true;
}

static void read_dir(struct reader *r, uint64_t ino, struct listing *l)
{
	uint64_t last;

	l->n = 0;
	l->next = 0;
	do {
		struct fs_op op = { .type = FS_READDIR,
				    .ino = ino,
				    .offset = l->next,
				    .fill = list_fill,
				    .fill_arg = l,
				    .plus = true };
		int rc;

		last = l->next;
		rc = world_call(r->fs, r->world, &op);
		if (rc)
			snprintf(r->wrong, sizeof(r->wrong),
				 "readdir of %#lx: %s", (long)ino,
				 strerror(-rc));
	} while (l->next != last && !r->wrong[0]);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->name,
		      ((const struct listed *)b)->name);
}

static void read_xattr(struct reader *r, uint64_t ino, unsigned i,
		       struct facts *facts)
{
	static uint8_t value[65536];
	char name[16];
	struct fs_op op = { .type = FS_GETXATTR, .ino = ino, .name2 = name,
			    .buffer = value, .size = sizeof(value) };
	int rc;

	snprintf(name, sizeof(name), "user.x%u", i);
	rc = world_call(r->fs, r->world, &op);
	if (rc)
		snprintf(r->wrong, sizeof(r->wrong), "xattr of %#lx: %s",
			 (long)ino, strerror(-rc));
	else
		facts->xattr[i] = csum_seeded(value, op.result, 1) | 1;
}

/* Most have none: these are listed first, as one operation costs much. */
static void read_xattrs(struct reader *r, uint64_t ino, struct facts *facts)
{
	static char names[65536];
	struct fs_op op = { .type = FS_LISTXATTR, .ino = ino,
			    .buffer = names, .size = sizeof(names) };
	const int rc = world_call(r->fs, r->world, &op);

	if (rc) {
		snprintf(r->wrong, sizeof(r->wrong), "xattrs of %#lx: %s",
			 (long)ino, strerror(-rc));
		return;
	}
	for (const char *name = names; name < names + op.result;
	     name += strlen(name) + 1)
		if (!strncmp(name, "user.x", 6) && name[6] >= '0' &&
		    name[6] < '0' + (int)MODEL_XATTRS && !name[7])
			read_xattr(r, ino, (unsigned)(name[6] - '0'), facts);
}

static void read_facts(struct reader *r, const struct fs_attr *attr,
		       struct facts *facts)
{
	char target[4097];
	struct fs_op op = { .type = FS_READLINK,
			    .ino = attr->ino,
			    .buffer = target,
			    .size = 4096 };

	memset(facts, 0, sizeof(*facts));
	facts->mode = attr->mode;
	facts->nlink = attr->nlink;
	if (S_ISLNK(attr->mode)) {
		if (world_call(r->fs, r->world, &op))
			snprintf(r->wrong, sizeof(r->wrong), "readlink");
		else
			facts->target = csum(target, op.result);
	} else {
		read_xattrs(r, attr->ino, facts);
	}
	if (S_ISREG(attr->mode)) {
		r->file = grow(r->file, (r->files + 1) * sizeof(*r->file));
		r->file[r->files++] = (struct found){ attr->ino, attr->size };
	}
}

static uint64_t read_hash(struct reader *r, const struct fs_attr *attr,
			  const char *name, unsigned depth, uint64_t hash)
{
	struct facts facts;
	struct listing l = { NULL, 0, 0 };

	read_facts(r, attr, &facts);
	hash = fold(hash, name, depth, &facts);
	if (!S_ISDIR(attr->mode) || depth > 16 || r->wrong[0])
		return hash;
	read_dir(r, attr->ino, &l);
	if (l.n)
		qsort(l.entry, l.n, sizeof(*l.entry), by_name);
	for (unsigned i = 0; i < l.n; i++) {
		struct fs_op forget = { .type = FS_FORGET,
					.ino = l.entry[i].attr.ino,
					.size = 1 };

		hash = read_hash(r, &l.entry[i].attr, l.entry[i].name,
				 depth + 1, hash);
		free(l.entry[i].name);
		world_call(r->fs, r->world, &forget);
	}
	free(l.entry);
	return hash;
}

static const struct mnode *find_ino(const struct model *m, uint64_t ino)
{
	for (unsigned i = 0; i < m->count; i++)
		if (m->nodes[i]->ino == ino)
			return m->nodes[i];
	return NULL;
}

/* Is the hash one of the versions from the floor on? */
static bool version_ok(const struct versions *v, unsigned floor,
		       unsigned issued, uint64_t hash)
{
	for (unsigned i = 0; i < v->n; i++) {
		bool replaced = i + 1 < v->n && v->v[i + 1].op <= floor;

		if (!replaced && v->v[i].op <= issued && v->v[i].hash == hash)
			return true;
	}
	return false;
}

/* Data may arrive piece by piece, so any size between versions will do. */
static bool size_ok(const struct versions *v, unsigned floor, unsigned issued,
		    uint64_t size)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (unsigned i = 0; i < v->n; i++) {
		if ((i + 1 < v->n && v->v[i + 1].op <= floor) ||
		    v->v[i].op > issued)
			continue;
		if (v->v[i].hash < least)
			least = v->v[i].hash;
		if (v->v[i].hash > most)
			most = v->v[i].hash;
	}
	return least <= size && size <= most;
}

/* The sizes a file had, for the report of a failure. */
static void print_sizes(const struct versions *v, unsigned issued, int at)
{
	size_t n = strlen(report);

	n += snprintf(report + n, sizeof(report) - n,
		      " (names of op %d, issued %u; sizes by op:", at, issued);
	for (unsigned i = v->n > 12 ? v->n - 12 : 0;
	     i < v->n && n < sizeof(report) - 32; i++)
		n += snprintf(report + n, sizeof(report) - n, " %u:%lu",
			      v->v[i].op, (long)v->v[i].hash);
	snprintf(report + n, sizeof(report) - n, ")");
}

static unsigned data_floor(const struct model *m, const struct mnode *node,
			   uint64_t event, unsigned at)
{
	unsigned floor = 0;

	for (unsigned i = 0; i < m->durables; i++) {
		const struct mark *d = &m->durable[i];

		if (d->event <= event && (!d->node || d->node == node) &&
		    d->op > floor)
			floor = d->op;
	}
	for (unsigned i = 0; i < m->orders && !m->loses; i++)
		if (m->order[i].node == node && m->order[i].op <= at &&
		    m->order[i].op > floor)
			floor = m->order[i].op;
	return floor;
}

static int read_file(struct reader *r, uint64_t ino, uint64_t off,
		     uint64_t n, uint8_t *buf, uint64_t *got)
{
	struct fs_op op = { .type = FS_READ, .ino = ino, .offset = off,
			    .size = n, .buffer = buf };
	int rc = world_call(r->fs, r->world, &op);

	*got = op.result;
	return rc;
}

/* Block by block, since some can't be read: these have never been durable, and
 * count as zeros. */
static int read_rest(struct reader *r, uint64_t ino, uint64_t size,
		     uint8_t *buf)
{
	uint64_t off, got;
	int rc;

	for (off = 0; off < size; off += 4096) {
		rc = read_file(r, ino, off, 4096, buf + off, &got);
		if (rc == -EIO)
			memset(buf + off, 0, 4096);
		else if (rc)
			return rc;
	}
	return 0;
}

/* Reads it all; what is given up may be unreadable, and the size may be an
 * older one as soon as nobody knows the file any more. */
static int read_all(const struct model *m, struct reader *r,
		    const struct found *f, uint8_t *buf, size_t bytes,
		    uint64_t *got)
{
	int rc;

	memset(buf, 0, bytes);
	rc = read_file(r, f->ino, 0, bytes, buf, got);
	if (rc == -EIO && m->loses) {
		*got = f->size;
		rc = read_rest(r, f->ino, f->size, buf);
	}
	return rc;
}

static const char *check_file(struct model *m, struct reader *r,
			      const struct found *f, uint64_t event,
			      unsigned at, unsigned issued)
{
	static uint8_t *buf;
	static size_t room;
	/* One block more than there is, to see that nothing is there. */
	const size_t bytes = (f->size / 4096 + 2) * 4096;
	const struct mnode *node = find_ino(m, f->ino);
	const struct versions *sizes;
	unsigned floor = event == UINT64_MAX
				 ? m->op
				 : node ? data_floor(m, node, event, at) : 0;
	uint64_t got;
	int rc;

	if (!node)
		return "an inode that nobody made";
	sizes = node->sizes;
	if (!size_ok(sizes, floor, issued, f->size)) {
		snprintf(report, sizeof(report),
			 "file %#lx: size %lu is none it had since op %u",
			 (long)f->ino, (long)f->size, floor);
		print_sizes(sizes, issued, at);
		return report;
	}
	if (bytes > room)
		buf = grow(buf, room = bytes);
	rc = read_all(m, r, f, buf, bytes, &got);
	if (rc || (got != f->size &&
		   !(m->loses && size_ok(sizes, floor, issued, got)))) {
		snprintf(report, sizeof(report), "file %#lx: read %d, %lu",
			 (long)f->ino, rc, (long)got);
		return report;
	}
	for (uint64_t i = 0; i * 4096 < got && i < node->blocks; i++)
		if (!version_ok(&node->versions[i], floor, issued,
				block_hash(buf + i * 4096))) {
			snprintf(report, sizeof(report),
				 "file %#lx: block %lu (size %lu) is none it "
				 "held since op %u", (long)f->ino, (long)i,
				 (long)f->size, floor);
			return report;
		}
	return NULL;
}

/* The first operation that may be the last and after which the name space
 * looked like this, or -1. */
static int find_op(const struct model *m, uint64_t hash, uint64_t event,
		   unsigned issued)
{
	unsigned least = 0;

	for (unsigned i = 0; i < m->durables; i++)
		if (m->durable[i].event <= event && m->durable[i].op > least)
			least = m->durable[i].op;
	if (event == UINT64_MAX)
		least = m->op;
	for (unsigned n = least; n <= issued; n++)
		if (m->hash[n] == hash)
			return n;
	return -1;
}

static const char *model_compare(struct model *m, struct reader *r,
				 uint64_t hash, uint64_t event)
{
	unsigned issued = m->op;
	int at;

	while (issued && m->event[issued] > event)
		issued--;
	at = find_op(m, hash, event, issued);
	if (at < 0) {
		snprintf(report, sizeof(report),
			 "names of client %s are those of no operation up to "
			 "%u that may be there", m->name, issued);
		return report;
	}
	for (unsigned i = 0; i < r->files; i++) {
		const char *wrong = check_file(m, r, &r->file[i], event, at,
					       issued);

		if (wrong)
			return wrong;
	}
	return NULL;
}

const char *model_verify(struct model *m, struct fs *fs, struct world *world,
			 uint64_t event)
{
	struct reader r = { .fs = fs, .world = world };
	struct fs_op op = { .type = FS_GETATTR, .ino = m->root->ino };
	const char *wrong;
	uint64_t hash;

	if (world_call(fs, world, &op))
		return "a client's directory is gone";
	hash = read_hash(&r, &op.attr, "", 0, 0);
	if (r.wrong[0]) {
		snprintf(report, sizeof(report), "%s", r.wrong);
		wrong = report;
	} else {
		wrong = model_compare(m, &r, hash, event);
	}
	free(r.file);
	return wrong;
}
