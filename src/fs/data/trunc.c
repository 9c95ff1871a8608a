/*
 * trunc.c - what takes from the mapping of a file: set the size, punch, zero,
 * preallocate, delete.  In steps of one transaction each.
 *
 *   exclusive -> edges in memory -> [ transaction ]+ -> over
 *
 * 1. These are exclusive operations: no job is under way, and readers and
 *    writers wait.
 * 2. The first transaction of a truncation makes the new size true, with the
 *    rest of the last block zeroed (logged); while extents or sums behind the
 *    end remain, an ORPHAN item says so.  A step takes what is first behind the
 *    end, so going on after a crash needs no more than the size.
 * 3. Punching takes extents and sums of the same blocks in one transaction.
 * 4. A deleted inode goes last of all that belongs to it.
 * 5. Copies of what is cut go before, in transactions of their own; until the
 *    end nobody attaches others.
 */
#include "fs/data/failure.h"
#include "fs/replica/replica.h"

#include <assert.h>
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>

#include "base/csum.h"

#define FOREVER (1ull << 60)		/* sectors: behind any file */
#define PUNCH_BLOCKS 8192u		/* in one transaction */
#define RESERVE_BLOCKS 16384u		/* preallocated by one transaction */
#define DROP_NODES 24u
#define CUT_LOG_BYTES (48u << 10)

enum cut_kind { CUT_SIZE, CUT_DELETE, CUT_PUNCH, CUT_RESERVE };

#define EDGES 2u

/* A block as it was before a part of it was zeroed. */
struct edge {
	uint64_t index;
	void *data;		/* a reference; NULL: it was not in memory */
	bool dirty;
};

struct cut {
	struct excl excl;
	struct gated gated;
	struct sync sync;
	struct need need;	/* an edge, or a piece with one sum */
	struct fs *fs;
	struct fs_op *op;	/* NULL once answered, or none */
	struct file *file;
	struct ticket *ticket;
	enum cut_kind kind;
	uint64_t size;		/* CUT_SIZE: new size */
	uint64_t first, end;	/* blocks */
	uint64_t dropped;	/* CUT_PUNCH: up to here, in memory */
	unsigned edge;		/* edges done */
	struct edge old[EDGES];
	unsigned old_n;
	bool cleared;		/* no copies of what goes are left */
	bool begun;		/* the first transaction is over */
	bool more;		/* another step is needed */
	bool then_reserve;	/* ZERO_RANGE: preallocate afterwards */
	bool keep_size;
	bool logged;		/* this transaction logged the last block */
	int rc;
	struct hold *hold;
	struct alloc_piece piece[JOB_PIECES];
	int pieces;		/* taken, not owned yet */
	bool waited;
	uint64_t want;		/* blocks to ask for */
	void (*done)(struct fs *fs, uint64_t ino);	/* CUT_DELETE */
};

static void cut_step(struct cut *cut);

static void cut_answer(struct cut *cut, int rc)
{
	struct fs_op *op = cut->op;

	cut->op = NULL;
	if (op)
		fs_answer(cut->fs, op, rc);
}

/* The edges are kept; or, when nothing has been cut, put back: nobody else has
 * changed them meanwhile. */
static void cut_edges_over(struct cut *cut, bool put_back)
{
	struct file *file = cut->file;
	struct pool *pool = cut->fs->files->dirty_pool;
	struct edge *edge;
	struct block *block;

	for (edge = cut->old; edge < cut->old + cut->old_n; edge++) {
		block = put_back ? block_find(file, edge->index) : NULL;
		if (block && edge->data) {
			pool_put(pool, block->data);
			block->data = pool_share(pool, edge->data);
			if (!edge->dirty)
				block_clean(file, block);
		} else if (block) {
			block_drop(file, block);
		}
		if (edge->data)
			pool_put(pool, edge->data);
	}
	cut->old_n = 0;
}

static void cut_over(struct cut *cut, int rc)
{
	struct space *space = tree_space(cut->fs->tree);
	struct file *file = cut->file;
	struct fs *fs = cut->fs;
	void (*done)(struct fs *fs, uint64_t ino) = cut->done;
	uint64_t ino = file->ino;

	need_end(&cut->need);
	cut_edges_over(cut, rc && !cut->begun);
	while (cut->pieces > 0) {
		cut->pieces--;
		space_give_back(space, cut->piece[cut->pieces].sector,
				cut->piece[cut->pieces].n);
	}
	files_release(cut->hold);
	cut_answer(cut, rc);
	if (cut->excl.active)
		file_exclusive_end(&cut->excl);
	files_release(cut);
	file->dead = false;
	file_put(file);
	if (done)
		done(fs, ino);
}

/* ---- Memory ---- */

/* Blocks [first, end) are no more. */
static void cut_drop_blocks(struct file *file, uint64_t first, uint64_t end)
{
	struct block *block = block_at_or_after(file, first), *next;

	for (; block && block->index < end; block = next) {
		next = block->next;
		block_drop(file, block);
	}
	pieces_changed(file, first, end - first);
	if (file->tail_off > first * BLOCK_SECTORS)
		file->tail_addr = 0;
}

