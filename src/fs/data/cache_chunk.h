/*
 * cache_chunk.h - verified content of files in memory, and waiting for it.
 */
#ifndef TRAX_DATA_CACHE_CHUNK_H
#define TRAX_DATA_CACHE_CHUNK_H

#include "fs/data/file_data.h"

int read_wait_start(struct read_wait *rwait);	/* 0, -EIO, -EINPROGRESS */
void read_wait_end(struct read_wait *rwait);
/* Is everything there (again)? */
bool read_wait_ok(const struct read_wait *rwait);
/* Content of a block that a need holds, or NULL: block first, then piece. */
const void *read_wait_block(const struct read_wait *rwait, uint64_t index);
void read_waits_wake(struct file *file);
/* The tree's content of these blocks has changed. */
void chunks_changed(struct file *file, uint64_t first, uint64_t n);
/* Reads ahead what is not there, when there is room.  A guess is left when the
 * file has copies: then these are what is wanted of it. */
void chunks_read_ahead(struct file *file, uint64_t first, uint64_t end,
		       bool guess);
/* A user reads what a need holds: some of it may have been read ahead. */
void chunks_used(const struct read_wait *rwait, uint64_t wait_ns);
/* Small files that were read ahead and nobody has come for, that have no copy:
 * by address, at most `most`; each is told once. */
struct replica_want;
size_t chunks_unused_readahead(struct files *files, struct replica_want *left,
			       size_t most);
/* Ends fetches that could not begin. */
void chunks_run(struct files *files);
/* The reader is through with the pieces before this block. */
void chunks_passed(struct file *file, uint64_t first, uint64_t end);
/* The tree's content of one block, if a valid piece holds it. */
const void *chunk_block(const struct file *file, uint64_t index);

#endif
