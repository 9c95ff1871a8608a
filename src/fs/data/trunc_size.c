/*
 * trunc_size.c - the transaction that sets the size of a file, with the block
 * that the new end cuts.
 */
#include "fs/data/trunc_internal.h"

#include <errno.h>
#include <linux/falloc.h>

#include "fs/data/bmap.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/data/write_order.h"
#include "fs/name/inode.h"

/* ---- Sums ---- */

int trunc_items(struct fs_txn *txn, struct trunc *trunc, struct key from,
		struct key last, bool apply)
{
	struct tree_item item;
	int rc = tree_seek_ge(txn->tree_txn, from, last, &item);
	int err;

	if (rc == -ENOENT)
		return 0;
	err = tree_get(txn->tree_txn, last, &item);
	if (!rc && err && err != -ENOENT)
		rc = err;
	if (rc || !apply)
		return rc;
	if (key_cmp(tree_del_range(txn->tree_txn, from, last, DROP_NODES),
		    last) <= 0)
		trunc->more = true;
	return 0;
}

int trunc_windows(struct fs_txn *txn, struct trunc *trunc,
		  uint64_t window, uint64_t end_window, bool apply)
{
	uint64_t ino = trunc->file->ino;

	return trunc_items(txn, trunc,
			   key_make(ino, ITEM_CSUM,
				    window * TRAX_CSUM_WINDOW_BLOCKS),
			   key_make(ino, ITEM_CSUM,
				    end_window * TRAX_CSUM_WINDOW_BLOCKS - 1),
			   apply);
}

static struct bmap_sums trunc_clear(uint64_t first, uint64_t end)
{
	uint64_t stop = (first / TRAX_CSUM_WINDOW_BLOCKS + 1) *
			TRAX_CSUM_WINDOW_BLOCKS;

	return (struct bmap_sums){
		.first = first,
		.n = (unsigned)((stop < end ? stop : end) - first),
	};
}

int trunc_sums(struct fs_txn *txn, struct trunc *trunc, uint64_t first,
	     uint64_t end, bool apply)
{
	const uint64_t size = TRAX_CSUM_WINDOW_BLOCKS;
	uint64_t whole = (first + size - 1) / size, last = end / size;
	struct bmap_sums sums = trunc_clear(first, end);
	int rc = 0, err = 0;

	if (first % size || end / size == first / size) {
		if (apply)
			bmap_sums_apply(txn, trunc->file, &sums);
		else
			rc = bmap_sums_probe(txn, trunc->file->ino, &sums);
	}
	if (rc && rc != -EAGAIN)
		return rc;
	if (last > whole)
		err = trunc_windows(txn, trunc, whole, last, apply);
	rc = err ? err : rc;
	if ((rc && rc != -EAGAIN) || end % size == 0 || last < whole)
		return rc;
	sums = trunc_clear(last * size, end);
	if (apply)
		bmap_sums_apply(txn, trunc->file, &sums);
	else
		err = bmap_sums_probe(txn, trunc->file->ino, &sums);
	return err ? err : rc;
}

/* ---- The size ---- */

/* Has the last block, as it is in memory, to be logged? */
static int trunc_tail(struct fs_txn *txn, struct trunc *trunc, bool *logs)
{
	uint64_t index = trunc->size / BLOCK_BYTES;
	struct block *block = block_find(trunc->file, index);
	struct extent extent;
	int rc;

	*logs = false;
	if (trunc->begun || trunc->size % BLOCK_BYTES == 0 || !block ||
	    !block->dirty)
		return 0;
	rc = bmap_extent(txn, trunc->file->ino, index * BLOCK_SECTORS, &extent);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	*logs = extent.off <= index * BLOCK_SECTORS &&
		!(extent.flags & EXTENT_UNWRITTEN);
	return 0;
}

static uint32_t tail_sum(void *arg, unsigned i)
{
	struct trunc *trunc = arg;

	(void)i;
	return csum_block(block_find(trunc->file,
				     trunc->size / BLOCK_BYTES)->data);
}

