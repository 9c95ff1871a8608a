/*
 * repair.c - the order of mending.
 */
#include "check/repair/repair.h"

#include <errno.h>
#include <string.h>

void mend_new_inode(struct check *check, uint32_t mode,
		    struct inode_item *item)
{
	int64_t wall_ns = env_wall_ns(check->env);
	struct disk_time now = {
		le64_put((uint64_t)(wall_ns / 1000000000)),
		le32_put((uint32_t)(wall_ns % 1000000000)),
	};

	memset(item, 0, sizeof(*item));
	item->mode = le32_put(mode);
	item->nlink = le32_put(S_ISDIR(mode) ? 2 : 1);
	item->atime = item->mtime = item->ctime = item->btime = now;
	item->parent = le64_put(TRAX_ROOT_INO);
	item->next_seq = le64_put(S_ISDIR(mode) ? 3 : 0);
	item->generation = le32_put(1);
}

/* The extent that maps this sector of a file, or begins behind it. */
static const struct set_item *extent_find(const struct set *set, uint64_t ino,
					  uint64_t off)
{
	size_t i = set_seek(set, key_make(ino, ITEM_EXTENT, off + 1));
	const struct set_item *item = i ? set_at(set, i - 1) : NULL;

	return item && item->key.ino == ino && item->key.type == ITEM_EXTENT ?
		item : NULL;
}

/* Extents begin and end at any sector: a block may lie in several.  before:
 * also in those that have been killed since the set was settled. */
static int block_read(struct check *check, const struct set *set, uint64_t ino,
		      uint64_t block, void *buf, bool before)
{
	uint64_t at = block * TRAX_BLOCK_SECTORS;
	uint64_t end = at + TRAX_BLOCK_SECTORS;
	uint8_t *piece = device_buffer(check, TRAX_BLOCK_BYTES);
	uint8_t *to = buf;
	int rc = piece ? 0 : -ENOMEM;

	while (!rc && at < end) {
		const struct set_item *item = extent_find(set, ino, at);
		const struct extent_item *e = item ? set_value(set, item) :
					      NULL;
		uint64_t skip = item ? at - item->key.off : 0, n;

		if (!item || (item->dead && !before) ||
		    skip >= le64_get(e->sectors)) {
			rc = -ENODATA;
			break;
		}
		n = le64_get(e->sectors) - skip;
		if (n > end - at)
			n = end - at;
		rc = device_read(check, addr_sector(le64_get(e->addr)) + skip,
				 n, piece);
		if (!rc)
			memcpy(to, piece, n * SECTOR_BYTES);
		to += n * SECTOR_BYTES;
		at += n;
	}
	free(piece);
	return rc;
}

int mend_read_block(struct check *check, const struct set *set, uint64_t ino,
		    uint64_t block, void *buf)
{
	return block_read(check, set, ino, block, buf, false);
}

int mend_read_block_before(struct check *check, const struct set *set,
			   uint64_t ino, uint64_t block, void *buf)
{
	return block_read(check, set, ino, block, buf, true);
}

/* Copies are advice: owners are made anew without them, and as the superblock
 * says, so that nothing is moving. */
static void mend_copies(struct set *set)
{
	size_t i;

	for (i = 0; i < set_count(set); i++) {
		struct set_item *item = set_at(set, i);

		if (item->key.ino ? item->key.type == ITEM_REPLICA :
		    item->key.type == ITEM_MOVE ||
		    item->key.type == ITEM_REGION ||
		    item->key.type == ITEM_COPIES)
			set_kill(item);
	}
}

int mend_items(struct check *check, struct set *set)
{
	int rc;

	mend_copies(set);
	rc = mend_strays(check, set);
	if (!rc)
		rc = mend_shared(check, set);
	if (!rc)
		rc = logread_home(check);
	if (!rc)
		rc = mend_files(check, set);
	if (!rc)
		rc = mend_names(check, set);
	return rc;
}

int repair_run(struct check *check)
{
	struct set set;
	int rc = set_init(&set, check->options.scratch);

	if (rc)
		return rc;
	rc = collect_items(check, &set);
	if (!rc && problem_to_repair(check, PROBLEM_LOG_REPLAY))
		rc = logread_items(check, &set);
	if (!rc)
		rc = mend_items(check, &set);
	if (!rc)
		rc = rebuild_write(check, &set);
	logread_free(check);
	set_fini(&set);
	return rc;
}
