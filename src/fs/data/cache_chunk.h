/*
 * cache_chunk.h - verified content of files in memory, and waiting for it.
 */
#ifndef TRAX_DATA_CACHE_CHUNK_H
#define TRAX_DATA_CACHE_CHUNK_H

#include "fs/data/file_data.h"

int read_wait_start(struct read_wait *rwait);	/* 0: all blocks are in memory;
						 * -EINPROGRESS: ready() will be
						 * called; -EIO */
void read_wait_end(struct read_wait *rwait);
/* Are all blocks of the read wait in memory? */
bool read_wait_ok(const struct read_wait *rwait);
/* Content of a block that a read wait holds: from a dirty block or else from a
 * chunk; NULL: it has none. */
const void *read_wait_block(const struct read_wait *rwait, uint64_t index);
/* Read waits that found no free chunks try again, in order of arrival. */
void read_waits_feed(struct files *files);
/* A transaction has changed the content of these blocks: chunks drop it. */
void chunks_changed(struct file *file, uint64_t first, uint64_t n);
/*
 * How certain is it that blocks read ahead will be wanted?  AHEAD_GUESS is
 * dropped when the file has replicas, as these show which blocks are wanted.
 * AHEAD_TURNS is for streams that take turns: they wait a little for each
 * other, so that each has long turns.
 */
enum ahead_kind { AHEAD_SURE, AHEAD_GUESS, AHEAD_TURNS };

/* Reads ahead those of the blocks that are not in memory; false: there is no
 * room. deadline_ns: when a reader will come to them; 0: not known. */
bool chunks_read_ahead(struct file *file, uint64_t first, uint64_t end,
		       enum ahead_kind kind, uint64_t deadline_ns);
/* Counts that a user reads the blocks of a read wait, some of which may have
 * been read ahead. */
void chunks_used(const struct read_wait *rwait, uint64_t wait_ns);
/* Lists at most `most` small files that were read ahead, have no replica, and
 * that no user has read: in the order of their addresses, each once. */
struct replica_want;
size_t chunks_unused_readahead(struct files *files, struct replica_want *left,
			       size_t most);
/* Ends fetches that could not begin. */
void chunks_run(struct files *files);
/* The reader has passed [first, end): chunks that lie wholly in it are the
 * first to be reused. */
void chunks_passed(struct file *file, uint64_t first, uint64_t end);
/* Content of one block in the tree, if a valid chunk holds it; NULL. */
const void *chunk_block(const struct file *file, uint64_t index);

#endif
