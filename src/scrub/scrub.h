/*
 * scrub.h - reads everything that is allocated and verifies it, in free
 * bandwidth and idle time (sched/freeblock/freeblock.h).
 *
 * A pass goes over the disk by address, one window of owners after the other;
 * the sectors of a window are read in the order in which they pass under the
 * head.  Data is compared with its checksums, and so are its replicas
 * (fs/table/replica.h); nodes are compared with their headers, superblocks,
 * roots and geometry with their checksums, and records of the log are verified.
 * A mismatch is damage only if the mapping, looked up again, is the same and
 * the place, read again, is still bad: then it is noted (fs/op/errors.h) and
 * healed from another copy, where there is one.  A bad replica is noted and
 * dropped.
 *
 * The position of a pass is stored (ITEM_SCRUB): it goes on there after a
 * remount or a crash.  The next pass begins a period after the end of the last
 * one.
 */
#ifndef TRAX_SCRUB_SCRUB_H
#define TRAX_SCRUB_SCRUB_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"

struct scrub;

enum scrub_state {
	SCRUB_WAITING,	/* for the time of the next pass */
	SCRUB_RUNNING,
	SCRUB_PAUSED,	/* in a pass */
	SCRUB_HELD,	/* paused between two passes */
};

struct scrub_status {
	enum scrub_state state;
	uint64_t passes;	/* passes that have ended */
	uint64_t done_sectors, all_sectors;	/* sectors read in this pass,
						 * and sectors that it has to
						 * read */
	uint64_t run_ns;	/* time spent on it since the mount */
	uint64_t run_sectors;	/* sectors read in that time */
	uint64_t errors;	/* errors found by this pass */
	uint64_t suspects;	/* places that were looked at once more */
	int64_t begun_seconds, ended_seconds;	/* begin of this pass, end of
						 * the last one, in seconds
						 * since 1970; 0: never */
	int64_t next_seconds;	/* when the next pass begins; 0: when somebody
				 * starts or resumes it */
};

/* `days` between passes; 0: a pass begins only when it is started by hand.  A
 * read-only file system is read, but nothing is stored. -ENOMEM. */
int scrub_open(struct fs *fs, unsigned days, struct scrub **scrub);

/* Waits for what is under way (fs_run); before fs_close.  NULL is harmless. */
void scrub_close(struct scrub *scrub);

/* Does what is due; returns when it wants to be called again at the latest.
 * Beside fs_run. */
uint64_t scrub_run(struct scrub *scrub);

/* Starts a pass from the beginning, or continues one that is under way or
 * paused. */
void scrub_start(struct scrub *scrub);
/* Nothing is read until scrub_resume or scrub_start, also when the next pass is
 * due meanwhile.  This is stored, and lasts over remounts. */
void scrub_pause(struct scrub *scrub);
void scrub_resume(struct scrub *scrub);

/*
 * Looks again at all damage that was noted and not healed, and removes from
 * the notes what is whole by now: overwritten, deleted, or repaired below the
 * file system.  What was lost because it could be written nowhere stays, as
 * long as there is the file.  This is done at the end of each pass, too.
 * "rechecking" of scrub_json says whether it is under way.  -EROFS.
 */
int scrub_recheck(struct scrub *scrub);

void scrub_get_status(struct scrub *scrub, struct scrub_status *status);
/* JSON text, the caller frees; NULL: no memory. */
char *scrub_json(struct scrub *scrub);

#endif
