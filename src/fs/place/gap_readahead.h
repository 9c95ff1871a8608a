/*
 * gap_readahead.h - the rest of a track that is being read, as far as it is of
 * the same file, comes into the cache when it passes by anyway (Lumb et al.,
 * OSDI 2000, 2.3): in the gap before the read, or behind it, and never where
 * something would have to leave the cache for it.
 *
 * Units: sectors; offsets in a file, too.
 */
#ifndef TRAX_PLACE_GAP_READAHEAD_H
#define TRAX_PLACE_GAP_READAHEAD_H

#include "fs/data/file_data.h"
#include "fs/data/read_events.h"

extern const struct read_events gap_readahead_events;

#endif
