/*
 * writeback_txn.c - the transactions of a write-back: the first finds its kind
 * and its place, the second maps its blocks when they are on the disk.
 */
#include "fs/data/writeback_internal.h"

#include <errno.h>

#include "fs/data/bmap.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/destage.h"
#include "fs/data/dirty_block.h"
#include "fs/data/failure.h"
#include "fs/data/file_sync.h"
#include "fs/data/prealloc.h"
#include "fs/data/writeback.h"
#include "fs/table/replica.h"

#define LOGGED_LOG_BYTES (LOG_BLOCKS * BLOCK_BYTES + (16u << 10) + \
			  REPLICA_LOG_BYTES)

/* ---- What all transactions that map data share ---- */

/* Segments as extents of the file, from sector `off` of the file on. */
static unsigned writeback_extents(const struct writeback *wb,
				  struct extent *list)
{
	uint64_t off = wb->first * BLOCK_SECTORS;
	unsigned i;

	for (i = 0; i < wb->segments; i++) {
		list[i] = (struct extent){
			.off = off,
			.n = wb->segment[i].n,
			.addr = addr_make(0, wb->segment[i].sector),
			.flags = wb->segment[i].known ? EXTENT_KNOWN : 0,
		};
		off += wb->segment[i].n;
	}
	return wb->segments;
}

static const void *writeback_data(const struct writeback *wb, unsigned i)
{
	if (wb->claimed)
		return wb->data[i];
	return block_find(wb->file, wb->first + i)->data;
}

static uint32_t writeback_sum(void *arg, unsigned i)
{
	struct writeback *wb = arg;

	return csum_block(writeback_data(wb, wb->done + i));
}

/* The INLINE item goes when block 0 is mapped. */
static int writeback_inline_probe(struct fs_txn *txn,
				  const struct writeback *wb, bool *there)
{
	struct tree_item item;
	int rc;

	*there = false;
	if (!wb->file->has_inline)
		return 0;
	rc = tree_get(txn->tree_txn, key_make(wb->file->ino, ITEM_INLINE, 0),
		      &item);
	*there = rc == 0;
	return rc == -ENOENT ? 0 : rc;
}

static void writeback_size(const struct writeback *wb, unsigned n,
			   struct inode_item *item)
{
	uint64_t end = (wb->first + wb->done + n) * BLOCK_BYTES;

	if (end > wb->file->size)
		end = wb->file->size;
	if (end > le64_get(item->size))
		item->size = le64_put(end);
}

/*
 * Maps the next n blocks of a write-back to its segments, with sums.  Returns
 * the blocks mapped, or 0 and *rc.
 */
static unsigned writeback_map(struct fs_txn *txn, struct writeback *wb,
			      unsigned n, bool remap, int *rc)
{
	struct file *file = wb->file;
	uint64_t first = wb->first + wb->done;
	struct extent list[WB_SEGMENTS];
	struct bmap_sums sums = {
		.first = first, .sum = writeback_sum, .arg = wb,
	};
	struct bmap_plan plan;
	struct replica_drop drop;
	struct inode_item item;
	bool is_inline;
	int err;

	*rc = inode_get(txn, file->ino, &item);
	err = writeback_inline_probe(txn, wb, &is_inline);
	if (!*rc)
		*rc = replica_probe(txn, file->ino, &item, first, &n, &drop);
	if (!*rc || *rc == -EAGAIN)
		*rc = err ? err : *rc;
	plan.n = (uint64_t)n * BLOCK_SECTORS;
	if (*rc && *rc != -EAGAIN)
		return 0;
	if (remap) {
		err = bmap_probe(txn, file->ino, first * BLOCK_SECTORS,
				(uint64_t)n * BLOCK_SECTORS, list,
				writeback_extents(wb, list), &plan);
		*rc = err ? err : *rc;
		if (err && err != -EAGAIN)
			return 0;
	}
	sums.n = (unsigned)(plan.n / BLOCK_SECTORS);
	err = bmap_sums_probe(txn, file->ino, &sums);
	*rc = err ? err : *rc;
	if (*rc)
		return 0;
	replica_apply(txn, file->ino, &drop);
	if (remap)
		bmap_apply(txn, file->ino, &plan, &item);
	bmap_sums_apply(txn, file, &sums);
	if (is_inline && wb->first == 0)
		tree_del(txn->tree_txn, key_make(file->ino, ITEM_INLINE, 0));
	writeback_size(wb, sums.n, &item);
	inode_put(txn, file->ino, &item);
	if (wb->first == 0) {
		file->has_inline = false;
		file->no_inline = false;
	}
	return sums.n;
}

