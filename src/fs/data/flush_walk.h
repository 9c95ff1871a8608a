/*
 * flush_walk.h - asks for the write-back of what is due among all dirty files,
 * some of them in each turn of the loop.
 */
#ifndef TRAX_DATA_FLUSH_WALK_H
#define TRAX_DATA_FLUSH_WALK_H

#include "fs/data/file_data.h"

/* Asks for the write-back of everything that is dirty now; `sync`: somebody
 * waits for it. */
void flush_all(struct files *files, bool sync);
/* Asks for that of data older than WRITE_BACK_AGE_NS. */
void flush_old(struct files *files);
/* Asks for that of the file that became dirty first, with the small files of
 * its directory. */
void flush_oldest(struct files *files);
/*
 * Asks for that of the small files of all directories, one directory after the
 * other, except those that were written to of late, which are a part
 * `young_part` of the pool: many at once fill whole tracks, in one sweep of the
 * head, and young ones may soon be deleted or become large.  False: there are
 * none.
 */
bool flush_sweep(struct files *files, unsigned young_part);
/* Continues walks that were too long for one turn; false: there was nothing
 * left. */
bool flush_walks_run(struct files *files);

#endif
