/*
 * refine.h - the map of the disk's tracks, finished in idle time.
 *
 * A file system whose profile knows only part of the tracks by timing goes on
 * where that measuring ended: one short read at a time, when the foreground has
 * been quiet (ten times the gaps it made lately, 100 ms at least) and nothing
 * else is at the disk.  Each time that much more is known, new data is laid out
 * by it, and the head is followed by it; old data stays where it is.
 *
 * And it looks whether what is known is still so, by ordinary reads.  Costs
 * nothing where there is nothing to find out.
 */
#ifndef TRAX_REFINE_REFINE_H
#define TRAX_REFINE_REFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"

struct refine;

struct refine_status {
	bool running;		/* there is something left to measure */
	bool complete;		/* everything was looked at */
	int error;		/* why measuring was given up; 0: it was not */
	uint64_t reads;		/* reads since the mount */
	uint64_t done_sectors, all_sectors;	/* sectors looked at, and
						 * sectors of the disk */
	uint64_t known_sectors;	/* sectors that the map knows */
	uint64_t adopted;	/* number of maps given to the file system */
};

/* -ENOMEM. NULL in *refine: there never is anything to measure. */
int refine_open(struct fs *fs, struct refine **refine);

/* Waits for the read that is under way; before fs_close. NULL is harmless. */
void refine_close(struct refine *refine);

/* Does what is due; returns when it wants to be called again at the latest.
 * Beside fs_run. */
uint64_t refine_run(struct refine *refine);

void refine_get_status(const struct refine *refine,
		       struct refine_status *status);

/* fs_model_json, with the progress of measuring. The caller frees; NULL: no
 * memory. */
char *refine_model_json(const struct refine *refine);

#endif
