/*
 * replica_attach.c - puts a region and its replicas into the tree.
 */
#include "fs/replica/replicate_internal.h"

#include <errno.h>

#include "fs/data/bmap.h"
#include "fs/data/file_data.h"
#include "fs/table/replica.h"
#include "fs/replica/node_replicas.h"

/* Bounds of one transaction: leaves met and changed, and bytes of log.  It
 * attaches up to ATTACH_ENTRIES entries, as long as it has changed fewer than
 * ATTACH_CHANGES - 6 leaves. */
#define ATTACH_PATHS 40u
#define ATTACH_CHANGES 24u
#define ATTACH_LOG_BYTES 16384u
/* Most replicas that one entry may replace: four of each block of a chunk, and
 * two more. */
#define ATTACH_OLD 66u

/* ---- Attach ---- */

struct attach {
	struct inode_item item;
	uint64_t old[ATTACH_OLD];	/* keys of replicas to be dropped */
	unsigned old_n;
	unsigned k;
	bool good;
};

struct attach_all {
	struct replica_maker *maker;
	unsigned first, n;
	struct attach attach[ATTACH_ENTRIES];
};

static bool sums_agree(const struct replica_maker *maker,
		       const struct replica_entry *entry,
		       const struct csum_window *window)
{
	const uint8_t *data = maker->buffer + (size_t)entry->at * BLOCK_BYTES;
	unsigned p = entry->block % TRAX_CSUM_WINDOW_BLOCKS / CHUNK_BLOCKS;
	unsigned first = entry->block % CHUNK_BLOCKS, i;

	for (i = 0; i < entry->blocks; i++)
		if (!(window->mask[p] & 1u << (first + i)) ||
		    csum_block(data + (size_t)i * BLOCK_BYTES) !=
		    window->sum[p][first + i])
			return false;
	return true;
}

/*
 * Looks up the replicas of these blocks: drops those that count no more and, of
 * those that count, enough to stay within the limit with the new one.
 */
static int attach_old(struct fs_txn *txn, const struct replica_entry *entry,
		      struct attach *attach)
{
	uint64_t off = replica_off(entry->block / CHUNK_BLOCKS * CHUNK_BLOCKS,
				   0);
	uint64_t last = replica_off(entry->block + entry->blocks, 0) - 1;
	struct replicas *replicas = txn->fs->replicas;
	const struct replica_item *value;
	unsigned kept = 0, used = 0;
	struct tree_item item;
	uint64_t block;
	int rc;

	attach->old_n = 0;
	for (;; off = item.key.off + 1) {
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(entry->ino, ITEM_REPLICA, off),
				  key_make(entry->ino, ITEM_REPLICA, last),
				  &item);
		if (rc)
			break;
		value = item.value;
		block = item.key.off / TRAX_MAX_REPLICAS;
		if (block + le16_get(value->blocks) <= entry->block)
			continue;
		if (kept + 1 < replicas->most &&
		    regions_find(replicas->regions,
				 addr_sector(le64_get(value->region)),
				 le64_get(value->number))) {
			kept++;
			if (block == entry->block)
				used |= 1u << item.key.off % TRAX_MAX_REPLICAS;
			continue;
		}
		if (attach->old_n == ATTACH_OLD)
			return -E2BIG;
		attach->old[attach->old_n++] = item.key.off;
	}
	attach->k = used & 1 ? used & 2 ? used & 4 ? 3 : 2 : 1 : 0;
	return rc == -ENOENT ? 0 : rc;
}

/* Probes all that attaching an entry changes: 0, -EAGAIN, or an error that ends
 * the transaction. */
static int attach_probe(struct fs_txn *txn, const struct replica_maker *maker,
			const struct replica_entry *entry,
			struct attach *attach)
{
	struct vnode *vnode = vnode_find(txn->fs, entry->ino);
	struct csum_window window;
	struct tree_item item;
	int rc, err, old;

	attach->good = false;
	if (vnode && vnode->file && !list_empty(&vnode->file->excl_locks))
		return 0;
	rc = inode_get(txn, entry->ino, &attach->item);
	err = bmap_window(txn, entry->ino,
			 entry->block / TRAX_CSUM_WINDOW_BLOCKS, &window);
	old = attach_old(txn, entry, attach);
	if (rc == -ENOENT || rc == -ESTALE || old == -E2BIG)
		return 0;
	rc = rc && rc != -EAGAIN ? rc : err ? err : rc;
	rc = rc && rc != -EAGAIN ? rc : old ? old : rc;
	if (rc)
		return rc;
	rc = tree_get(txn->tree_txn,
		      key_make(entry->ino, ITEM_REPLICA,
			       replica_off(entry->block, attach->k)), &item);
	if (rc && rc != -ENOENT)
		return rc;
	attach->good = sums_agree(maker, entry, &window);
	return 0;
}

