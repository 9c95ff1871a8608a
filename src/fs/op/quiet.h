/*
 * quiet.h - when users are quiet: the one rule by which all that works in the
 * background begins and ends, beside what freeblock does in the gaps of users'
 * requests (sched/freeblock/freeblock.h).
 *
 * A quiet time begins when no operation is under way and nobody has asked for
 * anything for ten times the longest gap that users have made lately, and for
 * the mount option `quiet` at least.  It ends when somebody asks, or when no
 * request of users has reached the drive for the mount option `idle`: then it
 * may spin down, and nothing is done that would wake it, until one reaches it.
 * Units: nanoseconds on the environment's clock.
 */
#ifndef TRAX_OP_QUIET_H
#define TRAX_OP_QUIET_H

#include "fs/op/fs_state.h"

/* When the quiet time begins or began if nobody asks for anything. */
uint64_t fs_quiet_from_ns(const struct fs *fs);

/* Have users wanted nothing of the drive for so long that it may sleep? */
bool fs_may_sleep(const struct fs *fs);

/* Is it quiet, and may the drive not sleep yet? */
bool fs_is_quiet(const struct fs *fs);

#endif
