/*
 * treeworld.c - see treeworld.h.
 */
#include "tests/rig/treeworld.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/msg.h"
#include "tests/rig/test.h"
#include "tests/rig/tree_verify.h"

#define MAX_VALUE 3800u		/* bytes: four of these fill a leaf */
#define OP_ITEMS 6		/* most items that one transaction changes */
#define INO 100u		/* all items belong to one inode */

enum op_kind { OP_CHANGE, OP_RANGE, OP_READ };

struct op {
	struct world *w;
	struct list link;	/* of all that are under way */
	enum op_kind kind;
	unsigned n;
	unsigned item[OP_ITEMS];
	bool del[OP_ITEMS];
};

struct key world_key(unsigned item)
{
	return key_make(INO, ITEM_XATTR, (uint64_t)item << 8 | 1);
}

static unsigned item_of(struct key key)
{
	return (unsigned)(key.off >> 8);
}

static size_t make_value(const struct world *w, unsigned item,
			 unsigned version, uint8_t *buf)
{
	uint64_t rng = (uint64_t)item << 32 | version;
	const size_t bytes = 4 + test_random(&rng) % (w->value_bytes - 3);

	memset(buf, (int)test_random(&rng), bytes);
	memcpy(buf, &version, sizeof(version));
	return bytes;
}

static void check_item(const struct world *w, unsigned item,
		       const struct tree_item *got)
{
	uint8_t want[MAX_VALUE];
	unsigned version;

	memcpy(&version, got->value, sizeof(version));
	ck_assert_uint_eq(version, w->version[item]);
	ck_assert_uint_eq(got->bytes, make_value(w, item, version, want));
	ck_assert_mem_eq(got->value, want, got->bytes);
}

/* ---- The model ---- */

static void model_set(struct world *w, unsigned item, unsigned version)
{
	if (w->changes == w->room) {
		w->room = w->room ? 2 * w->room : 1024;
		w->change = realloc(w->change, w->room * sizeof(*w->change));
		ck_assert_ptr_nonnull(w->change);
	}
	w->change[w->changes++] = (struct change){
		item, w->version[item], version, w->txns + 1,
	};
	w->version[item] = version;
}

static unsigned model_next(const struct world *w, unsigned item)
{
	while (item < w->items && !w->version[item])
		item++;
	return item;
}

/* ---- Operations ---- */

static int probe_gets(struct op *op, struct tree_txn *txn)
{
	struct world *w = op->w;
	int missing = 0;

	for (unsigned i = 0; i < op->n; i++) {
		struct tree_item got;
		int rc = tree_get(txn, world_key(op->item[i]), &got);

		if (rc == -EAGAIN)
			missing = rc;
		else if (rc == -ENOENT)
			ck_assert_uint_eq(w->version[op->item[i]], 0);
		else if (rc)
			return rc;
		else
			check_item(w, op->item[i], &got);
	}
	return missing;
}

static void apply_change(struct op *op, struct tree_txn *txn)
{
	struct world *w = op->w;
	uint8_t value[MAX_VALUE];

	for (unsigned i = 0; i < op->n; i++) {
		const unsigned item = op->item[i];

		if (op->del[i] && !w->version[item])
			continue;
		if (op->del[i]) {
			tree_del(txn, world_key(item));
			model_set(w, item, 0);
		} else {
			const unsigned version = ++w->next_version;
			const size_t bytes = make_value(w, item, version,
							value);

			tree_put(txn, world_key(item), value, bytes);
			model_set(w, item, version);
		}
	}
}

static void apply_range(struct op *op, struct tree_txn *txn)
{
	struct world *w = op->w;
	const struct key last = world_key(op->item[1]);
	const struct key next = tree_del_range(txn, world_key(op->item[0]),
					       last, 6);

	ck_assert_int_gt(key_cmp(next, world_key(op->item[0])), 0);
	for (unsigned i = op->item[0]; i <= op->item[1]; i++)
		if (w->version[i] && key_cmp(world_key(i), next) < 0)
			model_set(w, i, 0);
}

