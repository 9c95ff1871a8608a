/*
 * replay.c - applies the records of the log to the tree in memory.
 *
 * Before records are applied, the leaves that they change are read, as many at
 * once as half of the buffers take, in the order of their addresses: one by one
 * they would cost a seek each.  Leaves that do not fit, or turn out to be
 * needed later, are fetched then.
 *
 * Of logged data only the place in the log is remembered (logged_data.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/msg.h"
#include "base/sort.h"
#include "tree/tree_internal.h"

/* Buffers that applying one entry may take. */
#define REPLAY_BUFFERS 48
/* Leaves that are read at once: those of some tracks. */
#define FETCHES 256u
/* Keys that are looked at for one batch of leaves: this many for each buffer,
 * and in all. */
#define KEYS_PER_BUFFER 8u
#define MAX_KEYS (1u << 17)

struct wanted {
	traxaddr addr;
	struct key key;
};

struct replay {
	struct tree *tree;
	struct tree_txn *txn;
	int rc;			/* result of applying; errors of the log are
				 * separate */
	struct key *keys;	/* keys that the coming records change, in
				 * order */
	size_t n, room;
	size_t next;		/* the leaves of the keys before this one have
				 * been fetched */
	bool all_shown;		/* all coming records have been shown; what is
				 * shown next lies behind them */
	struct wanted *wanted;	/* nodes to be fetched now */
	size_t wanted_n, wanted_room;
};

/* ---- Leaves ahead ---- */

/* The first node on the way to a key that is not in memory; 0: all are. */
static traxaddr missing_node(struct tree *tree, struct key key)
{
	const struct buffer *f = tree->root;

	while (f->level) {
		const unsigned i = node_child_find(f->node, key);
		const struct buffer *child = tree_child(tree, f, i);

		if (!tree_resident(child))
			return node_child(f->node, i).addr;
		f = child;
	}
	return 0;
}

/* Lists the nodes that the keys from r->next on need and that are not in
 * memory.  Reduces *end if these are too many. */
static int wanted_collect(struct replay *r, size_t *end)
{
	struct hashmap *seen = hashmap_new();
	int rc = seen ? 0 : -ENOMEM;

	r->wanted_n = 0;
	for (size_t k = r->next; k < *end && !rc; k++) {
		const traxaddr addr = missing_node(r->tree, r->keys[k]);

		if (!addr || hashmap_get(seen, addr))
			continue;
		if (r->wanted_n == r->wanted_room) {
			*end = k;
			break;
		}
		r->wanted[r->wanted_n++] = (struct wanted){ addr, r->keys[k] };
		rc = hashmap_put(seen, addr, r);
	}
	hashmap_free(seen);
	return rc;
}

static int by_addr(const void *va, const void *vb)
{
	const struct wanted *a = va, *b = vb;

	return sort_order(a->addr, b->addr);
}

static int wait_loads(struct replay *r)
{
	int rc = 0;

	while (r->txn->loads && rc >= 0)
		rc = queue_poll(r->tree->queue, -1);
	list_del(&r->txn->link);
	return rc < 0 ? rc : 0;
}

/* Fetches the listed nodes.  A leaf that cannot be read is reported when it is
 * needed. */
static int wanted_fetch(struct replay *r)
{
	struct tree_txn *txn = r->txn;
	int rc = 0;

	if (r->wanted_n)
		qsort(r->wanted, r->wanted_n, sizeof(*r->wanted), by_addr);
	for (size_t i = 0; i < r->wanted_n && !rc; ) {
		struct tree_item item;

		txn_unpin_all(txn);
		txn->failed_n = txn->miss_n = 0;
		while (i < r->wanted_n && txn->miss_n < FETCHES)
			if (missing_node(r->tree, r->wanted[i++].key))
				tree_get(txn, r->wanted[i - 1].key, &item);
		if (txn->miss_n && fetch_start(txn))
			rc = wait_loads(r);
	}
	txn_unpin_all(txn);
	return rc;
}

