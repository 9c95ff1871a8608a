/*
 * replay.h - a client that does what a trace (trace.h) says, beside the random
 * ones of oracle.h, which is how tests use it.
 *
 * What was under way at once in the trace is so again, but for operations of
 * which the outcome would depend on the order: such wait for each other, so
 * that the model knows what has to be there.
 */
#ifndef TRAX_RIG_REPLAY_H
#define TRAX_RIG_REPLAY_H

#include "fs/fs.h"
#include "tests/rig/oracle_model.h"
#include "tests/rig/world.h"

struct replay;

struct replay *replay_new(const char *path, struct model *model);
void replay_free(struct replay *replay);

/* Operations in all. */
unsigned replay_ops(const struct replay *replay);

/* The next `ops` of them.  `faults`: one may fail, then there are no more. */
void replay_run(struct replay *replay, struct fs *fs, struct world *world,
		unsigned ops, bool faults);

#endif
