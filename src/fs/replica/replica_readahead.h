/*
 * replica_readahead.h - copies are read as runs: buffers of what lies behind
 * the copy that is read, because it was put there in the order in which it will
 * be wanted.
 *
 * A run begins small and grows while reads follow each other in it, up to two
 * tracks; its second half calls for the next.  A long stream of reads takes as
 * much at a time as the drive has read ahead by itself.  With the first bytes
 * of a run the inodes of the files in it are fetched.  What comes out of a
 * buffer is verified by who takes it, as if it had been read.
 */
#ifndef TRAX_REPLICA_REPLICA_READAHEAD_H
#define TRAX_REPLICA_REPLICA_READAHEAD_H

#include "fs/op/fs_internal.h"

struct replica_ra;

struct replica_run_want {
	struct list link;
	uint64_t sector;	/* set: where it was found */
	uint32_t sectors;
	/* Data of all of it in two parts, valid during the call; NULL: the
	 * copy says nothing any more (`gone`), or something of what was read
	 * with it could not be: who wants it reads it alone. */
	bool gone;
	void (*done)(struct replica_run_want *want, const uint8_t *data,
		     size_t bytes, const uint8_t *rest);
	struct replica_run *head, *tail;	/* replica_readahead.c's */
};

int replica_ra_new(struct fs *fs);
void replica_ra_free(struct fs *fs);
bool replica_ra_idle(const struct fs *fs);

/*
 * Takes `want` out of a run, where it has one of these copies and they are
 * nearer than the original: done() is called, maybe at once.  false: read it
 * otherwise.
 */
bool replica_ra_take(struct fs *fs, struct replica_run_want *want,
		     const uint64_t *copies, unsigned copies_n,
		     uint64_t original);

/* A read has ended there. */
void replica_ra_passed(struct fs *fs, uint64_t sector);

/* A region is dropped. */
void replica_ra_forget(struct fs *fs, uint64_t sector, uint64_t sectors);

struct replica_ra_stats {
	uint64_t loads, load_bytes, hits;
};
const struct replica_ra_stats *replica_ra_stats(const struct fs *fs);

#endif
