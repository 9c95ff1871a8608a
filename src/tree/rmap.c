/*
 * rmap.c - passes changes of OWNER and INODE items on to the space and the
 * counters.
 *
 * The space must not see a sector lose and get an owner in one transaction: a
 * deleted range is pending, and a pending sector must not get an owner.  So the
 * changes of a transaction are collected, ranges that are in both lists are
 * removed from both, and the rest is passed to the space at the end.  A run of
 * sectors never changes between nodes and other kinds: it is freed first.
 *
 * Nothing here fails for lack of memory: before a transaction runs there is
 * memory for the ranges that it may change (rmap_reserve).
 *
 * Invariant: no two ranges of put and del of one delta overlap.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/msg.h"
#include "base/rangeset.h"
#include "tree/tree_internal.h"

/* Most owners that a transaction changes: the largest one maps some fifty
 * extents, of which each owner may be cut in two. */
#define RANGES_MOST 512u
/* Nodes of range sets that they may need: each may cut a range in two, in four
 * sets of the space. */
#define RANGESET_NODES (4 * RANGES_MOST)

bool rmap_reserve(struct tree *tree)
{
	const size_t bytes = RANGES_MOST * sizeof(struct rmap_range);

	for (unsigned i = 0; i < 2; i++) {
		if (!tree->rmap_spare[i])
			tree->rmap_spare[i] = malloc(bytes);
		if (!tree->rmap_spare[i])
			return false;
	}
	return rangeset_reserve(RANGESET_NODES);
}

/* Moves the list to the memory that is kept for long lists. */
static struct rmap_range *list_spare(struct tree *tree, struct rmap_list *list)
{
	const unsigned i = tree->rmap_spare[0] ? 0 : 1;
	struct rmap_range *r = tree->rmap_spare[i];

	if (!r || list->room >= RANGES_MOST)
		return NULL;
	tree->rmap_spare[i] = NULL;
	if (list->n)
		memcpy(r, list->range, list->n * sizeof(*r));
	free(list->range);
	return r;
}

static int list_append(struct tree *tree, struct rmap_list *list,
		       uint64_t first, uint64_t n, uint8_t kind)
{
	if (list->n == list->room) {
		unsigned room = list->room ? list->room * 2 : 8;
		struct rmap_range *r = realloc(list->range,
						room * sizeof(*r));

		if (!r) {
			r = list_spare(tree, list);
			room = RANGES_MOST;
		}
		if (!r)
			return -ENOMEM;
		list->range = r;
		list->room = room;
	}
	list->range[list->n++] = (struct rmap_range){ first, n, kind };
	return 0;
}

/* Cuts [first, end) out of entry i; entries may be added behind it. */
static int list_cut(struct tree *tree, struct rmap_list *list, unsigned i,
		    uint64_t first, uint64_t end)
{
	struct rmap_range *r = &list->range[i];
	const uint64_t r_end = r->first + r->n;
	const uint8_t kind = r->kind;

	r->n = first - r->first;
	return end < r_end ?
		list_append(tree, list, end, r_end - end, kind) : 0;
}

/* Adds a range to one side, except the parts that the other side has, which are
 * taken out there. */
static int note(struct tree *tree, struct rmap_list *mine,
		struct rmap_list *other,
		uint64_t first, uint64_t n, uint8_t kind)
{
	const uint64_t end = first + n;
	int rc;

	for (unsigned i = 0; i < other->n && n; i++) {
		const struct rmap_range r = other->range[i];
		const uint64_t from = first > r.first ? first : r.first;
		const uint64_t to = end < r.first + r.n ? end : r.first + r.n;

		if (from >= to)
			continue;
		rc = list_cut(tree, other, i, from, to);
		if (!rc && from > first)
			rc = note(tree, mine, other, first, from - first, kind);
		if (rc)
			return rc;
		first = to;
		n = end - to;
	}
	return n ? list_append(tree, mine, first, n, kind) : 0;
}

static void note_or_fail(struct tree *tree, struct rmap_list *mine,
			 struct rmap_list *other, uint64_t first, uint64_t n,
			 uint8_t kind)
{
	if (note(tree, mine, other, first, n, kind))
		tree_fail(tree, "out of memory");
}

static void count_inode(struct tree *tree, struct key key,
			const struct inode_item *item)
{
	const uint64_t seq_mask = (1ull << TRAX_INO_SEQ_BITS) - 1;
	const uint64_t seq = key.ino & seq_mask;
	const uint64_t own = key.ino >> TRAX_INO_SEQ_BITS;
	const uint64_t children = le64_get(item->dirgroup);

	if (seq >= tree->next_ino_seq)
		tree->next_ino_seq = seq + 1;
	if (own >= tree->next_dirgroup)
		tree->next_dirgroup = own + 1;
	if (children >= tree->next_dirgroup)
		tree->next_dirgroup = children + 1;
}

void rmap_note_put(struct tree *tree, struct rmap_delta *delta,
		    struct key key, const void *value, const void *old)
{
	const struct owner_item *now = value, *was = old;
	uint64_t n, n_was;

	if (key.type == ITEM_INODE) {
		count_inode(tree, key, value);
		tree->inodes += !old;
	}
	if (key.type != ITEM_OWNER)
		return;
	n = le64_get(now->sectors);
	n_was = was ? le64_get(was->sectors) : 0;
	if (n > n_was)
		note_or_fail(tree, &delta->put, &delta->del, key.off + n_was,
			     n - n_was, now->kind);
	else if (n < n_was)
		note_or_fail(tree, &delta->del, &delta->put, key.off + n,
			     n_was - n, was->kind);
}

void rmap_note_del(struct tree *tree, struct rmap_delta *delta,
		    struct key key, const void *old)
{
	const struct owner_item *was = old;

	if (key.type == ITEM_INODE && tree->inodes)
		tree->inodes--;
	if (key.type == ITEM_OWNER && was)
		note_or_fail(tree, &delta->del, &delta->put, key.off,
			     le64_get(was->sectors), was->kind);
}

int owner_settle_nodes(struct tree *tree, struct rmap_delta *delta)
{
	int rc = 0;

	for (unsigned i = 0; i < delta->del.n && !rc; i++) {
		struct rmap_range *r = &delta->del.range[i];

		if (!r->n || r->kind != OWNER_NODES)
			continue;
		rc = space_owner_del(tree->space, r->first, r->n, r->kind);
		r->n = 0;
	}
	for (unsigned i = 0; i < delta->put.n && !rc; i++) {
		struct rmap_range *r = &delta->put.range[i];

		if (!r->n || r->kind != OWNER_NODES)
			continue;
		rc = space_owner_put(tree->space, r->first, r->n, r->kind);
		r->n = 0;
	}
	if (rc)
		tree_fail(tree, "free space contradicts its owners");
	return rc;
}

int rmap_cancel(struct tree *tree, struct rmap_delta *delta)
{
	int rc = 0;

	for (unsigned i = 0; i < delta->del.n && !rc; i++) {
		const struct rmap_range *r = &delta->del.range[i];

		if (r->n)
			rc = space_owner_del(tree->space, r->first, r->n,
					     r->kind);
	}
	for (unsigned i = 0; i < delta->put.n && !rc; i++) {
		const struct rmap_range *r = &delta->put.range[i];

		if (r->n)
			rc = space_owner_put(tree->space, r->first, r->n,
					     r->kind);
	}
	delta->del.n = delta->put.n = 0;
	if (rc)
		tree_fail(tree, "free space contradicts its owners");
	return rc;
}

void rmap_free(struct rmap_delta *delta)
{
	free(delta->put.range);
	free(delta->del.range);
}
