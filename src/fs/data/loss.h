/*
 * loss.h - data of a file that was given up, and which open file descriptions
 * have been told.
 */
#ifndef TRAX_DATA_LOSS_H
#define TRAX_DATA_LOSS_H

#include "fs/data/file_data.h"

/* Data of the file is lost: every open file description is to be told `error`,
 * also those that have been told of an earlier loss. */
void loss_set(struct file *file, int error);
/* The error that this open file description (fs_op.handle) has to be told, once
 * for each loss; 0: none. */
int loss_report(struct file *file, uint64_t handle);
/* The open file description was closed. */
void loss_closed(struct file *file, uint64_t handle);
void loss_free(struct file *file);

#endif
