/*
 * scrub_recheck.c - looks again at damage that was noted (fs/op/errors.h).
 *
 *   find the next note -> make its place a suspect -> suspects are looked at
 *   [txn]                                             (scrub_suspect.c)
 *        ^                                                  |
 *        +------- remove the note, unless damage was met <--+
 *                 [txn]
 *
 * A note goes after its place was found whole, so a crash loses none that is
 * still true.
 */
#include <errno.h>
#include <string.h>

#include "fs/op/errors.h"
#include "fs/op/fs_txn.h"
#include "fs/op/inode_item.h"
#include "scrub/scrub_internal.h"

/* ---- Finding ---- */

/* Can a look at the disk tell whether this is still true?  Healed damage is
 * past, and stays as a record of what the drive did. */
static bool note_is_open(const struct error_item *item)
{
	return !item->healed && item->what != ERROR_LOST;
}

/* Sets `end` behind the last note. */
static int find_end(struct fs_txn *txn, struct scrub_recheck *recheck)
{
	struct tree_item item;
	int rc = tree_seek_le(txn->tree_txn,
			      key_make(0, ITEM_ERROR, UINT64_MAX),
			      key_make(0, ITEM_ERROR, 0), &item);

	if (!rc)
		recheck->end = item.key.off + 1;
	return rc;
}

/* Was the file of data that was lost deleted? */
static int find_lost(struct fs_txn *txn, struct scrub_recheck *recheck)
{
	struct inode_item inode;
	int rc = inode_get(txn, le64_get(recheck->item.ino), &inode);

	recheck->gone = rc == -ENOENT || rc == -ESTALE;
	return recheck->gone ? 0 : rc;
}

static int find_run(struct fs_txn *txn)
{
	struct scrub *scrub = txn->state;
	struct scrub_recheck *recheck = &scrub->recheck;
	struct tree_item item;
	int rc = recheck->end ? 0 : find_end(txn, recheck);

	recheck->found = recheck->gone = false;
	if (!rc)
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(0, ITEM_ERROR, recheck->next),
				  key_make(0, ITEM_ERROR, recheck->end - 1),
				  &item);
	if (rc)
		return rc;
	memcpy(&recheck->item, item.value, sizeof(recheck->item));
	recheck->number = item.key.off;
	if (recheck->item.what == ERROR_LOST && !recheck->item.healed)
		rc = find_lost(txn, recheck);
	recheck->found = !rc;
	return rc;
}

static void note_look(struct scrub *scrub);

static void find_over(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct scrub *scrub = txn->state;
	struct scrub_recheck *recheck = &scrub->recheck;

	(void)rc;
	(void)seq;
	fs_txn_finish(txn, 0);
	recheck->busy = false;
	if (!recheck->found) {
		recheck->active = false;
		return;
	}
	recheck->next = recheck->number + 1;
	if (scrub->closing)
		return;
	if (recheck->gone)
		errors_remove(scrub->fs, recheck->number);
	else if (note_is_open(&recheck->item))
		note_look(scrub);
}

static const struct fs_txn_type find_type = {
	.name = "find noted damage",
	.paths = 3,
	.stages = 3,
	.run = find_run,
	.end = find_over,
};

/* ---- Looking ---- */

/* Makes suspects of all chunks of a file that a note speaks of. */
static bool suspect_data(struct scrub *scrub, const struct error *error)
{
	uint64_t block = error->off / BLOCK_BYTES;
	uint64_t end = (error->off + (uint64_t)error->sectors * SECTOR_BYTES +
			BLOCK_BYTES - 1) / BLOCK_BYTES;
	uint64_t chunk, first, stop;

	for (; block < end; block = stop) {
		chunk = block / CHUNK_BLOCKS;
		first = chunk * CHUNK_BLOCKS;
		stop = end < first + CHUNK_BLOCKS ? end : first + CHUNK_BLOCKS;
		if (!scrub_suspect_put(scrub, &(struct scrub_suspect){
			.ino = error->ino, .chunk = chunk,
			.blocks = (uint16_t)((1u << (stop - first)) -
					     (1u << (block - first))) }))
			return false;
	}
	return true;
}

static bool suspect_structure(struct scrub *scrub, const struct error *error)
{
	struct scrub_suspect suspect = { .sector = error->sector };

	suspect.fixed = !space_slot_used(tree_space(scrub->fs->tree),
					 addr_make(0, error->sector));
	if (suspect.fixed)
		suspect.sectors = error->sectors;
	return scrub_suspect_put(scrub, &suspect);
}

static void note_look(struct scrub *scrub)
{
	const struct error_item *item = &scrub->recheck.item;
	struct error error = {
		.ino = le64_get(item->ino),
		.off = le64_get(item->off),
		.sector = addr_sector(le64_get(item->addr)),
		.sectors = le32_get(item->sectors),
	};

	/* Without room for a suspect the note stays as it is. */
	if (error.ino ? !suspect_data(scrub, &error) :
			!suspect_structure(scrub, &error))
		return;
	errors_watch(scrub->fs, &error);
	scrub->recheck.looking = true;
}

/* ---- One after the other ---- */

bool scrub_recheck_is_due(const struct scrub *scrub)
{
	return scrub->recheck.active && !scrub->recheck.busy &&
	       !scrub->suspects && errors_idle(scrub->fs);
}

void scrub_recheck_run(struct scrub *scrub)
{
	struct scrub_recheck *recheck = &scrub->recheck;

	if (!scrub_recheck_is_due(scrub))
		return;
	if (recheck->looking) {
		recheck->looking = false;
		if (!errors_unwatch(scrub->fs)) {
			errors_remove(scrub->fs, recheck->number);
			return;
		}
	}
	recheck->busy = true;
	if (fs_txn_start(scrub->fs, &find_type, NULL, scrub))
		recheck->busy = recheck->active = false;
}

int scrub_recheck(struct scrub *scrub)
{
	struct scrub_recheck *recheck = &scrub->recheck;

	if (fs_read_only(scrub->fs))
		return -EROFS;
	/* One that is under way begins again. */
	recheck->next = recheck->end = 0;
	recheck->active = true;
	return 0;
}
