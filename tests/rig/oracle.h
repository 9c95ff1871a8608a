/*
 * oracle.h - clients that use a file system at random, and a model in memory
 * that knows what it must hold, now and after a power cut at any event.
 *
 * Each client works in a directory of its own, one operation at a time, all
 * clients at once.  The model remembers the history: a hash of the client's
 * name space after each operation, every version of every block, and which
 * operations were acknowledged as durable at which event of the world.
 *
 * After a cut the name space of a client must be the one after some operation
 * n, not older than the last one acknowledged as durable; and each block of a
 * file must be a version not older than the last fsync of that file.
 */
#ifndef TRAX_RIG_ORACLE_H
#define TRAX_RIG_ORACLE_H

#include <stdint.h>

#include "fs/fs.h"
#include "tests/rig/world.h"

struct oracle;

struct oracle *oracle_new(uint64_t seed, unsigned clients);
void oracle_free(struct oracle *oracle);

/* One client that has the whole file system, and does what a trace says
 * (replay.h).  oracle_ops: number of its operations. */
struct oracle *oracle_new_replay(const char *path);
unsigned oracle_ops(const struct oracle *oracle);

/* Makes the clients' directories (once, on a new file system), durably. */
void oracle_begin(struct oracle *oracle, struct fs *fs, struct world *world);

/* From now on an operation may fail with -EIO, -EROFS or -ENOMEM; its client
 * then stops.  Afterwards compare as after a cut at the present event. */
void oracle_allow_faults(struct oracle *oracle);

/* Nor is it wrong then when data that was not durable can't be read. */
void oracle_allow_losses(struct oracle *oracle);

/* Runs `ops` operations more; every result is compared at once. */
void oracle_run(struct oracle *oracle, struct fs *fs, struct world *world,
		unsigned ops);

/* The same, but most of them overwrite a block. */
void oracle_overwrite(struct oracle *oracle, struct fs *fs,
		      struct world *world, unsigned ops);

/*
 * Reads everything and compares.  event UINT64_MAX: must be exactly the
 * present state; else what may be there after a cut at that event.  NULL when
 * right, else what is wrong (static buffer).
 */
const char *oracle_verify(struct oracle *oracle, struct fs *fs,
			  struct world *world, uint64_t event);

/* How often each kind of operation was carried out; for coverage. */
void oracle_print(const struct oracle *oracle);

#endif
