/*
 * dir.c - names in a directory, and reading it.
 *
 * A name is kept twice: in a NAME item under its hash, for lookup (records of
 * the same hash are chained in one value), and in an ENTRY item under a
 * sequence number, for reading in order.  The number is the readdir cookie; it
 * is given once in the life of a directory, and kept when the name is renamed
 * inside it or its inode replaced.
 */
#include "fs/name/names.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/csum.h"
#include "base/msg.h"

#define RECORD_MAX_BYTES (sizeof(struct name_record) + TRAX_MAX_NAME_BYTES)

int dir_check_name(const char *name)
{
	size_t bytes = strnlen(name, TRAX_MAX_NAME_BYTES + 1);

	if (bytes > TRAX_MAX_NAME_BYTES)
		return -ENAMETOOLONG;
	if (bytes == 0)
		return -ENOENT;
	return memchr(name, '/', bytes) ? -EINVAL : 0;
}

bool dir_is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

uint8_t dir_type(uint32_t mode)
{
	return IFTODT(mode);
}

static int dir_bad(struct fs_txn *txn, uint64_t dir, const char *reason)
{
	msg_error("%s: directory %llu: %s", txn->fs->disk->name,
		  (unsigned long long)dir, reason);
	return -EUCLEAN;
}

/* Writes a record; returns its bytes. */
static size_t record_write(uint8_t *to, uint64_t ino, uint64_t seq,
			   uint8_t type, const char *name, size_t bytes)
{
	struct name_record head = {
		.ino = le64_put(ino),
		.seq = le64_put(seq),
		.type = type,
		.bytes = (uint8_t)bytes,
	};

	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), name, bytes);
	return sizeof(head) + bytes;
}

/* Reads the record at `at`; false at the end of the value, or when the record
 * is cut off. */
static bool record_read(const uint8_t *value, size_t bytes, size_t at,
			struct name_record *head, const char **name)
{
	if (bytes < sizeof(*head) || at > bytes - sizeof(*head))
		return false;
	memcpy(head, value + at, sizeof(*head));
	*name = (const char *)value + at + sizeof(*head);
	return at + sizeof(*head) + head->bytes <= bytes;
}

static void dir_scan(struct dir_slot *slot)
{
	struct name_record head;
	const char *name;
	size_t at = 0;

	while (record_read(slot->value, slot->value_bytes, at, &head, &name)) {
		if (head.bytes == slot->bytes &&
		    memcmp(name, slot->name, slot->bytes) == 0) {
			slot->found = true;
			slot->ino = le64_get(head.ino);
			slot->seq = le64_get(head.seq);
			slot->type = head.type;
			slot->at = at;
			return;
		}
		at += sizeof(head) + head.bytes;
	}
}

int dir_find(struct fs_txn *txn, uint64_t dir, const char *name,
	     struct dir_slot *slot)
{
	const struct fs *fs = txn->fs;
	uint64_t seed = tree_super(fs->tree)->hash_seed;
	struct tree_item item;
	int rc;

	slot->dir = dir;
	slot->name = name;
	slot->bytes = strlen(name);
	slot->key = key_make(dir, ITEM_NAME,
			     csum_seeded(name, slot->bytes, seed) &
			     fs->name_mask);
	slot->item = false;
	slot->found = false;
	slot->value_bytes = 0;
	rc = tree_get(txn->tree_txn, slot->key, &item);
	if (rc == -ENOENT)
		return 0;
	if (rc)
		return rc;
	if (item.bytes > sizeof(slot->value))
		return dir_bad(txn, dir, "a name item is too long");
	slot->item = true;
	slot->value_bytes = item.bytes;
	memcpy(slot->value, item.value, item.bytes);
	dir_scan(slot);
	return 0;
}

static struct key entry_key(uint64_t dir, uint64_t seq)
{
	return key_make(dir, ITEM_ENTRY, seq);
}

