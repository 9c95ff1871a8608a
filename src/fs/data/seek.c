/*
 * seek.c - finds data and holes in a file.
 *
 * Data is what has an extent that was written, or a block in memory that is
 * newer than its place; preallocated room reads as zeros and is a hole.
 */
#include "fs/data/file_data.h"

#include <errno.h>

#include "fs/data/bmap.h"
#include "fs/data/file.h"
#include "fs/data/dirty_block.h"

#define STEPS_OF_A_RUN 256u	/* extents or blocks that one run of the
				 * transaction looks at: some 50 us */

struct seek_op {
	struct shared_lock lock;
	struct fs *fs;
	struct fs_op *op;
	struct file *file;
	uint64_t at;		/* byte before which there is no answer */
	uint64_t sector;	/* sector of the file before which no extent is
				 * the answer */
	bool over;
};

/* Finds the first extent that matters and its end, in bytes; UINT64_MAX: there
 * is none. -ENODATA: it was not written; -EAGAIN, -EIO. */
static int seek_extent(struct fs_txn *txn, struct seek_op *seek,
		       uint64_t *first, uint64_t *end)
{
	struct extent extent;
	int rc;

	*first = *end = UINT64_MAX;
	rc = bmap_extent(txn, seek->file->ino, seek->sector, &extent);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	*first = extent.off * SECTOR_BYTES;
	*end = (extent.off + extent.n) * SECTOR_BYTES;
	return extent.flags & EXTENT_UNWRITTEN ? -ENODATA : 0;
}

/* Does the same for blocks in memory. */
static void seek_block(const struct seek_op *seek, uint64_t *first,
		       uint64_t *end)
{
	struct block *block = block_at_or_after(seek->file,
						seek->at / BLOCK_BYTES);

	*first = *end = UINT64_MAX;
	if (!block)
		return;
	*first = block->index * BLOCK_BYTES;
	*end = *first + BLOCK_BYTES;
}

/* Takes one step: finds the answer, or a later place to go on from. */
static void seek_judge(struct seek_op *seek, uint64_t first, uint64_t end)
{
	if (first < seek->at)
		first = seek->at;
	if (seek->op->flags == FS_SEEK_DATA) {
		seek->at = first;
		seek->over = true;
	} else if (first > seek->at) {
		seek->over = true;
	} else {
		seek->at = end;
		if (seek->sector < end / SECTOR_BYTES)
			seek->sector = end / SECTOR_BYTES;
	}
}

static int seek_run(struct fs_txn *txn)
{
	struct seek_op *seek = txn->state;
	uint64_t first, end, block_first, block_end;
	unsigned n;
	int rc;

	for (n = 0; n < STEPS_OF_A_RUN && !seek->over; n++) {
		if (seek->at >= seek->file->size ||
		    tree_txn_room(txn->tree_txn) < TRAX_MAX_LEVEL)
			break;
		rc = seek_extent(txn, seek, &first, &end);
		if (rc == -ENODATA) {
			seek->sector = end / SECTOR_BYTES;
			continue;
		}
		if (rc)
			return rc;
		seek_block(seek, &block_first, &block_end);
		if (block_first < first)
			seek_judge(seek, block_first, block_end);
		else
			seek_judge(seek, first, end);
	}
	seek->over |= seek->at >= seek->file->size;
	return 0;
}

static void seek_over(struct seek_op *seek, int rc)
{
	struct file *file = seek->file;
	struct fs_op *op = seek->op;
	struct fs *fs = seek->fs;
	uint64_t at = seek->at;

	if (!rc && at >= file->size) {
		at = file->size;
		rc = op->flags == FS_SEEK_DATA ? -ENXIO : 0;
	}
	op->result = at;
	abandon_free(seek);
	file_put(file);
	fs_answer(fs, op, rc);
}

static void seek_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct seek_op *seek = txn->state;

	(void)seq;
	if (!rc && !seek->over) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	seek_over(seek, rc);
}

static const struct fs_txn_type seek_type = {
	.name = "seek",
	.bounds = { .nodes = 48 },
	.stages = 60,
	.run = seek_run,
	.end = seek_end,
};

static void seek_step(struct shared_lock *lock)
{
	struct seek_op *seek = container_of(lock, struct seek_op, lock);
	struct file *file = seek->file;
	int rc = file_lock_shared(file, lock);

	if (rc == FS_TXN_WAIT)
		return;
	if (!rc && seek->at >= file->size) {
		seek_over(seek, -ENXIO);
		return;
	}
	if (!rc && file->has_inline) {
		if (seek->op->flags == FS_SEEK_HOLE)
			seek->at = file->size;
		seek_over(seek, 0);
		return;
	}
	if (!rc)
		rc = fs_txn_start(seek->fs, &seek_type, NULL, seek);
	if (rc)
		seek_over(seek, rc);
}

void file_seek(struct fs *fs, struct fs_op *op)
{
	struct seek_op *seek = abandon_alloc(fs, sizeof(*seek));
	struct file *file = seek ? file_get(fs, op->ino) : NULL;

	op->result = 0;
	if (!file) {
		abandon_free(seek);
		fs_answer(fs, op, -ENOMEM);
		return;
	}
	seek->fs = fs;
	seek->op = op;
	seek->file = file;
	seek->at = op->offset;
	seek->sector = op->offset / SECTOR_BYTES;
	seek->over = false;
	seek->lock.granted = seek_step;
	list_init(&seek->lock.link);
	seek_step(&seek->lock);
}
