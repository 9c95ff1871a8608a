/*
 * tree_walk.c - all nodes of the tree, in key order, each verified.
 *
 * The children of a node are read together, sorted by address, up to BATCH at a
 * time; each level has its own buffers, so that memory depends on the height
 * only.  A mirror is read where its node is bad (mirrors.c).  node_verify
 * holds a child's keys inside its parent's and its level one below, so a walk
 * ends on any image.
 *
 * A leaf that has its checksum but holds items that are not valid was written
 * like that: its good items count, the bad ones are reported one by one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check/scan/check_internal.h"

/* Children of a node that are read together, 1 MiB of buffer for each level. */
#define BATCH 64u
#define MAX_CHILDREN ((TRAX_NODE_BYTES - sizeof(struct node_header)) / \
		      sizeof(struct child_slot))
/* Nodes after which progress is reported and failures are looked for. */
#define PROGRESS_NODES 256u

struct visit {
	struct node_ptr ptr;
	struct key low, high;
	uint8_t *buf;		/* memory into which it was read */
	int rc;
	const uint8_t *node;	/* the good copy; NULL: none */
	const char *why;	/* why there is no good copy */
};

struct tree_walk {
	struct check *check;
	bool first;
	walk_item item;
	/* By level: memory for nodes, and the number of nodes it holds. */
	uint8_t *buffers[TRAX_MAX_LEVEL + 2];
	unsigned room[TRAX_MAX_LEVEL + 2];
};

/* ---- Reading ---- */

/* Results come back sorted by address and are found by their buffer. */
static void visit_take_results(struct visit *visits,
			       const struct device_read *reads, unsigned n,
			       const uint8_t *base)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		size_t at = (size_t)((uint8_t *)reads[i].buf - base) /
			    TRAX_NODE_BYTES;

		visits[at].rc = reads[i].rc;
	}
}

static void visit_read(struct tree_walk *walk, struct visit *visits, unsigned n,
		       unsigned level)
{
	struct device_read reads[BATCH];
	uint8_t *base = walk->buffers[level];
	unsigned i;

	for (i = 0; i < n; i++) {
		struct visit *v = &visits[i];

		v->buf = base + (size_t)i * TRAX_NODE_BYTES;
		reads[i] = (struct device_read){
			.sector = addr_sector(v->ptr.addr),
			.sectors = TRAX_NODE_SECTORS,
			.buf = v->buf,
		};
	}
	device_read_many(walk->check, reads, n);
	visit_take_results(visits, reads, n, base);
}

/* Chooses the copy that is trusted. */
static void visit_choose(struct tree_walk *walk, struct visit *visit)
{
	const char *why2;
	int rc;

	visit->why = mirrors_damage(visit->buf, visit->rc, visit->ptr.csum);
	if (!visit->why) {
		visit->node = visit->buf;
		if (visit->ptr.addr2 && walk->first)
			mirrors_note(walk->check, &visit->ptr);
		return;
	}
	if (!visit->ptr.addr2)
		return;
	rc = device_read(walk->check, addr_sector(visit->ptr.addr2),
			 TRAX_NODE_SECTORS, visit->buf);
	why2 = mirrors_damage(visit->buf, rc, visit->ptr.csum);
	if (why2)
		return;
	visit->node = visit->buf;
	if (walk->first)
		mirrors_repair(walk->check, addr_sector(visit->ptr.addr),
			       visit->buf, visit->why);
}

/* ---- Nodes ---- */