/* A block is wanted in memory: 0, -EINPROGRESS or an error. */
static int cut_need(struct cut *cut, uint64_t index)
{
	cut->need.first = index;
	cut->need.n = 1;
	cut->need.tree = false;
	if (need_ok(&cut->need))
		return 0;
	need_end(&cut->need);
	return need_start(&cut->need);
}

static bool all_zero(const uint8_t *data, unsigned n)
{
	return n == 0 || (data[0] == 0 && !memcmp(data, data + 1, n - 1));
}

/* Zeroes [from, to) of a block; what it was before is kept. */
static int edge_zero(struct cut *cut, uint64_t index, unsigned from,
		     unsigned to)
{
	struct pool *pool = cut->fs->files->dirty_pool;
	struct block *block = block_find(cut->file, index);
	struct edge *edge = &cut->old[cut->old_n];
	int rc;

	assert(cut->old_n < EDGES);
	*edge = (struct edge){
		.index = index,
		.data = block ? pool_share(pool, block->data) : NULL,
		.dirty = block && block->dirty,
	};
	rc = write_zero(cut->file, &cut->need, index, from, to);
	if (!rc)
		cut->old_n++;
	else if (edge->data)
		pool_put(pool, edge->data);
	return rc;
}

/* Zeroes [from, to) of a block, unless it is behind the end or zero. */
static int cut_zero(struct cut *cut, uint64_t index, unsigned from, unsigned to)
{
	const uint8_t *data;
	int rc;

	if (index * BLOCK_BYTES >= cut->file->size)
		return 0;
	rc = cut_need(cut, index);
	if (rc)
		return rc;
	data = need_block(&cut->need, index);
	if (!all_zero(data + from, to - from))
		rc = edge_zero(cut, index, from, to);
	need_end(&cut->need);
	return rc == -EAGAIN ? -ENOMEM : rc;
}

/* Before the first transaction: blocks of which only a part goes. */
static int cut_edges(struct cut *cut)
{
	uint64_t from = cut->op ? cut->op->offset : 0, to;
	struct file *file = cut->file;
	int rc = 0;

	if (cut->kind == CUT_SIZE) {
		if (cut->size % BLOCK_BYTES && cut->size < file->size &&
		    (!file->has_inline ||
		     block_find(file, cut->size / BLOCK_BYTES)))
			rc = cut_zero(cut, cut->size / BLOCK_BYTES,
				      cut->size % BLOCK_BYTES, BLOCK_BYTES);
		return rc;
	}
	if (cut->kind != CUT_PUNCH)
		return 0;
	/* What is inline has no extent that could go. */
	if (file->has_inline && cut->first == 0 && cut->end > 0) {
		rc = cut_zero(cut, 0, 0, BLOCK_BYTES);
		if (rc)
			return rc;
		cut->first = cut->dropped = 1;
	}
	to = from + cut->op->size;
	if (from / BLOCK_BYTES == to / BLOCK_BYTES)
		return cut_zero(cut, to / BLOCK_BYTES, from % BLOCK_BYTES,
				to % BLOCK_BYTES);
	if (cut->edge == 0) {
		if (from % BLOCK_BYTES)
			rc = cut_zero(cut, from / BLOCK_BYTES,
				      from % BLOCK_BYTES, BLOCK_BYTES);
		cut->edge = rc ? 0 : 1;
	}
	if (cut->edge == 1 && !rc) {
		if (to % BLOCK_BYTES)
			rc = cut_zero(cut, to / BLOCK_BYTES, 0,
				      to % BLOCK_BYTES);
		cut->edge = rc ? 1 : 2;
	}
	return rc;
}

/* ---- Sums ---- */

/* Drops the sums of whole windows behind `window`; sets more. */
static int cut_windows(struct ticket *ticket, struct cut *cut, uint64_t window,
		       uint64_t end_window, bool apply)
{
	struct key from = key_make(cut->file->ino, ITEM_CSUM,
				   window * TRAX_CSUM_WINDOW_BLOCKS);
	struct key last = key_make(cut->file->ino, ITEM_CSUM,
				   end_window * TRAX_CSUM_WINDOW_BLOCKS - 1);
	struct tree_item item;
	struct key next;
	int rc, err;

	rc = tree_seek_ge(ticket->txn, from, last, &item);
	err = tree_get(ticket->txn, last, &item);
	if (rc == -ENOENT)
		return 0;
	if (!rc && err && err != -ENOENT)
		rc = err;
	if (rc || !apply)
		return rc;
	next = tree_del_range(ticket->txn, from, last, DROP_NODES);
	if (key_cmp(next, last) <= 0)
		cut->more = true;
	return 0;
}

static struct map_sums cut_clear(uint64_t first, uint64_t end)
{
	uint64_t stop = (first / TRAX_CSUM_WINDOW_BLOCKS + 1) *
			TRAX_CSUM_WINDOW_BLOCKS;

	return (struct map_sums){
		.first = first,
		.n = (unsigned)((stop < end ? stop : end) - first),
	};
}

