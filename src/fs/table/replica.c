/*
 * replica.c - the table of replicas, and room for users' data.
 *
 *   region:  (none) --made--> there --[drop: transaction]--> dropped
 *                               ^                               |
 *                      replicas attached, used            [commit]-> free
 *
 * Regions are dropped when an allocation finds no room, when there is little
 * room (watermarks), or on request.  A drop is one small transaction for
 * several regions and moves no data; one commit makes the room of all regions
 * that were dropped meanwhile free.
 */
#include "fs/table/replica.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "base/units.h"
#include "fs/op/abandon_alloc.h"
#include "fs/op/item_scan.h"

/* no replicas are made by themselves for this long after the mount, while users
 * are at work */
#define BUSY_FIRST_NS (25 * NS_PER_SECOND)
#define DROP_REGIONS 8u		/* regions dropped by one transaction */
/* Bounds of the transaction that drops regions: leaves met and changed, and
 * bytes of log. */
#define DROP_PATHS 40u
#define DROP_CHANGES 24u
#define DROP_LIST 12u		/* COPIES items of a region that a drop has room
				 * for; a region has no more */
#define DROP_LOG_BYTES 4096u
/* Most nodes that one step of replica_clear changes, so that the transaction
 * that calls it stays short. */
#define CLEAR_NODES 6u
/* Least sectors that are dropped at a time (8 MiB), so that the next
 * allocations need not wait. */
#define DROP_AT_LEAST 16384u
/* Memory of the table of regions: a 16th of that for requests in flight.  When
 * it is full, a 32nd of all replicas is dropped. */
#define REGIONS_SHARE 16u
#define LEAST_SHARE 32u

/* ---- Mount ---- */

static int region_take(struct fs *fs, const struct tree_item *item)
{
	const struct region_item *value = item->value;
	struct replica_region region = {
		.sector = addr_sector(item->key.off),
		.number = le64_get(value->number),
		.sectors = le32_get(value->sectors),
		.copies = le32_get(value->copies),
		.uses = le32_get(value->uses),
		.used_seconds = le64_get(value->used_seconds),
		.made_seconds = le64_get(value->made_seconds),
	};
	int rc;

	region.live = region.copies;
	rc = region.sector + region.sectors > fs->disk->limits.sectors ?
		-EUCLEAN :
		regions_add(fs->replicas->regions, &region);
	if (rc == -EUCLEAN)
		msg_warn("%s: the region of copies at sector %llu meets "
			 "another, or the end of the disk",
			 fs->disk->name,
			 (unsigned long long)region.sector);
	return rc == -EUCLEAN ? 0 : rc;
}

int replicas_open(struct fs *fs, const struct replica_table_ops *ops)
{
	struct replicas *replicas = calloc(1, sizeof(*replicas));
	int rc;

	if (!replicas)
		return -ENOMEM;
	fs->replicas = replicas;
	replicas->fs = fs;
	replicas->ops = ops;
	replicas->most = fs->options.replicas;
	replicas->next_ns = env_now_ns(fs->env) + BUSY_FIRST_NS;
	list_init(&replicas->waits);
	replicas->regions = regions_new(fs->budget.flight / REGIONS_SHARE /
					sizeof(struct replica_region));
	if (!replicas->regions)
		return -ENOMEM;
	rc = item_scan(fs, ITEM_REGION, region_take);
	if (rc)
		return rc;
	space_set_replicas(tree_space(fs->tree),
			   regions_sectors(replicas->regions));
	return 0;
}

void replicas_free(struct fs *fs)
{
	if (!fs->replicas)
		return;
	regions_free(fs->replicas->regions);
	free(fs->replicas);
	fs->replicas = NULL;
}

bool replicas_idle(const struct replicas *replicas)
{
	return !replicas || (!replicas->dropping && !replicas->committing &&
			     !replicas->maker);
}

/* ---- For code that changes blocks ---- */

static void region_lost(struct fs *fs, uint64_t sector, uint64_t number)
{
	struct replica_region *region =
		regions_find(fs->replicas->regions, sector, number);

	if (region && region->live)
		region->live--;
}

int replica_probe(struct fs_txn *txn, uint64_t ino,
		  const struct inode_item *item, uint64_t first, unsigned *n,
		  struct replica_drop *drop)
{
	uint64_t off = replica_off(first / CHUNK_BLOCKS * CHUNK_BLOCKS, 0);
	unsigned room = tree_txn_room(txn->tree_txn);
	const struct replica_item *value;
	struct tree_item found;
	uint64_t block;
	int rc;

