/*
 * heal.c - see heal.h.
 *
 *   exclusive -> look -> read again, compare -> [ place -> write -> move ]+
 *               [txn]                        [txn]          [txn]
 *
 * 1. It is an exclusive operation of the file: nothing else changes its mapping
 *    meanwhile; the move finds it as `look` did, or does nothing.
 * 2. Newer content that the log holds is left to its destage, which takes
 *    another place (bad_place).
 * 3. Content and checksums do not change: replicas of these blocks stay valid.
 */
#include "fs/data/heal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "base/text.h"
#include "fs/data/bad_stretch.h"
#include "fs/data/bmap.h"
#include "fs/data/cache_chunk.h"
#include "fs/data/dirty_block.h"
#include "fs/data/file.h"
#include "fs/data/writeback.h"
#include "fs/op/errors.h"
#include "fs/table/replica.h"

/* Most extents of the blocks of a chunk: a block that a track's end cuts has
 * two.  A chunk whose blocks have more than three each is not healed. */
#define HEAL_FRAGMENTS (CHUNK_BLOCKS * 3)
/* Extents of free room to which a run of bad blocks may be written. */
#define HEAL_EXTENTS 8
/* Chunks that are healed at a time, each with memory for its content twice. */
#define MAX_HEALS 64u

struct fragment {		/* part of a block in one extent */
	uint64_t off, n, sector;	/* offset in the file, length, place on
					 * the disk, in sectors */
	uint8_t *data;
	bool failed;
	struct iovec iov;
	struct queue_request req;
};

struct heal {
	struct excl_lock excl;
	struct file *file;
	uint64_t chunk;
	uint16_t blocks;	/* blocks suspected to be bad; after the
				 * comparison: known to be */
	void *memory;
	uint8_t *good, *seen;	/* content as it should be, and as it was
				 * read */
	struct fragment fragment[HEAL_FRAGMENTS];
	unsigned fragments, outstanding;
	unsigned first, n;	/* the run of blocks of the chunk that moves
				 * now */
	struct alloc_extent place[HEAL_EXTENTS];
	int places;
	bool failed;
	struct queue_request req[HEAL_EXTENTS];
	struct iovec iov[HEAL_EXTENTS];
};

static uint64_t heal_block(const struct heal *heal, unsigned i)
{
	return heal->chunk * CHUNK_BLOCKS + i;
}

static void heal_over(struct heal *heal)
{
	struct file *file = heal->file;
	struct space *space = tree_space(file->files->fs->tree);

	while (heal->places > 0) {
		heal->places--;
		space_give_back(space, heal->place[heal->places].sector,
				heal->place[heal->places].n);
	}
	if (heal->excl.active)
		file_unlock_excl(&heal->excl);
	file->files->heals--;
	abandon_free(heal->memory);
	abandon_free(heal);
	file_put(file);
}

/* ---- Move ---- */

static void heal_next(struct heal *heal);

static struct key bad_key(const struct fragment *fragment)
{
	return key_make(0, ITEM_OWNER, addr_make(0, fragment->sector));
}

static bool fragment_moves(const struct heal *heal,
			   const struct fragment *fragment)
{
	uint64_t block = fragment->off / BLOCK_SECTORS;

	return block >= heal_block(heal, heal->first) &&
	       block < heal_block(heal, heal->first + heal->n);
}

/* Are the blocks still where they were, and on the disk? */
static int move_check(struct fs_txn *txn, const struct heal *heal)
{
	const struct fragment *fragment;
	struct extent extent;
	struct tree_item item;
	unsigned i;
	int rc;

	for (i = 0; i < heal->n; i++) {
		const struct block *block = block_find(heal->file,
			heal_block(heal, heal->first + i));

		if (block && (block->pin || block->wb))
			return -ESTALE;
	}
	for (i = 0; i < heal->fragments; i++) {
		fragment = &heal->fragment[i];
		if (!fragment_moves(heal, fragment))
			continue;
		rc = bmap_extent(txn, heal->file->ino, fragment->off,
				&extent);
		if (rc)
			return rc == -ENOENT ? -ESTALE : rc;
		if (extent.off > fragment->off ||
		    addr_sector(extent.addr) + (fragment->off - extent.off) !=
		    fragment->sector)
			return -ESTALE;
		rc = tree_get(txn->tree_txn, bad_key(fragment), &item);
		if (rc && rc != -ENOENT)
			return rc;
	}
	return 0;
}