/*
 * The sums of [first, end) go: of the first window, of whole ones, of the last.
 * Called to probe, then to apply.
 */
static int cut_sums(struct ticket *ticket, struct cut *cut, uint64_t first,
		    uint64_t end, bool apply)
{
	const uint64_t size = TRAX_CSUM_WINDOW_BLOCKS;
	uint64_t whole = (first + size - 1) / size, last = end / size;
	struct map_sums sums = cut_clear(first, end);
	int rc = 0, err = 0;

	if (first % size || end / size == first / size) {
		if (apply)
			map_sums_apply(ticket, cut->file, &sums);
		else
			rc = map_sums_probe(ticket, cut->file, &sums,
					    &cut->need);
	}
	if (rc && rc != -EAGAIN)
		return rc;
	if (last > whole)
		err = cut_windows(ticket, cut, whole, last, apply);
	rc = err ? err : rc;
	if ((rc && rc != -EAGAIN) || end % size == 0 || last < whole)
		return rc;
	sums = cut_clear(last * size, end);
	if (apply)
		map_sums_apply(ticket, cut->file, &sums);
	else
		err = map_sums_probe(ticket, cut->file, &sums, &cut->need);
	return err ? err : rc;
}

/* ---- The size ---- */

/* Has the last block, as it is in memory, to be logged? */
static int cut_tail(struct ticket *ticket, struct cut *cut, bool *logs)
{
	uint64_t index = cut->size / BLOCK_BYTES;
	struct block *block = block_find(cut->file, index);
	struct extent extent;
	int rc;

	*logs = false;
	if (cut->begun || cut->size % BLOCK_BYTES == 0 || !block ||
	    !block->dirty)
		return 0;
	rc = map_extent(ticket, cut->file->ino, index * BLOCK_SECTORS, &extent);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	*logs = extent.off <= index * BLOCK_SECTORS &&
		!(extent.flags & EXTENT_UNWRITTEN);
	return 0;
}

static uint64_t tail_sum(void *arg, unsigned i)
{
	struct cut *cut = arg;

	(void)i;
	return csum(block_find(cut->file, cut->size / BLOCK_BYTES)->data,
		    BLOCK_BYTES);
}

static struct map_sums tail_sums(struct cut *cut)
{
	return (struct map_sums){
		.first = cut->size / BLOCK_BYTES, .n = 1, .fine = tail_sum,
		.arg = cut,
	};
}

static void cut_log_tail(struct ticket *ticket, struct cut *cut)
{
	uint64_t index = cut->size / BLOCK_BYTES;
	struct block *block = block_find(cut->file, index);
	struct iovec iov = { block->data, BLOCK_BYTES };
	struct map_sums sums = tail_sums(cut);
	uint64_t sum = tail_sum(cut, 0);

	map_sums_apply(ticket, cut->file, &sums);
	tree_log_data(ticket->txn, cut->file->ino, index, 1, &sum, &iov, 1);
	cut->logged = true;
}

/* The INLINE item follows the size: 0 = none, 1 = to be put, or an error. */
static int cut_inline(struct ticket *ticket, struct cut *cut, uint8_t *data)
{
	struct block *block = block_find(cut->file, 0);
	struct tree_item item;
	size_t n;
	int rc;

	rc = tree_get(ticket->txn, key_make(cut->file->ino, ITEM_INLINE, 0),
		      &item);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	n = item.bytes < cut->size ? item.bytes : cut->size;
	memset(data, 0, TRAX_MAX_INLINE_BYTES);
	/* What is newer in memory has been cut already. */
	if (block)
		memcpy(data, block->data, TRAX_MAX_INLINE_BYTES);
	else
		memcpy(data, item.value, n);
	return 1;
}

static void cut_put_inline(struct ticket *ticket, struct cut *cut,
			   const uint8_t *data)
{
	struct key key = key_make(cut->file->ino, ITEM_INLINE, 0);

	if (cut->size && cut->size <= TRAX_MAX_INLINE_BYTES)
		tree_put(ticket->txn, key, data, cut->size);
	else
		tree_del(ticket->txn, key);
}

/* The note that there is more to do: 1 = there, 0 = not there; a deleted
 * inode's is left alone (-EEXIST). */
static int cut_orphan(struct ticket *ticket, const struct cut *cut)
{
	struct tree_item item;
	const struct orphan_item *orphan;
	int rc;

	rc = tree_get(ticket->txn, key_make(0, ITEM_ORPHAN, cut->file->ino),
		      &item);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	orphan = item.value;
	return orphan->what == ORPHAN_DELETE ? -EEXIST : 1;
}

static void cut_put_orphan(struct ticket *ticket, const struct cut *cut,
			   int orphan)
{
	struct key key = key_make(0, ITEM_ORPHAN, cut->file->ino);
	struct orphan_item item = {
		.what = ORPHAN_TRUNCATE, .size = le64_put(cut->size),
	};

	if (orphan == -EEXIST)
		return;
	if (cut->more)
		tree_put(ticket->txn, key, &item, sizeof(item));
	else if (orphan)
		tree_del(ticket->txn, key);
}

