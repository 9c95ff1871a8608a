/*
 * move.h - brings data of files to better places while nobody notices, in free
 * bandwidth and idle time (sched/freeblock/freeblock.h).
 *
 * Content and checksums stay what they are.  What is moved is verified with its
 * checksums before, and read back and compared after it was written; only then
 * the mapping changes, in one transaction for each piece of a file.  Until that
 * is durable the old place keeps what it has.  What users change meanwhile
 * stays where they put it.
 */
#ifndef TRAX_MOVE_MOVE_H
#define TRAX_MOVE_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"

struct moves;

/* What was counted and paused before is read in the background.  -ENOMEM. */
int moves_open(struct fs *fs, struct moves **moves);
/* Gives up what is under way, and waits for it (fs_run); before fs_close.  NULL
 * is harmless. */
void moves_close(struct moves *moves);
/* Does what is due; returns when it wants to be called again at the latest.
 * Beside fs_run. */
uint64_t moves_run(struct moves *moves);

/* Nothing is begun any more, or again. */
void moves_pause(struct moves *moves, bool paused);
/* Nothing is begun when nobody has asked for anything for so long, so that the
 * drive may spin down; 0: never mind. */
void moves_set_sleep(struct moves *moves, uint64_t sleep_ns);

/* Brings the data of files together: those named one after the other are read
 * one after the other.  Kept in memory only.  -EAGAIN: so many wait that no
 * more can. */
int moves_order(struct moves *moves, uint64_t ino);
/* That alone is not begun any more, or again. */
void moves_order_pause(struct moves *moves, bool paused);

struct order_status {		/* since the mount */
	bool paused, is_at_work;
	unsigned wanted;	/* files that wait */
	uint64_t batches;		/* looked at */
	uint64_t left;		/* of these, where they were: it does not pay,
				 * there is no room, or users changed them */
	uint64_t sectors;	/* moved */
	uint64_t runs_before, runs_after; /* pieces of what was moved */
};
void order_get_status(const struct moves *moves, struct order_status *status);

struct moves_status {
	bool paused;		/* also by an earlier mount */
	unsigned under_way;	/* moves */
	uint64_t begun;		/* moves, since the mount */
	uint64_t tracks;	/* emptied since the mount */
	uint64_t sectors;	/* moved */
	uint64_t read_sectors, written_sectors;
	uint64_t compared_sectors;	/* read back */
	uint64_t stale_sectors;	/* read for nothing: users changed them */
	uint64_t failed_sectors; /* could not be read or written */
	uint64_t run_ns;	/* time in which moves were under way */
};
void moves_get_status(const struct moves *moves, struct moves_status *status);
/* JSON text, with the overall write cost (Matthews et al. in Traxtents, 5.5)
 * by the age of the file system; the caller frees.  NULL: no memory. */
char *moves_json(struct moves *moves);

#endif