static void walk_lost(struct tree_walk *walk, const struct visit *visit,
		      unsigned level, const char *why)
{
	struct problem_place place = {
		.sector = addr_sector(visit->ptr.addr)
	};
	char kind[32], low[64], high[64];
	struct lost_range *lost;

	if (!walk->first)
		return;
	if (level)
		snprintf(kind, sizeof(kind), "level %u", level);
	else
		snprintf(kind, sizeof(kind), "leaf");
	problem_report(walk->check, PROBLEM_NODE_LOST, place,
		       (unsigned long long)place.sector, kind, why,
		       key_text(visit->low, low, sizeof(low)),
		       key_text(visit->high, high, sizeof(high)));
	lost = check_add(walk->check, &walk->check->lost);
	if (lost)
		*lost = (struct lost_range){
			visit->low, visit->high, level ? 0 : place.sector
		};
}

static void walk_note(struct tree_walk *walk, const struct visit *visit)
{
	struct check *check = walk->check;
	uint64_t *at;

	if (!walk->first)
		return;
	at = check_add(check, &check->nodes);
	if (at)
		*at = addr_sector(visit->ptr.addr);
	if (visit->ptr.addr2) {
		at = check_add(check, &check->nodes);
		if (at)
			*at = addr_sector(visit->ptr.addr2);
	}
	if (check->nodes.n % PROGRESS_NODES == 0)
		check_progress(check, "metadata", check->nodes.n,
			       check->nodes_total);
}

static const char *leaf_bounds(const struct node_header *h)
{
	unsigned n = le16_get(h->n);

	if (n > (TRAX_NODE_BYTES - sizeof(*h)) / sizeof(struct leaf_slot))
		return "leaf has too many items";
	return NULL;
}

/* Is the i-th key out of order? Of two keys in the wrong order, the one that is
 * beyond those that follow counts as wrong. In a leaf without a good checksum a
 * key outside the leaf's range is wrong, too. */
static bool key_is_odd(const struct check *check, const struct node_header *h,
		       unsigned i, struct key last)
{
	const struct leaf_slot *slot = (const void *)(h + 1);
	struct key key = key_get(&slot[i].key), next = KEY_MAX;

	if (i && key_cmp(key, last) <= 0)
		return true;
	if (!check->salvage)
		return false;
	if (i + 1u < le16_get(h->n))
		next = key_get(&slot[i + 1].key);
	return key_cmp(key, key_get(&h->low)) < 0 ||
	       key_cmp(key, key_get(&h->high)) > 0 ||
	       (key_cmp(key, next) >= 0 && key_cmp(next, last) > 0);
}

const char *walk_leaf(struct check *check, const void *node, bool report,
		      walk_item item)
{
	const struct node_header *h = node;
	const struct leaf_slot *slot = (const void *)(h + 1);
	struct key last = KEY_MIN;
	const char *why = leaf_bounds(h);
	unsigned i, n = le16_get(h->n);

	for (i = 0; i < n && !why; i++) {
		struct key key = key_get(&slot[i].key);
		unsigned off = le16_get(slot[i].off);
		unsigned bytes = le16_get(slot[i].bytes);
		const char *bad = NULL;
		char text[64];

		if (off > TRAX_NODE_BYTES || bytes > TRAX_NODE_BYTES - off)
			bad = "value lies outside its node";
		else if (key_is_odd(check, h, i, last))
			bad = "key is not in order";
		else
			bad = item_verify(key, (const uint8_t *)node + off,
					  bytes);
		if (!bad) {
			last = key;
			item(check, key, (const uint8_t *)node + off, bytes);
		} else if (report) {
			problem_report(check, PROBLEM_ITEM_BAD,
				       (struct problem_place){ .ino = key.ino },
				       key_text(key, text, sizeof(text)), bad);
		}
	}
	return why;
}

/* Checks a leaf as a whole: does its header say what its parent says? */
static const char *leaf_header(struct check *check, const struct visit *visit)
{
	const struct node_header *h = (const void *)visit->node;
	uint8_t empty[sizeof(struct node_header)];
	struct node_header *e = (struct node_header *)empty;

	/* Applies the rules of a node without items to its header. */
	memcpy(empty, h, sizeof(empty));
	e->n = le16_put(0);
	e->used = le16_put(0);
	e->heap = le16_put(TRAX_NODE_BYTES);
	return node_verify(e, check->fsid, &visit->ptr, 0, visit->low,
			   visit->high);
}

