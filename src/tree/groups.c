/*
 * groups.c - loads free sets of groups from OWNER items, and makes node tracks.
 *
 * A group is loaded in steps of one read-only transaction each, which feed
 * owners to the space from a cursor on; the space takes in changes behind the
 * cursor by itself.  The last owner that begins before the group is fed first.
 *
 * Node tracks: when fewer than a quarter of the slots are free, a transaction
 * of the tree's own puts an OWNER_NODES item at a place that the layer above
 * has chosen and taken; the space adds the track when it gets this owner.  They
 * go back in track_leave.c.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/msg.h"
#include "base/turn.h"
#include "base/units.h"
#include "tree/tree_internal.h"
#include "tree/tree_format.h"

#define LOAD_NODES 16	/* Most leaves that one transaction of a load meets. */
/* The time that is charged to the turn for one owner that is looked up and fed,
 * or one free run between two pending ones (a transaction of a load meets
 * thousands); and how many each turn feeds at least, however full it is. */
#define FEED_NS 1500u
#define FEED_LEAST 64u
/* Time until the next try to make a node track for which a slot or a place was
 * missing. */
#define RETRY_NS (20 * NS_PER_MS)
/* Node tracks may take this part of the disk without waiting, see
 * growth_is_cheap. */
#define AT_ONCE_SHARE 32u

static const struct tree_bounds load_bounds = { .nodes = LOAD_NODES };

struct group_load {
	struct tree *tree;
	struct list link;
	uint32_t group;
	struct tree_txn *txn;
	traxaddr cursor;
	bool fed_first;		/* the owner that begins before the group was
				 * fed */
	unsigned fed;		/* owners and free runs fed in this turn */
	struct list waiters;
};

static struct key owner_key(traxaddr addr)
{
	return key_make(0, ITEM_OWNER, addr);
}

static traxaddr group_first(uint32_t group)
{
	return (traxaddr)group * TRAX_GROUP_SECTORS;
}

static void load_end(struct group_load *load, int rc)
{
	struct tree *tree = load->tree;

	if (load->txn)
		tree_txn_end(load->txn);
	if (!rc)
		rc = space_load_end(tree->space, load->group);
	else
		space_load_abort(tree->space, load->group);
	list_del(&load->link);
	tree_wake(&load->waiters, rc);
	free(load);
}

static int feed(struct group_load *load, const struct tree_item *item)
{
	const struct owner_item *owner = item->value;
	const uint64_t n = le64_get(owner->sectors);

	if (item->key.off + n > load->cursor)
		load->cursor = item->key.off + n;
	return space_load_feed(load->tree->space, load->group, item->key.off,
			       n);
}

/* Feeds the owner that begins before the group, as it may reach into it. */
static int feed_first(struct group_load *load)
{
	const traxaddr first = group_first(load->group);
	struct tree_item item;
	int rc;

	if (load->fed_first || !first)
		return 0;
	rc = tree_seek_le(load->txn, owner_key(first - 1), owner_key(0),
			  &item);
	if (!rc)
		rc = feed(load, &item);
	if (!rc || rc == -ENOENT)
		load->fed_first = true;
	return rc == -ENOENT ? 0 : rc;
}

/* One more was fed.  Is the turn full? */
static bool feed_is_over(struct group_load *load)
{
	struct loop_turn *turn = &load->tree->env->turn;

	turn_charge(turn, TURN_TRANSACTIONS, FEED_NS);
	return ++load->fed >= FEED_LEAST && turn_is_full(turn);
}

/* Feeds what lies before `end` and has no owner.  -EINPROGRESS: the turn is
 * full, and there is more. */
static int feed_gap(struct group_load *load, traxaddr end)
{
	int rc;

	while ((rc = space_load_gap(load->tree->space, load->group, end, 1)) ==
	       -EAGAIN)
		if (feed_is_over(load))
			return -EINPROGRESS;
	return rc;
}

/* Feeds owners until there are no more (-ENOENT), a node is missing (-EAGAIN),
 * or the transaction (0) or the turn (-EINPROGRESS) is full. */