/* What the first transaction does besides: attributes. */
static int cut_attr(struct ticket *ticket, struct cut *cut,
		    struct inode_item *item)
{
	struct fs_op *op = cut->op;
	int rc;

	if (cut->begun || !op)
		return 0;
	if (op->flags & FS_SET_KILL_PRIV) {
		rc = inode_kill_priv(ticket, op, cut->file->ino, item);
		if (rc)
			return rc;
	}
	if (op->type != FS_FALLOCATE)
		inode_apply_attr(cut->fs, op, item);
	return 0;
}

static int size_run(struct ticket *ticket)
{
	struct cut *cut = ticket->state;
	struct map_sums sums = tail_sums(cut);
	uint8_t data[TRAX_MAX_INLINE_BYTES];
	uint64_t keep = cut->first * BLOCK_SECTORS;
	struct extent beyond;
	struct inode_item item;
	struct map_plan plan;
	int rc[6], i, orphan, is_inline;
	bool logs, miss = false;

	cut->ticket = ticket;
	if (cut->rc)
		return cut->rc;
	cut->more = cut->logged = false;
	orphan = cut_orphan(ticket, cut);
	is_inline = cut_inline(ticket, cut, data);
	rc[0] = orphan < 0 && orphan != -EEXIST ? orphan : 0;
	rc[1] = is_inline < 0 ? is_inline : 0;
	rc[2] = inode_get(ticket, cut->file->ino, &item);
	rc[3] = map_probe(ticket, cut->file->ino, keep, FOREVER - keep, NULL, 0,
			  &plan);
	rc[4] = cut_tail(ticket, cut, &logs);
	rc[5] = 0;
	for (i = 0; i < 5; i++) {
		if (rc[i] && rc[i] != -EAGAIN)
			return rc[i];
		miss |= rc[i] == -EAGAIN;
	}
	if (!miss && logs)
		rc[5] = map_sums_probe(ticket, cut->file, &sums, &cut->need);
	if (!miss && !rc[5])
		rc[5] = cut_sums(ticket, cut, cut->first,
				 FOREVER / BLOCK_SECTORS, false);
	if (miss || rc[5])
		return miss ? -EAGAIN : rc[5];
	if (plan.n < FOREVER - keep) {
		rc[5] = map_extent(ticket, cut->file->ino,
				   plan.off + plan.n, &beyond);
		if (rc[5] && rc[5] != -ENOENT)
			return rc[5];
		cut->more = rc[5] == 0;
	}
	rc[5] = cut_attr(ticket, cut, &item);
	if (rc[5])
		return rc[5];
	map_apply(ticket, cut->file->ino, &plan, &item);
	if (logs)
		cut_log_tail(ticket, cut);
	cut_sums(ticket, cut, cut->first, FOREVER / BLOCK_SECTORS, true);
	if (is_inline > 0)
		cut_put_inline(ticket, cut, data);
	if (!cut->begun)
		item.size = le64_put(cut->size);
	if (!cut->size)
		item.flags = le32_put(le32_get(item.flags) &
				      ~(uint32_t)INODE_DATA_LOST);
	cut_put_orphan(ticket, cut, orphan);
	inode_put(ticket, cut->file->ino, &item);
	if (cut->op)
		inode_attr(cut->fs, cut->file->ino, &item, &cut->op->attr);
	return 0;
}

/* The transaction is over: memory follows. */
static void size_took(struct cut *cut, uint64_t seq)
{
	struct file *file = cut->file;
	struct block *block;

	if (cut->logged) {
		block = block_find(file, cut->size / BLOCK_BYTES);
		cut->hold->seq = seq;
		list_add(&file->files->holds, &cut->hold->link);
		hold_set(file, block, cut->hold);
		cut->hold = NULL;
		block_clean(file, block);
		block_unreserve(file, block);
	}
	if (cut->begun)
		return;
	cut->begun = true;
	cut_drop_blocks(file, cut->first, FOREVER / BLOCK_SECTORS);
	if (cut->size < file->size && !cut->size)
		order_cut(file);
	if (!cut->size)
		file->lost = false;
	if (file->has_inline && (!cut->size ||
				 cut->size > TRAX_MAX_INLINE_BYTES))
		file->has_inline = false;
	if (file->has_inline)
		pieces_changed(file, 0, 1);
	file->size = cut->size;
	file->run_first = file->run_end = 0;
	if (cut->op)
		cut->op->attr.size = file->size;
	cut_answer(cut, 0);
}

/* ---- Punch ---- */

/* Skips to the next extent; false: none in the range. */
static int punch_skip(struct ticket *ticket, struct cut *cut)
{
	struct extent extent;
	uint64_t block;
	int rc = map_extent(ticket, cut->file->ino, cut->first * BLOCK_SECTORS,
			    &extent);

	if (rc == -ENOENT) {
		cut->first = cut->end;
		return 0;
	}
	if (rc)
		return rc;
	block = extent.off / BLOCK_SECTORS;
	if (block > cut->first)
		cut->first = block < cut->end ? block : cut->end;
	return 0;
}

