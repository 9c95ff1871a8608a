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

/*
 * A user's read of [addr, addr + n) is about to be submitted; there an extent
 * of the file lies, from `first` up to `end`, and `off` is where in the file
 * addr is.
 */
void gap_readahead_wish(struct file *file, uint64_t addr, uint64_t n,
		   uint64_t first, uint64_t end, uint64_t off);

/* Has [addr, addr + n) come so, of late?  Then it is copied. */
bool gap_readahead_take(struct files *files, uint64_t addr, uint64_t n,
		   const struct iovec *iov, unsigned iov_n);

void gap_readahead_close(struct files *files);

#endif