int dir_probe_add(struct fs_txn *txn, const struct dir_slot *slot,
		  uint64_t seq)
{
	struct probe probe = { 0 };

	if (slot->value_bytes + sizeof(struct name_record) + slot->bytes >
	    TRAX_MAX_ITEM_BYTES)
		return -ENOSPC;
	probe_expect(&probe, txn, entry_key(slot->dir, seq), -ENOENT);
	return probe_result(&probe);
}

int dir_probe_entry(struct fs_txn *txn, const struct dir_slot *slot)
{
	struct probe probe = { 0 };

	probe_expect(&probe, txn, entry_key(slot->dir, slot->seq), 0);
	return probe_result(&probe);
}

/* ---- Changes, in the slot's copy and in the tree ---- */

static void name_append(struct dir_slot *slot, uint64_t ino, uint64_t seq,
			uint8_t type)
{
	slot->at = slot->value_bytes;
	slot->value_bytes += record_write(slot->value + slot->at, ino, seq,
					  type, slot->name, slot->bytes);
	slot->found = true;
	slot->ino = ino;
	slot->seq = seq;
	slot->type = type;
}

static void name_cut(struct dir_slot *slot)
{
	size_t bytes = sizeof(struct name_record) + slot->bytes;
	size_t end = slot->at + bytes;

	memmove(slot->value + slot->at, slot->value + end,
		slot->value_bytes - end);
	slot->value_bytes -= bytes;
	slot->found = false;
}

static void name_put(struct fs_txn *txn, struct dir_slot *slot)
{
	if (slot->value_bytes)
		tree_put(txn->tree_txn, slot->key, slot->value,
			 slot->value_bytes);
	else
		tree_del(txn->tree_txn, slot->key);
	slot->item = slot->value_bytes > 0;
}

static void entry_put(struct fs_txn *txn, const struct dir_slot *slot)
{
	uint8_t value[RECORD_MAX_BYTES];
	size_t bytes = record_write(value, slot->ino, slot->seq, slot->type,
				    slot->name, slot->bytes);

	tree_put(txn->tree_txn, entry_key(slot->dir, slot->seq), value, bytes);
}

void dir_add(struct fs_txn *txn, struct dir_slot *slot,
	     struct inode_item *item, uint64_t ino, uint8_t type)
{
	uint64_t seq = le64_get(item->next_seq);

	item->next_seq = le64_put(seq + 1);
	item->entries = le64_put(le64_get(item->entries) + 1);
	name_append(slot, ino, seq, type);
	name_put(txn, slot);
	entry_put(txn, slot);
}

void dir_remove(struct fs_txn *txn, struct dir_slot *slot,
		struct inode_item *item)
{
	uint64_t entries = le64_get(item->entries);

	item->entries = le64_put(entries ? entries - 1 : 0);
	tree_del(txn->tree_txn, entry_key(slot->dir, slot->seq));
	name_cut(slot);
	name_put(txn, slot);
}

void dir_point(struct fs_txn *txn, struct dir_slot *slot, uint64_t ino,
	       uint8_t type)
{
	slot->ino = ino;
	slot->type = type;
	record_write(slot->value + slot->at, ino, slot->seq, type, slot->name,
		     slot->bytes);
	name_put(txn, slot);
	entry_put(txn, slot);
}

int dir_probe_retitle(struct fs_txn *txn, const struct dir_slot *from,
		      const struct dir_slot *to)
{
	struct probe probe = { 0 };
	size_t bytes = to->value_bytes + sizeof(struct name_record) + to->bytes;

	probe_expect(&probe, txn, entry_key(from->dir, from->seq), 0);
	if (to->found)
		probe_expect(&probe, txn, entry_key(to->dir, to->seq), 0);
	else if (bytes > TRAX_MAX_ITEM_BYTES)
		probe_ok(&probe, -ENOSPC);
	return probe_result(&probe);
}

void dir_retitle(struct fs_txn *txn, struct dir_slot *from,
		 struct dir_slot *to, struct inode_item *item)
{
	uint64_t ino = from->ino, seq = from->seq;
	uint8_t type = from->type;

