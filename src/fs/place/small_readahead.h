/*
 * small_readahead.h - read-ahead from one small file to the next on the disk.
 */
#ifndef TRAX_PLACE_SMALL_READAHEAD_H
#define TRAX_PLACE_SMALL_READAHEAD_H

#include "fs/data/file_data.h"
#include "fs/data/read_events.h"

extern const struct read_events small_readahead_events;

#endif