static void walk_children(struct tree_walk *walk, const uint8_t *node,
			  unsigned level);

static void walk_node(struct tree_walk *walk, struct visit *visit,
		      unsigned level)
{
	struct check *check = walk->check;
	const char *why;

	visit_choose(walk, visit);
	if (!visit->node) {
		walk_lost(walk, visit, level, visit->why);
		return;
	}
	why = node_verify(visit->node, check->fsid, &visit->ptr, level,
			  visit->low, visit->high);
	if (why && (level || leaf_header(check, visit))) {
		walk_lost(walk, visit, level, why);
		return;
	}
	walk_note(walk, visit);
	if (level) {
		walk_children(walk, visit->node, level);
		return;
	}
	why = walk_leaf(check, visit->node, walk->first, walk->item);
	if (why)
		walk_lost(walk, visit, level, why);
}

/* The i-th child of a node, with the keys it may hold. */
static void visit_child(const struct node_header *h, unsigned i,
			struct visit *visit)
{
	const struct child_slot *child = (const void *)(h + 1);

	memset(visit, 0, sizeof(*visit));
	visit->ptr.addr = le64_get(child[i].addr);
	visit->ptr.addr2 = le64_get(child[i].addr2);
	visit->ptr.csum = le64_get(child[i].csum);
	visit->ptr.gen = le64_get(child[i].gen);
	visit->low = key_get(&child[i].key);
	if (i + 1u < le16_get(h->n))
		visit->high = key_get(&child[i + 1].key);
	else
		visit->high = key_get(&h->high);
	/* The child's keys end before the next child's first key. */
	if (i + 1u < le16_get(h->n)) {
		struct key *k = &visit->high;

		if (k->off--)
			return;
		if (k->type--)
			return;
		k->ino--;
	}
}

/* Room for n nodes of a level. */
static bool walk_buffers(struct tree_walk *walk, unsigned level, unsigned n)
{
	if (n > BATCH)
		n = BATCH;
	if (walk->room[level] >= n)
		return true;
	free(walk->buffers[level]);
	walk->buffers[level] = device_buffer(walk->check,
					     (size_t)n * TRAX_NODE_BYTES);
	walk->room[level] = walk->buffers[level] ? n : 0;
	return walk->buffers[level] != NULL;
}

static void walk_children(struct tree_walk *walk, const uint8_t *node,
			  unsigned level)
{
	const struct node_header *h = (const void *)node;
	struct visit *visits = calloc(BATCH, sizeof(*visits));
	unsigned i, k, n = le16_get(h->n);

	if (!visits) {
		check_fail(walk->check, -ENOMEM);
		return;
	}
	if (!walk_buffers(walk, level - 1, n))
		n = 0;
	for (i = 0; i < n && !walk->check->rc; i += k) {
		unsigned batch = n - i < BATCH ? n - i : BATCH;

		for (k = 0; k < batch; k++)
			visit_child(h, i + k, &visits[k]);
		visit_read(walk, visits, batch, level - 1);
		for (k = 0; k < batch && !walk->check->rc; k++)
			walk_node(walk, &visits[k], level - 1);
	}
	free(visits);
}

void walk_tree(struct check *check, bool first, walk_item item)
{
	struct tree_walk walk = {.check = check, .first = first, .item = item};
	struct visit root = {
		.ptr = check->root.tree,
		.low = KEY_MIN,
		.high = KEY_MAX,
	};
	unsigned i, level = check->root.level;

	if (walk_buffers(&walk, level, 1)) {
		visit_read(&walk, &root, 1, level);
		if (!check->rc)
			walk_node(&walk, &root, level);
	}
	for (i = 0; i < TRAX_MAX_LEVEL + 2; i++)
		free(walk.buffers[i]);
}
