/*
 * move_walk.c - finds small files of a directory that have drifted apart, and
 * fragmented files, whether anybody reads them or not: all files are given to
 * order one after the other, in the order of their numbers, which is that of
 * their directories and in these that of their creation.
 *
 * A pass begins when as much has been written since the last one as a
 * WRITTEN_SHARE of the stored data, or of the free room if that is less, and
 * goes on while users are quiet.  Its position is not stored.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/units.h"
#include "fs/op/inode_item.h"
#include "move/move_internal.h"

/* A pass reads all metadata, about a hundredth of the stored data: that is
 * little beside the writes of a fourth of it. */
#define WRITTEN_SHARE 4u
/* Files that are given to order at a time: a batch ends with the last of
 * them. */
#define WALK_FILES 1024u
#define WALK_ROOM 6u		/* leaves that a file may need */
/* Reads in a month expected of a file that nobody was seen to read: backups and
 * searches read all files, together twice a week. */
#define WALK_READS 8u

static uint64_t written(const struct moves *moves)
{
	return moves->fs->files->written_bytes / SECTOR_BYTES;
}

bool walk_is_due(const struct moves *moves)
{
	const struct walking *walk = &moves->walk;
	struct space_counts count;
	uint64_t used;

	if (walk->looking)
		return false;
	if (walk->active)
		return true;
	space_count(tree_space(moves->fs->tree), &count);
	used = count.total - count.free;
	return written(moves) - walk->written >=
	       (used < count.free ? used : count.free) / WRITTEN_SHARE;
}

/* Reads expected of files that lie together: they stay so until users have
 * written as much again as is stored, a month at most; that is estimated from
 * what users have written since the last pass. */
static uint32_t reads_expected(const struct moves *moves, uint64_t now_ns)
{
	double passed_ns = (double)(now_ns - moves->walk.begun_ns);
	double since = (double)(written(moves) - moves->walk.written);
	struct space_counts count;
	double share;

	space_count(tree_space(moves->fs->tree), &count);
	share = since > 0 ? (double)(count.total - count.free) / since *
			    passed_ns / (double)MOVE_MONTH_NS : 1;
	share = share < 1 ? share : 1;
	return share * WALK_READS < 1 ? 1 : (uint32_t)(share * WALK_READS);
}

/* Finds the next file with data outside of its leaf; -ENOENT: there is none.
 * -EBUSY: this transaction has no room to look further. */
static int file_next(struct fs_txn *txn, uint64_t *ino)
{
	const struct inode_item *inode;
	struct tree_item item;
	int rc;

	for (;; ++*ino) {
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(*ino, ITEM_INODE, 0), KEY_MAX,
				  &item);
		if (rc)
			return rc;
		*ino = item.key.ino;
		inode = item.value;
		if (item.key.type == ITEM_INODE &&
		    S_ISREG(inode_mode(inode)) && le64_get(inode->sectors))
			return 0;
		if (tree_txn_room(txn->tree_txn) < WALK_ROOM)
			return -EBUSY;
	}
}

static int walk_run(struct fs_txn *txn)
{
	struct moves *moves = txn->state;
	struct walking *walk = &moves->walk;
	int rc;

	if (moves->closing)
		return -ESHUTDOWN;
	while (!walk->full) {
		if (tree_txn_room(txn->tree_txn) < WALK_ROOM)
			return 0;
		rc = file_next(txn, &walk->ino);
		if (rc)
			return rc == -EBUSY ? 0 : rc;
		walk->full = order_want(moves, walk->ino, walk->reads) ||
			     ++walk->files == WALK_FILES;
		walk->ino++;
	}
	return 0;
}

static void walk_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct moves *moves = txn->state;

	(void)seq;
	if (!rc && !moves->walk.full) {
		fs_txn_restart(txn);
		return;
	}
	fs_txn_finish(txn, 0);
	moves->walk.looking = false;
	/* The scrub finds what cannot be read. */
	if (rc && rc != -ENOMEM)
		moves->walk.active = false;
}

static const struct fs_txn_type walk_type = {
	.name = "look for files that lie apart",
	.bounds = { .nodes = 60 },
	.stages = 60,
	.run = walk_run,
	.end = walk_end,
};

void walk_pick(struct moves *moves)
{
	uint64_t now_ns = env_now_ns(moves->fs->env);
	struct walking *walk = &moves->walk;

	if (!walk->active) {
		walk->reads = reads_expected(moves, now_ns);
		walk->begun_ns = now_ns;
		walk->ino = TRAX_ROOT_INO;
		walk->written = written(moves);
	}
	walk->active = true;
	walk->files = 0;
	walk->full = false;
	walk->looking = !fs_txn_start(moves->fs, &walk_type, NULL, moves);
}