	drop->n = 0;
	if (!(le32_get(item->flags) & INODE_HAS_COPIES))
		return 0;
	for (;; off = found.key.off + 1) {
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(ino, ITEM_REPLICA, off),
				  key_make(ino, ITEM_REPLICA,
					   replica_off(first + *n, 0) - 1),
				  &found);
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		value = found.value;
		block = found.key.off / TRAX_MAX_REPLICAS;
		if (block + le16_get(value->blocks) <= first)
			continue;
		if (block > first &&
		    (drop->n == REPLICA_DROPS ||
		     room - tree_txn_room(txn->tree_txn) >= REPLICA_PATHS)) {
			*n = (unsigned)(block - first);
			return 0;
		}
		assert(drop->n < REPLICA_DROPS);
		drop->drop[drop->n].off = found.key.off;
		drop->drop[drop->n].region = le64_get(value->region);
		drop->drop[drop->n++].number = le64_get(value->number);
	}
}

void replica_apply(struct fs_txn *txn, uint64_t ino,
		   const struct replica_drop *drop)
{
	struct fs *fs = txn->fs;
	unsigned i;

	for (i = 0; i < drop->n; i++) {
		tree_del(txn->tree_txn, key_make(ino, ITEM_REPLICA,
					       drop->drop[i].off));
		region_lost(fs, drop->drop[i].region, drop->drop[i].number);
		fs->replicas->stats.dropped++;
	}
}

int replica_clear(struct fs_txn *txn, uint64_t ino, uint64_t first,
		  uint64_t end, bool *more)
{
	struct key from = key_make(ino, ITEM_REPLICA, replica_off(
		first / CHUNK_BLOCKS * CHUNK_BLOCKS, 0));
	struct key last = key_make(ino, ITEM_REPLICA, replica_off(end, 0) - 1);
	struct tree_item item;
	struct key next;
	int rc, err;

	*more = false;
	rc = tree_seek_ge(txn->tree_txn, from, last, &item);
	if (rc == -ENOENT)
		return 0;
	err = tree_get(txn->tree_txn, from, &item);
	if (!rc && err && err != -ENOENT)
		rc = err;
	err = tree_get(txn->tree_txn, last, &item);
	if (!rc && err && err != -ENOENT)
		rc = err;
	if (rc)
		return rc;
	next = tree_del_range(txn->tree_txn, from, last, CLEAR_NODES);
	*more = key_cmp(next, last) <= 0;
	return 0;
}

/* ---- For code that reads ---- */

static bool copy_counts(struct replica_regions *regions,
			const struct replica_copy *copy)
{
	const struct replica_region *region =
		regions_find(regions, copy->region, copy->number);

	return region && copy->sector + copy->blocks * BLOCK_SECTORS <=
			 region->sector + region->sectors;
}

int replica_find(struct fs_txn *txn, uint64_t ino, uint64_t first,
		 uint64_t end, struct replica_copy *found, unsigned *n)
{
	uint64_t off = replica_off(first / CHUNK_BLOCKS * CHUNK_BLOCKS, 0);
	const struct replica_item *value;
	struct replica_copy copy;
	struct tree_item item;
	int rc = 0;

	*n = 0;
	for (; *n < REPLICA_FOUND; off = item.key.off + 1) {
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(ino, ITEM_REPLICA, off),
				  key_make(ino, ITEM_REPLICA,
					   replica_off(end, 0) - 1), &item);
		if (rc)
			break;
		value = item.value;
		copy = (struct replica_copy){
			.block = item.key.off / TRAX_MAX_REPLICAS,
			.blocks = le16_get(value->blocks),
			.sector = addr_sector(le64_get(value->addr)),
			.region = addr_sector(le64_get(value->region)),
			.number = le64_get(value->number),
		};
		if (copy.block + copy.blocks > first &&
		    copy_counts(txn->fs->replicas->regions, &copy))
			found[(*n)++] = copy;
	}
	return rc == -ENOENT ? 0 : rc;
}

/* Finds the replica of `block` at this sector; NULL: there is none. */
static const struct replica_copy *copy_at(const struct replica_copy *found,
					  unsigned n, uint64_t block,
					  uint64_t sector)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (found[i].block <= block &&
		    block < found[i].block + found[i].blocks &&
		    found[i].sector + (block - found[i].block) *
		    BLOCK_SECTORS == sector)
			return &found[i];
	return NULL;
}

/* End of the row of replicas that begins with `block` in one of them, at most
 * `end`. */
