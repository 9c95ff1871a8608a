/*
 * idle_write.h - a track's worth of sectors, written in the time the platter
 * turns for nothing: for copies that are made while users never stop.
 *
 * Without a head whose position is known there are no gaps to be seen: then it
 * is one request of class QUEUE_IDLE.  Units: sectors.
 */
#ifndef TRAX_REPLICA_IDLE_WRITE_H
#define TRAX_REPLICA_IDLE_WRITE_H

#include <stdbool.h>

#include "fs/op/fs_internal.h"

struct backwrite;

int backwrite_open(struct fs *fs, struct backwrite **backwrite);
/* Nobody is told of anything any more; NULL: nothing. */
void backwrite_close(struct backwrite *backwrite);

/*
 * Writes `sectors` (at most TRAX_MAX_REGION_SECTORS) from `data`, which stays
 * until done() was called, with 0 or -EIO; one at a time.  `gaps`: users are at
 * work.
 */
void backwrite_start(struct backwrite *backwrite, uint64_t sector,
		     uint64_t sectors, void *data, bool gaps,
		     void (*done)(void *arg, int rc), void *arg);
/* Somebody waits for the end. */
void backwrite_hurry(struct backwrite *backwrite);

#endif