static int read_around(struct op *op, struct tree_txn *txn)
{
	struct world *w = op->w;
	const unsigned from = op->item[0];
	const unsigned next = model_next(w, from);
	const struct key last = world_key(w->items);
	struct tree_item got;
	int rc;

	rc = tree_seek_ge(txn, world_key(from), last, &got);
	if (rc == -EAGAIN || rc == -EIO)
		return rc;
	ck_assert_int_eq(rc, next < w->items ? 0 : -ENOENT);
	if (!rc) {
		ck_assert_uint_eq(item_of(got.key), next);
		check_item(w, next, &got);
	}
	rc = tree_seek_le(txn, world_key(from), world_key(0), &got);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	check_item(w, item_of(got.key), &got);
	for (unsigned i = item_of(got.key) + 1; i <= from; i++)
		ck_assert_uint_eq(w->version[i], 0);
	return 0;
}

static void finish_op(struct op *op, struct tree_txn *txn)
{
	op->w->open--;
	tree_txn_end(txn);
	list_del(&op->link);
	free(op);
}

static void run_op(struct tree_txn *txn, void *arg, int rc)
{
	struct op *op = arg;
	struct world *w = op->w;
	const size_t before = w->changes;

	if (!rc)
		rc = op->kind == OP_READ ? read_around(op, txn) :
		     probe_gets(op, txn);
	if (rc == -EAGAIN) {
		tree_txn_fetch(txn);
		return;
	}
	if (rc) {
		w->refused++;
		ck_assert(w->may_fail || rc == -ENOSPC);
		finish_op(op, txn);
		return;
	}
	if (op->kind == OP_CHANGE)
		apply_change(op, txn);
	else if (op->kind == OP_RANGE)
		apply_range(op, txn);
	w->txns += w->changes > before;
	finish_op(op, txn);
}

static const struct tree_txn_ops op_ops = { run_op };

static void begin(struct op *op)
{
	const bool reads = op->kind == OP_READ;
	const struct tree_bounds bounds = {
		.nodes = 16,
		.new_nodes = reads ? 0 : 24,
		.log_bytes = reads ? 0 : OP_ITEMS * (MAX_VALUE + 32),
	};
	struct tree_txn *txn;

	op->w->open++;
	ck_assert_int_eq(tree_begin(op->w->tree, &bounds, &op_ops, op, &txn),
			 0);
}

static struct op *op_new(struct world *w, enum op_kind kind)
{
	struct op *op = calloc(1, sizeof(*op));

	ck_assert_ptr_nonnull(op);
	op->w = w;
	op->kind = kind;
	list_add(&w->ops, &op->link);
	return op;
}

/* Begins a transaction on neighbours, now and then in ascending order. */
void world_begin_change(struct world *w)
{
	struct op *op = op_new(w, OP_CHANGE);
	const unsigned at = (unsigned)(test_random(&w->rng) % w->items);
	const bool near = test_random(&w->rng) % 2;
	const bool deletes = test_random(&w->rng) % 4 == 0;

	op->n = 1 + (unsigned)(test_random(&w->rng) % OP_ITEMS);
	for (unsigned i = 0; i < op->n; i++) {
		op->item[i] = near ? (at + i) % w->items :
			(unsigned)(test_random(&w->rng) % w->items);
		op->del[i] = deletes || test_random(&w->rng) % 5 == 0;
	}
	begin(op);
}

void world_begin_range_delete(struct world *w)
{
	struct op *op = op_new(w, OP_RANGE);
	const unsigned n = 1 + (unsigned)(test_random(&w->rng) %
					  (w->items / 8));

	op->n = 2;
	op->item[0] = (unsigned)(test_random(&w->rng) % w->items);
	op->item[1] = op->item[0] + n < w->items ? op->item[0] + n :
						   w->items - 1;
	begin(op);
}

