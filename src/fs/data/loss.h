/*
 * loss.h - data of a file that was given up, and who was told.
 */
#ifndef TRAX_DATA_LOSS_H
#define TRAX_DATA_LOSS_H

#include "fs/data/file_data.h"

/* Data of the file is lost; an earlier loss is told again with it. */
void loss_set(struct file *file, int error);
/* The error that this open file description (fs_op.handle) has to be told, once
 * for each loss; 0: none. */
int loss_tell(struct file *file, uint64_t handle);
void loss_closed(struct file *file, uint64_t handle);
void loss_free(struct file *file);

#endif
