/*
 * gap_writeback.h - writes data that has its place and is not urgent in gaps,
 * while users read (Lumb et al., OSDI 2000, 2.3).
 *
 * A write-back that waits for a gap may be recalled at any time: a destage is
 * undone, and its blocks are pinned as before; everything else goes to the disk
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
/* Is pinned content being destaged in gaps, so that no other destages are
 * needed? */
bool gap_writeback_destages(const struct files *files);

/* Most blocks of one segment: as many as a gap has room for. */
unsigned gap_writeback_most(const struct file *file);

/* Queues the segments of a write-back for gaps; written() follows as for
 * writeback_write. false: the segments are too long, nothing has been done. */
bool gap_writeback_add(struct writeback *wb,
		       void (*written)(struct writeback *wb, int rc));

/* These recall queued write-backs: new data of a file, all of a file, all, all
 * destages. */
void gap_writeback_recall_data(struct file *file);
void gap_writeback_recall_file(struct file *file);
void gap_writeback_recall_all(struct files *files);
void gap_writeback_recall_destages(struct files *files);
/* A user writes to a block: the content of its queued destage is too old. */
void gap_writeback_touched(struct block *block);

/* Recalls write-backs that have waited too long, and queues destages. */
void gap_writeback_run(struct files *files, uint64_t now_ns);
void gap_writeback_close(struct files *files);

#endif
