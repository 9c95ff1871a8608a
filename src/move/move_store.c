/*
 * move_store.c - stores the state of moves over mounts: a pause, and the
 * sectors written by users and by moves in each month of the file system's
 * life.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "move/move_internal.h"

#define ITEM_VERSION 1u	/* Version of clean_item (format.h). */

struct moves_stored {
	struct clean_item item;
	struct clean_month month[CLEAN_MONTHS];
};
static_assert(sizeof(struct moves_stored) <= TRAX_MAX_ITEM_BYTES, "stored");

static struct key item_key(void)
{
	return key_make(0, ITEM_CLEAN, 0);
}

/* ---- Counting ---- */

void moves_count(struct moves *moves)
{
	int64_t age = env_wall_seconds(moves->fs->env) - moves->begun_seconds;
	int64_t i = age < 0 ? 0 : age / (MOVE_MONTH_NS / NS_PER_SECOND);
	const struct moves_month now = {
		.data = moves->fs->files->written_bytes / SECTOR_BYTES,
		.read = moves->status.read_sectors +
			moves->status.compared_sectors,
		.written = moves->status.written_sectors,
	};
	struct moves_month *month =
		&moves->month[i < CLEAN_MONTHS ? i : CLEAN_MONTHS - 1];

	month->data += now.data - moves->counted.data;
	month->read += now.read - moves->counted.read;
	month->written += now.written - moves->counted.written;
	moves->counted = now;
}

/* Months up to the last one in which anything was written. */
static unsigned months(const struct moves *moves)
{
	unsigned n = CLEAN_MONTHS;

	while (n && !moves->month[n - 1].data && !moves->month[n - 1].written)
		n--;
	return n;
}

/* ---- Storing ---- */

static int store_run(struct fs_txn *txn)
{
	const struct moves *moves = txn->state;
	struct moves_stored stored;
	struct tree_item old;
	unsigned i, n = months(moves);
	int rc = tree_get(txn->tree_txn, item_key(), &old);

	if (rc && rc != -ENOENT)
		return rc;
	stored.item = (struct clean_item){
		.version = ITEM_VERSION,
		.paused = moves->status.paused,
		.months = le16_put((uint16_t)n),
		.begun_seconds = le64_put((uint64_t)moves->begun_seconds),
		.tracks = le64_put(moves->tracks_before +
				   moves->status.tracks),
	};
	for (i = 0; i < n; i++)
		stored.month[i] = (struct clean_month){
			le64_put(moves->month[i].data),
			le64_put(moves->month[i].read),
			le64_put(moves->month[i].written),
		};
	tree_put(txn->tree_txn, item_key(), &stored,
		 sizeof(stored.item) + n * sizeof(stored.month[0]));
	return 0;
}

static void store_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct moves *moves = txn->state;

	(void)rc;
	(void)seq;
	fs_txn_finish(txn, 0);
	moves->storing = false;
	if (moves->store_again)
		moves_store(moves);
}

static const struct fs_txn_type store_type = {
	.name = "store moves",
	.bounds = { .log_bytes = sizeof(struct moves_stored) + 128 },
	.paths = 1,
	.changes = 1,
	.run = store_run,
	.end = store_end,
};

/* Stores the item in the background.  If that is lost some minutes were not
 * counted. */
void moves_store(struct moves *moves)
{
	moves->store_again = moves->storing;
	if (moves->storing || fs_read_only(moves->fs))
		return;
	moves_count(moves);
	moves->stored_ns = env_now_ns(moves->fs->env);
	moves->storing = !fs_txn_start(moves->fs, &store_type, NULL, moves);
}

/* ---- Reading it back ---- */

