/*
 * destage.h - writes logged data to its own place.
 */
#ifndef TRAX_DATA_DESTAGE_H
#define TRAX_DATA_DESTAGE_H

#include "base/units.h"
#include "fs/data/file_data.h"

/* Logged data is destaged when it is 30 s old, so that the log has room when
 * much is to be logged. */
#define DESTAGE_AGE_NS (30 * NS_PER_SECOND)

/* Starts the destages that are due; true: some were started. */
bool destage_pump(struct files *files);
/* Continues a round over pinned blocks that was too long for one turn. */
void destage_go_on(struct files *files);
/* Queues destages of a file's pinned blocks for gaps (gap_writeback.h).  Looks
 * at up to *left blocks, and reduces *left by them. */
void destage_queue_for_gaps(struct file *file, unsigned *left);
/* Is the end of a small file to be logged and destaged?  The time between two
 * rounds of destages has room for some of them; true: this one is counted. */
bool destage_takes_end(struct files *files);
/* Are pinned blocks to be destaged now? */
bool destage_is_wanted(const struct files *files);
/* Asks for the destage of everything logged so far. */
void destage_now(struct files *files);
void destage_want(void *arg, uint64_t seq);

#endif
