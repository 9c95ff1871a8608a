/*
 * node_code.c - what a node must look like before any code walks it.
 *
 * The code above relies on this without asking: slots and values lie inside the
 * node and do not overlap; keys are in order and inside the node's range; that
 * range is inside the one that its parent gives it; children are one level down
 * and no younger than their parent. So a descent is bounded by the level of the
 * root and cannot meet a node twice.
 */
#include <string.h>

#include "format/format.h"

static_assert(offsetof(struct node_header, addr) == 16, "addr");
static_assert(offsetof(struct node_header, heap) == 40, "heap");
static_assert(offsetof(struct node_header, low) == 44, "low");

#define BODY_BYTES (TRAX_NODE_BYTES - sizeof(struct node_header))

static const char *verify_header(const struct node_header *h, uint64_t fsid,
				 const struct node_ptr *ptr, unsigned level)
{
	if (le32_get(h->magic) != TRAX_NODE_MAGIC)
		return "no node magic";
	if (le64_get(h->fsid) != fsid)
		return "node of another file system";
	if (h->level != level)
		return "node has the wrong level";
	if (h->pad)
		return "node's padding is not zero";
	if (le64_get(h->addr) != ptr->addr || le64_get(h->addr2) != ptr->addr2)
		return "node belongs to another address";
	if (ptr->addr == ptr->addr2)
		return "node is its own mirror";
	if (le64_get(h->gen) != ptr->gen)
		return "node is of another generation";
	return NULL;
}

static const char *verify_range(const struct node_header *h, struct key low,
				struct key high)
{
	const struct key from = key_get(&h->low), to = key_get(&h->high);

	if (key_cmp(from, to) > 0)
		return "node's key range is empty";
	if (key_cmp(from, low) < 0 || key_cmp(to, high) > 0)
		return "node's key range is not inside its parent's";
	return NULL;
}

/* Key i of the node is above key i - 1 and inside the node's range. */
static const char *verify_key(const struct node_header *h, unsigned i,
			      const struct disk_key *k,
			      const struct disk_key *before)
{
	const struct key key = key_get(k);

	if (i && key_cmp(key_get(before), key) >= 0)
		return "keys are not in order";
	if (key_cmp(key, key_get(&h->low)) < 0 ||
	    key_cmp(key, key_get(&h->high)) > 0)
		return "key is outside the node's range";
	return NULL;
}

/* ---- Leaves ------------------------------------------------------------- */

/* One bit for each byte of a node. */
struct byte_set {
	uint64_t word[TRAX_NODE_BYTES / 64];
};

/* Marks [off, off + n); false if any was marked already. */
static bool byte_set_add(struct byte_set *set, unsigned off, unsigned n)
{
	while (n) {
		const unsigned bit = off % 64;
		const unsigned here = n < 64 - bit ? n : 64 - bit;
		const uint64_t mask = (here == 64 ? UINT64_MAX :
				       ((uint64_t)1 << here) - 1) << bit;

		if (set->word[off / 64] & mask)
			return false;
		set->word[off / 64] |= mask;
		off += here;
		n -= here;
	}
	return true;
}

static const char *verify_value(const void *node, unsigned heap,
				const struct leaf_slot *slot,
				struct byte_set *seen)
{
	const unsigned off = le16_get(slot->off);
	const unsigned bytes = le16_get(slot->bytes);

	if (off < heap || off > TRAX_NODE_BYTES ||
	    bytes > TRAX_NODE_BYTES - off)
		return "value lies outside the heap";
	if (!byte_set_add(seen, off, bytes))
		return "values overlap";
	return item_verify(key_get(&slot->key), (const uint8_t *)node + off,
			   bytes);
}

static const char *verify_leaf(const struct node_header *h)
{
	const struct leaf_slot *slot = (const void *)(h + 1);
	const unsigned n = le16_get(h->n), heap = le16_get(h->heap);
	struct byte_set seen = { { 0 } };
	unsigned used = 0;

	if (n > BODY_BYTES / sizeof(*slot))
		return "leaf has too many items";
	if (heap < sizeof(*h) + n * sizeof(*slot) || heap > TRAX_NODE_BYTES)
		return "leaf's heap is out of range";
	for (unsigned i = 0; i < n; i++) {
		const char *why = verify_key(h, i, &slot[i].key,
					     i ? &slot[i - 1].key : NULL);

		if (!why)
			why = verify_value(h, heap, &slot[i], &seen);
		if (why)
			return why;
		used += le16_get(slot[i].bytes);
	}
	if (used != le16_get(h->used))
		return "leaf's count of used bytes is wrong";
	return NULL;
}

/* ---- Interior nodes ----------------------------------------------------- */

static const char *verify_child(const struct node_header *h,
				const struct child_slot *child)
{
	const uint64_t addr = le64_get(child->addr);
	const uint64_t addr2 = le64_get(child->addr2);

	if (!addr || addr_device(addr) || addr_device(addr2))
		return "child lies outside the device";
	if (addr == addr2)
		return "child is its own mirror";
	if (addr == le64_get(h->addr) || addr == le64_get(h->addr2))
		return "child is its own parent";
	if (le64_get(child->gen) > le64_get(h->gen))
		return "child is younger than its parent";
	return NULL;
}

static const char *verify_interior(const struct node_header *h)
{
	const struct child_slot *child = (const void *)(h + 1);
	const unsigned n = le16_get(h->n);

	if (!n || n > BODY_BYTES / sizeof(*child))
		return "interior node has no valid number of children";
	for (unsigned i = 0; i < n; i++) {
		const char *why = verify_key(h, i, &child[i].key,
					     i ? &child[i - 1].key : NULL);

		if (!why)
			why = verify_child(h, &child[i]);
		if (why)
			return why;
	}
	return NULL;
}

const char *node_verify(const void *node, uint64_t fsid,
			const struct node_ptr *ptr, unsigned level,
			struct key low, struct key high)
{
	const struct node_header *h = node;
	const char *why = verify_header(h, fsid, ptr, level);

	if (!why)
		why = verify_range(h, low, high);
	if (why)
		return why;
	return level ? verify_interior(h) : verify_leaf(h);
}
