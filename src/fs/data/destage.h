/*
 * destage.h - writes logged data to its own place.
 */
#ifndef TRAX_DATA_DESTAGE_H
#define TRAX_DATA_DESTAGE_H

#include "fs/data/file_data.h"

/* Starts destage writes that are due; true: some was started. */
bool destage_pump(struct files *files);
/* Offers pinned blocks of a file (gap_writeback.h), looking at *left at most.
 */
void destage_queue_for_gaps(struct file *file, unsigned *left);
/* Is something of what is pinned to be destaged now? */
bool destage_is_wanted(const struct files *files);
/* What is logged so far is to be destaged. */
void destage_now(struct files *files);
void destage_want(void *arg, uint64_t seq);

#endif
