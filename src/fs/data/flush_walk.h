/*
 * flush_walk.h - asks for the write-back of what is due among all dirty files,
 * some of them in each turn of the loop.
 */
#ifndef TRAX_DATA_FLUSH_WALK_H
#define TRAX_DATA_FLUSH_WALK_H

#include "fs/data/file_data.h"

/* Everything that is dirty now; `sync`: somebody waits for it. */
void flush_all(struct files *files, bool sync);
/* What is older than WRITE_BACK_AGE_NS. */
void flush_old(struct files *files);
/* The file that became dirty first, with the small ones of its directory. */
void flush_oldest(struct files *files);
/*
 * The small files of all directories, one directory after the other, except
 * those that were written to of late, which is a part `young_part` of the pool:
 * many at once, because then they fill whole tracks, and in one sweep of the
 * head.  Those that are young may be deleted soon, or become large.  False:
 * there are none.
 */
bool flush_sweep(struct files *files, unsigned young_part);
/* Goes on with what has been left; false: there was nothing. */
bool flush_walks_run(struct files *files);

#endif