static struct bmap_sums tail_sums(struct trunc *trunc)
{
	return (struct bmap_sums){
		.first = trunc->size / BLOCK_BYTES, .n = 1, .sum = tail_sum,
		.arg = trunc,
	};
}

static void trunc_log_tail(struct fs_txn *txn, struct trunc *trunc)
{
	uint64_t index = trunc->size / BLOCK_BYTES;
	struct block *block = block_find(trunc->file, index);
	struct iovec iov = { block->data, BLOCK_BYTES };
	struct bmap_sums sums = tail_sums(trunc);
	uint64_t sum = csum(block->data, BLOCK_BYTES);

	bmap_sums_apply(txn, trunc->file, &sums);
	tree_log_data(txn->tree_txn, trunc->file->ino, index, 1, &sum, &iov, 1);
	trunc->logged = true;
}

/* Prepares the INLINE item for the new size: 0 = there is none, 1 = to be put,
 * or an error. */
static int trunc_inline(struct fs_txn *txn, struct trunc *trunc, uint8_t *data)
{
	struct block *block = block_find(trunc->file, 0);
	struct tree_item item;
	size_t n;
	int rc;

	rc = tree_get(txn->tree_txn, key_make(trunc->file->ino, ITEM_INLINE, 0),
		      &item);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	n = item.bytes < trunc->size ? item.bytes : trunc->size;
	memset(data, 0, TRAX_MAX_INLINE_BYTES);
	/* A newer block in memory has been cut already. */
	if (block)
		memcpy(data, block->data, TRAX_MAX_INLINE_BYTES);
	else
		memcpy(data, item.value, n);
	return 1;
}

static void trunc_put_inline(struct fs_txn *txn, struct trunc *trunc,
			   const uint8_t *data)
{
	struct key key = key_make(trunc->file->ino, ITEM_INLINE, 0);

	if (trunc->size && trunc->size <= TRAX_MAX_INLINE_BYTES)
		tree_put(txn->tree_txn, key, data, trunc->size);
	else
		tree_del(txn->tree_txn, key);
}

/* Looks up the ORPHAN_TRUNCATE item: 1 = there, 0 = not there; that of a
 * deleted inode is left alone (-EEXIST). */
static int trunc_orphan(struct fs_txn *txn, const struct trunc *trunc)
{
	struct tree_item item;
	const struct orphan_item *orphan;
	int rc;

	rc = tree_get(txn->tree_txn, key_make(0, ITEM_ORPHAN, trunc->file->ino),
		      &item);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	orphan = item.value;
	return orphan->what == ORPHAN_DELETE ? -EEXIST : 1;
}

static void trunc_put_orphan(struct fs_txn *txn, const struct trunc *trunc,
			   int orphan)
{
	struct key key = key_make(0, ITEM_ORPHAN, trunc->file->ino);
	struct orphan_item item = {
		.what = ORPHAN_TRUNCATE, .size = le64_put(trunc->size),
	};

	if (orphan == -EEXIST)
		return;
	if (trunc->more)
		tree_put(txn->tree_txn, key, &item, sizeof(item));
	else if (orphan)
		tree_del(txn->tree_txn, key);
}

int trunc_attr(struct fs_txn *txn, struct trunc *trunc,
	     struct inode_item *item)
{
	struct fs_op *op = trunc->op;
	int rc;

	if (trunc->begun || !op)
		return 0;
	if (op->flags & FS_SET_KILL_PRIV) {
		rc = inode_kill_priv(txn, op, trunc->file->ino, item);
		if (rc)
			return rc;
	}
	if (op->type != FS_FALLOCATE)
		inode_apply_attr(trunc->fs, op, item);
	return 0;
}