void world_begin_read(struct world *w)
{
	struct op *op = op_new(w, OP_READ);

	op->item[0] = (unsigned)(test_random(&w->rng) % w->items);
	begin(op);
}

/* ---- The loop ---- */

bool world_turn(struct world *w)
{
	const uint64_t next = tree_run(w->tree, sim_now_ns(w->sim));

	if (queue_poll(w->queue, 0) < 0)
		return false;
	if (!sim_outstanding(w->sim) && next > sim_now_ns(w->sim)) {
		/* Only time brings the next event. */
		if (next == UINT64_MAX)
			sim_advance(w->sim, 1000000);
		else
			sim_advance(w->sim, next - sim_now_ns(w->sim));
	} else if (sim_outstanding(w->sim)) {
		if (queue_poll(w->queue, -1) < 0)
			return false;
	}
	return true;
}

bool world_settle(struct world *w)
{
	while (w->open)
		if (!world_turn(w))
			return false;
	return true;
}

struct told {
	struct waiter waiter;
	bool done;
	int rc;
};

static void tell(struct waiter *waiter, int rc)
{
	struct told *told = waiter->owner;

	told->done = true;
	told->rc = rc;
}

static int wait_for(struct world *w, struct told *told, uint64_t txns)
{
	while (!told->done)
		if (!world_turn(w))
			return -EIO;
	if (!told->rc)
		w->acked = txns;
	return told->rc;
}

int world_commit(struct world *w)
{
	/* Static: after a crash a late call may still write to it. */
	static struct told told;
	const uint64_t txns = w->txns;

	told = (struct told){ .waiter = { .done = tell, .owner = &told } };
	tree_commit(w->tree, UINT64_MAX, &told.waiter);
	return wait_for(w, &told, txns);
}

int world_checkpoint(struct world *w)
{
	static struct told told;
	const uint64_t txns = w->txns;

	told = (struct told){ .waiter = { .done = tell, .owner = &told } };
	tree_checkpoint(w->tree, &told.waiter);
	return wait_for(w, &told, txns);
}

struct doing {
	world_fn fn;
	void *arg;
	bool done;
	int rc;
	uint64_t seq;
};

static void run_doing(struct tree_txn *txn, void *arg, int rc)
{
	struct doing *d = arg;

	if (!rc)
		rc = d->fn(txn, d->arg);
	if (rc == -EAGAIN) {
		tree_txn_fetch(txn);
		return;
	}
	d->rc = rc;
	d->seq = tree_txn_end(txn);
	d->done = true;
}

static const struct tree_txn_ops doing_ops = { run_doing };

int world_do(struct world *w, const struct tree_bounds *bounds, world_fn fn,
	     void *arg, uint64_t *seq)
{
	struct doing d = { .fn = fn, .arg = arg };
	struct tree_txn *txn;

	ck_assert_int_eq(tree_begin(w->tree, bounds, &doing_ops, &d, &txn), 0);
	while (!d.done)
		ck_assert(world_turn(w));
	if (seq)
		*seq = d.seq;
	return d.rc;
}

/* A first copy is a node whose header names the sector where it lies as its
 * address; a mirror names another one. */
void world_spoil(struct world *w, bool interior)
{
	struct node_header *h = aligned_alloc(4096, TRAX_NODE_BYTES);
	unsigned leaves = 0;

	for (uint64_t at = 0; at < WORLD_SECTORS; at += TRAX_NODE_SECTORS) {
		ck_assert_int_eq(disk_read(sim_disk(w->sim), at,
					   TRAX_NODE_SECTORS, h), 0);
		if (le32_get(h->magic) != TRAX_NODE_MAGIC ||
		    le64_get(h->addr) != at || !h->level == interior)
			continue;
		/* Old nodes may be spoilt as well. */
		if (interior || leaves++ % 8 == 0)
			ck_assert_int_eq(sim_flip(w->sim, at + 7, 99), 0);
	}
	free(h);
}