static void attach_apply(struct fs_txn *txn, const struct replica_maker *maker,
			 const struct replica_entry *entry,
			 struct attach *attach)
{
	struct replica_item value = {
		.addr = le64_put(addr_make(0, maker->extent.sector +
					   entry->at * BLOCK_SECTORS)),
		.region = le64_put(addr_make(0, maker->extent.sector)),
		.number = le64_put(maker->number),
		.blocks = le16_put((uint16_t)entry->blocks),
	};
	uint32_t flags = le32_get(attach->item.flags);
	struct tree_item old;
	struct key key;
	unsigned i;

	/* A replica may cover blocks of an entry before this one, too. */
	for (i = 0; i < attach->old_n; i++) {
		key = key_make(entry->ino, ITEM_REPLICA, attach->old[i]);
		if (tree_get(txn->tree_txn, key, &old) == 0)
			tree_del(txn->tree_txn, key);
	}
	tree_put(txn->tree_txn,
		 key_make(entry->ino, ITEM_REPLICA,
			  replica_off(entry->block, attach->k)),
		 &value, sizeof(value));
	if (flags & INODE_HAS_COPIES)
		return;
	attach->item.flags = le32_put(flags | INODE_HAS_COPIES);
	inode_put(txn, entry->ino, &attach->item);
}

static int replica_attach_run(struct fs_txn *txn)
{
	struct attach_all *all = txn->state;
	struct replica_maker *maker = all->maker;
	unsigned room = tree_txn_room(txn->tree_txn), i;
	int rc = 0, err;

	all->n = 0;
	if (!regions_find(maker->replicas->regions, maker->extent.sector,
			  maker->number))
		maker->stop = true;
	while (!maker->stop && all->n < ATTACH_ENTRIES &&
	       all->first + all->n < maker->fit &&
	       room - tree_txn_room(txn->tree_txn) < ATTACH_CHANGES - 6) {
		err = attach_probe(txn, maker,
				   &maker->entry[all->first + all->n],
				   &all->attach[all->n]);
		if (err && err != -EAGAIN)
			return err;
		rc = err ? err : rc;
		all->n++;
	}
	for (i = 0; !rc && i < all->n; i++)
		if (all->attach[i].good)
			attach_apply(txn, maker,
				     &maker->entry[all->first + i],
				     &all->attach[i]);
	return rc;
}

static void attach_count(struct attach_all *all)
{
	struct replica_maker *maker = all->maker;
	struct replicas *replicas = maker->replicas;
	struct replica_region *region = regions_find(replicas->regions,
					     maker->extent.sector,
					     maker->number);
	const struct replica_entry *entry;
	struct vnode *vnode;
	unsigned i;

	for (i = 0; i < all->n; i++) {
		entry = &maker->entry[all->first + i];
		if (!all->attach[i].good) {
			replicas->stats.skipped++;
			continue;
		}
		vnode = vnode_find(replicas->fs, entry->ino);
		if (vnode && vnode->file)
			vnode->file->copies = true;
		replicas->stats.made++;
		replicas->stats.made_bytes += entry->blocks * BLOCK_BYTES;
		maker->copies++;
		if (region)
			region->live++;
	}
	maker->attached += all->n;
}

static void replica_attach_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct attach_all *all = txn->state;
	struct replica_maker *maker = all->maker;

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc)
		maker->stop = true;
	else
		attach_count(all);
	abandon_free(all);
	replica_maker_step(maker);
}

static const struct fs_txn_type attach_type = {
	.name = "attach copies",
	.bounds = { .log_bytes = ATTACH_LOG_BYTES },
	.paths = ATTACH_PATHS,
	.changes = ATTACH_CHANGES,
	.stages = 60,
	.run = replica_attach_run,
	.end = replica_attach_end,
};

