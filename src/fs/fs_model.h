/*
 * fs_model.h - opens the model of the drive, for fs.c.
 */
#ifndef TRAX_FS_FS_MODEL_H
#define TRAX_FS_FS_MODEL_H

#include "fs/op/fs_state.h"

/* ---- fs_model.c ---- */

/* A profile is advice: without it there are pseudo-tracks. */
int fs_open_profile(struct fs *fs);

/* Where the head is can be told where it is known how it moves. */
int fs_open_head(struct fs *fs);

#endif
