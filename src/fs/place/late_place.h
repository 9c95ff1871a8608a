/*
 * late_place.h - chooses the place of new data when it is written.
 *
 * A write-back has a place from alloc_take on, and its sectors are taken.  At
 * dispatch it may get another one, by the position of the head: one that serves
 * as well (alloc_window), or nearly so.  What later reads lose there counts as
 * positioning time does, see late_place.c.
 */
#ifndef TRAX_PLACE_LATE_PLACE_H
#define TRAX_PLACE_LATE_PLACE_H

#include "fs/data/file_data.h"
#include "fs/data/writeback.h"

/*
 * Called for new data (WB_DIRECT) after writeback_prepare_requests, instead of
 * writeback_submit of the segments: the queue chooses the place, or the data
 * goes with other data for which it chooses one. false: the segments keep their
 * places, and the caller submits them.
 */
bool late_place_choose(struct writeback *wb);

/* The write has ended, well or not. */
void late_place_over(struct writeback *wb);

#endif