/* ---- Comparing ---- */

struct scan {
	struct world *w;
	unsigned *found;
	unsigned next;
	bool done;
};

static void run_scan(struct tree_txn *txn, void *arg, int rc)
{
	struct scan *scan = arg;
	struct tree_item got;

	ck_assert_int_eq(rc, 0);
	/* The next item may be in the leaf behind the one that covers the
	 * key. */
	while (tree_txn_room(txn) >= 2) {
		uint8_t want[MAX_VALUE];
		unsigned item;

		rc = tree_seek_ge(txn, world_key(scan->next),
				  world_key(scan->w->items), &got);
		if (rc)
			break;
		item = item_of(got.key);
		memcpy(&scan->found[item], got.value, sizeof(unsigned));
		ck_assert_uint_eq(got.bytes, make_value(scan->w, item,
					scan->found[item], want));
		ck_assert_mem_eq(got.value, want, got.bytes);
		scan->next = item + 1;
	}
	if (rc == -EAGAIN) {
		tree_prefetch(txn, world_key(scan->next),
			      world_key(scan->w->items), 16);
		tree_txn_fetch(txn);
		return;
	}
	ck_assert(!rc || rc == -ENOENT);
	scan->done = rc == -ENOENT;
	scan->w->open--;
	tree_txn_end(txn);
}

static const struct tree_txn_ops scan_ops = { run_scan };

static void scan_all(struct world *w, unsigned *found)
{
	static const struct tree_bounds bounds = { .nodes = 24 };
	struct scan scan = { .w = w, .found = found };

	memset(found, 0, w->items * sizeof(*found));
	while (!scan.done) {
		struct tree_txn *txn;

		w->open++;
		ck_assert_int_eq(tree_begin(w->tree, &bounds, &scan_ops, &scan,
					    &txn), 0);
		ck_assert(world_settle(w));
	}
}

void world_compare(struct world *w)
{
	static unsigned found[WORLD_ITEMS];

	scan_all(w, found);
	for (unsigned i = 0; i < w->items; i++)
		ck_assert_msg(found[i] == w->version[i],
			      "item %u is %u, should be %u", i, found[i],
			      w->version[i]);
}

static void undo_txn(struct world *w)
{
	while (w->changes && w->change[w->changes - 1].txn == w->txns) {
		const struct change *c = &w->change[--w->changes];

		w->version[c->item] = c->before;
	}
	w->txns--;
}

void world_compare_crashed(struct world *w)
{
	static unsigned found[WORLD_ITEMS];

	scan_all(w, found);
	while (memcmp(found, w->version, w->items * sizeof(*found))) {
		ck_assert_msg(w->txns > w->acked,
			      "no state since transaction %lu",
			      (unsigned long)w->acked);
		undo_txn(w);
	}
	w->acked = w->txns;
}

void world_check(struct world *w)
{
	uint64_t slots;

	ck_assert_int_eq(tree_check(w->tree, &slots), 0);
	if (!tree_idle(w->tree))
		return;
	ck_assert_uint_le(slots, space_slots_total(tree_space(w->tree)) -
				 space_slots_free(tree_space(w->tree)));
}

/* ---- Making one ---- */

static void hash_request(struct sim *sim, const struct disk_request *req,
			 void *arg)
{
	struct world *w = arg;
	const uint64_t x[4] = { w->trace, req->op, req->sector,
				req->sectors | sim_now_ns(sim) << 16 };

	w->trace = csum(x, sizeof(x));
}

struct layout {
	struct tree_format_item item[64];
	struct owner_item owner[64];
	size_t n;
};

static void own(struct layout *l, uint64_t sector, uint64_t n,
		enum owner_kind kind)
{
	l->owner[l->n] = (struct owner_item){
		.sectors = le64_put(n), .kind = (uint8_t)kind,
	};
	l->item[l->n] = (struct tree_format_item){
		key_make(0, ITEM_OWNER, sector), &l->owner[l->n],
		sizeof(struct owner_item),
	};
	l->n++;
}

