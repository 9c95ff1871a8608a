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

struct idle_write;

int idle_write_open(struct fs *fs, struct idle_write **idle_write);
/* Nobody is told of anything any more; NULL: nothing. */
void idle_write_close(struct idle_write *idle_write);

/*
 * Writes `sectors` (at most TRAX_MAX_REGION_SECTORS) from `data`, which stays
 * until done() was called, with 0 or -EIO; one at a time.  `gaps`: users are at
 * work.
 */
void idle_write_start(struct idle_write *idle_write, uint64_t sector,
		     uint64_t sectors, void *data, bool gaps,
		     void (*done)(void *arg, int rc), void *arg);
/* Somebody waits for the end. */
void idle_write_expedite(struct idle_write *idle_write);

#endif
