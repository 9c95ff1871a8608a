/*
 * lookup.c - lookups over resident nodes.
 *
 * A lookup goes down from the root; the first node that is not resident is
 * noted and -EAGAIN returned (fetch.c reads what is noted).  A leaf that was
 * met is pinned until its transaction ends; the nodes above it can't leave
 * before it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/msg.h"
#include "tree/tree_internal.h"

void tree_fail(struct tree *tree, const char *why)
{
	if (tree->failed)
		return;
	tree->failed = true;
	msg_error("file system failed, no more changes: %s", why);
}

void tree_set_root(struct tree *tree, struct buffer *root)
{
	if (tree->root)
		buffer_unpin(tree->buffers, tree->root);
	buffer_set_parent(tree->buffers, root, NULL);
	buffer_pin(tree->buffers, root);
	tree->root = root;
}

void tree_wake(struct list *list, int rc)
{
	struct list all;

	list_init(&all);
	while (!list_empty(list)) {
		struct list *l = list->next;

		list_del(l);
		list_add(&all, l);
	}
	while (!list_empty(&all)) {
		struct waiter *w = list_first(&all, struct waiter, link);

		list_del(&w->link);
		w->done(w, rc);
	}
}

struct buffer *tree_child(const struct tree *tree, const struct buffer *parent,
			 unsigned i)
{
	struct buffer *f = buffer_find(tree->buffers,
				     node_child(parent->node, i).addr);

	if (!f || f->parent != parent)
		return NULL;
	return key_cmp(tree_resident(f) ? node_low(f->node) : f->load->low,
		       node_key(parent->node, i)) ? NULL : f;
}

struct buffer *tree_leaf(struct tree *tree, struct key key)
{
	struct buffer *f = tree->root;

	while (f && f->level) {
		f = tree_child(tree, f, node_child_find(f->node, key));
		if (!tree_resident(f))
			return NULL;
	}
	return f;
}

bool fetch_is_reported(struct tree *tree, traxaddr addr)
{
	for (unsigned i = 0; i < TREE_REPORTED; i++)
		if (tree->reported[i] == addr)
			return true;
	tree->reported[tree->reported_n++ % TREE_REPORTED] = addr;
	return false;
}

static bool has_failed(const struct tree_txn *txn, traxaddr addr)
{
	for (unsigned i = 0; i < txn->failed_n; i++)
		if (txn->failed[i] == addr)
			return true;
	return false;
}

/* Notes child i of parent as missing and returns -EAGAIN; -EIO: it can't be
 * read. */
static int fetch_note(struct tree_txn *txn, struct buffer *parent, unsigned i)
{
	struct node_ptr ptr = node_child(parent->node, i);

	const struct buffer *known = buffer_find(txn->tree->buffers, ptr.addr);

	if (has_failed(txn, ptr.addr))
		return -EIO;
	if (known && known != tree_child(txn->tree, parent, i)) {
		if (!fetch_is_reported(txn->tree, ptr.addr))
			msg_error("node at sector %" PRIu64 ": the tree names "
				  "it twice", addr_sector(ptr.addr));
		return -EIO;
	}
	for (unsigned k = 0; k < txn->miss_n; k++)
		if (txn->miss[k].ptr.addr == ptr.addr)
			return -EAGAIN;
	if (!txn->miss)
		txn->miss = malloc(txn->bounds.nodes * sizeof(*txn->miss));
	/* Nodes beyond the bound, or without memory, are met again in the next
	 * run. */
	if (!txn->miss || txn->miss_n == txn->bounds.nodes)
		return -EAGAIN;
	txn->miss[txn->miss_n++] = (struct txn_miss){
		.ptr = ptr,
		.level = parent->level - 1u,
		.low = node_key(parent->node, i),
		.high = node_child_high(parent->node, i),
		.parent = parent,
		.txn = txn,
	};
	list_init(&txn->miss[txn->miss_n - 1].link);
	return -EAGAIN;
}

/* Finds the node of a level that covers key: 0, -EAGAIN or -EIO. */
static int descend(struct tree_txn *txn, struct key key, unsigned level,
		   struct buffer **node)
{
	struct buffer *f = txn->tree->root;

	while (f->level > level) {
		const unsigned i = node_child_find(f->node, key);
		struct buffer *child = tree_child(txn->tree, f, i);

		if (!tree_resident(child))
			return fetch_note(txn, f, i);
		f = child;
	}
	*node = f;
	return 0;
}

static bool is_copy(const struct node_ptr *ptr, traxaddr addr)
{
	return ptr->addr == addr || ptr->addr2 == addr;
}

int tree_copy_key(struct tree_txn *txn, traxaddr addr, struct key *from,
		  struct key *low)
{
	const struct buffer *f = txn->tree->root;
	struct buffer *child;
	unsigned i;