/* Fetches level by level, as there are few nodes above the leaves. */
static int fetch_ahead(struct replay *r)
{
	const size_t buffers = buffer_available(r->tree->buffers);
	size_t end = r->n;
	int rc = 0;

	r->wanted_room =
		buffers > REPLAY_BUFFERS ? (buffers - REPLAY_BUFFERS) / 2 : 0;
	for (unsigned level = 0; level <= TRAX_MAX_LEVEL && !rc; level++) {
		rc = wanted_collect(r, &end);
		if (rc || !r->wanted_n)
			break;
		rc = wanted_fetch(r);
	}
	r->next = end;
	return rc;
}

static int replay_ahead(void *arg, const void *payload, size_t bytes)
{
	struct replay *r = arg;
	struct log_entry e;
	size_t off = 0;

	if (!payload) {
		r->all_shown = true;
		return 0;
	}
	if (r->all_shown)
		r->n = r->next = 0;
	r->all_shown = false;
	while (!log_entry_next(payload, bytes, &off, &e) && e.type) {
		if (e.type == LOG_DATA || r->n == r->room)
			continue;
		r->keys[r->n++] = e.key;
	}
	return r->n >= r->room / 2;
}

/* ---- One entry ---- */

/*
 * Makes room for changing `paths` paths from the root.  It reserves no more
 * slots than that may take, as a replay that has once run with few free slots
 * must run again.  A leaf moves and is split; each level above moves and is
 * split, in two copies; the root gets a new one above it.
 */
static int replay_room(struct tree *tree, unsigned paths)
{
	const unsigned slots = paths * (4 + 4 * tree->root->level);
	int rc = 0;

	if (space_slots_free(tree->space) < slots) {
		msg_error("replay: no node slots left");
		return -ENOSPC;
	}
	if (buffer_available(tree->buffers) >= REPLAY_BUFFERS)
		return 0;
	if (!tree->read_only)
		rc = ckpt_spill(tree);
	if (!rc && buffer_available(tree->buffers) < REPLAY_BUFFERS) {
		msg_error("replay: %zu nodes of memory are too few for what is "
			  "in the log; give more memory",
			  tree->buffers->count);
		rc = -ENOMEM;
	}
	return rc;
}

/* Makes the leaf of key resident: 0, -ENOENT, or an error. */
static int replay_get(struct replay *r, struct key key)
{
	struct tree_txn *txn = r->txn;
	struct tree_item item;
	int rc;

	for (;;) {
		if (r->next < r->n && missing_node(r->tree, key)) {
			rc = fetch_ahead(r);
			if (rc)
				return rc;
		}
		txn_unpin_all(txn);
		txn->failed_n = txn->miss_n = 0;
		rc = tree_get(txn, key, &item);
		if (rc != -EAGAIN)
			return rc;
		if (!fetch_start(txn))
			return -ENOMEM;
		rc = wait_loads(r);
		if (rc)
			return rc;
	}
}

static int contradiction(const struct log_entry *e, uint64_t seq)
{
	char text[64];

	msg_error("log record %" PRIu64 ": deletes %s, which is not there",
		  seq, key_text(e->key, text, sizeof(text)));
	return -EUCLEAN;
}

static const void *resident_value(struct tree *tree, struct key key)
{
	const struct buffer *leaf = tree_leaf(tree, key);
	size_t bytes;
	bool found;
	const unsigned i = node_find(leaf->node, key, &found);

	return found ? node_value(leaf->node, i, &bytes) : NULL;
}

static int replay_range(struct replay *r, const struct log_entry *e)
{
	struct key key = e->key;

	while (key_cmp(key, e->last) <= 0) {
		struct key next;
		int rc = replay_room(r->tree, 2);

		if (!rc)
			rc = replay_get(r, key);
		if (rc && rc != -ENOENT)
			return rc;
		next = range_delete(r->tree, key, e->last, 8);
		if (key_cmp(next, KEY_MAX) == 0)
			break;
		key = next;
	}
	return 0;
}

