/*
 * replica_ops.c - replicas on request, and facts about them: FS_COPIES...,
 * FS_HEAT.  Texts are JSON, in op->buffer, which the caller frees; where they
 * may be long, op->offset2 says where to begin, and they end after TEXT_BYTES.
 */
#include "fs/replica/replica_ops.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fs/replica/copy_limit.h"
#include "fs/replica/node_replicas.h"
#include "fs/data/file_data.h"
#include "fs/replica/replicate.h"
#include "fs/table/replica.h"
#include "fs/replica/replica_readahead.h"
#include "fs/replica/access_trace.h"

/* Bytes after which a text ends, so that it fits into an extended attribute of
 * 64 KiB. */
#define TEXT_BYTES 50000u
#define ENTRY_BYTES 200u	/* most bytes of text for one replica */
/* A block behind the end of any file: 2^50 blocks are 2^62 bytes. */
#define FOREVER_BLOCKS (1ull << 50)
/* Most files of one FS_COPIES_MAKE: their list takes 2 MiB. */
#define MOST_FILES 65536u

static void set(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

/* Answers with the text of `json`, which it frees. */
static void answer_text(struct fs *fs, struct fs_op *op, json_t *json, int rc)
{
	op->buffer = rc ? NULL : json_dumps(json, JSON_INDENT(1));
	json_decref(json);
	if (!rc && !op->buffer)
		rc = -ENOMEM;
	op->result = rc ? 0 : strlen(op->buffer);
	fs_answer(fs, op, rc);
}

/* ---- Making, dropping, switching ---- */

static void make_done(void *arg, uint64_t copies)
{
	struct fs_op *op = arg;

	op->result = copies;
	fs_answer(op->txn, op, 0);
}

void copies_op_make(struct fs *fs, struct fs_op *op)
{
	const uint64_t *ino = op->data;
	struct replica_want *want;
	uint64_t i;
	int rc;

	if (!op->size || op->size > MOST_FILES) {
		fs_answer(fs, op, -EINVAL);
		return;
	}
	if (op->offset >= fs->disk->limits.sectors) {
		fs_answer(fs, op, -ERANGE);
		return;
	}
	want = calloc(op->size, sizeof(*want));
	for (i = 0; want && i < op->size; i++)
		want[i] = (struct replica_want){ ino[i], 0, FOREVER_BLOCKS };
	op->txn = fs;
	rc = want ? replica_make(fs, want, op->size,
				 op->offset ? op->offset : access_trace_hot(fs),
				 false, make_done, op)
		  : -ENOMEM;
	free(want);
	if (rc)
		fs_answer(fs, op, rc);
}

void copies_op_set(struct fs *fs, struct fs_op *op)
{
	if (op->size > TRAX_MAX_REPLICAS) {
		fs_answer(fs, op, -EINVAL);
		return;
	}
	if (fs->replicas)
		fs->replicas->most = (unsigned)op->size;
	if (!op->size && fs->replicas)
		replica_maker_cancel(fs->replicas->maker);
	fs_answer(fs, op, 0);
}

static int clear_run(struct fs_txn *txn)
{
	struct fs_op *op = txn->op;
	bool more;
	int rc = replica_clear(txn, op->ino, 0, FOREVER_BLOCKS, &more);

	op->result = more;
	return rc;
}

static void clear_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	(void)seq;
	if (!rc && txn->op->result)
		fs_txn_restart(txn);
	else
		fs_txn_finish(txn, rc);
}

static const struct fs_txn_type clear_type = {
	.name = "drop a file's copies",
	.bounds = { .log_bytes = 256 },
	.paths = 12,
	.changes = 12,
	.stages = 12,
	.run = clear_run,
	.end = clear_end,
};

/* Replicas of all files are dropped by region. */
void copies_op_drop(struct fs *fs, struct fs_op *op)
{
	if (op->ino != TRAX_ROOT_INO) {
		fs_txn_start(fs, &clear_type, op, NULL);
		return;
	}
	replica_maker_cancel(fs->replicas->maker);
	op->result = regions_count(fs->replicas->regions);
	replica_reclaim(fs, UINT64_MAX);
	fs_answer(fs, op, 0);
}

/* ---- Copies of a file ---- */

struct replica_listing {
	json_t *array;
	uint64_t next;		/* offset of the next key */
	size_t bytes;
	bool over;
};

static void listing_add(struct fs *fs, struct replica_listing *listing,
			const struct tree_item *item)
{
	const struct replica_item *value = item->value;
	uint64_t sector = addr_sector(le64_get(value->addr));
	uint64_t region_at = addr_sector(le64_get(value->region));
	const struct replica_region *region;
	struct geom_track track;
	struct geom_place place;
	json_t *object, *copy;

	region = regions_find(fs->replicas->regions, region_at,
			      le64_get(value->number));
	if (!region || sector >= geom_sectors(fs->geom))
		return;
	geom_track_of(fs->geom, sector, &track);
	geom_place_of(fs->geom, sector, &place);
	copy = json_object();
	set(copy, "lbn", sector);
	set(copy, "track", track.index);
	json_object_set_new(copy, "angle",
			    json_real((double)place.start / 4294967296.0));
	set(copy, "uses", region->uses);
	set(copy, "last_use", region->used_seconds);
	object = json_object();
	set(object, "offset", item->key.off / TRAX_MAX_REPLICAS * BLOCK_BYTES);
	set(object, "length", (uint64_t)le16_get(value->blocks) * BLOCK_BYTES);
	json_object_set_new(object, "copies", json_pack("[o]", copy));
	json_array_append_new(listing->array, object);
	listing->bytes += ENTRY_BYTES;
}

