/*
 * failure.c - what is done when write-back fails.
 *
 *   failed write-back -> each block: its failures are counted, and
 *   disk/fault.h says:
 *                   retry, relocate -> dirty (or pinned), after a pause
 *                   fail the file   -> dropped, reported: struct loss
 *                   fail the fs     -> stays in memory; read-only, log kept
 *
 * 1. Content that a log record holds is never dropped: when newer content of
 *    the block is given up, the pinned content is the newest again.
 * 2. When the file system has failed no write-back begins any more.  Dirty and
 *    pinned blocks stay in memory, so that reads go on to see them.
 */
#include "fs/data/failure.h"

#include <errno.h>
#include <string.h>

#include "base/msg.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/data/writeback.h"
#include "fs/op/errors.h"
#include "fs/data/writeback_policy.h"

/* ---- A note in the inode: the file's holes cannot be trusted ---- */

struct note {
	struct fs *fs;
	uint64_t ino;
};

static int note_run(struct fs_txn *txn)
{
	const struct note *note = txn->state;
	struct inode_item item;
	int rc = inode_get(txn, note->ino, &item);

	if (rc)
		return rc;
	item.flags = le32_put(le32_get(item.flags) | INODE_DATA_LOST);
	inode_put(txn, note->ino, &item);
	return 0;
}

static void note_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	(void)rc;
	(void)seq;
	abandon_free(txn->state);
	fs_txn_finish(txn, 0);
}

static const struct fs_txn_type note_type = {
	.name = "note lost data",
	.bounds = { .log_bytes = 512 },
	.paths = 1,
	.changes = 1,
	.run = note_run,
	.end = note_end,
};

static void note_start(struct fs *fs, uint64_t ino)
{
	struct note *note = abandon_alloc(fs, sizeof(*note));

	if (!note)
		return;
	note->fs = fs;
	note->ino = ino;
	if (fs_txn_start(fs, &note_type, NULL, note))
		abandon_free(note);
}

static void lost_message(struct file *file, uint64_t first, uint64_t n, int rc)
{
	struct fs *fs = file->files->fs;

	msg_error("%s: inode %llu, offset %llu: %llu bytes cannot be written "
		  "and are lost: %s", fs->disk->name,
		  (unsigned long long)file->ino,
		  (unsigned long long)first * BLOCK_BYTES,
		  (unsigned long long)n * BLOCK_BYTES, strerror(-rc));
	errors_add(fs, &(struct error){
		.ino = file->ino,
		.off = first * BLOCK_BYTES,
		.sectors = (uint32_t)(n * BLOCK_SECTORS),
		.what = ERROR_LOST,
	});
}

/* Drops the newer content of a block; the content in its log record becomes the
 * newest again. */
static void block_lose(struct file *file, struct block *block)
{
	struct pool *pool = file->files->dirty_pool;

	if (!block->pin) {
		file->lost = true;
		block_drop(file, block);
		return;
	}
	pool_put(pool, block->data);
	block->data = pool_share(pool, block->pinned_data);
	block->failures = 0;
	block_unreserve(file, block);
	if (!block->bad_place)
		block_clean(file, block);
}

/* Gives up the dirty blocks in [first, end). */
static void file_lose(struct file *file, uint64_t first, uint64_t end, int rc)
{
	struct files *files = file->files;
	struct block *block, *next;
	uint64_t n = 0, from = first;
	bool lost = file->lost;

	rc = rc == -ENOSPC ? rc : -EIO;
	for (block = block_at_or_after(file, first);
	     block && block->index < end; block = next) {
		next = block->next;
		if (!block->dirty || block->wb || block_is_logged(block))
			continue;
		from = n ? from : block->index;
		n = block->index + 1 - from;
		block_lose(file, block);
	}
	if (!n)
		return;
	lost_message(file, from, n, rc);
	loss_set(file, rc);
	files->loss = rc;
	if (file->lost && !lost)
		note_start(files->fs, file->ino);
}

/* ---- Failed write-backs ---- */

bool block_is_logged(const struct block *block)
{
	return block->pin && block->data == block->pinned_data;
}

/* The class of the error that the write-back ended with. */
static enum fault_class writeback_class(const struct writeback *wb, int rc)
{
	if (wb->failed)
		return wb->class;
	return rc == -ENOMEM ? FAULT_MEMORY : FAULT_MEDIA;
}

/* Is this an error that no repetition helps against? */
static bool is_final(const struct files *files, int rc)
{
	return rc == -EUCLEAN || rc == -EBADMSG ||
	       (rc == -ENOSPC && !files->bad_writes);
}

static unsigned count(uint8_t *failures)
{
	*failures += *failures < UINT8_MAX;
	return *failures;
}

/* What to do when the pinned content of a block could not be written. */
static enum fault_step destage_step(struct block *block, enum fault_class class,
				 uint64_t *pause_ns)
{
	return fault_next(FAULT_DESTAGE, class, count(&block->destage_failures),
			  pause_ns);
}

