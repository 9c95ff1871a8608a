/*
 * scrub_replicas.c - replicas of file blocks (fs/table/replica.h) in a pass: a
 * region is loaded as runs of its replicas, each compared with its original's
 * checksums while the original still names it.  A bad one is dropped and noted;
 * nothing is lost by that.
 */
#include <errno.h>

#include "fs/op/errors.h"
#include "fs/table/replica.h"
#include "scrub/scrub_internal.h"

/* Leaves that the next entry may need: its inode's, checksums and REPLICA
 * items. */
#define COPY_ROOM 6u

/* ---- loading ---- */

/* Adds the entries of an item from the window's end on; false: the window is
 * full. */
static bool scrub_replicas_add(struct scrub_window *w,
			       const struct tree_item *item)
{
	const struct copy_entry *entry = item->value;
	size_t n = item->bytes / sizeof(*entry), i;
	uint64_t sector = addr_sector(item->key.off);

	for (i = 0; i < n; i++, entry++) {
		struct scrub_extent run = {
			.sector = sector,
			.n = (uint64_t)le16_get(entry->blocks) * BLOCK_SECTORS,
			.kind = OWNER_REPLICA,
			.ino = le64_get(entry->ino),
			.off = le64_get(entry->block) * BLOCK_SECTORS,
			.chunk = w->chunks,
		};

		sector += run.n;
		if (sector <= w->end || !run.n)
			continue;
		if (run.sector < w->end) {
			run.n = sector - w->end;
			run.off += w->end - run.sector;
			run.sector = w->end;
		}
		if (run.ino &&
		    (w->runs == SCRUB_RUNS ||
		     w->chunks + scrub_load_chunks(&run) > SCRUB_CHUNKS))
			return false;
		if (run.ino) {
			w->run[w->runs++] = run;
			w->chunks += scrub_load_chunks(&run);
			w->sectors += run.n;
		}
		w->end = sector;
	}
	return true;
}

int scrub_replicas_load(struct fs_txn *txn, struct scrub *scrub,
			uint64_t sector, uint64_t end)
{
	struct key low = key_make(0, ITEM_COPIES, addr_make(0, sector));
	struct key high = key_make(0, ITEM_COPIES, addr_make(0, end - 1));
	struct scrub_window *w = scrub->window;
	struct tree_item item;
	int rc;

	scrub->region_from = sector;
	scrub->region_end = end;
	if (w->end < sector)
		w->end = sector;
	rc = tree_seek_le(txn->tree_txn,
			  key_make(0, ITEM_COPIES, addr_make(0, w->end)), low,
			  &item);
	if (rc == -ENOENT)
		rc = tree_seek_ge(txn->tree_txn, low, high, &item);
	while (!rc) {
		if (!scrub_replicas_add(w, &item))
			return -ENOSPC;
		if (tree_txn_room(txn->tree_txn) < COPY_ROOM)
			return -EINPROGRESS;
		low.off = item.key.off + 1;
		rc = tree_seek_ge(txn->tree_txn, low, high, &item);
	}
	if (rc != -ENOENT)
		return rc;
	w->end = end;
	scrub->region_end = 0;
	return 0;
}

/* Finds the blocks of a chunk (as bits) that have a valid replica at a place:
 * `place` is where the chunk's first block would be. */
static int scrub_replicas_count(struct fs_txn *txn, uint64_t ino,
				uint64_t chunk, uint64_t place,
				uint16_t *counted)
{
	uint64_t first = chunk * CHUNK_BLOCKS, at, end;
	struct replica_copy found[REPLICA_FOUND];
	unsigned n, i;
	int rc = replica_find(txn, ino, first, first + CHUNK_BLOCKS, found,
			      &n);

	*counted = 0;
	for (i = 0; i < n && !rc; i++) {
		if (found[i].sector - found[i].block * BLOCK_SECTORS !=
		    place - first * BLOCK_SECTORS)
			continue;
		at = found[i].block;
		end = at + found[i].blocks;
		for (; at < end; at++)
			if (at >= first && at < first + CHUNK_BLOCKS)
				*counted |= (uint16_t)(1u << (at - first));
	}
	return rc;
}

int scrub_replicas_are_named(struct fs_txn *txn, const struct scrub_extent *run,
			     bool *named)
{
	uint64_t chunk = run->off / CHUNK_SECTORS;
	unsigned first = (unsigned)(run->off % CHUNK_SECTORS) / BLOCK_SECTORS;
	unsigned end = first + (unsigned)(run->n / BLOCK_SECTORS);
	uint16_t counted, all;
	int rc;

	*named = false;
	if (end > CHUNK_BLOCKS)
		return 0;
	if (tree_txn_room(txn->tree_txn) < COPY_ROOM)
		return -EINPROGRESS;
	rc = scrub_replicas_count(txn, run->ino, chunk, run_place(run, chunk),
			  &counted);
	all = (uint16_t)((1u << end) - (1u << first));
	*named = !rc && (counted & all) == all;
	return rc;
}

/* ---- what may be damaged ---- */

static int look_run(struct fs_txn *txn)
{
	struct scrub *scrub = txn->state;
	const struct scrub_suspect *suspect = &scrub->suspect[0];
	uint16_t counted;
	int rc = scrub_replicas_count(txn, suspect->ino, suspect->chunk,
			      suspect->sector, &counted);

	if (!rc)
		scrub->bad_copies = suspect->blocks & counted;
	return rc;
}

static void look_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct scrub *scrub = txn->state;
	const struct scrub_suspect *suspect = &scrub->suspect[0];
	unsigned first, blocks;
	uint64_t block;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (!rc && scrub->bad_copies) {
		first = (unsigned)__builtin_ctz(scrub->bad_copies);
		blocks = 32 - (unsigned)__builtin_clz(scrub->bad_copies) -
			 first;
		block = suspect->chunk * CHUNK_BLOCKS + first;
		errors_add(scrub->fs, &(struct error){
			.ino = suspect->ino,
			.off = block * BLOCK_BYTES,
			.sector = suspect->sector + first * BLOCK_SECTORS,
			.sectors = blocks * BLOCK_SECTORS,
			.what = suspect->unreadable ? ERROR_READ : ERROR_CSUM,
			.healed = true });
		replica_bad(scrub->fs, suspect->ino, block, blocks,
			    suspect->sector + first * BLOCK_SECTORS);
	}
	scrub->suspect_over(scrub);
}

static const struct fs_txn_type look_type = {
	.name = "look at a copy",
	.bounds = { .nodes = 32 },
	.stages = 32,
	.run = look_run,
	.end = look_end,
};

void scrub_replicas_look(struct scrub *scrub)
{
	scrub->bad_copies = 0;
	if (fs_txn_start(scrub->fs, &look_type, NULL, scrub))
		scrub->suspect_over(scrub);
}
