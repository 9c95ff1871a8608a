/*
 * gap_readahead.h - reads the rest of a track that is being read, as far as it
 * belongs to the same file, into the cache in a gap (Lumb et al., OSDI 2000,
 * 2.3): before the read or behind it, and never where other data would have to
 * leave the cache for it.
 *
 * Units: sectors, also for offsets in a file.
 */
#ifndef TRAX_PLACE_GAP_READAHEAD_H
#define TRAX_PLACE_GAP_READAHEAD_H

#include "fs/data/file_data.h"
#include "fs/data/read_events.h"

extern const struct read_events gap_readahead_events;

#endif