static int replay_data(struct replay *r, uint64_t seq, uint32_t id,
		       const uint8_t *payload, const struct log_entry *e)
{
	struct tree_data data = {
		.ino = e->ino, .seq = seq, .record = id,
		.offset = (uint32_t)((const uint8_t *)e->value - payload),
	};
	int rc = 0;

	for (unsigned i = 0; i < e->n && !rc; i++) {
		data.block = e->block + i;
		data.sum = le64_get(e->sums[i]);
		rc = logged_data_add(r->tree->data, &data);
		data.offset += TRAX_BLOCK_BYTES;
	}
	return rc;
}

static bool is_node_track(struct key key, const struct owner_item *owner)
{
	return key.type == ITEM_OWNER && owner && owner->kind == OWNER_NODES;
}

static int replay_put(struct replay *r, const struct log_entry *e)
{
	struct tree *tree = r->tree;
	const void *old = resident_value(tree, e->key);

	if (is_node_track(e->key, old) && !is_node_track(e->key, e->value)) {
		msg_error("log: sector %" PRIu64 " belongs to a node track",
			  e->key.off);
		return -EUCLEAN;
	}
	rmap_note_put(tree, &r->txn->rmap, e->key, e->value, old);
	apply_put(tree, e->key, e->value, e->bytes);
	return e->key.type == ITEM_OWNER ?
	       owner_settle_nodes(tree, &r->txn->rmap) : 0;
}

/* Replay gives nodes other slots than they had when the record was written.
 * If there are some on a node track that was given back the track stays: what
 * it had is written by nobody else before the next root, which will say so. */
static int replay_del(struct replay *r, const struct log_entry *e)
{
	struct tree *tree = r->tree;
	const void *old = resident_value(tree, e->key);
	const bool nodes = is_node_track(e->key, old);

	if (nodes && !space_track_leave_unused(tree->space, e->key.off))
		return 0;
	rmap_note_del(tree, &r->txn->rmap, e->key, old);
	apply_del(tree, e->key);
	return nodes ? owner_settle_nodes(tree, &r->txn->rmap) : 0;
}

static int replay_entry(struct replay *r, uint64_t seq,
			const struct log_entry *e)
{
	struct tree *tree = r->tree;
	int rc;

	if (e->type == LOG_DEL_RANGE)
		return replay_range(r, e);
	rc = replay_room(tree, 1);
	if (!rc)
		rc = replay_get(r, e->key);
	if (rc == -ENOENT && e->type == LOG_DEL)
		return contradiction(e, seq);
	if (rc && rc != -ENOENT)
		return rc;
	return e->type == LOG_PUT ? replay_put(r, e) : replay_del(r, e);
}

static int replay_record(void *arg, uint64_t seq, uint32_t id, bool apply,
			 const void *payload, size_t bytes)
{
	struct replay *r = arg;
	struct log_entry e;
	size_t off = 0;

	for (;;) {
		const char *why = log_entry_next(payload, bytes, &off, &e);

		if (why) {
			msg_error("log record %" PRIu64 ": %s", seq, why);
			r->rc = -EUCLEAN;
			return r->rc;
		}
		if (!e.type)
			break;
		if (e.type == LOG_DATA)
			r->rc = replay_data(r, seq, id, payload, &e);
		else if (apply)
			r->rc = replay_entry(r, seq, &e);
		if (r->rc)
			return r->rc;
	}
	r->tree->recovery.records += apply;
	r->rc = rmap_cancel(r->tree, &r->txn->rmap);
	return r->rc;
}

static void report_loss(struct tree *tree)
{
	msg_error("what was acknowledged behind log record %" PRIu64
		  " is lost", tree->last_seq);
	tree->recovery.damaged = true;
	tree->read_only |= !tree->options.accept_loss;
}

static int replay_new(struct tree *tree, struct replay *r)
{
	const struct tree_bounds bounds = { .nodes = FETCHES };
	const size_t buffers = tree->buffers->count;

	*r = (struct replay){ .tree = tree };
	r->room = KEYS_PER_BUFFER * buffers < MAX_KEYS ?
		  KEYS_PER_BUFFER * buffers : MAX_KEYS;
	r->keys = calloc(r->room, sizeof(*r->keys));
	r->wanted = calloc(buffers, sizeof(*r->wanted));
	if (!r->keys || !r->wanted)
		return -ENOMEM;
	return txn_new(tree, &bounds, NULL, NULL, &r->txn);
}