/* Handles a block whose only good copy is in the log. */
static enum fault_step logged_failed(struct writeback *wb, struct block *block,
				     int rc, uint64_t *pause_ns)
{
	struct file *file = wb->file;
	enum fault_step step =
		destage_step(block, writeback_class(wb, rc), pause_ns);

	if (rc == -EUCLEAN || rc == -EBADMSG)
		step = FAULT_FAIL_FS;
	/* There is no other place: the old one is tried again. */
	if (step == FAULT_RETRY || rc == -ENOSPC) {
		block->bad_place = false;
		block_clean(file, block);
	}
	return step;
}

static enum fault_step block_failed(struct writeback *wb, struct block *block,
				    int rc, uint64_t *pause_ns)
{
	if (block_is_logged(block))
		return logged_failed(wb, block, rc, pause_ns);
	*pause_ns = 0;
	if (is_final(wb->files, rc))
		return FAULT_FAIL_FILE;
	return fault_next(FAULT_DATA, writeback_class(wb, rc),
			  count(&block->failures), pause_ns);
}

static uint64_t longer(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

/* Makes the blocks [first, end) dirty again, and does for each what the fault
 * policy says. */
static void range_failed(struct writeback *wb, uint64_t first, uint64_t end,
			 int rc)
{
	struct file *file = wb->file;
	struct block *block = block_at_or_after(file, first);
	uint64_t pause_ns, longest_ns = 0, destage_ns = 0;
	bool lose = false, fail = false;
	enum fault_step step;

	for (; block && block->index < end; block = block->next) {
		if (!block->dirty || block->wb)
			continue;
		step = block_failed(wb, block, rc, &pause_ns);
		if (block_is_logged(block))
			destage_ns = longer(destage_ns, pause_ns);
		else
			longest_ns = longer(longest_ns, pause_ns);
		lose |= step == FAULT_FAIL_FILE;
		fail |= step == FAULT_FAIL_FS;
	}
	file_pause(file, longest_ns);
	file_destage_pause(file, destage_ns);
	if (fail)
		tree_fail(file->files->fs->tree,
			  "logged data can be written nowhere");
	/* Blocks that wait until the INLINE item is gone wait for the first
	 * block. */
	else if (lose)
		file_lose(file, first, file->has_inline ? UINT64_MAX : end, rc);
}

void writeback_failed(struct writeback *wb, int rc)
{
	struct file *file = wb->file;
	uint64_t first = wb->first + wb->done, end;
	unsigned i;

	for (i = wb->done; wb->claimed && i < wb->n; i++)
		writeback_release(wb, i, false);
	wb->claimed = false;
	end = wb->first + (wb->n ? wb->n : writeback_collect(wb));
	if (!tree_failed(wb->files->fs->tree)) {
		file->users++;
		range_failed(wb, first, end, rc);
		writeback_flush(file, wb->files->stamp, false, file->final);
		file->users--;
	}
	writeback_end(wb);
}

/* ---- Failed destages ---- */

static bool segment_failed(const struct writeback *wb, unsigned i)
{
	uint64_t from = (uint64_t)i * BLOCK_SECTORS, at = 0;
	const struct writeback_segment *segment = wb->segment;

	for (; segment < wb->segment + wb->segments; segment++) {
		if (segment->failed && at < from + BLOCK_SECTORS &&
		    at + segment->n > from)
			return true;
		at += segment->n;
	}
	return false;
}

/* The block stays pinned; if it is to be written elsewhere it becomes dirty,
 * too. */
static bool destage_block_failed(struct writeback *wb, unsigned i)
{
	struct file *file = wb->file;
	struct block *block = block_find(file, wb->first + i);
	uint64_t pause_ns;
	enum fault_step step = destage_step(block, wb->class, &pause_ns);

	block->bad_place = step == FAULT_RELOCATE;
	file_destage_pause(file, pause_ns);
	writeback_release(wb, i, step != FAULT_RELOCATE);
	return step == FAULT_FAIL_FS;
}

void destage_written(struct writeback *wb, int rc)
{
	struct file *file = wb->file;
	struct block *block;
	bool fail = false;
	unsigned i;

	for (i = 0; i < wb->n; i++) {
		if (rc && segment_failed(wb, i)) {
			fail |= destage_block_failed(wb, i);
			continue;
		}
		block = block_find(file, wb->first + i);
		block->destage_failures = 0;
		log_pin_drop(file, block);
		writeback_release(wb, i, true);
	}
	wb->done = wb->n;
	if (fail)
		tree_fail(wb->files->fs->tree,
			  "logged data can't be destaged");
	else if (rc)
		writeback_flush(file, file->files->stamp, false, true);
	writeback_end(wb);
}

/* The place of the data was not found. */
void destage_failed(struct writeback *wb, int rc)
{
	struct file *file = wb->file;
	struct fs *fs = wb->files->fs;
	struct block *block = block_at_or_after(file, wb->first);
	enum fault_step step = FAULT_FAIL_FS;
	uint64_t pause_ns = 0;

	if (block && rc != -EUCLEAN && rc != -EBADMSG)
		step = destage_step(block, writeback_class(wb, rc), &pause_ns);
	if (step == FAULT_FAIL_FS && !tree_failed(fs->tree)) {
		msg_error("%s: inode %llu: logged data has no place",
			  fs->disk->name, (unsigned long long)file->ino);
		tree_fail(fs->tree, "logged data has no place");
	}
	file_destage_pause(file, pause_ns);
	writeback_end(wb);
}