static void move_bad(struct fs_txn *txn, const struct heal *heal)
{
	const struct fragment *fragment;
	unsigned i;

	for (i = 0; i < heal->fragments; i++) {
		struct owner_item owner = { .kind = OWNER_BAD };

		fragment = &heal->fragment[i];
		if (!fragment_moves(heal, fragment))
			continue;
		owner.sectors = le64_put(fragment->n);
		tree_put(txn->tree_txn, bad_key(fragment), &owner,
			 sizeof(owner));
	}
}

static int move_run(struct fs_txn *txn)
{
	struct heal *heal = txn->state;
	uint64_t off = heal_block(heal, heal->first) * BLOCK_SECTORS;
	struct extent list[HEAL_EXTENTS];
	uint64_t at = off;
	struct inode_item item;
	struct bmap_plan plan;
	int rc, err, i;

	for (i = 0; i < heal->places; i++) {
		list[i] = (struct extent){
			.off = at, .n = heal->place[i].n,
			.addr = addr_make(0, heal->place[i].sector),
			.flags = heal->place[i].known ? EXTENT_KNOWN : 0,
		};
		at += list[i].n;
	}
	rc = move_check(txn, heal);
	if (rc && rc != -EAGAIN)
		return rc;
	err = inode_get(txn, heal->file->ino, &item);
	rc = err ? err : rc;
	err = bmap_probe(txn, heal->file->ino, off,
			(uint64_t)heal->n * BLOCK_SECTORS, list,
			(unsigned)heal->places, &plan);
	if (err || rc)
		return err && err != -EAGAIN ? err : rc ? rc : err;
	if (plan.n < (uint64_t)heal->n * BLOCK_SECTORS)
		return -E2BIG;
	bmap_apply(txn, heal->file->ino, &plan, &item);
	move_bad(txn, heal);
	inode_put(txn, heal->file->ino, &item);
	return 0;
}

static void heal_note(struct heal *heal, bool healed)
{
	const struct fragment *fragment;
	unsigned i;

	for (i = 0; i < heal->fragments; i++) {
		fragment = &heal->fragment[i];
		if (!fragment_moves(heal, fragment))
			continue;
		errors_add(heal->file->files->fs, &(struct error){
			.ino = heal->file->ino,
			.off = fragment->off * SECTOR_BYTES,
			.sector = fragment->sector,
			.sectors = (uint32_t)fragment->n,
			.what = fragment->failed ? ERROR_READ : ERROR_CSUM,
			.healed = healed,
		});
	}
	msg_warn("%s: inode %llu, offset %llu: damage in %s; %s",
		 heal->file->files->fs->disk->name,
		 (unsigned long long)heal->file->ino,
		 (unsigned long long)heal_block(heal, heal->first) *
			 BLOCK_BYTES, count_text(heal->n, "block").s,
		 healed ? "moved, from a copy" :
			  "a copy has them, but there is no room");
}

static void move_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct heal *heal = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc) {
		heal_over(heal);
		return;
	}
	heal->places = 0;
	heal_note(heal, true);
	heal->blocks &= ~(((1u << heal->n) - 1) << heal->first);
	heal_next(heal);
}

static const struct fs_txn_type move_type = {
	.name = "move bad blocks",
	.bounds = { .nodes = 60, .log_bytes = BMAP_LOG_BYTES },
	.paths = 20,
	.changes = 14,
	.stages = 60,
	.run = move_run,
	.end = move_end,
};

/* ---- Place and write ---- */

static void heal_written(struct disk_request *req)
{
	struct heal *heal = req->owner;

	heal->failed |= req->result != 0;
	if (--heal->outstanding)
		return;
	if (heal->failed || fs_txn_start(heal->file->files->fs, &move_type,
					 NULL, heal))
		heal_over(heal);
}

