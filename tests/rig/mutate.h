/*
 * mutate.h - turns any bytes into damage of the lab's file system, with right
 * checksums above the damage, so that it gets past them.
 */
#ifndef TRAX_RIG_MUTATE_H
#define TRAX_RIG_MUTATE_H

#include "tests/rig/lab.h"

/* Does a damage for each eight bytes, at most `max` of them. */
void mutate(struct lab *lab, const uint8_t *data, size_t bytes, unsigned max);

/*
 * Checks, repairs and checks again.  Returns NULL when the check wrote nothing
 * and found nothing after the repair; else what went wrong.
 */
const char *mutate_check(struct lab *lab);

#endif
