/*
 * destage.h - writes logged data to its own place.
 */
#ifndef TRAX_DATA_DESTAGE_H
#define TRAX_DATA_DESTAGE_H

#include "fs/data/file_data.h"

/* Starts the destages that are due; true: some were started. */
bool destage_pump(struct files *files);
/* Continues a round over pinned blocks that was too long for one turn. */
void destage_go_on(struct files *files);
/* Queues destages of a file's pinned blocks for gaps (gap_writeback.h).  Looks
 * at up to *left blocks, and reduces *left by them. */
void destage_queue_for_gaps(struct file *file, unsigned *left);
/* Are pinned blocks to be destaged now? */
bool destage_is_wanted(const struct files *files);
/* Asks for the destage of everything logged so far. */
void destage_now(struct files *files);
void destage_want(void *arg, uint64_t seq);

#endif