/* ---- DIRECT and IN_PLACE: the transaction ---- */

static int commit_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	unsigned n = wb->n - wb->done;
	int rc;

	wb->txn = txn;
	if (wb->rc)
		return wb->rc;
	if (n > TXN_BLOCKS)
		n = TXN_BLOCKS - (wb->first + wb->done) % CHUNK_BLOCKS;
	wb->want = writeback_map(txn, wb, n, true, &rc);
	return rc;
}

static void commit_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	struct block *block;
	unsigned end = wb->done + wb->want;

	if (rc) {
		fs_txn_finish(txn, 0);
		writeback_failed(wb, rc);
		return;
	}
	for (; wb->done < end; wb->done++) {
		block = block_find(file, wb->first + wb->done);
		block->bad_place = false;
		block->failures = block->destage_failures = 0;
		block_unreserve(file, block);
		if (block->pin)
			log_pin_drop_later(file, block, seq);
		writeback_release(wb, wb->done, true);
	}
	if (wb->done < wb->n) {
		fs_txn_restart(txn);
		return;
	}
	wb->taken = false;
	fs_txn_finish(txn, 0);
	writeback_end(wb);
}

#define COMMIT_TYPE(text, frees_log)                                      \
	{                                                                 \
		.name = text,                                             \
		.bounds = { .nodes = 60,                                  \
			    .log_bytes = BMAP_LOG_BYTES + REPLICA_LOG_BYTES, \
			    .promised = true, .urgent = frees_log },      \
		.paths = 14 + REPLICA_PATHS,                              \
		.changes = 10 + REPLICA_PATHS,                            \
		.stages = 60,                                             \
		.run = commit_run,                                        \
		.end = commit_end,                                        \
	}

/* Logged content of blocks that a write-back has claimed cannot be destaged: if
 * it fills the log, only this transaction makes room in it (frees_log). */
static const struct fs_txn_type commit_type = COMMIT_TYPE("map data", false),
				commit_pinned_type =
					COMMIT_TYPE("map logged data", true);

/* Does the log have any of the write-back's first n blocks? */
static bool writeback_has_pin(const struct writeback *wb, unsigned n)
{
	const struct block *block = block_find(wb->file, wb->first);

	for (; n; n--, block = block->next)
		if (block->pin)
			return true;
	return false;
}

static void direct_written(struct writeback *wb, int rc)
{
	struct fs *fs = wb->files->fs;
	struct block *block;
	unsigned i;

	wb->files->policy->place_over(wb);
	if (rc && wb->kind == WB_IN_PLACE)
		for (i = 0; i < wb->n; i++) {
			block = block_find(wb->file, wb->first + i);
			block->bad_place = true;
		}
	if (!rc)
		rc = fs_txn_start(fs, writeback_has_pin(wb, wb->n) ?
				  &commit_pinned_type : &commit_type,
				  NULL, wb);
	if (rc)
		writeback_failed(wb, rc);
}

/* ---- The first transaction, which changes nothing: kind and place ---- */

enum mapping { UNMAPPED, WRITTEN, UNWRITTEN };

/*
 * Finds what the write-back's first blocks are mapped to; shortens *n to those
 * that are mapped alike, and for UNWRITTEN and `places` lists where.
 */