static uint64_t row_end(const struct replica_copy *found, unsigned n,
			const struct replica_copy *copy, uint64_t block,
			uint64_t end)
{
	uint64_t sector = copy->sector + (block - copy->block) * BLOCK_SECTORS;
	uint64_t at = block;

	while (copy && at < end) {
		at = copy->block + copy->blocks;
		if (at < end)
			copy = copy_at(found, n, at, sector + (at - block) *
				       BLOCK_SECTORS);
	}
	return at < end ? at : end;
}

static bool copy_has(const struct replica_copy *copy, uint64_t block)
{
	return copy->block <= block && block < copy->block + copy->blocks;
}

unsigned replica_places(const struct replica_copy *found, unsigned n,
			uint64_t block, uint64_t blocks, uint64_t *sectors)
{
	unsigned i, places = 0;

	for (i = 0; i < n && places < TRAX_MAX_REPLICAS; i++)
		if (copy_has(&found[i], block) &&
		    row_end(found, n, &found[i], block, block + blocks) ==
		    block + blocks)
			sectors[places++] = found[i].sector +
				(block - found[i].block) * BLOCK_SECTORS;
	return places;
}

uint64_t replica_row(const struct replica_copy *found, unsigned n,
		     uint64_t first, uint64_t end)
{
	uint64_t longest = first, next = end, row;
	unsigned i;

	for (i = 0; i < n; i++) {
		if (copy_has(&found[i], first)) {
			row = row_end(found, n, &found[i], first, end);
			longest = row > longest ? row : longest;
		} else if (found[i].block > first && found[i].block < next) {
			next = found[i].block;
		}
	}
	return longest > first ? longest : next;
}

void replica_used(struct fs *fs, uint64_t sector, uint64_t bytes)
{
	struct replicas *replicas = fs->replicas;
	struct replica_region *region = regions_at(replicas->regions,
		regions_index(replicas->regions, sector));

	replicas->stats.used++;
	replicas->stats.used_bytes += bytes;
	if (!region || region->sector > sector)
		return;
	region->uses++;
	region->used_seconds = (uint64_t)env_wall_seconds(fs->env);
}

struct bad_replica {
	uint64_t ino, first, end;
	uint64_t sector;	/* sector of the replica of `first` */
	bool more;
};

/* Is this the bad replica, or one next to it? */
static bool bad_replica_is(const struct bad_replica *bad,
			   const struct tree_item *item)
{
	const struct replica_item *value = item->value;
	uint64_t block = item->key.off / TRAX_MAX_REPLICAS;
	uint64_t sector = addr_sector(le64_get(value->addr));

	return block < bad->end &&
	       block + le16_get(value->blocks) > bad->first &&
	       sector - block * BLOCK_SECTORS ==
	       bad->sector - bad->first * BLOCK_SECTORS;
}

static int bad_replica_run(struct fs_txn *txn)
{
	struct bad_replica *bad = txn->state;
	uint64_t off = replica_off(bad->first / CHUNK_BLOCKS * CHUNK_BLOCKS, 0);
	const struct replica_item *value;
	struct replica_drop drop = { .n = 0 };
	struct tree_item item;
	int rc;

	for (; drop.n < REPLICA_DROPS; off = item.key.off + 1) {
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(bad->ino, ITEM_REPLICA, off),
				  key_make(bad->ino, ITEM_REPLICA,
					   replica_off(bad->end, 0) - 1),
				  &item);
		if (rc == -ENOENT)
			break;
		if (rc)
			return rc;
		if (!bad_replica_is(bad, &item))
			continue;
		value = item.value;
		drop.drop[drop.n].off = item.key.off;
		drop.drop[drop.n].region = le64_get(value->region);
		drop.drop[drop.n++].number = le64_get(value->number);
	}
	bad->more = drop.n == REPLICA_DROPS;
	replica_apply(txn, bad->ino, &drop);
	return 0;
}

static void bad_replica_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct bad_replica *bad = txn->state;

	(void)seq;
	if (!rc && bad->more) {
		fs_txn_restart(txn);
		return;
	}
	abandon_free(bad);
	fs_txn_finish(txn, 0);
}

static const struct fs_txn_type bad_replica_type = {
	.name = "drop bad copies",
	.bounds = { .log_bytes = REPLICA_LOG_BYTES },
	.paths = 12,
	.changes = 12,
	.stages = 12,
	.run = bad_replica_run,
	.end = bad_replica_end,
};