static int listing_run(struct fs_txn *txn)
{
	struct replica_listing *listing = txn->state;
	uint64_t ino = txn->op->ino;
	struct tree_item item;
	int rc;

	while (tree_txn_room(txn->tree_txn) >= TREE_SEEK_NODES &&
	       listing->bytes < TEXT_BYTES) {
		rc = tree_seek_ge(txn->tree_txn,
				  key_make(ino, ITEM_REPLICA, listing->next),
				  key_make(ino, ITEM_REPLICA, UINT64_MAX),
				  &item);
		if (rc == -ENOENT)
			listing->over = true;
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		listing_add(txn->fs, listing, &item);
		listing->next = item.key.off + 1;
	}
	listing->over = listing->bytes >= TEXT_BYTES;
	return 0;
}

static void listing_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct replica_listing *listing = txn->state;
	struct fs_op *op = txn->op;
	struct fs *fs = txn->fs;
	json_t *array = listing->array;

	(void)seq;
	if (!rc && !listing->over) {
		fs_txn_restart(txn);
		return;
	}
	abandon_free(listing);
	txn->op = NULL;
	fs_txn_finish(txn, 0);
	answer_text(fs, op, array, rc);
}

static const struct fs_txn_type listing_type = {
	.name = "list copies",
	.bounds = { .nodes = 16 },
	.stages = 16,
	.run = listing_run,
	.end = listing_end,
};

json_t *copies_summary(struct fs *fs)
{
	const struct replicas *replicas = fs->replicas;
	const struct replica_stats *stats;
	const struct replica_ra_stats *runs;
	const struct node_replicas_stats *nodes;
	json_t *object = json_object();
	const char *why;

	if (!replicas)
		return object;
	stats = &replicas->stats;
	runs = replica_ra_stats(fs);
	nodes = node_replicas_stats(fs);
	why = copies_why_not(fs);
	set(object, "most", replicas->most);
	set(object, "regions", regions_count(replicas->regions));
	set(object, "sectors", regions_sectors(replicas->regions));
	set(object, "made", stats->made);
	set(object, "made_bytes", stats->made_bytes);
	set(object, "skipped", stats->skipped);
	set(object, "dropped", stats->dropped);
	set(object, "regions_reclaimed", stats->reclaimed);
	set(object, "reads_offered", stats->offered);
	set(object, "reads_used", stats->used);
	set(object, "bytes_used", stats->used_bytes);
	set(object, "bad", stats->bad);
	set(object, "replica_readaheads", runs->loads);
	set(object, "replica_readahead_bytes", runs->load_bytes);
	set(object, "replica_readahead_hits", runs->hits);
	set(object, "node_waits", nodes->waits);
	set(object, "node_hits", nodes->hits);
	set(object, "nodes_made", nodes->made);
	set(object, "hot_sector", access_trace_hot(fs));
	json_object_set_new(object, "busy", json_boolean(replicas->maker));
	json_object_set_new(object, "why_not", why ? json_string(why)
						   : json_null());
	access_trace_accounts(fs, object);
	return object;
}

void copies_op_list(struct fs *fs, struct fs_op *op)
{
	struct replica_listing *listing;

	if (op->ino == TRAX_ROOT_INO) {
		answer_text(fs, op, copies_summary(fs), 0);
		return;
	}
	listing = abandon_alloc(fs, sizeof(*listing));
	if (!listing) {
		fs_answer(fs, op, -ENOMEM);
		return;
	}
	listing->array = json_array();
	listing->next = replica_off(op->offset2 / BLOCK_BYTES, 0);
	fs_txn_start(fs, &listing_type, op, listing);
}

/* ---- Heat ---- */

void copies_op_heat(struct fs *fs, struct fs_op *op)
{
	const struct heat *heat = access_trace_heat(fs);
	json_t *object = json_object(), *regions = json_array(), *pair;
	uint32_t i, n = heat ? heat_regions(heat) : 0;
	size_t bytes = 0;

	set(object, "region_sectors", HEAT_REGION_SECTORS);
	set(object, "sectors", geom_sectors(fs->geom));
	for (i = 0; !op->offset2 && i < n && bytes < TEXT_BYTES / 2; i++) {
		if (heat_region(heat, i) < 0.5)
			continue;
		pair = json_pack("[i, f]", (int)i, heat_region(heat, i));
		json_array_append_new(regions, pair);
		bytes += 32;
	}
	json_object_set_new(object, "regions", regions);
	access_trace_trace(fs, op->offset2, TEXT_BYTES - bytes, object);
	answer_text(fs, op, object, 0);
}