static int writeback_mapping(struct fs_txn *txn, struct writeback *wb,
			     unsigned *n, bool places, enum mapping *mapping)
{
	uint64_t off = wb->first * BLOCK_SECTORS, sector = off;
	uint64_t end = off + (uint64_t)*n * BLOCK_SECTORS, stop;
	struct extent extent;
	enum mapping kind;
	int rc;

	if (places)
		wb->segments = 0;
	for (; sector < end; sector = stop) {
		rc = bmap_extent(txn, wb->file->ino, sector, &extent);
		if (rc && rc != -ENOENT)
			return rc;
		stop = rc || extent.off > end ? end : extent.off;
		kind = UNMAPPED;
		if (stop <= sector) {
			kind = extent.flags & EXTENT_UNWRITTEN ? UNWRITTEN :
								 WRITTEN;
			stop = extent.off + extent.n;
			stop = stop < end ? stop : end;
		}
		if (sector == off)
			*mapping = kind;
		if (kind != *mapping || (places && kind != UNMAPPED &&
		    writeback_add_segment(wb, addr_sector(extent.addr) +
			    (sector - extent.off), stop - sector,
			    extent.flags & EXTENT_KNOWN)))
			break;
		if (tree_txn_room(txn->tree_txn) < 2 * TRAX_MAX_LEVEL) {
			sector = stop;
			break;
		}
	}
	*n = (unsigned)((sector - off) / BLOCK_SECTORS);
	return *n ? 0 : -EUCLEAN;
}

/* Cuts segments that reach beyond the blocks of a shortened write-back. */
static void writeback_cut(struct writeback *wb, unsigned n)
{
	uint64_t left = (uint64_t)n * BLOCK_SECTORS;
	unsigned i;

	for (i = 0; i < wb->segments && left; i++) {
		if (wb->segment[i].n > left)
			wb->segment[i].n = left;
		left -= wb->segment[i].n;
	}
	wb->segments = i;
}

/* Finds where the extent before the write-back ends on the disk, if it
 * continues it, and where in the file the hole begins that it fills. */
static int writeback_after(struct fs_txn *txn, struct writeback *wb,
			   uint64_t *after)
{
	const struct file *file = wb->file;
	uint64_t off = wb->first * BLOCK_SECTORS;
	struct extent extent;
	int rc;

	*after = 0;
	wb->hole = off;
	if (file->tail_addr && file->tail_off == off) {
		*after = file->tail_addr;
		return 0;
	}
	rc = bmap_extent_before(txn, file->ino, off, &extent);
	if (rc == 0 && extent.off + extent.n == off)
		*after = addr_sector(extent.addr) + extent.n;
	if (rc == 0)
		wb->hole = extent.off + extent.n;
	if (rc == -ENOENT)
		wb->hole = 0;
	return rc == -ENOENT ? 0 : rc;
}

static void writeback_taken(struct writeback *wb)
{
	const struct writeback_segment *last = &wb->segment[wb->segments - 1];

	wb->taken = true;
	wb->file->tail_off = (wb->first + wb->want) * BLOCK_SECTORS;
	wb->file->tail_addr = last->sector + last->n;
}

/* Takes the preallocated places of the write-back, if there are any.  `fresh`:
 * its blocks have had no place, and some may be preallocated now.  `taken` says
 * whether there were any. 0, FS_TXN_WAIT or an error. */
static int writeback_take_kept(struct fs_txn *txn, struct writeback *wb,
			       uint64_t after, bool fresh)
{
	uint32_t group;
	int rc;

	if (!prealloc_use(wb)) {
		rc = fresh ? prealloc_make(wb, after, txn->groups, &group) :
			     -ENOSPC;
		if (rc == -EAGAIN)
			return fs_txn_wait_group(txn, group);
		if (rc || !prealloc_use(wb))
			return 0;
	}
	wb->may_move = wb->follows = false;
	writeback_taken(wb);
	return 0;
}

/* Takes room for the write-back's first `want` blocks or, if that is not to be
 * had in few enough extents, for fewer. 0, FS_TXN_WAIT or an error. */