static int feed_all(struct group_load *load)
{
	const traxaddr end = group_first(load->group + 1);
	const struct key last = owner_key(end - 1);
	int rc = feed_first(load);

	load->fed = 0;
	while (!rc) {
		const struct key from = owner_key(load->cursor);
		struct tree_item item;

		if (key_cmp(from, last) > 0)
			return -ENOENT;
		if (!tree_txn_room(load->txn))
			return 0;
		rc = tree_seek_ge(load->txn, from, last, &item);
		if (rc == -EAGAIN)
			tree_prefetch(load->txn, from, last, LOAD_NODES);
		if (rc == -ENOENT)
			rc = feed_gap(load, end) ?: -ENOENT;
		if (!rc)
			rc = feed_gap(load, item.key.off);
		if (!rc)
			rc = feed(load, &item);
		if (!rc && feed_is_over(load))
			rc = -EINPROGRESS;
	}
	return rc;
}

static void load_run(struct tree_txn *txn, void *arg, int rc);

static const struct tree_txn_ops load_ops = { load_run };

static void load_run(struct tree_txn *txn, void *arg, int rc)
{
	struct group_load *load = arg;

	if (!rc)
		rc = feed_all(load);
	if (rc == -EAGAIN) {
		tree_txn_fetch(txn);
		return;
	}
	if (rc == -ENOENT) {
		load_end(load, 0);
		return;
	}
	if (!rc || rc == -EINPROGRESS) { /* It has done as much as it may:
					  * another transaction goes on. */
		tree_txn_end(txn);
		load->txn = NULL;
		rc = tree_begin(load->tree, &load_bounds, &load_ops, load,
				&load->txn);
	}
	if (rc)
		load_end(load, rc);
}

static struct group_load *find_load(struct tree *tree, uint32_t group)
{
	struct list *pos;

	list_for_each(pos, &tree->loads) {
		struct group_load *l = list_entry(pos, struct group_load,
						  link);

		if (l->group == group)
			return l;
	}
	return NULL;
}

static int load_begin(struct tree *tree, uint32_t group,
		      struct group_load **load)
{
	struct group_load *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->tree = tree;
	l->group = group;
	l->cursor = group_first(group);
	list_init(&l->waiters);
	rc = space_load_begin(tree->space, group);
	if (!rc) {
		rc = tree_begin(tree, &load_bounds, &load_ops, l, &l->txn);
		if (rc)
			space_load_abort(tree->space, group);
	}
	if (rc) {
		free(l);
		return rc;
	}
	list_add(&tree->loads, &l->link);
	*load = l;
	return 0;
}

void tree_load_group(struct tree *tree, uint32_t group, struct waiter *waiter)
{
	struct group_load *load = find_load(tree, group);

	if (!load && space_group_loaded(tree->space, group)) {
		list_add(&tree->granted, &waiter->link);
		return;
	}
	if (!load && load_begin(tree, group, &load)) {
		list_add(&tree->doomed, &waiter->link);
		return;
	}
	list_add(&load->waiters, &waiter->link);
}

/* ---- Node tracks ---- */

static const struct tree_bounds growth_bounds = {
	.nodes = 4, .new_nodes = 8, .log_bytes = 128, .urgent = true,
};

void tree_set_node_place(struct tree *tree,
			 int (*pick)(void *arg, traxaddr *addr,
				     uint32_t *sectors),
			 void *arg)
{
	tree->growth.pick = pick;
	tree->growth.arg = arg;
}

/* Does the root area have room for the slot map of another track? Node tracks
 * take half of the disk at most. */
static bool area_has_room(const struct tree *tree)
{
	const struct growth *g = &tree->growth;
	const uint64_t slots = g->sectors / TRAX_NODE_SECTORS;
	const size_t bytes = g->map_bytes +
			     tree_format_payload(1, slots, 0);

	return format_area_bytes(bytes) <=
	       (size_t)tree->super.area_sectors * SECTOR_BYTES &&
	       (space_slots_total(tree->space) + slots) * TRAX_NODE_SECTORS <=
	       tree->super.sectors / 2;
}

