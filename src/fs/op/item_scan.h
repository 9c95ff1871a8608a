/*
 * item_scan.h - goes over all items of one type that belong to the whole file
 * system (ino 0); used at the mount.
 */
#ifndef TRAX_OP_ITEM_SCAN_H
#define TRAX_OP_ITEM_SCAN_H

#include "fs/op/fs_state.h"
#include "tree/tree.h"

/*
 * Calls take() once for each item of the type, in the order of their offsets,
 * and waits until that is done.  The item is valid during the call.  A result
 * of take() that is not 0 ends the scan and is returned; -EIO, -ENOMEM.
 */
int item_scan(struct fs *fs, enum item_type type,
	      int (*take)(struct fs *fs, const struct tree_item *item));

#endif