	if (to->found) {
		dir_remove(txn, to, item);
		/* Both names have the same hash, so they are in one item. */
		if (key_cmp(from->key, to->key) == 0) {
			if (to->at < from->at)
				from->at -= sizeof(struct name_record) +
					    to->bytes;
			from->value_bytes = to->value_bytes;
			memcpy(from->value, to->value, to->value_bytes);
		}
	}
	name_cut(from);
	if (key_cmp(from->key, to->key) == 0) {
		to->value_bytes = from->value_bytes;
		memcpy(to->value, from->value, from->value_bytes);
	} else {
		name_put(txn, from);
	}
	name_append(to, ino, seq, type);
	name_put(txn, to);
	entry_put(txn, to);
}

/* ---- Reading ---- */

/* Most entries of a batch, each with room for the longest name: 140 KiB. */
#define BATCH_MAX 512u
#define BATCH_LEAVES 4u		/* leaves of entries that are fetched
				 * together */
/* Leaves that a batch may meet, for entries and inodes together; an entry whose
 * inode leaves room for fewer than BATCH_MARGIN more is the last of its
 * batch. */
#define BATCH_NODES 48u
#define BATCH_MARGIN 4u
/* Least bytes that an entry takes in the kernel's buffer, without and with
 * attributes: the batch need not have more entries than fit. */
#define FILL_BYTES 32u
#define FILL_PLUS_BYTES 160u

struct batch_entry {
	uint64_t ino, seq;
	uint8_t type;
	uint8_t bytes;
	char name[TRAX_MAX_NAME_BYTES];
};

struct batch {
	uint64_t last;		/* the batch ends with this sequence, or before
				 * it */
	unsigned n, max;
	struct batch_entry entry[];
};

static int batch_entry_at(struct fs_txn *txn, uint64_t dir, uint64_t from,
			  struct batch_entry *entry)
{
	struct name_record head;
	struct tree_item item;
	const char *name;
	int rc = tree_seek_ge(txn->tree_txn, entry_key(dir, from),
			      entry_key(dir, UINT64_MAX), &item);

	if (rc)
		return rc;
	if (!record_read(item.value, item.bytes, 0, &head, &name))
		return dir_bad(txn, dir, "an entry is cut off");
	entry->ino = le64_get(head.ino);
	entry->seq = item.key.off;
	entry->type = head.type;
	entry->bytes = head.bytes;
	memcpy(entry->name, name, head.bytes);
	return 0;
}

/* Looks up the inode of an entry. 0; 1: it is taken, but is the last one that
 * there is room for; -ENOSPC: there is no room for it. */
static int batch_probe_inode(struct fs_txn *txn, const struct batch *batch,
			     const struct batch_entry *entry,
			     struct probe *probe)
{
	struct inode_item item;
	unsigned before = tree_txn_room(txn->tree_txn);
	int rc = inode_of_entry(txn, txn->op->ino, entry->ino, &item);
	unsigned after = tree_txn_room(txn->tree_txn);
	bool tight = after < before && after < BATCH_MARGIN;

	if (tight && rc == -EAGAIN && batch->n)
		return -ENOSPC;
	probe_ok(probe, rc);
	return tight;
}

static int batch_collect(struct fs_txn *txn, struct batch *batch,
			 uint64_t from)
{
	struct fs_op *op = txn->op;
	struct probe probe = { 0 };
	struct batch_entry *entry;
	int rc = 0;

	batch->n = 0;
	while (rc == 0 && batch->n < batch->max && from <= batch->last) {
		entry = &batch->entry[batch->n];
		rc = batch_entry_at(txn, op->ino, from, entry);
		if (rc == 0 && op->plus)
			rc = batch_probe_inode(txn, batch, entry, &probe);
		if (rc < 0)
			break;
		batch->n++;
		from = entry->seq + 1;
	}
	if (rc < 0 && batch->n == 0 && rc != -ENOENT)
		return rc;
	batch->last = from - 1;
	return probe_result(&probe);
}

