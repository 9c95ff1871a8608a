/*
 * replica_readahead.h - reads replicas as runs: a buffer receives the sectors
 * behind the replica that is read, as they were put there in the order in which
 * they will be wanted.
 *
 * A run begins small.  A read in its second half makes the next one be read,
 * which is longer, up to two tracks.  With the first bytes of a run the inodes
 * of the files in it are fetched.  The code that takes data from a buffer
 * verifies it, as if it had been read from the disk.
 */
#ifndef TRAX_REPLICA_REPLICA_READAHEAD_H
#define TRAX_REPLICA_REPLICA_READAHEAD_H

#include "fs/data/read_events.h"
#include "fs/op/fs_internal.h"

extern const struct read_events replica_ra_events;

int replica_ra_new(struct fs *fs);
void replica_ra_free(struct fs *fs);
bool replica_ra_idle(const struct fs *fs);

/* A region is dropped. */
void replica_ra_forget(struct fs *fs, uint64_t sector, uint64_t sectors);

struct replica_ra_stats {
	uint64_t loads, load_bytes, hits;
};
const struct replica_ra_stats *replica_ra_stats(const struct fs *fs);

#endif