void replica_bad(struct fs *fs, uint64_t ino, uint64_t first, uint64_t blocks,
		 uint64_t sector)
{
	struct bad_replica *bad = NULL;

	fs->replicas->stats.bad++;
	if (!fs_read_only(fs))
		bad = abandon_alloc(fs, sizeof(*bad));
	if (!bad)
		return;
	*bad = (struct bad_replica){ino, first, first + blocks, sector, false};
	msg_warn("%s: inode %llu, offset %llu: a copy is bad; it is dropped",
		 fs->disk->name, (unsigned long long)ino,
		 (unsigned long long)first * BLOCK_BYTES);
	if (fs_txn_start(fs, &bad_replica_type, NULL, bad))
		abandon_free(bad);
}

/* ---- For code that needs room ---- */

static void room_commit(struct replicas *replicas);

struct drop {
	struct replicas *replicas;
	uint64_t sector[DROP_REGIONS], size[DROP_REGIONS];
	unsigned n;
	uint64_t sectors;
};

static void drop_list(struct fs_txn *txn, const struct replica_region *region,
		      uint64_t *off, unsigned *n, int *rc)
{
	uint64_t at = region->sector;
	uint64_t last = region->sector + region->sectors - 1;
	struct tree_item item;

	for (*n = 0; *n < DROP_LIST; at = item.key.off + 1) {
		*rc = tree_seek_ge(txn->tree_txn, key_make(0, ITEM_COPIES, at),
				   key_make(0, ITEM_COPIES, last), &item);
		if (*rc == -ENOENT) {
			*rc = 0;
			return;
		}
		if (*rc)
			return;
		off[(*n)++] = item.key.off;
	}
}

/* Looks up all items of a region; 0, -EAGAIN, ... */
static int drop_probe(struct fs_txn *txn, const struct replica_region *region,
		      uint64_t *off, unsigned *n)
{
	struct tree_item item;
	int rc, err, list;

	rc = tree_get(txn->tree_txn, key_make(0, ITEM_OWNER, region->sector),
		      &item);
	err = tree_get(txn->tree_txn, key_make(0, ITEM_REGION, region->sector),
		       &item);
	drop_list(txn, region, off, n, &list);
	if (rc == -ENOENT || err == -ENOENT) {
		msg_error("%s: the region of copies at sector %llu has no %s",
			  txn->fs->disk->name,
			  (unsigned long long)region->sector,
			  rc ? "owner" : "item");
		return -EUCLEAN;
	}
	rc = rc && rc != -EAGAIN ? rc : err ? err : rc;
	return rc && rc != -EAGAIN ? rc : list ? list : rc;
}

static int drop_run(struct fs_txn *txn)
{
	struct drop *drop = txn->state;
	struct replica_regions *regions = drop->replicas->regions;
	unsigned room = tree_txn_room(txn->tree_txn), i, k, lists[DROP_REGIONS];
	uint64_t off[DROP_REGIONS][DROP_LIST];
	uint64_t from = drop->replicas->from;
	uint64_t now = (uint64_t)env_wall_seconds(txn->fs->env);
	struct replica_region *region;
	int rc = 0, err;

	drop->n = 0;
	drop->sectors = 0;
	/* Neighbours of the first region are dropped with it, as their items
	 * lie in the same leaves. */
	while (drop->n < DROP_REGIONS &&
	       (!drop->n || drop->sectors < drop->replicas->wanted) &&
	       room - tree_txn_room(txn->tree_txn) < DROP_CHANGES / 2) {
		region = regions_least(regions, from, drop->replicas->to, now);
		if (drop->n)
			region = regions_at(regions,
					    regions_index(regions, from));
		if (!region || region->sector >= drop->replicas->to)
			break;
		err = drop_probe(txn, region, off[drop->n],
				 &lists[drop->n]);
		if (err && err != -EAGAIN)
			return err;
		rc = err ? err : rc;
		from = region->sector + region->sectors;
		drop->sectors += region->sectors;
		drop->size[drop->n] = region->sectors;
		drop->sector[drop->n++] = region->sector;
	}
	for (i = 0; !rc && i < drop->n; i++) {
		tree_del(txn->tree_txn,
			 key_make(0, ITEM_OWNER, drop->sector[i]));
		tree_del(txn->tree_txn, key_make(0, ITEM_REGION,
					       drop->sector[i]));
		for (k = 0; k < lists[i]; k++)
			tree_del(txn->tree_txn, key_make(0, ITEM_COPIES,
						       off[i][k]));
	}
	return rc;
}

/* There is nothing more to drop: ends the waits for room. */
static void room_fail(struct replicas *replicas, int rc)
{
	struct fs_txn *txn;

	replicas->wanted = 0;
	while ((txn = list_first(&replicas->waits, struct fs_txn, link))) {
		list_del(&txn->link);
		if (rc)
			fs_txn_fail(txn, rc);
		else
			fs_txn_restart(txn);
	}
}

