/*
 * trunc.c - operations that take from the mapping of a file: set the size,
 * punch, zero, preallocate, delete.  In steps of one transaction each.
 *
 *   exclusive -> edges in memory -> [ transaction ]+ -> over
 *
 * 1. These are exclusive operations: no write-back is under way, and readers
 *    and writers wait; readers only until the new size is valid, as removing
 *    what lies behind it can take long.
 * 2. The first transaction of a truncation makes the new size valid, with the
 *    rest of the last block zeroed (logged); while extents or sums behind the
 *    end remain, an ORPHAN item says so.  A step removes what is first behind
 *    the end, so going on after a crash needs no more than the size.
 * 3. Punching removes extents and sums of the same blocks in one transaction.
 * 4. The INODE item of a deleted inode is removed last of all its items.
 * 5. Preallocating reserves room for all of it first, in transactions that
 *    change nothing: if there is too little it takes none.
 * 6. Replicas of the removed blocks are dropped before, in transactions of
 *    their own; until the end none are attached.
 */
#include "fs/data/trunc_internal.h"

#include <assert.h>
#include <errno.h>
#include <linux/falloc.h>

#include "fs/data/admission.h"
#include "fs/data/bmap.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/dirty_block.h"
#include "fs/data/failure.h"
#include "fs/data/file.h"
#include "fs/data/file_sync.h"
#include "fs/table/replica.h"

/* Bytes of log for one step: room for the keys that it removes, and for a
 * logged block of 4 KiB. */
#define TRUNC_LOG_BYTES (48u << 10)

static void trunc_step(struct trunc *trunc);

void trunc_answer(struct trunc *trunc, int rc)
{
	struct fs_op *op = trunc->op;

	trunc->op = NULL;
	if (op)
		fs_answer(trunc->fs, op, rc);
}

/* Forgets the old content of the edges or, if nothing was cut, restores it:
 * nobody else has changed them meanwhile. */
static void trunc_edges_over(struct trunc *trunc, bool put_back)
{
	struct file *file = trunc->file;
	struct pool *pool = trunc->fs->files->dirty_pool;
	struct edge *edge;
	struct block *block;

	for (edge = trunc->old; edge < trunc->old + trunc->old_n; edge++) {
		block = put_back ? block_find(file, edge->index) : NULL;
		if (block && edge->data) {
			pool_put(pool, block->data);
			block->data = pool_share(pool, edge->data);
			if (!edge->dirty) {
				block_clean(file, block);
				block_drop_clean(file, block);
			}
		} else if (block) {
			block_drop(file, block);
		}
		if (edge->data)
			pool_put(pool, edge->data);
	}
	trunc->old_n = 0;
}

static void trunc_over(struct trunc *trunc, int rc)
{
	struct space *space = tree_space(trunc->fs->tree);
	struct file *file = trunc->file;
	struct fs *fs = trunc->fs;
	void (*done)(struct fs *fs, uint64_t ino) = trunc->done;
	uint64_t ino = file->ino;

	read_wait_end(&trunc->rwait);
	trunc_edges_over(trunc, rc && !trunc->begun);
	while (trunc->chunks > 0) {
		trunc->chunks--;
		space_give_back(space, trunc->chunk[trunc->chunks].sector,
				trunc->chunk[trunc->chunks].n);
	}
	if (trunc->counted)
		space_release(space, trunc->promised);
	abandon_free(trunc->pin);
	fs->files->cutting -= trunc->cuts;
	trunc_answer(trunc, rc);
	if (trunc->excl.active)
		file_unlock_excl(&trunc->excl);
	abandon_free(trunc);
	file->dead = false;
	file_put(file);
	if (done)
		done(fs, ino);
	writers_retry(fs->files);
}

/* ---- Memory ---- */

void trunc_drop_blocks(struct file *file, uint64_t first, uint64_t end)
{
	struct block *block = block_at_or_after(file, first), *next;

	for (; block && block->index < end; block = next) {
		next = block->next;
		if (file->size <= SMALL_FILE_BYTES && block->dirty)
			file->files->small_died++;
		block_drop(file, block);
	}
	chunks_changed(file, first, end - first);
	if (file->tail_off > first * BLOCK_SECTORS)
		file->tail_addr = 0;
}

/* Brings a block into memory: 0, -EINPROGRESS or an error. */
static int trunc_need(struct trunc *trunc, uint64_t index)
{
	trunc->rwait.first = index;
	trunc->rwait.n = 1;
	trunc->rwait.tree = false;
	if (read_wait_ok(&trunc->rwait))
		return 0;
	read_wait_end(&trunc->rwait);
	return read_wait_start(&trunc->rwait);
}

