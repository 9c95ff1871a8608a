/*
 * node.c - slots grow up behind the header, values down from the end.
 *
 * A removed value leaves a hole; node_insert compacts when the contiguous room
 * is too small though all room together would do.
 */
#include "tree/node.h"

#include <assert.h>
#include <string.h>

static struct node_header *header(void *node)
{
	return node;
}

static const struct node_header *header_of(const void *node)
{
	return node;
}

static struct leaf_slot *leaf(void *node)
{
	return (struct leaf_slot *)(header(node) + 1);
}

static const struct leaf_slot *leaf_of(const void *node)
{
	return (const struct leaf_slot *)(header_of(node) + 1);
}

static struct child_slot *child(void *node)
{
	return (struct child_slot *)(header(node) + 1);
}

static const struct child_slot *child_of(const void *node)
{
	return (const struct child_slot *)(header_of(node) + 1);
}

void node_init(void *node, uint64_t fsid, unsigned level, struct key low,
	       struct key high)
{
	struct node_header *h = node;

	memset(node, 0, TRAX_NODE_BYTES);
	h->magic = le32_put(TRAX_NODE_MAGIC);
	h->level = (uint8_t)level;
	h->fsid = le64_put(fsid);
	if (!level)
		h->heap = le16_put(TRAX_NODE_BYTES);
	h->low = key_put(low);
	h->high = key_put(high);
}

void node_set_place(void *node, traxaddr addr, traxaddr addr2, uint64_t gen)
{
	header(node)->addr = le64_put(addr);
	header(node)->addr2 = le64_put(addr2);
	header(node)->gen = le64_put(gen);
}

void node_set_low(void *node, struct key low)
{
	header(node)->low = key_put(low);
}

void node_set_high(void *node, struct key high)
{
	header(node)->high = key_put(high);
}

unsigned node_count(const void *node)
{
	return le16_get(header_of(node)->n);
}

unsigned node_level(const void *node)
{
	return header_of(node)->level;
}

struct key node_low(const void *node)
{
	return key_get(&header_of(node)->low);
}

struct key node_high(const void *node)
{
	return key_get(&header_of(node)->high);
}

struct key node_key(const void *node, unsigned i)
{
	return key_get(node_level(node) ? &child_of(node)[i].key :
					  &leaf_of(node)[i].key);
}

static void set_count(void *node, unsigned n)
{
	header(node)->n = le16_put((uint16_t)n);
}

/* ---- Leaves ---- */

unsigned node_find(const void *node, struct key key, bool *found)
{
	const struct leaf_slot *slot = leaf_of(node);
	unsigned low = 0, high = node_count(node);

	*found = false;
	while (low < high) {
		const unsigned mid = (low + high) / 2;
		const int c = key_cmp(key_get(&slot[mid].key), key);

		if (c < 0) {
			low = mid + 1;
		} else {
			high = mid;
			*found = *found || c == 0;
		}
	}
	return low;
}

const void *node_value(const void *node, unsigned i, size_t *bytes)
{
	const struct leaf_slot *slot = &leaf_of(node)[i];

	*bytes = le16_get(slot->bytes);
	return (const uint8_t *)node + le16_get(slot->off);
}

size_t node_used(const void *node)
{
	return node_count(node) * sizeof(struct leaf_slot) +
	       le16_get(header_of(node)->used);
}

bool node_fits(const void *node, size_t bytes)
{
	return node_used(node) + sizeof(struct leaf_slot) + bytes <=
	       NODE_BODY_BYTES;
}

/* Moves all values together at the end, in slot order. */
static void compact(void *node)
{
	uint8_t copy[TRAX_NODE_BYTES];
	struct leaf_slot *slot = leaf(node);
	const unsigned n = node_count(node);
	unsigned heap = TRAX_NODE_BYTES;

	memcpy(copy, node, sizeof(copy));
	for (unsigned i = 0; i < n; i++) {
		const unsigned bytes = le16_get(slot[i].bytes);

		heap -= bytes;
		memcpy((uint8_t *)node + heap, copy + le16_get(slot[i].off),
		       bytes);
		slot[i].off = le16_put((uint16_t)heap);
	}
	header(node)->heap = le16_put((uint16_t)heap);
	memset(slot + n, 0, heap - sizeof(struct node_header) -
	       n * sizeof(*slot));
}

void node_insert(void *node, unsigned i, struct key key, const void *value,
		 size_t bytes)
{
	struct node_header *h = node;
	struct leaf_slot *slot = leaf(node);
	const unsigned n = node_count(node);
	unsigned heap;

	assert(i <= n && node_fits(node, bytes));
	if (sizeof(*h) + (n + 1) * sizeof(*slot) + bytes > le16_get(h->heap))
		compact(node);
	heap = le16_get(h->heap) - (unsigned)bytes;
	if (bytes)
		memcpy((uint8_t *)node + heap, value, bytes);
	memmove(slot + i + 1, slot + i, (n - i) * sizeof(*slot));
	slot[i] = (struct leaf_slot){
		.key = key_put(key),
		.off = le16_put((uint16_t)heap),
		.bytes = le16_put((uint16_t)bytes),
	};
	h->heap = le16_put((uint16_t)heap);
	h->used = le16_put((uint16_t)(le16_get(h->used) + bytes));
	set_count(node, n + 1);
}

