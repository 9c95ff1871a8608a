/*
 * failure.h - failed write-back: what becomes of the data, and who is told.
 */
#ifndef TRAX_DATA_FAILURE_H
#define TRAX_DATA_FAILURE_H

#include "fs/data/file_data.h"

/* Is the newest content of the block what its log record holds? */
bool block_is_logged(const struct block *block);

/* A write-back of dirty data has failed; ends it. */
void writeback_failed(struct writeback *wb, int rc);
/* The write of a destage is over, well or not; ends the write-back. */
void destage_written(struct writeback *wb, int rc);
/* A destage was not written, since looking up its place failed; ends the
 * write-back. */
void destage_failed(struct writeback *wb, int rc);

/* Has something of the file failed just now, so that it is left alone for a
 * while?  writeback_pump comes again then. */
bool file_pauses(const struct file *file);
/* writeback_pump is to be called at this time, at the latest. */
void files_wake_at(struct files *files, uint64_t ns);

/* The error that this open file description (fs_op.handle) has to be told, once
 * for each loss; 0: none. */
int loss_tell(struct file *file, uint64_t handle);
void loss_closed(struct file *file, uint64_t handle);
void loss_free(struct file *file);

/* Once the tree has failed: ends what waits for write-back. */
void files_stop(struct files *files);

#endif
