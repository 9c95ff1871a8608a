/*
 * move.h - brings data of files to better places, in free bandwidth and idle
 * time (sched/freeblock/freeblock.h).
 *
 * Content and checksums do not change.  Data is verified with its checksums
 * before it moves, and read back and compared after it was written; only then
 * the mapping changes, in one transaction for each extent of a file.  Until
 * that is durable the old place keeps its content.  Data that users change
 * meanwhile stays where they put it.
 */
#ifndef TRAX_MOVE_MOVE_H
#define TRAX_MOVE_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"

struct moves;

/* Reads stored counters and pauses in the background. -ENOMEM. */
int moves_open(struct fs *fs, struct moves **moves);
/* Gives up the moves under way, and waits for them (fs_run); before fs_close.
 * NULL is harmless. */
void moves_close(struct moves *moves);
/* Does what is due; returns when it wants to be called again at the latest.
 * Beside fs_run. */
uint64_t moves_run(struct moves *moves);

/* No move begins from now on, or moves begin again. */
void moves_pause(struct moves *moves, bool paused);

/* Brings the data of files together: files that are named one after the other
 * will be read one after the other.  The list is in memory only. -EAGAIN: it is
 * full. */
int moves_order(struct moves *moves, uint64_t ino);
/* Pauses and resumes only this. */
void moves_order_pause(struct moves *moves, bool paused);

struct order_status {		/* counters since the mount */
	bool paused, is_at_work;
	unsigned wanted;	/* files that wait to be brought together */
	uint64_t batches;		/* batches that were looked at */
	uint64_t left;		/* batches left where they were: it does not
				 * pay, there is no room, or users changed
				 * them */
	uint64_t sectors;	/* moved */
	/* fragments in which the moved data lay before, and after */
	uint64_t runs_before, runs_after;
};
void order_get_status(const struct moves *moves, struct order_status *status);

struct moves_status {
	bool paused;		/* moves are paused, by this mount or an earlier
				 * one */
	unsigned under_way;	/* moves under way */
	uint64_t begun;		/* moves begun since the mount */
	uint64_t tracks;	/* tracks emptied since the mount */
	uint64_t sectors;	/* moved */
	uint64_t read_sectors, written_sectors;
	uint64_t compared_sectors;	/* sectors read back and compared */
	uint64_t stale_sectors;	/* sectors read in vain, as users changed
				 * them */
	/* sectors that could not be read or written */
	uint64_t failed_sectors;
	uint64_t run_ns;	/* time in which moves were under way */
};
void moves_get_status(const struct moves *moves, struct moves_status *status);
/* JSON text, with the overall write cost (Matthews et al. in Traxtents, 5.5)
 * by the age of the file system; the caller frees.  NULL: no memory. */
char *moves_json(struct moves *moves);

#endif