static bool batch_fill_dots(struct fs_op *op, const struct inode_item *item)
{
	uint64_t parent = le64_get(item->parent);

	if (op->offset < 1 &&
	    !op->fill(op->fill_arg, ".", 1, op->ino, DT_DIR, 1, NULL))
		return false;
	return op->offset >= 2 ||
	       op->fill(op->fill_arg, "..", 2, parent, DT_DIR, 2, NULL);
}

/* Hands an entry over, with its attributes and a reference. */
static int batch_fill_plus(struct fs_txn *txn,
			   const struct batch_entry *entry, bool *full)
{
	struct fs_op *op = txn->op;
	struct inode_item item;
	struct fs_attr attr;
	struct vnode *vnode;
	int rc = inode_of_entry(txn, op->ino, entry->ino, &item);

	if (rc)
		return rc;
	vnode = vnode_get(txn->fs, entry->ino);
	if (!vnode)
		return -ENOMEM;
	inode_attr(txn->fs, entry->ino, &item, &attr);
	*full = !op->fill(op->fill_arg, entry->name, entry->bytes, entry->ino,
			  entry->type, entry->seq, &attr);
	if (!*full)
		vnode->refs++;
	else
		vnode_drop_unused(txn->fs, vnode);
	return 0;
}

static int batch_fill(struct fs_txn *txn, const struct batch *batch)
{
	struct fs_op *op = txn->op;
	const struct batch_entry *entry;
	bool full = false;
	unsigned i;
	int rc;

	for (i = 0; i < batch->n && !full; i++) {
		entry = &batch->entry[i];
		if (!op->plus) {
			full = !op->fill(op->fill_arg, entry->name,
					 entry->bytes, entry->ino, entry->type,
					 entry->seq, NULL);
			continue;
		}
		rc = batch_fill_plus(txn, entry, &full);
		/* Entries that were handed over count, even if a later one
		 * fails. */
		if (rc)
			return i ? 0 : rc;
	}
	return 0;
}

static int dir_readdir_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	struct batch *batch = txn->state;
	uint64_t from = op->offset < TRAX_FIRST_SEQ - 1 ?
		TRAX_FIRST_SEQ : op->offset + 1;
	struct inode_item item;
	struct probe probe = { 0 };

	if (op->offset == UINT64_MAX)
		return 0;
	probe_ok(&probe, inode_of_dir(txn, op->ino, &item));
	if (batch->last == UINT64_MAX)
		tree_prefetch(txn->tree_txn, entry_key(op->ino, from),
			      entry_key(op->ino, UINT64_MAX), BATCH_LEAVES);
	probe_ok(&probe, batch_collect(txn, batch, from));
	if (probe_result(&probe))
		return probe_result(&probe);
	if (!batch_fill_dots(op, &item))
		return 0;
	return batch_fill(txn, batch);
}

static void dir_readdir_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	(void)seq;
	free(txn->state);
	fs_txn_finish(txn, rc);
}

static const struct fs_txn_type dir_readdir_type = {
	.name = "readdir",
	.bounds = { .nodes = BATCH_NODES },
	.stages = 4,
	.run = dir_readdir_run,
	.end = dir_readdir_end,
	.free_state = fs_txn_free_state,
};

void dir_op_readdir(struct fs *fs, struct fs_op *op)
{
	size_t max = op->size / (op->plus ? FILL_PLUS_BYTES : FILL_BYTES) + 1;
	struct batch *batch;

	if (op->size == 0 || max > BATCH_MAX)
		max = BATCH_MAX;
	batch = malloc(sizeof(*batch) + max * sizeof(batch->entry[0]));
	if (!batch) {
		fs_answer(fs, op, -ENOMEM);
		return;
	}
	batch->last = UINT64_MAX;
	batch->n = 0;
	batch->max = (unsigned)max;
	if (op->offset == 0 && !(op->flags & O_NOATIME))
		inode_touch(fs, op->ino);
	if (fs_txn_start(fs, &dir_readdir_type, op, batch))
		free(batch);
}