static void heal_write(struct heal *heal)
{
	uint8_t *data = heal->good + (size_t)heal->first * BLOCK_BYTES;
	int i;

	heal->failed = false;
	heal->outstanding = (unsigned)heal->places;
	for (i = 0; i < heal->places; i++) {
		heal->iov[i].iov_base = data;
		heal->iov[i].iov_len = heal->place[i].n * SECTOR_BYTES;
		data += heal->iov[i].iov_len;
		heal->req[i] = (struct queue_request){
			.disk = {
				.op = DISK_WRITE,
				.sector = heal->place[i].sector,
				.sectors = (uint32_t)heal->place[i].n,
				.iov = &heal->iov[i], .iov_n = 1,
				.done = heal_written, .owner = heal,
			},
			.class = QUEUE_WRITE_BACK,
			.origin = FAULT_COPY,
		};
		queue_submit(heal->file->files->fs->queue, &heal->req[i]);
	}
}

static int place_run(struct fs_txn *txn)
{
	struct heal *heal = txn->state;
	struct alloc_want want = {
		.sectors = (uint64_t)heal->n * BLOCK_SECTORS,
		.goal = heal->file->goal, .loads = txn->groups,
	};
	uint32_t group;
	int rc = alloc_take(txn->fs->alloc, &want, heal->place, HEAL_EXTENTS,
			    &group);

	if (rc == -ENOSPC && bad_stretch_give_back(txn->fs->files))
		rc = alloc_take(txn->fs->alloc, &want, heal->place,
				HEAL_EXTENTS, &group);
	if (rc == -EAGAIN)
		return fs_txn_wait_group(txn, group);
	if (rc == -ENOSPC && replica_room(txn, want.sectors))
		return FS_TXN_WAIT;
	if (rc < 0)
		return rc;
	heal->places = rc;
	return 0;
}

static void place_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct heal *heal = txn->state;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc) {
		heal_note(heal, false);
		heal_over(heal);
		return;
	}
	heal_write(heal);
}

static const struct fs_txn_type place_type = {
	.name = "place bad blocks",
	.bounds = { .nodes = 1 },
	.run = place_run,
	.end = place_end,
};

/* Goes on with the next run of bad blocks. */
static void heal_next(struct heal *heal)
{
	if (!heal->blocks) {
		heal_over(heal);
		return;
	}
	heal->first = (unsigned)__builtin_ctz(heal->blocks);
	for (heal->n = 0; heal->blocks >> (heal->first + heal->n) & 1;)
		heal->n++;
	if (fs_txn_start(heal->file->files->fs, &place_type, NULL, heal))
		heal_over(heal);
}

/* ---- Look, read again, compare ---- */

static void heal_compare(struct heal *heal)
{
	uint64_t base = heal_block(heal, 0) * BLOCK_SECTORS;
	const struct fragment *fragment;
	uint16_t bad = 0;
	unsigned i;

	for (i = 0; i < heal->fragments; i++) {
		fragment = &heal->fragment[i];
		if (fragment->failed ||
		    memcmp(fragment->data, heal->good +
			   (fragment->off - base) * SECTOR_BYTES,
			   fragment->n * SECTOR_BYTES))
			bad |= 1u << (fragment->off - base) / BLOCK_SECTORS;
	}
	heal->blocks = bad;
	heal_next(heal);
}

static void fragment_done(struct disk_request *req)
{
	struct heal *heal = req->owner;

	container_of(req, struct fragment, req.disk)->failed = req->result;
	if (--heal->outstanding == 0)
		heal_compare(heal);
}

static void look_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct heal *heal = txn->state;
	uint64_t base = heal_block(heal, 0) * BLOCK_SECTORS;
	struct fragment *fragment;
	unsigned i;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc || !heal->fragments) {
		heal_over(heal);
		return;
	}
	heal->outstanding = heal->fragments;
	for (i = 0; i < heal->fragments; i++) {
		fragment = &heal->fragment[i];
		fragment->data = heal->seen + (fragment->off - base) *
				 SECTOR_BYTES;
		fragment->iov.iov_base = fragment->data;
		fragment->iov.iov_len = fragment->n * SECTOR_BYTES;
		fragment->req = (struct queue_request){
			.disk = {
				.op = DISK_READ, .sector = fragment->sector,
				.sectors = (uint32_t)fragment->n,
				.iov = &fragment->iov, .iov_n = 1,
				.done = fragment_done, .owner = heal,
			},
			.class = QUEUE_READ_AHEAD,
		};
		queue_submit(heal->file->files->fs->queue, &fragment->req);
	}
}