static int by_key(const void *a, const void *b)
{
	const struct tree_format_item *x = a, *y = b;

	return key_cmp(x->key, y->key);
}

/* Root areas, log tracks of 1 MiB, then node tracks; nothing below 1 MiB but
 * a superblock. */
static void lay_out(struct world *w, struct layout *l)
{
	struct super *s = &w->super;
	uint64_t place[3], at = WORLD_TRACK;

	*s = (struct super){
		.sectors = WORLD_SECTORS,
		.logical_bytes = 512,
		.physical_bytes = 4096,
		.version = 1,
		.area_sectors = 64,
		.pseudo_track_sectors = WORLD_TRACK,
		.log_tracks = 4,
	};
	memcpy(s->uuid, "a tree's own one", 16);
	super_usual_places(s->sectors, place);
	s->second_sector = place[1];
	for (unsigned i = 0; i < 3; i++)
		own(l, place[i], TRAX_BLOCK_SECTORS, OWNER_SUPER);
	for (unsigned i = 0; i < 4; i++, at += 64) {
		s->area_sector[i / 2][i % 2] = at;
		own(l, at, 64, OWNER_AREA);
	}
	at = 2 * WORLD_TRACK;
	for (unsigned i = 0; i < s->log_tracks; i++, at += WORLD_TRACK) {
		s->log[i] = (struct super_track){ at, WORLD_TRACK };
		own(l, at, WORLD_TRACK, OWNER_LOG);
	}
	for (unsigned i = 0; i < 2; i++, at += WORLD_TRACK)
		own(l, at, WORLD_TRACK, OWNER_NODES);
	qsort(l->item, l->n, sizeof(l->item[0]), by_key);
}

static void format(struct world *w)
{
	static struct layout l;
	struct tree_format f = {
		.super = &w->super, .items = l.item,
		.next_ino_seq = 2, .next_dirgroup = 1,
	};
	uint8_t *buf = aligned_alloc(4096, TRAX_BLOCK_BYTES);
	uint64_t place[3];

	l.n = 0;
	lay_out(w, &l);
	f.n = l.n;
	ck_assert_int_eq(tree_format(sim_env(w->sim), sim_disk(w->sim), &f),
			 0);
	super_places(&w->super, place);
	for (unsigned i = 0; i < 3; i++) {
		super_encode(&w->super, place[i], buf);
		ck_assert_int_eq(disk_write(sim_disk(w->sim), place[i],
					    TRAX_BLOCK_SECTORS, buf), 0);
	}
	ck_assert_int_eq(disk_flush(sim_disk(w->sim)), 0);
	free(buf);
}

static void init(struct world *w, const struct doubt *doubt, uint64_t seed,
		 unsigned items, size_t value_bytes, bool volatile_cache)
{
	const struct sim_options options = {
		.seed = seed, .volatile_cache = volatile_cache,
	};

	memset(w, 0, sizeof(*w));
	w->doubt = doubt;
	w->rng = seed;
	w->items = items;
	list_init(&w->ops);
	w->value_bytes = value_bytes;
	w->pool_bytes = (size_t)4 << 20;
	w->ranges = 10;
	w->sim = sim_new(doubt ? doubt->is : NULL, WORLD_SECTORS, &options);
	ck_assert_ptr_nonnull(w->sim);
	format(w);
	sim_set_hook(w->sim, hash_request, w);
}

void world_init(struct world *w, uint64_t seed, unsigned items,
		size_t value_bytes, bool volatile_cache)
{
	init(w, NULL, seed, items, value_bytes, volatile_cache);
}

void world_init_drive(struct world *w, const struct doubt *doubt,
		      uint64_t seed, unsigned items, size_t value_bytes)
{
	init(w, doubt, seed, items, value_bytes, false);
}

