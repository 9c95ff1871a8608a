/*
 * beside.h - what works beside the clients of an oracle: moves, leaves that
 * are written without a checkpoint because memory is short, and leaves that
 * are brought together and lined up by checkpoints.
 *
 * For the latter two there are files with attributes in all leaves of a tree
 * that is large enough.  They are changed at random, and what is clean leaves
 * the memory, so that it is read again from where it was written.  Where leaves
 * are brought together most attributes become short, and long again, so that
 * leaves are half empty and are cut.  After a cut of the power or an error an
 * attribute has a value that it had once, no older than the last sync.
 */
#ifndef TRAX_RIG_BESIDE_H
#define TRAX_RIG_BESIDE_H

#include "fs/fs.h"
#include "tests/rig/world.h"

struct beside;

struct beside_kinds {
	bool moves, spills, gathers;
};

struct beside *beside_new(uint64_t seed, const struct beside_kinds *kinds);
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

/*
 * Was a checkpoint that brings leaves together under way when event `event`
 * was submitted?
 */
bool beside_gathers_at(const struct beside *beside, uint64_t event);

/* What has been done, for coverage; beside_idle: the first of the kinds that
 * was asked for and never happened, or NULL. */
void beside_print(const struct beside *beside);
const char *beside_idle(const struct beside *beside);

#endif
