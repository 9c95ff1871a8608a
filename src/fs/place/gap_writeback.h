/*
 * gap_writeback.h - data that has its place and is not in a hurry is written in
 * the time the platter turns for nothing, while users read (Lumb et al., OSDI
 * 2000, 2.3).
 *
 * What waits for a gap may be recalled at any time: a home goes back to being
 * held, as if nothing had been done; everything else goes to the disk like
 * other write-back.  So nobody ever waits for a gap.
 */
#ifndef TRAX_PLACE_GAP_WRITEBACK_H
#define TRAX_PLACE_GAP_WRITEBACK_H

#include "fs/data/file_data.h"

/* May what is to be written of a file wait?  Users read, the head is known,
 * nobody waits, and there is memory and log. */
bool prewrite_may(const struct file *file, enum job_kind kind);
/* Is what is held on its way home in gaps, so that it need not be brought
 * there otherwise? */
bool prewrite_homes(const struct files *files);

/* Blocks of one piece of it, at most: what a gap has room for. */
unsigned prewrite_most(const struct file *file);

/* Offers the segments of a job to the gaps; written() follows as that of
 * job_write.  false: they are too long, nothing has been done. */
bool prewrite_job(struct job *job, void (*written)(struct job *job, int rc));

/* New data of a file, all of a file, all, all homes: wait no longer. */
void prewrite_recall_data(struct file *file);
void prewrite_recall_file(struct file *file);
void prewrite_recall_all(struct files *files);
void prewrite_recall_homes(struct files *files);
/* A user writes to a block: what an offered home would bring is old. */
void prewrite_touched(struct block *block);

/* Now and then: recalls what has waited too long, offers homes. */
void prewrite_run(struct files *files, uint64_t now_ns);
void prewrite_close(struct files *files);

#endif