int replica_maker_attach(struct replica_maker *maker)
{
	struct fs *fs = replica_maker_fs(maker);
	struct attach_all *all = abandon_alloc(fs, sizeof(*all));
	int rc;

	if (!all)
		return -ENOMEM;
	all->maker = maker;
	all->first = maker->attached;
	rc = fs_txn_start(fs, &attach_type, NULL, all);
	if (rc)
		abandon_free(all);
	return rc;
}

/* ---- The region ---- */

/* Puts the items of a region: runs of entries. */
static void region_put_copies(struct fs_txn *txn,
			      const struct replica_maker *maker)
{
	struct copy_entry list[TRAX_COPIES_PER_ITEM];
	const struct replica_entry *entry;
	unsigned i, n = 0, first = 0;

	for (i = 0; i < maker->fit; i++) {
		entry = &maker->entry[i];
		if (!n)
			first = entry->at;
		list[n++] = (struct copy_entry){
			.ino = le64_put(entry->ino),
			.block = le64_put(entry->block),
			.blocks = le16_put((uint16_t)entry->blocks),
		};
		if (n < TRAX_COPIES_PER_ITEM && i + 1 < maker->fit)
			continue;
		tree_put(txn->tree_txn,
			 key_make(0, ITEM_COPIES, maker->extent.sector +
				  first * BLOCK_SECTORS),
			 list, n * sizeof(*list));
		n = 0;
	}
}

int replica_region_run(struct fs_txn *txn)
{
	struct replica_maker *maker = txn->state;
	uint64_t now = (uint64_t)env_wall_seconds(txn->fs->env);
	struct owner_item owner = {
		.sectors = le64_put(maker->extent.n), .kind = OWNER_REPLICA,
	};
	struct region_item region = {
		.number = le64_put(maker->number),
		.sectors = le32_put((uint32_t)maker->extent.n),
		.made_seconds = le64_put(now),
		.copies = le32_put(maker->nodes ? 0 : maker->fit),
	};
	uint64_t sector = maker->extent.sector;
	uint64_t last = sector + maker->extent.n - 1;
	struct tree_item item;
	int rc[4], i;

	rc[0] = tree_get(txn->tree_txn, key_make(0, ITEM_OWNER, sector), &item);
	rc[1] = tree_get(txn->tree_txn, key_make(0, ITEM_REGION, sector),
			 &item);
	rc[2] = tree_get(txn->tree_txn, key_make(0, ITEM_COPIES, sector),
			 &item);
	rc[3] = tree_get(txn->tree_txn, key_make(0, ITEM_COPIES, last), &item);
	for (i = 0; i < 4; i++)
		if (rc[i] && rc[i] != -ENOENT && rc[i] != -EAGAIN)
			return rc[i];
	for (i = 0; i < 4; i++)
		if (rc[i] == -EAGAIN)
			return rc[i];
	for (i = 0; i < 4; i++)
		if (rc[i] == 0)
			return -EUCLEAN;
	/* Items between the first and the last key are looked up, too. */
	rc[0] = tree_seek_ge(txn->tree_txn, key_make(0, ITEM_COPIES, sector),
			     key_make(0, ITEM_COPIES, last), &item);
	if (rc[0] != -ENOENT)
		return rc[0] ? rc[0] : -EUCLEAN;
	tree_put(txn->tree_txn, key_make(0, ITEM_OWNER, sector), &owner,
		 sizeof(owner));
	tree_put(txn->tree_txn, key_make(0, ITEM_REGION, sector), &region,
		 sizeof(region));
	region_put_copies(txn, maker);
	return 0;
}

void replica_region_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct replica_maker *maker = txn->state;
	struct replica_region region = {
		.sector = maker->extent.sector, .number = maker->number,
		.sectors = (uint32_t)maker->extent.n,
		.copies = maker->nodes ? 0 : maker->fit,
		.made_seconds = (uint64_t)env_wall_seconds(txn->fs->env),
	};

	(void)seq;
	fs_txn_finish(txn, 0);
	if (rc) {
		maker->stop = true;
	} else {
		maker->taken = false;
		if (regions_add(maker->replicas->regions, &region))
			maker->stop = true;
		/* Reading replicas will need their COPIES items. */
		if (!maker->nodes)
			node_replicas_learn(replica_maker_fs(maker),
				    key_make(0, ITEM_COPIES, region.sector));
		/* Replicas of nodes have no items: a node says itself what it
		 * is. */
		maker->attached = maker->nodes ? maker->fit : 0;
		if (maker->nodes)
			maker->copies += maker->fit;
	}
	replica_maker_step(maker);
}