/* Lists the extents of a block; one with newer content in memory will be
 * written elsewhere by write-back. */
static int look_block(struct fs_txn *txn, struct heal *heal, uint64_t index)
{
	uint64_t sector = index * BLOCK_SECTORS, end = sector + BLOCK_SECTORS;
	struct block *block = block_find(heal->file, index);
	struct extent extent;
	uint64_t stop;
	int rc;

	if (block && block->pin) {
		block->bad_place = true;
		block_redirty(heal->file, block, 0);
		writeback_flush(heal->file, heal->file->files->stamp, false,
				true);
		return 0;
	}
	while (sector < end) {
		rc = bmap_extent(txn, heal->file->ino, sector, &extent);
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		if (extent.off > sector || extent.flags & EXTENT_UNWRITTEN)
			return 0;
		stop = extent.off + extent.n;
		stop = stop < end ? stop : end;
		if (heal->fragments == HEAL_FRAGMENTS)
			return -E2BIG;
		heal->fragment[heal->fragments++] = (struct fragment){
			.off = sector, .n = stop - sector,
			.sector = addr_sector(extent.addr) +
				  (sector - extent.off),
		};
		sector = stop;
	}
	return 0;
}

static int look_run(struct fs_txn *txn)
{
	struct heal *heal = txn->state;
	unsigned i;
	int rc = 0;

	heal->fragments = 0;
	for (i = 0; !rc && i < CHUNK_BLOCKS; i++)
		if (heal->blocks >> i & 1)
			rc = look_block(txn, heal, heal_block(heal, i));
	return rc;
}

static const struct fs_txn_type look_type = {
	.name = "look at bad blocks",
	.bounds = { .nodes = 40 },
	.stages = 40,
	.run = look_run,
	.end = look_end,
};

static void heal_begin(struct excl_lock *excl, int rc)
{
	struct heal *heal = container_of(excl, struct heal, excl);

	if (rc || fs_txn_start(heal->file->files->fs, &look_type, NULL, heal))
		heal_over(heal);
}

/* Keeps the content as it should be, in memory that is aligned for requests. */
static void heal_keep(struct heal *heal, uint16_t blocks)
{
	uintptr_t at = ((uintptr_t)heal->memory + BLOCK_BYTES - 1) /
		       BLOCK_BYTES * BLOCK_BYTES;
	const void *data;
	unsigned i;

	heal->good = (uint8_t *)at;
	heal->seen = heal->good + CHUNK_BYTES;
	for (i = 0; i < CHUNK_BLOCKS; i++) {
		data = chunk_block(heal->file, heal_block(heal, i));
		if (data)
			memcpy(heal->good + (size_t)i * BLOCK_BYTES, data,
			       BLOCK_BYTES);
		else
			blocks &= ~(1u << i);
	}
	heal->blocks = blocks;
}

void heal_start(struct file *file, uint64_t chunk, uint16_t blocks)
{
	struct files *files = file->files;
	struct heal *heal;

	if (fs_read_only(files->fs) || file->dead ||
	    files->heals >= MAX_HEALS)
		return;
	heal = abandon_alloc(files->fs, sizeof(*heal));
	if (!heal)
		return;
	heal->memory = abandon_alloc(files->fs, 2 * CHUNK_BYTES + BLOCK_BYTES);
	if (!heal->memory) {
		abandon_free(heal);
		return;
	}
	heal->file = file;
	heal->chunk = chunk;
	heal_keep(heal, blocks);
	file->users++;
	files->heals++;
	heal->excl.file = file;
	heal->excl.start = heal_begin;
	list_init(&heal->excl.link);
	file_lock_excl(&heal->excl);
}

const struct read_events heal_events = { .recovered = heal_start };
