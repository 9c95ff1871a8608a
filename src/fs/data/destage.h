/*
 * destage.h - writes logged data to its own place.
 */
#ifndef TRAX_DATA_DESTAGE_H
#define TRAX_DATA_DESTAGE_H

#include "fs/data/file_data.h"

/* Starts the destages that are due; true: some were started. */
bool destage_pump(struct files *files);
/* Goes on looking where there was too much to look at for one turn. */
void destage_go_on(struct files *files);
/* Queues pinned blocks of a file for gaps (gap_writeback.h); looks at *left
 * blocks at most. */
void destage_queue_for_gaps(struct file *file, unsigned *left);
/* Are pinned blocks to be destaged now? */
bool destage_is_wanted(const struct files *files);
/* Asks for the destage of everything logged so far. */
void destage_now(struct files *files);
void destage_want(void *arg, uint64_t seq);

#endif
