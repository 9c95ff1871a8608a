/*
 * cache_chunk_internal.h - cache chunks from inside: cache_chunk.c (chunks,
 * read waits, read-ahead), chunk_lookup.c (where blocks are on the disk),
 * chunk_read.c (reads and verification).
 */
#ifndef TRAX_DATA_CACHE_CHUNK_INTERNAL_H
#define TRAX_DATA_CACHE_CHUNK_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/data/cache_chunk.h"
#include "fs/data/file_data.h"
#include "fs/data/read_events.h"

#define SUM_LEAVES_AHEAD 8u	/* leaves of checksums read in one access, about
				 * those of 120 MB of data: 14 MB a leaf */

struct fetch_segment {
	uint64_t addr, off, n;	/* place on the disk, place in the file, and
				 * length, in sectors */
	uint64_t first, end;	/* the extent in which it lies, on the disk */
	uint64_t copies[QUEUE_COPIES];
	unsigned copies_n;
	struct replica_run_want want;
	uint64_t number;	/* number of the read, see read_events.h */
	uint64_t begun_ns;
	struct queue_request req;
};

struct fetch_chunk {
	struct chunk *chunk;
	uint16_t want;		/* blocks to be read */
	bool claimed;		/* this fetch has marked the blocks of `want` as
				 * busy */
	uint16_t mapped;	/* blocks of `want` with data on the disk */
	uint16_t mask;		/* blocks of `want` with a checksum */
	uint16_t copied;	/* blocks of `want` with a replica */
	uint32_t sum[CHUNK_BLOCKS];
};

struct fetch {
	struct list link;	/* in files->broken */
	struct list in_file;	/* in file->fetches */
	struct file *file;
	enum queue_class class;
	uint64_t first;		/* index of chunk 0 */
	unsigned chunks;
	struct fetch_chunk chunk[READ_WAIT_CHUNKS];
	unsigned segments, outstanding, tries;
	unsigned failures;	/* failed reads in a row */
	enum fault_class error;	/* class of the last error */
	unsigned copies_n;	/* most replicas of any segment */
	bool background;	/* no user waits for it */
	uint64_t deadline_ns;	/* when a reader will want it; 0: as soon as
				 * possible */
	enum ahead_kind ahead;	/* kind of a read-ahead; AHEAD_SURE if somebody
				 * waits for the blocks */
	bool hastened;		/* somebody has begun to wait for what it reads
				 * ahead */
	/* Replicas that were read at the first try. */
	struct copy_read {
		uint64_t off, n, sector;
	} has_replicas[FETCH_SEGMENTS];
	unsigned copied;
	int rc;
	struct fetch_segment segment[FETCH_SEGMENTS];
	struct iovec iov[FETCH_SEGMENTS + READ_WAIT_CHUNKS];
};

/* ---- cache_chunk.c ---- */

/* The fetch gives up these blocks of a chunk. */
void fetch_leave(struct fetch_chunk *fp, uint16_t bits);

/* Ends a fetch: every block that could be read is valid. */
void fetch_over(struct fetch *fetch);

int fetch_run(struct fs_txn *txn);

void fetch_end(struct fs_txn *txn, int rc, uint64_t seq);

void fetch_claim(struct fetch *fetch);

void fetch_unclaim(struct fetch *fetch);

/* ---- chunk_read.c ---- */

/* Lists the buffers of a segment; returns the number of iov used. */
unsigned fetch_iov(struct fetch *fetch,
		   const struct fetch_segment *segment,
		   struct iovec *iov);

/* Chooses the place, original or replica, that is read at this try. */
void fetch_choose(const struct fetch *fetch,
		  struct fetch_segment *segment);

void fetch_watch(struct fetch *fetch, struct fetch_segment *segment);

/* Has a run of replicas this segment, or will it have it?  Then the run
 * supplies the data. */
bool fetch_from_run(struct fetch *fetch, struct fetch_segment *segment);

/* Was this segment read in a gap?  Then its data is copied. */
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
