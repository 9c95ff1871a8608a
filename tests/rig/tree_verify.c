/*
 * tree_verify.c - see tree_verify.h.
 *
 * Resident nodes are checked as they are in memory, the others as they are on
 * the disk, both copies.  A clean node in memory must be equal to the one on
 * the disk.
 */
#include "tests/rig/tree_verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "base/msg.h"
#include "tree/tree_internal.h"

struct verify_walk {
	struct tree *tree;
	uint64_t slots;
	uint8_t *buf[TRAX_MAX_LEVEL + 1];
};

struct expected {
	struct node_ptr ptr;
	unsigned level;
	struct key low, high;
	struct buffer *parent;	/* NULL: it is the root, or the parent is not
				 * resident */
};

static int bad(const struct expected *e, traxaddr addr, const char *why)
{
	char text[64];

	msg_error("tree check: node at sector %" PRIu64 ", level %u, from %s: "
		  "%s", addr_sector(addr), e->level,
		  key_text(e->low, text, sizeof(text)), why);
	return -EUCLEAN;
}

static int check_slot(struct verify_walk *walk, const struct expected *e,
		      traxaddr addr)
{
	if (!addr)
		return 0;
	walk->slots++;
	return space_slot_used(walk->tree->space, addr) ? 0 :
	       bad(e, addr, "its slot is not in use");
}

static int check_copy(struct verify_walk *walk, const struct expected *e,
		      traxaddr addr, uint8_t *buf)
{
	const char *why;

	if (!addr)
		return 0;
	if (queue_read(walk->tree->queue, addr_sector(addr), TRAX_NODE_SECTORS,
		       buf))
		return bad(e, addr, "read error");
	if (csum(buf, TRAX_NODE_BYTES) != e->ptr.csum)
		return bad(e, addr, "wrong checksum");
	why = node_verify(buf, walk->tree->fsid, &e->ptr, e->level, e->low,
			  e->high);
	return why ? bad(e, addr, why) : 0;
}

static int check_resident(struct verify_walk *walk, const struct expected *e,
			  const struct buffer *buffer)
{
	const char *why;

	if (!buffer->live || buffer->parent != e->parent)
		return bad(e, e->ptr.addr, "not below its parent");
	if (buffer->level != e->level || buffer->ptr.gen != e->ptr.gen ||
	    buffer->ptr.addr2 != e->ptr.addr2)
		return bad(e, e->ptr.addr, "not what its parent says");
	why = node_verify(buffer->node, walk->tree->fsid, &e->ptr, e->level,
			  e->low, e->high);
	if (why)
		return bad(e, e->ptr.addr, why);
	if (key_cmp(node_low(buffer->node), e->low) ||
	    key_cmp(node_high(buffer->node), e->high))
		return bad(e, e->ptr.addr, "does not cover its range");
	if (buffer->state == BUFFER_CLEAN && buffer->ptr.csum != e->ptr.csum)
		return bad(e, e->ptr.addr, "its parent has another checksum");
	return 0;
}

static int check_node(struct verify_walk *walk, const struct expected *e);

static int check_children(struct verify_walk *walk, const struct expected *e,
			  const void *node, struct buffer *buffer)
{
	const unsigned n = node_count(node);
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		const struct expected child = {
			.ptr = node_child(node, i),
			.level = e->level - 1,
			.low = node_key(node, i),
			.high = node_child_high(node, i),
			.parent = buffer,
		};

		rc = check_node(walk, &child);
	}
	return rc;
}

static int check_node(struct verify_walk *walk, const struct expected *e)
{
	struct buffer *buffer = buffer_find(walk->tree->buffers, e->ptr.addr);
	uint8_t *buf = walk->buf[e->level];
	const bool on_disk = !buffer || buffer->state == BUFFER_CLEAN;
	int rc = check_slot(walk, e, e->ptr.addr);

	if (!rc)
		rc = check_slot(walk, e, e->ptr.addr2);
	if (!rc && tree_resident(buffer))
		rc = check_resident(walk, e, buffer);
	if (!rc && on_disk)
		rc = check_copy(walk, e, e->ptr.addr2, buf);
	if (!rc && on_disk)
		rc = check_copy(walk, e, e->ptr.addr, buf);
	if (!rc && e->level)
		rc = check_children(walk, e, buffer ? buffer->node : buf,
				    buffer);
	return rc;
}

int tree_check(struct tree *tree, uint64_t *slots)
{
	struct verify_walk walk = { .tree = tree };
	const struct expected root = {
		.ptr = tree->root->ptr,
		.level = tree->root->level,
		.low = KEY_MIN,
		.high = KEY_MAX,
	};
	const char *why = buffer_check(tree->buffers);
	int rc = why ? -EUCLEAN : 0;

	if (why)
		msg_error("tree check: node cache: %s", why);
	for (unsigned i = 0; i <= root.level && !rc; i++) {
		walk.buf[i] = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_NODE_BYTES);
		rc = walk.buf[i] ? 0 : -ENOMEM;
	}
	if (!rc)
		rc = check_node(&walk, &root);
	for (unsigned i = 0; i <= TRAX_MAX_LEVEL; i++)
		free(walk.buf[i]);
	*slots = walk.slots;
	return rc;
}
