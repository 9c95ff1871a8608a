/*
 * cache_chunk_internal.h - cache chunks from inside: cache_chunk.c (chunks,
 * read waits, read-ahead), chunk_lookup.c (where blocks are on the disk),
 * chunk_read.c (reads and verification).
 */
#ifndef TRAX_DATA_CACHE_CHUNK_INTERNAL_H
#define TRAX_DATA_CACHE_CHUNK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/data/file_data.h"
#include "fs/data/read_events.h"

#define SUM_LEAVES_AHEAD 8u	/* checksums of 120 MB, one access */

struct fetch_segment {
	uint64_t addr, off, n;	/* sectors */
	uint64_t first, end;	/* of the extent that it is of, on the disk */
	uint64_t copies[QUEUE_COPIES];
	unsigned copies_n;
	struct replica_run_want want;
	uint64_t number;	/* of the read, see read_events.h */
	uint64_t begun_ns;
	struct queue_request req;
};

struct fetch_chunk {
	struct chunk *chunk;
	uint16_t want;		/* blocks to be read */
	bool claimed;		/* they are busy for this fetch */
	uint16_t mapped;	/* of these, with data on disk */
	uint16_t mask;		/* that have a sum */
	uint16_t copied;	/* that have a copy */
	uint32_t sum[CHUNK_BLOCKS];
};

struct fetch {
	struct list link;	/* files->broken */
	struct list in_file;	/* file->fetches */
	struct file *file;
	enum queue_class class;
	uint64_t first;		/* index of chunk 0 */
	unsigned chunks;
	struct fetch_chunk piece[READ_WAIT_CHUNKS];
	unsigned segments, outstanding, tries;
	unsigned failures;	/* reads that ended with an error, in a row */
	enum fault_class error;	/* of the last of them */
	unsigned copies_n;	/* of any segment, at most */
	bool background;	/* no user's read */
	bool guess;		/* nobody may ever want it */
	/* The copies that were read the first time. */
	struct copy_read {
		uint64_t off, n, sector;
	} has_replicas[FETCH_SEGMENTS];
	unsigned copied;
	int rc;
	struct fetch_segment segment[FETCH_SEGMENTS];
	struct iovec iov[FETCH_SEGMENTS + READ_WAIT_CHUNKS];
};

/* ---- cache_chunk.c ---- */

/* Blocks of a chunk are not read any more, at least not by this fetch. */
void fetch_leave(struct fetch_chunk *fp, uint16_t bits);

/* Everything that could be had is valid. */
void fetch_over(struct fetch *fetch);

int fetch_run(struct fs_txn *txn);

void fetch_end(struct fs_txn *txn, int rc, uint64_t seq);

void fetch_claim(struct fetch *fetch);

void fetch_unclaim(struct fetch *fetch);

/* ---- chunk_read.c ---- */

/* Buffers of a segment; returns the number of iov used. */
unsigned fetch_iov(struct fetch *fetch,
		   const struct fetch_segment *segment,
		   struct iovec *iov);

/* Which place is read at this try. */
void fetch_choose(const struct fetch *fetch,
		  struct fetch_segment *segment);

void fetch_watch(struct fetch *fetch, struct fetch_segment *segment);

/* Copies are read together with those that will be wanted next. */
bool fetch_from_run(struct fetch *fetch, struct fetch_segment *segment);

/* It has passed by under the head, and was read. */
bool fetch_from_gap(const struct fetch *fetch,
		    const struct fetch_segment *segment);

void fetch_submit(struct fetch *fetch, struct fetch_segment *segment);

void fetch_done(struct disk_request *req);

void fetch_again(struct fetch *fetch);

void fetch_verify(struct fetch *fetch);

/* ---- chunk_lookup.c ---- */

/* Blocks of chunk `index` before block `end`. */
uint16_t chunk_before(uint64_t index, uint64_t end);

#endif