static int punch_run(struct ticket *ticket)
{
	struct cut *cut = ticket->state;
	struct inode_item item;
	struct map_plan plan;
	uint64_t end;
	int rc, err;

	cut->ticket = ticket;
	if (cut->rc)
		return cut->rc;
	rc = inode_get(ticket, cut->file->ino, &item);
	err = cut->first < cut->end ? punch_skip(ticket, cut) : 0;
	rc = err && err != -EAGAIN ? err : rc ? rc : err;
	if (rc)
		return rc;
	plan.n = 0;
	end = cut->end < cut->first + PUNCH_BLOCKS ?
	      cut->end : cut->first + PUNCH_BLOCKS;
	if (cut->first < end) {
		rc = map_probe(ticket, cut->file->ino,
			       cut->first * BLOCK_SECTORS,
			       (end - cut->first) * BLOCK_SECTORS, NULL, 0,
			       &plan);
		if (rc)
			return rc;
		end = cut->first + plan.n / BLOCK_SECTORS;
		rc = cut_sums(ticket, cut, cut->first, end, false);
		if (rc)
			return rc;
	}
	rc = cut_attr(ticket, cut, &item);
	if (rc)
		return rc;
	/* A dirty block that would have told the size may have been dropped. */
	if (cut->file->size > le64_get(item.size))
		item.size = le64_put(cut->file->size);
	cut->more = false;
	if (plan.n) {
		map_apply(ticket, cut->file->ino, &plan, &item);
		cut_sums(ticket, cut, cut->first, end, true);
	}
	if (plan.n || !cut->begun)
		inode_put(ticket, cut->file->ino, &item);
	cut->first = end;
	cut->more = cut->first < cut->end;
	return 0;
}

/* Not before: what fails takes nothing away. */
static void punch_took(struct cut *cut)
{
	if (cut->dropped < cut->first)
		cut_drop_blocks(cut->file, cut->dropped, cut->first);
	cut->dropped = cut->first;
}

/* ---- Preallocate ---- */

/* Finds the next gap: [first, *end).  cut->first = cut->end: none. */
static int reserve_gap(struct ticket *ticket, struct cut *cut, uint64_t *end,
		       uint64_t *after)
{
	struct extent extent = { .n = 0 };
	uint64_t sector = cut->first * BLOCK_SECTORS, stop;
	int rc;

	*after = 0;
	while (sector < cut->end * BLOCK_SECTORS) {
		rc = map_extent(ticket, cut->file->ino, sector, &extent);
		if (rc && rc != -ENOENT)
			return rc;
		if (rc == -ENOENT || extent.off > sector) {
			cut->first = sector / BLOCK_SECTORS;
			stop = rc ? UINT64_MAX : extent.off / BLOCK_SECTORS;
			*end = stop < cut->end ? stop : cut->end;
			if (*end > cut->first + RESERVE_BLOCKS)
				*end = cut->first + RESERVE_BLOCKS;
			rc = map_extent_before(ticket, cut->file->ino, sector,
					       &extent);
			if (rc == 0 && extent.off + extent.n == sector)
				*after = addr_sector(extent.addr) + extent.n;
			return rc == -ENOENT ? 0 : rc;
		}
		sector = extent.off + extent.n;
		cut->first = sector / BLOCK_SECTORS;
		if (tree_txn_room(ticket->txn) < 3 * TRAX_MAX_LEVEL)
			break;
	}
	if (cut->first > cut->end)
		cut->first = cut->end;
	*end = cut->first;
	return 0;
}

static int reserve_take(struct ticket *ticket, struct cut *cut, uint64_t n,
			uint64_t after)
{
	struct space *space = tree_space(cut->fs->tree);
	struct alloc_want want = {
		.goal = cut->file->goal, .after = after,
		.dir = cut->file->parent,
	};
	uint32_t group;
	int rc;

	if (cut->pieces)
		return 0;
	if (!cut->want || cut->want > n)
		cut->want = n;
	for (;;) {
		want.sectors = cut->want * BLOCK_SECTORS;
		if (space_reserve(space, want.sectors))
			return -ENOSPC;
		space_release(space, want.sectors);
		rc = alloc_take(cut->fs->alloc, &want, cut->piece, JOB_PIECES,
				&group);
		if (rc == -EAGAIN)
			return ticket_wait_group(ticket, group);
		if (rc == -ENOSPC && replica_room(ticket, want.sectors))
			return TICKET_WAIT;
		if (rc == -ENOSPC && !cut->waited) {
			cut->waited = true;
			return ticket_wait_checkpoint(ticket);
		}
		if (rc > 0)
			break;
		if ((rc != -ENOSPC && rc != -E2BIG) || cut->want == 1)
			return rc;
		cut->want = (cut->want + 1) / 2;
	}
	cut->pieces = rc;
	return 0;
}

