/*
 * refine.h - finishes the map of the disk's tracks in idle time.
 *
 * If the profile of a file system knows only a part of the tracks by timing,
 * measuring goes on where it ended: one short read at a time, when the
 * foreground has been quiet (ten times its recent gaps, 100 ms at least) and
 * nothing else is at the disk.  Each time that much more is known, new data is
 * placed by it, and the head is predicted by it; old data stays where it is.
 *
 * It also notices by ordinary reads whether the known tracks are still the
 * same.  It costs nothing where nothing is to be measured.
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
