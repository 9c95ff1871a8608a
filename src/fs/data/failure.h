/*
 * failure.h - what is done with data whose write-back has failed, and with its
 * file.
 */
#ifndef TRAX_DATA_FAILURE_H
#define TRAX_DATA_FAILURE_H

#include "fs/data/loss.h"
#include "fs/data/writeback.h"

/* Is the newest content of the block the one that its log record holds? */
bool block_is_logged(const struct block *block);

/* A write-back of dirty data has failed; ends it. */
void writeback_failed(struct writeback *wb, int rc);
/* The write of a destage has ended with rc; ends the write-back. */
void destage_written(struct writeback *wb, int rc);
/* A destage was not written, since looking up its place failed; ends the
 * write-back. */
void destage_failed(struct writeback *wb, int rc);

#endif
