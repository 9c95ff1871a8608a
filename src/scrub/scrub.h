/*
 * scrub.h - reads everything that is allocated and verifies it, in free
 * bandwidth and idle time (sched/freeblock/freeblock.h).
 *
 * A pass goes over the disk by address, a window of owners after the other;
 * what of a window passes under the head first is read first.  Data is compared
 * with its checksums, and so are copies of it in free space
 * (fs/replica/replica.h), nodes with what they say of themselves, superblocks,
 * roots and geometry with their checksums; the log is read.  A mismatch is
 * damage only when the mapping, looked up again, still says so and the place,
 * read again, too: then it is noted (fs/op/errors.h) and healed from a copy,
 * where there is one.  A bad copy is noted and dropped.
 *
 * Where a pass is, is stored at the end of each window (ITEM_SCRUB): it goes on
 * there after a remount or a crash.  The next one begins a period after the end
 * of the last.
 */
#ifndef TRAX_SCRUB_SCRUB_H
#define TRAX_SCRUB_SCRUB_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/fs.h"

struct scrub;

enum scrub_state { SCRUB_WAITING, SCRUB_RUNNING, SCRUB_PAUSED };

struct scrub_status {
	enum scrub_state state;
	uint64_t passes;	/* ended */
	uint64_t done_sectors, all_sectors;	/* of this pass */
	uint64_t run_ns;	/* spent on it since the mount */
	uint64_t run_sectors;	/* and read */
	uint64_t errors;	/* found, by this pass */
	uint64_t suspects;	/* looked at once more */
	int64_t begun_seconds, ended_seconds;	/* this pass, the last one;
						   since 1970, 0: never */
	int64_t next_seconds;	/* 0: when somebody starts it */
};

/* days 0: only when it is started by hand.  A file system that is read-only is
 * read, but nothing is stored.  -ENOMEM. */
int scrub_open(struct fs *fs, unsigned days, struct scrub **scrub);

/* Waits for what is under way (fs_run); before fs_close.  NULL is harmless. */
void scrub_close(struct scrub *scrub);

/* Idle time, for whatever uses it, begins when nobody has asked for anything
 * for so long (100 ms) and for ten times the gaps there were lately. */
void scrub_set_quiet(struct scrub *scrub, uint64_t quiet_ns);

/* Idle time ends after so long, so that the drive may spin down, until somebody
 * asks for something; 0: never. */
void scrub_set_sleep(struct scrub *scrub, uint64_t sleep_ns);

/* Does what is due; returns when it wants to be called again at the latest.
 * Beside fs_run. */
uint64_t scrub_run(struct scrub *scrub);

/* A pass from the beginning; goes on with one that is under way or paused. */
void scrub_start(struct scrub *scrub);
void scrub_pause(struct scrub *scrub);
void scrub_resume(struct scrub *scrub);

void scrub_get_status(struct scrub *scrub, struct scrub_status *status);
/* JSON text, the caller frees; NULL: no memory. */
char *scrub_json(struct scrub *scrub);

#endif
