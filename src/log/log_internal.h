/*
 * log_internal.h - what the files of src/log share.
 *
 *   log.c      adding, committing, waiting, pinning, trimming
 *   log_tracks.c  which slots of which log track come next
 *   record_write.c  the way of a record to the disk
 *   mirror.c   the way of its mirror
 *   record_scan.c  finding records on the tracks
 *   log_recovery.c  reading it all back
 *
 * A record in memory:
 *
 *   open -close-> closed -dispatch-> writing -done-> durable -stage-> spare
 *
 * One record is open, any number are closed, and those that are being written
 * share one access.  A durable record keeps its buffer until its bytes are
 * copied to a stage, from which its mirror is written.  When there is no other
 * buffer left to open, a durable one is taken, and that record gets no mirror.
 */
#ifndef TRAX_LOG_LOG_INTERNAL_H
#define TRAX_LOG_LOG_INTERNAL_H

#include "log/log.h"

#define LOG_RECORDS 16u			/* number of record buffers */
/* Closed records that nobody waits for are written when there are this many, in
 * one access; they are written earlier when less than half of the buffers are
 * left. */
#define LOG_AT_ONCE 4u
/* Buffers in which mirrors are collected, 1 MiB each: one is filled while the
 * other one is written. */
#define LOG_STAGES 2u
#define LOG_STAGE_BYTES (1u << 20)
/* Least of it that records fill of which nobody was told: the longest fits. */
#define LOG_LEAST_UNTOLD_BYTES TRAX_MAX_RECORD_BYTES
#define LOG_CUTS 4u			/* cuts that are remembered until
					 * log_trim */
/* Moving tracks may make the log larger by this factor at most. */
#define LOG_GROWS 2u

struct log_record {
	struct list link;
	uint8_t *buf;			/* header and payload */
	size_t payload;
	uint64_t seq, gen, prev, chain;
	unsigned track;			/* of a durable record: index of the
					 * track where it lies */
	uint64_t since_ns;		/* when its first entry was added */
};

/* Free room on tracks, in units. */
struct log_room {
	uint32_t used;
	uint32_t longest;		/* the longest free run */
	uint64_t sure;			/* room that records find for sure,
					 * however long they are */
};

struct log_track {
	uint64_t first;			/* first sector, aligned to the unit */
	uint32_t units;
	uint64_t *seq;			/* for each unit the number of the
					 * record or mirror in it; 0: the unit
					 * is free */
	uint32_t next;			/* the unit behind the last write */
	struct log_room room;		/* what is free here, computed from
					 * `seq` */
};

/* Copies of durable records, to be written as mirrors: bytes [done, bytes) are
 * left to write, and the next write takes the records up to `upto`. */
struct log_stage {
	uint8_t *buf;
	/* For each sector of the buffer with which a record begins: index of
	 * the track where the original lies. */
	uint8_t original[LOG_STAGE_BYTES / SECTOR_BYTES];
	size_t bytes, done, upto;
	bool full;			/* takes no more records */
	unsigned tries;
	struct log *log;
	const struct log_track *track;	/* the track that the next write
					 * goes to */
	struct queue_request req;
	struct queue_place place;
	struct iovec iov;
};

struct log {
	struct env *env;
	struct queue *queue;
	uint8_t uuid[16];
	size_t unit_bytes;
	uint64_t mirror_delay_ns;
	bool started, failed;
	struct log_stats stats;

	/* Sequence numbers: the epoch and generation of new records; the last
	 * closed record and its chain value; the last durable one. */
	uint64_t epoch, gen;
	uint64_t last_seq;		/* last closed record */
	uint64_t last_chain;
	uint64_t durable_seq;
	uint64_t wanted_seq;		/* last record that somebody waits
					 * for */
	uint64_t acked_seq;		/* last record that was or will be
					 * acknowledged, or that something
					 * depends on */
	uint64_t tail_seq;		/* oldest record that is needed */
	struct {
		uint64_t cut_seq, tail_seq;
	} cut[LOG_CUTS];
	unsigned cuts;

	/* Records. */
	struct log_record record[LOG_RECORDS];
	struct list spare, closed, writing, durable;
	struct log_record *open;
	bool pressed;			/* somebody waits for buffers or room */
	struct queue_request req;
	struct queue_place place;	/* chooses the place of the records that
					 * are being written */
	bool placed;			/* that place was chosen */
	struct iovec iov[LOG_AT_ONCE];
	unsigned tries;			/* writes of these records that have
					 * failed */
	bool elsewhere;			/* the next try goes to another track */
	uint64_t retry_ns;		/* time of the next try; 0: it has
					 * begun */
	uint64_t sent_ns;		/* when the last records were sent */
	uint64_t done_ns;		/* when the last records became
					 * durable */
	uint64_t gap_ns;		/* smoothed time from records being
					 * durable to sending the next */