static bool all_zero(const uint8_t *data, unsigned n)
{
	return n == 0 || (data[0] == 0 && !memcmp(data, data + 1, n - 1));
}

/* Zeroes [from, to) of a block, whose old content is kept. */
static int edge_zero(struct trunc *trunc, uint64_t index, unsigned from,
		     unsigned to)
{
	struct pool *pool = trunc->fs->files->dirty_pool;
	struct block *block = block_find(trunc->file, index);
	struct edge *edge = &trunc->old[trunc->old_n];
	int rc;

	assert(trunc->old_n < EDGES);
	*edge = (struct edge){
		.index = index,
		.data = block ? pool_share(pool, block->data) : NULL,
		.dirty = block && block->dirty,
	};
	rc = write_zero(trunc->file, &trunc->rwait, index, from, to);
	if (!rc)
		trunc->old_n++;
	else if (edge->data)
		pool_put(pool, edge->data);
	return rc;
}

/* Does the same unless the block is behind the end or zero. */
static int trunc_zero(struct trunc *trunc, uint64_t index, unsigned from,
		      unsigned to)
{
	const uint8_t *data;
	int rc;

	if (index * BLOCK_BYTES >= trunc->file->size)
		return 0;
	rc = trunc_need(trunc, index);
	if (rc)
		return rc;
	data = read_wait_block(&trunc->rwait, index);
	if (!all_zero(data + from, to - from))
		rc = edge_zero(trunc, index, from, to);
	read_wait_end(&trunc->rwait);
	return rc == -EAGAIN ? -ENOMEM : rc;
}

/* Before the first transaction: zeroes the part that goes of blocks that
 * stay. */
static int trunc_edges(struct trunc *trunc)
{
	uint64_t from = trunc->op ? trunc->op->offset : 0, to;
	struct file *file = trunc->file;
	int rc = 0;

	if (trunc->kind == TRUNC_SIZE) {
		if (trunc->size % BLOCK_BYTES && trunc->size < file->size &&
		    (!file->has_inline ||
		     block_find(file, trunc->size / BLOCK_BYTES)))
			rc = trunc_zero(trunc, trunc->size / BLOCK_BYTES,
				      trunc->size % BLOCK_BYTES, BLOCK_BYTES);
		return rc;
	}
	if (trunc->kind != TRUNC_PUNCH)
		return 0;
	/* Inline data has no extent that could be removed. */
	if (file->has_inline && trunc->first == 0 && trunc->end > 0) {
		rc = trunc_zero(trunc, 0, 0, BLOCK_BYTES);
		if (rc)
			return rc;
		trunc->first = trunc->dropped = 1;
	}
	to = from + trunc->op->size;
	if (from / BLOCK_BYTES == to / BLOCK_BYTES)
		return trunc_zero(trunc, to / BLOCK_BYTES, from % BLOCK_BYTES,
				to % BLOCK_BYTES);
	if (trunc->edge == 0) {
		if (from % BLOCK_BYTES)
			rc = trunc_zero(trunc, from / BLOCK_BYTES,
				      from % BLOCK_BYTES, BLOCK_BYTES);
		trunc->edge = rc ? 0 : 1;
	}
	if (trunc->edge == 1 && !rc) {
		if (to % BLOCK_BYTES)
			rc = trunc_zero(trunc, to / BLOCK_BYTES, 0,
				      to % BLOCK_BYTES);
		trunc->edge = rc ? 1 : 2;
	}
	return rc;
}

/* ---- Delete ---- */

static int delete_xattrs(struct fs_txn *txn, struct trunc *trunc, bool apply)
{
	uint64_t ino = trunc->file->ino;

	return trunc_items(txn, trunc, key_make(ino, ITEM_XATTR, 0),
			   key_make(ino, ITEM_XATTR, UINT64_MAX), apply);
}

