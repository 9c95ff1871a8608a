/*
 * internal.h - what the files of src/log share.
 *
 *   log.c      adding, committing, waiting, holding, trimming
 *   tracks.c   which slot of which log track comes next
 *   write.c    the way of a record to the disk
 *   twin.c     the way of its twin
 *   recover.c  reading it all back
 *
 * A record in memory:
 *
 *   open -close-> closed -dispatch-> writing -done-> durable -stage-> spare
 *
 * One is open, any number closed, one being written.  A durable one keeps its
 * buffer until its bytes are copied to a stage, from where its twin goes out,
 * or until nothing else is left to open: then it has no twin.
 */
#ifndef TRAX_LOG_INTERNAL_H
#define TRAX_LOG_INTERNAL_H

#include "log/log.h"

#define LOG_RECORDS 16u			/* buffers */
#define LOG_PAYLOAD_BYTES \
	(TRAX_MAX_RECORD_BYTES - sizeof(struct log_header))
#define LOG_TRIES 4u			/* one and three more */
#define LOG_STAGES 2u
#define LOG_STAGE_BYTES (1u << 20)
#define LOG_CUTS 4u			/* remembered until trimmed */

struct log_record {
	struct list link;
	uint8_t *buf;			/* header and payload */
	size_t payload;
	uint64_t seq, gen, prev, chain;
	uint64_t since_ns;		/* first entry added */
};

struct log_track {
	uint64_t first;			/* sector, aligned to the unit */
	uint32_t sectors;		/* usable */
	uint32_t next;			/* of it used, while it has a role */
	uint64_t max_seq;		/* highest in it, twins too; 0: none */
};

/* Durable records on the way to become twins: bytes [done, bytes) are to be
 * written; a write takes the records up to `upto`. */
struct log_stage {
	uint8_t *buf;
	size_t bytes, done, upto;
	bool full;			/* takes no more: to be written */
	unsigned tries;
	struct queue_request req;
	struct iovec iov;
};

struct log {
	struct env *env;
	struct queue *queue;
	uint8_t uuid[16];
	size_t unit_bytes;
	uint64_t twin_delay_ns;
	bool started, failed, drain;
	struct log_stats stats;

	/* Sequence. */
	uint64_t epoch, gen;
	uint64_t last_seq;		/* of the last closed record */
	uint64_t last_chain;
	uint64_t durable_seq;
	uint64_t wanted_seq;		/* somebody waits for it */
	uint64_t tail_seq;		/* oldest record that is needed */
	struct {
		uint64_t cut_seq, tail_seq;
	} cut[LOG_CUTS];
	unsigned cuts;

	/* Records. */
	struct log_record record[LOG_RECORDS];
	struct list spare, closed, durable;
	struct log_record *open, *writing;
	struct queue_request req;
	struct iovec iov;
	unsigned tries;
	uint64_t sent_ns;		/* when the last record went out */

	/* Twins. */
	struct log_stage stage[LOG_STAGES];
	struct log_stage *filling;	/* takes records unless full */
	struct log_stage *sending;	/* NULL: none */

	/* Tracks: `main` takes records, `twin` twins; never the same. */
	struct log_track track[TRAX_MAX_LOG_TRACKS];
	unsigned tracks;
	struct log_track *main, *twin;
	uint64_t total_bytes;

	/* Promised room. */
	uint64_t reserved_bytes;	/* of entries */
	uint64_t reserved_cost;		/* each in a record of its own */

	/* Holds: count of record seq at seq % held_n, for those from the tail
	 * on; held_from is the oldest when there are any. */
	uint32_t *held;
	size_t held_n;
	uint64_t held_from, holds;

	struct list waiters;		/* not durable yet */
	struct list ready;		/* told by the next log_run */
	struct list drainers;
};

/* Bytes of a record on disk. */
size_t log_record_bytes(const struct log *log, size_t payload);

/* log.c */
uint64_t log_needed_bytes(const struct log *log);
void log_close_record(struct log *log);
void log_wake(struct log *log);

/* tracks.c */
void log_tracks_init(struct log *log, const struct super *super);
bool log_track_is_free(const struct log *log, const struct log_track *t);
struct log_track *log_place_main(struct log *log, size_t bytes,
				 bool elsewhere);
struct log_track *log_place_twin(struct log *log, size_t first, size_t bytes,
				 bool elsewhere);
bool log_tracks_hold(const struct log *log, uint64_t need);
uint64_t log_tracks_used_bytes(const struct log *log);
void log_tracks_rewind(struct log *log);

/* write.c */
void log_dispatch(struct log *log);

/* twin.c */
void log_twin_stage(struct log *log);
void log_twin_send(struct log *log);
bool log_twin_waiting(const struct log *log);
uint64_t log_twin_staged_bytes(const struct log *log);

#endif