	/* Mirrors. */
	struct log_stage stage[LOG_STAGES];
	size_t untold_bytes;		/* bytes of a stage that are used while
					 * nobody was told of its records */
	struct log_stage *filling;	/* takes records unless full */
	struct log_stage *sending;	/* is being written; NULL: none */
	/* The range of records that have no mirror; 0: there are none. */
	uint64_t missing_first, missing_last;

	struct log_scan *scan;		/* the scan of record_scan.h; NULL: it
					 * has ended */
	void (*scan_end)(struct log *log);	/* log_recover_end */
	void (*scan_heal)(struct log *log);	/* log_heal */

	/* The last record went to the track `main`, the last mirrors to
	 * `mirror`. */
	struct log_track track[TRAX_MAX_LOG_TRACKS];
	unsigned tracks;
	struct log_track *main, *mirror;
	uint64_t total_bytes;

	/* Room that is promised to transactions. */
	uint64_t reserved_bytes;	/* bytes of entries */
	uint64_t reserved_cost;		/* the same in bytes of records, as if
					 * each reservation needed a record of
					 * its own */

	/* Pins. Records from the tail on have a count of pins at seq %
	 * pinned_n; pinned_from is the oldest pinned record, if there is
	 * any. */
	uint32_t *pinned;
	size_t pinned_n;
	uint64_t pinned_from, pins;
	uint64_t unpinned;		/* number of log_unpin calls */

	struct list waiters;		/* waiters whose records are not durable
					 * yet */
	struct list ready;		/* waiters that the next log_run
					 * calls */
	struct list drainers;
};

/* Bytes that a record takes on disk with its parity; those of its mirror, which
 * has no parity. */
size_t log_record_bytes(const struct log *log, size_t payload);
size_t log_mirror_bytes(const struct log *log, size_t payload);

/* log.c */
uint64_t log_needed_bytes(const struct log *log);
void log_close_record(struct log *log);
void log_wake(struct log *log);

/* log_tracks.c */
int log_tracks_init(struct log *log, const struct super *super);
void log_tracks_fini(struct log *log);
struct log_track *log_track_of(struct log *log, uint64_t sector);
/* Marks the units of a record or mirror as used. */
void log_track_mark(struct log *log, struct log_track *track, uint64_t sector,
		    uint64_t bytes, uint64_t seq);
/* Marks units as free. */
void log_track_unmark(struct log *log, uint64_t sector, uint64_t bytes);
void log_tracks_forget_beyond(struct log *log, uint64_t last);
/* Counts the room of all tracks anew, after the tail has moved. */
void log_tracks_refresh(struct log *log);
bool log_tracks_hold(const struct log *log, uint64_t need);
uint64_t log_tracks_used_bytes(const struct log *log);
/* How many bytes of records may go out in one access now without endangering
 * promised room.  0: one record. */
size_t log_place_room(const struct log *log);
/* Finds a place for records of this size; `elsewhere`: not on the present
 * track.  False: there is none. */
bool log_place_find(struct log *log, const struct head_state *head_state,
		    size_t bytes, bool elsewhere, uint64_t *sector,
		    uint64_t *cost_ns);
void log_place_take(struct log *log, uint64_t sector, size_t bytes,
		    uint64_t seq);
/* Chooses a track for mirrors: one with room for at least `first` bytes, for
 * `bytes` if possible, and not the track of the first original. *room_bytes is
 * how much of it may be used. NULL: there is none. */
const struct log_track *log_mirror_track(struct log *log, size_t first,
				       size_t bytes, unsigned original,
				       bool elsewhere, size_t *room_bytes);
/* Finds the place on that track. False: it has no room left, or what it has is
 * promised to records. */
bool log_mirror_find(struct log *log, const struct log_track *track,
		   const struct head_state *head_state, size_t bytes,
		   uint64_t *sector, uint64_t *cost_ns);

/* record_write.c */
void log_dispatch(struct log *log);
/* Writes records again whose write has failed, once their pause is over.
 * Returns when it is over (UINT64_MAX: nothing has failed). */
uint64_t log_retry(struct log *log, uint64_t now_ns);

/* mirror.c */
void log_mirror_stage(struct log *log);
/* Sends all mirrors of acknowledged records; while the log is drained, all. */
void log_mirror_send(struct log *log);
/* When mirrors that have to be written have waited long enough. */
uint64_t log_mirror_due_ns(const struct log *log);
/* Notes that a record will have no mirror. */
void log_mirror_miss(struct log *log, uint64_t seq);
bool log_mirror_waiting(const struct log *log);
/* Bytes of the mirrors that have to be written. */
uint64_t log_mirror_staged_bytes(const struct log *log);
/* Do mirrors wait whose records are acknowledged? */
bool log_mirror_due(const struct log *log);
/* Forgets mirrors of records that are below the tail; call after the tail has
 * moved. */
void log_mirror_trim(struct log *log);

#endif