static int trunc_delete_run(struct fs_txn *txn)
{
	struct trunc *trunc = txn->state;
	uint64_t ino = trunc->file->ino;
	struct extent beyond;
	struct inode_item item;
	struct tree_item found;
	struct bmap_plan plan;
	int rc[6], i;
	bool miss = false;

	trunc->more = false;
	rc[0] = inode_get(txn, ino, &item);
	rc[1] = tree_get(txn->tree_txn, key_make(0, ITEM_ORPHAN, ino), &found);
	rc[2] = tree_get(txn->tree_txn, key_make(ino, ITEM_INLINE, 0), &found);
	rc[3] = bmap_probe(txn, ino, 0, FOREVER, NULL, 0, &plan);
	rc[4] = trunc_windows(txn, trunc, 0, FOREVER / BLOCK_SECTORS, false);
	rc[5] = delete_xattrs(txn, trunc, false);
	for (i = 0; i < 6; i++) {
		if (rc[i] && rc[i] != -EAGAIN && rc[i] != -ENOENT)
			return rc[i];
		miss |= rc[i] == -EAGAIN;
	}
	if (miss)
		return -EAGAIN;
	if (rc[0]) {
		if (rc[1] == 0)
			tree_del(txn->tree_txn, key_make(0, ITEM_ORPHAN, ino));
		return 0;
	}
	if (plan.n < FOREVER) {
		i = bmap_extent(txn, ino, plan.n, &beyond);
		if (i && i != -ENOENT)
			return i;
		trunc->more = i == 0;
	}
	bmap_apply(txn, ino, &plan, &item);
	trunc_windows(txn, trunc, 0, FOREVER / BLOCK_SECTORS, true);
	delete_xattrs(txn, trunc, true);
	if (rc[2] == 0)
		tree_del(txn->tree_txn, key_make(ino, ITEM_INLINE, 0));
	if (trunc->more) {
		inode_put(txn, ino, &item);
		return 0;
	}
	tree_del(txn->tree_txn, key_make(ino, ITEM_INODE, 0));
	if (rc[1] == 0)
		tree_del(txn->tree_txn, key_make(0, ITEM_ORPHAN, ino));
	return 0;
}

/* ---- Replicas ---- */

static int clear_run(struct fs_txn *txn)
{
	struct trunc *trunc = txn->state;
	uint64_t first = trunc->first, end = FOREVER / BLOCK_SECTORS;

	if (trunc->kind == TRUNC_SIZE)
		first = trunc->size / BLOCK_BYTES;
	if (trunc->kind == TRUNC_PUNCH)
		end = trunc->end;
	if (first >= end)
		return 0;
	return replica_clear(txn, trunc->file->ino, first, end, &trunc->more);
}

static void clear_ended(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct trunc *trunc = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc) {
		trunc_over(trunc, rc);
		return;
	}
	trunc->cleared = !trunc->more;
	trunc->more = false;
	trunc_step(trunc);
}

/* ---- Room for a preallocation ---- */

static void count_ended(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct trunc *trunc = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (!rc)
		rc = trunc_count_took(trunc);
	trunc->more = false;
	if (rc)
		trunc_over(trunc, rc);
	else
		trunc_step(trunc);
}

/* ---- Steps ---- */

static void trunc_ended(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct trunc *trunc = txn->state;

	fs_txn_finish(txn, 0);
	read_wait_end(&trunc->rwait);
	if (rc) {
		trunc_over(trunc, rc);
		return;
	}
	if (trunc->kind == TRUNC_SIZE)
		trunc_size_took(trunc, seq);
	if (trunc->kind == TRUNC_PUNCH)
		trunc_punch_took(trunc);
	if (trunc->kind == TRUNC_RESERVE)
		trunc_reserve_took(trunc);
	trunc->begun = true;
	if (trunc->cuts)
		writers_retry(trunc->fs->files);
	if (!trunc->more && trunc->kind == TRUNC_PUNCH && trunc->then_reserve) {
		trunc->kind = TRUNC_RESERVE;
		trunc->first = trunc->op->offset / BLOCK_BYTES;
		trunc->end = (trunc->op->offset + trunc->op->size +
			      BLOCK_BYTES - 1) /
			     BLOCK_BYTES;
		trunc->more = true;
	}
	if (trunc->more)
		trunc_step(trunc);
	else
		trunc_over(trunc, 0);
}

static const struct fs_txn_type clear_type = {
	.name = "clear copies",
	.bounds = { .log_bytes = 256, .urgent = true },
	.paths = 12,
	.changes = 12,
	.stages = 12,
	.run = clear_run,
	.end = clear_ended,
};

static const struct fs_txn_type count_type = {
	.name = "count room",
	.bounds = { .nodes = 60, .urgent = true },
	.stages = 60,
	.run = trunc_count_run,
	.end = count_ended,
};

#define TRUNC_TYPE(fn)                                                         \
	{                                                                      \
		.name = #fn,                                                   \
		.bounds = {.nodes = 60,                                        \
			   .log_bytes = TRUNC_LOG_BYTES,                       \
			   .urgent = true},                                    \
		.paths = 14,                                                   \
		.changes = 12,                                                 \
		.stages = 60,                                                  \
		.run = fn,                                                     \
		.end = trunc_ended,                                            \
	}

