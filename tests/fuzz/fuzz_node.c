/*
 * fuzz_node.c - any bytes as a node, with the fields that its pointer fixes
 * made right; every item of what is accepted is read.
 */
#include <string.h>

#include "base/csum.h"
#include "format/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void read_leaf(const uint8_t *node)
{
	const struct node_header *h = (const void *)node;
	const struct leaf_slot *slot = (const void *)(h + 1);

	for (unsigned i = 0; i < le16_get(h->n); i++)
		csum(node + le16_get(slot[i].off), le16_get(slot[i].bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static uint8_t node[TRAX_NODE_BYTES];
	struct node_header *h = (void *)node;
	struct node_ptr ptr = { .addr = 640 };

	memset(node, 0, sizeof(node));
	memcpy(node, data, bytes < sizeof(node) ? bytes : sizeof(node));
	/* Values lie at the end of a node: the end of the input goes there. */
	if (bytes > 512 && bytes < sizeof(node))
		memcpy(node + sizeof(node) - 256, data + bytes - 256, 256);
	h->magic = le32_put(TRAX_NODE_MAGIC);
	h->fsid = le64_put(0);
	h->addr = le64_put(ptr.addr);
	h->level %= 2;
	h->pad = 0;
	ptr.addr2 = le64_get(h->addr2);
	ptr.gen = le64_get(h->gen);
	if (!node_verify(node, 0, &ptr, h->level, KEY_MIN, KEY_MAX) &&
	    !h->level)
		read_leaf(node);
	return 0;
}
