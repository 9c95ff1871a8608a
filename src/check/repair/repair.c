/*
 * repair.c - does the steps of a repair in their order.
 */
#include "check/repair/repair.h"

#include <errno.h>
#include <string.h>

void repair_new_inode(struct check *check, uint32_t mode,
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
	item->next_seq = le64_put(S_ISDIR(mode) ? TRAX_FIRST_SEQ : 0);
	item->generation = le32_put(1);
}

/* The extent that maps this sector of a file, or begins behind it. */
static const struct item_set_item *extent_find(const struct item_set *set,
					       uint64_t ino, uint64_t off)
{
	size_t i = item_set_seek(set, key_make(ino, ITEM_EXTENT, off + 1));
	const struct item_set_item *item = i ? item_set_at(set, i - 1) : NULL;

	return item && item->key.ino == ino && item->key.type == ITEM_EXTENT ?
		item : NULL;
}

/* Extents begin and end at any sector: a block may lie in several of them. */
int repair_read_block(struct check *check, const struct item_set *set,
		      uint64_t ino, uint64_t block, void *buf)
{
	uint64_t at = block * TRAX_BLOCK_SECTORS;
	uint64_t end = at + TRAX_BLOCK_SECTORS;
	uint8_t *whole = device_buffer(check, TRAX_BLOCK_BYTES);
	uint8_t *to = buf;
	int rc = whole ? 0 : -ENOMEM;

	while (!rc && at < end) {
		const struct item_set_item *item = extent_find(set, ino, at);
		const struct extent_item *e = item ? item_set_value(set, item) :
					      NULL;
		uint64_t skip = item ? at - item->key.off : 0, n;

		if (!item || item->dead ||
		    skip >= le64_get(e->sectors)) {
			rc = -ENODATA;
			break;
		}
		n = le64_get(e->sectors) - skip;
		if (n > end - at)
			n = end - at;
		rc = device_read(check, addr_sector(le64_get(e->addr)) + skip,
				 n, whole);
		if (!rc)
			memcpy(to, whole, n * SECTOR_BYTES);
		to += n * SECTOR_BYTES;
		at += n;
	}
	free(whole);
	return rc;
}

/* Replicas are advice: owners are made anew without them, and as the superblock
 * says, so that no track is being relocated. */
static void repair_copies(struct item_set *set)
{
	size_t i;

	for (i = 0; i < item_set_count(set); i++) {
		struct item_set_item *item = item_set_at(set, i);

		if (item->key.ino ? item->key.type == ITEM_REPLICA :
		    item->key.type == ITEM_MOVE ||
		    item->key.type == ITEM_REGION ||
		    item->key.type == ITEM_COPIES)
			item_set_remove(item);
	}
}

/* Makes the set agree with itself, but for OWNER items and node tracks. */
static int repair_items(struct check *check, struct item_set *set)
{
	int rc;

	repair_copies(set);
	rc = repair_strays(check, set);
	if (!rc)
		rc = repair_shared(check, set);
	if (!rc)
		rc = log_scan_destaged(check);
	if (!rc)
		rc = repair_files(check, set);
	if (!rc)
		rc = repair_names(check, set);
	return rc;
}

int repair_run(struct check *check)
{
	struct item_set set;
	int rc = item_set_init(&set, check->options.scratch);

	if (rc)
		return rc;
	rc = collect_items(check, &set);
	if (!rc && problem_to_repair(check, PROBLEM_LOG_REPLAY))
		rc = log_scan_items(check, &set);
	if (!rc)
		rc = repair_items(check, &set);
	if (!rc)
		rc = rebuild_write(check, &set);
	log_scan_free(check);
	item_set_fini(&set);
	return rc;
}
