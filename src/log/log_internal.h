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

#define LOG_RECORDS 16u			/* buffers */
/* Closed records that nobody waits for go out when there are this many, in one
 * access; earlier when less than half of the buffers are left. */
#define LOG_AT_ONCE 4u
#define LOG_STAGES 2u
#define LOG_STAGE_BYTES (1u << 20)
#define LOG_CUTS 4u			/* cuts remembered until trimmed */
/* Moving tracks may make the log larger by this factor at most. */
#define LOG_GROWS 2u

struct log_record {
	struct list link;
	uint8_t *buf;			/* header and payload */
	size_t payload;
	uint64_t seq, gen, prev, chain;
	unsigned track;			/* of a durable record: its track */
	uint64_t since_ns;		/* when its first entry was added */
};

/* Room on tracks, in units. */
struct log_room {
	uint32_t used;
	uint32_t longest;		/* the longest free run */
	uint64_t sure;			/* room that records surely find,
					   however long they are */
};

struct log_track {
	uint64_t first;			/* sector, aligned to the unit */
	uint32_t units;
	uint64_t *seq;			/* of the record or mirror in each unit;
					   0: none */
	uint32_t next;			/* unit behind the last write */
	bool retiring;			/* takes no more records */
	struct log_room room;		/* derived */
};

/* Copies of durable records, to be written as mirrors: bytes [done, bytes) are
 * left to write, and the next write takes the records up to `upto`. */
struct log_stage {
	uint8_t *buf;
	/* For each sector of the buffer with which a record begins: the track
	 * of the original. */
	uint8_t original[LOG_STAGE_BYTES / SECTOR_BYTES];
	size_t bytes, done, upto;
	bool full;			/* takes no more records */
	unsigned tries;
	struct log *log;
	const struct log_track *track;	/* where it goes */
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
	bool started, failed, drain;
	struct log_stats stats;

	/* Sequence. */
	uint64_t epoch, gen;
	uint64_t last_seq;		/* of the last closed record */
	uint64_t last_chain;
	uint64_t durable_seq;
	uint64_t wanted_seq;		/* the last that somebody waits for */
	uint64_t acked_seq;		/* the last that was or will be
					   acknowledged, or is depended on */
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
	struct queue_place place;	/* of the records being written */
	bool placed;			/* these records have their place */
	struct iovec iov[LOG_AT_ONCE];
	unsigned tries;			/* that have failed */
	bool elsewhere;			/* the next is on another track */
	uint64_t retry_ns;		/* when that begins; 0: has begun */
	uint64_t sent_ns;		/* when the last record went out */
	uint64_t done_ns;		/* when the last record was durable */
	uint64_t gap_ns;		/* from a durable record to the next
					   that goes out, smoothed */

	/* Mirrors. */
	struct log_stage stage[LOG_STAGES];
	struct log_stage *filling;	/* takes records unless full */
	struct log_stage *sending;	/* is being written; NULL: none */
	/* The range of records that have no mirror; 0: there are none. */
	uint64_t missing_first, missing_last;

	struct log_scan *scan;		/* of record_scan.h; NULL: ended */
	void (*scan_end)(struct log *log);	/* log_recover_end */
	void (*scan_heal)(struct log *log);	/* log_heal */

	/* Tracks: `main` got the last record, `mirror` the last mirrors. */
	struct log_track track[TRAX_MAX_LOG_TRACKS];
	unsigned tracks;
	struct log_track *main, *mirror;
	uint64_t total_bytes;

	/* Promised room. */
	uint64_t reserved_bytes;	/* of entries */
	uint64_t reserved_cost;		/* the same, if each reservation needs a
					   record of its own */

	/* Pins: the count of record seq is at seq % pinned_n, for records from
	 * the tail on; pinned_from is the oldest pinned one, if any is. */
	uint32_t *pinned;
	size_t pinned_n;
	uint64_t pinned_from, pins;

	struct list waiters;		/* their records are not durable yet */
	struct list ready;		/* called by the next log_run */
	struct list drainers;
};

/* Bytes of a record on disk, with its parity; of its mirror, which has none. */
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
/* Marks units as used by a record or mirror. */
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
/* Do commits follow each other at once, so that each waits for anything that is
 * written in between? */
bool log_commit_waits(const struct log *log);
/* Finds a place for records of this size; `elsewhere`: not on the present
 * track.  False: there is none. */
bool log_place_find(struct log *log, const struct head_state *head_state,
		    size_t bytes, bool elsewhere, uint64_t *sector,
		    uint64_t *cost_ns);
void log_place_take(struct log *log, uint64_t sector, size_t bytes,
		    uint64_t seq);
/* Chooses a track for mirrors: with room for `first` bytes at least, for
 * `bytes` if possible, and not the track of the first original.  *room_bytes is
 * what may be used of it.  NULL: there is none. */
const struct log_track *log_mirror_track(struct log *log, size_t first,
				       size_t bytes, unsigned original,
				       bool elsewhere, size_t *room_bytes);
/* Finds the place on that track; false: it has no room left, or its room is
 * promised. */
bool log_mirror_find(struct log *log, const struct log_track *track,
		   const struct head_state *head_state, size_t bytes,
		   uint64_t *sector, uint64_t *cost_ns);

/* log_recovery.c: writes what could not be read and is not needed. */
void log_heal(struct log *log);

/* record_write.c */
void log_dispatch(struct log *log);
/* Writes again what has failed, when its pause is over; until then: when. */
uint64_t log_retry(struct log *log, uint64_t now_ns);

/* mirror.c */
void log_mirror_stage(struct log *log);
/* Sends all that has been acknowledged; or, for a drain, all. */
void log_mirror_send(struct log *log);
/* When those that have to be written have waited long enough. */
uint64_t log_mirror_due_ns(const struct log *log);
/* The record will have no mirror. */
void log_mirror_miss(struct log *log, uint64_t seq);
bool log_mirror_waiting(const struct log *log);
/* Of those that have to be written. */
uint64_t log_mirror_staged_bytes(const struct log *log);
/* Are there any, or is all that waits not acknowledged yet? */
bool log_mirror_due(const struct log *log);
/* After the tail has moved. */
void log_mirror_trim(struct log *log);

#endif