static int writeback_take(struct fs_txn *txn, struct writeback *wb,
			  uint64_t after, bool fresh)
{
	struct alloc_extent extents[WB_SEGMENTS];
	struct fs *fs = wb->files->fs;
	struct alloc_want want = {
		.goal = wb->file->goal, .after = after,
		.dir = wb->file->parent, .stream = wb->stream,
		.batch = wb->file->batch_sectors, .loads = txn->groups,
	};
	uint64_t sum = 0;
	uint32_t group;
	int rc, i;

	rc = writeback_take_kept(txn, wb, after, fresh);
	if (rc || wb->taken)
		return rc;
	for (;;) {
		want.sectors = (uint64_t)wb->want * BLOCK_SECTORS;
		rc = alloc_take(fs->alloc, &want, extents,
				(int)writeback_segments(wb), &group);
		if (rc == -EAGAIN)
			return fs_txn_wait_group(txn, group);
		if (rc == -ENOSPC && prealloc_wait_room(txn) == FS_TXN_WAIT)
			return FS_TXN_WAIT;
		if (rc == -ENOSPC && bad_stretch_give_back(wb->files))
			continue;
		if (rc == -ENOSPC && replica_room(txn, want.sectors))
			return FS_TXN_WAIT;
		if (rc == -ENOSPC && !wb->waited) {
			wb->waited = true;
			return fs_txn_wait_checkpoint(txn);
		}
		if (rc > 0)
			break;
		if ((rc != -ENOSPC && rc != -E2BIG) || wb->want == 1)
			return rc;
		wb->want = (wb->want + 1) / 2;
	}
	wb->segments = 0;
	for (i = 0; i < rc; i++) {
		wb->segment[i].sector = extents[i].sector;
		wb->segment[i].n = extents[i].n;
		wb->segment[i].known = extents[i].known;
		wb->segment[i].failed = false;
		sum += extents[i].n;
	}
	wb->segments = (unsigned)rc;
	wb->may_move = rc == 1 && !extents[0].whole_tracks &&
			extents[0].sector != after;
	wb->follows = extents[0].follows;
	wb->want = (unsigned)(sum / BLOCK_SECTORS);
	writeback_taken(wb);
	return 0;
}

/* Is there free room, reserved for nobody, for a second place of n blocks? */
static bool writeback_has_room(const struct writeback *wb, unsigned n)
{
	struct space *space = tree_space(wb->files->fs->tree);
	uint64_t sectors = (uint64_t)n * BLOCK_SECTORS;

	if (space_reserve(space, sectors))
		return false;
	space_release(space, sectors);
	return true;
}

/*
 * Is what the write-back's first n of `all` blocks are mapped to the end of a
 * small file's mapping, and does nobody wait for them?  Then they go to a new
 * place, with new blocks behind them and with what else is written now: at
 * their own place they would cost a log record and a seek for each file that
 * was appended to.  Not if the log has one of them: it could not be destaged
 * while the write-back waits for room in the log. 1 if so, 0 or an error.
 */
static int writeback_is_tail(struct fs_txn *txn, const struct writeback *wb,
			     unsigned n, unsigned all)
{
	uint64_t end = wb->first + n;
	struct extent extent;
	int rc;

	if (!wb->small || wb->file->sync || writeback_has_pin(wb, n))
		return 0;
	if (end * BLOCK_BYTES >= wb->file->size)
		return 1;
	/* No need to look what follows what is not followed by new blocks. */
	if (n == all)
		return 0;
	rc = bmap_extent(txn, wb->file->ino, end * BLOCK_SECTORS, &extent);
	return rc == -ENOENT ? 1 : rc;
}

/* Is it better to write these blocks to a new place than to their own?  Few
 * tails without new blocks keep theirs: that seek is made in idle time, and the
 * file stays in one extent. */
static bool writeback_replaces(const struct writeback *wb, unsigned n,
			       bool is_tail)
{
	uint64_t sectors = (uint64_t)n * BLOCK_SECTORS;
	const struct block *block = block_find(wb->file, wb->first);

	if (!writeback_has_room(wb, n))
		return false;
	return block->bad_place ||
	       sectors * 2 >= alloc_track_sectors(wb->files->fs->alloc,
						  wb->file->goal) ||
	       (is_tail && !destage_takes_end(wb->files));
}

