/*
 * tree_format.h - the first tree of a new file system, for mkfs.
 *
 * The items given become one leaf in a slot of the first node track; then both
 * copies of the root of generation 1, marked clean, go to root area 1, and
 * area 0 is made invalid.  The slot map and the group table follow from the
 * OWNER items.  Log tracks and superblocks are the caller's.  Waits for its
 * I/O and ends with a flush.
 */
#ifndef TRAX_TREE_TREE_FORMAT_H
#define TRAX_TREE_TREE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "disk/disk.h"
#include "format/format.h"

struct tree_format_item {
	struct key key;
	const void *value;
	size_t bytes;
};

struct tree_format {
	const struct super *super;
	const struct tree_format_item *items;	/* in the order of their keys;
						 * they must fit in one leaf */
	size_t n;
	uint64_t next_ino_seq;
	uint64_t next_dirgroup;
	uint64_t inodes;
};

/* -ENOSPC: the items don't fit in a leaf, or the slot map and group table in a
 * root area; -EIO. */
int tree_format(struct env *env, struct disk *disk,
		const struct tree_format *format);

/* Bytes of an area's payload: `tracks` node tracks with `slots` slots in all,
 * `groups` groups. */
uint64_t tree_format_payload(uint64_t tracks, uint64_t slots, uint64_t groups);

#endif