static unsigned reserve_extents(const struct cut *cut, struct extent *list,
				uint64_t *n)
{
	uint64_t off = cut->first * BLOCK_SECTORS;
	int i;

	for (i = 0; i < cut->pieces; i++) {
		list[i] = (struct extent){
			.off = off, .n = cut->piece[i].n,
			.addr = addr_make(0, cut->piece[i].sector),
			.flags = EXTENT_UNWRITTEN |
				 (cut->piece[i].known ? EXTENT_KNOWN : 0),
		};
		off += list[i].n;
	}
	*n = off - cut->first * BLOCK_SECTORS;
	return (unsigned)cut->pieces;
}

static int reserve_run(struct ticket *ticket)
{
	struct cut *cut = ticket->state;
	uint64_t size = cut->op->offset + cut->op->size;
	struct extent list[JOB_PIECES];
	uint64_t end = cut->first, after, n = 0;
	struct inode_item item;
	struct map_plan plan;
	int rc, err;

	rc = inode_get(ticket, cut->file->ino, &item);
	err = reserve_gap(ticket, cut, &end, &after);
	rc = err && err != -EAGAIN ? err : rc ? rc : err;
	if (rc)
		return rc;
	if (cut->first < end) {
		rc = reserve_take(ticket, cut, end - cut->first, after);
		if (rc)
			return rc;
		err = (int)reserve_extents(cut, list, &n);
		rc = map_probe(ticket, cut->file->ino,
			       cut->first * BLOCK_SECTORS, n, list,
			       (unsigned)err, &plan);
		if (rc)
			return rc;
		if (plan.n < n)
			return -E2BIG;
	}
	rc = cut_attr(ticket, cut, &item);
	if (rc)
		return rc;
	if (n)
		map_apply(ticket, cut->file->ino, &plan, &item);
	cut->first += n / BLOCK_SECTORS;
	cut->more = cut->first < cut->end;
	if (!cut->more && !cut->keep_size && size > le64_get(item.size))
		item.size = le64_put(size);
	inode_put(ticket, cut->file->ino, &item);
	return 0;
}

static void reserve_took(struct cut *cut)
{
	uint64_t size = cut->op->offset + cut->op->size;
	struct file *file = cut->file;

	cut->pieces = 0;
	cut->waited = false;
	if (!cut->more && !cut->keep_size && size > file->size)
		file->size = size;
}

/* ---- Delete ---- */

static int delete_xattrs(struct ticket *ticket, struct cut *cut, bool apply)
{
	struct key from = key_make(cut->file->ino, ITEM_XATTR, 0);
	struct key last = key_make(cut->file->ino, ITEM_XATTR, UINT64_MAX);
	struct tree_item item;
	struct key next;
	int rc, err;

	rc = tree_seek_ge(ticket->txn, from, last, &item);
	if (rc == -ENOENT)
		return 0;
	err = tree_get(ticket->txn, from, &item);
	if (!err || err == -ENOENT)
		err = tree_get(ticket->txn, last, &item);
	if (!rc && err && err != -ENOENT)
		rc = err;
	if (rc || !apply)
		return rc;
	next = tree_del_range(ticket->txn, from, last, DROP_NODES);
	if (key_cmp(next, last) <= 0)
		cut->more = true;
	return 0;
}

static int delete_run(struct ticket *ticket)
{
	struct cut *cut = ticket->state;
	uint64_t ino = cut->file->ino;
	struct extent beyond;
	struct inode_item item;
	struct tree_item found;
	struct map_plan plan;
	int rc[6], i;
	bool miss = false;

	cut->more = false;
	rc[0] = inode_get(ticket, ino, &item);
	rc[1] = tree_get(ticket->txn, key_make(0, ITEM_ORPHAN, ino), &found);
	rc[2] = tree_get(ticket->txn, key_make(ino, ITEM_INLINE, 0), &found);
	rc[3] = map_probe(ticket, ino, 0, FOREVER, NULL, 0, &plan);
	rc[4] = cut_windows(ticket, cut, 0, FOREVER / BLOCK_SECTORS, false);
	rc[5] = delete_xattrs(ticket, cut, false);
	for (i = 0; i < 6; i++) {
		if (rc[i] && rc[i] != -EAGAIN && rc[i] != -ENOENT)
			return rc[i];
		miss |= rc[i] == -EAGAIN;
	}
	if (miss)
		return -EAGAIN;
	if (rc[0]) {
		if (rc[1] == 0)
			tree_del(ticket->txn, key_make(0, ITEM_ORPHAN, ino));
		return 0;
	}
	if (plan.n < FOREVER) {
		i = map_extent(ticket, ino, plan.n, &beyond);
		if (i && i != -ENOENT)
			return i;
		cut->more = i == 0;
	}
	map_apply(ticket, ino, &plan, &item);
	cut_windows(ticket, cut, 0, FOREVER / BLOCK_SECTORS, true);
	delete_xattrs(ticket, cut, true);
	if (rc[2] == 0)
		tree_del(ticket->txn, key_make(ino, ITEM_INLINE, 0));
	if (cut->more) {
		inode_put(ticket, ino, &item);
		return 0;
	}
	tree_del(ticket->txn, key_make(ino, ITEM_INODE, 0));
	if (rc[1] == 0)
		tree_del(ticket->txn, key_make(0, ITEM_ORPHAN, ino));
	return 0;
}