static int prepare_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	struct inode_item item;
	enum mapping mapping = UNMAPPED;
	unsigned all =
		writeback_collect_most(wb, wb->n ? wb->n : writeback_most(wb));
	unsigned n = all;
	bool is_tail = false;
	uint64_t after;
	int rc, err;

	if (!n)
		return 0;
	err = inode_get(txn, wb->file->ino, &item);
	rc = writeback_mapping(txn, wb, &n, true, &mapping);
	if (rc || err)
		return rc && rc != -EAGAIN ? rc : err ? err : rc;
	file_set_parent(wb->file, le64_get(item.parent));
	wb->file->goal = addr_sector(le64_get(item.goal));
	if (mapping == WRITTEN) {
		rc = writeback_is_tail(txn, wb, n, all);
		if (rc < 0)
			return rc;
		is_tail = rc;
		if (is_tail && n < all && writeback_has_room(wb, n)) {
			n = all;
			mapping = UNMAPPED;
		}
	}
	wb->kind = mapping == UNWRITTEN ? WB_IN_PLACE : WB_DIRECT;
	if (mapping == UNWRITTEN &&
	    block_find(wb->file, wb->first)->bad_place)
		wb->kind = WB_DIRECT;
	if (mapping == WRITTEN && !writeback_replaces(wb, n, is_tail)) {
		/* Its content is logged already. */
		if (block_is_logged(block_find(wb->file, wb->first)))
			return -ENOSPC;
		wb->kind = WB_LOGGED;
	}
	if (wb->kind == WB_DIRECT) {
		rc = writeback_after(txn, wb, &after);
		if (rc)
			return rc;
		if (!wb->want || wb->want > n)
			wb->want = n;
		rc = writeback_take(txn, wb, after, mapping == UNMAPPED);
		if (rc == -ENOSPC && mapping == WRITTEN &&
		    !block_is_logged(block_find(wb->file, wb->first)))
			wb->kind = WB_LOGGED;
		else if (rc)
			return rc;
	}
	if (wb->kind == WB_IN_PLACE)
		writeback_cut(wb, n);
	wb->n = wb->kind == WB_DIRECT ? wb->want : n;
	if (wb->kind != WB_LOGGED)
		writeback_claim(wb);
	return 0;
}

static void prepare_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	enum queue_class class = file->sync ? QUEUE_COMMIT : QUEUE_WRITE_BACK;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc || !(wb->claimed || wb->kind == WB_LOGGED)) {
		writeback_prepared(file);
		if (rc)
			writeback_failed(wb, rc);
		else
			writeback_end(wb);
		return;
	}
	if (wb->kind == WB_LOGGED) {
		writeback_log(wb);
		return;
	}
	writeback_prepared(file);
	if (class == QUEUE_COMMIT ||
	    !wb->files->policy->gap_may(file, wb->kind) ||
	    !wb->files->policy->gap_queue(wb, direct_written))
		writeback_write(wb, class, direct_written);
	wb->files->ops->pump(wb->files);
}

const struct fs_txn_type writeback_prepare_type = {
	.name = "place data",
	.bounds = { .nodes = 48 },
	.stages = 60,
	.run = prepare_run,
	.end = prepare_end,
};

/* ---- LOGGED ---- */

static void logged_data(struct fs_txn *txn, struct writeback *wb, unsigned n)
{
	struct block *block = block_find(wb->file, wb->first);
	struct iovec iov[LOG_BLOCKS];
	uint64_t sums[LOG_BLOCKS];
	unsigned i;

	for (i = 0; i < n; i++, block = block->next) {
		iov[i].iov_base = block->data;
		iov[i].iov_len = BLOCK_BYTES;
		sums[i] = csum(block->data, BLOCK_BYTES);
	}
	tree_log_data(txn->tree_txn, wb->file->ino, wb->first, n, sums, iov, n);
}