void world_init_on(struct world *w, const struct world *base,
		   const struct media *content, uint64_t seed)
{
	const struct sim_options options = {
		.seed = seed, .content = content,
		.volatile_cache = sim_disk(base->sim)->limits.volatile_cache,
	};

	*w = *base;
	w->rng = seed;
	list_init(&w->ops);
	w->queue = NULL;
	w->tree = NULL;
	w->change = malloc((base->changes + 1) * sizeof(*w->change));
	ck_assert_ptr_nonnull(w->change);
	if (base->changes)
		memcpy(w->change, base->change,
		       base->changes * sizeof(*w->change));
	w->room = base->changes + 1;
	w->sim = sim_new(NULL, WORLD_SECTORS, &options);
	ck_assert_ptr_nonnull(w->sim);
	sim_set_hook(w->sim, hash_request, w);
}

void world_fini(struct world *w)
{
	if (w->tree)
		world_crash(w);
	sim_free(w->sim);
	free(w->change);
}

/* ---- Mounting ---- */

/* Chooses the first free megabyte, as alloc would. */
static int pick_track(void *arg, traxaddr *addr, uint32_t *sectors)
{
	struct world *w = arg;
	struct space *space = tree_space(w->tree);
	static struct waiter waiter;
	static struct told told;
	struct range r;
	uint64_t from = 0;

	if (w->no_growth)
		return -ENOSPC;
	if (!space_group_loaded(space, 0)) {
		waiter = (struct waiter){ .done = tell, .owner = &told };
		tree_load_group(w->tree, 0, &waiter);
		return -EAGAIN;
	}
	while (rangeset_next(space_free_set(space), from, &r)) {
		const uint64_t at = (r.first + WORLD_TRACK - 1) / WORLD_TRACK *
				    WORLD_TRACK;

		if (at + WORLD_TRACK <= r.first + r.n) {
			*addr = at;
			*sectors = WORLD_TRACK;
			return space_take(space, at, WORLD_TRACK);
		}
		from = r.first + r.n;
	}
	return -ENOSPC;
}

static void close_queue(struct world *w)
{
	queue_close(w->queue);
	head_close(w->head);
	w->queue = NULL;
	w->head = NULL;
}

int world_open(struct world *w, bool read_only)
{
	const struct tree_options options = {
		.node_pool_bytes = w->pool_bytes,
		.read_only = read_only,
	};
	const struct queue_options queue_options = { .depth = 0 };
	int rc;

	if (w->doubt) {
		w->head = doubt_head(w->doubt, sim_env(w->sim));
		doubt_learn(sim_env(w->sim), sim_disk(w->sim), w->head, 1);
	}
	rc = queue_open(sim_env(w->sim), sim_disk(w->sim), &queue_options,
			&w->queue);
	ck_assert_int_eq(rc, 0);
	queue_set_head(w->queue, w->head);
	rc = tree_open(sim_env(w->sim), w->queue, &options, &w->tree);
	if (!rc) {
		tree_set_node_place(w->tree, pick_track, w);
		return 0;
	}
	w->tree = NULL;
	close_queue(w);
	return rc;
}

int world_mount(struct world *w)
{
	int rc = world_open(w, false);

	if (rc)
		return rc;
	rc = tree_start(w->tree);
	if (rc)
		world_crash(w);
	return rc;
}

int world_unmount(struct world *w)
{
	int rc = tree_close(w->tree);

	w->tree = NULL;
	close_queue(w);
	if (!rc)
		w->acked = w->txns;
	return rc;
}

void world_crash(struct world *w)
{
	if (!sim_is_off(w->sim))
		ck_assert_int_eq(queue_drain(w->queue), 0);
	tree_abandon(w->tree);
	while (!list_empty(&w->ops)) {
		struct op *op = list_first(&w->ops, struct op, link);

		list_del(&op->link);
		free(op);
	}
	close_queue(w);
	w->tree = NULL;
	w->open = 0;
}
