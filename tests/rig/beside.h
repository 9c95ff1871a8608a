/*
 * beside.h - what works beside the clients of an oracle: moves, and leaves that
 * are written without a checkpoint because memory is short.
 *
 * For the second one there are files with attributes in all leaves of a tree
 * that is large enough.  They are changed at random, and what is clean leaves
 * the memory, so that it is read again from where it was written.  After a cut
 * or an error an attribute has a value that it had once, no older than the last
 * sync.
 */
#ifndef TRAX_RIG_BESIDE_H
#define TRAX_RIG_BESIDE_H

#include "fs/fs.h"
#include "tests/rig/world.h"

struct beside;

struct beside *beside_new(uint64_t seed, bool moves, bool spills);
void beside_free(struct beside *beside);

/* Makes the files (once, on a new file system), durably. */
void beside_make(struct beside *beside, struct fs *fs, struct world *world);

/* Begins on a file system that is open; ends before it is closed. */
void beside_open(struct beside *beside, struct fs *fs, struct world *world);
void beside_close(struct beside *beside);

/* Does some random changes and moves; operations may fail. */
void beside_work(struct beside *beside);

/*
 * Reads and compares.  event UINT64_MAX: the present state; else what may be
 * there after a cut at that event.  NULL when right, else what is wrong.
 */
const char *beside_verify(struct beside *beside, struct fs *fs,
			  struct world *world, uint64_t event);

/* What has been done, for coverage. */
void beside_print(const struct beside *beside);

#endif