/* ---- Copies ---- */

static int clear_run(struct ticket *ticket)
{
	struct cut *cut = ticket->state;
	uint64_t first = cut->first, end = FOREVER / BLOCK_SECTORS;

	if (cut->kind == CUT_SIZE)
		first = cut->size / BLOCK_BYTES;
	if (cut->kind == CUT_PUNCH)
		end = cut->end;
	if (first >= end)
		return 0;
	return replica_clear(ticket, cut->file->ino, first, end, &cut->more);
}

static void clear_ended(struct ticket *ticket, int rc, uint64_t seq)
{
	struct cut *cut = ticket->state;

	(void)seq;
	ticket_finish(ticket, 0);
	if (rc) {
		cut_over(cut, rc);
		return;
	}
	cut->cleared = !cut->more;
	cut->more = false;
	cut_step(cut);
}

/* ---- Steps ---- */

static void cut_ended(struct ticket *ticket, int rc, uint64_t seq)
{
	struct cut *cut = ticket->state;

	ticket_finish(ticket, 0);
	need_end(&cut->need);
	if (rc) {
		cut_over(cut, rc);
		return;
	}
	if (cut->kind == CUT_SIZE)
		size_took(cut, seq);
	if (cut->kind == CUT_PUNCH)
		punch_took(cut);
	if (cut->kind == CUT_RESERVE)
		reserve_took(cut);
	cut->begun = true;
	if (!cut->more && cut->kind == CUT_PUNCH && cut->then_reserve) {
		cut->kind = CUT_RESERVE;
		cut->first = cut->op->offset / BLOCK_BYTES;
		cut->end = (cut->op->offset + cut->op->size + BLOCK_BYTES - 1) /
			   BLOCK_BYTES;
		cut->more = true;
	}
	if (cut->more)
		cut_step(cut);
	else
		cut_over(cut, 0);
}

static const struct ticket_type clear_type = {
	.name = "clear copies",
	.bounds = { .log_bytes = 256, .urgent = true },
	.paths = 12,
	.changes = 12,
	.stages = 12,
	.run = clear_run,
	.end = clear_ended,
};

#define CUT_TYPE(fn) { \
	.name = #fn, \
	.bounds = { .nodes = 60, .log_bytes = CUT_LOG_BYTES, .urgent = true }, \
	.paths = 14, \
	.changes = 12, \
	.stages = 60, \
	.run = fn, \
	.end = cut_ended, \
}

static const struct ticket_type cut_types[] = {
	[CUT_SIZE] = CUT_TYPE(size_run),
	[CUT_DELETE] = CUT_TYPE(delete_run),
	[CUT_PUNCH] = CUT_TYPE(punch_run),
	[CUT_RESERVE] = CUT_TYPE(reserve_run),
};

static bool cut_has_copies(const struct cut *cut)
{
	return cut->file->copies && !cut->cleared && cut->kind != CUT_RESERVE;
}

static void cut_step(struct cut *cut)
{
	const struct ticket_type *type = &cut_types[cut->kind];
	int rc = cut->begun ? 0 : cut_edges(cut);

	if (rc == -EINPROGRESS)
		return;
	if (!rc && cut->kind == CUT_SIZE && !cut->hold) {
		cut->hold = files_alloc(cut->fs->files,
					sizeof(*cut->hold));
		rc = cut->hold ? 0 : -ENOMEM;
	}
	cut->ticket = NULL;
	cut->rc = 0;
	if (cut_has_copies(cut))
		type = &clear_type;
	if (!rc)
		rc = ticket_start(cut->fs, type, NULL, cut);
	if (rc)
		cut_over(cut, rc);
}

static void cut_ready(struct need *need, int rc)
{
	struct cut *cut = need->owner;

	if (cut->ticket) {
		cut->rc = rc ? -EIO : 0;
		ticket_again(cut->ticket);
	} else if (rc) {
		cut_over(cut, -EIO);
	} else {
		cut_step(cut);
	}
}

static void cut_start(struct excl *excl, int rc)
{
	struct cut *cut = container_of(excl, struct cut, excl);

	cut->waited = false;
	if (cut->kind == CUT_DELETE) {
		cut_drop_blocks(cut->file, 0, FOREVER / BLOCK_SECTORS);
		loss_free(cut->file);
		rc = 0;
	}
	if (rc)
		cut_over(cut, rc);
	else
		cut_step(cut);
}

/* ---- An INLINE item has to become an extent first ---- */

static void cut_again(struct gated *gated);

static void cut_placed(struct sync *sync, int rc)
{
	struct cut *cut = sync->owner;

	if (rc)
		cut_over(cut, rc);
	else
		cut_again(&cut->gated);
}

static void cut_unpack_ready(struct need *need, int rc)
{
	struct cut *cut = need->owner;

	if (!rc)
		rc = write_zero(cut->file, need, 0, 0, 0);
	need_end(need);
	if (rc) {
		cut_over(cut, rc == -EAGAIN ? -ENOMEM : rc);
		return;
	}
	cut->file->no_inline = true;
	cut->need.ready = cut_ready;
	sync_start(cut->fs->files, &cut->sync);
}