static void replay_free(struct replay *r)
{
	if (r->txn)
		txn_free(r->txn);
	free(r->keys);
	free(r->wanted);
}

int replay_log(struct tree *tree)
{
	struct replay r;
	const struct log_replay replay = {
		.epoch = tree->durable.epoch,
		.gen = tree->durable.gen,
		.cut_seq = tree->durable.cut_seq,
		.cut_chain = tree->durable.cut_chain,
		.tail_seq = tree->durable.tail_seq,
		.memory_bytes = tree->options.recover_bytes,
		.ahead = replay_ahead,
		.record = replay_record,
		.arg = &r,
	};
	const struct tree_data *data;
	int rc = replay_new(tree, &r);

	if (!rc)
		rc = logged_data_new(&tree->data);
	if (!rc)
		rc = log_recover(tree->log, &replay, &tree->last_seq,
				 &tree->last_chain);
	replay_free(&r);
	if (rc == -EUCLEAN && !r.rc) {
		report_loss(tree);
		rc = 0;
	}
	if (!rc && !r.rc)
		rc = logged_data_close(tree->data);
	tree->recovery.data_blocks = logged_data_list(tree->data, &data);
	return r.rc ? r.rc : rc;
}

/* There are no records to look ahead in, so each leaf is fetched when it is
 * needed. */
int replay_changes(struct tree *tree, const struct tree_change *change,
		   size_t n)
{
	struct replay r;
	int rc = replay_new(tree, &r);

	for (size_t i = 0; i < n && !rc; i++) {
		const struct log_entry e = {
			.type = change[i].value ? LOG_PUT : LOG_DEL,
			.key = change[i].key,
			.value = change[i].value,
			.bytes = change[i].bytes,
		};

		rc = replay_entry(&r, tree->last_seq, &e);
	}
	if (!rc)
		rc = rmap_cancel(tree, &r.txn->rmap);
	replay_free(&r);
	return rc;
}

/* ---- Logged data ---- */

size_t tree_recovered_data(const struct tree *tree,
			   const struct tree_data **data)
{
	return logged_data_list(tree->data, data);
}

struct reading {
	const struct tree_data *data;
	size_t n;
	int (*block)(void *arg, const struct tree_data *data,
		     const void *bytes);
	void *arg;
};

static int read_record(void *arg, uint32_t id, const void *payload,
		       size_t bytes)
{
	struct reading *r = arg;
	int rc = 0;

	for (; r->n && r->data->record == id && !rc; r->data++, r->n--) {
		if (r->data->offset + TRAX_BLOCK_BYTES > bytes)
			return -EUCLEAN;
		rc = r->block(r->arg, r->data,
			      (const uint8_t *)payload + r->data->offset);
	}
	return rc;
}

int tree_recovered_read(struct tree *tree, size_t first, size_t n,
			int (*block)(void *arg, const struct tree_data *data,
				     const void *bytes),
			void *arg)
{
	struct reading r = { .n = n, .block = block, .arg = arg };
	const size_t all = logged_data_list(tree->data, &r.data);
	uint32_t *ids = calloc(n + 1, sizeof(*ids));
	size_t ids_n = 0;
	int rc;

	if (!ids || first + n > all) {
		free(ids);
		return ids ? -EINVAL : -ENOMEM;
	}
	r.data += first;
	for (size_t i = 0; i < n; i++)
		if (!ids_n || ids[ids_n - 1] != r.data[i].record)
			ids[ids_n++] = r.data[i].record;
	rc = log_recovered_read(tree->log, ids, ids_n, read_record, &r);
	free(ids);
	return rc;
}

/* Starting the log needs what recovery has found in it. */
void tree_recovered_end(struct tree *tree)
{
	tree->recovered_over = true;
	if (tree->started && !tree->log_started)
		return;
	log_recover_end(tree->log);
	logged_data_free(tree->data);
	tree->data = NULL;
}

void replay_hold(struct tree *tree)
{
	const struct tree_data *data;
	const size_t n = logged_data_list(tree->data, &data);

	for (size_t i = 0; i < n; i++)
		log_pin(tree->log, data[i].seq);
}
