/*
 * fs_model.h - opens the model of the drive, for fs.c.
 */
#ifndef TRAX_FS_FS_MODEL_H
#define TRAX_FS_FS_MODEL_H

#include "fs/op/fs_state.h"

/* ---- fs_model.c ---- */

/* Loads the profile.  Without one the file system goes on with
 * pseudo-tracks. */
int fs_open_profile(struct fs *fs);

/* Predicts the head, if the profile says how it moves. */
int fs_open_head(struct fs *fs);

#endif