static bool cut_needs_extents(const struct cut *cut)
{
	return cut->kind == CUT_RESERVE || cut->then_reserve ||
	       (cut->kind == CUT_SIZE && cut->size > TRAX_MAX_INLINE_BYTES);
}

/* Blocks written, but not yet as INLINE, must not become it meanwhile. */
static void cut_again(struct gated *gated)
{
	struct cut *cut = container_of(gated, struct cut, gated);
	int rc = file_enter(cut->file, gated);

	if (rc == TICKET_WAIT)
		return;
	if (rc) {
		cut_over(cut, rc);
		return;
	}
	if (cut_needs_extents(cut))
		cut->file->no_inline = true;
	if (!cut->file->has_inline || !cut_needs_extents(cut)) {
		file_exclusive(&cut->excl);
		return;
	}
	if (cut->waited) {
		cut_over(cut, -EIO); /* could not be placed */
		return;
	}
	cut->waited = true;
	cut->need.first = 0;
	cut->need.n = 1;
	cut->need.ready = cut_unpack_ready;
	rc = need_start(&cut->need);
	if (rc != -EINPROGRESS)
		cut_unpack_ready(&cut->need, rc);
}

static struct cut *cut_new(struct fs *fs, uint64_t ino, enum cut_kind kind,
			   struct fs_op *op)
{
	struct cut *cut = files_alloc(fs->files, sizeof(*cut));
	struct file *file = cut ? file_get(fs, ino) : NULL;

	if (!file) {
		files_release(cut);
		return NULL;
	}
	cut->fs = fs;
	cut->op = op;
	cut->file = file;
	cut->kind = kind;
	cut->excl.file = file;
	cut->excl.start = cut_start;
	cut->gated.again = cut_again;
	cut->need.file = file;
	cut->need.ready = cut_ready;
	cut->need.owner = cut;
	cut->sync.file = file;
	cut->sync.done = cut_placed;
	cut->sync.owner = cut;
	list_init(&cut->excl.link);
	list_init(&cut->gated.link);
	list_init(&cut->need.link);
	return cut;
}

/* ---- Operations ---- */

void file_set_size(struct fs *fs, struct fs_op *op)
{
	struct cut *cut;

	if (op->attr.size > INT64_MAX) {
		fs_answer(fs, op, -EFBIG);
		return;
	}
	cut = cut_new(fs, op->ino, CUT_SIZE, op);
	if (!cut) {
		fs_answer(fs, op, -ENOMEM);
		return;
	}
	cut->size = op->attr.size;
	cut->first = (cut->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	cut_again(&cut->gated);
}

void file_fallocate(struct fs *fs, struct fs_op *op)
{
	const uint32_t known = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE |
			       FALLOC_FL_ZERO_RANGE;
	bool punch = op->flags & FALLOC_FL_PUNCH_HOLE;
	bool zero = op->flags & FALLOC_FL_ZERO_RANGE;
	uint32_t mode = op->flags & ~FS_SET_KILL_PRIV;
	struct cut *cut = NULL;
	int rc = 0;

	if (mode & ~known || (punch && zero) ||
	    (punch && !(mode & FALLOC_FL_KEEP_SIZE)))
		rc = -EOPNOTSUPP;
	else if (!op->size)
		rc = -EINVAL;
	else if (op->offset > INT64_MAX || op->size > INT64_MAX - op->offset)
		rc = -EFBIG;
	if (!rc) {
		cut = cut_new(fs, op->ino, punch || zero ? CUT_PUNCH :
			      CUT_RESERVE, op);
		rc = cut ? 0 : -ENOMEM;
	}
	if (rc) {
		fs_answer(fs, op, rc);
		return;
	}
	cut->keep_size = mode & FALLOC_FL_KEEP_SIZE;
	cut->then_reserve = zero;
	cut->first = op->offset / BLOCK_BYTES;
	cut->end = (op->offset + op->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	if (cut->kind == CUT_PUNCH) {
		cut->first = (op->offset + BLOCK_BYTES - 1) / BLOCK_BYTES;
		cut->end = (op->offset + op->size) / BLOCK_BYTES;
		cut->dropped = cut->first;
	}
	cut_again(&cut->gated);
}

void file_delete(struct fs *fs, uint64_t ino,
		 void (*done)(struct fs *fs, uint64_t ino))
{
	struct cut *cut = cut_new(fs, ino, CUT_DELETE, NULL);

	if (!cut) {
		done(fs, ino); /* the next mount finds its orphan item */
		return;
	}
	cut->done = done;
	cut->file->dead = true;
	file_exclusive(&cut->excl);
}

void file_resume_truncate(struct fs *fs, uint64_t ino, uint64_t size)
{
	struct cut *cut = cut_new(fs, ino, CUT_SIZE, NULL);

	if (!cut)
		return;
	cut->size = size;
	cut->begun = true;
	cut->first = (size + BLOCK_BYTES - 1) / BLOCK_BYTES;
	file_exclusive(&cut->excl);
}
