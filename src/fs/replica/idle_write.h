/*
 * idle_write.h - writes a track's worth of sectors in the rotational gaps of
 * other requests: for replicas that are made while users are never idle.
 *
 * Without a head whose position is known there are no gaps: then it is one
 * request of class QUEUE_IDLE. Units: sectors.
 */
#ifndef TRAX_REPLICA_IDLE_WRITE_H
#define TRAX_REPLICA_IDLE_WRITE_H

#include <stdbool.h>

#include "fs/op/fs_internal.h"

struct idle_write;

int idle_write_open(struct fs *fs, struct idle_write **idle_write);
/* Ends it: no done() is called after this. NULL is harmless. */
void idle_write_close(struct idle_write *idle_write);

/*
 * Writes `sectors` (at most TRAX_MAX_REGION_SECTORS) from `data`, which stays
 * until done() was called with 0 or -EIO; one write at a time. `gaps`: users
 * are at work, so it is written in gaps.
 */
void idle_write_start(struct idle_write *idle_write, uint64_t sector,
		     uint64_t sectors, void *data, bool gaps,
		     void (*done)(void *arg, int rc), void *arg);
/* Somebody waits for the end of the write. */
void idle_write_expedite(struct idle_write *idle_write);

#endif