static int logged_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	enum mapping mapping = UNMAPPED;
	unsigned n = writeback_collect_most(wb, LOG_BLOCKS), mapped;
	uint64_t after;
	int rc;

	wb->txn = txn;
	wb->n = 0;
	if (wb->rc || !n)
		return wb->rc;
	rc = writeback_mapping(txn, wb, &n, !wb->taken, &mapping);
	if (rc)
		return rc;
	if (mapping == UNMAPPED && !wb->taken) {
		rc = writeback_after(txn, wb, &after);
		if (rc)
			return rc;
		wb->want = n;
		rc = writeback_take(txn, wb, after, true);
		if (rc)
			return rc;
	}
	if (mapping == UNMAPPED && n > wb->want)
		n = wb->want;
	if (mapping != UNMAPPED)
		writeback_cut(wb, n);
	mapped = writeback_map(txn, wb, n, mapping != WRITTEN, &rc);
	if (rc)
		return rc;
	logged_data(txn, wb, mapped);
	wb->n = mapped;
	return 0;
}

static void logged_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	struct files *files = wb->files;
	struct block *block;
	unsigned i;

	fs_txn_finish(txn, 0);
	writeback_prepared(file);
	if (rc) {
		writeback_failed(wb, rc);
		return;
	}
	if (wb->n) {
		wb->pin->seq = seq;
		list_add(&files->log_pins, &wb->pin->link);
	}
	for (i = 0; i < wb->n; i++) {
		block = block_find(file, wb->first + i);
		log_pin_set(file, block, wb->pin);
		block->failures = 0;
		if (!block->bad_place)
			block->destage_failures = 0;
		/* There was no other place: the old one is used again. */
		block->bad_place = false;
		block_clean(file, block);
		block_unreserve(file, block);
	}
	if (wb->n)
		wb->pin = NULL;
	wb->done = wb->n;
	writeback_end(wb);
}

static const struct fs_txn_type logged_type = {
	.name = "log data",
	.bounds = { .nodes = 60, .log_bytes = LOGGED_LOG_BYTES,
		    .promised = true },
	.paths = 10 + REPLICA_PATHS,
	.changes = 8 + REPLICA_PATHS,
	.stages = 60,
	.run = logged_run,
	.end = logged_end,
};

void writeback_log(struct writeback *wb)
{
	wb->kind = WB_LOGGED;
	wb->n = wb->segments = 0;
	wb->pin = abandon_alloc(wb->files->fs, sizeof(*wb->pin));
	if (wb->pin &&
	    !fs_txn_start(wb->files->fs, &logged_type, NULL, wb))
		return;
	writeback_prepared(wb->file);
	writeback_failed(wb, -ENOMEM);
}

/* ---- INLINE ---- */

int writeback_inline_run(struct fs_txn *txn)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	struct block *block = block_find(file, 0);
	struct inode_item item;
	struct tree_item old;
	int rc, err;

	wb->n = 0;
	if (!block || !block->dirty || block->wb)
		return 0;
	rc = inode_get(txn, file->ino, &item);
	err = tree_get(txn->tree_txn, key_make(file->ino, ITEM_INLINE, 0),
		       &old);
	if (err && err != -ENOENT)
		rc = rc && rc != -EAGAIN ? rc : err;
	if (rc)
		return rc;
	if (file->size > TRAX_MAX_INLINE_BYTES || file->no_inline ||
	    file->size == 0 || le64_get(item.sectors)) {
		file->no_inline = true;
		return 0;
	}
	tree_put(txn->tree_txn, key_make(file->ino, ITEM_INLINE, 0),
		 block->data, file->size);
	item.size = le64_put(file->size);
	inode_put(txn, file->ino, &item);
	file->has_inline = true;
	chunks_changed(file, 0, 1);
	wb->n = 1;
	return 0;
}

void writeback_inline_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct writeback *wb = txn->state;
	struct file *file = wb->file;
	struct block *block;

	fs_txn_finish(txn, 0);
	writeback_prepared(file);
	if (rc) {
		writeback_failed(wb, rc);
		return;
	}
	if (wb->n) {
		block = block_find(file, 0);
		block_clean(file, block);
		block_unreserve(file, block);
		if (block->pin)
			log_pin_drop_later(file, block, seq);
		block_drop_clean(file, block);
	}
	wb->done = wb->n;
	writeback_end(wb);
}