static const struct fs_txn_type trunc_types[] = {
	[TRUNC_SIZE] = TRUNC_TYPE(trunc_size_run),
	[TRUNC_DELETE] = TRUNC_TYPE(trunc_delete_run),
	[TRUNC_PUNCH] = TRUNC_TYPE(trunc_punch_run),
	[TRUNC_RESERVE] = TRUNC_TYPE(trunc_reserve_run),
};

static bool trunc_has_copies(const struct trunc *trunc)
{
	return trunc->file->copies && !trunc->cleared &&
	       trunc->kind != TRUNC_RESERVE;
}

static void trunc_step(struct trunc *trunc)
{
	const struct fs_txn_type *type = &trunc_types[trunc->kind];
	int rc = trunc->begun ? 0 : trunc_edges(trunc);

	if (rc == -EINPROGRESS)
		return;
	if (!rc && trunc->kind == TRUNC_SIZE && !trunc->pin) {
		trunc->pin = abandon_alloc(trunc->fs,
					sizeof(*trunc->pin));
		rc = trunc->pin ? 0 : -ENOMEM;
	}
	trunc->txn = NULL;
	trunc->rc = 0;
	if (trunc_has_copies(trunc))
		type = &clear_type;
	if (trunc->kind == TRUNC_RESERVE && !trunc->counted)
		type = &count_type;
	if (!rc)
		rc = fs_txn_start(trunc->fs, type, NULL, trunc);
	if (rc)
		trunc_over(trunc, rc);
}

static void trunc_ready(struct read_wait *rwait, int rc)
{
	struct trunc *trunc = rwait->owner;

	if (trunc->txn) {
		trunc->rc = rc ? -EIO : 0;
		fs_txn_restart(trunc->txn);
	} else if (rc) {
		trunc_over(trunc, -EIO);
	} else {
		trunc_step(trunc);
	}
}

static void trunc_start(struct excl_lock *excl, int rc)
{
	struct trunc *trunc = container_of(excl, struct trunc, excl);

	trunc->waited = false;
	if (!trunc->cuts && trunc->kind != TRUNC_RESERVE) {
		trunc->cuts = true;
		trunc->fs->files->cutting++;
	}
	content_changes(trunc->file, trunc->kind == TRUNC_DELETE);
	if (trunc->kind == TRUNC_DELETE) {
		trunc_drop_blocks(trunc->file, 0, FOREVER / BLOCK_SECTORS);
		loss_free(trunc->file);
		admission_end(trunc->fs->files, trunc->file->ino);
		rc = 0;
	}
	if (rc)
		trunc_over(trunc, rc);
	else
		trunc_step(trunc);
}

/* ---- An INLINE item has to become an extent first ---- */

static void trunc_again(struct shared_lock *lock);

static void trunc_placed(struct sync *sync, int rc)
{
	struct trunc *trunc = sync->owner;

	if (rc)
		trunc_over(trunc, rc);
	else
		trunc_again(&trunc->lock);
}

static void trunc_unpack_ready(struct read_wait *rwait, int rc)
{
	struct trunc *trunc = rwait->owner;

	if (!rc)
		rc = write_zero(trunc->file, rwait, 0, 0, 0);
	read_wait_end(rwait);
	if (rc) {
		trunc_over(trunc, rc == -EAGAIN ? -ENOMEM : rc);
		return;
	}
	trunc->file->no_inline = true;
	trunc->rwait.ready = trunc_ready;
	sync_start(trunc->fs->files, &trunc->sync);
}

static bool trunc_needs_extents(const struct trunc *trunc)
{
	return trunc->kind == TRUNC_RESERVE || trunc->then_reserve ||
	       (trunc->kind == TRUNC_SIZE &&
		trunc->size > TRAX_MAX_INLINE_BYTES);
}

/* Goes on when the blocks are written: until then they must not become an
 * INLINE item. */