int trunc_size_run(struct fs_txn *txn)
{
	struct trunc *trunc = txn->state;
	struct bmap_sums sums = tail_sums(trunc);
	uint8_t data[TRAX_MAX_INLINE_BYTES];
	uint64_t keep = trunc->first * BLOCK_SECTORS;
	struct extent beyond;
	struct inode_item item;
	struct bmap_plan plan;
	int rc[6], i, orphan, is_inline;
	bool logs, miss = false;

	trunc->txn = txn;
	if (trunc->rc)
		return trunc->rc;
	trunc->more = trunc->logged = false;
	orphan = trunc_orphan(txn, trunc);
	is_inline = trunc_inline(txn, trunc, data);
	rc[0] = orphan < 0 && orphan != -EEXIST ? orphan : 0;
	rc[1] = is_inline < 0 ? is_inline : 0;
	rc[2] = inode_get(txn, trunc->file->ino, &item);
	rc[3] = bmap_probe(txn, trunc->file->ino, keep, FOREVER - keep, NULL, 0,
			  &plan);
	rc[4] = trunc_tail(txn, trunc, &logs);
	rc[5] = 0;
	for (i = 0; i < 5; i++) {
		if (rc[i] && rc[i] != -EAGAIN)
			return rc[i];
		miss |= rc[i] == -EAGAIN;
	}
	if (!miss && logs)
		rc[5] = bmap_sums_probe(txn, trunc->file->ino, &sums);
	if (!miss && !rc[5])
		rc[5] = trunc_sums(txn, trunc, trunc->first,
				 FOREVER / BLOCK_SECTORS, false);
	if (miss || rc[5])
		return miss ? -EAGAIN : rc[5];
	if (plan.n < FOREVER - keep) {
		rc[5] = bmap_extent(txn, trunc->file->ino,
				   plan.off + plan.n, &beyond);
		if (rc[5] && rc[5] != -ENOENT)
			return rc[5];
		trunc->more = rc[5] == 0;
	}
	rc[5] = trunc_attr(txn, trunc, &item);
	if (rc[5])
		return rc[5];
	bmap_apply(txn, trunc->file->ino, &plan, &item);
	if (logs)
		trunc_log_tail(txn, trunc);
	trunc_sums(txn, trunc, trunc->first, FOREVER / BLOCK_SECTORS, true);
	if (is_inline > 0)
		trunc_put_inline(txn, trunc, data);
	if (!trunc->begun)
		item.size = le64_put(trunc->size);
	if (!trunc->size)
		item.flags = le32_put(le32_get(item.flags) &
				      ~(uint32_t)INODE_DATA_LOST);
	trunc_put_orphan(txn, trunc, orphan);
	inode_put(txn, trunc->file->ino, &item);
	if (trunc->op)
		inode_attr(trunc->fs, trunc->file->ino, &item,
			   &trunc->op->attr);
	return 0;
}

void trunc_size_took(struct trunc *trunc, uint64_t seq)
{
	struct file *file = trunc->file;
	struct block *block;

	if (trunc->logged) {
		block = block_find(file, trunc->size / BLOCK_BYTES);
		trunc->pin->seq = seq;
		list_add(&file->files->log_pins, &trunc->pin->link);
		log_pin_set(file, block, trunc->pin);
		trunc->pin = NULL;
		block_clean(file, block);
		block_unreserve(file, block);
	}
	if (trunc->begun) {
		/* A cache chunk may have been read that lies across the end. */
		chunks_changed(file, trunc->first,
			       FOREVER / BLOCK_SECTORS - trunc->first);
		return;
	}
	trunc->begun = true;
	trunc_drop_blocks(file, trunc->first, FOREVER / BLOCK_SECTORS);
	if (trunc->size < file->size && !trunc->size)
		order_cut(file);
	if (!trunc->size)
		file->lost = false;
	if (file->has_inline && (!trunc->size ||
				 trunc->size > TRAX_MAX_INLINE_BYTES))
		file->has_inline = false;
	if (file->has_inline)
		chunks_changed(file, 0, 1);
	file->size = trunc->size;
	file->run_first = file->run_end = 0;
	if (trunc->op)
		trunc->op->attr.size = file->size;
	trunc_answer(trunc, 0);
	if (trunc->more)
		file_let_read(&trunc->excl);
}
