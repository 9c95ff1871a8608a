/*
 * mutate.h - any bytes as damage to the lab's file system, with right
 * checksums above it, so that it gets past them.
 */
#ifndef TRAX_RIG_MUTATE_H
#define TRAX_RIG_MUTATE_H

#include "tests/rig/lab.h"

/* Eight bytes a damage; at most `max` of them. */
void mutate(struct lab *lab, const uint8_t *data, size_t bytes, unsigned max);

/*
 * Checks, repairs and checks again.  NULL: nothing was written by the check,
 * and what the repair called good was silent; else what went wrong.
 */
const char *mutate_check(struct lab *lab);

#endif