	*low = KEY_MIN;
	if (is_copy(&f->ptr, addr))
		return 0;
	for (; f->level; f = child) {
		for (i = 0; i < node_count(f->node); i++) {
			const struct node_ptr ptr = node_child(f->node, i);

			*low = node_key(f->node, i);
			if (is_copy(&ptr, addr))
				return 0;
		}
		if (f->level == 1)
			break;
		i = node_child_find(f->node, *from);
		child = tree_child(txn->tree, f, i);
		if (!tree_resident(child))
			return fetch_note(txn, (struct buffer *)f, i);
	}
	if (key_cmp(node_high(f->node), KEY_MAX) == 0)
		return -ENOENT;
	*from = key_after(node_high(f->node));
	return -EINPROGRESS;
}

static bool is_old_on(const struct tree *tree, const struct node_ptr *ptr,
		      const struct range *track)
{
	return ptr->gen != tree->gen &&
	       (ptr->addr - track->first < track->n ||
		ptr->addr2 - track->first < track->n);
}

int lookup_on_track(struct tree_txn *txn, const struct range *track,
		    struct key *from, struct key *low)
{
	const struct buffer *f = txn->tree->root;
	unsigned i;

	*low = *from;
	for (;;) {
		if (is_old_on(txn->tree, &f->ptr, track))
			return 0;
		i = f->level ? node_child_find(f->node, *from) : 0;
		if (f->level < 2)
			break;
		if (!tree_resident(tree_child(txn->tree, f, i)))
			return fetch_note(txn, (struct buffer *)f, i);
		f = tree_child(txn->tree, f, i);
	}
	for (; f->level && i < node_count(f->node); i++) {
		const struct node_ptr ptr = node_child(f->node, i);

		*low = node_key(f->node, i);
		if (is_old_on(txn->tree, &ptr, track))
			return 0;
	}
	if (key_cmp(node_high(f->node), KEY_MAX) == 0)
		return -ENOENT;
	*from = key_after(node_high(f->node));
	return -EINPROGRESS;
}

/* Finds the leaf that covers key, and pins it. */
static int find_leaf(struct tree_txn *txn, struct key key, struct buffer **leaf)
{
	int rc = descend(txn, key, 0, leaf);

	if (!rc)
		txn_pin(txn, *leaf);
	return rc;
}

static int give(const struct buffer *leaf, unsigned i, struct tree_item *item)
{
	item->key = node_key(leaf->node, i);
	item->value = node_value(leaf->node, i, &item->bytes);
	return 0;
}

int tree_get(struct tree_txn *txn, struct key key, struct tree_item *item)
{
	struct buffer *leaf;
	unsigned i;
	bool found;
	int rc = find_leaf(txn, key, &leaf);

	if (rc)
		return rc;
	i = node_find(leaf->node, key, &found);
	return found ? give(leaf, i, item) : -ENOENT;
}

int tree_seek_ge(struct tree_txn *txn, struct key from, struct key last,
		 struct tree_item *item)
{
	while (key_cmp(from, last) <= 0) {
		struct buffer *leaf;
		struct key high;
		unsigned i;
		bool found;
		int rc = find_leaf(txn, from, &leaf);

		if (rc)
			return rc;
		i = node_find(leaf->node, from, &found);
		if (i < node_count(leaf->node))
			return key_cmp(node_key(leaf->node, i), last) <= 0 ?
				give(leaf, i, item) : -ENOENT;
		high = node_high(leaf->node);
		if (key_cmp(high, KEY_MAX) == 0)
			break;
		from = key_after(high);
	}
	return -ENOENT;
}

int tree_seek_le(struct tree_txn *txn, struct key from, struct key first,
		 struct tree_item *item)
{
	while (key_cmp(from, first) >= 0) {
		struct buffer *leaf;
		struct key low;
		unsigned i;
		bool found;
		int rc = find_leaf(txn, from, &leaf);

		if (rc)
			return rc;
		i = node_find(leaf->node, from, &found);
		if (!found && i-- == 0) {
			low = node_low(leaf->node);
			if (key_cmp(low, KEY_MIN) == 0)
				break;
			from = key_before(low);
			continue;
		}
		return key_cmp(node_key(leaf->node, i), first) >= 0 ?
			give(leaf, i, item) : -ENOENT;
	}
	return -ENOENT;
}

void tree_prefetch(struct tree_txn *txn, struct key from, struct key last,
		   unsigned nodes)
{
	while (nodes && tree_txn_room(txn) && key_cmp(from, last) <= 0) {
		struct buffer *parent;
		struct key high;
		unsigned i;

		if (descend(txn, from, 1, &parent) || !parent->level)
			return;
		i = node_child_find(parent->node, from);
		high = node_child_high(parent->node, i);
		if (!tree_resident(tree_child(txn->tree, parent, i)))
			fetch_note(txn, parent, i);
		nodes--;
		if (key_cmp(high, KEY_MAX) == 0)
			return;
		from = key_after(high);
	}
}
