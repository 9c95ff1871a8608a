/*
 * write.c - WRITE: into memory, answered at once.
 *
 * Room on the disk is reserved for each new block (space_reserve), so that a
 * full disk is reported here and not at write-back; only when there is none
 * left it is looked up whether the blocks have a place already.  A block of
 * which only a part is written is read first, verified.  Bytes behind the end
 * of the file in its last block are always zero, in memory and on the disk.
 */
#include "fs/name/inode.h"
#include "fs/data/bmap.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/data/file_sync.h"
#include "fs/data/writeback.h"
#include "fs/data/writeback_policy.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_SIZE INT64_MAX

/* ---- Privileges ---- */

static int kill_run(struct fs_txn *txn)
{
	struct io *io = txn->state;
	struct inode_item item, before;
	int rc = inode_get(txn, io->file->ino, &item);

	if (rc)
		return rc;
	before = item;
	rc = inode_kill_priv(txn, io->op, io->file->ino, &item);
	if (rc)
		return rc;
	if (memcmp(&before, &item, sizeof(item)))
		inode_put(txn, io->file->ino, &item);
	return 0;
}

/* Ends a write that has come as far as io->pos. */
static void write_end(struct io *io, int rc)
{
	struct fs_op *op = io->op;

	op->result = io->pos - op->offset;
	io_end(io, op->result && op->flags & FS_WRITE_PART ? 0 : rc);
}

/* A transaction that comes before the write has ended: the write goes on, or
 * ends with its error. */
static void before_end(struct fs_txn *txn, int rc)
{
	struct io *io = txn->state;

	fs_txn_finish(txn, rc);
	if (rc)
		write_end(io, rc);
	else
		io->step(io);
}

static void kill_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct io *io = txn->state;

	(void)seq;
	io->prepared = !rc;
	before_end(txn, rc);
}

static const struct fs_txn_type kill_type = {
	.name = "kill privileges",
	.bounds = { .log_bytes = 4096 },
	.paths = 4,
	.changes = 3,
	.stages = 4,
	.run = kill_run,
	.end = kill_end,
};

/* ---- A full disk: which blocks have a place? ---- */

static int mapped_run(struct fs_txn *txn)
{
	struct io *io = txn->state;
	const uint64_t first = io->pos / BLOCK_BYTES * BLOCK_SECTORS;
	const uint64_t end = (io->end + BLOCK_BYTES - 1) / BLOCK_BYTES *
			     BLOCK_SECTORS;
	uint64_t known = first;
	struct extent extent;
	int rc;

	do {
		rc = bmap_extent(txn, io->file->ino, known, &extent);
		if (rc && rc != -ENOENT)
			return rc;
		if (rc || extent.off > known)
			break;
		known = extent.off + extent.n;
	} while (known < end &&
		 tree_txn_room(txn->tree_txn) >= TRAX_MAX_LEVEL);
	io->mapped = known > first;
	if (!io->mapped)
		known = rc || extent.off > end ? end : extent.off;
	io->known_end = (known + BLOCK_SECTORS - 1) / BLOCK_SECTORS *
			BLOCK_BYTES;
	return 0;
}

static void mapped_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	(void)seq;
	before_end(txn, rc);
}

static const struct fs_txn_type mapped_type = {
	.name = "is mapped",
	.bounds = { .nodes = 48 },
	.stages = 40,
	.run = mapped_run,
	.end = mapped_end,
};

/* ---- Blocks ---- */

/* Gets the old content of a block that is only partly written: -EINPROGRESS, or
 * where it is (NULL: there is none). */
static int write_old(struct io *io, uint64_t index, const void **old)
{
	int rc;

	*old = NULL;
	if (index * BLOCK_BYTES >= io->file->size)
		return 0;
	io->rwait.first = index;
	io->rwait.n = 1;
	if (!read_wait_ok(&io->rwait)) {
		read_wait_end(&io->rwait);
		rc = read_wait_start(&io->rwait);
		if (rc)
			return rc;
	}
	*old = read_wait_block(&io->rwait, index);
	return 0;
}