static void drop_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct drop *drop = txn->state;
	struct replicas *replicas = drop->replicas;
	unsigned i;

	(void)seq;
	fs_txn_finish(txn, 0);
	replicas->dropping = false;
	for (i = 0; !rc && i < drop->n; i++) {
		replicas->ops->dropped(replicas->fs, drop->sector[i],
				       drop->size[i]);
		regions_remove(replicas->regions, drop->sector[i]);
	}
	if (!rc)
		replicas->stats.reclaimed += drop->n;
	replicas->wanted -= drop->sectors < replicas->wanted ? drop->sectors :
				replicas->wanted;
	if (rc || !drop->n)
		replicas->wanted = 0;
	abandon_free(drop);
	if (rc)
		room_fail(replicas, rc);
	else
		room_pump(replicas);
}

static const struct fs_txn_type drop_type = {
	.name = "drop copies",
	.bounds = { .log_bytes = DROP_LOG_BYTES, .urgent = true },
	.paths = DROP_PATHS,
	.changes = DROP_CHANGES,
	.stages = 20,
	.run = drop_run,
	.end = drop_end,
};

static void room_committed(struct waiter *waiter, int rc)
{
	struct replicas *replicas = waiter->owner;

	replicas->committing = false;
	if (rc) {
		room_fail(replicas, rc);
		return;
	}
	space_release_dropped(tree_space(replicas->fs->tree));
	if (space_cover_dropped(tree_space(replicas->fs->tree)))
		room_commit(replicas);
	else if (!replicas->dropping)
		room_fail(replicas, 0);
}

static void room_commit(struct replicas *replicas)
{
	replicas->committing = true;
	replicas->commit = (struct waiter){
		.done = room_committed, .owner = replicas,
	};
	list_init(&replicas->commit.link);
	tree_commit(replicas->fs->tree, UINT64_MAX, &replicas->commit);
}

/* Runs one transaction after the other; the commit follows the last one. */
void room_pump(struct replicas *replicas)
{
	struct fs *fs = replicas->fs;
	struct drop *drop;

	if (replicas->dropping)
		return;
	if (replicas->wanted && regions_count(replicas->regions)) {
		drop = abandon_alloc(fs, sizeof(*drop));
		if (!drop || (drop->replicas = replicas,
			      fs_txn_start(fs, &drop_type, NULL, drop))) {
			abandon_free(drop);
			room_fail(replicas, 0);
			return;
		}
		replicas->dropping = true;
		return;
	}
	replicas->wanted = 0;
	if (replicas->committing || replicas->ops->stop(replicas->maker))
		return;
	if (space_cover_dropped(tree_space(fs->tree)))
		room_commit(replicas);
	else
		room_fail(replicas, 0);
}

void replica_reclaim(struct fs *fs, uint64_t sectors)
{
	if (sectors > fs->replicas->wanted)
		fs->replicas->wanted = sectors;
	fs->replicas->from = 0;
	fs->replicas->to = UINT64_MAX;
	room_pump(fs->replicas);
}

void replica_reclaim_in(struct fs *fs, uint64_t from, uint64_t to,
			uint64_t sectors)
{
	if (fs->replicas->wanted || fs->replicas->dropping)
		return;
	fs->replicas->wanted = sectors;
	fs->replicas->from = from;
	fs->replicas->to = to;
	room_pump(fs->replicas);
}

void replica_reclaim_least(struct fs *fs)
{
	replica_reclaim_in(fs, 0, UINT64_MAX,
			   1 + regions_sectors(fs->replicas->regions) /
			       LEAST_SHARE);
}

bool replica_more_room(struct fs *fs, uint64_t sectors)
{
	struct replicas *replicas = fs->replicas;

	if (!replicas)
		return false;
	if (!regions_count(replicas->regions) && !replicas->committing &&
	    !replicas->dropping && !replicas->ops->stop(replicas->maker))
		return false;
	replica_reclaim(fs, sectors < DROP_AT_LEAST ? DROP_AT_LEAST : sectors);
	return true;
}

int replica_room(struct fs_txn *txn, uint64_t sectors)
{
	struct replicas *replicas = txn->fs->replicas;

	if (!replicas)
		return 0;
	list_add(&replicas->waits, &txn->link);
	if (replica_more_room(txn->fs, sectors))
		return FS_TXN_WAIT;
	list_del(&txn->link);
	return 0;
}
