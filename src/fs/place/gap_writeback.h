/*
 * gap_writeback.h - data that has its place and is not urgent is written in
 * the time the platter turns for nothing, while users read (Lumb et al., OSDI
 * 2000, 2.3).
 *
 * What waits for a gap may be recalled at any time: a destage goes back to
 * being pinned, as if nothing had been done; everything else goes to the disk
 * like other write-back.  So nobody ever waits for a gap.
 */
#ifndef TRAX_PLACE_GAP_WRITEBACK_H
#define TRAX_PLACE_GAP_WRITEBACK_H

#include "fs/data/file_data.h"
#include "fs/data/writeback.h"

/* May the write-back of a file wait for gaps? Yes if users read, the position
 * of the head is known, nobody waits for the file, and memory and log have
 * room. */
bool gap_writeback_may(const struct file *file, enum writeback_kind kind);
/* Is pinned content being destaged in gaps, so that it need not be destaged
 * otherwise? */
bool gap_writeback_destages(const struct files *files);

/* Blocks of one piece of it, at most: what a gap has room for. */
unsigned gap_writeback_most(const struct file *file);

/* Offers the segments of a write-back to the gaps; written() follows as that of
 * writeback_write.  false: they are too long, nothing has been done. */
bool gap_writeback_add(struct writeback *wb,
		       void (*written)(struct writeback *wb, int rc));

/* New data of a file, all of a file, all, all destages: wait no longer. */
void gap_writeback_recall_data(struct file *file);
void gap_writeback_recall_file(struct file *file);
void gap_writeback_recall_all(struct files *files);
void gap_writeback_recall_destages(struct files *files);
/* A user writes to a block: what an offered destage would write is old. */
void gap_writeback_touched(struct block *block);

/* Now and then: recalls what has waited too long, offers destages. */
void gap_writeback_run(struct files *files, uint64_t now_ns);
void gap_writeback_close(struct files *files);

#endif
