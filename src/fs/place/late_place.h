/*
 * late_place.h - where new data goes is decided when it is written.
 *
 * A write-back has a place from alloc_take on, and its sectors are taken.  It
 * may be given another one at dispatch, by where the head is: one that serves
 * as well (alloc_window), or nearly so.  What it costs to read it there later
 * counts as positioning does, see late_place.c.
 */
#ifndef TRAX_PLACE_LATE_PLACE_H
#define TRAX_PLACE_LATE_PLACE_H

#include "fs/data/file_data.h"
#include "fs/data/writeback.h"

/*
 * New data (WB_DIRECT), after writeback_prepare_requests and instead of
 * writeback_submit of the segments: the queue chooses the place, or they go
 * with what it chooses one for.  false: they stay where they are, and are the
 * caller's to submit.
 */
bool late_place_choose(struct writeback *wb);

/* The write has ended, well or not. */
void late_place_over(struct writeback *wb);

#endif