void node_remove(void *node, unsigned i)
{
	node_remove_run(node, i, 1);
}

void node_remove_run(void *node, unsigned i, unsigned n)
{
	struct node_header *h = node;
	struct leaf_slot *slot = leaf(node);
	const unsigned count = node_count(node);
	unsigned used = le16_get(h->used);

	assert(i + n <= count);
	for (unsigned k = i; k < i + n; k++)
		used -= le16_get(slot[k].bytes);
	memmove(slot + i, slot + i + n, (count - i - n) * sizeof(*slot));
	set_count(node, count - n);
	h->used = le16_put((uint16_t)used);
	if (count == n)
		h->heap = le16_put(TRAX_NODE_BYTES);
}

unsigned node_split_point(const void *node, unsigned i, size_t bytes,
			  bool *right)
{
	const struct leaf_slot *slot = leaf_of(node);
	const unsigned n = node_count(node);
	const size_t half = (node_used(node) + sizeof(*slot) + bytes) / 2;
	size_t left = 0;

	*right = i == n;
	if (*right)
		return n;
	for (unsigned k = 0; k < n; k++) {
		*right = i >= k;
		if (k && left >= half)
			return k;
		*right = i > k;
		if (k == i)
			left += sizeof(*slot) + bytes;
		if (k && left >= half)
			return k;
		left += sizeof(*slot) + le16_get(slot[k].bytes);
	}
	return n - 1;
}

/* ---- Interior nodes ---- */

unsigned node_child_find(const void *node, struct key key)
{
	const struct child_slot *c = child_of(node);
	unsigned low = 0, high = node_count(node);

	while (high - low > 1) {
		const unsigned mid = (low + high) / 2;

		if (key_cmp(key_get(&c[mid].key), key) <= 0)
			low = mid;
		else
			high = mid;
	}
	return low;
}

struct node_ptr node_child(const void *node, unsigned i)
{
	const struct child_slot *c = &child_of(node)[i];

	return (struct node_ptr){
		.addr = le64_get(c->addr),
		.addr2 = le64_get(c->addr2),
		.csum = le64_get(c->csum),
		.gen = le64_get(c->gen),
	};
}

void node_child_set(void *node, unsigned i, const struct node_ptr *ptr)
{
	struct child_slot *c = &child(node)[i];

	c->addr = le64_put(ptr->addr);
	c->addr2 = le64_put(ptr->addr2);
	c->csum = le64_put(ptr->csum);
	c->gen = le64_put(ptr->gen);
}

void node_child_set_key(void *node, unsigned i, struct key key)
{
	child(node)[i].key = key_put(key);
}

bool node_child_full(const void *node)
{
	return node_count(node) >= NODE_MAX_CHILDREN;
}

void node_child_insert(void *node, unsigned i, struct key key,
		       const struct node_ptr *ptr)
{
	struct child_slot *c = child(node);
	const unsigned n = node_count(node);

	assert(i <= n && !node_child_full(node));
	memmove(c + i + 1, c + i, (n - i) * sizeof(*c));
	node_child_set_key(node, i, key);
	node_child_set(node, i, ptr);
	set_count(node, n + 1);
}

void node_child_remove(void *node, unsigned i)
{
	struct child_slot *c = child(node);
	const unsigned n = node_count(node);

	assert(i < n);
	memmove(c + i, c + i + 1, (n - i - 1) * sizeof(*c));
	set_count(node, n - 1);
}

struct key node_child_high(const void *node, unsigned i)
{
	return i + 1 < node_count(node) ?
		key_before(node_key(node, i + 1)) : node_high(node);
}

/* ---- Both ---- */

static void move_children(void *node, unsigned i, void *to)
{
	const unsigned n = node_count(node), m = node_count(to);

	assert(m + n - i <= NODE_MAX_CHILDREN);
	memcpy(child(to) + m, child(node) + i,
	       (n - i) * sizeof(struct child_slot));
	set_count(to, m + n - i);
	set_count(node, i);
}

void node_move(void *node, unsigned i, void *to)
{
	const unsigned n = node_count(node);

	assert(i <= n);
	if (node_level(node)) {
		move_children(node, i, to);
		return;
	}
	for (unsigned k = i; k < n; k++) {
		size_t bytes;
		const void *value = node_value(node, k, &bytes);

		node_insert(to, node_count(to), node_key(node, k), value,
			    bytes);
	}
	node_remove_run(node, i, n - i);
}