static int recall_run(struct fs_txn *txn)
{
	struct moves *moves = txn->state;
	const struct clean_item *item;
	const struct clean_month *month;
	struct tree_item found;
	unsigned i;
	int rc = tree_get(txn->tree_txn, item_key(), &found);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	item = found.value;
	if (found.bytes < sizeof(*item) || item->version != ITEM_VERSION ||
	    le16_get(item->months) > CLEAN_MONTHS ||
	    found.bytes != sizeof(*item) +
			   le16_get(item->months) * sizeof(*month))
		return 0;
	month = (const void *)(item + 1);
	moves->begun_seconds = (int64_t)le64_get(item->begun_seconds);
	moves->tracks_before = le64_get(item->tracks);
	moves->status.paused |= item->paused;
	for (i = 0; i < le16_get(item->months); i++)
		moves->month[i] = (struct moves_month){
			le64_get(month[i].data_sectors),
			le64_get(month[i].read_sectors),
			le64_get(month[i].written_sectors),
		};
	return 0;
}

static void recall_end(struct fs_txn *txn, int rc, uint64_t seq)
{
	struct moves *moves = txn->state;

	(void)rc;
	(void)seq;
	fs_txn_finish(txn, 0);
	moves->storing = false;
	moves->known = true;
	if (!moves->begun_seconds)
		moves->begun_seconds = env_wall_seconds(moves->fs->env);
	if (moves->store_again)
		moves_store(moves);
}

static const struct fs_txn_type recall_type = {
	.name = "recall moves",
	.paths = 1,
	.run = recall_run,
	.end = recall_end,
};

int moves_recall(struct moves *moves)
{
	moves->storing = !fs_txn_start(moves->fs, &recall_type, NULL, moves);
	return moves->storing ? 0 : -ENOMEM;
}

/* ---- For people ---- */

/* Sectors that the disk read and wrote for each that users wrote. */
static double write_cost(const struct moves_month *month)
{
	return month->data ? 1 + (double)(month->read + month->written) /
				 (double)month->data : 0;
}

static json_t *months_json(const struct moves *moves)
{
	json_t *array = json_array();
	unsigned i;

	for (i = 0; i < months(moves); i++)
		json_array_append_new(array, json_pack(
			"{s:I, s:I, s:I, s:f}", "data_bytes",
			(json_int_t)(moves->month[i].data * SECTOR_BYTES),
			"read_bytes",
			(json_int_t)(moves->month[i].read * SECTOR_BYTES),
			"written_bytes",
			(json_int_t)(moves->month[i].written * SECTOR_BYTES),
			"write_cost", write_cost(&moves->month[i])));
	return array;
}

static json_t *order_json(const struct moves *moves)
{
	struct order_status s;

	order_get_status(moves, &s);
	return json_pack(
		"{s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I}",
		"paused", s.paused, "at_work", s.is_at_work,
		"files_waiting", (json_int_t)s.wanted,
		"batches", (json_int_t)s.batches, "left", (json_int_t)s.left,
		"moved_bytes", (json_int_t)(s.sectors * SECTOR_BYTES),
		"fragments_before", (json_int_t)s.runs_before,
		"fragments_after", (json_int_t)s.runs_after);
}

char *moves_json(struct moves *moves)
{
	struct moves_month all = { 0, 0, 0 };
	struct moves_status s;
	json_t *json;
	unsigned i;
	char *text;

	moves_get_status(moves, &s);
	moves_count(moves);
	for (i = 0; i < CLEAN_MONTHS; i++) {
		all.data += moves->month[i].data;
		all.read += moves->month[i].read;
		all.written += moves->month[i].written;
	}
	json = json_pack(
		"{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o}",
		"paused", s.paused,
		"under_way", (json_int_t)s.under_way,
		"begun", (json_int_t)s.begun,
		"tracks", (json_int_t)(moves->tracks_before + s.tracks),
		"moved_bytes", (json_int_t)(s.sectors * SECTOR_BYTES),
		"stale_bytes", (json_int_t)(s.stale_sectors * SECTOR_BYTES),
		"failed_bytes", (json_int_t)(s.failed_sectors * SECTOR_BYTES),
		"write_cost", write_cost(&all),
		"months", months_json(moves),
		"order", order_json(moves));
	text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	json_decref(json);
	return text;
}
