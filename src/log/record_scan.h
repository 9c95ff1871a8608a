/*
 * record_scan.h - what record_scan.c finds on the log, for log_recovery.c.
 */
#ifndef TRAX_LOG_RECORD_SCAN_H
#define TRAX_LOG_RECORD_SCAN_H

#include "base/hashmap.h"
#include "log/log_internal.h"

/* What is read of a track at a time: 2 MiB.  It overlaps the next one
 * by the longest record, so that each record is whole in one read. */
#define READ_SECTORS (2u << 11)
#define OVERLAP_SECTORS (TRAX_MAX_RECORD_BYTES / SECTOR_BYTES)
/* Reads that are under way at the same time, so that the disk does not wait
 * while one is scanned. */
#define READS 4u
/* Least memory for payloads: some of the longest records. */
#define MIN_MEMORY_BYTES (2u << 20)
#define LOADS 256u		/* records read again at once */
#define MAX_UNREADABLE 4096u	/* unreadable units that are remembered */
#define MAX_HEALED 64u		/* unreadable units that are rewritten: half a
				 * second's work */

struct found_record {
	uint64_t seq, prev, chain;
	uint64_t sector[2];	/* original and mirror as found; 0: none */
	uint32_t bytes[2];	/* bytes of each on the disk */
	uint32_t payload_bytes;
	uint8_t *payload;	/* NULL: not in memory, or empty */
};

struct scan_read {
	struct log_scan *scan;
	uint8_t *buf;
	struct log_track *track;
	uint32_t first, sectors;	/* sectors of the track */
	bool busy;
	struct queue_request req;
	struct iovec iov;
};

struct load {
	struct log_scan *scan;
	struct found_record *find;
	uint8_t *buf;			/* the record */
	struct queue_request req;
	struct iovec iov;
};

struct log_scan {
	struct log *log;
	struct log_replay replay;
	struct found_record *find;
	size_t n, room;
	size_t memory_bytes, kept_bytes; /* of payloads */
	struct hashmap *known;		/* chain value to place in find[] + 1 */
	uint64_t acked;			/* highest sequence number that any find
					 * says is acknowledged */
	uint64_t newer;			/* a record that follows a newer root;
					   0: none was found */
	unsigned track;			/* next read to read */
	uint32_t sector;
	unsigned reading;
	uint64_t *unreadable;		/* first sectors of units, ascending */
	unsigned unreadable_n;
	uint8_t *rebuilt;		/* a record that its parity has made
					 * whole */
	uint64_t rebuild_bytes;		/* bytes that may still be hashed for
					 * this */
	int rc;
	struct scan_read read[READS];
	uint32_t *path;			/* indices of the finds of the chain, in
					 * its order */
	size_t path_n, apply_from;
	struct load load[LOADS];
};

/* find_drop frees the payload of a find, find_keep stores it. */
void find_drop(struct log_scan *scan, struct found_record *find);
int find_keep(struct log_scan *scan, struct found_record *find,
	      const void *payload);

/* Reads unit by unit where one access fails; units that cannot be read are
 * zeros. */
void scan_units_read(struct log_scan *scan, uint64_t sector, uint32_t sectors,
		uint8_t *buf);

struct log_scan *scan_new(struct log *log, const struct log_replay *replay);
int scan_tracks(struct log_scan *scan);
void scan_reads_free(struct log_scan *scan);

#endif
