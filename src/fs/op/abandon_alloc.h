/*
 * abandon_alloc.h - memory of operations under way, which goes with the file
 * system when that is given up in the middle (fs_abandon).
 */
#ifndef TRAX_OP_ABANDON_ALLOC_H
#define TRAX_OP_ABANDON_ALLOC_H

#include "fs/op/fs_state.h"

/* Zeroed memory; NULL: none. */
void *abandon_alloc(struct fs *fs, size_t bytes);
/* Frees it; NULL is allowed. */
void abandon_free(void *memory);
/* Frees all that is left. */
void abandon_free_all(struct fs *fs);

#endif
