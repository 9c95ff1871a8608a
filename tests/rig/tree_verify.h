/*
 * tree_verify.h - checks a mounted tree, in memory and on the disk.
 */
#ifndef TRAX_RIG_TREE_VERIFY_H
#define TRAX_RIG_TREE_VERIFY_H

#include "tree/tree.h"

/*
 * Walks the whole tree and checks nodes, ranges, levels, checksums (mirrors
 * too), slots and the cache.  Waits for its reads.  *slots: node slots that the
 * tree uses.  -EUCLEAN, reported through msg.
 */
int tree_check(struct tree *tree, uint64_t *slots);

#endif