bool growth_can_help(const struct tree *tree)
{
	return tree->growth.pick && !tree->growth.full &&
	       tree->log_started && !tree->failed;
}

bool growth_is_cheap(const struct tree *tree)
{
	return space_slots_total(tree->space) * TRAX_NODE_SECTORS <
	       tree->super.sectors / AT_ONCE_SHARE;
}

static void growth_end(struct tree *tree, int rc)
{
	struct growth *g = &tree->growth;

	if (rc && g->picked)
		space_give_back(tree->space, g->addr, g->sectors);
	if (rc == -EAGAIN)
		g->retry_ns = env_now_ns(tree->env) + RETRY_NS;
	else if (rc)
		g->full = true;
	g->picked = false;
	g->wanted = rc == -EAGAIN;
	tree_txn_end(g->txn);
	g->txn = NULL;
}

static int growth_pick(struct tree *tree)
{
	struct growth *g = &tree->growth;
	int rc;

	if (g->picked)
		return 0;
	rc = g->pick(g->arg, &g->addr, &g->sectors);
	g->picked = !rc;
	if (!rc && !area_has_room(tree))
		rc = -ENOSPC;
	return rc ? rc : space_reserve_track(tree->space, g->sectors /
						  TRAX_NODE_SECTORS);
}

static void grow(struct tree_txn *txn, void *arg, int rc)
{
	struct tree *tree = arg;
	struct growth *g = &tree->growth;
	struct tree_item item;
	struct owner_item owner = { .kind = OWNER_NODES };

	if (!rc)
		rc = growth_pick(tree);
	if (rc) {
		growth_end(tree, rc);
		return;
	}
	rc = tree_get(txn, owner_key(g->addr), &item);
	if (rc == -EAGAIN) {
		tree_txn_fetch(txn);
		return;
	}
	if (rc != -ENOENT) {
		growth_end(tree, rc ? rc : -EUCLEAN);
		return;
	}
	owner.sectors = le64_put(g->sectors);
	tree_put(txn, owner_key(g->addr), &owner, sizeof(owner));
	g->map_bytes += tree_format_payload(1, g->sectors / TRAX_NODE_SECTORS,
					    0);
	growth_end(tree, 0);
}

static const struct tree_txn_ops growth_ops = { grow };

static bool is_scarce(const struct tree *tree)
{
	/* Slots that transactions have reserved for nodes and mirrors and
	 * mostly give back unused. */
	const uint64_t spare = growth_is_cheap(tree) ? 0 :
						       2 * tree->new_reserved;

	return space_may_grow(tree->space) &&
	       space_slots_free(tree->space) + spare <
	       space_slots_failed(tree->space) +
	       space_slots_total(tree->space) / 4;
}

uint64_t growth_run(struct tree *tree, uint64_t now_ns)
{
	struct growth *g = &tree->growth;

	if (is_scarce(tree))
		space_track_stay(tree->space);
	if (g->txn || (!is_scarce(tree) && !g->wanted) ||
	    !growth_can_help(tree))
		return UINT64_MAX;
	if (now_ns < g->retry_ns)
		return g->retry_ns;
	if (txn_begin_own(tree, &growth_bounds, &growth_ops, tree, &g->txn))
		g->full = true;
	return UINT64_MAX;
}

bool groups_own(const struct tree *tree, const struct tree_txn *txn)
{
	const struct list *pos;

	list_for_each(pos, &tree->loads)
		if (list_entry(pos, struct group_load, link)->txn == txn)
			return true;
	return tree->growth.txn == txn || tree->leaving.txn == txn;
}

void groups_free(struct tree *tree)
{
	while (!list_empty(&tree->loads)) {
		struct group_load *load = list_first(&tree->loads,
						     struct group_load, link);

		list_del(&load->link);
		free(load);
	}
}