/* Reserves room for a new block, if it has no place yet; 0 or -ENOSPC. */
static int write_reserve(struct io *io, uint64_t index, bool *reserved)
{
	struct space *space = tree_space(io->file->files->fs->tree);

	*reserved = true;
	if (!(io->accepted ? space_reserve_expected(space, BLOCK_SECTORS) :
			     space_reserve(space, BLOCK_SECTORS)))
		return 0;
	if (index * BLOCK_BYTES >= io->known_end)
		return -ENOSPC;
	if (!io->mapped)
		return io->accepted ?
			       space_reserve_accepted(space, BLOCK_SECTORS) :
			       -ENOSPC;
	*reserved = false;
	return 0;
}

/* Makes a new block for index; 0, -ENOSPC or -EAGAIN (no buffer). */
static int write_add(struct io *io, uint64_t index, struct block **out)
{
	struct block *block;
	bool reserved;

	if (write_reserve(io, index, &reserved))
		return -ENOSPC;
	block = block_add(io->file, index);
	if (!block) {
		if (reserved)
			space_release(tree_space(io->file->files->fs->tree),
				      BLOCK_SECTORS);
		return -EAGAIN;
	}
	block->reserved = reserved;
	io->file->reserved_count += reserved;
	*out = block;
	return 0;
}

/* Writes bytes [from, to) of a block; 0, -EINPROGRESS, -EAGAIN or an error. */
static int write_block(struct io *io, uint64_t index, unsigned from,
		       unsigned to, const void *data)
{
	struct file *file = io->file;
	struct block *block = block_find(file, index);
	bool whole = from == 0 && (to == BLOCK_BYTES ||
				   index * BLOCK_BYTES + to >= file->size);
	const void *old = NULL;
	int rc;

	if (!block) {
		rc = whole ? 0 : write_old(io, index, &old);
		if (rc)
			return rc;
		rc = write_add(io, index, &block);
		if (rc)
			return rc;
		if (old)
			memcpy(block->data, old, BLOCK_BYTES);
		else
			memset(block->data, 0, BLOCK_BYTES);
	} else {
		file->files->policy->touched(block);
		if (!block_unshare(file->files, block))
			return -EAGAIN;
	}
	block_dirty(file, block);
	if (data)
		memcpy((uint8_t *)block->data + from, data, to - from);
	else
		memset((uint8_t *)block->data + from, 0, to - from);
	read_wait_end(&io->rwait);
	return 0;
}

/* Puts the data of a file that outgrows its INLINE item into a block. */
static int write_outgrow(struct io *io)
{
	struct file *file = io->file;

	if (!file->has_inline || io->end <= TRAX_MAX_INLINE_BYTES)
		return 0;
	file->no_inline = true;
	return write_block(io, 0, 0, 0, io->op->data);
}

/* Counts blocks that were written in order; see writeback_stream. */
static void write_ran(struct file *file, uint64_t first, uint64_t end)
{
	if (first > file->run_end || first + 1 < file->run_end)
		file->run_first = first;
	file->run_end = end;
	writeback_stream(file);
}

static int write_blocks(struct io *io)
{
	struct file *file = io->file;
	const uint8_t *data = io->op->data;
	uint64_t index, n;
	unsigned from;
	int rc = write_outgrow(io);

	while (!rc && io->pos < io->end) {
		if (!files_room(file->files))
			return -EAGAIN;
		index = io->pos / BLOCK_BYTES;
		from = io->pos % BLOCK_BYTES;
		n = BLOCK_BYTES - from;
		n = n < io->end - io->pos ? n : io->end - io->pos;
		rc = write_block(io, index, from, from + (unsigned)n,
				 data + (io->pos - io->op->offset));
		if (rc)
			return rc;
		io->pos += n;
		if (io->pos > file->size)
			file->size = io->pos;
	}
	return rc;
}

