/*
 * tree_format.c - the first tree: one leaf, one root.
 *
 * It uses the space as a running tree does: the space is told of the owners and
 * gives the leaf its slot, and its cut makes the payload.
 */
#include "tree/tree_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/csum.h"
#include "space/space.h"
#include "tree/tree_internal.h"

#define FIRST_GEN 1u	/* Generation of the first root. */

size_t format_area_bytes(size_t payload_bytes)
{
	return TRAX_BLOCK_BYTES + (payload_bytes + TRAX_BLOCK_BYTES - 1) /
	       TRAX_BLOCK_BYTES * TRAX_BLOCK_BYTES;
}

void format_area(const struct super *super, const struct root *root,
		 const void *payload, uint64_t sector, void *buf)
{
	const size_t payload_bytes = root->slotmap_bytes + root->group_bytes;
	uint8_t *at = buf;

	root_encode(root, super->uuid, sector, at);
	memcpy(at + TRAX_BLOCK_BYTES, payload, payload_bytes);
	memset(at + TRAX_BLOCK_BYTES + payload_bytes, 0,
	       format_area_bytes(payload_bytes) - TRAX_BLOCK_BYTES -
	       payload_bytes);
}

uint64_t tree_format_payload(uint64_t tracks, uint64_t slots, uint64_t groups)
{
	/* The bitmap of each track ends with a byte of its own. */
	return tracks * (sizeof(struct slot_track) + 1) + slots / 8 +
	       groups * sizeof(struct group_item);
}

static int put_owners(const struct tree_format *format, struct space *space)
{
	for (size_t i = 0; i < format->n; i++) {
		const struct tree_format_item *item = &format->items[i];
		const struct owner_item *owner = item->value;
		int rc;

		if (item->key.type != ITEM_OWNER)
			continue;
		rc = space_owner_put(space, item->key.off,
				     le64_get(owner->sectors), owner->kind);
		if (rc)
			return rc;
	}
	return 0;
}

static int fill_leaf(const struct tree_format *format, void *leaf)
{
	uint64_t fsid;

	memcpy(&fsid, format->super->uuid, sizeof(fsid));
	node_init(leaf, le64toh(fsid), 0, KEY_MIN, KEY_MAX);
	for (size_t i = 0; i < format->n; i++) {
		const struct tree_format_item *item = &format->items[i];

		if (!node_fits(leaf, item->bytes))
			return -ENOSPC;
		node_insert(leaf, (unsigned)i, item->key, item->value,
			    item->bytes);
	}
	return 0;
}

/* Writes the leaf and its mirror; fills in root->tree. */
static int write_leaf(struct disk *disk, struct space *space, void *leaf,
		      struct root *root)
{
	int rc;

	if (!space_slots_reserve(space, 2))
		return -ENOSPC;
	root->tree.addr = space_slot_take(space, 0, false);
	root->tree.addr2 = space_slot_take_mirror(space, root->tree.addr);
	root->tree.gen = FIRST_GEN;
	node_set_place(leaf, root->tree.addr, root->tree.addr2, FIRST_GEN);
	root->tree.csum = csum(leaf, TRAX_NODE_BYTES);
	rc = disk_write(disk, addr_sector(root->tree.addr), TRAX_NODE_SECTORS,
			leaf);
	return rc ? rc : disk_write(disk, addr_sector(root->tree.addr2),
				    TRAX_NODE_SECTORS, leaf);
}

static int write_areas(const struct super *super, struct disk *disk,
		       struct root *root, const void *payload)
{
	const size_t bytes = format_area_bytes(root->slotmap_bytes +
					       root->group_bytes);
	uint8_t *buf;
	int rc = 0;

	if (bytes > (size_t)super->area_sectors * SECTOR_BYTES)
		return -ENOSPC;
	buf = aligned_alloc(TRAX_BLOCK_BYTES, bytes);
	if (!buf)
		return -ENOMEM;
	root->payload_csum = csum(payload, root->slotmap_bytes +
				  root->group_bytes);
	for (unsigned i = 0; i < 2 && !rc; i++) {
		const uint64_t sector = super->area_sector[FIRST_GEN & 1][i];

		format_area(super, root, payload, sector, buf);
		rc = disk_write(disk, sector,
				(uint32_t)(bytes / SECTOR_BYTES), buf);
	}
	memset(buf, 0, TRAX_BLOCK_BYTES);
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = disk_write(disk, super->area_sector[0][i],
				TRAX_BLOCK_SECTORS, buf);
	free(buf);
	return rc;
}

static int format_write(struct env *env, struct disk *disk,
			const struct tree_format *format, struct space *space,
			void *leaf)
{
	struct root root = {
		.gen = FIRST_GEN,
		.epoch = env_random(env) | 1,
		.clean = true,
		.tail_seq = 1,
		.next_ino_seq = format->next_ino_seq,
		.next_dirgroup = format->next_dirgroup,
		.inodes = format->inodes,
		.wall_ns = env_wall_ns(env),
	};
	void *payload = NULL;
	int rc;

	space_set_gen(space, FIRST_GEN);
	rc = put_owners(format, space);
	if (!rc)
		rc = fill_leaf(format, leaf);
	if (!rc)
		rc = write_leaf(disk, space, leaf, &root);
	if (!rc)
		rc = space_cut(space, &payload, &root.slotmap_bytes,
			       &root.group_bytes);
	if (!rc)
		rc = write_areas(format->super, disk, &root, payload);
	free(payload);
	return rc ? rc : disk_flush(disk);
}

int tree_format(struct env *env, struct disk *disk,
		const struct tree_format *format)
{
	void *leaf = aligned_alloc(TRAX_BLOCK_BYTES, TRAX_NODE_BYTES);
	struct space *space = NULL;
	int rc = leaf ? space_new(format->super->sectors, &space) : -ENOMEM;

	if (!rc)
		rc = format_write(env, disk, format, space, leaf);
	space_free(space);
	free(leaf);
	return rc;
}