static void trunc_again(struct shared_lock *lock)
{
	struct trunc *trunc = container_of(lock, struct trunc, lock);
	int rc = file_lock_shared(trunc->file, lock);

	if (rc == FS_TXN_WAIT)
		return;
	if (rc) {
		trunc_over(trunc, rc);
		return;
	}
	if (trunc_needs_extents(trunc))
		trunc->file->no_inline = true;
	if (!trunc->file->has_inline || !trunc_needs_extents(trunc)) {
		file_lock_excl(&trunc->excl);
		return;
	}
	if (trunc->waited) {
		/* the blocks could not be placed */
		trunc_over(trunc, -EIO);
		return;
	}
	trunc->waited = true;
	trunc->rwait.first = 0;
	trunc->rwait.n = 1;
	trunc->rwait.ready = trunc_unpack_ready;
	rc = read_wait_start(&trunc->rwait);
	if (rc != -EINPROGRESS)
		trunc_unpack_ready(&trunc->rwait, rc);
}

static struct trunc *trunc_new(struct fs *fs, uint64_t ino,
			       enum trunc_kind kind, struct fs_op *op)
{
	struct trunc *trunc = abandon_alloc(fs, sizeof(*trunc));
	struct file *file = trunc ? file_get(fs, ino) : NULL;

	if (!file) {
		abandon_free(trunc);
		return NULL;
	}
	trunc->fs = fs;
	trunc->op = op;
	trunc->file = file;
	trunc->kind = kind;
	trunc->excl.file = file;
	trunc->excl.start = trunc_start;
	trunc->lock.granted = trunc_again;
	trunc->rwait.file = file;
	trunc->rwait.ready = trunc_ready;
	trunc->rwait.owner = trunc;
	trunc->sync.file = file;
	trunc->sync.done = trunc_placed;
	trunc->sync.owner = trunc;
	list_init(&trunc->excl.link);
	list_init(&trunc->lock.link);
	list_init(&trunc->rwait.link);
	return trunc;
}

/* ---- Operations ---- */

void file_set_size(struct fs *fs, struct fs_op *op)
{
	struct trunc *trunc;

	if (op->attr.size > INT64_MAX) {
		fs_answer(fs, op, -EFBIG);
		return;
	}
	trunc = trunc_new(fs, op->ino, TRUNC_SIZE, op);
	if (!trunc) {
		fs_answer(fs, op, -ENOMEM);
		return;
	}
	trunc->size = op->attr.size;
	trunc->first = (trunc->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	trunc_again(&trunc->lock);
}

void file_fallocate(struct fs *fs, struct fs_op *op)
{
	const uint32_t known = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE |
			       FALLOC_FL_ZERO_RANGE;
	bool punch = op->flags & FALLOC_FL_PUNCH_HOLE;
	bool zero = op->flags & FALLOC_FL_ZERO_RANGE;
	uint32_t mode = op->flags & ~FS_SET_KILL_PRIV;
	struct trunc *trunc = NULL;
	int rc = 0;

	if (mode & ~known || (punch && zero) ||
	    (punch && !(mode & FALLOC_FL_KEEP_SIZE)))
		rc = -EOPNOTSUPP;
	else if (!op->size)
		rc = -EINVAL;
	else if (op->offset > INT64_MAX || op->size > INT64_MAX - op->offset)
		rc = -EFBIG;
	if (!rc) {
		trunc = trunc_new(fs, op->ino, punch || zero ? TRUNC_PUNCH :
			      TRUNC_RESERVE, op);
		rc = trunc ? 0 : -ENOMEM;
	}
	if (rc) {
		fs_answer(fs, op, rc);
		return;
	}
	trunc->keep_size = mode & FALLOC_FL_KEEP_SIZE;
	trunc->then_reserve = zero;
	trunc->first = op->offset / BLOCK_BYTES;
	trunc->end = (op->offset + op->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	if (trunc->kind == TRUNC_PUNCH) {
		trunc->first = (op->offset + BLOCK_BYTES - 1) / BLOCK_BYTES;
		trunc->end = (op->offset + op->size) / BLOCK_BYTES;
		trunc->dropped = trunc->first;
	}
	trunc_again(&trunc->lock);
}

void file_delete(struct fs *fs, uint64_t ino,
		 void (*done)(struct fs *fs, uint64_t ino))
{
	struct trunc *trunc = trunc_new(fs, ino, TRUNC_DELETE, NULL);

	if (!trunc) {
		/* no memory: the next mount finds its ORPHAN item */
		done(fs, ino);
		return;
	}
	trunc->done = done;
	trunc->file->dead = true;
	file_lock_excl(&trunc->excl);
}

void file_resume_truncate(struct fs *fs, uint64_t ino, uint64_t size)
{
	struct trunc *trunc = trunc_new(fs, ino, TRUNC_SIZE, NULL);

	if (!trunc)
		return;
	trunc->size = size;
	trunc->begun = true;
	trunc->first = (size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	file_lock_excl(&trunc->excl);
}