static int write_check(struct io *io)
{
	struct fs *fs = io->file->files->fs;

	if (fs->options.read_only)
		return -EROFS;
	if (tree_failed(fs->tree))
		return -EROFS;
	if (io->op->offset > MAX_SIZE || io->op->size > MAX_SIZE ||
	    io->op->offset + io->op->size > MAX_SIZE)
		return -EFBIG;
	return 0;
}

static void write_step(struct io *io)
{
	struct file *file = io->file;
	struct files *files = file->files;
	int rc = file_lock_shared(file, &io->lock);

	if (rc == FS_TXN_WAIT)
		return;
	if (!rc)
		rc = write_check(io);
	if (!rc && !io->prepared && io->op->flags & FS_SET_KILL_PRIV) {
		if (fs_txn_start(files->fs, &kill_type, NULL, io))
			io_end(io, -ENOMEM);
		return;
	}
	io->end = io->op->offset + io->op->size;
	if (!rc)
		rc = write_blocks(io);
	/* Another operation is giving back room: the write waits for it. */
	if (rc == -ENOSPC && files->cutting && !tree_failed(files->fs->tree)) {
		read_wait_end(&io->rwait);
		list_add(&files->room_waits, &io->link);
		return;
	}
	if (rc == -ENOSPC && io->pos >= io->known_end) {
		if (fs_txn_start(files->fs, &mapped_type, NULL, io))
			write_end(io, -ENOMEM);
		return;
	}
	if (rc == -EAGAIN) {
		read_wait_end(&io->rwait);
		list_add(&files->writers, &io->link);
		writeback_pump(files);
	}
	if (rc == -EINPROGRESS || rc == -EAGAIN)
		return;
	if (io->pos > io->op->offset)
		write_ran(file, io->op->offset / BLOCK_BYTES,
			  (io->pos - 1) / BLOCK_BYTES + 1);
	write_end(io, rc);
	writeback_pump(files);
}

void writers_run(struct files *files)
{
	struct io *io;

	while ((files_room(files) || tree_failed(files->fs->tree)) &&
	       (io = list_first(&files->writers, struct io, link))) {
		list_del(&io->link);
		io->step(io);
	}
}

void writers_retry(struct files *files)
{
	struct list waits, *pos, *tmp;

	list_init(&waits);
	list_for_each_safe(pos, tmp, &files->room_waits) {
		list_del(pos);
		list_add(&waits, pos);
	}
	while (!list_empty(&waits)) {
		struct io *io = list_first(&waits, struct io, link);

		list_del(&io->link);
		io->step(io);
	}
}

static void write_ready(struct read_wait *rwait, int rc)
{
	struct io *io = rwait->owner;

	if (rc)
		write_end(io, -EIO);
	else
		write_step(io);
}

static void write_again(struct shared_lock *lock)
{
	write_step(container_of(lock, struct io, lock));
}

void file_write(struct fs *fs, struct fs_op *op)
{
	struct io *io = io_new(fs, op, write_step);

	if (!io)
		return;
	op->result = 0;
	io->lock.granted = write_again;
	io->rwait.ready = write_ready;
	io->accepted = op->flags & FS_WRITE_ACCEPTED;
	write_step(io);
}

int write_zero(struct file *file, const struct read_wait *rwait, uint64_t index,
	       unsigned from, unsigned to)
{
	struct block *block = block_find(file, index);
	struct io io = {
		.file = file, .mapped = true, .known_end = UINT64_MAX
	};
	const void *old;
	int rc;

	if (!block) {
		old = read_wait_block(rwait, index);
		rc = write_add(&io, index, &block);
		if (rc)
			return rc;
		memcpy(block->data, old, BLOCK_BYTES);
	} else {
		file->files->policy->touched(block);
		if (!block_unshare(file->files, block))
			return -EAGAIN;
	}
	block_dirty(file, block);
	memset((uint8_t *)block->data + from, 0, to - from);
	return 0;
}
