/*
 * copy.c - copying inside the file system (FS_COPY_RANGE), and listing the
 * extents of a file (FS_EXTENTS).
 *
 * A copy is a READ and a WRITE by turns, of at most COPY_BYTES each and
 * COPY_MOST in one call: it may stop early, as POSIX allows.
 */
#include "fs/data/file_data.h"

#include <errno.h>

#include "fs/data/bmap.h"
#include "fs/data/file.h"
#include "fs/name/inode.h"

/* Bytes of one READ and WRITE; each copy under way has a buffer for them. */
#define COPY_BYTES (512u << 10)
/* Bytes that one call copies, so that it ends within a second or so. */
#define COPY_MOST (64ull << 20)

struct copy_op {
	struct fs *fs;
	struct fs_op *op;
	struct fs_op sub;	/* the READ or WRITE */
	uint64_t copied, size;
	uint8_t data[COPY_BYTES];
};

static void copy_over(struct copy_op *copy, int rc)
{
	struct fs_op *op = copy->op;
	struct fs *fs = copy->fs;

	op->result = copy->copied;
	if (copy->copied)
		rc = 0;
	abandon_free(copy);
	fs_answer(fs, op, rc);
}

static void copy_read(struct copy_op *copy);

static void copy_wrote(struct fs_op *sub)
{
	struct copy_op *copy = sub->owner;

	copy->copied += sub->result;
	if (sub->rc)
		copy_over(copy, sub->rc);
	else
		copy_read(copy);
}

static void copy_was_read(struct fs_op *sub)
{
	struct copy_op *copy = sub->owner;
	uint64_t n = sub->result;
	uint32_t flags = copy->copied ? 0 : copy->op->flags & FS_SET_KILL_PRIV;

	if (sub->rc || n == 0) {
		copy_over(copy, sub->rc);
		return;
	}
	*sub = (struct fs_op){
		.type = FS_WRITE,
		.done = copy_wrote,
		.owner = copy,
		.ino = copy->op->ino2,
		.offset = copy->op->offset2 + copy->copied,
		.size = n,
		.data = copy->data,
		.flags = flags,
		.uid = copy->op->uid,
		.gid = copy->op->gid,
	};
	op_begin(copy->fs, sub);
	if (fs_read_only(copy->fs))
		fs_answer(copy->fs, sub, -EROFS);
	else
		file_write(copy->fs, sub);
}

static void copy_read(struct copy_op *copy)
{
	uint64_t left = copy->size - copy->copied;

	if (left == 0) {
		copy_over(copy, 0);
		return;
	}
	copy->sub = (struct fs_op){
		.type = FS_READ,
		.done = copy_was_read,
		.owner = copy,
		.ino = copy->op->ino,
		.offset = copy->op->offset + copy->copied,
		.size = left < COPY_BYTES ? left : COPY_BYTES,
		.buffer = copy->data,
	};
	op_begin(copy->fs, &copy->sub);
	inode_touch(copy->fs, copy->sub.ino);
	file_read(copy->fs, &copy->sub);
}

void file_copy_range(struct fs *fs, struct fs_op *op)
{
	struct copy_op *copy = NULL;
	int rc = 0;

	if (op->offset > INT64_MAX || op->offset2 > INT64_MAX ||
	    op->size > UINT64_MAX - op->offset)
		rc = -EINVAL;
	else if (op->ino == op->ino2 && op->offset < op->offset2 + op->size &&
		 op->offset2 < op->offset + op->size)
		rc = -EINVAL;
	if (!rc) {
		copy = abandon_alloc(fs, sizeof(*copy));
		rc = copy ? 0 : -ENOMEM;
	}
	if (rc) {
		op->result = 0;
		fs_answer(fs, op, rc);
		return;
	}
	copy->fs = fs;
	copy->op = op;
	copy->size = op->size < COPY_MOST ? op->size : COPY_MOST;
	copy_read(copy);
}

/* ---- Extents ---- */

struct extents_op {
	struct shared_lock lock;
	struct fs *fs;
	struct fs_op *op;
	struct file *file;
	uint64_t sector;	/* sector of the file to go on from */
	bool over;
};

static void extents_add(struct extents_op *extents, struct fs_extent extent)
{
	struct fs_op *op = extents->op;
	struct fs_extent *out = op->buffer;

	if (op->result < op->size)
		out[op->result++] = extent;
	extents->over = op->result >= op->size;
}

static int extents_run(struct fs_txn *txn)
{
	struct extents_op *extents = txn->state;
	struct extent extent;
	int rc;

	while (!extents->over &&
	       tree_txn_room(txn->tree_txn) >= TRAX_MAX_LEVEL) {
		rc = bmap_extent(txn, extents->file->ino, extents->sector,
				&extent);
		if (rc == -ENOENT)
			extents->over = true;
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		extents->sector = extent.off + extent.n;
		extents_add(extents, (struct fs_extent){
			.offset = extent.off * SECTOR_BYTES,
			.bytes = extent.n * SECTOR_BYTES,
			.lbn = addr_sector(extent.addr),
			.unwritten = extent.flags & EXTENT_UNWRITTEN,
			.known = extent.flags & EXTENT_KNOWN,
		});
	}
	return 0;
}

static void extents_over(struct extents_op *extents, int rc)
{
	struct file *file = extents->file;
	struct fs_op *op = extents->op;
	struct fs *fs = extents->fs;

	abandon_free(extents);
	file_put(file);
	fs_answer(fs, op, rc);
}

static void extents_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct extents_op *extents = txn->state;

	(void)seq;
	if (!rc && !extents->over) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	extents_over(extents, rc);
}

static const struct fs_txn_type extents_type = {
	.name = "extents",
	.bounds = { .nodes = 48 },
	.stages = 60,
	.run = extents_run,
	.end = extents_end,
};

static void extents_step(struct shared_lock *lock)
{
	struct extents_op *extents =
		container_of(lock, struct extents_op, lock);
	struct file *file = extents->file;
	int rc = file_lock_shared(file, lock);

	if (rc == FS_TXN_WAIT)
		return;
	if (!rc && file->has_inline) {
		if (extents->op->offset < file->size)
			extents_add(extents, (struct fs_extent){
				.bytes = file->size, .is_inline = true,
			});
		extents_over(extents, 0);
		return;
	}
	if (!rc)
		rc = fs_txn_start(extents->fs, &extents_type, NULL, extents);
	if (rc)
		extents_over(extents, rc);
}

void file_extents(struct fs *fs, struct fs_op *op)
{
	struct extents_op *extents = abandon_alloc(fs, sizeof(*extents));
	struct file *file = extents ? file_get(fs, op->ino) : NULL;

	op->result = 0;
	if (!file) {
		abandon_free(extents);
		fs_answer(fs, op, -ENOMEM);
		return;
	}
	extents->fs = fs;
	extents->op = op;
	extents->file = file;
	extents->sector = op->offset / SECTOR_BYTES;
	extents->over = op->size == 0;
	extents->lock.granted = extents_step;
	list_init(&extents->lock.link);
	extents_step(&extents->lock);
}
